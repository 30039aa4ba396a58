/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_SAMPLE_PIXEL_H
#define VISION_SAMPLE_PIXEL_H

#include <stdbool.h>

#include "../gpu/kernel.h"

/* Regions of a frame that are sampled to one size: what both bodies of crop do for a pixel. */

/* Two neighbours of a place along one side, the border's pixel standing for what lies beyond. */
struct neighbours {
	int64_t first, second;
	float share; /* of the second */
};

/* A side of a region, in pixels of the frame. */
struct sample_side {
	double from, step; /* of the first pixel's border, and from one pixel to the next */
	int64_t size;      /* of the frame */
	int64_t first;     /* of whole pixels that are copied; -1: they are not */
};

/*
 * A region whose pixels lie this close to those of the frame is copied: what is sampled of u8 would
 * differ by less than the half that rounding takes away.
 */
#define SAMPLE_ALIGNED (1.0 / 2048)

/* Returns the first of `count` whole pixels that a side covers; -1: it does not cover them so. */
GPU_INLINE int64_t sample_aligned(double from, double to, int64_t count, int64_t size)
{
	double first = nearbyint(from);

	/* not so for NaN either */
	if (!(first >= 0 && first + (double)count <= (double)size &&
	      fabs(from - first) < SAMPLE_ALIGNED &&
	      fabs(to - first - (double)count) < SAMPLE_ALIGNED))
		return -1;
	return (int64_t)first;
}

/* from, to: shares of the frame's side; count: pixels of the crop */
GPU_INLINE struct sample_side sample_side_of(float from, float to, int64_t size, int64_t count)
{
	struct sample_side side;

	side.from = from * (double)size;
	side.step = (to - from) * (double)size / (double)count;
	side.size = size;
	side.first = sample_aligned(side.from, to * (double)size, count, size);
	return side;
}

GPU_INLINE struct neighbours sample_neighbours(const struct sample_side *side, int64_t i)
{
	double at = side->from + ((double)i + 0.5) * side->step - 0.5;
	double last = (double)(side->size - 1);
	double inside = at > 0 ? fmin(at, last) : 0; /* NaN becomes 0 */
	struct neighbours n;

	n.first = (int64_t)inside;
	n.second = n.first + 1 < side->size ? n.first + 1 : n.first;
	n.share = (float)(inside - (double)n.first);
	return n;
}

/* Between four pixels: a, b in the first row. across, down: the shares of the second ones */
GPU_INLINE float sample_between(float a, float b, float c, float d, float across, float down)
{
	float above = a * (1 - across) + b * across;
	float below = c * (1 - across) + d * across;

	return above * (1 - down) + below * down;
}

/* Rounds a number from 0 to 255 as lrintf does, of which compilers make a call. */
GPU_INLINE uint8_t sample_nearest(float x)
{
	const float whole = 8388608.0f; /* above it floats have no fractions */

	return (uint8_t)((x + whole) - whole);
}

/* Of the GPU. */
struct crop_job {
	const unsigned char *in;
	unsigned char *out;   /* [count][rows][columns][channels] */
	const float *regions; /* [count][4]: left, top, right, bottom as shares; pinned */
	uint64_t row_bytes;
	int32_t in_rows, in_columns, channels, is_float; /* of the frame */
	int32_t rows, columns, count, out_is_float;      /* of the crops */
	double scale_min, scale_max;
};

GPU_INLINE float crop_element(const struct crop_job *job, int64_t y, int64_t at)
{
	const unsigned char *row = job->in + (uint64_t)y * job->row_bytes;

	return job->is_float ? ((const float *)(const void *)row)[at] : (float)row[at];
}

/* Stores a number of the frame's type, which a u8 is rounded to. */
GPU_INLINE void crop_store(const struct crop_job *job, float value, uint64_t at)
{
	const double span = job->scale_max - job->scale_min;
	double u;

	if (!job->is_float && !job->out_is_float) {
		job->out[at] = sample_nearest(value);
	} else if (!job->is_float) {
		((float *)(void *)job->out)[at] =
			(float)(job->scale_min + sample_nearest(value) / 255.0 * span);
	} else if (job->out_is_float) {
		((float *)(void *)job->out)[at] = value;
	} else {
		u = (value - job->scale_min) / span * 255.0;
		job->out[at] = !(u > 0.0) ? 0 : (uint8_t)(u >= 255.0 ? 255.0 : rint(u));
	}
}

/* A pixel of a crop, between four of the frame. at: of its first number */
GPU_INLINE void crop_pixel(const struct crop_job *job, const struct neighbours *h,
			   const struct neighbours *v, uint64_t at)
{
	GPU_UNROLL
	for (int c = 0; c < 4; c++) {
		const int64_t left = h->first * job->channels + c;
		const int64_t right = h->second * job->channels + c;

		if (c >= job->channels)
			return;
		crop_store(job,
			   sample_between(crop_element(job, v->first, left),
					  crop_element(job, v->first, right),
					  crop_element(job, v->second, left),
					  crop_element(job, v->second, right), h->share, v->share),
			   at + (uint64_t)c);
	}
}

#define CROP_EACH 4 /* pixels of a thread, of one column */

/* The rows between the pixels of a thread. */
GPU_INLINE int crop_step(const struct crop_job *job)
{
	return (job->rows + CROP_EACH - 1) / CROP_EACH;
}

/* place: of the pixels of a crop's first crop_step rows */
GPU_INLINE void crop_pixels(const struct crop_job *job, int place, int crop)
{
	const int x = place % job->columns, top = place / job->columns, step = crop_step(job);
	const uint64_t first = (uint64_t)crop * (uint64_t)(job->rows * job->columns);
	const float *region = job->regions + 4 * (int64_t)crop;
	struct sample_side across, down;
	struct neighbours h, v;
	int is_copied;

	if (top >= step || crop >= job->count)
		return;
	across = sample_side_of(region[0], region[2], job->in_columns, job->columns);
	down = sample_side_of(region[1], region[3], job->in_rows, job->rows);
	is_copied = across.first >= 0 && down.first >= 0 && !job->is_float;
	h = sample_neighbours(&across, x);
	if (is_copied)
		h = (struct neighbours){across.first + x, across.first + x, 0.0f};
	GPU_UNROLL
	for (int k = 0; k < CROP_EACH; k++) {
		const int y = top + k * step;

		v = sample_neighbours(&down, y);
		if (is_copied)
			v = (struct neighbours){down.first + y, down.first + y, 0.0f};
		if (y < job->rows)
			crop_pixel(job, &h, &v,
				   (first + (uint64_t)(y * job->columns + x)) *
					   (uint64_t)job->channels);
	}
}

#endif
