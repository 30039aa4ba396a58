// SPDX-License-Identifier: Apache-2.0
#include "look_world.h"

#include <driverd/core/view/look.h>
#include <track/cause.h>

static void expect_near(uint64_t ns, int64_t expected_ns)
{
	cr_expect((int64_t)ns > expected_ns - MS && (int64_t)ns < expected_ns + MS, "%llu",
		  (unsigned long long)ns);
}

static void expect_whole(const struct fw_looked *window)
{
	for (uint32_t i = 0; i < window->look.operator_count; i++) {
		uint64_t sum = 0;

		for (int use = 0; use < FRAGI_USES; use++)
			sum += window->look.operators[i].use_ns[use];
		cr_expect_eq(sum, window->look.window_ns);
	}
}

static bool texts_are_same(const char *a, const char *b)
{
	return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

/* What is sent is what is found in the tables that are sent with it. */
static void expect_cause(const struct fw_looked *window)
{
	struct fragi_arena arena = {0};
	struct fragi_cause cause;

	cr_assert_eq(fragi_cause_find(&window->look, &arena, &cause), 0);
	cr_expect_eq(window->cause, cause.kind);
	cr_expect_eq(window->op, cause.op);
	cr_expect_eq(window->flow, cause.flow);
	cr_expect_eq(window->host, cause.host);
	cr_expect(texts_are_same(window->look.cause, cause.sentence), "%s", window->look.cause);
	cr_expect(texts_are_same(window->help, cause.help), "%s", window->help);
	cr_assert_eq(window->chain_count, cause.chain_count);
	cr_assert_gt(window->chain_count, 0);
	for (uint32_t i = 0; i < cause.chain_count; i++)
		cr_expect_eq(window->chain[i].op, cause.chain[i].op);
	fragi_arena_fini(&arena);
}

/* Nothing is measured of what waits, and why it waits is known: that is the cause. */
WORLD_TEST(driver_look, the_cause_of_what_waits_is_what_it_waits_for, world_init)
{
	app(w, TWO_FRAGMENTS(", requirements: {gpu: 1}", ""));
	look(w, CLIENT, "app", 0, false);
	pass_beating(w, SECOND, CLIENT, CLIENT);
	cr_expect_str_eq(looked(w, CLIENT)->look.cause, "it waits for f1, f2");
	hello_by(w, 1, "a", NULL, (struct fw_hello){.node = "n"});
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_str_eq(
		looked(w, CLIENT)->look.cause,
		"it waits for f1: f1 wants 1 gpu, and no worker has so much; worker a has 0");
}

WORLD_TEST(driver_look, a_window_is_what_was_counted_in_it, NULL)
{
	const struct fw_looked *window;
	const struct fw_message *m;

	two_run(w, two_fragments);
	report(w, 1, false, (struct report){7 * SECOND, 5, 0, 7, 0, 100, 100});
	report(w, 2, false, (struct report){3 * SECOND, 5, 7, 0, 0, 90, 90});
	look(w, CLIENT, "app", 0, false);
	for (uint32_t host = 1; host <= 2; host++) {
		m = must_take(w, host, FW_HOST_LOOK);
		cr_expect_eq(m->host, host);
		cr_expect_eq(m->epoch, 1);
		cr_expect_eq(m->host_look.for_ns, 4 * SECOND);
	}
	cr_expect_null(taken(w, CLIENT, FW_LOOKED), "its window has only begun");
	/* 800 ms and 1,250 ms, of which less was seen */
	report(w, 1, false,
	       (struct report){7 * SECOND + 800 * MS, 200 * MS + 5, 0, 399 * MS + 7, 200 * MS, 140,
			       140});
	report(w, 2, false,
	       (struct report){4 * SECOND + 250 * MS, 1000 * MS + 5, 250 * MS + 7, 0, 0, 131, 130});
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	cr_expect_str_eq(window->look.application, "app");
	cr_expect_str_eq(window->look.state, "running");
	cr_expect_eq(window->look.window_ns, SECOND);
	cr_expect(window->is_last);
	cr_assert_eq(window->look.operator_count, 2);
	expect_whole(window);
	cr_expect_str_eq(window->look.operators[0].name, "f1.tx");
	expect_near(window->look.operators[0].use_ns[FRAGI_USE_BUSY], 250 * MS);
	expect_near(window->look.operators[0].use_ns[FRAGI_USE_ROOM], 500 * MS);
	expect_near(window->look.operators[0].use_ns[FRAGI_USE_MEMORY], 250 * MS);
	cr_expect_str_eq(window->look.operators[0].pool, "frames");
	cr_expect_null(window->look.operators[1].pool);
	expect_near(window->look.operators[1].use_ns[FRAGI_USE_BUSY], 800 * MS);
	expect_near(window->look.operators[1].use_ns[FRAGI_USE_INPUT], 200 * MS);
	cr_expect_eq(window->look.operators[0].room_flow, 0);
	cr_expect_eq(window->look.operators[0].input_flow, FRAGI_LOOK_NONE);
	cr_expect_eq(window->look.operators[1].input_flow, 0);
	cr_expect_eq(window->look.operators[0].ticks, 50);
	cr_expect_eq(window->look.operators[1].ticks, 33, "41 in 1,250 ms");
	cr_assert_eq(window->look.flow_count, 1);
	cr_expect_eq(window->look.flows[0].sent, 50);
	cr_expect_eq(window->look.flows[0].delivered, 32);
	cr_expect_eq(window->look.flows[0].sent_sum, 140);
	cr_expect_eq(window->look.flows[0].depth, 10);
	cr_expect_eq(window->look.hosts[0].cpu_ns, 250 * MS);
	cr_expect_str_eq(window->look.workers[1].name, "b");
	cr_expect_eq(window->look.workers[1].gpus, 2);
	cr_expect_eq(window->look.workers[1].gpu_busy_permille, 370);
	expect_cause(window);
	/* The hosts have not reported since: it shows that window again. */
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	expect_whole(window);
	cr_expect_eq(window->look.flows[0].sent, 50);
}

/* Nothing of a process was read while nobody looked: `explain` must not call it idle. */
WORLD_TEST(driver_look, the_first_window_knows_what_a_host_used_since_its_first_facts, NULL)
{
	const struct fw_looked *window;

	two_run(w, two_fragments);
	report(w, 1, false, (struct report){7 * SECOND, 0, 0, 7, 0, 100, 100});
	look(w, CLIENT, "app", 0, false);
	report(w, 1, false, (struct report){7 * SECOND + 200 * MS, 700 * MS, 0, 7, 0, 110, 110});
	report(w, 1, false, (struct report){7 * SECOND + 300 * MS, 790 * MS, 0, 7, 0, 115, 115});
	report(w, 1, false, (struct report){7 * SECOND + 600 * MS, 900 * MS, 0, 7, 0, 120, 120});
	/* This one has not reported before at all. */
	report(w, 2, false, (struct report){3 * SECOND + 100 * MS, 50 * MS, 0, 0, 0, 90, 90});
	report(w, 2, false, (struct report){3 * SECOND + 500 * MS, 150 * MS, 0, 0, 0, 95, 95});
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	cr_expect_eq(window->look.hosts[0].cpu_ns, 500 * MS);
	cr_expect_eq(window->look.hosts[1].cpu_ns, 250 * MS);
	report(w, 1, false, (struct report){8 * SECOND + 850 * MS, 1025 * MS, 0, 7, 0, 150, 150});
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.hosts[0].cpu_ns, 100 * MS);
}

