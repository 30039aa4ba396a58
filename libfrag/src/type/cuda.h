/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_CUDA_H
#define FRAGI_TYPE_CUDA_H

#include <stdint.h>

#include <data/memory.h>
#include <frag/kernel.h>

/*
 * What frag needs of CUDA's driver, as the one symbol of the module cuda (modules/cuda). Neither
 * the module nor the driver is opened before something needs a GPU.
 */
struct fragi_cuda_pool;

/* More than a GPU has parts that can be divided. */
#define FRAGI_GREEN_CONTEXTS_MAX 128

struct fragi_cuda_ops {
	size_t struct_size;
	const char *name;
	/*
	 * Opens the driver and the primary context of a GPU, the first time; a failure is tried
	 * again by the next call. Returns 0; -ENODEV with the reason: why there is no such GPU.
	 */
	int (*use)(int32_t id, struct frag_err *err);
	/* of the kinds of CUDA; for GPUs that were made ready by `use` */
	const struct fragi_memory *memory;
	/*
	 * A pool of device memory that the driver keeps for this process (cuMemPool). It grows as
	 * it is used, and gives back to the GPU what is free beyond keep_bytes when a stream is
	 * waited for. first_bytes are taken at once. Returns 0; -ENOMEM; -ENOTSUP; -EIO.
	 */
	int (*pool_create)(int32_t id, uint64_t first_bytes, uint64_t keep_bytes,
			   struct fragi_cuda_pool **out, struct frag_err *err);
	/* When all memory has been given back; NULL is accepted. */
	void (*pool_destroy)(struct fragi_cuda_pool *pool);
	/*
	 * A CUstream of a GPU.
	 * - green_context: of green_create: the stream is made in it, and never waits for the
	 *   default stream, whatever flags says; NULL: in the primary context
	 * Returns 0; -ENOMEM; -EIO.
	 */
	int (*stream_create)(int32_t id, void *green_context, uint32_t flags, int priority,
			     void **out_stream, struct frag_err *err);
	/* What is queued on it is done first, without waiting for it here. */
	void (*stream_destroy)(int32_t id, void *stream);
	/* Waits with the CPU for what a stream was given. Returns 0; -EIO. */
	int (*stream_wait)(int32_t id, void *stream, struct frag_err *err);
	/* As the functions of struct fragi_memory. */
	int (*pool_alloc)(struct fragi_cuda_pool *pool, size_t size, void **out_memory,
			  struct frag_err *err);
	/* Returns the bytes that were asked for; 0: it was not freed. */
	size_t (*pool_free)(struct fragi_cuda_pool *pool, void *memory);
	/* As the functions of frag/kernel.h, with kernels of a GPU that `use` made ready. */
	int (*kernel_create)(int32_t id, const void *image, const char *name,
			     struct frag_kernel **out, struct frag_err *err);
	int (*kernel_launch)(const struct frag_kernel *kernel, const struct frag_launch *how,
			     void **arguments, struct frag_err *err);
	int (*kernel_wait)(const struct frag_kernel *kernel, void *stream, struct frag_err *err);
	void (*kernel_destroy)(struct frag_kernel *kernel);
	/*
	 * Divides the SMs of a GPU, and makes a green context (CUgreenCtx) of each part.
	 * - sms: [count] SMs of each, which the driver rounds up to what the GPU can divide; NULL:
	 *   as many as all can have; the only one has all
	 * - count: 1 to FRAGI_GREEN_CONTEXTS_MAX
	 * - out_contexts: [count]
	 * - out_sms: [count] receives the SMs that each has got
	 * Returns 0; -ENOTSUP: the driver is older than CUDA 12.5; -EINVAL: the GPU has not so many
	 * SMs; -ENOMEM; -EIO. Nothing is left of what failed.
	 */
	int (*green_create)(int32_t id, const int64_t *sms, uint32_t count, void **out_contexts,
			    uint32_t *out_sms, struct frag_err *err);
	/* When its streams have gone. */
	void (*green_destroy)(int32_t id, void *context);
	/*
	 * How many GPUs this process sees, and the memory of all together; makes none of them
	 * ready. Returns 0; -ENODEV with the reason.
	 */
	int (*survey)(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err);
};

#define FRAGI_CUDA_SYMBOL "fragi_cuda_v1"

/* The table of the module, once something has opened it; else NULL. Thread: any. */
const struct fragi_cuda_ops *fragi_cuda_opened(void);
/*
 * Opens the module and makes a GPU ready, each once.
 * - device: of a kind of CUDA
 * Returns 0; -ENODEV with the reason, classified as FRAGI_FAILURE_GPU_MISSING.
 */
FRAGI_API int fragi_cuda_use(struct frag_device device, const struct fragi_cuda_ops **out_ops,
			     struct frag_err *err);
/* Opens the module, and calls its `survey`. */
FRAGI_API int fragi_cuda_survey(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err);

#endif
