// SPDX-License-Identifier: Apache-2.0
#undef NDEBUG
#include <assert.h>
#include <frag/harness.h>
#include <stdio.h>
#include <string.h>

extern const struct frag_op_type scale_type, numbers_type;

static void scales(void)
{
	struct frag_harness *h = frag_harness_create(&scale_type, FRAG_ARGS({"factor", "3"}), NULL);
	double x;

	assert(h && !frag_harness_ready(h));
	assert(frag_harness_give_f64(h, "in", 2.0) == 0);
	assert(frag_harness_ready(h));
	assert(frag_harness_tick(h) == 0);
	assert(frag_harness_take_f64(h, "out", &x) == 0 && x == 6.0);
	frag_harness_destroy(h);
}

static void refuses_a_factor_that_is_none(void)
{
	struct frag_err err = FRAG_ERR_INIT;

	assert(!frag_harness_create(&scale_type, FRAG_ARGS({"factor", "three"}), &err));
	assert(strstr(err.text, "factor"));
}

static void numbers_end(void)
{
	struct frag_harness *h = frag_harness_create(
		&numbers_type, FRAG_ARGS({"start", "10"}, {"count", "2"}), NULL);
	double x;

	assert(h);
	assert(frag_harness_tick(h) == 0);
	assert(frag_harness_tick(h) == FRAG_DONE);
	assert(frag_harness_take_f64(h, "out", &x) == 0 && x == 10.0);
	assert(frag_harness_take_f64(h, "out", &x) == 0 && x == 11.0);
	frag_harness_destroy(h);
}

int main(void)
{
	scales();
	refuses_a_factor_that_is_none();
	numbers_end();
	puts("custom_operator: all tests passed");
	return 0;
}
