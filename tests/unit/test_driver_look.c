// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Where the time of an application goes, as clients get it window by window. */
#define CLIENT 3

/* What a host reports: counts of its operator and of its end of the flow. */
struct report {
	int64_t at_ns;
	uint64_t busy, input, room, memory; /* ns */
	uint64_t ticks, messages, dropped, waiting, removed;
	uint64_t locked, stepped, silent; /* the clock of the sender */
};

static void report(struct world *w, uint32_t host, bool final, struct report r)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);
	struct fragi_flow_stats row = {0};
	struct fw_op_stats op = {.ticks = r.ticks,
				 .use_busy = r.busy,
				 .use_input = r.input,
				 .use_room = r.room,
				 .use_memory = r.memory,
				 .removed = r.removed};

	if (host == 1)
		row = (struct fragi_flow_stats){.sent = r.messages, .room_ns = r.room};
	else
		row = (struct fragi_flow_stats){.arrived = r.messages + r.dropped + r.waiting,
						.delivered = r.messages,
						.input_ns = r.input,
						.clock_locked = r.locked,
						.clock_stepped = r.stepped,
						.clock_silent = r.silent,
						.rx_dropped[FRAGI_DROP_STALE] = r.dropped};
	message.stats = (struct fw_host_stats){
		.final = final, .ops = &op, .op_count = 1, .flows = &row, .flow_count = 1};
	message.stats.facts.at_ns = (uint64_t)r.at_ns;
	message.stats.facts.cpu_ns = r.busy;
	message.stats.facts.gpus = 2;
	message.stats.facts.gpu_busy_permille = 370;
	say(w, host, &message);
}

static void look(struct world *w, uint64_t client, const char *name, int64_t every_ns, bool once)
{
	struct fw_message message = {.kind = FW_LOOK, .seq = 9};

	client_hello(w, client, "top");
	message.look = (struct fw_look){name, every_ns, once};
	say(w, client, &message);
}

/* The next window that has come to the client, which must be there. */
static const struct fw_looked *looked(struct world *w, uint64_t client)
{
	const struct fw_message *message = must_take(w, client, FW_LOOKED);
	cr_expect_eq(message->reply_to, 9);
	return &message->looked;
}

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

/* LOOK of a client that has said HELLO: what was counted, now. */
static void look_at_once(struct world *w, int64_t for_ns, uint32_t rows)
{
	struct fw_message message = {.kind = FW_LOOK, .seq = 9};

	message.look = (struct fw_look){"", for_ns, false, true, rows};
	say(w, CLIENT, &message);
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
	cr_expect_eq(window->look.operators[1].missed_sum, 45);
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
	cr_expect_eq(window->look.operators[1].use_ns[FRAGI_USE_TIME], 0);
	cr_expect_eq(window->look.flows[0].sent, 0);
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

/* So metrics leave out drops that cannot be. */
WORLD_TEST(driver_look, a_flow_is_timed_where_its_receiver_may_drop_for_the_time, NULL)
{
	static const struct {
		const char *of_f2;
		bool is_timed;
	} cases[] = {
		{"", false},
		{", ports: {in: {capacity: 2}}", false},
		{", ports: {in: {age: 50ms}}", true},
		{", ports: {in: {missing: reuse_last}}", true},
		{", deadline: {budget: 20ms, from: acquisition, on_miss: drop}", true},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		char text[1024];

		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nfragments:\n"
			 "  f1: {operators: {tx: {type: ping_tx}}}\n"
			 "  f2: {operators: {rx: {type: ping_rx%s}}}\n"
			 "flows: [f1.tx -> f2.rx]\n",
			 cases[i].of_f2);
		two_run(w, text);
		client_hello(w, CLIENT, "web");
		look_at_once(w, SECOND, 10);
		cr_expect_eq(looked(w, CLIENT)->look.flows[0].is_timed, cases[i].is_timed, "%zu",
			     i);
		if (i + 1 < FRAG_COUNT_OF(cases))
			world_fini(w);
	}
}

/* LOOK of a client that keeps the tables. */
static void look_for_changes(struct world *w, const char *name)
{
	struct fw_message message = {.kind = FW_LOOK, .seq = 9};

	message.look = (struct fw_look){.name = name, .every_ns = SECOND, .changes = true};
	say(w, CLIENT, &message);
}

