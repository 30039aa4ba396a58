// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <sys/mman.h>

#include "fake_driver.h"

/* Memory: of a GPU, pinned, managed, registered, and what processes share. */

CUresult piece_make(enum kind kind, int device, size_t size, struct CUmemPoolHandle_st *pool,
		    char **out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped = (size + page - 1) / page * page;
	struct piece *piece;
	int fd;

	if (size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > fake.memory_max - fake.used[device])
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = memfd_create("fake_cuda", MFD_CLOEXEC);
	piece = calloc(1, sizeof(*piece));
	if (fd < 0 || piece == NULL || ftruncate(fd, (off_t)mapped) < 0)
		abort();
	piece->bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	piece->address =
		kind == DEVICE ? mmap(NULL, mapped, PROT_NONE, MAP_SHARED, fd, 0) : piece->bytes;
	if (piece->bytes == MAP_FAILED || piece->address == MAP_FAILED)
		abort();
	close(fd);
	/* What nobody has written is not zero. */
	memset(piece->bytes, 0xa5, size);
	piece->kind = kind;
	piece->device = device;
	piece->size = size;
	piece->pool = pool;
	piece->next = fake.pieces;
	fake.pieces = piece;
	fake.used[device] += size;
	*out = piece->address;
	return CUDA_SUCCESS;
}

CUresult piece_free(char *address, bool pinned, bool of_pool)
{
	struct piece **at = &fake.pieces, *piece;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), mapped;

	while (*at != NULL && (*at)->address != address)
		at = &(*at)->next;
	piece = *at;
	if (piece == NULL || piece->kind == MAPPED || piece->kind == REGISTERED ||
	    (piece->kind == PINNED) != pinned || (piece->pool != NULL) != of_pool)
		return CUDA_ERROR_INVALID_VALUE;
	mapped = (piece->size + page - 1) / page * page;
	*at = piece->next;
	fake.used[piece->device] -= piece->size;
	munmap(piece->bytes, mapped);
	if (piece->address != piece->bytes)
		munmap(piece->address, mapped);
	free(piece);
	return CUDA_SUCCESS;
}

char *reach(CUdeviceptr address, size_t size)
{
	char *at = (char *)(uintptr_t)address;

	for (const struct piece *piece = fake.pieces; piece != NULL; piece = piece->next)
		if (at >= piece->address && at < piece->address + piece->size)
			return size <= (size_t)(piece->address + piece->size - at)
				       ? piece->bytes + (at - piece->address)
				       : NULL;
	return at;
}

bool is_writable(CUdeviceptr address)
{
	const char *at = (const char *)(uintptr_t)address;

	for (const struct piece *piece = fake.pieces; piece != NULL; piece = piece->next)
		if (at >= piece->address && at < piece->address + piece->size)
			return piece->kind != MAPPED ||
			       piece->access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return true;
}

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size)
{
	char *address = NULL;

	ENTER(cuMemAlloc_v2, true)
	result = piece_make(DEVICE, current()->device, size, NULL, &address);
	if (result == CUDA_SUCCESS)
		*memory = (CUdeviceptr)(uintptr_t)address;
	LEAVE(result);
}

