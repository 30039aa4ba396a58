/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/nowait.h>
#include <workerd/lines.h>

static struct wrk_lines lines;
static int out[2];

static int saved;

static void begin(void)
{
	cr_assert_eq(pipe(out), 0);
	saved = dup(2);
	dup2(out[1], 2);
	close(out[1]);
}
static void end(void)
{
	dup2(saved, 2);
	wrk_lines_fini(&lines);
}
TestSuite(worker_lines, .init = begin, .fini = end);

static void feed(const char *text)
{
	size_t taken = wrk_lines_feed(&lines, text, strlen(text), false);

	cr_expect_eq(taken, strlen(text));
}
static const char *written(void)
{
	static char text[65536];
	size_t used = 0;
	ssize_t n;

	dup2(saved, 2);
	while ((n = read(out[0], text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	return text;
}

Test(worker_lines, only_whole_lines_go_out)
{
	const char *last[FW_LINES_MAX];

	feed("one\ntw");
	feed("o");
	feed("\n\nthree");
	cr_expect_eq(wrk_lines_last(&lines, last), 3);
	wrk_lines_end(&lines);
	cr_assert_eq(wrk_lines_last(&lines, last), 4);
	cr_expect_str_eq(last[0], "one");
	cr_expect_str_eq(last[1], "two");
	cr_expect_str_eq(last[2], "");
	cr_expect_str_eq(last[3], "three");
	cr_expect_str_eq(written(), "one\ntwo\n\nthree\n");
}

Test(worker_lines, the_last_ones_are_kept_in_order)
{
	const char *last[FW_LINES_MAX];

	for (int i = 0; i < 50; i++) {
		char line[16];

		snprintf(line, sizeof(line), "line %d\n", i);
		feed(line);
	}
	cr_assert_eq(wrk_lines_last(&lines, last), FW_LINES_MAX);
	cr_expect_str_eq(last[0], "line 30");
	cr_expect_str_eq(last[FW_LINES_MAX - 1], "line 49");
}

Test(worker_lines, a_long_line_is_cut_without_losing_a_byte)
{
	static char long_line[3 * WRK_LINE_MAX];
	size_t x = 0, cuts = 0;

	for (size_t length = WRK_LINE_MAX - 3; length < WRK_LINE_MAX + 3; length++) {
		memset(long_line, 'x', length);
		long_line[length] = '\0';
		feed(long_line);
		feed("\n");
		x += length;
	}
	for (const char *c = written(); *c != '\0'; c++) {
		x -= *c == 'x';
		cuts += *c == '\n';
	}
	cr_expect_eq(x, 0);
	cr_expect_eq(cuts, 6 + 3, "three of them are longer than a line may be");
}

Test(worker_lines, a_reader_that_is_gone_disturbs_nothing)
{
	const char *last[FW_LINES_MAX];

	signal(SIGPIPE, SIG_IGN);
	close(out[0]);
	feed("one\n");
	cr_expect_eq(wrk_lines_last(&lines, last), 1);
}

/* Fills stderr's pipe; returns how many bytes that took. */
static size_t fill(void)
{
	static const char dots[4096] = {[0 ... sizeof(dots) - 1] = '.'};
	size_t filled = 0;
	ssize_t n;

	while ((n = fragi_write_nowait(2, dots, sizeof(dots))) > 0)
		filled += (size_t)n;
	return filled;
}
static void make_room(size_t size)
{
	static char bytes[1 << 20];

	cr_assert_eq(read(out[0], bytes, size), (ssize_t)size);
}

Test(worker_lines, a_line_waits_for_a_reader_that_is_behind)
{
	size_t filled = fill();
	const char *text = "one\ntwo\n";
	size_t taken = wrk_lines_feed(&lines, text, strlen(text), true);

	cr_assert_eq(taken, 4, "the second line is not looked at before the first is out");
	cr_assert(wrk_lines_wait(&lines));
	cr_assert_eq(wrk_lines_feed(&lines, text + taken, 4, true), 0);
	make_room(filled);
	cr_assert_eq(wrk_lines_feed(&lines, text + taken, 4, true), 4);
	cr_assert_not(wrk_lines_wait(&lines));
	cr_expect_str_eq(written(), "one\ntwo\n");
}

Test(worker_lines, lines_that_nobody_reads_are_dropped_and_counted)
{
	size_t filled = fill();
	const char *text;

	feed("one\ntwo\n");
	make_room(filled);
	feed("three\n");
	text = written();
	cr_expect_not_null(strstr(text, "2 lines were dropped: "));
	cr_expect_not_null(strstr(text, "\nthree\n"));
}
