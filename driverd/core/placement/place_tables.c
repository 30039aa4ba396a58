// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/placement/place_tables.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>

static int index_names(struct placing *p, size_t w)
{
	const struct drv_place_worker *worker = &p->workers[w];

	p->takes_any[w] = worker->fragment_count == 0;
	for (uint32_t i = 0; i < worker->fragment_count; i++) {
		const char *name = worker->fragments[i];
		struct naming *naming, *first = fragi_strmap_get(&p->named, name);

		if (strcmp(name, "all") == 0)
			p->takes_any[w] = true;
		if (first != NULL && first->worker == w)
			continue;
		naming = fragi_arena_alloc(&p->scratch, sizeof(*naming));
		if (naming == NULL)
			return -ENOMEM;
		naming->worker = w;
		/* The map keeps the first entry; others are chained behind it. */
		if (first != NULL) {
			naming->next = first->next;
			first->next = naming;
		} else if (fragi_strmap_put(&p->named, name, naming) < 0) {
			return -ENOMEM;
		}
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct drv_place_worker *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int sort_names(struct placing *p)
{
	const size_t count = p->worker_count;
	const struct drv_place_worker **sorted =
		fragi_arena_alloc(&p->scratch, count * sizeof(*sorted));

	p->by_name = fragi_arena_alloc(&p->scratch, count * sizeof(*p->by_name));
	if (sorted == NULL || p->by_name == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < count; w++)
		sorted[w] = &p->workers[w];
	qsort(sorted, count, sizeof(*sorted), by_name);
	for (size_t i = 0; i < count; i++)
		p->by_name[sorted[i] - p->workers] = i;
	return 0;
}

static int index_workers(struct placing *p)
{
	const size_t count = p->worker_count;
	struct fragi_arena *scratch = &p->scratch;

	p->takes_any = fragi_arena_alloc(scratch, count * sizeof(*p->takes_any));
	p->load = fragi_arena_alloc(scratch, count * sizeof(*p->load));
	p->neighbours = fragi_arena_alloc(scratch, count * sizeof(*p->neighbours));
	p->used = fragi_arena_alloc(scratch, count * sizeof(*p->used));
	p->kept_names = fragi_arena_alloc(scratch, count * sizeof(*p->kept_names));
	p->named_for = fragi_arena_alloc(scratch, count * sizeof(*p->named_for));
	p->whys = fragi_arena_alloc(scratch, count * sizeof(*p->whys));
	for (size_t f = 0; p->mig == NULL && f < p->spec->fragment_count; f++)
		if (p->spec->fragments[f].requirements.mig != NULL) {
			p->mig = fragi_arena_alloc(scratch, count * sizeof(*p->mig));
			if (p->mig == NULL)
				return -ENOMEM;
		}
	if (p->takes_any == NULL || p->load == NULL || p->neighbours == NULL || p->used == NULL ||
	    p->kept_names == NULL || p->named_for == NULL || p->whys == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < count; w++) {
		for (int i = 0; i < FRAGI_AMOUNTS; i++)
			if (p->workers[w].has[i] > p->most[i])
				p->most[i] = p->workers[w].has[i];
		if (index_names(p, w) < 0)
			return -ENOMEM;
	}
	return sort_names(p);
}

/* The ends of all flows, counted (others NULL) or listed fragment by fragment. */
static void visit_flows(struct placing *p, size_t *next)
{
	for (size_t i = 0; i < p->spec->flow_count; i++) {
		const struct fragi_spec_flow *flow = &p->spec->flows[i];
		size_t from = fragi_spec_group_index(&p->near, flow->from.fragment), to;

		for (size_t j = 0; j < flow->to_count; j++) {
			to = fragi_spec_group_index(&p->near, flow->to[j].fragment);
			if (p->others != NULL) {
				p->others[next[from]] = to;
				p->others[next[to]] = from;
			}
			next[from]++;
			next[to]++;
		}
	}
}

static int list_others(struct placing *p)
{
	size_t count = p->spec->fragment_count, sum = 0, *next;

	next = fragi_arena_alloc(&p->scratch, count * sizeof(*next));
	p->first_other = fragi_arena_alloc(&p->scratch, (count + 1) * sizeof(*p->first_other));
	if (next == NULL || p->first_other == NULL)
		return -ENOMEM;
	visit_flows(p, next);
	for (size_t f = 0; f < count; f++) {
		p->first_other[f] = sum;
		sum += next[f];
		next[f] = p->first_other[f];
	}
	p->first_other[count] = sum;
	p->others = fragi_arena_alloc(&p->scratch, sum * sizeof(*p->others));
	if (p->others == NULL)
		return -ENOMEM;
	visit_flows(p, next);
	return 0;
}

static int add_apart(struct placing *p, size_t of, size_t other)
{
	struct apart *entry = fragi_arena_alloc(&p->scratch, sizeof(*entry));

	if (entry == NULL)
		return -ENOMEM;
	*entry = (struct apart){other, p->apart[of]};
	p->apart[of] = entry;
	return 0;
}

/* Two fragments are apart from each other if either of them asks for it. */
static int list_apart(struct placing *p)
{
	p->apart = fragi_arena_alloc(&p->scratch, p->spec->fragment_count * sizeof(*p->apart));
	if (p->apart == NULL)
		return -ENOMEM;
	for (size_t f = 0; f < p->spec->fragment_count; f++) {
		const struct fragi_spec_requirements *own = &p->spec->fragments[f].requirements;

		for (size_t k = 0; k < own->apart_count; k++) {
			size_t other = fragi_spec_group_index(&p->near, own->apart[k]->text);

			if (other != SIZE_MAX &&
			    (add_apart(p, f, other) < 0 || add_apart(p, other, f) < 0))
				return -ENOMEM;
		}
	}
	return 0;
}

static void add_to_group(struct placing *p, struct group *group, size_t f)
{
	const struct fragi_spec_fragment *fragment = &p->spec->fragments[f];

	group->load += drv_place_load(fragment);
	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		group->wanted[i] += fragment->requirements.wanted[i];
		if (p->most[i] > 0 && (double)group->wanted[i] / (double)p->most[i] > group->share)
			group->share = (double)group->wanted[i] / (double)p->most[i];
	}
}

static bool stays(const struct placing *p, size_t f)
{
	return p->stays != NULL && p->stays[f] >= 0;
}

/* The first one of its group; those that leave a worker stay together. */
static size_t leader_of(const struct placing *p, size_t f)
{
	size_t first = 0;

	if (p->stays == NULL)
		return p->near.of[f];
	while (stays(p, first))
		first++;
	return first;
}

static int make_groups(struct placing *p)
{
	const size_t count = p->spec->fragment_count;
	size_t *index = fragi_arena_alloc(&p->scratch, count * sizeof(*index));
	size_t *last = fragi_arena_alloc(&p->scratch, count * sizeof(*last));

	p->groups = fragi_arena_alloc(&p->scratch, count * sizeof(*p->groups));
	p->next = fragi_arena_alloc(&p->scratch, count * sizeof(*p->next));
	if (index == NULL || last == NULL || p->groups == NULL || p->next == NULL)
		return -ENOMEM;
	for (size_t f = 0; f < count; f++) {
		size_t leader;

		p->next[f] = SIZE_MAX;
		if (stays(p, f))
			continue;
		leader = leader_of(p, f);
		if (leader == f) {
			index[f] = p->group_count;
			p->groups[p->group_count++].first = f;
		} else {
			p->next[last[index[leader]]] = f;
		}
		last[index[leader]] = f;
		add_to_group(p, &p->groups[index[leader]], f);
	}
	return 0;
}

int drv_place_tables_init(struct placing *p)
{
	int r = fragi_spec_group(p->spec, &p->near);

	if (r == 0)
		r = index_workers(p);
	if (r == 0)
		r = list_others(p);
	if (r == 0)
		r = list_apart(p);
	if (r == 0)
		r = make_groups(p);
	return r;
}

void drv_place_tables_fini(struct placing *p)
{
	fragi_strmap_fini(&p->named);
	fragi_spec_group_fini(&p->near);
	fragi_arena_fini(&p->scratch);
}

int64_t drv_place_load(const struct fragi_spec_fragment *fragment)
{
	return fragment->requirements.gives_cpu ? fragment->requirements.wanted[FRAGI_AMOUNT_CPU]
						: FRAGI_AMOUNT_ONE;
}