/* Its tables grow, although there are no operators yet. */
WORLD_TEST(driver_look, an_application_gets_its_hosts_while_somebody_looks, world_init)
{
	app(w, two_fragments);
	look(w, CLIENT, "app", 0, false);
	pass_beating(w, SECOND, CLIENT, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.host_count, 0);
	both_come(w);
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.host_count, 2);
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_str_eq(looked(w, CLIENT)->look.hosts[1].name, "f2");
}

WORLD_TEST(driver_look, a_restart_is_time_in_which_nothing_ran, NULL)
{
	const struct fragi_look_operator *op;
	const struct fw_looked *window;

	two_run(w, receiver_restarts);
	look(w, CLIENT, "", SECOND, false);
	report(w, 2, false, (struct report){3 * SECOND, 5, 7, 0, 0, 90, 90});
	pass_beating(w, SECOND, 1, CLIENT);
	(void)looked(w, CLIENT);
	report(w, 2, true, (struct report){3 * SECOND + 500 * MS, 300 * MS + 5, 7, 0, 0, 97, 97});
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	expect_whole(window);
	cr_assert_not_null(window->look.hosts[1].suspended_because);
	assert_has(window->look.hosts[1].suspended_because, "SIGSEGV");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE));
	(void)looked(w, CLIENT);
	speaking_epoch[2] = 2;
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	report(w, 2, false, (struct report){9 * SECOND, 100 * MS, 200 * MS, 0, 0, 4, 4});
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	expect_whole(window);
	op = &window->look.operators[1];
	cr_expect_eq(op->ticks, 4, "it counts from 0");
	cr_expect_eq(op->use_ns[FRAGI_USE_BUSY], 100 * MS);
	cr_expect_eq(op->use_ns[FRAGI_USE_INPUT], 200 * MS);
	cr_expect_eq(op->use_ns[FRAGI_USE_SUSPENDED], 700 * MS);
	cr_expect_null(window->look.hosts[1].suspended_because);
	cr_expect_eq(window->look.hosts[1].restarts, 1);
}

