// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

WORLD_TEST(driver_start, an_application_runs_from_its_workers_to_its_summary, world_init)
{
	const struct fw_message *m, *peer;

	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	assert_has(w->log, "waiting for a worker for f1, f2");
	hello(w, 2, "b", "f2");
	m = must_take(w, 2, FW_WELCOME);
	cr_expect_neq(m->welcome.session, 0);
	cr_expect_eq(m->welcome.dead_ns, 3 * SECOND);
	cr_expect_null(taken(w, 2, FW_HOST_CREATE), "nothing starts before all have a worker");
	hello(w, 1, "a", "app/f1");
	m = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_str_eq(m->create.application, "app");
	cr_assert_eq(m->create.fragment_count, 1);
	cr_expect_str_eq(m->create.fragments[0], "f1");
	cr_expect_eq(m->host, 1);
	cr_expect_eq(m->epoch, 1);
	peer = taken(w, 2, FW_HOST_CREATE);
	cr_expect_str_eq(peer->create.fragments[0], "f2");
	cr_expect_eq(memcmp(m->create.data_key, peer->create.data_key, FW_DATA_KEY_BYTES), 0);

	say_prepared(w, 2, 2, "f2", false);
	cr_expect_null(taken(w, 2, FW_HOST_WIRE));
	say_prepared(w, 1, 1, "f1", true);
	m = taken(w, 1, FW_HOST_WIRE);
	peer = taken(w, 2, FW_HOST_WIRE);
	cr_assert(m != NULL && peer != NULL);
	cr_assert_eq(m->wire.edge_count, 1);
	cr_assert_eq(peer->wire.edge_count, 1);
	cr_expect(m->wire.edges[0].sends);
	cr_expect_not(peer->wire.edges[0].sends);
	cr_expect_eq(memcmp(m->wire.edges[0].token, peer->wire.edges[0].token, FW_TOKEN_BYTES), 0);
	cr_expect_eq(m->wire.edges[0].window_messages, 4);
	cr_expect_str_eq(m->wire.edges[0].other_end, "f2.rx.in");
	cr_expect_str_eq(peer->wire.edges[0].other_end, "f1.tx.out");
	cr_assert_eq(m->wire.peer_count, 1);
	cr_expect_eq(m->wire.peers[0].host, 2);
	cr_expect_eq(memcmp(m->wire.peers[0].addresses->bytes, "address", 7), 0);

	say_result(w, 1, 1, FW_HOST_WIRED);
	cr_expect_null(taken(w, 1, FW_HOST_START), "nothing runs before all are wired");
	say_result(w, 2, 2, FW_HOST_WIRED);
	cr_assert_not_null(taken(w, 1, FW_HOST_START));
	say_result(w, 1, 1, FW_HOST_STARTED);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_result(w, 2, 2, FW_HOST_STARTED);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	pass_beating(w, 2 * SECOND, 1, 2);
	say_stats(w, 2, 2, false, 0, 7);
	pass_beating(w, SECOND, 1, 2);
	assert_has(w->progress, "running 3.0 s, 7 messages");
	cr_expect_null(taken(w, 1, FW_HOST_STOP));
	say_event(w, 2, 2, FW_STATE_DONE, "");
	m = must_take(w, 1, FW_HOST_STOP);
	cr_expect_eq(m->stop.drain_ns, 0);
	cr_expect_eq(m->stop.exit_code, 0);
	say_end(w, 1, 1, 7, 0, 0, 0);
	say_stats(w, 2, 2, true, 0, 7);
	cr_expect_not(w->ended);
	say_exit(w, 2, 2, 0, 0, "");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
	cr_expect_eq(w->exit_code, 0);
	cr_expect_str_eq(w->errors, "");
	assert_has(w->json, "\"sent\": 7, \"delivered\": 7");
	assert_has(w->json, "\"lost\": 0, \"in_flight\": 0");
	assert_has(
		w->json,
		"\"edge\": \"ucx\", \"encrypted\": false, \"capacity\": 4, \"policy\": \"block\"");
	assert_has(w->json, "\"duration_ns\": 3000000000");
	assert_has(w->json,
		   "\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"done\"");
	assert_has(w->json, "\"latency_ns\": {");
}

