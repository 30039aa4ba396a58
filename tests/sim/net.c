// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/*
 * The control network. Frames of one connection and direction stay in order; those of different
 * ones overtake each other as their delays fall. A stalled link holds everything; when it runs
 * again it delivers what it held, or resets. A process that dies closes its ends; a node that dies
 * says nothing. Frames come in pieces of any size, which the reader of proto/wire puts together; a
 * connection that breaks may lose the end of one.
 */
#define HELLO_LIMIT_NS (2 * SIM_S)
#define PIECES_MAX 4

static int64_t latency(struct sim *sim, const struct sim_connection *connection)
{
	int64_t base = connection->worker < SIM_WORKERS_MAX
			       ? sim->workers[connection->worker].latency_ns
			       : 100000;

	return sim_between(sim, base / 2, base + base / 2);
}

/* Until when frames to that end are held; 0: not at all. */
static int64_t held_until(const struct sim *sim, const struct sim_connection *connection,
			  uint32_t end)
{
	return connection->worker < SIM_WORKERS_MAX
		       ? sim->workers[connection->worker].stalled_until_ns[end]
		       : 0;
}

static struct sim_process *process_at(struct sim *sim, const struct sim_connection *connection,
				      uint32_t end)
{
	if (end == 1)
		return &sim->driver.process;
	return !connection->kept && connection->worker < SIM_WORKERS_MAX
		       ? &sim->workers[connection->worker].process
		       : NULL;
}

static void schedule(struct sim *sim, uint32_t index, uint32_t end)
{
	struct sim_pipe *pipe = &sim->connections[index].to[end];

	if (pipe->scheduled || pipe->first == NULL)
		return;
	pipe->scheduled = true;
	sim_put(sim, pipe->first->at_ns, SIM_EV_CONNECTION, index, end, 0);
}

static void put(struct sim *sim, uint32_t index, uint32_t to, enum sim_frame_kind kind,
		uint8_t *bytes, size_t size)
{
	struct sim_connection *connection = &sim->connections[index];

	sim_pipe_put(sim, &connection->to[to], sim->now_ns + latency(sim, connection), kind, bytes,
		     size);
	connection->to[to].last->sent_ns = sim->now_ns;
	connection->to[to].last->answers_ns = connection->beat_ns;
	schedule(sim, index, to);
}

/* What is under way to that end, and what it has read of an unfinished frame. */
static void forget(struct sim_connection *connection, uint32_t end)
{
	sim_pipe_clear(&connection->to[end]);
	fw_reader_fini(&connection->reader[end]);
}

void sim_connection_fini(struct sim_connection *connection)
{
	forget(connection, 0);
	forget(connection, 1);
}

struct sim_connection *sim_connection_new(struct sim *sim, uint32_t worker)
{
	struct sim_connection *connection;

	if (sim->connection_count == SIM_CONNECTIONS_MAX) {
		sim_fail(sim, "bounded", "%u connections were opened", sim->connection_count);
		sim->connection_count--;
	}
	connection = &sim->connections[sim->connection_count++];
	sim_connection_fini(connection);
	*connection = (struct sim_connection){.worker = worker, .open = {true, false}};
	for (int end = 0; end < 2; end++)
		fw_reader_init(&connection->reader[end], FW_FRAME_MAX);
	return connection;
}

void sim_connect(struct sim *sim, uint32_t worker, uint64_t number)
{
	struct sim_connection *connection = sim_connection_new(sim, worker);
	uint32_t index = sim->connection_count - 1;

	connection->number = number;
	connection->generation = sim->workers[worker].generation;
	sim->workers[worker].connection = index;
	sim_put(sim, sim->now_ns + latency(sim, connection), SIM_EV_SYN, index, 0, 0);
}

/*
 * The worker learns how its attempt went; the answer takes its time. While the driver is away,
 * another user's process may have its port; a worker with --once would end by that.
 */
static void answer(struct sim *sim, const struct sim_connection *connection, bool connected)
{
	struct wrk_event event = {.kind = connected ? WRK_EVENT_CONNECTED
						    : WRK_EVENT_CONNECT_FAILED,
				  .connection = connection->number,
				  .text = connected ? "127.0.0.1" : "connection refused"};

	if (!connected && !sim->once && sim_chance(sim, 8)) {
		event.failure = FRAGI_FAILURE_USER_REFUSED;
		event.text = "a process of another user listens there";
	}
	if (connection->of == 0)
		sim_worker_raise(sim, connection->worker, &event);
	else if (connected)
		sim_reporter_connected(sim, (uint32_t)(connection - sim->connections));
}

