/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PROGRESS_H
#define DRV_PROGRESS_H

#include <stdbool.h>

/*
 * How things stand, on stderr: on a terminal one line that is written over, else a line whenever it
 * changes.
 */
struct drv_progress {
	bool is_terminal, is_off;
	bool is_shown; /* a line of ours stands at the terminal's end */
	char last[256];
};

void drv_progress_init(struct drv_progress *progress, bool off);
void drv_progress_show(struct drv_progress *progress, const char *text);
/* before anything else is written to stderr */
void drv_progress_clear(struct drv_progress *progress);

#endif
