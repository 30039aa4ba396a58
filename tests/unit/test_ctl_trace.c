// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_shown.h"
#include "expected.h"
#include "scratch.h"
#include "transcript.h"

#include <base/alloc.h>
#include <fragctl/driver.h>
#include <fragctl/trace.h>

/*
 * What `fragctl trace` asks a driver, and what it prints and leaves of the answers, compared with a
 * recorded text. The driver is played, and what becomes of the chunks is said by the test: the
 * first functions take the place of fragctl/driver.c and of those that read and write traces.
 *
 * Answers: Accepted, refused (a), Welcome, which is no answer; a chunk (T), one that is no part of
 * a trace (B), for which there is no memory (M), of a crash (C), of another request (O); the
 * application has ended (E), something else has (F), an answer to another request (e); an
 * interrupt (^); nothing, for ever (.). Behind the last one the driver is gone.
 */
#define SEQ 7

struct row {
	const char *words, *answers;
	struct ctl_trace_sums sums;
	int joined; /* what the join returns */
	bool has_no_memory, is_of_run;
};

#define ONE .hosts = 1, .ticks = 30, .messages = 20

static const struct row rows[] = {
	{"trace a --for 1ms", "AT.", {ONE}},
	{"trace a --for 1ms -q",
	 "ATT.",
	 {.hosts = 3, .ticks = 30, .messages = 20, .error_ns = 1500}},
	{"trace a -o x.pftrace", "AT^", {ONE}},
	{"trace a --for 1h", "A^", {0}},
	{"trace a --for 90s", "ATOTE", {ONE}},
	{"trace a", "ATF", {ONE}},
	{"trace a", "ATeTE", {ONE}},
	{"trace a", "ATTT", {ONE}},
	{"trace a", "ATBT", {ONE}},
	{"trace a", "ATMT", {ONE}},
	{"trace a", "AWTE", {ONE}},
	{"trace a", "ACE", {ONE}},
	{"trace a", "a", {ONE}},
	{"trace a", "W", {ONE}},
	{"trace a", "", {ONE}},
	{"trace a", "ATE", {ONE}, .joined = -ENOMEM},
	{"trace a", "ATE", {ONE}, .has_no_memory = true},
	{"trace a -o none/x.pftrace", "A", {ONE}},
	{"trace a", "ATE", {ONE, .lost_records = 41}},
	{"trace a", "ATE", {ONE, .lost_chunks = 42}},
	{"trace a", "ATE", {ONE, .left_records = 43}},
	{"trace a", "ATE", {ONE, .open_hosts = 1}},
	{"trace a", "ATE", {ONE, .open_hosts = 44}},
	{"trace a", "AT^", {ONE, .open_hosts = 44}},
	{"trace a", "ATE", {ONE, .cut = 45}},
	{"trace a", "ATE", {ONE, .unmatched = 46}},
	{"trace a", "ATE", {ONE, .backwards = 47}},
	{"trace a", "ATE", {ONE, .unsure_hosts = 48}},
	{"trace a",
	 "ATE",
	 {.hosts = 2,
	  .ticks = 31,
	  .messages = 32,
	  .backwards = 33,
	  .lost_records = 34,
	  .lost_chunks = 35,
	  .left_records = 36,
	  .open_hosts = 37,
	  .cut = 38,
	  .unmatched = 39,
	  .error_ns = 2500000,
	  .unsure_hosts = 40}},
	{"trace a --on-failure", "ATC", {ONE}},
	{"trace a --on-failure", "ATE", {ONE}},
	{"trace a --on-failure", "ATF", {ONE}},
	{"trace a --on-failure", "AT^", {ONE}},
	{"trace a --on-failure", "AT", {ONE}},
	{"trace a --on-failure --for 1ms", "AT.", {ONE}},
	{"trace a --on-failure --for 1ms", "ATF", {ONE}},
	{"trace a -q", "ATE", {ONE}, .is_of_run = true},
	{"trace a", "ATE", {.hosts = 2, .error_ns = 3}, .is_of_run = true},
	{"trace a", "a", {ONE}, .is_of_run = true},
	{"trace a --for 999us", "", {0}},
	{"trace a --for 3600001ms", "", {0}},
	{"trace a --for 5", "", {0}},
	{"trace a --for soon", "", {0}},
	{"trace 1a", "", {0}},
	{"trace", "", {0}},
	{"trace a b", "", {0}},
};

