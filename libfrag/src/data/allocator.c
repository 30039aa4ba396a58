// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <data/allocator.h>

static struct fragi_allocator *allocator_of(struct frag_resource *resource)
{
	return (struct fragi_allocator *)resource;
}

struct frag_resource *fragi_resource_ref(struct frag_resource *resource)
{
	atomic_fetch_add_explicit(&allocator_of(resource)->refs, 1, memory_order_relaxed);
	return resource;
}

void fragi_resource_unref(struct frag_resource *resource)
{
	if (resource != NULL &&
	    atomic_fetch_sub_explicit(&allocator_of(resource)->refs, 1, memory_order_acq_rel) == 1)
		allocator_of(resource)->destroy(resource);
}

static struct frag_resource *default_memory;

void fragi_default_memory_set(struct frag_resource *memory)
{
	struct frag_resource *former = default_memory;

	default_memory = memory != NULL ? fragi_resource_ref(memory) : NULL;
	fragi_resource_unref(former);
}

struct frag_resource *fragi_default_memory(void)
{
	return default_memory;
}

int frag_alloc(struct frag_resource *allocator, size_t size, void **out_memory)
{
	struct fragi_allocator *a = allocator_of(allocator);
	void *memory;

	if (a != NULL)
		return a->alloc != NULL ? a->alloc(a->state, size, out_memory) : -EINVAL;
	memory = fragi_bulk_alloc(size > 0 ? size : 1);
	if (memory == NULL)
		return -ENOMEM;
	*out_memory = memory;
	return 0;
}

void frag_free(struct frag_resource *allocator, void *memory)
{
	struct fragi_allocator *a = allocator_of(allocator);

	if (memory == NULL)
		return;
	if (a == NULL)
		fragi_free(memory);
	else if (a->free != NULL)
		a->free(a->state, memory);
}
