/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_BEAT_H
#define FRAGI_BASE_BEAT_H

#include <stdint.h>

/*
 * The defaults of how often a side of a connection shows that it lives, on the control channel and
 * between hosts, and how long it may be silent before it counts as dead.
 */
#define FRAGI_BEAT_NS INT64_C(250000000)
#define FRAGI_DEAD_NS INT64_C(3000000000)

/* Within reason; a death comes after two beats at the earliest. */
#define FRAGI_BEAT_MIN_NS INT64_C(10000000)
#define FRAGI_BEAT_MAX_NS INT64_C(60000000000)
#define FRAGI_DEAD_MAX_NS INT64_C(600000000000)

/* What another program asks for, within these limits. 0 and less: the default. */
static inline int64_t fragi_beat_within_ns(int64_t asked_ns)
{
	if (asked_ns <= 0)
		return FRAGI_BEAT_NS;
	return asked_ns < FRAGI_BEAT_MIN_NS   ? FRAGI_BEAT_MIN_NS
	       : asked_ns > FRAGI_BEAT_MAX_NS ? FRAGI_BEAT_MAX_NS
					      : asked_ns;
}

static inline int64_t fragi_dead_within_ns(int64_t asked_ns, int64_t beat_ns)
{
	const int64_t least_ns = 2 * beat_ns;

	if (asked_ns <= 0)
		asked_ns = FRAGI_DEAD_NS;
	return asked_ns < least_ns            ? least_ns
	       : asked_ns > FRAGI_DEAD_MAX_NS ? FRAGI_DEAD_MAX_NS
					      : asked_ns;
}

/*
 * How long hosts have to reach each other, by who gives up: first an endpoint, which knows the peer
 * and why; then the host that has it; last the driver, which knows neither.
 */
#define FRAGI_CONNECT_NS INT64_C(5000000000)
#define FRAGI_HOST_WIRE_NS INT64_C(9000000000)
#define FRAGI_WIRE_NS INT64_C(10000000000)
/* How long the operators of a host that was told to end may take: longer than its driver waits. */
#define FRAGI_HOST_END_NS INT64_C(10000000000)

#endif
