// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fragctl/driver.h>
#include <fragctl/web/web.h>
#include <text/spec.h>

#include "drawn_answers.h"
#include "expected.h"
#include "scratch.h"
#include "transcript.h"

/*
 * All that `fragctl web` answers to browsers, asks its driver and sends to open pages, with a
 * server, a driver and a clock that this file plays. The functions of fragctl/driver.c and the
 * module of the server are here.
 */
#define REQUESTS_MAX 96

static struct ctl_web web;
static struct ctl_driver *const driver = &web.driver;
static int64_t clock_ns = INT64_C(1000000000000);
static uint64_t seq, last_seqs[200]; /* of the last message of each kind */
static struct fw_message *queue[16]; /* what the driver has sent */
static size_t queued;
static uint32_t streams;
static struct ctl_http_stream stream;
static struct ctl_http_request requests[REQUESTS_MAX];
static char texts[REQUESTS_MAX][256];
static const char *flags_of[REQUESTS_MAX];
static size_t request_count;
static bool is_gone, is_played; /* the clock is played in the test, and not for what judges it */

int clock_gettime(clockid_t id, struct timespec *out)
{
	if (!is_played)
		return (int)syscall(SYS_clock_gettime, id, out);
	*out = (struct timespec){clock_ns / 1000000000, clock_ns % 1000000000};
	return 0;
}

/* --- the driver --- */

static void show_queued(void)
{
	driver->first = queued > 0 ? (struct ctl_received *)queue : NULL;
}

int ctl_driver_send(struct ctl_driver *of, struct fw_message *message)
{
	struct fw_message shown = *message;

	(void)of;
	if (is_gone)
		return -ENOTCONN;
	if (shown.kind == FW_START_APP)
		shown.start_app.source_bytes = 0; /* it has paths of this machine */
	if (shown.kind == FW_SET && strlen(shown.set.text) > 100)
		shown.set.text = "a long text";
	transcript_message("asks", &shown);
	message->seq = last_seqs[message->kind] = ++seq;
	return 0;
}

int ctl_driver_next(struct ctl_driver *of, struct fw_message **out_message)
{
	(void)of;
	*out_message = queue[0];
	memmove(queue, queue + 1, --queued * sizeof(queue[0]));
	show_queued();
	return CTL_OK;
}

int ctl_driver_reopen(struct ctl_driver *of)
{
	of->connection = is_gone ? NULL : (struct fw_connection *)&web;
	of->is_welcome = !is_gone;
	snprintf(of->sentence, sizeof(of->sentence), "no driver listens");
	fprintf(transcript, "  connects: %s\n", is_gone ? "there is none" : "it is there");
	return is_gone ? CTL_MISSING : CTL_OK;
}

int ctl_driver_open(struct ctl_driver *of)
{
	return ctl_driver_reopen(of);
}

int ctl_driver_open_any(struct ctl_driver *of)
{
	return ctl_driver_reopen(of);
}

int ctl_driver_ask(struct ctl_driver *of, struct fw_message *request, struct fw_message **out)
{
	(void)of, (void)request, (void)out;
	return CTL_MISSING;
}

int ctl_driver_answer(struct ctl_driver *of, const struct fw_message *request,
		      struct fw_message **out)
{
	(void)of, (void)request, (void)out;
	return CTL_MISSING;
}

void ctl_driver_close(struct ctl_driver *of)
{
	(void)of;
}

void ctl_driver_find(struct ctl_driver *of)
{
	(void)of;
}

int ctl_top_on_screen(struct ctl_driver *of, const struct ctl_driver *again, const char *name,
		      int64_t every_ns)
{
	(void)of, (void)again, (void)name, (void)every_ns;
	return -ENOTTY;
}

/* --- the server --- */

