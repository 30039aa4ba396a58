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
 */
void drv_apply(struct drv_session *client, const struct fw_message *message);
/* Reads a packed source. Returns 0, or negative errno with the first error in err. */
int drv_apply_parse(const void *bytes, size_t size, struct fragi_spec **out_spec,
		    struct frag_err *err);

/* command.c, for apply.c */
/* Of all applications that run, or are to start again. */
size_t drv_command_source_bytes(const struct drv_core *core);
/* Stops it in order and starts it anew with its source. Returns the number of that run. */
uint64_t drv_command_start_anew(const struct drv_session *client, struct drv_app *app);

#endif
