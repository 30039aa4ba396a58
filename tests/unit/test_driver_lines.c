// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/base/lines.h>

/* What applications have written, and who is shown it. */

#define CLIENT 50

static void runs_as(struct world *w, uint64_t seq, const char *name, uint64_t run)
{
	say_start(w, CLIENT, seq, name, two_fragments);
	speaking_run = run;
	speaking_epoch[1] = speaking_epoch[2] = run;
	both_prepare(w);
	both_run(w);
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
}

static void serve(struct world *w)
{
	world_init(w);
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "");
	both_come(w);
	runs_as(w, 2, "", 1);
}

/* Host 1 writes a line, of operator tx. */
static void writes(struct world *w, const char *text, uint64_t left_out)
{
	struct fw_line line = {.level = FRAGI_LOG_INFO, .fragment = "f1", .op = "tx", .text = text};
	struct fw_message message = of_host(FW_HOST_LINES, 1);

	message.host_lines = (struct fw_host_lines){&line, text[0] != '\0', left_out};
	say(w, 1, &message);
}

static const struct fw_logs *ask(struct world *w, uint64_t seq, struct fw_watch_logs watch)
{
	const struct fw_message *m;

	watch.fragment = watch.fragment != NULL ? watch.fragment : "";
	watch.op = watch.op != NULL ? watch.op : "";
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_WATCH_LOGS, .seq = seq, .watch_logs = watch});
	m = taken(w, CLIENT, FW_LOGS);
	if (m != NULL)
		cr_expect_eq(m->reply_to, seq);
	return m != NULL ? &m->logs : NULL;
}

WORLD_TEST(driver_lines, lines_have_their_worker_their_operator_and_their_time, serve)
{
	const struct fw_logs *logs;

	writes(w, "hello", 0);
	logs = ask(w, 3, (struct fw_watch_logs){.name = "app", .fragment = "f1"});
	cr_assert_not_null(logs);
	cr_assert_eq(logs->count, 1);
	cr_expect_str_eq(logs->rows[0].worker, "a");
	cr_expect_str_eq(logs->rows[0].fragment, "f1");
	cr_expect_str_eq(logs->rows[0].op, "tx");
	cr_expect_str_eq(logs->rows[0].text, "hello");
	cr_expect_eq(logs->rows[0].unix_ns, w->now_ns + 1000 * SECOND);
	cr_expect_eq(logs->rows[0].number, logs->last);
	logs = ask(w, 4, (struct fw_watch_logs){.name = "app", .after = logs->last});
	cr_assert_not_null(logs);
	cr_expect_eq(logs->count, 0);
}

WORLD_TEST(driver_lines, what_the_driver_logs_of_it_is_there_too, serve)
{
	const struct fw_logs *logs;
	bool is_there = false;

	logs = ask(w, 3, (struct fw_watch_logs){.name = "app"});
	cr_assert_not_null(logs);
	for (uint32_t i = 0; i < logs->count; i++)
		is_there |= strcmp(logs->rows[i].text, "runs in 2 hosts") == 0 &&
			    logs->rows[i].worker[0] == '\0';
	cr_expect(is_there);
}

WORLD_TEST(driver_lines, a_part_is_shown_alone, serve)
{
	const struct fw_logs *logs;

	writes(w, "one", 0);
	logs = ask(w, 3, (struct fw_watch_logs){.name = "app", .fragment = "f1", .op = "rx"});
	cr_assert_not_null(logs);
	cr_expect_eq(logs->count, 0);
	cr_expect_gt(logs->last, 0, "they are not looked at again");
	logs = ask(w, 4, (struct fw_watch_logs){.name = "app", .fragment = "f1", .op = "tx"});
	cr_assert_not_null(logs);
	cr_expect_eq(logs->count, 1);
}

