/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_MASKS_H
#define INFERENCE_MASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "../gpu/kernel.h"

/* The output of a network for segmentation: for each pixel a number for each class. */
struct mask_source {
	const float *data;
	int64_t rows, columns, channels;
	bool planar;     /* a plane for each channel; else the channels of a pixel are adjacent */
	bool softmax;    /* the class is the channel with the largest number */
	float threshold; /* without softmax: class 1 is where the first channel is larger */
};

/* A picture of class numbers, 0 for nothing. */
struct mask {
	uint8_t *data;
	int64_t rows, columns;
};

/* Writes the class of every pixel; the mask has the size of the source. */
void mask_classify(const struct mask_source *source, struct mask *mask);
/*
 * Writes the classes of a source that covers a box of the mask, enlarged or reduced to it. Where
 * the source has class 0 the mask stays as it is.
 * - boxes: left, top, right, bottom of each from 0 to 1, also beyond the mask; one of no size, or
 *   far away, covers nothing
 * - i: the box that the source covers; those before it were pasted
 * - as_instance: i + 1, at most 255, is written in place of the class. Where boxes overlap, each
 *   contains a part of its neighbour, so a pixel that an earlier one has goes to the box whose
 *   centre is nearer, measured in sizes of the box.
 */
void mask_paste(const struct mask_source *source, const float *boxes, int64_t i, bool as_instance,
		struct mask *mask);
/* Returns whether a number of the source is NaN. */
bool mask_has_nan(const struct mask_source *source);

/* What both bodies do for a pixel. */

GPU_INLINE float mask_at(const struct mask_source *s, int64_t y, int64_t x, int64_t channel)
{
	if (s->planar)
		return s->data[(channel * s->rows + y) * s->columns + x];
	return s->data[(y * s->columns + x) * s->channels + channel];
}

GPU_INLINE uint8_t mask_largest(const struct mask_source *s, int64_t y, int64_t x)
{
	int64_t best = 0;

	for (int64_t c = 1; c < s->channels; c++)
		if (mask_at(s, y, x, c) > mask_at(s, y, x, best))
			best = c;
	return (uint8_t)best;
}

GPU_INLINE uint8_t mask_class(const struct mask_source *s, int64_t y, int64_t x)
{
	return s->softmax ? mask_largest(s, y, x) : (uint8_t)(mask_at(s, y, x, 0) > s->threshold);
}

