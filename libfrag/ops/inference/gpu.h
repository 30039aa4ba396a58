/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_GPU_H
#define INFERENCE_GPU_H

#include <frag/frag.h>

/* What this library needs of NVIDIA's driver beside frag/cuda.h, and a GPU that frag has opened. */

/* Writes the name of a GPU into out. Returns 0 or a failure with a sentence. */
int inference_gpu_name(int32_t gpu, char *out, size_t size, struct frag_err *err);
/*
 * Gives a copy to a stream of that GPU: between two places of it, or from host memory.
 */
int inference_gpu_copy(int32_t gpu, void *stream, void *to, const void *from, size_t bytes,
		       struct frag_err *err);

#endif