/* One report of the receiver, with or without bars. */
static void report_bars(struct world *w, uint64_t ticks, uint64_t bar, uint64_t total_ns)
{
	struct fw_message message = of_host(FW_HOST_STATS, 2);
	struct fw_op_stats op = {
		.ticks = ticks,
		.deadline_misses = ticks / 2,
		.late_queue = ticks / 9,
		.late_clock = ticks / 30,
		.use_room = 3 * ticks,
		.compute = {.count = ticks, .bars = {0, bar}, .total_ns = total_ns}};
	struct fragi_flow_stats row = {.arrived = ticks + 7,
				       .delivered = ticks,
				       .rx_dropped = {[FRAGI_DROP_LATE] = 5},
				       .latency = op.compute};

	message.stats =
		(struct fw_host_stats){.ops = &op, .op_count = 1, .flows = &row, .flow_count = 1};
	message.stats.facts.at_ns = (uint64_t)w->core->real_ns;
	say(w, 2, &message);
}

static void expect_no_quantiles(const struct fragi_quantiles *of)
{
	cr_expect(of->p50 == 0 && of->p99 == 0 && of->p999 == 0 && of->max == 0, "%llu",
		  (unsigned long long)of->max);
}

/* Numbers of the window are not sent. */
static void expect_no_window(const struct fragi_look *look)
{
	for (uint32_t i = 0; i < look->operator_count; i++) {
		const struct fragi_look_operator *op = &look->operators[i];

		for (int use = 0; use < FRAGI_USES; use++)
			cr_expect_eq(op->use_ns[use], 0);
		cr_expect(texts_are_same(op->type, NULL));
		cr_expect(texts_are_same(op->pool, NULL));
		cr_expect(op->ticks == 0 && op->budget_ns == 0 && op->period_ns == 0);
		expect_no_quantiles(&op->compute);
	}
	for (uint32_t i = 0; i < look->flow_count; i++) {
		const struct fragi_look_flow *flow = &look->flows[i];

		for (int reason = 0; reason < FRAGI_DROP_REASONS; reason++)
			cr_expect_eq(flow->dropped[reason], 0);
		cr_expect(texts_are_same(flow->edge, NULL));
		cr_expect(texts_are_same(flow->policy, NULL));
		cr_expect(flow->sent == 0 && flow->delivered == 0 && flow->bytes == 0 &&
			  flow->lost == 0 && flow->full_ns == 0);
		expect_no_quantiles(&flow->latency);
	}
}

