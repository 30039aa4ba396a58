// SPDX-License-Identifier: Apache-2.0
#include "key_file.h"

#include <errno.h>

#include <wire/connection.h>

/* Connections with TLS on loopback: both ends, or one and a raw socket, in one loop. */
#define FILE_A "frag-key-1 node7 worker " SECRET_A "\n"

struct side {
	struct key_file file;
	struct fw_tls *tls;
	struct fw_connection *connection;
	int ready, messages, closed, reason;
	char sentence[1024];
	char key[64];
	size_t received;
};
struct world {
	uv_loop_t loop;
	uv_tcp_t server;
	uv_connect_t connect;
	uv_tcp_t raw; /* in place of the client */
	bool has_raw, connected;
	int64_t admit_ns;
	struct side a, b; /* client, server */
};

static void on_message(struct fw_connection *c, struct fw_message *message, void *arg)
{
	struct side *side = arg;

	cr_expect_eq(side->ready, 1);
	side->messages++;
	if (message->kind == FW_HOST_CREATE)
		side->received += message->create.source_bytes;
	fw_message_free(message);
}

static void on_closed(struct fw_connection *c, int reason, const char *sentence, void *arg)
{
	struct side *side = arg;

	side->closed++;
	side->reason = reason;
	snprintf(side->sentence, sizeof(side->sentence), "%s", sentence);
}

static void on_ready(struct fw_connection *c, void *arg)
{
	struct side *side = arg;
	const struct fw_identity *identity = fw_connection_identity(c);

	cr_assert_not_null(identity);
	strcpy(side->key, identity->name);
	side->ready++;
	fw_connection_admit(c);
}

static const struct fw_connection_ops ops = {on_message, on_closed, on_ready};

static void make(struct world *w, struct side *side, bool is_server, const char *keys)
{
	struct fw_tls_config config = {.is_server = is_server, .key_file = side->file.path};
	struct fw_connection_options options = {.admit_ns = w->admit_ns};

	key_file_init(&side->file, keys);
	cr_assert_eq(fw_tls_create(&config, &side->tls, NULL), 0);
	options.tls = side->tls;
	cr_assert_eq(fw_connection_create(&w->loop, FW_STREAM_TCP, &ops, side, &options,
					  &side->connection),
		     0);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct world *w = server->data;

	cr_assert_eq(status, 0);
	cr_assert_eq(uv_accept(server, fw_connection_stream(w->b.connection)), 0);
	cr_assert_eq(fw_connection_start(w->b.connection), 0);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct world *w = connect->data;

	cr_assert_eq(status, 0);
	w->connected = true;
	if (!w->has_raw)
		cr_assert_eq(fw_connection_start(w->a.connection), 0);
}

static void world_init(struct world *w, const char *client_keys, const char *server_keys)
{
	struct sockaddr_in address;
	int length = sizeof(address);
	uv_tcp_t *client;

	cr_assert_eq(uv_loop_init(&w->loop), 0);
	uv_tcp_init(&w->loop, &w->server);
	uv_tcp_init(&w->loop, &w->raw);
	w->server.data = w->connect.data = w;
	make(w, &w->b, true, server_keys);
	make(w, &w->a, false, client_keys);
	uv_ip4_addr("127.0.0.1", 0, &address);
	cr_assert_eq(uv_tcp_bind(&w->server, (struct sockaddr *)&address, 0), 0);
	cr_assert_eq(uv_listen((uv_stream_t *)&w->server, 8, on_connection), 0);
	cr_assert_eq(uv_tcp_getsockname(&w->server, (struct sockaddr *)&address, &length), 0);
	client = w->has_raw ? &w->raw : (uv_tcp_t *)fw_connection_stream(w->a.connection);
	cr_assert_eq(uv_tcp_connect(&w->connect, client, (struct sockaddr *)&address, on_connected),
		     0);
}

