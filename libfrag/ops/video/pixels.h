/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_PIXELS_H
#define VIDEO_PIXELS_H

#include <stdbool.h>

#include <libavutil/frame.h>

#include <frag/error.h>

/*
 * Converts frames of FFmpeg from any pixel format to another one, as FFmpeg's own filter `scale`
 * does. All zero is a valid start. Thread: one at a time.
 */
struct video_pixels {
	struct SwsContext *scale;
	AVFrame *out; /* padded as libswscale likes to write */
	/* what the two were made for */
	int width, height, from, to, range, space;
};

void video_pixels_fini(struct video_pixels *pixels);

/*
 * Writes a frame in the packed format `to`, rows without gaps between them. Returns 0 or a
 * negative errno.
 */
int video_pixels_convert(struct video_pixels *pixels, const AVFrame *frame, enum AVPixelFormat to,
			 uint8_t *out);

#endif
