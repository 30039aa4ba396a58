// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "pixels.h"

/* Formats that `native` keeps: one plane of whole numbers, or of f32. */
static const struct {
	enum AVPixelFormat format;
	uint8_t channels, bits;
} kept[] = {
	{AV_PIX_FMT_GRAY8, 1, 8},         {AV_PIX_FMT_GRAY9, 1, 16},
	{AV_PIX_FMT_GRAY10, 1, 16},       {AV_PIX_FMT_GRAY12, 1, 16},
	{AV_PIX_FMT_GRAY14, 1, 16},       {AV_PIX_FMT_GRAY16, 1, 16},
	{AV_PIX_FMT_GRAYF32, 1, 32},      {AV_PIX_FMT_RGB24, 3, 8},
	{AV_PIX_FMT_RGBA, 4, 8},          {AV_PIX_FMT_RGB48, 3, 16},
	{AV_PIX_FMT_RGBA64, 4, 16},       {AV_PIX_FMT_BAYER_BGGR8, 1, 8},
	{AV_PIX_FMT_BAYER_RGGB8, 1, 8},   {AV_PIX_FMT_BAYER_GBRG8, 1, 8},
	{AV_PIX_FMT_BAYER_GRBG8, 1, 8},   {AV_PIX_FMT_BAYER_BGGR16, 1, 16},
	{AV_PIX_FMT_BAYER_RGGB16, 1, 16}, {AV_PIX_FMT_BAYER_GBRG16, 1, 16},
	{AV_PIX_FMT_BAYER_GRBG16, 1, 16},
};

/* Whether two formats differ in their byte order at most. */
static bool same_numbers(enum AVPixelFormat a, enum AVPixelFormat b)
{
	return a == b || a == av_pix_fmt_swap_endianness(b);
}

static int depth_of(const AVPixFmtDescriptor *d)
{
	int depth = 0;

	for (int c = 0; c < d->nb_components; c++)
		depth = d->comp[c].depth > depth ? d->comp[c].depth : depth;
	return depth;
}

static enum AVPixelFormat native_format(enum AVPixelFormat from)
{
	const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(from);
	bool has_alpha = (d->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(kept); i++) {
		if (same_numbers(from, kept[i].format))
			return kept[i].format;
	}
	if (depth_of(d) > 8)
		return has_alpha ? AV_PIX_FMT_RGBA64 : AV_PIX_FMT_RGB48;
	return has_alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
}

enum AVPixelFormat video_yuv_format(const char *format)
{
	return strcmp(format, "nv12") == 0   ? AV_PIX_FMT_NV12
	       : strcmp(format, "p010") == 0 ? AV_PIX_FMT_P010
					     : AV_PIX_FMT_NONE;
}

static bool is_yuv(enum AVPixelFormat format)
{
	return format == AV_PIX_FMT_NV12 || format == AV_PIX_FMT_P010;
}

void video_picture_of(const AVFrame *frame, const char *format, const struct video_turn *turn,
		      struct video_picture *out)
{
	const enum AVPixelFormat yuv = video_yuv_format(format);
	const struct video_turn none = {0};
	enum AVPixelFormat to = strcmp(format, "rgb8") == 0     ? AV_PIX_FMT_RGB24
				: strcmp(format, "gray8") == 0  ? AV_PIX_FMT_GRAY8
				: strcmp(format, "gray16") == 0 ? AV_PIX_FMT_GRAY16
				: strcmp(format, "rgb16") == 0  ? AV_PIX_FMT_RGB48
				: yuv != AV_PIX_FMT_NONE        ? yuv
								: native_format(frame->format);

