// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <track/account.h>

#define WINDOW 4

static uint64_t dropped(const struct fragi_summary_flow *a)
{
	uint64_t sum = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		sum += a->dropped[i];
	return sum;
}

static void assert_balanced(const struct fragi_summary_flow *a)
{
	cr_assert_eq(a->sent, a->delivered + dropped(a) + a->lost + a->in_flight);
}

Test(account, an_orderly_end_invents_nothing)
{
	struct fragi_flow_stats tx = {.sent = 10, .bytes = 80, .tx_dropped = {1, 0, 0, 0}};
	struct fragi_flow_stats rx = {.delivered = 7, .rx_dropped = {0, 0, 1, 0}};
	struct fragi_account_end sender = {&tx, true, true}, receiver = {&rx, true, true};
	struct fragi_summary_flow a;

	fragi_account_between(&sender, &receiver, WINDOW, false, &a);
	assert_balanced(&a);
	cr_expect_eq(a.sent, 10);
	cr_expect_eq(a.delivered, 7);
	cr_expect_eq(a.dropped[0], 1);
	cr_expect_eq(a.dropped[2], 1);
	cr_expect_eq(a.lost, 0);
	cr_expect_eq(a.in_flight, 1, "what nobody accounts for stays to be seen");
	cr_expect_eq(a.bytes, 80);
	tx = (struct fragi_flow_stats){.sent = 5, .delivered = 5};
	fragi_account_inner(&sender, 1, &a);
	cr_expect(a.sent == 5 && a.delivered == 5 && a.lost == 0 && a.in_flight == 0);
}

Test(account, what_a_read_page_leaves_open_is_lost_exactly)
{
	struct fragi_flow_stats tx = {.sent = 10}, rx = {.delivered = 7, .arrived = 8};
	struct fragi_account_end sender = {&tx, true, false}, receiver = {&rx, true, false};
	struct fragi_summary_flow a;

	fragi_account_between(&sender, &receiver, WINDOW, false, &a);
	assert_balanced(&a);
	cr_expect_eq(a.sent, 10);
	cr_expect_eq(a.lost, 3);
	tx.delivered = 9;
	fragi_account_inner(&sender, 1, &a);
	assert_balanced(&a);
	cr_expect_eq(a.lost, 1);
}

Test(account, what_was_seen_to_wait_is_lost_at_least)
{
	struct fragi_flow_stats tx = {.sent = 20, .confirmed = 12, .tx_dropped = {2}};
	struct fragi_flow_stats rx = {.delivered = 7, .arrived = 9};
	struct fragi_account_end sender = {&tx, true, false}, receiver = {&rx, false, false};
	struct fragi_summary_flow a;

	fragi_account_between(&sender, &receiver, WINDOW, true, &a);
	assert_balanced(&a);
	cr_expect_not(a.exact);
	cr_expect_eq(a.lost_at_least, 20 - 2 - (12 + WINDOW), "no credit let them go");
	cr_expect(a.sent_at_least == 20 && a.sent_at_most == 20);
	cr_expect_eq(a.delivered_at_most, 12 + WINDOW);
	sender.is_final = false;
	receiver.is_final = true;
	fragi_account_between(&sender, &receiver, WINDOW, true, &a);
	assert_balanced(&a);
	cr_expect_eq(a.lost_at_least, 2, "they had arrived");
	cr_expect_eq(a.delivered_at_most, 7);
	cr_expect(a.sent_at_least == 20 && a.sent_at_most == FRAGI_SUMMARY_OPEN);
	receiver.is_final = false;
	fragi_account_between(&sender, &receiver, WINDOW, true, &a);
	cr_expect(a.lost_at_least == 0 && a.delivered_at_most == FRAGI_SUMMARY_OPEN);
	sender.is_final = receiver.is_final = true;
	fragi_account_between(&sender, &receiver, WINDOW, true, &a);
	cr_expect(a.exact && a.lost_at_least == a.lost && a.sent_at_most == 20);
}

/*
 * The receiver left no page. It has settled what it confirmed, what the windows did not hold back,
 * and what had arrived but for its window: the largest of these counts.
 */
