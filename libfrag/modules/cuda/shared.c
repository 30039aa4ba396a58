// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "cuda"
#include <base/log.h>
#include <frag/cuda.h>

#include "device.h"
#include "module.h"
#include "peer.h"

/*
 * Device memory that other processes map: the driver makes it apart from its addresses, and gives a
 * descriptor for it. A process that maps it keeps it, also when the one that made it is gone.
 */
static CUdeviceptr address(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

static CUmemAllocationProp properties_of(const struct cuda_device *gpu)
{
	CUmemAllocationProp properties;

	memset(&properties, 0, sizeof(properties));
	properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	properties.location.id = gpu->device;
	return properties;
}

/* Gives memory addresses in this process. Returns 0 or negative errno. */
static int map_at(const struct cuda_device *gpu, CUmemGenericAllocationHandle handle, size_t bytes,
		  CUmemAccess_flags flags, CUdeviceptr *out, struct frag_err *err)
{
	CUmemAccessDesc access;
	CUdeviceptr at = 0;
	int r = cuda_check(cu.cuMemAddressReserve(&at, bytes, 0, 0, 0), err,
			   "GPU %d (%s): cuMemAddressReserve of %zu bytes", (int)gpu->id, gpu->name,
			   bytes);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuMemMap(at, bytes, 0, handle, 0), err,
		       "GPU %d (%s): cuMemMap of %zu bytes", (int)gpu->id, gpu->name, bytes);
	if (r < 0)
		goto err_address;
	memset(&access, 0, sizeof(access));
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.id = gpu->device;
	access.flags = flags;
	r = cuda_check(cu.cuMemSetAccess(at, bytes, &access, 1), err,
		       "GPU %d (%s): cuMemSetAccess of %zu bytes", (int)gpu->id, gpu->name, bytes);
	if (r == 0) {
		cuda_peer_add(&(struct cuda_own_memory){
			.gpu = gpu, .at = at, .bytes = bytes, .flags = flags});
		*out = at;
		return 0;
	}
	(void)cu.cuMemUnmap(at, bytes);
err_address:
	(void)cu.cuMemAddressFree(at, bytes);
	return r;
}

static int alloc_in_context(const struct cuda_device *gpu, size_t size, CUdeviceptr *out,
			    size_t *out_bytes, struct frag_err *err)
{
	const CUmemAllocationProp properties = properties_of(gpu);
	CUmemGenericAllocationHandle handle;
	size_t page = 0, bytes;
	int r = cuda_check(cu.cuMemGetAllocationGranularity(&page, &properties,
							    CU_MEM_ALLOC_GRANULARITY_MINIMUM),
			   err, "GPU %d (%s): cuMemGetAllocationGranularity", (int)gpu->id,
			   gpu->name);

	if (r < 0)
		return r;
	if (page == 0 || size > SIZE_MAX - page)
		return frag_err_set(err, -ENOMEM, "GPU %d (%s) has no %zu bytes", (int)gpu->id,
				    gpu->name, size);
	bytes = (size + page - 1) / page * page;
	r = frag_gpu_memory_take(bytes, err);
	if (r < 0)
		return r;
	r = cuda_check(cu.cuMemCreate(&handle, bytes, &properties, 0), err,
		       "GPU %d (%s): cuMemCreate of %zu bytes", (int)gpu->id, gpu->name, bytes);
	if (r == 0) {
		r = map_at(gpu, handle, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, out, err);
		(void)cu.cuMemRelease(handle); /* what is mapped stays */
	}
	if (r < 0)
		frag_gpu_memory_give(bytes);
	*out_bytes = bytes;
	return r;
}

static int shared_alloc(struct frag_device device, size_t size, void **out_memory,
			size_t *out_bytes, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(device.id);
	CUdeviceptr memory = 0;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)device.id);
	if (device.type != FRAG_DEVICE_CUDA || !gpu->has_shared)
		return frag_err_set(err, -ENOTSUP,
				    "GPU %d (%s) has no memory that other processes can map",
				    (int)gpu->id, gpu->name);
	r = cuda_device_enter(gpu, err);
	if (r < 0)
		return r;
	r = alloc_in_context(gpu, size, &memory, out_bytes, err);
	cuda_device_leave();
	if (r == 0)
		*out_memory = (void *)(uintptr_t)memory;
	return r;
}