WORLD_TEST(driver_lines, a_follower_gets_what_comes_and_nothing_of_others, serve)
{
	const struct fw_message *m;
	const struct fw_logs *logs;
	uint64_t last;

	runs_as(w, 3, "other", 2);
	logs = ask(w, 4, (struct fw_watch_logs){.name = "app", .fragment = "f1", .follow = true});
	cr_assert_not_null(logs);
	last = logs->last;
	writes(w, "of the other one", 0);
	cr_expect_null(taken(w, CLIENT, FW_LOGS));
	speaking_run = speaking_epoch[1] = 1;
	writes(w, "hello", 0);
	m = must_take(w, CLIENT, FW_LOGS);
	cr_expect_eq(m->reply_to, 4);
	cr_assert_eq(m->logs.count, 1);
	cr_expect_str_eq(m->logs.rows[0].text, "hello");
	cr_expect_eq(m->logs.rows[0].number, last + 1, "lines of others are no gap");
	cr_assert_not_null(ask(w, 5, (struct fw_watch_logs){.name = "app"}), "it follows no more");
	writes(w, "again", 0);
	cr_expect_null(taken(w, CLIENT, FW_LOGS));
}

WORLD_TEST(driver_lines, a_follower_may_go_at_any_time, serve)
{
	cr_assert_not_null(ask(w, 4, (struct fw_watch_logs){.name = "app", .follow = true}));
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it left"});
	writes(w, "hello", 0);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* Three follow; the one that came first, second or last ends, and the others go on. */
Test(driver_lines, each_follower_may_be_the_one_that_goes)
{
	static struct world w;

	for (uint64_t gone = 0; gone < 3; gone++) {
		serve(&w);
		for (uint64_t c = 0; c < 3; c++) {
			client_hello(&w, 60 + c, "");
			say(&w, 60 + c,
			    &(struct fw_message){.kind = FW_WATCH_LOGS,
						 .seq = 2,
						 .watch_logs = {.name = "app",
								.fragment = "",
								.op = "",
								.follow = true}});
			cr_assert_not_null(taken(&w, 60 + c, FW_LOGS));
		}
		step(&w, &(struct drv_event){.kind = DRV_EVENT_CLOSED,
					     .connection = 60 + gone,
					     .text = "left"});
		writes(&w, "hello", 0);
		for (uint64_t c = 0; c < 3; c++)
			cr_expect_eq(taken(&w, 60 + c, FW_LOGS) != NULL, c != gone, "%d of %d",
				     (int)c, (int)gone);
		world_fini(&w);
	}
}

WORLD_TEST(driver_lines, lines_are_bounded_and_the_newest_stay, serve)
{
	const struct fw_logs *logs;
	uint64_t after = 0, count = 0;
	char text[3000], last[16] = "";

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 3000; i++) {
		snprintf(text, 16, "%d", i);
		writes(w, text, 0);
	}
	while ((logs = ask(w, 3, (struct fw_watch_logs){.name = "app", .after = after})) != NULL &&
	       logs->count > 0) {
		cr_expect_eq(logs->count, FW_LOG_ROWS_MAX);
		after = logs->last;
		count += logs->count;
		snprintf(last, sizeof(last), "%s", logs->rows[logs->count - 1].text);
		w->now_ns += 250 * MS;
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	}
	cr_expect_eq(count, DRV_LINES_MAX);
	cr_expect_str_eq(last, "2999");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 1000; i++)
		writes(w, text, 0);
	logs = ask(w, 4, (struct fw_watch_logs){.name = "app", .fragment = "f1", .after = after});
	cr_assert_not_null(logs);
	cr_expect_eq(strlen(logs->rows[0].text), FW_LOG_LINE_MAX, "the rest of a line is cut");
	cr_expect_str_eq(logs->rows[0].text + FW_LOG_LINE_MAX - 4, "x...");
	cr_expect_gt(logs->rows[0].number, after + 700, "bytes are bounded too");
}

