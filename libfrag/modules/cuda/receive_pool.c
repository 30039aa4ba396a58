// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "device.h"
#include "module.h"

/*
 * Device memory for the tensors that hosts receive: a pool of the CUDA driver for each GPU, made
 * when it is first needed, and for the life of the process. An allocation without a pool, and its
 * release, would wait for all work of the GPU at each tensor.
 */
#define KEEP_BYTES ((uint64_t)256 << 20) /* free memory that the GPU does not get back */

static struct fragi_cuda_pool *_Atomic pools[CUDA_DEVICES_MAX];

static int pool_of(const struct cuda_device *gpu, struct fragi_cuda_pool **out,
		   struct frag_err *err)
{
	struct fragi_cuda_pool *pool = atomic_load(&pools[gpu->id]), *mine;
	int r;

	if (pool == NULL) {
		r = cuda_pool_create(gpu->id, 0, KEEP_BYTES, &mine, err);
		if (r < 0)
			return r;
		if (atomic_compare_exchange_strong(&pools[gpu->id], &pool, mine))
			pool = mine;
		else
			cuda_pool_destroy(mine); /* another thread made one meanwhile */
	}
	*out = pool;
	return 0;
}

int cuda_receive_pool_alloc(struct frag_device device, size_t size, void **out_memory,
			    struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(device.id);
	struct fragi_cuda_pool *pool;
	int r;

	if (gpu == NULL || !gpu->has_pools)
		return cuda_memory.alloc(device, size, out_memory, err);
	r = pool_of(gpu, &pool, err);
	return r < 0 ? r : cuda_pool_alloc(pool, size, out_memory, err);
}

void cuda_receive_pool_free(struct frag_device device, void *memory)
{
	if (cuda_device_of(device.id)->has_pools)
		(void)cuda_pool_free(atomic_load(&pools[device.id]), memory);
	else
		cuda_memory.free(device, memory);
}
