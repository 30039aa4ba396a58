// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "pool"
#include <base/log.h>
#include <data/area_heap.h>
#include <res/gpu_pool.h>

struct rmm {
	struct fragi_gpu_pool pool;
	uint64_t host_first_bytes, host_max_bytes;
	struct fragi_area_heap heap;
};

static const struct frag_param params[] = {
	FRAGI_GPU_POOL_PARAMS(struct rmm, pool),
	FRAGI_POOL_SIZE(struct rmm, host_first_bytes, "host_memory_initial_size",
			FRAGI_GPU_POOL_FIRST, "Pinned memory that is taken at the start"),
	FRAGI_POOL_SIZE(struct rmm, host_max_bytes, "host_memory_max_size",
			2 * FRAGI_GPU_POOL_FIRST, "Pinned memory in use at most"),
};

static int setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct rmm *s = state;
	int r = fragi_gpu_pool_check_sizes(s->pool.first_bytes, s->pool.max_bytes, "device_memory",
					   err);

	resource->allocator.is_pinned = true;
	resource->allocator.gpu = fragi_gpu_pool_device(&s->pool);
	resource->allocator.is_shared = s->pool.first_bytes > 0;
	resource->allocator.spills = true;
	return r < 0 ? r
		     : fragi_gpu_pool_check_sizes(s->host_first_bytes, s->host_max_bytes,
						  "host_memory", err);
}

static int initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct frag_device pinned = {FRAG_DEVICE_CUDA_HOST, 0};
	struct frag_err why = FRAG_ERR_INIT;
	struct rmm *s = state;
	/* What was given back stays. */
	int r = fragi_gpu_pool_initialize(&s->pool, UINT64_MAX, err);

	(void)resource;
	if (r < 0)
		return r;
	r = fragi_area_heap_init(&s->heap, &fragi_area_own, pinned, s->host_first_bytes,
				 s->host_max_bytes, &why);
	return r < 0 ? frag_err_set(err, r, "there is no pinned memory: %s", why.text) : 0;
}

static void fini(void *state)
{
	struct rmm *s = state;

	fragi_area_heap_fini(&s->heap);
	fragi_gpu_pool_fini(&s->pool);
}

static int alloc(void *state, size_t size, void **out_memory)
{
	return fragi_area_heap_alloc(&((struct rmm *)state)->heap, size, out_memory);
}

static void free_pinned(void *state, void *memory)
{
	if (fragi_area_heap_free(&((struct rmm *)state)->heap, memory) == 0)
		log_error(NULL, "%p was freed to an allocator that it does not belong to; ignored",
			  memory);
}

static int alloc_on(void *state, struct frag_device device, size_t size, void **out_memory)
{
	return fragi_gpu_pool_alloc(&((struct rmm *)state)->pool, device, size, out_memory);
}

static void free_on(void *state, struct frag_device device, void *memory)
{
	(void)device;
	fragi_gpu_pool_free(&((struct rmm *)state)->pool, memory);
}

/* That of the GPU. */
static void level(const void *state, struct fragi_blocks *out)
{
	fragi_gpu_pool_level(&((const struct rmm *)state)->pool, out);
}

const struct fragi_built_in_resource fragi_rmm_allocator = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "rmm_allocator",
		 .headline = "Device memory and pinned memory from two pools",
		 .description =
			 "The pools take more as it is needed, up to their maximum, and keep what was given back.",
		 FRAG_PARAMS(params), .state_size = sizeof(struct rmm), .setup = setup,
		 .initialize = initialize, .fini = fini, .alloc = alloc, .free = free_pinned},
	.level = level,
	.alloc_on = alloc_on,
	.free_on = free_on,
};
