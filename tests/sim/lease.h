/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LEASE_H
#define SIM_LEASE_H

#include "sim.h"

/* lease.c: hosts with policy migrate. */

void sim_lease_plan(struct sim *sim, struct sim_on_failure *own);
/* Partitions, stopped workers and dead nodes, for longer than leases last. */
uint32_t sim_lease_faults(const struct sim *sim);
enum sim_fault_kind sim_lease_fault(struct sim *sim);
/* The kernel is to end the host at that time of its machine's clock. */
void sim_lease_arm(struct sim *sim, struct sim_host *host, int64_t until_ns);
void sim_on_lease(struct sim *sim, const struct sim_event *event);
/* A worker that slept for longer than the lease refuses a host: nobody's mistake. */
void sim_lease_refused(struct sim *sim, const struct fw_message *exit);
/*
 * A host of it had ended when the driver came back, which may not find in its state what the one
 * before decided last: whether that host went on elsewhere, on a worker that stays away.
 */
bool sim_lease_is_unknown(const struct sim *sim, const struct sim_app *app, uint32_t number);
bool sim_lease_is_of(const struct sim_host *host);
/* No two processes run a fragment whose hosts have leases. */
void sim_lease_check(struct sim *sim);
/* Clocks run at different rates. */
void sim_lease_drift(struct sim *sim);
/* Where a worker is there for every fragment, a host that was lost runs again in time. */
void sim_lease_look(struct sim *sim, const struct sim_host *host, bool quiet);

#endif
