/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_TIMELINE_H
#define FRAGI_BASE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * The time of a peer: what its CLOCK_MONOTONIC reads on ours, plus or minus. Each peer has one
 * timeline, and whoever compares a time of the peer with an own one converts it here first.
 *
 * Two processes that read the same clock have an offset and an error of 0; between all others the
 * timeline is not known. An estimate of the offset is a third state, which fills in both numbers.
 */
enum fragi_timeline_state {
	FRAGI_TIMELINE_UNKNOWN, /* no time of the peer means anything here */
	FRAGI_TIMELINE_SAME,    /* both read one clock, and so their other clocks are one too */
	FRAGI_TIMELINE_ESTIMATED,
};

struct fragi_timeline {
	enum fragi_timeline_state state;
	int64_t offset_ns; /* what is added to a time of the peer */
	int64_t error_ns;  /* the sum is at most this far from the truth */
};

/* A time of our CLOCK_MONOTONIC. */
struct fragi_time {
	int64_t ns;
	int64_t error_ns; /* at most this far from the truth */
};

/* The timeline of a peer, by the identities of both clocks (identity.h). */
FRAGI_API struct fragi_timeline fragi_timeline_between(const char *our_clock,
						       const char *their_clock);

/* Converts a time of the peer. Returns false: it means nothing here. Any value is accepted. */
static inline bool fragi_timeline_convert(const struct fragi_timeline *peer, int64_t their_ns,
					  struct fragi_time *out)
{
	if (__builtin_expect(peer->state == FRAGI_TIMELINE_UNKNOWN, 0))
		return false;
	out->ns = (int64_t)((uint64_t)their_ns + (uint64_t)peer->offset_ns);
	out->error_ns = peer->error_ns;
	return true;
}

#endif
