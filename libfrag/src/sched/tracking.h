/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_TRACKING_H
#define FRAGI_SCHED_TRACKING_H

#include <graph/tracker.h>
#include <sched/exec.h>

/* What data flow tracking does around a tick and its messages (around.h). */

/*
 * Has an operator tracked. Before its exec is created.
 * - name: in paths; copied
 * - is_root, is_leaf: no flow of tracked operators leads to it, or from it
 * Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_tracking_install(struct frag_op *op, struct frag_tracker *tracker,
				     const char *name, bool is_root, bool is_leaf);
/* Frees what the ticks have used. */
void fragi_tracking_release(struct frag_op *op);

#endif
