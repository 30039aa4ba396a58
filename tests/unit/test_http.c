// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "expected.h"
#include "left.h"

#include <fragctl/http/http.h>

/*
 * The server of the page in the browser: what it is asked and what browsers get, step by step,
 * compared with a recorded text. The browsers, what answers, and the clock are played. A step is a
 * word and what it is about; N is a browser:
 *   open N, trust N   connects          say N TEXT     sends it; | ends a line
 *   body N BYTES      sends so many     close N        is gone
 *   many COUNT        connect           wait NS        time passes
 *   feed TEXT         a stream has it; "end": it ends    wake     streams are looked at
 *   answer            what is pending is answered, own: with a text that is its own
 */
#define BROWSERS 300

static const char *const scripts[] = {
	"open 0; say 0 GET /text HTTP/1.1|Host: a:1|||; say 0 GET /text HTTP/1.1|Host: b||; close 0",
	"trust 0; say 0 GET /echo%20x?q=1&r=a%26b&q=2 HTTP/1.1|Host: a|X-Word: some|x-word: more||",
	"open 0; say 0 GET /echo HTTP/1.1|Host: a|Host: b||; open 1; say 1 GET /echo HTTP/1.0||",
	"open 0; say 0 POST /echo HTTP/1.1|Host: a|Content-Length: 5||; say 0 he; say 0 llo; "
	"say 0 PUT /echo HTTP/1.1|Host: a|Content-Length: 0||",
	"open 0; say 0 POST /echo HTTP/1.1|Host: a|Content-Length: 65536||; body 0 65536; open 1; "
	"say 1 POST /echo HTTP/1.1|Host: a|Content-Length: 65537||; body 1 65537",
	"open 0; say 0 GET /pending HTTP/1.1|Host: a||; open 1; say 1 GET /text HTTP/1.1|Host: a||; "
	"answer; say 0 GET /pending HTTP/1.1|Host: a||; own; say 0 GET /text HTTP/1.1|Host: a||",
	"open 0; say 0 GET /pending HTTP/1.1|Host: a||; open 1; say 1 GET /pending HTTP/1.1|Host: b||",
	"open 0; say 0 GET /stream HTTP/1.1|Host: a||; feed one|; wake; feed two|; feed three|; wake; "
	"wake; feed end; wake; wait 10000000000; wait 1; open 1; say 1 GET /text HTTP/1.1|Host: a||",
	"open 0; say 0 GET /stream HTTP/1.1|Host: a||; open 1; say 1 GET /stream HTTP/1.1|Host: a||; "
	"feed one|; wake; close 0; feed two|; wake; wait 99000000000",
	"open 0; wait 10000000000; say 0 GET /text HT; wait 1; open 1; say 1 GET /text HTTP/1.1|; "
	"wait 9999999999; say 1 Host: a||; wait 10000000000; say 1 GET /text HTTP/1.1|Host: a||; "
	"wait 10000000001",
	"open 0; say 0 GET /stream HTTP/1.1|Host: a||; open 1; many 254; say 1 GET /text HTTP/1.1|; "
	"many 1; say 1 Host: a||; many 1; many 1; say 1 GET /text HTTP/1.1|Host: a||; feed one|; wake",
	"open 0; say 0 nonsense||; open 1; say 1 GET /text HTTP/9.9|Host: a||; open 2; close 2",
	"open 0; say 0 GET /none HTTP/1.1|Host: a||; say 0 HEAD /text HTTP/1.1|Host: a||",
};

static const struct ctl_http_module *const http = &ctl_http_v1;
static struct ctl_http *server;
static int browsers[BROWSERS];
static struct ctl_http_request *pending[2];
static int pending_count;
static const char *fed = ""; /* what streams have and have not given */
static bool fed_end;
static int64_t now_ns;
static FILE *out;

/* Of the module; libmicrohttpd has that of libc. */
int clock_gettime(clockid_t id, struct timespec *at)
{
	if (now_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, at);
	*at = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
	return 0;
}

