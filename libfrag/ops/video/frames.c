// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <libavutil/pixdesc.h>

#include "../gpu/twin.h"
#include "frames.h"

const char *const video_decoders[] = {"auto", "cpu", "gpu", NULL};
const char *const video_frame_formats[] = {"rgb8",   "gray8", "gray16", "rgb16",
					   "native", "nv12",  "p010",   NULL};

static bool is_forced(const struct video_frames *f)
{
	return strcmp(f->decoder, "gpu") == 0;
}

/* Gives the operator a stream, and FFmpeg the GPU. */
static int open_gpu(struct video_frames *f, struct frag_op *op)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_op_use_stream(op, NULL, f->device);

	if (r < 0)
		return r;
	f->gpu.id = f->device.id;
	f->gpu.stream = frag_op_stream(op);
	r = video_gpu_open(&f->gpu, &err);
	if (r < 0 && is_forced(f))
		return frag_op_fail(op, r, "GPU %d cannot decode: %s; leave out decoder: gpu",
				    (int)f->gpu.id, err.text);
	if (r < 0)
		frag_op_log(op,
			    "the CPU decodes, and frames are copied to GPU %d, which cannot: %s",
			    (int)f->gpu.id, err.text);
	return 0;
}

/* The CPU decodes by what the graph says, which a pool on a GPU lets nobody expect. */
static int copy_to_gpu(const struct video_frames *f, struct frag_op *op)
{
	int r = frag_op_use_device(op, f->device);

	if (r < 0)
		return r;
	if (strcmp(f->decoder, "cpu") == 0)
		frag_op_log(op, "the CPU decodes, and frames are copied to GPU %d: decoder says so",
			    (int)f->device.id);
	else
		frag_op_log(
			op,
			"the CPU decodes, and frames are copied to GPU %d: a GPU makes nv12 and p010, and format is %s",
			(int)f->device.id, f->format);
	return 0;
}

int video_frames_open(struct video_frames *f, struct frag_op *op)
{
	f->is_on_gpu = gpu_pool_is_on_gpu(f->pool, &f->device);
	f->gpu.format = video_yuv_format(f->format);
	if (is_forced(f) && !f->is_on_gpu)
		return frag_op_fail(
			op, -EINVAL,
			"decoder is gpu, and the pool has no memory of a GPU; give it storage_type: 1, or leave out decoder");
	if (is_forced(f) && f->gpu.format == AV_PIX_FMT_NONE)
		return frag_op_fail(
			op, -EINVAL,
			"decoder is gpu, which makes frames of nv12 and p010, and format is %s; give format: nv12, and convert them by format_converter (in_dtype)",
			f->format);
	if (!f->is_on_gpu) {
		frag_op_log(op, "the CPU decodes: %s",
			    strcmp(f->decoder, "cpu") == 0
				    ? "decoder says so"
				    : "no allocator of frames has memory of a GPU only");
		return 0;
	}
	if (strcmp(f->decoder, "cpu") == 0 || f->gpu.format == AV_PIX_FMT_NONE)
		return copy_to_gpu(f, op);
	return open_gpu(f, op);
}

void video_frames_settle(struct video_frames *f)
{
	if (f->gpu.device != NULL)
		(void)frag_stream_wait(f->device, f->gpu.stream, NULL);
}

void video_frames_close(struct video_frames *f)
{
	video_gpu_close(&f->gpu);
	video_pixels_fini(&f->pixels);
}

/* Reports who decodes, when that changes. */
static int report(struct video_frames *f, struct frag_op *op, const struct video_decoder *decoder,
		  bool on_gpu, const char *name)
{
	char why[VIDEO_WHY_CPU];

	if (f->gpu.device == NULL || (f->is_reported && f->was_on_gpu == on_gpu))
		return 0;
	f->is_reported = true;
	f->was_on_gpu = on_gpu;
	if (on_gpu) {
		frag_op_log(op, "GPU %d decodes %s (%s)", (int)f->gpu.id, name,
			    video_decoder_codec(decoder));
		return 0;
	}
	video_decoder_why_cpu(decoder, why);
	if (is_forced(f))
		return frag_op_fail(op, -ENOTSUP,
				    "GPU %d cannot decode %s: %s; leave out decoder: gpu",
				    (int)f->gpu.id, name, why);
	frag_op_log(op, "the CPU decodes %s, and frames are copied to GPU %d, which cannot: %s",
		    name, (int)f->gpu.id, why);
	return 0;
}

