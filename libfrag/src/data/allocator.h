/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_ALLOCATOR_H
#define FRAGI_DATA_ALLOCATOR_H

#include <stdatomic.h>

#include <base/diag.h>
#include <frag/resource.h>

/*
 * The part of a resource that tensors use; the first member of every struct frag_resource. Each
 * tensor holds a reference to its allocator, so that the memory outlives the fragment that created
 * the resource.
 */
struct fragi_allocator {
	_Atomic uint32_t refs;
	/* NULL: the resource is no allocator */
	int (*alloc)(void *state, size_t size, void **out_memory);
	void (*free)(void *state, void *memory);
	void *state;
	/* called when the last reference is dropped */
	void (*destroy)(struct frag_resource *resource);
};

FRAGI_API struct frag_resource *fragi_resource_ref(struct frag_resource *resource);
/* NULL is accepted. */
FRAGI_API void fragi_resource_unref(struct frag_resource *resource);

/*
 * Where the memory of tensors and pools comes from when nobody names an allocator: NULL: the heap
 * of the process. A host with edges over shared memory sets it before it composes, so that its
 * tensors lie where peers can read them. Who takes memory keeps a reference for as long as it has
 * any. Thread: set by the control thread while no operator runs.
 */
FRAGI_API void fragi_default_memory_set(struct frag_resource *memory);
FRAGI_API struct frag_resource *fragi_default_memory(void); /* borrowed */

#endif