WORLD_TEST(driver_look, who_keeps_tables_gets_what_has_changed, NULL)
{
	const struct fw_message *m;

	two_run(w, receiver_restarts);
	report(w, 1, false, (struct report){7 * SECOND, 5, 0, 7, 0, 100, 100});
	report(w, 2, false, (struct report){3 * SECOND, 5, 7, 0, 0, 90, 90});
	client_hello(w, CLIENT, "top");
	look_for_changes(w, "");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not(looked(w, CLIENT)->is_same, "it has none yet");
	pass_beating(w, SECOND, 1, CLIENT);
	m = must_take(w, CLIENT, FW_LOOKED);
	cr_expect(m->looked.is_same);
	cr_expect(m->looked.is_last);
	cr_expect_neq(m->run, 0);
	cr_expect_eq(m->looked.look.unix_ns, w->core->real_ns + w->core->config.realtime_offset_ns);
	cr_expect_eq(m->looked.look.operator_count, 0);
	report(w, 2, false, (struct report){5 * SECOND, 6, 7, 0, 0, 91, 91});
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.flows[0].delivered_sum, 91, "it has reported");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect(looked(w, CLIENT)->is_same);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not_null(looked(w, CLIENT)->look.hosts[1].suspended_because);
	/* Each question begins with all tables. */
	look_for_changes(w, "app");
	pass_beating(w, SECOND, 1, CLIENT);
	cr_expect_not(looked(w, CLIENT)->is_same);
}

static uint32_t windows_of(struct world *w, uint64_t client)
{
	uint32_t count = 0;

	while (taken(w, client, FW_LOOKED) != NULL)
		count++;
	return count;
}

WORLD_TEST(driver_look, each_client_has_its_own_windows_until_it_goes, NULL)
{
	two_run(w, two_fragments);
	look(w, CLIENT, "app", SECOND, false);
	look(w, CLIENT + 1, "", 1, false); /* as often as may be */
	look(w, CLIENT + 2, "app", 500 * MS, true);
	pass_beating(w, 2 * SECOND, 1, CLIENT + 2);
	cr_expect_eq(windows_of(w, CLIENT), 2);
	cr_expect_eq(windows_of(w, CLIENT + 1), 8);
	cr_expect_eq(windows_of(w, CLIENT + 2), 1);
	for (uint64_t client = CLIENT; client < CLIENT + 2; client++)
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = client, .text = "it left"});
	while (taken(w, 1, FW_HOST_LOOK) != NULL)
		;
	pass_beating(w, 3 * SECOND, 1, 2);
	cr_expect_null(taken(w, 1, FW_HOST_LOOK), "nobody looks");
	cr_expect_null(w->core->waiting);
}

WORLD_TEST(driver_look, who_asks_at_once_is_no_follower_and_may_follow_beside, NULL)
{
	uint32_t clients = 0;

	two_run(w, two_fragments);
	look(w, CLIENT, "app", SECOND, false);
	look_at_once(w, SECOND, 10);
	cr_expect_eq(windows_of(w, CLIENT), 1);
	pass_beating(w, 3 * SECOND, 1, CLIENT);
	cr_expect_eq(windows_of(w, CLIENT), 3, "its windows go on");
	look_at_once(w, SECOND, 10);
	cr_expect_eq(looked(w, CLIENT)->look.window_ns, 3 * SECOND);
	/* As many follow as may. */
	do
		look(w, CLIENT + ++clients, "", SECOND, false);
	while (clients < 100 && taken(w, CLIENT + clients, FW_ANSWER) == NULL);
	cr_expect_eq(clients, DRV_FOLLOWERS_MAX);
	look(w, CLIENT + 101, "app", SECOND, true);
	pass_beating(w, SECOND, 1, CLIENT + 101);
	cr_expect_eq(windows_of(w, CLIENT + 101), 1, "one window is no following");
	(void)windows_of(w, CLIENT);
	look_at_once(w, SECOND, 10);
	cr_expect_eq(windows_of(w, CLIENT), 1);
}

