/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SHARED_CUDA_TENSORS_H
#define TESTS_SHARED_CUDA_TENSORS_H

#include <criterion/criterion.h>
#include <string.h>

#include <frag/resource.h>
#include <frag/tensor.h>

#include "cuda/load.h"
#include "cuda/pools.h"

/* Places of tensors, pools of blocks, and a tensor whose numbers are known. */
#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define PINNED ((struct frag_device){FRAG_DEVICE_CUDA_HOST, 0})
#define MANAGED ((struct frag_device){FRAG_DEVICE_CUDA_MANAGED, 0})
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define I32 ((struct frag_dtype){FRAG_DTYPE_INT, 32, 1})

static inline int make_pool(int64_t storage_type, int64_t dev_id, struct frag_resource **out,
			    struct frag_err *err)
{
	return make(
		"block_memory_pool", out, err,
		(const char *const[]){"storage_type", "block_size", "num_blocks", "dev_id", NULL},
		(const int64_t[]){storage_type, 1000, 2, dev_id});
}

/* A tensor in host memory: 2 x 3 x 4 numbers that count up. */
static inline struct frag_tensor *counting(void)
{
	const int64_t shape[] = {2, 3, 4};
	struct frag_tensor *tensor;
	int32_t *at;

	cr_assert_eq(frag_tensor_create(NULL, I32, 3, shape, &tensor), 0);
	at = frag_tensor_writable(tensor);
	for (int i = 0; i < 24; i++)
		at[i] = i;
	return tensor;
}

static inline void expect_counting(const struct frag_tensor *tensor)
{
	const int32_t *at = frag_tensor_data(tensor);

	cr_assert_eq(frag_tensor_size_bytes(tensor), 24 * sizeof(int32_t));
	for (int i = 0; i < 24; i++)
		cr_expect_eq(at[i], i, "%d: %d", i, at[i]);
}

#endif
