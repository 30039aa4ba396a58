// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

Test(driver_core, an_application_runs_from_its_workers_to_its_summary)
{
	struct world w;
	const struct fw_message *m, *peer;

	world_init(&w);
	app(&w, two_fragments);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_WAITING);
	assert_has(w.log, "waiting for a worker for f1, f2");
	hello(&w, 2, "b", "f2");
	m = taken(&w, 2, FW_WELCOME);
	cr_assert_not_null(m);
	cr_expect_neq(m->welcome.session, 0);
	cr_expect_eq(m->welcome.dead_ns, 3 * SECOND);
	cr_expect_null(taken(&w, 2, FW_HOST_CREATE), "nothing starts before all have a worker");
	hello(&w, 1, "a", "app/f1");
	m = taken(&w, 1, FW_HOST_CREATE);
	cr_assert_not_null(m);
	cr_expect_str_eq(m->create.application, "app");
	cr_assert_eq(m->create.fragment_count, 1);
	cr_expect_str_eq(m->create.fragments[0], "f1");
	cr_expect_eq(m->host, 1);
	cr_expect_eq(m->epoch, 1);
	cr_expect_str_eq(taken(&w, 2, FW_HOST_CREATE)->create.fragments[0], "f2");

	say_prepared(&w, 2, 2, "f2", false);
	cr_expect_null(taken(&w, 2, FW_HOST_WIRE));
	say_prepared(&w, 1, 1, "f1", true);
	m = taken(&w, 1, FW_HOST_WIRE);
	peer = taken(&w, 2, FW_HOST_WIRE);
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
	cr_expect_eq(memcmp(m->wire.peers[0].address, "address", 7), 0);

	say_result(&w, 1, 1, FW_HOST_WIRED);
	cr_expect_null(taken(&w, 1, FW_HOST_START), "nothing runs before all are wired");
	say_result(&w, 2, 2, FW_HOST_WIRED);
	cr_assert_not_null(taken(&w, 1, FW_HOST_START));
	say_result(&w, 1, 1, FW_HOST_STARTED);
	say_event(&w, 1, 1, FW_HOST_DONE, "");
	say_result(&w, 2, 2, FW_HOST_STARTED);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	pass_beating(&w, 2 * SECOND, 1, 2);
	say_stats(&w, 2, 2, false, 0, 7);
	pass_beating(&w, SECOND, 1, 2);
	assert_has(w.progress, "running 3.0 s, 7 messages");
	cr_expect_null(taken(&w, 1, FW_HOST_STOP));
	say_event(&w, 2, 2, FW_HOST_DONE, "");
	m = taken(&w, 1, FW_HOST_STOP);
	cr_assert_not_null(m);
	cr_expect_eq(m->stop.drain_ns, 0);
	cr_expect_eq(m->stop.exit_code, 0);
	say_stats(&w, 1, 1, true, 7, 0);
	say_exit(&w, 1, 1, 0, 0, "");
	say_stats(&w, 2, 2, true, 0, 7);
	cr_expect_not(w.ended);
	say_exit(&w, 2, 2, 0, 0, "");
	cr_assert(w.ended);
	cr_expect_eq(w.result, FRAGI_SUMMARY_DONE);
	cr_expect_eq(w.exit_code, 0);
	cr_expect_str_eq(w.errors, "");
	assert_has(w.json, "\"sent\": 7, \"delivered\": 7");
	assert_has(w.json, "\"lost\": 0, \"in_flight\": 0");
	assert_has(w.json, "\"edge\": \"ucx\", \"capacity\": 4, \"policy\": \"block\"");
	assert_has(w.json, "\"duration_ns\": 3000000000");
	assert_has(w.json, "\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"done\"");
	assert_has(w.json, "\"latency_ns\": {");
	world_fini(&w);
}

Test(driver_core, fragments_on_one_worker_share_a_host)
{
	struct world w;
	const struct fw_message *m;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", NULL);
	m = taken(&w, 1, FW_HOST_CREATE);
	cr_assert_not_null(m);
	cr_expect_eq(m->create.fragment_count, 2);
	cr_expect_null(taken(&w, 1, FW_HOST_CREATE));
	world_fini(&w);
}

