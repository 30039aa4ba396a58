/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_PEER_CLOCK_H
#define FRAGI_BASE_PEER_CLOCK_H

#include <base/timeline.h>

/*
 * Estimates the clock of a peer from beats: four times in, a line with its bounds out
 * (docs/TIME.md). It makes no system call and reads no clock.
 *
 * The bound does not come from statistics. An answer was written after the question was sent and
 * before the answer arrived, so each round trip proves two limits of the offset, whichever way took
 * how long. All limits are carried to the present with the rate that the clocks can have to each
 * other, and intersected; the rate is proved in the same way, by limits that lie seconds apart.
 * What is assumed is that the rate of a clock stays within FRAGI_PEER_CLOCK_WANDER for as long as
 * the window lasts, unless its owner reports a change.
 */
enum fragi_peer_clock_state {
	FRAGI_PEER_CLOCK_ACQUIRING, /* too few round trips since the start, or since a step */
	FRAGI_PEER_CLOCK_LOCKED,
	FRAGI_PEER_CLOCK_HOLDOVER, /* no round trip of late: the bound grows */
	FRAGI_PEER_CLOCK_EXPIRED,  /* for so long that nothing is converted any more */
};

#define FRAGI_PEER_CLOCK_LOCK 4u                   /* round trips in a row that agree */
#define FRAGI_PEER_CLOCK_RATE_MAX INT64_C(1000000) /* ns a second: two kernels that slew */
#define FRAGI_PEER_CLOCK_WANDER INT64_C(5000)      /* ns a second */
#define FRAGI_PEER_CLOCK_ANCHORS 16u
#define FRAGI_PEER_CLOCK_ANCHOR_NS INT64_C(2000000000) /* between two of them */
/* A longer round trip confirms nothing: a clock could have stood still meanwhile, unseen. */
#define FRAGI_PEER_CLOCK_ROUND_NS INT64_C(1000000000)
#define FRAGI_PEER_CLOCK_HOLD_NS INT64_C(2000000000)
#define FRAGI_PEER_CLOCK_EXPIRE_NS INT64_C(60000000000)

/* A round trip. */
struct fragi_round_trip {
	int64_t asked_ns, back_ns;     /* our clock: the question was sent; its answer came */
	int64_t heard_ns, answered_ns; /* the peer's: the question came; its answer was sent */
	/* as the peer counts: how often its clock has stepped, and its rate has been changed */
	uint16_t steps, slews;
};

/* What was proved at some time of ours. */
struct fragi_proof {
	int64_t at_ns, low_ns, high_ns;
};

struct fragi_peer_clock {
	enum fragi_peer_clock_state state;
	uint32_t count; /* round trips since it began to acquire */
	/* our clock has stepped there: what was asked before proves nothing */
	int64_t since_ns;
	uint16_t steps, slews;
	struct fragi_proof last;
	int64_t rate_low, rate_high;
	struct fragi_proof anchors[FRAGI_PEER_CLOCK_ANCHORS];
	uint32_t anchor_count; /* ever; the newest ones are kept */
	/* for people: how often it began anew, and round trips that cannot be true */
	uint64_t restarts, refused;
};

/* Everything starts from zero. */
static inline void fragi_peer_clock_init(struct fragi_peer_clock *clock)
{
	*clock = (struct fragi_peer_clock){.since_ns = INT64_MIN,
					   .rate_low = -FRAGI_PEER_CLOCK_RATE_MAX,
					   .rate_high = FRAGI_PEER_CLOCK_RATE_MAX};
}
/* Our own clock has stepped, and shows now_ns: acquires again, and the timeline is unknown. */
FRAGI_API void fragi_peer_clock_restart(struct fragi_peer_clock *clock, int64_t now_ns,
					struct fragi_timeline *timeline);
/* The rate of our own clock was changed: what is known of it counts no more. */
FRAGI_API void fragi_peer_clock_forget_rate(struct fragi_peer_clock *clock);
/*
 * Takes a round trip, in the order of back_ns, and makes the timeline. Any values are accepted;
 * what contradicts itself is counted as refused, and what contradicts the proofs so far begins
 * anew.
 */
FRAGI_API void fragi_peer_clock_add(struct fragi_peer_clock *clock,
				    const struct fragi_round_trip *trip,
				    struct fragi_timeline *timeline);
/* Time passes. Returns whether the state is another one now. */
FRAGI_API bool fragi_peer_clock_tick(struct fragi_peer_clock *clock, int64_t now_ns,
				     struct fragi_timeline *timeline);
/* The bound at a time of ours; -1: nothing is known. */
FRAGI_API int64_t fragi_peer_clock_error_ns(const struct fragi_peer_clock *clock, int64_t now_ns);

#endif
