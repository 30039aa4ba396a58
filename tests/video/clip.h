/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_VIDEO_CLIP_H
#define TESTS_VIDEO_CLIP_H

#include <stdint.h>
#include <string.h>

/*
 * A clip whose every frame is known: a street of grays, a white square on a path, and the number of
 * the frame as a bar code on top (12 bits, the highest first, white is 1). Encoded and decoded by
 * the program ffmpeg, never by what is being tested.
 */
#define CLIP_COLUMNS 480
#define CLIP_ROWS 320
#define CLIP_RATE 25
#define CLIP_SIDE 56 /* of the square */
#define CLIP_BITS 12
#define CLIP_BIT_COLUMNS 16
#define CLIP_BIT_ROWS 8
#define CLIP_BYTES ((size_t)CLIP_COLUMNS * CLIP_ROWS * 3)
/* Between the area of the bar code (1536 pixels) and that of the square (3136). */
#define CLIP_MIN_AREA "2000"

/* A point that goes to and fro between low and high, `step` a frame. */
static inline int clip_bounce(int n, int low, int high, int step)
{
	int way = n * step % (2 * (high - low));

	return low + (way < high - low ? way : 2 * (high - low) - way);
}

static inline int clip_left(int n)
{
	return clip_bounce(n, 8, CLIP_COLUMNS - CLIP_SIDE - 8, 8);
}

static inline int clip_top(int n)
{
	return clip_bounce(n, 40, CLIP_ROWS - CLIP_SIDE - 8, 3);
}

static inline void clip_fill(uint8_t *rgb, int left, int top, int columns, int rows, uint8_t value)
{
	for (int y = top; y < top + rows; y++)
		memset(rgb + ((size_t)y * CLIP_COLUMNS + (size_t)left) * 3, value,
		       (size_t)columns * 3);
}

/* Frame n; a still clip has no square and the bar code of 0 throughout. */
static inline void clip_draw(uint8_t *rgb, int n, int still)
{
	for (int y = 0; y < CLIP_ROWS; y++) {
		for (int x = 0; x < CLIP_COLUMNS; x++)
			memset(rgb + ((size_t)y * CLIP_COLUMNS + (size_t)x) * 3,
			       60 + x / 16 + (x / 40 + y / 40) % 2 * 12, 3);
	}
	for (int b = 0; b < CLIP_BITS; b++) {
		int set = still ? 0 : n >> (CLIP_BITS - 1 - b) & 1;

		clip_fill(rgb, b * CLIP_BIT_COLUMNS, 0, CLIP_BIT_COLUMNS, CLIP_BIT_ROWS,
			  set ? 235 : 16);
	}
	if (!still)
		clip_fill(rgb, clip_left(n), clip_top(n), CLIP_SIDE, CLIP_SIDE, 235);
}

/* The number in the bar code of a frame. */
static inline int clip_number(const uint8_t *rgb)
{
	int n = 0;

	for (int b = 0; b < CLIP_BITS; b++) {
		int sum = 0;

		for (int y = 2; y < CLIP_BIT_ROWS - 2; y++) {
			for (int x = b * CLIP_BIT_COLUMNS + 4; x < (b + 1) * CLIP_BIT_COLUMNS - 4;
			     x++)
				sum += rgb[((size_t)y * CLIP_COLUMNS + (size_t)x) * 3];
		}
		n = 2 * n + (sum > 128 * (CLIP_BIT_ROWS - 4) * (CLIP_BIT_COLUMNS - 8));
	}
	return n;
}

/* How well a box covers the square of frame n: intersection over union. */
static inline double clip_iou(int n, double left, double top, double right, double bottom)
{
	double l = clip_left(n), t = clip_top(n), r = l + CLIP_SIDE, b = t + CLIP_SIDE;
	double wide = (right < r ? right : r) - (left > l ? left : l);
	double high = (bottom < b ? bottom : b) - (top > t ? top : t);
	double both = wide > 0 && high > 0 ? wide * high : 0;

	return both / ((right - left) * (bottom - top) + CLIP_SIDE * CLIP_SIDE - both);
}

#endif
