/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_OPERATOR_H
#define FRAG_OPERATOR_H

#include <stdbool.h>

#include <frag/condition.h>
#include <frag/message.h>
#include <frag/param.h>
#include <frag/resource.h>

FRAG_BEGIN_DECLS

/*
 * An operator type is a table: its ports, its parameters and its callbacks. `fragctl inspect`
 * prints it, and a graph is checked against it before anything runs. Names become indices when the
 * graph is built, so the hot path looks up no string.
 */

/* One operator of a graph. */
struct frag_op;
/* One call of compute: what it received, and where it emits. */
struct frag_tick;
/* The graph that an operator is in; see compose.h. */
struct frag_fragment;

/* The direction of a port. */
enum frag_dir {
	/* an input: the operator receives */
	FRAG_IN = 1,
	/* an output: the operator emits */
	FRAG_OUT = 2,
};

/* The effect of emitting a message into a queue that is full. */
enum frag_policy {
	/* as the port declares, or FRAG_POLICY_BLOCK */
	FRAG_POLICY_DEFAULT = 0,
	/* the sender is not scheduled until there is room */
	FRAG_POLICY_BLOCK = 1,
	/* the oldest message in the queue is dropped */
	FRAG_POLICY_POP = 2,
	/* the new message is dropped */
	FRAG_POLICY_REJECT = 3,
	/* the application fails */
	FRAG_POLICY_FAULT = 4,
	/* the queue holds the newest message only; it has no capacity and takes no lock */
	FRAG_POLICY_LATEST = 5,
	/*
	 * as FRAG_POLICY_LATEST, and the receiver reads that message again: after the first one it
	 * waits for none, and it does not end with its sender
	 */
	FRAG_POLICY_ASYNC_BUFFER = 6,
};

/*
 * Flags of a port:
 * - FRAG_PORT_MULTI: an input with any number of flows, read with frag_tick_receive_all
 * - FRAG_PORT_OPTIONAL: an input that may stay unconnected; an output always may
 * - FRAG_PORT_NO_CONDITION: the port has no default condition (message_available of an input,
 *   downstream_affordable of an output)
 */
#define FRAG_PORT_MULTI 1u
#define FRAG_PORT_OPTIONAL 2u
#define FRAG_PORT_NO_CONDITION 4u
/* A min_size. Source: Holoscan SDK, IOSpec::kPrecedingCount. */
#define FRAG_PORT_PRECEDING_COUNT UINT32_MAX

/* One port of an operator type. */
struct frag_port {
	/* in graphs, unique in the type */
	const char *name;
	/* input or output */
	enum frag_dir dir;
	/* type of the value; NULL or "message": any message; "tensor": at least one tensor */
	const char *type;
	/* one line for people; NULL: none */
	const char *headline;
	/* FRAG_PORT_... */
	uint32_t flags;
	/*
	 * of an input: messages that the queue of each flow holds, 65536 at most; 0: the default
	 * (docs/GRAPH.md)
	 */
	uint32_t capacity;
	/* of an input: what happens when such a queue is full */
	enum frag_policy policy;
	/*
	 * messages, or room for them, that the default condition asks for; 0: 1; of an input
	 * FRAG_PORT_PRECEDING_COUNT: as many messages as it has flows
	 */
	uint32_t min_size;
	/*
	 * Layout and unit of what the port's tensors hold: "KIND: TEXT" or "KIND: TEXT | OPERATOR",
	 * separated by ";", at most FRAG_PORT_TENSORS_MAX bytes, such as FRAG_BOXES; NULL: not
	 * declared. A flow whose two ends declare one kind with different texts is refused, and the
	 * error names the operator type, which converts other layouts and units. A kind is what a
	 * tensor holds and not its name, which parameters may change.
	 */
	const char *tensors;
};

/* The most bytes of the member tensors of a port. */
#define FRAG_PORT_TENSORS_MAX 255
/*
 * Texts for `tensors` that built-in operators declare, to be joined by "; ". Rectangles count from
 * the left and from the top of the frame; a rectangle that ends at the right border has x1 = 1.
 */