Test(driver_core, a_host_name_makes_a_process_of_its_own)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments:\n"
		"  f1: {host: one, operators: {tx: {type: t}}}\n"
		"  f2: {operators: {rx: {type: t}}}\n"
		"  f3: {host: one, operators: {rx: {type: t}}}\n");
	hello(&w, 1, "a", NULL);
	cr_expect_eq(taken(&w, 1, FW_HOST_CREATE)->create.fragment_count, 2);
	cr_expect_str_eq(taken(&w, 1, FW_HOST_CREATE)->create.fragments[0], "f2");
	world_fini(&w);
}

Test(driver_core, what_is_missing_is_said_again_and_again_until_the_start_timeout)
{
	struct world w;
	int lines = 0;

	world_init(&w);
	app_timed(&w, two_fragments, 25 * SECOND);
	hello(&w, 1, "a", "f1");
	pass_beating(&w, 24 * SECOND, 1, 1);
	for (const char *at = w.log; (at = strstr(at, "waiting for a worker for")) != NULL; at++)
		lines++;
	cr_expect_eq(lines, 3);
	assert_has(w.log, "waiting for a worker for f2 (1 worker here)");
	assert_has(w.progress, "waiting for f2");
	cr_expect_not(w.ended);
	pass_beating(&w, 2 * SECOND, 1, 1);
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 4);
	assert_has(w.reason, "there is no worker for f2");
	assert_has(w.reason, "--fragments f2");
	assert_has(w.json, "\"name\": \"f1\", \"worker\": null, \"host_pid\": 0, \"state\": \"waiting\"");
	world_fini(&w);
}

Test(driver_core, the_start_timeout_bounds_the_whole_start)
{
	struct world w;

	world_init(&w);
	app_timed(&w, two_fragments, 5 * SECOND);
	hello(&w, 1, "a", "f1");
	hello(&w, 2, "b", "f2");
	say_prepared(&w, 1, 1, "f1", true);
	pass_beating(&w, 6 * SECOND, 1, 2);
	assert_has(w.errors, "f2 on worker b has not answered PREPARE");
	cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
	say_exit(&w, 1, 1, 137, 9, "");
	say_exit(&w, 2, 2, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 4);
	world_fini(&w);
}

Test(driver_core, every_request_has_a_deadline)
{
	for (int phase = 0; phase < 3; phase++) {
		static const char *const sentences[] = {"f2 on worker b did not answer PREPARE in time",
							"f2 on worker b did not answer WIRE in time",
							"f2 on worker b did not answer START in time"};
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		hello(&w, 1, "a", "f1");
		hello(&w, 2, "b", "f2");
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
		cr_expect_not(w.ended);
		pass_beating(&w, 2 * SECOND, 1, 2); /* the other's end is not confirmed */
		cr_assert(w.ended);
		cr_expect_eq(w.exit_code, 1);
		world_fini(&w);
	}
}

Test(driver_core, errors_of_prepare_are_told_together)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	const char *errors[] = {"app.yaml:5:9: f2.rx: unknown parameter \"x\"", "app.yaml:5:10: f2.rx: more"};
	struct world w;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", "f1");
	hello(&w, 2, "b", "f2");
	message.prepared.exit_code = 2;
	message.prepared.errors = errors;
	message.prepared.error_count = 2;
	say(&w, 2, &message);
	cr_expect_str_eq(w.errors, "", "the other host's errors are awaited");
	message = of_host(FW_HOST_PREPARED, 1);
	message.prepared.exit_code = 2;
	message.prepared.errors = errors;
	message.prepared.error_count = 1;
	say(&w, 1, &message);
	assert_has(w.errors, "app.yaml:5:9: f2.rx: unknown parameter");
	assert_has(w.errors, "app.yaml:5:10: f2.rx: more");
	cr_expect_null(strstr(strstr(w.errors, "5:9") + 1, "5:9"), "one error of two hosts is told once");
	say_exit(&w, 1, 1, 137, 9, "");
	say_exit(&w, 2, 2, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 2);
	cr_expect_str_eq(w.reason, errors[0]);
	assert_has(w.json, "\"flows\": []");
	world_fini(&w);
}

