// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <turbojpeg.h>
#include <unistd.h>

#include "../expected.h"
#include "../scratch.h"
#include "harness.h"
#include "viewer/viewer.h"

/*
 * The viewer's page as a browser sees it: heads, bodies and pictures of its answers, compared with
 * a recorded text.
 */
static FILE *out;
static int port;

/* A port that is free now. */
static int free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static struct frag_harness *make_viewer(const struct frag_arg *more)
{
	static char number[16];
	struct frag_arg args[8] = {{"port", number}, {"tensors", "[{name: a, type: color}]"}};

	for (int i = 2; more != NULL && more->name != NULL; more++)
		args[i++] = *more;
	port = free_port();
	snprintf(number, sizeof(number), "%d", port);
	return make(&viewer_viewer_type, args);
}

static int ask(const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fd;
}

#define STREAM_BYTES (1 << 16)

/* Reads what comes within ten seconds. Returns the bytes; 0: the end. */
static size_t read_some(int fd, char *to, size_t size)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	ssize_t r;

	cr_assert_gt(poll(&poll_fd, 1, 10000), 0, "nothing more came");
	r = recv(fd, to, size, 0);
	return r > 0 ? (size_t)r : 0;
}

static size_t read_all(int fd, char *to, size_t size)
{
	size_t at = 0;

	for (size_t more = 1; more > 0; at += more)
		more = read_some(fd, to + at, size - at - 1);
	to[at] = '\0';
	close(fd);
	return at;
}

/*
 * Prints a head, without the date and the length, or only its first line. Returns what is behind
 * it.
 */
static char *print_head(char *text, bool whole)
{
	bool is_first = true;

	char *end = strstr(text, "\r\n\r\n"), *rest = NULL;

	cr_assert_not_null(end, "%s", text);
	*end = '\0';
	for (char *l = strtok_r(text, "\r\n", &rest); l != NULL && (whole || is_first);
	     l = strtok_r(NULL, "\r\n", &rest)) {
		if (strncmp(l, "Date:", 5) != 0 && strncmp(l, "Content-Length:", 15) != 0)
			fprintf(out, "  %s\n", l);
		is_first = false;
	}
	return end + 4;
}

/* Of a JSON text, without what depends on the time. */
static void print_status(char *text)
{
	char *rest = NULL;

	fputs(" ", out);
	for (char *w = strtok_r(text, ",\n", &rest); w != NULL; w = strtok_r(NULL, ",\n", &rest)) {
		const char *value = strchr(w, ':');

		if (value != NULL &&
		    (strstr(w, "rate_hz") != NULL || strstr(w, "latency_ms") != NULL))
			fprintf(out, "%.*s: %s,", (int)(value - w), w,
				strcmp(value, ": null") == 0  ? "null"
				: strtod(value + 2, NULL) > 0 ? "positive"
							      : "0");
		else
			fprintf(out, "%s,", w);
	}
	fputc('\n', out);
}

static void print_answer(const char *request, const char *name, bool whole)
{
	static char text[1 << 20];
	size_t bytes;
	char *body;
	int fd = ask(request);

	bytes = read_all(fd, text, sizeof(text));
	fprintf(out, "%s\n", name);
	if (bytes == 0) {
		fputs("  nothing\n", out);
		return;
	}
	body = print_head(text, whole);
	if (body[0] == '{')
		print_status(body);
	else if (body[0] == '<')
		fprintf(out, "  a page that ends with %s", strrchr(body, '<'));
	else
		fprintf(out, "  %s", body);
}

/* What a picture holds: its comment, its size and its middle. */
static void print_picture(const char *jpeg, size_t bytes)
{
	long long received_ns = 0, acquired_ns = 0;
	unsigned long long number = 0;
	int columns = 0, rows = 0, kind, space;
	tjhandle decoder = tjInitDecompress();
	unsigned char pixels[64 * 64 * 3];
	const unsigned char *at = (const unsigned char *)jpeg;

	cr_assert(bytes > 40 && memcmp(jpeg + bytes - 2, "\xff\xd9", 2) == 0);
	cr_assert_eq(sscanf(jpeg + 6, "frag number=%llu received_ns=%lld acquired_ns=%lld", &number,
			    &received_ns, &acquired_ns),
		     3);
	cr_assert_eq(tjDecompressHeader3(decoder, at, bytes, &columns, &rows, &kind, &space), 0);
	cr_assert(columns <= 64 && rows <= 64);
	cr_assert_eq(tjDecompress2(decoder, at, bytes, pixels, columns, 0, rows, TJPF_RGB, 0), 0);
	tjDestroy(decoder);
	fprintf(out, "  picture %llu of %d x %d, gray of about %d, received %s, acquired %lld\n",
		number, columns, rows,
		(pixels[(rows / 2 * columns + columns / 2) * 3] + 5) / 10 * 10,
		received_ns > 0 ? "then" : "never", acquired_ns);
}

