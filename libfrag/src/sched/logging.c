// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <base/alloc.h>
#include <res/data_logger.h>
#include <sched/logging.h>

/*
 * What an operator emits is logged in the emit. What it receives is logged when it next emits, or
 * when compute returns: until then the tick holds its messages, and the flow's `taken` has noted
 * from which flow each of them came. So the functions that receive need not know about loggers.
 */

/* A port, or a flow of a multi-receiver input, and the loggers that want it. */
struct point {
	struct fragi_log_point point; /* first: loggers keep its address */
	struct fragi_data_logger **loggers;
	uint32_t logger_count;
};

/* One end of a flow that is received from. */
struct source {
	struct fragi_logged *logged;
	const struct point *point;
	struct fragi_rx *rx;
	const struct fragi_notify *taken; /* what the flow had before */
	struct fragi_notify mine;
};

struct fragi_logged {
	struct point **ports; /* [port]: of outputs and of plain inputs; NULL: nobody wants it */
	struct source *sources;
	uint32_t source_count;
	struct frag_tick *tick_of; /* the exec's */
	/* of the tick */
	uint32_t seen;             /* received messages that were logged, or need not be */
	const struct point **came; /* [message]: from where; NULL: it is not logged */
	uint32_t came_capacity;
	bool lost; /* a queue whose policy is raise was full */
};

static void log_message(struct fragi_logged *logged, const struct frag_tick *tick,
			const struct point *point, const struct frag_message *message)
{
	for (uint32_t i = 0; i < point->logger_count; i++) {
		if (fragi_data_logger_log(point->loggers[i], &point->point, message) == 0 ||
		    logged->lost)
			continue;
		logged->lost = true;
		frag_op_fail(
			tick->op, -ENOBUFS,
			"data logger %s: its queue is full at %s, and its policy is raise; let it have more room, or write reject",
			frag_resource_name(point->loggers[i]->resource), point->point.id);
	}
}

/* A message of the source is about to take its place among those that the tick has received. */
static void note_source(const struct source *source, const struct frag_tick *tick)
{
	struct fragi_logged *logged = source->logged;
	uint32_t wider = tick->received_count < tick->received_capacity
				 ? tick->received_capacity
				 : 2 * tick->received_capacity;
	const struct point **came;

	if (tick->received_count >= logged->came_capacity) {
		came = fragi_realloc(logged->came, wider * sizeof(*came));
		if (came == NULL)
			return;
		for (uint32_t i = logged->came_capacity; i < wider; i++)
			came[i] = NULL;
		logged->came = came;
		logged->came_capacity = wider;
	}
	logged->came[tick->received_count] = source->point;
}

static void on_taken(void *arg)
{
	struct source *source = arg;

	fragi_notify_call(source->taken);
	note_source(source, source->logged->tick_of);
}

void fragi_logging_given(struct frag_tick *tick, const struct fragi_rx *rx)
{
	struct fragi_logged *logged = tick->op->logged;

	for (uint32_t i = 0; logged->sources != NULL && i < logged->source_count; i++)
		if (logged->sources[i].rx == rx)
			note_source(&logged->sources[i], tick);
}

static void log_received(struct fragi_logged *logged, const struct frag_tick *tick)
{
	for (; logged->seen < tick->received_count; logged->seen++) {
		const struct point *point =
			logged->seen < logged->came_capacity ? logged->came[logged->seen] : NULL;

		if (point == NULL)
			continue;
		logged->came[logged->seen] = NULL;
		log_message(logged, tick, point, tick->received[logged->seen]);
	}
}

static struct frag_message *emit(struct frag_tick *tick, uint32_t port,
				 struct frag_message *message)
{
	struct fragi_logged *logged = tick->op->logged;

	message = fragi_inside_emit(FRAGI_AROUND_LOGGING, tick, port, message);
	if (message == NULL)
		return NULL;
	log_received(logged, tick);
	if (logged->ports[port] != NULL) {
		fragi_message_share(message);
		log_message(logged, tick, logged->ports[port], message);
	}
	return message;
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->op->logged != NULL;
}

/* What a tick has received that is pending now is logged at once. */
static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_logged *logged = tick->op->logged;
	int r;

	if (!((struct fragi_exec *)tick)->pending) {
		logged->seen = 0;
		logged->lost = false;
	}
	r = fragi_inside_compute(FRAGI_AROUND_LOGGING, self, tick);
	log_received(logged, tick);
	return logged->lost && r >= 0 ? -ENOBUFS : r;
}

const struct fragi_around fragi_around_logging = {
	.is_wanted = is_wanted,
	.compute = compute,
	.emit = emit,
};

/* Begin and end. */

/*
 * Makes the point of a port, or of one of its flows (index >= 0). *out is NULL when no logger wants
 * it.
 */