Test(driver_core, an_error_of_prepare_does_not_wait_long_for_others)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	const char *errors[] = {"libx.so was not found"};
	struct world w;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", "f1");
	hello(&w, 2, "b", "f2");
	message.prepared.exit_code = 3;
	message.prepared.errors = errors;
	message.prepared.error_count = 1;
	say(&w, 2, &message);
	pass_beating(&w, SECOND, 1, 2);
	assert_has(w.errors, errors[0]);
	say_exit(&w, 1, 1, 137, 9, "");
	say_exit(&w, 2, 2, 137, 9, "");
	cr_expect_eq(w.exit_code, 3);
	world_fini(&w);
}

Test(driver_core, flows_that_do_not_fit_are_refused_with_all_their_errors)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {tx: {type: t}}}\n"
		"  f2: {operators: {rx: {type: t}}}\n"
		"flows: [f1.tx.aut -> f2.rx.in, f1.tx.out -> f2.rx.on]\n");
	hello(&w, 1, "a", "f1");
	hello(&w, 2, "b", "f2");
	say_prepared(&w, 1, 1, "f1", true);
	say_prepared(&w, 2, 2, "f2", false);
	assert_has(w.errors, "app.yaml:6:9: ");
	assert_has(w.errors, "app.yaml:6:32: ");
	assert_has(w.errors, "no output \"aut\"");
	say_exit(&w, 1, 1, 137, 9, "");
	say_exit(&w, 2, 2, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 2);
	cr_expect_null(taken(&w, 1, FW_HOST_WIRE));
	world_fini(&w);
}

Test(driver_core, an_input_that_nothing_reaches_is_refused)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments: {f1: {operators: {rx: {type: t}}}}\n");
	hello(&w, 1, "a", "f1");
	say_prepared(&w, 1, 1, "f1", false);
	assert_has(w.errors, "3:30: f1.rx: input \"in\" is not connected");
	world_fini(&w);
}

Test(driver_core, a_crash_is_the_one_cause_and_takes_all_down)
{
	static const char crash[] = "fraghost 102 crashed in f2.rx, tick 5: signal 11 (SIGSEGV)";
	const struct fw_message *m;
	struct world w;

	world_init(&w);
	to_running(&w);
	pass_beating(&w, SECOND, 1, 2);
	say_event(&w, 1, 1, FW_HOST_PEER_LOST, "connection reset");
	cr_expect_str_eq(w.errors, "", "better news may come");
	say_stats(&w, 2, 2, true, 0, 5);
	say_exit(&w, 2, 2, 139, 11, crash);
	m = taken(&w, 1, FW_HOST_KILL);
	cr_assert_not_null(m);
	cr_expect_eq(m->stop.exit_code, 1);
	assert_has(w.log, "last words");
	say_event(&w, 1, 1, FW_HOST_FAILED, "something else");
	pass_beating(&w, 500 * MS, 1, 2);
	say_stats(&w, 1, 1, true, 8, 0);
	say_exit(&w, 1, 1, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_eq(w.result, FRAGI_SUMMARY_FAILED);
	cr_expect_eq(w.exit_code, 1);
	cr_expect_str_eq(w.reason, crash);
	cr_expect_null(strstr(strstr(w.log, crash) + 1, crash), "the sentence is told once");
	assert_has(w.json, "\"sent\": 8, \"delivered\": 5");
	assert_has(w.json, "\"lost\": 3, \"in_flight\": 0");
	assert_has(w.json, "\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"failed\"");
	assert_has(w.json, "\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"stopped\"");
	world_fini(&w);
}

Test(driver_core, a_crash_that_a_sleeping_worker_tells_late_is_still_the_cause)
{
	static const char crash[] = "fraghost 102 crashed in f2.rx, tick 5: signal 11 (SIGSEGV)";
	struct world w;

	world_init(&w);
	to_running(&w);
	pass_beating(&w, SECOND, 1, 2);
	say_event(&w, 1, 1, FW_HOST_PEER_LOST, "connection reset");
	pass_beating(&w, 1500 * MS, 1, 1);
	cr_expect_str_eq(w.errors, "", "the other worker has not been heard since");
	pass_beating(&w, 300 * MS, 1, 2);
	cr_expect_str_eq(w.errors, "", "it has just come back");
	say_exit(&w, 2, 2, 139, 11, crash);
	say_exit(&w, 1, 1, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_str_eq(w.reason, crash);
	world_fini(&w);
}

Test(driver_core, a_host_that_exits_early_with_zero_is_a_failure)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_exit(&w, 2, 2, 0, 0, "");
	assert_has(w.errors, "the fraghost of f2 on worker b ended with 0 before the application did");
	world_fini(&w);
}

Test(driver_core, a_host_that_cannot_be_started_is_what_is_missing)
{
	struct world w;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", "f1");
	hello(&w, 2, "b", "f2");
	say_exit(&w, 2, 2, 3, 0, "fraghost was not found beside workerd");
	say_exit(&w, 1, 1, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 3);
	world_fini(&w);
}

Test(driver_core, an_operator_that_fails_ends_the_application_with_its_sentence)
{
	struct fw_message message = of_host(FW_HOST_EVENT, 1);
	struct world w;

	world_init(&w);
	to_running(&w);
	message.event = (struct fw_host_event){
		.state = FW_HOST_FAILED, .exit_code = 1, .sentence = "f1.tx: no camera"};
	say(&w, 1, &message);
	cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
	cr_assert_not_null(taken(&w, 2, FW_HOST_KILL));
	say_exit(&w, 1, 1, 137, 9, "");
	say_exit(&w, 2, 2, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_str_eq(w.reason, "f1.tx: no camera");
	world_fini(&w);
}

Test(driver_core, a_silent_worker_is_suspected_then_dead)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_stats(&w, 1, 1, false, 6, 0);
	say_stats(&w, 2, 2, false, 0, 5);
	pass_beating(&w, 1500 * MS, 1, 1);
	assert_has(w.log, "worker b has not been heard for 1.");
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	say_event(&w, 1, 1, FW_HOST_PEER_LOST, "no beat");
	pass_beating(&w, SECOND, 1, 1);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "a suspect is not judged yet");
	pass_beating(&w, SECOND, 1, 1);
	assert_has(w.errors, "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard for 3.");
	cr_expect_eq(w.closed[0], 2);
	cr_expect_eq(drv_core_session_count(w.core), 1);
	say_stats(&w, 1, 1, true, 20, 0);
	say_exit(&w, 1, 1, 137, 9, "");
	cr_assert(w.ended);
	assert_has(w.json, "\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"lost\"");
	assert_has(w.json, "\"sent\": 20, \"delivered\": 16");
	assert_has(w.json, "\"lost\": 4");
	world_fini(&w);
}

