/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PLACE_TABLES_H
#define DRV_PLACE_TABLES_H

#include <base/strmap.h>
#include <driverd/core/placement/place.h>

/* Tables in which placement looks things up (place_tables.c), for place.c alone. */

/* The workers that name a fragment: a list, the newest first. */
struct naming {
	size_t worker;
	struct naming *next;
};

/* The fragments that are to run on another worker than one of them. */
struct apart {
	size_t fragment;
	struct apart *next;
};

/* The fragments that are near one another: those from first on, by next. */
struct group {
	size_t first;
	int64_t wanted[FRAGI_AMOUNTS], load;
	double share; /* of what the largest worker has: the largest share of all amounts */
};

struct placing {
	const struct fragi_spec *spec;
	const int *stays; /* per fragment: the worker that runs it, -1: none; NULL: none runs */
	const struct drv_place_worker *workers;
	size_t worker_count;
	struct fragi_arena *arena; /* of the caller: reasons */
	struct fragi_arena scratch;
	struct fragi_strmap named;    /* "fragment", "application/fragment": struct naming */
	struct fragi_spec_group near; /* also the index of each fragment by its name */
	bool *takes_any;              /* per worker */
	int64_t *load, *neighbours;   /* per worker */
	int64_t (*used)[FRAGI_AMOUNTS];
	struct drv_mig *mig;     /* per worker; NULL: no fragment requires an instance */
	const char **kept_names; /* per worker: its name in the arena; NULL: not yet */
	size_t *named_for;       /* per worker: 1 + the fragment that it was last seen to name */
	/* per worker: why the fragments that are being placed do not go there (enum drv_why) */
	uint8_t *whys;
	size_t *by_name; /* per worker: how many come before it by name */
	/* the fragments at the other ends of the flows of fragment f: from first_other[f] on */
	size_t *others, *first_other;
	struct apart **apart; /* per fragment */
	size_t *next;         /* per fragment: of its group; SIZE_MAX: it is the last one */
	struct group *groups;
	size_t group_count;
	int64_t most[FRAGI_AMOUNTS]; /* that a worker has */
	struct drv_place *places;
};

/* All tables; p is zeroed, but for what the caller gave. Returns 0 or -ENOMEM. */
int drv_place_tables_init(struct placing *p);
void drv_place_tables_fini(struct placing *p);

#endif
