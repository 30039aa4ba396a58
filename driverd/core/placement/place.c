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

/* Returns the criterion, counted from 1, by which a is better than b; 0: it is not. */
static int is_better_by(const struct placing *p, size_t a, size_t b)
{
	int64_t free_a = p->workers[a].has[FRAGI_AMOUNT_CPU] - p->load[a],
		free_b = p->workers[b].has[FRAGI_AMOUNT_CPU] - p->load[b];

	if (p->neighbours[a] != p->neighbours[b])
		return p->neighbours[a] > p->neighbours[b] ? 1 : 0;
	if (free_a != free_b)
		return free_a > free_b ? 2 : 0;
	return p->by_name[a] < p->by_name[b] ? 3 : 0;
}

static bool could_run(enum drv_why why)
{
	return why >= DRV_WHY_NEIGHBOURS;
}

/*
 * Whether a is nearer to running a fragment than b: it may have enough once others have ended, or
 * lacks less, as a share of what is required.
 */
static bool is_nearer(const struct drv_place_other *a, const struct drv_place_other *b)
{
	double lacks_a, lacks_b;

	if (a->why == DRV_WHY_MIG && b->why == DRV_WHY_MIG)
		return a->has > b->has;
	if (a->why != b->why || a->why != DRV_WHY_AMOUNT)
		return a->why > b->why;
	if ((a->has >= a->wanted) != (b->has >= b->wanted))
		return a->has >= a->wanted;
	lacks_a = (double)(a->wanted - a->free) / (double)a->wanted;
	lacks_b = (double)(b->wanted - b->free) / (double)b->wanted;
	return lacks_a < lacks_b;
}

/* Each worker has the label worker=NAME, with the name by which the driver calls it. */
static bool is_name_of(const struct drv_place_worker *worker, const struct fragi_spec_label *label)
{
	return strcmp(label->key, "worker") == 0 && strcmp(label->value, worker->name) == 0;
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
		if (k == worker->label_count && !is_name_of(worker, &required->labels[i]))
			return &required->labels[i];
	}
	return NULL;
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

/* Notes which workers name the fragment. Returns whether one that is not drained does. */
static bool note_named(struct placing *p, size_t f)
{
	const char *name = p->spec->fragments[f].name;
	char qualified[2 * FRAG_NAME_MAX + 2];
	bool is_bound = note_names(p, f, name);

	snprintf(qualified, sizeof(qualified), "%.63s/%.63s", p->spec->application, name);
	return note_names(p, f, qualified) || is_bound;
}

/* Why a fragment's own demands keep it from a worker; DRV_WHY_NAME: they do not. */
static enum drv_why why_not(const struct placing *p, size_t f, bool is_bound, size_t w)
{
	const struct fragi_spec_fragment *fragment = &p->spec->fragments[f];
	const struct drv_place_worker *worker = &p->workers[w];

	if (p->named_for[w] != f + 1 && (is_bound || !p->takes_any[w]))
		return is_bound ? DRV_WHY_NAMED_ELSEWHERE : DRV_WHY_NAMES_OTHERS;
	if (worker->waits || worker->is_drained)
		return worker->waits ? DRV_WHY_WAITS : DRV_WHY_DRAINED;
	if (worker->is_all)
		return DRV_WHY_NAME;
	if (fragment->on_failure.lease_ns > 0 && !worker->has_leases)
		return DRV_WHY_NO_LEASES;
	if (worker->is_left)
		return DRV_WHY_LEFT;
	if (worker->is_out_of_reach)
		return DRV_WHY_OUT_OF_REACH;
	if (fragment->requirements.label_count != 0 &&
	    label_lacking(worker, &fragment->requirements) != NULL)
		return DRV_WHY_LABEL;
	return worker->is_full ? DRV_WHY_FULL : DRV_WHY_NAME;
}