WORLD_TEST(driver_look, nothing_is_asked_of_a_worker_that_does_not_know_it, NULL)
{
	two_run(w, two_fragments);
	for (size_t i = 0; i < w->core->session_count; i++)
		if (w->core->sessions[i]->connection == 2)
			w->core->sessions[i]->minor = FW_LOOK_MINOR - 1;
	look(w, CLIENT, "app", 0, false);
	cr_expect_not_null(taken(w, 1, FW_HOST_LOOK));
	cr_expect_null(taken(w, 2, FW_HOST_LOOK));
}

WORLD_TEST(driver_look, where_nothing_runs_an_empty_window_comes, NULL)
{
	const struct fw_looked *window;
	const struct fw_message *answer;

	world_init(w);
	look(w, CLIENT, "", 0, false);
	pass_beating(w, SECOND, CLIENT, CLIENT);
	window = looked(w, CLIENT);
	cr_expect(window->is_last);
	cr_expect_str_eq(window->look.application, "");
	look(w, CLIENT + 1, "elsewhere", 0, false);
	answer = must_take(w, CLIENT + 1, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_APPLICATION_UNKNOWN);
}

/* The next event of a kind behind *last; NULL: there is none. */
static const char *next_of(const struct world *w, enum fw_notice_kind kind, uint64_t *last)
{
	const struct drv_notice *notice;

	while ((notice = drv_history_after(&w->core->history, *last)) != NULL) {
		*last = notice->number;
		if (notice->kind == kind)
			return notice->text;
	}
	return NULL;
}

static const char *next_loss(const struct world *w, uint64_t *last)
{
	return next_of(w, FW_NOTICE_LOSS, last);
}

static void count(struct world *w, int64_t ns, uint64_t messages, uint64_t dropped)
{
	struct report sender = {.messages = messages + dropped};

	pass_beating(w, ns, 1, 2);
	report(w, 2, false, (struct report){.messages = messages, .dropped = dropped});
	report(w, 1, false, sender);
}

static void expect_loss(const struct world *w, uint64_t *last, const char *text)
{
	const char *found = next_loss(w, last);

	cr_assert_not_null(found);
	cr_expect_str_eq(found, text);
}

WORLD_TEST(driver_look, drops_are_an_event_when_they_begin_and_when_they_end, NULL)
{
	uint64_t last = 0;

	two_run(w, two_fragments);
	count(w, SECOND, 100, 0);
	cr_expect_null(next_loss(w, &last));
	count(w, 500 * MS, 140, 10);
	cr_expect_null(next_loss(w, &last), "it looks once a second");
	count(w, 500 * MS, 180, 20);
	expect_loss(w, &last, "20 of 100 /s dropped (stale): f1.tx.out -> f2.rx.in");
	for (uint64_t i = 1; i <= 8; i++) /* and so on, with pauses */
		count(w, 2 * SECOND, 180 + 100 * i, 20 + 10 * (i / 2));
	cr_expect_null(next_loss(w, &last), "it goes on");
	count(w, 3 * SECOND, 1100, 60);
	cr_expect_null(next_loss(w, &last), "it may go on");
	count(w, 2 * SECOND, 1200, 60);
	expect_loss(w, &last, "no more dropped, after 60 in 17.0 s: f1.tx.out -> f2.rx.in");
	count(w, 20 * SECOND, 2000, 60);
	cr_expect_null(next_loss(w, &last));
	count(w, 2 * SECOND, 2000, 62);
	expect_loss(w, &last, "1 of 1 /s dropped (stale): f1.tx.out -> f2.rx.in");
}

/* All that the operators removed since the last event are in one, which names one of them. */
WORLD_TEST(driver_look, files_that_are_removed_are_an_event, NULL)
{
	static const uint64_t removed[] = {0, 2, 2, 7};
	uint64_t last = 0;

	two_run(w, two_fragments);
	for (size_t i = 0; i < FRAG_COUNT_OF(removed); i++) {
		pass_beating(w, SECOND, 1, 2);
		report(w, 2, false, (struct report){.messages = i, .removed = removed[i]});
		report(w, 1, false, (struct report){.messages = i});
		if (i % 2 == 0)
			cr_expect_null(next_loss(w, &last), "%zu: nothing was removed", i);
		else
			expect_loss(
				w, &last,
				i == 1 ? "2 removed to keep to a limit of disk: files of f2.rx"
				       : "5 removed to keep to a limit of disk: files of f2.rx");
	}
}

#define WHOSE "the clock of f1 on worker a, as f2 on worker b compares it"

