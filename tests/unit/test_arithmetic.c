// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "../expected.h"
#include "draw.h"
#include "state_sum.h"

#include <base/blame.h>
#include <base/counters.h>
#include <base/hist.h>
#include <base/stamp.h>
#include <base/timeline.h>
#include <edge/pump_spin.h>
#include <edge/window.h>

/*
 * What only computes, with drawn numbers: sums over all results and all that is remembered, which
 * are compared with a recorded text. Numbers are small, so that they are often equal, or lie about
 * the places where something changes.
 */
#define SUMS 6 /* of each part, behind so many draws */
#define DRAWS 3000
#define LOST_PART 4 /* of spins: the part of its time that a thread may lose */

static FILE *out;

static uint64_t about(uint64_t place)
{
	static const int beside[] = {-1, 0, 1, 2, 7};
	const uint64_t n = draw(4) == 0 ? draw(9) : place + (uint64_t)DRAW_OF(beside);

	return n;
}

/* One of some places, their halves and doubles, or beside. */
static uint64_t near(const uint64_t *places, uint32_t count)
{
	const uint64_t place = places[draw(count)];

	return about(draw(3) == 0 ? place / 2 : draw(3) == 0 ? place * 2 : place);
}
#define NEAR(...)                                                                                  \
	near((const uint64_t[]){__VA_ARGS__}, FRAG_COUNT_OF(((const uint64_t[]){__VA_ARGS__})))

static void histograms(void)
{
	static struct fragi_hist_alone alone;
	static struct fragi_flow_stats sum;
	struct fragi_flow_stats row = {.sent = draw(3)};
	const struct fragi_hist_buckets buckets = fragi_hist_alone_buckets(&alone);
	uint32_t reason;

	row.first_ns = draw(2) * 7;
	if (draw(40) == 0)
		memset(&alone, 0, sizeof(alone));
	if (draw(50) == 0)
		memset(&sum, 0, sizeof(sum));
	fragi_hist_alone_add(&alone, draw(2) == 0 ? draw(40)
						  : NEAR(1 << 12, 1 << 14, 1 << 20,
							 UINT64_C(1) << 34, UINT64_C(1) << 50));
	fragi_hist_note_error(&alone.hist, draw(20));
	fragi_hist_read(&alone.hist, buckets, &row.latency);
	STATE(fragi_hist_total(&alone.hist, buckets));
	for (uint32_t k = 0; k <= 1000; k += 250)
		STATE(fragi_hist_quantile(&alone.hist, buckets, k));
	reason = draw(FRAGI_DROP_REASONS);
	row.tx_dropped[reason] = draw(4);
	reason = draw(FRAGI_DROP_REASONS);
	row.rx_dropped[reason] = draw(4);
	if (draw(3) == 0)
		row.latency.count = 0;
	fragi_flow_stats_add(&sum, &row);
	STATE(fragi_drops_unwanted(sum.tx_dropped, draw(2) == 0));
	for (size_t i = 0; i < sizeof(sum) / sizeof(uint64_t); i++)
		STATE(((const uint64_t *)(const void *)&sum)[i]);
}

static void state_of_windows(const struct fragi_window_tx *tx, const struct fragi_window_rx *rx)
{
	STATE(tx->posted), STATE(tx->posted_bytes), STATE(tx->credited);
	STATE(tx->credited_bytes), STATE(tx->sent), STATE(tx->sent_bytes);
	STATE(tx->dropped), STATE(tx->dropped_bytes), STATE(tx->wanted);
	STATE(rx->consumed), STATE(rx->consumed_bytes), STATE(rx->returned);
	STATE(rx->returned_bytes), STATE(rx->wanted), STATE(rx->accepted);
	STATE(rx->accepted_bytes);
	STATE(fragi_window_room(tx)), STATE(fragi_window_is_open(tx));
	STATE(fragi_window_owed(rx)), STATE(fragi_window_owes_batch(rx));
	STATE(fragi_window_owes(rx)), STATE(fragi_window_sender_may_wait(rx));
	for (uint64_t n = 0; n < 4; n++) {
		STATE(fragi_window_fits(tx, 25 * n)), STATE(fragi_window_is_due(rx, n));
		STATE(fragi_window_covers(rx, rx->returned + n + 1));
		STATE(fragi_window_has_place(rx, rx->consumed + n + 1));
	}
}

