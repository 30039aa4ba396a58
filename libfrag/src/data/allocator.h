/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_ALLOCATOR_H
#define FRAGI_DATA_ALLOCATOR_H

#include <stdatomic.h>

#include <base/diag.h>
#include <frag/resource.h>

/*
 * What tensors know of the resource they come from: the first member of every struct frag_resource.
 * Each tensor holds a reference, so that memory outlives the fragment that made it.
 */
struct fragi_allocator {
	_Atomic uint32_t refs;
	/* NULL: the resource is no allocator */
	int (*alloc)(void *state, size_t size, void **out_memory);
	void (*free)(void *state, void *memory);
	void *state;
	void (*destroy)(struct frag_resource *resource); /* at the last reference */
};

FRAGI_API struct frag_resource *fragi_resource_ref(struct frag_resource *resource);
/* NULL is accepted. */
FRAGI_API void fragi_resource_unref(struct frag_resource *resource);

#endif
