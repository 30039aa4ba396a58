// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/message.h>
#include <data/metadata.h>
#include <sched/exec.h>

/*
 * The functions that operators call inside a tick. The usual case is inline and calls nothing but
 * the notification: a port with one flow (for emit: inside the process) and no metadata. Every
 * other case is in a function of its own, which is not inlined.
 */

static inline struct fragi_exec_port *port_at(struct frag_tick *tick, uint32_t port,
					      enum frag_dir dir)
{
	return port < tick->port_count && tick->ports[port].dir == dir ? &tick->ports[port] : NULL;
}

/* Receive. */

/* Makes room for one more received message. */
static __attribute__((noinline)) int received_grow(struct frag_tick *tick)
{
	uint32_t capacity = tick->received_capacity * 2;
	struct frag_message **received;

	assert(tick->received_count == tick->received_capacity && capacity > 0);
	if (capacity > FRAGI_RECEIVED_MAX)
		return -ENOBUFS;
	received = fragi_realloc(tick->received, capacity * sizeof(struct frag_message *));
	if (received == NULL)
		return -ENOMEM;
	tick->received = received;
	tick->received_capacity = capacity;
	return 0;
}

/* Merges a message's metadata into the tick's. Returns 0 and the message, or the failure. */
static int metadata_merge(struct frag_tick *tick, const struct frag_message *message,
			  const struct frag_message **out_message)
{
	const char *key = NULL;
	bool first = (tick->attaches & FRAGI_ATTACH_METADATA) == 0;
	int r;

	fragi_exec_judge_age(tick->op->exec, message->metadata);
	if (!tick->op->metadata) {
		/* It may be passed on, now or later: fragi_tick_attach takes its keys off. */
		tick->attaches |= FRAGI_ATTACH_ALWAYS;
		*out_message = message;
		return 0;
	}
	r = fragi_metadata_merge(tick->metadata, message->metadata, &key);
	if (r < 0) {
		frag_op_fail(
			tick->op, r,
			"received metadata clashes at key \"%s\"; set metadata_policy to update or reject, or give the keys different names",
			key != NULL ? key : "");
		return r;
	}
	tick->attaches |= FRAGI_ATTACH_METADATA;
	tick->metadata_of = first ? message : NULL;
	*out_message = message;
	return 0;
}

/* The end of receive for a message with metadata, or with tensors that are not written yet. */
static int finish_receive(struct frag_tick *tick, const struct frag_message *message,
			  const struct frag_message **out_message)
{
	int r = 0;

	if ((message->at_receive & FRAGI_AT_RECEIVE_WORK) != 0)
		r = fragi_stream_receive(tick, message);
	if (r == 0 && (message->at_receive & FRAGI_AT_RECEIVE_METADATA) != 0)
		return metadata_merge(tick, message, out_message);
	if (r == 0)
		*out_message = message;
	return r;
}

/* The same; not inlined, to keep receive short. */
static __attribute__((noinline)) int notify_and_finish(struct frag_tick *tick,
						       const struct fragi_rx *rx,
						       const struct frag_message *message,
						       const struct frag_message **out_message)
{
	fragi_notify_call(rx->taken);
	return finish_receive(tick, message, out_message);
}

/* Receives the oldest message of rx, borrowed until the tick ends. */
static int receive_from(struct frag_tick *tick, struct fragi_rx *rx,
			const struct frag_message **out_message)
{
	int r = tick->received_count < tick->received_capacity ? 0 : received_grow(tick);
	struct frag_message *message;

	if (r < 0)
		return r;
	message = fragi_rx_take(rx, tick->stamp);
	if (message == NULL)
		return -ENOMSG;
	tick->received[tick->received_count++] = message;
	if ((message->at_receive & FRAGI_AT_RECEIVE) != 0)
		return finish_receive(tick, message, out_message);
	*out_message = message;
	return 0;
}

int fragi_tick_keep(struct frag_tick *tick, struct frag_message *message,
		    const struct frag_message **out_message)
{
	int r = tick->received_count < tick->received_capacity ? 0 : received_grow(tick);

	if (r < 0) {
		fragi_message_unref(message);
		return r;
	}
	tick->received[tick->received_count++] = message;
	*out_message = message;
	return (message->at_receive & FRAGI_AT_RECEIVE) != 0
		       ? finish_receive(tick, message, out_message)
		       : 0;
}

