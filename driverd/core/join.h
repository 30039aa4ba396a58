/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_JOIN_H
#define DRV_JOIN_H

#include <wire/message.h>

/* A part of state.h: how sessions begin and end. */
struct drv_core;
struct drv_event;
struct drv_session;

/* join.c: how sessions begin and end */
/* Refuses a stranger that has sent another message before HELLO. */
void drv_session_refuse_stranger(struct drv_core *core, uint64_t connection, const char *peer,
				 const struct fw_message *message);
void drv_session_hello(struct drv_core *core, const struct drv_event *event,
		       const struct fw_message *message);
/* The peer of a connection has proven a key that counts no more. */
void drv_session_revoke(struct drv_core *core, const struct drv_event *event);
void drv_session_heard(struct drv_session *session);
/* A worker can run nothing yet, for the reason given in words; empty: it can. */
void drv_session_waits(struct drv_session *session, const char *why);
/* What the worker says that it offers of GPUs since it has asked for them. */
void drv_session_gpus(struct drv_session *session, const struct fw_beat *beat);
/*
 * Ends the session: its hosts are lost, for the reason given in words. close: the connection is
 * still open.
 */
void drv_session_lost(struct drv_session *session, bool close, const char *why);
/* Loses those that were dropped. */
void drv_session_lose_dropped(struct drv_core *core);

/* reporter.c */
/* The HELLO of a reporter. */
void drv_reporter_hello(struct drv_core *core, const struct drv_event *event,
			const struct fw_message *message);
/* The session whose reporter has that connection; NULL: it is no reporter's. */
struct drv_session *drv_reporter_session(const struct drv_core *core, uint64_t connection);
/* Whether a reporter may send this; if not, its connection is closed. */
bool drv_reporter_may_send(struct drv_session *session, const struct fw_message *message);

#endif