/* Both ends, in which everything happens, whether it makes sense or not. */
static void windows(void)
{
	static struct fragi_window_tx tx;
	static struct fragi_window_rx rx;
	const uint64_t bytes = 25 * draw(5);
	uint64_t messages = 0, returned = 0;

	if (tx.messages == 0 || draw(60) == 0) {
		tx = (struct fragi_window_tx){.messages = 1 + draw(5), .bytes = 100};
		rx = (struct fragi_window_rx){.messages = tx.messages, .bytes = 100};
	}
	switch (draw(12)) {
	case 0:
	case 1:
		STATE(fragi_window_post(&tx, bytes));
		break;
	case 2:
	case 3:
		fragi_window_spend(&tx, bytes);
		break;
	case 4:
		STATE(fragi_window_want(&tx));
		break;
	case 5:
		fragi_window_drop(&tx, bytes);
		break;
	case 6:
		messages = tx.credited + draw(3);
		STATE(fragi_window_credit(&tx, messages, tx.credited_bytes + bytes));
		break;
	case 7:
	case 8:
		STATE(fragi_window_accept(&rx, bytes));
		break;
	case 9:
		if (rx.consumed < rx.accepted)
			fragi_window_consume(&rx, bytes);
		rx.wanted |= draw(3) == 0;
		break;
	case 10:
		fragi_window_give_back(&rx, &messages, &returned);
		STATE(messages), STATE(returned);
		break;
	default:
		if (draw(3) > 0)
			break;
		STATE(fragi_window_restart_tx(&tx));
		fragi_window_restart_rx(&rx, rx.accepted, rx.accepted_bytes);
		if (draw(2) == 0)
			fragi_window_consume_to(&rx, rx.accepted, rx.accepted_bytes);
		break;
	}
	state_of_windows(&tx, &rx);
}

static void spins(void)
{
	static struct fragi_spin spin;
	static int64_t now_ns = 1, cpu_ns, preemptions;
	static int style;
	const bool by_event = draw(8) > 0;
	int64_t waits_ns;

	if (draw(1500) == 0)
		style = (int)draw(4);
	waits_ns = (int64_t)(style == 0   ? 8000 + draw(3)
			     : style == 1 ? NEAR(20000, 50000, 100000)
			     : style == 2 ? 100 * draw(30)
					  : NEAR(1000, 50000, 1000000, 20000000));
	fragi_spin_begin(&spin, now_ns);
	STATE(spin.limit_ns), STATE(fragi_spin_asks_share(&spin));
	if (fragi_spin_asks_share(&spin))
		fragi_spin_share(&spin, cpu_ns, preemptions);
	STATE(fragi_spin_goes_on(&spin, now_ns + spin.limit_ns + (int64_t)draw(3) - 1));
	if (draw(style == 0 ? 3000 : 4) == 0) /* its event comes as it is about to sleep */
		waits_ns = spin.limit_ns;
	if (waits_ns > spin.limit_ns || (waits_ns == spin.limit_ns && draw(2) == 0))
		fragi_spin_sleeps(&spin);
	now_ns += waits_ns;
	/* so much of the time it had a processor, and was preempted now and then */
	cpu_ns += waits_ns - (style == 2 ? waits_ns / (int64_t)(1 + draw(16)) : 0);
	preemptions += draw(9) == 0;
	fragi_spin_end(&spin, now_ns, by_event);
	STATE(spin.credit_ns), STATE(spin.interval_ns), STATE(spin.quiet_till_ns);
	STATE(spin.awake_ns), STATE(spin.cpu_ns), STATE(spin.preemptions), STATE(spin.limit_ns);
	STATE(spin.begin_ns), STATE(spin.slept);
}

/* As much of a time is lost as is just allowed, or beside that. */
static void shares(void)
{
	struct fragi_spin spin = {.limit_ns = draw(3), .credit_ns = 50000, .preemptions = 5};
	int64_t awake_ns, cpu_ns, preemptions;

	spin.awake_ns = draw(5) == 0 ? 0 : 1 + draw(9);
	preemptions = 4 + draw(3);
	spin.begin_ns = spin.awake_ns + (int64_t)NEAR(4000000);
	spin.cpu_ns = draw(9);
	awake_ns = spin.begin_ns - spin.awake_ns;
	STATE(fragi_spin_asks_share(&spin));
	cpu_ns = spin.cpu_ns + awake_ns - awake_ns / LOST_PART + (int64_t)draw(3) - 1;
	fragi_spin_share(&spin, cpu_ns, preemptions);
	STATE(spin.credit_ns), STATE(spin.limit_ns), STATE(spin.quiet_till_ns);
	STATE(spin.awake_ns), STATE(spin.cpu_ns), STATE(spin.preemptions);
}

/* One after the other: in which order a list is evaluated depends on the compiler. */
static void draw_numbers(uint64_t *numbers, size_t count, uint32_t below)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = draw(3) == 0 ? 0 : draw(below);
}