/* The amount of which most is lacking. */
static void judge_amounts(const struct placing *p, const struct group *group, size_t w,
			  struct drv_place_other *out)
{
	const struct drv_place_worker *worker = &p->workers[w];

	for (int i = 0; i < FRAGI_AMOUNTS && !worker->is_all; i++) {
		struct drv_place_other lacks = {
			.why = DRV_WHY_AMOUNT,
			.amount = (enum fragi_amount)i,
			.wanted = group->wanted[i],
			.free = worker->has[i] - p->used[w][i],
			.has = worker->has[i],
		};

		if (lacks.wanted > lacks.free && (could_run(out->why) || is_nearer(out, &lacks)))
			*out = lacks;
	}
}

static bool has_amounts(const struct placing *p, const struct group *group, size_t w)
{
	const struct drv_place_worker *worker = &p->workers[w];
	bool has = true;

	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		has = has && group->wanted[i] <= worker->has[i] - p->used[w][i];
	return has || worker->is_all;
}

/* The profile of which the worker has too few instances free for the group; NULL: none. */
static const char *mig_lacking(const struct placing *p, const struct group *group, size_t w)
{
	struct drv_mig left;

	if (p->mig == NULL || p->workers[w].is_all)
		return NULL;
	left = p->mig[w];
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f]) {
		const struct fragi_node *mig = p->spec->fragments[f].requirements.mig;

		if (mig != NULL && !drv_mig_is_free(&left, mig->text))
			return mig->text;
		if (mig != NULL)
			drv_mig_take(&left, mig->text, 1);
	}
	return NULL;
}

/* The verdict on each worker: of all that keeps the group from it, what comes first. */
static void judge(struct placing *p, const struct group *group)
{
	for (size_t w = 0; w < p->worker_count; w++)
		p->whys[w] = DRV_WHY_NAME;
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f]) {
		bool is_bound = note_named(p, f);

		for (size_t w = 0; w < p->worker_count; w++)
			if (could_run(p->whys[w]))
				p->whys[w] = (uint8_t)why_not(p, f, is_bound, w);
		for (const struct apart *other = p->apart[f]; other != NULL; other = other->next) {
			int w = p->places[other->fragment].worker;

			if (w >= 0 && !p->workers[w].is_all && could_run(p->whys[w]))
				p->whys[w] = DRV_WHY_APART;
		}
	}
	for (size_t w = 0; w < p->worker_count; w++) {
		if (could_run(p->whys[w]) && mig_lacking(p, group, w) != NULL)
			p->whys[w] = DRV_WHY_MIG;
		if (could_run(p->whys[w]) && !has_amounts(p, group, w))
			p->whys[w] = DRV_WHY_AMOUNT;
	}
}

/* The fragment from which one of the group is to be apart, and which runs there. */
static const char *apart_from(const struct placing *p, const struct group *group, size_t w)
{
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f])
		for (const struct apart *other = p->apart[f]; other != NULL; other = other->next)
			if (p->places[other->fragment].worker == (int)w)
				return p->spec->fragments[other->fragment].name;
	return NULL;
}

static const struct fragi_spec_label *label_of(const struct placing *p, const struct group *group,
					       size_t w)
{
	const struct fragi_spec_label *label = NULL;

	for (size_t f = group->first; label == NULL && f != SIZE_MAX; f = p->next[f])
		label = label_lacking(&p->workers[w], &p->spec->fragments[f].requirements);
	return label;
}

