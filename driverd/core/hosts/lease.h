/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LEASE_H
#define DRV_LEASE_H

#include <wire/message.h>

/* A part of state.h: until when a host may run that is out of reach. */
struct drv_app;
struct drv_core;
struct drv_host;
struct drv_session;

/* lease.c */
/* A BEAT of a worker has come, or its HELLO (sent_ns 0). */
void drv_lease_heard(struct drv_session *session, int64_t sent_ns);
/* Fills in the answer to the BEAT of a worker. */
void drv_lease_fill(const struct drv_session *session, struct fw_beat *beat);
/* Returns from when on the host has surely ended if its worker is lost at this moment. */
int64_t drv_lease_over_ns(const struct drv_host *host);
/* Returns when a lease is over that an earlier driver may have renewed. */
int64_t drv_lease_of_earlier_driver(const struct drv_core *core, int64_t lease_ns);
/* Informs the worker that its host was adopted by this driver. Returns 0 or -ENOMEM. */
int drv_lease_adopt(const struct drv_host *host, struct drv_session *session, uint64_t epoch);
/*
 * Records that an earlier driver may have left hosts of the application running, also for the next
 * one. Its end has been recorded.
 */
void drv_lease_record_earlier(struct drv_app *app);
/*
 * The same, where the last run of its name has ended with an earlier driver, which noted that hosts
 * of it were out of reach: until their workers are here, and have none of them.
 */
void drv_lease_record_ended(struct drv_app *app);
/* A worker has a host of that run, whose end nobody has seen. */
void drv_lease_reported(struct drv_core *core, uint64_t run);
/*
 * Records the application's leases as it ends, also for the next driver: hosts out of reach may
 * still run. Its end has been recorded.
 */
void drv_lease_record_outstanding(struct drv_app *app);
/*
 * Whether the application may not be placed yet, because of leases of an earlier run of its name.
 */
bool drv_lease_holds(struct drv_app *app);
/* Every session gets a beat. */
void drv_lease_beat_all(struct drv_core *core);
/* Announces that this driver ends and that leases are to last until the next one is there. */
void drv_lease_leave(struct drv_core *core);
void drv_lease_fini(struct drv_core *core);

#endif
