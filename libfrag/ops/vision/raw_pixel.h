/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_RAW_PIXEL_H
#define VISION_RAW_PIXEL_H

#include "../gpu/kernel.h"

/*
 * A pixel of RGB of what cameras and decoders give: YUV in several layouts, and Bayer patterns. All
 * of it is arithmetic of integers, so the CPU and a GPU give the same numbers.
 */
enum raw_layout { RAW_SEMIPLANAR, RAW_PLANAR, RAW_YUYV, RAW_UYVY, RAW_BILINEAR, RAW_MALVAR };

/* What is constant in a kernel. */
struct raw_kind {
	int layout, is_deep;
};

struct raw_job {
	const unsigned char *in;
	unsigned char *out;    /* [rows][columns][3], of u8 or, if is_deep, u16 */
	uint64_t row_bytes;    /* of the input */
	int32_t rows, columns; /* of the picture */
	int32_t layout, is_deep;
	int32_t is_aligned;   /* four bytes of u8 can be read at once, and those of RGB written */
	int32_t red_x, red_y; /* of a Bayer pattern: 0 or 1, where red is */
	/* of YUV; in 65536ths, for numbers of as many bits as the input has */
	int32_t shift, black, middle, luma, red_v, green_u, green_v, blue_u;
};

GPU_INLINE int raw_clamp(int x, int most)
{
	return x < 0 ? 0 : x > most ? most : x;
}

GPU_INLINE int raw_at(const struct raw_job *job, struct raw_kind kind, int y, int x)
{
	const unsigned char *row = job->in + (uint64_t)y * job->row_bytes;

	return kind.is_deep ? ((const uint16_t *)(const void *)row)[x] : row[x];
}

/* A sum of 65536ths; those of u8 are below 2^31. */
GPU_INLINE int raw_channel(int64_t sum, int is_deep)
{
	return is_deep ? (int)(sum < 0                         ? 0
			       : sum >= (int64_t)65535 * 65536 ? 65535
							       : (sum + 32768) >> 16)
		       : raw_clamp(((int)sum + 32768) >> 16, 255);
}

/* The product of a coefficient and a number, without 64 bits where they are not needed. */
GPU_INLINE int64_t raw_product(int a, int b, int is_deep)
{
	return is_deep ? (int64_t)a * b : a * b;
}

GPU_INLINE void raw_from_yuv(const struct raw_job *job, int is_deep, int y, int u, int v, int *rgb)
{
	int64_t luma, red_v, green_u, green_v, blue_u;

	if (is_deep) {
		y >>= job->shift;
		u >>= job->shift;
		v >>= job->shift;
	}
	u -= job->middle;
	v -= job->middle;
	luma = raw_product(job->luma, y - job->black, is_deep);
	red_v = raw_product(job->red_v, v, is_deep);
	green_u = raw_product(job->green_u, u, is_deep);
	green_v = raw_product(job->green_v, v, is_deep);
	blue_u = raw_product(job->blue_u, u, is_deep);
	rgb[0] = raw_channel(luma + red_v, is_deep);
	rgb[1] = raw_channel(luma - green_u - green_v, is_deep);
	rgb[2] = raw_channel(luma + blue_u, is_deep);
}

/* Beyond the border a pattern is mirrored at its last pixel, which keeps the colours' places. */
GPU_INLINE int raw_mirrored(int x, int size)
{
	return x < 0 ? -x : x >= size ? 2 * size - 2 - x : x;
}