static const struct row *row;
static const char *left;
static uint32_t chunks;
static bool has_crash;
static int opened, traces;

struct ctl_trace {
	bool is_joined;
};

struct ctl_trace *ctl_trace_create(void)
{
	traces += !row->has_no_memory;
	return row->has_no_memory ? NULL : calloc(1, sizeof(struct ctl_trace));
}

void ctl_trace_destroy(struct ctl_trace *trace)
{
	traces -= trace != NULL;
	free(trace);
}

int ctl_trace_take(struct ctl_trace *trace, const uint8_t *bytes, uint32_t size)
{
	cr_expect(!trace->is_joined);
	cr_assert_eq(size, 1);
	chunks++;
	has_crash |= bytes[0] == 'C';
	return bytes[0] == 'M' ? -ENOMEM : bytes[0] == 'B' ? -EBADMSG : 0;
}

int ctl_trace_join(struct ctl_trace *trace)
{
	cr_expect(!trace->is_joined);
	trace->is_joined = true;
	return row->joined;
}

void ctl_trace_sums(const struct ctl_trace *trace, struct ctl_trace_sums *out)
{
	cr_expect(trace->is_joined);
	*out = row->sums;
}

bool ctl_trace_has_crash(const struct ctl_trace *trace)
{
	(void)trace;
	return has_crash;
}

void ctl_trace_write(const struct ctl_trace *trace, FILE *out)
{
	cr_expect(trace->is_joined);
	fprintf(out, "a trace of %u chunks", chunks);
}

static uv_timer_t interrupts, beats;

/* As those of a session: a loop that waits looks at what timers have done. */
static void beat(uv_timer_t *timer)
{
	(void)timer;
}

static void interrupt(uv_timer_t *timer)
{
	(void)timer;
	raise(SIGINT);
}

/* Whether a message is there, which the verb waits for; an interrupt comes when it does. */
static void prepare(struct ctl_driver *driver)
{
	static struct ctl_received *something;
	bool is_there = *left != '.' && *left != '^';

	driver->first = is_there ? (struct ctl_received *)&something : NULL;
	driver->connection = (struct fw_connection *)&something;
	if (*left == '^')
		uv_timer_start(&interrupts, interrupt, 0, 0);
}

static int next_answer(struct ctl_driver *driver, struct fw_message **out)
{
	struct fw_message message = {.kind = FW_TAPPED, .reply_to = SEQ};
	uint8_t byte = (uint8_t)*left;
	size_t size;

	if (*left == '\0')
		return ctl_fail(CTL_MISSING, "the driver is gone");
	left++;
	if (strchr("AaEFe", byte) != NULL) {
		message.kind = FW_ANSWER;
		message.answer.failure.code = byte == 'A'   ? FRAGI_FAILURE_NONE
					      : byte == 'F' ? FRAGI_FAILURE_OTHER
							    : FRAGI_FAILURE_APPLICATION_UNKNOWN;
		message.answer.failure.sentence = "there is none";
	} else if (byte == 'W') {
		message.kind = FW_WELCOME;
	} else {
		message.tapped.passed = &byte;
		message.tapped.size = 1;
	}
	message.reply_to += byte == 'O' || byte == 'e';
	cr_assert_eq(fw_message_copy(&message, out, &size), 0);
	prepare(driver);
	return CTL_OK;
}

