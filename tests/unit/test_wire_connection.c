// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include <base/alloc.h>
#include <wire/connection.h>

/*
 * A server and raw clients on loopback, in one loop. Deadlines are short here; nothing is awaited
 * by the clock but those.
 */
struct world {
	uv_loop_t loop;
	uv_tcp_t server;
	struct sockaddr_in address;
	struct fw_connection_options options;
	struct fw_connection *accepted;
	int messages, closed;
	int reason;
	char sentence[1024];
	bool admit, answer, finish;
	uv_tcp_t raw;
	uv_connect_t connect;
	char received[65536];
	size_t received_bytes;
	bool raw_eof;
	uint8_t *beat; /* a message that the peer may send */
	size_t beat_bytes;
};

static void on_message(struct fw_connection *c, struct fw_message *message, void *arg)
{
	struct world *w = arg;
	struct fw_message reply = {.kind = FW_WELCOME, .reply_to = message->seq};
	uint8_t *frame;
	size_t size;

	w->messages++;
	if (w->admit)
		fw_connection_admit(c);
	if (w->answer) {
		cr_assert_eq(fw_encode(&reply, &frame, &size), 0);
		cr_assert_eq(fw_connection_send(c, frame, size), 0);
	}
	if (w->finish)
		fw_connection_finish(c);
	fw_message_free(message);
}

static void on_closed(struct fw_connection *c, int reason, const char *sentence, void *arg)
{
	struct world *w = arg;

	w->closed++;
	w->reason = reason;
	snprintf(w->sentence, sizeof(w->sentence), "%s", sentence);
}

static const struct fw_connection_ops ops = {on_message, on_closed};

static void on_connection(uv_stream_t *server, int status)
{
	struct world *w = server->data;

	cr_assert_eq(status, 0);
	cr_assert_eq(
		fw_connection_create(&w->loop, FW_STREAM_TCP, &ops, w, &w->options, &w->accepted),
		0);
	cr_assert_eq(uv_accept(server, fw_connection_stream(w->accepted)), 0);
	cr_assert_eq(fw_connection_start(w->accepted), 0);
}

static void raw_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	struct world *w = handle->data;

	*out = uv_buf_init(w->received + w->received_bytes,
			   (unsigned int)(sizeof(w->received) - w->received_bytes));
}

static void raw_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
	struct world *w = stream->data;

	if (count > 0)
		w->received_bytes += (size_t)count;
	if (count < 0)
		w->raw_eof = true;
}

static void raw_connected(uv_connect_t *connect, int status)
{
	cr_assert_eq(status, 0);
}

/* Has the loop run until that holds; the time limit of the test ends it. */
#define AWAIT(w, condition)                                                                        \
	while (!(condition))                                                                       \
	uv_run(&(w)->loop, UV_RUN_ONCE)

static void world_init(struct world *w)
{
	const struct fw_message message = {.kind = FW_BEAT, .seq = 7};
	int length = sizeof(w->address);

	cr_assert_eq(fw_encode(&message, &w->beat, &w->beat_bytes), 0);
	cr_assert_eq(uv_loop_init(&w->loop), 0);
	cr_assert_eq(uv_tcp_init(&w->loop, &w->server), 0);
	w->server.data = w;
	uv_ip4_addr("127.0.0.1", 0, &w->address);
	cr_assert_eq(uv_tcp_bind(&w->server, (struct sockaddr *)&w->address, 0), 0);
	cr_assert_eq(uv_listen((uv_stream_t *)&w->server, 8, on_connection), 0);
	cr_assert_eq(uv_tcp_getsockname(&w->server, (struct sockaddr *)&w->address, &length), 0);
	uv_tcp_init(&w->loop, &w->raw);
	w->raw.data = w;
	cr_assert_eq(
		uv_tcp_connect(&w->connect, &w->raw, (struct sockaddr *)&w->address, raw_connected),
		0);
	AWAIT(w, w->accepted != NULL && uv_is_writable((uv_stream_t *)&w->raw));
	cr_assert_eq(uv_read_start((uv_stream_t *)&w->raw, raw_alloc, raw_read), 0);
}

static void world_fini(struct world *w)
{
	if (w->closed == 0)
		fw_connection_close(w->accepted);
	uv_close((uv_handle_t *)&w->server, NULL);
	if (!uv_is_closing((uv_handle_t *)&w->raw))
		uv_close((uv_handle_t *)&w->raw, NULL);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	cr_expect_eq(w->closed, 1);
	cr_expect_eq(uv_loop_close(&w->loop), 0);
	fragi_free(w->beat);
}

/* A test of a connection to a peer that writes bytes; ...: what the world begins with */
#define CONNECTION_TEST(suite, name, ...)                                                          \
	static void suite##_##name(struct world *w);                                               \
	Test(suite, name, .timeout = 60)                                                           \
	{                                                                                          \
		struct world world = {__VA_ARGS__};                                                \
		world_init(&world);                                                                \
		suite##_##name(&world);                                                            \
		world_fini(&world);                                                                \
	}                                                                                          \
	static void suite##_##name(struct world *w)