WORLD_TEST(driver_look, a_lock_on_a_clock_that_is_lost_is_an_event, NULL)
{
	static const struct {
		uint64_t locked, stepped, silent;
		bool others; /* have had their events */
		const char *text;
	} moments[] = {
		{.locked = 0},
		{.locked = 1}, /* for the first time, which is no news */
		{.locked = 2,
		 .stepped = 1,
		 .text = "lost, and locked again (one of them has stepped): " WHOSE},
		{.locked = 2, .stepped = 1},
		{.locked = 2,
		 .stepped = 1,
		 .silent = 1,
		 .text = "lost (it does not answer): " WHOSE},
		{.locked = 2, .stepped = 1, .silent = 1},
		{.locked = 3, .stepped = 2, .silent = 1}, /* and lost again before it was seen */
		{.locked = 4,
		 .stepped = 2,
		 .silent = 1,
		 .text = "locked again, after 3.0 s: " WHOSE},
		{.locked = 4, .stepped = 3, .silent = 1, .others = true},
		{.locked = 4,
		 .stepped = 3,
		 .silent = 1,
		 .text = "lost (one of them has stepped): " WHOSE},
	};
	uint64_t last = 0;

	two_run(w, two_fragments);
	for (size_t i = 0; i < FRAG_COUNT_OF(moments); i++) {
		const char *text;

		if (moments[i].others)
			w->core->losses_ns = w->core->real_ns + 1500 * MS;
		pass_beating(w, SECOND, 1, 2);
		report(w, 2, false,
		       (struct report){.messages = i,
				       .locked = moments[i].locked,
				       .stepped = moments[i].stepped,
				       .silent = moments[i].silent});
		report(w, 1, false, (struct report){.messages = i});
		text = next_of(w, FW_NOTICE_CLOCK, &last);
		cr_assert_eq(text != NULL, moments[i].text != NULL, "%zu: %s", i, text);
		if (text != NULL)
			cr_expect_str_eq(text, moments[i].text, "%s", text);
		cr_expect_null(next_of(w, FW_NOTICE_CLOCK, &last), "%zu", i);
	}
}

WORLD_TEST(driver_look, what_a_crash_loses_is_an_event, NULL)
{
	uint64_t last = 0;

	two_run(w, receiver_restarts);
	count(w, SECOND, 100, 0);
	report(w, 1, false, (struct report){.messages = 107});
	report(w, 2, true, (struct report){.messages = 103, .waiting = 3});
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, SECOND, 1, 2);
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE));
	speaking_epoch[2] = 2;
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	cr_expect_null(next_loss(w, &last));
	w->core->losses_ns = w->core->real_ns + 1500 * MS;
	for (uint64_t i = 0; i < 2; i++) {
		cr_expect_null(next_loss(w, &last), "others have had their events");
		pass_beating(w, SECOND, 1, 2);
		report(w, 2, false, (struct report){.messages = 6 + 10 * i});
		report(w, 1, false, (struct report){.messages = 117 + 10 * i});
	}
	expect_loss(w, &last, "3 lost: f1.tx.out -> f2.rx.in: " RX_CRASH);
	cr_expect_null(next_loss(w, &last));
}

#define MANY (FW_LOOK_ROWS_MAX + 100)

/* f1 has MANY operators beside tx; the i-th of them was busy for i ms. */
static void prepare_many(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 1);
	struct fw_port out = {.name = "out", .type = "message", .dir = FRAG_OUT, .has_codec = true};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};
	static struct fw_op ops[MANY + 1];
	static char names[MANY + 1][8];
	struct fw_fragment fragment = {.name = "f1", .ops = ops, .op_count = MANY + 1};

	for (size_t i = 0; i <= MANY; i++) {
		snprintf(names[i], sizeof(names[i]), i == 0 ? "tx" : "op%zu", i);
		ops[i] = (struct fw_op){.name = names[i], .type = "t"};
	}
	ops[0].ports = &out;
	ops[0].port_count = 1;
	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 101};
	say(w, 1, &message);
}