Test(driver_core, a_worker_that_is_heard_again_is_no_longer_suspected)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	pass_beating(&w, 2 * SECOND, 1, 1);
	beat(&w, 2);
	assert_has(w.log, "worker b is heard again");
	pass_beating(&w, 10 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	world_fini(&w);
}

Test(driver_core, who_slept_himself_judges_nobody)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	w.now_ns += 60 * SECOND; /* SIGSTOP, SIGCONT */
	step(&w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	pass_beating(&w, 5 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	cr_expect_str_eq(w.errors, "");
	world_fini(&w);
}

Test(driver_core, who_is_always_late_finds_the_dead_too)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	for (int i = 0; i < 7; i++) { /* every timer is late by more than a beat */
		w.now_ns += 600 * MS;
		step(&w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		beat(&w, 1);
	}
	assert_has(w.errors, "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard for");
	world_fini(&w);
}

static void fail_wiring(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_WIRED, 1);

	message.result =
		(struct fw_host_result){.exit_code = 1, .sentence = "host 2 could not be connected to"};
	say(w, 1, &message);
}

Test(driver_core, the_end_of_a_host_is_the_cause_of_what_its_peer_could_not_wire)
{
	struct world w;

	world_init(&w);
	to_prepared(&w);
	fail_wiring(&w);
	pass_beating(&w, 100 * MS, 1, 2);
	say_exit(&w, 2, 2, 137, 9, "fraghost 102 of f2 was killed");
	say_exit(&w, 1, 1, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_str_eq(w.reason, "fraghost 102 of f2 was killed");
	world_fini(&w);
}

Test(driver_core, what_could_not_be_wired_is_the_cause_if_nothing_better_comes)
{
	struct world w;

	world_init(&w);
	to_prepared(&w);
	fail_wiring(&w);
	pass_beating(&w, SECOND, 1, 2);
	assert_has(w.errors, "host 2 could not be connected to");
	cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
	cr_assert_not_null(taken(&w, 2, FW_HOST_KILL));
	world_fini(&w);
}

Test(driver_core, a_connection_that_breaks_counts_at_once)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	step(&w, &(struct drv_event){
			 .kind = DRV_EVENT_CLOSED, .connection = 1, .text = "connection reset by peer"});
	assert_has(w.errors, "worker a at 10.0.0.9:1, which ran f1, was lost: connection reset by peer");
	say_stats(&w, 2, 2, true, 0, 3);
	say_exit(&w, 2, 2, 137, 9, "");
	cr_assert(w.ended);
	assert_has(w.json, "\"sent\": 7, \"delivered\": 3");
	assert_has(w.json, "\"lost\": 4");
	world_fini(&w);
}

