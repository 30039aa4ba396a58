/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PLACE_H
#define DRV_PLACE_H

#include <base/arena.h>
#include <driverd/core/placement/mig.h>
#include <text/spec.h>

/*
 * Which worker runs which fragment; a pure function. A fragment that a live worker names
 * (--fragments) goes to such a worker only, any other to a worker that takes whatever fits. A
 * worker without a network is given nothing, and keeps what it names from others; one that is
 * drained is given nothing either, and what it names is for others, as if it were gone. Of those,
 * the ones are left that have the labels and have free what the fragment requires. Among these: the
 * one that holds most neighbours, then the one with most free cores, then by name. Fragments that
 * are to be near one another are placed as one.
 *
 * Fragments are placed in the order of the graph, and if one finds no place so, those that require
 * most are placed first. It is no search: a graph that only fits in some other order finds no
 * place, and says which worker lacks least.
 */
struct drv_place_worker {
	const char *name; /* no other one has it */
	const char *const *
		fragments; /* "fragment" or "application/fragment"; none, or "all": whatever fits */
	uint32_t fragment_count;
	const char *const *labels; /* "key=value" */
	uint32_t label_count;
	bool waits;           /* it can run nothing yet */
	bool is_drained;      /* it is given nothing more */
	bool is_all;          /* everything runs in it: requirements are not looked at */
	bool has_leases;      /* it ends hosts with their leases */
	bool is_full;         /* it runs as many hosts as it takes */
	bool is_left;         /* what is to be placed has just failed there */
	bool is_out_of_reach; /* for what runs, and what is to be placed exchanges messages with */
	int64_t has[FRAGI_AMOUNTS], used[FRAGI_AMOUNTS];
	const struct drv_mig *mig; /* NULL: it has no instances */
	/* thousandths of a core: those required, and a whole one of each fragment that says none */
	int64_t load;
};

/* Why a worker does not run a fragment; each one comes nearer to running it. */
enum drv_why {
	DRV_WHY_NAMED_ELSEWHERE, /* a live worker names the fragment, this one does not */
	DRV_WHY_NAMES_OTHERS,    /* it takes what it names */
	DRV_WHY_WAITS,
	DRV_WHY_DRAINED,
	DRV_WHY_NO_LEASES, /* it is of an older frag */
	DRV_WHY_LEFT,
	DRV_WHY_OUT_OF_REACH,
	DRV_WHY_LABEL, /* label: which one it lacks */
	DRV_WHY_APART, /* fragment: that runs there */
	DRV_WHY_MIG,   /* profile, has: instances of it, of which none is free; offers */
	DRV_WHY_FULL,
	DRV_WHY_AMOUNT, /* amount, wanted, free, has */
	/* it could run it, but the one that was chosen is better */
	DRV_WHY_NEIGHBOURS,
	DRV_WHY_LOAD,
	DRV_WHY_NAME,
};

/* A worker that was not chosen. */
struct drv_place_other {
	const char *worker;
	enum drv_why why;
	const struct fragi_spec_label *label; /* of the spec */
	const char *fragment;                 /* the same */
	enum fragi_amount amount;
	int64_t wanted, free, has;
	const char *profile; /* of the spec */
	const char *offers;  /* "2 of 1g.10gb", in the arena; NULL: no instance at all */
};
/* that are kept of a fragment, and of all of an application, each of which keeps as many */
#define DRV_PLACE_OTHERS_MAX 32
#define DRV_PLACE_ROWS_MAX 2048

struct drv_place {
	int worker;         /* index; -1: there is none */
	const char *reason; /* for people: why this one, or what is missing; in the arena */
	bool is_unfit; /* there is none, though some would take it if they had what it requires */
	struct drv_place_other *others;
	uint32_t other_count, others_beyond; /* beyond: that are not kept */
};

/*
 * Fills places[spec->fragment_count]. What they point to is in the arena. Returns how many
 * fragments have no worker, or -ENOMEM.
 */
int drv_place(const struct fragi_spec *spec, const struct drv_place_worker *workers,
	      size_t worker_count, struct fragi_arena *arena, struct drv_place *places);
/*
 * Places fragments where others run already. stays[f]: the index of the worker that runs fragment
 * f; -1: f is to be placed; all such fragments go to one worker.
 */
int drv_place_rest(const struct fragi_spec *spec, const struct drv_place_worker *workers,
		   size_t worker_count, const int *stays, struct fragi_arena *arena,
		   struct drv_place *places);
/* Returns what a fragment adds to the load of its worker. */
int64_t drv_place_load(const struct fragi_spec_fragment *fragment);

/* place_why.c: parts of sentences, in the arena; NULL: no memory */
/* "it has 2.5 of 8 cpu free, and 4 are required" */
const char *drv_place_why(struct fragi_arena *arena, const struct drv_place_other *other);
/* Why no worker is left for fragments of that name. nearest: NULL: there is no worker at all. */
const char *drv_place_missing(struct fragi_arena *arena, const char *fragments,
			      const struct drv_place_other *nearest, bool none_has_so_much);

#endif