static void report_many(struct world *w, uint64_t times)
{
	struct fw_message message = of_host(FW_HOST_STATS, 1);
	static struct fw_op_stats ops[MANY + 1];
	struct fragi_flow_stats row = {.sent = times};

	for (uint64_t i = 0; i <= MANY; i++)
		ops[i] = (struct fw_op_stats){.use_busy = times * i * MS,
					      .use_room = times * ((uint64_t)SECOND - i * MS)};
	message.stats = (struct fw_host_stats){
		.ops = ops, .op_count = MANY + 1, .flows = &row, .flow_count = 1};
	message.stats.facts.at_ns = (uint64_t)SECOND * times;
	say(w, 1, &message);
}

WORLD_TEST(driver_look, the_busiest_rows_are_shown_and_the_rest_is_counted, NULL)
{
	const struct fragi_look *shown;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, two_fragments);
	both_come(w);
	prepare_many(w);
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
	report_many(w, 1);
	report(w, 2, false, (struct report){1 * SECOND, 0, 0, 0, 0, 0, 0});
	look(w, CLIENT, "app", SECOND, false);
	report_many(w, 2);
	report(w, 2, false, (struct report){2 * SECOND, 900 * MS, 100 * MS, 0, 0, 1, 1});
	pass_beating(w, SECOND, 1, CLIENT);
	shown = &looked(w, CLIENT)->look;
	cr_assert_eq(shown->operator_count, FW_LOOK_ROWS_MAX);
	cr_expect_eq(shown->operators_left_out, MANY + 2 - FW_LOOK_ROWS_MAX);
	cr_expect_str_eq(shown->operators[0].name, "f1.op102", "rx is one of the 500");
	cr_expect_str_eq(shown->operators[FW_LOOK_ROWS_MAX - 1].name, "f2.rx");
	cr_expect_eq(shown->flows[0].sender, FRAGI_LOOK_NONE);
	cr_expect_eq(shown->flows[0].receiver, FW_LOOK_ROWS_MAX - 1);
	cr_expect_eq(shown->operators[FW_LOOK_ROWS_MAX - 1].input_flow, 0);
	cr_expect_eq(shown->flows_left_out, 0);
}

#define LOOKERS 9

/* How much of a step the end of a window takes for so many clients, whose tables are equal. */
static int64_t items_of(struct world *w, uint32_t lookers)
{
	const struct fragi_look *first;

	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	world_init(w);
	app(w, two_fragments);
	both_come(w);
	prepare_many(w);
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
	report_many(w, 1);
	for (uint32_t i = 0; i < lookers; i++)
		look(w, CLIENT + i, "app", SECOND, false);
	report_many(w, 2);
	pass_beating(w, 900 * MS, 1, CLIENT + lookers);
	pass(w, 100 * MS);
	first = &looked(w, CLIENT)->look;
	cr_assert_eq(first->operator_count, FW_LOOK_ROWS_MAX);
	for (uint32_t i = 1; i < lookers; i++) {
		const struct fragi_look *next = &looked(w, CLIENT + i)->look;

		cr_assert_eq(next->operator_count, first->operator_count);
		for (uint32_t k = 0; k < first->operator_count; k++) {
			cr_assert_str_eq(next->operators[k].name, first->operators[k].name);
			cr_assert_arr_eq(next->operators[k].use_ns, first->operators[k].use_ns,
					 sizeof(first->operators[k].use_ns));
		}
	}
	return DRV_STEP_ITEMS - w->core->items;
}

WORLD_TEST(driver_look, tables_are_made_once_for_all_who_look_at_the_same, NULL)
{
	int64_t one = items_of(w, 1), many;

	world_fini(w);
	many = items_of(w, LOOKERS);
	cr_expect_gt(one, MANY, "each row is an item");
	cr_expect_lt(many, 2 * one, "%lld and %lld", (long long)one, (long long)many);
}

