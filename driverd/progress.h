/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PROGRESS_H
#define DRV_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How things stand, on stderr: on a terminal one line that is written over, else a line when it has
 * changed, every 10 s at most. On a terminal the cursor is left at the begin of the line, so that
 * the next line of any program stands in its place (fragi_log_line_begin).
 */
struct drv_progress {
	bool is_terminal, is_off;
	bool is_shown; /* a line of ours stands at the terminal's end */
	char last[256];
	int64_t last_ns; /* when it was printed, if that is no terminal; 0: never */
};

void drv_progress_init(struct drv_progress *progress, bool off);
void drv_progress_show(struct drv_progress *progress, const char *text);
/* Clears the line before the results are written to stdout, which may be the same terminal. */
void drv_progress_clear(struct drv_progress *progress);

#endif
