// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "cuda"
#include <base/log.h>

#include <data/gpu_limit.h>
#include <frag/cuda.h>

#include "device.h"
#include "module.h"

#define PITCH_MAX INT32_MAX

static const struct frag_device pinned_device = {FRAG_DEVICE_CUDA_HOST, 0};

static CUdeviceptr address(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

/*
 * Enters the context of the GPU behind a device; that of pinned memory, which is of all GPUs, is
 * the first one. Returns 0; -ENODEV: nothing has opened it; -EIO. After 0, cuda_device_leave.
 */
static int enter_gpu_of(struct frag_device device, const struct cuda_device **out,
			struct frag_err *err)
{
	bool is_pinned = device.type == FRAG_DEVICE_CUDA_HOST;

	*out = is_pinned ? cuda_device_first() : cuda_device_of(device.id);
	if (*out != NULL)
		return cuda_device_enter(*out, err);
	if (is_pinned)
		return frag_err_set(err, -ENODEV, "nothing has opened a GPU");
	return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)device.id);
}

static int alloc_in_context(const struct cuda_device *gpu, int32_t type, size_t size, void **out,
			    struct frag_err *err)
{
	CUdeviceptr memory = 0;
	void *pinned = NULL;
	int r;

	switch (type) {
	case FRAG_DEVICE_CUDA:
		r = cuda_check(cu.cuMemAlloc_v2(&memory, size), err,
			       "GPU %d (%s): cuMemAlloc of %zu bytes", (int)gpu->id, gpu->name,
			       size);
		break;
	case FRAG_DEVICE_CUDA_HOST:
		r = cuda_check(cu.cuMemHostAlloc(&pinned, size, CU_MEMHOSTALLOC_PORTABLE), err,
			       "cuMemHostAlloc of %zu bytes of pinned memory", size);
		memory = address(pinned);
		break;
	default:
		if (!gpu->has_managed)
			return frag_err_set(err, -ENOTSUP,
					    "GPU %d (%s) has no managed memory; use another kind",
					    (int)gpu->id, gpu->name);
		r = cuda_check(cu.cuMemAllocManaged(&memory, size, CU_MEM_ATTACH_GLOBAL), err,
			       "GPU %d (%s): cuMemAllocManaged of %zu bytes", (int)gpu->id,
			       gpu->name, size);
	}
	if (r == 0)
		*out = (void *)(uintptr_t)memory;
	return r;
}

static int memory_alloc(struct frag_device device, size_t size, void **out_memory,
			struct frag_err *err)
{
	const struct cuda_device *gpu;
	bool is_pinned = device.type == FRAG_DEVICE_CUDA_HOST;
	int r = enter_gpu_of(device, &gpu, err);

	if (r < 0)
		return r;
	if (!is_pinned)
		r = frag_gpu_memory_take(size, err);
	if (r == 0) {
		r = alloc_in_context(gpu, device.type, size, out_memory, err);
		if (r < 0 && !is_pinned)
			frag_gpu_memory_give(size);
	}
	cuda_device_leave();
	return r;
}

static int free_in_context(const struct cuda_device *gpu, CUdeviceptr memory, struct frag_err *err)
{
	size_t size = 0;
	int r = 0;

	if (fragi_gpu_limit() != 0)
		r = cuda_check(cu.cuMemGetAddressRange_v2(NULL, &size, memory), err,
			       "GPU %d (%s): cuMemGetAddressRange", (int)gpu->id, gpu->name);
	if (r == 0)
		r = cuda_check(cu.cuMemFree_v2(memory), err, "GPU %d (%s): cuMemFree", (int)gpu->id,
			       gpu->name);
	if (r == 0)
		frag_gpu_memory_give(size);
	return r;
}

/* The driver waits for the GPU before it frees memory. */
static void memory_free(struct frag_device device, void *memory)
{
	struct frag_err err = FRAG_ERR_INIT;
	const struct cuda_device *gpu;
	int r = enter_gpu_of(device, &gpu, &err);

	if (r == 0) {
		r = device.type == FRAG_DEVICE_CUDA_HOST
			    ? cuda_check(cu.cuMemFreeHost(memory), &err, "cuMemFreeHost")
			    : free_in_context(gpu, address(memory), &err);
		cuda_device_leave();
	}
	if (r < 0)
		log_error(NULL, "memory was not freed: %s", err.text);
}

static int memory_pin(void *memory, size_t size, struct frag_err *err)
{
	const struct cuda_device *gpu;
	int r = enter_gpu_of(pinned_device, &gpu, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuMemHostRegister_v2(memory, size, CU_MEMHOSTREGISTER_PORTABLE), err,
		       "cuMemHostRegister of %zu bytes", size);
	cuda_device_leave();
	return r;
}

static void memory_unpin(void *memory)
{
	struct frag_err err = FRAG_ERR_INIT;
	const struct cuda_device *gpu;
	int r = enter_gpu_of(pinned_device, &gpu, &err);

	if (r == 0) {
		r = cuda_check(cu.cuMemHostUnregister(memory), &err, "cuMemHostUnregister");
		cuda_device_leave();
	}
	if (r < 0)
		log_error(NULL, "memory stays pinned: %s", err.text);
}

static int copy_bytes(const struct cuda_device *gpu, CUstream stream, CUdeviceptr to,
		      CUdeviceptr from, size_t size, struct frag_err *err)
{
	return cuda_check(cu.cuMemcpyAsync(to, from, size, stream), err,
			  "GPU %d (%s): cuMemcpyAsync of %zu bytes", (int)gpu->id, gpu->name, size);
}

