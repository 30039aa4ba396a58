// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

#include <stdio.h>
#include <stdlib.h>

#include <base/beat.h>

WORLD_TEST(driver_adopt, what_was_reported_runs_on, comes_back)
{
	adopt_two(w);
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
}

/* Its worker renews the lease of what it is told to; before that the driver may still kill it. */
WORLD_TEST(driver_adopt, the_lease_of_what_was_adopted_is_renewed, comes_back)
{
	static const char migrating[] = TWO_FRAGMENTS("", ", on_failure: {policy: migrate}");
	const struct fw_message *adopted;

	hello_reporting(w, 1, 2);
	hello_reporting(w, 2, 1);
	say_running(w, 1, 1, migrating);
	say_reported(w, 1);
	say_running(w, 2, 2, migrating);
	written(w);
	cr_expect_null(taken(w, 2, FW_HOST_ADOPTED), "not all is known of it");
	say_reported(w, 2);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	adopted = must_take(w, 2, FW_HOST_ADOPTED);
	cr_expect_eq(adopted->host, 2);
	cr_expect_eq(adopted->epoch, RUN);
	cr_expect_not(adopted->adopted.is_inexact);
	cr_expect_null(taken(w, 1, FW_HOST_ADOPTED), "f1 has no lease");
}

/* A worker with that memory reports a host whose flow was made over shared memory. */
static void say_shared(struct world *w, uint32_t host, const char *text, const char *memory)
{
	struct fw_message report = of_host(FW_HOST_REPORT, host);
	struct table table = table_of(host == 1 ? "f1" : "f2", host == 1);

	hello_by(w, host, host == 1 ? "a" : "b", NULL,
		 (struct fw_hello){.worker_address = "10.0.0.1",
				   .node = memory,
				   .clock = "node",
				   .memory = memory,
				   .reports = 1});
	report.report.create.memory = "boot.net.user.7";
	say_report_of(w, host, report, "app", text, table.fragment);
	table.transport = "shm";
	table.detail = "";
	say_table(w, host, host, &table);
}

/* f2 had gone on elsewhere, because the worker of f1 was lost; f1 has run on. */
WORLD_TEST(driver_adopt, what_cannot_share_memory_where_it_was_goes_elsewhere, comes_back)
{
	static const char migrating[] = TWO_FRAGMENTS(", on_failure: {policy: migrate, lease: 0s}",
						      ", on_failure: {policy: migrate, lease: 0s}");

	say_shared(w, 1, migrating, "boot.net.user.7");
	say_reported(w, 1);
	say_shared(w, 2, migrating, "other.net.user.7");
	say_exit(w, 2, 2, 137, 9, "fraghost 12 of f2 was killed");
	say_reported(w, 2);
	others_may_come(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	written(w);
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
}

/* It may have gone on on another worker, which this driver does not know; nor will the next one. */
WORLD_TEST(driver_adopt, what_may_have_run_elsewhere_is_inexact_for_every_later_driver, comes_back)
{
	static const char migrating[] =
		TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: 0}");
	const struct fw_message *adopted;

	hello_reporting(w, 1, 2);
	hello_reporting(w, 2, 1);
	say_running(w, 1, 1, migrating);
	say_reported(w, 1);
	say_running(w, 2, 2, migrating);
	say_exit(w, 2, 2, 139, 11, "fraghost 102 of f2 crashed: signal 11 (SIGSEGV)");
	say_reported(w, 2);
	others_may_come(w);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	adopted = must_take(w, 2, FW_HOST_ADOPTED);
	cr_expect(adopted->adopted.is_inexact);
	cr_expect_null(taken(w, 1, FW_HOST_ADOPTED), "f1 cannot have run elsewhere");
}

