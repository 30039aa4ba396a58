/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_LOOK_H
#define CTL_LOOK_H

#include <fragctl/driver.h>

/*
 * Asks the driver for where the time of an application goes; NULL: of each of them.
 * - every_ns: the window; 0: a second
 * - once: a single window
 * - out_looked: the first application of the first window, for which this waits; freed with
 *   fw_message_free. looked.look has no name when no application runs, window_ns 0 when its window
 *   has only begun. Others of that window follow until looked.is_last.
 * Returns CTL_OK, or the exit code, complained.
 */
int ctl_look(struct ctl_driver *driver, const char *application, int64_t every_ns, bool once,
	     struct fw_message **out_looked);
/* Reads --every, the window; NULL: a second. Returns CTL_OK, or CTL_USAGE, complained. */
int ctl_look_every(const char *text, int64_t *out_ns);
/* Waits for the next one. The same. */
int ctl_look_next(struct ctl_driver *driver, struct fw_message **out_looked);

#endif
