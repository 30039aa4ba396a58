// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>

#define LOG_TOPIC "cuda"
#include <base/alloc.h>
#include <base/log.h>
#include <data/gpu_limit.h>
#include <frag/cuda.h>

#include "device.h"
#include "module.h"
#include "peer.h"

/*
 * The driver orders allocations and frees by stream. A pool has a stream of its own with nothing
 * else in it, and waits for it after an allocation, so that the memory may be used on any stream.
 */
struct fragi_cuda_pool {
	const struct cuda_device *gpu;
	CUmemoryPool pool;
	CUstream stream;
	uint64_t keep_bytes;
	/* Where the host has a limit: what is in use, and what of the limit the pool has. */
	pthread_mutex_t lock;
	uint64_t used_bytes, held_bytes;
};

static CUdeviceptr address(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

/* The pool takes of the limit what is beyond the free memory that it has kept. */
static int hold(struct fragi_cuda_pool *pool, size_t size, size_t *out_more, struct frag_err *err)
{
	size_t more = 0, kept;
	int r = 0;

	*out_more = 0;
	if (fragi_gpu_limit() == 0)
		return 0;
	pthread_mutex_lock(&pool->lock);
	kept = (size_t)(pool->held_bytes - pool->used_bytes);
	if (size > kept) {
		more = size - kept;
		r = frag_gpu_memory_take(more, err);
	}
	if (r == 0) {
		pool->used_bytes += size;
		pool->held_bytes += more;
		*out_more = more;
	}
	pthread_mutex_unlock(&pool->lock);
	return r;
}

/* The driver has refused what was held. */
static void hold_no_more(struct fragi_cuda_pool *pool, size_t size, size_t more)
{
	if (fragi_gpu_limit() == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->used_bytes -= size;
	pool->held_bytes -= more;
	pthread_mutex_unlock(&pool->lock);
	frag_gpu_memory_give(more);
}

/* Memory was given back: the pool keeps so much of it as the driver does. */
static void release(struct fragi_cuda_pool *pool, size_t size)
{
	uint64_t held;

	if (fragi_gpu_limit() == 0)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->used_bytes -= size;
	held = pool->used_bytes > pool->keep_bytes ? pool->used_bytes : pool->keep_bytes;
	if (pool->held_bytes > held) {
		frag_gpu_memory_give(pool->held_bytes - held);
		pool->held_bytes = held;
	}
	pthread_mutex_unlock(&pool->lock);
}

static int take_from_driver(struct fragi_cuda_pool *pool, size_t size, CUdeviceptr *out,
			    struct frag_err *err)
{
	const struct cuda_device *gpu = pool->gpu;
	CUdeviceptr memory = 0;
	int r = cuda_check(cu.cuMemAllocFromPoolAsync(&memory, size, pool->pool, pool->stream), err,
			   "GPU %d (%s): cuMemAllocFromPoolAsync of %zu bytes", (int)gpu->id,
			   gpu->name, size);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamSynchronize(pool->stream), err,
		       "GPU %d (%s): cuStreamSynchronize", (int)gpu->id, gpu->name);
	if (r < 0)
		(void)cu.cuMemFreeAsync(memory, pool->stream);
	else
		*out = memory;
	return r;
}

static int alloc_in_context(struct fragi_cuda_pool *pool, size_t size, CUdeviceptr *out,
			    struct frag_err *err)
{
	size_t more;
	int r = hold(pool, size, &more, err);

	if (r < 0)
		return r;
	r = take_from_driver(pool, size, out, err);
	if (r < 0)
		hold_no_more(pool, size, more);
	return r;
}

static int give_to_driver(struct fragi_cuda_pool *pool, CUdeviceptr memory, size_t size,
			  struct frag_err *err)
{
	int r = cuda_check(cu.cuMemFreeAsync(memory, pool->stream), err,
			   "GPU %d (%s): cuMemFreeAsync", (int)pool->gpu->id, pool->gpu->name);

	if (r == 0)
		release(pool, size);
	return r;
}

static int make_pool(struct fragi_cuda_pool *pool, uint64_t first_bytes, struct frag_err *err)
{
	const struct cuda_device *gpu = pool->gpu;
	const CUmemPoolProps properties = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_NONE,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->id},
	};
	unsigned long long keep = pool->keep_bytes;
	CUdeviceptr first = 0;
	int r = cuda_check(cu.cuStreamCreateWithPriority(&pool->stream, CU_STREAM_NON_BLOCKING, 0),
			   err, "GPU %d (%s): cuStreamCreateWithPriority", (int)gpu->id, gpu->name);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuMemPoolCreate(&pool->pool, &properties), err,
		       "GPU %d (%s): cuMemPoolCreate", (int)gpu->id, gpu->name);
	if (r < 0)
		goto err_stream;
	r = cuda_check(
		cu.cuMemPoolSetAttribute(pool->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep), err,
		"GPU %d (%s): cuMemPoolSetAttribute", (int)gpu->id, gpu->name);
	/* What was given back stays in the pool, up to the threshold. */
	if (r == 0 && first_bytes > 0)
		r = alloc_in_context(pool, (size_t)first_bytes, &first, err);
	if (r == 0 && first_bytes > 0)
		r = give_to_driver(pool, first, (size_t)first_bytes, err);
	if (r == 0) {
		cuda_peer_add(&(struct cuda_own_memory){
			.gpu = gpu,
			.pool = pool->pool,
			.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		});
		return 0;
	}
	(void)cu.cuMemPoolDestroy(pool->pool);
