/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SILENCE_H
#define FRAGI_SILENCE_H

#include <stdint.h>

/*
 * Judges the silence of others in one's own awake time. A process that did not run itself cannot
 * tell that others were silent: after SIGSTOP, on a machine that slept or that is short of
 * processors, what they sent lies unread. So whoever wakes late judges nobody for two beats, in
 * which it reads what has come and the others send again. Being a little late has that effect only
 * once in a time of death: on a machine where everybody is always late the dead must be found too.
 *
 * Zeroed: nobody is excused.
 */
struct fragi_silence {
	int64_t excused_until_ns;    /* nobody is dead before */
	int64_t excused_again_at_ns; /* being a little late has no effect before */
};

/* late_ns: now_ns less the time for which the wake-up was set. */
static inline void fragi_silence_woke(struct fragi_silence *silence, int64_t late_ns,
				      int64_t beat_ns, int64_t dead_ns, int64_t now_ns)
{
	if (late_ns <= beat_ns || (now_ns < silence->excused_again_at_ns && late_ns < dead_ns / 2))
		return;
	silence->excused_until_ns = now_ns + 2 * beat_ns;
	silence->excused_again_at_ns = silence->excused_until_ns + dead_ns;
}

/* When a peer is dead that was last heard at heard_ns. */
static inline int64_t fragi_silence_dead_at(const struct fragi_silence *silence, int64_t heard_ns,
					    int64_t dead_ns)
{
	int64_t at_ns = heard_ns + dead_ns;

	return at_ns > silence->excused_until_ns ? at_ns : silence->excused_until_ns;
}

#endif
