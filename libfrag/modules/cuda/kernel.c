// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#define LOG_TOPIC "cuda"
#include <base/alloc.h>
#include <base/log.h>

#include "device.h"
#include "module.h"

/* A kernel on a GPU; each has the module that it was loaded from to itself. */
struct frag_kernel {
	const struct cuda_device *gpu;
	CUmodule module;
	CUfunction function;
	char name[64];
};

static int load(struct frag_kernel *kernel, const void *image, const char *name,
		struct frag_err *err)
{
	const struct cuda_device *gpu = kernel->gpu;
	int r = cuda_check(cu.cuModuleLoadData(&kernel->module, image), err,
			   "GPU %d (%s): cuModuleLoadData for kernel %s", (int)gpu->id, gpu->name,
			   name);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuModuleGetFunction(&kernel->function, kernel->module, name), err,
		       "GPU %d (%s): cuModuleGetFunction of %s", (int)gpu->id, gpu->name, name);
	if (r < 0)
		(void)cu.cuModuleUnload(kernel->module);
	return r;
}

int cuda_kernel_create(int32_t id, const void *image, const char *name, struct frag_kernel **out,
		       struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	struct frag_kernel *kernel;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)id);
	kernel = fragi_calloc(1, sizeof(*kernel));
	if (kernel == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	kernel->gpu = gpu;
	snprintf(kernel->name, sizeof(kernel->name), "%s", name);
	r = cuda_device_enter(gpu, err);
	if (r == 0) {
		r = load(kernel, image, name, err);
		cuda_device_leave();
	}
	if (r < 0)
		fragi_free(kernel);
	else
		*out = kernel;
	return r;
}

static CUstream stream_of(const struct frag_kernel *kernel, void *stream)
{
	return stream != NULL ? stream : kernel->gpu->stream;
}

int cuda_kernel_launch(const struct frag_kernel *kernel, const struct frag_launch *how,
		       void **arguments, struct frag_err *err)
{
	const struct cuda_device *gpu = kernel->gpu;
	const uint32_t *grid = how->grid, *block = how->block;
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuLaunchKernel(kernel->function, grid[0], grid[1], grid[2], block[0],
					 block[1], block[2], how->shared_bytes,
					 stream_of(kernel, how->stream), arguments, NULL),
		       err, "GPU %d (%s): cuLaunchKernel of %s", (int)gpu->id, gpu->name,
		       kernel->name);
	cuda_device_leave();
	return r;
}

int cuda_kernel_wait(const struct frag_kernel *kernel, void *stream, struct frag_err *err)
{
	const struct cuda_device *gpu = kernel->gpu;
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamSynchronize(stream_of(kernel, stream)), err,
		       "GPU %d (%s): cuStreamSynchronize after %s", (int)gpu->id, gpu->name,
		       kernel->name);
	cuda_device_leave();
	return r;
}

void cuda_kernel_destroy(struct frag_kernel *kernel)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = cuda_device_enter(kernel->gpu, &err);

	if (r == 0) {
		r = cuda_check(cu.cuModuleUnload(kernel->module), &err,
			       "GPU %d (%s): cuModuleUnload of %s", (int)kernel->gpu->id,
			       kernel->gpu->name, kernel->name);
		cuda_device_leave();
	}
	if (r < 0)
		log_error(NULL, "a kernel was not unloaded: %s", err.text);
	fragi_free(kernel);
}
