// SPDX-License-Identifier: Apache-2.0
#include <res/resource.h>

static int unbounded_init(void *state, const char *name, struct frag_err *err)
{
	(void)state;
	(void)name;
	(void)err;
	return 0;
}

static int unbounded_alloc(void *state, size_t size, void **out_memory)
{
	(void)state;
	return frag_alloc(NULL, size, out_memory);
}

static void unbounded_free(void *state, void *memory)
{
	(void)state;
	frag_free(NULL, memory);
}

const struct fragi_resource_type fragi_unbounded_allocator = {
	.name = "unbounded_allocator",
	.headline = "Memory of the system, as much as there is",
	.init = unbounded_init,
	.alloc = unbounded_alloc,
	.free = unbounded_free,
};