	if (yuv != AV_PIX_FMT_NONE) {
		*out = (struct video_picture){
			.format = yuv,
			.dtype = {FRAG_DTYPE_UINT, yuv == AV_PIX_FMT_P010 ? 16 : 8, 1},
			.shape = {frame->height / 2 * 3, frame->width, 1},
		};
		return;
	}
	if (av_pix_fmt_desc_get(to)->flags & AV_PIX_FMT_FLAG_BAYER)
		turn = &none;
	for (size_t i = 0; i < FRAG_COUNT_OF(kept); i++) {
		if (kept[i].format != to)
			continue;
		*out = (struct video_picture){
			.format = to,
			.dtype = {kept[i].bits == 32 ? FRAG_DTYPE_FLOAT : FRAG_DTYPE_UINT,
				  kept[i].bits, 1},
			.shape = {turn->swaps ? frame->width : frame->height,
				  turn->swaps ? frame->height : frame->width, kept[i].channels},
			.turn = *turn,
		};
	}
}

void video_pixels_fini(struct video_pixels *p)
{
	sws_freeContext(p->scale);
	free(p->row);
	av_frame_free(&p->out);
	*p = (struct video_pixels){0};
}

/*
 * A frame that does not state its range has that of its format: FFmpeg takes gray and YUVJ for full
 * range, other YUV for limited range.
 */
static void set_colours(struct SwsContext *scale, const AVFrame *frame, enum AVPixelFormat to)
{
	int *inverse, *table, from_full, to_full, brightness, contrast, saturation;
	int space = frame->colorspace == AVCOL_SPC_RGB ? SWS_CS_DEFAULT : (int)frame->colorspace;
	const int *coefficients = sws_getCoefficients(space);

	/* Fails where neither side is YUV or gray, and has nothing to do then. */
	if (sws_getColorspaceDetails(scale, &inverse, &from_full, &table, &to_full, &brightness,
				     &contrast, &saturation) < 0)
		return;
	if (frame->color_range != AVCOL_RANGE_UNSPECIFIED)
		from_full = frame->color_range == AVCOL_RANGE_JPEG;
	if (is_yuv(to) && (av_pix_fmt_desc_get(frame->format)->flags & AV_PIX_FMT_FLAG_RGB) == 0)
		to_full = from_full;
	sws_setColorspaceDetails(scale, coefficients, from_full, coefficients, to_full, brightness,
				 contrast, saturation);
}

static bool fits(const struct video_pixels *p, const AVFrame *frame, enum AVPixelFormat to)
{
	return (p->scale != NULL || p->row != NULL) && p->width == frame->width &&
	       p->height == frame->height && p->from == frame->format && p->to == (int)to &&
	       p->range == (int)frame->color_range && p->space == (int)frame->colorspace;
}

/*
 * Whether numbers of 16 bits are made of it exactly: gray and RGB of the full range, which
 * libswscale shifts, so that white would be 65280.
 */
static bool is_exact(const AVFrame *frame, enum AVPixelFormat to)
{
	const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(frame->format);
	bool is_rgb = (d->flags & AV_PIX_FMT_FLAG_RGB) != 0;
	bool is_gray = !is_rgb && d->nb_components <= 2 && frame->color_range != AVCOL_RANGE_MPEG;

	if (d->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BAYER |
			AV_PIX_FMT_FLAG_FLOAT))
		return false;
	return to == AV_PIX_FMT_GRAY16                             ? is_gray
	       : to == AV_PIX_FMT_RGB48 || to == AV_PIX_FMT_RGBA64 ? is_gray || is_rgb
								   : false;
}

/* Fills in p->out. */
static void widen(struct video_pixels *p, const AVFrame *frame)
{
	const AVPixFmtDescriptor *from = av_pix_fmt_desc_get(frame->format),
				 *to = av_pix_fmt_desc_get(p->out->format);
	int colours = (from->flags & AV_PIX_FMT_FLAG_RGB) != 0 ? 3 : 1;

	for (int y = 0; y < frame->height; y++) {
		uint16_t *out = (uint16_t *)(void *)(p->out->data[0] + y * p->out->linesize[0]);

		for (int c = 0; c < to->nb_components; c++) {
			int own = c == 3 ? colours : c < colours ? c : 0;
			uint32_t most = (1u << from->comp[own].depth) - 1;

			av_read_image_line2(p->row, (const uint8_t **)frame->data, frame->linesize,
					    from, 0, y, own, frame->width, 0, sizeof(*p->row));
			for (int x = 0; x < frame->width; x++)
				out[x * to->nb_components + c] =
					(uint16_t)((p->row[x] * (uint64_t)UINT16_MAX + most / 2) /
						   most);
		}
	}
}

