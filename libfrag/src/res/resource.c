// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <res/data_logger.h>
#include <res/resource.h>

#define RESOURCE_ALIGN 64u

static const struct fragi_built_in_resource *const types[] = {
	&fragi_block_memory_pool,   &fragi_cuda_green_context,     &fragi_cuda_green_context_pool,
	&fragi_cuda_stream_pool,    &fragi_rmm_allocator,          &fragi_stream_ordered_allocator,
	&fragi_unbounded_allocator, &fragi_simple_text_serializer,
};

const struct fragi_built_in_resource *fragi_built_in_resource_at(size_t i)
{
	return i < FRAG_COUNT_OF(types) ? types[i] : NULL;
}

const struct fragi_built_in_resource *fragi_built_in_resource(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(types); i++)
		if (strcmp(types[i]->type.name, name) == 0)
			return types[i];
	return NULL;
}

static void resource_destroy(struct frag_resource *resource)
{
	const struct fragi_data_logger *logger = fragi_data_logger_of(resource);

	if (resource->is_set_up && resource->type.fini != NULL)
		resource->type.fini(fragi_resource_state(resource));
	if (logger != NULL && logger->hangs)
		return;
	for (uint32_t i = 0; i < resource->use_count; i++)
		fragi_resource_unref(resource->uses[i]);
	fragi_arena_fini(&resource->arena);
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

int fragi_resource_create(const struct frag_resource_type *type,
			  const struct fragi_built_in_resource *built_in, const char *name,
			  struct frag_resource **out)
{
	struct frag_resource *resource = fragi_calloc(1, sizeof(*resource));
	const size_t size = type->state_size > 0 ? type->state_size : 1;

	if (resource == NULL)
		return -ENOMEM;
	resource->type = *type;
	resource->built_in = built_in;
	resource->name = fragi_strdup(name);
	resource->allocator.state = fragi_aligned_alloc(RESOURCE_ALIGN, size);
	resource->allocator.alloc = type->alloc;
	resource->allocator.free = type->free != NULL ? type->free : free_nothing;
	if (built_in != NULL) {
		resource->allocator.blocks = built_in->blocks;
		resource->allocator.level =
			built_in->blocks != NULL ? built_in->blocks : built_in->level;
		resource->allocator.alloc_on = built_in->alloc_on;
		resource->allocator.free_on = built_in->free_on;
	}
	resource->allocator.destroy = resource_destroy;
	atomic_init(&resource->allocator.refs, 1);
	if (resource->name == NULL || resource->allocator.state == NULL) {
		resource_destroy(resource);
		return -ENOMEM;
	}
	memset(resource->allocator.state, 0, size);
	resource->is_logger = built_in != NULL && built_in->logger != NULL;
	if (resource->is_logger)
		fragi_data_logger_bind(resource->allocator.state, built_in->logger, resource);
	*out = resource;
	return 0;
}

int fragi_resource_result(const char *callback, int r, struct frag_err *err)
{
	return r > 0 ? frag_err_set(err, -EINVAL, "%s returned %d; return 0 or a negative errno",
				    callback, r)
		     : r;
}

/* Keeps the resources that the parameters name for as long as this one lives. */
static int keep_used(struct frag_resource *resource)
{
	const struct frag_resource_type *type = &resource->type;
	struct frag_resource *used;

	for (uint32_t i = 0; i < type->param_count; i++) {
		if (type->params[i].kind != FRAG_PARAM_KIND_RESOURCE)
			continue;
		memcpy(&used, (char *)fragi_resource_state(resource) + type->params[i].offset,
		       sizeof(used));
		if (resource->uses == NULL)
			resource->uses = fragi_arena_alloc(
				&resource->arena, type->param_count * sizeof(*resource->uses));
		if (resource->uses == NULL)
			return -ENOMEM;
		if (used != NULL)
			resource->uses[resource->use_count++] = fragi_resource_ref(used);
	}
	return 0;
}

int fragi_resource_set_up(struct frag_resource *resource, struct frag_err *err)
{
	int r = keep_used(resource);

	if (r == 0 && resource->type.setup != NULL)
		r = fragi_resource_result(
			"setup",
			resource->type.setup(fragi_resource_state(resource), resource, err), err);
	resource->is_set_up = r == 0;
	return r;
}

const char *frag_resource_name(const struct frag_resource *resource)
{
	return resource->name;
}

void *frag_resource_context(const struct frag_resource *resource)
{
	return resource->type.context;
}

struct frag_fragment *frag_resource_fragment(const struct frag_resource *resource)
{
	return resource->fragment;
}

void *frag_resource_state(struct frag_resource *resource, const char *type)
{
	if (resource == NULL || type == NULL || strcmp(resource->type.name, type) != 0 ||
	    resource->is_logger || fragi_built_in_resource(type) != NULL)
		return NULL;
	return fragi_resource_state(resource);
}

size_t frag_resource_blocks_free(const struct frag_resource *resource)
{
	struct fragi_blocks blocks = {.free = SIZE_MAX};

	if (resource->allocator.blocks != NULL)
		resource->allocator.blocks(fragi_resource_state(resource), &blocks);
	return blocks.free;
}
