/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <unistd.h>

#include <frag/harness.h>

#include "cuda/load.h"
#include "cuda/twin_cases.h"
#include "vision/kernels.h"
#include "ops.h"

/*
 * Operators with a body for GPUs beside that for the CPU, over the driver of tests, which runs the
 * code of the kernels on the CPU. make gpu-check compares the same cases on a real GPU.
 */
#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define CASES 60

static int use_gpu(void *state, struct frag_op *op)
{
	return frag_op_use_device(op, GPU);
}

static int do_nothing(void *state, struct frag_tick *tick)
{
	return 0;
}

TEST_OP_BY(opener, do_nothing, .initialize = use_gpu);

static void open_gpu(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *opener;

	if (vision_ptx == NULL)
		cr_skip_test("this build has no kernels for GPUs");
	load_fake();
	opener = frag_harness_create(&opener_type, NULL, &err);
	cr_assert_not_null(opener, "%s", err.text);
	frag_harness_destroy(opener);
}

TestSuite(ops_twins, .init = open_gpu);

GPU_TEST(ops_twins, results_are_those_of_the_cpu)
{
	char why[1024];

	for (const struct twin_cases *c = twin_cases; c->name != NULL; c++)
		for (uint64_t seed = 0; seed < CASES; seed++)
			cr_expect(c->run(seed, why, sizeof(why)), "%s", why);
	cr_expect_gt(fake.calls("cuLaunchKernel"), CASES);
}
