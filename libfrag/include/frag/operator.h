/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_OPERATOR_H
#define FRAG_OPERATOR_H

#include <stdbool.h>

#include <frag/condition.h>
#include <frag/message.h>
#include <frag/resource.h>

FRAG_BEGIN_DECLS

/*
 * An operator type is a table: its ports, its parameters, its callbacks. `fragctl inspect` prints
 * it, the graph is checked against it before anything runs, and names become indices when the graph
 * is built.
 */
struct frag_op;       /* one operator of a graph */
struct frag_tick;     /* one call of compute */
struct frag_fragment; /* the graph an operator is in (compose.h) */

enum frag_dir {
	FRAG_IN = 1,
	FRAG_OUT = 2,
};

/* What a full queue does with one more message. */
enum frag_policy {
	FRAG_POLICY_DEFAULT = 0,
	FRAG_POLICY_BLOCK = 1,  /* the sender is not scheduled until there is room (the default) */
	FRAG_POLICY_POP = 2,    /* drop the oldest */
	FRAG_POLICY_REJECT = 3, /* drop the newest */
	FRAG_POLICY_FAULT = 4,  /* the application fails */
	FRAG_POLICY_LATEST = 5, /* keep the newest only; lock-free, no capacity */
};

/* Port flags. */
/* IN: any number of flows; receive gives an array in the order of the flows */
#define FRAG_PORT_MULTI 1u
#define FRAG_PORT_OPTIONAL 2u /* may stay unconnected (outputs may always) */
#define FRAG_PORT_NO_CONDITION                                                                     \
	4u /* without the default condition (message_available, downstream_affordable) */

struct frag_port {
	const char *name;
	enum frag_dir dir;
	/* of the value; NULL or "message": any message; "tensor": at least one tensor */
	const char *type;
	const char *headline;
	uint32_t flags;
	/* messages a queue of this input holds; 0: 1 inside a host, 4 between hosts */
	uint32_t capacity;
	enum frag_policy policy;
	uint32_t min_size; /* of the default condition; 0: 1 */
};

/*
 * Parameters. A table entry ties a name to a field of the state; the value is written there before
 * setup. Text in a graph becomes a value by the kind alone.
 */
enum frag_param_kind {
	FRAG_PARAM_KIND_BOOL = 1,     /* bool */
	FRAG_PARAM_KIND_I64 = 2,      /* int64_t */
	FRAG_PARAM_KIND_F64 = 3,      /* double */
	FRAG_PARAM_KIND_STRING = 4,   /* const char * (never NULL unless optional) */
	FRAG_PARAM_KIND_SIZE = 5,     /* uint64_t, bytes: 4096, "512Mi", "2MB" */
	FRAG_PARAM_KIND_DURATION = 6, /* int64_t, nanoseconds: 1000, "10ms", "30hz" (the period) */
	/* const char *; a relative path is resolved against the app folder */
	FRAG_PARAM_KIND_PATH = 7,
	FRAG_PARAM_KIND_RESOURCE = 8, /* struct frag_resource *; `$name` in a graph */
	FRAG_PARAM_KIND_I64_LIST = 9, /* struct frag_i64_list */
	FRAG_PARAM_KIND_F64_LIST = 10,
	FRAG_PARAM_KIND_STRING_LIST = 11,
	FRAG_PARAM_KIND_CONDITION = 12,  /* struct frag_condition *; `$name` in a graph */
	FRAG_PARAM_KIND_STRING_MAP = 13, /* struct frag_string_map; {key: text} */
};

struct frag_i64_list {
	const int64_t *items;
	size_t count;
};
struct frag_f64_list {
	const double *items;
	size_t count;
};
struct frag_string_list {
	const char *const *items;
	size_t count;
};
/* in the order of the graph; no key twice */
struct frag_string_map {
	const struct frag_string_entry {
		const char *key, *text;
	} * items;
	size_t count;
};

