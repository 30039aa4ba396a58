// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/place.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/strmap.h>

/* The workers that name a fragment: a list, the newest first. */
struct naming {
	size_t worker;
	struct naming *next;
};

struct placing {
	const struct fragi_spec *spec;
	const struct drv_place_worker *workers;
	size_t worker_count;
	struct fragi_arena *arena; /* of the caller: reasons */
	struct fragi_arena scratch;
	struct fragi_strmap named;    /* "fragment", "application/fragment": struct naming */
	struct fragi_strmap by_name;  /* fragments: index + 1 */
	bool *takes_any;              /* per worker */
	int64_t *placed, *neighbours; /* per worker */
	/* the fragments at the other ends of the flows of fragment f: from first_other[f] on */
	size_t *others, *first_other;
	size_t *candidates; /* room for every worker */
	struct drv_place *places;
};

static int placing_index(struct placing *p)
{
	p->takes_any = fragi_arena_alloc(&p->scratch, p->worker_count * sizeof(*p->takes_any));
	p->placed = fragi_arena_alloc(&p->scratch, p->worker_count * sizeof(*p->placed));
	p->neighbours = fragi_arena_alloc(&p->scratch, p->worker_count * sizeof(*p->neighbours));
	p->candidates = fragi_arena_alloc(&p->scratch, p->worker_count * sizeof(*p->candidates));
	if (p->takes_any == NULL || p->placed == NULL || p->neighbours == NULL ||
	    p->candidates == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->spec->fragment_count; i++)
		if (fragi_strmap_put(&p->by_name, p->spec->fragments[i].name, (void *)(i + 1)) ==
		    -ENOMEM)
			return -ENOMEM;
	for (size_t w = 0; w < p->worker_count; w++) {
		const struct drv_place_worker *worker = &p->workers[w];

		p->takes_any[w] = worker->fragment_count == 0;
		p->placed[w] = worker->placed;
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
	}
	return 0;
}

static size_t index_of(const struct placing *p, const char *fragment)
{
	return (size_t)fragi_strmap_get(&p->by_name, fragment) - 1;
}

/* The ends of all flows, counted (others NULL) or listed fragment by fragment. */
static void visit_flows(struct placing *p, size_t *next)
{
	for (size_t i = 0; i < p->spec->flow_count; i++) {
		const struct fragi_spec_flow *flow = &p->spec->flows[i];
		size_t from = index_of(p, flow->from.fragment), to;

		for (size_t j = 0; j < flow->to_count; j++) {
			to = index_of(p, flow->to[j].fragment);
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

/* Counts, per worker, the flows between fragment f and fragments that are placed there. */
static void count_neighbours(struct placing *p, size_t f, int64_t each)
{
	for (size_t i = p->first_other[f]; i < p->first_other[f + 1]; i++) {
		const struct drv_place *place = &p->places[p->others[i]];

		if (place->worker >= 0)
			p->neighbours[place->worker] += each;
	}
}

/*
 * By which criterion, from 0 on, a is better (positive) or worse than b; 0 when they are the same
 * one.
 */
static int compare(const struct placing *p, size_t a, size_t b)
{
	int64_t free_a = p->workers[a].cores - p->placed[a],
		free_b = p->workers[b].cores - p->placed[b];

	if (a == b)
		return 0;
	if (p->neighbours[a] != p->neighbours[b])
		return p->neighbours[a] > p->neighbours[b] ? 1 : -1;
	if (free_a != free_b)
		return free_a > free_b ? 2 : -2;
	return strcmp(p->workers[a].name, p->workers[b].name) < 0 ? 3 : -3;
}

/* Finds the best of the candidates, and the last criterion that was needed to compare them. */
static size_t best_of(const struct placing *p, const size_t *candidates, size_t count,
		      int *out_criterion)
{
	size_t best = candidates[0];
	int criterion = 0;

	for (size_t i = 1; i < count; i++)
		if (compare(p, candidates[i], best) > 0)
			best = candidates[i];
	for (size_t i = 0; i < count; i++) {
		int rank = compare(p, best, candidates[i]);

		criterion = rank > criterion ? rank : criterion;
	}
	*out_criterion = criterion;
	return best;
}

static void add_naming(const struct naming *list, size_t *candidates, size_t *count)
{
	for (; list != NULL; list = list->next) {
		size_t i = 0;

		while (i < *count && candidates[i] != list->worker)
			i++;
		if (i == *count)
			candidates[(*count)++] = list->worker;
	}
}

/* Returns how many are left of the candidates. */
static size_t leave_out_waiting(const struct placing *p, size_t *candidates, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!p->workers[candidates[i]].waits)
			candidates[kept++] = candidates[i];
	return kept;
}

static int place_one(struct placing *p, size_t f)
{
	static const char *const criteria[] = {"", "most of its neighbours are there",
					       "it has most free cores", "it is the first by name"};
	const char *name = p->spec->fragments[f].name, *how = "names it";
	char qualified[2 * FRAG_NAME_MAX + 2];
	size_t best, count = 0;
	int criterion;

	snprintf(qualified, sizeof(qualified), "%.63s/%.63s", p->spec->application, name);
	add_naming(fragi_strmap_get(&p->named, name), p->candidates, &count);
	add_naming(fragi_strmap_get(&p->named, qualified), p->candidates, &count);
	if (count == 0) {
		how = "takes whatever fits";
		for (size_t w = 0; w < p->worker_count; w++)
			if (p->takes_any[w])
				p->candidates[count++] = w;
	}
	count = leave_out_waiting(p, p->candidates, count);
	if (count == 0) {
		p->places[f].reason = "no live worker names it, and none takes whatever fits";
		return 1;
	}
	count_neighbours(p, f, 1);
	best = best_of(p, p->candidates, count, &criterion);
	count_neighbours(p, f, -1);
	p->places[f].worker = (int)best;
	p->placed[best]++;
	if (count == 1)
		p->places[f].reason = fragi_arena_printf(
			p->arena, "worker %s is the only one that %s", p->workers[best].name, how);
	else
		p->places[f].reason = fragi_arena_printf(
			p->arena, "of %zu workers of which each %s, %s was chosen: %s", count, how,
			p->workers[best].name, criteria[criterion]);
	return p->places[f].reason == NULL ? -ENOMEM : 0;
}

int drv_place(const struct fragi_spec *spec, const struct drv_place_worker *workers,
	      size_t worker_count, struct fragi_arena *arena, struct drv_place *places)
{
	struct placing p = {
		.spec = spec,
		.workers = workers,
		.worker_count = worker_count,
		.arena = arena,
		.places = places,
	};
	int missing = 0, r;

	for (size_t f = 0; f < spec->fragment_count; f++)
		places[f] = (struct drv_place){.worker = -1};
	r = placing_index(&p);
	if (r == 0)
		r = list_others(&p);
	for (size_t f = 0; r >= 0 && f < spec->fragment_count; f++) {
		r = place_one(&p, f);
		missing += r > 0;
	}
	fragi_strmap_fini(&p.named);
	fragi_strmap_fini(&p.by_name);
	fragi_arena_fini(&p.scratch);
	return r < 0 ? r : missing;
}