/* Of a letter of the request's flags. */
static const char *header_of(struct ctl_http_request *request, const char *name)
{
	static char longest[CTL_WEB_TOKEN_MAX + 64];
	const struct {
		char flag;
		const char *name, *value;
	} headers[] = {
		{'p', "X-Frag-Page", "1"},
		{'o', "Origin", "http://localhost"},
		{'O', "Origin", "http://evil.example"},
		{'s', "Sec-Fetch-Site", "same-origin"},
		{'S', "Sec-Fetch-Site", "cross-site"},
		{'b', "Authorization", "bearer the-token"},
		{'B', "Authorization", "Bearer the-tokes"},
		{'c', "Cookie", "a=1; frag_token=the-token; b=2"},
		{'C', "Cookie", "frag_token=the-token2"},
		{'k', "Cookie", "frag_token=the-tokem; frag_token=the-token"},
		{'K', "Cookie", longest},
	};

	snprintf(longest, sizeof(longest), "frag_token=%0*d; frag_token=the-token",
		 CTL_WEB_TOKEN_MAX + 1, 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(headers); i++)
		if (strcmp(headers[i].name, name) == 0 &&
		    strchr(flags_of[request - requests], headers[i].flag) != NULL)
			return headers[i].value;
	return NULL;
}

/* Of the text behind the path, which ends at the next '&'. */
static const char *query_of(struct ctl_http_request *request, const char *name)
{
	static char values[4][128];
	static size_t next;
	const char *at = strchr(texts[request - requests], '?');
	size_t length = strlen(name);

	for (; at != NULL; at = strchr(at + 1, '&'))
		if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '=') {
			char *value = values[next++ % 4];

			snprintf(value, sizeof(values[0]), "%.*s",
				 (int)strcspn(at + 2 + length, "& "), at + 2 + length);
			return value;
		}
	return NULL;
}

/* Pages and tables that other tests look at are shown by their begin. */
static void show_body(const char *text, size_t size, size_t most)
{
	for (size_t at = 0; at < size && at < most;) {
		size_t length = strcspn(text + at, "\n");

		length = at + length < size ? length : size - at;
		fprintf(transcript, "    | ");
		for (size_t i = at; i < at + length; i++)
			if (strncmp(text + i, scratch, strlen(scratch)) == 0) {
				fprintf(transcript, "FOLDER");
				i += strlen(scratch) - 1;
			} else {
				fputc(text[i], transcript);
			}
		fputc('\n', transcript);
		at += length + 1;
	}
	if (size > most) {
		fprintf(transcript, "    ...");
		for (size_t i = size - (most < 400 ? 0 : 30); i < size; i++)
			fputc(text[i] == '\n' ? '$' : text[i], transcript);
		fputc('\n', transcript);
	}
}

static void show_response(size_t number, const struct ctl_http_response *r)
{
	int policies = 0;

	fprintf(transcript, "  request %zu is answered: %u %s", number, r->status,
		r->type != NULL ? r->type : "");
	for (size_t i = 0; i < CTL_HTTP_HEADERS_MAX && r->headers[i].name != NULL; i++)
		if (strstr("Set-Cookie WWW-Authenticate X-Accel-Buffering", r->headers[i].name) !=
		    NULL)
			fprintf(transcript, ", %s: %s", r->headers[i].name, r->headers[i].value);
		else
			policies++;
	fprintf(transcript, ", %d policies\n", policies);
	if (r->body != NULL)
		show_body(r->body, r->size, strchr(r->type, ';') != NULL ? 60 : 400);
	if (r->is_owned)
		free((void *)(uintptr_t)r->body);
}

static void answer_to(struct ctl_http_request *request, const struct ctl_http_response *response)
{
	show_response((size_t)(request - requests), response);
}

static uint32_t count_streams(const struct ctl_http *http)
{
	(void)http;
	return streams;
}

static void wake(struct ctl_http *http)
{
	(void)http;
	fprintf(transcript, "  wakes the pages\n");
}

static const struct ctl_http_module module = {
	.header = header_of,
	.query = query_of,
	.answer = answer_to,
	.streams = count_streams,
	.wake = wake,
};

