// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

#include <base/log.h>

/* Lines of hosts that a worker passes on to its driver. */
TestSuite(worker_log, .fini = finish);

/* Attached to a driver that takes lines, or not, with a host. */
static void start_with(bool takes)
{
	make_started(false);
	connected("127.0.0.1");
	step((struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
				.connection = seen_connection,
				.message =
					&(struct fw_message){.kind = FW_WELCOME,
							     .welcome = {.session = 5,
									 .name = "a",
									 .beat_ns = 250 * MS,
									 .dead_ns = 3000 * MS,
									 .version = "0.1.0",
									 .takes_lines = takes}}});
	spawn(1);
	prepared();
}

static const struct fw_host_lines *write_lines(const char *const *lines, uint32_t count,
					       uint32_t left_out)
{
	const struct fw_message *message;

	step((struct wrk_event){.kind = WRK_EVENT_HOST_LINES,
				.host = seen_host,
				.lines = lines,
				.line_count = count,
				.left_out = left_out});
	message = sent(FW_HOST_LINES);
	return message != NULL ? &message->host_lines : NULL;
}

Test(worker_log, lines_say_what_they_are_about)
{
	static const struct {
		const char *line;
		uint32_t level;
		const char *fragment, *op, *text;
	} cases[] = {
		{"f1.tx: hello: you", FRAGI_LOG_INFO, "f1", "tx", "hello: you"},
		{"2026-11-22T20:24:04.159Z warn  op app/f1.tx: it is hot", FRAGI_LOG_WARN, "f1",
		 "tx", "it is hot"},
		{"2026-11-22T20:24:04.159Z error sched app/f1: it is", FRAGI_LOG_ERROR, "f1", "",
		 "it is"},
		{"2026-11-22T20:24:04.159Z info  host: it runs", FRAGI_LOG_INFO, "", "", "it runs"},
		{"2026-11-22T20:24:04.159Z info  run app: it runs", FRAGI_LOG_INFO, "", "",
		 "it runs"},
		{"printed by a library", FRAGI_LOG_INFO, "", "", "printed by a library"},
		{"10.1: no name begins so", FRAGI_LOG_INFO, "", "", "no name begins so"},
		{"", FRAGI_LOG_INFO, "", "", ""},
	};

	start_with(true);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fw_host_lines *lines = write_lines(&cases[i].line, 1, 0);

		cr_assert_not_null(lines);
		cr_assert_eq(lines->count, 1);
		cr_expect_eq(lines->rows[0].level, cases[i].level, "%s", cases[i].line);
		cr_expect_str_eq(lines->rows[0].fragment, cases[i].fragment);
		cr_expect_str_eq(lines->rows[0].op, cases[i].op);
		cr_expect_str_eq(lines->rows[0].text, cases[i].text);
	}
}

Test(worker_log, a_driver_that_does_not_take_lines_gets_none)
{
	const char *line = "hello";

	start_with(false);
	cr_expect_not(wrk_core_takes_lines(core));
	cr_expect_null(write_lines(&line, 1, 0));
}

Test(worker_log, lines_are_limited_and_those_left_out_are_counted)
{
	const char *lines[FW_LOG_ROWS_MAX];
	const struct fw_host_lines *message;

	for (size_t i = 0; i < FW_LOG_ROWS_MAX; i++)
		lines[i] = "hello";
	start_with(true);
	message = write_lines(lines, 200, 0);
	cr_assert_not_null(message);
	cr_expect_eq(message->count, 200);
	message = write_lines(lines, 100, 7);
	cr_assert_not_null(message);
	cr_expect_eq(message->count, WRK_LINES_BURST - 200);
	cr_expect_eq(message->left_out, 0, "they come after it");
	cr_expect_null(write_lines(lines, 10, 0));
	now += 1000 * MS / WRK_LINES_RATE;
	message = write_lines(lines, 10, 0);
	cr_assert_not_null(message);
	cr_expect_eq(message->count, 1);
	cr_expect_eq(message->left_out, 100 - 56 + 7 + 10);
	cr_assert_not(timers_until(now + 2700 * MS, WRK_DO_CONNECT));
	message = write_lines(lines, FW_LOG_ROWS_MAX, 0);
	cr_assert_not_null(message);
	cr_expect_eq(message->count, WRK_LINES_BURST, "after a pause there is room again");
}

Test(worker_log, what_was_left_out_is_reported_with_a_beat_or_the_end)
{
	const char *lines[FW_LOG_ROWS_MAX];

	for (size_t i = 0; i < FW_LOG_ROWS_MAX; i++)
		lines[i] = "hello";
	start_with(true);
	write_lines(lines, FW_LOG_ROWS_MAX, 5);
	cr_assert(timers_until(now + 300 * MS, WRK_DO_SAMPLE_HOST));
	cr_assert_not_null(sent(FW_HOST_LINES));
	cr_expect_eq(sent(FW_HOST_LINES)->host_lines.left_out, 5);
	cr_expect_eq(sent(FW_HOST_LINES)->host_lines.count, 0);
	write_lines(lines, FW_LOG_ROWS_MAX, 0);
	exited(1, 0, false);
	cr_assert_not_null(sent(FW_HOST_LINES));
	cr_expect_gt(sent(FW_HOST_LINES)->host_lines.left_out, 200);
}

Test(worker_log, after_the_session_no_line_is_sent)
{
	const char *line = "hello";

	start_with(true);
	driver_lost("connection reset");
	cr_expect_not(wrk_core_takes_lines(core));
	cr_expect_null(write_lines(&line, 1, 0));
}