/* It had gone on on a worker that has not reported yet. */
WORLD_TEST(driver_adopt, what_has_ended_is_not_the_host_before_all_had_time_to_report, NULL)
{
	static const char *const leases[] = {"0s", "5s"};

	for (size_t i = 0; i < FRAG_COUNT_OF(leases); i++) {
		struct fw_message report;
		char text[512];

		snprintf(text, sizeof(text),
			 TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: %s}"),
			 leases[i]);
		comes_back(w);
		hello_reporting(w, 1, 2);
		say_running(w, 1, 1, text);
		say_running(w, 1, 2, text);
		say_exit(w, 1, 2, 139, 11, "fraghost 102 of f2 crashed: signal 11 (SIGSEGV)");
		say_reported(w, 1);
		written(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WAITING, "%s", w->log);
		hello_reporting(w, 2, 1);
		report = of_host(FW_HOST_REPORT, 2);
		report.epoch = RUN + 1;
		say_report_of(w, 2, report, "app", text, "f2");
		speaking_epoch[2] = RUN + 1;
		say_prepared(w, 2, 2, "f2", false);
		speaking_epoch[2] = 0;
		say_reported(w, 2);
		others_may_come(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
		cr_expect_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
		cr_expect_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* Another workerd of that name does not know what the one before it ran. */
WORLD_TEST(driver_adopt, what_may_have_run_on_a_worker_that_is_new_is_inexact, NULL)
{
	static const char migrating[] =
		TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: 0s}");

	for (int is_new = 0; is_new < 2; is_new++) {
		const struct fw_message *adopted;

		comes_back(w);
		restore_graph(w, RUN, true, migrating);
		cr_assert_eq(
			drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_PLACED,
								       .run = RUN,
								       .text = "a\na\n\tb\n"}),
			0);
		pass(w, MS);
		hello_by(w, 2, "b", NULL,
			 (struct fw_hello){.worker_address = "127.0.0.1", .session = !is_new});
		hello_reporting(w, 1, 2);
		say_running(w, 1, 1, migrating);
		say_running(w, 1, 2, migrating);
		say_exit(w, 1, 2, 139, 11, "fraghost 102 of f2 crashed: signal 11 (SIGSEGV)");
		say_reported(w, 1);
		others_may_come(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
		adopted = taken(w, 1, FW_HOST_ADOPTED);
		cr_expect_eq(adopted != NULL && adopted->adopted.is_inexact, is_new, "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* The epochs that it would use are not reserved yet: the next driver would give them again. */
WORLD_TEST(driver_adopt, nothing_is_started_again_before_its_epoch_is_on_the_disk, comes_back)
{
	hello_reporting(w, 1, 2);
	say_running(w, 1, 1, restarting);
	say_running(w, 1, 2, restarting);
	say_reported(w, 1);
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = "it is full"});
	for (int i = 0; i < 80 && drv_core_app_state(w->core) == DRV_APP_WAITING; i++)
		pass_beating(w, 100 * MS, 1, 1);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	say_exit(w, 1, 2, 139, 11, "fraghost 102 of f2 crashed: signal 11 (SIGSEGV)");
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
	written(w);
	cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%s", w->log);
}

WORLD_TEST(driver_adopt, a_worker_that_has_reported_and_left_is_waited_for_again, comes_back)
{
	static const char text[] = TWO_FRAGMENTS("", "");

	restore_graph(w, RUN, true, text);
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_PLACED,
								    .run = RUN,
								    .text = "a\nb\n"}),
		     0);
	pass(w, MS);
	for (int i = 0; i < 2; i++) {
		hello_reporting(w, 1, 1);
		say_running(w, 1, 1, text);
		say_reported(w, 1);
		if (i == 1)
			break;
		step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1});
		hello_reporting(w, 2, 1);
		say_running(w, 2, 2, text);
		say_reported(w, 2);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WAITING, "%s", w->log);
	}
	others_may_come(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	cr_expect_null(taken(w, 1, FW_HOST_KILL), "%s", w->log);
}

/*
 * Of two workers of one name the one that comes first is the other one: f2 had ended there and gone
 * on. A worker of before does not say which name it had.
 */
