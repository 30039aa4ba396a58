// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

static void assert_ended(const struct world *w, int result, int exit_code)
{
	cr_assert(w->ended);
	cr_expect_eq((int)w->result, result);
	cr_expect_eq(w->exit_code, exit_code);
}

Test(driver_end, stop_drains_and_the_second_one_kills)
{
	for (int second = 0; second < 2; second++) {
		const struct fw_message *m;
		struct world w;

		world_init(&w);
		to_running(&w);
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		cr_expect_eq(drv_core_app_state(w.core), DRV_APP_DRAINING);
		m = must_take(&w, 1, FW_HOST_STOP);
		cr_expect_gt(m->stop.drain_ns, 0);
		say_event(&w, 1, 1, FW_STATE_DONE, "");
		cr_expect_null(taken(&w, 1, FW_HOST_STOP), "it waits for the others to drain");
		if (second) {
			step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
			cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
			both_are_killed(&w);
		} else {
			say_event(&w, 2, 2, FW_STATE_DONE, "");
			m = must_take(&w, 1, FW_HOST_STOP);
			cr_expect_eq(m->stop.drain_ns, 0);
			both_exit(&w);
		}
		cr_assert(w.ended);
		cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED);
		cr_expect_eq(w.exit_code, second ? 130 : 0);
		cr_expect_str_eq(w.errors, "");
		world_fini(&w);
	}
}

WORLD_TEST(driver_end, a_sleep_of_the_driver_shortens_no_phase_and_is_in_the_duration, world_init)
{
	to_running(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	w->now_ns += 60 * SECOND; /* SIGSTOP, SIGCONT */
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	pass_beating(w, 11 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_DRAINING);
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
	assert_has(w->json, "\"shutdown_ns\": 71000000000");
}

WORLD_TEST(driver_end, a_drain_that_takes_too_long_is_cut, world_init)
{
	to_running(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	pass_beating(w, 13 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	pass_beating(w, 3 * SECOND, 1, 2);
	cr_expect_not(w->ended && w->result == FRAGI_SUMMARY_FAILED);
	cr_assert_not_null(taken(w, 1, FW_HOST_KILL));
	both_are_killed(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

Test(driver_end, stop_before_anything_runs)
{
	for (int phase = 0; phase < 3; phase++) {
		struct world w;

		world_init(&w);
		app(&w, two_fragments);
		if (phase > 0)
			both_come(&w);
		if (phase > 1) {
			say_prepared(&w, 1, 1, "f1", true);
			say_prepared(&w, 2, 2, "f2", false);
		}
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		if (phase > 0) {
			cr_assert_not_null(taken(&w, 1, FW_HOST_KILL));
			say_stats(&w, 1, 1, true, 0, 0);
			both_are_killed(&w);
		}
		assert_ended(&w, FRAGI_SUMMARY_STOPPED, 0);
		world_fini(&w);
	}
}

WORLD_TEST(driver_end, stop_while_some_hosts_run_already, world_init)
{
	to_prepared(w);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_STARTING);
	say_result(w, 2, 2, FW_HOST_STARTED);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_DRAINING);
}

WORLD_TEST(driver_end, a_second_reason_to_stop_does_not_make_the_start_last_longer, world_init)
{
	to_prepared(w);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	say_event(w, 1, 1, FW_STATE_STOPPED, "");
	pass_beating(w, 6 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_STARTING);
	say_event(w, 1, 1, FW_STATE_STOPPED, "");
	pass_beating(w, 6 * SECOND, 1, 2);
	cr_expect_neq(drv_core_app_state(w->core), DRV_APP_STARTING);
}

WORLD_TEST(driver_end, an_operator_may_stop_the_application_and_it_is_done, world_init)
{
	to_running(w);
	say_event(w, 1, 1, FW_STATE_STOPPED, "");
	cr_assert_not_null(taken(w, 2, FW_HOST_STOP));
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
}

WORLD_TEST(driver_end, rest_is_when_all_are_idle_and_nothing_is_on_the_way, world_init)
{
	to_running(w);
	say_idle(w, 1, 1, 10, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "one has said nothing yet");
	say_idle(w, 2, 2, 2, 9);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "something is on the way");
	say_event(w, 1, 1, FW_STATE_RUNNING, "");
	say_idle(w, 2, 2, 2, 10);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "a host is busy");
	say_idle(w, 1, 1, 11, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "it has sent more");
	say_idle(w, 2, 2, 2, 11);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	assert_has(w->log, "at rest");
	both_exit(w);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
}

WORLD_TEST(driver_end, a_cycle_is_at_rest_once_it_has_drained, world_init)
{
	to_running(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_DRAINING);
	say_idle(w, 1, 1, 10, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_DRAINING);
	say_idle(w, 2, 2, 2, 10);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	both_exit(w);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

WORLD_TEST(driver_end, rest_counts_what_a_host_that_is_done_has_sent, world_init)
{
	to_running(w);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_idle(w, 2, 2, 0, 10);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING,
		     "the other one has not counted yet");
	say_idle(w, 1, 1, 11, 0);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	say_idle(w, 2, 2, 0, 11);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
}

WORLD_TEST(driver_end, rest_is_not_believed_while_a_data_link_is_suspected, world_init)
{
	to_running(w);
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "no beat for 3.0 s");
	say_idle(w, 1, 1, 10, 0);
	say_idle(w, 2, 2, 0, 10);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	pass_beating(w, SECOND, 1, 2);
	assert_has(w->errors, "the data link between f1 on worker a and f2 on worker b was lost");
}