Test(account, a_receiver_without_a_page_has_settled_what_can_be_shown)
{
	static const struct {
		uint64_t sent, confirmed, arrived, reported, delivered, delivered_of_queues;
	} rows[] = {
		/* of a flow that queues the window counts thrice */
		{20, 19, 0, 3, 19, 15}, /* what it confirmed */
		{20, 5, 9, 3, 16, 8},   /* what was sent, but for the windows */
		{20, 5, 19, 3, 16, 15}, /* what arrived, but for its window */
		{10, 0, 9, 6, 6, 6},    /* what it reported */
		{2, 0, 1, 0, 0, 0},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		for (int queues = 0; queues < 2; queues++) {
			struct fragi_flow_stats tx = {.sent = rows[i].sent,
						      .confirmed = rows[i].confirmed};
			struct fragi_flow_stats rx = {.arrived = rows[i].arrived,
						      .delivered = rows[i].reported};
			struct fragi_account_end sender = {&tx, true, false},
						 receiver = {&rx, false, false};
			struct fragi_summary_flow a;

			fragi_account_between(&sender, &receiver, WINDOW, queues == 1, &a);
			assert_balanced(&a);
			cr_expect_eq(a.delivered,
				     queues == 0 ? rows[i].delivered : rows[i].delivered_of_queues,
				     "row %zu, %d: %llu", i, queues,
				     (unsigned long long)a.delivered);
			cr_expect_eq(a.delivered_at_least, rows[i].reported);
		}
}

/* The first message is that of the earliest epoch which had one. */
Test(account, epochs_that_are_over_are_added)
{
	static const struct {
		uint64_t past_ns, now_ns, first_ns;
	} firsts[] = {{5, 9, 5}, {0, 9, 9}, {5, 0, 5}, {0, 0, 0}};

	for (size_t i = 0; i < FRAG_COUNT_OF(firsts); i++) {
		const struct fragi_flow_stats past = {.sent = 20,
						      .delivered = 11,
						      .tx_dropped = {1, 2},
						      .rx_dropped = {0, 3},
						      .first_ns = firsts[i].past_ns};
		struct fragi_flow_stats row = {
			.sent = 7, .delivered = 6, .tx_dropped = {1}, .first_ns = firsts[i].now_ns};
		struct fragi_account_end end = {
			.row = &row, .is_final = true, .is_orderly = true, .past = &past};
		struct fragi_summary_flow a;

		fragi_account_inner(&end, 4, &a);
		assert_balanced(&a);
		cr_expect_eq(a.first_ns, firsts[i].first_ns, "%zu: %llu", i,
			     (unsigned long long)a.first_ns);
		cr_expect(a.sent == 27 && a.delivered == 17 && a.lost == 3 && a.in_flight == 0);
		cr_expect(a.dropped[0] == 2 && a.dropped[1] == 5);
		cr_expect(a.exact && a.lost_at_least == 3 && a.sent_at_least == 27 &&
			  a.sent_at_most == 27 && a.delivered_at_least == 17 &&
			  a.delivered_at_most == 17);
	}
}

/* A worker reports these sums, and may be wrong: what was settled was sent. */
Test(account, epochs_that_settled_more_than_they_sent_balance)
{
	const struct fragi_flow_stats past = {.sent = 20, .delivered = 21, .tx_dropped = {2}};
	struct fragi_flow_stats row = {.sent = 7, .delivered = 6};
	struct fragi_account_end end = {
		.row = &row, .is_final = true, .is_orderly = true, .past = &past};
	struct fragi_summary_flow a;

	fragi_account_inner(&end, 4, &a);
	assert_balanced(&a);
	cr_expect(a.sent == 30 && a.delivered == 27 && a.lost == 0 && a.in_flight == 1);
	cr_expect(a.sent_at_least == 30 && a.sent_at_most == 30);
}

Test(account, an_inner_flow_of_a_lost_host_loses_its_capacity)
{
	struct fragi_flow_stats row = {.sent = 10, .delivered = 10};
	struct fragi_account_end end = {&row, false, false};
	struct fragi_summary_flow a;

	fragi_account_inner(&end, 3, &a);
	assert_balanced(&a);
	cr_expect_eq(a.sent, 13);
	cr_expect_eq(a.lost, 3);
	row.sent = 15;
	fragi_account_inner(&end, 3, &a);
	assert_balanced(&a);
	cr_expect_eq(a.lost, 5);
}

Test(account, an_end_that_never_reported_may_have_had_its_window_open)
{
	struct fragi_account_end none = {NULL, false, false}, orderly = {NULL, true, true};
	struct fragi_summary_flow a;

	fragi_account_between(&none, &none, WINDOW, false, &a);
	assert_balanced(&a);
	cr_expect(a.sent == WINDOW && a.lost == WINDOW && a.delivered == 0);
	fragi_account_between(&none, &none, WINDOW, true, &a);
	assert_balanced(&a);
	cr_expect_eq(a.lost, 3 * WINDOW, "the sender's queue, the window, the receiver's queue");
	fragi_account_inner(&none, 4, &a);
	assert_balanced(&a);
	cr_expect_eq(a.lost, 4);
	fragi_account_between(&orderly, &orderly, WINDOW, true, &a);
	cr_expect_eq(a.sent, 0);
}

/* A flow that is played message by message, so that the truth at the moment of death is known. */
struct play {
	uint64_t sent, arrived, delivered, confirmed, tx_dropped, rx_dropped;
	bool has_stopped, knows_it; /* the receiver; the sender knows that it has */
	uint64_t seed;
};

static uint64_t random_below(struct play *p, uint64_t n)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (p->seed >> 33) % n;
}

