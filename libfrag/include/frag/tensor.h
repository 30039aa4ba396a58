/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TENSOR_H
#define FRAG_TENSOR_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * Tensors. The description of the data (device, element type, shape, strides) has the memory layout
 * of DLPack 1.x (https://dmlc.github.io/dlpack/latest/c_api.html), so a struct frag_dltensor may be
 * handed to any library that takes a DLTensor. Each type below names the DLPack type that it
 * equals.
 */

/* DLDeviceType */
enum frag_device_type {
	FRAG_DEVICE_CPU = 1,
	FRAG_DEVICE_CUDA = 2,
	/* pinned host memory */
	FRAG_DEVICE_CUDA_HOST = 3,
	/* managed memory: the CPU and all GPUs use it at the same address */
	FRAG_DEVICE_CUDA_MANAGED = 13,
};

/* DLDevice */
struct frag_device {
	/* enum frag_device_type */
	int32_t type;
	/*
	 * number of the device among those of its type: of a GPU as CUDA numbers those that the
	 * process sees; 0 for host memory
	 */
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

/*
 * DLDataType. The element types that frag knows, by code and bits:
 * - FRAG_DTYPE_INT, FRAG_DTYPE_UINT: 8, 16, 32, 64
 * - FRAG_DTYPE_FLOAT: 16, 32, 64
 * - FRAG_DTYPE_BFLOAT: 16
 * - FRAG_DTYPE_COMPLEX: 64, 128
 * - FRAG_DTYPE_BOOL: 8
 */
struct frag_dtype {
	/* enum frag_dtype_code */
	uint8_t code;
	/* bits of one lane */
	uint8_t bits;
	/* values in one element; 1 unless the element is a vector */
	uint16_t lanes;
};

/* DLTensor */
struct frag_dltensor {
	/* the memory, on the device; see byte_offset */
	void *data;
	/* where the memory is */
	struct frag_device device;
	/* number of dimensions, 0 to FRAG_TENSOR_NDIM_MAX; 0: one element */
	int32_t ndim;
	/* type of an element */
	struct frag_dtype dtype;
	/* [ndim] number of elements in each dimension */
	int64_t *shape;
	/*
	 * [ndim] distance between neighbours of each dimension, in elements; NULL: compact,
	 * row-major
	 */
	int64_t *strides;
	/* bytes from data to the first element */
	uint64_t byte_offset;
};

/* The most dimensions that a tensor may have. */
#define FRAG_TENSOR_NDIM_MAX 8
/* The most tensors in one message. */
#define FRAG_MESSAGE_TENSORS_MAX 64

/*
 * A reference-counted tensor: the description above and the memory that it describes. Messages
 * share tensors by reference. The data of a tensor that was received or emitted must not be
 * written.
 */
struct frag_tensor;
struct frag_resource;

/*
 * Creates a compact, row-major tensor with uninitialised data in memory of the host, aligned to 64
 * bytes: system memory, or pinned memory from an allocator that has that.
 * - allocator: an allocator resource (block_memory_pool, unbounded_allocator), which the tensor
 *   keeps alive; NULL: the heap of the process
 * - dtype: element type, with lanes 1
 * - ndim: number of dimensions, 0 to FRAG_TENSOR_NDIM_MAX; 0: a scalar
 * - shape: [ndim] number of elements in each dimension, each >= 0; copied; may be NULL when ndim is
 *   0
 * - out: receives a new reference
 * Returns 0; -EINVAL: frag does not support this dtype or shape, or the resource is no allocator;
 * -EXDEV: it has memory of a GPU only; -EOVERFLOW: the size in bytes does not fit; -EMSGSIZE:
 * larger than a block of the pool; -ENOMEM: the allocator has nothing left.
 * Thread: any. Blocks: no. RT-safe: after warm-up, from a block_memory_pool.
 */
FRAG_API int frag_tensor_create(struct frag_resource *allocator, struct frag_dtype dtype,
				int32_t ndim, const int64_t *shape, struct frag_tensor **out);

/*
 * Creates a tensor as frag_tensor_create does, on a device. An operator that uses a GPU calls
 * frag_op_use_device in its initialize; a resource with memory of a GPU does that for itself.
 * - allocator: as above; an unbounded_allocator has memory of every device, a block_memory_pool
 *   that of its storage_type; NULL: the device's own memory, without a pool: slow
 * - device: where the data shall lie
 * Returns as frag_tensor_create; -EXDEV: the allocator has no memory of this device; -ENODEV:
 * nobody has called frag_op_use_device, or there is no such device; -ENOTSUP: the device has no
 * memory of this kind; -EIO: the GPU refuses.
 * Thread: any. Blocks: as the allocator does. RT-safe: as frag_tensor_create.
 */
FRAG_API int frag_tensor_create_on(struct frag_resource *allocator, struct frag_device device,
				   struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
				   struct frag_tensor **out);

/*
 * Copies a tensor, also to another device and from one: a compact, row-major tensor with the same
 * elements. Work of a GPU that writes the tensor must be complete.
 * - tensor: borrowed
 * - allocator, device: as for frag_tensor_create_on
 * - out: receives a new reference
 * - err: NULL is accepted
 * Returns as frag_tensor_create_on. Thread: any. Blocks: until the data is there. RT-safe: no.
 */
FRAG_API int frag_tensor_copy(const struct frag_tensor *tensor, struct frag_resource *allocator,
			      struct frag_device device, struct frag_tensor **out,
			      struct frag_err *err);

/*
 * Makes a tensor of memory that the caller owns. The memory must stay valid and unchanged until
 * release is called.
 * - description: where the data lies and what it is; shape and strides are copied; strides are >= 0
 * - release: called once, on the thread that drops the last reference, when the memory is no longer
 *   used; NULL: nothing to release
 * - context: argument of release
 * - out: receives a new reference
 * Returns 0; -EINVAL: frag does not support this description; -ENOMEM. On failure release is not
 * called.
 * Thread: any. Blocks: no. RT-safe: after warm-up.
 */
FRAG_API int frag_tensor_wrap(const struct frag_dltensor *description,
			      void (*release)(void *context), void *context,
			      struct frag_tensor **out);

/* Takes one more reference. Returns tensor. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API struct frag_tensor *frag_tensor_ref(const struct frag_tensor *tensor);
/*
 * Drops a reference; NULL is accepted. The last one frees the memory, or calls release.
 * Thread: any. Blocks: as the allocator or release does. RT-safe: yes for memory of a
 * block_memory_pool; else as free or release is.
 */
FRAG_API void frag_tensor_unref(struct frag_tensor *tensor);

/*
 * Returns the description, borrowed as long as a reference is held. Its strides are never NULL.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const struct frag_dltensor *frag_tensor_dl(const struct frag_tensor *tensor);
/*
 * Returns the address of the first element (data + byte_offset), to read; NULL when the tensor is
 * empty and has no memory. Memory of a device cannot be read by the CPU: see frag_tensor_dl.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const void *frag_tensor_data(const struct frag_tensor *tensor);
/*
 * Returns the address of the first element, to write; NULL when the tensor is shared: it has more
 * than one reference, or it was emitted or received.
 * Thread: the one that holds the only reference. Blocks: no. RT-safe: yes.
 */
FRAG_API void *frag_tensor_writable(struct frag_tensor *tensor);
/*
 * Returns the bytes from the start of the first element to the end of the last, gaps between
 * strides included; 0 for an empty tensor. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API size_t frag_tensor_size_bytes(const struct frag_tensor *tensor);
/*
 * Returns 1 when the elements lie without gaps in row-major order, else 0.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_tensor_is_compact(const struct frag_tensor *tensor);

FRAG_END_DECLS

#endif
