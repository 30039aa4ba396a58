/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_HARNESS_H
#define FRAG_HARNESS_H

#include <frag/clock.h>
#include <frag/plugin.h>

FRAG_BEGIN_DECLS

/*
 * The harness tests one operator without a daemon, a transport or a GPU. It makes an operator of
 * the type's table; the test gives it messages, ticks it, and takes what it emitted:
 *
 * 	struct frag_harness *h = frag_harness_create(&scale_type, FRAG_ARGS({"factor", "3"}), NULL);
 * 	frag_harness_give_f64(h, "in", 2.0);
 * 	assert(frag_harness_tick(h) == 0);
 * 	assert(frag_harness_take_f64(h, "out", &x) == 0 && x == 6.0);
 * 	frag_harness_destroy(h);
 *
 * Everything happens on the calling thread, during the call. Thread: one at a time for each
 * harness. Blocks: as the operator does. RT-safe: no.
 */
struct frag_harness;

/*
 * Makes the operator and calls setup, initialize and start. Every port has one flow, whose queue
 * holds 64 messages with the policy block.
 * - type: borrowed as long as the harness lives. Types of values that its ports name, other than
 *   built-in ones, must be registered before: frag_type_register(&pose_type, NULL).
 * - args: parameters of the operator; NULL is accepted
 * - err: receives the sentence; NULL is accepted
 * Returns the harness; NULL when the operator refused, or memory is short.
 */
FRAG_API struct frag_harness *frag_harness_create(const struct frag_op_type *type,
						  const struct frag_arg *args,
						  struct frag_err *err);
/* A resource that the operator's arguments may name as $name. */
struct frag_harness_resource {
	/* without the `$`; NULL ends a list */
	const char *name;
	/* a type of resource.h */
	const char *type;
	/* its parameters; NULL: none */
	const struct frag_arg *args;
};
/*
 * Creates a harness as frag_harness_create does, whose operator has resources.
 * - resources: an array that ends with an entry whose name is NULL; NULL: none
 */
FRAG_API struct frag_harness *
frag_harness_create_with(const struct frag_op_type *type, const struct frag_arg *args,
			 const struct frag_harness_resource *resources, struct frag_err *err);
/*
 * Creates a harness as frag_harness_create does, after a composer has made what the operator needs:
 * resources of types of your own (frag_make_resource_of) and services (frag_register_service).
 * - compose: called once; a negative errno refuses the operator
 */
FRAG_API struct frag_harness *
frag_harness_create_composed(const struct frag_op_type *type, const struct frag_arg *args,
			     int (*compose)(struct frag_fragment *fragment), struct frag_err *err);
/* Calls stop and fini and frees everything. NULL is accepted. */
FRAG_API void frag_harness_destroy(struct frag_harness *harness);

/*
 * Puts a message into the queue of an input.
 * - port: name of the input. "receivers:1", "receivers:2" ... are further flows of the
 *   multi-receiver input "receivers", which are made when they are first named.
 * - message: takes the reference, also on failure
 * Returns 0; -EINVAL: no such input, or message is NULL; -ENOBUFS: 64 messages are waiting;
 * -ENOMEM.
 */
FRAG_API int frag_harness_give(struct frag_harness *harness, const char *port,
			       struct frag_message *message);
/*
 * Gives the port a message that holds a copy of this value; otherwise as frag_harness_give. type,
 * value and size are those of frag_message_set_value. -EINVAL also: the type does not allow this
 * size.
 */
FRAG_API int frag_harness_give_value(struct frag_harness *harness, const char *port,
				     const struct frag_type *type, const void *value, size_t size);
/* Give a value of type "bool", "i64", "f64" or "string", or a tensor under `name`, likewise. */
FRAG_API int frag_harness_give_bool(struct frag_harness *harness, const char *port, int value);
FRAG_API int frag_harness_give_i64(struct frag_harness *harness, const char *port, int64_t value);
FRAG_API int frag_harness_give_f64(struct frag_harness *harness, const char *port, double value);
FRAG_API int frag_harness_give_string(struct frag_harness *harness, const char *port,
				      const char *value);
FRAG_API int frag_harness_give_tensor(struct frag_harness *harness, const char *port,
				      const char *name, struct frag_tensor *tensor);

/*
 * Runs one tick, whether its conditions allow it or not. When compute returns FRAG_PENDING, waits
 * for frag_op_resume and calls it again, until the tick is over.
 * Returns what compute returned last. The sentence of a failure is in frag_harness_error.
 */
FRAG_API int frag_harness_tick(struct frag_harness *harness);
/*
 * Returns the clock of the operator's fragment, borrowed as long as the harness lives. It is a
 * manual one that begins at 0 and stands still, until the test sets it forward or the operator
 * sleeps:
 *
 * 	frag_clock_advance_by(frag_harness_clock(h), 10 * 1000000);
 */
FRAG_API struct frag_clock *frag_harness_clock(struct frag_harness *harness);
/* Returns 1 when the operator's conditions would allow a tick now, else 0. */
FRAG_API int frag_harness_ready(struct frag_harness *harness);
/* Returns the sentence of the last failure, borrowed until the next one; "" when there was none. */
FRAG_API const char *frag_harness_error(const struct frag_harness *harness);

/*
 * Takes the oldest message that was emitted on an output. Work of a GPU that writes its tensors is
 * done then.
 * - port: name of the output
 * - out_message: receives a new reference
 * Returns 0; -ENOMSG: none is there; -EINVAL: no such output; -EIO: the GPU has failed.
 */
FRAG_API int frag_harness_take(struct frag_harness *harness, const char *port,
			       struct frag_message **out_message);
/*
 * Takes a message and copies its value.
 * - size: of the value, in bytes; -EMSGSIZE when it has another size
 * Returns the same; -EPROTOTYPE: its value is of another type. After -EMSGSIZE and -EPROTOTYPE the
 * message was dropped.
 */
FRAG_API int frag_harness_take_value(struct frag_harness *harness, const char *port,
				     const struct frag_type *type, void *out_value, size_t size);
/*
 * Take a value of type "bool", "i64", "f64" or "string", likewise. -EMSGSIZE: the text needs more
 * than `size` bytes.
 */
FRAG_API int frag_harness_take_bool(struct frag_harness *harness, const char *port, int *out_value);
FRAG_API int frag_harness_take_i64(struct frag_harness *harness, const char *port,
				   int64_t *out_value);
FRAG_API int frag_harness_take_f64(struct frag_harness *harness, const char *port,
				   double *out_value);
FRAG_API int frag_harness_take_string(struct frag_harness *harness, const char *port,
				      char *out_text, size_t size);

/* Returns the operator's state, borrowed as long as the harness lives. */
FRAG_API void *frag_harness_state(struct frag_harness *harness);

FRAG_END_DECLS

#endif
