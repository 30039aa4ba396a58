/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_CUDA_MODULE_H
#define FRAGI_CUDA_MODULE_H

#include <type/cuda.h>

/* memory.c */
extern const struct fragi_memory cuda_memory;
struct cuda_device;
/* As copy of struct fragi_stream_ops; stream: a CUstream. */
int cuda_pack(const struct cuda_device *gpu, void *stream, const struct frag_dltensor *dl,
	      size_t element_bytes, void *to, struct frag_err *err);

/* work.c */
extern const struct fragi_stream_ops cuda_streams;

/* shared.c */
extern const struct fragi_shared_memory cuda_shared;

/* stream.c; see struct fragi_cuda_ops */
int cuda_stream_create(int32_t id, void *green_context, uint32_t flags, int priority,
		       void **out_stream, struct frag_err *err);
void cuda_stream_destroy(int32_t id, void *stream);
int cuda_stream_wait(int32_t id, void *stream, struct frag_err *err);

/* green.c; see struct fragi_cuda_ops */
int cuda_green_create(int32_t id, const int64_t *sms, uint32_t count, void **out_contexts,
		      uint32_t *out_sms, struct frag_err *err);
void cuda_green_destroy(int32_t id, void *context);

/* pool.c; see struct fragi_cuda_ops */
int cuda_pool_create(int32_t id, uint64_t first_bytes, uint64_t keep_bytes,
		     struct fragi_cuda_pool **out, struct frag_err *err);
void cuda_pool_destroy(struct fragi_cuda_pool *pool);
int cuda_pool_alloc(struct fragi_cuda_pool *pool, size_t size, void **out_memory,
		    struct frag_err *err);
size_t cuda_pool_free(struct fragi_cuda_pool *pool, void *memory);

/* kernel.c; see struct fragi_cuda_ops */
int cuda_kernel_create(int32_t id, const void *image, const char *name, struct frag_kernel **out,
		       struct frag_err *err);
int cuda_kernel_launch(const struct frag_kernel *kernel, const struct frag_launch *how,
		       void **arguments, struct frag_err *err);
int cuda_kernel_wait(const struct frag_kernel *kernel, void *stream, struct frag_err *err);
void cuda_kernel_destroy(struct frag_kernel *kernel);

/* receive_pool.c; see pool_alloc and pool_free of struct fragi_memory */
int cuda_receive_pool_alloc(struct frag_device device, size_t size, void **out_memory,
			    struct frag_err *err);
void cuda_receive_pool_free(struct frag_device device, void *memory);

#endif
