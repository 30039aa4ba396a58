/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LEASE_H
#define SIM_LEASE_H

#include "sim.h"

/* lease.c: hosts with policy migrate. */

void sim_lease_plan(struct sim *sim, struct sim_on_failure *own);
/* Partitions, stopped workers and dead nodes, for longer than leases last. */
uint32_t sim_lease_faults(const struct sim *sim);
enum sim_fault_kind sim_lease_fault(struct sim *sim);
/* How long one of those lasts, mostly about as long as a lease. */
int64_t sim_lease_lasts(struct sim *sim, int64_t else_ns);
/* A user has an application start anew, whatever its hosts do. */
void sim_lease_restart_app(struct sim *sim, uint32_t bits);
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

/* promise.c: what leases promise */

/* The host is there, with the lease that its worker has at the moment. */
void sim_promise_begin(struct sim *sim, struct sim_host *host);
/* Its HOST_CREATE was sent then. */
void sim_promise_spawned(struct sim *sim, const struct sim_host *host, int64_t asked_ns);
/* A worker has read a frame of the driver. */
void sim_promise_heard(struct sim *sim, struct sim_connection *connection,
		       const struct fw_message *message);
/* What is adopted is renewed. */
void sim_promise_look(struct sim *sim);
/* The driver has been told to leave, and its end of the connection has come. */
void sim_promise_leaves(struct sim *sim);
void sim_promise_closed(struct sim *sim, const struct sim_connection *connection);
/* Its worker has told the host of its lease, and the kernel is to end it with that. */
void sim_promise_passed_on(struct sim *sim, struct sim_host *host);
void sim_promise_armed(struct sim *sim, const struct sim_host *host);
/* It is ended by the kernel; by its worker, for whatever reason. */
void sim_promise_ended(struct sim *sim, const struct sim_host *host);
void sim_promise_killed(struct sim *sim, struct sim_host *host);
/* When nobody can run a process of the host any more, as the driver can know it. */
int64_t sim_promise_over(const struct sim *sim, const struct sim_host *host);
/* Whether the application may have to wait for leases of the runs before. */
bool sim_promise_holds(const struct sim *sim, const struct sim_app *app);
/* Worker w reports the end of a host; the driver has read that. */
void sim_promise_exit_sent(struct sim *sim, uint32_t w, const struct fw_message *exit);
void sim_promise_exit_heard(struct sim *sim, const struct sim_connection *connection,
			    const struct fw_message *exit);

#endif