WORLD_TEST(driver_look, who_asks_at_once_gets_sums_that_never_become_less, NULL)
{
	const struct fw_looked *window;

	two_run(w, receiver_restarts);
	client_hello(w, CLIENT, "web");
	report(w, 1, false, (struct report){7 * SECOND, 5, 0, 7, 0, 100, 100});
	report_bars(w, 90, 80, 1234);
	look_at_once(w, 120 * SECOND, 10);
	cr_expect_eq(taken(w, 1, FW_HOST_LOOK)->host_look.for_ns, 120 * SECOND);
	window = looked(w, CLIENT);
	cr_expect(window->is_last);
	cr_expect_eq(window->look.window_ns, 0, "there was none before");
	cr_expect_eq(window->look.flows[0].sent_sum, 100);
	cr_expect_eq(window->look.flows[0].dropped_sums[FRAGI_DROP_LATE], 5);
	cr_expect_eq(window->look.operators[0].use_sums[FRAGI_USE_ROOM], 7);
	cr_expect_eq(window->look.operators[1].ticks_sum, 90);
	cr_expect_eq(window->look.operators[1].deadline_misses_sum, 45);
	cr_expect_eq(window->look.operators[1].late_sums[FRAGI_BLAME_QUEUE], 10);
	cr_expect_eq(window->look.operators[1].late_sums[FRAGI_BLAME_CLOCK], 3);
	cr_expect_eq(window->look.operators[1].compute.bars[1], 80);
	/* Nobody looked for some time: its bars are those that are known. */
	report_bars(w, 100, 0, 0);
	pass_beating(w, 20 * SECOND, 1, CLIENT);
	cr_expect_null(taken(w, CLIENT, FW_LOOKED), "it has not asked");
	look_at_once(w, 1000 * SECOND, 10);
	window = looked(w, CLIENT);
	cr_expect_eq(window->look.window_ns, 20 * SECOND, "since it asked before");
	cr_expect_eq(window->look.operators[1].ticks_sum, 100);
	cr_expect_eq(window->look.operators[1].compute.bars[1], 80);
	cr_expect_eq(window->look.flows[0].latency.bars[1], 80);
	cr_expect_eq(window->look.operators[1].ticks, 0, "the numbers of the window are not sent");
	expect_no_window(&window->look);
	/* A restart counts from 0, and the sums go on. */
	report_bars(w, 110, 95, 2000);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, CLIENT);
	speaking_epoch[2] = 2;
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	look_at_once(w, SECOND, 10);
	window = looked(w, CLIENT);
	cr_expect_eq(window->look.operators[1].ticks_sum, 110);
	cr_expect_eq(window->look.operators[1].compute.bars[1], 95);
	cr_expect_eq(window->look.flows[0].latency.total_ns, 2000);
	report_bars(w, 4, 3, 40);
	look_at_once(w, SECOND, 1);
	window = looked(w, CLIENT);
	cr_expect_eq(window->look.operator_count, 1, "as many as it asked for");
	cr_expect_eq(window->look.operators_left_out, 1);
	cr_expect_str_eq(window->look.operators[0].name, "f1.tx", "in the order of the graph");
	cr_expect_eq(window->look.flows[0].receiver, FRAGI_LOOK_NONE);
	cr_expect_eq(window->look.flows[0].delivered_sum, 114);
	cr_expect_eq(window->look.flows[0].dropped_sums[FRAGI_DROP_LATE], 10);
	cr_expect_eq(window->look.flows[0].latency.bars[1], 98);
	cr_expect_eq(window->look.flows[0].latency.total_ns, 2040);
}

/* What a host reports of its two pools. */
static void report_pools(struct world *w, uint32_t host, int64_t at_ns, uint64_t masks_ns,
			 uint64_t frames_ns)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);
	struct fragi_pool_stats pools[] = {{4, 4096, 1, 2, masks_ns}, {8, 512, 8, 0, frames_ns}};
	struct fw_op_stats op = {.use_memory = (uint64_t)at_ns};
	struct fragi_flow_stats row = {0};

	message.stats = (struct fw_host_stats){.ops = &op,
					       .op_count = 1,
					       .flows = &row,
					       .flow_count = 1,
					       .facts.at_ns = (uint64_t)at_ns,
					       .facts.cpu_ns = masks_ns + frames_ns,
					       .pools = pools,
					       .pool_count = 2};
	say(w, host, &message);
}

