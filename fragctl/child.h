/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_CHILD_H
#define CTL_CHILD_H

#include <frag/error.h>

/* For the constructors of one library, and for everything. */
#define CTL_LOAD_S 10
#define CTL_CHILD_S 60

/*
 * Runs fn in a child: what it loads is somebody's code, and a library that crashes or hangs is a
 * finding, not the end of the tool. This process must have no thread and no such library yet. The
 * child prints everything itself.
 * - what: the program's operand, for the sentence
 * - out_result: what fn returned
 * Returns 0, or negative errno with a sentence: which library or operator the child was in, and
 * what became of it.
 */
int ctl_child_run(const char *what, int (*fn)(void *arg), void *arg, int *out_result,
		  struct frag_err *err);

#endif
