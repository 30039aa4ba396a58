// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#define LOG_TOPIC "pool"
#include <base/alloc.h>
#include <base/failure.h>
#include <base/log.h>
#include <data/area.h>
#include <res/resource.h>
#include <type/cuda.h>

/*
 * A fixed number of blocks of one size. The free blocks form a lock-free stack of indices. Its head
 * carries a tag that every push changes, so that a pop notices when the same block was popped and
 * pushed again in between (the ABA problem).
 */
#define BLOCK_ALIGN 64u
#define BLOCKS_MAX (1u << 24)
#define NO_BLOCK UINT32_MAX

enum { STORAGE_HOST, STORAGE_DEVICE, STORAGE_SYSTEM };

struct block_pool {
	/* parameters */
	int64_t storage_type;
	uint64_t block_size;
	int64_t num_blocks;
	int64_t dev_id;

	/* constant once created */
	struct frag_device device;
	struct fragi_area area; /* its memory; a GPU's: from initialize on */
	size_t total;
	size_t stride;
	struct block_link *links; /* one for each block */

	_Alignas(64) _Atomic uint64_t head; /* tag << 32 | index of the first free block */
	/*
	 * Never more than there are: a block is counted once it can be taken. Another thread may
	 * take it before that, so the count may be below 0 for a moment.
	 */
	_Alignas(64) _Atomic int32_t free_count;
	_Atomic uint64_t refused;
};

struct block_link {
	_Atomic uint32_t next;
	_Atomic uint32_t in_use;
};

static const struct frag_param block_pool_params[] = {
	FRAG_PARAM_I64(struct block_pool, storage_type, STORAGE_SYSTEM,
		       .headline = "Kind of memory",
		       .description = "0 pinned host, 1 device, 2 system; 0 and 1 need a GPU",
		       .min = 0, .max = 2),
	FRAG_PARAM_SIZE(struct block_pool, block_size, 0, .headline = "Size of a block",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_I64(struct block_pool, num_blocks, 0, .headline = "Number of blocks",
		       .flags = FRAG_PARAM_REQUIRED, .min = 1, .max = BLOCKS_MAX),
	FRAG_PARAM_I64(struct block_pool, dev_id, 0, .min = 0, .max = INT32_MAX,
		       .headline = "Number of the GPU, for device memory"),
};

static void push(struct block_pool *pool, uint32_t index)
{
	uint64_t head = atomic_load_explicit(&pool->head, memory_order_relaxed), wanted;

	do {
		atomic_store_explicit(&pool->links[index].next, (uint32_t)head,
				      memory_order_relaxed);
		wanted = ((head >> 32) + 1) << 32 | index;
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->head, &head, wanted, memory_order_release, memory_order_relaxed));
	atomic_fetch_add_explicit(&pool->free_count, 1, memory_order_release);
}

static uint32_t pop(struct block_pool *pool)
{
	uint64_t head = atomic_load_explicit(&pool->head, memory_order_acquire), wanted;
	uint32_t index;

	do {
		index = (uint32_t)head;
		if (index == NO_BLOCK)
			return NO_BLOCK;
		wanted = (head & ~(uint64_t)UINT32_MAX) |
			 atomic_load_explicit(&pool->links[index].next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->head, &head, wanted, memory_order_acquire, memory_order_acquire));
	atomic_fetch_sub_explicit(&pool->free_count, 1, memory_order_relaxed);
	return index;
}

static int block_pool_alloc(void *state, size_t size, void **out_memory)
{
	struct block_pool *pool = state;
	uint32_t index;

	if (size > pool->block_size)
		return -EMSGSIZE;
	index = pop(pool);
	if (index == NO_BLOCK) {
		atomic_fetch_add_explicit(&pool->refused, 1, memory_order_relaxed);
		return -ENOMEM;
	}
	atomic_store_explicit(&pool->links[index].in_use, 1, memory_order_relaxed);
	*out_memory = (unsigned char *)pool->area.memory + (size_t)index * pool->stride;
	return 0;
}