WORLD_TEST(driver_start, edges_have_the_order_of_the_text, world_init)
{
	const struct fw_message *m;

	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {rx: {type: t}}}\n"
	       "  f3: {operators: {tx: {type: t}}}\n"
	       "flows: [f1.tx -> f2.rx, f1.tx.out -> f2.rx.in, f3.tx -> f2.rx]\n");
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
	hello(w, 3, "c", "f3");
	both_prepare(w);
	say_prepared(w, 3, 3, "f3", true);
	m = must_take(w, 2, FW_HOST_WIRE);
	cr_assert_eq(m->wire.edge_count, 2);
	cr_expect_eq(m->wire.edges[0].order, 0);
	cr_expect_eq(m->wire.edges[1].order, 2, "the second flow is there already");
	m = must_take(w, 3, FW_HOST_WIRE);
	cr_expect_eq(m->wire.edges[0].order, 2, "both ends of a flow agree");
}

WORLD_TEST(driver_start, fragments_on_one_worker_share_a_host, world_init)
{
	const struct fw_message *m;

	app(w, two_fragments);
	hello(w, 1, "a", NULL);
	m = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(m->create.fragment_count, 2);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
}

WORLD_TEST(driver_start, a_host_name_makes_a_process_of_its_own, world_init)
{
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {host: one, operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {rx: {type: t}}}\n"
	       "  f3: {host: one, operators: {rx: {type: t}}}\n");
	hello(w, 1, "a", NULL);
	cr_expect_eq(taken(w, 1, FW_HOST_CREATE)->create.fragment_count, 2);
	cr_expect_str_eq(taken(w, 1, FW_HOST_CREATE)->create.fragments[0], "f2");
}

static const char *two_hosts = "frag: 1\napplication: app\nfragments:\n"
			       "  f1: {host: one, operators: {tx: {type: t}}}\n"
			       "  f2: {host: two, operators: {rx: {type: t}}}\n";

static void expect_source(const struct fw_message *create, bool is_sent)
{
	cr_assert_not_null(create);
	cr_expect_eq(create->create.has_last_source, !is_sent);
	cr_expect_eq(create->create.source_bytes != 0, is_sent);
}

WORLD_TEST(driver_start, a_host_that_is_started_again_has_the_graph_of_before, NULL)
{
	two_run(w, receiver_restarts);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(w, 2 * SECOND, 1, 2);
	expect_source(taken(w, 2, FW_HOST_CREATE), false);
}

WORLD_TEST(driver_start, a_worker_gets_the_graph_again_after_another_one, world_init)
{
	hello(w, 1, "a", NULL);
	app(w, two_hosts);
	expect_source(taken(w, 1, FW_HOST_CREATE), true);
	expect_source(taken(w, 1, FW_HOST_CREATE), false);
	app(w, "frag: 1\napplication: other\nfragments: {f1: {operators: {rx: {type: t}}}}\n");
	expect_source(taken(w, 1, FW_HOST_CREATE), true);
	app(w, "frag: 1\napplication: third\nfragments:\n"
	       "  f1: {host: one, operators: {rx: {type: t}}}\n"
	       "  f2: {host: two, operators: {rx: {type: t}}}\n");
	expect_source(taken(w, 1, FW_HOST_CREATE), true);
	expect_source(taken(w, 1, FW_HOST_CREATE), false);
}

WORLD_TEST(driver_start, an_older_worker_gets_the_graph_with_each_host, world_init)
{
	struct fw_message old = {.kind = FW_HELLO,
				 .seq = 1,
				 .hello = {.major = FW_PROTOCOL_MAJOR,
					   .minor = FW_LAST_SOURCE_MINOR - 1,
					   .role = FW_ROLE_WORKER,
					   .name = "a",
					   .worker_address = "127.0.0.1",
					   .node = "node",
					   .clock = "node",
					   .version = "test",
					   .has = {[FRAGI_AMOUNT_CPU] = 4 * FRAGI_AMOUNT_ONE}}};

	say(w, 1, &old);
	app(w, two_hosts);
	expect_source(taken(w, 1, FW_HOST_CREATE), true);
	expect_source(taken(w, 1, FW_HOST_CREATE), true);
}

