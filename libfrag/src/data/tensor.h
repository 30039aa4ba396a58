/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TENSOR_H
#define FRAGI_DATA_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <data/pool.h>
#include <data/work.h>
#include <frag/tensor.h>

/* A tensor: its description, from the thread's pool, and a pointer to its memory. */
struct frag_tensor {
	struct fragi_pooled home;
	_Atomic uint32_t refs;
	_Atomic bool frozen; /* emitted or received: the data is immutable */
	bool compact;
	bool sends_data;         /* fragi_tensor_body is the data itself */
	bool was_on_gpu;         /* it was received, and lay on a GPU at the sender */
	bool foreign;            /* over memory that an operator wrapped, which may be anywhere */
	struct frag_dltensor dl; /* strides always set */
	size_t size_bytes;       /* from the first element to the end of the last */
	size_t compact_bytes;    /* of the elements alone */
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	int64_t strides[FRAG_TENSOR_NDIM_MAX];
	/*
	 * where the memory came from: an allocator (NULL: the heap), or the owner of wrapped memory
	 */
	struct frag_resource *allocator;
	void *memory;
	void (*release)(void *context);
	void *context;
	/*
	 * what writes the memory, a reference; NULL: it is written. Set before the tensor is
	 * frozen, constant afterwards
	 */
	struct fragi_work *written;
	/* a compact copy in host memory, made once when the tensor leaves the process */
	_Atomic(struct frag_tensor *) copy;
};

/* The memory of a small tensor that was received. */
struct fragi_small_body {
	struct fragi_pooled home;
	_Alignas(64) uint8_t bytes[192];
};
#define FRAGI_SMALL_BODY_BYTES sizeof(((struct fragi_small_body *)0)->bytes)

/* Makes the data immutable. */
static inline void fragi_tensor_freeze(struct frag_tensor *tensor)
{
	atomic_store_explicit(&tensor->frozen, true, memory_order_relaxed);
}

/*
 * Waits with the CPU until the memory is written. Returns 0; -EIO: the GPU has failed. Call it
 * before the CPU reads a tensor, or its memory goes to what knows nothing of streams.
 */
static inline int fragi_tensor_wait(const struct frag_tensor *tensor, struct frag_err *err)
{
	return __builtin_expect(tensor->written == NULL, 1) ? 0
							    : fragi_work_wait(tensor->written, err);
}
/* Sets what writes the memory of a tensor that is not frozen. Takes the reference. */
static inline void fragi_tensor_set_written(struct frag_tensor *tensor, struct fragi_work *work)
{
	fragi_work_unref(tensor->written);
	tensor->written = work;
}

/* Returns the bytes of an element; 0 for a type that frag does not support. */
size_t fragi_dtype_size(struct frag_dtype dtype);
/*
 * Computes the bytes of a compact tensor. Returns 0; -EINVAL: frag does not support this shape or
 * type; -EOVERFLOW.
 */
int fragi_tensor_measure(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
			 size_t *out_bytes);
/*
 * Creates a compact tensor in host memory, with any number of lanes, that has no memory yet.
 * Returns 0; -EINVAL, -EOVERFLOW as fragi_tensor_measure; -ENOMEM.
 */
int fragi_tensor_describe(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
			  struct frag_tensor **out);
/* The same of a compact tensor's shape and type. Returns 0 or -ENOMEM. */
int fragi_tensor_describe_as(const struct frag_tensor *like, struct frag_tensor **out);
/*
 * The memory of a tensor that has none: from an allocator (NULL: the default memory); a small body
 * of this thread's pool, if the tensor's bytes fit; or somebody's, who is told when it ends.
 */
int fragi_tensor_allocate(struct frag_tensor *tensor, struct frag_resource *allocator);
int fragi_tensor_allocate_small(struct frag_tensor *tensor);
void fragi_tensor_place(struct frag_tensor *tensor, void *data, struct frag_device device,
			void (*release)(void *context), void *context);
/*
 * Returns the elements without gaps in row-major order, in host memory, as they are sent: the data
 * itself, or, of a tensor with strides or on a GPU, a copy that is made once and belongs to the
 * tensor. NULL: the tensor is empty (*out_size is 0), memory for the copy is short, or the GPU
 * refuses.
 */
FRAGI_API void *fragi_tensor_body(struct frag_tensor *tensor, size_t *out_size);
/*
 * The tensor whose data that is: itself, or the copy. It may still be written: its `written` says
 * by what.
 * - streams: they copy from GPUs without waiting, and each is opened with the first copy from its
 *   GPU (fragi_stream_on); they belong to one thread at a time. NULL: waits
 * NULL: there can be no copy.
 */
FRAGI_API struct frag_tensor *fragi_tensor_sent(struct frag_tensor *tensor,
						struct fragi_stream **streams);
/*
 * As frag_tensor_copy, between a GPU and memory of the host, but does not wait: `written` of the
 * copy is the work that makes it, and the tensor has to stay until that is done.
 * - streams: as for fragi_tensor_sent
 */
int fragi_tensor_begin_copy(const struct frag_tensor *tensor, struct frag_resource *allocator,
			    struct frag_device device, struct fragi_stream **streams,
			    struct frag_tensor **out, struct frag_err *err);
/* Whether fragi_tensor_body copies nothing, because it has before or need not. */
static inline bool fragi_tensor_has_body(const struct frag_tensor *tensor)
{
	return tensor->sends_data ||
	       atomic_load_explicit(&tensor->copy, memory_order_relaxed) != NULL;
}

#endif
