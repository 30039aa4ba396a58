/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_AWAKE_H
#define FRAGI_AWAKE_H

#include <stdint.h>

/*
 * A clock that stands still while its process does: stopped by a signal, in a frozen group, on a
 * machine that is suspended, or without a processor. Everything that a core waits for is measured
 * with it, because a process that did not run cannot tell that others were silent or late: what
 * they sent lies unread, and they may have been stopped too.
 *
 * A process that wakes later than it wanted to, by more than a tolerance, has not run in between.
 * Each wake still counts the time up to the wanted one, so a process that is always late finds the
 * dead too. Zeroed: nothing has happened yet.
 *
 * What follows for peers that beat: let a whole group be stopped, and its members continue one
 * after the other within some time. A judge that wakes has counted at most two beats of silence,
 * those before it stopped and before it missed its own deadline. So nobody is taken for dead
 * as long as the group continues within the time of death less two beats.
 */
struct fragi_awake {
	int64_t asleep_ns; /* in all */
	int64_t seen_ns;   /* when it was read last */
};

/*
 * Reads the clock. deadline_ns: when this process wanted to wake at the latest, as
 * fragi_awake_to_real gave it; INT64_MAX: not at all.
 */
static inline int64_t fragi_awake_read(struct fragi_awake *clock, int64_t deadline_ns,
				       int64_t tolerance_ns, int64_t now_ns)
{
	int64_t due_ns = deadline_ns > clock->seen_ns ? deadline_ns : clock->seen_ns;

	if (clock->seen_ns != 0 && now_ns - due_ns > tolerance_ns)
		clock->asleep_ns += now_ns - due_ns;
	clock->seen_ns = now_ns;
	return now_ns - clock->asleep_ns;
}

/* A time of this clock in real time, if the process does not sleep until then. */
static inline int64_t fragi_awake_to_real(const struct fragi_awake *clock, int64_t at_ns)
{
	return at_ns == INT64_MAX ? INT64_MAX : at_ns + clock->asleep_ns;
}

#endif