WORLD_TEST(driver_look, an_operator_waits_for_the_pool_that_is_empty_longest, NULL)
{
	static const char *const names[] = {"f1.masks", "f1.frames"};
	struct table table = table_of("f1", true);
	const struct fw_looked *window;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, two_fragments);
	both_come(w);
	table.pools = "frames, masks";
	table.pool_names = names;
	say_table(w, 1, 1, &table);
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
	report_pools(w, 1, 7 * SECOND, 900 * MS, 0);
	look(w, CLIENT, "app", 0, false);
	report_pools(w, 1, 8 * SECOND, 900 * MS + 300 * MS, 200 * MS);
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	cr_assert_eq(window->look.pool_count, 2);
	cr_expect_str_eq(window->look.pools[0].name, "f1.masks");
	cr_expect_eq(window->look.pools[0].host, 0);
	cr_expect_eq(window->look.pools[0].blocks, 4);
	cr_expect_eq(window->look.pools[0].block_bytes, 4096);
	cr_expect_eq(window->look.pools[0].used, 3);
	cr_expect_eq(window->look.pools[0].refused_sum, 2);
	expect_near(window->look.pools[0].empty_ns, 300 * MS);
	cr_expect_eq(window->look.pools[0].empty_sum_ns, 1200 * MS);
	cr_expect_eq(window->look.pools[1].used, 0);
	cr_expect_str_eq(window->look.operators[0].pool, "masks");
	report_pools(w, 1, 9 * SECOND, 1250 * MS, 300 * MS);
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_str_eq(looked(w, CLIENT)->look.operators[0].pool, "frames");
	report_pools(w, 1, 10 * SECOND, 1250 * MS, 300 * MS);
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_str_eq(looked(w, CLIENT)->look.operators[0].pool, "frames, masks",
			 "none was seen empty");
}

WORLD_TEST(driver_look, pools_and_processor_time_are_summed_over_processes, NULL)
{
	static const char *const names[] = {"f2.masks", "f2.frames"};
	struct table table = table_of("f2", false);
	const struct fw_looked *window;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, receiver_restarts);
	both_come(w);
	table.pool_names = names;
	say_prepared(w, 1, 1, "f1", true);
	say_table(w, 2, 2, &table);
	both_run(w);
	report_pools(w, 2, 7 * SECOND, 900 * MS, 30 * MS);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, 1);
	client_hello(w, CLIENT, "web");
	look_at_once(w, 120 * SECOND, 10);
	window = looked(w, CLIENT);
	cr_expect_eq(window->look.hosts[1].cpu_sum_ns, 930 * MS, "no process runs");
	cr_expect_eq(window->look.pool_count, 0);
	speaking_epoch[2] = 2;
	say_table(w, 2, 2, &table);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	report_pools(w, 2, 9 * SECOND, 5 * MS, 0);
	look_at_once(w, 120 * SECOND, 10);
	window = looked(w, CLIENT);
	cr_assert_eq(window->look.pool_count, 2);
	cr_expect_eq(window->look.pools[0].refused_sum, 4);
	cr_expect_eq(window->look.pools[0].empty_sum_ns, 905 * MS);
	cr_expect_eq(window->look.pools[1].empty_sum_ns, 30 * MS);
	cr_expect_eq(window->look.pools[1].refused_sum, 0);
	cr_expect_eq(window->look.hosts[1].cpu_sum_ns, 935 * MS);
}

/* What a host reports of three places at which messages were late, one of them that long ago. */
static void report_late(struct world *w, uint32_t host, uint64_t network, uint64_t queue)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);
	struct fw_late_counts lates[] = {
		{{0}},
		{{[FRAGI_BLAME_NETWORK] = network, [FRAGI_BLAME_QUEUE] = queue}},
		{{[FRAGI_BLAME_WINDOW] = 7}}};
	struct fw_op_stats op = {.path_misses = network + queue + 7,
				 .late_network = network,
				 .late_queue = queue,
				 .late_window = 7};
	struct fragi_flow_stats row = {0};

	message.stats = (struct fw_host_stats){.ops = &op,
					       .op_count = 1,
					       .flows = &row,
					       .flow_count = 1,
					       .lates = lates,
					       .late_count = 3};
	say(w, host, &message);
}

