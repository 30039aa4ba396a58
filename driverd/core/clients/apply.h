/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_APPLY_H
#define DRV_APPLY_H

#include <driverd/core/state.h>

/*
 * A client brings a changed graph for an application that runs. The driver answers what differs
 * from the source that it has, with what was set since, and what that needs. Parameters that may
 * change while it runs the client sets first (parameter.c). What is left starts hosts again whose
 * fragments allow that (on_failure), or else the application; then the new source is the
 * application's.
 *
 * Where the application is started anew, the source of before is kept until the new one has run.
 * If that start fails, the source of before is the application's again, and the next run begins
 * with it. The next driver does not know of it.
 */
void drv_apply(struct drv_session *client, const struct fw_message *message);

/* command.c, for apply.c */
/* Why no other run can follow the one that runs now, which is not ended then; NULL: one can. */
const char *drv_command_no_next_run(struct drv_core *core, const char *name,
				    enum fragi_failure *out_code);
/* Stops it in order and starts it anew with its source. Returns the number of that run. */
uint64_t drv_command_start_anew(struct drv_session *client, struct drv_app *app);

#endif
