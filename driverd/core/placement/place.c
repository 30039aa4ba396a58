// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/placement/place_tables.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts, per worker, the flows between the group and fragments that are placed there. */
static void count_neighbours(struct placing *p, const struct group *group, int64_t each)
{
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f])
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
	int64_t free_a = p->workers[a].has[FRAGI_AMOUNT_CPU] - p->load[a],
		free_b = p->workers[b].has[FRAGI_AMOUNT_CPU] - p->load[b];

	if (a == b)
		return 0;
	if (p->neighbours[a] != p->neighbours[b])
		return p->neighbours[a] > p->neighbours[b] ? 1 : -1;
	if (free_a != free_b)
		return free_a > free_b ? 2 : -2;
	return strcmp(p->workers[a].name, p->workers[b].name) < 0 ? 3 : -3;
}

static bool could_run(const struct drv_place_other *verdict)
{
	return verdict->why >= DRV_WHY_NEIGHBOURS;
}

/*
 * Whether a is nearer to running a fragment than b: it may have enough once others have ended, or
 * lacks less, as a share of what is required.
 */
static bool is_nearer(const struct drv_place_other *a, const struct drv_place_other *b)
{
	double lacks_a, lacks_b;

	if (a->why != b->why || a->why != DRV_WHY_AMOUNT)
		return a->why > b->why;
	if ((a->has >= a->wanted) != (b->has >= b->wanted))
		return a->has >= a->wanted;
	lacks_a = (double)(a->wanted - a->free) / (double)a->wanted;
	lacks_b = (double)(b->wanted - b->free) / (double)b->wanted;
	return lacks_a < lacks_b;
}

static const struct fragi_spec_label *label_lacking(const struct drv_place_worker *worker,
						    const struct fragi_spec_requirements *required)
{
	char label[2 * FRAG_NAME_MAX + 2];

	for (size_t i = 0; i < required->label_count; i++) {
		uint32_t k = 0;

		snprintf(label, sizeof(label), "%s=%s", required->labels[i].key,
			 required->labels[i].value);
		while (k < worker->label_count && strcmp(worker->labels[k], label) != 0)
			k++;
		if (k == worker->label_count)
			return &required->labels[i];
	}
	return NULL;
}

/* Whether a worker takes a fragment by its name; named: one that is not drained names it. */
static bool takes(const struct placing *p, size_t w, size_t f, bool named,
		  struct drv_place_other *verdict)
{
	verdict->why = named ? DRV_WHY_NAMED_ELSEWHERE : DRV_WHY_NAMES_OTHERS;
	return p->named_for[w] == f + 1 || (!named && p->takes_any[w]);
}

static bool note_names(struct placing *p, size_t f, const char *name)
{
	const struct naming *list = fragi_strmap_get(&p->named, name);
	bool is_bound = false;

	for (const struct naming *one = list; one != NULL; one = one->next) {
		p->named_for[one->worker] = f + 1;
		is_bound = is_bound || !p->workers[one->worker].is_drained;
	}
	return is_bound;
}

/* A fragment's own demands on workers that its group is not kept from yet. */
static void judge_fragment(struct placing *p, size_t f)
{
	const struct fragi_spec_fragment *fragment = &p->spec->fragments[f];
	char qualified[2 * FRAG_NAME_MAX + 2];
	bool named;

	snprintf(qualified, sizeof(qualified), "%.63s/%.63s", p->spec->application, fragment->name);
	named = note_names(p, f, fragment->name);
	named = note_names(p, f, qualified) || named;
	for (size_t w = 0; w < p->worker_count; w++) {
		const struct drv_place_worker *worker = &p->workers[w];
		struct drv_place_other *verdict = &p->verdicts[w], found = {0};

		if (!could_run(verdict))
			continue;
		if (!takes(p, w, f, named, &found)) {
			*verdict = found;
			continue;
		}
		if (worker->waits || worker->is_drained) {
			verdict->why = worker->waits ? DRV_WHY_WAITS : DRV_WHY_DRAINED;
			continue;
		}
		if (worker->is_all)
			continue;
		if (fragment->on_failure.lease_ns > 0 && !worker->has_leases) {
			verdict->why = DRV_WHY_NO_LEASES;
			continue;
		}
		if (worker->is_left) {
			verdict->why = DRV_WHY_LEFT;
			continue;
		}
		if (worker->is_out_of_reach) {
			verdict->why = DRV_WHY_OUT_OF_REACH;
			continue;
		}
		verdict->label = label_lacking(worker, &fragment->requirements);
		if (verdict->label != NULL || worker->is_full)
			verdict->why = verdict->label != NULL ? DRV_WHY_LABEL : DRV_WHY_FULL;
	}
	for (const struct apart *other = p->apart[f]; other != NULL; other = other->next) {
		int w = p->places[other->fragment].worker;

		if (w < 0 || p->workers[w].is_all || !could_run(&p->verdicts[w]))
			continue;
		p->verdicts[w].why = DRV_WHY_APART;
		p->verdicts[w].fragment = p->spec->fragments[other->fragment].name;
	}
}

