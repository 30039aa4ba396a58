// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <workerd/reporter_link.c> /* over a connection that this file plays */

#include <base/alloc.h>
#include <netinet/in.h>

/* The crash reporter's connection: when it is made, made again and given up, and what it says. */
static FILE *out;
static struct link link_of;
static struct wrk_reporter_link wanted;
static const struct fw_connection_ops *ops;
static struct fw_connection *const one = (struct fw_connection *)&link_of.connect;
static int create_result, connect_result, start_result, creations;

int fw_connection_create(uv_loop_t *loop, enum fw_stream_kind kind,
			 const struct fw_connection_ops *own_ops, void *arg,
			 const struct fw_connection_options *options,
			 struct fw_connection **out_connection)
{
	cr_expect(loop != NULL && arg != NULL && kind == FW_STREAM_TCP);
	cr_expect(options->tls == wanted.tls && options->users == wanted.users);
	ops = own_ops;
	creations++;
	if (create_result == 0)
		*out_connection = one;
	return create_result;
}

uv_stream_t *fw_connection_stream(struct fw_connection *c)
{
	return (uv_stream_t *)(void *)c;
}

int uv_tcp_connect(uv_connect_t *request, uv_tcp_t *stream, const struct sockaddr *address,
		   uv_connect_cb callback)
{
	cr_expect(stream == (void *)one && address == wanted.driver && callback == on_connect);
	cr_expect_not_null(request->data);
	fprintf(out, "  connects\n");
	return connect_result;
}

int fw_connection_start(struct fw_connection *c)
{
	cr_expect_eq(c, one);
	fprintf(out, "  starts\n");
	return start_result;
}

void fw_connection_admit(struct fw_connection *c)
{
	cr_expect_eq(c, one);
	fprintf(out, "  admits the driver\n");
}

int fw_connection_send(struct fw_connection *c, uint8_t *frame, size_t size)
{
	struct fw_message *message;

	cr_expect_eq(c, one);
	cr_assert_eq(fw_decode(frame + 4, size - 4, &message, NULL), 0);
	fprintf(out, "  sends %s, number %d, as reporter %d of session %d, version %s\n",
		fw_kind_name(message->kind), (int)message->seq,
		message->hello.role == FW_ROLE_REPORTER, (int)message->hello.session,
		message->hello.version);
	cr_expect(message->hello.major == FW_PROTOCOL_MAJOR &&
		  message->hello.minor == FW_PROTOCOL_MINOR);
	cr_expect_eq(memcmp(message->hello.secret, wanted.secret, FW_SECRET_BYTES), 0);
	fw_message_free(message);
	fragi_free(frame);
	return 0;
}

void fw_connection_finish(struct fw_connection *c)
{
	cr_expect_eq(c, one);
	fprintf(out, "  finishes\n");
}

void fw_connection_close(struct fw_connection *c)
{
	cr_expect_eq(c, one);
	fprintf(out, "  closes\n");
}

static void on_counts(void *arg, struct fw_connection *connection)
{
	cr_expect(arg == &wanted && connection == one);
	fprintf(out, "  counts\n");
}

static void begin(const char *what, int64_t within_ms)
{
	fprintf(out, "%s\n", what);
	create_result = connect_result = start_result = 0;
	wanted.until_ns = fragi_now_ns() + within_ms * 1000000;
	link_of = (struct link){.wanted = &wanted};
	cr_assert_eq(uv_loop_init(&link_of.loop), 0);
	uv_timer_init(&link_of.loop, &link_of.tick);
	link_of.tick.data = &link_of;
}

static void finish(void)
{
	bool is_closing = uv_is_closing((uv_handle_t *)&link_of.tick);

	fprintf(out, "  connection %d, over %d, ends %d\n", link_of.connection != NULL,
		link_of.is_over, is_closing);
	if (!is_closing)
		uv_close((uv_handle_t *)&link_of.tick, NULL);
	uv_run(&link_of.loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&link_of.loop), 0);
}

static void meet(const char *what, enum fw_kind kind)
{
	struct fw_message *message;
	size_t bytes;

	begin(what, 60000);
	on_tick(&link_of.tick);
	on_connect(&link_of.connect, 0);
	ops->ready(one, &link_of);
	cr_assert_eq(fw_message_copy(&(struct fw_message){.kind = kind}, &message, &bytes), 0);
	ops->message(one, message, &link_of);
	ops->closed(one, 0, "", &link_of);
	finish();
}

Test(reporter_link, lives)
{
	static const uint8_t secret[FW_SECRET_BYTES] = {1, 2, 3};
	static const struct sockaddr_in driver;
	static const struct fw_users users = {.program = "workerd"};
	int64_t before;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	wanted = (struct wrk_reporter_link){.driver = (const struct sockaddr *)&driver,
					    .session = 7,
					    .secret = secret,
					    .tls = (struct fw_tls *)&creations,
					    .users = &users,
					    .counts = on_counts,
					    .arg = &wanted};
	meet("welcome", FW_WELCOME);
	meet("refused", FW_REFUSED);
	begin("no memory for a connection", 60000);
	create_result = -ENOMEM;
	on_tick(&link_of.tick);
	create_result = 0;
	on_tick(&link_of.tick);
	on_tick(&link_of.tick); /* it waits */
	finish();
	begin("no route", 60000);
	connect_result = -ENETUNREACH;
	on_tick(&link_of.tick);
	finish();
	begin("nobody listens", 60000);
	on_tick(&link_of.tick);
	on_connect(&link_of.connect, -ECONNREFUSED);
	ops->closed(one, -ECONNREFUSED, "", &link_of);
	finish();
	begin("it cannot be started", 60000);
	start_result = -ENOMEM;
	on_tick(&link_of.tick);
	on_connect(&link_of.connect, 0);
	finish();
	begin("it ends before welcome, and is made again", 60000);
	on_tick(&link_of.tick);
	ops->closed(one, -ECONNRESET, "", &link_of);
	on_connect(&link_of.connect, -ECANCELED);
	on_tick(&link_of.tick);
	finish();
	begin("no memory for its first message", 60000);
	on_tick(&link_of.tick);
	fragi_alloc_fail_after(0, 1);
	ops->ready(one, &link_of);
	(void)fragi_alloc_fail_off();
	finish();
	begin("late, and connected", 0);
	link_of.connection = one;
	on_tick(&link_of.tick);
	finish();
	begin("late, and not connected", 0);
	on_tick(&link_of.tick);
	finish();
	creations = 0;
	create_result = -ENOMEM;
	before = fragi_now_ns();
	wanted.until_ns = before + 50000000;
	wrk_reporter_link_run(&wanted);
	cr_expect_gt(creations, 0);
	cr_expect_geq(fragi_now_ns(), wanted.until_ns);
	fclose(out);
	expected_compare("worker/reporter_link", text);
	free(text);
}