static void settle(struct video_frames *f, const struct video_decoder *decoder, AVFrame *frame)
{
	const struct video_turn none = {0},
				turn = video_turn_of(video_decoder_matrix(decoder, frame));

	video_picture_of(frame, f->format, f->auto_rotate && turn.is_exact ? &turn : &none,
			 &f->picture);
	f->stated = video_turn_is_needed(&f->picture.turn) ? none : turn;
	f->aspect = video_decoder_aspect(decoder, frame);
	if (f->aspect > 0.0 && f->picture.turn.swaps)
		f->aspect = 1.0 / f->aspect;
}

static int create(struct video_frames *f, struct frag_op *op, bool on_gpu, struct frag_tensor **out)
{
	const struct video_picture *picture = &f->picture;
	/* What is copied to the GPU is converted in memory of the host before. */
	struct frag_resource *pool = f->is_on_gpu && !on_gpu ? NULL : f->pool;
	int r = on_gpu ? frag_tensor_create_on(pool, f->device, picture->dtype, 3, picture->shape,
					       out)
		       : frag_tensor_create(pool, picture->dtype, 3, picture->shape, out);

	return r < 0 ? frag_op_fail(
			       op, r,
			       "cannot make a frame of %lld x %lld x %lld with %d bits: %s; give the pool larger or more blocks",
			       (long long)picture->shape[0], (long long)picture->shape[1],
			       (long long)picture->shape[2], picture->dtype.bits, frag_strerror(r))
		     : 0;
}

/* Copies a frame of the host to the GPU: replaces *tensor. */
static int send_to_gpu(struct video_frames *f, struct frag_op *op, struct frag_tensor **tensor)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *there = NULL;
	int r = frag_tensor_copy(*tensor, f->pool, f->device, &there, &err);

	frag_tensor_unref(*tensor);
	*tensor = there;
	return r < 0 ? frag_op_fail(
			       op, r,
			       "cannot copy a frame of %zu bytes to GPU %d: %s; give the pool larger or more blocks",
			       (size_t)(f->picture.shape[0] * f->picture.shape[1] *
					f->picture.shape[2] * f->picture.dtype.bits / 8),
			       (int)f->device.id, err.text[0] != '\0' ? err.text : frag_strerror(r))
		     : 0;
}

int video_frames_make(struct video_frames *f, struct frag_op *op,
		      const struct video_decoder *decoder, AVFrame *frame, const char *name,
		      struct frag_tensor **out)
{
	const bool on_gpu = video_gpu_holds(frame);
	const enum AVPixelFormat has = video_gpu_format_of(frame);
	struct frag_tensor *tensor = NULL;
	int r = report(f, op, decoder, on_gpu, name);

	if (r == 0 && f->gpu.format != AV_PIX_FMT_NONE && (frame->width | frame->height) & 1)
		return frag_op_fail(
			op, -EINVAL,
			"a frame of %d x %d cannot be of %s, whose sides are even; give another format",
			frame->width, frame->height, f->format);
	if (r < 0)
		return r;
	settle(f, decoder, frame);
	r = create(f, op, on_gpu, &tensor);
	if (r < 0)
		return r;
	if (!on_gpu)
		r = video_pixels_convert(&f->pixels, frame, &f->picture,
					 frag_tensor_writable(tensor));
	else
		r = has == f->gpu.format
			    ? video_gpu_copy(&f->gpu, frame, frag_tensor_writable(tensor))
			    : -EINVAL;
	if (r < 0) {
		frag_tensor_unref(tensor);
		return frag_op_fail(
			op, r,
			"cannot convert frames of the format %s to %s: %s; convert the file to yuv420p",
			av_get_pix_fmt_name(has), f->format, frag_strerror(r));
	}
	r = f->is_on_gpu && !on_gpu ? send_to_gpu(f, op, &tensor) : 0;
	*out = tensor;
	return r;
}

int video_frames_describe(const struct video_frames *f, struct frag_metadata *metadata)
{
	int r = 0;

	if (strcmp(f->format, "native") == 0)
		r = frag_metadata_set_string(metadata, "pixel_format",
					     av_get_pix_fmt_name(f->picture.format));
	if (r == 0 && f->aspect > 0.0)
		r = frag_metadata_set_f64(metadata, "sample_aspect_ratio", f->aspect);
	if (r == 0 && f->stated.degrees > 0.0)
		r = frag_metadata_set_f64(metadata, "rotation", f->stated.degrees);
	if (r == 0 && f->stated.is_mirrored)
		r = frag_metadata_set_bool(metadata, "mirrored", 1);
	return r;
}