static void block_pool_free(void *state, void *memory)
{
	struct block_pool *pool = state;
	size_t at = (size_t)((uintptr_t)memory - (uintptr_t)pool->area.memory);
	uint32_t index;

	if (at % pool->stride != 0 || at / pool->stride >= (size_t)pool->num_blocks) {
		log_error(NULL,
			  "%p was freed to a block_memory_pool that it does not belong to; ignored",
			  memory);
		return;
	}
	index = (uint32_t)(at / pool->stride);
	if (atomic_exchange_explicit(&pool->links[index].in_use, 0, memory_order_relaxed) == 0) {
		log_error(NULL, "%p was freed to its block_memory_pool twice; ignored", memory);
		return;
	}
	push(pool, index);
}

/* Of a pool of device memory: what asks for memory without a device would use it with the CPU. */
static int refuse_host_memory(void *state, size_t size, void **out_memory)
{
	(void)state;
	(void)size;
	(void)out_memory;
	return -EXDEV;
}

static int block_pool_alloc_on(void *state, struct frag_device device, size_t size,
			       void **out_memory)
{
	const struct block_pool *pool = state;

	return fragi_device_is(device, pool->device) ? block_pool_alloc(state, size, out_memory)
						     : -EXDEV;
}

static void block_pool_free_on(void *state, struct frag_device device, void *memory)
{
	(void)device;
	block_pool_free(state, memory);
}

/* Returns 0 and the bytes of all blocks, or a failure. */
static int check_parameters(const struct block_pool *pool, const char *name, size_t *out_total,
			    struct frag_err *err)
{
	if (pool->storage_type < STORAGE_HOST || pool->storage_type > STORAGE_SYSTEM)
		return frag_err_set(err, -EINVAL,
				    "resource \"%s\": storage_type is %" PRId64
				    ", which is not a kind of memory; use 2, system memory",
				    name, pool->storage_type);
	if (pool->num_blocks < 1 || pool->num_blocks > BLOCKS_MAX)
		return frag_err_set(err, -EINVAL,
				    "resource \"%s\": num_blocks is %" PRId64
				    "; give a number from 1 to %u",
				    name, pool->num_blocks, BLOCKS_MAX);
	if (pool->block_size == 0)
		return frag_err_set(
			err, -EINVAL,
			"resource \"%s\": block_size is 0; give the size of the largest tensor",
			name);
	if (pool->block_size > SIZE_MAX / 2 - BLOCK_ALIGN ||
	    __builtin_mul_overflow((pool->block_size + BLOCK_ALIGN - 1) &
					   ~(uint64_t)(BLOCK_ALIGN - 1),
				   (uint64_t)pool->num_blocks, out_total) ||
	    *out_total > PTRDIFF_MAX)
		return frag_err_set(
			err, -EINVAL,
			"resource \"%s\": %" PRId64 " blocks of %" PRIu64
			" bytes are more than a process can have; make them fewer or smaller",
			name, pool->num_blocks, pool->block_size);
	return 0;
}

static int refuse_memory(const struct block_pool *pool, const char *name, struct frag_err *err)
{
	return frag_err_set(err, -ENOMEM,
			    "resource \"%s\": there is no memory for %" PRId64 " blocks of %" PRIu64
			    " bytes; make them fewer or smaller",
			    name, pool->num_blocks, pool->block_size);
}

/* All blocks become free; before, there is none. */
static void offer_blocks(struct block_pool *pool)
{
	for (int64_t i = pool->num_blocks - 1; i >= 0; i--)
		push(pool, (uint32_t)i);
}