Test(driver_core, a_worker_that_leaves_while_it_has_nothing_is_no_failure)
{
	struct world w;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", "f1");
	step(&w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_WAITING);
	hello(&w, 3, "a", "f1");
	hello(&w, 2, "b", "f2");
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_PREPARING);
	world_fini(&w);
}

Test(driver_core, a_cut_data_link_is_judged_when_no_better_cause_shows)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_event(&w, 2, 2, FW_HOST_PEER_LOST, "no beat for 3.0 s");
	pass_beating(&w, SECOND, 1, 2);
	assert_has(w.errors, "the data link between f2 on worker b and f1 on worker a was lost, while their "
			     "control links are up: no beat for 3.0 s");
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_KILLING);
	world_fini(&w);
}

Test(driver_core, stop_drains_and_the_second_one_kills)
{
	for (int second = 0; second < 2; second++) {
		const struct fw_message *m;
		struct world w;

		world_init(&w);
		to_running(&w);
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		cr_expect_eq(drv_core_app_state(w.core), DRV_APP_DRAINING);
		m = taken(&w, 1, FW_HOST_STOP);
		cr_assert_not_null(m);
		cr_expect_gt(m->stop.drain_ns, 0);
		say_event(&w, 1, 1, FW_HOST_DONE, "");
		cr_expect_null(taken(&w, 1, FW_HOST_STOP), "it waits for the others to drain");
		if (second) {
			step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
			cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
			say_exit(&w, 1, 1, 137, 9, "");
			say_exit(&w, 2, 2, 137, 9, "");
		} else {
			say_event(&w, 2, 2, FW_HOST_DONE, "");
			m = taken(&w, 1, FW_HOST_STOP);
			cr_assert_not_null(m);
			cr_expect_eq(m->stop.drain_ns, 0);
			say_exit(&w, 1, 1, 0, 0, "");
			say_exit(&w, 2, 2, 0, 0, "");
		}
		cr_assert(w.ended);
		cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED);
		cr_expect_eq(w.exit_code, second ? 130 : 0);
		cr_expect_str_eq(w.errors, "");
		world_fini(&w);
	}
}

Test(driver_core, a_drain_that_takes_too_long_is_cut)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	pass_beating(&w, 13 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_CLOSING);
	pass_beating(&w, 3 * SECOND, 1, 2);
	cr_expect_not(w.ended && w.result == FRAGI_SUMMARY_FAILED);
	cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
	say_exit(&w, 1, 1, 137, 9, "");
	say_exit(&w, 2, 2, 137, 9, "");
	cr_assert(w.ended);
	cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED);
	world_fini(&w);
}

Test(driver_core, stop_before_anything_runs)
{
	for (int phase = 0; phase < 3; phase++) {
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		if (phase > 0) {
			hello(&w, 1, "a", "f1");
			hello(&w, 2, "b", "f2");
		}
		if (phase > 1) {
			say_prepared(&w, 1, 1, "f1", true);
			say_prepared(&w, 2, 2, "f2", false);
		}
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		if (phase > 0) {
			cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
			say_stats(&w, 1, 1, true, 0, 0);
			say_exit(&w, 1, 1, 137, 9, "");
			say_exit(&w, 2, 2, 137, 9, "");
		}
		cr_assert(w.ended);
		cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED);
		cr_expect_eq(w.exit_code, 0);
		world_fini(&w);
	}
}

Test(driver_core, stop_while_some_hosts_run_already)
{
	struct world w;

	world_init(&w);
	to_prepared(&w);
	say_result(&w, 1, 1, FW_HOST_WIRED);
	say_result(&w, 2, 2, FW_HOST_WIRED);
	say_result(&w, 1, 1, FW_HOST_STARTED);
	step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_STARTING);
	say_result(&w, 2, 2, FW_HOST_STARTED);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_DRAINING);
	world_fini(&w);
}