/* "GET /path?query", with flags; then the body. */
static void request(const char *flags, const char *line, const char *body, size_t body_size)
{
	struct ctl_http_request *r = &requests[request_count];
	struct ctl_http_response response = {0};
	static char methods[REQUESTS_MAX][8], paths[REQUESTS_MAX][64];
	size_t n = request_count++;

	cr_assert_lt(n, REQUESTS_MAX);
	fprintf(transcript, "> %zu [%s] %s", n, flags, line);
	for (size_t i = 0; i < body_size && i < 40; i++)
		fprintf(transcript, "%s%c", i == 0 ? ": " : "", body[i] >= ' ' ? body[i] : ';');
	fprintf(transcript, "\n");
	sscanf(line, "%7s %63[^?]", methods[n], paths[n]);
	snprintf(texts[n], sizeof(texts[n]), "%s", line);
	flags_of[n] = flags;
	*r = (struct ctl_http_request){.method = methods[n],
				       .path = paths[n],
				       .host = strchr(flags, 'n') != NULL   ? NULL
					       : strchr(flags, 'e') != NULL ? "evil.example:8080"
					       : strchr(flags, '6') != NULL ? "[::1]:8080"
					       : strchr(flags, 'x') != NULL ? "localhost:x"
					       : strchr(flags, 'h') != NULL ? "Page.Example"
					       : strchr(flags, '4') != NULL ? "192.0.2.7"
					       : strchr(flags, 'i') != NULL ? "192.0.2.7x:80"
					       : strchr(flags, 'I') != NULL ? "[::1"
					       : strchr(flags, 'a') != NULL ? "Alias.Example:80"
									    : "localhost",
				       .body = body,
				       .body_size = body_size,
				       .is_trusted = strchr(flags, 't') != NULL};
	ctl_web_respond(&web, r, &response);
	if (response.is_pending) {
		fprintf(transcript, "  it waits\n");
	} else if (response.stream.read != NULL) {
		fprintf(transcript, "  it is a stream\n");
		stream = response.stream;
		streams++;
	} else {
		show_response(n, &response);
	}
}

static void step(void)
{
	bool has_news;

	show_queued();
	has_news = ctl_web_feed_step(&web.feed);
	fprintf(transcript, "  %s\n", has_news ? "there is news" : "nothing new");
}

/* The driver answers the last message of that kind with a letter of drawn_answers.h. */
static void answer(char letter, enum fw_kind of)
{
	struct fw_message message;
	size_t size;

	fprintf(transcript, "< %c to %s\n", letter, fw_kind_name(of));
	make_answer(letter, last_seqs[of], &message);
	if (letter == 'A')
		message.answer.name = "f.tx.out";
	cr_assert_eq(fw_message_copy(&message, &queue[queued++], &size), 0);
	if (message.kind == FW_TAPPED)
		fragi_free((void *)(uintptr_t)message.tapped.passed);
	step();
}

static void let_pass(int64_t ms)
{
	fprintf(transcript, "%d ms pass\n", (int)ms);
	clock_ns += ms * 1000000;
	web.feed.is_due = true; /* its timer */
	step();
}

static void lose(void)
{
	fprintf(transcript, "the driver is gone\n");
	is_gone = true;
	driver->connection = NULL;
	driver->is_welcome = false;
	step();
}

static void read_stream(void)
{
	static char text[1 << 20];
	size_t size = 0;
	ssize_t n;

	while ((n = stream.read(stream.arg, text + size, 700)) > 0) {
		size += (size_t)n;
		cr_assert_leq(size + 700, sizeof(text), "the stream does not end");
	}
	fprintf(transcript, "the page reads\n");
	show_body(text, size, 400);
}

static void end_stream(void)
{
	fprintf(transcript, "the page is closed\n");
	stream.end(stream.arg);
	streams--;
}

#define GET(flags, line) request(flags, line, "", 0)
#define POST(flags, line, body) request(flags, line, body, strlen(body))

static void begin_web(bool controls, bool token)
{
	static char secret[] = "the-token";
	static const char *hosts[] = {"other.example", "alias.example"};

	web = (struct ctl_web){.http_module = &module,
			       .controls = controls,
			       .token = token ? secret : NULL,
			       .token_bytes = token ? strlen(secret) : 0,
			       .own_host = "page.example",
			       .hosts = {.items = hosts, .count = 2},
			       .graphs = controls ? scratch : NULL};
	snprintf(driver->where, sizeof(driver->where), "127.0.0.1:57777");
	snprintf(driver->why, sizeof(driver->why), "the peer closed the connection");
	driver->address.port = 57777;
	cr_assert_eq(uv_loop_init(&driver->loop), 0);
	web.feed.driver = driver;
	web.feed.http_module = &module;
	web.feed.every_ns = 1000000000;
	web.feed.controls = controls;
	web.feed.graphs = controls;
	maker = (struct maker){.state = 7919, .is_natural = true};
	is_gone = false;
	request_count = 0;
	fprintf(transcript, "controls %d, token %d\n", controls, token);
	ctl_web_feed_begin(&web.feed);
}