WORLD_TEST(driver_start, what_is_missing_is_said_again_and_again_until_the_start_timeout,
	   world_init)
{
	int lines = 0;

	app_timed(w, two_fragments, 25 * SECOND);
	hello(w, 1, "a", "f1");
	pass_beating(w, 24 * SECOND, 1, 1);
	for (const char *at = w->log; (at = strstr(at, "waiting for a worker for")) != NULL; at++)
		lines++;
	cr_expect_eq(lines, 3);
	assert_has(w->log, "waiting for a worker for f2 (1 worker here)");
	assert_has(w->progress, "waiting for f2");
	cr_expect_not(w->ended);
	pass_beating(w, 2 * SECOND, 1, 1);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 4);
	assert_has(w->reason, "there is no worker for f2");
	assert_has(w->reason, "--fragments f2");
	assert_has(w->json,
		   "\"name\": \"f1\", \"worker\": null, \"host_pid\": 0, \"state\": \"waiting\"");
}

WORLD_TEST(driver_start, the_start_timeout_bounds_the_whole_start, world_init)
{
	app_timed(w, two_fragments, 5 * SECOND);
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	pass_beating(w, 6 * SECOND, 1, 2);
	assert_has(w->errors, "f2 on worker b has not answered PREPARE");
	cr_assert_not_null(taken(w, 1, FW_HOST_KILL));
	both_are_killed(w);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 4);
}

Test(driver_start, every_request_has_a_deadline)
{
	for (int phase = 0; phase < 3; phase++) {
		static const char *const sentences[] = {
			"f2 on worker b did not answer PREPARE in time",
			"f2 on worker b did not answer WIRE in time",
			"f2 on worker b did not answer START in time"};
		struct world w;

		world_init_with(&w, (struct drv_config){.version = "test",
							.prepare_ns = 30 * SECOND,
							.start_ns = 10 * SECOND});
		app(&w, two_fragments);
		both_come(&w);
		say_prepared(&w, 1, 1, "f1", true);
		if (phase > 0) {
			say_prepared(&w, 2, 2, "f2", false);
			say_result(&w, 1, 1, FW_HOST_WIRED);
		}
		if (phase > 1) {
			say_result(&w, 2, 2, FW_HOST_WIRED);
			say_result(&w, 1, 1, FW_HOST_STARTED);
		}
		pass_beating(&w, phase == 0 ? 30500 * MS : 10500 * MS, 1, 2);
		assert_has(w.errors, sentences[phase]);
		say_exit(&w, 1, 1, 137, 9, "");
		pass_beating(&w, phase < 2 ? 300 * MS : 2300 * MS, 1, 2); /* others have started */
		cr_expect_not(w.ended);
		pass_beating(&w, 2 * SECOND, 1, 2); /* the other's end is not confirmed */
		cr_assert(w.ended);
		cr_expect_eq(w.exit_code, 1);
		world_fini(&w);
	}
}

/* Operators may load for minutes; only the start timeout and a stop limit that. */
WORLD_TEST(driver_start, a_long_start_is_awaited, world_init)
{
	struct fw_op_stats op = {.running = true};

	app(w, two_fragments);
	both_come(w);
	say_prepared(w, 1, 1, "f1", true);
	pass_beating(w, 100 * SECOND, 1, 2);
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	pass_beating(w, 100 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_STARTING);
	cr_expect_str_eq(w->errors, "");
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	for (int i = 0; i < 2; i++) {
		struct fw_message stats = of_host(FW_HOST_STATS, 2);

		stats.stats = (struct fw_host_stats){.ops = &op, .op_count = 1};
		say(w, 2, &stats);
		pass_beating(w, i == 0 ? 9 * SECOND : 1500 * MS, 1, 2);
		cr_expect_eq(drv_core_app_state(w->core),
			     i == 0 ? DRV_APP_STARTING : DRV_APP_CLOSING);
	}
	assert_has(w->errors,
		   "f2 on worker b did not answer START in time: f2.rx has not returned");
	both_are_killed(w);
	cr_expect_eq(w->exit_code, 1);
}