/* Receives from the first flow that has a pending message. */
static __attribute__((noinline)) int receive_from_any(struct frag_tick *tick, uint32_t port,
						      const struct frag_message **out_message)
{
	struct fragi_exec_port *in = port_at(tick, port, FRAG_IN);
	int r = -ENOMSG;

	if (in == NULL)
		return -EINVAL;
	for (uint32_t i = 0; i < in->count && r == -ENOMSG; i++) {
		struct fragi_rx *next = in->next_rx;

		r = receive_from(tick, next != NULL ? next : in->rx[i], out_message);
		if (next != NULL)
			in->next_rx = next->after;
	}
	if (r == -ENOMSG && in->timed != NULL)
		return fragi_timing_receive(tick, in->timed, out_message);
	return r;
}

static inline __attribute__((always_inline)) int receive(struct frag_tick *tick, uint32_t port,
							 const struct frag_message **out_message)
{
	struct fragi_exec_port *in = &tick->ports[port];
	struct frag_message *message;
	struct fragi_rx *rx;

	if (__builtin_expect(port >= tick->port_count || in->next_rx == NULL ||
				     tick->received_count == tick->received_capacity ||
				     fragi_rx_is_shared(in->next_rx),
			     0))
		return receive_from_any(tick, port, out_message);
	rx = in->next_rx;
	message = fragi_rx_take_alone(rx, tick->stamp);
	if (__builtin_expect(message == NULL, 0))
		return receive_from_any(tick, port, out_message);
	in->next_rx = rx->after;
	tick->received[tick->received_count++] = message;
	if (__builtin_expect((message->at_receive & FRAGI_AT_RECEIVE) != 0, 0))
		return notify_and_finish(tick, rx, message, out_message);
	*out_message = message;
	fragi_notify_call(rx->taken);
	return 0;
}

/* The end of receive for a message whose type has another table. */
static __attribute__((noinline)) int compare_types(const struct frag_message *message,
						   const struct frag_type *type)
{
	return frag_type_equal(message->type, type) ? 0 : -EPROTOTYPE;
}

static inline __attribute__((always_inline)) int
receive_typed(struct frag_tick *tick, uint32_t port, const struct frag_type *type,
	      const struct frag_message **out_message)
{
	int r = receive(tick, port, out_message);

	if (__builtin_expect(r == 0 && ((*out_message)->type != type || type == NULL), 0))
		return compare_types(*out_message, type);
	return r;
}

int frag_tick_receive(struct frag_tick *tick, uint32_t port,
		      const struct frag_message **out_message)
{
	return receive(tick, port, out_message);
}

int frag_tick_receive_value(struct frag_tick *tick, uint32_t port, const struct frag_type *type,
			    const void **out_value, size_t *out_size)
{
	const struct frag_message *message;
	int r = receive_typed(tick, port, type, &message);

	if (r != 0)
		return r;
	*out_value = message->value;
	if (out_size != NULL)
		*out_size = message->value_size;
	return 0;
}

int frag_tick_receive_bool(struct frag_tick *tick, uint32_t port, int *out_value)
{
	const struct frag_message *message;
	int r = receive_typed(tick, port, &frag_type_bool, &message);

	if (__builtin_expect(r != 0, 0))
		return r;
	*out_value = *(const bool *)message->value;
	return 0;
}

int frag_tick_receive_i64(struct frag_tick *tick, uint32_t port, int64_t *out_value)
{
	const struct frag_message *message;
	int r = receive_typed(tick, port, &frag_type_i64, &message);

	if (__builtin_expect(r != 0, 0))
		return r;
	*out_value = *(const int64_t *)message->value;
	return 0;
}

int frag_tick_receive_f64(struct frag_tick *tick, uint32_t port, double *out_value)
{
	const struct frag_message *message;
	int r = receive_typed(tick, port, &frag_type_f64, &message);

	if (__builtin_expect(r != 0, 0))
		return r;
	*out_value = *(const double *)message->value;
	return 0;
}

int frag_tick_receive_string(struct frag_tick *tick, uint32_t port, const char **out_value)
{
	const struct frag_message *message;
	int r = receive_typed(tick, port, &frag_type_string, &message);

	if (__builtin_expect(r != 0, 0))
		return r;
	*out_value = message->value;
	return 0;
}

int frag_tick_receive_all(struct frag_tick *tick, uint32_t port,
			  const struct frag_message *const **out_messages)
{
	struct fragi_exec_port *in = port_at(tick, port, FRAG_IN);
	int r;

	if (in == NULL)
		return -EINVAL;
	*out_messages = in->all;
	if (__builtin_expect(in->count == 0, 0) && in->timed != NULL)
		return fragi_timing_receive_all(tick, in->timed, in->all);
	for (uint32_t i = 0; i < in->count; i++) {
		in->all[i] = NULL;
		r = receive_from(tick, in->rx[i], &in->all[i]);
		if (r < 0 && r != -ENOMSG)
			return r;
	}
	return (int)in->count;
}