static void play_step(struct play *p)
{
	switch (random_below(p, 4)) {
	case 0:
		p->tx_dropped += p->knows_it;
		p->sent += p->knows_it || p->sent - p->confirmed < WINDOW;
		break;
	case 1:
		if (p->arrived == p->sent - p->tx_dropped)
			break;
		p->arrived++;
		p->rx_dropped += p->has_stopped;
		break;
	case 2:
		if (p->delivered < p->arrived && !p->has_stopped)
			p->delivered++;
		break;
	default:
		if (p->confirmed < p->delivered)
			p->confirmed++;
		else
			p->knows_it = p->has_stopped;
		break;
	}
}

/* The receiver stops in order: what waits there is dropped, and what still comes. */
static void receiver_stops(struct play *p)
{
	if (p->has_stopped)
		return;
	p->has_stopped = true;
	p->rx_dropped = p->arrived - p->delivered;
}

static void report(const struct play *p, struct fragi_flow_stats *tx, struct fragi_flow_stats *rx)
{
	if (tx != NULL)
		*tx = (struct fragi_flow_stats){
			.sent = p->sent,
			.confirmed = p->confirmed,
			.tx_dropped = {[FRAGI_DROP_RECEIVER_DONE] = p->tx_dropped}};
	if (rx != NULL)
		*rx = (struct fragi_flow_stats){
			.delivered = p->delivered,
			.arrived = p->arrived,
			.rx_dropped = {[FRAGI_DROP_STOPPED] = p->rx_dropped}};
}

Test(account, lost_is_never_less_than_the_truth_nor_more_than_the_window_above_it)
{
	for (uint64_t seed = 1; seed < 4000; seed++) {
		for (int lost = 1; lost < 4;
		     lost++) { /* 1: the sender's page, 2: the receiver's, 3: both */
			struct play p = {.seed = seed};
			struct fragi_flow_stats tx = {0}, rx = {0};
			struct fragi_account_end sender = {&tx, (lost & 1) == 0, false};
			struct fragi_account_end receiver = {&rx, (lost & 2) == 0, false};
			struct fragi_summary_flow a;
			uint64_t truth;

			for (uint64_t i = random_below(&p, 300); i > 0; i--) {
				play_step(&p);
				if (seed % 2 == 0 && random_below(&p, 100) == 0)
					receiver_stops(&p);
				if (random_below(&p, 30) == 0)
					report(&p, &tx, NULL);
				if (random_below(&p, 30) == 0)
					report(&p, NULL, &rx);
			}
			report(&p, lost & 1 ? NULL : &tx, lost & 2 ? NULL : &rx);
			truth = p.sent - p.delivered - p.tx_dropped -
				rx.rx_dropped[FRAGI_DROP_STOPPED];
			fragi_account_between(&sender, &receiver, WINDOW, false, &a);
			assert_balanced(&a);
			cr_assert_geq(a.lost, truth, "seed %llu, lost %d", (unsigned long long)seed,
				      lost);
			cr_assert_leq(a.lost, truth + WINDOW, "seed %llu, lost %d",
				      (unsigned long long)seed, lost);
			cr_assert_leq(a.delivered, p.delivered,
				      "nothing is said delivered that was not");
			cr_assert_not(a.exact);
			cr_assert_leq(a.delivered_at_least, p.delivered);
			cr_assert_leq(a.lost_at_least,
				      p.sent - p.delivered - p.tx_dropped - p.rx_dropped);
			cr_assert(a.sent_at_least <= p.sent && p.sent <= a.sent_at_most,
				  "seed %llu, lost %d", (unsigned long long)seed, lost);
			cr_assert_geq(a.delivered_at_most, p.delivered, "seed %llu, lost %d",
				      (unsigned long long)seed, lost);
			cr_assert(lost != 1 || a.delivered_at_most == a.delivered);
			cr_assert(lost != 2 ||
				  (a.sent_at_least == p.sent && a.sent_at_most == p.sent));
			cr_assert(lost != 2 || a.delivered_at_most <= p.sent);
		}
	}
}

