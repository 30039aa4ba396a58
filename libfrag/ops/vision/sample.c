// SPDX-License-Identifier: Apache-2.0
#include "sample.h"

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

			*out++ = sample_between(element_f32(frame, v->first, first),
						element_f32(frame, v->first, second),
						element_f32(frame, v->second, first),
						element_f32(frame, v->second, second), h->share,
						v->share);
		}
	}
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
			*out++ = sample_nearest(sample_between(row[first + n], row[second + n],
							       next[first + n], next[second + n],
							       share, v->share));
		}
	}
}

void vision_sample(const struct frame *frame, const float *region, const struct frame *to,
		   struct neighbours *across, void *data)
{
	struct sample_side columns =
		sample_side_of(region[0], region[2], frame->columns, to->columns);
	struct sample_side rows = sample_side_of(region[1], region[3], frame->rows, to->rows);
	size_t width = (size_t)(to->columns * to->channels);

	if (columns.first >= 0 && rows.first >= 0 && !frame->is_float) {
		const uint8_t *from = (const uint8_t *)frame->data +
				      (size_t)rows.first * frame->row_bytes +
				      columns.first * frame->channels;

		for (int64_t y = 0; y < to->rows; y++, from += frame->row_bytes)
			memcpy((uint8_t *)data + (size_t)y * width, from, width);
		return;
	}
	for (int64_t x = 0; x < to->columns; x++)
		across[x] = sample_neighbours(&columns, x);
	for (int64_t y = 0; y < to->rows; y++) {
		struct neighbours v = sample_neighbours(&rows, y);

		if (frame->is_float)
			sample_row_f32(frame, &v, across, to->columns,
				       (float *)data + (size_t)y * width);
		else
			sample_row_u8(frame, &v, across, to->columns,
				      (uint8_t *)data + (size_t)y * width);
	}
}
