/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_REPLACE_H
#define DRV_REPLACE_H

#include <driverd/core/applications/host.h>

/* A part of state.h: what happens to a host, and how it comes from its process to the next one. */

/* host.c: what happened to a host */
void drv_host_message(struct drv_host *host, struct fw_message *message); /* takes message */
/* The host's worker is gone or does not answer any more; the host was not detached yet. */
void drv_host_lost(struct drv_host *host);
/*
 * Loses hosts of a worker that is gone: those in the application of the first one. Returns whether
 * one of them mattered.
 */
bool drv_host_lose_some(struct drv_session *session, const char *why);
/* The worker ends in order: what a stop would start there is not started any more. */
void drv_host_leave(const struct drv_session *session);
/* Whether it is an answer of the fragments of the host. */
bool drv_host_tables_match(const struct drv_host *host, const struct fw_host_prepared *prepared);

/* failure.c */
/*
 * A host has failed: it is to be started again, if its policy says so and the application runs;
 * else the application has failed.
 */
void drv_host_failed(struct drv_host *host, const struct fw_failure *failure);
/* The same for a host that a command has started again, which is an event of its own. */
void drv_host_restart(struct drv_host *host, const struct fw_failure *why);
/*
 * The worker of a host is lost; the host is GONE and detached. Returns whether it goes on on
 * another worker; if not, that is the failure of the application.
 */
bool drv_host_survives_loss(struct drv_host *host, bool was_killed, const char *sentence);
/* Whether it would; nothing is changed, and its intensity is not looked at. */
bool drv_host_may_survive_loss(const struct drv_host *host);
/* The worker, which ends in order, has ended the host. Returns the same. */
bool drv_host_survives_leave(struct drv_host *host, const char *sentence);
/* Whether its policy, and the state of its application, have it started again when it fails. */
bool drv_restart_is_due(const struct drv_host *host);
/* Whether a client may have it started again now: it runs, and its intensity has room. */
bool drv_restart_may(const struct drv_host *host);
/* A process that has failed is replaced: that counts for the intensity. */
void drv_restart_count(struct drv_host *host);
void drv_restarts_fini(struct drv_restarts *restarts);

/* replace.c */
/* Now is to end, because it has failed, and another process follows it after so long. */
void drv_replace_failed(struct drv_host *host, int64_t wait_ns);
/*
 * Prepares another process on that worker while now runs on. No other host of the application may
 * be in such a replacement.
 */
void drv_replace_prepare(struct drv_host *host, struct drv_session *session, enum drv_cause cause);
/* The same, but next was asked to prepare. is_resumed: by a driver before */
void drv_replace_begin(struct drv_host *host, enum drv_cause cause, bool is_resumed);
/* A driver before has asked now to yield. */
void drv_replace_resume_yield(struct drv_host *host);
/* Now took over from another process, and could not be started: one more follows it there. */
void drv_replace_resume_start(struct drv_host *host);
/* Brings the hosts that are replaced nearer to running, and finds those that are to be. */
enum drv_work drv_replace_work(struct drv_app *app);
/* The application ends: nothing is replaced any more. */
void drv_replace_give_up(struct drv_app *app);
/* Whether a stop waits for the host though a neighbour has ended: what waits for it is lost. */
bool drv_replace_is_in_vain(const struct drv_host *host);
/* A stop waits no longer for the host, which does not come to its end. */
void drv_replace_not_awaited(struct drv_host *host);
/* Next does not follow a process that was drained for it: it goes on otherwise. */
void drv_replace_no_move(struct drv_host *host);
void drv_replacement_fini(struct drv_replacement *replacement);

/* next.c */
/* Whether a message of that epoch, from that worker, is of the host's next process. */
bool drv_next_is(const struct drv_host *host, const struct drv_session *session, uint64_t epoch);
/* A message of next; takes it. */
void drv_next_message(struct drv_host *host, struct fw_message *message);
/* Takes the answer of next to PREPARE. */
void drv_next_prepared(struct drv_host *host, struct fw_message *message);
/* A worker is gone, perhaps that of a next process. */
void drv_next_session_lost(const struct drv_session *session);
/* Next is not needed, or GONE. */
void drv_next_let_go(struct drv_host *host);

/* move.c: hosts leave drained workers */
/* Begins with the first one that can leave. */
void drv_move_look(struct drv_app *app);
/* What left that worker when it was drained is to go back. */
void drv_move_back(struct drv_core *core, const char *worker);
/* Whether there are hosts to look at in the next step. */
bool drv_move_has_more(const struct drv_app *app);
/* Whether a host may leave its worker now, as the peers of its flows can wait for it. */
bool drv_move_may_yield(const struct drv_host *host);
/* Leaves the host where it is; why is shown until it moves. */
void drv_move_stays(struct drv_host *host, const char *why);
/* The host is not the one that moves any more; an adopted application may have another one. */
void drv_move_ends(struct drv_host *host);
/* Whether a host is between two processes, so that the application can neither stop nor end. */
bool drv_move_holds(const struct drv_app *app);
/* A stop waits for the host that moves, but no longer than for a drain. */
void drv_move_wait(struct drv_app *app);
/* A part of what the operators of now have saved, for next. */
void drv_move_saved(struct drv_host *host, const struct fw_message *message);

/* migrate.c: hosts whose next process may run on another worker */
/*
 * Detaches a host that is GONE, if next is to run on another worker. Returns whether it waits for
 * one from now on.
 */
bool drv_migrate_leave(struct drv_host *host);
/* The same of a host that is PLACED on a worker that is drained, before it is started there. */
bool drv_migrate_leave_drained(struct drv_host *host);
/* Gives next a worker, if one fits, and makes it now. */
void drv_migrate_place(struct drv_host *host);

#endif