static void raw_send(struct world *w, const void *bytes, size_t size)
{
	uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes, (unsigned int)size);

	cr_assert_eq(uv_try_write((uv_stream_t *)&w->raw, &buffer, 1), (int)size);
}

static void send_beat(struct world *w)
{
	raw_send(w, w->beat, w->beat_bytes);
}

/* The peer is admitted by its first message. */
static void be_admitted(struct world *w)
{
	send_beat(w);
	AWAIT(w, w->messages > 0);
}

/* The peer closes, and then so does the connection. */
static void close_peer(struct world *w)
{
	uv_close((uv_handle_t *)&w->raw, NULL);
	AWAIT(w, w->closed > 0);
}

static void expect_closed(struct world *w, int reason, const char *sentence)
{
	AWAIT(w, w->closed > 0);
	cr_expect_eq(w->reason, reason);
	cr_expect_str_eq(w->sentence, sentence);
}

CONNECTION_TEST(wire_connection, messages_come_and_go, .admit = true, .answer = true)
{
	for (size_t i = 0; i < w->beat_bytes; i++)
		raw_send(w, w->beat + i, 1);
	send_beat(w);
	AWAIT(w, w->messages >= 2 && w->received_bytes >= 2 * 4);
	cr_expect_eq(strncmp(fw_connection_peer(w->accepted), "127.0.0.1:", 10), 0);
	close_peer(w);
	cr_expect_eq(w->reason, 0);
}

/* A small frame would wait for the acknowledgement of the one before. */
CONNECTION_TEST(wire_connection, what_is_sent_leaves_at_once, 0)
{
	socklen_t length = sizeof(int);
	int fd, value = 0;

	cr_assert_eq(uv_fileno((uv_handle_t *)fw_connection_stream(w->accepted), &fd), 0);
	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
	cr_expect_eq(value, 1);
}

Test(wire_connection, garbage_ends_it_with_a_sentence, .timeout = 60)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *quoted;
	} peers[] = {
		{"GET / HTTP/1.0\r\n\r\n", 18, "\"GET / HTTP/1.0\""},
		{"hello", 5, "\"hello\""},
		{"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 of a long name", 53,
		 "\"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 o\""},
		{"\x16\4\1\2\0\1\0\1\xFC\3", 10, "the bytes 16 04 01 02 00 01 00 01"},
		{"\4\0\0\0\xFF\xFF\xFF\xFF", 8, "the bytes 04 00 00 00 ff ff ff ff"},
		{"\0\0\0\0", 4, "the bytes 00 00 00 00"},
	};

	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		struct world w = {0};
		char sentence[128];

		world_init(&w);
		raw_send(&w, peers[i].bytes, peers[i].size);
		AWAIT(&w, w.closed > 0);
		snprintf(sentence, sizeof(sentence), "it sent %s, so it is not a frag program",
			 peers[i].quoted);
		cr_expect_eq(w.reason, -EPROTOTYPE);
		cr_expect_str_eq(w.sentence, sentence);
		cr_expect_eq(w.messages, 0);
		world_fini(&w);
	}
}

/* A peer that has a key hears in its own language that there is none here. */
CONNECTION_TEST(wire_connection, a_peer_that_speaks_tls_gets_an_alert, 0)
{
	raw_send(w, "\x16\3\1\2\0\1\0\1\xFC\3", 10);
	AWAIT(w, w->received_bytes >= 7);
	cr_expect_eq(memcmp(w->received, "\x15\3\3\0\2\2\x46", 7), 0);
	uv_close((uv_handle_t *)&w->raw, NULL);
	expect_closed(w, -EKEYREJECTED,
		      "it has a key, and this side has none; give --key-file to both sides");
	cr_expect_eq(w->messages, 0);
}

Test(wire_connection, garbage_of_a_frag_program_ends_it_with_a_sentence, .timeout = 60)
{
	static const char *const texts[] = {"\xFF\xFF\xFF\xFF", "\4\0\0\0\xFF\xFF\xFF\xFF"};

	for (int i = 0; i < 2; i++) {
		struct world w = {.admit = true};

		world_init(&w);
		send_beat(&w);
		raw_send(&w, texts[i], i == 0 ? 4 : 8);
		AWAIT(&w, w.closed > 0);
		cr_expect_eq(w.reason, i == 0 ? -EMSGSIZE : -EBADMSG);
		cr_expect_neq(w.sentence[0], '\0');
		cr_expect_eq(w.messages, 1);
		world_fini(&w);
	}
}

CONNECTION_TEST(wire_connection, who_says_nothing_goes, .options = {.admit_ns = 30000000})
{
	expect_closed(w, -ETIMEDOUT, "the peer did not say who it is in time");
}

