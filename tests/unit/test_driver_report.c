// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* What the summary says of what hosts have counted. */

static void say_rows(struct world *w, uint64_t connection, uint32_t host,
		     struct fragi_flow_stats *rows, uint32_t row_count, struct fw_op_stats *ops,
		     uint32_t op_count)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);

	message.stats = (struct fw_host_stats){.final = true,
					       .ops = ops,
					       .op_count = op_count,
					       .flows = rows,
					       .flow_count = row_count};
	say(w, connection, &message);
}

/* Both hosts are done and exit in order. */
static void end(struct world *w)
{
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
}

/* An application of two hosts, wired and running, the receiver's on the node given. */
static void run_on(struct world *w, const char *policy, const char *node,
		   const struct table *sender)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "frag: 1\napplication: app\nfragments:\n"
		 "  f1: {operators: {tx: {type: t}}}\n"
		 "  f2: {operators: {rx: {type: t}}}\n"
		 "flows: [{from: f1.tx.out, to: f2.rx.in, policy: %s}]\n",
		 policy);
	app(w, text);
	hello_from(w, 1, "a", "f1", "node", "10.0.0.1");
	hello_from(w, 2, "b", "f2", node, "10.0.0.2");
	say_table(w, 1, 1, sender);
	say_prepared(w, 2, 2, "f2", false);
	both_run(w);
}

