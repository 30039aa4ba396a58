// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "test"
#include <base/log.h>
#include <base/log_line.h>

static int saved_stderr, reader;

/* stderr into a pipe; small texts fit its buffer, so one thread writes and reads. */
static void catch_stderr(void)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	reader = ends[0];
}

static const char *caught(void)
{
	static char text[8192];
	ssize_t n;

	dup2(saved_stderr, STDERR_FILENO); /* closes the last writing end */
	close(saved_stderr);
	n = read(reader, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(reader);
	return text;
}

Test(log, a_line_has_time_level_topic_subject_and_text)
{
	const char *line;
	int y, mo, d, h, mi, s, ms, at = 0;

	catch_stderr();
	errno = EXDEV;
	log_warn("app/f1.op", "took %d ms", 7);
	cr_expect_eq(errno, EXDEV);
	line = caught();
	cr_assert_eq(sscanf(line, "%d-%d-%dT%d:%d:%d.%dZ %n", &y, &mo, &d, &h, &mi, &s, &ms, &at),
		     7, "%s", line);
	cr_expect_str_eq(line + at, "warn  test app/f1.op: took 7 ms\n");
}

Test(log, what_is_not_utf_8_is_left_out)
{
	const char *line;

	catch_stderr();
	log_warn("a\xFFpp", "\xC3\xA9 \xC3 \xED\xA0\x80 \xC0\xAF \xC2\x9B\x1b[1m \xF0\x9F\x98\x80");
	line = caught();
	cr_expect(strstr(line, "test a pp: \xC3\xA9             [1m \xF0\x9F\x98\x80\n") != NULL,
		  "%s", line);
}

Test(log, without_a_subject)
{
	const char *line;

	catch_stderr();
	log_error(NULL, "x");
	line = caught();
	cr_expect_not_null(strstr(line, "Z error test: x\n"), "%s", line);
}

Test(log, lines_below_the_threshold_are_not_written)
{
	catch_stderr();
	log_debug(NULL, "no");
	cr_expect_str_eq(caught(), "");
}

Test(log, one_line_stays_one_line_and_bounded)
{
	char *text = calloc(1, 5001);
	const char *line;

	memset(text, 'x', 5000);
	memcpy(text, "a\nb\033[2J", 7);
	catch_stderr();
	log_info(NULL, "%s", text);
	line = caught();
	cr_expect_eq(strchr(line, '\n'), line + strlen(line) - 1);
	cr_expect_null(strchr(line, '\033'));
	cr_expect_lt(strlen(line), 2049);
	cr_expect_str_eq(line + strlen(line) - 4, "...\n");
	free(text);
}

Test(log, levels_from_the_environment_and_the_command_line)
{
	setenv("FRAG_LOG_LEVEL", "warn", 1);
	fragi_log_init(0);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_WARN);
	fragi_log_init(2);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_DEBUG);
	fragi_log_init(100);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_TRACE);
	fragi_log_init(-100);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_OFF);
	unsetenv("FRAG_LOG_LEVEL");
	fragi_log_init(0);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_INFO);
}

Test(log, quiet_does_not_silence_operators)
{
	setenv("FRAG_LOG_LEVEL", "warn", 1);
	fragi_log_init(-1);
	cr_expect_eq(fragi_log_operator_threshold, FRAGI_LOG_WARN, "as the environment wants it");
	fragi_log_init(1);
	cr_expect_eq(fragi_log_operator_threshold, FRAGI_LOG_INFO, "as -v wants it");
	unsetenv("FRAG_LOG_LEVEL");
	fragi_log_init(-4);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_OFF);
	cr_expect_eq(fragi_log_operator_threshold, FRAGI_LOG_INFO);
	setenv("FRAG_LOG_LEVEL", "off", 1); /* a host, of a worker with -qqqq */
	setenv(FRAGI_OPERATOR_LOG_LEVEL, "info", 1);
	fragi_log_init(0);
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_OFF);
	cr_expect_eq(fragi_log_operator_threshold, FRAGI_LOG_INFO);
	unsetenv("FRAG_LOG_LEVEL");
	unsetenv(FRAGI_OPERATOR_LOG_LEVEL);
}

