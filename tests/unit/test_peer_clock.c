// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/peer_clock.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static int64_t between(int64_t least, int64_t most)
{
	return least + (int64_t)draw((uint64_t)(most - least + 1));
}

/* About as often small as large. */
static int64_t spread(int64_t least, int64_t most)
{
	while (most > 2 * least && draw(2) == 0)
		most /= 2;
	return between(least, most > least ? most : least);
}

/* A clock that goes wrong in every way that a clock can. */
struct wrong_clock {
	int64_t since_ns, shown_ns; /* the true time and its own, when it was last changed */
	int64_t rate;               /* ns a second */
	uint16_t steps, slews;
};

static int64_t read_at(const struct wrong_clock *clock, int64_t true_ns)
{
	const int64_t gone_ns = true_ns - clock->since_ns;

	return clock->shown_ns + gone_ns + fragi_timeline_drift_ns(clock->rate, gone_ns);
}

static void change(struct wrong_clock *clock, int64_t true_ns, int64_t step_ns, int64_t rate)
{
	clock->shown_ns = read_at(clock, true_ns) + step_ns;
	clock->since_ns = true_ns;
	clock->rate = rate;
}

struct world {
	struct wrong_clock ours, theirs;
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	int64_t now_ns, last_ns, last_published_ns;
	int64_t there_ns, back_ns, jitter_ns; /* of the link */
	unsigned loss;                        /* in 100 */
	bool changed;                         /* and no round trip has seen it */
	uint64_t compared, worst_ns;
};

static int64_t delay(const struct world *w, int64_t least_ns)
{
	return least_ns + spread(1, w->jitter_ns) + (draw(20) == 0 ? spread(1, 40 * MS) : 0) +
	       (draw(40) == 0 ? spread(1, 16 * S) : 0);
}

/* A time of before, as of a message that was under way when a beat came. */
static void compare_past(const struct world *w)
{
	const int64_t true_ns = w->now_ns - spread(1, 300 * MS);
	struct fragi_time time;

	if (w->changed || true_ns < w->theirs.since_ns || true_ns < w->ours.since_ns ||
	    !fragi_timeline_convert(&w->timeline, read_at(&w->theirs, true_ns), &time))
		return;
	cr_assert_leq(llabs(time.ns - read_at(&w->ours, true_ns)), time.error_ns);
}

/* A message that was published now. */
static void publish(struct world *w)
{
	int64_t published_ns = read_at(&w->theirs, w->now_ns),
		truth_ns = read_at(&w->ours, w->now_ns);
	struct fragi_time time;

	if (w->changed || !fragi_timeline_convert(&w->timeline, published_ns, &time))
		return;
	cr_assert_leq(llabs(time.ns - truth_ns), time.error_ns,
		      "%" PRId64 " ns off, bound %" PRId64 " ns", time.ns - truth_ns,
		      time.error_ns);
	cr_assert_geq(time.ns, w->last_ns, "backwards by %" PRId64 " ns", w->last_ns - time.ns);
	w->last_ns = time.ns;
	w->compared++;
	if ((uint64_t)time.error_ns > w->worst_ns)
		w->worst_ns = (uint64_t)time.error_ns;
}

/* One of our beats, and its answer. */
static void beat(struct world *w)
{
	const struct wrong_clock *there = &w->theirs;
	struct fragi_round_trip trip = {.asked_ns = read_at(&w->ours, w->now_ns)};

	w->now_ns += delay(w, w->there_ns);
	trip.heard_ns = read_at(there, w->now_ns);
	w->now_ns += spread(1, 2 * MS);
	trip.answered_ns = read_at(there, w->now_ns);
	w->now_ns += delay(w, w->back_ns);
	trip.back_ns = read_at(&w->ours, w->now_ns);
	trip.steps = there->steps;
	trip.slews = there->slews;
	if (draw(100) < w->loss)
		return;
	publish(w);
	fragi_peer_clock_add(&w->peer, &trip, &w->timeline);
	if (trip.back_ns - trip.asked_ns <= FRAGI_PEER_CLOCK_ROUND_NS)
		w->changed = false;
	if (w->timeline.state != FRAGI_TIMELINE_ESTIMATED)
		w->last_ns = INT64_MIN;
	w->now_ns += draw(2) == 0 ? 1 : 1000;
	publish(w);
}

