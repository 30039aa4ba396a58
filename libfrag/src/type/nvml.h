/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_NVML_H
#define FRAGI_TYPE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

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

#endif
