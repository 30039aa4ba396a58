/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SPARE_H
#define FRAGI_SPARE_H

#include <stdint.h>

/*
 * Who did not run himself cannot tell that others were silent: after SIGSTOP, on a machine that
 * slept or that is short of processors, what they said lies unread. Whoever judges others by their
 * silence and wakes late spares all of them for two beats, in which he reads and they speak. Being
 * a little late does that only once in a time of death: on a machine where everybody is always late
 * the dead must be found too.
 */
/* zeroed: nobody is spared */
struct fragi_spare {
	int64_t until_ns, again_ns;
};

/* late_ns: now_ns less the time at which he wanted to wake. */
static inline void fragi_spare_late(struct fragi_spare *spare, int64_t late_ns, int64_t beat_ns,
				    int64_t dead_ns, int64_t now_ns)
{
	if (late_ns <= beat_ns || (now_ns < spare->again_ns && late_ns < dead_ns / 2))
		return;
	spare->until_ns = now_ns + 2 * beat_ns;
	spare->again_ns = spare->until_ns + dead_ns;
}

/* When somebody who was last heard at heard_ns is dead. */
static inline int64_t fragi_spare_dead_at(const struct fragi_spare *spare, int64_t heard_ns,
					  int64_t dead_ns)
{
	return heard_ns + dead_ns > spare->until_ns ? heard_ns + dead_ns : spare->until_ns;
}

#endif
