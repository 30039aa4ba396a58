// SPDX-License-Identifier: Apache-2.0
#include "sequence.h"

#define WINDOW 64u

/* Begins with a number. Those before it may still come, but nobody waits for them. */
static void begin(struct udp_sequence *s, uint64_t number)
{
	s->started = true;
	s->highest = number;
	s->seen = 1;
	s->owed = 0;
}

static void advance(struct udp_sequence *s, uint64_t by)
{
	uint64_t missing = s->owed & ~s->seen;

	if (by >= WINDOW) {
		s->lost += __builtin_popcountll(missing) + (int64_t)(by - WINDOW);
		s->seen = 0;
		s->owed = UINT64_MAX;
	} else {
		s->lost += __builtin_popcountll(missing >> (WINDOW - by));
		s->seen <<= by;
		s->owed = s->owed << by | ((UINT64_C(1) << by) - 1);
	}
	s->seen |= 1;
	s->highest += by;
}

enum udp_verdict udp_sequence_take(struct udp_sequence *s, uint64_t number)
{
	uint64_t ahead = number - s->highest, behind = s->highest - number;
	bool follows_stray = s->has_stray && number == s->after_stray;

	s->has_stray = false;
	if (!s->started) {
		begin(s, number);
		return UDP_NEW;
	}
	if (ahead > 0 && ahead <= UDP_SEQUENCE_JUMP) {
		advance(s, ahead);
		return UDP_NEW;
	}
	if (behind < WINDOW && s->seen >> behind & 1) {
		s->repeated++;
		return UDP_REPEATED;
	}
	if (behind < WINDOW) {
		s->seen |= UINT64_C(1) << behind;
		s->late++;
		return UDP_LATE;
	}
	if (follows_stray) {
		s->lost = udp_sequence_lost(s);
		s->restarts++;
		begin(s, number);
		return UDP_NEW;
	}
	s->has_stray = true;
	s->after_stray = number + 1;
	s->stray++;
	return UDP_STRAY;
}

int64_t udp_sequence_lost(const struct udp_sequence *s)
{
	return s->lost + __builtin_popcountll(s->owed & ~s->seen);
}
