/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_HARNESS_H
#define TESTS_OPERATORS_HARNESS_H

#include <criterion/criterion.h>
#include <frag/harness.h>
#include <string.h>

/* The harness, where nothing may be refused. */
static inline struct frag_harness *make(const struct frag_op_type *type,
					const struct frag_arg *args)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(type, args, &err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

static inline void give_tensor(struct frag_harness *h, const char *port, const char *name,
			       struct frag_tensor *tensor)
{
	cr_assert_eq(frag_harness_give_tensor(h, port, name, tensor), 0, "%s", port);
}

/* A tensor of the host with these elements; data NULL: with any. */
static inline struct frag_tensor *tensor_of(struct frag_dtype dtype, int32_t ndim,
					    const int64_t *shape, const void *data)
{
	struct frag_tensor *tensor;

	cr_assert_eq(frag_tensor_create(NULL, dtype, ndim, shape, &tensor), 0);
	if (data != NULL && frag_tensor_size_bytes(tensor) > 0)
		memcpy(frag_tensor_writable(tensor), data, frag_tensor_size_bytes(tensor));
	return tensor;
}

static inline struct frag_tensor *numbers(int64_t rows, int64_t columns, const float *data)
{
	return tensor_of((struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 2,
			 (const int64_t[]){rows, columns}, data);
}

/* What the next tick emits at a port. */
static inline struct frag_message *ticked(struct frag_harness *h, const char *port)
{
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, port, &m), 0, "%s", port);
	return m;
}

static inline void finish(struct frag_harness *h, struct frag_message *m)
{
	frag_message_unref(m);
	frag_harness_destroy(h);
}

#endif