WORLD_TEST(driver_end, an_application_whose_hosts_do_not_send_to_each_other_is_at_rest_at_once,
	   world_init)
{
	struct table left = table_of("f1", true), right = table_of("f2", true);

	app(w, "frag: 1\napplication: app\nfragments:\n"
	       "  f1: {operators: {tx: {type: t}}}\n"
	       "  f2: {operators: {tx: {type: t}}}\n");
	both_come(w);
	left.address_bytes = right.address_bytes = 0; /* nor do they need a data plane */
	say_table(w, 1, 1, &left);
	say_table(w, 2, 2, &right);
	both_run(w);
	say_idle(w, 1, 1, 0, 0);
	say_idle(w, 2, 2, 0, 0);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
}

/* An exit with 0 or by SIGKILL as its worker reports it: asked, or by itself. */
static void says_exit(struct world *w, uint64_t connection, uint32_t host, bool asked, int signal,
		      const char *sentence)
{
	struct fw_message message = of_host(FW_HOST_EXIT, host);

	message.exit = (struct fw_host_exit){
		.exit_code = signal != 0 ? 128 + signal : 0, .signal = signal, .asked = asked};
	if (sentence[0] != '\0')
		message.exit.failure = (struct fw_failure){FRAGI_FAILURE_HOST_KILLED, sentence, ""};
	say(w, connection, &message);
}

WORLD_TEST(driver_end, an_operator_that_exits_with_zero_while_it_drains_is_a_failure, world_init)
{
	to_running(w);
	say_event(w, 1, 1, FW_STATE_STOPPED, "");
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "its data link broke");
	says_exit(w, 2, 2, false, 0, "fraghost 102 exited with status 0 in f2.rx, tick 3");
	say_exit(w, 1, 1, 137, 9, "");
	assert_ended(w, FRAGI_SUMMARY_FAILED, 1);
	assert_has(w->reason, "fraghost 102 exited with status 0");
}

Test(driver_end, workers_that_are_told_to_end_too_may_end_their_hosts_while_it_stops)
{
	for (int variant = 0; variant < 4; variant++) {
		bool starts = variant % 2 == 1;
		int number = variant / 2 * 9; /* it did not end by itself in time */
		struct world w;

		world_init(&w);
		if (starts) {
			to_prepared(&w);
			say_result(&w, 1, 1, FW_HOST_WIRED);
			say_result(&w, 2, 2, FW_HOST_WIRED);
			say_result(&w, 2, 2, FW_HOST_STARTED);
		} else {
			to_running(&w);
		}
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
		says_exit(&w, 2, 2, true, number,
			  "fraghost 102 of f2 was ended: its workerd was told to end");
		if (starts)
			say_result(&w, 1, 1, FW_HOST_STARTED);
		cr_expect_eq(drv_core_app_state(w.core), DRV_APP_DRAINING);
		say_event(&w, 1, 1, FW_STATE_DONE, "");
		says_exit(&w, 1, 1, true, 0, "");
		assert_ended(&w, FRAGI_SUMMARY_STOPPED, 0);
		cr_expect_str_eq(w.errors, "");
		world_fini(&w);
	}
}

WORLD_TEST(driver_end, a_host_that_was_done_before_its_worker_killed_it_was_done, world_init)
{
	to_running(w);
	say_event(w, 1, 1, FW_STATE_STOPPED, ""); /* an operator ends it */
	say_event(w, 2, 2, FW_STATE_DONE, "");
	says_exit(w, 2, 2, true, 9, "fraghost 102 of f2 was ended: its workerd was told to end");
	say_event(w, 1, 1, FW_STATE_DONE, "");
	says_exit(w, 1, 1, true, 0, "");
	assert_ended(w, FRAGI_SUMMARY_DONE, 0);
	assert_has(w->json, "\"host_pid\": 101, \"state\": \"done\"");
	assert_has(w->json, "\"host_pid\": 102, \"state\": \"stopped\"");
}