/* Unlike memory that the driver frees, this could be taken from under work of the GPU. */
static int unmap_in_context(const struct cuda_device *gpu, CUdeviceptr at, size_t bytes,
			    struct frag_err *err)
{
	int r;

	cuda_peer_remove(NULL, at);
	(void)cu.cuCtxSynchronize();
	r = cuda_check(cu.cuMemUnmap(at, bytes), err, "GPU %d (%s): cuMemUnmap", (int)gpu->id,
		       gpu->name);
	if (r == 0)
		r = cuda_check(cu.cuMemAddressFree(at, bytes), err, "GPU %d (%s): cuMemAddressFree",
			       (int)gpu->id, gpu->name);
	return r;
}

static int unmap(struct frag_device device, void *memory, size_t bytes)
{
	const struct cuda_device *gpu = cuda_device_of(device.id);
	struct frag_err err = FRAG_ERR_INIT;
	int r = cuda_device_enter(gpu, &err);

	if (r == 0) {
		r = unmap_in_context(gpu, address(memory), bytes, &err);
		cuda_device_leave();
	}
	if (r < 0)
		log_error(NULL, "memory that hosts share was not freed: %s", err.text);
	return r;
}

static void shared_unmap(struct frag_device device, void *memory, size_t bytes)
{
	(void)unmap(device, memory, bytes);
}

static void shared_free(struct frag_device device, void *memory, size_t bytes)
{
	if (unmap(device, memory, bytes) == 0)
		frag_gpu_memory_give(bytes);
}

static int show_in_context(const struct cuda_device *gpu, void *memory, int *out_fd,
			   struct frag_err *err)
{
	CUmemGenericAllocationHandle handle;
	int r = cuda_check(cu.cuMemRetainAllocationHandle(&handle, memory), err,
			   "GPU %d (%s): cuMemRetainAllocationHandle", (int)gpu->id, gpu->name);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuMemExportToShareableHandle(out_fd, handle,
						       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		       err, "GPU %d (%s): cuMemExportToShareableHandle", (int)gpu->id, gpu->name);
	(void)cu.cuMemRelease(handle);
	if (r == 0)
		(void)fcntl(*out_fd, F_SETFD, FD_CLOEXEC);
	return r;
}

static int shared_show(struct frag_device device, void *memory, int *out_fd,
		       uint8_t out_gpu[FRAGI_GPU_NAME_BYTES], struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(device.id);
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	r = show_in_context(gpu, memory, out_fd, err);
	cuda_device_leave();
	memcpy(out_gpu, gpu->name_of_all, FRAGI_GPU_NAME_BYTES);
	return r;
}

static int map_in_context(const struct cuda_device *gpu, int fd, size_t bytes, CUdeviceptr *out,
			  struct frag_err *err)
{
	CUmemGenericAllocationHandle handle;
	int r = cuda_check(
		cu.cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)(unsigned int)fd,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		err, "GPU %d (%s): cuMemImportFromShareableHandle", (int)gpu->id, gpu->name);

	if (r < 0)
		return r;
	r = map_at(gpu, handle, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ, out, err);
	(void)cu.cuMemRelease(handle);
	return r;
}

static int shared_map(int fd, const uint8_t name[FRAGI_GPU_NAME_BYTES], size_t bytes,
		      struct frag_device *out_device, void **out_memory, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_named(name);
	CUdeviceptr memory = 0;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing here has opened the GPU that it is of");
	r = cuda_device_enter(gpu, err);
	if (r < 0)
		return r;
	r = map_in_context(gpu, fd, bytes, &memory, err);
	cuda_device_leave();
	*out_device = (struct frag_device){FRAG_DEVICE_CUDA, gpu->id};
	*out_memory = (void *)(uintptr_t)memory;
	return r;
}

const struct fragi_shared_memory cuda_shared = {
	.alloc = shared_alloc,
	.free = shared_free,
	.show = shared_show,
	.map = shared_map,
	.unmap = shared_unmap,
};
