// SPDX-License-Identifier: Apache-2.0
#include <workerd/reporter_link.h>

#include <string.h>

#include <base/stamp.h>

#define TICK_MS 20 /* between two attempts, and between two looks at the clock */

struct link {
	const struct wrk_reporter_link *wanted;
	uv_loop_t loop;
	uv_timer_t tick;
	uv_connect_t connect;
	struct fw_connection *connection; /* NULL: none at the moment */
	bool is_over;                     /* no further one is tried */
};

static void send_hello(struct link *link)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};
	uint8_t *frame;
	size_t size;

	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = FW_PROTOCOL_MINOR,
					  .role = FW_ROLE_REPORTER,
					  .session = link->wanted->session,
					  .version = FRAG_VERSION};
	memcpy(message.hello.secret, link->wanted->secret, FW_SECRET_BYTES);
	if (fw_encode(&message, &frame, &size) == 0)
		(void)fw_connection_send(link->connection, frame, size);
	else
		fw_connection_close(link->connection);
	explicit_bzero(message.hello.secret, FW_SECRET_BYTES);
}

static void on_message(struct fw_connection *connection, struct fw_message *message, void *arg)
{
	struct link *link = arg;

	link->is_over = true;
	if (message->kind == FW_WELCOME) {
		link->wanted->counts(link->wanted->arg, connection);
		fw_connection_finish(connection);
	} else {
		fw_connection_close(connection);
	}
	fw_message_free(message);
}

static void on_closed(struct fw_connection *connection, int reason, const char *sentence, void *arg)
{
	struct link *link = arg;

	(void)connection;
	(void)reason;
	(void)sentence;
	link->connection = NULL;
	if (link->is_over)
		uv_close((uv_handle_t *)&link->tick, NULL);
}

static void on_ready(struct fw_connection *connection, void *arg)
{
	fw_connection_admit(connection);
	send_hello(arg);
}

static const struct fw_connection_ops connection_ops = {on_message, on_closed, on_ready};

static void on_connect(uv_connect_t *request, int status)
{
	struct link *link = request->data;

	if (link->connection == NULL)
		return;
	if (status == 0)
		status = fw_connection_start(link->connection);
	if (status < 0) {
		link->is_over = true;
		fw_connection_close(link->connection);
	}
}

static void try_driver(struct link *link)
{
	const struct fw_connection_options options = {.tls = link->wanted->tls,
						      .users = link->wanted->users};

	if (fw_connection_create(&link->loop, FW_STREAM_TCP, &connection_ops, link, &options,
				 &link->connection) < 0)
		return; /* memory may be there at the next tick */
	link->connect.data = link;
	if (uv_tcp_connect(&link->connect,
			   (uv_tcp_t *)(void *)fw_connection_stream(link->connection),
			   link->wanted->driver, on_connect) < 0)
		fw_connection_close(link->connection);
}

static void on_tick(uv_timer_t *timer)
{
	struct link *link = timer->data;
	bool is_late = fragi_now_ns() >= link->wanted->until_ns;

	if (link->connection == NULL && !is_late) {
		try_driver(link);
		return;
	}
	if (!is_late)
		return;
	link->is_over = true;
	if (link->connection != NULL)
		fw_connection_close(link->connection);
	else
		uv_close((uv_handle_t *)timer, NULL);
}

void wrk_reporter_link_run(const struct wrk_reporter_link *wanted)
{
	struct link link = {.wanted = wanted};

	if (uv_loop_init(&link.loop) < 0)
		return;
	uv_timer_init(&link.loop, &link.tick);
	link.tick.data = &link;
	uv_timer_start(&link.tick, on_tick, 0, TICK_MS);
	uv_run(&link.loop, UV_RUN_DEFAULT);
	uv_loop_close(&link.loop);
}
