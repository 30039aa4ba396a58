// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/beat.h>
#include <driverd/database.h>

#define OPS 6000 /* of a fragment; more flows than a step handles */

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

/* f1 sends to f2 over so many flows. */
static char *many_flows(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "frag: 1\napplication: app\nfragments:\n");
	for (int f = 1; f <= 2; f++) {
		fprintf(out, "  f%d:\n    operators:\n", f);
		for (int i = 0; i < OPS; i++)
			fprintf(out, "      o%d: {type: t}\n", i);
	}
	fprintf(out, "flows:\n");
	for (int i = 0; i < OPS; i++)
		fprintf(out, "  - f1.o%d.out -> f2.o%d.in\n", i, i);
	fclose(out);
	return text;
}

static void say_many(struct world *w, uint32_t host)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, host);
	struct fw_port port = {.name = host == 1 ? "out" : "in",
			       .type = "message",
			       .dir = host == 1 ? FRAG_OUT : FRAG_IN,
			       .has_codec = true};
	struct fw_address address = {"ucx", "address", 7, "tcp lo"};
	struct fw_op *ops = calloc(OPS, sizeof(*ops));
	char(*names)[12] = calloc(OPS, sizeof(*names));
	struct fw_fragment fragment = {
		.name = host == 1 ? "f1" : "f2", .ops = ops, .op_count = OPS};

	cr_assert(ops != NULL && names != NULL);
	for (uint32_t i = 0; i < OPS; i++) {
		snprintf(names[i], sizeof(names[i]), "o%u", i);
		ops[i] = (struct fw_op){
			.name = names[i], .type = "t", .ports = &port, .port_count = 1};
	}
	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 100};
	say(w, host, &message);
	free(ops);
	free(names);
}

WORLD_TEST(driver_adopt, a_report_of_what_was_taken_is_not_believed, comes_back)
{
	const uint32_t numbers[] = {0, 1, 3, UINT32_MAX};
	char *text = many_flows();

	hello_reporting(w, 1, 1);
	hello_reporting(w, 2, 1);
	hello_by(w, 3, "c", NULL,
		 (struct fw_hello){.worker_address = "127.0.0.1", .node = "node", .reports = 4});
	for (uint32_t host = 1; host <= 2; host++) {
		say_report(w, host, host, text);
		say_many(w, host);
		written(w);
		say_reported(w, host);
	}
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_PREPARING, "its flows take a few steps");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct fw_message report = of_host(FW_HOST_REPORT, numbers[i]);

		report.epoch = RUN + 1;
		say_report_of(w, 3, report, "app", two_fragments, "f1");
		cr_expect_not_null(taken(w, 3, FW_HOST_KILL));
	}
	for (int i = 0; i < 100; i++)
		pass(w, MS);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	free(text);
}

Test(driver_adopt, numbers_that_leave_none_for_others_are_not_believed)
{
	const struct {
		uint64_t run, epoch;
	} numbers[] = {{0, 1}, {UINT64_MAX, 1}, {(uint64_t)INT64_MAX, 1}, {RUN, UINT64_MAX}};
	struct world w;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct fw_message report = of_host(FW_HOST_REPORT, 1);

		comes_back(&w);
		hello_reporting(&w, 1, 1);
		report.run = numbers[i].run;
		report.epoch = numbers[i].epoch;
		say_report_of(&w, 1, report, "app", two_fragments, "f1");
		cr_expect(is_closed(&w, 1), "%zu", i);
		cr_expect_eq(drv_core_app_count(w.core), 0);
		cr_expect_eq(w.kept_count == 0 || w.epochs < UINT32_MAX, true);
		assert_has(w.log, "impossible numbers");
		world_fini(&w);
	}
}

