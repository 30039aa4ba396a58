/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PLACEMENT_H
#define DRV_PLACEMENT_H

#include <base/arena.h>
#include <driverd/core/placement/place.h>
#include <wire/message.h>

/* A part of state.h: which worker runs what. */
struct drv_app;
struct drv_core;
struct drv_host;
struct drv_session;

/* start.c: from waiting for workers to hosts */
/*
 * Whether workers have changed since they were last looked at. To place a large application costs
 * so much that one which has found no place is not placed anew with each worker that comes.
 */
bool drv_start_is_due(struct drv_app *app);
/*
 * Places all fragments and makes the hosts, or notes what is missing in app->missing. Returns 0,
 * positive when a worker is missing, -EINVAL (app->diag), -ENOMEM.
 */
int drv_start_place(struct drv_app *app);
/* Why no worker takes what WAITING waits for; NULL: that is not known. */
const char *drv_start_why_missing(const struct drv_app *app);
/* Logs what is waited for, now and then, and once more soon after the reason is known. */
void drv_start_log_missing(struct drv_app *app);
/*
 * Why the next run of an application would find no place when this one has ended, because a worker
 * of its hosts is drained; NULL: nothing is known against it. In the arena of the step.
 */
const char *drv_start_no_place(struct drv_app *app);
/* Gives the workers back what the fragments of the application require, and detaches its hosts. */
void drv_start_release(struct drv_app *app);
/* The present phase, or the whole start, took too long: that is the cause. */
void drv_start_overdue(struct drv_app *app);
void drv_start_timed_out(struct drv_app *app);

/* The resources that an application takes of workers. */
/* A worker's share of what the fragment, or each of a host's, requires; sign -1: given back. */
void drv_start_take_share(const struct drv_app *app, size_t fragment, struct drv_session *session,
			  int64_t sign);
void drv_start_take_shares(const struct drv_host *host, struct drv_session *session, int64_t sign);
/* Reserves the share of one fragment, or of a host's, that the application has not taken yet. */
void drv_start_reserve(const struct drv_app *app, size_t fragment, struct drv_session *session,
		       int64_t sign);
void drv_start_reserve_host(const struct drv_host *host, struct drv_session *session, int64_t sign);
/* Why the worker of a fragment does not enforce its limits; empty: it does. */
const char *drv_start_no_limits(const struct drv_session *session,
				const struct fragi_spec_requirements *own);
/*
 * Makes the workers that placement looks at, for so many fragments. session_of: of each worker.
 * Returns 0 or -ENOMEM.
 */
int drv_start_workers(struct drv_core *core, size_t fragments,
		      struct drv_place_worker **out_workers, int **out_session_of,
		      size_t *out_count);

/* candidates.c */
/*
 * Returns why no other process can take over the host, on any worker; NULL: one can. The text is in
 * the arena of the step.
 */
const char *drv_candidate_process_obstacle(const struct drv_host *host);
/* Returns the same for a process on another worker. */
const char *drv_candidate_worker_obstacle(const struct drv_host *host);
/* Whether the host's worker shares memory with the hosts with which its flows need that. */
bool drv_candidate_may_stay(const struct drv_host *host);
/*
 * Finds the worker that takes the host over; its place says why, or why there is none (out_session
 * NULL), in the arena. Returns 0 or -ENOMEM.
 */
int drv_candidate_find(const struct drv_host *host, struct fragi_arena *arena,
		       struct drv_session **out_session, struct drv_place *out_place);

/* drain.c */
/* Returns whether it is done. */
bool drv_drain(struct drv_session *client, const struct fw_message *message);
bool drv_drain_is(const struct drv_core *core, const char *worker);
/* "there is no worker \"x\"; workers: a, b" */
const char *drv_drain_unknown(struct drv_core *core, const char *name);
/* An earlier driver has kept that. Returns 0 or -ENOMEM. */
int drv_drain_restore(struct drv_core *core, const char *worker);
void drv_drain_fini(struct drv_core *core);

#endif
