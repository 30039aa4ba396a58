/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_CLIENTS_LOOK_H
#define DRV_CLIENTS_LOOK_H

#include <driverd/core/state.h>

/* Clients that look at where the time of applications goes (look.c). */
#define DRV_LOOK_MAX_NS INT64_C(5000000000) /* the longest window */

/* LOOK of a client, in place of what it looked at before. Returns 0 or -ENOMEM. */
int drv_look_begin(struct drv_session *client, const struct fw_message *message);
/* Sends what is due. Returns 0 or -ENOMEM. */
int drv_look_serve(struct drv_session *client);
void drv_look_end(struct drv_session *client);

#endif
