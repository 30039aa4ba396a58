// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "cuda"
#include <base/log.h>

#include "device.h"
#include "peer.h"

static struct cuda_device devices[CUDA_DEVICES_MAX];
static struct cuda_device *_Atomic first;

static int has_attribute(const struct cuda_device *device, CUdevice_attribute attribute, bool *out,
			 struct frag_err *err)
{
	int value = 0;
	int r = cuda_check(cu.cuDeviceGetAttribute(&value, attribute, device->device), err,
			   "GPU %d: cuDeviceGetAttribute", (int)device->id);

	*out = value != 0;
	return r;
}

/* In the context. Returns 0 or a negative errno. */
static int make_stream(struct cuda_device *device, struct frag_err *err)
{
	int r = cuda_device_enter(device, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamCreateWithPriority(&device->stream, CU_STREAM_NON_BLOCKING, 0),
		       err, "GPU %d (%s): cuStreamCreateWithPriority", (int)device->id,
		       device->name);
	cuda_device_leave();
	return r;
}

/*
 * Has `device` reach the memory of another GPU, so that copies between them do not go by way of the
 * host. Where the machine cannot do so, they do.
 */
static void reach(const struct cuda_device *device, const struct cuda_device *other)
{
	struct frag_err err = FRAG_ERR_INIT;
	int can = 0;
	int r = cuda_check(cu.cuDeviceCanAccessPeer(&can, device->device, other->device), &err,
			   "cuDeviceCanAccessPeer");

	if (r == 0 && can != 0)
		r = cuda_device_enter(device, &err);
	if (r == 0 && can != 0) {
		CUresult result = cu.cuCtxEnablePeerAccess(other->context, 0);

		/* the application may have asked for it */
		if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
			r = cuda_check(result, &err, "cuCtxEnablePeerAccess");
		cuda_device_leave();
	}
	if (r < 0 || can == 0)
		log_info(NULL,
			 "GPU %d does not reach the memory of GPU %d%s%s: copies go by the host",
			 (int)device->id, (int)other->id, r < 0 ? ", " : "", r < 0 ? err.text : "");
}

static void reach_others(const struct cuda_device *device)
{
	for (int32_t id = 0; id < CUDA_DEVICES_MAX; id++) {
		const struct cuda_device *other = cuda_device_of(id);

		if (other == NULL)
			continue;
		reach(device, other);
		reach(other, device);
	}
}

static int open_device(struct cuda_device *device, struct frag_err *err)
{
	CUuuid uuid;
	int r = cuda_check(cu.cuDeviceGet(&device->device, device->id), err, "GPU %d: cuDeviceGet",
			   (int)device->id);

	if (r == 0)
		r = cuda_check(
			cu.cuDeviceGetName(device->name, sizeof(device->name), device->device), err,
			"GPU %d: cuDeviceGetName", (int)device->id);
	if (r == 0)
		r = has_attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, &device->has_managed,
				  err);
	if (r == 0)
		r = has_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
				  &device->has_pools, err);
	if (r == 0)
		r = has_attribute(device,
				  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
				  &device->has_shared, err);
	if (r == 0)
		r = cuda_check(cu.cuDeviceGetUuid_v2(&uuid, device->device), err,
			       "GPU %d: cuDeviceGetUuid", (int)device->id);
	if (r == 0)
		memcpy(device->name_of_all, uuid.bytes, sizeof(device->name_of_all));
	/* A context that a failed attempt left is the same one, so it is kept. */
	if (r == 0 && device->context == NULL)
		r = cuda_check(cu.cuDevicePrimaryCtxRetain(&device->context, device->device), err,
			       "GPU %d (%s): cuDevicePrimaryCtxRetain", (int)device->id,
			       device->name);
	if (r == 0)
		r = make_stream(device, err);
	return r;
}

int cuda_device_survey(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err)
{
	uint64_t all_bytes = 0;
	int count = 0, r = cuda_driver_open(err);

	if (r == 0)
		r = cuda_check(cu.cuDeviceGetCount(&count), err, "cuDeviceGetCount");
	for (int i = 0; r == 0 && i < count; i++) {
		CUdevice device;
		size_t bytes = 0;

		r = cuda_check(cu.cuDeviceGet(&device, i), err, "GPU %d: cuDeviceGet", i);
		if (r == 0)
			r = cuda_check(cu.cuDeviceTotalMem_v2(&bytes, device), err,
				       "GPU %d: cuDeviceTotalMem", i);
		all_bytes += bytes;
	}
	if (r < 0)
		return -ENODEV;
	*out_count = (uint32_t)count;
	*out_bytes = all_bytes;
	return 0;
}

int cuda_device_use(int32_t id, struct frag_err *err)
{
	struct cuda_device *device;
	int count = 0, r;

	if (id < 0 || id >= CUDA_DEVICES_MAX)
		return frag_err_set(err, -ENODEV, "there is no GPU %d", (int)id);
	device = &devices[id];
	if (atomic_load_explicit(&device->ready, memory_order_acquire))
		return 0;
	r = cuda_driver_open(err);
	if (r < 0)
		return r;
	if (cuda_check(cu.cuDeviceGetCount(&count), err, "cuDeviceGetCount") < 0)
		return -ENODEV;
	if (count == 0)
		return frag_err_set(err, -ENODEV, "this process sees no GPU");
	if (id >= count)
		return frag_err_set(
			err, -ENODEV,
			"there is no GPU %d: this process sees %d (CUDA_VISIBLE_DEVICES)", (int)id,
			count);
	device->id = id;
	if (open_device(device, err) < 0)
		return -ENODEV;
	reach_others(device);
	if (atomic_load(&first) == NULL)
		atomic_store(&first, device);
	atomic_store_explicit(&device->ready, true, memory_order_release);
	cuda_peer_opened(device); /* what is added from now on sees that it is ready */
	return 0;
}

struct cuda_device *cuda_device_of(int32_t id)
{
	struct cuda_device *device;

	if (id < 0 || id >= CUDA_DEVICES_MAX)
		return NULL;
	device = &devices[id];
	return atomic_load_explicit(&device->ready, memory_order_acquire) ? device : NULL;
}

struct cuda_device *cuda_device_first(void)
{
	return atomic_load(&first);
}

struct cuda_device *cuda_device_named(const uint8_t name[FRAGI_GPU_NAME_BYTES])
{
	for (int32_t id = 0; id < CUDA_DEVICES_MAX; id++)
		if (cuda_device_of(id) != NULL &&
		    memcmp(devices[id].name_of_all, name, FRAGI_GPU_NAME_BYTES) == 0)
			return &devices[id];
	return NULL;
}

int cuda_device_enter(const struct cuda_device *device, struct frag_err *err)
{
	return cuda_check(cu.cuCtxPushCurrent_v2(device->context), err,
			  "GPU %d (%s): cuCtxPushCurrent", (int)device->id, device->name);
}

void cuda_device_leave(void)
{
	CUcontext context;

	(void)cu.cuCtxPopCurrent_v2(&context);
}
