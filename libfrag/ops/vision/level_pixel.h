/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_LEVEL_PIXEL_H
#define VISION_LEVEL_PIXEL_H

#include "../gpu/kernel.h"

/* Brings the elements of a frame to an f32: see draw/levels.h. */
struct level_job {
	const unsigned char *in;
	float *out; /* without gaps */
	uint64_t row_bytes;
	int32_t rows, columns, channels;
	int32_t element_bytes; /* u8, u16 or f32 */
	double low, high, all_high, min, max;
};

GPU_INLINE double level_part(double low, double high, double value)
{
	double x = (value - low) / (high - low);

	if (low == high)
		return value > low ? 1.0 : 0.0;
	return x >= 1.0 ? 1.0 : x > 0.0 ? x : 0.0;
}

/* x: of the elements of a row */
GPU_INLINE void level_element(const struct level_job *job, int x, int y)
{
	const unsigned char *row = job->in + (uint64_t)y * job->row_bytes;
	const int width = job->columns * job->channels;
	const int is_alpha = job->channels == 4 && x % 4 == 3;
	double value;

	if (x >= width || y >= job->rows)
		return;
	if (job->element_bytes == 4)
		value = (double)((const float *)(const void *)row)[x];
	else if (job->element_bytes == 2)
		value = ((const uint16_t *)(const void *)row)[x];
	else
		value = row[x];
	job->out[(uint64_t)y * (uint64_t)width + (uint64_t)x] =
		(float)(job->min + (job->max - job->min) *
					   (is_alpha ? level_part(0.0, job->all_high, value)
						     : level_part(job->low, job->high, value)));
}

#endif
