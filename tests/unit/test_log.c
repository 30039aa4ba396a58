// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
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
