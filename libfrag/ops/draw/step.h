/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_STEP_H
#define DRAW_STEP_H

#include "../gpu/kernel.h"

/*
 * What is drawn, step by step, for a GPU: a thread for each two pixels goes through the steps that
 * touch its tile of the picture. What a step does to a pixel is the same as in a canvas of the CPU
 * (canvas.c).
 */
struct paint {
	uint8_t rgb[3];
	uint16_t alpha; /* 0: invisible, to 256: opaque */
};

enum draw_kind {
	DRAW_FILL,
	DRAW_TRIANGLE, /* what of the rectangle lies in it */
	DRAW_PICTURE,
	DRAW_CLASSES, /* a frame of numbers, which have the colours of the job's paints */
};

struct draw_step {
	int32_t left, top, right, bottom; /* of the picture; right and bottom lie outside */
	uint8_t kind;
	struct paint paint; /* FILL and TRIANGLE; else its alpha alone */
	int32_t corners[6]; /* TRIANGLE: x, y of each, in DRAW_PARTS of a pixel */
	/* a frame, and the rectangle that it is laid over, of which that above is what is seen */
	int32_t frame_left, frame_top, frame_width, frame_height;
	int32_t rows, columns, channels;
	uint64_t row_bytes;
	const uint8_t *data;
};

struct draw_job {
	const struct draw_step *steps;
	const struct paint *paints;
	uint8_t *out;    /* [rows][columns][3] */
	uint32_t *tiles; /* [tiles][(count + 31) / 32]: a bit for each step that touches a tile */
	int32_t count, paint_count;
	int32_t rows, columns;
};

#define DRAW_ACROSS 2 /* pixels of a thread */
#define DRAW_TILE_COLUMNS 64
#define DRAW_TILE_ROWS 8

GPU_INLINE int draw_tiles_across(const struct draw_job *job)
{
	return (job->columns + DRAW_TILE_COLUMNS - 1) / DRAW_TILE_COLUMNS;
}

GPU_INLINE int draw_tiles_down(const struct draw_job *job)
{
	return (job->rows + DRAW_TILE_ROWS - 1) / DRAW_TILE_ROWS;
}

GPU_INLINE int draw_words(const struct draw_job *job)
{
	return (job->count + 31) / 32;
}

/* Finds which of 32 steps touch a tile. */
GPU_INLINE void draw_touch(const struct draw_job *job, int tile, int word)
{
	const int across = draw_tiles_across(job), words = draw_words(job);
	const int x = tile % across * DRAW_TILE_COLUMNS, y = tile / across * DRAW_TILE_ROWS;
	uint32_t bits = 0;

	if (tile >= across * draw_tiles_down(job) || word >= words)
		return;
	for (int i = 0; i < 32 && 32 * word + i < job->count; i++) {
		const struct draw_step *step = &job->steps[32 * word + i];

		/* all four are read at the same time */
		bits |= (uint32_t)((step->left < x + DRAW_TILE_COLUMNS) & (step->right > x) &
				   (step->top < y + DRAW_TILE_ROWS) & (step->bottom > y))
			<< i;
	}
	job->tiles[(uint64_t)tile * (uint64_t)words + (uint64_t)word] = bits;
}

/*
 * Whether the centre of a pixel lies in a triangle, in whole numbers, so that a GPU finds the same.
 * A centre on the side that two triangles share lies in one of them.
 */
#define DRAW_PARTS 256
GPU_INLINE int draw_covers(const int32_t *corners, int64_t x, int64_t y)
{
	const int64_t px = x * DRAW_PARTS + DRAW_PARTS / 2, py = y * DRAW_PARTS + DRAW_PARTS / 2;
	const int64_t turn =
		((int64_t)corners[2] - corners[0]) * ((int64_t)corners[5] - corners[1]) -
		((int64_t)corners[4] - corners[0]) * ((int64_t)corners[3] - corners[1]);
	const int64_t sign = turn < 0 ? -1 : 1;

	for (int i = 0; i < 6; i += 2) {
		const int32_t *from = corners + i, *to = corners + (i + 2) % 6;
		const int64_t dx = sign * ((int64_t)to[0] - from[0]);
		const int64_t dy = sign * ((int64_t)to[1] - from[1]);
		const int64_t inside = dx * (py - from[1]) - dy * (px - from[0]);

		if (inside < 0 || (inside == 0 && !(dy < 0 || (dy == 0 && dx > 0))))
			return 0;
	}
	return turn != 0;
}