WORLD_TEST(driver_look, who_comes_later_gets_all_tables_with_the_next_window_of_the_others, NULL)
{
	const struct fw_looked *window;

	two_run(w, two_fragments);
	report(w, 1, false, (struct report){7 * SECOND, 0, 0, 0, 0, 100, 100});
	report(w, 2, false, (struct report){3 * SECOND, 0, 0, 0, 0, 90, 90});
	client_hello(w, CLIENT, "top");
	look_for_changes(w, "app");
	report(w, 1, false, (struct report){8 * SECOND, 0, 0, 0, 0, 130, 130});
	pass_beating(w, 1500 * MS, 1, CLIENT);
	cr_expect_eq(looked(w, CLIENT)->look.flows[0].sent, 30);
	look(w, CLIENT + 1, "app", SECOND, false);
	look(w, CLIENT + 2, "app", 2 * SECOND, false);
	pass_beating(w, 500 * MS, 1, CLIENT + 2);
	cr_expect(looked(w, CLIENT)->is_same);
	window = looked(w, CLIENT + 1);
	cr_expect_not(window->is_same);
	cr_expect_eq(window->look.window_ns, SECOND);
	cr_expect_eq(window->look.flows[0].sent, 30, "it shows that window again");
	cr_expect_null(taken(w, CLIENT + 2, FW_LOOKED), "it has windows of its own");
	/* One of them goes. */
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it left"});
	report(w, 1, false, (struct report){9 * SECOND, 0, 0, 0, 0, 150, 150});
	pass_beating(w, SECOND, 1, CLIENT + 2);
	cr_expect_eq(looked(w, CLIENT + 1)->look.flows[0].sent, 20);
	for (uint64_t client = CLIENT + 1; client <= CLIENT + 2; client++)
		step(w, &(struct drv_event){
				.kind = DRV_EVENT_CLOSED, .connection = client, .text = "it left"});
	cr_expect_null(w->core->windows);
}

WORLD_TEST(driver_look, hosts_are_told_once_for_all_who_look, NULL)
{
	two_run(w, two_fragments);
	look(w, CLIENT, "app", SECOND, false);
	cr_expect_not_null(taken(w, 1, FW_HOST_LOOK));
	look(w, CLIENT + 1, "app", SECOND, false);
	cr_expect_null(taken(w, 1, FW_HOST_LOOK));
	look(w, CLIENT + 2, "app", 5 * SECOND, false);
	cr_expect_eq(taken(w, 1, FW_HOST_LOOK)->host_look.for_ns, 8 * SECOND);
	pass_beating(w, 4 * SECOND, 1, CLIENT + 2);
	cr_expect_null(taken(w, 1, FW_HOST_LOOK), "it knows that already");
	pass_beating(w, 2 * SECOND, 1, CLIENT + 2);
	cr_expect_eq(taken(w, 1, FW_HOST_LOOK)->host_look.for_ns, 8 * SECOND);
}

/* Each item is a digit for the connection, and its frame: "." is one that may be dropped, "!" a close. */
static void expect_joined(const char *const *given, const char *const *wanted, size_t count)
{
	struct drv_action items[16] = {0};
	struct drv_actions actions = {.items = items, .count = count};

	for (size_t i = 0; i < count; i++) {
		const char *frame = given[i] + 1;

		items[i].kind = *frame == '!' ? DRV_DO_CLOSE : DRV_DO_SEND;
		items[i].connection = (uint64_t)(given[i][0] - '0');
		items[i].may_drop = *frame == '.';
		items[i].frame_bytes = strlen(frame);
		items[i].frame = *frame != '!' ? fragi_malloc(strlen(frame)) : NULL;
		if (*frame != '!')
			memcpy(items[i].frame, frame, strlen(frame));
	}
	drv_actions_join(&actions);
	for (size_t i = 0; i < count; i++) {
		cr_expect_eq(items[i].frame == NULL, wanted[i] == NULL, "%zu", i);
		if (items[i].frame != NULL && wanted[i] != NULL) {
			cr_assert_eq(items[i].frame_bytes, strlen(wanted[i]), "%zu", i);
			cr_expect_arr_eq(items[i].frame, wanted[i], strlen(wanted[i]), "%zu", i);
		}
		fragi_free(items[i].frame);
	}
}

Test(driver_look, small_frames_for_a_peer_are_written_together_and_in_order)
{
	char large[70002];

	expect_joined(
		(const char *const[]){"1aa", "2b", "1cc", "1.d", "1e", "1f", "2g", "2!", "2h"},
		(const char *const[]){"aacc", "bg", NULL, ".d", "ef", NULL, NULL, NULL, "h"}, 9);
	memset(large, 'x', sizeof(large) - 1);
	large[0] = '1';
	large[sizeof(large) - 1] = '\0';
	expect_joined((const char *const[]){large, large, "1b", "1c"},
		      (const char *const[]){large + 1, large + 1, "bc", NULL}, 4);
}
