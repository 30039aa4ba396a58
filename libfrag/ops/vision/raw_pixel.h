/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_RAW_PIXEL_H
#define VISION_RAW_PIXEL_H

#include "../gpu/kernel.h"

/*
 * A pixel of RGB of what cameras and decoders give: YUV in several layouts, and Bayer patterns. All
 * of it is arithmetic of integers, so the CPU and a GPU give the same numbers.
 */
enum raw_layout { RAW_SEMIPLANAR, RAW_PLANAR, RAW_YUYV, RAW_UYVY, RAW_BILINEAR, RAW_MALVAR };

struct raw_job {
	const unsigned char *in;
	unsigned char *out;    /* [rows][columns][3], of u8 or, if is_deep, u16 */
	uint64_t row_bytes;    /* of the input */
	int32_t rows, columns; /* of the picture */
	int32_t layout, is_deep;
	int32_t red_x, red_y; /* of a Bayer pattern: 0 or 1, where red is */
	/* of YUV; in 65536ths, for numbers of as many bits as the input has */
	int32_t shift, black, middle, luma, red_v, green_u, green_v, blue_u;
};

GPU_INLINE int raw_clamp(int x, int most)
{
	return x < 0 ? 0 : x > most ? most : x;
}

GPU_INLINE int raw_at(const struct raw_job *job, int y, int x)
{
	const unsigned char *row = job->in + (uint64_t)y * job->row_bytes;

	return job->is_deep ? ((const uint16_t *)(const void *)row)[x] : row[x];
}

GPU_INLINE int raw_channel(const struct raw_job *job, int64_t sum)
{
	const int most = job->is_deep ? 65535 : 255;
	int64_t value = (sum + 32768) >> 16;

	return value < 0 ? 0 : value > most ? most : (int)value;
}

GPU_INLINE void raw_from_yuv(const struct raw_job *job, int y, int u, int v, int *rgb)
{
	int64_t luma = (int64_t)job->luma * ((y >> job->shift) - job->black);

	u = (u >> job->shift) - job->middle;
	v = (v >> job->shift) - job->middle;
	rgb[0] = raw_channel(job, luma + (int64_t)job->red_v * v);
	rgb[1] = raw_channel(job, luma - (int64_t)job->green_u * u - (int64_t)job->green_v * v);
	rgb[2] = raw_channel(job, luma + (int64_t)job->blue_u * u);
}

/* Beyond the border a pattern is mirrored at its last pixel, which keeps the colours' places. */
GPU_INLINE int raw_mirrored(int x, int size)
{
	return x < 0 ? -x : x >= size ? 2 * size - 2 - x : x;
}

GPU_INLINE int raw_bayer_at(const struct raw_job *job, int y, int x)
{
	return raw_at(job, raw_mirrored(y, job->rows), raw_mirrored(x, job->columns));
}

/*
 * What the colours at a pixel are made of. Malvar, He and Cutler, "High-quality linear
 * interpolation for demosaicing of Bayer-patterned color images", ICASSP 2004; in 16ths.
 */
struct raw_sums {
	int centre;             /* the number of the pixel itself */
	int across, down, diag; /* of the neighbours: 2, 2 and 4 */
	int far_across, far_down;
};

GPU_INLINE struct raw_sums raw_sums_at(const struct raw_job *job, int y, int x)
{
	struct raw_sums s;

	s.centre = raw_at(job, y, x);
	s.across = raw_bayer_at(job, y, x - 1) + raw_bayer_at(job, y, x + 1);
	s.down = raw_bayer_at(job, y - 1, x) + raw_bayer_at(job, y + 1, x);
	s.diag = raw_bayer_at(job, y - 1, x - 1) + raw_bayer_at(job, y - 1, x + 1) +
		 raw_bayer_at(job, y + 1, x - 1) + raw_bayer_at(job, y + 1, x + 1);
	s.far_across = s.far_down = 0;
	if (job->layout == RAW_MALVAR) {
		s.far_across = raw_bayer_at(job, y, x - 2) + raw_bayer_at(job, y, x + 2);
		s.far_down = raw_bayer_at(job, y - 2, x) + raw_bayer_at(job, y + 2, x);
	}
	return s;
}