/* Parameter flags. */
#define FRAG_PARAM_REQUIRED 1u /* has no default: a graph without it is refused */
#define FRAG_PARAM_OPTIONAL 2u /* may stay unset: a pointer then is NULL, a list empty */
#define FRAG_PARAM_DYNAMIC 4u  /* may be changed between two ticks while the application runs */

struct frag_param {
	const char *name;
	enum frag_param_kind kind;
	uint32_t offset; /* of the field in the state, bytes */
	int64_t def_int; /* default of BOOL, I64, SIZE, DURATION */
	double def_float;
	/* default of STRING and PATH; of the others, as a graph would write it */
	const char *def_text;
	const char *headline;
	const char *description;
	uint32_t flags;
	double min, max; /* allowed range of I64, F64, SIZE and DURATION when min < max */
	const char *const *choices; /* allowed texts of a STRING, ended by NULL; NULL: any */
};

/* offsetof(T, field), refused by the compiler when the field has another type. */
#define FRAG_PARAM_OFFSET(T, field, type)                                                          \
	((uint32_t)(offsetof(T, field) + 0 * sizeof(&((T *)0)->field == (type *)0)))

/*
 * FRAG_PARAM_F64(struct scale, factor, 2.0, .headline = "Factor", .flags = FRAG_PARAM_DYNAMIC): the
 * state's type, the field (and the parameter's name), the default, then any further members in the
 * order of struct frag_param.
 */
#define FRAG_PARAM_BOOL(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_BOOL,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, bool), .def_int = __VA_ARGS__                \
	}
#define FRAG_PARAM_I64(T, field, ...)                                                              \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_I64,                                       \
		.offset = FRAG_PARAM_OFFSET(T, field, int64_t), .def_int = __VA_ARGS__             \
	}
#define FRAG_PARAM_F64(T, field, ...)                                                              \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_F64,                                       \
		.offset = FRAG_PARAM_OFFSET(T, field, double), .def_float = __VA_ARGS__            \
	}
#define FRAG_PARAM_STRING(T, field, ...)                                                           \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_STRING,                                    \
		.offset = FRAG_PARAM_OFFSET(T, field, const char *), .def_text = __VA_ARGS__       \
	}
#define FRAG_PARAM_SIZE(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_SIZE,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, uint64_t), .def_int = __VA_ARGS__            \
	}
#define FRAG_PARAM_DURATION(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_DURATION,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, int64_t), .def_int = __VA_ARGS__             \
	}
#define FRAG_PARAM_PATH(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_PATH,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, const char *), .def_text = __VA_ARGS__       \
	}
/* The kinds without a default value take the text a graph would write, or NULL. */
#define FRAG_PARAM_RESOURCE(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_RESOURCE,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_resource *),                     \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_CONDITION(T, field, ...)                                                        \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_CONDITION,                                 \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_condition *),                    \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_I64_LIST(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_I64_LIST,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_i64_list),                       \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_F64_LIST(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_F64_LIST,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_f64_list),                       \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_STRING_LIST(T, field, ...)                                                      \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_STRING_LIST,                               \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_string_list),                    \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_STRING_MAP(T, field, ...)                                                       \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_STRING_MAP,                                \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_string_map),                     \
		.def_text = __VA_ARGS__                                                            \
	}

/*
 * The table of an operator type. state is `state_size` zeroed bytes, aligned for any type, that
 * live as long as the operator. One thread at a time calls into an operator; which one may change
 * between calls.
 *
 * The order: parameters are written into the state; setup (once, while the graph is built; may add
 * ports); initialize (once, before anything runs, in topological order: resources are ready); start
 * (once, on a thread of the scheduler, before the first tick); compute, tick by tick; stop (once if
 * start succeeded, also after a failure); fini (once if setup succeeded). A negative return from
 * setup or initialize refuses the application before anything ran; from start or compute it stops
 * the fragment with a sentence (frag_op_fail words it).
 */
