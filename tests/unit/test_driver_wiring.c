// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Both hosts are killed, and nothing was wired. */
static void end_refused(struct world *w)
{
	both_are_killed(w);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 2);
	cr_expect_null(taken(w, 1, FW_HOST_WIRE));
	world_fini(w);
}

Test(driver_wiring, flows_that_do_not_fit_are_refused_with_all_their_errors)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {tx: {type: t}}}\n"
		"  f2: {operators: {rx: {type: t}}}\n"
		"flows: [f1.tx.aut -> f2.rx.in, f1.tx.out -> f2.rx.on]\n");
	both_come(&w);
	say_prepared(&w, 1, 1, "f1", true);
	say_prepared(&w, 2, 2, "f2", false);
	assert_has(w.errors, "app.yaml:6:9: ");
	assert_has(w.errors, "app.yaml:6:32: ");
	assert_has(w.errors, "no output \"aut\"");
	end_refused(&w);
}

/* The answer of a host whose fragment has one operator, with an error of each of those lines. */
static void say_errors(struct world *w, uint64_t connection, const char *fragment, const char *op,
		       const uint32_t *lines, uint32_t count)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, (uint32_t)connection);
	struct fw_op ops[] = {{.name = op, .type = "t", .has_gaps = true}};
	struct fw_fragment table = {.name = fragment, .ops = ops, .op_count = 1};
	struct fw_failure errors[4];

	for (uint32_t i = 0; i < count; i++)
		errors[i] = (struct fw_failure){
			.code = FRAGI_FAILURE_GRAPH_INVALID,
			.sentence = "wrong",
			.file = "app.yaml",
			.line = lines[i],
			.column = 1,
		};
	message.prepared = (struct fw_host_prepared){
		.errors = errors,
		.error_count = count,
		.fragments = &table,
		.fragment_count = 1,
	};
	say(w, connection, &message);
}

WORLD_TEST(driver_wiring, errors_of_hosts_and_of_flows_come_once_and_in_the_order_of_the_file,
	   world_init)
{
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {rx: {type: t}}}\n"
	       "  f3: {operators: {rx: {type: t}}}\n"
	       "flows: [f1.tx.out -> f2.rx.in, f1.tx.out -> f3.rx.on]\n");
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
	hello(w, 3, "c", "f3");
	say_errors(w, 2, "f2", "rx", (const uint32_t[]){9, 5}, 2);
	say_errors(w, 1, "f1", "tx", (const uint32_t[]){4, 9}, 2);
	cr_expect_str_eq(w->errors, "");
	say_prepared(w, 3, 3, "f3", false);
	cr_expect_str_eq(w->errors,
			 "app.yaml:4:1: wrong\n"
			 "app.yaml:5:1: wrong\n"
			 "app.yaml:7:32: flow end f3.rx.on: no input \"on\"; its inputs: in\n"
			 "app.yaml:9:1: wrong\n");
}

/* What it would have had is not missed: its own error is the cause. */
WORLD_TEST(driver_wiring, a_host_without_a_table_has_no_wrong_flows, world_init)
{
	struct fw_failure error = {FRAGI_FAILURE_LIBRARY_MISSING, "there is no such library", ""};
	struct fw_message failed = of_host(FW_HOST_PREPARED, 2);

	app(w, two_fragments);
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	failed.prepared = (struct fw_host_prepared){.errors = &error, .error_count = 1};
	say(w, 2, &failed);
	cr_expect_str_eq(w->errors, "there is no such library (worker b)\n");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_KILLING);
}

WORLD_TEST(driver_wiring, tables_that_were_not_asked_for_are_refused, world_init)
{
	app(w, two_fragments);
	both_come(w);
	say_prepared(w, 1, 1, "f2", true);
	assert_has(w->errors, "worker a prepared other fragments than f1");
}

/* Both workers come, and prepare what the tables say. */
static void prepare(struct world *w, const struct table *sender, const struct table *receiver)
{
	app(w, two_fragments);
	hello_from(w, 1, "a", "f1", "node", "127.0.0.1");
	hello_from(w, 2, "b", "f2", "another", "10.0.0.2");
	say_table(w, 1, 1, sender);
	say_table(w, 2, 2, receiver);
}

WORLD_TEST(driver_wiring, a_host_without_a_data_plane_cannot_be_wired_to_another, world_init)
{
	struct table tx = table_of("f1", true), rx = table_of("f2", false);

	rx.address_bytes = 0;
	app(w, two_fragments);
	hello_from(w, 1, "a", "f1", "node", "10.0.0.1");
	hello_from(w, 2, "b", "f2", "another", "10.0.0.2");
	say_table(w, 1, 1, &tx);
	say_table(w, 2, 2, &rx);
	assert_has(
		w->errors,
		"f2 on worker b has not opened the transport ucx, over which f1 on worker a is to reach it; see what worker b logged");
	both_are_killed(w);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 3);
	assert_has(w->json, "{\"code\": \"transport_missing\", \"scope\": \"node\"");
}

