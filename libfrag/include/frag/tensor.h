/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TENSOR_H
#define FRAG_TENSOR_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Tensors. The description of the data (device, element type, shape, strides) has the memory layout
 * of DLPack 1.x (https://dmlc.github.io/dlpack/latest/c_api.html), so a struct frag_dltensor may be
 * handed to any library that takes a DLTensor.
 */
/* DLDeviceType */
enum frag_device_type {
	FRAG_DEVICE_CPU = 1,
	FRAG_DEVICE_CUDA = 2,
	FRAG_DEVICE_CUDA_HOST = 3,
};

/* DLDevice */
struct frag_device {
	int32_t type;
	int32_t id;
};

/* DLDataTypeCode */
enum frag_dtype_code {
	FRAG_DTYPE_INT = 0,
	FRAG_DTYPE_UINT = 1,
	FRAG_DTYPE_FLOAT = 2,
	FRAG_DTYPE_BFLOAT = 4,
	FRAG_DTYPE_COMPLEX = 5,
	FRAG_DTYPE_BOOL = 6,
};

/* DLDataType */
struct frag_dtype {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
};

/* DLTensor */
struct frag_dltensor {
	void *data;
	struct frag_device device;
	int32_t ndim;
	struct frag_dtype dtype;
	int64_t *shape;   /* [ndim] elements */
	int64_t *strides; /* [ndim] in elements; NULL: compact, row-major */
	uint64_t byte_offset;
};

/* The most dimensions a tensor may have. */
#define FRAG_TENSOR_NDIM_MAX 8
/* The most tensors in one message. */
#define FRAG_MESSAGE_TENSORS_MAX 64

/*
 * A reference-counted tensor: the description above and the memory it describes. Tensors are shared
 * between messages by reference; the data of a tensor that arrived in a message must not be
 * written.
 */
struct frag_tensor;
struct frag_resource;

/*
 * Creates a compact tensor with uninitialised data.
 *   allocator  an allocator resource (block_memory_pool, unbounded_allocator); NULL: the process's
 *   default
 * allocator dtype      element type; lanes 1 ndim       0 .. FRAG_TENSOR_NDIM_MAX (0: a scalar)
 * shape [ndim], each >= 0 out        a new reference Returns 0; -EINVAL for a shape or type that
 * cannot be; -EOVERFLOW when the size does not fit; -ENOMEM when the allocator has nothing left.
 * Thread: any. Blocks: no. RT-safe: with a block_memory_pool.
 */
FRAG_API int frag_tensor_create(struct frag_resource *allocator, struct frag_dtype dtype,
				int32_t ndim, const int64_t *shape, struct frag_tensor **out);

/*
 * Wraps memory that somebody else owns. `release(context)` is called once, from whichever thread
 * drops the last reference, when the memory is no longer used. The shape and the strides are
 * copied. Returns 0, -EINVAL or -ENOMEM (release is then not called). Thread: any. Blocks: no.
 * RT-safe: no.
 */
FRAG_API int frag_tensor_wrap(const struct frag_dltensor *description,
			      void (*release)(void *context), void *context,
			      struct frag_tensor **out);

/* Takes one more reference. Returns tensor. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API struct frag_tensor *frag_tensor_ref(const struct frag_tensor *tensor);
/*
 * Drops a reference; NULL is accepted. Thread: any. Blocks: as the allocator's free. RT-safe: with
 * a pool.
 */
FRAG_API void frag_tensor_unref(struct frag_tensor *tensor);

/* The description; valid as long as a reference is held. Thread: any. RT-safe: yes. */
FRAG_API const struct frag_dltensor *frag_tensor_dl(const struct frag_tensor *tensor);
/* First element (data + byte_offset), to read. */
FRAG_API const void *frag_tensor_data(const struct frag_tensor *tensor);
/*
 * First element, to write: NULL when the tensor is shared (more than one reference, or it arrived
 * in a message).
 */
FRAG_API void *frag_tensor_writable(struct frag_tensor *tensor);
/* Bytes from the first element to the end of the last, strides counted; 0 for an empty tensor. */
FRAG_API size_t frag_tensor_size_bytes(const struct frag_tensor *tensor);
/* 1 when the elements lie compact in row-major order, else 0. */
FRAG_API int frag_tensor_is_compact(const struct frag_tensor *tensor);

FRAG_END_DECLS

#endif