static int memory_copy(struct frag_device device, void *to, const void *from, size_t size,
		       struct frag_err *err)
{
	const struct cuda_device *gpu;
	int r = enter_gpu_of(device, &gpu, err);

	if (r < 0)
		return r;
	r = copy_bytes(gpu, gpu->stream, address(to), address(from), size, err);
	cuda_device_leave();
	return r;
}

/* The driver knows by the contexts how to reach memory that only its own GPU has mapped. */
static int memory_copy_across(struct frag_device from_device, const void *from,
			      struct frag_device device, void *to, size_t size,
			      struct frag_err *err)
{
	const struct cuda_device *gpu, *other = cuda_device_of(device.id);
	int r = enter_gpu_of(from_device, &gpu, err);

	if (r < 0)
		return r;
	if (other == NULL) {
		cuda_device_leave();
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)device.id);
	}
	r = cuda_check(cu.cuMemcpyPeerAsync(address(to), other->context, address(from),
					    gpu->context, size, gpu->stream),
		       err, "GPU %d (%s): cuMemcpyPeerAsync of %zu bytes to GPU %d", (int)gpu->id,
		       gpu->name, size, (int)other->id);
	cuda_device_leave();
	return r;
}

/*
 * Rows of a tensor: bytes that lie together, and how many such pieces follow each other at one
 * distance. The dimensions before them are walked one by one.
 */
struct rows {
	size_t width, height, pitch;
	int32_t outer;
};

static struct rows rows_of(const struct frag_dltensor *dl, size_t element)
{
	struct rows rows = {.width = element, .height = 1, .outer = dl->ndim};

	while (rows.outer > 0 && (dl->shape[rows.outer - 1] == 1 ||
				  (size_t)dl->strides[rows.outer - 1] * element == rows.width)) {
		rows.outer--;
		rows.width *= (size_t)dl->shape[rows.outer];
	}
	rows.pitch = rows.width;
	if (rows.outer > 0) {
		rows.outer--;
		rows.height = (size_t)dl->shape[rows.outer];
		rows.pitch = (size_t)dl->strides[rows.outer] * element;
	}
	return rows;
}

static int copy_rows(const struct cuda_device *gpu, CUstream stream, const struct rows *rows,
		     CUdeviceptr from, CUdeviceptr to, struct frag_err *err)
{
	const CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = from,
		.srcPitch = rows->pitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = to,
		.dstPitch = rows->width,
		.WidthInBytes = rows->width,
		.Height = rows->height,
	};

	return cuda_check(cu.cuMemcpy2DAsync_v2(&copy, stream), err,
			  "GPU %d (%s): cuMemcpy2DAsync of %zu rows of %zu bytes", (int)gpu->id,
			  gpu->name, rows->height, rows->width);
}

/* A pitch below the width or beyond 2 GiB is not allowed: such rows go one by one. */
static int copy_piece(const struct cuda_device *gpu, CUstream stream, const struct rows *rows,
		      CUdeviceptr from, CUdeviceptr to, struct frag_err *err)
{
	int r = 0;

	if (rows->height > 1 && rows->pitch >= rows->width && rows->pitch <= PITCH_MAX)
		return copy_rows(gpu, stream, rows, from, to, err);
	for (size_t i = 0; i < rows->height && r == 0; i++)
		r = copy_bytes(gpu, stream, to + i * rows->width, from + i * rows->pitch,
			       rows->width, err);
	return r;
}

int cuda_pack(const struct cuda_device *gpu, void *stream, const struct frag_dltensor *dl,
	      size_t element_bytes, void *to, struct frag_err *err)
{
	const CUdeviceptr first = address(dl->data) + dl->byte_offset;
	const struct rows rows = rows_of(dl, element_bytes);
	int64_t index[FRAG_TENSOR_NDIM_MAX] = {0};
	CUdeviceptr at = address(to), from;
	int32_t d;
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	do {
		from = first;
		for (d = 0; d < rows.outer; d++)
			from += (CUdeviceptr)(index[d] * dl->strides[d]) * element_bytes;
		r = copy_piece(gpu, stream, &rows, from, at, err);
		at += rows.width * rows.height;
		for (d = rows.outer - 1; d >= 0 && ++index[d] == dl->shape[d]; d--)
			index[d] = 0;
	} while (r == 0 && d >= 0);
	cuda_device_leave();
	return r;
}

static int memory_pack(const struct frag_dltensor *dl, size_t element_bytes, void *to,
		       struct frag_err *err)
{
	const struct cuda_device *gpu;
	int r = enter_gpu_of(dl->device, &gpu, err);

	if (r < 0)
		return r;
	r = cuda_pack(gpu, gpu->stream, dl, element_bytes, to, err);
	cuda_device_leave();
	return r;
}

static int memory_wait(struct frag_device device, struct frag_err *err)
{
	const struct cuda_device *gpu;
	int r = enter_gpu_of(device, &gpu, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamSynchronize(gpu->stream), err, "GPU %d (%s): cuStreamSynchronize",
		       (int)gpu->id, gpu->name);
	cuda_device_leave();
	return r;
}

const struct fragi_memory cuda_memory = {
	.alloc = memory_alloc,
	.free = memory_free,
	.pin = memory_pin,
	.unpin = memory_unpin,
	.pool_alloc = cuda_receive_pool_alloc,
	.pool_free = cuda_receive_pool_free,
	.copy = memory_copy,
	.copy_across = memory_copy_across,
	.pack = memory_pack,
	.wait = memory_wait,
	.streams = &cuda_streams,
	.shared = &cuda_shared,
};