Test(account, an_open_end_is_assumed_to_have_counted_no_more_than_it_reported)
{
	struct fragi_flow_stats tx = {.sent = 20, .confirmed = 15, .tx_dropped = {1}};
	struct fragi_flow_stats rx = {.arrived = 16, .delivered = 11, .rx_dropped = {[2] = 2}};
	const struct fragi_flow_stats past = {
		.arrived = 9, .delivered = 5, .rx_dropped = {[2] = 1}};
	const struct fragi_flow_stats after = {
		.arrived = 7, .delivered = 6, .rx_dropped = {[2] = 1}};
	struct fragi_account_end sender = {.row = &tx, .is_final = true, .is_open = true};
	struct fragi_account_end receiver = sender;
	struct fragi_summary_flow a;

	for (int open = 1; open < 4; open++) { /* 1: the sender, 2: the receiver, 3: both */
		sender.is_open = (open & 1) != 0;
		receiver.is_open = (open & 2) != 0;
		receiver.row = &rx;
		receiver.past = NULL;
		fragi_account_between(&sender, &receiver, WINDOW, true, &a);
		assert_balanced(&a);
		cr_expect(a.sent == 20 && a.delivered == 11 && a.lost == 0 && a.in_flight == 6);
		cr_expect(a.exact && a.sent_at_most == 20 && a.delivered_at_most == 11);
		receiver.row = &after;
		receiver.past = &past;
		fragi_account_between(&sender, &receiver, WINDOW, true, &a);
		assert_balanced(&a);
		cr_expect(a.lost == 3 && a.lost_at_least == 3 && a.in_flight == 3 && a.exact);
		receiver.is_final = false;
		fragi_account_between(&sender, &receiver, WINDOW, true, &a);
		assert_balanced(&a);
		cr_expect(a.sent == 20 && a.delivered == 11 && a.lost == 3 && !a.exact);
		cr_expect_eq(a.sent_at_least, 20);
		cr_expect_eq(a.delivered_at_least, 11);
		cr_expect(a.sent_at_most == FRAGI_SUMMARY_OPEN &&
			  a.delivered_at_most == FRAGI_SUMMARY_OPEN);
		receiver.is_final = true;
		receiver.is_inexact = true;
		fragi_account_between(&sender, &receiver, WINDOW, true, &a);
		assert_balanced(&a);
		cr_expect(a.delivered == 11 && a.lost == 0 && a.in_flight == 6 && !a.exact,
			  "what it has received of what waited is not known");
		receiver.is_inexact = false;
	}
	tx = (struct fragi_flow_stats){.sent = 10, .delivered = 8, .rx_dropped = {[2] = 1}};
	sender.is_open = true;
	for (int known = 0; known < 2; known++) {
		sender.is_final = known == 1;
		fragi_account_inner(&sender, WINDOW, &a);
		assert_balanced(&a);
		cr_expect(a.sent == 10 && a.delivered == 8 && a.lost == 0 && a.in_flight == 1);
		cr_expect_eq(a.exact, known == 1);
	}
}

