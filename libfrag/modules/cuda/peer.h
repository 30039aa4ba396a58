/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_CUDA_PEER_H
#define FRAGI_CUDA_PEER_H

#include "device.h"

/*
 * Memory that its own GPU alone reaches until another is given access: a pool of the driver, or
 * what is mapped at an address.
 */
struct cuda_own_memory {
	const struct cuda_device *gpu;
	CUmemoryPool pool; /* NULL: at, bytes and flags */
	CUdeviceptr at;
	size_t bytes;
	CUmemAccess_flags flags;
};

/*
 * Gives access to the other GPUs of this process that reach memory of its GPU, also to those that
 * are opened later. Copies by one that gets none go by way of the host. In the context of the GPU.
 * Thread: any.
 */
void cuda_peer_add(const struct cuda_own_memory *memory);
/* Before the memory goes. Thread: any. */
void cuda_peer_remove(CUmemoryPool pool, CUdeviceptr at);
/* Gives access to a GPU that was opened. Thread: any. */
void cuda_peer_opened(const struct cuda_device *gpu);

#endif
