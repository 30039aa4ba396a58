/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_MEETING_OP_H
#define TESTS_UNIT_MEETING_OP_H

#include <sched.h>

#include "rig_ops.h"

/* Two of these meet in compute at each message: both must run at the same time. */
static _Atomic uint32_t met;
static _Atomic bool missed;

static int meeting_compute(void *state, struct frag_tick *tick)
{
	uint32_t both = (atomic_fetch_add(&met, 1) + 2) / 2 * 2;
	int64_t until = fragi_now_ns() + 10000000000, x;

	while (atomic_load(&met) < both && !atomic_load(&missed))
		if (fragi_now_ns() > until)
			atomic_store(&missed, true);
		else
			sched_yield();
	return atomic_load(&missed) ? -ETIMEDOUT : frag_tick_receive_i64(tick, 0, &x);
}

TEST_OP(meeting, FRAG_PORTS(sink_ports));

#endif
