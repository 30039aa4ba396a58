/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_POSTPROCESSORS_H
#define TESTS_OPERATORS_POSTPROCESSORS_H

#include <criterion/criterion.h>
#include <string.h>

#include "harness.h"

/* For the operators that stand behind inference, with tensors that are written here. */

static inline void refused(const struct frag_op_type *type, const struct frag_arg *args,
			   const char *words)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(type, args, &err);

	cr_expect_null(h);
	cr_expect_not_null(strstr(err.text, words), "\"%s\" is not in: %s", words, err.text);
	frag_harness_destroy(h);
}

static inline struct frag_tensor *tensor(enum frag_dtype_code code, int32_t ndim,
					 const int64_t *shape, const void *values)
{
	return tensor_of((struct frag_dtype){(uint8_t)code, 32, 1}, ndim, shape, values);
}

#define FLOATS(ndim, shape, values) tensor(FRAG_DTYPE_FLOAT, ndim, (const int64_t[])shape, values)
#define SIDES(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static inline struct frag_message *message(const char *name, struct frag_tensor *t)
{
	struct frag_message *m = frag_message_create();

	cr_assert_not_null(m);
	cr_assert_eq(frag_message_add_tensor(m, name, t), 0);
	return m;
}

static inline const void *data(const struct frag_message *m, const char *name, int64_t first_side)
{
	const struct frag_tensor *t = frag_message_tensor(m, name);

	cr_assert_not_null(t, "no tensor %s", name);
	cr_assert_eq(frag_tensor_dl(t)->shape[0], first_side);
	return frag_tensor_data(t);
}

static inline struct frag_message *tick(struct frag_harness *h, const char *out)
{
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, out, &m), 0);
	return m;
}

static inline void tick_fails(struct frag_harness *h, const char *words)
{
	cr_expect_lt(frag_harness_tick(h), 0);
	cr_expect_not_null(strstr(frag_harness_error(h), words), "\"%s\" is not in: %s", words,
			   frag_harness_error(h));
}

static const float three_boxes[] = {
	0.10f, 0.20f, 0.50f, 0.30f, /* kept */
	0.12f, 0.20f, 0.52f, 0.30f, /* overlaps the first one */
	0.50f, 0.60f, 0.90f, 1.40f, /* reaches out of the picture */
};

#endif
