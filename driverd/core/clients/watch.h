/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_WATCH_H
#define DRV_WATCH_H

#include <driverd/core/base/lines.h>

/* What clients wait for: a milestone of a run, events, lines (watch.c). */
/* The client gets an Outcome with that reply_to when the run has come so far. */
void drv_watch_run(struct drv_session *client, uint64_t seq, uint64_t run, enum fw_milestone until);
void drv_watch_await(struct drv_session *client, const struct fw_message *message);
void drv_watch_events(struct drv_session *client, const struct fw_message *message);
void drv_watch_logs(struct drv_session *client, const struct fw_message *message);
void drv_watch_end(struct drv_session *client); /* it leaves */
/* What clients wait for may have come in this step. */
void drv_watch_serve(struct drv_core *core);

#endif