/*
 * Whether libswscale has code of its own for this conversion, which is ten times as fast and gives
 * each pixel the colour of its block of two by two, or two by one. A flat picture comes out the
 * same. FFmpeg converts so unless it is told otherwise, and what networks learned from came so.
 */
static bool is_quick(const AVFrame *frame, enum AVPixelFormat to)
{
	return to == AV_PIX_FMT_RGB24 && frame->height % 2 == 0 &&
	       (frame->format == AV_PIX_FMT_YUV420P || frame->format == AV_PIX_FMT_YUVJ420P ||
		frame->format == AV_PIX_FMT_YUV422P || frame->format == AV_PIX_FMT_YUVJ422P);
}

/* Without dither: what a pixel becomes is to depend on its value, and not on its place. */
static struct SwsContext *open_scale(const AVFrame *frame, enum AVPixelFormat to)
{
	struct SwsContext *scale = sws_alloc_context();
	const struct {
		const char *name;
		int64_t value;
	} options[] = {
		{"srcw", frame->width},
		{"srch", frame->height},
		{"src_format", frame->format},
		{"dstw", frame->width},
		{"dsth", frame->height},
		{"dst_format", to},
		{"sws_flags", SWS_BILINEAR | (is_quick(frame, to) ? 0 : SWS_ACCURATE_RND)},
		{"sws_dither", is_quick(frame, to) ? 1 /* auto */ : 0 /* none */},
	};
	int r = scale != NULL ? 0 : AVERROR(ENOMEM);

	for (size_t i = 0; r >= 0 && i < FRAG_COUNT_OF(options); i++)
		r = av_opt_set_int(scale, options[i].name, options[i].value, 0);
	if (r >= 0)
		r = sws_init_context(scale, NULL, NULL);
	if (r >= 0)
		return scale;
	sws_freeContext(scale);
	return NULL;
}

static int prepare(struct video_pixels *p, const AVFrame *frame, enum AVPixelFormat to)
{
	if (fits(p, frame, to))
		return 0;
	video_pixels_fini(p);
	p->out = av_frame_alloc();
	if (p->out == NULL)
		return -ENOMEM;
	p->out->format = to;
	p->out->width = frame->width;
	p->out->height = frame->height;
	if (av_frame_get_buffer(p->out, 64) < 0)
		return -ENOMEM;
	if (is_exact(frame, to)) {
		p->row = malloc((size_t)frame->width * sizeof(*p->row));
		if (p->row == NULL)
			return -ENOMEM;
	} else {
		p->scale = open_scale(frame, to);
		if (p->scale == NULL)
			return -ENOTSUP;
		set_colours(p->scale, frame, to);
	}
	p->width = frame->width;
	p->height = frame->height;
	p->from = frame->format;
	p->to = (int)to;
	p->range = (int)frame->color_range;
	p->space = (int)frame->colorspace;
	return 0;
}

static void swap_bytes(uint8_t *data, size_t elements, size_t bytes)
{
	for (size_t i = 0; i < elements; i++, data += bytes) {
		for (size_t low = 0, high = bytes - 1; low < high; low++, high--) {
			uint8_t byte = data[low];

			data[low] = data[high];
			data[high] = byte;
		}
	}
}

/*
 * Whether a frame can be turned as it is: then its colours are interpolated after that, as FFmpeg
 * does it.
 */
static bool is_turnable(const AVPixFmtDescriptor *d)
{
	return d->log2_chroma_w == d->log2_chroma_h &&
	       (d->flags &
		(AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BAYER)) == 0;
}