/* Its two hosts are reported with these ages, and it ends a second later. */
static void ends_after(struct world *w, const int64_t ages_ns[2])
{
	hello_reporting(w, 1, 1);
	hello_reporting(w, 2, 1);
	for (uint32_t host = 1; host <= 2; host++) {
		struct fw_message report = of_host(FW_HOST_REPORT, host);

		report.report.age_ns = ages_ns[host - 1];
		say_report_of(w, host, report, "app", two_fragments, host == 1 ? "f1" : "f2");
		say_prepared(w, host, host, host == 1 ? "f1" : "f2", host == 1);
		written(w);
		say_reported(w, host);
	}
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	w->now_ns += SECOND;
	both_are_done(w);
	both_exit(w);
	cr_assert(w->ended);
}

WORLD_TEST(driver_adopt, an_application_is_as_old_as_its_oldest_host, NULL)
{
	static const int64_t ages_ns[][2] = {{5 * SECOND, 3 * SECOND}, {3 * SECOND, 5 * SECOND}};

	for (size_t i = 0; i < FRAG_COUNT_OF(ages_ns); i++) {
		comes_back(w);
		ends_after(w, ages_ns[i]);
		assert_has(w->json, "\"duration_ns\": 6");
		world_fini(w);
	}
	comes_back(w);
}

WORLD_TEST(driver_adopt, an_age_beyond_all_time_is_not_believed, comes_back)
{
	ends_after(w, (const int64_t[]){INT64_MAX, INT64_MAX});
	assert_has(w->json, "\"duration_ns\": ");
	cr_expect_null(strstr(w->json, "\"duration_ns\": -"), "%s", w->json);
}

Test(driver_adopt, what_only_workers_know_is_not_started_anew)
{
	struct world w;

	comes_back(&w);
	hello_reporting(&w, 1, 1);
	say_report(&w, 1, 1, two_fragments);
	say_reported(&w, 1);
	written(&w);
	pass_beating(&w, 10 * SECOND, 1, 1);
	written(&w);
	pass_beating(&w, SECOND, 1, 1);
	assert_has(w.log, "run 7 is not adopted");
	cr_expect_eq(drv_core_app_count(w.core), 0, "%s", w.log);
	cr_expect_null(kept(&w, DRV_RECORD_RUN, RUN + 1));
	world_fini(&w);

	comes_back(&w);
	adopt_two(&w);
	cr_assert_not_null(kept(&w, DRV_RECORD_RUN, RUN));
	cr_expect_not(kept(&w, DRV_RECORD_RUN, RUN)->is_wanted);
	step(&w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "reset"});
	say_exit(&w, 2, 2, 0, 9, "");
	cr_assert(w.ended);
	cr_expect_not(kept(&w, DRV_RECORD_END, RUN)->is_wanted);
	world_fini(&w);
}

/* A run without an end, or one that is to start again, that the state folder knows. */
/* Else the driver after it takes a run with that number for one that is over. */
Test(driver_adopt, a_run_that_only_workers_know_is_kept_with_its_number)
{
	struct world w;

	comes_back(&w);
	hello_reporting(&w, 1, 1);
	say_report(&w, 1, 1, two_fragments);
	cr_assert_not_null(kept(&w, DRV_RECORD_RUN, RUN), "%s", w.log);
	cr_expect_not(kept(&w, DRV_RECORD_RUN, RUN)->is_wanted);
	cr_expect_not_null(kept(&w, DRV_RECORD_NUMBERS, 0), "of none that it has given: %s", w.log);
	world_fini(&w);

	comes_back(&w);
	cr_assert_eq(drv_core_restore(w.core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
								   .run = RUN,
								   .epoch = RUN}),
		     0);
	restore_as(&w, RUN, false);
	pass(&w, MS);
	adopt_two(&w);
	world_fini(&w);
}

/* Such a driver has lost its state: a lower run, which it had no time to keep, may be there too. */
Test(driver_adopt, a_run_below_one_that_only_workers_knew_is_not_over)
{
	for (uint64_t given = 0; given <= RUN + 1; given += RUN + 1) {
		struct world w;

		comes_back(&w);
		cr_assert_eq(
			drv_core_restore(w.core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
								      .run = given,
								      .epoch = RUN}),
			0);
		restore_as(&w, RUN + 1, false);
		pass(&w, MS);
		hello_reporting(&w, 1, 1);
		say_report_of(&w, 1, of_host(FW_HOST_REPORT, 1), "other", two_fragments, "f1");
		cr_expect_eq(taken(&w, 1, FW_HOST_KILL) == NULL, given == 0, "%s", w.log);
		cr_expect_eq(kept(&w, DRV_RECORD_RUN, RUN) != NULL, given == 0);
		world_fini(&w);
	}
}

