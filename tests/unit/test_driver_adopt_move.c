// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

/* Hosts that were moved, or were being started again, when their driver ended. */

/* Host 2 has a process on each worker; `how` changes what is reported of it. */
static void report_both(struct world *w,
			void (*how)(struct fw_host_report *old, struct fw_host_report *new))
{
	struct fw_message old = of_host(FW_HOST_REPORT, 2), new;

	speaking_epoch[2] = RUN + 1;
	new = of_host(FW_HOST_REPORT, 2);
	how(&old.report, &new.report);
	hello_reporting(w, 2, 1);
	say_report_of(w, 2, new, "app", two_fragments, "f2");
	say_prepared(w, 2, 2, "f2", false);
	say_reported(w, 2);
	speaking_epoch[2] = RUN;
	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, two_fragments);
	say_report_of(w, 1, old, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	written(w);
}

static void is_prepared_beside(struct fw_host_report *old, struct fw_host_report *new)
{
	new->is_beside = true;
}

WORLD_TEST(driver_adopt, a_move_goes_on_to_what_was_prepared, comes_back)
{
	const struct fw_message *m;

	report_both(w, is_prepared_beside);
	say_reported(w, 1);
	written(w);
	assert_has(w->log, "f2 goes on moving from worker a to worker b");
	m = must_take(w, 1, FW_HOST_STOP);
	cr_expect(m->stop.restarts && m->stop.drain_ns > 0);
	m = must_take(w, 1, FW_HOST_SUSPEND);
	cr_expect_eq(m->suspend.peer_epoch, RUN);
	say_event(w, 1, 2, FW_STATE_DONE, "");
	say_end(w, 1, 2, 0, 5, 0, 0);
	m = must_take(w, 2, FW_HOST_PAST);
	cr_expect_eq(m->epoch, RUN + 1);
	cr_expect(m->stats.final, "nothing is missing in it");
	cr_expect_not_null(taken(w, 2, FW_HOST_WIRE));
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
}

