// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* What can be seen of an application while it runs; driver_world.h checks that it balances. */

static const struct drv_app *the_app(const struct world *w)
{
	cr_assert_eq(w->core->app_count, 1);
	return w->core->apps[0];
}

/* Its texts are in the arena of the last step. */
static struct fragi_summary_flow flow_of(struct world *w, size_t index)
{
	struct fragi_summary_flow row;

	cr_assert_lt(index, drv_view_flow_count(the_app(w)));
	cr_assert_eq(drv_view_flow(the_app(w), index, &w->actions.arena, &row), 0);
	return row;
}

static void assert_flow(struct world *w, uint64_t sent, uint64_t delivered, uint64_t lost,
			uint64_t in_flight, bool exact)
{
	const struct fragi_summary_flow row = flow_of(w, 0);

	cr_expect_eq(row.sent, sent, "%llu", (unsigned long long)row.sent);
	cr_expect_eq(row.delivered, delivered, "%llu", (unsigned long long)row.delivered);
	cr_expect_eq(row.lost, lost, "%llu", (unsigned long long)row.lost);
	cr_expect_eq(row.in_flight, in_flight, "%llu", (unsigned long long)row.in_flight);
	cr_expect_eq(row.exact, exact);
	cr_expect_eq(row.sent_at_most == FRAGI_SUMMARY_OPEN, !exact);
	cr_expect_eq(row.lost_because != NULL, lost > 0);
}

static const char *busy_of(struct world *w, size_t host)
{
	const char *busy;

	w->core->actions = &w->actions; /* as in a step */
	busy = drv_view_busy(&the_app(w)->hosts[host]);
	w->core->actions = NULL;
	return busy;
}

static struct fragi_summary_fragment fragment_of(const struct world *w, uint32_t index)
{
	struct fragi_summary_fragment row;

	drv_view_fragment(the_app(w), index, &row);
	return row;
}

/* The row of the only flow as the receiver counts it. */
static void receiver_counts(struct world *w, bool final, uint64_t arrived, uint64_t delivered)
{
	struct fw_message message = of_host(FW_HOST_STATS, 2);
	struct fragi_flow_stats row = {.arrived = arrived, .delivered = delivered};
	struct fw_op_stats op = {.ticks = delivered};

	message.stats = (struct fw_host_stats){
		.final = final, .ops = &op, .op_count = 1, .flows = &row, .flow_count = 1};
	say(w, 2, &message);
}

static void runs_again(struct world *w, uint64_t epoch)
{
	const struct fw_message *m = must_take(w, 2, FW_HOST_CREATE);
	cr_assert_eq(m->epoch, epoch);
	speaking_epoch[2] = epoch;
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
}

WORLD_TEST(driver_view, nothing_is_seen_before_it_is_known, world_init)
{
	struct drv_view_operator op;
	struct drv_view_at at = {0};

	app(w, two_fragments);
	cr_expect_eq(drv_view_flow_count(the_app(w)), 0);
	cr_expect_not(drv_view_operator(the_app(w), &at, &op));
	cr_expect_str_eq(fragment_of(w, 1).state, "waiting");
	both_come(w);
	say_prepared(w, 2, 2, "f2", false);
	cr_expect_eq(drv_view_flow_count(the_app(w)), 0, "f1 has not answered yet");
	cr_expect_str_eq(fragment_of(w, 1).state, "prepared");
	cr_expect_eq(fragment_of(w, 0).operator_count, 0);
	cr_expect_eq(fragment_of(w, 1).operator_count, 1);
	cr_expect_eq(fragment_of(w, 1).host_pid, 102);
	at = (struct drv_view_at){0};
	cr_assert(drv_view_operator(the_app(w), &at, &op));
	cr_expect_eq(op.fragment, 1, "that of f1 is not known yet");
	cr_expect_str_eq(op.row.name, "rx");
	cr_expect_not(drv_view_operator(the_app(w), &at, &op));
	say_prepared(w, 1, 1, "f1", true);
	cr_expect_eq(drv_view_flow_count(the_app(w)), 1);
	cr_expect_str_eq(flow_of(w, 0).from, "f1.tx.out");
	cr_expect_str_eq(flow_of(w, 0).to, "f2.rx.in");
	assert_flow(w, 0, 0, 0, 0, true);
}

