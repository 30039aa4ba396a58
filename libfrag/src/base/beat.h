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

/*
 * What another program asks for, within reason: 10 ms to a minute between beats, and a death after
 * two beats to ten minutes. 0 and less: the default.
 */
static inline int64_t fragi_beat_within_ns(int64_t asked_ns)
{
	const int64_t least_ns = 10000000, most_ns = INT64_C(60000000000);

	if (asked_ns <= 0)
		return FRAGI_BEAT_NS;
	return asked_ns < least_ns ? least_ns : asked_ns > most_ns ? most_ns : asked_ns;
}

static inline int64_t fragi_dead_within_ns(int64_t asked_ns, int64_t beat_ns)
{
	const int64_t least_ns = 2 * beat_ns, most_ns = INT64_C(600000000000);

	if (asked_ns <= 0)
		asked_ns = FRAGI_DEAD_NS;
	return asked_ns < least_ns ? least_ns : asked_ns > most_ns ? most_ns : asked_ns;
}

#endif
