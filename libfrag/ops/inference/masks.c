/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "masks.h"

static float at(const struct mask_source *s, int64_t y, int64_t x, int64_t channel)
{
	if (s->planar)
		return s->data[(channel * s->rows + y) * s->columns + x];
	return s->data[(y * s->columns + x) * s->channels + channel];
}

static uint8_t largest(const struct mask_source *s, int64_t y, int64_t x)
{
	int64_t best = 0;

	for (int64_t c = 1; c < s->channels; c++)
		if (at(s, y, x, c) > at(s, y, x, best))
			best = c;
	return (uint8_t)best;
}

void mask_classify(const struct mask_source *source, struct mask *mask)
{
	for (int64_t y = 0; y < mask->rows; y++)
		for (int64_t x = 0; x < mask->columns; x++)
			mask->data[y * mask->columns + x] =
				source->softmax
					? largest(source, y, x)
					: (uint8_t)(at(source, y, x, 0) > source->threshold);
}

static int64_t clamp(int64_t i, int64_t size)
{
	return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* The first channel between the pixels, whose centres lie at half coordinates. */
static float between(const struct mask_source *s, double y, double x)
{
	int64_t top = (int64_t)floor(y - 0.5), left = (int64_t)floor(x - 0.5);
	float down = (float)(y - 0.5 - (double)top), right = (float)(x - 0.5 - (double)left);
	int64_t y0 = clamp(top, s->rows), y1 = clamp(top + 1, s->rows);
	int64_t x0 = clamp(left, s->columns), x1 = clamp(left + 1, s->columns);
	float upper = at(s, y0, x0, 0) * (1.0f - right) + at(s, y0, x1, 0) * right;
	float lower = at(s, y1, x0, 0) * (1.0f - right) + at(s, y1, x1, 0) * right;

	return upper * (1.0f - down) + lower * down;
}

/* How far from the centre of a box a place is, in sizes of the box, squared. */
static double distance(const float box[4], double x, double y)
{
	double across = (x - ((double)box[0] + box[2]) / 2.0) / ((double)box[2] - box[0]);
	double down = (y - ((double)box[1] + box[3]) / 2.0) / ((double)box[3] - box[1]);

	return across * across + down * down;
}

static bool is_nearer(const float *box, const float *other, int64_t column, int64_t row,
		      const struct mask *mask)
{
	double x = ((double)column + 0.5) / (double)mask->columns;
	double y = ((double)row + 0.5) / (double)mask->rows;

	return distance(box, x, y) < distance(other, x, y);
}

void mask_paste(const struct mask_source *source, const float *boxes, int64_t i, bool as_instance,
		struct mask *mask)
{
	const float *box = boxes + 4 * i;
	uint8_t id = (uint8_t)(i < 255 ? i + 1 : 255);
	double left = (double)box[0] * (double)mask->columns,
	       top = (double)box[1] * (double)mask->rows;
	double width = (double)box[2] * (double)mask->columns - left;
	double height = (double)box[3] * (double)mask->rows - top;
	int64_t y0 = clamp((int64_t)ceil(top - 0.5), mask->rows + 1);
	int64_t y1 = clamp((int64_t)ceil(top + height - 0.5), mask->rows + 1);
	int64_t x0 = clamp((int64_t)ceil(left - 0.5), mask->columns + 1);
	int64_t x1 = clamp((int64_t)ceil(left + width - 0.5), mask->columns + 1);

	for (int64_t y = y0; y < y1; y++) {
		for (int64_t x = x0; x < x1; x++) {
			double v = ((double)y + 0.5 - top) / height * (double)source->rows;
			double u = ((double)x + 0.5 - left) / width * (double)source->columns;
			uint8_t class =
				source->softmax
					? largest(source, clamp((int64_t)v, source->rows),
						  clamp((int64_t)u, source->columns))
					: (uint8_t)(between(source, v, u) > source->threshold);

			uint8_t *pixel = &mask->data[y * mask->columns + x];

			if (class == 0)
				continue;
			if (!as_instance)
				*pixel = class;
			else if (*pixel == 0 ||
				 is_nearer(box, boxes + 4 * (*pixel - 1), x, y, mask))
				*pixel = id;
		}
	}
}

bool mask_has_nan(const struct mask_source *source)
{
	int64_t count = source->rows * source->columns * source->channels;
	bool nan = false;

	for (int64_t i = 0; i < count; i++)
		nan |= isnan(source->data[i]) != 0;
	return nan;
}