/* The values take the places of their messages in the array of the port. */
int frag_tick_receive_all_values(struct frag_tick *tick, uint32_t port,
				 const struct frag_type *type, const void *const **out_values)
{
	const struct frag_message *const *messages;
	int count = frag_tick_receive_all(tick, port, &messages);
	const void **values;

	if (count <= 0)
		return count;
	values = (const void **)tick->ports[port].all;
	for (int i = 0; i < count; i++) {
		if (messages[i] == NULL)
			continue;
		if (!frag_type_equal(messages[i]->type, type))
			return -EPROTOTYPE;
		values[i] = messages[i]->value;
	}
	*out_values = values;
	return count;
}

#define RECEIVE_ALL(name, ctype)                                                                   \
	int frag_tick_receive_all_##name(struct frag_tick *tick, uint32_t port,                    \
					 const ctype *const **out_values)                          \
	{                                                                                          \
		return frag_tick_receive_all_values(tick, port, &frag_type_##name,                 \
						    (const void *const **)out_values);             \
	}
RECEIVE_ALL(bool, bool)
RECEIVE_ALL(i64, int64_t)
RECEIVE_ALL(f64, double)
RECEIVE_ALL(string, char)

/* Emit. */

static struct frag_message *without_metadata(struct frag_message *message)
{
	if (message->metadata == NULL)
		return message;
	message = frag_message_writable(message);
	if (message != NULL)
		fragi_message_set_metadata(message, NULL);
	return message;
}

struct frag_message *fragi_tick_attach(struct frag_tick *tick, uint32_t port,
				       struct frag_message *message)
{
	struct frag_metadata *metadata = NULL;

	(void)port;
	if (!tick->op->metadata)
		return without_metadata(message);
	if (message == tick->metadata_of)
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

static int emit_fault(struct frag_tick *tick, uint32_t port)
{
	tick->fault = -EOVERFLOW;
	return frag_op_fail(
		tick->op, -EOVERFLOW,
		"port \"%s\": emitted into a full queue, and its policy is fault; give the flow a larger capacity, or another policy",
		tick->op->ports[port].name);
}

/*
 * Records the failure of an emit. Only a fault is worded here: the operator may handle any other
 * failure.
 */
static __attribute__((noinline)) int emit_failed(struct frag_tick *tick, uint32_t port, int code)
{
	if (code == -EOVERFLOW)
		return emit_fault(tick, port);
	tick->refused = code;
	tick->refused_port = port;
	tick->refused_in = tick->number;
	return code;
}

static inline __attribute__((always_inline)) int send(struct frag_tick *tick, uint32_t port,
						      struct fragi_tx *const *txs, uint32_t count,
						      struct frag_message *message)
{
	uint64_t bytes = fragi_message_bytes(message), stamp = fragi_stamp();
	int r = 0, one;

	if (count > 1)
		atomic_fetch_add_explicit(&message->refs, count - 1, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		struct fragi_tx *tx = txs[i];

		if (tx->rx != NULL && fragi_tx_pass(tx, message, bytes, stamp))
			continue;
		one = tx->ops->send(tx, message, stamp);
		if (one < 0) {
			r = r < 0 ? r : one;
			emit_failed(tick, port, one == -EOVERFLOW ? one : r);
		}
	}
	return r;
}

int fragi_tick_send(struct frag_tick *tick, uint32_t port, struct fragi_tx *const *txs,
		    uint32_t count, struct frag_message *message)
{
	return send(tick, port, txs, count, message);
}

/* Emits on every flow of the port. Returns the first failure. */
static __attribute__((noinline)) int emit_on_all(struct frag_tick *tick, uint32_t port,
						 struct frag_message *message)
{
	const struct fragi_exec_port *out = &tick->ports[port];
	struct fragi_flow_control *control;

	if (__builtin_expect(out->count > 0, 1))
		return send(tick, port, out->tx, out->count, message);
	control = ((struct fragi_exec *)tick)->flow_control; /* dynamic outputs have no flows */
	if (control != NULL)
		return fragi_flow_control_keep(control, port, message);
	fragi_message_unref(message);
	return 0;
}

/* Emits a message that is complete. */
static inline __attribute__((always_inline)) int
pass_on(struct frag_tick *tick, uint32_t port, struct frag_message *message, uint64_t bytes)
{
	const struct fragi_exec_port *out = &tick->ports[port];

	fragi_message_share(message);
	if (__builtin_expect(out->only_tx != NULL && fragi_stamp_is_tsc, 1) &&
	    __builtin_expect(fragi_tx_pass(out->only_tx, message, bytes, fragi_stamp_of_counter()),
			     1))
		return 0;
	return emit_on_all(tick, port, message);
}

/* Emits after all checks, with metadata. */
static __attribute__((noinline)) int emit_checked(struct frag_tick *tick, uint32_t port,
						  struct frag_message *message)
{
	const struct fragi_exec_port *out = port_at(tick, port, FRAG_OUT);