static int point_create(struct frag_op *op, uint32_t port, int64_t index, struct point **out)
{
	struct frag_fragment *fragment = op->fragment;
	struct fragi_arena *arena = &fragment->arena;
	struct point *point = fragi_arena_alloc(arena, sizeof(*point));

	*out = NULL;
	if (point == NULL)
		return -ENOMEM;
	*point = (struct point){
		.point = {.dir = op->ports[port].dir,
			  .id = index < 0 ? fragi_arena_printf(arena, "%s.%s", op->subject,
							       op->ports[port].name)
					  : fragi_arena_printf(arena, "%s.%s:%u", op->subject,
							       op->ports[port].name,
							       (uint32_t)index)},
		.loggers = fragi_arena_alloc(arena, fragment->logger_count *
							    sizeof(struct fragi_data_logger *)),
	};
	if (point->point.id == NULL || point->loggers == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < fragment->logger_count; i++) {
		struct fragi_data_logger *logger = fragi_data_logger_of(fragment->loggers[i]);

		if (fragi_scope_holds(logger->scope, op->scope) &&
		    fragi_data_logger_wants(logger, &point->point))
			point->loggers[point->logger_count++] = logger;
	}
	if (point->logger_count > 0)
		*out = point;
	return 0;
}

static bool is_multi(const struct fragi_port *port)
{
	return port->dir == FRAG_IN && (port->flags & FRAG_PORT_MULTI) != 0;
}

/* Execution messages are not logged: they carry nothing. */
int fragi_logging_install(struct frag_op *op)
{
	struct fragi_arena *arena = &op->fragment->arena;
	struct fragi_logged *logged;
	bool any = false;

	if (op->fragment->logger_count == 0)
		return 0;
	logged = fragi_arena_alloc(arena, sizeof(*logged));
	if (logged == NULL)
		return -ENOMEM;
	*logged = (struct fragi_logged){
		.ports = fragi_arena_alloc(arena, (op->port_count + 1) * sizeof(struct point *)),
	};
	if (logged->ports == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->port_count; i++) {
		logged->ports[i] = NULL;
		if (fragi_port_is_execution(op->ports[i].name))
			continue;
		if (point_create(op, i, -1, &logged->ports[i]) < 0)
			return -ENOMEM;
		any |= logged->ports[i] != NULL;
		/* Its flows have ids of their own, and not all of them are known yet. */
		any |= is_multi(&op->ports[i]);
	}
	if (!any)
		return 0;
	op->logged = logged;
	return 0;
}

/* Watches what is taken from one flow, if a logger wants that. */
static int watch(struct frag_op *op, struct source *source, uint32_t port, uint32_t flow)
{
	struct fragi_rx *rx = op->exec->tick.ports[port].rx[flow];
	struct point *point = op->logged->ports[port];

	if (is_multi(&op->ports[port]) && point_create(op, port, flow, &point) < 0)
		return -ENOMEM;
	if (point == NULL)
		return 0;
	*source = (struct source){.logged = op->logged,
				  .point = point,
				  .rx = rx,
				  .taken = rx->taken,
				  .mine = {on_taken, source}};
	/* Of an input with timing a flow is emptied between ticks: timing.c says what it gives. */
	if (op->ports[port].timing != NULL)
		return 0;
	rx->taken = &source->mine;
	/* The receiver is to call `taken` before it notes the message, whatever the policy. */
	rx->shared = true;
	return 0;
}

int fragi_logging_bind(struct frag_op *op)
{
	struct fragi_exec *exec = op->exec;
	struct fragi_logged *logged = op->logged;
	uint32_t *count;

	if (logged == NULL)
		return 0;
	logged->tick_of = &exec->tick;
	logged->sources = fragi_calloc(exec->rx_count + 1, sizeof(*logged->sources));
	if (logged->sources == NULL)
		return -ENOMEM;
	count = &logged->source_count;
	*count = 0;
	for (uint32_t i = 0; i < op->port_count; i++) {
		if (op->ports[i].dir != FRAG_IN || fragi_port_is_execution(op->ports[i].name))
			continue;
		for (uint32_t k = 0; k < exec->tick.ports[i].count; k++)
			if (watch(op, &logged->sources[(*count)++], i, k) < 0)
				return -ENOMEM;
	}
	return 0;
}

void fragi_logging_release(struct frag_op *op)
{
	struct fragi_exec *exec = op->exec;
	struct fragi_logged *logged = op->logged;

	if (logged == NULL || exec == NULL)
		return;
	for (uint32_t i = 0; logged->sources != NULL && i < exec->rx_count; i++)
		if (logged->sources[i].rx != NULL)
			logged->sources[i].rx->taken = logged->sources[i].taken;
	fragi_free(logged->sources);
	fragi_free(logged->came);
	logged->sources = NULL;
	logged->came = NULL;
	logged->came_capacity = 0;
}
