/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_CLIENTS_TAP_H
#define DRV_CLIENTS_TAP_H

#include <driverd/core/state.h>

#define DRV_TAPS_MAX 4      /* of a client */
#define DRV_HOST_TAPS_MAX 8 /* of all clients on the outputs of a host */

/* TAP of a client: one that begins, or ends. Returns 0 or -ENOMEM. */
int drv_tap_change(struct drv_session *client, const struct fw_message *message);
/* Renews the taps of a client, and answers those that are over. Returns 0 or -ENOMEM. */
int drv_tap_serve(struct drv_session *client);
/* The host can start: it hears of the traces of its application before. */
void drv_tap_begin(const struct drv_host *host);
void drv_tap_end(struct drv_session *client); /* all of them; where there are none: nothing */
/* HOST_TAPPED of a worker. */
void drv_tap_take(struct drv_session *worker, const struct fw_message *message);

#endif