static ssize_t read_stream(void *arg, char *to, size_t size)
{
	size_t length = strlen(fed);

	(void)arg;
	fprintf(out, "  a stream is read\n");
	length = length < size ? length : size;
	if (length == 0)
		return fed_end ? -1 : 0;
	memcpy(to, fed, length);
	fed += length;
	return (ssize_t)length;
}

static void end_stream(void *arg)
{
	fprintf(out, "  the stream of %s ends\n", (const char *)arg);
}

static const char *shown(const char *text)
{
	return text != NULL ? text : "-";
}

static void respond(void *arg, struct ctl_http_request *request, struct ctl_http_response *to)
{
	static const char text[] = "the text";
	static char whose[] = "a browser";

	cr_assert_eq(arg, &server);
	fprintf(out, "  is asked: %s %s of %s, %zu bytes %.6s%s; X-Word %s, q %s, r %s\n",
		request->method, request->path, shown(request->host), request->body_size,
		request->body, request->is_trusted ? ", trusted" : "",
		shown(http->header(request, "X-Word")), shown(http->query(request, "q")),
		shown(http->query(request, "r")));
	cr_expect_eq(strlen(request->body), request->body_size);
	*to = (struct ctl_http_response){.status = 200, .type = "text/plain"};
	if (strncmp(request->path, "/echo", 5) == 0) {
		to->size = (size_t)asprintf((char **)(uintptr_t)&to->body, "%s %s\n",
					    request->method, request->path);
		to->is_owned = true;
	} else if (strcmp(request->path, "/text") == 0) {
		to->body = text;
		to->size = sizeof(text) - 1;
		for (int i = 0; i < CTL_HTTP_HEADERS_MAX; i++) {
			static const char *const names[] = {"A", "B", "C", "D", "E", "F", "G", "H"};

			to->headers[i].name = names[i];
			to->headers[i].value = "of it";
		}
	} else if (strcmp(request->path, "/pending") == 0) {
		to->is_pending = true;
		pending[pending_count++ % 2] = request;
	} else if (strcmp(request->path, "/stream") == 0) {
		to->stream = (struct ctl_http_stream){read_stream, end_stream, whose};
		to->headers[0].name = "Cache-Control";
		to->headers[0].value = "no-store";
	} else {
		to->status = 404;
		to->body = "";
	}
}

static void answer(bool is_owned)
{
	struct ctl_http_response response = {.status = 201,
					     .type = "text/html",
					     .body = is_owned ? strdup("own") : "later",
					     .size = is_owned ? 3 : 5,
					     .is_owned = is_owned};

	response.headers[0].name = "A";
	response.headers[0].value = "b";
	http->answer(pending[(pending_count - 1) % 2], &response);
}

/* A line each; the time of day is left out. */
static void show_bytes(int browser, char *bytes)
{
	for (char *line; (line = strsep(&bytes, "\n")) != NULL;) {
		line[strcspn(line, "\r")] = '\0';
		if (strncmp(line, "Date: ", 6) != 0 && (line[0] != '\0' || bytes != NULL))
			fprintf(out, "  %d gets %.80s\n", browser, line);
	}
}

static void show_browsers(void)
{
	static char bytes[1 << 16];

	for (int i = 0; i < BROWSERS; i++) {
		ssize_t n = browsers[i] >= 0
				    ? recv(browsers[i], bytes, sizeof(bytes) - 1, MSG_DONTWAIT)
				    : -1;

		if (n > 0) {
			bytes[n] = '\0';
			show_bytes(i, bytes);
		}
		if (n == 0) {
			if (i <= 12) /* of many only the first ones */
				fprintf(out, "  %d is closed\n", i);
			close(browsers[i]);
			browsers[i] = -1;
		}
	}
}

/* Until all that can happen now has. */
static void run(void)
{
	int ms = 0;

	for (int i = 0; i < 6; i++)
		ms = http->run(server);
	show_browsers();
	fprintf(out, "  %s, %u streams\n",
		ms < 0       ? "waits for browsers"
		: ms == 1000 ? "is to run in a second"
			     : "is to run sooner",
		http->streams(server));
}