#define FRAG_BOXES "boxes: f32[n][4], x0 y0 x1 y1 from 0 to 1 | box_converter"
#define FRAG_SCORES "scores: f32[n], from 0 to 1"
#define FRAG_LABELS "labels: i32[n], numbers of classes"
#define FRAG_KEYPOINTS "keypoints: f32[n][k][3], x y from 0 to 1 and a score"
#define FRAG_MASK "mask: u8[rows][columns][1], numbers of classes or of boxes"

/*
 * The table of an operator type.
 *
 * The callbacks, in the order of their calls; all but compute may be NULL:
 * - setup: once, while the graph is built, with the parameters in place; may add ports
 * - initialize: once, before anything runs, in topological order; resources are ready
 * - start: once, on a thread of the scheduler, before the first tick
 * - compute: once a tick. Returns 0; FRAG_DONE: it was the last tick; FRAG_PENDING: it is to be
 *   called again in this tick, after frag_op_resume; or a negative errno
 * - stop: once if start succeeded, also after a failure
 * - fini: once if setup succeeded
 * - restore and save: together or not at all, see below
 *
 * state is `state_size` zeroed bytes, aligned for any type, that live as long as the operator. One
 * thread at a time calls into an operator; which one may change between calls. The other callbacks
 * return 0 or a negative errno. A negative return from setup or initialize refuses the application
 * before anything ran; from the others it stops the fragment with a sentence, which frag_op_fail
 * words. One from stop is logged if something failed before.
 */
struct frag_op_type {
	/* set by FRAG_OP_TYPE_INIT */
	size_t struct_size;
	/*
	 * of the type, in graphs. That of another language's is LANGUAGE:NAME, where NAME may have
	 * dots: "python:filters.Median"
	 */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/* more lines for people; NULL: none */
	const char *description;
	/* in bytes */
	size_t state_size;
	/* see FRAG_PORTS; an index into this table is the port number of receive and emit */
	const struct frag_port *ports;
	uint32_t port_count;
	uint32_t port_size;
	/* see FRAG_PARAMS */
	const struct frag_param *params;
	uint32_t param_count;
	uint32_t param_size;
	/* the callbacks, as above; NULL: none, but compute must be there */
	int (*setup)(void *state, struct frag_op *op);
	int (*initialize)(void *state, struct frag_op *op);
	int (*start)(void *state, struct frag_op *op);
	int (*compute)(void *state, struct frag_tick *tick);
	int (*stop)(void *state, struct frag_op *op);
	void (*fini)(void *state, struct frag_op *op);
	/*
	 * State that an operator keeps when its host is restarted (on_failure). Both are set, or
	 * none. Saved state outlives the process, but neither the worker nor the run.
	 *
	 * save writes at most size (= save_size) bytes to out_bytes and returns how many, or a
	 * negative errno, which is logged: the state that was saved before stays. It is called
	 * after a tick that did not fail, before the next one, on the same thread. It is never
	 * called where no state is kept: in one process, or with on_failure's policy stop. The
	 * format is the operator's own.
	 *
	 * restore gets the state that was saved last, before start, on the same thread. It is not
	 * called if no state was saved: then the operator starts anew. A negative return is a
	 * failure, as of start. Both keep to the watchdog, as compute does.
	 */
	int (*save)(void *state, struct frag_op *op, void *out_bytes, size_t size);
	int (*restore)(void *state, struct frag_op *op, const void *bytes, size_t size);
	/* the most bytes that save writes, 1 to FRAG_SAVE_SIZE_MAX */
	size_t save_size;
	/* the shortest time between two saves, in ns; 0: after every tick */
	int64_t save_period_ns;
	/* for callbacks that several types share, such as those of another language; NULL: none */
	void *context;
};

/* The largest save_size. */
/* The most bytes that an operator may save. */
#define FRAG_SAVE_SIZE_MAX ((size_t)16 << 20)

/* The first member of a struct frag_op_type. */
#define FRAG_OP_TYPE_INIT .struct_size = sizeof(struct frag_op_type)
/* The members of a struct frag_op_type, or of a condition's, that name its tables. */
#define FRAG_PORTS(table)                                                                          \
	.ports = (table), .port_count = (uint32_t)FRAG_COUNT_OF(table),                            \
	.port_size = (uint32_t)sizeof((table)[0])
#define FRAG_PARAMS(table)                                                                         \
	.params = (table), .param_count = (uint32_t)FRAG_COUNT_OF(table),                          \
	.param_size = (uint32_t)sizeof((table)[0])

