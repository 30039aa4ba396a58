/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "resize.h"

/*
 * Every mode is a separable filter: pixel i of the output is the weighted sum of `count` pixels of
 * the input, starting at first[i]. The rows are filtered first, into an f32 picture of the new
 * width, then the columns.
 */
struct taps {
	int64_t count;  /* for each output pixel */
	int64_t *first; /* [size of the output]; outside the input the border's pixel is used */
	float *weights; /* [size of the output][count] */
};

static void taps_fini(struct taps *taps)
{
	free(taps->first);
	free(taps->weights);
}

/* R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -1/2. */
static double cubic(double x)
{
	x = fabs(x);
	if (x < 1.0)
		return (1.5 * x - 2.5) * x * x + 1.0;
	return x < 2.0 ? ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0 : 0.0;
}

static void taps_at(enum resize_mode mode, double ratio, int64_t i, struct taps *taps)
{
	double centre = ((double)i + 0.5) * ratio - 0.5;
	float *w = taps->weights + i * taps->count;
	double left = (double)i * ratio;

	switch (mode) {
	case RESIZE_NEAREST:
		taps->first[i] = (int64_t)floor(((double)i + 0.5) * ratio);
		w[0] = 1.0f;
		break;
	case RESIZE_LINEAR:
		taps->first[i] = (int64_t)floor(centre);
		w[1] = (float)(centre - floor(centre));
		w[0] = 1.0f - w[1];
		break;
	case RESIZE_SUPER:
		taps->first[i] = (int64_t)floor(left);
		for (int64_t k = 0; k < taps->count; k++) {
			double from = fmax(left, (double)(taps->first[i] + k));
			double to = fmin(left + ratio, (double)(taps->first[i] + k + 1));

			w[k] = (float)(fmax(0.0, to - from) / ratio);
		}
		break;
	default:
		taps->first[i] = (int64_t)floor(centre) - 1;
		for (int64_t k = 0; k < 4; k++)
			w[k] = (float)cubic(centre - (double)(taps->first[i] + k));
		break;
	}
}

static int taps_init(struct taps *taps, enum resize_mode mode, int64_t from, int64_t to)
{
	double ratio = (double)from / (double)to;

	taps->count = mode == RESIZE_NEAREST  ? 1
		      : mode == RESIZE_LINEAR ? 2
		      : mode == RESIZE_SUPER  ? (int64_t)ceil(ratio) + 1
					      : 4;
	taps->first = calloc((size_t)to, sizeof(*taps->first));
	taps->weights = calloc((size_t)(to * taps->count), sizeof(*taps->weights));
	if (taps->first == NULL || taps->weights == NULL) {
		taps_fini(taps);
		return -ENOMEM;
	}
	for (int64_t i = 0; i < to; i++)
		taps_at(mode, ratio, i, taps);
	return 0;
}

static int64_t clamp(int64_t x, int64_t size)
{
	return x < 0 ? 0 : x >= size ? size - 1 : x;
}

/* Filters one row of the input to the new width. */
static void resize_row(const struct frame *in, int64_t y, const struct taps *taps, int64_t columns,
		       float *out)
{
	const uint8_t *row = (const uint8_t *)in->data + (size_t)y * in->row_bytes;
	const float *row_f = (const float *)(const void *)row;

	for (int64_t x = 0; x < columns; x++) {
		const float *w = taps->weights + x * taps->count;
		float sum[4] = {0};

		for (int64_t k = 0; k < taps->count; k++) {
			int64_t from = clamp(taps->first[x] + k, in->columns) * in->channels;

			for (int64_t c = 0; c < in->channels; c++)
				sum[c] += w[k] *
					  (in->is_float ? row_f[from + c] : (float)row[from + c]);
		}
		for (int64_t c = 0; c < in->channels; c++)
			out[x * in->channels + c] = sum[c];
	}
}

int vision_resize(const struct frame *in, enum resize_mode mode, int64_t rows, int64_t columns,
		  void *out)
{
	int64_t width = columns * in->channels;
	struct taps across, down;
	float *wide, *sum;
	int r;

	if (mode != RESIZE_DEFAULT && mode != RESIZE_NEAREST && mode != RESIZE_LINEAR &&
	    mode != RESIZE_CUBIC && mode != RESIZE_SUPER)
		return -EINVAL;
	if (mode == RESIZE_SUPER && (rows > in->rows || columns > in->columns))
		return -EINVAL;
	r = taps_init(&across, mode, in->columns, columns);
	if (r < 0)
		return r;
	r = taps_init(&down, mode, in->rows, rows);
	if (r < 0)
		goto err_across;
	wide = malloc(((size_t)in->rows + 1) * (size_t)width * sizeof(*wide));
	r = wide != NULL ? 0 : -ENOMEM;
	if (r < 0)
		goto err_down;
	sum = wide + in->rows * width;
	for (int64_t y = 0; y < in->rows; y++)
		resize_row(in, y, &across, columns, wide + y * width);
	for (int64_t y = 0; y < rows; y++) {
		memset(sum, 0, (size_t)width * sizeof(*sum));
		for (int64_t k = 0; k < down.count; k++) {
			const float *from = wide + clamp(down.first[y] + k, in->rows) * width;
			float w = down.weights[y * down.count + k];

			for (int64_t x = 0; x < width; x++)
				sum[x] += w * from[x];
		}
		if (in->is_float) {
			memcpy((float *)out + y * width, sum, (size_t)width * sizeof(*sum));
			continue;
		}
		for (int64_t x = 0; x < width; x++)
			((uint8_t *)out)[y * width + x] =
				(uint8_t)lrintf(fminf(fmaxf(sum[x], 0.0f), 255.0f));
	}
	free(wide);
err_down:
	taps_fini(&down);
err_across:
	taps_fini(&across);
	return r;
}
