// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <res/resource.h>

#define RESOURCE_ALIGN 64u

static const struct fragi_resource_type *const types[] = {
	&fragi_block_memory_pool,
	&fragi_unbounded_allocator,
};

const struct fragi_resource_type *fragi_resource_type_at(size_t i)
{
	return i < FRAG_COUNT_OF(types) ? types[i] : NULL;
}

const struct fragi_resource_type *fragi_resource_type_find(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(types); i++)
		if (strcmp(types[i]->name, name) == 0)
			return types[i];
	return NULL;
}

static void resource_destroy(struct frag_resource *resource)
{
	if (resource->type->fini != NULL)
		resource->type->fini(resource->allocator.state);
	fragi_free(resource->allocator.state);
	fragi_free(resource->name);
	fragi_free(resource);
}

/* A resource that is no allocator has given nothing that could come back. */
static void free_nothing(void *state, void *memory)
{
	(void)state;
	(void)memory;
}

int fragi_resource_create(const struct fragi_resource_type *type, const char *name,
			  const void *state, struct frag_resource **out, struct frag_err *err)
{
	struct frag_resource *resource = fragi_calloc(1, sizeof(*resource));
	int r = -ENOMEM;

	if (resource == NULL)
		goto err_text;
	resource->type = type;
	resource->name = fragi_strdup(name);
	resource->allocator.state =
		fragi_aligned_alloc(RESOURCE_ALIGN, type->state_size > 0 ? type->state_size : 1);
	if (resource->name == NULL || resource->allocator.state == NULL)
		goto err_free;
	if (state != NULL)
		memcpy(resource->allocator.state, state, type->state_size);
	else
		memset(resource->allocator.state, 0, type->state_size);
	resource->allocator.alloc = type->alloc;
	resource->allocator.free = type->free != NULL ? type->free : free_nothing;
	resource->allocator.blocks = type->blocks;
	resource->allocator.destroy = resource_destroy;
	atomic_init(&resource->allocator.refs, 1);
	r = type->init(resource->allocator.state, name, err);
	if (r < 0)
		goto err_free;
	*out = resource;
	return 0;

err_free:
	fragi_free(resource->allocator.state);
	fragi_free(resource->name);
	fragi_free(resource);
err_text:
	return frag_err_set(err, r, "cannot make resource \"%s\": %s", name, frag_strerror(r));
}

const char *frag_resource_name(const struct frag_resource *resource)
{
	return resource->name;
}

size_t frag_resource_blocks_free(const struct frag_resource *resource)
{
	struct fragi_blocks blocks = {.free = SIZE_MAX};

	if (resource->type->blocks != NULL)
		resource->type->blocks(resource->allocator.state, &blocks);
	return blocks.free;
}
