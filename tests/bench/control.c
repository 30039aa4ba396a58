// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <wire/connection.h>

/*
 * Control connections on loopback, both ends in one thread: control join|stream N [tls]. join: us
 * from connect to the HELLO at the other end. stream: messages a second, BEATs one way.
 */
#define IN_FLIGHT 100
#define KEY                                                                                        \
	"frag-key-1 bench any 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

static struct {
	uv_loop_t loop;
	uv_tcp_t server;
	uv_connect_t connect;
	struct fw_tls *tls[2]; /* client, server */
	struct fw_connection *client, *accepted;
	int64_t arrived, sent, wanted;
	int open;
} bench;

static void check(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "control: %s: %s\n", what, frag_strerror(r));
	exit(1);
}

static void send_one(void)
{
	struct fw_message message = {.kind = bench.sent == 0 ? FW_HELLO : FW_BEAT};
	uint8_t *frame;
	size_t size;

	if (bench.sent == 0)
		message.hello = (struct fw_hello){
			.major = FW_PROTOCOL_MAJOR, .role = FW_ROLE_WORKER, .name = "bench"};
	message.seq = (uint64_t)++bench.sent;
	check(fw_encode(&message, &frame, &size), "encode");
	check(fw_connection_send(bench.client, frame, size), "send");
}

static void on_message(struct fw_connection *c, struct fw_message *message, void *arg)
{
	fw_connection_admit(c);
	fw_message_free(message);
	bench.arrived++;
	if (bench.sent < bench.wanted)
		send_one();
	if (bench.arrived == bench.wanted) {
		fw_connection_close(bench.client);
		fw_connection_close(bench.accepted);
	}
}

static void on_closed(struct fw_connection *c, int reason, const char *sentence, void *arg)
{
	check(reason == -ECANCELED ? 0 : -EPIPE, sentence);
	bench.open--;
}

static void on_ready(struct fw_connection *c, void *arg)
{
	if (c != bench.client)
		return;
	fw_connection_admit(c);
	while (bench.sent < bench.wanted && bench.sent < IN_FLIGHT)
		send_one();
}

static const struct fw_connection_ops ops = {on_message, on_closed, on_ready};

static void make(int end, struct fw_connection **out)
{
	struct fw_connection_options options = {.tls = bench.tls[end]};

	check(fw_connection_create(&bench.loop, FW_STREAM_TCP, &ops, NULL, &options, out),
	      "connection");
	bench.open++;
}

static void on_connection(uv_stream_t *server, int status)
{
	check(status, "accept");
	make(1, &bench.accepted);
	check(uv_accept(server, fw_connection_stream(bench.accepted)), "accept");
	check(fw_connection_start(bench.accepted), "start");
}

static void on_connected(uv_connect_t *connect, int status)
{
	check(status, "connect");
	check(fw_connection_start(bench.client), "start");
}

/* Returns ns from connect until all messages of one connection have arrived. */
static int64_t run_one(const struct sockaddr *address, int64_t messages)
{
	int64_t start = fragi_now_ns();

	bench.arrived = bench.sent = 0;
	bench.wanted = messages;
	make(0, &bench.client);
	check(uv_tcp_connect(&bench.connect, (uv_tcp_t *)fw_connection_stream(bench.client),
			     address, on_connected),
	      "connect");
	while (bench.arrived < messages)
		uv_run(&bench.loop, UV_RUN_ONCE);
	start = fragi_now_ns() - start;
	while (bench.open > 0)
		uv_run(&bench.loop, UV_RUN_ONCE);
	return start;
}

static void make_tls(void)
{
	char path[] = "/tmp/frag-bench-key-XXXXXX";
	struct frag_err err = FRAG_ERR_INIT;
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, KEY, sizeof(KEY) - 1) != sizeof(KEY) - 1)
		check(-EIO, "key file");
	for (int end = 0; end < 2; end++)
		check(fw_tls_create(
			      &(struct fw_tls_config){.is_server = end == 1, .key_file = path},
			      &bench.tls[end], &err),
		      err.text);
	close(fd);
	unlink(path);
}

int main(int argc, char **argv)
{
	int64_t count = argc > 2 ? atoll(argv[2]) : 0, ns = 0;
	bool joins = argc > 1 && strcmp(argv[1], "join") == 0;
	struct sockaddr_in address;
	int length = sizeof(address);

	if (count <= 0) {
		fprintf(stderr, "usage: control join|stream N [tls]\n");
		return 2;
	}
	if (argc > 3)
		make_tls();
	check(uv_loop_init(&bench.loop), "loop");
	uv_tcp_init(&bench.loop, &bench.server);
	uv_ip4_addr("127.0.0.1", 0, &address);
	check(uv_tcp_bind(&bench.server, (struct sockaddr *)&address, 0), "bind");
	check(uv_listen((uv_stream_t *)&bench.server, 8, on_connection), "listen");
	check(uv_tcp_getsockname(&bench.server, (struct sockaddr *)&address, &length), "listen");
	for (int64_t i = 0; i < (joins ? count : 1); i++)
		ns += run_one((struct sockaddr *)&address, joins ? 1 : count);
	printf("%.2f\n",
	       joins ? (double)ns / 1000 / (double)count : (double)count * 1e9 / (double)ns);
	return 0;
}