static void end_web(void)
{
	ctl_web_feed_end(&web.feed);
	uv_run(&driver->loop, UV_RUN_NOWAIT);
	cr_expect_eq(uv_loop_close(&driver->loop), 0);
	fragi_arena_fini(&maker.arena);
}

static void strangers_ask(void)
{
	static const char *const flags[] = {"t",  "tn", "te", "t6", "tx", "th", "t4", "ti", "tI",
					    "ta", "",   "b",  "B",  "c",  "C",  "k",  "K"};

	begin_web(false, false);
	step();
	for (size_t i = 0; i < FRAG_COUNT_OF(flags); i++)
		GET(flags[i], "GET /graphs");
	POST("tp", "POST /stop", "a");
	end_web();
	begin_web(true, true);
	step();
	for (size_t i = 0; i < FRAG_COUNT_OF(flags); i++)
		GET(flags[i], "GET /graphs");
	GET("", "GET /healthz");
	GET("", "GET /readyz");
	GET("", "HEAD /page.css");
	GET("", "PUT /data");
	GET("", "GET /nothing");
	POST("p", "POST /login", "the-token");
	POST("p", "POST /login", "the-tokem");
	POST("", "POST /login", "the-token");
	POST("t", "POST /stop", "a");
	POST("tpO", "POST /stop", "a");
	POST("tpS", "POST /stop", "a");
	POST("tpos", "POST /stop", "a");
	answer('A', FW_STOP_APP);
	end_web();
}

static void commands_come(void)
{
	static char longest[FRAG_NAME_MAX + FW_TEXT_MAX + 8];

	begin_web(true, false);
	step();
	POST("tp", "POST /restart", "a");
	answer('a', FW_STOP_APP);
	POST("tp", "POST /restart", "a/b");
	request("tp", "POST /stop", "a\0b", 3);
	POST("tp", "POST /drain", "w 1#2");
	answer('A', FW_DRAIN);
	POST("tp", "POST /undrain", "w");
	answer('A', FW_DRAIN);
	POST("tp", "POST /drain", "");
	POST("tp", "POST /set", "a\nf.op.p=3");
	answer('A', FW_SET);
	POST("tp", "POST /set", "a");
	POST("tp", "POST /set", "a b\nf.op.p=3");
	for (int beyond = 0; beyond < 2; beyond++) {
		snprintf(longest, sizeof(longest), "a\n%0*d", FW_TEXT_MAX + beyond, 0);
		fprintf(transcript, "%d zeros: ", FW_TEXT_MAX + beyond);
		request("tp", "POST /set", longest, strlen(longest));
	}
	put("small.yaml", "frag: 1\napplication: a\noperators: {tx: {type: ping_tx}}\n");
	put("x10.yml", "no graph");
	put("x9.yaml", "no graph");
	put(".hidden.yaml", "no graph");
	put("notes.txt", "no graph");
	GET("t", "GET /graphs");
	for (int i = 0; i < 500; i++) {
		char name[32];

		snprintf(name, sizeof(name), "y%d.yaml", i);
		put(name, "");
	}
	GET("t", "GET /graphs");
	POST("tp", "POST /start", "small.yaml");
	answer('A', FW_START_APP);
	POST("tp", "POST /start", "none.yaml");
	cr_assert_eq(chmod(at("small.yaml"), 0666), 0);
	POST("tp", "POST /start", "small.yaml");
	POST("tp", "POST /start", "../small.yaml");
	POST("tp", "POST /start", ".hidden.yaml");
	POST("tp", "POST /start", "notes.txt");
	end_web();
}