WORLD_TEST(driver_view, while_it_runs_its_counts_are_those_of_the_last_reports, world_init)
{
	struct fw_application_row row;

	to_running(w);
	assert_flow(w, 0, 0, 0, 0, true);
	cr_expect_str_eq(fragment_of(w, 0).state, "running");
	say_stats(w, 1, 1, false, 20, 0);
	assert_flow(w, 20, 0, 0, 20, true);
	receiver_counts(w, false, 15, 13);
	assert_flow(w, 20, 13, 0, 7, true);
	receiver_counts(w, false, 31, 29); /* it reports later than the sender */
	assert_flow(w, 31, 29, 0, 2, true);
	drv_view_application(the_app(w), &row);
	cr_expect_str_eq(row.state, "running");
	cr_expect_eq(row.delivered, 29);
	say_stats(w, 1, 1, false, 33, 0);
	assert_flow(w, 33, 29, 0, 4, true);
}

WORLD_TEST(driver_view, what_waited_in_a_host_that_died_is_lost_at_once, NULL)
{
	two_run(w, receiver_restarts);
	say_stats(w, 1, 1, false, 20, 0);
	receiver_counts(w, true, 15, 12); /* 3 wait there, and 5 are on the way */
	assert_flow(w, 20, 12, 0, 8, true);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	assert_flow(w, 20, 12, 3, 5, true);
	cr_expect_str_eq(flow_of(w, 0).lost_because, RX_CRASH);
	cr_expect_eq(flow_of(w, 0).lost_at_least, 3);
	runs_again(w, 2);
	assert_flow(w, 20, 12, 3, 5, true);
	cr_expect_eq(fragment_of(w, 1).restarts, 1);
	cr_expect_eq(fragment_of(w, 1).epoch, 2);
	cr_expect_str_eq(fragment_of(w, 1).state, "running");
	receiver_counts(w, false, 4, 2); /* counts from 0 */
	assert_flow(w, 20, 14, 3, 3, true);
	cr_expect_eq(drv_view_delivered(the_app(w)), 14);
	receiver_counts(w, true, 4, 3);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	assert_flow(w, 20, 15, 4, 1, true);
}

Test(driver_view, counts_that_are_missing_are_not_assumed)
{
	for (int reported = 0; reported < 2; reported++) {
		struct world w;

		two_run(&w, receiver_restarts);
		say_stats(&w, 1, 1, false, 20, 0);
		if (reported)
			receiver_counts(&w, false, 15, 12);
		say_exit(&w, 2, 2, 139, 11, RX_CRASH); /* without its last counts */
		assert_flow(&w, 20, reported ? 12 : 0, 0, reported ? 8 : 20, false);
		runs_again(&w, 2);
		receiver_counts(&w, false, 2, 2);
		assert_flow(&w, 20, reported ? 14 : 2, 0, reported ? 6 : 18, false);
		world_fini(&w);
	}
}

WORLD_TEST(driver_view, a_lost_worker_leaves_what_was_last_reported, world_init)
{
	to_running(w);
	say_stats(w, 1, 1, false, 20, 0);
	receiver_counts(w, false, 15, 12);
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	cr_expect_str_eq(fragment_of(w, 1).state, "lost");
	cr_expect_str_eq(fragment_of(w, 0).state, "running");
	assert_flow(w, 20, 12, 0, 8, false);
	say_stats(w, 1, 1, true, 22, 0);
	assert_flow(w, 22, 12, 0, 10, false);
	say_exit(w, 1, 1, 137, 9, "");
	assert_has(w->json, "\"sent\": 22, \"delivered\": 18");
	assert_has(w->json, "\"lost\": 4, \"in_flight\": 0, \"exact\": false");
}