CUresult cuMemFree_v2(CUdeviceptr memory)
{
	ENTER(cuMemFree_v2, true)
	wait_for_streams();
	LEAVE(piece_free((char *)(uintptr_t)memory, false, false));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr memory)
{
	const struct piece *piece;

	ENTER(cuMemGetAddressRange_v2, true)
	for (piece = fake.pieces; piece != NULL; piece = piece->next)
		if ((char *)(uintptr_t)memory == piece->address)
			break;
	if (piece == NULL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (base != NULL)
		*base = memory;
	*size = piece->size;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAllocManaged(CUdeviceptr *memory, size_t size, unsigned int flags)
{
	char *address = NULL;

	ENTER(cuMemAllocManaged, true)
	if (flags != CU_MEM_ATTACH_GLOBAL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	result = piece_make(MANAGED, current()->device, size, NULL, &address);
	if (result == CUDA_SUCCESS)
		*memory = (CUdeviceptr)(uintptr_t)address;
	LEAVE(result);
}

CUresult cuMemHostAlloc(void **memory, size_t size, unsigned int flags)
{
	char *address = NULL;

	ENTER(cuMemHostAlloc, true)
	if (flags != CU_MEMHOSTALLOC_PORTABLE)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	result = piece_make(PINNED, current()->device, size, NULL, &address);
	if (result == CUDA_SUCCESS)
		*memory = address;
	LEAVE(result);
}

CUresult cuMemFreeHost(void *memory)
{
	ENTER(cuMemFreeHost, true)
	wait_for_streams();
	LEAVE(piece_free(memory, true, false));
}

const struct piece *registered_in(const char *at, size_t size)
{
	const struct piece *piece = fake.pieces;

	while (piece != NULL && (piece->kind != REGISTERED || at >= piece->address + piece->size ||
				 at + size <= piece->address))
		piece = piece->next;
	return piece;
}

/* Memory of the caller's. */
CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct piece *piece;
	int device;

	ENTER(cuMemHostRegister_v2, true)
	if (flags != CU_MEMHOSTREGISTER_PORTABLE || (uintptr_t)memory % page != 0 ||
	    size % page != 0 || size == 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (registered_in(memory, size) != NULL)
		LEAVE((CUresult)712); /* CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED */
	device = current()->device;
	if (size > fake.memory_max - fake.used[device])
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	piece = calloc(1, sizeof(*piece));
	if (piece == NULL)
		abort();
	fake.used[device] += size;
	*piece = (struct piece){.kind = REGISTERED,
				.device = device,
				.size = size,
				.address = memory,
				.bytes = memory,
				.next = fake.pieces};
	fake.pieces = piece;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void *memory)
{
	struct piece **at = &fake.pieces, *piece;

	ENTER(cuMemHostUnregister, true)
	wait_for_streams();
	while (*at != NULL && ((*at)->kind != REGISTERED || (*at)->address != memory))
		at = &(*at)->next;
	piece = *at;
	if (piece == NULL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	*at = piece->next;
	fake.used[piece->device] -= piece->size;
	free(piece);
	LEAVE(CUDA_SUCCESS);
}

/* Memory that other processes map. */

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	ENTER(cuDeviceGetUuid_v2, false)
	memset(uuid, 0, sizeof(*uuid));
	snprintf(uuid->bytes, sizeof(uuid->bytes), "Fake %d", device);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void)
{
	ENTER(cuCtxSynchronize, true)
	wait_for_streams();
	LEAVE(CUDA_SUCCESS);
}

static struct shared *shared_of(CUmemGenericAllocationHandle handle)
{
	struct shared *shared = fake.shares;

	while (shared != NULL && shared->handle != handle)
		shared = shared->next;
	return shared;
}

static void shared_unref(struct shared *shared)
{
	struct shared **at = &fake.shares;

	if (--shared->refs > 0)
		return;
	while (*at != shared)
		at = &(*at)->next;
	*at = shared->next;
	fake.used[shared->device] -= shared->size;
	close(shared->fd);
	free(shared);
}

static CUresult shared_make(int fd, int device, size_t size, CUmemGenericAllocationHandle *out)
{
	struct shared *shared = calloc(1, sizeof(*shared));

	if (shared == NULL || fd < 0)
		abort();
	*shared = (struct shared){.handle = fake.next_handle++,
				  .fd = fd,
				  .device = device,
				  .refs = 1,
				  .size = size,
				  .next = fake.shares};
	fake.shares = shared;
	fake.used[device] += size;
	*out = shared->handle;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *size, const CUmemAllocationProp *properties,
				       CUmemAllocationGranularity_flags option)
{
	ENTER(cuMemGetAllocationGranularity, false)
	if (properties->location.id >= fake.device_count ||
	    option != CU_MEM_ALLOC_GRANULARITY_MINIMUM)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	*size = SHARED_PAGE;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *properties, unsigned long long flags)
{
	char name[32];
	int device = properties->location.id, fd;

	ENTER(cuMemCreate, true)
	if (size == 0 || size % SHARED_PAGE != 0 || flags != 0 || device >= fake.device_count ||
	    properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (size > fake.memory_max - fake.used[device])
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	snprintf(name, sizeof(name), "fake_cuda-%d", device);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		abort();
	LEAVE(shared_make(fd, device, size, handle));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct shared *shared;

	ENTER(cuMemRelease, false)
	shared = shared_of(handle);
	if (shared == NULL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	shared_unref(shared);
	LEAVE(CUDA_SUCCESS);
}

static struct piece *mapped_at(CUdeviceptr address, size_t size)
{
	struct piece *piece = fake.pieces;

	while (piece != NULL &&
	       (piece->kind != MAPPED || piece->address != (char *)(uintptr_t)address ||
		piece->size != size))
		piece = piece->next;
	return piece;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *memory)
{
	struct piece *piece = fake.pieces;

	ENTER(cuMemRetainAllocationHandle, false)
	while (piece != NULL && (piece->kind != MAPPED || piece->address != (char *)memory))
		piece = piece->next;
	if (piece == NULL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	piece->shared->refs++;
	*handle = piece->shared->handle;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	const struct shared *shared;
	int fd;

	ENTER(cuMemExportToShareableHandle, false)
	shared = shared_of(handle);
	if (shared == NULL || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	fd = dup(shared->fd);
	if (fd < 0)
		LEAVE((CUresult)304); /* CUDA_ERROR_OPERATING_SYSTEM */
	memcpy(out, &fd, sizeof(fd));
	LEAVE(CUDA_SUCCESS);
}

/* Which GPU's memory a descriptor is of; negative: of none. */
static int device_of(int fd)
{
	char path[64], name[64] = "";
	int device = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, name, sizeof(name) - 1) < 0 ||
	    sscanf(name, "/memfd:fake_cuda-%d", &device) != 1)
		return -1;
	return device;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shown,
					CUmemAllocationHandleType type)
{
	int fd = (int)(intptr_t)shown, device;

	ENTER(cuMemImportFromShareableHandle, true)
	device = device_of(fd);
	if (device < 0 || device >= fake.device_count ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	LEAVE(shared_make(dup(fd), device, (size_t)lseek(fd, 0, SEEK_END), handle));
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment,
			     CUdeviceptr wanted, unsigned long long flags)
{
	void *memory;

	ENTER(cuMemAddressReserve, true)
	if (size == 0 || size % SHARED_PAGE != 0 || alignment != 0 || wanted != 0 || flags != 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
	fake.reserved++;
	*address = (CUdeviceptr)(uintptr_t)memory;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
	ENTER(cuMemAddressFree, true)
	if (mapped_at(address, size) != NULL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	fake.reserved--;
	LEAVE(munmap((void *)(uintptr_t)address, size) == 0 ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct shared *shared;
	struct piece *piece;

	ENTER(cuMemMap, true)
	shared = shared_of(handle);
	if (shared == NULL || offset != 0 || flags != 0 || size != shared->size)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	piece = calloc(1, sizeof(*piece));
	if (piece == NULL)
		abort();
	*piece = (struct piece){.kind = MAPPED,
				.device = shared->device,
				.size = size,
				.address = (char *)(uintptr_t)address,
				.shared = shared,
				.next = fake.pieces};
	piece->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
	if (piece->bytes == MAP_FAILED)
		abort();
	shared->refs++;
	fake.pieces = piece;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	struct piece *piece, **at = &fake.pieces;

	ENTER(cuMemUnmap, true)
	piece = mapped_at(address, size);
	if (piece == NULL)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	while (*at != piece)
		at = &(*at)->next;
	*at = piece->next;
	munmap(piece->bytes, size);
	shared_unref(piece->shared);
	free(piece);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access,
			size_t count)
{
	struct piece *piece;

	ENTER(cuMemSetAccess, true)
	piece = mapped_at(address, size);
	if (piece == NULL || count != 1)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (access->location.id == piece->device)
		piece->access = access->flags;
	else if (access->flags == piece->access && has("peers"))
		piece->reached[access->location.id] = true;
	else
		LEAVE(CUDA_ERROR_INVALID_DEVICE);
	LEAVE(CUDA_SUCCESS);
}
