/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ADOPT_H
#define SIM_ADOPT_H

#include "sim.h"

/*
 * adopt.c: drivers that go away and come back, with their state or without it, in histories whose
 * hosts outlive them. What was not on the disk when the driver died is lost.
 */
#define SIM_ADOPT_NS (8 * SIM_S)

/*
 * The driver stands still several times, mostly for less than the time of death, and runs for
 * moments between. times: how often yet; 0: the first time.
 */
void sim_adopt_pause(struct sim *sim, const struct sim_event *event);
/* It begins again as the next driver, because a worker left it while it stood still. */
void sim_adopt_begin_again(struct sim *sim);
/* The driver dies, and comes back. */
void sim_adopt_away(struct sim *sim);
void sim_adopt_died(struct sim *sim, bool crashed);
/* It is there again. */
void sim_adopt_restore(struct sim *sim);
void sim_adopt_persist(struct sim *sim, const struct drv_action *action);
/* A write of all up to that change has ended. */
void sim_adopt_written(struct sim *sim, uint64_t change, bool failed);
/* A worker reports a host: it is the present driver's. */
void sim_adopt_reported(struct sim *sim, uint32_t worker, const struct fw_message *message);
void sim_adopt_look(struct sim *sim);
/* The history is over: what was given up since the last look has no result. */
void sim_adopt_end(struct sim *sim);
void sim_adopt_fini(struct sim *sim);
/* Time for the workers of a driver that has come back. */
bool sim_adopt_is_open(const struct sim *sim);
/* Or this application does, which was reported later; a stop waits for that. */
bool sim_adopt_waits(const struct sim *sim, const struct sim_app *app);

#endif