WORLD_TEST(driver_look, places_of_late_messages_are_summed_over_processes, NULL)
{
	struct fw_late_place places[] = {
		{0, 0, NULL, "f1.tx"}, {0, 0, "f1.tx", "f2.rx"}, {0, 0, NULL, "elsewhere.rx"}};
	struct table table = table_of("f2", false);
	const struct fragi_late_place *late;
	const struct fw_looked *window;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, receiver_restarts);
	both_come(w);
	table.late_places = places;
	table.late_place_count = 3;
	say_prepared(w, 1, 1, "f1", true);
	say_table(w, 2, 2, &table);
	both_run(w);
	report_late(w, 2, 3, 5);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, 1);
	client_hello(w, CLIENT, "web");
	speaking_epoch[2] = 2;
	say_table(w, 2, 2, &table);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	report_late(w, 2, 11, 0);
	look_at_once(w, 120 * SECOND, 10);
	window = looked(w, CLIENT);
	cr_expect_eq(window->look.operators[0].late_place_count, 0, "no path ends there");
	cr_assert_eq(window->look.operators[1].late_place_count, 2, "nothing was late at one");
	late = window->look.operators[1].late_places;
	cr_expect_str_eq(late[0].from, "f1.tx");
	cr_expect_str_eq(late[0].at, "f2.rx");
	cr_expect_str_eq(late[0].worker, window->look.hosts[1].worker);
	cr_expect_eq(late[0].late[FRAGI_BLAME_NETWORK], 3 + 11);
	cr_expect_eq(late[0].late[FRAGI_BLAME_QUEUE], 5);
	cr_expect_null(late[1].from);
	cr_expect_str_eq(late[1].at, "elsewhere.rx");
	cr_expect_null(late[1].worker, "the graph has no such fragment");
	cr_expect_eq(late[1].late[FRAGI_BLAME_WINDOW], 14);
	cr_expect_eq(window->look.operators[1].late_sums[FRAGI_BLAME_NETWORK], 14);
}

/* Those of a host come after those of the hosts before it. */
WORLD_TEST(driver_look, each_host_has_pools_of_its_own, NULL)
{
	static const char *const names[][2] = {{"f1.masks", "f1.frames"},
					       {"f2.masks", "f2.frames"}};
	static const int64_t grown_ns[] = {300 * MS, 200 * MS, 100 * MS, 50 * MS};
	struct table tables[] = {table_of("f1", true), table_of("f2", false)};
	const struct fw_looked *window;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, two_fragments);
	both_come(w);
	for (uint32_t i = 0; i < 2; i++) {
		tables[i].pool_names = names[i];
		say_table(w, i + 1, i + 1, &tables[i]);
	}
	both_run(w);
	for (uint32_t host = 1; host <= 2; host++)
		report_pools(w, host, 7 * SECOND, 900 * MS, 0);
	look(w, CLIENT, "app", 0, false);
	report_pools(w, 1, 8 * SECOND, 900 * MS + (uint64_t)grown_ns[0], (uint64_t)grown_ns[1]);
	report_pools(w, 2, 8 * SECOND, 900 * MS + (uint64_t)grown_ns[2], (uint64_t)grown_ns[3]);
	pass_beating(w, SECOND, 1, CLIENT);
	window = looked(w, CLIENT);
	cr_assert_eq(window->look.pool_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_expect_str_eq(window->look.pools[i].name, names[i / 2][i % 2]);
		cr_expect_eq(window->look.pools[i].host, i / 2);
		expect_near(window->look.pools[i].empty_ns, grown_ns[i]);
	}
}

#define OPS (FW_LOOK_ROWS_MAX + 3)
#define FLOWS (FW_LOOK_ROWS_MAX + 5)

static struct fragi_look_operator ops[OPS];
static struct fragi_look_flow flows[FLOWS];

/* How much the row of a table does; many do as much as others. */
static uint64_t load_of(uint32_t row)
{
	return row * 7919 % 97;
}

