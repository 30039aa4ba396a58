/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_ACTIONS_H
#define DRV_ACTIONS_H

#include <base/log.h>
#include <driverd/core/base/timer.h>
#include <driverd/core/core.h>
#include <wire/message.h>

/* A part of state.h: what a step returns. */
struct drv_core;
struct drv_session;

/*
 * actions.c: what a step returns. Memory that is short for the list of actions itself is remembered
 * there, and is the end of the core; any other is the end of one application, or of one session.
 */
void drv_log(struct drv_core *core, enum fragi_log_level level, const char *subject,
	     const char *format, ...) FRAG_PRINTF(4, 5);
void drv_emit(struct drv_core *core, const struct drv_action *action);
const char *drv_text(struct drv_core *core, const char *format, ...) FRAG_PRINTF(2, 3);
/* Logs in the driver's own log only: `fragctl logs` has got the line in another way. */
void drv_log_local(struct drv_core *core, enum fragi_log_level level, const char *subject,
		   const char *format, ...) FRAG_PRINTF(4, 5);
/* Sends message to the session's peer; counts its seq. Returns 0, -ENOMEM, or -EMSGSIZE. */
int drv_send(struct drv_session *session, struct fw_message *message);
/* The same for a frame of a message without seq and reply_to, which stays the caller's. */
int drv_send_frame(struct drv_session *session, const uint8_t *frame, size_t size,
		   uint64_t reply_to);
/* The same, unless something waits to be sent to that peer. */
int drv_send_if_idle(struct drv_session *session, struct fw_message *message);
/* The same, unless more than so many bytes do. */
int drv_send_if_room(struct drv_session *session, struct fw_message *message, uint32_t bytes);
void drv_set(struct drv_core *core, struct drv_timer *timer, int64_t at_ns);
/* Closes a connection after what was sent on it has left. */
void drv_close(struct drv_core *core, uint64_t connection);

#endif
