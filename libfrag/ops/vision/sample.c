/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "sample.h"

/*
 * A region whose pixels lie this close to those of the frame is copied: what is sampled of u8 would
 * differ by less than the half that rounding takes away.
 */
#define ALIGNED (1.0 / 2048)

static struct neighbours find_neighbours(double at, int64_t size)
{
	double last = (double)(size - 1);
	double inside = at > 0 ? fmin(at, last) : 0; /* NaN becomes 0 */
	int64_t first = (int64_t)inside;

	return (struct neighbours){
		.first = first,
		.second = first + 1 < size ? first + 1 : first,
		.share = (float)(inside - (double)first),
	};
}

/* Returns the first of `count` whole pixels that a side covers; -1: it does not cover them so. */
static int64_t aligned(double from, double to, int64_t count, int64_t size)
{
	double first = nearbyint(from);

	/* not so for NaN either */
	if (!(first >= 0 && first + (double)count <= (double)size && fabs(from - first) < ALIGNED &&
	      fabs(to - first - (double)count) < ALIGNED))
		return -1;
	return (int64_t)first;
}

static float element_f32(const struct frame *frame, int64_t y, int64_t at)
{
	const uint8_t *row = (const uint8_t *)frame->data + (size_t)y * frame->row_bytes;

	return ((const float *)(const void *)row)[at];
}

static void sample_row_f32(const struct frame *frame, const struct neighbours *v,
			   const struct neighbours *across, int64_t columns, float *out)
{
	int64_t channels = frame->channels;

	for (int64_t x = 0; x < columns; x++) {
		const struct neighbours *h = &across[x];

		for (int64_t n = 0; n < channels; n++) {
			int64_t first = h->first * channels + n, second = h->second * channels + n;
			float above = element_f32(frame, v->first, first) * (1 - h->share) +
				      element_f32(frame, v->first, second) * h->share;
			float below = element_f32(frame, v->second, first) * (1 - h->share) +
				      element_f32(frame, v->second, second) * h->share;

			*out++ = above * (1 - v->share) + below * v->share;
		}
	}
}

/* Rounds a number from 0 to 255 as lrintf does, of which compilers make a call. */
static uint8_t nearest(float x)
{
	const float whole = 8388608.0f; /* above it floats have no fractions */

	return (uint8_t)((x + whole) - whole);
}

static void sample_row_u8(const struct frame *frame, const struct neighbours *v,
			  const struct neighbours *across, int64_t columns, uint8_t *out)
{
	const uint8_t *data = frame->data;
	const uint8_t *row = data + (size_t)v->first * frame->row_bytes;
	const uint8_t *next = data + (size_t)v->second * frame->row_bytes;
	int64_t channels = frame->channels;

	for (int64_t x = 0; x < columns; x++) {
		int64_t first = across[x].first * channels, second = across[x].second * channels;
		float share = across[x].share;

		for (int64_t n = 0; n < channels; n++) {
			float above = (float)row[first + n] * (1 - share) +
				      (float)row[second + n] * share;
			float below = (float)next[first + n] * (1 - share) +
				      (float)next[second + n] * share;

			*out++ = nearest(above * (1 - v->share) + below * v->share);
		}
	}
}

void vision_sample(const struct frame *frame, const float *region, const struct frame *to,
		   struct neighbours *across, void *data)
{
	double left = region[0] * (double)frame->columns, top = region[1] * (double)frame->rows;
	double right = region[2] * (double)frame->columns;
	double bottom = region[3] * (double)frame->rows;
	double step_x = (region[2] - region[0]) * (double)frame->columns / (double)to->columns;
	double step_y = (region[3] - region[1]) * (double)frame->rows / (double)to->rows;
	int64_t x0 = aligned(left, right, to->columns, frame->columns);
	int64_t y0 = aligned(top, bottom, to->rows, frame->rows);
	size_t width = (size_t)(to->columns * to->channels);

	if (x0 >= 0 && y0 >= 0 && !frame->is_float) {
		const uint8_t *from = (const uint8_t *)frame->data + (size_t)y0 * frame->row_bytes +
				      x0 * frame->channels;

		for (int64_t y = 0; y < to->rows; y++, from += frame->row_bytes)
			memcpy((uint8_t *)data + (size_t)y * width, from, width);
		return;
	}
	for (int64_t x = 0; x < to->columns; x++)
		across[x] =
			find_neighbours(left + ((double)x + 0.5) * step_x - 0.5, frame->columns);
	for (int64_t y = 0; y < to->rows; y++) {
		struct neighbours v =
			find_neighbours(top + ((double)y + 0.5) * step_y - 0.5, frame->rows);

		if (frame->is_float)
			sample_row_f32(frame, &v, across, to->columns,
				       (float *)data + (size_t)y * width);
		else
			sample_row_u8(frame, &v, across, to->columns,
				      (uint8_t *)data + (size_t)y * width);
	}
}
