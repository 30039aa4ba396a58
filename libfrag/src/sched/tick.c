// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/message.h>
#include <data/metadata.h>
#include <sched/exec.h>

/* Receive. */

static struct fragi_exec_port *port_in(struct frag_tick *tick, uint32_t port)
{
	if (__builtin_expect(port >= tick->port_count || tick->ports[port].dir != FRAG_IN, 0))
		return NULL;
	return &tick->ports[port];
}

/* Makes room for one more received message. */
static __attribute__((noinline)) int received_grow(struct frag_tick *tick)
{
	uint32_t capacity = tick->received_capacity * 2;
	struct frag_message **received;

	if (capacity > FRAGI_RECEIVED_MAX)
		return -ENOBUFS;
	received = fragi_realloc(tick->received, capacity * sizeof(struct frag_message *));
	if (received == NULL)
		return -ENOMEM;
	tick->received = received;
	tick->received_capacity = capacity;
	return 0;
}

static __attribute__((noinline)) int metadata_merge(struct frag_tick *tick,
						    const struct frag_message *message)
{
	const char *key = NULL;
	bool first = !tick->metadata_used;
	int r;

	if (!tick->op->metadata)
		return 0;
	r = fragi_metadata_merge(tick->metadata, message->metadata, &key);
	if (r < 0)
		return frag_err_set(
			&tick->op->err, r,
			"received metadata clashes at key \"%s\"; set metadata_policy to update or "
			"reject, or give the keys different names",
			key != NULL ? key : "");
	tick->metadata_used = true;
	tick->metadata_of = first ? message : NULL;
	return 0;
}

/*
 * The oldest message of rx, borrowed until the tick ends; NULL: none, or *r says why not. Inlined so that no
 * caller's local has to lie in memory.
 */
static inline struct frag_message *receive_from(struct frag_tick *tick, struct fragi_rx *rx, int *r)
{
	struct frag_message *message;

	if (__builtin_expect(tick->received_count == tick->received_capacity, 0)) {
		*r = received_grow(tick);
		if (*r < 0)
			return NULL;
	}
	message = fragi_rx_take(rx, tick->stamp);
	if (message == NULL) {
		*r = -ENOMSG;
		return NULL;
	}
	*r = 0;
	tick->received[tick->received_count++] = message;
	if (__builtin_expect(!message->shared, 0))
		fragi_message_share(message);
	if (__builtin_expect(message->metadata != NULL, 0))
		*r = metadata_merge(tick, message);
	return message;
}

/* The next message of a plain input with several flows: each has its turn. */
static __attribute__((noinline)) struct frag_message *receive_in_turn(struct frag_tick *tick,
								      struct fragi_exec_port *in, int *r)
{
	struct frag_message *message = NULL;

	*r = -ENOMSG;
	for (uint32_t n = in->count; n > 0 && *r == -ENOMSG; n--) {
		message = receive_from(tick, in->rx[in->next], r);
		in->next = in->next + 1 < in->count ? in->next + 1 : 0;
	}
	return message;
}

static inline struct frag_message *receive(struct frag_tick *tick, uint32_t port, int *r)
{
	struct fragi_exec_port *in = port_in(tick, port);
	struct frag_message *message = NULL;

	*r = -EINVAL;
	if (__builtin_expect(in == NULL, 0))
		return NULL;
	if (__builtin_expect(in->in_turn, 0))
		return receive_in_turn(tick, in, r);
	*r = -ENOMSG;
	for (uint32_t i = 0; i < in->count && *r == -ENOMSG; i++)
		message = receive_from(tick, in->rx[i], r);
	return message;
}

static inline struct frag_message *receive_typed(struct frag_tick *tick, uint32_t port,
						 const struct frag_type *type, int *r)
{
	struct frag_message *message = receive(tick, port, r);

	if (__builtin_expect(*r == 0 && (message->type != type || type == NULL), 0))
		*r = -EPROTOTYPE;
	return message;
}

int frag_tick_receive(struct frag_tick *tick, uint32_t port, const struct frag_message **out_message)
{
	int r;
	const struct frag_message *message = receive(tick, port, &r);

	if (r == 0)
		*out_message = message;
	return r;
}

int frag_tick_receive_value(struct frag_tick *tick, uint32_t port, const struct frag_type *type,
			    const void **out_value, size_t *out_size)
{
	int r;
	const struct frag_message *message = receive_typed(tick, port, type, &r);

	if (r < 0)
		return r;
	*out_value = message->value;
	if (out_size != NULL)
		*out_size = message->value_size;
	return 0;
}