WORLD_TEST(driver_start, errors_of_prepare_are_told_together, world_init)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_failure errors[] = {
		{FRAGI_FAILURE_GRAPH_INVALID, "app.yaml:5:9: f2.rx: unknown parameter \"x\"", ""},
		{FRAGI_FAILURE_LIBRARY_MISSING, "app.yaml:5:10: f2.rx: more", ""}};

	app(w, two_fragments);
	both_come(w);
	message.prepared.errors = errors;
	message.prepared.error_count = 2;
	say(w, 2, &message);
	pass_beating(w, 1800 * MS, 1, 2);
	cr_expect_str_eq(w->errors, "", "the other host's errors are awaited");
	message = of_host(FW_HOST_PREPARED, 1);
	message.prepared.errors = errors;
	message.prepared.error_count = 1;
	say(w, 1, &message);
	assert_has(w->errors, "app.yaml:5:9: f2.rx: unknown parameter");
	assert_has(w->errors, "app.yaml:5:10: f2.rx: more");
	cr_expect_null(strstr(strstr(w->errors, "5:9") + 1, "5:9"),
		       "one error of two hosts is told once");
	pass_beating(w, 600 * MS, 1, 2);
	cr_expect_null(strstr(strstr(w->errors, "5:10") + 1, "5:10"),
		       "nor are errors told again when the wait for others would have been over");
	both_are_killed(w);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 2);
	cr_expect_str_eq(w->reason, errors[0].sentence);
	assert_has(w->json, "\"flows\": []");
}

Test(driver_start, the_operators_that_a_failed_host_names_are_shown_if_they_are_its_own)
{
	for (int own = 0; own < 2; own++) {
		struct fw_message message = of_host(FW_HOST_PREPARED, 2);
		struct fw_failure error = {FRAGI_FAILURE_GRAPH_INVALID, "f2.rx: no", ""};
		struct fw_op op = {.name = "rx", .type = "t"};
		struct fw_fragment table = {
			.name = own ? "f2" : "other", .ops = &op, .op_count = 1};
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		both_come(&w);
		message.prepared = (struct fw_host_prepared){.errors = &error,
							     .error_count = 1,
							     .fragments = &table,
							     .fragment_count = 1};
		say(&w, 2, &message);
		pass_beating(&w, 3 * SECOND, 1, 2);
		both_are_killed(&w);
		cr_assert(w.ended);
		cr_expect_eq(strstr(w.json, "{\"name\": \"rx\"") != NULL, own, "%s", w.json);
		world_fini(&w);
	}
}

WORLD_TEST(driver_start, an_error_of_prepare_does_not_wait_long_for_others, world_init)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_failure errors[] = {{FRAGI_FAILURE_LIBRARY_MISSING, "libx.so was not found", ""}};

	app(w, two_fragments);
	both_come(w);
	message.prepared.errors = errors;
	message.prepared.error_count = 1;
	say(w, 2, &message);
	pass_beating(w, 3 * SECOND, 1, 2);
	assert_has(w->errors, errors[0].sentence);
	both_are_killed(w);
	cr_expect_eq(w->exit_code, 3);
	assert_has(
		w->json,
		"\"failure\": {\"code\": \"library_missing\", \"scope\": \"node\", "
		"\"sentence\": \"libx.so was not found (worker b)\", \"operator\": null, \"worker\": \"b\"}");
}

WORLD_TEST(driver_start, a_host_that_cannot_be_started_is_what_is_missing, world_init)
{
	app(w, two_fragments);
	both_come(w);
	say_exit(w, 2, 2, 3, 0, "fraghost was not found beside workerd");
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 3);
}

WORLD_TEST(driver_start, answers_out_of_turn_end_the_application, world_init)
{
	to_prepared(w);
	say_result(w, 1, 1, FW_HOST_STARTED);
	assert_has(w->errors, "worker a sent HOST_STARTED for f1, which is wiring");
	both_are_killed(w);
	assert_has(w->json, "{\"code\": \"protocol\", \"scope\": \"host\"");
}

WORLD_TEST(driver_start, a_graph_error_ends_before_anybody_is_asked, world_init)
{
	app(w,
	    "frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {type: t}}}}\nflow: []\n");
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 2);
	assert_has(w->reason, "app.yaml:4:1");
}

WORLD_TEST(driver_start, bytes_that_are_no_source_are_refused, world_init)
{
	struct drv_event event = {.kind = DRV_EVENT_APP,
				  .app = {.source = "garbage", .source_bytes = 7}};

	step(w, &event);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 2);
	cr_expect_str_eq(w->reason, "the application is not a packed source");
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_ENDED);
	pass(w, SECOND);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_ENDED, "it is forgotten");
}

