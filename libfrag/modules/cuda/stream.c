// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "cuda"
#include <base/log.h>

#include "device.h"
#include "module.h"

int cuda_stream_create(int32_t id, void *green_context, uint32_t flags, int priority,
		       void **out_stream, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	CUstream stream = NULL;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)id);
	r = cuda_device_enter(gpu, err);
	if (r < 0)
		return r;
	if (green_context != NULL)
		r = cuda_check(cu.cuGreenCtxStreamCreate(&stream, green_context,
							 CU_STREAM_NON_BLOCKING, priority),
			       err, "GPU %d (%s): cuGreenCtxStreamCreate", (int)id, gpu->name);
	else
		r = cuda_check(cu.cuStreamCreateWithPriority(&stream, flags, priority), err,
			       "GPU %d (%s): cuStreamCreateWithPriority", (int)id, gpu->name);
	cuda_device_leave();
	if (r == 0)
		*out_stream = stream;
	return r;
}

void cuda_stream_destroy(int32_t id, void *stream)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	struct frag_err err = FRAG_ERR_INIT;
	int r = cuda_device_enter(gpu, &err);

	if (r == 0) {
		r = cuda_check(cu.cuStreamDestroy_v2(stream), &err, "GPU %d (%s): cuStreamDestroy",
			       (int)id, gpu->name);
		cuda_device_leave();
	}
	if (r < 0)
		log_error(NULL, "a stream was not destroyed: %s", err.text);
}

int cuda_stream_wait(int32_t id, void *stream, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	int r = cuda_device_enter(gpu, err);

	if (r < 0)
		return r;
	r = cuda_check(cu.cuStreamSynchronize(stream), err, "GPU %d (%s): cuStreamSynchronize",
		       (int)id, gpu->name);
	cuda_device_leave();
	return r;
}
