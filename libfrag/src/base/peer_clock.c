// SPDX-License-Identifier: Apache-2.0
#include <base/peer_clock.h>

#define SETTLE_MOST_NS INT64_C(50000000)   /* in a second: far from running backwards */
#define BURST_NS INT64_C(100000000)        /* between two lines: round trips without a pause */
#define ANCHOR_LEAST_NS INT64_C(100000000) /* nearer limits say little about a rate */
#define TIME_MAX_NS (INT64_MAX / 4)        /* of a clock that counts since its machine began */

/* Rounded up. */
static int64_t drift_up_ns(int64_t rate, int64_t ns)
{
	return -fragi_timeline_drift_ns(-rate, ns);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void fragi_peer_clock_forget_rate(struct fragi_peer_clock *clock)
{
	clock->rate_low = -FRAGI_PEER_CLOCK_RATE_MAX;
	clock->rate_high = FRAGI_PEER_CLOCK_RATE_MAX;
	clock->anchor_count = 0;
}

static void begin(struct fragi_peer_clock *clock, struct fragi_timeline *timeline)
{
	fragi_peer_clock_forget_rate(clock);
	clock->state = FRAGI_PEER_CLOCK_ACQUIRING;
	clock->count = 0;
	timeline->state = FRAGI_TIMELINE_UNKNOWN;
}

static void restart(struct fragi_peer_clock *clock, struct fragi_timeline *timeline)
{
	clock->restarts += clock->count > 0;
	begin(clock, timeline);
}

void fragi_peer_clock_restart(struct fragi_peer_clock *clock, int64_t now_ns,
			      struct fragi_timeline *timeline)
{
	restart(clock, timeline);
	clock->since_ns = now_ns;
}

static bool is_time(int64_t ns)
{
	return ns >= -TIME_MAX_NS && ns <= TIME_MAX_NS;
}

/*
 * What a round trip proves at back_ns. The lower limit is of a moment before it, when the question
 * came; both are widened by what the clocks may have drifted apart meanwhile.
 */
static bool prove(const struct fragi_peer_clock *clock, const struct fragi_round_trip *trip,
		  struct fragi_proof *out)
{
	int64_t round_ns;

	if (!is_time(trip->asked_ns) || !is_time(trip->back_ns) || !is_time(trip->heard_ns) ||
	    !is_time(trip->answered_ns))
		return false;
	round_ns = trip->back_ns - trip->asked_ns;
	if (round_ns < 0 || trip->answered_ns < trip->heard_ns)
		return false;
	out->at_ns = trip->back_ns;
	out->low_ns = trip->asked_ns - trip->heard_ns +
		      fragi_timeline_drift_ns(least(clock->rate_low, 0), round_ns);
	out->high_ns = trip->back_ns - trip->answered_ns +
		       drift_up_ns(greatest(clock->rate_high, 0), round_ns);
	return out->low_ns <= out->high_ns;
}

static struct fragi_proof carried_to(const struct fragi_peer_clock *clock, int64_t at_ns)
{
	const int64_t since_ns = greatest(at_ns - clock->last.at_ns, 0);

	return (struct fragi_proof){
		.at_ns = at_ns,
		.low_ns = clock->last.low_ns + fragi_timeline_drift_ns(clock->rate_low, since_ns),
		.high_ns = clock->last.high_ns + drift_up_ns(clock->rate_high, since_ns),
	};
}

/* The rate that all anchors allow. Returns false: there is none. */
static bool prove_rate(struct fragi_peer_clock *clock)
{
	const uint32_t kept = clock->anchor_count < FRAGI_PEER_CLOCK_ANCHORS
				      ? clock->anchor_count
				      : FRAGI_PEER_CLOCK_ANCHORS;
	int64_t low = -FRAGI_PEER_CLOCK_RATE_MAX, high = FRAGI_PEER_CLOCK_RATE_MAX;

	for (uint32_t i = 0; i < kept; i++) {
		const struct fragi_proof *anchor = &clock->anchors[i];
		const __int128 second = 1000000000;
		int64_t since_ns = clock->last.at_ns - anchor->at_ns;

		if (since_ns < ANCHOR_LEAST_NS)
			continue;
		low = greatest(
			low, (int64_t)((clock->last.low_ns - anchor->high_ns) * second / since_ns) -
				     1 - FRAGI_PEER_CLOCK_WANDER);
		high = least(high,
			     (int64_t)((clock->last.high_ns - anchor->low_ns) * second / since_ns) +
				     1 + FRAGI_PEER_CLOCK_WANDER);
	}
	if (low > high)
		return false;
	clock->rate_low = low;
	clock->rate_high = high;
	return true;
}

static void keep_anchor(struct fragi_peer_clock *clock)
{
	const uint32_t newest = (clock->anchor_count - 1) % FRAGI_PEER_CLOCK_ANCHORS;

	if (clock->anchor_count > 0 &&
	    clock->last.at_ns - clock->anchors[newest].at_ns < FRAGI_PEER_CLOCK_ANCHOR_NS)
		return;
	clock->anchors[clock->anchor_count++ % FRAGI_PEER_CLOCK_ANCHORS] = clock->last;
}

/*
 * No time may step back when a line follows another one, neither those of messages that were under
 * way meanwhile. So the new line is nowhere below the old one where a message may still come from:
 * it begins a little above it, at the earliest time that the peer's clock can show now, and before
 * that it is as flat as the old one was. From there its slope takes it to the middle of the bounds.
 */
static void follow(struct fragi_timeline_line *line, const struct fragi_timeline *old)
{
	const struct fragi_timeline_line *before = &old->line;
	const int64_t steepest = greatest(before->rate, before->rate_after);
	struct fragi_time there;
	int64_t gap_ns, old_ns;

	if (!fragi_timeline_estimate(old, line->base_ns, &there))
		return;
	old_ns = there.ns - line->base_ns;
	gap_ns = greatest(least(line->offset_ns - old_ns, SETTLE_MOST_NS), -SETTLE_MOST_NS);
	line->rate += gap_ns * (1000000000 / FRAGI_TIMELINE_SETTLE_NS);
	line->offset_ns =
		old_ns +
		drift_up_ns(greatest(steepest - line->rate, 0), line->high_ns - line->low_ns) + 1;
	line->rate_before = least(before->rate, before->rate_after);
	if (line->base_ns - before->base_ns < BURST_NS)
		line->rate_before = least(line->rate_before, before->rate_before);
}

static void draw(const struct fragi_peer_clock *clock, struct fragi_timeline *timeline)
{
	const struct fragi_proof *last = &clock->last;
	const int64_t width_ns = last->high_ns - last->low_ns;
	const int64_t fastest = greatest(-clock->rate_low, clock->rate_high);
	const int64_t rate = (clock->rate_low + clock->rate_high) / 2;
	const struct fragi_timeline old = *timeline;

	/* base_ns is known to the width of the bounds, in which the offset has drifted. */
	timeline->line = (struct fragi_timeline_line){
		.base_ns = last->at_ns - last->high_ns,
		.offset_ns = last->low_ns + width_ns / 2,
		.rate_before = rate,
		.rate = rate,
		.rate_after = rate,
		.low_ns = last->low_ns - drift_up_ns(fastest, width_ns),
		.high_ns = last->high_ns + drift_up_ns(fastest, width_ns),
		.rate_low = clock->rate_low,
		.rate_high = clock->rate_high,
	};
	if (old.state == FRAGI_TIMELINE_ESTIMATED)
		follow(&timeline->line, &old);
	timeline->state = FRAGI_TIMELINE_ESTIMATED;
}

/* What is proved now: the new limits and the old ones together. Returns false: they disagree. */
static bool combine(const struct fragi_peer_clock *clock, struct fragi_proof *proof)
{
	struct fragi_proof carried;

	if (clock->count == 0)
		return true;
	carried = carried_to(clock, proof->at_ns);
	proof->low_ns = greatest(carried.low_ns, proof->low_ns);
	proof->high_ns = least(carried.high_ns, proof->high_ns);
	return proof->low_ns <= proof->high_ns;
}

static void note_changes(struct fragi_peer_clock *clock, const struct fragi_round_trip *trip,
			 struct fragi_timeline *timeline)
{
	if (trip->steps != clock->steps)
		restart(clock, timeline);
	if (trip->slews != clock->slews)
		fragi_peer_clock_forget_rate(clock);
	clock->steps = trip->steps;
	clock->slews = trip->slews;
}

void fragi_peer_clock_add(struct fragi_peer_clock *clock, const struct fragi_round_trip *trip,
			  struct fragi_timeline *timeline)
{
	struct fragi_proof proof;

	if (trip->asked_ns < clock->since_ns)
		return;
	note_changes(clock, trip, timeline);
	/* Both machines may have been paused meanwhile, for nearly the same time. */
	if (clock->count > 0 && trip->back_ns - clock->last.at_ns >= FRAGI_PEER_CLOCK_HOLD_NS)
		fragi_peer_clock_forget_rate(clock);
	if (!prove(clock, trip, &proof)) {
		clock->refused++;
		restart(clock, timeline);
		return;
	}
	if (!combine(clock, &proof)) {
		restart(clock, timeline);
		(void)prove(clock, trip, &proof);
	}
	if (proof.at_ns - trip->asked_ns > FRAGI_PEER_CLOCK_ROUND_NS)
		return;
	clock->last = proof;
	if (!prove_rate(clock)) {
		restart(clock, timeline);
		(void)prove(clock, trip, &clock->last);
	}
	keep_anchor(clock);
	if (clock->count < FRAGI_PEER_CLOCK_LOCK)
		clock->count++;
	if (clock->count < FRAGI_PEER_CLOCK_LOCK) {
		clock->state = FRAGI_PEER_CLOCK_ACQUIRING;
		return;
	}
	clock->state = FRAGI_PEER_CLOCK_LOCKED;
	draw(clock, timeline);
}

bool fragi_peer_clock_tick(struct fragi_peer_clock *clock, int64_t now_ns,
			   struct fragi_timeline *timeline)
{
	const int64_t silent_ns = now_ns - clock->last.at_ns;
	const enum fragi_peer_clock_state before = clock->state;

	if (before == FRAGI_PEER_CLOCK_ACQUIRING)
		return false;
	if (silent_ns >= FRAGI_PEER_CLOCK_EXPIRE_NS) {
		begin(clock, timeline);
		clock->state = FRAGI_PEER_CLOCK_EXPIRED;
	} else if (silent_ns >= FRAGI_PEER_CLOCK_HOLD_NS && before == FRAGI_PEER_CLOCK_LOCKED) {
		clock->state = FRAGI_PEER_CLOCK_HOLDOVER;
	}
	return clock->state != before;
}

int64_t fragi_peer_clock_error_ns(const struct fragi_peer_clock *clock, int64_t now_ns)
{
	struct fragi_proof now;

	if (clock->state != FRAGI_PEER_CLOCK_LOCKED && clock->state != FRAGI_PEER_CLOCK_HOLDOVER)
		return -1;
	now = carried_to(clock, now_ns);
	return (now.high_ns - now.low_ns + 1) / 2;
}