/* Something happens to a clock. What is published before the next round trip is not judged. */
static void disturb(struct world *w)
{
	const int64_t rate = w->theirs.rate, other = between(-100 * US, 100 * US);

	switch (draw(5)) {
	case 0: /* the peer was suspended, and says so */
		change(&w->theirs, w->now_ns, -spread(US, 100 * S), rate);
		w->theirs.steps++;
		break;
	case 1: /* a machine was stopped from outside, and nobody there knows */
		change(&w->theirs, w->now_ns, (draw(2) == 0 ? 1 : -1) * spread(2 * S, 100 * S),
		       rate);
		break;
	case 2:
		change(&w->theirs, w->now_ns, 0, other);
		w->theirs.slews++;
		break;
	case 3: /* we were suspended */
		change(&w->ours, w->now_ns, -spread(US, 100 * S), w->ours.rate);
		fragi_peer_clock_restart(&w->peer, read_at(&w->ours, w->now_ns), &w->timeline);
		break;
	default: /* nothing is heard for long */
		w->now_ns += spread(S, 90 * S);
		(void)fragi_peer_clock_tick(&w->peer, read_at(&w->ours, w->now_ns), &w->timeline);
		publish(w);
		return;
	}
	w->changed = true;
	w->last_ns = INT64_MIN;
}

static void live(uint64_t history)
{
	struct world w = {
		.last_ns = INT64_MIN,
	};

	seed = history * 0x9e3779b97f4a7c15u + 1;
	w.there_ns = spread(5 * US, 50 * MS);
	w.back_ns = spread(5 * US, 50 * MS);
	w.jitter_ns = spread(US, 5 * MS);
	w.loss = (unsigned)draw(50);
	w.ours.rate = between(-100 * US, 100 * US);
	w.theirs.rate = between(-100 * US, 100 * US);
	w.ours.shown_ns = between(0, 1000000 * S);
	w.theirs.shown_ns = between(0, 1000000 * S);
	fragi_peer_clock_init(&w.peer);
	for (int i = 0; i < 400; i++) {
		beat(&w);
		for (int messages = (int)draw(4); messages > 0; messages--) {
			w.now_ns += spread(1, 100 * MS);
			publish(&w);
			compare_past(&w);
		}
		w.now_ns += between(0, 250 * MS);
		if (draw(60) == 0)
			disturb(&w);
	}
	cr_assert_gt(w.compared, 50, "history %" PRIu64, history);
}

Test(peer_clock, the_truth_lies_within_the_bound_in_a_thousand_histories)
{
	for (uint64_t history = 0; history < 1000; history++)
		live(history);
}

/* A round trip of two clocks that run alike, the peer's 7 s ahead. */
static void quiet_trip(struct fragi_peer_clock *peer, struct fragi_timeline *timeline,
		       int64_t at_ns, int64_t there_ns, int64_t back_ns)
{
	fragi_peer_clock_add(peer,
			     &(struct fragi_round_trip){
				     .asked_ns = at_ns,
				     .heard_ns = at_ns + there_ns + 7 * S,
				     .answered_ns = at_ns + there_ns + 7 * S,
				     .back_ns = at_ns + there_ns + back_ns,
			     },
			     timeline);
}

/* The same after the peer's clock stood still for 3 s. */
static void paused_trip(struct fragi_peer_clock *peer, struct fragi_timeline *timeline,
			int64_t at_ns, int64_t there_ns, int64_t back_ns)
{
	fragi_peer_clock_add(peer,
			     &(struct fragi_round_trip){
				     .asked_ns = at_ns,
				     .heard_ns = at_ns + there_ns + 4 * S,
				     .answered_ns = at_ns + there_ns + 4 * S,
				     .back_ns = at_ns + there_ns + back_ns,
			     },
			     timeline);
}

