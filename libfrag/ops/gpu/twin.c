// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>

#include "kernel.h"
#include "twin.h"

#define GPUS_MAX 64
#define ACROSS GPU_WARP
#define DOWN (GPU_THREADS / GPU_WARP)
#define BLOCK 1024

bool gpu_pool_is_on_gpu(struct frag_resource *pool, struct frag_device *out)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_tensor *tensor = NULL;
	const int64_t one = 1;
	int r = pool != NULL ? frag_tensor_create(pool, u8, 1, &one, &tensor) : -ENOMSG;
	bool is_on_gpu = false;

	for (int32_t id = 0; id < GPUS_MAX && r == -EXDEV; id++) {
		*out = (struct frag_device){FRAG_DEVICE_CUDA, id};
		r = frag_tensor_create_on(pool, *out, u8, 1, &one, &tensor);
		is_on_gpu = r == 0;
	}
	if (r == 0)
		frag_tensor_unref(tensor);
	return is_on_gpu;
}

int gpu_twin_open(struct gpu_twin *twin, struct frag_op *op, const char *ptx,
		  struct frag_resource *pool, struct frag_resource *streams)
{
	int r;

	*twin = (struct gpu_twin){
		.ptx = ptx,
		.pool = pool,
		.stream_device = {FRAG_DEVICE_CUDA, 0},
		.device = {FRAG_DEVICE_CUDA, 0},
	};
	twin->pool_is_on_gpu = gpu_pool_is_on_gpu(pool, &twin->stream_device);
	if (!twin->pool_is_on_gpu && streams == NULL)
		return 0;
	if (ptx == NULL)
		return frag_op_fail(
			op, -ENOTSUP,
			"it is to work on a GPU, and this build of frag has no kernels: it was made without a CUDA toolkit; use a pool with storage_type: 2, and no cuda_stream_pool");
	if (!twin->pool_is_on_gpu) /* else both have to agree, which frag_op_use_stream checks */
		(void)frag_cuda_stream_gpu(streams, &twin->stream_device);
	r = frag_op_use_stream(op, streams, twin->stream_device);
	twin->has_stream = r == 0;
	return r;
}

static void drop_kernels(struct gpu_twin *twin)
{
	for (int i = 0; i < GPU_TWIN_KERNELS; i++) {
		frag_kernel_destroy(twin->loaded[i].kernel);
		twin->loaded[i].kernel = NULL;
	}
	frag_tensor_unref(twin->scratch);
	twin->scratch = NULL;
	twin->scratch_bytes = 0;
}

void gpu_twin_close(struct gpu_twin *twin)
{
	drop_kernels(twin);
}

bool gpu_holds(const struct frag_tensor *tensor)
{
	const struct frag_device device = frag_tensor_dl(tensor)->device;

	return device.type == FRAG_DEVICE_CUDA || device.type == FRAG_DEVICE_CUDA_MANAGED;
}

struct frag_device gpu_of(const struct frag_tensor *tensor)
{
	return (struct frag_device){FRAG_DEVICE_CUDA, frag_tensor_dl(tensor)->device.id};
}

void *gpu_twin_stream(const struct gpu_twin *twin, const struct frag_tick *tick)
{
	return twin->has_stream && twin->device.id == twin->stream_device.id
		       ? frag_tick_stream(tick)
		       : NULL;
}

int gpu_twin_begin(struct gpu_twin *twin, struct frag_op *op, struct frag_device device)
{
	if (twin->ptx == NULL)
		return frag_op_fail(
			op, -ENOTSUP,
			"the tensor came in memory of GPU %d, and this build of frag has no kernels: it was made without a CUDA toolkit; copy it to the host before",
			(int)device.id);
	if (device.id == twin->device.id)
		return 0;
	/* Work on another GPU was waited for, but for that of the stream. */
	if (twin->loaded[0].kernel != NULL && twin->has_stream &&
	    twin->device.id == twin->stream_device.id)
		return frag_op_fail(
			op, -EXDEV,
			"the tensor came in memory of GPU %d, and the operator works on GPU %d; give each GPU an operator of its own",
			(int)device.id, (int)twin->device.id);
	drop_kernels(twin);
	twin->device = device;
	return 0;
}

static int create(struct gpu_twin *twin, struct frag_op *op, struct frag_device device,
		  struct frag_resource *pool, struct frag_dtype dtype, int32_t ndim,
		  const int64_t *shape, struct frag_tensor **out)
{
	int r = frag_tensor_create_on(pool, device, dtype, ndim, shape, out);
	long long bytes = dtype.bits / 8;

	if (r == 0)
		return 0;
	if (r == -EXDEV)
		return frag_op_fail(
			op, r,
			"its input came in memory of GPU %d, and its allocator has none of that; give the allocator memory of this GPU, or leave it out",
			(int)twin->device.id);
	for (int32_t i = 0; i < ndim; i++)
		bytes *= shape[i];
	return frag_op_fail(
		op, r,
		"cannot make a tensor of %lld bytes for GPU %d: %s; give the allocator larger or more blocks",
		bytes, (int)twin->device.id, frag_strerror(r));
}

