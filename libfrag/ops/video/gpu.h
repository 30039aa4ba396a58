/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_GPU_H
#define VIDEO_GPU_H

#include <libavutil/buffer.h>
#include <libavutil/frame.h>

#include <frag/cuda.h>

/*
 * A GPU that decodes, by FFmpeg's hwaccel cuda (NVDEC). Its frames stay in memory of the GPU. What
 * it does for them is given to one stream, in the primary context, which is frag's.
 */
struct video_gpu {
	AVBufferRef *device; /* FFmpeg's; NULL: none */
	int32_t id;
	void *stream;
	enum AVPixelFormat format; /* of its frames: NV12 or P010 */
};

/*
 * - gpu: id, stream and format are set; the GPU is one that frag has opened
 * Returns 0, or a failure with a sentence: -ENODEV: the driver there does not decode. Thread: the
 * callback's. Blocks: while the driver loads its decoder.
 */
int video_gpu_open(struct video_gpu *gpu, struct frag_err *err);
/* Accepts one that is zeroed. */
void video_gpu_close(struct video_gpu *gpu);

/*
 * Looks for NVIDIA's encoder, which FFmpeg opens for h264_nvenc. Returns 0; -ENODEV: a sentence.
 * Thread: any. Blocks: while the library is opened.
 */
int video_gpu_find_encoder(struct frag_err *err);

/* Whether a frame lies in memory of a GPU. */
bool video_gpu_holds(const AVFrame *frame);
/* Returns what the pixels of a frame are, wherever it lies. */
enum AVPixelFormat video_gpu_format_of(const AVFrame *frame);

/* FFmpeg cuts off the right and the bottom of a frame of a GPU: this does the left and the top. */
void video_gpu_crop(AVFrame *frame);

/*
 * Gives the stream the copy of a frame of gpu->format to memory of the GPU, without gaps: the rows
 * of the colours follow those of the picture. Returns 0, -ENOMEM or -EIO.
 */
int video_gpu_copy(const struct video_gpu *gpu, const AVFrame *frame, void *to);

#endif
