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

#endif
