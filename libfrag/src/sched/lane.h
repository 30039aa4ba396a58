/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_LANE_H
#define FRAGI_SCHED_LANE_H

#include <sched/exec.h>

/*
 * A lane is a flow of an input with timing (timing.c). It holds at most one message: taken from its
 * queue, but not delivered yet, so its sender still waits and the ledger counts it as in flight.
 */

/* The domain of times that can be converted into each other; others have their clock's number. */
#define FRAGI_SYSTEM_TIME FRAG_CLOCK_MONOTONIC

/* What a lane gives the tick. */
enum fragi_give {
	FRAGI_GIVE_NOTHING,
	FRAGI_GIVE_HELD,
	FRAGI_GIVE_LAST,
	FRAGI_GIVE_DEFAULT,
};

struct fragi_lane {
	struct fragi_rx *rx;
	const struct fragi_timing *timing;
	struct frag_message *held; /* NULL: none */
	uint64_t stamp;            /* of its emit; 0: not known */
	int64_t time_ns;           /* of its acquisition, in `domain` */
	uint32_t domain;
	int64_t held_ns;           /* since when it is held */
	struct frag_message *last; /* for reuse_last; NULL: none yet */
	enum fragi_give give;
	bool is_aligned;
	bool reads_again;     /* the last one, as often as there is a tick, also after the end */
	bool waits_for_first; /* of reads_again */
	/* Which counter of the row counts that it is absent; NULL: no message has come. */
	_Atomic uint64_t *why;
	uint64_t dropped;    /* before it, when it had a message last */
	bool has_deadline;   /* that drops: one of the next two */
	int64_t deadline_ns; /* an older message is dropped; 0: none is for that */
	_Atomic uint64_t *misses;
	struct fragi_exec *drops_late; /* of an operator that ends a path which drops; NULL: no */
};

/* The time of an evaluation, and what the other clocks are ahead of it. */
struct fragi_lane_time {
	const struct frag_clock *clock; /* that now_ns is of */
	int64_t now_ns, unix_ahead_ns, tai_ahead_ns, monotonic_ahead_ns;
	bool knows_clocks;
};

/* Times of acquisition may be any: one that is no number becomes the greatest or least. */
static inline int64_t fragi_time_difference(int64_t a, int64_t b)
{
	int64_t ns;

	return !__builtin_sub_overflow(a, b, &ns) ? ns : b < 0 ? INT64_MAX : INT64_MIN;
}

/* Drops the message that it holds. */
void fragi_lane_drop(struct fragi_lane *lane, enum fragi_drop reason);
/* Fills it with a message that is young enough, if there is one; drops those that are not. */
void fragi_lane_fill(struct fragi_lane *lane, struct fragi_lane_time *time);
/* It waits for no message. */
static inline bool fragi_lane_is_free(const struct fragi_lane *lane)
{
	return lane->reads_again && (lane->last != NULL || !lane->waits_for_first);
}
/* No message will come any more, and it has none. */
static inline bool fragi_lane_has_ended(const struct fragi_lane *lane)
{
	return lane->held == NULL && !fragi_lane_is_free(lane) && fragi_rx_is_finished(lane->rx);
}

#endif