WORLD_TEST(driver_start, who_does_not_know_its_address_leaves_it_open, NULL)
{
	world_init_with(w, (struct drv_config){0});
	app_timed(w, two_fragments, SECOND);
	pass(w, 2 * SECOND);
	cr_assert(w->ended);
	cr_expect_str_eq(
		w->reason,
		"not started within 1.0 s: there is no worker for f1, f2: none has come; start workerd --address HOST:PORT --fragments f1,f2");
}

static void say_wait(struct world *w, uint64_t connection, const char *why)
{
	say(w, connection, &(struct fw_message){.kind = FW_BEAT, .beat.waits_for = why});
}

WORLD_TEST(driver_start, a_worker_without_network_gets_nothing_until_it_is_there, world_init)
{
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
	hello(w, 3, "c", NULL); /* takes whatever nobody names */
	say_wait(w, 2, "eth0 has no link");
	say_wait(w, 2, "eth0 has no link");
	assert_has(w->log, "worker b can run nothing yet: eth0 has no link");
	app(w, two_fragments);
	assert_has(w->log, "waiting for a worker for f2 (3 workers here); worker b can run nothing "
			   "yet: eth0 has no link");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	pass_beating(w, SECOND, 1, 1);
	say_wait(w, 2, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	assert_has(w->log, "f2 runs on worker b");
}

/* It was the only one that might run f2; then another one takes whatever nobody names. */
WORLD_TEST(driver_start, when_a_worker_leaves_others_get_what_it_alone_named, world_init)
{
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
	hello(w, 3, "c", NULL);
	say_wait(w, 2, "eth0 has no link");
	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	assert_has(w->log, "f2 runs on worker c");
}

WORLD_TEST(driver_start, a_worker_that_still_waits_at_the_timeout_is_named, world_init)
{
	hello(w, 1, "a", "f1");
	hello(w, 2, "b", "f2");
	say_wait(w, 2, "eth0 has no link");
	app_timed(w, two_fragments, SECOND);
	pass(w, 2 * SECOND);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 4);
	cr_expect_str_eq(
		w->reason,
		"not started within 1.0 s: there is no worker for f2: worker b can run nothing yet: eth0 has no link");
}

/* An application of count fragments with long names and without flows. */
static char *many_fragments(int count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "frag: 1\napplication: app\nfragments:\n");
	for (int i = 0; i < count; i++)
		fprintf(out, "  a_fragment_with_a_long_name_%d: {operators: {o: {type: t}}}\n", i);
	fclose(out);
	return text;
}

/* What has found no place is placed anew with each worker, but for what costs much to place. */
WORLD_TEST(driver_start, a_large_application_waits_before_it_is_placed_anew, world_init)
{
	const int fragments = DRV_PLACE_AT_ONCE / 2;
	char *text = many_fragments(fragments);
	uint32_t first;

	app(w, text);
	for (uint64_t c = 1; c <= 3; c++)
		hello_by(w, c, (const char *[]){"a", "b", "c"}[c - 1], "nothing",
			 (struct fw_hello){0});
	first = w->core->apps[0]->fragments[0].place.other_count +
		w->core->apps[0]->fragments[0].place.others_beyond;
	cr_expect_eq(first, 3, "two are placed at once, the third makes it wait: %u", first);
	hello_by(w, 4, "d", NULL, (struct fw_hello){0});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	pass(w, (int64_t)3 * fragments * DRV_PLACE_PAUSE_NS);
	cr_expect_neq(drv_core_app_state(w->core), DRV_APP_WAITING);
	free(text);
}

Test(driver_start, of_many_missing_fragments_some_are_named)
{
	struct world w;
	char *text = many_fragments(40);

	world_init(&w);
	app_timed(&w, text, SECOND);
	hello(&w, 1, "a", "something_else");
	pass_beating(&w, 2 * SECOND, 1, 1);
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 4);
	assert_has(w.reason, "a_fragment_with_a_long_name_0, a_fragment_with_a_long_name_1, ");
	assert_has(w.reason,
		   " more: 1 came, and none names it or takes whatever fits; start workerd ");
	assert_has(w.reason, "--fragments all");
	cr_expect_null(strstr(w.reason, "name_39"));
	world_fini(&w);
	free(text);
}