static struct fragi_look fill_tables(uint32_t op_count, uint32_t flow_count)
{
	for (uint32_t i = 0; i < op_count; i++)
		ops[i] = (struct fragi_look_operator){.host = i,
						      .use_ns[FRAGI_USE_BUSY] = load_of(i),
						      .input_flow = i % 3 ? i % flow_count
									  : FRAGI_LOOK_NONE,
						      .room_flow = (i + 1) % flow_count};
	for (uint32_t i = 0; i < flow_count; i++)
		flows[i] = (struct fragi_look_flow){.capacity = i,
						    .sent = load_of(i + 5),
						    .sender = i % op_count,
						    .receiver = (i + 1) % op_count};
	return (struct fragi_look){.operator_count = op_count, .flow_count = flow_count};
}

/* Where each row goes if so many are kept: the busiest ones, or the first ones. */
static void find_places(uint32_t count, uint32_t most, bool is_by_load, uint32_t first,
			uint32_t *places)
{
	uint32_t next = 0;

	for (uint32_t row = 0; row < count; row++) {
		const uint64_t own = load_of(row + first);
		uint32_t before = 0;

		for (uint32_t other = 0; other < count; other++)
			before += is_by_load && load_of(other + first) != own
					  ? load_of(other + first) > own
					  : other < row;
		places[row] = before < most ? next++ : FRAGI_LOOK_NONE;
	}
}

static void expect_index(uint32_t index, uint32_t was, const uint32_t *places)
{
	cr_assert_eq(index, was == FRAGI_LOOK_NONE ? was : places[was]);
}

/* Those that are left out are named by none of those that stay. */
static void expect_bound(uint32_t op_count, uint32_t flow_count, uint32_t rows)
{
	static uint32_t op_places[OPS], flow_places[FLOWS];
	const uint32_t most = rows != 0 ? rows : FW_LOOK_ROWS_MAX;
	struct fragi_arena arena = {0};
	struct fragi_look look = fill_tables(op_count, flow_count);

	cr_assert_eq(drv_look_bound(&look, ops, flows, rows, &arena), 0);
	find_places(op_count, most, rows == 0, 0, op_places);
	find_places(flow_count, most, rows == 0, 5, flow_places);
	cr_expect_eq(look.operator_count, op_count < most ? op_count : most);
	cr_expect_eq(look.flow_count, flow_count < most ? flow_count : most);
	cr_expect_eq(look.operators_left_out, op_count - look.operator_count);
	cr_expect_eq(look.flows_left_out, flow_count - look.flow_count);
	for (uint32_t i = 0; i < look.operator_count; i++) {
		const uint32_t row = ops[i].host;

		cr_assert_eq(op_places[row], i, "operator %u", row);
		expect_index(ops[i].input_flow, row % 3 ? row % flow_count : FRAGI_LOOK_NONE,
			     flow_places);
		expect_index(ops[i].room_flow, (row + 1) % flow_count, flow_places);
	}
	for (uint32_t i = 0; i < look.flow_count; i++) {
		const uint32_t row = flows[i].capacity;

		cr_assert_eq(flow_places[row], i, "flow %u", row);
		expect_index(flows[i].sender, row % op_count, op_places);
		expect_index(flows[i].receiver, (row + 1) % op_count, op_places);
	}
	fragi_arena_fini(&arena);
}

Test(driver_look, tables_that_are_too_long_keep_their_busiest_rows)
{
	expect_bound(OPS, FLOWS, 0);
	expect_bound(FW_LOOK_ROWS_MAX, FLOWS, 0);
	expect_bound(OPS, FW_LOOK_ROWS_MAX, 0);
	expect_bound(7, 9, 0);
	expect_bound(7, 9, 4);
	expect_bound(7, 9, 7);
	expect_bound(9, 7, 7);
}

Test(driver_look, tables_need_memory_to_be_made_shorter)
{
	struct fragi_arena arena = {0};
	int r = -ENOMEM;

	for (int64_t skip = 0; r != 0; skip++) {
		struct fragi_look look = fill_tables(7, 9);

		fragi_alloc_fail_after(skip, 1);
		r = drv_look_bound(&look, ops, flows, 3, &arena);
		fragi_alloc_fail_off();
		cr_assert_eq(r, skip < 4 ? -ENOMEM : 0, "%d", (int)skip);
	}
	fragi_arena_fini(&arena);
}
