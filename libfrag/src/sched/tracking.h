/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_TRACKING_H
#define FRAGI_SCHED_TRACKING_H

#include <graph/tracker.h>
#include <sched/exec.h>

/*
 * What data flow tracking does around a tick. A tracked operator has another compute in its table,
 * which calls the operator's, and its emits go through fragi_tracking_attach. So those that are not
 * tracked pay nothing.
 */

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

/* As fragi_tick_attach (exec.h), and labels the message. */
struct frag_message *fragi_tracking_attach(struct frag_tick *tick, uint32_t port,
					   struct frag_message *message);

#endif