GPU_INLINE void draw_blend(uint8_t *pixel, const uint8_t *rgb, uint32_t alpha)
{
	for (int c = 0; c < 3; c++)
		pixel[c] = (uint8_t)((pixel[c] * (256 - alpha) + rgb[c] * alpha + 128) >> 8);
}

/* Lays one pixel of a picture over one of the canvas. */
GPU_INLINE void draw_lay(uint8_t *to, const uint8_t *from, int64_t channels, uint32_t alpha)
{
	const int64_t second = channels == 1 ? 0 : 1; /* gray has one number for all three */
	const uint8_t rgb[3] = {from[0], from[second], from[2 * second]};

	if (channels == 4)
		alpha = (alpha * from[3] + 127) / 255;
	draw_blend(to, rgb, alpha);
}

/* A pixel whose number has no colour stays. */
GPU_INLINE void draw_class(uint8_t *to, uint8_t number, const struct paint *paints, uint64_t count,
			   uint32_t alpha)
{
	if (number < count)
		draw_blend(to, paints[number].rgb, paints[number].alpha * alpha / 256);
}

/* Of `count` numbers that are laid over `size` pixels, the one at pixel i. */
GPU_INLINE int64_t draw_place(int32_t i, int32_t count, int32_t size)
{
	return count == size ? i : (int64_t)i * count / size;
}

GPU_INLINE void draw_do(const struct draw_job *job, const struct draw_step *step, int x, int y,
			uint8_t *pixel)
{
	const uint8_t *from;

	if (x < step->left || x >= step->right || y < step->top || y >= step->bottom)
		return;
	if (step->kind == DRAW_TRIANGLE && !draw_covers(step->corners, x, y))
		return;
	if (step->kind == DRAW_FILL || step->kind == DRAW_TRIANGLE) {
		draw_blend(pixel, step->paint.rgb, step->paint.alpha);
		return;
	}
	from = step->data +
	       (uint64_t)draw_place(y - step->frame_top, step->rows, step->frame_height) *
		       step->row_bytes +
	       draw_place(x - step->frame_left, step->columns, step->frame_width) * step->channels;
	if (step->kind == DRAW_PICTURE)
		draw_lay(pixel, from, step->channels, step->paint.alpha);
	else
		draw_class(pixel, from[0], job->paints, (uint64_t)job->paint_count,
			   step->paint.alpha);
}

GPU_INLINE void draw_pixel(const struct draw_job *job, int x, int y)
{
	const int words = draw_words(job);
	const int tile = y / DRAW_TILE_ROWS * draw_tiles_across(job) + x / DRAW_TILE_COLUMNS;
	const uint32_t *touches = job->tiles + (uint64_t)tile * (uint64_t)words;
	uint8_t *to = job->out + ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	uint8_t pixel[3] = {0, 0, 0};

	for (int w = 0; w < words; w++)
		for (uint32_t left = touches[w]; left != 0; left &= left - 1)
			draw_do(job, &job->steps[32 * w + GPU_LOWEST(left)], x, y, pixel);
	for (int c = 0; c < 3; c++)
		to[c] = pixel[c];
}

/* x: of DRAW_ACROSS pixels of row y */
GPU_INLINE void draw_pixels(const struct draw_job *job, int x, int y)
{
	x *= DRAW_ACROSS;
	if (y >= job->rows)
		return;
	GPU_UNROLL
	for (int i = 0; i < DRAW_ACROSS; i++)
		if (x + i < job->columns)
			draw_pixel(job, x + i, y);
}

/* Copies what the CPU wrote into pinned memory: each thread 16 bytes. */
struct draw_take_job {
	const unsigned char *in;
	unsigned char *out;
	uint64_t bytes; /* a multiple of 16 */
};

GPU_INLINE void draw_take(const struct draw_take_job *job, int x, int y)
{
	const uint64_t at = (uint64_t)x * 16;

	if (y > 0 || at >= job->bytes)
		return;
	for (int i = 0; i < 16; i += 8)
		*(uint64_t *)(void *)(job->out + at + i) =
			*(const uint64_t *)(const void *)(job->in + at + i);
}

#endif
