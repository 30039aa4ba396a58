/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_GPU_POOL_H
#define FRAGI_RES_GPU_POOL_H

#include <data/area_heap.h>
#include <res/resource.h>
#include <type/cuda.h>

/* Holoscan's sizes for pools of memory of GPUs: MiB at first, and twice that at most. */
#ifdef __aarch64__
#define FRAGI_GPU_POOL_MIB 8u
#else
#define FRAGI_GPU_POOL_MIB 16u
#endif
#define FRAGI_GPU_POOL_FIRST ((uint64_t)FRAGI_GPU_POOL_MIB << 20)

/*
 * The parameters of allocators with a pool of device memory, and the pool, which is one of the
 * driver. Where there are other hosts, what it takes at first is an area that they can map, and
 * comes before the driver's pool: that cannot be mapped for reading alone
 * (docs/ARCHITECTURE.md, "Memory of GPUs and UCX").
 */
struct fragi_gpu_pool {
	uint64_t first_bytes, max_bytes;
	int64_t dev_id;
	const struct fragi_cuda_ops *cuda; /* from initialize on */
	struct fragi_area_heap heap;       /* the area; of 0 bytes: there is none */
	struct fragi_cuda_pool *pool;      /* of the driver */
	_Atomic uint64_t used_bytes;       /* of both */
	_Atomic uint64_t refused;
};

/* A parameter that holds a size, in a field of another name. */
#define FRAGI_POOL_SIZE(type, field, name_, default_, headline_)                                   \
	{                                                                                          \
		.name = (name_), .kind = FRAG_PARAM_KIND_SIZE,                                     \
		.offset = FRAG_PARAM_OFFSET(type, field, uint64_t), .def_int = (default_),         \
		.headline = (headline_)                                                            \
	}
#define FRAGI_GPU_POOL_PARAMS(type, pool)                                                          \
	FRAGI_POOL_SIZE(type, pool.first_bytes, "device_memory_initial_size",                      \
			FRAGI_GPU_POOL_FIRST,                                                      \
			"Device memory taken at the start, which other hosts can map"),            \
		FRAGI_POOL_SIZE(type, pool.max_bytes, "device_memory_max_size",                    \
				2 * FRAGI_GPU_POOL_FIRST, "Device memory in use at most"),         \
	{                                                                                          \
		.name = "dev_id", .kind = FRAG_PARAM_KIND_I64,                                     \
		.offset = FRAG_PARAM_OFFSET(type, pool.dev_id, int64_t), .max = INT32_MAX,         \
		.headline = "Number of the GPU"                                                    \
	}

static inline struct frag_device fragi_gpu_pool_device(const struct fragi_gpu_pool *pool)
{
	return (struct frag_device){FRAG_DEVICE_CUDA, (int32_t)pool->dev_id};
}

/* Refuses sizes that make no sense. what: "device_memory". Returns 0 or -EINVAL. */
int fragi_gpu_pool_check_sizes(uint64_t first_bytes, uint64_t max_bytes, const char *what,
			       struct frag_err *err);
/* Opens the GPU and makes the pool. Returns 0 or a negative errno. */
int fragi_gpu_pool_initialize(struct fragi_gpu_pool *pool, uint64_t keep_bytes,
			      struct frag_err *err);
/* Accepts a pool that was not initialised. */
void fragi_gpu_pool_fini(struct fragi_gpu_pool *pool);
/* As alloc_on and free_on of struct fragi_allocator. */
int fragi_gpu_pool_alloc(struct fragi_gpu_pool *pool, struct frag_device device, size_t size,
			 void **out_memory);
void fragi_gpu_pool_free(struct fragi_gpu_pool *pool, void *memory);
/* How full it is, in bytes. */
void fragi_gpu_pool_level(const struct fragi_gpu_pool *pool, struct fragi_blocks *out);

#endif