static void end_wait(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* Once it is admitted it may be silent. */
CONNECTION_TEST(wire_connection, who_was_admitted_stays, .admit = true,
		.options = {.admit_ns = 300000000})
{
	bool over = false;
	static uv_timer_t timer; /* until the loop has closed it */

	be_admitted(w);
	uv_timer_init(&w->loop, &timer);
	timer.data = &over;
	uv_timer_start(&timer, end_wait, 600, 0);
	AWAIT(w, over);
	cr_expect_eq(w->closed, 0, "%s", w->sentence);
	uv_close((uv_handle_t *)&timer, NULL);
	close_peer(w);
}

static const struct fw_users own_user = {.program = "driverd"};

/* Whose process it is says nothing of which program it is. */
CONNECTION_TEST(wire_connection, silence_of_an_own_process_ends_it,
		.options = {.admit_ns = 50000000, .is_accepted = true, .users = &own_user})
{
	expect_closed(w, -ETIMEDOUT, "the peer did not say who it is in time");
}

CONNECTION_TEST(wire_connection, a_message_that_does_not_end_ends_it, .admit = true,
		.options = {.frame_ns = 50000000})
{
	be_admitted(w);
	raw_send(w, w->beat, 3);
	expect_closed(w, -ETIMEDOUT, "the peer began a message and did not end it in time");
}

static void dribble(uv_timer_t *timer)
{
	struct world *w = timer->data;

	if (w->closed == 0)
		raw_send(w, "x", 1);
}

CONNECTION_TEST(wire_connection, a_message_that_dribbles_ends_it, .admit = true,
		.options = {.frame_ns = 50000000})
{
	static uv_timer_t timer; /* until the loop has closed it */

	be_admitted(w);
	raw_send(w, "\xFF\xFF\0\0", 4); /* it would take minutes */
	uv_timer_init(&w->loop, &timer);
	timer.data = w;
	uv_timer_start(&timer, dribble, 5, 5);
	expect_closed(w, -ETIMEDOUT, "the peer began a message and did not end it in time");
	uv_close((uv_handle_t *)&timer, NULL);
}

CONNECTION_TEST(wire_connection, who_does_not_read_is_dropped, .admit = true,
		.options = {.queue_bytes = 1 << 20})
{
	struct fw_message message = {.kind = FW_HOST_CREATE};
	uint8_t *source = fragi_calloc(1, 100000), *frame;
	size_t size, queued_max = 0;
	int r = 0;

	uv_read_stop((uv_stream_t *)&w->raw);
	message.create.source = source;
	message.create.source_bytes = 100000;
	for (int i = 0; i < 1000 && r == 0; i++) {
		cr_assert_eq(fw_encode(&message, &frame, &size), 0);
		r = fw_connection_send(w->accepted, frame, size);
		if (r == 0 && fw_connection_queued(w->accepted) > queued_max)
			queued_max = fw_connection_queued(w->accepted);
	}
	cr_expect_eq(r, -ENOBUFS);
	cr_expect_leq(queued_max, (size_t)1 << 20);
	cr_assert_eq(fw_encode(&message, &frame, &size), 0);
	cr_expect_eq(fw_connection_send(w->accepted, frame, size), -EPIPE);
	expect_closed(w, -ENOBUFS, "the peer does not read what is sent to it");
	fragi_free(source);
}

CONNECTION_TEST(wire_connection, the_last_words_arrive_before_the_end, .admit = true,
		.answer = true, .finish = true)
{
	for (int i = 0; i < 100; i++) /* more than is read before it ends */
		send_beat(w);
	AWAIT(w, w->raw_eof);
	cr_expect_eq(w->closed, 0, "it waits for the peer to close as well");
	cr_expect_eq(w->messages, 1);
	cr_expect_gt(w->received_bytes, (size_t)4);
	close_peer(w);
	cr_expect_eq(w->reason, -ECANCELED);
}

/* It may never have read what was sent to it. */
CONNECTION_TEST(wire_connection, one_whose_peer_does_not_close_says_so, .admit = true,
		.answer = true, .finish = true)
{
	send_beat(w);
	AWAIT(w, w->closed > 0);
	cr_expect_eq(w->reason, -ETIMEDOUT);
}

Test(wire_connection, one_that_never_started_closes_too, .timeout = 60)
{
	struct world w = {0};
	uv_loop_t loop;
	struct fw_connection *c;

	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(fw_connection_create(&loop, FW_STREAM_PIPE, &ops, &w, NULL, &c), 0);
	cr_expect_str_eq(fw_connection_peer(c), "?");
	fw_connection_close(c);
	fw_connection_close(c);
	cr_expect_eq(w.closed, 0, "it ends from the loop");
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_eq(w.closed, 1);
	cr_expect_eq(uv_loop_close(&loop), 0);
}
