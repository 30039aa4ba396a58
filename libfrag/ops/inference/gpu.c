// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "gpu.h"

/* X(type, name, arguments); each returns a CUresult, 0 for success */
#define GPU_FUNCTIONS(X)                                                                           \
	X(cuDeviceGet, (int *, int))                                                               \
	X(cuDeviceGetName, (char *, int, int))                                                     \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                \
	X(cuCtxPushCurrent_v2, (void *))                                                           \
	X(cuCtxPopCurrent_v2, (void **))                                                           \
	X(cuMemcpyAsync, (unsigned long long, unsigned long long, size_t, void *))

#define MEMBER(name, args) int(*name) args;
static struct {
	GPU_FUNCTIONS(MEMBER)
	bool is_complete;
} cu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* frag has opened the driver and keeps it, so this finds what is there. */
static void find(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;

	cu.is_complete = driver != NULL;
#define FIND(name, args)                                                                           \
	symbol = driver != NULL ? dlsym(driver, #name) : NULL;                                     \
	memcpy(&cu.name, &symbol, sizeof(symbol));                                                 \
	cu.is_complete = cu.is_complete && symbol != NULL;
	GPU_FUNCTIONS(FIND)
}

static int get(int32_t gpu, int *out, struct frag_err *err)
{
	pthread_once(&once, find);
	if (!cu.is_complete || cu.cuDeviceGet(out, gpu) != 0)
		return frag_err_set(err, -ENODEV,
				    "GPU %d cannot be used; check with nvidia-smi that it is there",
				    (int)gpu);
	return 0;
}

int inference_gpu_name(int32_t gpu, char *out, size_t size, struct frag_err *err)
{
	int device, r = get(gpu, &device, err);

	if (r == 0 && cu.cuDeviceGetName(out, (int)size, device) != 0)
		r = frag_err_set(err, -EIO, "GPU %d does not give its name", (int)gpu);
	return r;
}

/* The primary context is frag's too; it is kept as long as the process lives. */
static int enter(int32_t gpu, struct frag_err *err)
{
	static _Atomic(void *) contexts[16];
	void *context = gpu < 16 ? contexts[gpu] : NULL;
	int device, r = 0;

	if (context == NULL) {
		r = get(gpu, &device, err);
		if (r == 0 && cu.cuDevicePrimaryCtxRetain(&context, device) != 0)
			r = frag_err_set(err, -EIO, "GPU %d refuses its context", (int)gpu);
		if (r == 0 && gpu < 16)
			contexts[gpu] = context;
	}
	if (r == 0 && cu.cuCtxPushCurrent_v2(context) != 0)
		r = frag_err_set(err, -EIO, "GPU %d refuses its context", (int)gpu);
	return r;
}

int inference_gpu_copy(int32_t gpu, void *stream, void *to, const void *from, size_t bytes,
		       struct frag_err *err)
{
	void *context;
	int r = enter(gpu, err), result;

	if (r < 0)
		return r;
	result = cu.cuMemcpyAsync((unsigned long long)(uintptr_t)to,
				  (unsigned long long)(uintptr_t)from, bytes, stream);
	cu.cuCtxPopCurrent_v2(&context);
	if (result != 0)
		return frag_err_set(err, -EIO, "GPU %d refuses a copy (CUDA error %d)", (int)gpu,
				    result);
	return 0;
}
