/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PLACE_H
#define DRV_PLACE_H

#include <base/arena.h>
#include <text/spec.h>

/*
 * Which worker runs which fragment; a pure function. A fragment that a live worker names
 * (--fragments) goes to such a worker only, any other to a worker that takes whatever fits. A
 * worker without a network is given nothing, and keeps what it names from others. Among those: the
 * one that holds most neighbours, then the one with most free cores, then by name. Requirements do
 * not decide yet.
 */
struct drv_place_worker {
	const char *name; /* no other one has it */
	const char *const *
		fragments; /* "fragment" or "application/fragment"; none, or "all": whatever fits */
	uint32_t fragment_count;
	bool waits; /* it can run nothing yet */
	int64_t cores;
	int64_t placed; /* fragments that it runs already */
};

struct drv_place {
	int worker;         /* index; -1: there is none */
	const char *reason; /* for people: why this one, or what is missing; in the arena */
};

/* Fills places[spec->fragment_count]. Returns how many fragments have no worker, or -ENOMEM. */
int drv_place(const struct fragi_spec *spec, const struct drv_place_worker *workers,
	      size_t worker_count, struct fragi_arena *arena, struct drv_place *places);

#endif