WORLD_TEST(driver_adopt, workers_of_one_name_are_not_taken_for_each_other, NULL)
{
	static const char migrating[] =
		TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: 0s}");

	for (int knows_name = 0; knows_name < 2; knows_name++) {
		const struct fw_hello one = {.worker_address = "127.0.0.1",
					     .node = "node",
					     .clock = "node",
					     .session = 1,
					     .reports = 1,
					     .last_name = knows_name ? "b" : ""},
				      other = {.worker_address = "127.0.0.1",
					       .node = "node",
					       .clock = "node",
					       .session = 2,
					       .reports = 1,
					       .last_name = knows_name ? "b#2" : ""};
		struct fw_message report = of_host(FW_HOST_REPORT, 2);

		comes_back(w);
		restore_graph(w, RUN, true, migrating);
		cr_assert_eq(
			drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_PLACED,
								       .run = RUN,
								       .text = "a\nb\n"}),
			0);
		hello_by(w, 3, "b", NULL, other);
		if (!knows_name) /* else it is known that it is not b */
			hello_by(w, 2, "b", NULL, one);
		hello_reporting(w, 1, 1);
		say_running(w, 1, 1, migrating);
		say_reported(w, 1);
		say_running(w, 3, 2, migrating);
		say_exit(w, 3, 2, 139, 11, "fraghost 102 of f2 crashed: signal 11 (SIGSEGV)");
		say_reported(w, 3);
		written(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_WAITING, "%s", w->log);
		if (knows_name)
			hello_by(w, 2, "b", NULL, one);
		report = of_host(FW_HOST_REPORT, 2);
		report.epoch = speaking_epoch[2] = RUN + 1;
		say_report_of(w, 2, report, "app", migrating, "f2");
		say_prepared(w, 2, 2, "f2", false);
		speaking_epoch[2] = 0;
		say_reported(w, 2);
		written(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
		cr_expect_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
		cr_expect_null(taken(w, 3, FW_HOST_CREATE), "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* f2 was moved from b to c, which comes last. */
WORLD_TEST(driver_adopt, what_was_moved_away_does_not_go_on_where_it_was, comes_back)
{
	static const char migrating[] =
		TWO_FRAGMENTS("", ", on_failure: {policy: migrate, lease: 0s}");
	struct fw_message report = of_host(FW_HOST_REPORT, 2);

	restore_graph(w, RUN, true, migrating);
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_PLACED,
								    .run = RUN,
								    .text = "a\nc\n"}),
		     0);
	hello_reporting(w, 1, 1);
	hello_reporting(w, 2, 1);
	say_running(w, 1, 1, migrating);
	say_reported(w, 1);
	say_running(w, 2, 2, migrating);
	say_reported(w, 2);
	cr_expect_not_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
	hello_by(w, 3, "c", NULL,
		 (struct fw_hello){.worker_address = "127.0.0.1",
				   .node = "node",
				   .clock = "node",
				   .session = 3,
				   .reports = 1,
				   .last_name = "c"});
	report.epoch = speaking_epoch[2] = RUN + 1;
	say_report_of(w, 3, report, "app", migrating, "f2");
	say_prepared(w, 3, 2, "f2", false);
	speaking_epoch[2] = 0;
	say_reported(w, 3);
	written(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	cr_expect_null(taken(w, 3, FW_HOST_KILL), "%s", w->log);
}