/* However many flows lead to it. */
WORLD_TEST(driver_wiring, a_host_that_nobody_reaches_is_reported_once, world_init)
{
	static const char sentence[] = "f2 on worker b has not opened the transport ucx";
	struct table tx = table_of("f1", true), rx = table_of("f2", false);

	rx.address_bytes = 0;
	app(w, "frag: 1\n"
	       "application: app\n"
	       "fragments:\n"
	       "  f1: {operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {rx: {type: t}}}\n"
	       "  f3: {operators: {tx: {type: t}}}\n"
	       "flows: [f1.tx.out -> f2.rx.in, f3.tx.out -> f2.rx.in]\n");
	both_come(w);
	hello(w, 3, "c", "f3");
	say_table(w, 1, 1, &tx);
	say_table(w, 2, 2, &rx);
	tx.fragment = "f3";
	say_table(w, 3, 3, &tx);
	assert_has(w->errors, sentence);
	cr_expect_null(strstr(strstr(w->errors, sentence) + 1, sentence), "%s", w->errors);
}

#define LOOPBACK(worker, peer)                                                                     \
	"for data, but worker " peer " is on another node; start " worker                          \
	" with --worker-address and an address that " peer " can reach"

Test(driver_wiring, a_loopback_address_is_no_use_to_another_node)
{
	static const struct {
		const char *sender, *node,
			*address;       /* the sender's address; where the receiver is */
		const char *refused[2]; /* NULL: not that one */
	} cases[] = {
		{"10.0.0.1", "node", "127.0.0.1", {NULL}},
		{"127.0.0.1", "node", "10.0.0.2", {NULL}},
		{"10.0.0.1", "another", "127.0.0.1", {LOOPBACK("b", "a")}},
		{"127.0.0.1", "another", "10.0.0.2", {LOOPBACK("a", "b")}},
		{"127.0.0.1", "another", "::1", {LOOPBACK("a", "b"), LOOPBACK("b", "a")}},
		{"10.0.0.1", "another", "::1", {LOOPBACK("b", "a")}},
		{"10.0.0.1", "another", "10.0.0.2", {NULL}},
		{"10.0.0.1", "another", "", {NULL}},
		{"10.0.0.1", "another", "what?", {NULL}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		bool refused = cases[i].refused[0] != NULL;
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		hello_from(&w, 1, "a", "f1", "node", cases[i].sender);
		hello_from(&w, 2, "b", "f2", cases[i].node, cases[i].address);
		say_prepared(&w, 1, 1, "f1", true);
		say_prepared(&w, 2, 2, "f2", false);
		cr_expect_eq(drv_core_app_state(w.core), refused ? DRV_APP_KILLING : DRV_APP_WIRING,
			     "%s on %s", cases[i].address, cases[i].node);
		if (refused) {
			for (int k = 0; k < 2 && cases[i].refused[k] != NULL; k++)
				assert_has(w.errors, cases[i].refused[k]);
			cr_expect_eq(strstr(w.errors, LOOPBACK("a", "b")) != NULL,
				     strcmp(cases[i].sender, "127.0.0.1") == 0, "%zu", i);
			both_are_killed(&w);
			assert_has(w.json, "{\"code\": \"loopback_address\", \"scope\": \"node\"");
		}
		world_fini(&w);
	}
}

/* The first flow of f1 stays on its node; the second does not. */
WORLD_TEST(driver_wiring, every_flow_of_a_host_needs_an_address_that_its_peer_reaches, world_init)
{
	app(w,
	    "frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {type: t}}}, f2: {operators: {rx: {type: t}}}, f3: {operators: {rx: {type: t}}}}\n"
	    "flows: [f1.tx.out -> f2.rx.in, f1.tx.out -> f3.rx.in]\n");
	hello_from(w, 1, "a", "f1", "node", "127.0.0.1");
	hello_from(w, 2, "b", "f2", "node", "127.0.0.1");
	hello_from(w, 3, "c", "f3", "another", "10.0.0.2");
	both_prepare(w);
	say_prepared(w, 3, 3, "f3", false);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_KILLING);
	assert_has(
		w->errors,
		"worker a offers the loopback address 127.0.0.1 for data, but worker c is on another node");
}

Test(driver_wiring, types_that_differ_between_hosts_are_refused)
{
	struct table tx = table_of("f1", true), rx = table_of("f2", false);
	struct world w;

	world_init(&w);
	tx.port.type = "left";
	tx.port.type_id = 1;
	rx.port.type = "right";
	rx.port.type_id = 2;
	prepare(&w, &tx, &rx);
	assert_has(w.errors, "app.yaml:6:9: ");
	assert_has(w.errors, "left");
	assert_has(w.errors, "right");
	end_refused(&w);
}

WORLD_TEST(driver_wiring, more_tables_than_fragments_are_refused, world_init)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 1);
	struct fw_fragment tables[] = {{.name = "f1"}, {.name = "f2"}};

	app(w, two_fragments);
	both_come(w);
	message.prepared =
		(struct fw_host_prepared){.ok = true, .fragments = tables, .fragment_count = 2};
	say(w, 1, &message);
	assert_has(w->errors, "worker a prepared other fragments than f1");
}