static void blames(void)
{
	static uint64_t sums[5 * FRAGI_BLAME_CAUSES];
	static struct fragi_blame_usual usual = {.ns = sums, .places = 5};
	static struct fragi_blame_parts parts;
	struct fragi_blame_part worst;
	uint64_t ns[20];

	draw_numbers(ns, FRAG_COUNT_OF(ns), 60);
	if (draw(5) == 0)
		parts = (struct fragi_blame_parts){0};
	if (draw(90) == 0) {
		memset(sums, 0, sizeof(sums));
		usual.messages = 0;
	}
	fragi_blame_way(&parts, &(struct fragi_blame_way){.at = (uint16_t)(1 + ns[0] % 5),
							  .took_ns = 2 * ns[1],
							  .arrived_ns = ns[2],
							  .held_ns = ns[3],
							  .restart_ns = ns[4],
							  .gpu_ns = ns[5],
							  .unstarted_ns = ns[6],
							  .busy_ns = ns[7],
							  .pool_ns = ns[8],
							  .thread_ns = ns[9],
							  .room_ns = ns[10],
							  .suspended_ns = ns[11],
							  .away_ns = ns[12],
							  .starved_ns = ns[13],
							  .denied_ns = ns[14]});
	fragi_blame_stay(&parts, &(struct fragi_blame_stay){.at = (uint16_t)(ns[0] % 6),
							    .took_ns = 2 * ns[15],
							    .preempted_ns = ns[16],
							    .gpu_ns = ns[17]});
	worst = fragi_blame(&parts, &usual, ns[18] / 3, ns[19] / 3);
	STATE(worst.at), STATE(worst.cause), STATE(worst.ns);
	if (draw(2) == 0)
		fragi_blame_learn(&usual, &parts);
	STATE(parts.rest_ns), STATE(parts.count), STATE(fragi_blame_sum(&parts));
	for (uint32_t i = 0; i < parts.count; i++) {
		STATE(parts.parts[i].at), STATE(parts.parts[i].cause);
		STATE(parts.parts[i].ns);
	}
	STATE(usual.messages);
	for (size_t i = 0; i < FRAG_COUNT_OF(sums); i++)
		STATE(sums[i]);
}

static int64_t either(uint64_t n)
{
	return draw(2) == 0 ? (int64_t)n : -(int64_t)n;
}

static void timelines(void)
{
	struct fragi_timeline peer = {.state = FRAGI_TIMELINE_ESTIMATED};
	const int64_t rate = either(draw(5000));
	const int64_t since_ns = either(NEAR(1000, 1000000000, FRAGI_TIMELINE_REACH_NS));
	struct fragi_time time = {0};
	int64_t rates[3];
	uint64_t ns[5];

	for (int i = 0; i < 3; i++)
		rates[i] = either(draw(90000));
	draw_numbers(ns, FRAG_COUNT_OF(ns), 90000);
	if (draw(9) == 0)
		peer.state = FRAGI_TIMELINE_UNKNOWN;
	if (draw(2) == 0)
		peer.max_error_ns = draw(2000000);
	peer.line = (struct fragi_timeline_line){.base_ns = rate,
						 .rate_before = rates[0],
						 .rate = rates[1],
						 .rate_after = rates[2],
						 .low_ns = -(int64_t)ns[0] / 30,
						 .high_ns = (int64_t)ns[1] / 30,
						 .rate_low = -(int64_t)ns[2],
						 .rate_high = (int64_t)ns[3]};
	peer.line.offset_ns = either(NEAR(700, 1000000));
	STATE(fragi_timeline_estimate(&peer, peer.line.base_ns + since_ns, &time));
	STATE(time.ns), STATE(time.error_ns);
	STATE(fragi_timeline_drift_ns(rate, since_ns));
}

/* By a counter of 2.5 GHz. */
static void stamps(void)
{
	struct fragi_interval interval = {.first.stamp = 100000};
	const int64_t beside = either(NEAR(10, 5000, 9000));
	const uint64_t stamp = interval.first.stamp + (uint64_t)beside;
	uint64_t numbers[3];

	draw_numbers(numbers, FRAG_COUNT_OF(numbers), 9000);
	interval.first.ns = either(numbers[0]);
	interval.last.ns = interval.first.ns + either(numbers[1]);
	interval.last.stamp = interval.first.stamp + draw(3) * numbers[2];
	STATE(fragi_stamp_diff_ns(interval.first.stamp, stamp));
	STATE(fragi_stamp_before(stamp, numbers[0]));
	STATE(fragi_moment_ns_at(&interval.first, stamp));
	STATE(fragi_interval_ns_at(&interval, stamp));
	STATE(fragi_interval_ns_at(&interval, interval.last.stamp));
	STATE(fragi_moment_stamp_at(&interval.first, beside));
}

static const struct {
	const char *name;
	void (*draws)(void);
} parts[] = {{"histograms", histograms}, {"windows", windows}, {"spins", spins},
	     {"shares", shares},         {"blames", blames},   {"timelines", timelines},
	     {"stamps", stamps}};

Test(arithmetic, sums_are_as_recorded)
{
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	fragi_stamp_ns_per_tick_q56 = (UINT64_C(1) << 56) * 2 / 5;
	fragi_stamp_ticks_per_ns_q32 = (UINT64_C(1) << 32) * 5 / 2;
	for (size_t p = 0; p < FRAG_COUNT_OF(parts); p++) {
		draw_from(p + 1);
		state_begin();
		fprintf(out, "%s:", parts[p].name);
		for (int i = 0; i < DRAWS * SUMS; i++) {
			parts[p].draws();
			if ((i + 1) % DRAWS == 0)
				fprintf(out, " %016" PRIx64, state_sum);
		}
		fputc('\n', out);
	}
	fclose(out);
	expected_compare("texts/sums", text);
	free(text);
}
