// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

WORLD_TEST(driver_failure, a_crash_is_the_one_cause_and_takes_all_down, world_init)
{
	static const char crash[] = "fraghost 102 crashed in f2.rx, tick 5: signal 11 (SIGSEGV)";
	const struct fw_message *m;

	to_running(w);
	pass_beating(w, SECOND, 1, 2);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
	cr_expect_str_eq(w->errors, "", "better news may come");
	say_stats(w, 2, 2, true, 0, 5);
	say_exit(w, 2, 2, 139, 11, crash);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	m = must_take(w, 1, FW_HOST_STOP);
	cr_expect_gt(m->stop.drain_ns, 0);
	cr_expect_eq(m->stop.exit_code, 1);
	cr_expect_str_eq(m->stop.reason, crash, "its worker's terminal shows why");
	cr_expect_eq(m->stop.failure, FRAGI_FAILURE_HOST_CRASHED);
	assert_has(w->log, "last words");
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
	pass_beating(w, 500 * MS, 1, 2);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	m = taken(w, 1, FW_HOST_STOP);
	cr_assert_not_null(m, "no lost link is judged any more");
	cr_expect_eq(m->stop.drain_ns, 0);
	say_end(w, 1, 1, 8, 0, 0, 0);
	cr_expect_null(taken(w, 1, FW_HOST_KILL));
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_eq(w->exit_code, 1);
	cr_expect_str_eq(w->reason, crash);
	cr_expect_null(strstr(strstr(w->log, crash) + 1, crash), "the sentence is told once");
	assert_has(w->json, "\"sent\": 8, \"delivered\": 5");
	assert_has(w->json, "\"lost\": 3, \"in_flight\": 0");
	assert_has(w->json,
		   "\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"failed\"");
	assert_has(
		w->json,
		"\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"stopped\"");
}

WORLD_TEST(driver_failure, a_lost_link_is_judged_without_hearing_from_its_reporter_again,
	   world_init)
{
	to_running(w);
	pass_beating(w, SECOND, 1, 2);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
	pass_beating(w, 600 * MS, 2, 2);
	assert_has(w->errors, "was lost, while their control connections are up");
}

/*
 * Its worker may still report that its host has ended, until it is heard after the report. Workers
 * beat so rarely here that none is silent for long.
 */
WORLD_TEST(driver_failure, a_lost_link_waits_until_its_other_end_was_heard, NULL)
{
	static const struct {
		int64_t heard_ns; /* after the report */
		bool is_judged;
	} rows[] = {{-100 * MS, false}, {0, false}, {300 * MS, true}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		if (i > 0)
			world_fini(w);
		world_init_with(w, (struct drv_config){.version = "test",
						       .clock = "node",
						       .address = "127.0.0.1:1",
						       .beat_ns = SECOND,
						       .ends_with_app = true});
		to_running(w);
		pass_beating(w, SECOND, 1, 2);
		if (rows[i].heard_ns < 0)
			pass(w, -rows[i].heard_ns);
		say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		if (rows[i].heard_ns > 0)
			pass(w, rows[i].heard_ns);
		if (rows[i].heard_ns >= 0)
			beat(w, 2);
		pass_beating(w, 500 * MS, 1, 1);
		cr_expect_eq(w->errors[0] != '\0', rows[i].is_judged, "%zu: %s", i, w->errors);
		pass_beating(w, 2 * SECOND, 1, 2);
		assert_has(w->errors, "was lost, while their control connections are up");
	}
}

