// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <base/lock.h>
#include <data/allocator.h>
#include <data/memory.h>

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

static struct fragi_lock watches_lock; /* of the watches of all allocators */

void fragi_memory_watch(struct fragi_memory_watch *watch, struct fragi_allocator *allocator,
			struct fragi_notify freed)
{
	fragi_lock_take(&watches_lock);
	watch->allocator = allocator;
	watch->freed = freed;
	watch->next = atomic_load(&allocator->watches);
	atomic_store(&allocator->watches, watch);
	fragi_lock_leave(&watches_lock);
}

void fragi_memory_unwatch(struct fragi_memory_watch *watch)
{
	struct fragi_memory_watch *before;

	if (watch->allocator == NULL)
		return;
	fragi_lock_take(&watches_lock);
	before = atomic_load(&watch->allocator->watches);
	if (before == watch)
		atomic_store(&watch->allocator->watches, watch->next);
	for (; before != NULL && before != watch; before = before->next)
		if (before->next == watch)
			before->next = watch->next;
	watch->allocator = NULL;
	fragi_lock_leave(&watches_lock);
}

static __attribute__((noinline)) void report_freed(struct fragi_allocator *allocator)
{
	fragi_lock_take(&watches_lock);
	for (struct fragi_memory_watch *watch = atomic_load(&allocator->watches); watch != NULL;
	     watch = watch->next)
		fragi_notify_call(&watch->freed);
	fragi_lock_leave(&watches_lock);
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
	if (a == NULL) {
		fragi_free(memory);
		return;
	}
	a->free(a->state, memory);
	if (__builtin_expect(atomic_load_explicit(&a->watches, memory_order_relaxed) != NULL, 0))
		report_freed(a);
}

int fragi_alloc_on(struct frag_resource *allocator, struct frag_device device, size_t size,
		   void **out_memory)
{
	struct fragi_allocator *a = allocator_of(allocator);
	const struct fragi_memory *memory;

	if (!fragi_device_is_known(device))
		return -EINVAL;
	if (a != NULL && a->alloc_on == NULL)
		return a->alloc != NULL ? -EXDEV : -EINVAL;
	memory = fragi_memory_of(device);
	if (memory == NULL)
		return -ENODEV;
	*out_memory = NULL;
	if (size == 0)
		return 0;
	return a != NULL ? a->alloc_on(a->state, device, size, out_memory)
			 : memory->alloc(device, size, out_memory, NULL);
}

void fragi_free_on(struct frag_resource *allocator, struct frag_device device, void *memory)
{
	struct fragi_allocator *a = allocator_of(allocator);

	if (memory == NULL)
		return;
	if (a == NULL) {
		fragi_memory_of(device)->free(device, memory);
		return;
	}
	a->free_on(a->state, device, memory);
	if (atomic_load_explicit(&a->watches, memory_order_relaxed) != NULL)
		report_freed(a);
}