WORLD_TEST(driver_adopt, a_swap_goes_on_to_what_was_prepared, comes_back)
{
	struct fw_message new;

	hello_reporting(w, 1, 3);
	say_running(w, 1, 1, two_fragments);
	say_running(w, 1, 2, two_fragments);
	speaking_epoch[2] = RUN + 1;
	new = of_host(FW_HOST_REPORT, 2);
	new.report.is_beside = true;
	say_report_of(w, 1, new, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_reported(w, 1);
	others_may_come(w);
	written(w);
	assert_has(w->log, "f2 goes on in another process on worker a");
	cr_expect_not_null(taken(w, 1, FW_HOST_STOP));
}

static void waits_for_its_peers(struct fw_host_report *old, struct fw_host_report *new)
{
	old->yields = true;
	new->is_beside = true;
}

/* f1 may have been wired to the new process of f2, which has not heard of that. */
WORLD_TEST(driver_adopt, a_move_begins_anew_when_the_old_process_had_ended, comes_back)
{
	const struct fw_message *kill, *create;

	report_both(w, waits_for_its_peers);
	say_event(w, 1, 2, FW_STATE_DONE, "");
	say_end(w, 1, 2, 0, 5, 0, 0);
	say_reported(w, 1);
	written(w);
	while (drv_core_app_state(w->core) == DRV_APP_WAITING)
		pass_beating(w, SECOND, 1, 2);
	kill = must_take(w, 2, FW_HOST_KILL);
	cr_expect_eq(kill->epoch, RUN + 1);
	create = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(create->host, 2);
	cr_expect_gt(create->epoch, RUN + 1);
	cr_expect_null(taken(w, 2, FW_HOST_PAST));
	cr_expect_str_eq(w->errors, "");
}

/* Two drivers had lost the numbers that they gave. */
WORLD_TEST(driver_adopt, a_move_goes_on_to_one_of_several_of_the_same_epoch, comes_back)
{
	struct fw_message other;
	const struct fw_message *kept, *killed;

	speaking_epoch[2] = RUN + 1;
	other = of_host(FW_HOST_REPORT, 2);
	other.report.is_beside = true;
	hello_reporting(w, 3, 1);
	say_report_of(w, 3, other, "app", two_fragments, "f2");
	say_prepared(w, 3, 2, "f2", false);
	say_reported(w, 3);
	speaking_epoch[2] = 0;
	report_both(w, is_prepared_beside);
	say_reported(w, 1);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	kept = taken(w, 3, FW_HOST_KILL);
	killed = taken(w, 2, FW_HOST_KILL);
	cr_expect_neq(kept == NULL, killed == NULL, "%s", w->log);
	for (uint64_t c = 2; c <= 3; c++)
		cr_expect_null(taken(w, c, FW_HOST_PAST), "neither was the host");
	cr_expect_not_null(taken(w, 1, FW_HOST_STOP), "it is moved to the other one");
}

/* A parameter was set, or taken back, while it was prepared. */
WORLD_TEST(driver_adopt, a_process_that_was_made_from_another_source_does_not_take_over, NULL)
{
	static const char *const graphs[] = {TWO_FRAGMENTS("", "") "# 1\n",
					     TWO_FRAGMENTS("", "") "# 2\n",
					     TWO_FRAGMENTS("", "") "# 12\n"};

	for (size_t i = 0; i < FRAG_COUNT_OF(graphs); i++) {
		struct fw_message new;

		comes_back(w);
		speaking_epoch[2] = 0;
		hello_reporting(w, 1, 2);
		hello_reporting(w, 2, 1);
		say_running(w, 1, 1, graphs[0]);
		say_running(w, 1, 2, graphs[0]);
		speaking_epoch[2] = RUN + 1;
		new = of_host(FW_HOST_REPORT, 2);
		new.report.is_beside = true;
		say_report_of(w, 2, new, "app", graphs[i], "f2");
		say_prepared(w, 2, 2, "f2", false);
		say_reported(w, 2);
		say_reported(w, 1);
		written(w);
		written(w); /* where it runs */
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
		cr_expect_not_null(taken(w, 1, FW_HOST_STOP), "it yields all the same");
		cr_expect_eq(taken(w, 2, FW_HOST_KILL) != NULL, i > 0, "%zu: %s", i, w->log);
		world_fini(w);
	}
	speaking_epoch[2] = 0;
	comes_back(w);
}

/* It took too long, so the driver before this one had it killed, and then ended itself. */
WORLD_TEST(driver_adopt, a_process_that_was_being_killed_to_be_moved_is_no_failure, comes_back)
{
	report_both(w, is_prepared_beside);
	say_reported(w, 1);
	written(w);
	say_event(w, 1, 2, FW_STATE_DONE, "");
	say_end(w, 1, 2, 0, 5, 137, 9);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	cr_expect_not_null(taken(w, 2, FW_HOST_PAST), "%s", w->log);
}

static void has_taken_over(struct fw_host_report *old, struct fw_host_report *new)
{
	old->yields = true;
	new->restarts = 1;
}

WORLD_TEST(driver_adopt, what_has_taken_over_is_the_host, comes_back)
{
	const struct fw_message *m;

	report_both(w, has_taken_over);
	say_end(w, 1, 2, 0, 5, 0, 0);
	say_reported(w, 1);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	m = taken(w, 1, FW_HOST_PAST);
	cr_assert_not_null(m, "the worker that it has left may forget it");
	cr_expect_eq(m->epoch, RUN + 1);
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
	speaking_epoch[2] = RUN + 1;
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
}

/* The other process may be the host by now, on a worker that has not come back yet. */
WORLD_TEST(driver_adopt, what_yields_is_not_the_host_before_all_had_time_to_report, comes_back)
{
	struct fw_message old;

	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, two_fragments);
	old = of_host(FW_HOST_REPORT, 2);
	old.report.yields = true;
	say_report_of(w, 1, old, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_reported(w, 1);
	written(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING, "%s", w->log);
}

/* That other process never came back: it may have been the host for a while. */
WORLD_TEST(driver_adopt, the_counts_of_what_made_way_are_not_the_last_ones, comes_back)
{
	const struct fw_message *create;
	struct fw_message old;

	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, two_fragments);
	old = of_host(FW_HOST_REPORT, 2);
	old.report.yields = true;
	say_report_of(w, 1, old, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_event(w, 1, 2, FW_STATE_DONE, "");
	say_end(w, 1, 2, 0, 5, 0, 0);
	say_reported(w, 1);
	written(w);
	while (drv_core_app_state(w->core) == DRV_APP_WAITING)
		pass_beating(w, SECOND, 1, 1);
	create = must_take(w, 1, FW_HOST_CREATE);
	speaking_epoch[2] = create->epoch;
	for (int i = 0; i < 2; i++)
		step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	say_end(w, 1, 1, 9, 0, 137, 9);
	say_exit(w, 1, 2, 137, 9, "");
	cr_assert(w->ended, "%s", w->log);
	assert_has(w->json, "\"delivered\": 5");
	assert_has(w->json, "\"exact\": false");
}

/* All had ended in order but for what was to follow it, whose neighbour is not there any more. */
WORLD_TEST(driver_adopt, a_stop_waits_for_no_host_whose_neighbour_has_ended, comes_back)
{
	struct fw_message ended = of_host(FW_HOST_REPORT, 1), old = of_host(FW_HOST_REPORT, 2);

	hello_reporting(w, 1, 2);
	ended.report.stop = FW_STOP_DRAINED_ENDS;
	say_report_of(w, 1, ended, "app", two_fragments, "f1");
	say_prepared(w, 1, 1, "f1", true);
	say_exit(w, 1, 1, 0, 0, "");
	old.report.yields = true;
	say_report_of(w, 1, old, "app", two_fragments, "f2");
	say_prepared(w, 1, 2, "f2", false);
	say_event(w, 1, 2, FW_STATE_DONE, "");
	say_exit(w, 1, 2, 0, 0, "");
	say_reported(w, 1);
	written(w);
	while (drv_core_app_state(w->core) == DRV_APP_WAITING)
		pass_beating(w, SECOND, 1, 1);
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
}

/*
 * Its driver had ended it to start it again, and died before it heard of that end. A process of
 * which no worker is left may have had the next epochs, and neighbours know it.
 */
WORLD_TEST(driver_adopt, a_host_that_was_killed_goes_on_in_an_epoch_of_no_driver, comes_back)
{
	const struct fw_message *create;

	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, two_fragments);
	say_report_as(w, 1, of_host(FW_HOST_REPORT, 2), "app", two_fragments, "f2", false);
	say_prepared(w, 1, 2, "f2", false);
	say_exit(w, 1, 2, 137, 9, "");
	say_reported(w, 1);
	written(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	create = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(create->host, 2);
	cr_expect_geq(create->epoch, RUN + 1000);
}

/* Both had been killed to be started again: a stop waits for the second one too. */
WORLD_TEST(driver_adopt, of_two_that_are_started_again_each_is_waited_for, comes_back)
{
	for (uint32_t host = 1; host <= 2; host++) {
		const char *fragment = host == 1 ? "f1" : "f2";

		hello_reporting(w, host, 1);
		say_report_as(w, host, of_host(FW_HOST_REPORT, host), "app", two_fragments,
			      fragment, false);
		say_prepared(w, host, host, fragment, host == 1);
		say_exit(w, host, host, 137, 9, "");
		say_reported(w, host);
	}
	written(w);
	for (uint32_t host = 1; host <= 2; host++) {
		const struct fw_message *create = taken(w, host, FW_HOST_CREATE);

		cr_assert_not_null(create, "%s", w->log);
		speaking_epoch[host] = create->epoch;
		say_prepared(w, host, host, host == 1 ? "f1" : "f2", host == 1);
	}
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	for (uint32_t host = 1; host <= 2; host++) {
		cr_expect(drv_core_moves(w->core, "app"), "host %u does not run", host);
		say_result(w, host, host, FW_HOST_STARTED);
	}
	cr_expect_not(drv_core_moves(w->core, "app"));
}

/* ... nor when only a worker of a neighbour is left. A driver that has its state needs no word. */
Test(driver_adopt, the_next_epochs_are_above_those_that_a_worker_has_seen)
{
	for (int adopts = 0; adopts < 2; adopts++) {
		struct fw_hello seen = {.worker_address = "127.0.0.1", .last_epoch = 5000};
		struct world w;

		world_init_with(&w, (struct drv_config){.version = "test",
							.keeps_state = true,
							.adopts = adopts == 1});
		hello_by(&w, 1, "a", NULL, seen);
		cr_expect_eq(w.epochs > 5000, adopts == 1);
		seen.last_epoch = UINT64_MAX;
		hello_by(&w, 2, "b", NULL, seen);
		cr_expect_lt(w.epochs, 10000, "none would be left for others");
		world_fini(&w);
	}
}

Test(driver_adopt, what_was_wired_before_may_have_received_something)
{
	for (int is_wired = 0; is_wired < 2; is_wired++) {
		struct fw_message report;
		struct world w;

		comes_back(&w);
		hello_reporting(&w, 1, 1);
		say_report(&w, 1, 1, two_fragments);
		say_prepared(&w, 1, 1, "f1", true);
		say_reported(&w, 1);
		hello_reporting(&w, 2, 1);
		report = of_host(FW_HOST_REPORT, 2);
		report.report.restarts = 1;
		report.report.is_wired = is_wired == 1;
		say_report_as(&w, 2, report, "app", two_fragments, "f2", false);
		say_prepared(&w, 2, 2, "f2", false);
		say_reported(&w, 2);
		written(&w);
		cr_assert_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "%s", w.log);
		step(&w,
		     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = ""});
		say_stats(&w, 1, 1, true, 20, 0);
		say_exit(&w, 1, 1, 137, 9, "");
		cr_assert(w.ended, "%s", w.log);
		assert_has(w.json, is_wired ? "\"exact\": false" : "\"exact\": true");
		world_fini(&w);
	}
}
