/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLEET_H
#define FLEET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A fleet: one driver and many workers with many hosts, on a virtual clock and a network where
 * everything takes as long as everything else. The cores are those of driverd, workerd and
 * fraghost, frames go through the codec, and the processor time of the driver's core is measured.
 * Unlike tests/sim nothing random happens, so that figures of two sizes can be compared.
 */
#define FLEET_FRAGMENTS 100 /* of an application of a fleet of many */
#define FLEET_HOSTS 10      /* of a worker of it, each with one fragment */

/* What the driver's core has done since the last call of fleet_take. */
struct fleet_work {
	uint64_t events;            /* steps of its core */
	int64_t cpu_ns, largest_ns; /* of all, and of the one that took longest */
};

struct fleet;
/* Each application has so many fragments, and a worker room for so many hosts of one fragment. */
struct fleet *fleet_create(uint32_t workers, uint32_t fragments, uint32_t hosts);
void fleet_destroy(struct fleet *fleet);
void fleet_run(struct fleet *fleet, int64_t for_ns); /* in its own time */
struct fleet_work fleet_take(struct fleet *fleet);

void fleet_attach(struct fleet *fleet, uint32_t first, uint32_t count); /* workers start */
void fleet_start(struct fleet *fleet, uint32_t first, uint32_t count);  /* applications */
/* Every step-th worker's machine loses its power: nobody hears of it. */
void fleet_power_off(struct fleet *fleet, uint32_t step);
/* The driver dies, and the next one is there at once, with what the first had kept. */
void fleet_replace_driver(struct fleet *fleet);
void fleet_stop(struct fleet *fleet); /* all applications, in order */

uint32_t fleet_attached(const struct fleet *fleet);
uint32_t fleet_hosts(const struct fleet *fleet);   /* that run */
uint32_t fleet_spawned(const struct fleet *fleet); /* hosts, ever */
uint32_t fleet_running(const struct fleet *fleet,
		       uint32_t apps); /* of the first applications, as the driver has them */
uint32_t fleet_ended(const struct fleet *fleet, bool in_order); /* applications */
uint32_t fleet_most_hosts(const struct fleet *fleet);           /* of a worker */
/* NULL: nothing that was not to happen has happened. */
const char *fleet_failure(const struct fleet *fleet);

#endif
