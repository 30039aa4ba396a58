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
	if (fragi_default_memory() != NULL && pool->first_bytes > 0)
		(void)fragi_area_heap_init(&pool->heap, &fragi_area_shared, device,
					   pool->first_bytes, pool->first_bytes, NULL);
	r = pool->cuda->pool_create(device.id, pool->first_bytes - pool->heap.bytes, keep_bytes,
				    &pool->pool, &why);
	return r < 0 ? frag_err_set(err, r, "there is no pool of device memory: %s", why.text) : 0;
}

void fragi_gpu_pool_fini(struct fragi_gpu_pool *pool)
{
	fragi_area_heap_fini(&pool->heap);
	if (pool->pool != NULL)
		pool->cuda->pool_destroy(pool->pool);
}

/* Counts memory as used. Returns 0; -ENOMEM: it would be more than the maximum. */
static int count(struct fragi_gpu_pool *pool, size_t size)
{
	uint64_t used = atomic_load_explicit(&pool->used_bytes, memory_order_relaxed);

	do {
		if (size > pool->max_bytes - used)
			return -ENOMEM;
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->used_bytes, &used, used + size, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

static void discount(struct fragi_gpu_pool *pool, size_t size)
{
	atomic_fetch_sub_explicit(&pool->used_bytes, size, memory_order_relaxed);
}

int fragi_gpu_pool_alloc(struct fragi_gpu_pool *pool, struct frag_device device, size_t size,
			 void **out_memory)
{
	int r;

	if (device.type != FRAG_DEVICE_CUDA || device.id != pool->dev_id)
		return -EXDEV;
	if (pool->pool == NULL)
		return -ENODEV;
	r = count(pool, size);
	if (r == 0 && pool->heap.bytes > 0 &&
	    fragi_area_heap_alloc(&pool->heap, size, out_memory) == 0)
		return 0;
	if (r == 0) {
		r = pool->cuda->pool_alloc(pool->pool, size, out_memory, NULL);
		if (r < 0)
			discount(pool, size);
	}
	if (r < 0)
		atomic_fetch_add_explicit(&pool->refused, 1, memory_order_relaxed);
	return r;
}

void fragi_gpu_pool_level(const struct fragi_gpu_pool *pool, struct fragi_blocks *out)
{
	uint64_t used = atomic_load_explicit(&pool->used_bytes, memory_order_relaxed);

	*out = (struct fragi_blocks){
		.all = (size_t)pool->max_bytes,
		.free = (size_t)(pool->max_bytes - used),
		.block_bytes = 1,
		.refused = atomic_load_explicit(&pool->refused, memory_order_relaxed),
	};
}

void fragi_gpu_pool_free(struct fragi_gpu_pool *pool, void *memory)
{
	size_t size = fragi_area_heap_free(&pool->heap, memory);

	discount(pool, size > 0 ? size : pool->cuda->pool_free(pool->pool, memory));
}
