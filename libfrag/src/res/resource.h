/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_RESOURCE_H
#define FRAGI_RES_RESOURCE_H

#include <base/diag.h>
#include <data/allocator.h>
#include <frag/operator.h>

/*
 * The table of a resource type. state is `state_size` bytes, aligned to 64. It is zeroed, then the
 * graph writes the parameters into it, then init is called. All functions but init may be NULL. A
 * type without alloc is no allocator.
 */
struct fragi_resource_type {
	const char *name; /* in graphs */
	const char *headline;
	const char *description;
	const struct frag_param *params;
	uint32_t param_count;
	size_t state_size;
	/*
	 * Checks the parameters and allocates what it needs. Returns 0, or a failure with a
	 * sentence.
	 */
	int (*init)(void *state, const char *name, struct frag_err *err);
	void (*fini)(void *state);
	/* As frag_alloc and frag_free; from any thread. */
	int (*alloc)(void *state, size_t size, void **out_memory);
	void (*free)(void *state, void *memory);
	/* NULL: it has no blocks. From any thread. */
	void (*blocks)(const void *state, struct fragi_blocks *out);
};

struct frag_resource {
	struct fragi_allocator allocator; /* first; holds the state and the references */
	const struct fragi_resource_type *type;
	char *name;
	/* how many blocks its flows can hold (graph/pools.h); 0: not known. Constant after wire. */
	uint64_t blocks_needed;
};

extern const struct fragi_resource_type fragi_block_memory_pool, fragi_unbounded_allocator;

/* Returns the type of that name; NULL when there is none. */
FRAGI_API const struct fragi_resource_type *fragi_resource_type_find(const char *name);
/* Returns the i-th type, to list them; NULL beyond the last. */
FRAGI_API const struct fragi_resource_type *fragi_resource_type_at(size_t i);

/*
 * Creates a resource.
 * - state: `type->state_size` bytes with the parameters filled in; copied; the texts that it points
 *   to are borrowed until the call returns. NULL: zeros, for a type without parameters
 * - out: receives one reference, which fragi_resource_unref drops
 * Returns 0; -EINVAL or -ENOTSUP with a sentence; -ENOMEM.
 */
FRAGI_API int fragi_resource_create(const struct fragi_resource_type *type, const char *name,
				    const void *state, struct frag_resource **out,
				    struct frag_err *err);

#endif
