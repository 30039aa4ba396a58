/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_GPU_LIMIT_H
#define FRAGI_DATA_GPU_LIMIT_H

#include <stdint.h>

#include <base/diag.h>

/*
 * How much memory of GPUs this process may have, of all GPUs together (gpuMemoryLimit of its
 * fragments); 0: as much as there is. What is counted then: frag/cuda.h. Thread: before anything
 * takes memory of a GPU.
 */
FRAGI_API void fragi_gpu_limit_set(uint64_t bytes);
/* 0: none. Thread: any. */
FRAGI_API uint64_t fragi_gpu_limit(void);

#endif