Test(driver_failure, a_crash_that_a_sleeping_worker_tells_late_is_still_the_cause)
{
	static const char crash[] = "fraghost 102 crashed in f2.rx, tick 5: signal 11 (SIGSEGV)";

	for (int on_the_way = 0; on_the_way < 2; on_the_way++) {
		struct world w;

		world_init(&w);
		to_running(&w);
		pass_beating(&w, SECOND, 1, 2);
		say_event(&w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		pass(&w, 10 * MS);
		if (on_the_way) /* what it said before it fell asleep */
			beat(&w, 2);
		pass_beating(&w, on_the_way ? 900 * MS : 1500 * MS, 1, 1);
		cr_expect_str_eq(w.errors, "", "the other worker has not been heard since");
		pass_beating(&w, 300 * MS, 1, 2);
		cr_expect_str_eq(w.errors, "", "it has just come back");
		say_exit(&w, 2, 2, 139, 11, crash);
		say_exit(&w, 1, 1, 137, 9, "");
		cr_assert(w.ended);
		cr_expect_str_eq(w.reason, crash);
		world_fini(&w);
	}
}

WORLD_TEST(driver_failure, a_host_that_exits_early_with_zero_is_a_failure, world_init)
{
	to_running(w);
	say_exit(w, 2, 2, 0, 0, "");
	assert_has(w->errors,
		   "the fraghost of f2 on worker b ended with 0 before the application did");
}

static void fail_operator(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_EVENT, 1);

	message.event = (struct fw_host_event){
		.state = FW_STATE_FAILED,
		.failure = {FRAGI_FAILURE_OPERATOR_FAILED, "f1.tx: no camera", "f1.tx"}};
	say(w, 1, &message);
}

/* What failed ends; the others drain first, and each of them has the time of a stop. */
WORLD_TEST(driver_failure, a_password_in_its_sentence_is_logged_nowhere, world_init)
{
	to_running(w);
	say_exit(w, 2, 2, 1, 0, "f2.rx: rtsp://joe:s3cret@camera/1 is not there");
	assert_has(w->log, "f2.rx: rtsp://camera/1 is not there");
	cr_expect_null(strstr(w->log, "s3cret"), "%s", w->log);
}

