/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <workerd/lines.h>

static struct wrk_lines lines;
static int out[2];

static void begin(void)
{
	cr_assert_eq(pipe(out), 0);
}
static void end(void)
{
	wrk_lines_fini(&lines);
}
TestSuite(worker_lines, .init = begin, .fini = end);

static void feed(const char *text)
{
	wrk_lines_feed(&lines, text, strlen(text), out[1]);
}
static const char *written(void)
{
	static char text[65536];
	size_t used = 0;
	ssize_t n;

	close(out[1]);
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
	wrk_lines_end(&lines, out[1]);
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
