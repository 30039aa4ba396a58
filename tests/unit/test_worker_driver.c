// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/trace.h>
#include <wire/frame.h>
#include <workerd/driver.h>

/*
 * workerd's connection to a driver that this file plays: what is done, and what comes of it. The
 * port, which the kernel chooses, is not shown.
 */
static FILE *out;
static uv_loop_t loop;
static uv_poll_t listener;
static int listen_fd, peer_fd; /* peer_fd -1: nobody has connected */
static struct wrk_driver *driver;
static bool is_done; /* it has failed, was lost, or is up */

static void on_connected(void *arg, uint64_t id, const char *local, const char *proof)
{
	char own[32];

	snprintf(own, sizeof(own), "user %u", geteuid());
	cr_expect_eq(arg, &loop);
	fprintf(out, "  %d is connected from %s by %s, %s\n", (int)id, local,
		strcmp(proof, own) == 0 ? "this user" : proof,
		wrk_driver_is_own_user(driver) ? "its own" : "another's");
	is_done = true;
}

static void on_failed(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	(void)arg;
	fprintf(out, "  %d has failed, %d: %s\n", (int)id, failure, why);
	is_done = true;
}

static void on_message(void *arg, uint64_t id, struct fw_message *message)
{
	(void)arg;
	fprintf(out, "  %d gets %s of %d\n", (int)id, fw_kind_name(message->kind),
		(int)message->run);
	fw_message_free(message);
	is_done = true;
}

static void on_lost(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	(void)arg;
	fprintf(out, "  %d is lost, %d: %s\n", (int)id, failure, why);
	is_done = true;
}

static void on_freed(void *arg, struct wrk_driver *own)
{
	(void)arg;
	cr_expect_eq(own, driver);
	fprintf(out, "  freed\n");
	driver = NULL;
}

static const struct wrk_driver_ops ops = {on_connected, on_failed, on_message, on_lost, on_freed};

static void on_peer(uv_poll_t *poll, int status, int poll_events)
{
	(void)poll, (void)status, (void)poll_events;
	peer_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_geq(peer_fd, 0);
}

