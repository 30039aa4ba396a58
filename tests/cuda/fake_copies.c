// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

/* Copies in the order of a stream, and which of them go by way of the host. */

void run_copy(struct task *task)
{
	const CUDA_MEMCPY2D *copy = &task->copy;

	for (size_t row = 0; row < copy->Height; row++) {
		char *to = reach(copy->dstDevice + row * copy->dstPitch, copy->WidthInBytes);
		char *from = reach(copy->srcDevice + row * copy->srcPitch, copy->WidthInBytes);

		/* As a GPU does: the context is of no use any more. */
		if (!is_writable(copy->dstDevice)) {
			fake.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
			break;
		}
		if (to == NULL || from == NULL) {
			fprintf(stderr, "fake_cuda: a copy beyond an allocation\n");
			abort();
		}
		memcpy(to, from, copy->WidthInBytes);
	}
	free(task->staged);
}

static const struct piece *piece_at(CUdeviceptr address)
{
	const char *at = (const char *)(uintptr_t)address;
	const struct piece *piece = fake.pieces;

	while (piece != NULL && (at < piece->address || at >= piece->address + piece->size))
		piece = piece->next;
	return piece;
}

static bool is_of_gpu(CUdeviceptr address)
{
	const struct piece *piece = piece_at(address);

	return piece != NULL && (piece->kind == DEVICE || piece->kind == MAPPED);
}

/* Whether a range is not in two pieces of registered memory, nor partly in one. */
static bool is_in_one(CUdeviceptr address, size_t size)
{
	const char *at = (const char *)(uintptr_t)address;
	const struct piece *registered = registered_in(at, size);

	return registered == NULL ||
	       (at >= registered->address && at + size <= registered->address + registered->size);
}

/*
 * Memory of pools, and that has addresses apart, is reached by its own GPU and those that were
 * given access.
 */
static bool is_out_of_reach(CUdeviceptr address)
{
	const struct piece *piece = piece_at(address);
	const int device = current()->device;

	if (piece == NULL || piece->device == device)
		return false;
	if (piece->pool != NULL)
		return !piece->pool->reached[device];
	return piece->kind == MAPPED && !piece->reached[device];
}

/* Whether a copy from the current GPU to another, or from there, goes by way of the host. */
static bool goes_by_host(CUdeviceptr to, CUdeviceptr from)
{
	const int other = piece_at(to)->device != current()->device ? piece_at(to)->device
								    : piece_at(from)->device;

	return is_out_of_reach(to) || is_out_of_reach(from) ||
	       (other != current()->device && !current()->reaches[other]);
}

int fake_cuda_by_host(void)
{
	int n;

	pthread_mutex_lock(&fake.lock);
	n = fake.by_host;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

/* Reads what is copied at once; the caller may change or free it then. */
static char *stage(CUDA_MEMCPY2D *copy)
{
	char *staged = malloc(copy->Height * copy->WidthInBytes + 1);

	if (staged == NULL)
		abort();
	for (size_t row = 0; row < copy->Height; row++)
		memcpy(staged + row * copy->WidthInBytes,
		       (const char *)(uintptr_t)copy->srcDevice + row * copy->srcPitch,
		       copy->WidthInBytes);
	copy->srcDevice = (CUdeviceptr)(uintptr_t)staged;
	copy->srcPitch = copy->WidthInBytes;
	return staged;
}

/*
 * With the lock. As the driver does: a copy from a GPU to memory of the host that is not pinned is
 * waited for within the call, one from there is staged, and one that is beyond what was pinned at
 * once is refused.
 */
static CUresult submit_copy(CUstream stream, const struct task *what)
{
	struct task with_stage = *what, *task = &with_stage;
	const CUDA_MEMCPY2D *copy = &task->copy;
	CUresult result;

	if (!task->is_across &&
	    (is_out_of_reach(copy->dstDevice) || is_out_of_reach(copy->srcDevice)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_in_one(copy->dstDevice, copy->WidthInBytes + (copy->Height - 1) * copy->dstPitch) ||
	    !is_in_one(copy->srcDevice, copy->WidthInBytes + (copy->Height - 1) * copy->srcPitch))
		return CUDA_ERROR_INVALID_VALUE;
	if (piece_at(copy->srcDevice) == NULL)
		task->staged = stage(&task->copy);
	result = submit(stream, task);
	if (result != CUDA_SUCCESS)
		free(task->staged);
	if (result == CUDA_SUCCESS && is_of_gpu(copy->srcDevice) &&
	    piece_at(copy->dstDevice) == NULL)
		while (stream->first != NULL)
			pthread_cond_wait(&stream->idle, &fake.lock);
	return result;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	const struct task task = {
		.run = run_copy,
		.copy = {.srcDevice = from, .dstDevice = to, .WidthInBytes = size, .Height = 1}};

	ENTER(cuMemcpyAsync, true)
	LEAVE(submit_copy(stream, &task));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t size, CUstream stream)
{
	const struct task task = {
		.run = run_copy,
		.is_across = true,
		.copy = {.srcDevice = from, .dstDevice = to, .WidthInBytes = size, .Height = 1}};

	ENTER(cuMemcpyPeerAsync, true)
	if (piece_at(to) == NULL || piece_at(from) == NULL ||
	    piece_at(to)->device != to_context->device ||
	    piece_at(from)->device != from_context->device)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	fake.by_host += goes_by_host(to, from);
	LEAVE(submit_copy(stream, &task));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	const struct task task = {.run = run_copy, .copy = *copy};

	ENTER(cuMemcpy2DAsync_v2, true)
	if ((copy->srcMemoryType != CU_MEMORYTYPE_UNIFIED &&
	     (copy->srcMemoryType != CU_MEMORYTYPE_DEVICE || !is_of_gpu(copy->srcDevice))) ||
	    (copy->dstMemoryType != CU_MEMORYTYPE_UNIFIED &&
	     (copy->dstMemoryType != CU_MEMORYTYPE_DEVICE || !is_of_gpu(copy->dstDevice))) ||
	    copy->srcPitch < copy->WidthInBytes || copy->dstPitch < copy->WidthInBytes)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	LEAVE(submit_copy(stream, &task));
}
