/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TENSOR_H
#define FRAGI_DATA_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <data/pool.h>
#include <frag/tensor.h>

/* A tensor's header, from the thread's pool, apart from its memory. */
struct frag_tensor {
	struct fragi_pooled home;
	_Atomic uint32_t refs;
	_Atomic bool frozen; /* it was emitted or received: its data is not written any more */
	bool compact;
	struct frag_dltensor dl; /* strides always set */
	size_t size_bytes;       /* from the first element to the end of the last */
	size_t compact_bytes;    /* of the elements alone */
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	int64_t strides[FRAG_TENSOR_NDIM_MAX];
	/*
	 * where the memory goes back to: an allocator (NULL: the default), or whoever was wrapped
	 */
	struct frag_resource *allocator;
	void *memory;
	void (*release)(void *context);
	void *context;
	/* a compact copy of a strided tensor, made once when it leaves the process */
	_Atomic(void *) body;
};

/* From now on the data is not written. */
static inline void fragi_tensor_freeze(struct frag_tensor *tensor)
{
	atomic_store_explicit(&tensor->frozen, true, memory_order_relaxed);
}

/* Bytes of an element; 0 for a type that frag does not know. */
size_t fragi_dtype_size(struct frag_dtype dtype);
/*
 * Bytes of a compact tensor. Returns 0, -EINVAL for a shape or type that cannot be, -EOVERFLOW.
 */
int fragi_tensor_measure(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
			 size_t *out_bytes);
/* As frag_tensor_create, with any number of lanes. */
int fragi_tensor_create(struct frag_resource *allocator, struct frag_dtype dtype, int32_t ndim,
			const int64_t *shape, struct frag_tensor **out);
/*
 * The elements alone, compact in row-major order, as they travel: the data itself, or of a strided
 * tensor a copy that is made once. NULL for an empty tensor (*out_size 0), or when memory for the
 * copy is short.
 */
FRAGI_API void *fragi_tensor_body(struct frag_tensor *tensor, size_t *out_size);

#endif
