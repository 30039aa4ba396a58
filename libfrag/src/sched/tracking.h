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
/*
 * The deadline of a path: from the begin of the tick of its first operator to the end of compute of
 * its last one, whose thread counts. It is looked for in what the last one receives.
 */
struct fragi_path_deadline {
	struct fragi_path_deadline *next;   /* that end with the same operator */
	struct fragi_path_deadline *of_run; /* the list of the run */
	struct frag_op **ops;
	uint32_t *ids; /* their numbers in the tracker */
	uint32_t count;
	int64_t budget_ns;
	bool stops;
	/* what there was: written by the last operator's thread */
	uint64_t checked, misses, longest_ns;
	uint64_t *slowest; /* [op]: in how many of the misses it had the message for longest */
};
/* Checks it from now on. Before the operators run, once all of them are installed. */
FRAGI_API void fragi_tracking_add_deadline(struct fragi_path_deadline *deadline);

/* Frees what the ticks have used. */
void fragi_tracking_release(struct frag_op *op);

/* As fragi_tick_attach (exec.h), and labels the message. */
struct frag_message *fragi_tracking_attach(struct frag_tick *tick, uint32_t port,
					   struct frag_message *message);

#endif