/* Else the next driver takes a worker for the last one on which f2 ran, and does not wait. */
WORLD_TEST(driver_adopt, where_nobody_knows_what_ran_last_the_record_says_so, NULL)
{
	static const char migrating[] =
		"frag: 1\n"
		"application: app\n"
		"fragments:\n"
		"  f1: {operators: {tx: {type: t}}}\n"
		"  f2: {operators: {rx: {type: t}}, on_failure: {policy: migrate, lease: 5s}}\n"
		"flows: [f1.tx.out -> f2.rx.in]\n";

	for (int has_died = 0; has_died < 3; has_died++) {
		comes_back(w);
		hello_reporting(w, 1, 2);
		hello_reporting(w, 2, 1);
		say_running(w, 1, 1, migrating);
		say_reported(w, 1);
		say_running(w, 2, 2, migrating);
		if (has_died == 1)
			say_exit(w, 2, 2, 139, 11, "fraghost 102 of f2 crashed");
		say_reported(w, 2);
		if (has_died == 2) /* it lived when it was reported: nothing has followed it */
			say_exit(w, 2, 2, 139, 11, "fraghost 102 of f2 crashed");
		strcpy(w->placed, "none");
		written(w);
		cr_expect_eq(drv_core_app_state(w->core),
			     has_died == 1 ? DRV_APP_WAITING : DRV_APP_RUNNING);
		others_may_come(w);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
		cr_expect_str_eq(w->placed, has_died == 1 ? "" : "a\nb\n");
		written(w);
		cr_expect_eq(taken(w, 2, FW_HOST_CREATE) != NULL, has_died == 2, "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

WORLD_TEST(driver_adopt, a_newer_run_has_the_name_of_one_that_nobody_wants, comes_back)
{
	restore_as(w, RUN - 2, false);
	pass(w, MS);
	adopt_two(w);
	assert_has(w->log, "run 5 is not adopted: it was told to end at once");
	cr_expect_not_null(kept(w, DRV_RECORD_END, RUN - 2), "%s", w->log);
}

/* If this driver dies before, the next one asks the workers how the run ended. */
WORLD_TEST(driver_adopt, a_worker_keeps_a_run_until_its_end_is_on_the_disk, comes_back)
{
	adopt_two(w);
	written(w);
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
	hello_reporting(w, 3, 1);
	say_report(w, 3, 1, two_fragments);
	say_reported(w, 3);
	cr_expect_null(taken(w, 3, FW_APP_ENDED), "%s", w->log);
	written(w);
	cr_expect_not_null(taken(w, 3, FW_APP_ENDED), "%s", w->log);
}

/* The next driver is to know what it has counted, though the host has gone on in another one. */
WORLD_TEST(driver_adopt, a_worker_keeps_a_process_that_its_run_went_on_without, NULL)
{
	for (int keeps_state = 0; keeps_state < 2; keeps_state++) {
		const struct fw_message *kill;

		world_init_with(w, (struct drv_config){.version = "test",
						       .keeps_state = keeps_state == 1,
						       .adopts = true});
		speaking_run = RUN;
		adopt_two(w);
		written(w);
		hello_reporting(w, 3, 1);
		say_report(w, 3, 2, two_fragments);
		say_reported(w, 3);
		kill = must_take(w, 3, FW_HOST_KILL);
		cr_expect(kill->stop.restarts, "its run does not end with it");
		cr_expect_null(taken(w, 3, FW_APP_ENDED), "%s", w->log);
		both_are_done(w);
		both_exit(w);
		written(w);
		cr_expect_not_null(taken(w, 3, FW_APP_ENDED), "%s", w->log);
		world_fini(w);
	}
	comes_back(w);
}

/* Else the next driver, which waits for the same run, would not know all of it. */
WORLD_TEST(driver_adopt, what_is_given_up_ends_when_that_is_on_the_disk, comes_back)
{
	restore(w, RUN);
	hello_reporting(w, 1, 1);
	say_running(w, 1, 1, two_fragments);
	say_reported(w, 1);
	others_may_come(w);
	assert_has(w->log, "not all of its workers have come back in time");
	cr_expect_null(taken(w, 1, FW_HOST_KILL), "%s", w->log);
	cr_expect_null(taken(w, 1, FW_APP_ENDED), "%s", w->log);
	written(w);
	cr_expect_not_null(taken(w, 1, FW_APP_ENDED), "%s", w->log);
}

WORLD_TEST(driver_adopt, a_process_of_what_is_failing_is_ended_for_its_cause, comes_back)
{
	const struct fw_message *kill;

	adopt_two(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "reset"});
	hello_reporting(w, 3, 1);
	say_report(w, 3, 2, two_fragments);
	kill = must_take(w, 3, FW_HOST_KILL);
	cr_expect_not(kill->stop.restarts);
	cr_expect_eq(kill->stop.failure, FRAGI_FAILURE_WORKER_LOST);
	assert_has(kill->stop.reason, "which ran f2, was lost: reset");
}

WORLD_TEST(driver_adopt, a_name_stays_with_the_run_that_the_state_knows, comes_back)
{
	restore(w, RUN - 2);
	pass(w, MS);
	hello_reporting(w, 3, 1);
	say_report(w, 3, 1, two_fragments);
	cr_expect_not_null(taken(w, 3, FW_HOST_KILL));
	say_reported(w, 3);
	pass(w, MS);
	cr_assert_eq(drv_core_app_count(w->core), 1);
	speaking_run = RUN - 2;
	adopt_two(w);
}

/* It has not come to look at what the state folder knows. */
WORLD_TEST(driver_adopt, a_driver_that_is_told_to_stop_stops_what_an_earlier_one_ran, NULL)
{
	struct drv_event stop = {.kind = DRV_EVENT_STOP, .signal = 2};

	for (int is_reported = 0; is_reported < 2; is_reported++) {
		comes_back(w);
		restore(w, RUN);
		step(w, &stop);
		cr_expect_eq(drv_core_app_count(w->core), 1, "it waits for its workers");
		if (is_reported)
			adopt_two_as(w, DRV_APP_DRAINING);
		else
			pass(w, MS);
		cr_expect_eq(drv_core_app_count(w->core), 1);
		cr_expect_null(taken(w, 1, FW_HOST_KILL), "%s", w->log);
		step(w, &stop);
		cr_expect_eq(drv_core_app_count(w->core), is_reported);
		cr_expect_eq(taken(w, 1, FW_HOST_KILL) != NULL, is_reported);
		world_fini(w);
	}
	comes_back(w);
}

static void live(struct world *w)
{
	for (uint32_t host = 1; host <= 2; host++) {
		hello_reporting(w, host, 1);
		say_report(w, host, host, two_fragments);
		say_prepared(w, host, host, host == 1 ? "f1" : "f2", host == 1);
		written(w);
		say_reported(w, host);
	}
	both_are_done(w);
	both_exit(w);
	pass(w, 20 * SECOND);
}

Test(driver_adopt, memory_may_be_short_at_any_time, .timeout = 300)
{
	struct world *w = malloc(sizeof(*w));
	int64_t at_step = 0, skip = 0;
	int failed = 0;

	for (bool more = true; more;) {
		comes_back(w);
		w->runs_short = true;
		w->short_step = at_step;
		w->short_skip = skip;
		live(w);
		cr_expect_null(strstr(w->log, "(null)"), "%s", w->log);
		cr_expect(w->broken || drv_core_app_count(w->core) == 0);
		failed += w->ended && strstr(w->reason, "no memory left") != NULL;
		more = w->broken || w->step_count > at_step;
		at_step += w->short_skip == -1;
		skip = w->short_skip == -1 ? 0 : skip + 1;
		world_fini(w);
	}
	cr_expect_gt(failed, 20);
	free(w);
}

static const char four_fragments[] = "frag: 1\n"
				     "application: app\n"
				     "fragments:\n"
				     "  f1: {operators: {o: {type: t}}}\n"
				     "  f2: {operators: {o: {type: t}}}\n"
				     "  f3: {operators: {o: {type: t}}}\n"
				     "  f4: {operators: {o: {type: t}}}\n";

/* Counts are taken as they come: all at once they are more than a step handles. */
WORLD_TEST(driver_adopt, counts_are_taken_while_they_are_reported, NULL)
{
	struct fragi_flow_stats *rows = calloc(FW_ROWS_MAX, sizeof(*rows));
	const char *const names[] = {"f1", "f2", "f3", "f4"};

	cr_assert_not_null(rows);
	comes_back(w);
	hello_reporting(w, 1, 4);
	for (uint32_t host = 1; host <= 4; host++) {
		struct fw_message stats = of_host(FW_HOST_STATS, host),
				  prepared = of_host(FW_HOST_PREPARED, host);
		struct fw_op op = {.name = "o", .type = "t"};
		struct fw_fragment fragment = {.name = names[host - 1], .ops = &op, .op_count = 1};

		say_report_of(w, 1, of_host(FW_HOST_REPORT, host), "app", four_fragments,
			      names[host - 1]);
		prepared.prepared = (struct fw_host_prepared){
			.ok = true, .fragments = &fragment, .fragment_count = 1, .pid = 100};
		say(w, 1, &prepared);
		stats.stats = (struct fw_host_stats){
			.final = true, .flows = rows, .flow_count = FW_ROWS_MAX};
		say(w, 1, &stats);
		cr_expect_geq(drv_core_step_items(w->core), FW_ROWS_MAX);
		say_event(w, 1, host, FW_STATE_DONE, "");
	}
	written(w);
	say_reported(w, 1);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_CLOSING, "%s", w->log);
	for (uint32_t host = 1; host <= 4; host++)
		say_exit(w, 1, host, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_DONE);
	free(rows);
}

static bool is_given_up(struct world *w, enum drv_event_kind kind, uint64_t connection)
{
	return drv_core_is_given_up(
		w->core, &(struct drv_event){.kind = kind, .connection = connection}, w->now_ns);
}

WORLD_TEST(driver_adopt, a_driver_that_did_not_run_is_given_up_when_a_worker_has_left, comes_back)
{
	const int64_t late_ns = FRAGI_DEAD_NS - FRAGI_BEAT_NS;

	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 1), "it was not stopped");
	hello_reporting(w, 1, 0);
	client_hello(w, 50, "");
	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 1), "it was not stopped");
	w->now_ns = drv_core_deadline_ns(w->core) + late_ns - 1;
	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 1), "not for long enough");
	w->now_ns++;
	cr_expect_not(is_given_up(w, DRV_EVENT_TIMER, 0));
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 50), "that was a client");
	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 2), "that was a stranger");
	cr_expect(is_given_up(w, DRV_EVENT_CLOSED, 1));
	pass_beating(w, FRAGI_DEAD_NS - 100 * MS, 1, 1);
	cr_expect(is_given_up(w, DRV_EVENT_CLOSED, 1));
	pass_beating(w, 100 * MS, 1, 1);
	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 1), "it left for another reason");
}

