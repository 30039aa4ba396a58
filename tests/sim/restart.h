/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_RESTART_H
#define SIM_RESTART_H

#include "sim.h"

/* Hosts that are started again, and the links over which their flows go on. */

/* link.c */
/* The host takes the place of the one of its number that died. */
void sim_link_succeed(struct sim_host *host);
/* One of the ends has been told of the process at the other one. */
void sim_link_ready(struct sim_flow *flow, const struct sim_host *host,
		    const struct sim_host *peer);
/* Makes those between the two that both ends are ready for; returns whether all run. */
bool sim_link_connect(struct sim *sim, const struct sim_host *host, const struct sim_host *peer);

/* restart.c */
void sim_restart_plan(struct sim *sim, struct sim_app *app);
void sim_restart_text(const struct sim_on_failure *own, char *out, size_t size);
/* Whether one of its hosts has ended for another one. */
bool sim_restart_was_made(const struct sim_app *app);
/* Whether its application says that it is started again. */
bool sim_restart_is_policy(const struct sim_host *host);
/* ... and it runs, as far as is known, so that it has to be. */
bool sim_restart_is_due(const struct sim_host *host);
void sim_restart_blow(struct sim *sim);
/* Whether those who judge the silence of the peer have been awake for long enough. */
bool sim_restart_all_awake(const struct sim *sim, const struct sim_host *host,
			   const struct sim_host *peer);
void sim_restart_spawned(struct sim *sim, struct sim_host *host);
/* Something about a host has come to the driver. */
void sim_restart_heard(struct sim *sim, const struct sim_connection *connection,
		       const struct fw_message *message);
/* It failed because a host failed too often: whether that is so. */
bool sim_restart_failed_too_often(struct sim *sim, const struct sim_app *app, const char *reason);
void sim_restart_look(struct sim *sim, struct sim_app *app, bool quiet);
void sim_restart_check_summary(struct sim *sim, const struct sim_app *app,
			       const struct fragi_summary *summary);

#endif