/* Returns the port at which this file listens. */
static uint16_t listen_here(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(listen_fd, 4), 0);
	cr_assert_eq(getsockname(listen_fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

static void wait_done(void)
{
	while (!is_done)
		uv_run(&loop, UV_RUN_ONCE);
	is_done = false;
}

static void connect_to(const char *host, uint16_t port, const struct fw_users *users)
{
	const struct fw_connection_options options = {.users = users};
	struct fragi_address address = {.port = port, .port_last = port};
	static uint64_t id;

	snprintf(address.host, sizeof(address.host), "%s", host);
	fprintf(out, "connect to %s\n", host);
	cr_assert_eq(wrk_driver_open(&loop, &address, ++id, &options, &ops, &loop, &driver), 0);
}

static void send_kind(enum fw_kind kind, bool is_too_large)
{
	void *rows = calloc(FW_ROWS_MAX + 1, sizeof(struct fw_op_stats));
	struct fw_message message = {.kind = kind, .run = 7};

	fprintf(out, "send %s%s\n", fw_kind_name(kind), is_too_large ? ", too large" : "");
	if (is_too_large && kind == FW_HOST_PREPARED) {
		message.prepared.flows = rows;
		message.prepared.flow_count = FW_ROWS_MAX + 1;
	} else if (is_too_large && kind == FW_HOST_LINES) {
		message.host_lines.rows = rows;
		message.host_lines.count = FW_LOG_ROWS_MAX + 1;
	} else if (is_too_large) {
		message.stats.ops = rows;
		message.stats.op_count = FW_ROWS_MAX + 1;
	}
	wrk_driver_send(driver, &message);
	free(rows);
}

/* The frames that have come at the other end. */
static void show_frames(void)
{
	static uint8_t bytes[65536];
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;
	uint32_t size;
	ssize_t n;

	uv_run(&loop, UV_RUN_NOWAIT);
	n = recv(peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	for (uint8_t *at = bytes; n > 4 && at < bytes + n; at += 4 + size) {
		memcpy(&size, at, 4);
		cr_assert_eq(fw_decode(at + 4, size, &message, &err), 0, "%s", err.text);
		fprintf(out, "  came: %s of %d, number %d\n", fw_kind_name(message->kind),
			(int)message->run, (int)message->seq);
		fw_message_free(message);
	}
}

static void answer(const char *what)
{
	struct fw_message message = {.kind = FW_APP_ENDED, .seq = 1, .run = 9};
	uint8_t *frame;
	size_t size;

	fprintf(out, "the driver %s\n", what);
	if (strcmp(what, "answers") == 0) {
		cr_assert_eq(fw_encode(&message, &frame, &size), 0);
		cr_assert_eq(write(peer_fd, frame, size), (ssize_t)size);
		fragi_free(frame);
	} else if (strcmp(what, "sends nonsense") == 0) {
		cr_assert_eq(write(peer_fd, "\xff\xff\xff\xffxxxx", 8), 8);
	} else {
		close(peer_fd);
		peer_fd = -1;
	}
}

static void end_connection(void)
{
	while (driver != NULL)
		uv_run(&loop, UV_RUN_ONCE);
	is_done = false;
	if (peer_fd >= 0)
		close(peer_fd);
	peer_fd = -1;
}

static void meet(uint16_t port, const struct fw_users *users)
{
	cr_assert_eq(uv_poll_start(&listener, UV_READABLE, on_peer), 0);
	connect_to("127.0.0.1", port, users);
	wait_done();
	cr_expect_eq(wrk_driver_fd(driver) >= 0, true);
}

static void show_log(int fd)
{
	char bytes[4096];
	ssize_t n = pread(fd, bytes, sizeof(bytes) - 1, 0);

	bytes[n > 0 ? n : 0] = '\0';
	for (char *rest = bytes, *line; (line = strsep(&rest, "\n")) != NULL;)
		if (strlen(line) > 25)
			fprintf(out, "log: %s\n", line + 25);
}

Test(worker_driver, what_comes_of_what_is_done)
{
	struct fw_users users;
	struct frag_err err = FRAG_ERR_INIT;
	int log = memfd_create("log", 0), stderr_fd = dup(STDERR_FILENO);
	uint16_t port;
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	peer_fd = -1;
	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(fw_users_init(&users, "workerd", NULL, 0, false, &err), 0);
	port = listen_here();
	cr_assert_eq(uv_poll_init(&loop, &listener, listen_fd), 0);
	dup2(log, STDERR_FILENO);

	meet(port, &users);
	send_kind(FW_HELLO, false);
	send_kind(FW_BEAT, false);
	show_frames();
	answer("answers");
	wait_done();
	for (int times = 0; times < 2; times++) {
		send_kind(FW_HOST_PREPARED, true);
		send_kind(FW_HOST_LINES, true); /* 64 more */
		send_kind(FW_HOST_STATS, true);
	}
	send_kind(FW_BEAT, false);
	show_frames();
	answer("goes");
	wait_done();
	end_connection();

	meet(port, NULL);
	answer("sends nonsense");
	wait_done();
	end_connection();

	meet(port, &users);
	send_kind(FW_BEAT, false);
	fprintf(out, "finish\n");
	wrk_driver_finish(driver);
	show_frames();
	answer("goes");
	end_connection();

	connect_to("127.0.0.1", port, &users);
	send_kind(FW_BEAT, false);
	fprintf(out, "finish\n");
	wrk_driver_finish(driver);
	end_connection();

	connect_to("localhost", port, &users);
	fprintf(out, "finish\n");
	wrk_driver_finish(driver);
	end_connection();

	connect_to("localhost", port, &users);
	wait_done();
	wrk_driver_finish(driver);
	answer("goes");
	end_connection();

	uv_close((uv_handle_t *)&listener, NULL);
	close(listen_fd);
	connect_to("127.0.0.1", port, &users);
	wait_done();
	end_connection();
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&loop), 0);
	fw_users_fini(&users);
	fflush(stderr);
	dup2(stderr_fd, STDERR_FILENO);
	show_log(log);
	close(stderr_fd);
	close(log);
	fclose(out);
	expected_compare("worker/driver", text);
	free(text);
}

/* What the name of a driver stands for; played by the test, or as the machine knows it. */
#define FOUND_MAX 10
static struct addrinfo found[FOUND_MAX];
static int lookups, lookup_result = 1; /* 1: the machine knows */

__attribute__((visibility("default"))) int getaddrinfo(const char *name, const char *service,
						       const struct addrinfo *hints,
						       struct addrinfo **out_found)
{
	__typeof__(&getaddrinfo) machine;

	lookups++;
	if (lookup_result == 1) {
		*(void **)&machine = dlsym(RTLD_NEXT, "getaddrinfo");
		return machine(name, service, hints, out_found);
	}
	cr_expect(hints->ai_family == AF_UNSPEC && hints->ai_socktype == SOCK_STREAM);
	cr_expect(strcmp(name, "driver.lan") == 0 && atoi(service) > 0);
	*out_found = lookup_result == 0 && found[0].ai_addr != NULL ? found : NULL;
	return lookup_result;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *list)
{
	void (*machine)(struct addrinfo * list);

	if (list == found || list == NULL)
		return;
	*(void **)&machine = dlsym(RTLD_NEXT, "freeaddrinfo");
	machine(list);
}

/* at: whether somebody listens at each of them, '1', or nobody, '0'; 'x': it is no such address */
static void look_up(const char *at, int result, uint16_t port, uint16_t closed_port)
{
	static struct sockaddr_in addresses[FOUND_MAX];

	memset(found, 0, sizeof(found));
	for (size_t i = 0; at[i] != '\0'; i++) {
		addresses[i] =
			(struct sockaddr_in){.sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					     .sin_port = htons(at[i] == '0' ? closed_port : port)};
		found[i] = (struct addrinfo){
			.ai_addr = (struct sockaddr *)&addresses[i],
			.ai_addrlen = at[i] == 'x' ? sizeof(struct sockaddr_storage) + 1
						   : sizeof(addresses[i]),
			.ai_next = at[i + 1] != '\0' ? &found[i + 1] : NULL};
	}
	lookup_result = result;
	fprintf(out, "addresses '%s', result %d\n", at, result);
	connect_to("driver.lan", port, NULL);
	wait_done();
	if (driver != NULL)
		wrk_driver_finish(driver);
	if (peer_fd >= 0)
		answer("goes");
	end_connection();
}

Test(worker_driver, names_of_several_addresses)
{
	uint16_t port, closed_port;
	FILE *shown;
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	peer_fd = -1;
	cr_assert_eq(uv_loop_init(&loop), 0);
	closed_port = listen_here();
	close(listen_fd);
	port = listen_here();
	cr_assert_eq(uv_poll_init(&loop, &listener, listen_fd), 0);
	cr_assert_eq(uv_poll_start(&listener, UV_READABLE, on_peer), 0);
	look_up("", EAI_AGAIN, port, closed_port);
	look_up("", 0, port, closed_port);
	look_up("1", 0, port, closed_port);
	look_up("0", 0, port, closed_port);
	look_up("01", 0, port, closed_port);
	look_up("x1", 0, port, closed_port);
	look_up("00000001", 0, port, closed_port);
	look_up("000000001", 0, port, closed_port);
	cr_expect_eq(lookups, 8);
	shown = out; /* why it fails is a matter of the machine's network */
	out = fopen("/dev/null", "w");
	connect_to("::1", closed_port, NULL);
	if (driver != NULL && !is_done)
		wait_done();
	end_connection();
	fclose(out);
	out = shown;
	cr_expect_eq(lookups, 8, "it is no name");
	uv_close((uv_handle_t *)&listener, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	close(listen_fd);
	cr_expect_eq(uv_loop_close(&loop), 0);
	fclose(out);
	expected_compare("worker/driver_names", text);
	free(text);
}

/* Bytes that wait in this end's kernel for the driver, which reads nothing. */
static int waiting(void)
{
	int bytes;

	uv_run(&loop, UV_RUN_NOWAIT);
	cr_assert_eq(ioctl(wrk_driver_fd(driver), SIOCOUTQ, &bytes), 0);
	return bytes;
}

static void send_tapped(uint32_t tap, const void *bytes, uint32_t size)
{
	wrk_driver_send(driver,
			&(struct fw_message){.kind = FW_HOST_TAPPED, .tapped = {tap, bytes, size}});
}

/* Reads all that has come, and sums up what was tapped. */
static void read_all(uint64_t bytes_of[3])
{
	static uint8_t bytes[1u << 20];
	struct fw_reader reader;
	struct fw_message *message;
	const uint8_t *frame;
	size_t size;
	ssize_t n;

	fw_reader_init(&reader, FW_FRAME_MAX);
	do {
		uv_run(&loop, UV_RUN_NOWAIT);
		n = recv(peer_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		cr_assert(n <= 0 || fw_reader_feed(&reader, bytes, (size_t)n, 1) == 0);
		while (fw_reader_next(&reader, &frame, &size, NULL) > 0) {
			cr_assert_eq(fw_decode(frame, size, &message, NULL), 0);
			if (message->kind == FW_HOST_TAPPED)
				bytes_of[message->tapped.tap] += message->tapped.size;
			fw_message_free(message);
		}
	} while (n > 0 || waiting() > 0);
	fw_reader_fini(&reader);
}

/* What people look at waits for nothing; a trace may fill the connection, and its end once more. */
Test(worker_driver, what_is_tapped_waits_only_so_long)
{
	static uint8_t filler[1024];
	static struct fragi_trace_chunk goes_on, ends;
	struct fragi_trace_host host = {.host = 1, .end = FRAGI_TRACE_GOES_ON};
	uint64_t bytes_of[3] = {0};
	const uint32_t chunk_bytes = 64u << 10;
	uint16_t port;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	peer_fd = -1;
	cr_assert_eq(uv_loop_init(&loop), 0);
	port = listen_here();
	cr_assert_eq(uv_poll_init(&loop, &listener, listen_fd), 0);
	meet(port, NULL);
	cr_assert(fragi_trace_add_host(&goes_on, &host, "f", "clock"));
	host.end = FRAGI_TRACE_ENDS;
	cr_assert(fragi_trace_add_host(&ends, &host, "f", "clock"));
	while (waiting() < 8192)
		wrk_driver_send(driver, &(struct fw_message){.kind = FW_HOST_SAVED,
							     .saved = {0, filler, sizeof(filler)}});
	for (int i = 0; i < 64; i++)
		send_tapped(0, filler, 512);
	cr_expect(waiting() > 16384 && waiting() < 17200, "%d", waiting());
	for (int i = 0; i < 80; i++)
		send_tapped(1, goes_on.bytes, chunk_bytes);
	for (int i = 0; i < 80; i++)
		send_tapped(2, ends.bytes, chunk_bytes);
	wrk_driver_send(driver, &(struct fw_message){.kind = FW_HOST_SAVED,
						     .saved = {0, filler, sizeof(filler)}});
	read_all(bytes_of);
	cr_expect(bytes_of[1] > 30 * chunk_bytes && bytes_of[1] <= 33 * chunk_bytes, "%d",
		  (int)bytes_of[1]);
	cr_expect(bytes_of[2] > 30 * chunk_bytes && bytes_of[2] <= 33 * chunk_bytes, "%d",
		  (int)bytes_of[2]);
	fprintf(out, "finish\n");
	wrk_driver_finish(driver);
	answer("goes");
	end_connection();
	uv_close((uv_handle_t *)&listener, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&loop), 0);
	close(listen_fd);
	fclose(out);
	free(text);
}