Test(driver_core, an_operator_may_stop_the_application_and_it_is_done)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_event(&w, 1, 1, FW_HOST_STOPPED, "");
	cr_assert_not_null(taken(&w, 2, FW_HOST_STOP));
	say_event(&w, 1, 1, FW_HOST_DONE, "");
	say_event(&w, 2, 2, FW_HOST_DONE, "");
	say_exit(&w, 1, 1, 0, 0, "");
	say_exit(&w, 2, 2, 0, 0, "");
	cr_assert(w.ended);
	cr_expect_eq(w.result, FRAGI_SUMMARY_DONE);
	world_fini(&w);
}

Test(driver_core, a_crash_while_it_ends_is_told)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_event(&w, 1, 1, FW_HOST_DONE, "");
	say_event(&w, 2, 2, FW_HOST_DONE, "");
	say_exit(&w, 1, 1, 0, 0, "");
	say_exit(&w, 2, 2, 134, 6, "fraghost 102 crashed of f2: signal 6 (SIGABRT)");
	cr_assert(w.ended);
	cr_expect_eq(w.result, FRAGI_SUMMARY_FAILED);
	assert_has(w.reason, "SIGABRT");
	world_fini(&w);
}

Test(driver_core, rest_is_waves_in_which_sent_is_delivered_for_the_time_of_death)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_idle(&w, 1, 1, 10, 0);
	say_idle(&w, 2, 2, 0, 9); /* one is on the way */
	say_idle(&w, 1, 1, 10, 0);
	say_idle(&w, 2, 2, 0, 10);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "one balanced wave");
	say_event(&w, 2, 2, FW_HOST_RUNNING, "");
	say_idle(&w, 1, 1, 11, 0);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "a host is busy");
	say_idle(&w, 2, 2, 0, 11);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "balanced, but more was sent meanwhile");
	say_idle(&w, 2, 2, 0, 11);
	say_idle(&w, 2, 2, 0, 11);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "both must say it again");
	say_idle(&w, 1, 1, 11, 0);
	w.now_ns += 2900 * MS;
	say_idle(&w, 1, 1, 11, 0);
	say_idle(&w, 2, 2, 0, 11);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "credit may still be under way");
	w.now_ns += 100 * MS;
	say_idle(&w, 1, 1, 11, 0);
	say_idle(&w, 2, 2, 0, 11);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_CLOSING);
	assert_has(w.log, "at rest");
	say_exit(&w, 1, 1, 0, 0, "");
	say_exit(&w, 2, 2, 0, 0, "");
	cr_expect_eq(w.result, FRAGI_SUMMARY_DONE);
	world_fini(&w);
}

Test(driver_core, rest_with_a_host_that_is_done_waits_for_its_page)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_event(&w, 1, 1, FW_HOST_DONE, "");
	for (int i = 0; i < 4; i++)
		say_idle(&w, 2, 2, 0, 10);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	say_stats(&w, 1, 1, false, 10, 0);
	say_stats(&w, 1, 1, false, 10, 0);
	say_idle(&w, 2, 2, 0, 10);
	w.now_ns += 3 * SECOND;
	say_idle(&w, 2, 2, 0, 10);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_CLOSING);
	world_fini(&w);
}

Test(driver_core, another_major_is_refused_naming_both)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 4};
	const struct fw_message *m;
	struct world w;

	world_init(&w);
	message.hello.major = 99;
	say(&w, 1, &message);
	m = taken(&w, 1, FW_REFUSED);
	cr_assert_not_null(m);
	cr_expect_eq(m->refused.exit_code, 5);
	assert_has(m->refused.sentence, "99.0");
	assert_has(m->refused.sentence, "1.0");
	cr_expect_eq(w.closed[0], 1);
	cr_expect_eq(drv_core_session_count(w.core), 0);
	world_fini(&w);
}

Test(driver_core, strangers_and_clients_are_sent_away)
{
	struct fw_message message = {.kind = FW_HELLO};
	struct world w;

	world_init(&w);
	say(&w, 7, &(struct fw_message){.kind = FW_BEAT});
	cr_expect_eq(w.closed[0], 7);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR, .role = FW_ROLE_CLIENT};
	say(&w, 8, &message);
	assert_has(taken(&w, 8, FW_REFUSED)->refused.sentence, "not built yet");
	cr_expect_eq(drv_core_session_count(w.core), 0);
	world_fini(&w);
}