	if (out == NULL || message == NULL) {
		frag_message_unref(message);
		return -EINVAL;
	}
	if ((out->type != NULL && out->type != message->type &&
	     !frag_type_equal(message->type, out->type)) ||
	    (out->tensor && message->tensor_count == 0)) {
		fragi_message_unref(message);
		return emit_failed(tick, port, -EPROTOTYPE);
	}
	if (tick->attaches != 0) {
		message = tick->attach(tick, port, message);
		if (message == NULL)
			return -ENOMEM;
	}
	return pass_on(tick, port, message, fragi_message_bytes(message));
}

static inline __attribute__((always_inline)) int emit(struct frag_tick *tick, uint32_t port,
						      struct frag_message *message, uint64_t bytes)
{
	const struct fragi_exec_port *out = &tick->ports[port];

	if (__builtin_expect(port >= tick->port_count || out->only_tx == NULL ||
				     tick->attaches != 0 ||
				     (out->type != NULL && out->type != message->type),
			     0))
		return emit_checked(tick, port, message);
	return pass_on(tick, port, message, bytes);
}

int frag_tick_emit(struct frag_tick *tick, uint32_t port, struct frag_message *message)
{
	if (message == NULL)
		return emit_checked(tick, port, message);
	return emit(tick, port, message, fragi_message_bytes(message));
}

int frag_tick_emit_value(struct frag_tick *tick, uint32_t port, const struct frag_type *type,
			 const void *value, size_t size)
{
	struct frag_message *message;
	int r = fragi_message_of_value(type, value, size, &message);

	return r < 0 ? r : frag_tick_emit(tick, port, message);
}

/* Emits a value that fits into a message and has no fini, without frag_message_set_value. */
static inline __attribute__((always_inline)) int emit_scalar(struct frag_tick *tick, uint32_t port,
							     const struct frag_type *type,
							     const void *value, size_t size)
{
	struct frag_message *message = fragi_message_take();

	if (__builtin_expect(message == NULL, 0))
		return -ENOMEM;
	memcpy(message->inline_value, value, size);
	message->type = type;
	message->value = message->inline_value;
	message->value_size = size;
	message->shared = true;
	return emit(tick, port, message, size);
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
	if (value == NULL)
		return frag_op_fail(tick->op, -EINVAL, "cannot emit a text: it is NULL");
	return frag_tick_emit_value(tick, port, &frag_type_string, value, strlen(value));
}

int frag_tick_emit_tensor(struct frag_tick *tick, uint32_t port, const char *name,
			  struct frag_tensor *tensor)
{
	struct frag_message *message;
	int r = fragi_message_of_tensor(name, tensor, &message);

	if (name == NULL)
		return frag_op_fail(tick->op, r, "cannot emit a tensor: its name is NULL");
	return r < 0 ? r : frag_tick_emit(tick, port, message);
}

/* The tick itself. */

struct frag_metadata *frag_tick_metadata(struct frag_tick *tick)
{
	/* The caller may write to it from now on. */
	tick->attaches |= FRAGI_ATTACH_METADATA;
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

	/* On another clock a tick begins with reading it: exec.c. */
	if (mine->time_ns == 0 &&
	    fragi_clock_kind_of(tick->op->fragment->clock) == FRAGI_CLOCK_MACHINE)
		mine->time_ns =
			fragi_now_ns() - (int64_t)fragi_stamp_diff_ns(tick->stamp, fragi_stamp());
	return mine->time_ns;
}

int64_t frag_tick_emitted_ns(const struct frag_tick *tick, uint32_t port)
{
	const struct fragi_exec_port *in = port < tick->port_count ? &tick->ports[port] : NULL;
	const struct fragi_rx *rx = in != NULL ? in->next_rx : NULL;
	uint64_t stamp = 0;

	for (uint32_t i = 0; in != NULL && i < in->count && stamp == 0; i++) {
		if (!fragi_queue_oldest(rx != NULL ? &rx->queue : &in->rx[i]->queue, &stamp))
			stamp = 0;
		rx = rx != NULL ? rx->after : NULL;
	}
	return frag_tick_time_ns(tick) -
	       (stamp != 0 ? (int64_t)fragi_stamp_diff_ns(stamp, tick->stamp) : 0);
}

void fragi_tick_clear_metadata(struct frag_tick *tick)
{
	frag_metadata_clear(tick->metadata);
	tick->attaches &= (uint8_t)~FRAGI_ATTACH_METADATA;
	tick->metadata_of = NULL;
}