struct frag_op_type {
	size_t struct_size;
	const char *name; /* of the type, in graphs */
	const char *headline;
	const char *description;
	size_t state_size;
	/* indices into this table are the port numbers of receive and emit */
	const struct frag_port *ports;
	uint32_t port_count;
	uint32_t port_size;
	const struct frag_param *params;
	uint32_t param_count;
	uint32_t param_size;
	int (*setup)(void *state, struct frag_op *op);
	int (*initialize)(void *state, struct frag_op *op);
	int (*start)(void *state, struct frag_op *op);
	int (*compute)(void *state, struct frag_tick *tick); /* 0, FRAG_DONE, or a negative errno */
	int (*stop)(void *state, struct frag_op *op);
	void (*fini)(void *state, struct frag_op *op);
};

#define FRAG_OP_TYPE_INIT .struct_size = sizeof(struct frag_op_type)
#define FRAG_PORTS(table)                                                                          \
	.ports = (table), .port_count = (uint32_t)FRAG_COUNT_OF(table),                            \
	.port_size = (uint32_t)sizeof((table)[0])
#define FRAG_PARAMS(table)                                                                         \
	.params = (table), .param_count = (uint32_t)FRAG_COUNT_OF(table),                          \
	.param_size = (uint32_t)sizeof((table)[0])

/*
 * Receive. port is the index of an input. Messages received in a tick are borrowed until compute
 * returns; take a reference (frag_message_ref) to keep one. Their metadata is merged into the
 * tick's. Returns 0; -ENOMSG when nothing is there (not under message_available); -EINVAL when port
 * is no input; -EPROTOTYPE (typed forms) when the message holds a value of another type; -EEXIST
 * when metadata clashes under raise; -E2BIG when it is too much together; -ENOBUFS beyond 65536
 * messages in one tick; -ENOMEM. Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_tick_receive(struct frag_tick *tick, uint32_t port,
			       const struct frag_message **out_message);
FRAG_API int frag_tick_receive_value(struct frag_tick *tick, uint32_t port,
				     const struct frag_type *type, const void **out_value,
				     size_t *out_size);
FRAG_API int frag_tick_receive_bool(struct frag_tick *tick, uint32_t port, int *out_value);
FRAG_API int frag_tick_receive_i64(struct frag_tick *tick, uint32_t port, int64_t *out_value);
FRAG_API int frag_tick_receive_f64(struct frag_tick *tick, uint32_t port, double *out_value);
FRAG_API int frag_tick_receive_string(struct frag_tick *tick, uint32_t port,
				      const char **out_value);
/*
 * One message from each flow of a multi-receiver port, in the order of the flows, NULL where there
 * is none. The array is borrowed until compute returns. Returns the number of flows, or a failure
 * of frag_tick_receive but -ENOMSG.
 */
FRAG_API int frag_tick_receive_all(struct frag_tick *tick, uint32_t port,
				   const struct frag_message *const **out_messages);

/*
 * Emit. port is the index of an output. Takes the message's reference, on failure too; never
 * blocks. To forward a received message, emit a reference to it: nothing is copied. Several emits
 * in a tick are fine up to capacity. Returns 0 (also when nobody is connected or the receivers are
 * done); -ENOBUFS when the policy is block and there is no room (the message is counted as dropped,
 * no_room); -EMSGSIZE when it is larger than the edge's limit; -EINVAL when port is no output or
 * message is NULL; -EPROTOTYPE when the value is not of the port's type. Thread: the tick's.
 * Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_tick_emit(struct frag_tick *tick, uint32_t port, struct frag_message *message);
FRAG_API int frag_tick_emit_value(struct frag_tick *tick, uint32_t port,
				  const struct frag_type *type, const void *value, size_t size);
FRAG_API int frag_tick_emit_bool(struct frag_tick *tick, uint32_t port, int value);
FRAG_API int frag_tick_emit_i64(struct frag_tick *tick, uint32_t port, int64_t value);
FRAG_API int frag_tick_emit_f64(struct frag_tick *tick, uint32_t port, double value);
FRAG_API int frag_tick_emit_string(struct frag_tick *tick, uint32_t port, const char *value);
/*
 * A message with one tensor named name ("" is a name). Takes the tensor's reference, on failure
 * too.
 */