WORLD_TEST(driver_failure, an_operator_that_fails_ends_the_application_with_its_sentence,
	   world_init)
{
	const struct fw_message *failed, *lives;

	to_running(w);
	fail_operator(w);
	failed = taken(w, 1, FW_HOST_STOP);
	lives = taken(w, 2, FW_HOST_STOP);
	cr_assert(failed != NULL && lives != NULL);
	cr_expect_eq(failed->stop.drain_ns, 0);
	cr_expect_gt(lives->stop.drain_ns, 0);
	say_event(w, 2, 2, FW_STATE_DONE, "");
	pass_beating(w, 11900 * MS, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING, "the operators may take it");
	say_exit(w, 1, 1, 0, 0, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	say_exit(w, 2, 2, 0, 0, "");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_eq(w->exit_code, 1);
	cr_expect_str_eq(w->reason, "f1.tx: no camera");
	assert_has(w->json, "\"host_pid\": 101, \"state\": \"failed\"");
	assert_has(w->json, "\"host_pid\": 102, \"state\": \"stopped\"");
}

WORLD_TEST(driver_failure, a_host_that_does_not_stop_after_a_failure_is_killed, world_init)
{
	to_running(w);
	say_idle(w, 1, 1, 10, 2);
	say_exit(w, 2, 2, 139, 11, "fraghost 102 crashed in f2.rx");
	pass_beating(w, 11900 * MS, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	pass_beating(w, 200 * MS, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	assert_has(w->log, "did not drain within 10.0 s");
	pass_beating(w, 1800 * MS, 1, 2);
	cr_expect_null(taken(w, 1, FW_HOST_KILL));
	pass_beating(w, 200 * MS, 1, 2);
	cr_expect_not_null(taken(w, 1, FW_HOST_KILL));
	assert_has(w->log, "f1 on worker a did not end within 2.0 s; it is killed");
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 1);
	cr_expect_str_eq(w->reason, "fraghost 102 crashed in f2.rx");
}

/* Whether it has been asked of host 2, and of it alone, that it ends at once. */
static bool is_killed(struct world *w)
{
	return taken(w, 2, FW_HOST_KILL) != NULL;
}

/*
 * Where many hosts wait for a processor none is late that only has others before it: one of two is
 * wired, has ended or was killed just before the time for both is over.
 */
WORLD_TEST(driver_failure, each_host_that_comes_further_gives_the_others_time, NULL)
{
	world_init(w);
	to_prepared(w);
	pass_beating(w, 9900 * MS, 1, 2);
	say_result(w, 1, 1, FW_HOST_WIRED);
	pass_beating(w, 9900 * MS, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WIRING, "%s", w->log);
	pass_beating(w, 200 * MS, 1, 2);
	cr_expect(is_killed(w), "%s", w->log);
	pass_beating(w, 700 * MS, 1, 2);
	say_exit(w, 1, 1, 137, 9, "");
	pass_beating(w, 900 * MS, 1, 2);
	cr_expect_not(w->ended, "%s", w->log);
	pass_beating(w, 200 * MS, 1, 2);
	cr_expect(w->ended, "%s", w->log);
	world_fini(w);

	world_init(w);
	to_running(w);
	both_are_done(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	pass_beating(w, 1900 * MS, 1, 2);
	say_exit(w, 1, 1, 0, 0, "");
	pass_beating(w, 1900 * MS, 1, 2);
	cr_expect_not(is_killed(w), "%s", w->log);
	pass_beating(w, 200 * MS, 1, 2);
	cr_expect(is_killed(w), "%s", w->log);
}

/* Nothing that a cycle could be compared with is left. */
WORLD_TEST(driver_failure, a_cycle_that_rests_after_a_failure_has_drained, world_init)
{
	to_running(w);
	say_exit(w, 2, 2, 139, 11, "fraghost 102 crashed in f2.rx");
	say_idle(w, 1, 1, 10, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
}

/* A stop asks for no more than the failure does; the second one kills, and hides no failure. */
WORLD_TEST(driver_failure, a_stop_of_what_has_failed_leaves_the_failure, world_init)
{
	to_running(w);
	fail_operator(w);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
		step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	}
	cr_expect_not_null(taken(w, 2, FW_HOST_KILL));
	both_are_killed(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_eq(w->exit_code, 1);
	cr_expect_str_eq(w->reason, "f1.tx: no camera");
}

/* Some operators run already, others are in their start: nothing is to drain. */
WORLD_TEST(driver_failure, what_fails_in_a_start_stops_what_was_started, world_init)
{
	struct fw_message started = of_host(FW_HOST_STARTED, 2);

	started.result.failure =
		(struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED, "f2.rx: no disk", "f2.rx"};
	to_prepared(w);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	say(w, 2, &started);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	for (uint64_t c = 1; c <= 2; c++) {
		const struct fw_message *m = must_take(w, c, FW_HOST_STOP);
		cr_expect_eq(m->stop.drain_ns, 0);
		cr_expect_str_eq(m->stop.reason, "f2.rx: no disk");
	}
	both_exit(w);
	cr_assert(w->ended);
	cr_expect_eq(w->exit_code, 1);
	cr_expect_str_eq(w->reason, "f2.rx: no disk");
}

/* A stop is under way: those that it has asked to drain go on, and what fails now ends. */
WORLD_TEST(driver_failure, what_fails_while_the_application_drains_does_not_cut_the_drain,
	   world_init)
{
	to_running(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_assert_gt(taken(w, 1, FW_HOST_STOP)->stop.drain_ns, 0);
	cr_assert_gt(taken(w, 2, FW_HOST_STOP)->stop.drain_ns, 0);
	fail_operator(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	cr_expect_eq(taken(w, 1, FW_HOST_STOP)->stop.drain_ns, 0);
	cr_expect_null(taken(w, 2, FW_HOST_STOP), "it drains already");
	say_exit(w, 1, 1, 0, 0, "");
	say_event(w, 2, 2, FW_STATE_DONE, "");
	cr_expect_eq(taken(w, 2, FW_HOST_STOP)->stop.drain_ns, 0);
	say_exit(w, 2, 2, 0, 0, "");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_str_eq(w->reason, "f1.tx: no camera");
}

static void fail_wiring(struct world *w)
{
	struct fw_message message = of_host(FW_HOST_WIRED, 1);

	message.result = (struct fw_host_result){
		{FRAGI_FAILURE_EDGE_REFUSED, "host 2 could not be connected to", ""}};
	say(w, 1, &message);
}

WORLD_TEST(driver_failure, the_end_of_a_host_is_the_cause_of_what_its_peer_could_not_wire,
	   world_init)
{
	to_prepared(w);
	fail_wiring(w);
	pass_beating(w, 100 * MS, 1, 2);
	say_exit(w, 2, 2, 137, 9, "fraghost 102 of f2 was killed");
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	cr_expect_str_eq(w->reason, "fraghost 102 of f2 was killed");
}

WORLD_TEST(driver_failure, what_could_not_be_wired_is_the_cause_if_nothing_better_comes, world_init)
{
	to_prepared(w);
	fail_wiring(w);
	pass_beating(w, SECOND, 1, 2);
	assert_has(w->errors, "host 2 could not be connected to");
	cr_assert_not_null(taken(w, 1, FW_HOST_KILL));
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
}

/* The first worker that is behind NAT is named as a possible reason, also the last of them. */
WORLD_TEST(driver_failure, what_could_not_be_wired_names_a_worker_behind_nat, NULL)
{
	static const char first[] = "; worker a connects from 10.0.0.9, but",
			  second[] = "; worker b connects from 10.0.0.9, but";
	static const struct {
		bool a_is, b_is;
		const char *named;
	} rows[] = {{false, false, NULL},
		    {true, false, first},
		    {false, true, second},
		    {true, true, first}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		if (i > 0)
			world_fini(w);
		world_init(w);
		to_prepared(w);
		if (rows[i].a_is)
			drv_session_find(w->core, 1)->local_address = "192.168.0.2";
		if (rows[i].b_is)
			drv_session_find(w->core, 2)->local_address = "192.168.0.2";
		fail_wiring(w);
		pass_beating(w, SECOND, 1, 2);
		assert_has(w->errors, "host 2 could not be connected to");
		cr_expect_eq(strstr(w->errors, first) != NULL, rows[i].named == first, "%zu: %s", i,
			     w->errors);
		cr_expect_eq(strstr(w->errors, second) != NULL, rows[i].named == second, "%zu: %s",
			     i, w->errors);
	}
}

WORLD_TEST(driver_failure, a_connection_that_breaks_counts_at_once, world_init)
{
	to_running(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED,
				    .connection = 1,
				    .text = "connection reset by peer"});
	assert_has(w->errors,
		   "worker a at 10.0.0.9:1, which ran f1, was lost: connection reset by peer");
	say_end(w, 2, 2, 0, 3, 137, 9);
	cr_assert(w->ended);
	assert_has(w->json, "\"sent\": 7, \"delivered\": 3");
	assert_has(w->json, "\"lost\": 4");
}

/* The reporter of its workerd has sent them. */
WORLD_TEST(driver_failure, a_lost_worker_whose_last_counts_came_leaves_an_exact_account, world_init)
{
	to_running(w);
	say_stats(w, 1, 1, false, 2, 0);
	say_stats(w, 1, 1, true, 5, 0);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	assert_has(w->errors, "worker a at 10.0.0.9:1, which ran f1, was lost: it closed");
	say_end(w, 2, 2, 0, 3, 137, 9);
	cr_assert(w->ended);
	assert_has(w->json,
		   "\"name\": \"f1\", \"worker\": \"a\", \"host_pid\": 101, \"state\": \"lost\"");
	assert_has(w->json, "\"sent\": 5, \"delivered\": 3");
	assert_has(w->json, "\"lost\": 2, \"in_flight\": 0, \"exact\": true");
}

/* It wakes just before the link is judged, and its beat comes before what it has to say. */
WORLD_TEST(driver_failure, a_worker_that_has_just_woken_is_heard_out, world_init)
{
	to_running(w);
	pass_beating(w, SECOND, 1, 2);
	pass_beating(w, 900 * MS, 1, 1);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
	pass_beating(w, 400 * MS, 1, 1);
	pass(w, 50 * MS);
	beat(w, 2);
	assert_has(w->log, "worker b is heard again");
	pass_beating(w, 200 * MS, 1, 2);
	cr_expect_str_eq(w->errors, "", "it may have more to say");
	pass_beating(w, 1200 * MS, 1, 2);
	assert_has(w->errors, "was lost, while their control connections are up");
}

WORLD_TEST(driver_failure, a_cut_data_link_is_judged_when_no_better_cause_shows, world_init)
{
	to_running(w);
	say_event(w, 2, 2, FW_STATE_PEER_LOST, "no beat for 3.0 s");
	pass_beating(w, SECOND, 1, 2);
	assert_has(
		w->errors,
		"the data link between f2 on worker b and f1 on worker a was lost, while their control connections are up: no beat for 3.0 s");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
}

/* The one that was reported first, by either end, when its own time has come. */
WORLD_TEST(driver_failure, a_later_report_does_not_put_off_the_judgement, NULL)
{
	for (uint32_t first = 1; first <= 2; first++) {
		char link[64];

		if (first == 2)
			world_fini(w);
		world_init(w);
		to_running(w);
		snprintf(link, sizeof(link), "the data link between f%u on worker %s",
			 (unsigned int)first, first == 1 ? "a" : "b");
		say_event(w, first, first, FW_STATE_PEER_LOST, "no beat for 3.0 s");
		pass_beating(w, 300 * MS, 1, 2);
		say_event(w, 3 - first, 3 - first, FW_STATE_PEER_LOST, "no beat for 3.0 s");
		pass_beating(w, 100 * MS, 1, 2);
		cr_expect_str_eq(w->errors, "");
		pass_beating(w, 200 * MS, 1, 2);
		assert_has(w->errors, link);
	}
}

/* A cut is only one of the reasons, and its remedy would be wrong for the others. */
WORLD_TEST(driver_failure, a_lost_data_link_keeps_the_class_that_its_host_gave_it, world_init)
{
	struct fw_message message = of_host(FW_HOST_EVENT, 2);

	to_running(w);
	message.event = (struct fw_host_event){
		.state = FW_STATE_PEER_LOST,
		.failure = {FRAGI_FAILURE_PROTOCOL, "gave back credit that it never had", ""},
		.peer = 1};
	say(w, 2, &message);
	pass_beating(w, SECOND, 1, 2);
	both_are_killed(w);
	cr_assert(w->ended);
	assert_has(w->json, "{\"code\": \"protocol\", \"scope\": \"host\"");
}

WORLD_TEST(driver_failure, a_crash_while_it_ends_is_told, world_init)
{
	to_running(w);
	both_are_done(w);
	say_exit(w, 1, 1, 0, 0, "");
	say_exit(w, 2, 2, 134, 6, "fraghost 102 crashed of f2: signal 6 (SIGABRT)");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	assert_has(w->reason, "SIGABRT");
}

WORLD_TEST(driver_failure, a_host_that_a_signal_ended_did_not_end_in_order, world_init)
{
	to_running(w);
	both_are_done(w);
	say_exit(w, 1, 1, 0, 15, "");
	assert_has(w->errors,
		   "the fraghost of f1 on worker a ended with 0 before the application did");
}

WORLD_TEST(driver_failure, of_two_hosts_that_could_not_be_wired_the_first_is_told, world_init)
{
	struct fw_message message = of_host(FW_HOST_WIRED, 2);

	to_prepared(w);
	fail_wiring(w);
	message.result =
		(struct fw_host_result){{FRAGI_FAILURE_EDGE_REFUSED, "host 1 hung up", ""}};
	say(w, 2, &message);
	pass_beating(w, SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_KILLING);
	assert_has(w->errors, "host 2 could not be connected to");
	cr_expect_null(strstr(w->errors, "host 1 hung up"));
}

WORLD_TEST(driver_failure, what_could_not_be_wired_waits_for_a_silent_worker, world_init)
{
	to_prepared(w);
	pass_beating(w, 1200 * MS, 2, 2); /* a is suspected */
	beat(w, 2);
	for (int i = 0; i < 2; i++) {
		struct fw_message message = of_host(FW_HOST_WIRED, 2);

		message.result = (struct fw_host_result){
			{FRAGI_FAILURE_EDGE_REFUSED, "no answer from host 1", ""}};
		if (i == 0)
			say(w, 2, &message);
		pass_beating(w, 700 * MS, 2, 2);
		cr_expect_str_eq(w->errors, "", "a may be dead");
	}
	pass_beating(w, SECOND, 2, 2);
	assert_has(w->errors,
		   "worker a at 10.0.0.9:1, which ran f1, was lost: it has not been heard for 3.");
}

Test(driver_failure, a_host_that_fails_without_a_word_is_named)
{
	struct fw_message wired = of_host(FW_HOST_WIRED, 1), started = of_host(FW_HOST_STARTED, 2);
	struct world w;

	wired.result.failure.code = started.result.failure.code = FRAGI_FAILURE_HOST_FAILED;
	world_init(&w);
	to_prepared(&w);
	say(&w, 1, &wired);
	pass_beating(&w, SECOND, 1, 2);
	assert_has(w.errors, "f1 on worker a failed");
	world_fini(&w);

	world_init(&w);
	to_prepared(&w);
	say_result(&w, 1, 1, FW_HOST_WIRED);
	say_result(&w, 2, 2, FW_HOST_WIRED);
	say(&w, 2, &started);
	assert_has(w.errors, "f2 on worker b failed");
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_CLOSING);
	world_fini(&w);

	world_init(&w);
	to_running(&w);
	say_event(&w, 1, 1, FW_STATE_FAILED, "");
	assert_has(w.errors, "f1 on worker a failed");
	world_fini(&w);
}

WORLD_TEST(driver_failure, a_worker_that_is_lost_while_all_is_killed_is_not_the_cause, world_init)
{
	to_running(w);
	say_event(w, 1, 1, FW_STATE_FAILED, "f1.tx: no camera");
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "it closed"});
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	cr_expect_str_eq(w->reason, "f1.tx: no camera");
	assert_has(w->json,
		   "\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"lost\"");
}

Test(driver_failure, a_peer_that_ended_in_order_while_draining_is_no_lost_link)
{
	for (int reported_first = 0; reported_first < 2; reported_first++) {
		struct world w;

		world_init(&w);
		to_running(&w);
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		if (reported_first)
			say_event(&w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		say_exit(&w, 2, 2, 0, 0, "");
		if (!reported_first)
			say_event(&w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		pass_beating(&w, 2 * SECOND, 1, 2);
		cr_expect_str_eq(w.errors, "");
		say_event(&w, 1, 1, FW_STATE_DONE, "");
		say_exit(&w, 1, 1, 0, 0, "");
		cr_assert(w.ended);
		cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED, "reported first: %d", reported_first);
		world_fini(&w);
	}
}

WORLD_TEST(driver_failure, a_peer_that_is_not_there_is_nobody, world_init)
{
	struct fw_message message = of_host(FW_HOST_EVENT, 1);

	to_running(w);
	message.event.state = FW_STATE_PEER_LOST;
	for (uint32_t peer = 0; peer <= 3; peer += 3) {
		message.event.peer = peer;
		say(w, 1, &message);
		pass_beating(w, SECOND, 1, 2);
	}
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}