Test(log, an_unknown_level_is_said)
{
	const char *line;

	setenv("FRAG_LOG_LEVEL", "loud", 1);
	catch_stderr();
	fragi_log_init(0);
	line = caught();
	unsetenv("FRAG_LOG_LEVEL");
	cr_expect_eq(fragi_log_threshold, FRAGI_LOG_INFO);
	cr_expect_not_null(strstr(line, "\"loud\""), "%s", line);
}

static const char *as_json(const char *line)
{
	static char out[FRAGI_LOG_JSON_MAX + 1];

	out[fragi_log_line_to_json(line, strlen(line), out, FRAGI_LOG_JSON_MAX)] = '\0';
	return out;
}

Test(log, lines_as_json)
{
	static const struct {
		const char *line, *object;
	} cases[] = {
		{"2026-11-22T20:24:04.159Z info  op app/f1.rx: got \"1\\2\"\n",
		 "{\"time\": \"2026-11-22T20:24:04.159Z\", \"level\": \"info\", \"topic\": \"op\", "
		 "\"subject\": \"app/f1.rx\", \"application\": \"app\", \"fragment\": \"f1\", "
		 "\"operator\": \"rx\", \"text\": \"got \\\"1\\\\2\\\"\"}\n"},
		{"\033[K2026-11-22T20:24:04.159Z critical run: it: all: ends\n",
		 "{\"time\": \"2026-11-22T20:24:04.159Z\", \"level\": \"critical\", \"topic\": \"run\", "
		 "\"text\": \"it: all: ends\"}\n"},
		{"\n2026-11-22T20:24:04.159Z warn  data f1.rx.in: input\tx\n",
		 "{\"time\": \"2026-11-22T20:24:04.159Z\", \"level\": \"warn\", \"topic\": \"data\", "
		 "\"subject\": \"f1.rx.in\", \"fragment\": \"f1\", \"operator\": \"rx\", "
		 "\"text\": \"input x\"}\n"},
		{"2026-11-22T20:24:04.159Z debug run a sentence: with colon",
		 "{\"time\": \"2026-11-22T20:24:04.159Z\", \"level\": \"debug\", \"topic\": \"run\", "
		 "\"text\": \"a sentence: with colon\"}\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(as_json(cases[i].line), cases[i].object);
	/* what an operator prints, and what anything else does */
	cr_expect_not_null(strstr(as_json("f1.rx: three words: 3\n"),
				  "\"level\": \"info\", \"subject\": \"f1.rx\", "
				  "\"fragment\": \"f1\", \"operator\": \"rx\", "
				  "\"text\": \"three words: 3\"}"));
	/* Only a line of the log names a port; that of a topic with one letter, too. */
	cr_expect_not_null(
		strstr(as_json("f1.rx.in: 3\n"), "\"info\", \"text\": \"f1.rx.in: 3\"}"));
	cr_expect_not_null(strstr(as_json("2026-11-22T20:24:04.159Z info  d f1.rx.in: 3\n"),
				  "\"topic\": \"d\", \"subject\": \"f1.rx.in\", "));
	cr_expect_not_null(
		strstr(as_json("app.yaml:3:1: no\n"), "\"text\": \"app.yaml:3:1: no\"}"));
	cr_expect_not_null(strstr(as_json(""), "\"text\": \"\"}"));
}

Test(log, a_json_object_is_whole_whatever_the_line)
{
	char *line = malloc(10001);
	const char *object;

	for (int kind = 0; kind < 4; kind++) {
		memset(line, "\"\\a\xff"[kind], 10000);
		line[10000] = '\0';
		object = as_json(line);
		cr_expect_str_eq(object + strlen(object) - 3, "\"}\n", "%d", kind);
		cr_expect_lt(strlen(object), FRAGI_LOG_JSON_MAX);
		memcpy(line, "2026-11-22T20:24:04.159Z info  ", 31);
		object = as_json(line);
		cr_expect_str_eq(object + strlen(object) - 3, "\"}\n", "%d", kind);
		cr_expect_lt(strlen(object), FRAGI_LOG_JSON_MAX);
	}
	free(line);
}

/* A text is cut only where the object would get too long, and that is shown. */
Test(log, a_text_is_cut_where_it_must)
{
	char line[FRAGI_LOG_JSON_MAX];
	bool was_cut = false;

	for (int kind = 0; kind < 2; kind++)
		for (size_t length = 1; length < FRAGI_LOG_JSON_MAX / 2;
		     length += length < FRAGI_LOG_JSON_MAX / 2 - 200 ? 97 : 1) {
			const char *object;
			size_t found = 0;
			bool is_cut;

			memset(line, kind == 0 ? 'X' : '"', length);
			line[length] = '\0';
			object = as_json(line);
			for (const char *at = strstr(object, "\"text\""); *at != '\0'; at++)
				found += kind == 0 ? *at == 'X' : strncmp(at, "\\\"", 2) == 0;
			is_cut = strstr(object, "...\"}\n") != NULL;
			cr_expect_eq(is_cut, found < length, "%d: %zu of %zu", kind, found, length);
			if (is_cut)
				cr_expect_gt(strlen(object) + 16, FRAGI_LOG_JSON_MAX);
			was_cut |= is_cut;
		}
	cr_expect(was_cut);
}

/* A pipe of two pages that nobody reads, of which so much is taken. */
static int fill_stderr(size_t taken)
{
	static char bytes[8192];
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	if (fcntl(ends[1], F_SETPIPE_SZ, 8192) != 8192)
		cr_skip_test("a pipe of two pages cannot be had here");
	memset(bytes, '.', sizeof(bytes));
	cr_assert_eq(write(ends[1], bytes, taken), (ssize_t)taken);
	saved_stderr = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	reader = ends[0];
	return reader;
}

/* Reads what is there; the writing end stays open. */
static size_t drain(char *text, size_t size)
{
	ssize_t n;

	fcntl(reader, F_SETFL, O_NONBLOCK);
	for (size_t used = 0;; used += (size_t)n) {
		n = read(reader, text + used, size - 1 - used);
		if (n <= 0) {
			text[used] = '\0';
			return used;
		}
	}
}

/*
 * A line longer than what is atomic is written in part where there is no room: the next one begins
 * a line of its own, with the count of what was lost. An object is cut in the same way.
 */
Test(log, what_nobody_reads_is_cut_dropped_and_counted)
{
	static char text[20000], quotes[3000];

	memset(quotes, '"', sizeof(quotes) - 1);
	for (int json = 0; json < 2; json++) {
		bool drops[4];
		size_t tried[2], size;
		const char *rest;
		char line[6000];

		setenv("FRAG_LOG_FORMAT", json ? "json" : "text", 1);
		fragi_log_choose_format();
		fill_stderr(4096);
		memset(line, '"', sizeof(line));
		line[sizeof(line) - 1] = '\n';
		if (json)
			log_warn(NULL, "%s", quotes);
		else
			fragi_log_put_within(line, sizeof(line), 0);
		drops[0] = fragi_log_is_dropping();
		log_warn(NULL, "lost one");
		drops[1] = fragi_log_is_dropping();
		tried[0] = fragi_log_try("lost\n", 5);
		size = drain(text, sizeof(text));
		fragi_log_drop();
		fragi_log_catch_up(0);
		drops[2] = fragi_log_is_dropping();
		log_warn(NULL, "read");
		tried[1] = fragi_log_try("last\n", 5);
		drain(text, sizeof(text));
		dup2(saved_stderr, STDERR_FILENO);
		close(saved_stderr);
		close(reader);
		cr_expect_eq(drops[0], !json, "an object that has begun counts");
		cr_expect(drops[1]);
		cr_expect_eq(tried[0], 0, "while lines are dropped");
		cr_expect_eq(size, 8192);
		cr_expect_not(drops[2]);
		cr_expect_eq(tried[1], 5);
		cr_expect_eq(text[0], '\n', "%s", text);
		rest = strchr(text + 1, '\n');
		cr_assert_not_null(rest, "%s", text);
		cr_expect_not_null(strstr(text, json ? "2 lines were dropped: nothing read"
						     : " 3 lines were dropped: nothing read"),
				   "%s", text);
		cr_expect_not_null(strstr(rest, "read"), "%s", text);
		cr_expect_neq(rest[1], '\n', "%s", text);
		cr_expect_not_null(strstr(rest, "last"), "%s", text);
	}
	unsetenv("FRAG_LOG_FORMAT");
}

Test(log, critical_is_above_error)
{
	setenv("FRAG_LOG_LEVEL", "critical", 1);
	fragi_log_init(0);
	unsetenv("FRAG_LOG_LEVEL");
	catch_stderr();
	log_error(NULL, "not this");
	log_critical(NULL, "this");
	cr_expect_not_null(strstr(caught(), "Z critical test: this\n"));
}