/* Pauses count together, less what it ran between them. */
WORLD_TEST(driver_adopt, a_driver_that_did_not_run_in_pieces_is_given_up_too, comes_back)
{
	struct fw_message again = {.kind = FW_HELLO};
	struct drv_event event = {.kind = DRV_EVENT_MESSAGE, .connection = 9, .message = &again};
	const struct fw_message *welcome;

	hello_reporting(w, 1, 0);
	welcome = taken(w, 1, FW_WELCOME);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++) {
			w->now_ns = drv_core_deadline_ns(w->core) + 1300 * MS;
			step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
			cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 1), "%d", k);
			w->now_ns += i == 0 ? 230 * MS : 20 * MS;
			beat(w, 1);
		}
		/* the second timer did what was due, so it has run until the third one */
		w->now_ns = drv_core_deadline_ns(w->core) + 500 * MS;
		cr_expect_eq(is_given_up(w, DRV_EVENT_CLOSED, 1), i == 1, "%d", i);
		pass_beating(w, FRAGI_DEAD_NS, 1, 1);
	}
	w->now_ns = drv_core_deadline_ns(w->core) + FRAGI_DEAD_NS;
	again.hello.session = welcome->welcome.session;
	cr_expect_not(drv_core_is_given_up(w->core, &event, w->now_ns), "it is another worker");
	memcpy(again.hello.secret, welcome->welcome.secret, FW_SECRET_BYTES);
	cr_expect(drv_core_is_given_up(w->core, &event, w->now_ns), "it is back before it left");
}

WORLD_TEST(driver_adopt, a_driver_that_ends_is_not_given_up, comes_back)
{
	hello_reporting(w, 1, 0);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	w->now_ns += 2 * FRAGI_DEAD_NS;
	cr_expect_not(is_given_up(w, DRV_EVENT_CLOSED, 1));
}
