// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>

/* What hwcontext_cuda.h takes from cuda.h, which a machine without a CUDA toolkit lacks. */
#define CUDA_VERSION 0
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
#include <libavutil/hwcontext_cuda.h>

#include "av_error.h"
#include "gpu.h"

/* frag has opened the driver and keeps it, and the primary context of the GPU with it. */
static int find_context(int32_t id, CUcontext *out, struct frag_err *err)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*get)(int *, int) = NULL, (*retain)(CUcontext *, int) = NULL, device;
	void *symbol = driver != NULL ? dlsym(driver, "cuDeviceGet") : NULL;

	memcpy(&get, &symbol, sizeof(symbol));
	symbol = driver != NULL ? dlsym(driver, "cuDevicePrimaryCtxRetain") : NULL;
	memcpy(&retain, &symbol, sizeof(symbol));
	if (get == NULL || retain == NULL || get(&device, id) != 0 || retain(out, device) != 0)
		return frag_err_set(err, -ENODEV, "it refuses its context");
	return 0;
}

int video_gpu_find_encoder(struct frag_err *err)
{
	void *encoder = dlopen("libnvidia-encode.so.1", RTLD_NOW | RTLD_LOCAL);

	if (encoder == NULL)
		return frag_err_set(
			err, -ENODEV,
			"codec h264_nvenc needs a GPU of NVIDIA with an encoder, and its library is not here (%s); a container needs NVIDIA_DRIVER_CAPABILITIES=video; use codec h264, which the CPU encodes",
			dlerror());
	dlclose(encoder);
	return 0;
}

int video_gpu_open(struct video_gpu *gpu, struct frag_err *err)
{
	void *decoder = dlopen("libnvcuvid.so.1", RTLD_NOW | RTLD_LOCAL);
	AVCUDADeviceContext *cuda;
	AVBufferRef *device;
	int r;

	if (decoder == NULL)
		return frag_err_set(
			err, -ENODEV,
			"its driver has no decoder here (%s); a container needs NVIDIA_DRIVER_CAPABILITIES=video",
			dlerror());
	video_log_errors_only();
	device = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA);
	if (device == NULL)
		return frag_err_set(err, -ENODEV, "this FFmpeg was built without its decoder");
	cuda = ((AVHWDeviceContext *)(void *)device->data)->hwctx;
	cuda->stream = gpu->stream;
	r = find_context(gpu->id, &cuda->cuda_ctx, err);
	if (r == 0 && av_hwdevice_ctx_init(device) < 0)
		r = frag_err_set(err, -ENODEV, "FFmpeg cannot use its driver");
	if (r < 0)
		av_buffer_unref(&device);
	else
		gpu->device = device;
	return r;
}

void video_gpu_close(struct video_gpu *gpu)
{
	av_buffer_unref(&gpu->device);
}

bool video_gpu_holds(const AVFrame *frame)
{
	return frame->format == AV_PIX_FMT_CUDA;
}

enum AVPixelFormat video_gpu_format_of(const AVFrame *frame)
{
	return video_gpu_holds(frame) && frame->hw_frames_ctx != NULL
		       ? ((AVHWFramesContext *)(void *)frame->hw_frames_ctx->data)->sw_format
		       : (enum AVPixelFormat)frame->format;
}

void video_gpu_crop(AVFrame *frame)
{
	const size_t element = video_gpu_format_of(frame) == AV_PIX_FMT_P010 ? 2 : 1;
	const size_t left = frame->crop_left / 2 * 2, top = frame->crop_top / 2 * 2;

	if (!video_gpu_holds(frame))
		return;
	for (int plane = 0; plane < 2; plane++)
		frame->data[plane] +=
			(top >> plane) * (size_t)frame->linesize[plane] + left * element;
	frame->width -= (int)left;
	frame->height -= (int)top;
}

static void keep(void *opaque, uint8_t *data)
{
	(void)opaque;
	(void)data; /* a tensor's */
}

int video_gpu_copy(const struct video_gpu *gpu, const AVFrame *frame, void *to)
{
	const size_t element = gpu->format == AV_PIX_FMT_P010 ? 2 : 1;
	const size_t row = (size_t)frame->width * element, rows = (size_t)frame->height;
	AVFrame *out = av_frame_alloc();
	int r = -ENOMEM;

	if (out != NULL) {
		out->format = frame->format;
		out->width = frame->width;
		out->height = frame->height;
		out->data[0] = to;
		out->data[1] = (uint8_t *)to + row * rows;
		out->linesize[0] = out->linesize[1] = (int)row;
		out->hw_frames_ctx = av_buffer_ref(frame->hw_frames_ctx);
		out->buf[0] = av_buffer_create(to, row * rows * 3 / 2, keep, NULL, 0);
		if (out->hw_frames_ctx != NULL && out->buf[0] != NULL)
			r = av_hwframe_transfer_data(out, frame, 0) < 0 ? -EIO : 0;
	}
	av_frame_free(&out);
	return r;
}