Test(driver_start, many_fragments_spread_over_many_workers_and_stop_together)
{
	struct world *w = malloc(sizeof(*w));
	char *text = many_fragments(60);
	char name[16];

	world_init(w);
	for (uint64_t c = 1; c <= 20; c++) {
		snprintf(name, sizeof(name), "w%d", (int)c);
		hello(w, c, name, NULL);
	}
	app(w, text);
	for (uint64_t c = 1; c <= 20; c++) {
		const struct fw_message *create = taken(w, c, FW_HOST_CREATE);

		cr_assert_not_null(create, "worker %d", (int)c);
		cr_expect_eq(create->create.fragment_count, 3);
		cr_expect_null(taken(w, c, FW_HOST_CREATE), "one host a worker");
	}
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	for (uint64_t c = 1; c <= 20; c++)
		cr_expect_not_null(taken(w, c, FW_HOST_KILL));
	world_fini(w);
	free(w);
	free(text);
}

WORLD_TEST(driver_start, several_applications_run_beside_each_other, world_init)
{
	struct fw_message prepared = of_host(FW_HOST_PREPARED, 1);
	char text[128], name[8];

	hello(w, 1, "a", NULL);
	for (int i = 1; i <= 9; i++) {
		snprintf(
			text, sizeof(text),
			"frag: 1\napplication: app%d\nfragments: {f1: {operators: {rx: {type: t}}}}\n",
			i);
		app(w, text);
	}
	cr_expect_eq(drv_core_app_count(w->core), 9);
	prepared.run = prepared.epoch = 7; /* it could not be prepared */
	say(w, 1, &prepared);
	for (int i = 1; i <= 9; i++) {
		snprintf(name, sizeof(name), "app%d", i);
		cr_expect_eq(drv_core_named_state(w->core, name),
			     i == 7 ? DRV_APP_KILLING : DRV_APP_PREPARING, "%s", name);
	}
}

WORLD_TEST(driver_start, an_application_that_does_not_fit_into_a_frame_is_told_so, NULL)
{
	struct fragi_spec_text file = {.file = "unused.yaml", .text = calloc(1, FRAGI_SOURCE_MAX)};
	struct fragi_spec_source source = {
		.graph = {"app.yaml", two_fragments, strlen(two_fragments)},
		.files = &file,
		.file_count = 1};
	struct drv_event event = {.kind = DRV_EVENT_APP};
	void *packed;

	cr_assert_eq(fragi_source_pack(&source, &packed, &event.app.source_bytes), 0);
	fragi_free(packed);
	file.length = FRAGI_SOURCE_MAX - event.app.source_bytes - 8; /* what a frame adds is more */
	cr_assert_eq(fragi_source_pack(&source, &packed, &event.app.source_bytes), 0);
	event.app.source = packed;
	world_init(w);
	both_come(w);
	step(w, &event);
	fragi_free(packed);
	free((char *)(uintptr_t)file.text);
	assert_has(
		w->errors,
		"what f1 on worker a needs to PREPARE does not fit into a frame of 4 MiB; shorten the graph, or the files that go with it");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	pass_beating(w, 2 * SECOND, 1, 2);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 1);
	assert_has(w->json, "{\"code\": \"graph_too_large\", \"scope\": \"graph\"");
}

Test(driver_start, nothing_is_made_without_randomness)
{
	struct drv_core *core = NULL;

	cr_expect_eq(drv_core_create(&(struct drv_config){0}, &core), -EINVAL);
	cr_expect_null(core);
}

/* Fragments with hosts of their own. */
static void app_of_hosts(struct world *w, const char *name, int hosts)
{
	char text[512];
	int used = snprintf(text, sizeof(text), "frag: 1\napplication: %s\nfragments:\n", name);

	for (int i = 0; i < hosts; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 "  f%d: {host: h%d, operators: {tx: {type: t}}}\n", i, i);
	app(w, text);
}