WORLD_TEST(driver_view, counts_that_were_overwritten_are_not_used, NULL)
{
	two_run(w, receiver_restarts);
	say_stats(w, 1, 1, false, 20, 0);
	receiver_counts(w, false, 15, 12);
	receiver_counts(w, false, 15, 11);
	assert_has(w->log,
		   "the counts of f2 on worker b contradict each other or have become less");
	assert_flow(w, 20, 0, 0, 20, false);
	receiver_counts(w, false, 16, 13);
	assert_flow(w, 20, 0, 0, 20, false);
	receiver_counts(w, true, 16, 14);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	runs_again(w, 2);
	receiver_counts(w, false, 3, 3); /* of another page, which is believed */
	assert_flow(w, 20, 3, 0, 17, false);
}

/* f1 and f2 run in one host with a flow between them, f3 in another; the first one is restarted. */
static void say_tables(struct world *w)
{
	struct fw_address address = {"ucx", "address", 7};
	struct fw_message prepared = of_host(FW_HOST_PREPARED, 1);
	struct fw_port out = {.name = "out", .type = "m", .dir = FRAG_OUT, .has_codec = true};
	struct fw_port in = {.name = "in", .type = "m", .dir = FRAG_IN, .has_codec = true},
		       both[] = {in, out};
	struct fw_op first[] = {{.name = "tx", .type = "t", .ports = &out, .port_count = 1},
				{.name = "alone", .type = "u"}};
	struct fw_op mid = {.name = "mid", .type = "t", .ports = both, .port_count = 2};
	struct fw_op rx = {.name = "rx", .type = "t", .ports = &in, .port_count = 1};
	struct fw_fragment tables[] = {{"f1", first, 2}, {"f2", &mid, 1}}, last = {"f3", &rx, 1};
	struct fw_inner_flow inner = {.to_fragment = 1, .capacity = 4, .policy = FRAG_POLICY_BLOCK};

	prepared.prepared = (struct fw_host_prepared){.ok = true,
						      .fragments = tables,
						      .fragment_count = 2,
						      .flows = &inner,
						      .flow_count = 1,
						      .addresses = &address,
						      .address_count = 1};
	say(w, 1, &prepared);
	if (speaking_epoch[1] != 0)
		return;
	prepared.host = 2;
	prepared.prepared.fragments = &last;
	prepared.prepared.fragment_count = 1;
	prepared.prepared.flow_count = 0;
	say(w, 2, &prepared);
}

static void say_counts(struct world *w, bool final, const uint64_t *ticks, uint64_t sent,
		       uint64_t delivered)
{
	struct fw_message message = of_host(FW_HOST_STATS, 1);
	struct fragi_flow_stats rows[] = {{.sent = sent, .delivered = delivered}, {.sent = 6}};
	struct fw_op_stats ops[] = {{.ticks = ticks[0], .compute.count = ticks[0]},
				    {.ticks = ticks[1]},
				    {.ticks = ticks[2], .running = true, .deadline_misses = 2}};

	message.stats = (struct fw_host_stats){
		.final = final, .ops = ops, .op_count = 3, .flows = rows, .flow_count = 2};
	say(w, 1, &message);
}

static void assert_ticks(const struct world *w, const uint64_t *ticks)
{
	static const char *const names[] = {"tx", "alone", "mid", "rx"};
	static const uint32_t fragments[] = {0, 0, 1, 2}, numbers[] = {0, 1, 0, 0};
	struct drv_view_at at = {0}, again;
	struct drv_view_operator op;

	for (int i = 0; i < 4; i++) {
		again = at;
		cr_assert(drv_view_operator(the_app(w), &at, &op));
		cr_expect_str_eq(op.row.name, names[i]);
		cr_expect_eq(op.fragment, fragments[i]);
		cr_expect_eq(op.number, numbers[i]);
		cr_expect_eq(op.row.ticks, ticks[i], "%s: %llu", names[i],
			     (unsigned long long)op.row.ticks);
		cr_assert(drv_view_operator(the_app(w), &again, &op));
		cr_expect_str_eq(op.row.name, names[i], "a visitor goes on where it was");
	}
	cr_expect_not(drv_view_operator(the_app(w), &at, &op));
	cr_expect_not(drv_view_operator(the_app(w), &at, &op));
}

