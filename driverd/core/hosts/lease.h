/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LEASE_H
#define DRV_LEASE_H

#include <wire/message.h>

/* A part of state.h: until when a host may run that nobody hears. */
struct drv_app;
struct drv_core;
struct drv_host;
struct drv_session;

/* lease.c */
/* A BEAT of a worker, or its HELLO (0). */
void drv_lease_heard(struct drv_session *session, int64_t sent_ns);
/* What the BEAT for a worker says. */
void drv_lease_fill(const struct drv_session *session, struct fw_beat *beat);
/* From when on nobody runs the host, though its worker was lost at this moment. */
int64_t drv_lease_over_ns(const struct drv_host *host);
/* When a lease that a driver before may have renewed is over. */
int64_t drv_lease_of_earlier_driver(const struct drv_core *core, int64_t lease_ns);
/* That process of the host was reported, and is this driver's now. Returns 0 or -ENOMEM. */
int drv_lease_adopt(const struct drv_host *host, struct drv_session *session, uint64_t epoch);
/* What a driver before may have left running of the application ends by itself. */
void drv_lease_owe_all(struct drv_app *app);
/* The application has ended; hosts of it may still run where nobody can reach them. */
void drv_lease_owe(struct drv_app *app);
/* Whether it may not be placed yet, because of an earlier run of its name. */
bool drv_lease_holds(struct drv_app *app);
/* This driver ends, and leases are to last until the next one is there. */
void drv_lease_leave(struct drv_core *core);
void drv_lease_fini(struct drv_core *core);

#endif
