/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_PIXELS_H
#define VIDEO_PIXELS_H

#include <stdbool.h>

#include <libavutil/frame.h>

#include <frag/error.h>
#include <frag/tensor.h>

#include "turn.h"

/* Converts frames of FFmpeg to those of operators, as FFmpeg's own filter `scale` does. */

/* What a frame becomes: [rows, columns, channels] of dtype. */
struct video_picture {
	enum AVPixelFormat format; /* packed, in the byte order of this machine */
	struct frag_dtype dtype;
	int64_t shape[3];
	struct video_turn turn;
};

/*
 * Describes what a frame becomes.
 * - format: rgb8, gray8, gray16 or rgb16; nv12 or p010: the rows of the colours lie below the
 *   picture, the numbers are those of the file, and nothing is turned; the sides of the frame have
 *   to be even; native: gray, RGB, RGBA and Bayer patterns as they are,
 *   with the numbers of the file, and all others as RGB or RGBA of 8 bits, or of 16 where the file
 *   has more than 8
 * - turn: what is done to it; all zero: nothing. A Bayer pattern would be another one then, so it
 *   stays
 */
void video_picture_of(const AVFrame *frame, const char *format, const struct video_turn *turn,
		      struct video_picture *out);

/* Returns what a format of YUV is: nv12 or p010; AV_PIX_FMT_NONE: it is another one. */
enum AVPixelFormat video_yuv_format(const char *format);

/* What is kept for frames of one format. All zero is a valid start. Thread: one at a time. */
struct video_pixels {
	struct SwsContext *scale; /* NULL: row is used */
	uint16_t *row;            /* of one colour; NULL: scale is used */
	AVFrame *out;             /* padded as libswscale likes to write */
	/* what these were made for */
	int width, height, from, to, range, space;
};

void video_pixels_fini(struct video_pixels *pixels);

/* Writes a frame without gaps between its rows. Returns 0 or a negative errno. */
int video_pixels_convert(struct video_pixels *pixels, const AVFrame *frame,
			 const struct video_picture *picture, uint8_t *out);

#endif
