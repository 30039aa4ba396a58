// SPDX-License-Identifier: Apache-2.0
#include <data/memory.h>
#include <res/resource.h>

struct unbounded {
	struct frag_resource *memory; /* NULL: the heap */
};

static int unbounded_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct unbounded *unbounded = state;

	(void)resource;
	(void)err;
	if (fragi_default_memory() != NULL)
		unbounded->memory = fragi_resource_ref(fragi_default_memory());
	return 0;
}

static void unbounded_fini(void *state)
{
	fragi_resource_unref(((struct unbounded *)state)->memory);
}

static int unbounded_alloc(void *state, size_t size, void **out_memory)
{
	return frag_alloc(((struct unbounded *)state)->memory, size, out_memory);
}

static void unbounded_free(void *state, void *memory)
{
	frag_free(((struct unbounded *)state)->memory, memory);
}

/* The device's own memory; fragi_alloc_on has seen that somebody opened the device. */
static int unbounded_alloc_on(void *state, struct frag_device device, size_t size,
			      void **out_memory)
{
	(void)state;
	return fragi_memory_of(device)->alloc(device, size, out_memory, NULL);
}

static void unbounded_free_on(void *state, struct frag_device device, void *memory)
{
	(void)state;
	fragi_memory_of(device)->free(device, memory);
}

const struct fragi_built_in_resource fragi_unbounded_allocator = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "unbounded_allocator",
		 .headline = "Memory of the system, as much as there is",
		 .description =
			 "Operators also get memory of GPUs from it, without a pool: each time the driver is asked for it.",
		 .state_size = sizeof(struct unbounded), .setup = unbounded_setup,
		 .fini = unbounded_fini, .alloc = unbounded_alloc, .free = unbounded_free},
	.alloc_on = unbounded_alloc_on,
	.free_on = unbounded_free_on,
};
