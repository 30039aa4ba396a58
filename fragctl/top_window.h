/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TOP_WINDOW_H
#define CTL_TOP_WINDOW_H

#include <fragctl/driver.h>
#include <fragctl/top.h>

/* What the driver has sent of one window: a message for each application. */
struct ctl_top_window {
	struct ctl_top_app *apps;
	uint32_t count;
	struct ctl_top_tables **tables; /* of them; windows share what is as it was */
	uint32_t tables_count;
};

/*
 * Takes a LOOKED. Tables that are as they were are those of the window before.
 * - before: NULL: there is none, because the question was not for changes
 * Returns CTL_OK or an exit code, complained.
 */
int ctl_top_window_add(struct ctl_top_window *window, const struct ctl_top_window *before,
		       struct fw_message *message);
/*
 * Waits for the next window of an application, or of all; the first call asks for them.
 * - name: NULL: all
 * - every_ns: how long it is; 0: a second
 * - begins: it is the first call of this session
 * - once: a single window
 * - window: takes the place of the one before, which was empty at the first call
 * Returns CTL_OK, or the exit code, complained: there is no window then.
 */
int ctl_top_window_next(struct ctl_driver *driver, const char *name, int64_t every_ns, bool begins,
			bool once, struct ctl_top_window *window);
/* What runs, without a measurement. The same. */
int ctl_top_window_unmeasured(struct ctl_driver *driver, const char *name,
			      struct ctl_top_window *out);
/*
 * The same, once, for what is shown beside the state: an application that is not there is no
 * failure, and has no window.
 */
int ctl_top_window_causes(struct ctl_driver *driver, const char *name, struct ctl_top_window *out);
/* The application of that name; NULL: the window has none. */
const struct ctl_top_app *ctl_top_window_find(const struct ctl_top_window *window,
					      const char *name);
void ctl_top_window_free(struct ctl_top_window *window);

/*
 * Shows windows on the terminal until the person quits.
 * - driver: open
 * - again: with the flags of driver, not open: for commands
 * - every_ns: how long a window is
 * Returns CTL_OK or an exit code, complained; -ENOTTY: this terminal cannot show it.
 */
int ctl_top_on_screen(struct ctl_driver *driver, const struct ctl_driver *again, const char *name,
		      int64_t every_ns);

#endif