/*
 * Receives the oldest message of an input.
 * - port: number of the input: its index in the type's table, or what frag_op_add_port returned
 * - out_message: receives the message, borrowed until compute returns; frag_message_ref keeps it
 * The message's metadata is merged into the tick's. An input with several flows takes their
 * messages in turn. A multi-receiver input takes from its first flow that has a message.
 * Returns 0; -ENOMSG: no message is there, which message_available rules out; -EINVAL: port is no
 * input; -EEXIST: a key of its metadata is there already and the policy is raise; -E2BIG: too many
 * keys of metadata; -ENOBUFS: more than 65536 messages in one tick; -ENOMEM. With -EEXIST, -E2BIG
 * and -ENOMEM the message may have left the queue.
 * Thread: the tick's. Blocks: no. RT-safe: without metadata, and up to as many messages a tick as
 * before.
 */
FRAG_API int frag_tick_receive(struct frag_tick *tick, uint32_t port,
			       const struct frag_message **out_message);
/*
 * Receives a message and reads its value, which must be of the given type.
 * - type: of the value
 * - out_value: receives its address, borrowed until compute returns
 * - out_size: receives its size in bytes; NULL is accepted
 * Returns as frag_tick_receive; -EPROTOTYPE: the message was received and holds no value of this
 * type. Thread, Blocks, RT-safe: as frag_tick_receive.
 */
FRAG_API int frag_tick_receive_value(struct frag_tick *tick, uint32_t port,
				     const struct frag_type *type, const void **out_value,
				     size_t *out_size);
/*
 * Receive a value of type "bool" (0 or 1), "i64", "f64" or "string", whose text is borrowed
 * likewise.
 */
FRAG_API int frag_tick_receive_bool(struct frag_tick *tick, uint32_t port, int *out_value);
FRAG_API int frag_tick_receive_i64(struct frag_tick *tick, uint32_t port, int64_t *out_value);
FRAG_API int frag_tick_receive_f64(struct frag_tick *tick, uint32_t port, double *out_value);
FRAG_API int frag_tick_receive_string(struct frag_tick *tick, uint32_t port,
				      const char **out_value);
/*
 * Receives one message from each flow of a multi-receiver input.
 * - out_messages: receives an array, borrowed until compute returns, in the order of the flows in
 *   the graph; NULL where a flow has no message
 * Returns the number of flows, or a failure as frag_tick_receive, but never -ENOMSG. Thread,
 * Blocks, RT-safe: as frag_tick_receive.
 */
FRAG_API int frag_tick_receive_all(struct frag_tick *tick, uint32_t port,
				   const struct frag_message *const **out_messages);
/*
 * Receives one message from each flow of a multi-receiver input and reads the values, which must
 * all be of the given type.
 * - type: of the values
 * - out_values: receives an array of their addresses, borrowed until compute returns, in the order
 *   of the flows in the graph; NULL where a flow has no message
 * Returns as frag_tick_receive_all; -EPROTOTYPE: a message was received whose value is of another
 * type. Thread, Blocks, RT-safe: as frag_tick_receive.
 */
FRAG_API int frag_tick_receive_all_values(struct frag_tick *tick, uint32_t port,
					  const struct frag_type *type,
					  const void *const **out_values);
/* Receive all values of type "bool", "i64", "f64" or "string", likewise. */
FRAG_API int frag_tick_receive_all_bool(struct frag_tick *tick, uint32_t port,
					const bool *const **out_values);
FRAG_API int frag_tick_receive_all_i64(struct frag_tick *tick, uint32_t port,
				       const int64_t *const **out_values);
FRAG_API int frag_tick_receive_all_f64(struct frag_tick *tick, uint32_t port,
				       const double *const **out_values);
FRAG_API int frag_tick_receive_all_string(struct frag_tick *tick, uint32_t port,
					  const char *const **out_values);