static int block_pool_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const char *name = frag_resource_name(resource);
	struct block_pool *pool = state;
	int r = check_parameters(pool, name, &pool->total, err);

	if (r < 0)
		return r;
	pool->stride = pool->total / (size_t)pool->num_blocks;
	pool->links = fragi_calloc((size_t)pool->num_blocks, sizeof(*pool->links));
	if (pool->links == NULL)
		return refuse_memory(pool, name, err);
	atomic_store(&pool->refused, 0);
	atomic_store(&pool->head, NO_BLOCK);
	atomic_store(&pool->free_count, 0);
	pool->device = pool->storage_type == STORAGE_DEVICE
			       ? (struct frag_device){FRAG_DEVICE_CUDA, (int32_t)pool->dev_id}
		       : pool->storage_type == STORAGE_HOST
			       ? (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0}
			       : (struct frag_device){FRAG_DEVICE_CPU, 0};
	resource->allocator.is_pinned = pool->storage_type == STORAGE_HOST;
	if (pool->storage_type == STORAGE_DEVICE) {
		resource->allocator.alloc = refuse_host_memory;
		resource->allocator.alloc_on = block_pool_alloc_on;
		resource->allocator.free_on = block_pool_free_on;
		resource->allocator.gpu = pool->device;
		resource->allocator.is_shared = true;
	}
	if (pool->storage_type != STORAGE_SYSTEM)
		return 0;
	pool->area.from = fragi_default_memory();
	if (frag_alloc(pool->area.from, pool->total, &pool->area.memory) < 0) {
		fragi_free(pool->links);
		return refuse_memory(pool, name, err);
	}
	if (pool->area.from != NULL)
		(void)fragi_resource_ref(pool->area.from);
	offer_blocks(pool);
	return 0;
}

static const struct fragi_area_source *source_of(const struct block_pool *pool)
{
	return pool->storage_type == STORAGE_DEVICE ? &fragi_area_shared : &fragi_area_own;
}

/* A GPU is opened when the graph starts, and not when it is composed or checked. */
static int block_pool_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct block_pool *pool = state;
	const struct fragi_cuda_ops *cuda;
	struct frag_err why = FRAG_ERR_INIT;
	int r;

	if (pool->storage_type == STORAGE_SYSTEM)
		return 0;
	if (fragi_cuda_use(pool->device, &cuda, &why) < 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_GPU_MISSING, NULL, -ENODEV,
			"storage_type %" PRId64
			" needs GPU %d, and %s; run the fragment on a worker with a GPU (requirements: {gpu: 1}), or use storage_type: 2",
			pool->storage_type, (int)pool->device.id, why.text);
	r = source_of(pool)->take(pool->device, pool->total, &pool->area, &why);
	if (r < 0)
		return frag_err_set(err, r,
				    "there is no memory for %" PRId64 " blocks of %" PRIu64
				    " bytes: %s; make them fewer or smaller",
				    pool->num_blocks, pool->block_size, why.text);
	(void)resource;
	offer_blocks(pool);
	return 0;
}

static void block_pool_fini(void *state)
{
	struct block_pool *pool = state;

	fragi_free(pool->links);
	if (pool->storage_type != STORAGE_SYSTEM) {
		source_of(pool)->give(pool->device, &pool->area);
		return;
	}
	frag_free(pool->area.from, pool->area.memory);
	fragi_resource_unref(pool->area.from);
}

static void block_pool_blocks(const void *state, struct fragi_blocks *out)
{
	const struct block_pool *pool = state;
	int32_t free_count = atomic_load_explicit(&pool->free_count, memory_order_acquire);

	*out = (struct fragi_blocks){
		.all = (size_t)pool->num_blocks,
		.block_bytes = (size_t)pool->block_size,
		.free = free_count > 0 ? (size_t)free_count : 0,
		.refused = atomic_load_explicit(&pool->refused, memory_order_relaxed),
	};
}

const struct fragi_built_in_resource fragi_block_memory_pool = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "block_memory_pool",
		 .headline = "A fixed number of blocks of memory of one size",
		 .description =
			 "A request for more than a block, or for one block more than there are, fails: the memory of a graph is bounded.",
		 FRAG_PARAMS(block_pool_params), .state_size = sizeof(struct block_pool),
		 .setup = block_pool_setup, .initialize = block_pool_initialize,
		 .fini = block_pool_fini, .alloc = block_pool_alloc, .free = block_pool_free},
	.blocks = block_pool_blocks,
};