WORLD_TEST(driver_start, what_a_worker_has_no_room_for_waits_until_others_end, world_init)
{
	w->many_end = true;
	hello(w, 1, "a", NULL);
	for (int i = 0; i < FW_WORKER_HOSTS_MAX - 2; i++)
		app_of_hosts(w, "one", 1);
	app_of_hosts(w, "three", 3);
	app_of_hosts(w, "two", 2);
	app_of_hosts(w, "last", 1);
	cr_expect_eq(drv_core_named_state(w->core, "one"), DRV_APP_PREPARING);
	cr_expect_eq(drv_core_named_state(w->core, "three"), DRV_APP_WAITING);
	assert_has(w->log, "(1 worker here); worker a takes 256 hosts, and runs 254");
	for (size_t f = 0; f < 3; f++)
		assert_has(drv_app_named(w->core, "three")->fragments[f].place.reason,
			   "worker a takes 256 hosts, and runs 254");
	for (size_t f = 0; f < 3; f++)
		cr_expect_null(drv_app_named(w->core, "three")->fragments[f].host);
	cr_expect_eq(drv_core_named_state(w->core, "two"), DRV_APP_PREPARING, "just as many");
	cr_expect_eq(drv_core_named_state(w->core, "last"), DRV_APP_WAITING);
	assert_has(w->log, "worker a is nearest: it runs as many hosts as it takes");
	say_exit(w, 1, 1, 139, 11, "it crashed");
	pass(w, 200 * MS);
	cr_expect_eq(drv_core_named_state(w->core, "last"), DRV_APP_PREPARING);
	cr_expect_eq(drv_core_named_state(w->core, "three"), DRV_APP_WAITING);
}

static void app_of_cores(struct world *w, const char *name, int cores)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "frag: 1\napplication: %s\nfragments:\n"
		 "  f1: {operators: {tx: {type: t}}, requirements: {cpu: %d}}\n",
		 name, cores);
	app(w, text);
}

/* The one that waits is the oldest one then. */
WORLD_TEST(driver_start, what_requires_all_of_a_worker_waits_until_all_others_have_ended,
	   world_init)
{
	w->many_end = true;
	hello(w, 1, "a", NULL);
	app_of_cores(w, "first", 1);
	app_of_cores(w, "whole", 4);
	app_of_cores(w, "second", 1);
	cr_expect_eq(drv_core_named_state(w->core, "second"), DRV_APP_PREPARING);
	for (uint32_t run = 1; run <= 3; run += 2) {
		cr_expect_eq(drv_core_named_state(w->core, "whole"), DRV_APP_WAITING);
		speaking_run = run;
		say_exit(w, 1, 1, 139, 11, "it crashed");
		pass(w, 200 * MS);
	}
	cr_expect_eq(drv_core_named_state(w->core, "whole"), DRV_APP_PREPARING, "%s", w->log);
	speaking_run = 1;
}

/* A worker of an older frag does not end a host with its lease. */
WORLD_TEST(driver_start, a_lease_needs_a_worker_that_knows_leases, world_init)
{
	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {tx: {type: t}}, on_failure: {policy: migrate, lease: 5s}}\n");
	for (uint64_t c = 1; c <= 2; c++) {
		struct fw_message message = {.kind = FW_HELLO, .seq = 1};

		message.hello =
			(struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = DRV_LEASES_MINOR - 2 + (uint32_t)c,
					  .role = FW_ROLE_WORKER,
					  .name = c == 1 ? "a" : "b",
					  .version = "older",
					  .node = "node",
					  .has = {[FRAGI_AMOUNT_CPU] = 4 * FRAGI_AMOUNT_ONE}};
		say(w, c, &message);
		cr_expect_eq(taken(w, c, FW_HOST_CREATE) != NULL, c == 2, "%s", w->log);
	}
}

/* It would find its worker again, which is not drained. */
WORLD_TEST(driver_start, a_restart_may_wait_for_a_worker_that_waits_itself, NULL)
{
	const struct fw_message *answer;

	for (int is_drained = 0; is_drained < 2; is_drained++) {
		two_run(w, two_fragments);
		client_hello(w, 50, "top");
		say(w, 2, &(struct fw_message){.kind = FW_BEAT, .beat.waits_for = "its GPUs"});
		if (is_drained)
			say(w, 50,
			    &(struct fw_message){
				    .kind = FW_DRAIN, .seq = 2, .drain = {"b", false}});
		while (taken(w, 50, FW_ANSWER) != NULL)
			;
		say(w, 50,
		    &(struct fw_message){.kind = FW_STOP_APP,
					 .seq = 3,
					 .stop_app = {.name = "app", .restart = true}});
		answer = must_take(w, 50, FW_ANSWER);
		cr_expect_eq(answer->answer.failure.code,
			     is_drained ? FRAGI_FAILURE_WORKER_BUSY : FRAGI_FAILURE_NONE, "%s",
			     answer->answer.failure.sentence);
		world_fini(w);
	}
	world_init(w);
}
