/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_RESOURCE_H
#define FRAGI_RES_RESOURCE_H

#include <base/arena.h>
#include <data/allocator.h>
#include <frag/data_logger.h>
#include <frag/operator.h>

/* A type that is part of libfrag. One file of this folder holds one. */
struct fragi_built_in_resource {
	struct frag_resource_type type;
	/* NULL: it has no blocks. From any thread. */
	void (*blocks)(const void *state, struct fragi_blocks *out);
	/* Of a pool without blocks: how full it is, in blocks of one byte. From any thread. */
	void (*level)(const void *state, struct fragi_blocks *out);
	const struct frag_data_logger_type *logger; /* NULL: it is no data logger */
	/* Of allocators with memory of several devices, see struct fragi_allocator; else NULL. */
	int (*alloc_on)(void *state, struct frag_device device, size_t size, void **out_memory);
	void (*free_on)(void *state, struct frag_device device, void *memory);
};

struct frag_resource {
	struct fragi_allocator allocator; /* first; holds the state and the references */
	/* A copy, because a tensor may keep the resource for longer than its registry lives. */
	struct frag_resource_type type;
	/* NULL: of a plugin. Only to compare: it may have gone. */
	const struct fragi_built_in_resource *built_in;
	bool is_logger; /* its state is a struct fragi_data_logger */
	char *name;
	const char *scope; /* as that of an operator; of the fragment, while there is one */
	struct frag_fragment *fragment; /* NULL: it has gone */
	struct fragi_arena arena;       /* of its parameters */
	struct frag_resource **uses;    /* references to those that its parameters name */
	uint32_t use_count;
	bool is_set_up; /* fini is due */
	/* of a service of the application */
	bool is_starting, is_driver, is_connected; /* in driver_start; driver_stop, ... are due */
	const char *announced;                     /* in arena; NULL: nothing */
	/* how many blocks its flows can hold (graph/pools.h); 0: not known. Constant after wire. */
	uint64_t blocks_needed;
};

extern const struct fragi_built_in_resource fragi_block_memory_pool, fragi_cuda_green_context,
	fragi_cuda_green_context_pool, fragi_cuda_stream_pool, fragi_rmm_allocator,
	fragi_stream_ordered_allocator, fragi_unbounded_allocator;

/* Whether a resource is a cuda_stream_pool, and of which GPU. NULL is accepted. */
bool fragi_is_stream_pool(const struct frag_resource *resource, struct frag_device *out_gpu);

/* The built-in type of that name; NULL: there is none. Aliases are not applied. */
FRAGI_API const struct fragi_built_in_resource *fragi_built_in_resource(const char *name);
/* The i-th one, NULL beyond the last: to list them. */
FRAGI_API const struct fragi_built_in_resource *fragi_built_in_resource_at(size_t i);

/*
 * Creates a resource with a zeroed state; next its parameters are filled in, in its arena.
 * - built_in: NULL: type is one of a plugin
 * - out: receives one reference, which fragi_resource_unref drops
 * Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_resource_create(const struct frag_resource_type *type,
				    const struct fragi_built_in_resource *built_in,
				    const char *name, struct frag_resource **out);
/*
 * Calls setup, with the parameters in place. Returns 0; a negative errno, with a sentence if setup
 * gave one.
 */
FRAGI_API int fragi_resource_set_up(struct frag_resource *resource, struct frag_err *err);
/* What a callback has returned: 0, a negative errno; or, where it is positive, its refusal. */
int fragi_resource_result(const char *callback, int r, struct frag_err *err);

static inline void *fragi_resource_state(const struct frag_resource *resource)
{
	return resource->allocator.state;
}

#endif
