/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_CUDA_DEVICE_H
#define FRAGI_CUDA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <data/memory.h>

#include "driver.h"

/* As many as a machine has; those beyond are refused. */
#define CUDA_DEVICES_MAX 64

/*
 * A GPU of this process: its primary context, which the CUDA runtime in user code uses too, and
 * frag's own stream on it. It stays for the life of the process: user code may have memory in the
 * context.
 */
struct cuda_device {
	_Atomic bool ready; /* the rest is set, and constant */
	int32_t id;
	CUdevice device;
	CUcontext context;
	CUstream stream; /* waits for no other stream, and none for it */
	bool has_managed, has_pools, has_shared;
	uint8_t name_of_all[FRAGI_GPU_NAME_BYTES]; /* the same in all processes */
	char name[96];
};

/* Opens a GPU, once. Returns 0 or -ENODEV with the reason. Thread: one at a time. */
int cuda_device_use(int32_t id, struct frag_err *err);
/* See struct fragi_cuda_ops. */
int cuda_device_survey(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err);
/* A GPU that was opened; NULL: none of that number was. Thread: any. */
struct cuda_device *cuda_device_of(int32_t id);
/* The GPU that was opened first; NULL: none was. Thread: any. */
struct cuda_device *cuda_device_first(void);

/* A GPU that was opened, by its name in all processes; NULL: none. Thread: any. */
struct cuda_device *cuda_device_named(const uint8_t name[FRAGI_GPU_NAME_BYTES]);

/*
 * Around calls of the driver: makes the GPU's context current for this thread, then again the one
 * that was, which is user code's. Returns 0 or -EIO.
 */
int cuda_device_enter(const struct cuda_device *device, struct frag_err *err);
void cuda_device_leave(void);

#endif