Test(driver_core, names_are_made_unique)
{
	struct world w;

	world_init(&w);
	hello(&w, 1, "node", NULL);
	hello(&w, 2, "node", NULL);
	hello(&w, 3, "node", NULL);
	cr_expect_str_eq(taken(&w, 1, FW_WELCOME)->welcome.name, "node");
	cr_expect_str_eq(taken(&w, 2, FW_WELCOME)->welcome.name, "node#2");
	cr_expect_str_eq(taken(&w, 3, FW_WELCOME)->welcome.name, "node#3");
	world_fini(&w);
}

Test(driver_core, a_misspelt_fragment_is_pointed_out)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments: {camera: {operators: {tx: {type: t}}}}\n");
	hello(&w, 1, "a", "camrea");
	assert_has(w.log, "names the fragment \"camrea\", which this application does not have; did you mean "
			  "\"camera\"?");
	world_fini(&w);
}

Test(driver_core, frames_of_other_hosts_runs_and_epochs_are_not_heard)
{
	struct fw_message message;
	struct world w;

	world_init(&w);
	to_running(&w);
	say_exit(&w, 1, 2, 139, 11, "not its host");
	message = of_host(FW_HOST_EXIT, 1);
	message.epoch = 2;
	say(&w, 1, &message);
	message.epoch = 1;
	message.run = 9;
	say(&w, 1, &message);
	message = of_host(FW_HOST_EXIT, 77);
	say(&w, 1, &message);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	world_fini(&w);
}

Test(driver_core, tables_that_were_not_asked_for_are_refused)
{
	struct world w;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", "f1");
	hello(&w, 2, "b", "f2");
	say_prepared(&w, 1, 1, "f2", true);
	assert_has(w.errors, "worker a prepared other fragments than f1");
	world_fini(&w);
}

Test(driver_core, answers_out_of_turn_end_the_application)
{
	struct world w;

	world_init(&w);
	to_prepared(&w);
	say_result(&w, 1, 1, FW_HOST_STARTED);
	assert_has(w.errors, "worker a sent HOST_STARTED for f1, which is wiring");
	world_fini(&w);
}

Test(driver_core, a_graph_error_ends_before_anybody_is_asked)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {type: t}}}}\nflow: []\n");
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 2);
	assert_has(w.reason, "app.yaml:4:1");
	world_fini(&w);
}

Test(driver_core, every_failure_of_memory_is_told)
{
	for (int64_t skip = 0;; skip++) {
		struct world *w = calloc(1, sizeof(*w));
		struct fw_message *hello_message;
		struct fragi_spec_source source = {
			.graph = {"app.yaml", two_fragments, strlen(two_fragments)}};
		struct drv_event event = {.kind = DRV_EVENT_APP};
		struct fw_message message = {.kind = FW_HELLO};
		uint8_t *frame;
		size_t size;
		void *packed;
		int r;

		world_init(w);
		cr_assert_eq(fragi_source_pack(&source, &packed, &event.app.source_bytes), 0);
		event.app.source = packed;
		message.hello = (struct fw_hello){.major = 1, .role = FW_ROLE_WORKER, .name = "a"};
		cr_assert_eq(fw_encode(&message, &frame, &size), 0);
		cr_assert_eq(fw_decode(frame + 4, size - 4, &hello_message, NULL), 0);
		fragi_alloc_fail_after(skip, 1);
		r = drv_core_step(w->core, &event, w->now_ns, &w->actions);
		if (r == 0) {
			event = (struct drv_event){
				.kind = DRV_EVENT_MESSAGE, .connection = 1, .message = hello_message};
			hello_message = NULL;
			drv_actions_reset(&w->actions);
			r = drv_core_step(w->core, &event, w->now_ns, &w->actions);
		}
		fw_message_free(hello_message);
		cr_assert(r == 0 || r == -ENOMEM);
		if (fragi_alloc_fail_off() == 0)
			skip = INT64_MAX - 1;
		fragi_free(packed);
		fragi_free(frame);
		world_fini(w);
		free(w);
		if (skip == INT64_MAX - 1)
			break;
	}
}