err_stream:
	(void)cu.cuStreamDestroy_v2(pool->stream);
	return r;
}

/* It goes with all that it has of the limit. */
static void forget(struct fragi_cuda_pool *pool)
{
	frag_gpu_memory_give(pool->held_bytes);
	(void)pthread_mutex_destroy(&pool->lock);
	fragi_free(pool);
}

int cuda_pool_create(int32_t id, uint64_t first_bytes, uint64_t keep_bytes,
		     struct fragi_cuda_pool **out, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	struct fragi_cuda_pool *pool;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)id);
	if (!gpu->has_pools)
		return frag_err_set(err, -ENOTSUP,
				    "GPU %d (%s) has no memory pools; use a block_memory_pool",
				    (int)id, gpu->name);
	pool = fragi_calloc(1, sizeof(*pool));
	if (pool == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	pool->gpu = gpu;
	pool->keep_bytes = keep_bytes;
	(void)pthread_mutex_init(&pool->lock, NULL);
	r = cuda_device_enter(gpu, err);
	if (r == 0) {
		r = make_pool(pool, first_bytes, err);
		cuda_device_leave();
	}
	if (r < 0)
		forget(pool);
	else
		*out = pool;
	return r;
}

static void report(int r, const struct frag_err *err)
{
	if (r < 0)
		log_error(NULL, "memory of a pool was not freed: %s", err->text);
}

void cuda_pool_destroy(struct fragi_cuda_pool *pool)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (pool == NULL)
		return;
	cuda_peer_remove(pool->pool, 0);
	r = cuda_device_enter(pool->gpu, &err);
	if (r == 0) {
		r = cuda_check(cu.cuMemPoolDestroy(pool->pool), &err,
			       "GPU %d (%s): cuMemPoolDestroy", (int)pool->gpu->id,
			       pool->gpu->name);
		(void)cu.cuStreamDestroy_v2(pool->stream);
		cuda_device_leave();
	}
	report(r, &err);
	forget(pool);
}

int cuda_pool_alloc(struct fragi_cuda_pool *pool, size_t size, void **out_memory,
		    struct frag_err *err)
{
	CUdeviceptr memory = 0;
	int r = cuda_device_enter(pool->gpu, err);

	if (r < 0)
		return r;
	r = alloc_in_context(pool, size, &memory, err);
	cuda_device_leave();
	if (r == 0)
		*out_memory = (void *)(uintptr_t)memory;
	return r;
}

static int free_in_context(struct fragi_cuda_pool *pool, CUdeviceptr memory, size_t *out_size,
			   struct frag_err *err)
{
	int r = cuda_check(cu.cuMemGetAddressRange_v2(NULL, out_size, memory), err,
			   "GPU %d (%s): cuMemGetAddressRange", (int)pool->gpu->id,
			   pool->gpu->name);

	return r < 0 ? r : give_to_driver(pool, memory, *out_size, err);
}

size_t cuda_pool_free(struct fragi_cuda_pool *pool, void *memory)
{
	struct frag_err err = FRAG_ERR_INIT;
	size_t size = 0;
	int r = cuda_device_enter(pool->gpu, &err);

	if (r == 0) {
		r = free_in_context(pool, address(memory), &size, &err);
		cuda_device_leave();
	}
	report(r, &err);
	return r == 0 ? size : 0;
}
