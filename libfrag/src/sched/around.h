/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_AROUND_H
#define FRAGI_SCHED_AROUND_H

#include <data/message.h>
#include <graph/op.h>

struct fragi_exec;

/*
 * What goes around the ticks of an operator and around the messages that it emits: one list, whose
 * order is the same for all operators. An operator has those entries that have something to do for
 * it. Where there are none, its tick calls its compute itself and its emits send at once, so it
 * executes no instruction for any of them.
 */
enum fragi_around_at { /* from the outside in; around.c says why */
		       FRAGI_AROUND_TRACE,
		       FRAGI_AROUND_TAP,
		       FRAGI_AROUND_PENDING,
		       FRAGI_AROUND_RANGES,
		       FRAGI_AROUND_FLOW_CONTROL,
		       FRAGI_AROUND_LOGGING,
		       FRAGI_AROUND_DEADLINE,
		       FRAGI_AROUND_PATH,
		       FRAGI_AROUND_TRACKING,
		       FRAGI_AROUND_STREAM,
		       FRAGI_AROUND_COUNT,
};

/* An entry. compute, emit: NULL if it has nothing to do there. */
struct fragi_around {
	/* Asked when the exec is complete, and when fragi_around_bind is called again. */
	bool (*is_wanted)(const struct fragi_exec *exec);
	/*
	 * Called at each call of compute: when a tick begins, and when one that was pending goes on
	 * (exec->pending is true then). Calls fragi_inside_compute.
	 */
	int (*compute)(void *self, struct frag_tick *tick);
	/*
	 * Called with each message: first calls fragi_inside_emit. Takes the message and returns
	 * it, or another one; NULL: it failed.
	 */
	struct frag_message *(*emit)(struct frag_tick *tick, uint32_t port,
				     struct frag_message *message);
};

extern const struct fragi_around fragi_around_trace, fragi_around_tap, fragi_around_pending,
	fragi_around_ranges, fragi_around_flow_control, fragi_around_logging, fragi_around_deadline,
	fragi_around_path, fragi_around_tracking, fragi_around_stream;

/*
 * What lies inside an entry: the next one that is wanted, or the operator's compute and the
 * attaching of metadata. Return as these do.
 */
int fragi_inside_compute(enum fragi_around_at at, void *self, struct frag_tick *tick);
struct frag_message *fragi_inside_emit(enum fragi_around_at at, struct frag_tick *tick,
				       uint32_t port, struct frag_message *message);

/*
 * Gives the exec the entries that are wanted. Once it is complete otherwise, and between two calls
 * of compute when an entry is wanted now, or no longer.
 */
void fragi_around_bind(struct fragi_exec *exec);

#endif
