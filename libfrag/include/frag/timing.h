/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TIMING_H
#define FRAG_TIMING_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Timing of inputs: which messages a tick gets, by the time at which their data was taken
 * (frag_message_set_acquisition), and what happens where there is none. A graph declares the same
 * under `ports` and `align` of an operator. Every input without a condition of its own then takes
 * part: the tick gets at most one message of each of its flows, and all are chosen before the tick
 * begins.
 *
 * A message without acquisition time counts as taken when it was emitted. Times of FRAG_CLOCK_UNIX,
 * FRAG_CLOCK_TAI and FRAG_CLOCK_MONOTONIC can be compared where they were set on this machine;
 * times of any other clock only with times of the same clock, and those of another machine with
 * nothing.
 */

/* Which message of a flow a tick gets. */
enum frag_take {
	/* the oldest one that waits: each message once, in order */
	FRAG_TAKE_EVERY = 0,
	/* the newest one; those before it are dropped (superseded) */
	FRAG_TAKE_LATEST_WITHIN = 1
};

/* The effect of an input without a message to take: none came, or it was too old. */
enum frag_missing {
	/* the tick waits for one */
	FRAG_MISSING_WAIT = 0,
	/*
	 * There is no tick this time: what the other inputs have for it is dropped (skipped), and
	 * conditions count it as a tick
	 */
	FRAG_MISSING_SKIP = 1,
	/* The tick gets the message of the tick before again; it waits for the first. */
	FRAG_MISSING_REUSE_LAST = 2,
	/* the tick gets the default value, or where there is none nothing: -ENOMSG */
	FRAG_MISSING_DEFAULT = 3
};

/*
 * Sets the timing of an input, in a composer or in the operator's own setup. A graph's wins over
 * it. With FRAG_TAKE_LATEST_WITHIN, flows that end at the input have the policy latest unless the
 * port or the flow says otherwise.
 * - port: name of the input
 * - age_ns: the most that may have passed since the acquisition when the tick is to begin, in
 *   nanoseconds; an older message is dropped (stale). 0: any; FRAG_TAKE_LATEST_WITHIN needs one
 * - default_value: the value of FRAG_MISSING_DEFAULT as a graph would write it, for an input of
 *   type bool, i64, f64 or string; NULL: none
 * Returns 0; -EINVAL: op or port is NULL, or a value is none of its enum or negative; -EBUSY:
 * neither in a composer nor in setup; -ENOMEM. What is wrong about the port is reported when the
 * composer has returned.
 * Thread: the composer's. Blocks: no. RT-safe: no.
 * Source: selectors and policies of Holoscan SDK 5.0, "Temporal Contracts".
 */
FRAG_API int frag_set_input_timing(struct frag_op *op, const char *port, enum frag_take take,
				   int64_t age_ns, enum frag_missing missing,
				   const char *default_value);
/*
 * Aligns inputs of an operator: a tick gets messages of them that were taken within a window. A
 * message that cannot belong to a set any more, because a later one of another input is further
 * away than the window, is dropped (late).
 * - ports, count: names of inputs; 0: all inputs that have no condition of their own
 * - window_ns: the most between the first and the last acquisition time of a set, in nanoseconds
 * - timeout_ns: how long the first message of a set waits for the others, in nanoseconds; then the
 *   `missing` of those inputs decides. 0: as long as their flows are open
 * Returns as frag_set_input_timing. Thread, Blocks, RT-safe: the same.
 */
FRAG_API int frag_align_inputs(struct frag_op *op, const char *const *ports, size_t count,
			       int64_t window_ns, int64_t timeout_ns);

FRAG_END_DECLS

#endif