static void lock(struct fragi_peer_clock *peer, struct fragi_timeline *timeline)
{
	*timeline = (struct fragi_timeline){0};
	fragi_peer_clock_init(peer);
	for (int64_t i = 0; i < FRAGI_PEER_CLOCK_LOCK; i++) {
		cr_expect_eq(peer->state, FRAGI_PEER_CLOCK_ACQUIRING, "%d", (int)i);
		cr_expect_eq(timeline->state, FRAGI_TIMELINE_UNKNOWN);
		quiet_trip(peer, timeline, (1 + i) * MS, 10 * US, 30 * US);
	}
	cr_assert_eq(peer->state, FRAGI_PEER_CLOCK_LOCKED);
}

Test(peer_clock, the_bound_on_a_quiet_link_is_half_of_the_least_round_trip)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	struct fragi_time time;

	lock(&peer, &timeline);
	for (int64_t i = 1; i <= 120; i++)
		quiet_trip(&peer, &timeline, i * S / 4, (i % 5 == 0 ? 10 : 500) * US,
			   (i % 7 == 0 ? 30 : 900) * US);
	cr_assert(fragi_timeline_convert(&timeline, 37 * S + S / 8, &time));
	cr_expect_leq(llabs(time.ns - 30 * S - S / 8), time.error_ns);
	cr_expect_leq(time.error_ns, 30 * US, "%d ns", (int)time.error_ns);
	cr_expect_geq(time.error_ns, 20 * US, "%d ns", (int)time.error_ns);
	cr_expect_leq(fragi_peer_clock_error_ns(&peer, 30 * S), time.error_ns);
	timeline.max_error_ns = time.error_ns;
	cr_expect(fragi_timeline_convert(&timeline, 37 * S + S / 8, &time));
	timeline.max_error_ns--;
	cr_expect_not(fragi_timeline_convert(&timeline, 37 * S + S / 8, &time));
}

Test(peer_clock, holds_over_with_a_growing_bound_and_expires)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	struct fragi_time early, late;
	int64_t last_ns;

	lock(&peer, &timeline);
	last_ns = peer.last.at_ns;
	cr_expect_not(
		fragi_peer_clock_tick(&peer, last_ns + FRAGI_PEER_CLOCK_HOLD_NS - 1, &timeline));
	cr_expect(fragi_peer_clock_tick(&peer, last_ns + FRAGI_PEER_CLOCK_HOLD_NS, &timeline));
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_HOLDOVER);
	cr_assert(fragi_timeline_convert(&timeline, 8 * S, &early));
	cr_assert(fragi_timeline_convert(&timeline, 50 * S, &late));
	cr_expect_gt(late.error_ns, early.error_ns + 40 * MS, "the rate was hardly known");
	cr_expect_not(
		fragi_peer_clock_tick(&peer, last_ns + FRAGI_PEER_CLOCK_EXPIRE_NS - 1, &timeline));
	cr_expect(fragi_peer_clock_tick(&peer, last_ns + FRAGI_PEER_CLOCK_EXPIRE_NS, &timeline));
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_EXPIRED);
	cr_expect_not(fragi_timeline_convert(&timeline, 50 * S, &late));
	cr_expect_eq(fragi_peer_clock_error_ns(&peer, 50 * S), -1);
	quiet_trip(&peer, &timeline, 100 * S, US, US);
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_ACQUIRING);
}

Test(peer_clock, a_round_trip_after_a_holdover_locks_again)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;

	lock(&peer, &timeline);
	(void)fragi_peer_clock_tick(&peer, 5 * S, &timeline);
	cr_assert_eq(peer.state, FRAGI_PEER_CLOCK_HOLDOVER);
	quiet_trip(&peer, &timeline, 6 * S, 10 * US, 30 * US);
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_LOCKED);
	cr_expect_eq(peer.restarts, 0);
}