static void questions_come(void)
{
	begin_web(false, false);
	step();
	GET("t", "GET /events?after=7");
	answer('V', FW_WATCH);
	GET("t", "GET /events");
	answer('a', FW_WATCH);
	GET("t", "GET /logs?application=a&fragment=f&operator=tx&after=3");
	answer('g', FW_WATCH_LOGS);
	GET("t", "GET /logs?application=a");
	answer('W', FW_WATCH_LOGS);
	GET("t", "GET /logs?application=a&fragment=f/g");
	GET("t", "GET /logs");
	GET("t", "GET /events");
	let_pass(7999);
	let_pass(1);
	for (int i = 0; i <= CTL_WEB_QUESTIONS_MAX; i++)
		GET("t", "GET /events");
	lose();
	GET("t", "GET /events");
	GET("t", "GET /readyz");
	let_pass(1000);
	is_gone = false;
	let_pass(1000);
	GET("t", "GET /readyz");
	end_web();
}

static void scrapes_come(void)
{
	begin_web(false, false);
	step();
	GET("t", "GET /metrics");
	GET("t", "GET /metrics");
	answer('L', FW_LOOK);
	answer('R', FW_REQUEST);
	answer('l', FW_LOOK);
	GET("t", "GET /metrics");
	let_pass(249);
	GET("t", "GET /metrics");
	let_pass(1);
	GET("t", "GET /metrics");
	answer('R', FW_REQUEST);
	answer('a', FW_LOOK);
	let_pass(300);
	for (int i = 0; i <= CTL_WEB_SCRAPES_MAX; i++)
		GET("t", "GET /metrics");
	let_pass(7999);
	let_pass(1);
	GET("t", "GET /metrics");
	lose();
	GET("t", "GET /metrics");
	end_web();
}

static void pages_look(void)
{
	begin_web(true, false);
	step();
	GET("t", "GET /data");
	read_stream();
	step();
	answer('L', FW_LOOK);
	answer('l', FW_LOOK);
	answer('R', FW_REQUEST);
	read_stream();
	answer('l', FW_LOOK);
	let_pass(1000);
	answer('l', FW_LOOK);
	answer('R', FW_REQUEST);
	read_stream();
	lose();
	read_stream();
	let_pass(1000);
	is_gone = false;
	let_pass(1000);
	read_stream();
	answer('R', FW_REQUEST);
	answer('l', FW_LOOK);
	read_stream();
	answer('a', FW_LOOK);
	read_stream();
	let_pass(1000);
	end_stream();
	let_pass(2999);
	let_pass(1);
	streams = CTL_HTTP_STREAMS_MAX;
	GET("t", "GET /data");
	streams = 0;
	GET("t", "HEAD /data");
	end_web();
}

static void flows_are_watched(void)
{
	begin_web(false, false);
	step();
	GET("t", "GET /echo?application=a&flow=f.tx");
	answer('A', FW_TAP);
	answer('T', FW_TAP);
	GET("t", "GET /echo?application=a&flow=f.tx");
	answer('T', FW_TAP);
	GET("t", "GET /echo?application=a&flow=f.tx&seen=1");
	GET("t", "GET /echo?application=a&flow=f.rx");
	answer('a', FW_TAP);
	GET("t", "GET /echo?application=a&flow=f.rx");
	let_pass(1999);
	GET("t", "GET /echo?application=a&flow=f.rx");
	let_pass(1);
	GET("t", "GET /echo?application=a&flow=f.rx");
	GET("t", "GET /echo?application=c&flow=1");
	GET("t", "GET /echo?application=c&flow=2");
	GET("t", "GET /echo?application=c&flow=3");
	GET("t", "GET /echo?application=a");
	GET("t", "GET /echo?flow=1");
	let_pass(3999);
	let_pass(1);
	GET("t", "GET /echo?application=c&flow=3");
	answer('T', FW_TAP);
	lose();
	GET("t", "GET /echo?application=c&flow=3");
	end_web();
}

Test(web_dialogues, are_as_recorded, .init = scratch_make, .fini = scratch_remove)
{
	is_played = true;
	transcript_begin();
	strangers_ask();
	commands_come();
	questions_come();
	scrapes_come();
	pages_look();
	flows_are_watched();
	is_played = false;
	fclose(transcript);
	expected_compare("fragctl/web", transcript_text);
	free(transcript_text);
}