static int turn_planes(const struct video_turn *turn, const AVFrame *frame, AVFrame *turned)
{
	const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(frame->format);
	int r;

	turned->format = frame->format;
	turned->width = turn->swaps ? frame->height : frame->width;
	turned->height = turn->swaps ? frame->width : frame->height;
	r = av_frame_get_buffer(turned, 64);
	if (r >= 0)
		r = av_frame_copy_props(turned, frame);
	for (int c = 0, done = 0; r >= 0 && c < d->nb_components; c++) {
		const AVComponentDescriptor *comp = &d->comp[c];
		int shift = (c == 1 || c == 2) && comp->plane > 0 ? d->log2_chroma_w : 0;

		if (done & 1 << comp->plane)
			continue;
		done |= 1 << comp->plane;

		video_turn_copy(turn, frame->data[comp->plane], frame->linesize[comp->plane],
				(size_t)AV_CEIL_RSHIFT(frame->width, shift),
				(size_t)AV_CEIL_RSHIFT(frame->height, shift), (size_t)comp->step,
				turned->data[comp->plane], turned->linesize[comp->plane]);
	}
	return r < 0 ? -ENOMEM : 0;
}

/* Converts, and turns what could not be turned before. */
static int convert(struct video_pixels *p, const AVFrame *frame,
		   const struct video_picture *picture, const struct video_turn *turn, uint8_t *out)
{
	bool is_same = same_numbers(frame->format, picture->format);
	size_t element = picture->dtype.bits / 8, pixel = (size_t)picture->shape[2] * element;
	size_t columns = (size_t)frame->width, rows = (size_t)frame->height;
	int r = is_same ? 0 : prepare(p, frame, picture->format);

	if (r < 0)
		return r;
	if (!is_same && p->row != NULL)
		widen(p, frame);
	else if (!is_same)
		sws_scale(p->scale, (const uint8_t *const *)frame->data, frame->linesize, 0,
			  frame->height, p->out->data, p->out->linesize);
	if (!is_same)
		frame = p->out;
	if (video_turn_is_needed(turn))
		video_turn_copy(turn, frame->data[0], frame->linesize[0], columns, rows, pixel, out,
				(ptrdiff_t)((turn->swaps ? rows : columns) * pixel));
	else
		av_image_copy_plane(out, (int)(columns * pixel), frame->data[0], frame->linesize[0],
				    (int)(columns * pixel), (int)rows);
	if (frame->format != picture->format)
		swap_bytes(out, columns * rows * (size_t)picture->shape[2], element);
	return 0;
}

/* Converts to two planes, the second below the first. */
static int convert_planes(struct video_pixels *p, const AVFrame *frame, enum AVPixelFormat to,
			  uint8_t *out)
{
	int r = frame->format == (int)to ? 0 : prepare(p, frame, to);

	if (r < 0)
		return r;
	if (frame->format != (int)to) {
		sws_scale(p->scale, (const uint8_t *const *)frame->data, frame->linesize, 0,
			  frame->height, p->out->data, p->out->linesize);
		frame = p->out;
	}
	r = av_image_copy_to_buffer(out,
				    av_image_get_buffer_size(to, frame->width, frame->height, 1),
				    (const uint8_t *const *)frame->data, frame->linesize, to,
				    frame->width, frame->height, 1);
	return r < 0 ? -EINVAL : 0;
}

int video_pixels_convert(struct video_pixels *p, const AVFrame *frame,
			 const struct video_picture *picture, uint8_t *out)
{
	const struct video_turn none = {0};
	AVFrame *turned;
	int r;

	if (is_yuv(picture->format))
		return convert_planes(p, frame, picture->format, out);
	if (!video_turn_is_needed(&picture->turn) ||
	    !is_turnable(av_pix_fmt_desc_get(frame->format)))
		return convert(p, frame, picture, &picture->turn, out);
	turned = av_frame_alloc();
	r = turned != NULL ? turn_planes(&picture->turn, frame, turned) : -ENOMEM;
	if (r == 0)
		r = convert(p, turned, picture, &none, out);
	av_frame_free(&turned);
	return r;
}