/*
 * Emits a message on every flow of an output, with the tick's metadata. It never waits. An operator
 * may emit several times in a tick, up to the capacity of the flow. To forward a received message,
 * emit a reference to it: nothing is copied.
 * - port: number of the output
 * - message: takes the reference, also on failure
 * Returns 0, also when no flow is connected or the receivers are finished; -ENOBUFS: the policy is
 * block and there is no room (counted as dropped, no_room); -EOVERFLOW: the policy is fault and
 * there is no room, and the application fails when compute returns; -EMSGSIZE: larger than a flow
 * between hosts takes; -EINVAL: port is no output or message is NULL; -EPROTOTYPE: the message is
 * not of the port's type; -EFAULT: a wrapped tensor has memory that cannot be read, found when it
 * leaves the host; -ENOMEM. When some of several flows refuse the message, the others still get it,
 * and the first failure is returned.
 * Thread: the tick's. Blocks: no. RT-safe: inside a host without metadata; to another host it may
 * allocate and make system calls.
 */
FRAG_API int frag_tick_emit(struct frag_tick *tick, uint32_t port, struct frag_message *message);
/*
 * Emits a message with a copy of this value. The parameters are those of frag_message_set_value; a
 * size that the type does not allow is -EINVAL. Otherwise as frag_tick_emit.
 */
FRAG_API int frag_tick_emit_value(struct frag_tick *tick, uint32_t port,
				  const struct frag_type *type, const void *value, size_t size);
/* Emit a value of type "bool", "i64", "f64" or "string" (a text that ends with a NUL), likewise. */
FRAG_API int frag_tick_emit_bool(struct frag_tick *tick, uint32_t port, int value);
FRAG_API int frag_tick_emit_i64(struct frag_tick *tick, uint32_t port, int64_t value);
FRAG_API int frag_tick_emit_f64(struct frag_tick *tick, uint32_t port, double value);
FRAG_API int frag_tick_emit_string(struct frag_tick *tick, uint32_t port, const char *value);
/*
 * Emits a message with one tensor.
 * - name: of the tensor in the message; "" is a name
 * - tensor: takes the reference, also on failure
 * Returns, Thread, Blocks, RT-safe: as frag_tick_emit and frag_message_add_tensor.
 */
FRAG_API int frag_tick_emit_tensor(struct frag_tick *tick, uint32_t port, const char *name,
				   struct frag_tensor *tensor);

/*
 * Returns the tick's metadata, never NULL, borrowed until compute returns: what was received,
 * merged, and what the next emit sends. Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API struct frag_metadata *frag_tick_metadata(struct frag_tick *tick);
/* Returns the operator that is ticked. Thread: the tick's. Blocks: no. RT-safe: yes. */
FRAG_API struct frag_op *frag_tick_op(struct frag_tick *tick);
/*
 * Returns how many times compute of this operator was called before this tick.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API uint64_t frag_tick_count(const struct frag_tick *tick);
/*
 * Returns the time at which the tick began, in nanoseconds of the fragment's clock (clock.h).
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int64_t frag_tick_time_ns(const struct frag_tick *tick);
/*
 * Returns when the message was emitted that frag_tick_receive takes next, in nanoseconds of the
 * fragment's clock; where that is not known, or no message is there, when the tick began.
 * - port: number of the input
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int64_t frag_tick_emitted_ns(const struct frag_tick *tick, uint32_t port);

/*
 * The surroundings of an operator. The results are borrowed and live as long as the operator.
 * Unless another thread is named: Thread: the callback's. Blocks: no. RT-safe: yes, but functions
 * that take a name compare strings: call them in setup, initialize or start.
 */

/* Returns the name of the operator, that of its fragment, or the fragment. */
FRAG_API const char *frag_op_name(const struct frag_op *op);
FRAG_API const char *frag_op_fragment_name(const struct frag_op *op);
FRAG_API struct frag_fragment *frag_op_fragment(const struct frag_op *op);
/* Returns the member context of the operator's type. */
FRAG_API void *frag_op_context(const struct frag_op *op);
/* Returns the resource of that name in the fragment; NULL when there is none. */
FRAG_API struct frag_resource *frag_op_resource(const struct frag_op *op, const char *name);
/* Returns the i-th resource that the operator was given, from 0; NULL: there are not as many. */
FRAG_API struct frag_resource *frag_op_resource_at(const struct frag_op *op, uint32_t i);
/* Returns this operator's condition of that name; NULL when there is none. */
FRAG_API struct frag_condition *frag_op_condition(const struct frag_op *op, const char *name);
/* Returns the value of an argument of the application; NULL when none is declared by that name. */
FRAG_API const char *frag_op_argument(const struct frag_op *op, const char *name);
/*
 * Returns the number of flows of a port, from initialize on; 0 when there is no such port.
 * - port: number of the port
 */