static void world_fini(struct world *w)
{
	if (w->a.closed == 0)
		fw_connection_close(w->a.connection);
	if (w->b.closed == 0)
		fw_connection_close(w->b.connection);
	uv_close((uv_handle_t *)&w->server, NULL);
	if (!uv_is_closing((uv_handle_t *)&w->raw))
		uv_close((uv_handle_t *)&w->raw, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	cr_expect_eq(w->a.closed, 1);
	cr_expect_eq(w->b.closed, 1);
	cr_expect_eq(uv_loop_close(&w->loop), 0);
	fw_tls_destroy(w->a.tls);
	fw_tls_destroy(w->b.tls);
	key_file_fini(&w->a.file);
	key_file_fini(&w->b.file);
}

static void run_until_both(struct world *w, const int *a, const int *b)
{
	while (*a == 0 || *b == 0)
		uv_run(&w->loop, UV_RUN_ONCE);
}

static int send_one(struct side *side, struct fw_message *message)
{
	uint8_t *frame;
	size_t size;

	cr_assert_eq(fw_encode(message, &frame, &size), 0);
	return fw_connection_send(side->connection, frame, size);
}

Test(wire_sealed, both_are_ready_once_and_frames_of_any_size_pass, .timeout = 60)
{
	static uint8_t source[3 << 20];
	struct fw_message large = {.kind = FW_HOST_CREATE, .run = 1, .host = 1, .epoch = 1};
	struct fw_message small = {.kind = FW_BEAT};
	struct world w = {0};

	memset(source, 'x', sizeof(source));
	large.create = (struct fw_host_create){
		.application = "a", .source = source, .source_bytes = sizeof(source)};
	world_init(&w, FILE_A, FILE_A);
	run_until_both(&w, &w.a.ready, &w.b.ready);
	cr_expect_str_eq(w.a.key, "node7");
	cr_expect_str_eq(w.b.key, "node7");
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(send_one(&w.a, &small), 0);
		cr_expect_eq(send_one(&w.b, &large), 0);
		cr_expect_eq(send_one(&w.b, &small), 0);
	}
	while (w.a.messages < 6 || w.b.messages < 3)
		uv_run(&w.loop, UV_RUN_ONCE);
	cr_expect_eq(w.a.received, 3 * sizeof(source));
	cr_expect_eq(w.a.ready, 1);
	world_fini(&w);
}

Test(wire_sealed, what_was_sent_before_the_end_arrives_and_the_end_is_marked, .timeout = 60)
{
	struct fw_message beat = {.kind = FW_BEAT};
	struct world w = {0};

	world_init(&w, FILE_A, FILE_A);
	run_until_both(&w, &w.a.ready, &w.b.ready);
	cr_expect_eq(send_one(&w.a, &beat), 0);
	fw_connection_finish(w.a.connection);
	cr_expect_eq(send_one(&w.a, &beat), -EPIPE);
	run_until_both(&w, &w.a.closed, &w.b.closed);
	cr_expect_eq(w.b.messages, 1);
	cr_expect_eq(w.b.reason, 0);
	cr_expect_str_eq(w.b.sentence, "the peer closed the connection");
	cr_expect_eq(w.a.reason, -ECANCELED);
	world_fini(&w);
}

/* Whoever can cut the stream must not be able to make an orderly end of it. */
Test(wire_sealed, a_stream_that_is_cut_has_not_ended, .timeout = 60)
{
	struct world w = {0};

	world_init(&w, FILE_A, FILE_A);
	run_until_both(&w, &w.a.ready, &w.b.ready);
	fw_connection_close(w.a.connection);
	while (w.b.closed == 0)
		uv_run(&w.loop, UV_RUN_ONCE);
	cr_expect_eq(w.b.reason, -ECONNRESET);
	cr_expect_str_eq(w.b.sentence, "the connection was cut");
	world_fini(&w);
}

Test(wire_sealed, without_a_common_key_neither_is_ready, .timeout = 60)
{
	struct world w = {0};

	world_init(&w, "frag-key-1 node7 worker " SECRET_B, FILE_A);
	run_until_both(&w, &w.a.closed, &w.b.closed);
	cr_expect_eq(w.a.ready + w.b.ready, 0);
	cr_expect_eq(w.a.reason, -EKEYREJECTED);
	cr_expect_eq(w.b.reason, -EKEYREJECTED);
	cr_expect_str_eq(w.b.sentence, "it has another secret for the key \"node7\"");
	world_fini(&w);
}

/* Two seconds hold the handshake and HELLO together. */
Test(wire_sealed, a_handshake_that_does_not_end_ends_it, .timeout = 60)
{
	struct world w = {.admit_ns = 50000000, .has_raw = true};
	char half[] = "\x16\3\1\1\0\1";
	uv_buf_t bytes = uv_buf_init(half, 6);

	world_init(&w, FILE_A, FILE_A);
	while (!w.connected)
		uv_run(&w.loop, UV_RUN_ONCE);
	cr_assert_eq(uv_try_write((uv_stream_t *)&w.raw, &bytes, 1), 6);
	while (w.b.closed == 0)
		uv_run(&w.loop, UV_RUN_ONCE);
	cr_expect_eq(w.b.reason, -ETIMEDOUT);
	world_fini(&w);
}