GPU_INLINE int64_t mask_clamp(int64_t i, int64_t size)
{
	return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* The first channel between the pixels, whose centres lie at half coordinates. */
GPU_INLINE float mask_between(const struct mask_source *s, double y, double x)
{
	int64_t top = (int64_t)floor(y - 0.5), left = (int64_t)floor(x - 0.5);
	float down = (float)(y - 0.5 - (double)top), right = (float)(x - 0.5 - (double)left);
	int64_t y0 = mask_clamp(top, s->rows), y1 = mask_clamp(top + 1, s->rows);
	int64_t x0 = mask_clamp(left, s->columns), x1 = mask_clamp(left + 1, s->columns);
	float upper = mask_at(s, y0, x0, 0) * (1.0f - right) + mask_at(s, y0, x1, 0) * right;
	float lower = mask_at(s, y1, x0, 0) * (1.0f - right) + mask_at(s, y1, x1, 0) * right;

	return upper * (1.0f - down) + lower * down;
}

/* How far from the centre of a box a place is, in sizes of the box, squared. */
GPU_INLINE double mask_distance(const float *box, double x, double y)
{
	double across = (x - ((double)box[0] + box[2]) / 2.0) / ((double)box[2] - box[0]);
	double down = (y - ((double)box[1] + box[3]) / 2.0) / ((double)box[3] - box[1]);

	return across * across + down * down;
}

/* The pixels of a mask that a box covers: right and bottom lie outside. */
struct mask_area {
	double left, top, width, height; /* of the box, in pixels */
	int64_t x0, y0, x1, y1;
};

GPU_INLINE struct mask_area mask_area_of(const float *box, int64_t rows, int64_t columns)
{
	struct mask_area area;
	int64_t is_good = box[2] > box[0] && box[3] > box[1];

	memset(&area, 0, sizeof(area));
	for (int i = 0; i < 4; i++)
		is_good = is_good && fabsf(box[i]) < 1000.0f;
	if (!is_good)
		return area;
	area.left = (double)box[0] * (double)columns;
	area.top = (double)box[1] * (double)rows;
	area.width = (double)box[2] * (double)columns - area.left;
	area.height = (double)box[3] * (double)rows - area.top;
	area.y0 = mask_clamp((int64_t)ceil(area.top - 0.5), rows + 1);
	area.y1 = mask_clamp((int64_t)ceil(area.top + area.height - 0.5), rows + 1);
	area.x0 = mask_clamp((int64_t)ceil(area.left - 0.5), columns + 1);
	area.x1 = mask_clamp((int64_t)ceil(area.left + area.width - 0.5), columns + 1);
	return area;
}

/* What a pixel within the area of box i becomes, which was `before`. rows, columns: of the mask */
GPU_INLINE uint8_t mask_pasted(const struct mask_source *source, const float *boxes, int64_t i,
			       const struct mask_area *area, int as_instance, int64_t rows,
			       int64_t columns, int64_t y, int64_t x, uint8_t before)
{
	double v = ((double)y + 0.5 - area->top) / area->height * (double)source->rows;
	double u = ((double)x + 0.5 - area->left) / area->width * (double)source->columns;
	double across = ((double)x + 0.5) / (double)columns;
	double down = ((double)y + 0.5) / (double)rows;
	uint8_t id = source->softmax ? mask_largest(source, mask_clamp((int64_t)v, source->rows),
						    mask_clamp((int64_t)u, source->columns))
				     : (uint8_t)(mask_between(source, v, u) > source->threshold);

	if (id == 0)
		return before;
	if (!as_instance)
		return id;
	if (before != 0 && !(mask_distance(boxes + 4 * i, across, down) <
			     mask_distance(boxes + 4 * (before - 1), across, down)))
		return before;
	return (uint8_t)(i < 255 ? i + 1 : 255);
}

/* Of the GPU: a batch of pictures, each with less than 2^31 numbers. */
struct mask_job {
	struct mask_source source; /* the first one; the others follow */
	const float *boxes;        /* of each; NULL: the mask is that of the one picture */
	uint8_t *out;
	int64_t rows, columns, count;
	int32_t instances;
	uint32_t *nan_picture; /* in pinned memory: the first one with a NaN; UINT32_MAX before */
};

#define MASK_EACH 4 /* pixels or numbers of a thread */

GPU_INLINE int64_t mask_threads(int64_t count)
{
	return (count + MASK_EACH - 1) / MASK_EACH;
}

/* Reads all numbers of pixel i of the one picture. Returns its class; -1: one is a NaN. */
GPU_INLINE int mask_class_of(const struct mask_source *s, uint32_t i)
{
	const uint32_t channels = (uint32_t)s->channels;
	const uint32_t step = s->planar ? (uint32_t)(s->rows * s->columns) : 1;
	const float *at = s->data + (s->planar ? i : i * channels);
	float first = *at, most = first;
	int best = 0, is_nan = !(first == first);

	for (uint32_t c = 1; c < channels; c++) {
		const float number = at[c * step];

		is_nan = is_nan || !(number == number);
		if (number > most) {
			most = number;
			best = (int)c;
		}
	}
	return is_nan ? -1 : s->softmax ? best : first > s->threshold;
}

/* The classes of the one picture. A thread's pixels lie far apart, so that a warp's are adjacent. */
GPU_INLINE void mask_classes(const struct mask_job *job, int x, int y)
{
	const uint32_t pixels = (uint32_t)(job->rows * job->columns);
	const uint32_t step = (uint32_t)mask_threads(pixels);
	uint32_t i = (uint32_t)x;

	if (y > 0 || i >= step)
		return;
	for (int k = 0; k < MASK_EACH && i < pixels; k++, i += step) {
		const int number = mask_class_of(&job->source, i);

		if (number < 0)
			GPU_MIN(job->nan_picture, 0u);
		job->out[i] = (uint8_t)number;
	}
}

/* Numbers of the source in each column of threads, and a picture in each row. */
GPU_INLINE void mask_find_nan(const struct mask_job *job, int x, int y)
{
	const int64_t count = job->source.rows * job->source.columns * job->source.channels;
	const float *data = job->source.data + y * count;
	const int64_t step = mask_threads(count);

	if (x >= step || y >= job->count)
		return;
	for (int64_t i = x, k = 0; k < MASK_EACH && i < count; k++, i += step)
		if (!(data[i] == data[i]))
			GPU_MIN(job->nan_picture, (uint32_t)y);
}

/* x: of MASK_EACH pixels of row y */
GPU_INLINE void mask_pixels(const struct mask_job *job, int x, int y)
{
	struct mask_source source = job->source;
	uint8_t values[MASK_EACH] = {0, 0, 0, 0};

	x *= MASK_EACH;
	if (x >= job->columns || y >= job->rows)
		return;
	for (int64_t i = 0; i < job->count; i++) {
		const struct mask_area area =
			mask_area_of(job->boxes + 4 * i, job->rows, job->columns);

		GPU_UNROLL
		for (int k = 0; k < MASK_EACH; k++)
			if (x + k >= area.x0 && x + k < area.x1 && y >= area.y0 && y < area.y1)
				values[k] =
					mask_pasted(&source, job->boxes, i, &area, job->instances,
						    job->rows, job->columns, y, x + k, values[k]);
		source.data += source.rows * source.columns * source.channels;
	}
	for (int k = 0; k < MASK_EACH && x + k < job->columns; k++)
		job->out[(int64_t)y * job->columns + x + k] = values[k];
}

#endif