/* The receiver dies now and then: what waits there is lost, and what is on the way may be. */
static uint64_t receiver_dies(struct play *p)
{
	uint64_t waits = p->arrived - p->delivered;
	uint64_t on_the_way = random_below(p, p->sent - p->arrived + 1);

	p->arrived += on_the_way; /* counted nowhere */
	p->delivered = p->confirmed = p->arrived;
	return waits + on_the_way;
}

Test(account, what_is_open_shows_no_more_than_the_truth_and_becomes_no_less)
{
	uint64_t shown_lost = 0;

	for (uint64_t seed = 1; seed < 500; seed++) {
		struct play p = {.seed = seed}, first = {0};
		struct fragi_flow_stats tx = {0}, rx = {0}, past = {0};
		struct fragi_account_end sender = {.row = &tx, .is_final = true, .is_open = true};
		struct fragi_account_end receiver = {.row = &rx,
						     .is_final = true,
						     .was_restarted = true,
						     .is_open = true,
						     .past = &past};
		struct fragi_summary_flow a = {0}, before = {0};
		uint64_t gone = 0;
		bool dies;

		for (int i = 0; i < 300; i++) {
			play_step(&p);
			if (random_below(&p, 7) == 0)
				report(&p, &tx, NULL);
			dies = random_below(&p, 60) == 0;
			if (dies || random_below(&p, 7) == 0)
				rx = (struct fragi_flow_stats){.arrived = p.arrived - first.arrived,
							       .delivered = p.delivered -
									    first.delivered};
			if (dies) {
				fragi_flow_stats_add(&past, &rx);
				gone += receiver_dies(&p);
				first = p;
				rx = (struct fragi_flow_stats){0};
			}
			fragi_account_between(&sender, &receiver, WINDOW, false, &a);
			assert_balanced(&a);
			cr_assert(a.exact);
			cr_assert_leq(a.sent, p.sent);
			cr_assert_leq(a.delivered, p.delivered - gone);
			cr_assert_leq(a.lost, gone);
			cr_assert(a.sent >= before.sent && a.delivered >= before.delivered &&
				  a.lost >= before.lost);
			before = a;
		}
		shown_lost += a.lost;
	}
	cr_expect_gt(shown_lost, 500);
}

Test(account, what_cannot_have_been_counted_is_not_sound)
{
	const struct fragi_flow_stats good = {.sent = 10,
					      .confirmed = 8,
					      .tx_dropped = {1},
					      .rx_dropped = {2},
					      .arrived = 9,
					      .delivered = 7};
	uint64_t *counts[] = {NULL, NULL, NULL, NULL, NULL, NULL};
	struct fragi_flow_stats row = good, killed = good;

	cr_assert(fragi_account_is_sound(&good, NULL));
	cr_assert(fragi_account_is_sound(&good, &good), "nothing has happened since");
	killed.sent--; /* of a message that is counted settled and not yet sent */
	killed.arrived -= 2;
	cr_assert(fragi_account_is_sound(&killed, NULL));

	counts[0] = &row.sent;
	counts[1] = &row.confirmed;
	counts[2] = &row.arrived;
	counts[3] = &row.delivered;
	counts[4] = &row.tx_dropped[0];
	counts[5] = &row.rx_dropped[0];
	for (size_t i = 0; i < FRAG_COUNT_OF(counts); i++) {
		row = good;
		*counts[i] = UINT64_MAX;
		cr_expect(!fragi_account_is_sound(&row, NULL), "counter %zu is beyond all", i);
		row = good;
		*counts[i] -= 1;
		cr_expect(!fragi_account_is_sound(&row, &good), "counter %zu has become less", i);
	}
	row = good;
	row.confirmed = 12;
	cr_expect(!fragi_account_is_sound(&row, NULL), "confirmed, and never sent");
	row = good;
	row.tx_dropped[0] = 12;
	cr_expect(!fragi_account_is_sound(&row, NULL), "dropped, and never sent");
	row = good;
	row.delivered = 10;
	cr_expect(!fragi_account_is_sound(&row, NULL), "settled, and neither sent nor arrived");
}
