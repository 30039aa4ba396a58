/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_ALLOCATOR_H
#define FRAGI_DATA_ALLOCATOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <base/notify.h>
#include <frag/resource.h>
#include <frag/tensor.h>

/* The blocks of a pool. */
struct fragi_blocks {
	size_t all, free;
	size_t block_bytes;
	uint64_t refused; /* requests that found no free block */
};

/* Reports each time that memory was given back to an allocator. Zeroed: it watches nothing. */
struct fragi_memory_watch {
	struct fragi_allocator *allocator;
	struct fragi_notify freed; /* on the thread that gave the memory back */
	struct fragi_memory_watch *next;
};

/*
 * The part of a resource that tensors use; the first member of every struct frag_resource. Each
 * tensor holds a reference to its allocator, so that the memory outlives the fragment that created
 * the resource.
 */
struct fragi_allocator {
	_Atomic uint32_t refs;
	/* NULL: the resource is no allocator */
	int (*alloc)(void *state, size_t size, void **out_memory);
	/* never NULL */
	void (*free)(void *state, void *memory);
	/* those to report to when memory was given back; NULL: nobody */
	_Atomic(struct fragi_memory_watch *) watches;
	/* NULL: it has no blocks. From any thread. */
	void (*blocks)(const void *state, struct fragi_blocks *out);
	/* how full it is: its blocks, or bytes; NULL: nothing bounds it. From any thread. */
	void (*level)(const void *state, struct fragi_blocks *out);
	bool is_pinned; /* the memory that alloc gives is pinned; else it is system memory */
	/*
	 * Memory of other devices, as the functions of struct fragi_memory; -EXDEV: it has none of
	 * this one. NULL: it has only what alloc gives.
	 */
	int (*alloc_on)(void *state, struct frag_device device, size_t size, void **out_memory);
	void (*free_on)(void *state, struct frag_device device, void *memory);
	/* whose device memory its parameters choose; type 0: none. Constant once it was set up */
	struct frag_device gpu;
	bool is_shared; /* other hosts can map that memory, if there are any on the machine */
	bool spills;    /* ... but not what did not fit into the memory it took at the start */
	void *state;
	/* called when the last reference is dropped */
	void (*destroy)(struct frag_resource *resource);
};

/* The device of the memory that alloc gives. */
static inline struct frag_device fragi_allocator_device(const struct frag_resource *resource)
{
	return (struct frag_device){
		((const struct fragi_allocator *)(const void *)resource)->is_pinned
			? FRAG_DEVICE_CUDA_HOST
			: FRAG_DEVICE_CPU,
		0};
}

static inline bool fragi_device_is(struct frag_device a, struct frag_device b)
{
	return a.type == b.type && a.id == b.id;
}

/*
 * Memory by alloc_on. allocator: NULL: the device's own memory. size: 0: no memory, and only the
 * device is checked. Returns as frag_tensor_create_on.
 */
FRAGI_API int fragi_alloc_on(struct frag_resource *allocator, struct frag_device device,
			     size_t size, void **out_memory);
FRAGI_API void fragi_free_on(struct frag_resource *allocator, struct frag_device device,
			     void *memory);

/*
 * Begins and ends to watch an allocator, which outlives the watch. No report is under way any more
 * when unwatch returns. unwatch accepts a watch that watches nothing.
 */
FRAGI_API void fragi_memory_watch(struct fragi_memory_watch *watch,
				  struct fragi_allocator *allocator, struct fragi_notify freed);
FRAGI_API void fragi_memory_unwatch(struct fragi_memory_watch *watch);

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
