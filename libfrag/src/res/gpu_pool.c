// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/failure.h>
#include <res/gpu_pool.h>

int fragi_gpu_pool_check_sizes(uint64_t first_bytes, uint64_t max_bytes, const char *what,
			       struct frag_err *err)
{
	if (max_bytes > PTRDIFF_MAX || first_bytes > max_bytes)
		return frag_err_set(
			err, -EINVAL,
			"%s_initial_size is %llu and %s_max_size is %llu; give a maximum that is not below it",
			what, (unsigned long long)first_bytes, what, (unsigned long long)max_bytes);
	return 0;
}

int fragi_gpu_pool_initialize(struct fragi_gpu_pool *pool, uint64_t keep_bytes,
			      struct frag_err *err)
{
	const struct frag_device device = {FRAG_DEVICE_CUDA, (int32_t)pool->dev_id};
	struct frag_err why = FRAG_ERR_INIT;
	int r;

	if (fragi_cuda_use(device, &pool->cuda, &why) < 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_GPU_MISSING, NULL, -ENODEV,
			"it needs GPU %d, and %s; run the fragment on a worker with a GPU (requirements: {gpu: 1}), or use unbounded_allocator",
			(int)device.id, why.text);
	r = pool->cuda->pool_create(device.id, pool->first_bytes, pool->max_bytes, keep_bytes,
				    &pool->pool, &why);
	return r < 0 ? frag_err_set(err, r, "there is no pool of device memory: %s", why.text) : 0;
}

void fragi_gpu_pool_fini(struct fragi_gpu_pool *pool)
{
	if (pool->pool != NULL)
		pool->cuda->pool_destroy(pool->pool);
}

int fragi_gpu_pool_alloc(struct fragi_gpu_pool *pool, struct frag_device device, size_t size,
			 void **out_memory)
{
	if (device.type != FRAG_DEVICE_CUDA || device.id != pool->dev_id)
		return -EXDEV;
	return pool->pool != NULL ? pool->cuda->pool_alloc(pool->pool, size, out_memory) : -ENODEV;
}

void fragi_gpu_pool_free(struct fragi_gpu_pool *pool, void *memory)
{
	pool->cuda->pool_free(pool->pool, memory);
}