static struct frag_message *gray(uint8_t value, int64_t acquired_ns)
{
	struct frag_message *m = frag_message_create();
	struct frag_tensor *tensor = tensor_of((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3,
					       (const int64_t[]){16, 24, 3}, NULL);

	memset(frag_tensor_writable(tensor), value, frag_tensor_size_bytes(tensor));
	cr_assert_eq(frag_message_add_tensor(m, "a", tensor), 0);
	if (acquired_ns != 0)
		frag_message_set_acquisition_ns(m, acquired_ns);
	return m;
}

static void show(struct frag_harness *h, uint8_t value, int64_t acquired_ns)
{
	cr_assert_eq(frag_harness_give(h, "receivers", gray(value, acquired_ns)), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
}

/* The time of acquisition is in the metadata alone. */
static void show_with_metadata(struct frag_harness *h, uint8_t value, int64_t acquired_ns)
{
	struct frag_message *m = gray(value, 0);
	struct frag_metadata *metadata;

	cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &metadata), 0);
	cr_assert_eq(frag_metadata_set_i64(metadata, "acquired_ns", acquired_ns), 0);
	cr_assert_eq(frag_message_set_metadata(m, metadata), 0);
	frag_metadata_destroy(metadata);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"
/* Without chunks. */
#define GET_BYTES(path) "GET " path " HTTP/1.0\r\nHost: localhost\r\n\r\n"
#define FROM(host) "GET /none HTTP/1.1\r\nHost: " host "\r\n\r\n"
#define LONG "a123456789b123456789c123456789d123456789e123456789f1234567"

static void print_refusals(void)
{
	static const struct {
		const char *name, *request;
	} rows[] = {
		{"the page", GET("/")},
		{"another path", GET("/none")},
		{"a longer path", GET("/status/")},
		{"POST", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"},
		{"HEAD", "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		{"no host", "GET / HTTP/1.0\r\n\r\n"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"},
		{"an empty host", FROM("")},
		{"a port alone", FROM(":80")},
		{"localhost:80", FROM("localhost:80")},
		{"localhost:", FROM("localhost:")},
		{"localhost:8x", FROM("localhost:8x")},
		{"localhost.of.others", FROM("localhost.of.others")},
		{"127.0.0.1", FROM("127.0.0.1")},
		{"127.0.0.1:8", FROM("127.0.0.1:8")},
		{"127.0.0.256", FROM("127.0.0.256")},
		{"[::1]", FROM("[::1]")},
		{"[::1]:8", FROM("[::1]:8")},
		{"[::1]8", FROM("[::1]8")},
		{"[::1", FROM("[::1")},
		{"[::x]", FROM("[::x]")},
		{"a host of 63", FROM(LONG "63456")},
		{"a host of 64", FROM(LONG "634567")},
	};
	struct frag_harness *h = make_viewer(NULL);

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		print_answer(rows[i].request, rows[i].name, i < 5);
	frag_harness_destroy(h);
	h = make_viewer(FRAG_ARGS({"address", "0.0.0.0"}));
	print_answer(FROM("any.name"), "any.name, of a page for everybody", false);
	print_answer("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "two hosts", false);
	frag_harness_destroy(h);
}

#define PART_HEAD "--frag-picture\r\nContent-Type: image/jpeg\r\n\r\n"

/* Prints the next picture of a stream, which ends with the head of the one after. */
static void print_part(int fd, char *data, size_t *size)
{
	static const char mark[] = "\r\n" PART_HEAD;
	char *end;

	while ((end = memmem(data, *size, mark, strlen(mark))) == NULL)
		*size += read_some(fd, data + *size, STREAM_BYTES - *size);
	print_picture(data, (size_t)(end - data));
	end += strlen(mark);
	*size -= (size_t)(end - data);
	memmove(data, end, *size);
}

/* The status when so many look, which the page notices some time after they come and go. */
static void print_status_when(int watchers, const char *name)
{
	char text[2048], mark[32];

	snprintf(mark, sizeof(mark), "\"watchers\": %d,", watchers);
	for (int i = 0; i < 1000; i++) {
		(void)read_all(ask(GET("/status")), text, sizeof(text));
		if (strstr(text, mark) != NULL)
			break;
		usleep(1000);
	}
	fprintf(out, "%s\n", name);
	print_status(print_head(text, false));
}

static void print_stream(struct frag_harness *h)
{
	static char data[STREAM_BYTES];
	int fd = ask(GET_BYTES("/stream"));
	size_t size = 0;
	char *body;

	while (memmem(data, size, PART_HEAD, strlen(PART_HEAD)) == NULL)
		size += read_some(fd, data + size, sizeof(data) - size);
	fputs("a stream\n", out);
	body = print_head(data, true);
	cr_assert_eq(memcmp(body, PART_HEAD, strlen(PART_HEAD)), 0);
	body += strlen(PART_HEAD);
	size -= (size_t)(body - data);
	memmove(data, body, size);
	print_part(fd, data, &size);
	cr_assert_eq(frag_harness_give(h, "receivers:1", gray(0, 9500)), 0);
	show(h, 200, 0);
	print_part(fd, data, &size);
	show_with_metadata(h, 100, 4321);
	print_part(fd, data, &size);
	print_status_when(1, "the status while one looks");
	close(fd);
}

static void print_pictures(void)
{
	struct frag_harness *h = make_viewer(
		FRAG_ARGS({"window_title", "a \"title\" \\ of\ttabs"}, {"quality", "90"}));
	static char text[STREAM_BYTES];
	size_t bytes;
	char *body;
	int fd;

	print_answer(GET("/status"), "the status before anything came", true);
	fd = ask(GET_BYTES("/picture.jpg"));
	usleep(20000); /* it waits */
	show(h, 50, 0);
	bytes = read_all(fd, text, sizeof(text));
	fputs("a picture that is asked for before it is there\n", out);
	body = print_head(text, true);
	print_picture(body, bytes - (size_t)(body - text));
	print_status_when(0, "the status when nobody looks");
	show(h, 100, 7000);
	cr_assert_eq(frag_harness_give(h, "receivers:1", gray(0, 8000)), 0);
	show(h, 150, 9000);
	print_stream(h);
	frag_harness_destroy(h);
}

Test(viewer_page, answers_as_recorded)
{
	char *recorded;
	size_t size;

	out = open_memstream(&recorded, &size);
	print_refusals();
	print_pictures();
	fclose(out);
	expected_compare("operators/viewer_page", recorded);
	free(recorded);
}

/* A browser that waits for a picture is let go at the end. */
Test(viewer_page, the_end_ends_streams)
{
	struct frag_harness *h = make_viewer(NULL);
	char text[4096];
	int fd = ask(GET_BYTES("/stream"));

	usleep(20000);
	frag_harness_destroy(h);
	(void)read_all(fd, text, sizeof(text));
}

/* The file shows what came last, also where nobody looked. */
Test(viewer_page, the_last_picture_is_in_the_file)
{
	static const char *const names[] = {"newest.jpg", "newest.jpeg", "newest.png"};
	char path[PATH_MAX];

	scratch_make();
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		struct frag_harness *h;
		char head[8] = "";
		FILE *file;

		snprintf(path, sizeof(path), "%s", at(names[i]));
		h = make_viewer(FRAG_ARGS({"path", path}, {"path_period", "0"}));
		show(h, 50, 0);
		show(h, 90, 0);
		frag_harness_destroy(h);
		file = fopen(path, "r");
		cr_assert_not_null(file, "%s", path);
		cr_expect_eq(fread(head, 1, 4, file), 4);
		fclose(file);
		cr_expect_eq(memcmp(head, i < 2 ? "\xff\xd8\xff\xfe" : "\x89PNG", 4), 0, "%s",
			     names[i]);
	}
	scratch_remove();
}
