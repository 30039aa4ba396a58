// SPDX-License-Identifier: Apache-2.0
#include "adopt_world.h"

#include <stdio.h>
#include <stdlib.h>

#define OPS 6000 /* of a fragment; more flows than a step handles */

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

/* What a host has said may come before its tables. */
WORLD_TEST(driver_adopt, what_was_reported_before_the_tables_is_heard_too, comes_back)
{
	hello_reporting(w, 1, 2);
	for (uint32_t host = 1; host <= 2; host++) {
		say_report(w, 1, host, two_fragments);
		say_event(w, 1, host, FW_STATE_DONE, "");
		say_prepared(w, 1, host, host == 1 ? "f1" : "f2", host == 1);
	}
	say_reported(w, 1);
	written(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING, "%s", w->log);
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
	static const int64_t most = INT64_MAX / 4; /* no more is believed */
	static const int64_t ages_ns[][3] = {
		{5 * SECOND, 3 * SECOND, 5 * SECOND},
		{3 * SECOND, 5 * SECOND, 5 * SECOND},
		{0, 0, 0},
		{1, 2, 2},
		{50 * SECOND, 0, 50 * SECOND - 1}, /* since 0, which is no time */
		{0, most, most},
		{INT64_MAX, most + 1, most}};
	char duration[64];

	for (size_t i = 0; i < FRAG_COUNT_OF(ages_ns); i++) {
		comes_back(w);
		ends_after(w, ages_ns[i]);
		snprintf(duration, sizeof(duration), "\"duration_ns\": %lld,",
			 (long long)(ages_ns[i][2] + SECOND));
		assert_has(w->json, duration);
		world_fini(w);
	}
	comes_back(w);
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