WORLD_TEST(driver_end, a_host_that_its_worker_ended_before_it_was_done_was_stopped, world_init)
{
	to_running(w);
	/* an operator ends it, and the user ends worker b */
	say_event(w, 1, 1, FW_STATE_STOPPED, "");
	says_exit(w, 2, 2, true, 0, "");
	say_event(w, 1, 1, FW_STATE_DONE, "");
	says_exit(w, 1, 1, true, 0, "");
	assert_ended(w, FRAGI_SUMMARY_STOPPED, 0);
	assert_has(w->json, "\"host_pid\": 102, \"state\": \"stopped\"");
}

Test(driver_end, a_host_that_its_worker_killed_while_it_drained_is_no_lost_link_and_not_done)
{
	for (int reported_first = 0; reported_first < 2; reported_first++) {
		struct world w;

		world_init(&w);
		to_running(&w);
		say_event(&w, 1, 1, FW_STATE_STOPPED,
			  ""); /* an operator ends it, and the user ends worker b */
		if (reported_first)
			say_event(&w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		says_exit(&w, 2, 2, true, 9,
			  "fraghost 102 of f2 was ended: its workerd was told to end");
		if (!reported_first)
			say_event(&w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		cr_expect_eq(drv_core_app_state(w.core), DRV_APP_DRAINING);
		pass_beating(&w, 2 * SECOND, 1, 2);
		cr_expect_str_eq(w.errors, "");
		say_event(&w, 1, 1, FW_STATE_DONE, "");
		says_exit(&w, 1, 1, true, 0, "");
		assert_ended(&w, FRAGI_SUMMARY_STOPPED, 0);
		assert_has(w.json, "\"host_pid\": 102, \"state\": \"stopped\"");
		world_fini(&w);
	}
}

/* The edges of a lost peer end while its application drains, so hosts may be done after it. */
Test(driver_end, hosts_that_are_done_after_a_lost_link_wait_for_its_cause)
{
	for (int is_ended = 0; is_ended < 2; is_ended++) {
		struct world w;

		world_init(&w);
		to_running(&w);
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
		say_event(&w, 1, 1, FW_STATE_PEER_LOST, "connection reset");
		say_event(&w, 1, 1, FW_STATE_DONE, "");
		if (!is_ended)
			say_event(&w, 2, 2, FW_STATE_DONE, "");
		cr_expect_eq(drv_core_app_state(w.core), DRV_APP_DRAINING);
		if (is_ended) {
			says_exit(&w, 2, 2, true, 9, "fraghost 102 of f2 was ended");
			cr_expect_eq(drv_core_app_state(w.core), DRV_APP_CLOSING,
				     "nothing else is waited for");
			says_exit(&w, 1, 1, true, 0, "");
			assert_ended(&w, FRAGI_SUMMARY_STOPPED, 0);
		} else {
			pass_beating(&w, SECOND, 1, 2);
			cr_expect_eq(drv_core_app_state(w.core), DRV_APP_CLOSING);
			both_are_killed(&w);
			assert_ended(&w, FRAGI_SUMMARY_FAILED, 1);
			assert_has(w.reason, "the data link between");
		}
		world_fini(&w);
	}
}

/* A person ends a worker that runs a part: one sentence, and nothing that looks like a crash. */
WORLD_TEST(driver_end, a_worker_that_leaves_is_named_with_what_it_ran, world_init)
{
	static const char *lines[] = {"Rx message value: 1"};
	struct fw_message message = of_host(FW_HOST_EXIT, 2);
	struct fw_message leave = {.kind = FW_LEAVE, .leave = {"it was told to end"}};

	to_running(w);
	message.exit = (struct fw_host_exit){
		.asked = true,
		.failure = {FRAGI_FAILURE_WORKER_LOST, "fraghost 102 of f2 was ended", ""},
		.lines = lines,
		.line_count = 1,
	};
	say(w, 2, &message);
	say(w, 2, &leave);
	say_exit(w, 1, 1, 137, 9, "");
	assert_ended(w, FRAGI_SUMMARY_FAILED, 1);
	cr_expect_str_eq(w->reason, "worker b left while it ran f2: it was told to end");
	cr_expect_null(strstr(w->log, "Rx message value"), "%s", w->log);
	assert_has(w->log, "worker b left: it was told to end");
	assert_has(w->json, "\"code\": \"worker_lost\"");
}

WORLD_TEST(driver_end, applications_that_ended_leave_no_room_for_timers_behind, world_init)
{
	for (int i = 0; i < 100; i++) {
		app_timed(w, two_fragments, SECOND);
		pass(w, 2 * SECOND);
		cr_assert(w->ended);
		w->ended = false;
	}
	cr_expect_leq(w->core->timers.capacity, (size_t)16);
}