void sim_on_syn(struct sim *sim, const struct sim_event *event)
{
	struct sim_connection *connection = &sim->connections[event->a];
	int64_t until = held_until(sim, connection, 1);

	if (!connection->open[0])
		return;
	if (until < held_until(sim, connection, 0))
		until = held_until(sim, connection, 0);
	if (until > sim->now_ns) { /* it is sent again */
		sim_put_back(sim, *event, until + sim_between(sim, 0, 200 * SIM_MS));
		return;
	}
	if (!sim->driver.process.alive) {
		sim_pipe_put(sim, &connection->to[0], sim->now_ns + latency(sim, connection),
			     SIM_FRAME_END, NULL, 0);
		schedule(sim, event->a, 0);
		return;
	}
	connection->incarnation = sim->driver.incarnation;
	connection->open[1] = true;
	sim_put(sim, sim->now_ns + HELLO_LIMIT_NS, SIM_EV_STRANGER, event->a, 0,
		connection->incarnation);
	put(sim, event->a, 0, SIM_FRAME_DATA, NULL, 0); /* its SYN is answered */
}

void sim_on_stranger(struct sim *sim, const struct sim_event *event)
{
	struct sim_connection *connection = &sim->connections[event->a];

	if (!connection->open[1] || connection->admitted || connection->incarnation != event->c)
		return;
	sim_print(sim, "driver", "closes connection %u, which did not say HELLO", event->a);
	sim_close(sim, event->a, 1, false);
}

void sim_send(struct sim *sim, uint32_t index, uint32_t to, uint8_t *frame, size_t size)
{
	uint8_t *rest = frame, *piece;

	sim_note_bytes(sim, frame, size);
	for (int i = 1; i < PIECES_MAX && size > 1 && sim_chance(sim, 4); i++) {
		size_t length = 1 + (size_t)(sim_random(sim) % (size - 1));

		piece = malloc(length);
		if (piece == NULL)
			abort();
		memcpy(piece, rest, length);
		put(sim, index, to, SIM_FRAME_DATA, piece, length);
		rest += length;
		size -= length;
	}
	memmove(frame, rest, size);
	put(sim, index, to, SIM_FRAME_DATA, frame, size);
}

void sim_half_close(struct sim *sim, uint32_t index, uint32_t end)
{
	if (sim->connections[index].open[!end])
		put(sim, index, !end, SIM_FRAME_END, NULL, 0);
}

void sim_close(struct sim *sim, uint32_t index, uint32_t end, bool silent)
{
	struct sim_connection *connection = &sim->connections[index];

	if (!connection->open[end])
		return;
	connection->open[end] = false;
	forget(connection, end);
	if (!silent && connection->open[!end])
		put(sim, index, !end, SIM_FRAME_END, NULL, 0);
}

void sim_reset(struct sim *sim, uint32_t index)
{
	struct sim_connection *connection = &sim->connections[index];

	for (uint32_t end = 0; end < 2; end++) {
		if (!connection->open[end])
			continue;
		connection->owes_leave = false; /* it may be lost */
		sim_pipe_clear(&connection->to[end]);
		put(sim, index, end, SIM_FRAME_END, NULL, 0);
	}
}

/* The end of the stream has come. */
static void ended(struct sim *sim, uint32_t index, uint32_t end)
{
	struct sim_connection *connection = &sim->connections[index];
	struct wrk_event lost = {.kind = WRK_EVENT_DRIVER_LOST,
				 .connection = connection->number,
				 .text = "it closed"};
	struct drv_event closed = {
		.kind = DRV_EVENT_CLOSED, .connection = index + 1, .text = "it closed"};

	if (end == 0)
		sim_promise_closed(sim, connection);
	connection->open[end] = false;
	forget(connection, end);
	if (connection->open[!end]) /* what is still sent meets nobody */
		put(sim, index, !end, SIM_FRAME_END, NULL, 0);
	if (connection->of != 0 && end == 0)
		sim_reporter_ended(sim, index);
	if (connection->kept && end == 0)
		return;
	if (end == 0 && connection->worker < SIM_WORKERS_MAX) {
		sim->workers[connection->worker].connection = SIM_CONNECTIONS_MAX;
		if (connection->connected)
			sim_worker_raise(sim, connection->worker, &lost);
		else
			answer(sim, connection, false);
	} else if (end == 1 && connection->admitted) {
		sim_limit_came(sim, NULL);
		sim_driver_step(sim, &closed);
	}
}

