// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

/* How an application ends that a driver has adopted, and what its end is called. */

/* What was sent is delivered: a user who stops it need not know that its driver has just come. */
WORLD_TEST(driver_adopt, a_stop_before_all_is_reported_is_made_in_order_after_that, comes_back)
{
	report_two(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WAITING, "%s", w->log);
	say_reported(w, 2);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_DRAINING, "%s", w->log);
	for (uint32_t host = 1; host <= 2; host++) {
		cr_expect_null(taken(w, host, FW_HOST_KILL));
		say_event(w, host, host, FW_STATE_DONE, "");
	}
	both_exit(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

WORLD_TEST(driver_adopt, a_stop_kills_what_was_being_started_again_and_is_no_failure, comes_back)
{
	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, restarting);
	say_report_as(w, 1, of_host(FW_HOST_REPORT, 2), "app", restarting, "f2", false);
	say_prepared(w, 1, 2, "f2", false);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	say_reported(w, 1);
	written(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_DRAINING, "%s", w->log);
	cr_expect_not_null(taken(w, 1, FW_HOST_KILL), "%s", w->log);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_exit(w, 1, 2, 137, 9, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
	cr_expect_str_eq(w->errors, "");
}

/* A crash and an end in order are heard in one step. */
WORLD_TEST(driver_adopt, a_failure_stays_one_whatever_ends_in_order_after_it, comes_back)
{
	report_two(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	say_exit(w, 2, 2, 137, 9, "fraghost 12 of f2 was killed");
	say_exit(w, 1, 1, 0, 0, "");
	say_reported(w, 2);
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED, "%s", w->log);
}

/* Its driver had killed a host that took too long to end, and died before it was gone. */
WORLD_TEST(driver_adopt, an_application_that_an_operator_has_stopped_is_done, comes_back)
{
	struct fw_message ended, killed;

	ended = of_host(FW_HOST_REPORT, 1);
	killed = of_host(FW_HOST_REPORT, 2);
	ended.report.stop = FW_STOP_DRAINED_ENDS;
	killed.report.stop = FW_STOP_KILLED;
	hello_reporting(w, 1, 2);
	say_report_of(w, 1, ended, "app", two_fragments, "f1");
	say_prepared(w, 1, 1, "f1", true);
	say_exit(w, 1, 1, 0, 0, "");
	say_report_of(w, 1, killed, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_event(w, 1, 2, FW_STATE_STOPPED, "");
	say_reported(w, 1);
	written(w);
	say_exit(w, 1, 2, 137, 9, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE, "%s", w->log);
}

/* An operator had stopped it, and both hosts were killed: they were late, or nobody waited. */
WORLD_TEST(driver_adopt, an_application_that_was_killed_before_it_was_done_was_stopped, NULL)
{
	for (int is_done = 0; is_done < 2; is_done++) {
		comes_back(w);
		hello_reporting(w, 1, 2);
		for (uint32_t host = 1; host <= 2; host++) {
			struct fw_message killed = of_host(FW_HOST_REPORT, host);

			killed.report.stop = FW_STOP_KILLED;
			say_report_of(w, 1, killed, "app", two_fragments, host == 1 ? "f1" : "f2");
			say_prepared(w, 1, host, host == 1 ? "f1" : "f2", host == 1);
			say_event(w, 1, host, FW_STATE_STOPPED, "");
			if (host == 1 || is_done)
				say_event(w, 1, host, FW_STATE_DONE, "");
		}
		say_reported(w, 1);
		written(w);
		for (uint32_t host = 1; host <= 2; host++)
			say_exit(w, 1, host, 137, 9, "");
		cr_assert(w->ended, "%s", w->log);
		cr_expect_eq(w->result, is_done ? FRAGI_SUMMARY_DONE : FRAGI_SUMMARY_STOPPED, "%s",
			     w->log);
		if (is_done == 0)
			world_fini(w);
	}
}

/* One of its hosts was told how to end when its driver ended, and the other one was not yet. */
WORLD_TEST(driver_adopt, an_end_goes_on_as_it_began, NULL)
{
	static const struct {
		enum fw_stop_state stop;
		bool is_closing;
		enum fw_kind goes_on;
		enum fragi_summary_result result;
	} cases[] = {
		{FW_STOP_KILLED, false, FW_HOST_KILL, FRAGI_SUMMARY_STOPPED},
		{FW_STOP_DRAINS, false, FW_HOST_STOP, FRAGI_SUMMARY_STOPPED},
		{FW_STOP_ENDS, true, FW_HOST_STOP, FRAGI_SUMMARY_DONE},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		bool is_killed = cases[i].goes_on == FW_HOST_KILL;
		struct fw_message told;

		comes_back(w);
		told = of_host(FW_HOST_REPORT, 1);
		told.report.stop = cases[i].stop;
		told.report.is_closing = cases[i].is_closing;
		hello_reporting(w, 1, 2);
		say_report_of(w, 1, told, "app", two_fragments, "f1");
		say_prepared(w, 1, 1, "f1", true);
		say_running(w, 1, 2, two_fragments);
		say_reported(w, 1);
		written(w);
		cr_expect_eq(taken(w, 1, FW_HOST_KILL) != NULL, is_killed, "%zu: %s", i, w->log);
		cr_expect_eq(taken(w, 1, FW_HOST_STOP) != NULL, !is_killed, "%zu: %s", i, w->log);
		for (uint32_t host = 1; host <= 2; host++)
			say_event(w, 1, host, FW_STATE_DONE, "");
		for (uint32_t host = 1; host <= 2; host++)
			say_exit(w, 1, host, is_killed ? 137 : 0, is_killed ? 9 : 0, "");
		cr_assert(w->ended, "%zu: %s", i, w->log);
		cr_expect_eq(w->result, cases[i].result, "%zu: %s", i, w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* Another one was to follow it, and a stop comes first. */
WORLD_TEST(driver_adopt, a_process_that_its_driver_had_killed_is_no_failure_of_a_stop, comes_back)
{
	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, restarting);
	say_running(w, 1, 2, restarting);
	say_exit(w, 1, 2, 137, 9, "");
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	say_reported(w, 1);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_DRAINING, "%s", w->errors);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

/* The earlier driver killed f2 to start it again, and died before that. */
WORLD_TEST(driver_adopt, a_process_killed_by_an_earlier_driver_is_named_so, comes_back)
{
	report_two(w);
	both_are_done(w);
	say_reported(w, 2);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_CLOSING, "%s", w->log);
	say_exit(w, 2, 2, 137, 9, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	assert_has(w->reason,
		   "f2 on worker b was ended by the driver before this one, to be started again");
}

/* An operator had stopped it, and another one failed while it drained. */
WORLD_TEST(driver_adopt, a_failure_comes_before_a_stop_of_an_operator, comes_back)
{
	struct fw_message ends = of_host(FW_HOST_REPORT, 2);

	ends.report.stop = FW_STOP_ENDS;
	ends.report.failure = FRAGI_FAILURE_OPERATOR_FAILED;
	ends.report.reason = "f2.rx: no disk";
	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, two_fragments);
	say_event(w, 1, 1, FW_STATE_STOPPED, "");
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_report_of(w, 1, ends, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_exit(w, 1, 2, 0, 0, "");
	say_reported(w, 1);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_CLOSING, "%s", w->log);
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_str_eq(w->reason, "f2.rx: no disk");
}

/* Its driver had seen why it fails, and died while the host that lives drained. */
WORLD_TEST(driver_adopt, an_application_that_was_failing_fails_for_its_cause, comes_back)
{
	struct fw_message drains = of_host(FW_HOST_REPORT, 1), ends = of_host(FW_HOST_REPORT, 2);

	drains.report.stop = FW_STOP_DRAINS;
	ends.report.stop = FW_STOP_ENDS;
	ends.report.is_closing = true;
	drains.report.failure = ends.report.failure = FRAGI_FAILURE_OPERATOR_FAILED;
	drains.report.reason = ends.report.reason = "f2.rx: no disk";
	hello_reporting(w, 1, 2);
	say_report_of(w, 1, drains, "app", two_fragments, "f1");
	say_prepared(w, 1, 1, "f1", true);
	say_report_of(w, 1, ends, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_event(w, 1, 2, FW_STATE_FAILED, "f2.rx: no disk");
	say_exit(w, 1, 2, 0, 0, "");
	say_reported(w, 1);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_FAILING, "%s", w->log);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_str_eq(w->reason, "f2.rx: no disk");
	assert_has(w->json,
		   "\"name\": \"f2\", \"worker\": \"a\", \"host_pid\": 102, \"state\": \"failed\"");
	assert_has(w->json, "\"host_pid\": 101, \"state\": \"stopped\"");
}