/* Green where red or blue is. */
GPU_INLINE int raw_green(const struct raw_job *job, const struct raw_sums *s)
{
	if (job->layout == RAW_BILINEAR)
		return 4 * (s->across + s->down);
	return 8 * s->centre + 4 * (s->across + s->down) - 2 * (s->far_across + s->far_down);
}

/* Red where blue is, and blue where red is. */
GPU_INLINE int raw_opposite(const struct raw_job *job, const struct raw_sums *s)
{
	if (job->layout == RAW_BILINEAR)
		return 4 * s->diag;
	return 12 * s->centre + 4 * s->diag - 3 * (s->far_across + s->far_down);
}

/* Where green is: the colour whose neighbours lie beside it, or above and below. */
GPU_INLINE int raw_beside(const struct raw_job *job, const struct raw_sums *s)
{
	if (job->layout == RAW_BILINEAR)
		return 8 * s->across;
	return 10 * s->centre + 8 * s->across - 2 * s->diag - 2 * s->far_across + s->far_down;
}

GPU_INLINE int raw_above(const struct raw_job *job, const struct raw_sums *s)
{
	if (job->layout == RAW_BILINEAR)
		return 8 * s->down;
	return 10 * s->centre + 8 * s->down - 2 * s->diag - 2 * s->far_down + s->far_across;
}

GPU_INLINE void raw_from_bayer(const struct raw_job *job, int y, int x, int *rgb)
{
	const int most = job->is_deep ? 65535 : 255;
	const int is_red_row = (y & 1) == job->red_y, is_red_column = (x & 1) == job->red_x;
	struct raw_sums s = raw_sums_at(job, y, x);

	rgb[0] = rgb[1] = rgb[2] = 16 * s.centre;
	if (is_red_row == is_red_column) {
		rgb[1] = raw_green(job, &s);
		rgb[is_red_row ? 2 : 0] = raw_opposite(job, &s);
	} else {
		rgb[is_red_row ? 0 : 2] = raw_beside(job, &s);
		rgb[is_red_row ? 2 : 0] = raw_above(job, &s);
	}
	for (int c = 0; c < 3; c++)
		rgb[c] = raw_clamp((rgb[c] + 8) >> 4, most);
}

GPU_INLINE void raw_read(const struct raw_job *job, int y, int x, int *rgb)
{
	const int half = x / 2, pair = 4 * half, below = job->rows + y / 2;
	const unsigned char *planes, *row;
	uint64_t at;

	switch (job->layout) {
	case RAW_SEMIPLANAR:
		raw_from_yuv(job, raw_at(job, y, x), raw_at(job, below, 2 * half),
			     raw_at(job, below, 2 * half + 1), rgb);
		break;
	case RAW_PLANAR:
		planes = job->in + (uint64_t)job->rows * job->row_bytes;
		at = (uint64_t)(y / 2) * (job->row_bytes / 2) + (uint64_t)half;
		raw_from_yuv(job, raw_at(job, y, x), planes[at],
			     planes[at + job->row_bytes / 2 * (uint64_t)(job->rows / 2)], rgb);
		break;
	case RAW_YUYV:
	case RAW_UYVY:
		row = job->in + (uint64_t)y * job->row_bytes + pair;
		if (job->layout == RAW_YUYV)
			raw_from_yuv(job, row[2 * (x & 1)], row[1], row[3], rgb);
		else
			raw_from_yuv(job, row[1 + 2 * (x & 1)], row[0], row[2], rgb);
		break;
	default:
		raw_from_bayer(job, y, x, rgb);
	}
}

GPU_INLINE void raw_pixel(const struct raw_job *job, int x, int y)
{
	uint64_t at = ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	int rgb[3];

	if (x >= job->columns || y >= job->rows)
		return;
	raw_read(job, y, x, rgb);
	for (int c = 0; c < 3; c++)
		if (job->is_deep)
			((uint16_t *)(void *)job->out)[at + (uint64_t)c] = (uint16_t)rgb[c];
		else
			job->out[at + (uint64_t)c] = (unsigned char)rgb[c];
}

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