GPU_INLINE int raw_bayer_at(const struct raw_job *job, struct raw_kind kind, int y, int x)
{
	return raw_at(job, kind, raw_mirrored(y, job->rows), raw_mirrored(x, job->columns));
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

GPU_INLINE struct raw_sums raw_sums_at(const struct raw_job *job, struct raw_kind kind, int y,
				       int x)
{
	struct raw_sums s;

	s.centre = raw_at(job, kind, y, x);
	s.across = raw_bayer_at(job, kind, y, x - 1) + raw_bayer_at(job, kind, y, x + 1);
	s.down = raw_bayer_at(job, kind, y - 1, x) + raw_bayer_at(job, kind, y + 1, x);
	s.diag = raw_bayer_at(job, kind, y - 1, x - 1) + raw_bayer_at(job, kind, y - 1, x + 1) +
		 raw_bayer_at(job, kind, y + 1, x - 1) + raw_bayer_at(job, kind, y + 1, x + 1);
	s.far_across = s.far_down = 0;
	if (kind.layout == RAW_MALVAR) {
		s.far_across =
			raw_bayer_at(job, kind, y, x - 2) + raw_bayer_at(job, kind, y, x + 2);
		s.far_down = raw_bayer_at(job, kind, y - 2, x) + raw_bayer_at(job, kind, y + 2, x);
	}
	return s;
}

/* Green where red or blue is. */
GPU_INLINE int raw_green(struct raw_kind kind, const struct raw_sums *s)
{
	if (kind.layout == RAW_BILINEAR)
		return 4 * (s->across + s->down);
	return 8 * s->centre + 4 * (s->across + s->down) - 2 * (s->far_across + s->far_down);
}

/* Red where blue is, and blue where red is. */
GPU_INLINE int raw_opposite(struct raw_kind kind, const struct raw_sums *s)
{
	if (kind.layout == RAW_BILINEAR)
		return 4 * s->diag;
	return 12 * s->centre + 4 * s->diag - 3 * (s->far_across + s->far_down);
}

/* Where green is: the colour whose neighbours lie beside it, or above and below. */
GPU_INLINE int raw_beside(struct raw_kind kind, const struct raw_sums *s)
{
	if (kind.layout == RAW_BILINEAR)
		return 8 * s->across;
	return 10 * s->centre + 8 * s->across - 2 * s->diag - 2 * s->far_across + s->far_down;
}

GPU_INLINE int raw_above(struct raw_kind kind, const struct raw_sums *s)
{
	if (kind.layout == RAW_BILINEAR)
		return 8 * s->down;
	return 10 * s->centre + 8 * s->down - 2 * s->diag - 2 * s->far_down + s->far_across;
}

GPU_INLINE void raw_from_bayer(const struct raw_job *job, struct raw_kind kind, int y, int x,
			       int *rgb)
{
	const int most = kind.is_deep ? 65535 : 255;
	const int is_red_row = (y & 1) == job->red_y, is_red_column = (x & 1) == job->red_x;
	struct raw_sums s = raw_sums_at(job, kind, y, x);

	rgb[0] = rgb[1] = rgb[2] = 16 * s.centre;
	if (is_red_row == is_red_column) {
		rgb[1] = raw_green(kind, &s);
		rgb[is_red_row ? 2 : 0] = raw_opposite(kind, &s);
	} else {
		rgb[is_red_row ? 0 : 2] = raw_beside(kind, &s);
		rgb[is_red_row ? 2 : 0] = raw_above(kind, &s);
	}
	for (int c = 0; c < 3; c++)
		rgb[c] = raw_clamp((rgb[c] + 8) >> 4, most);
}

GPU_INLINE void raw_read(const struct raw_job *job, struct raw_kind kind, int y, int x, int *rgb)
{
	const int half = x / 2, pair = 4 * half, below = job->rows + y / 2;
	const unsigned char *planes, *row;
	uint64_t at;

	switch (kind.layout) {
	case RAW_SEMIPLANAR:
		raw_from_yuv(job, kind.is_deep, raw_at(job, kind, y, x),
			     raw_at(job, kind, below, 2 * half),
			     raw_at(job, kind, below, 2 * half + 1), rgb);
		break;
	case RAW_PLANAR:
		planes = job->in + (uint64_t)job->rows * job->row_bytes;
		at = (uint64_t)(y / 2) * (job->row_bytes / 2) + (uint64_t)half;
		raw_from_yuv(job, kind.is_deep, raw_at(job, kind, y, x), planes[at],
			     planes[at + job->row_bytes / 2 * (uint64_t)(job->rows / 2)], rgb);
		break;
	case RAW_YUYV:
	case RAW_UYVY:
		row = job->in + (uint64_t)y * job->row_bytes + pair;
		if (kind.layout == RAW_YUYV)
			raw_from_yuv(job, 0, row[2 * (x & 1)], row[1], row[3], rgb);
		else
			raw_from_yuv(job, 0, row[1 + 2 * (x & 1)], row[0], row[2], rgb);
		break;
	default:
		raw_from_bayer(job, kind, y, x, rgb);
	}
}

/* Four pixels of u8 whose YUV lies in whole words. Returns whether it read them so. */
GPU_INLINE int raw_read_words(const struct raw_job *job, struct raw_kind kind, int y, int x,
			      int rgb[4][3])
{
	const unsigned char *row = job->in + (uint64_t)y * job->row_bytes, *below;
	uint32_t first, second;

	if (kind.is_deep || !job->is_aligned)
		return 0;
	if (kind.layout == RAW_SEMIPLANAR) {
		below = job->in + (uint64_t)(job->rows + y / 2) * job->row_bytes;
		first = *(const uint32_t *)(const void *)(row + x);
		second = *(const uint32_t *)(const void *)(below + x);
		for (int i = 0; i < 4; i++)
			raw_from_yuv(job, 0, (int)(first >> (8 * i) & 0xff),
				     (int)(second >> (16 * (i / 2)) & 0xff),
				     (int)(second >> (16 * (i / 2) + 8) & 0xff), rgb[i]);
		return 1;
	}
	if (kind.layout != RAW_YUYV && kind.layout != RAW_UYVY)
		return 0;
	for (int pair = 0; pair < 2; pair++) {
		const int luma = kind.layout == RAW_YUYV ? 0 : 8, color = 8 - luma;

		first = *(const uint32_t *)(const void *)(row + 2 * x + 4 * pair);
		for (int i = 0; i < 2; i++)
			raw_from_yuv(job, 0, (int)(first >> (luma + 16 * i) & 0xff),
				     (int)(first >> color & 0xff),
				     (int)(first >> (color + 16) & 0xff), rgb[2 * pair + i]);
	}
	return 1;
}

#define RAW_ACROSS 4 /* pixels of a thread */

/* x: of the threads of a row */
GPU_INLINE void raw_pixels(const struct raw_job *job, struct raw_kind kind, int x, int y)
{
	uint64_t at;
	int rgb[RAW_ACROSS][3];

	x *= RAW_ACROSS;
	if (x >= job->columns || y >= job->rows)
		return;
	at = ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	if (!raw_read_words(job, kind, y, x, rgb))
		for (int i = 0; i < RAW_ACROSS; i++)
			if (x + i < job->columns)
				raw_read(job, kind, y, x + i, rgb[i]);
	if (!kind.is_deep && job->is_aligned) {
		uint32_t words[3] = {0, 0, 0};

		for (int i = 0; i < 12; i++)
			words[i / 4] |= (uint32_t)rgb[i / 3][i % 3] << (8 * (i % 4));
		for (int i = 0; i < 3; i++)
			((uint32_t *)(void *)(job->out + at))[i] = words[i];
		return;
	}
	for (int i = 0; i < RAW_ACROSS * 3; i++)
		if (x + i / 3 < job->columns && kind.is_deep)
			((uint16_t *)(void *)job->out)[at + (uint64_t)i] =
				(uint16_t)rgb[i / 3][i % 3];
		else if (x + i / 3 < job->columns)
			job->out[at + (uint64_t)i] = (unsigned char)rgb[i / 3][i % 3];
}

/* The kernels, X(name, layout, is_deep). */
#define RAW_KERNELS(X)                                                                             \
	X(vision_raw_nv12, RAW_SEMIPLANAR, 0)                                                      \
	X(vision_raw_p010, RAW_SEMIPLANAR, 1)                                                      \
	X(vision_raw_yuv420, RAW_PLANAR, 0)                                                        \
	X(vision_raw_yuyv, RAW_YUYV, 0)                                                            \
	X(vision_raw_uyvy, RAW_UYVY, 0)                                                            \
	X(vision_raw_bilinear, RAW_BILINEAR, 0)                                                    \
	X(vision_raw_bilinear_deep, RAW_BILINEAR, 1)                                               \
	X(vision_raw_malvar, RAW_MALVAR, 0)                                                        \
	X(vision_raw_malvar_deep, RAW_MALVAR, 1)

#define RAW_FUNCTION(name, layout, is_deep)                                                        \
	GPU_INLINE void name##_pixels(const struct raw_job *job, int x, int y)                     \
	{                                                                                          \
		const struct raw_kind kind = {layout, is_deep};                                    \
                                                                                                   \
		raw_pixels(job, kind, x, y);                                                       \
	}
RAW_KERNELS(RAW_FUNCTION)

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
