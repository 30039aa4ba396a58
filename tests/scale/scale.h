/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCALE_H
#define SCALE_H

#include <stdint.h>

/* What an event costs the driver's core, in each phase of the life of a fleet. */
enum scale_phase {
	SCALE_ATTACH,
	SCALE_START,
	SCALE_RUN,
	SCALE_ADOPT,  /* the next driver finds all that runs */
	SCALE_DEATHS, /* every tenth worker is gone, and with it each application */
	SCALE_AGAIN,  /* as many of them start as the others can run */
	SCALE_STOP,
	SCALE_PHASES
};
extern const char *const scale_names[SCALE_PHASES];

/* zeroed: nothing is measured yet */
struct scale_costs {
	/* the least of all measurements */
	double ns[SCALE_PHASES];          /* per event */
	int64_t largest_ns[SCALE_PHASES]; /* of the one that took longest */
	uint64_t events[SCALE_PHASES];
};

/*
 * One life of a fleet of so many workers (a multiple of 10, at least 20). Returns NULL, or what is
 * wrong in it, in a buffer that the next call overwrites.
 */
const char *scale_measure(uint32_t workers, struct scale_costs *costs);
/*
 * What the driver's core needs, all events together, for one application of so many fragments (a
 * multiple of workers) from the first of so many workers to the moment when all run. The least of
 * all measurements. Returns as scale_measure.
 */
const char *scale_measure_one(uint32_t workers, uint32_t fragments, double *out_ns);
/* By how much more an event costs in the phase where that is most. */
double scale_growth(const struct scale_costs *small, const struct scale_costs *large);

#endif