Test(driver_report, the_first_message_is_the_earliest_on_the_drivers_node)
{
	static const struct {
		const char *driver, *receiver; /* clocks; the sender's is "node" */
		int64_t sent_ns, received_ns;  /* after the start; 0: no message */
		const char *said;
	} cases[] = {
		{"node", "node", 300, 200, "\"first_message_ns\": 200,"},
		{"node", "node", 300, 400, "\"first_message_ns\": 300,"},
		{"node", "another", 300, 200, "\"first_message_ns\": 300,"},
		{"node", "node", 0, 0, "\"first_message_ns\": 0,"},
		{"node", "node", INT64_MAX, -5, "\"first_message_ns\": 0,"},
		{"elsewhere", "another", 300, 200, "\"first_message_ns\": 0,"},
		{NULL, "node", 300, 200, "\"first_message_ns\": 0,"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct table sender = table_of("f1", true);
		struct fragi_flow_stats tx = {0}, rx = {0};
		struct world w;

		world_init_with(&w, (struct drv_config){.clock = cases[i].driver});
		run_on(&w, "block", cases[i].receiver, &sender);
		if (cases[i].sent_ns != 0)
			tx.first_ns = (uint64_t)w.now_ns + (uint64_t)cases[i].sent_ns;
		if (cases[i].received_ns != 0)
			rx.first_ns = (uint64_t)(w.now_ns + cases[i].received_ns);
		say_rows(&w, 1, 1, &tx, 1, NULL, 0);
		say_rows(&w, 2, 2, &rx, 1, NULL, 0);
		tx.first_ns = rx.first_ns = 0; /* of another process, which has sent none yet */
		say_rows(&w, 1, 1, &tx, 1, NULL, 0);
		say_rows(&w, 2, 2, &rx, 1, NULL, 0);
		end(&w);
		cr_expect_not_null(strstr(w.json, cases[i].said), "case %zu: %s", i, w.json);
		world_fini(&w);
	}
}

/* A cycle delivers in both hosts. */
WORLD_TEST(driver_report, the_progress_counts_what_all_hosts_delivered, world_init)
{
	to_running(w);
	say_stats(w, 1, 1, false, 1, 0);
	say_stats(w, 2, 2, false, 0, 1);
	pass_beating(w, 1100 * MS, 1, 2);
	assert_has(w->progress, "running 1.0 s, 1 message");
	cr_expect_null(strstr(w->progress, "messages"));
	say_stats(w, 1, 1, false, 9, 3);
	say_stats(w, 2, 2, false, 3, 8);
	pass_beating(w, 1100 * MS, 1, 2);
	assert_has(w->progress, "running 2.0 s, 11 messages");
}

Test(driver_report, latency_needs_one_clock_and_not_one_loopback)
{
	static const struct {
		const char *node, *clock; /* of the receiver; the sender's are "node" and "clock" */
		bool known;
	} cases[] = {
		{"node", "clock", true},
		{"another", "clock", true},
		{"node", "another", false},
		{"node", "", false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct table sender = table_of("f1", true);
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		hello_by_clock(&w, 1, "a", "f1", "node", "clock", "10.0.0.1");
		hello_by_clock(&w, 2, "b", "f2", cases[i].node, cases[i].clock, "10.0.0.2");
		say_table(&w, 1, 1, &sender);
		say_prepared(&w, 2, 2, "f2", false);
		both_run(&w);
		end(&w);
		cr_expect_eq(strstr(w.json, "have two clocks") == NULL, cases[i].known, "%zu", i);
		world_fini(&w);
	}
}

Test(driver_report, an_edge_is_named_by_its_kind_and_shown_with_its_detail)
{
	static const struct {
		const char *transport, *detail, *edge, *shown;
		uint64_t mapped, staged; /* messages with memory of a GPU */
	} cases[] = {
		{"ucx", "tcp lo", "\"edge\": \"ucx\"", "  ucx tcp lo\n"},
		{"ucx", "", "\"edge\": \"ucx\"", "  ucx\n"},
		{"ucx", "4 rails", "\"edge\": \"ucx\"", "  ucx 4 rails\n"},
		{"ucx", "", "\"edge\": \"ucx\"", "  ucx, GPU memory mapped\n", 1, 0},
		{"ucx", "", "\"edge\": \"ucx\"", "  ucx, GPU memory staged\n", 0, 1},
		{"ucx", "tcp lo", "\"edge\": \"ucx\"",
		 "  ucx tcp lo, GPU memory mapped, 2 messages staged\n", 1, 2},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct table sender = table_of("f1", true);
		struct fw_message stats = of_host(FW_HOST_STATS, 1);
		struct fw_op_stats op = {0};
		struct fragi_flow_stats row;
		struct world w;

		world_init(&w);
		sender.transport = cases[i].transport;
		sender.detail = cases[i].detail;
		run_on(&w, "block", "node", &sender);
		row = (struct fragi_flow_stats){.gpu_mapped = cases[i].mapped,
						.gpu_staged = cases[i].staged};
		stats.stats = (struct fw_host_stats){
			.final = true, .ops = &op, .op_count = 1, .flows = &row, .flow_count = 1};
		say(&w, 1, &stats);
		end(&w);
		assert_has(w.json, cases[i].edge);
		assert_has(w.table, cases[i].shown);
		world_fini(&w);
	}
}

/* What a lost receiver may have held depends on whether the credit returns on arrival. */
Test(driver_report, a_lost_end_leaves_open_what_its_policy_lets_wait)
{
	static const struct {
		const char *policy;
		int lost;
	} cases[] = {{"block", 4}, {"fault", 4}, {"pop", 12}, {"reject", 12}, {"latest", 3}};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct fragi_flow_stats tx = {.sent = 100};
		struct table sender = table_of("f1", true);
		struct world w;
		char said[64];

		world_init(&w);
		run_on(&w, cases[i].policy, "node", &sender);
		say_stats(&w, 2, 2, false, 0, 60);
		step(&w, &(struct drv_event){
				 .kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
		say_rows(&w, 1, 1, &tx, 1, NULL, 0);
		say_exit(&w, 1, 1, 137, 9, "");
		cr_assert(w.ended);
		snprintf(said, sizeof(said), "\"policy\": \"%s\"", cases[i].policy);
		assert_has(w.json, said);
		snprintf(said, sizeof(said), "\"sent\": 100, \"delivered\": %d",
			 100 - cases[i].lost);
		assert_has(w.json, said);
		snprintf(said, sizeof(said), "\"lost\": %d", cases[i].lost);
		assert_has(w.json, said);
		world_fini(&w);
	}
}

WORLD_TEST(driver_report, rows_that_a_host_did_not_report_count_nothing, world_init)
{
	struct fw_op_stats extra[] = {{.ticks = 7}, {.ticks = 9}};
	struct table sender = table_of("f1", true);

	run_on(w, "block", "node", &sender);
	say_rows(w, 1, 1, NULL, 0, NULL, 0);
	say_rows(w, 2, 2, NULL, 0, extra, 2);
	end(w);
	assert_has(w->json, "\"name\": \"tx\", \"type\": \"t\", \"ticks\": 0,");
	assert_has(w->json, "\"name\": \"rx\", \"type\": \"t\", \"ticks\": 7,");
	assert_has(w->json, "\"sent\": 0, \"delivered\": 0");
}

/* Host 1 runs f1 and f2 with a flow between them, host 2 runs f3. */
WORLD_TEST(driver_report, every_row_is_told_of_its_own_flow_and_operator, world_init)
{
	struct fw_address address = {"ucx", "address", 7};
	struct fw_message prepared = of_host(FW_HOST_PREPARED, 1);
	struct fw_port out = {.name = "out", .type = "m", .dir = FRAG_OUT, .has_codec = true};
	struct fw_port in = {.name = "in", .type = "m", .dir = FRAG_IN, .has_codec = true},
		       both[] = {in, out};
	struct fw_op tx = {.name = "tx", .type = "t", .ports = &out, .port_count = 1};
	struct fw_op mid = {.name = "mid", .type = "t", .ports = both, .port_count = 2};
	struct fw_op rx = {.name = "rx", .type = "t", .ports = &in, .port_count = 1};
	struct fw_fragment tables[] = {{"f1", &tx, 1}, {"f2", &mid, 1}}, last = {"f3", &rx, 1};
	struct fw_inner_flow inner = {.to_fragment = 1, .capacity = 4, .policy = FRAG_POLICY_BLOCK};
	struct fragi_flow_stats rows[] = {{.sent = 9, .delivered = 8, .rx_dropped = {[2] = 1}},
					  {.sent = 6}};
	struct fragi_flow_stats received = {.delivered = 6, .arrived = 6};
	struct fw_op_stats ops[] = {{.ticks = 11}, {.ticks = 12}}, rx_ops = {.ticks = 13};

	app(w,
	    "frag: 1\napplication: app\nfragments:\n"
	    "  f1: {operators: {tx: {type: t}}}\n"
	    "  f2: {operators: {mid: {type: t}}}\n"
	    "  f3: {operators: {rx: {type: t}}}\n"
	    "flows: [{from: f1.tx.out, to: f2.mid.in, capacity: 4, policy: block}, f2.mid.out -> f3.rx.in]\n");
	hello(w, 2, "b", "f3");
	hello(w, 1, "a", NULL);
	prepared.prepared = (struct fw_host_prepared){.ok = true,
						      .fragments = tables,
						      .fragment_count = 2,
						      .flows = &inner,
						      .flow_count = 1,
						      .addresses = &address,
						      .address_count = 1};
	say(w, 1, &prepared);
	prepared.host = 2;
	prepared.prepared.fragments = &last;
	prepared.prepared.fragment_count = 1;
	prepared.prepared.flow_count = 0;
	say(w, 2, &prepared);
	both_run(w);
	say_rows(w, 1, 1, rows, 2, ops, 2);
	say_rows(w, 2, 2, &received, 1, &rx_ops, 1);
	end(w);
	assert_has(w->json, "\"from\": \"f1.tx.out\", \"to\": \"f2.mid.in\", \"edge\": \"inproc\"");
	assert_has(w->json, "\"sent\": 9, \"delivered\": 8");
	assert_has(w->json, "\"receiver_done\": 1");
	assert_has(w->json, "\"from\": \"f2.mid.out\", \"to\": \"f3.rx.in\", \"edge\": \"ucx\"");
	assert_has(w->json, "\"sent\": 6, \"delivered\": 6");
	assert_has(w->json, "\"name\": \"tx\", \"type\": \"t\", \"ticks\": 11,");
	assert_has(w->json, "\"name\": \"mid\", \"type\": \"t\", \"ticks\": 12,");
	assert_has(w->json, "\"name\": \"rx\", \"type\": \"t\", \"ticks\": 13,");
}

/* A host that no transport reaches, beside a flow that is all right. */
WORLD_TEST(driver_report, flows_of_an_application_that_was_never_wired_count_nothing, world_init)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_port port = {.name = "in", .type = "message", .dir = FRAG_IN, .has_codec = true};
	struct fw_op op = {.name = "rx", .type = "t", .ports = &port, .port_count = 1};
	struct fw_fragment table = {.name = "f2", .ops = &op, .op_count = 1};

	app(w, two_fragments);
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	message.prepared =
		(struct fw_host_prepared){.ok = true, .fragments = &table, .fragment_count = 1};
	say(w, 2, &message);
	both_are_killed(w);
	cr_assert(w->ended);
	assert_has(w->reason, "f2 on worker b has not opened the transport ucx, over which f1");
	assert_has(w->json, "\"from\": \"f1.tx.out\", \"to\": \"f2.rx.in\"");
	assert_has(w->json, "\"sent\": 0, \"delivered\": 0");
	assert_has(w->json, "\"lost\": 0");
}
