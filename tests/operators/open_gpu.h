/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_OPEN_GPU_H
#define TESTS_OPERATORS_OPEN_GPU_H

#include <frag/harness.h>

#include "cuda/load.h"
#include "ops.h"

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})

static inline int use_gpu(void *state, struct frag_op *op)
{
	return frag_op_use_device(op, GPU);
}

static inline int do_nothing(void *state, struct frag_tick *tick)
{
	return 0;
}

TEST_OP_BY(opener, do_nothing, .initialize = use_gpu);

/* Loads the driver of tests under the name by which frag asks for it, and opens its GPU. */
static inline void open_gpu(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *opener;

	load_fake();
	opener = frag_harness_create(&opener_type, NULL, &err);
	cr_assert_not_null(opener, "%s", err.text);
	frag_harness_destroy(opener);
}

#endif
