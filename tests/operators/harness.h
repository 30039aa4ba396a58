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

/* A tensor that is not [n, 4] of f32 without gaps, another one for each i; NULL: there is none. */
static inline struct frag_tensor *bad_boxes(size_t i)
{
	static float numbers_of[16];
	static const struct {
		struct frag_dtype dtype;
		int32_t ndim;
		int64_t shape[3];
		int64_t strides[3]; /* 0: without gaps */
	} rows[] = {
		{{FRAG_DTYPE_FLOAT, 32, 1}, 1, {4}, {0}},
		{{FRAG_DTYPE_FLOAT, 32, 1}, 3, {1, 2, 4}, {0}},
		{{FRAG_DTYPE_FLOAT, 32, 1}, 3, {2, 4, 1}, {0}},
		{{FRAG_DTYPE_FLOAT, 32, 1}, 2, {2, 3}, {0}},
		{{FRAG_DTYPE_FLOAT, 32, 1}, 2, {2, 5}, {0}},
		{{FRAG_DTYPE_FLOAT, 64, 1}, 2, {2, 4}, {0}},
		{{FRAG_DTYPE_INT, 32, 1}, 2, {2, 4}, {0}},
		{{FRAG_DTYPE_FLOAT, 32, 2}, 2, {2, 4}, {0}},
		{{FRAG_DTYPE_FLOAT, 32, 1}, 2, {2, 4}, {5, 1}},
		{{FRAG_DTYPE_FLOAT, 32, 1}, 2, {2, 4}, {1, 2}},
	};
	struct frag_dltensor description = {.data = numbers_of, .device = {FRAG_DEVICE_CPU, 0}};
	struct frag_tensor *tensor = NULL;

	if (i >= FRAG_COUNT_OF(rows))
		return NULL;
	description.dtype = rows[i].dtype;
	description.ndim = rows[i].ndim;
	description.shape = (int64_t *)(uintptr_t)rows[i].shape;
	if (rows[i].strides[0] != 0)
		description.strides = (int64_t *)(uintptr_t)rows[i].strides;
	cr_assert_eq(frag_tensor_wrap(&description, NULL, NULL, &tensor), 0, "bad boxes %zu", i);
	return tensor;
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
