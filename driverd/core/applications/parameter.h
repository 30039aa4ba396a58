/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PARAMETER_H
#define DRV_PARAMETER_H

#include <driverd/core/state.h>

/*
 * Parameters that clients change while an application runs. The host checks the value and answers;
 * the client gets the answer when the host's has come, when the host cannot answer any more, or
 * after the time of death.
 *
 * What was changed becomes a --set of the application's source, in place of an earlier one of the
 * same parameter: a host that is started again begins with it, and so does the application, also
 * after the end of the driver, which keeps the source.
 */
void drv_parameter_set(struct drv_session *client, const struct fw_message *message);
/* A host has answered. */
void drv_parameter_done(struct drv_host *host, const struct fw_host_set_done *done);
/* Answers changes whose hosts have ended before they did. */
void drv_parameter_work(struct drv_app *app);
/* Whether a change of it was asked for, and is not answered. */
bool drv_parameter_is_being_set(const struct drv_host *host);
/* Adds the parameters that were changed to a reply for clients. Returns 0 or -ENOMEM. */
int drv_parameter_rows(const struct drv_app *app, struct fw_application_row *row,
		       struct fw_reply *reply);
void drv_parameter_fini(struct drv_app *app);

#endif