/* The amount of which most is lacking. */
static void judge_amounts(struct placing *p, const struct group *group, size_t w)
{
	const struct drv_place_worker *worker = &p->workers[w];
	struct drv_place_other *verdict = &p->verdicts[w];

	for (int i = 0; i < FRAGI_AMOUNTS && !worker->is_all; i++) {
		struct drv_place_other lacks = {
			.why = DRV_WHY_AMOUNT,
			.amount = (enum fragi_amount)i,
			.wanted = group->wanted[i],
			.free = worker->has[i] - p->used[w][i],
			.has = worker->has[i],
		};

		if (lacks.wanted > lacks.free && (could_run(verdict) || is_nearer(verdict, &lacks)))
			*verdict = lacks;
	}
}

static void judge(struct placing *p, const struct group *group)
{
	for (size_t w = 0; w < p->worker_count; w++)
		p->verdicts[w] = (struct drv_place_other){.why = DRV_WHY_NAME};
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f])
		judge_fragment(p, f);
	for (size_t w = 0; w < p->worker_count; w++)
		if (could_run(&p->verdicts[w]))
			judge_amounts(p, group, w);
}

/* The best of those that could run the group, or SIZE_MAX; the others get their reason. */
static size_t best_of(struct placing *p, int *out_criterion, size_t *out_count)
{
	static const enum drv_why whys[] = {DRV_WHY_NAME, DRV_WHY_NEIGHBOURS, DRV_WHY_LOAD,
					    DRV_WHY_NAME};
	size_t best = SIZE_MAX;

	*out_criterion = 0;
	*out_count = 0;
	for (size_t w = 0; w < p->worker_count; w++) {
		if (!could_run(&p->verdicts[w]))
			continue;
		++*out_count;
		if (best == SIZE_MAX || compare(p, w, best) > 0)
			best = w;
	}
	for (size_t w = 0; w < p->worker_count; w++) {
		int rank;

		if (!could_run(&p->verdicts[w]))
			continue;
		rank = compare(p, best, w);
		p->verdicts[w].why = whys[rank];
		*out_criterion = rank > *out_criterion ? rank : *out_criterion;
	}
	return best;
}

static const char *kept_name(struct placing *p, size_t w)
{
	if (p->kept_names[w] == NULL)
		p->kept_names[w] = fragi_arena_strdup(p->arena, p->workers[w].name);
	return p->kept_names[w];
}

/* The workers that were not chosen, as many as are kept. */
static int keep_others(struct placing *p, size_t best, struct drv_place *out)
{
	size_t count = p->worker_count - (best != SIZE_MAX ? 1 : 0);
	size_t share = DRV_PLACE_ROWS_MAX / p->group_count;
	size_t most = share < DRV_PLACE_OTHERS_MAX ? share : DRV_PLACE_OTHERS_MAX;
	size_t kept = count < most ? count : most;

	out->others = fragi_arena_alloc(p->arena, kept * sizeof(*out->others));
	if (out->others == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < p->worker_count && out->other_count < kept; w++) {
		if (w == best)
			continue;
		out->others[out->other_count] = p->verdicts[w];
		out->others[out->other_count].worker = kept_name(p, w);
		if (out->others[out->other_count++].worker == NULL)
			return -ENOMEM;
	}
	out->others_beyond = (uint32_t)(count - kept);
	return 0;
}

/* "f1", or "f1, f2" of a group. */
static const char *group_name(struct placing *p, const struct group *group)
{
	const struct fragi_spec_fragment *fragments = p->spec->fragments;
	size_t second = p->next[group->first];

	if (second == SIZE_MAX)
		return fragments[group->first].name;
	return fragi_arena_printf(p->arena, "%s together with %s%s", fragments[group->first].name,
				  fragments[second].name,
				  p->next[second] != SIZE_MAX ? " and others near it" : "");
}

