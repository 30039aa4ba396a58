// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <res/gpu_pool.h>

struct stream_ordered {
	struct fragi_gpu_pool pool;
	uint64_t release_threshold;
};

static const struct frag_param params[] = {
	FRAGI_GPU_POOL_PARAMS(struct stream_ordered, pool),
	FRAG_PARAM_SIZE(struct stream_ordered, release_threshold, UINT64_C(4) << 20,
			.headline = "Free memory that the pool keeps"),
};

static int setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct stream_ordered *s = state;

	resource->allocator.gpu = fragi_gpu_pool_device(&s->pool);
	resource->allocator.is_shared = s->pool.first_bytes > 0;
	resource->allocator.spills = true;
	return fragi_gpu_pool_check_sizes(s->pool.first_bytes, s->pool.max_bytes, "device_memory",
					  err);
}

static int initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct stream_ordered *s = state;

	(void)resource;
	return fragi_gpu_pool_initialize(&s->pool, s->release_threshold, err);
}

static void fini(void *state)
{
	fragi_gpu_pool_fini(&((struct stream_ordered *)state)->pool);
}

/* It has no memory that the CPU can use. */
static int alloc(void *state, size_t size, void **out_memory)
{
	(void)state;
	(void)size;
	(void)out_memory;
	return -EXDEV;
}

static int alloc_on(void *state, struct frag_device device, size_t size, void **out_memory)
{
	return fragi_gpu_pool_alloc(&((struct stream_ordered *)state)->pool, device, size,
				    out_memory);
}

static void free_on(void *state, struct frag_device device, void *memory)
{
	(void)device;
	fragi_gpu_pool_free(&((struct stream_ordered *)state)->pool, memory);
}

static void level(const void *state, struct fragi_blocks *out)
{
	fragi_gpu_pool_level(&((const struct stream_ordered *)state)->pool, out);
}

const struct fragi_built_in_resource fragi_stream_ordered_allocator = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "stream_ordered_allocator",
		 .headline = "Device memory from a pool of the driver",
		 .description =
			 "The pool takes more as it is needed; free memory beyond release_threshold goes back to the GPU.",
		 FRAG_PARAMS(params), .state_size = sizeof(struct stream_ordered), .setup = setup,
		 .initialize = initialize, .fini = fini, .alloc = alloc},
	.level = level,
	.alloc_on = alloc_on,
	.free_on = free_on,
};
