// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "draw.h"

#include <base/blame.h>
#include <track/summary.h>

/* Drawn summaries, as table and as JSON, compared with a recorded text. */
#define SUMMARIES 400
#define SUMMARIES_SHOWN 24
#define FRAGMENTS 3
#define OPS 3
#define FLOWS 4

static struct fragi_summary summary;
static struct fragi_summary_fragment fragments[FRAGMENTS];
static struct fragi_summary_operator ops[FRAGMENTS][OPS];
static struct fragi_summary_flow flows[FLOWS];
static const struct fragi_late_place places[] = {{"f.tx", "f.rx", "w1", {0, 3, 1}},
						 {NULL, "f.rx", NULL, {7}},
						 {"f.tx", "g.rx", NULL, {1, 2, 3, 4, 5}}};

/* Often nothing, one, or much. */
static uint64_t count(void)
{
	static const uint64_t counts[] = {0, 0, 0, 1, 2, 12, 999, 1000, 1001, 123456, 987654321};

	return DRAW_OF(counts);
}

static uint64_t ns(void)
{
	static const uint64_t times[] = {0,       1,       999,      1000,      15000,
					 1499999, 1500000, 33000000, 999999999, 61000000000};

	return DRAW_OF(times);
}

static struct fragi_quantiles quantiles(void)
{
	struct fragi_quantiles q = {
		.count = count(), .p50 = ns(), .p99 = ns(), .p999 = ns(), .max = ns()};

	q.error_ns = draw_percent(30) ? ns() : 0;
	q.total_ns = ns();
	return q;
}

static void draw_operator(struct fragi_summary_operator *op)
{
	static const char *const names[] = {"tx", "detect", "rx", "a_rather_long_name"},
				 *const types[] = {"ping_tx", "t", NULL};

	*op = (struct fragi_summary_operator){.name = DRAW_OF(names),
					      .type = DRAW_OF(types),
					      .ticks = count(),
					      .compute = quantiles(),
					      .time_ns = ns(),
					      .waiting_ns = ns(),
					      .predicted_rate_mhz = draw_percent(30) ? count() : 0,
					      .budget_ns = draw_percent(30) ? ns() : 0,
					      .late_places = places,
					      .late_place_count = draw_percent(25) ? draw(4) : 0};
	for (int i = 0; i < FRAGI_OP_COUNTERS; i++)
		op->counters[i] = draw_percent(25) ? count() : 0;
	if (op->deadline_misses + op->path_misses == 0) /* then nothing was late */
		memset(op->counters, 0, sizeof(op->counters));
	if (draw_percent(20))
		op->realtime = (struct fragi_realtime){(enum fragi_sched_policy)draw(5),
						       1 + draw(99), ns(), ns(), ns()};
}

static void draw_flow(struct fragi_summary_flow *flow)
{
	static const char *const ends[] = {"f.tx.out", "g.detect.in", "h.rx.in", NULL},
				 *const edges[] = {"inproc", "shm", "ucx", NULL},
				 *const details[] = {NULL, "ucx tcp lo", "shm"},
				 *const because[] = {NULL, NULL, NULL, "fraghost 7 crashed"},
				 *const reasons[] = {NULL, NULL, "clocks differ"},
				 *const policies[] = {"block", "pop", NULL};

	*flow = (struct fragi_summary_flow){.from = DRAW_OF(ends),
					    .to = DRAW_OF(ends),
					    .edge = DRAW_OF(edges),
					    .edge_detail = DRAW_OF(details),
					    .encrypted = draw_percent(30),
					    .capacity = draw(9),
					    .policy = DRAW_OF(policies),
					    .lost = draw_percent(20) ? count() : 0,
					    .in_flight = draw_percent(20) ? count() : 0,
					    .lost_because = DRAW_OF(because),
					    .exact = draw_percent(70),
					    .latency = quantiles(),
					    .latency_reason = DRAW_OF(reasons)};
	for (size_t i = 0; i < FRAGI_COUNTERS; i++)
		flow->counters[i] = draw_percent(40) ? count() : 0;
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		flow->dropped[i] = draw_percent(12) ? count() : 0;
	flow->sent_at_least = count();
	flow->delivered_at_least = count();
	flow->lost_at_least = count();
	flow->sent_at_most = draw_percent(30) ? FRAGI_SUMMARY_OPEN : count();
	flow->delivered_at_most = draw_percent(30) ? FRAGI_SUMMARY_OPEN : count();
}

static void draw_fragment(uint32_t i)
{
	static const char *const names[FRAGMENTS] = {"f", "g", "h"},
				 *const workers[] = {"w1", "w2", NULL},
				 *const states[] = {"running", "done", "lost", "failed"};

	fragments[i] = (struct fragi_summary_fragment){.name = names[i],
						       .worker = DRAW_OF(workers),
						       .host_pid = draw(2) * 4711,
						       .state = DRAW_OF(states),
						       .epoch = draw(4),
						       .restarts = draw(3),
						       .operators = ops[i],
						       .operator_count = draw(OPS + 1)};
	for (size_t k = 0; k < OPS; k++)
		draw_operator(&ops[i][k]);
}

static void draw_summary(void)
{
	static const char *const sentences[] = {NULL, "it broke", "he said \"no\"\\\n\x01"},
				 *const places_of[] = {NULL, "f.tx"}, *const at[] = {NULL, "w1"};

	summary = (struct fragi_summary){
		.application = draw_percent(90) ? "app" : NULL,
		.result = (enum fragi_summary_result)draw(3),
		.exit_code = (int)draw(8),
		.started_unix_ns = draw_percent(80) ? INT64_C(1700000000123456789) : 0,
		.first_message_ns = (int64_t)ns(),
		.duration_ns = (int64_t)ns(),
		.shutdown_ns = (int64_t)ns(),
		.fragments = fragments,
		.fragment_count = draw(FRAGMENTS + 1),
		.flows = flows,
		.flow_count = draw(FLOWS + 1)};
	if (summary.result == FRAGI_SUMMARY_FAILED)
		summary.failure = (struct fragi_summary_failure){(enum fragi_failure)(1 + draw(12)),
								 DRAW_OF(sentences),
								 DRAW_OF(places_of), DRAW_OF(at)};
	for (uint32_t i = 0; i < FRAGMENTS; i++)
		draw_fragment(i);
	for (uint32_t i = 0; i < FLOWS; i++)
		draw_flow(&flows[i]);
}

Test(drawn_summaries, are_as_they_were)
{
	char *all, *text;
	size_t size;
	FILE *recorded = open_memstream(&all, &size), *out;

	setenv("TZ", "UTC", 1);
	for (uint32_t seed = 1; seed <= SUMMARIES; seed++) {
		draw_from(seed);
		draw_summary();
		out = open_memstream(&text, &size);
		fprintf(out, "summary %u\n", seed);
		cr_assert_eq(fragi_summary_print_table(&summary, out), 0);
		cr_assert_eq(fragi_summary_print_json(&summary, out), 0);
		for (size_t i = 0; i < summary.flow_count; i++)
			fprintf(out, "flow %zu %s\n", i,
				fragi_summary_flow_balances(&flows[i]) ? "balances"
								       : "does not balance");
		fclose(out);
		draw_life_ends(recorded, seed, text, seed <= SUMMARIES_SHOWN);
	}
	fclose(recorded);
	expected_compare("lives/summaries", all);
	free(all);
}