static void read_frame(struct sim *sim, uint32_t index, uint32_t end, const uint8_t *bytes,
		       size_t size)
{
	struct sim_connection *connection = &sim->connections[index];
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message;

	connection->heard_ns[end] = sim->now_ns;
	if (fw_decode(bytes, size, &message, &err) < 0) {
		sim_fail(sim, "codec", "a frame that was sent cannot be read: %s", err.text);
		return;
	}
	if (end == 1) {
		if (message->kind == FW_BEAT || message->kind == FW_HELLO)
			connection->beat_ns = connection->sent_ns;
		if (message->kind != FW_BEAT)
			sim_print(sim, "driver", "<- %s: %s host %u epoch %llu",
				  sim_worker_name(sim, connection->worker),
				  fw_kind_name(message->kind), message->host,
				  (unsigned long long)message->epoch);
		sim_limit_came(sim, message->kind != FW_LEAVE ? message : NULL);
		sim_restart_heard(sim, connection, message);
		if (message->kind == FW_HOST_EXIT) {
			sim_verdict_exit(sim, connection, message);
			sim_promise_exit_heard(sim, connection, message);
		}
		sim_driver_step(sim, &(struct drv_event){.kind = DRV_EVENT_MESSAGE,
							 .connection = index + 1,
							 .peer = "10.0.0.1:4711",
							 .message = message});
		return;
	}
	if (connection->of != 0)
		sim_reporter_message(sim, index, message);
	if (connection->worker < SIM_WORKERS_MAX && !connection->kept) {
		if (message->kind != FW_BEAT)
			sim_print(sim, sim_worker_name(sim, connection->worker),
				  "<- driver: %s host %u epoch %llu", fw_kind_name(message->kind),
				  message->host, (unsigned long long)message->epoch);
		sim_promise_heard(sim, connection, message);
		sim_worker_raise(sim, connection->worker,
				 &(struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
						     .connection = connection->number,
						     .message = message});
	}
	fw_message_free(message);
}

static void arrive(struct sim *sim, uint32_t index, uint32_t end, const struct sim_frame *piece)
{
	struct sim_connection *connection = &sim->connections[index];
	struct fw_reader *reader = &connection->reader[end];
	struct frag_err err = FRAG_ERR_INIT;
	const uint8_t *bytes;
	size_t size;
	int r = 0;

	if (end == 0 && !connection->connected && connection->worker < SIM_WORKERS_MAX) {
		connection->heard_ns[end] = sim->now_ns;
		connection->connected = true;
		answer(sim, connection, true);
		return;
	}
	if (piece->bytes == NULL)
		return;
	connection->sent_ns = piece->sent_ns;
	connection->answered_ns = piece->answers_ns;
	if (fw_reader_feed(reader, piece->bytes, piece->size, sim->now_ns) < 0)
		abort();
	while (connection->open[end] && (r = fw_reader_next(reader, &bytes, &size, &err)) > 0)
		read_frame(sim, index, end, bytes, size);
	if (r < 0)
		sim_fail(sim, "codec", "a stream that was sent cannot be read: %s", err.text);
}

void sim_on_connection(struct sim *sim, const struct sim_event *event)
{
	struct sim_connection *connection = &sim->connections[event->a];
	struct sim_pipe *pipe = &connection->to[event->b];
	const struct sim_process *process = process_at(sim, connection, event->b);
	int64_t until = held_until(sim, connection, event->b);
	struct sim_frame *frame;

	if (process != NULL && process->stopped_until_ns > until)
		until = process->stopped_until_ns;
	if (pipe->first != NULL && until > sim->now_ns) {
		sim_put_back(sim, *event, until);
		return;
	}
	pipe->scheduled = false;
	if (pipe->first != NULL && pipe->first->at_ns > sim->now_ns) {
		schedule(sim, event->a, event->b);
		return;
	}
	frame = sim_pipe_take(pipe);
	schedule(sim, event->a, event->b);
	if (frame == NULL)
		return;
	if (connection->open[event->b]) {
		if (frame->kind == SIM_FRAME_END)
			ended(sim, event->a, event->b);
		else
			arrive(sim, event->a, event->b, frame);
	}
	free(frame->bytes);
	free(frame);
}

/* A worker's links run again. */
void sim_heal(struct sim *sim, uint32_t index)
{
	struct sim_worker *worker = &sim->workers[index];

	if (worker->stalled_until_ns[0] > sim->now_ns || worker->stalled_until_ns[1] > sim->now_ns)
		return;
	if (!worker->reset_at_heal)
		return;
	worker->reset_at_heal = false;
	for (uint32_t i = 0; i < sim->connection_count; i++)
		if (sim->connections[i].worker == index &&
		    (sim->connections[i].open[0] || sim->connections[i].open[1]))
			sim_reset(sim, i);
}
