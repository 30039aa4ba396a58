// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "levels.h"

static const void *row_of(const struct frame *frame, int64_t y)
{
	return (const uint8_t *)frame->data + (size_t)y * frame->row_bytes;
}

static double element(const struct frame *frame, const void *row, int64_t x)
{
	if (frame->is_float)
		return ((const float *)row)[x];
	return frame->is_deep ? ((const uint16_t *)row)[x] : ((const uint8_t *)row)[x];
}

static bool is_alpha(const struct frame *frame, int64_t x)
{
	return frame->channels == 4 && x % 4 == 3;
}

struct levels draw_levels_all(const struct frame *frame)
{
	return (struct levels){0.0, frame->is_float ? 1.0 : frame->is_deep ? 65535.0 : 255.0};
}

/* The least value that `percent` of the elements do not exceed, at least one. */
static double least(const int64_t *counts, int64_t elements, double percent)
{
	int64_t wanted = (int64_t)ceil((double)elements * percent / 100.0), sum = 0;
	int value = -1;

	do
		sum += counts[++value];
	while (value < UINT16_MAX && (sum < wanted || sum == 0));
	return value;
}

int draw_levels_percentile(const struct frame *frame, double low, double high, struct levels *out)
{
	int64_t *counts = calloc(UINT16_MAX + 1, sizeof(*counts)), elements = 0;

	if (counts == NULL)
		return -ENOMEM;
	for (int64_t y = 0; y < frame->rows; y++) {
		const void *row = row_of(frame, y);

		for (int64_t x = 0; x < frame->columns * frame->channels; x++) {
			if (is_alpha(frame, x))
				continue;
			counts[(size_t)element(frame, row, x)]++;
			elements++;
		}
	}
	*out = (struct levels){least(counts, elements, low), least(counts, elements, high)};
	free(counts);
	return 0;
}

/* From 0 to 1; NaN is 0. Levels that are equal leave black and white. */
static double part(const struct levels *levels, double value)
{
	double x = (value - levels->low) / (levels->high - levels->low);

	if (levels->low == levels->high)
		return value > levels->low ? 1.0 : 0.0;
	return x >= 1.0 ? 1.0 : x > 0.0 ? x : 0.0;
}

void draw_levels_u8(const struct levels *levels, const struct frame *frame, uint8_t *out)
{
	const struct levels all = draw_levels_all(frame);

	for (int64_t y = 0; y < frame->rows; y++) {
		const void *row = row_of(frame, y);

		for (int64_t x = 0; x < frame->columns * frame->channels; x++)
			*out++ = (uint8_t)lrint(255.0 * part(is_alpha(frame, x) ? &all : levels,
							     element(frame, row, x)));
	}
}

void draw_levels_f32(const struct levels *levels, const struct frame *frame, double min, double max,
		     float *out)
{
	const struct levels all = draw_levels_all(frame);

	for (int64_t y = 0; y < frame->rows; y++) {
		const void *row = row_of(frame, y);

		for (int64_t x = 0; x < frame->columns * frame->channels; x++)
			*out++ =
				(float)(min + (max - min) * part(is_alpha(frame, x) ? &all : levels,
								 element(frame, row, x)));
	}
}