FRAG_API uint32_t frag_op_flow_count(const struct frag_op *op, uint32_t port);
/*
 * Returns what the operator is now (type, parameters with their values, ports, conditions) as YAML,
 * for people; NULL when memory is short. The caller calls free() on it.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API char *frag_op_describe(const struct frag_op *op);

/*
 * Adds a port; only inside setup. frag_op_add_port fills in port_size.
 * - port: copied, with its texts
 * - port_size: bytes of *port that the caller knows, so that the struct can grow
 * Returns the number of the port (>= 0); -EEXIST: a port has this name; -EINVAL: the port has a
 * mistake; -EBUSY: not inside setup; -ENOMEM. A failure is worded in the operator.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_op_add_port_sized(struct frag_op *op, const struct frag_port *port,
				    size_t port_size);
static inline int frag_op_add_port(struct frag_op *op, const struct frag_port *port)
{
	return frag_op_add_port_sized(op, port, sizeof(*port));
}

/*
 * Makes a device ready for this process: for a GPU it opens NVIDIA's driver and the GPU's primary
 * context, the first time that anything needs them. Call it in initialize.
 * - device: FRAG_DEVICE_CPU is always ready
 * Returns 0; -ENODEV: there is no such device, or it cannot be used, worded in the operator and
 * classified as gpu_missing; -EINVAL: no kind of device that frag knows.
 * Thread: the callback's. Blocks: 0.3 s where it makes the context. RT-safe: no.
 */
FRAG_API int frag_op_use_device(struct frag_op *op, struct frag_device device);

/*
 * Lets this call of initialize take as long as it needs, such as a model that is compiled for
 * minutes: the watchdog does not count it. What takes longer than 10 s is still logged. In fini: a
 * host that does not end in time is killed as ever, but the application has not failed by that.
 * Thread: the callback's. Blocks: no. RT-safe: no.
 */
FRAG_API void frag_op_suspend_watchdog(struct frag_op *op);

/*
 * Words a failure: `return frag_op_fail(op, -EIO, "cannot read %s: %s; ...", ...)`. The first
 * sentence of a callback counts.
 * - code: negative errno
 * - format: printf format of the sentence
 * Returns code. Thread: the callback's. Blocks: no. RT-safe: no (it formats).
 */
FRAG_API int frag_op_fail(struct frag_op *op, int code, const char *format, ...) FRAG_PRINTF(3, 4);
/*
 * Logs one line about this operator at level info: FRAG_LOG_LEVEL may silence it, -q does not.
 * Thread: any. Blocks: while stderr does. RT-safe: no.
 */
FRAG_API void frag_op_log(const struct frag_op *op, const char *format, ...) FRAG_PRINTF(2, 3);

/*
 * Has compute called again in a tick in which it returned FRAG_PENDING. What the tick received
 * stays borrowed until then, its metadata is kept, and no other tick of the operator begins. A
 * resume that comes before compute has returned is not lost. Several may be one, and compute may
 * also be called for one that came too early: it looks whether what it waits for has happened, and
 * else returns FRAG_PENDING again.
 *
 * When the operator is stopped, or the application fails, a pending tick is given up: compute is
 * not called again. stop then waits for what the operator has begun, or cancels it; the messages of
 * the tick are dropped after that.
 * - op: frag_tick_op of the tick; until stop has returned
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API void frag_op_resume(struct frag_op *op);
/*
 * Ends an operator as if compute had returned FRAG_DONE. A call of compute that is under way ends
 * first.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API void frag_op_stop_execution(struct frag_op *op);
/*
 * Ends the fragment and with it the application, as stopped and not as failed.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API void frag_fragment_stop_execution(struct frag_fragment *fragment);

/*
 * Returns a descriptor that becomes readable when the application is to stop. An operator that
 * waits in compute polls it together with what it waits for. It is valid from start to stop and is
 * closed by the runtime; -1: there is none, as in the harness.
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_op_stop_fd(const struct frag_op *op);

FRAG_END_DECLS

#endif
