/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_HARNESS_H
#define FRAG_HARNESS_H

#include <frag/plugin.h>

FRAG_BEGIN_DECLS

/*
 * The harness tests one operator without a daemon, a transport or a GPU: it takes the table, is
 * given messages, ticks, and hands back what was emitted. Everything happens on the calling thread,
 * when it is asked to.
 *
 * 	struct frag_harness *h = frag_harness_create(&scale_type, FRAG_ARGS({"factor", "3"}), NULL);
 * 	frag_harness_give_f64(h, "in", 2.0);
 * 	assert(frag_harness_tick(h) == 0);
 * 	assert(frag_harness_take_f64(h, "out", &x) == 0 && x == 6.0);
 * 	frag_harness_destroy(h);
 */
struct frag_harness;

/*
 * Makes the operator: parameters, setup, initialize, start. Every input has one flow (give with
 * "receivers" and "receivers:1", "receivers:2" ... makes more on a multi-receiver), every output is
 * connected. Queues hold 64. Returns NULL and fills err when the operator refuses.
 */
FRAG_API struct frag_harness *frag_harness_create(const struct frag_op_type *type,
						  const struct frag_arg *args,
						  struct frag_err *err);
/*
 * Makes a resource that arguments may name as $name. Before frag_harness_create; config is an array
 * ended by NULL name.
 */
struct frag_harness_resource {
	const char *name;
	const char *type;
	const struct frag_arg *args;
};
FRAG_API struct frag_harness *
frag_harness_create_with(const struct frag_op_type *type, const struct frag_arg *args,
			 const struct frag_harness_resource *resources, struct frag_err *err);
/* Stops the operator and frees everything. NULL is accepted. */
FRAG_API void frag_harness_destroy(struct frag_harness *harness);

/*
 * Puts a message (taken) at an input. Returns 0, -EINVAL (no such input), -ENOBUFS (64 are
 * waiting).
 */
FRAG_API int frag_harness_give(struct frag_harness *harness, const char *port,
			       struct frag_message *message);
FRAG_API int frag_harness_give_i64(struct frag_harness *harness, const char *port, int64_t value);
FRAG_API int frag_harness_give_f64(struct frag_harness *harness, const char *port, double value);
FRAG_API int frag_harness_give_string(struct frag_harness *harness, const char *port,
				      const char *value);
FRAG_API int frag_harness_give_tensor(struct frag_harness *harness, const char *port,
				      const char *name, struct frag_tensor *tensor);

/*
 * Calls compute once, whatever the conditions say. Returns what compute returned;
 * frag_harness_error words it.
 */
FRAG_API int frag_harness_tick(struct frag_harness *harness);
/* 1 when the operator's conditions would let it be ticked now. */
FRAG_API int frag_harness_ready(struct frag_harness *harness);
/* The sentence of the last failure, "" when there was none. */
FRAG_API const char *frag_harness_error(const struct frag_harness *harness);

/*
 * Takes the oldest message (a reference) emitted at an output. Returns 0, -ENOMSG, -EINVAL (no such
 * output).
 */
FRAG_API int frag_harness_take(struct frag_harness *harness, const char *port,
			       struct frag_message **out_message);
/* Typed: also -EPROTOTYPE; the message is dropped. */
FRAG_API int frag_harness_take_i64(struct frag_harness *harness, const char *port,
				   int64_t *out_value);
FRAG_API int frag_harness_take_f64(struct frag_harness *harness, const char *port,
				   double *out_value);

/* The operator's state, to look into. */
FRAG_API void *frag_harness_state(struct frag_harness *harness);

FRAG_END_DECLS

#endif