static void connect_browser(int i, bool is_trusted)
{
	int ends[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	http->add(server, ends[0], is_trusted);
	browsers[i] = ends[1];
}

static void connect_many(int count)
{
	int i = 10;

	while (browsers[i] >= 0)
		i++;
	for (; count > 0; count--, i++)
		connect_browser(i, false);
}

static void say(int i, const char *text)
{
	for (; *text != '\0'; text++) {
		const char *byte = *text == '|' ? "\r\n" : text;

		if (send(browsers[i], byte, *text == '|' ? 2 : 1, MSG_NOSIGNAL) < 0) {
			fprintf(out, "  %d cannot send\n", i);
			return;
		}
	}
}

static void send_body(int i, int count)
{
	char some[1024];

	memset(some, 'x', sizeof(some));
	while (count > 0) {
		ssize_t n =
			send(browsers[i], some, count < 1024 ? (size_t)count : 1024, MSG_NOSIGNAL);

		if (n > 0)
			count -= (int)n;
		else
			(void)http->run(server);
	}
}

static void take_step(const char *step)
{
	const char *about = strchr(step, ' ') != NULL ? strchr(step, ' ') + 1 : "";
	int number = atoi(about);

	fprintf(out, "%s\n", step);
	if (strncmp(step, "open ", 5) == 0 || strncmp(step, "trust ", 6) == 0)
		connect_browser(number, step[0] == 't');
	else if (strncmp(step, "many ", 5) == 0)
		connect_many(number);
	else if (strncmp(step, "say ", 4) == 0)
		say(number, about + 2);
	else if (strncmp(step, "body ", 5) == 0)
		send_body(number, atoi(about + 2));
	else if (strncmp(step, "wait ", 5) == 0)
		now_ns += atoll(about);
	else if (strncmp(step, "feed ", 5) == 0 && strcmp(about, "end") != 0)
		fed = about;
	else if (strncmp(step, "feed ", 5) == 0)
		fed_end = true;
	else if (strcmp(step, "wake") == 0)
		http->wake(server);
	else if (strcmp(step, "answer") == 0 || strcmp(step, "own") == 0)
		answer(step[0] == 'o');
	else {
		cr_assert_eq(strncmp(step, "close ", 6), 0, "%s", step);
		close(browsers[number]);
		browsers[number] = -1;
	}
	run();
}

static void run_script(const char *script)
{
	const struct ctl_http_options options = {.respond = respond, .arg = &server};
	struct frag_err err = FRAG_ERR_INIT;
	const unsigned int before = left_now().descriptors;
	char copy[1024], *rest = copy, *next;

	snprintf(copy, sizeof(copy), "%s", script);
	for (int i = 0; i < BROWSERS; i++)
		browsers[i] = -1;
	pending_count = 0;
	fed = "";
	fed_end = false;
	now_ns = 1000000000;
	cr_assert_eq(http->create(&options, &server, &err), 0, "%s", err.text);
	cr_expect_geq(http->descriptor(server), 0);
	fprintf(out, "--- a server\n");
	for (; rest != NULL; rest = next) {
		next = strstr(rest, "; ");
		if (next != NULL) {
			*next = '\0';
			next += 2;
		}
		take_step(rest);
	}
	fprintf(out, "it ends\n");
	http->destroy(server);
	show_browsers();
	for (int i = 0; i < BROWSERS; i++)
		if (browsers[i] >= 0)
			close(browsers[i]);
	now_ns = 0;
	cr_expect_eq(left_now().descriptors, before, "%s: descriptors are left", script);
}

Test(http, answers_as_recorded)
{
	const struct ctl_http_options wrong = {
		.respond = respond, .certificate = "none", .certificate_key = "of these"};
	struct frag_err err = FRAG_ERR_INIT;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(scripts); i++)
		run_script(scripts[i]);
	fprintf(out, "--- with no certificate: %d", http->create(&wrong, &server, &err));
	fprintf(out, " %s\n", err.text);
	http->destroy(NULL);
	fclose(out);
	expected_compare("fragctl/http", text);
	free(text);
}