WORLD_TEST(driver_adopt, a_newer_run_has_the_name_of_one_that_nobody_wants, comes_back)
{
	restore_as(w, RUN - 2, false);
	pass(w, MS);
	adopt_two(w);
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

Test(driver_adopt, a_worker_reports_no_more_than_it_has_announced)
{
	struct world w;

	comes_back(&w);
	hello_reporting(&w, 1, 1);
	for (uint32_t host = 1; host <= 2; host++)
		say_report(&w, 1, host, two_fragments);
	cr_expect(is_closed(&w, 1));
	assert_has(w.log, "more hosts than it has announced");
	world_fini(&w);

	comes_back(&w);
	hello_reporting(&w, 1, UINT32_MAX);
	for (uint32_t i = 0; i <= 1024; i++) {
		struct fw_message report = of_host(FW_HOST_REPORT, 1);
		char name[16];

		cr_assert_not(is_closed(&w, 1));
		report.run += i;
		snprintf(name, sizeof(name), "app%u", i);
		say_report_of(&w, 1, report, name, two_fragments, "f1");
		cr_expect_leq(drv_core_app_count(w.core), DRV_APPS_MAX);
	}
	cr_expect(is_closed(&w, 1));
	world_fini(&w);
}

Test(driver_adopt, what_waits_to_be_heard_is_bounded)
{
	struct fw_message lost = of_host(FW_HOST_EVENT, 1);
	struct world w;

	comes_back(&w);
	report_two(&w);
	for (int i = 0; i < 1000; i++) {
		say_idle(&w, 1, 1, (uint64_t)i, 0);
		say_stats(&w, 1, 1, false, (uint64_t)i, 0);
	}
	say_reported(&w, 2);
	cr_assert_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "%s", w.log);
	cr_expect_not(is_closed(&w, 1));
	say_event(&w, 2, 2, FW_STATE_DONE, "");
	say_event(&w, 1, 1, FW_STATE_DONE, "");
	both_exit(&w);
	assert_has(w.json, "\"sent\": 999");
	world_fini(&w);

	comes_back(&w);
	speaking_run = RUN;
	report_two(&w);
	lost.event.state = FW_STATE_PEER_LOST;
	lost.event.failure = (struct fw_failure){FRAGI_FAILURE_EDGE_LOST, "reset", ""};
	for (uint32_t i = 0; i < 100; i++) {
		lost.event.peer = i;
		say(&w, 1, &lost);
	}
	cr_expect_not(is_closed(&w, 1));
	for (int i = 0; i < 100; i++)
		say_result(&w, 1, 1, FW_HOST_STARTED);
	cr_expect(is_closed(&w, 1));
	assert_has(w.log, "no room for what it reports");
	world_fini(&w);
}