/* The verdict on a worker, and how people read it. */
static struct drv_place_other verdict_on(const struct placing *p, const struct group *group,
					 size_t w)
{
	struct drv_place_other verdict = {.why = (enum drv_why)p->whys[w]};

	if (verdict.why == DRV_WHY_LABEL)
		verdict.label = label_of(p, group, w);
	else if (verdict.why == DRV_WHY_APART)
		verdict.fragment = apart_from(p, group, w);
	else if (verdict.why == DRV_WHY_MIG) {
		const struct drv_mig_profile *profile;

		verdict.profile = mig_lacking(p, group, w);
		profile = drv_mig_find(&p->mig[w], verdict.profile);
		verdict.has = profile != NULL ? profile->has : 0;
		verdict.offers = drv_mig_text(&p->mig[w], p->arena);
	} else if (verdict.why == DRV_WHY_AMOUNT) {
		verdict.why = DRV_WHY_NAME;
		judge_amounts(p, group, w, &verdict);
	}
	return verdict;
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
		if (!could_run(p->whys[w]))
			continue;
		++*out_count;
		if (best == SIZE_MAX || is_better_by(p, w, best) != 0)
			best = w;
	}
	for (size_t w = 0; *out_count > 1 && w < p->worker_count; w++) {
		int rank;

		if (!could_run(p->whys[w]))
			continue;
		rank = is_better_by(p, best, w);
		p->whys[w] = (uint8_t)whys[rank];
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
static int keep_others(struct placing *p, const struct group *group, size_t best,
		       struct drv_place *out)
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
		out->others[out->other_count] = verdict_on(p, group, w);
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

/* The worker that came nearest; SIZE_MAX: there is none at all. */
static size_t find_nearest(const struct placing *p, const struct group *group,
			   struct drv_place_other *out)
{
	size_t at = SIZE_MAX;

	for (size_t w = 0; w < p->worker_count; w++) {
		struct drv_place_other one;

		if (at != SIZE_MAX && (p->whys[w] < p->whys[at] ||
				       (p->whys[w] == p->whys[at] && p->whys[w] != DRV_WHY_AMOUNT)))
			continue;
		one = verdict_on(p, group, w);
		if (at != SIZE_MAX && !is_nearer(&one, out))
			continue;
		*out = one;
		at = w;
	}
	return at;
}

/* Why no worker is left, by the one that came nearest. */
static void explain_missing(struct placing *p, const struct group *group, struct drv_place *out)
{
	struct drv_place_other nearest = {0};
	size_t at = find_nearest(p, group, &nearest);
	const char *name = group_name(p, group);

	if (name == NULL)
		return;
	if (at != SIZE_MAX)
		nearest.worker = p->workers[at].name;
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
		is_cut = is_cut ||
			 (p->whys[w] >= DRV_WHY_LABEL && w != best && !could_run(p->whys[w]));
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
	if (place.reason == NULL || keep_others(p, group, best, &place) < 0)
		return -ENOMEM;
	if (best != SIZE_MAX) {
		place.worker = (int)best;
		p->load[best] += group->load;
		for (int i = 0; i < FRAGI_AMOUNTS; i++)
			p->used[best][i] += group->wanted[i];
		for (size_t f = group->first; f != SIZE_MAX; f = p->next[f])
			if (p->spec->fragments[f].requirements.mig != NULL)
				drv_mig_take(&p->mig[best],
					     p->spec->fragments[f].requirements.mig->text, 1);
	}
	for (size_t f = group->first; f != SIZE_MAX; f = p->next[f], size++)
		p->places[f] = place;
	return best == SIZE_MAX ? (int)size : 0;
}

static int place_in_order(struct placing *p)
{
	int missing = 0;

	for (size_t w = 0; w < p->worker_count; w++) {
		p->load[w] = p->workers[w].load;
		p->named_for[w] = 0;
		memcpy(p->used[w], p->workers[w].used, sizeof(p->used[w]));
		if (p->mig != NULL)
			p->mig[w] = p->workers[w].mig != NULL ? *p->workers[w].mig
							      : (struct drv_mig){0};
	}
	for (size_t f = 0; f < p->spec->fragment_count; f++)
		p->places[f] = (struct drv_place){.worker = p->stays != NULL ? p->stays[f] : -1};
	for (size_t i = 0; i < p->group_count; i++) {
		int r = place_group(p, &p->groups[i]);

		if (r < 0)
			return r;
		missing += r;
	}
	return missing;
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

	if (missing <= 0)
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
