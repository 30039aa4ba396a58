/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_INFERENCE_HARNESS_H
#define TESTS_OPERATORS_INFERENCE_HARNESS_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include <frag/harness.h>
#include <frag/tensor.h>

#include "../built.h"

/* What the tests of inference share; a program says itself what an operator is made of. */
struct frag_harness *create(const struct frag_arg *more, struct frag_err *err);

static inline void write_model(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static inline struct frag_harness *make(const struct frag_arg *more)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = create(more, &err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

static inline void refused(const struct frag_arg *more, const char *words)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = create(more, &err);

	cr_expect_null(h, "not refused: %s", words);
	cr_expect_not_null(strstr(err.text, words), "\"%s\" is not in: %s", words, err.text);
	frag_harness_destroy(h);
}

static inline struct frag_message *run_once(struct frag_harness *h, struct frag_tensor *t)
{
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_give_tensor(h, "receivers", "image", t), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
	return m;
}

static inline void tick_fails(struct frag_harness *h, const char *name, struct frag_tensor *t,
			      const char *words)
{
	cr_assert_eq(frag_harness_give_tensor(h, "receivers", name, t), 0);
	cr_expect_lt(frag_harness_tick(h), 0);
	cr_expect_not_null(strstr(frag_harness_error(h), words), "\"%s\" is not in: %s", words,
			   frag_harness_error(h));
}

static inline const struct frag_dltensor *dl(const struct frag_message *m, const char *name)
{
	const struct frag_tensor *t = frag_message_tensor(m, name);

	cr_assert_not_null(t, "no tensor %s", name);
	return frag_tensor_dl(t);
}

#endif