/* Each log has its share of the bytes of 64, of which it may use the last one. */
WORLD_TEST(driver_lines, bytes_are_shared_by_more_logs_than_64, serve)
{
	static const size_t logs[] = {1, 64, 65, 128};
	const struct drv_log *log = w->core->lines.logs;
	char text[1024 - sizeof(struct drv_line) - sizeof("a") - sizeof("f1") - sizeof("tx")];

	memset(text, 120, sizeof(text));
	text[sizeof(text) - 1] = 0;
	for (size_t i = 0; i < FRAG_COUNT_OF(logs); i++) {
		w->core->lines.count = logs[i];
		for (int k = 0; k < 400; k++)
			writes(w, text, 0);
		cr_expect_eq(log->count,
			     DRV_LINES_BYTES * 64 / (logs[i] < 64 ? 64 : logs[i]) / 1024,
			     "%zu logs", logs[i]);
		cr_expect_eq(log->bytes, log->count * 1024);
	}
	w->core->lines.count = 1;
}

WORLD_TEST(driver_lines, old_lines_are_forgotten, serve)
{
	const struct fw_logs *logs;

	writes(w, "old", 0);
	drv_core_set_clock(w->core, 1000 * SECOND + DRV_LINES_KEPT_NS);
	writes(w, "new", 0);
	logs = ask(w, 3, (struct fw_watch_logs){.name = "app", .fragment = "f1"});
	cr_assert_not_null(logs);
	cr_assert_eq(logs->count, 2, "just as old as it may be");
	drv_core_set_clock(w->core, 1000 * SECOND + DRV_LINES_KEPT_NS + 1);
	writes(w, "newer", 0);
	logs = ask(w, 4, (struct fw_watch_logs){.name = "app"});
	cr_assert_not_null(logs);
	cr_assert_eq(logs->count, 2);
	cr_expect_str_eq(logs->rows[0].text, "new");
	cr_expect_eq(logs->rows[0].unix_ns, w->now_ns + 1000 * SECOND + DRV_LINES_KEPT_NS);
}

WORLD_TEST(driver_lines, what_workers_leave_out_is_said, serve)
{
	const struct fw_logs *logs;

	writes(w, "", 77);
	logs = ask(w, 3, (struct fw_watch_logs){.name = "app"});
	cr_assert_not_null(logs);
	assert_has(logs->rows[logs->count - 1].text,
		   "77 lines of f1 are left out here: they came too fast");
	cr_expect_eq(logs->rows[logs->count - 1].level, FRAGI_LOG_WARN);
}

WORLD_TEST(driver_lines, lines_of_another_workers_host_are_not_heard, serve)
{
	struct fw_line line = {
		.level = FRAGI_LOG_INFO, .fragment = "f1", .op = "tx", .text = "forged"};
	struct fw_message message = {.kind = FW_HOST_LINES, .run = 1, .host = 1, .epoch = 1};
	const struct fw_logs *logs;

	message.host_lines = (struct fw_host_lines){&line, 1, 0};
	say(w, 2, &message);
	logs = ask(w, 3, (struct fw_watch_logs){.name = "app", .fragment = "f1"});
	cr_assert_not_null(logs);
	cr_expect_eq(logs->count, 0);
}

WORLD_TEST(driver_lines, an_application_that_is_not_known_has_none, serve)
{
	const struct fw_message *m;

	cr_expect_null(ask(w, 3, (struct fw_watch_logs){.name = "nobody", .follow = true}));
	m = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(m->answer.failure.code, FRAGI_FAILURE_APPLICATION_UNKNOWN);
}

Test(driver_lines, memory_that_is_short_costs_lines_and_no_application)
{
	for (int64_t skip = 0; skip >= 0; skip++) {
		struct world w;

		serve(&w);
		w.runs_short = true;
		w.step_count = 0;
		w.short_step = 0;
		w.short_skip = skip;
		writes(&w, "hello", 0);
		if (w.short_skip < 0)
			skip = -2;
		if (!w.broken)
			cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
		w.runs_short = false;
		world_fini(&w);
	}
}
