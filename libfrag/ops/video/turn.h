/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_TURN_H
#define VIDEO_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How a picture is turned and mirrored to be shown, as the matrix of a container says
 * (libavutil/display.h).
 */
struct video_turn {
	/* The eight ways that need no new pixels. A place x, y becomes y, x first if swaps. */
	bool swaps, flips_x, flips_y;
	/* The same in words: turned clockwise by so many degrees, after it was mirrored */
	double degrees;   /* from 0 to 360 */
	bool is_mirrored; /* left and right are exchanged */
	bool is_exact;    /* degrees is a multiple of 90 */
};

/* matrix: 9 numbers; NULL: the picture stays as it is. */
struct video_turn video_turn_of(const int32_t *matrix);

static inline bool video_turn_is_needed(const struct video_turn *turn)
{
	return turn->swaps || turn->flips_x || turn->flips_y;
}

/*
 * Copies rows of pixels, turned.
 * - columns, rows: of the input
 */
void video_turn_copy(const struct video_turn *turn, const uint8_t *in, ptrdiff_t row_bytes,
		     size_t columns, size_t rows, size_t pixel_bytes, uint8_t *out,
		     ptrdiff_t out_row_bytes);

#endif
