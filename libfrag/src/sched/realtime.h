/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_REALTIME_H
#define FRAGI_SCHED_REALTIME_H

#include <base/realtime.h>
#include <frag/error.h>

/*
 * Has the kernel schedule the calling thread as wanted, and reads back how it does. Threads that it
 * creates later are not real-time ones. Returns 0, or a negative errno with a sentence that names
 * what the process lacks.
 * - out_granted: what the kernel says, also after a failure
 */
int fragi_realtime_enter(const struct fragi_realtime *wanted, struct fragi_realtime *out_granted,
			 struct frag_err *err);

/*
 * How the ticks of a thread with a deadline follow each other: one a period.
 * Source: Holoscan SDK, "SCHED_DEADLINE Behavior": no periodic condition is needed.
 */
struct fragi_pace {
	int64_t period_ns; /* 0: the thread has no deadline */
	bool by_kernel;    /* the deadline was granted */
	int64_t next_ns;   /* else when the next period begins */
};
/* After a tick: blocks until the next period. */
void fragi_pace_wait(struct fragi_pace *pace);

#endif
