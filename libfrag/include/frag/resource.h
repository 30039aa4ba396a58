/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_RESOURCE_H
#define FRAG_RESOURCE_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Resources are shared by the operators of a fragment. The built-in ones are allocators. Their
 * names in graphs, and their parameters with the defaults in parentheses:
 * - block_memory_pool: a fixed number of blocks of one size. A request for more than one block
 *   holds, or for one block more than there are, fails.
 *   - block_size: bytes of a block; required
 *   - num_blocks: number of blocks; required
 *   - storage_type (2): 0: pinned host memory, 1: device memory, 2: system memory; 0 and 1 are not
 *     built yet
 *   - dev_id (0): number of the device, for device memory
 * - unbounded_allocator: the heap of the process; no parameters
 */
struct frag_resource;

/*
 * Takes memory, aligned to 64 bytes, from an allocator.
 * - allocator: NULL: the heap of the process
 * - size: in bytes
 * - out_memory: receives the memory; give it back with frag_free
 * Returns 0; -ENOMEM: nothing is left; -EMSGSIZE: larger than a block of the pool; -EINVAL: the
 * resource is no allocator.
 * Thread: any. Blocks: no. RT-safe: from a block_memory_pool.
 */
FRAG_API int frag_alloc(struct frag_resource *allocator, size_t size, void **out_memory);
/*
 * Gives memory back.
 * - allocator: the one that it was taken from
 * - memory: NULL is accepted
 * Thread: any. Blocks: no. RT-safe: to a block_memory_pool.
 */
FRAG_API void frag_free(struct frag_resource *allocator, void *memory);

/*
 * Returns the resource's name in the graph, borrowed as long as the resource lives.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_resource_name(const struct frag_resource *resource);
/*
 * Returns the resource's type and the values of its parameters as YAML, for people; NULL when
 * memory is short. The caller calls free() on it. Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API char *frag_resource_describe(const struct frag_resource *resource);
/*
 * Returns the number of blocks of a block_memory_pool that are not in use; SIZE_MAX for an
 * allocator that has no blocks. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API size_t frag_resource_blocks_free(const struct frag_resource *resource);

FRAG_END_DECLS

#endif
