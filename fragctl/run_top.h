/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_TOP_H
#define CTL_RUN_TOP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * `fragctl run --top`: top has the terminal while the daemons run. What they write is kept, and
 * printed when top has ended. Without a terminal it runs as if there was no --top, and says so.
 */
struct ctl_run_top {
	pid_t pid;            /* of top; 0: it does not run */
	int out_fd, error_fd; /* what the daemons have written; -1: nothing is kept */
};

/* Returns CTL_OK or an exit code, complained. */
int ctl_run_top_init(struct ctl_run_top *top);
/* In a child: what it writes is kept. */
void ctl_run_top_hide(const struct ctl_run_top *top);
/*
 * Starts top at the driver of that address, with these signals blocked; for where there is a
 * terminal (out_fd >= 0). As init.
 */
int ctl_run_top_start(struct ctl_run_top *top, const char *address, const sigset_t *blocked);
/* Ends top, and prints what was kept. Not started, or ended before: only that. */
void ctl_run_top_end(struct ctl_run_top *top);

#endif
