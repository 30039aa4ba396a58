/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SUBSCRIPTION_H
#define DRV_SUBSCRIPTION_H

#include <driverd/core/base/lines.h>

/* Subscriptions of clients: to a milestone of a run, to events, to lines (subscription.c). */
/* The client gets an Outcome with that reply_to when the run has reached the milestone. */
void drv_subscription_run(struct drv_session *client, uint64_t seq, uint64_t run,
			  enum fw_milestone until);
void drv_subscription_await(struct drv_session *client, const struct fw_message *message);
void drv_subscription_notices(struct drv_session *client, const struct fw_message *message);
void drv_subscription_logs(struct drv_session *client, const struct fw_message *message);
void drv_subscription_look(struct drv_session *client, const struct fw_message *message);
void drv_subscription_tap(struct drv_session *client, const struct fw_message *message);
/* Removes the subscriptions of a client that leaves. */
void drv_subscription_end(struct drv_session *client);
/* Serves the clients whose milestone, events or lines have come in this step. */
void drv_subscription_serve(struct drv_core *core);

#endif