int ctl_driver_open_any(struct ctl_driver *driver)
{
	opened++;
	cr_assert_eq(uv_loop_init(&driver->loop), 0);
	driver->has_loop = true;
	uv_timer_init(&driver->loop, &interrupts);
	uv_timer_init(&driver->loop, &beats);
	uv_timer_start(&beats, beat, 1, 1);
	return CTL_OK;
}

int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply)
{
	transcript_message("asks", request);
	usleep(2000); /* so long that --for 1ms is over before the verb waits */
	request->seq = SEQ;
	return next_answer(driver, out_reply);
}

int ctl_driver_next(struct ctl_driver *driver, struct fw_message **out_message)
{
	return next_answer(driver, out_message);
}

/* What verbs need that are linked with this one. */
int ctl_driver_open(struct ctl_driver *driver)
{
	return ctl_driver_open_any(driver);
}

int ctl_driver_answer(struct ctl_driver *driver, const struct fw_message *request,
		      struct fw_message **out_reply)
{
	(void)request;
	return next_answer(driver, out_reply);
}

void ctl_driver_close(struct ctl_driver *driver)
{
	if (!driver->has_loop)
		return;
	opened--;
	driver->has_loop = false;
	uv_close((uv_handle_t *)&interrupts, NULL);
	uv_close((uv_handle_t *)&beats, NULL);
	uv_run(&driver->loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&driver->loop), 0);
}

static int run_row(void)
{
	char copy[64], *argv[8] = {NULL}, *rest = copy;
	int argc = 0, ready[2], code;
	struct ctl_trace_wish wish = {.application = "b", .file = "t.pftrace", .is_of_run = true};
	ssize_t got;
	char byte;

	if (row->is_of_run) {
		cr_assert_eq(pipe2(ready, O_NONBLOCK), 0);
		wish.ready_fd = dup(ready[1]);
		code = ctl_trace_run(&wish, "127.0.0.1:9");
		close(ready[1]);
		got = read(ready[0], &byte, 1);
		fprintf(transcript, "  under way: %s\n", got == 1 ? "yes" : "no");
		if (got < 1)
			close(wish.ready_fd);
		cr_expect_eq(read(ready[0], &byte, 1), 0, "the descriptor is closed");
		close(ready[0]);
		return code;
	}
	snprintf(copy, sizeof(copy), "%s", row->words);
	while ((argv[argc] = strsep(&rest, " ")) != NULL)
		cr_assert_lt(++argc, 8);
	return ctl_trace(argc, argv);
}

static void show_file(const char *name)
{
	char text[64] = "";
	FILE *file = fopen(name, "r");

	if (file == NULL)
		return;
	cr_assert_lt(fread(text, 1, sizeof(text) - 1, file), sizeof(text) - 1);
	fclose(file);
	fprintf(transcript, "  %s: %s\n", name, text);
	unlink(name);
}

Test(ctl_trace, is_as_recorded, .init = scratch_make, .fini = scratch_remove)
{
	char was[256];

	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that the verb knows */
	cr_assert_not_null(getcwd(was, sizeof(was)));
	cr_assert_eq(chdir(scratch), 0);
	transcript_begin();
	for (row = rows; row < rows + FRAG_COUNT_OF(rows); row++) {
		int code;

		fprintf(transcript, "fragctl %s%s (answers %s)\n", row->is_of_run ? "run --" : "",
			row->words, row->answers);
		put("trace.pftrace", "an older one");
		left = row->answers;
		chunks = 0;
		has_crash = false;
		shown_begin();
		code = run_row();
		shown_end(transcript);
		fprintf(transcript, "  exit code %d%s%s\n", code,
			*left != '\0' ? ", not asked for: " : "", left);
		show_file("trace.pftrace");
		show_file("x.pftrace");
		show_file("t.pftrace");
		cr_expect(opened == 0 && traces == 0, "row %zu", (size_t)(row - rows));
	}
	cr_assert_eq(chdir(was), 0);
	fclose(transcript);
	expected_compare("fragctl/trace", transcript_text);
	free(transcript_text);
}