/* We were suspended for 5 ms while a question was under way for 50 ms. */
Test(peer_clock, what_was_asked_before_our_clock_stepped_proves_nothing)
{
	const struct fragi_round_trip asked_before = {.asked_ns = S,
						      .heard_ns = 8 * S + MS,
						      .answered_ns = 8 * S + MS,
						      .back_ns = S + 45 * MS};
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	struct fragi_time time;

	lock(&peer, &timeline);
	fragi_peer_clock_restart(&peer, S + 10 * MS, &timeline);
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_ACQUIRING);
	fragi_peer_clock_add(&peer, &asked_before, &timeline);
	cr_expect_eq(peer.count, 0);
	cr_expect_eq(peer.refused, 0);
	for (int64_t i = 0; i < FRAGI_PEER_CLOCK_LOCK; i++)
		quiet_trip(&peer, &timeline, S + (10 + 100 * i) * MS, 40 * MS, 10 * MS);
	cr_assert_eq(peer.state, FRAGI_PEER_CLOCK_LOCKED);
	cr_assert(fragi_timeline_convert(&timeline, 9 * S, &time));
	cr_expect_leq(llabs(time.ns - 2 * S), time.error_ns);
}

/*
 * The peer was paused for 3 s and does not know. That fits into a round trip which takes longer, so
 * one agrees with the limits of before as if there had been no pause.
 */
Test(peer_clock, a_round_trip_into_which_a_pause_fits_confirms_nothing)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	int64_t last_ns;

	lock(&peer, &timeline);
	last_ns = peer.last.at_ns;
	paused_trip(&peer, &timeline, 4 * S, 5 * S, S);
	cr_expect_eq(peer.last.at_ns, last_ns);
	cr_expect_eq(peer.restarts, 0);
	cr_expect(fragi_peer_clock_tick(&peer, 10 * S, &timeline));
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_HOLDOVER);
	paused_trip(&peer, &timeline, 10 * S, FRAGI_PEER_CLOCK_ROUND_NS - US, US);
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_ACQUIRING, "the longest that proves something");
	cr_expect_eq(peer.count, 1);
	cr_expect_eq(timeline.state, FRAGI_TIMELINE_UNKNOWN);
}

Test(peer_clock, a_long_round_trip_that_was_slow_in_one_direction_shows_a_pause)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;

	lock(&peer, &timeline);
	paused_trip(&peer, &timeline, 4 * S, S, 5 * S);
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_ACQUIRING);
	cr_expect_eq(peer.restarts, 1);
	cr_expect_eq(peer.count, 0);
	cr_expect_eq(timeline.state, FRAGI_TIMELINE_UNKNOWN);
}

/*
 * Both machines were paused for a minute, one for 5 ms longer, and neither knows: that looks like a
 * clock which runs faster.
 */
Test(peer_clock, two_pauses_in_a_gap_prove_no_rate)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	struct fragi_time time;

	lock(&peer, &timeline);
	for (int64_t i = 0; i < FRAGI_PEER_CLOCK_LOCK; i++) {
		const int64_t asked_ns = 70 * S + i * S / 4;
		const int64_t heard_ns = asked_ns + 7 * S + 5 * MS + 20 * US;

		fragi_peer_clock_add(&peer,
				     &(struct fragi_round_trip){.asked_ns = asked_ns,
								.heard_ns = heard_ns,
								.answered_ns = heard_ns,
								.back_ns = asked_ns + 40 * US},
				     &timeline);
	}
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_LOCKED);
	cr_assert(fragi_timeline_convert(&timeline, 107 * S + 5 * MS, &time));
	cr_expect_leq(llabs(time.ns - 100 * S), time.error_ns, "%d ns off, +/- %d ns",
		      (int)(time.ns - 100 * S), (int)time.error_ns);
}