/* Why no worker is left, by the one that came nearest. */
static void explain_missing(struct placing *p, const struct group *group, struct drv_place *out)
{
	struct drv_place_other nearest = {0};
	size_t at = SIZE_MAX;
	const char *name = group_name(p, group);

	for (size_t w = 0; w < p->worker_count; w++)
		if (at == SIZE_MAX || is_nearer(&p->verdicts[w], &p->verdicts[at]))
			at = w;
	if (name == NULL)
		return;
	if (at != SIZE_MAX) {
		nearest = p->verdicts[at];
		nearest.worker = p->workers[at].name;
	}
	out->is_unfit = nearest.why > DRV_WHY_WAITS;
	out->reason = drv_place_missing(p->arena, name, at != SIZE_MAX ? &nearest : NULL,
					nearest.why == DRV_WHY_AMOUNT &&
						nearest.wanted > p->most[nearest.amount]);
}

static const char *reason_chosen(struct placing *p, const struct group *group, size_t best,
				 size_t count, int criterion)
{
	static const char *const criteria[] = {"", "most of its neighbours are there",
					       "it has most free cores", "it is the first by name"};
	const char *how = "takes whatever fits";
	bool is_cut = false;

	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f])
		if (p->named_for[best] == f + 1)
			how = "names it";
	for (size_t w = 0; w < p->worker_count; w++)
		is_cut = is_cut || (p->verdicts[w].why >= DRV_WHY_LABEL && w != best &&
				    !could_run(&p->verdicts[w]));
	if (count == 1)
		return fragi_arena_printf(p->arena, "worker %s is the only one that %s%s",
					  p->workers[best].name, how,
					  is_cut ? " and has what it requires" : "");
	return fragi_arena_printf(p->arena, "of %zu workers of which each %s%s, %s was chosen: %s",
				  count, how, is_cut ? " and has what it requires" : "",
				  p->workers[best].name, criteria[criterion]);
}

/* Returns how many fragments found no worker, or -ENOMEM. */
static int place_group(struct placing *p, const struct group *group)
{
	struct drv_place place = {.worker = -1};
	size_t best, count, size = 0;
	int criterion;

	judge(p, group);
	count_neighbours(p, group, 1);
	best = best_of(p, &criterion, &count);
	count_neighbours(p, group, -1);
	if (best == SIZE_MAX)
		explain_missing(p, group, &place);
	else
		place.reason = reason_chosen(p, group, best, count, criterion);
	if (place.reason == NULL || keep_others(p, best, &place) < 0)
		return -ENOMEM;
	if (best != SIZE_MAX) {
		place.worker = (int)best;
		p->load[best] += group->load;
		for (int i = 0; i < FRAGI_AMOUNTS; i++)
			p->used[best][i] += group->wanted[i];
	}
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f], size++)
		p->places[f] = place;
	return best == SIZE_MAX ? (int)size : 0;
}

static int place_in_order(struct placing *p)
{
	int missing = 0, r = 0;

	for (size_t w = 0; w < p->worker_count; w++) {
		p->load[w] = p->workers[w].load;
		p->named_for[w] = 0;
		memcpy(p->used[w], p->workers[w].used, sizeof(p->used[w]));
	}
	for (size_t f = 0; f < p->spec->fragment_count; f++)
		p->places[f] = (struct drv_place){.worker = p->stays != NULL ? p->stays[f] : -1};
	for (size_t i = 0; r >= 0 && i < p->group_count; i++) {
		r = place_group(p, &p->groups[i]);
		missing += r;
	}
	return r < 0 ? r : missing;
}

static int by_share(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->share > y->share || x->share < y->share)
		return x->share > y->share ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

static int place_all(struct placing *p)
{
	struct drv_place *places = p->places;
	size_t bytes = p->spec->fragment_count * sizeof(*places);
	struct drv_place *others;
	int missing = place_in_order(p), r;

	if (missing <= 0 || p->worker_count == 0)
		return missing;
	others = fragi_arena_alloc(&p->scratch, bytes);
	if (others == NULL)
		return -ENOMEM;
	qsort(p->groups, p->group_count, sizeof(*p->groups), by_share);
	p->places = others;
	r = place_in_order(p);
	if (r == 0)
		memcpy(places, others, bytes);
	return r <= 0 ? r : missing;
}

int drv_place_rest(const struct fragi_spec *spec, const struct drv_place_worker *workers,
		   size_t worker_count, const int *stays, struct fragi_arena *arena,
		   struct drv_place *places)
{
	struct placing p = {
		.spec = spec,
		.stays = stays,
		.workers = workers,
		.worker_count = worker_count,
		.arena = arena,
		.places = places,
	};
	int r = drv_place_tables_init(&p);

	if (r == 0)
		r = place_all(&p);
	drv_place_tables_fini(&p);
	return r;
}

int drv_place(const struct fragi_spec *spec, const struct drv_place_worker *workers,
	      size_t worker_count, struct fragi_arena *arena, struct drv_place *places)
{
	return drv_place_rest(spec, workers, worker_count, NULL, arena, places);
}