int frag_tick_receive_bool(struct frag_tick *tick, uint32_t port, int *out_value)
{
	int r;
	const struct frag_message *message = receive_typed(tick, port, &frag_type_bool, &r);

	if (r == 0)
		*out_value = *(const bool *)message->value;
	return r;
}

int frag_tick_receive_i64(struct frag_tick *tick, uint32_t port, int64_t *out_value)
{
	int r;
	const struct frag_message *message = receive_typed(tick, port, &frag_type_i64, &r);

	if (__builtin_expect(r == 0, 1))
		*out_value = *(const int64_t *)message->value;
	return r;
}

int frag_tick_receive_f64(struct frag_tick *tick, uint32_t port, double *out_value)
{
	int r;
	const struct frag_message *message = receive_typed(tick, port, &frag_type_f64, &r);

	if (__builtin_expect(r == 0, 1))
		*out_value = *(const double *)message->value;
	return r;
}

int frag_tick_receive_string(struct frag_tick *tick, uint32_t port, const char **out_value)
{
	int r;
	const struct frag_message *message = receive_typed(tick, port, &frag_type_string, &r);

	if (r == 0)
		*out_value = message->value;
	return r;
}

int frag_tick_receive_all(struct frag_tick *tick, uint32_t port,
			  const struct frag_message *const **out_messages)
{
	struct fragi_exec_port *in = port_in(tick, port);
	int r;

	if (in == NULL)
		return -EINVAL;
	for (uint32_t i = 0; i < in->count; i++) {
		in->all[i] = receive_from(tick, in->rx[i], &r);
		if (r < 0 && r != -ENOMSG)
			return r;
	}
	*out_messages = in->all;
	return (int)in->count;
}

/* Emit. */

static struct fragi_exec_port *port_out(struct frag_tick *tick, uint32_t port)
{
	if (__builtin_expect(port >= tick->port_count || tick->ports[port].dir != FRAG_OUT, 0))
		return NULL;
	return &tick->ports[port];
}

/*
 * Gives the message the tick's metadata as it now is; the content is shared until one side writes. A message
 * that others hold already is replaced by a copy, unless it carries just that: so forwarding costs nothing.
 * NULL, and the message gone, when memory is short.
 */
static __attribute__((noinline)) struct frag_message *metadata_attach(struct frag_tick *tick,
								      struct frag_message *message)
{
	struct frag_metadata *metadata = NULL;

	if (message == tick->metadata_of || !tick->op->metadata)
		return message;
	if (frag_metadata_count(tick->metadata) > 0) {
		metadata = fragi_metadata_copy(tick->metadata);
		if (metadata == NULL) {
			fragi_message_unref(message);
			return NULL;
		}
	} else if (message->metadata == NULL) {
		return message;
	}
	message = frag_message_writable(message);
	if (message == NULL)
		fragi_metadata_destroy(metadata);
	else
		fragi_message_set_metadata(message, metadata);
	return message;
}

static __attribute__((noinline)) int emit_fault(struct frag_tick *tick, uint32_t port)
{
	tick->fault = -EOVERFLOW;
	return frag_err_set(
		&tick->op->err, -EOVERFLOW,
		"port \"%s\": emitted into a full queue, and its policy is fault; give the flow a "
		"larger capacity, or another policy",
		tick->op->ports[port].name);
}

/* Cold, and no words yet: the operator may take it well. */
static __attribute__((noinline)) int emit_refused(struct frag_tick *tick, uint32_t port, int code)
{
	tick->refused = code;
	tick->refused_port = port;
	tick->refused_in = tick->number;
	return code;
}

static inline int emit_on(struct frag_tick *tick, uint32_t port, struct fragi_exec_port *out,
			  struct frag_message *message)
{
	uint64_t stamp;
	int r = 0, one;

	if (__builtin_expect(tick->metadata_used, 0)) {
		message = metadata_attach(tick, message);
		if (message == NULL)
			return -ENOMEM;
	}
	if (out->count == 0) {
		fragi_message_unref(message);
		return 0;
	}
	if (!message->shared)
		fragi_message_share(message);
	if (out->count > 1)
		atomic_fetch_add_explicit(&message->refs, out->count - 1, memory_order_relaxed);
	stamp = fragi_stamp();
	for (uint32_t i = 0; i < out->count; i++) {
		one = out->tx[i]->ops->send(out->tx[i], message, stamp);
		if (__builtin_expect(one < 0, 0)) {
			r = r < 0 ? r : one;
			if (one == -EOVERFLOW)
				emit_fault(tick, port);
			else
				emit_refused(tick, port, r);
		}
	}
	return r;
}

