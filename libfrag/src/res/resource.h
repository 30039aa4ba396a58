/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_RESOURCE_H
#define FRAGI_RES_RESOURCE_H

#include <base/diag.h>
#include <data/allocator.h>
#include <frag/operator.h>

/*
 * The table of a resource type. state is `state_size` bytes, aligned to 64, zeroed but for the
 * parameters, which the graph writes there first. All but init may be NULL; a type without alloc is
 * no allocator.
 */
struct fragi_resource_type {
	const char *name; /* in graphs */
	const char *headline;
	const char *description;
	const struct frag_param *params;
	uint32_t param_count;
	size_t state_size;
	/* Checks the parameters and takes what it needs; words its failure. */
	int (*init)(void *state, const char *name, struct frag_err *err);
	void (*fini)(void *state);
	/* As frag_alloc and frag_free; from any thread. */
	int (*alloc)(void *state, size_t size, void **out_memory);
	void (*free)(void *state, void *memory);
	size_t (*blocks_free)(const void *state);
};

struct frag_resource {
	struct fragi_allocator allocator; /* first; holds the state and the references */
	const struct fragi_resource_type *type;
	char *name;
};

extern const struct fragi_resource_type fragi_block_memory_pool, fragi_unbounded_allocator;

/* The type of that name; NULL when there is none. */
FRAGI_API const struct fragi_resource_type *fragi_resource_type_find(const char *name);
/* The i-th type, NULL beyond the last: to list them. */
FRAGI_API const struct fragi_resource_type *fragi_resource_type_at(size_t i);

/*
 * Makes a resource from a state with the parameters filled in (`type->state_size` bytes, copied;
 * the texts in it are borrowed until fragi_resource_create returns). *out: one reference, given
 * back with fragi_resource_unref. Returns 0; -EINVAL or -ENOTSUP with a sentence; -ENOMEM.
 */
FRAGI_API int fragi_resource_create(const struct fragi_resource_type *type, const char *name,
				    const void *state, struct frag_resource **out,
				    struct frag_err *err);

#endif
