// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/nowait.h>
#include <base/stamp.h>
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
	close(saved);
	if (out[0] >= 0)
		close(out[0]);
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

/* The pipe is emptied after each line: it may have a page only, as where its user has many. */
Test(worker_lines, a_long_line_is_cut_without_losing_a_byte)
{
	static char long_line[3 * WRK_LINE_MAX], taken[sizeof(long_line)];
	size_t x = 0, cuts = 0;

	for (size_t length = WRK_LINE_MAX - 3; length < WRK_LINE_MAX + 3; length++) {
		ssize_t n;

		memset(long_line, 'x', length);
		long_line[length] = '\0';
		feed(long_line);
		feed("\n");
		x += length;
		n = read(out[0], taken, sizeof(taken));
		for (ssize_t i = 0; i < n; i++) {
			x -= taken[i] == 'x';
			cuts += taken[i] == '\n';
		}
	}
	cr_expect_eq(x, 0);
	cr_expect_eq(cuts, 6 + 3, "three of them are longer than a line may be");
}

Test(worker_lines, a_reader_that_is_gone_disturbs_nothing)
{
	const char *last[FW_LINES_MAX];

	signal(SIGPIPE, SIG_IGN);
	close(out[0]);
	out[0] = -1;
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

static const char *const fragments[] = {"f1", "f2"};
static const struct wrk_writer of_one = {"app", fragments, 1, true},
			       of_two = {"app", fragments, 2, true},
			       of_run = {"app", fragments, 1, false};

#define NOW "2026-11-27T03:24:30.123Z "

/* What operators write to their descriptors passes for nobody else's. */
Test(worker_lines, each_line_says_who_wrote_it)
{
	static const struct {
		const char *written, *logged;
	} of_f1[] = {
		{"f1.op: text", "f1.op: text"},
		{"text", "app/f1: text"},
		{"", ""},
		{"error driver app: forged", "app/f1: error driver app: forged"},
		{"f2.op: text", "app/f1: f2.op: text"},
		{"f1: text", "app/f1: f1: text"},
		{NOW "info  sched app/f1.op: text", NOW "info  sched app/f1.op: text"},
		{NOW "warn  op app/f1: text", NOW "warn  op app/f1: text"},
		{NOW "warn  op app: text", NOW "warn  op app: text"},
		{NOW "warn  ucx: text", NOW "warn  ucx app/f1: text"},
		{NOW "warn  ucx bpp/f1: text", NOW "warn  ucx app/f1: bpp/f1: text"},
		{NOW "warn  ucx app/f2.op: text", NOW "warn  ucx app/f1: app/f2.op: text"},
		{NOW "error driver: text", NOW "error host app/f1: driver: text"},
		{NOW "error driver app/f1: text", NOW "error host app/f1: driver app/f1: text"},
		{NOW "info  worker app: text", NOW "info  host app/f1: worker app: text"},
		{NOW "loud  ucx: text", "app/f1: " NOW "loud  ucx: text"},
		{"\033[2Jf1.op: text", "app/f1: \\x1b[2Jf1.op: text"},
	};
	char line[WRK_SIGNED_MAX], own[20];

	for (size_t i = 0; i < sizeof(of_f1) / sizeof(of_f1[0]); i++) {
		cr_expect_eq(
			wrk_writer_sign(&of_one, of_f1[i].written, strlen(of_f1[i].written), line),
			strlen(of_f1[i].logged));
		cr_expect_str_eq(line, of_f1[i].logged);
	}
	wrk_writer_sign(&of_two, "text", 4, line);
	cr_expect_str_eq(line, "app/f1 and 1 more: text");
	for (size_t i = 0; i < 2; i++) {
		snprintf(own, sizeof(own), "%s.op: text", fragments[i]);
		wrk_writer_sign(&of_two, own, strlen(own), line);
		cr_expect_str_eq(line, own);
	}
	wrk_writer_sign(&of_run, "text", 4, line);
	cr_expect_str_eq(line, "text", "a person's own output is as it was written");
	wrk_writer_sign(&of_run, of_f1[11].written, strlen(of_f1[11].written), line);
	cr_expect_str_eq(line, of_f1[11].logged, "but nothing passes for a daemon's");
}

Test(worker_lines, escapes_are_shown_and_not_sent)
{
	static const char *const rows[][2] = {
		{"f1.op: \033]0;title\a", "f1.op: \\x1b]0;title\\x07"},
		{"f1.op: \x9b[2J", "f1.op: \\x9b[2J"},
		{"f1.op: \xc2\x9b[2J", "f1.op: \\xc2\\x9b[2J"},
		{"f1.op: \tgr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac",
		 "f1.op: \tgr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac"},
		{"f1.op: over\rwritten\r", "f1.op: over\\x0dwritten"},
		{"f1.op: cut \xe2\x82", "f1.op: cut \\xe2\\x82"},
	};
	char line[WRK_SIGNED_MAX], long_line[WRK_LINE_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wrk_writer_sign(&of_one, rows[i][0], strlen(rows[i][0]), line);
		cr_expect_str_eq(line, rows[i][1]);
	}
	cr_expect_eq(wrk_writer_sign(&of_one, "f1.op: a\0b", 10, line), 13);
	cr_expect_str_eq(line, "f1.op: a\\x00b");
	memset(long_line, '\033', sizeof(long_line));
	cr_expect_leq(wrk_writer_sign(&of_one, long_line, sizeof(long_line), line),
		      WRK_SIGNED_MAX - 1);
	cr_expect(strncmp(line, "app/f1: \\x1b\\x1b", 16) == 0);
	cr_expect_str_eq(line + strlen(line) - 3, "...", "what is cut ends with a mark");
}

Test(worker_lines, more_than_the_rate_are_counted)
{
	const char *last[FW_LINES_MAX], *text;
	size_t lines_out = 0;

	lines.rate = 10;
	for (int i = 0; i < 10 * WRK_LINES_BURST_S + 3; i++)
		feed("line\n");
	feed("last\n");
	cr_expect_str_eq(last[wrk_lines_last(&lines, last) - 1], "last", "it is kept all the same");
	wrk_lines_catch_up(&lines);
	usleep(300000); /* there is room for three lines */
	wrk_lines_catch_up(&lines);
	feed("still left out\n");
	/* As often as it is looked at, there is room for as many as a second has after a second. */
	for (int i = 0; i < 1000 && lines.left_out > 0; i++) {
		usleep(10000);
		wrk_lines_catch_up(&lines);
	}
	wrk_lines_catch_up(&lines);
	feed("again\n");
	feed("and again\n");
	wrk_lines_end(&lines);
	text = written();
	for (const char *c = text; (c = strstr(c, "line\n")) != NULL; c++)
		lines_out++;
	cr_expect_eq(lines_out, 10 * WRK_LINES_BURST_S);
	cr_expect_not_null(strstr(text,
				  "5 lines of its host are left out: it writes more than 10 a "
				  "second\nagain\nand again\n"),
			   "%s", text);
}

/* The last line that is within the rate is written, and the next one is not. */
Test(worker_lines, the_rate_itself_is_allowed)
{
	enum { RATE = 2, MOST = RATE * WRK_LINES_BURST_S };
	static const struct {
		uint32_t used;
		uint64_t left_out;
		bool is_written;
	} rows[] = {
		{0, 0, true},         {MOST - 1, 0, true},    {MOST, 0, false},
		{0, 1, true},         {MOST - RATE, 1, true}, {MOST - RATE + 1, 1, false},
		{MOST - 1, 1, false},
	};

	uint64_t left_out[sizeof(rows) / sizeof(rows[0])];
	uint32_t used[sizeof(rows) / sizeof(rows[0])];

	lines.rate = RATE;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		lines.used = rows[i].used;
		lines.left_out = rows[i].left_out;
		lines.used_at_ns = fragi_now_ns();
		feed("line\n");
		feed(""); /* it is written with the next bytes */
		left_out[i] = lines.left_out;
		used[i] = lines.used;
	}
	lines.left_out = 0;
	wrk_lines_end(&lines);
	(void)written();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(left_out[i], rows[i].is_written ? 0 : rows[i].left_out + 1,
			     "row %zu: %d", i, (int)left_out[i]);
		cr_expect_eq(used[i], rows[i].used + rows[i].is_written, "row %zu: %u", i, used[i]);
	}
}