FRAG_API int frag_tick_emit_tensor(struct frag_tick *tick, uint32_t port, const char *name,
				   struct frag_tensor *tensor);

/*
 * The tick's metadata: what was received, merged; what the next emit carries. Never NULL. Thread:
 * the tick's.
 */
FRAG_API struct frag_metadata *frag_tick_metadata(struct frag_tick *tick);
/* The operator being ticked. */
FRAG_API struct frag_op *frag_tick_op(struct frag_tick *tick);
/* How often compute has been called before on this operator. */
FRAG_API uint64_t frag_tick_count(const struct frag_tick *tick);
/*
 * Time of the scheduler's clock in nanoseconds, as the tick began; steady, its zero is arbitrary.
 * RT-safe: yes.
 */
FRAG_API int64_t frag_tick_time_ns(const struct frag_tick *tick);

/*
 * An operator's surroundings; from any callback, on the callback's thread.
 */
FRAG_API const char *frag_op_name(const struct frag_op *op);
FRAG_API const char *frag_op_fragment_name(const struct frag_op *op);
FRAG_API struct frag_fragment *frag_op_fragment(const struct frag_op *op);
/*
 * The resource of that name in the operator's fragment, borrowed; NULL when there is none. Not on
 * the hot path.
 */
FRAG_API struct frag_resource *frag_op_resource(const struct frag_op *op, const char *name);
/* This operator's condition of that name, borrowed; NULL when there is none. */
FRAG_API struct frag_condition *frag_op_condition(const struct frag_op *op, const char *name);
/* The value of a declared argument (or its default), NULL when no such argument is declared. */
FRAG_API const char *frag_op_argument(const struct frag_op *op, const char *name);
/*
 * What an operator is at this moment, for people: type, parameters with their values, ports,
 * conditions, as YAML. NULL when memory is short; free() it. Thread: the operator's callback. Not
 * on the hot path.
 */
FRAG_API char *frag_op_describe(const struct frag_op *op);
/*
 * How many flows a port has, from initialize on; its index as in the table, or as frag_op_add_port
 * gave it.
 */
FRAG_API uint32_t frag_op_flow_count(const struct frag_op *op, uint32_t port);

/*
 * setup only: adds a port. Returns its index, -EEXIST, -EINVAL or -EBUSY (not in setup), worded in
 * the operator. The strings are copied.
 */
FRAG_API int frag_op_add_port_sized(struct frag_op *op, const struct frag_port *port,
				    size_t port_size);
static inline int frag_op_add_port(struct frag_op *op, const struct frag_port *port)
{
	return frag_op_add_port_sized(op, port, sizeof(*port));
}

/*
 * Words a failure: `return frag_op_fail(op, -EIO, "cannot read %s: %s; ...", ...)`. Returns code.
 */
FRAG_API int frag_op_fail(struct frag_op *op, int code, const char *format, ...) FRAG_PRINTF(3, 4);
/* Logs one line at info about this operator. Never from a hot path. Thread: any. */
FRAG_API void frag_op_log(const struct frag_op *op, const char *format, ...) FRAG_PRINTF(2, 3);

/*
 * Stops an operator as if it had returned FRAG_DONE from its last tick; a tick under way ends
 * first. Thread: any. Blocks: no.
 */
FRAG_API void frag_op_stop_execution(struct frag_op *op);
/* Stops the fragment and with it the application: finished, not failed. Thread: any. Blocks: no. */
FRAG_API void frag_fragment_stop_execution(struct frag_fragment *fragment);

/*
 * For operators that wait in compute: a descriptor that becomes readable when the application is to
 * stop. Poll it beside the one you wait for. Valid from start to stop; owned by the runtime. -1
 * when there is none (in the harness).
 */
FRAG_API int frag_op_stop_fd(const struct frag_op *op);

FRAG_END_DECLS

#endif
