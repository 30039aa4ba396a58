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
 * Two processes that read the same clock have an offset and an error of 0. Between all others the
 * timeline is not known until it has been estimated from beats (peer_clock.h).
 */
enum fragi_timeline_state {
	FRAGI_TIMELINE_UNKNOWN, /* no time of the peer means anything here */
	FRAGI_TIMELINE_SAME,    /* both read one clock, and so their other clocks are one too */
	FRAGI_TIMELINE_ESTIMATED,
};

/*
 * An estimate, around the time base_ns of the peer. All offsets are ours minus the peer's, all
 * rates the change of an offset, ns a second.
 */
struct fragi_timeline_line {
	int64_t base_ns;
	int64_t offset_ns; /* at base_ns: what is taken */
	/* its rate before base_ns, for FRAGI_TIMELINE_SETTLE_NS after it, and from then on */
	int64_t rate_before, rate, rate_after;
	int64_t low_ns, high_ns;     /* between these lies the truth at base_ns */
	int64_t rate_low, rate_high; /* and its rate between these */
};

struct fragi_timeline {
	enum fragi_timeline_state state;
	struct fragi_timeline_line line; /* of FRAGI_TIMELINE_ESTIMATED */
	/* what is less exact counts as not known, as the application demands; 0: nothing does */
	int64_t max_error_ns;
	/* what its other clocks are ahead of its CLOCK_MONOTONIC, and ours of ours */
	bool knows_unix, knows_tai;
	int64_t unix_ahead_ns, tai_ahead_ns, our_unix_ahead_ns, our_tai_ahead_ns;
};

/* A time of our CLOCK_MONOTONIC. */
struct fragi_time {
	int64_t ns;
	int64_t error_ns; /* at most this far from the truth */
};

/* No time that is further from a line's base is converted: the error would be a guess. */
#define FRAGI_TIMELINE_REACH_NS (INT64_C(3600) * 1000000000)
/* How far TAI is ahead of UTC since 2017. */
#define FRAGI_TAI_AHEAD_S 37
/* In so much time a line comes to the middle of the bounds. */
#define FRAGI_TIMELINE_SETTLE_NS INT64_C(1000000000)

/* The timeline of a peer, by the identities of both clocks (identity.h). */
FRAGI_API struct fragi_timeline fragi_timeline_between(const char *our_clock,
						       const char *their_clock);

/* Returns rate * ns / 1e9, rounded down. */
FRAGI_API int64_t fragi_timeline_drift_ns(int64_t rate, int64_t ns);

/* Out of line: the state is not SAME. */
FRAGI_API bool fragi_timeline_estimate(const struct fragi_timeline *peer, int64_t their_ns,
				       struct fragi_time *out);

/* Converts a time of the peer. Returns false: it means nothing here. Any value is accepted. */
static inline bool fragi_timeline_convert(const struct fragi_timeline *peer, int64_t their_ns,
					  struct fragi_time *out)
{
	if (__builtin_expect(peer->state != FRAGI_TIMELINE_SAME, 0))
		return fragi_timeline_estimate(peer, their_ns, out);
	out->ns = their_ns;
	out->error_ns = 0;
	return true;
}

#endif