int frag_tick_emit(struct frag_tick *tick, uint32_t port, struct frag_message *message)
{
	struct fragi_exec_port *out = port_out(tick, port);

	if (__builtin_expect(out == NULL || message == NULL, 0)) {
		frag_message_unref(message);
		return -EINVAL;
	}
	if (__builtin_expect((out->type != NULL && message->type != out->type) ||
				     (out->tensor && message->tensor_count == 0),
			     0)) {
		fragi_message_unref(message);
		return emit_refused(tick, port, -EPROTOTYPE);
	}
	return emit_on(tick, port, out, message);
}

int frag_tick_emit_value(struct frag_tick *tick, uint32_t port, const struct frag_type *type,
			 const void *value, size_t size)
{
	struct frag_message *message = frag_message_create();
	int r;

	if (message == NULL)
		return -ENOMEM;
	r = frag_message_set_value(message, type, value, size, NULL);
	if (r < 0) {
		fragi_message_unref(message);
		return r;
	}
	return frag_tick_emit(tick, port, message);
}

/*
 * A value that fits into a message and has no fini: written in place, as frag_message_set_value would.
 */
static inline struct frag_message *scalar(const struct frag_type *type, const void *value, size_t size)
{
	struct frag_message *message = frag_message_create();

	if (__builtin_expect(message == NULL, 0))
		return NULL;
	memcpy(message->inline_value, value, size);
	message->type = type;
	message->value = message->inline_value;
	message->value_size = size;
	return message;
}

static inline int emit_scalar(struct frag_tick *tick, uint32_t port, const struct frag_type *type,
			      const void *value, size_t size)
{
	struct fragi_exec_port *out = port_out(tick, port);
	struct frag_message *message;

	if (__builtin_expect(out == NULL, 0))
		return -EINVAL;
	if (__builtin_expect(out->tensor || (out->type != NULL && out->type != type), 0))
		return emit_refused(tick, port, -EPROTOTYPE);
	message = scalar(type, value, size);
	if (__builtin_expect(message == NULL, 0))
		return -ENOMEM;
	return emit_on(tick, port, out, message);
}

int frag_tick_emit_bool(struct frag_tick *tick, uint32_t port, int value)
{
	bool b = value != 0;

	return emit_scalar(tick, port, &frag_type_bool, &b, sizeof(b));
}

int frag_tick_emit_i64(struct frag_tick *tick, uint32_t port, int64_t value)
{
	return emit_scalar(tick, port, &frag_type_i64, &value, sizeof(value));
}

int frag_tick_emit_f64(struct frag_tick *tick, uint32_t port, double value)
{
	return emit_scalar(tick, port, &frag_type_f64, &value, sizeof(value));
}

int frag_tick_emit_string(struct frag_tick *tick, uint32_t port, const char *value)
{
	return frag_tick_emit_value(tick, port, &frag_type_string, value, strlen(value));
}

int frag_tick_emit_tensor(struct frag_tick *tick, uint32_t port, const char *name, struct frag_tensor *tensor)
{
	struct frag_message *message = frag_message_create();
	int r;

	if (message == NULL) {
		frag_tensor_unref(tensor);
		return -ENOMEM;
	}
	r = frag_message_add_tensor(message, name, tensor);
	if (r < 0) {
		fragi_message_unref(message);
		return r;
	}
	return frag_tick_emit(tick, port, message);
}

/* The tick itself. */

struct frag_metadata *frag_tick_metadata(struct frag_tick *tick)
{
	/* It may be written to from here on. */
	tick->metadata_used = true;
	tick->metadata_of = NULL;
	return tick->metadata;
}

struct frag_op *frag_tick_op(struct frag_tick *tick)
{
	return tick->op;
}

uint64_t frag_tick_count(const struct frag_tick *tick)
{
	return tick->number - 1;
}

int64_t frag_tick_time_ns(const struct frag_tick *tick)
{
	struct frag_tick *mine = (struct frag_tick *)(uintptr_t)tick;

	if (mine->time_ns == 0)
		mine->time_ns = fragi_now_ns() - (int64_t)fragi_stamp_diff_ns(tick->stamp, fragi_stamp());
	return mine->time_ns;
}

void fragi_tick_clear_metadata(struct frag_tick *tick)
{
	frag_metadata_clear(tick->metadata);
	tick->metadata_used = false;
	tick->metadata_of = NULL;
}
