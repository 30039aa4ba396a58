/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>

#include "pixels.h"

void video_pixels_fini(struct video_pixels *p)
{
	sws_freeContext(p->scale);
	av_frame_free(&p->out);
	*p = (struct video_pixels){0};
}

/*
 * A frame that does not state its range has that of its format: FFmpeg takes gray and YUVJ for full
 * range, other YUV for limited range.
 */
static void set_colours(struct SwsContext *scale, const AVFrame *frame)
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
	sws_setColorspaceDetails(scale, coefficients, from_full, coefficients, to_full, brightness,
				 contrast, saturation);
}

static bool fits(const struct video_pixels *p, const AVFrame *frame, enum AVPixelFormat to)
{
	return p->scale != NULL && p->width == frame->width && p->height == frame->height &&
	       p->from == frame->format && p->to == (int)to &&
	       p->range == (int)frame->color_range && p->space == (int)frame->colorspace;
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
	p->scale =
		sws_getContext(frame->width, frame->height, frame->format, frame->width,
			       frame->height, to, SWS_BICUBIC | SWS_ACCURATE_RND, NULL, NULL, NULL);
	if (p->scale == NULL)
		return -ENOTSUP;
	set_colours(p->scale, frame);
	p->width = frame->width;
	p->height = frame->height;
	p->from = frame->format;
	p->to = (int)to;
	p->range = (int)frame->color_range;
	p->space = (int)frame->colorspace;
	return 0;
}

int video_pixels_convert(struct video_pixels *p, const AVFrame *frame, enum AVPixelFormat to,
			 uint8_t *out)
{
	int r = prepare(p, frame, to);
	int row = r == 0 ? av_image_get_linesize(to, frame->width, 0) : 0;

	if (r < 0)
		return r;
	sws_scale(p->scale, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
		  p->out->data, p->out->linesize);
	av_image_copy_plane(out, row, p->out->data[0], p->out->linesize[0], row, frame->height);
	return 0;
}
