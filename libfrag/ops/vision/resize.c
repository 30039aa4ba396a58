// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "taps.h"

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

	r = vision_taps_init(&across, mode, in->columns, columns);
	if (r < 0)
		return r;
	r = vision_taps_init(&down, mode, in->rows, rows);
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
	vision_taps_fini(&down);
err_across:
	vision_taps_fini(&across);
	return r;
}