int gpu_twin_create(struct gpu_twin *twin, struct frag_op *op, struct frag_dtype dtype,
		    int32_t ndim, const int64_t *shape, struct frag_tensor **out)
{
	return create(twin, op, twin->device, twin->pool, dtype, ndim, shape, out);
}

int gpu_twin_create_pinned(struct gpu_twin *twin, struct frag_op *op, struct frag_dtype dtype,
			   int32_t ndim, const int64_t *shape, struct frag_tensor **out)
{
	return create(twin, op, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0}, NULL, dtype, ndim,
		      shape, out);
}

void *gpu_twin_scratch(struct gpu_twin *twin, struct frag_tick *tick, size_t bytes)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const int64_t size = (int64_t)bytes;
	struct frag_tensor *larger;

	if (bytes > twin->scratch_bytes || twin->scratch == NULL) {
		if (create(twin, frag_tick_op(tick), twin->device, NULL, u8, 1, &size, &larger) < 0)
			return NULL;
		/* Work of earlier ticks may use the old one. */
		if (twin->scratch != NULL && gpu_twin_stream(twin, tick) != NULL)
			(void)frag_tick_hold(tick, twin->scratch);
		else
			frag_tensor_unref(twin->scratch);
		twin->scratch = larger;
		twin->scratch_bytes = bytes;
	}
	return frag_tensor_writable(twin->scratch);
}

static const struct frag_kernel *find(struct gpu_twin *twin, struct frag_op *op, const char *name)
{
	struct frag_err err = FRAG_ERR_INIT;
	int i = 0;

	while (twin->loaded[i].kernel != NULL && twin->loaded[i].name != name)
		i++;
	assert(i < GPU_TWIN_KERNELS);
	if (twin->loaded[i].kernel == NULL &&
	    frag_kernel_create(twin->device, twin->ptx, name, &twin->loaded[i].kernel, &err) < 0) {
		twin->loaded[i].kernel = NULL;
		(void)frag_op_fail(op, -EIO, "no kernel for GPU %d: %s", (int)twin->device.id,
				   err.text);
		return NULL;
	}
	twin->loaded[i].name = name;
	return twin->loaded[i].kernel;
}

static int launch(struct gpu_twin *twin, struct frag_tick *tick, const char *name, void *job,
		  struct frag_launch *how)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_kernel *kernel = find(twin, op, name);
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (kernel == NULL)
		return -EIO;
	how->stream = gpu_twin_stream(twin, tick);
	r = frag_kernel_launch(kernel, how, (void *[]){job}, &err);
	return r < 0 ? frag_op_fail(op, r, "GPU %d does not take the work: %s",
				    (int)twin->device.id, err.text)
		     : 0;
}

int gpu_twin_launch(struct gpu_twin *twin, struct frag_tick *tick, const char *name, void *job,
		    int64_t columns, int64_t rows)
{
	const int64_t across = rows == 1 ? ACROSS * DOWN : ACROSS, down = rows == 1 ? 1 : DOWN;
	struct frag_launch how = {
		FRAG_LAUNCH_INIT,
		.block = {(uint32_t)across, (uint32_t)down, 1},
		.grid = {(uint32_t)((columns + across - 1) / across),
			 (uint32_t)((rows + down - 1) / down), 1},
	};

	return columns > 0 && rows > 0 ? launch(twin, tick, name, job, &how) : 0;
}

int gpu_twin_launch_block(struct gpu_twin *twin, struct frag_tick *tick, const char *name,
			  void *job)
{
	struct frag_launch how = {FRAG_LAUNCH_INIT, .block = {BLOCK, 1, 1}, .grid = {1, 1, 1}};

	return launch(twin, tick, name, job, &how);
}

int gpu_twin_wait(struct gpu_twin *twin, struct frag_tick *tick)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = 0;

	if (twin->loaded[0].kernel != NULL)
		r = frag_kernel_wait(twin->loaded[0].kernel, gpu_twin_stream(twin, tick), &err);
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "the work on GPU %d failed: %s",
				    (int)twin->device.id, err.text)
		     : 0;
}

int gpu_twin_end(struct gpu_twin *twin, struct frag_tick *tick)
{
	return gpu_twin_stream(twin, tick) != NULL ? 0 : gpu_twin_wait(twin, tick);
}

int gpu_twin_await(struct gpu_twin *twin, struct frag_tick *tick)
{
	return gpu_twin_stream(twin, tick) != NULL ? frag_tick_await_stream(tick) : 0;
}
