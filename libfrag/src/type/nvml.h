/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_NVML_H
#define FRAGI_TYPE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>
#include <text/spec.h>

/* The load of the GPUs of this machine. */
struct fragi_gpu_load {
	uint64_t count;         /* that answer */
	uint64_t busy_permille; /* of them on average */
	uint64_t memory_bytes, memory_used_bytes;
};

/*
 * Reads it by NVIDIA's management library (libnvidia-ml), which is opened once. Returns 0, or
 * -ENODEV: it is not there, or finds no GPU. Blocks, for long where a GPU is ill.
 */
FRAGI_API int fragi_nvml_read(struct fragi_gpu_load *out);

/* A GPU that is not divided, or a MIG instance of one that is. */
#define FRAGI_GPU_UUID_MAX 64
#define FRAGI_GPU_PARTS_MAX 256
struct fragi_gpu_part {
	unsigned int gpu; /* its number, by its place on the bus */
	char gpu_uuid[FRAGI_GPU_UUID_MAX], uuid[FRAGI_GPU_UUID_MAX];
	char profile[FRAGI_MIG_PROFILE_MAX]; /* "1g.10gb"; empty: it is a whole GPU */
	uint64_t memory_bytes;
};
/* A function as fragi_nvml_parts. */
typedef int fragi_gpu_parts_fn(struct fragi_gpu_part out[FRAGI_GPU_PARTS_MAX], size_t *out_count);
/*
 * All GPUs of this machine in parts, whatever CUDA_VISIBLE_DEVICES says. Returns 0, or -ENODEV: the
 * library is not there, or too old to know MIG, or finds no GPU. Blocks as fragi_nvml_read.
 */
FRAGI_API int fragi_nvml_parts(struct fragi_gpu_part out[FRAGI_GPU_PARTS_MAX], size_t *out_count);

#endif