WORLD_TEST(driver_view, operators_and_flows_of_a_host_are_sums_of_its_processes, NULL)
{
	struct fragi_summary_flow inner;
	const struct fw_message *m;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w,
	    "frag: 1\napplication: app\nfragments:\n"
	    "  f1: {operators: {tx: {type: t}, alone: {type: u}}, on_failure: {policy: restart, intensity: 2, period: 60s, backoff: 1s}}\n"
	    "  f2: {operators: {mid: {type: t}}, on_failure: {policy: restart, intensity: 2, period: 60s, backoff: 1s}}\n"
	    "  f3: {operators: {rx: {type: t}}}\n"
	    "flows: [{from: f1.tx.out, to: f2.mid.in, capacity: 4, policy: block}, f2.mid.out -> f3.rx.in]\n");
	hello(w, 2, "b", "f3");
	hello(w, 1, "a", NULL);
	say_tables(w);
	both_run(w);
	forget_requests(w, 2);
	cr_expect_null(busy_of(w, 0));
	say_counts(w, false, (uint64_t[]){9, 2, 7}, 9, 7);
	assert_ticks(w, (uint64_t[]){9, 2, 7, 0});
	cr_expect_str_eq(busy_of(w, 0), "f2.mid");
	cr_expect_null(busy_of(w, 1));
	inner = flow_of(w, 0);
	cr_expect(inner.sent == 9 && inner.delivered == 7 && inner.in_flight == 2);
	cr_expect(inner.exact && inner.lost == 0);
	cr_expect_str_eq(inner.edge, "inproc");
	say_counts(w, true, (uint64_t[]){12, 3, 8}, 12, 8);
	say_exit(w, 1, 1, 139, 11, RX_CRASH);
	inner = flow_of(w, 0);
	cr_expect(inner.sent == 12 && inner.delivered == 8 && inner.lost == 4, "%llu",
		  (unsigned long long)inner.lost);
	cr_expect(inner.exact && inner.in_flight == 0);
	assert_ticks(w, (uint64_t[]){12, 3, 8, 0});
	m = must_take(w, 1, FW_HOST_CREATE);
	speaking_epoch[1] = m->epoch;
	say_tables(w);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	say_counts(w, false, (uint64_t[]){5, 1, 3}, 5, 3);
	assert_ticks(w, (uint64_t[]){17, 4, 11, 0});
	inner = flow_of(w, 0);
	cr_expect(inner.sent == 17 && inner.delivered == 11 && inner.lost == 4);
	cr_expect(inner.exact && inner.in_flight == 2);
}

/* A host of an older frag does not report when it counted. */
WORLD_TEST(driver_view, counts_without_a_time_are_of_when_they_came, world_init)
{
	const struct drv_process *process;

	to_running(w);
	process = &the_app(w)->hosts[0].now;
	pass_beating(w, SECOND, 1, 2);
	for (uint64_t at_ns = 0; at_ns <= 2; at_ns++) {
		struct fw_message message = of_host(FW_HOST_STATS, 1);
		struct fragi_flow_stats row = {.sent = 5};
		struct fw_op_stats op = {.ticks = 5};

		message.stats = (struct fw_host_stats){.ops = &op,
						       .op_count = 1,
						       .flows = &row,
						       .flow_count = 1,
						       .facts.at_ns = at_ns};
		say(w, 1, &message);
		cr_expect_eq(process->counted_ns, at_ns != 0 ? (int64_t)at_ns : w->core->real_ns,
			     "%d", (int)at_ns);
	}
	cr_expect_gt(w->core->real_ns, 2);
}
