/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_RESOURCE_H
#define FRAG_RESOURCE_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Resources are shared by the operators of a fragment: here, allocators. Built in, by their names
 * in graphs:
 *   block_memory_pool     storage_type (0 pinned host, 1 device, 2 system; only 2 is built yet),
 *   block_size,
 * num_blocks, dev_id: a fixed number of blocks; a larger request, or one more, fails
 * unbounded_allocator the system's
 */
struct frag_resource;

/*
 * Memory from an allocator resource (NULL: the process's default), aligned to 64 bytes. Returns 0;
 * -ENOMEM when it has nothing left; -EMSGSIZE when size exceeds a pool's block; -EINVAL when the
 * resource is no allocator. Thread: any. Blocks: no. RT-safe: from a block_memory_pool.
 */
FRAG_API int frag_alloc(struct frag_resource *allocator, size_t size, void **out_memory);
/* Gives memory back to the allocator it came from; NULL memory is accepted. Thread: any. */
FRAG_API void frag_free(struct frag_resource *allocator, void *memory);

/* The name in the graph. */
FRAG_API const char *frag_resource_name(const struct frag_resource *resource);
/*
 * Its type and parameters with their values, for people, as YAML. NULL when memory is short; free()
 * it. Thread: any.
 */
FRAG_API char *frag_resource_describe(const struct frag_resource *resource);
/*
 * Blocks of a block_memory_pool not in use; SIZE_MAX for an allocator without such a number.
 * Thread: any.
 */
FRAG_API size_t frag_resource_blocks_free(const struct frag_resource *resource);

FRAG_END_DECLS

#endif