WORLD_TEST(driver_adopt, a_report_comes_to_its_end, comes_back)
{
	hello_reporting(w, 1, 2);
	say_report(w, 1, 1, two_fragments);
	pass_beating(w, 7 * SECOND, 1, 1);
	cr_expect_not(is_closed(w, 1));
	for (int i = 0; i < 30 && !is_closed(w, 1); i++)
		pass_beating(w, 100 * MS, 1, 1);
	cr_expect(is_closed(w, 1));
	assert_has(w->log, "did not finish its report in time");
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
		w->now_ns = drv_core_deadline_ns(w->core) + 300 * MS;
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

/* The sources of runs, as an earlier driver kept them, which are what its workers report. */
struct old_state {
	struct world w;
	struct {
		void *bytes;
		uint32_t size;
	} sources[8];
};

static int restore_old(void *arg, const struct drv_record *record)
{
	struct old_state *old = arg;

	if (record->kind == DRV_RECORD_RUN && record->source_bytes != 0) {
		old->sources[record->run].bytes = fragi_malloc(record->source_bytes);
		memcpy(old->sources[record->run].bytes, record->source, record->source_bytes);
		old->sources[record->run].size = (uint32_t)record->source_bytes;
	}
	return drv_core_restore(old->w.core, record);
}

static void read_old(struct old_state *old, const char *path)
{
	char folder[] = "/tmp/frag-old-XXXXXX", name[64], sql[16384] = "";
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_database *database;
	sqlite3 *sqlite;
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file, "%s", path);
	cr_assert_lt(fread(sql, 1, sizeof(sql) - 1, file), sizeof(sql) - 1);
	fclose(file);
	cr_assert_not_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/" DRV_DATABASE_FILE, folder);
	cr_assert_eq(sqlite3_open(name, &sqlite), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(sqlite, sql, NULL, NULL, NULL), SQLITE_OK, "%s",
		     sqlite3_errmsg(sqlite));
	sqlite3_close(sqlite);
	cr_assert_eq(drv_database_open(folder, &database, &err), 0, "%s", err.text);
	cr_assert_eq(drv_database_read(database, restore_old, old, &err), 0, "%s", err.text);
	drv_database_close(database);
	cr_expect_eq(unlink(name), 0);
	cr_expect_eq(rmdir(folder), 0, "nothing is left beside it");
}

/* What the worker of that connection has of a run: its two hosts, of these epochs. */
static void report_old(struct old_state *old, uint64_t connection, const char *name, uint64_t run,
		       const uint64_t *epochs)
{
	const char *fragments[] = {"source", "sink"};

	speaking_run = run;
	for (uint32_t host = 1; host <= 2; host++) {
		struct fw_message message = of_host(FW_HOST_REPORT, host);

		message.epoch = epochs[host - 1];
		message.report.create =
			(struct fw_host_create){.application = name,
						.fragments = &fragments[host - 1],
						.fragment_count = 1,
						.source = old->sources[run].bytes,
						.source_bytes = old->sources[run].size};
		message.report.started = message.report.has_run = true;
		say(&old->w, connection, &message);
		speaking_epoch[host] = epochs[host - 1];
		say_prepared(&old->w, connection, host, fragments[host - 1], host == 1);
	}
}

Test(driver_adopt, what_an_earlier_driver_kept_is_read_and_what_it_ran_is_adopted)
{
	static struct old_state old;
	struct world *w = &old.w;
	const struct fw_message *create;

	comes_back(w);
	read_old(&old, "tests/data/state/driverd-0.1.sql");
	hello_reporting(w, 1, 4);
	hello_reporting(w, 2, 2);
	report_old(&old, 1, "moved", 2, (uint64_t[]){3, 4});
	report_old(&old, 1, "swapped", 4, (uint64_t[]){7, 6});
	say_reported(w, 1);
	report_old(&old, 2, "restarted", 3, (uint64_t[]){8, 5});
	say_reported(w, 2);
	written(w);
	cr_assert_eq(drv_core_app_count(w->core), 3);
	cr_expect_eq(drv_core_named_state(w->core, "moved"), DRV_APP_RUNNING, "%s", w->log);
	cr_expect_eq(drv_core_named_state(w->core, "restarted"), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_named_state(w->core, "swapped"), DRV_APP_RUNNING);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "nothing is started anew");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	/* Its epochs go on above those of the folder, by the policy and with the graph of then. */
	speaking_run = 3;
	speaking_epoch[1] = 8;
	say_exit(w, 2, 1, 139, 11, "");
	written(w);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_gt(create->epoch, 1030);
	cr_expect_eq(create->run, 3);
	cr_expect_eq(drv_core_named_state(w->core, "restarted"), DRV_APP_RUNNING);
	world_fini(w);
	for (size_t i = 0; i < FRAG_COUNT_OF(old.sources); i++)
		fragi_free(old.sources[i].bytes);
}