Test(peer_clock, a_round_trip_that_is_too_long_does_not_count_towards_a_lock)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline = {0};

	fragi_peer_clock_init(&peer);
	for (int64_t i = 0; i < 2 * FRAGI_PEER_CLOCK_LOCK; i++)
		quiet_trip(&peer, &timeline, 4 * i * S, FRAGI_PEER_CLOCK_ROUND_NS, 1);
	cr_expect_eq(peer.count, 0);
	for (int64_t i = 0; i < FRAGI_PEER_CLOCK_LOCK; i++)
		quiet_trip(&peer, &timeline, (40 + 4 * i) * S, FRAGI_PEER_CLOCK_ROUND_NS - 1, 1);
	cr_expect_eq(peer.state, FRAGI_PEER_CLOCK_LOCKED);
}

/* A rate is rounded down, also below 0: what it shows is never above the truth. */
Test(peer_clock, a_drift_is_rounded_down)
{
	static const int64_t rows[][3] = {
		{5, 2 * S, 10},  {-5, 2 * S, -10}, {5, -2 * S, -10}, {-1, S, -1},
		{0, S, 0},       {1, 1, 0},        {-1, 1, -1},      {1, S - 1, 0},
		{-1, S - 1, -1}, {1, S + 1, 1},    {-1, S + 1, -2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(fragi_timeline_drift_ns(rows[i][0], rows[i][1]), rows[i][2],
			     "row %zu: %lld", i,
			     (long long)fragi_timeline_drift_ns(rows[i][0], rows[i][1]));
}

/* A rate that the peer's kernel changed is forgotten once, and learned again. */
Test(peer_clock, a_slew_forgets_the_rate_once)
{
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	int64_t known;

	lock(&peer, &timeline);
	for (int64_t i = 1; i <= 120; i++)
		quiet_trip(&peer, &timeline, i * S / 4, 10 * US, 30 * US);
	known = peer.rate_high - peer.rate_low;
	cr_expect_lt(known, FRAGI_PEER_CLOCK_RATE_MAX / 4, "%lld", (long long)known);
	for (int64_t i = 121; i <= 240; i++) {
		const int64_t at_ns = i * S / 4;
		const struct fragi_round_trip trip = {.asked_ns = at_ns,
						      .heard_ns = at_ns + 10 * US + 7 * S,
						      .answered_ns = at_ns + 10 * US + 7 * S,
						      .back_ns = at_ns + 40 * US,
						      .slews = 1};

		fragi_peer_clock_add(&peer, &trip, &timeline);
		cr_expect(i > 121 || peer.rate_high - peer.rate_low > known, "it is forgotten");
	}
	cr_expect_lt(peer.rate_high - peer.rate_low, FRAGI_PEER_CLOCK_RATE_MAX / 4, "%lld",
		     (long long)(peer.rate_high - peer.rate_low));
	cr_expect_eq(peer.restarts, 0);
}

/* A peer may send any times. It is never locked with times that contradict each other. */
Test(peer_clock, a_peer_that_lies_is_not_locked)
{
	static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -1,       0, 1,
					 S,         INT64_MAX - 1, INT64_MAX};
	struct fragi_peer_clock peer;
	struct fragi_timeline timeline;
	struct fragi_time time;

	seed = 5;
	lock(&peer, &timeline);
	for (int i = 0; i < 100000; i++) {
		const struct fragi_round_trip trip = {
			.asked_ns = i * MS,
			.back_ns = i * MS + 50 * US,
			.heard_ns = draw(2) == 0 ? values[draw(8)] : between(0, 100 * S),
			.answered_ns = draw(2) == 0 ? values[draw(8)] : between(0, 100 * S),
		};

		fragi_peer_clock_add(&peer, &trip, &timeline);
		cr_assert_neq(peer.state, FRAGI_PEER_CLOCK_LOCKED, "%d", i);
		cr_assert_not(fragi_timeline_convert(&timeline, trip.heard_ns, &time));
	}
	cr_expect_gt(peer.refused, 0);
	cr_expect_gt(peer.restarts, 0);
	lock(&peer, &timeline);
	for (int i = 0; i < 8; i++)
		(void)fragi_timeline_convert(&timeline, values[i], &time);
	cr_expect_not(fragi_timeline_convert(&timeline, INT64_MAX, &time));
	cr_expect(fragi_timeline_convert(&timeline, 7 * S, &time));
}
