/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_PLACE_H
#define SIM_PLACE_H

#include "sim.h"

/* place.c: what fragments require, and what workers have, in histories that know of it. */
void sim_place_worker(struct sim *sim, struct sim_worker *worker);
void sim_place_app(struct sim *sim, struct sim_app *app);
void sim_place_text(const struct sim_app *app, uint32_t fragment, char *out, size_t size);
/* A client drains the worker, or ends that. */
/* A client comes, says that, and is not heard any more. */
void sim_place_user(struct sim *sim, struct fw_message *message);
void sim_place_drain(struct sim *sim, uint32_t worker);
/* The driver has made a step: which applications have their places before a drain begins. */
void sim_place_check(struct sim *sim);
/* A worker is given that host: it must have what its fragments require. */
void sim_place_spawned(struct sim *sim, const struct sim_host *host);
/*
 * Whether one worker of all that the driver can have heard of has room for all of the application,
 * with what other applications hold; false also when that is not certain.
 */
bool sim_place_is_certain(const struct sim *sim, const struct sim_app *app);

#endif
