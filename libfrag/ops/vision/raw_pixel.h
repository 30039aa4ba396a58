/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_RAW_PIXEL_H
#define VISION_RAW_PIXEL_H

#include "../gpu/kernel.h"

/*
 * A pixel of RGB of what cameras and decoders give: YUV in several layouts, and Bayer patterns. All
 * of it is arithmetic of integers, so the CPU and a GPU give the same numbers.
 */
enum raw_layout {
	RAW_SEMIPLANAR,
	RAW_PLANAR,
	RAW_YUYV,
	RAW_UYVY,
	RAW_BILINEAR,
	RAW_MALVAR,
	/* of a kernel only, in whole words: */
	RAW_BILINEAR_WORDS, /* RAW_BILINEAR of u8 */
	RAW_MALVAR_WORDS    /* RAW_MALVAR of u8 */
};

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
	int32_t is_aligned;   /* four numbers can be read at once, and written as RGB */
	int32_t red_x, red_y; /* of a Bayer pattern: 0 or 1, where red is */
	/* of YUV: of a number of as many bits as the input has, with RAW_FRACTION(_DEEP) bits */
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

/* Sums are below 2^31: those of u8 in 65536ths, and those of ten bits in 4096ths. */
#define RAW_FRACTION 16
#define RAW_FRACTION_DEEP 12

GPU_INLINE int raw_channel(int sum, int is_deep)
{
	const int fraction = is_deep ? RAW_FRACTION_DEEP : RAW_FRACTION;

	return raw_clamp((sum + (1 << (fraction - 1))) >> fraction, is_deep ? 65535 : 255);
}

GPU_INLINE void raw_from_yuv(const struct raw_job *job, int is_deep, int y, int u, int v, int *rgb)
{
	int luma;

	if (is_deep) {
		y >>= job->shift;
		u >>= job->shift;
		v >>= job->shift;
	}
	luma = job->luma * (y - job->black);
	u -= job->middle;
	v -= job->middle;
	rgb[0] = raw_channel(luma + job->red_v * v, is_deep);
	rgb[1] = raw_channel(luma - job->green_u * u - job->green_v * v, is_deep);
	rgb[2] = raw_channel(luma + job->blue_u * u, is_deep);
}

/* Beyond the border a pattern is mirrored at its last pixel, which keeps the colours' places. */
GPU_INLINE int raw_mirrored(int x, int size)
{
	return x < 0 ? -x : x >= size ? 2 * size - 2 - x : x;
}

#define RAW_ACROSS 4 /* pixels of a thread */

/* What a thread reads of a pattern: from two rows and columns before its first pixel on. */
struct raw_window {
	int at[5][RAW_ACROSS + 4];
};

/* reach: how far the neighbours are that count */
GPU_INLINE void raw_read_window(const struct raw_job *job, struct raw_kind kind, int y, int x,
				int reach, struct raw_window *out)
{
	const int is_inside = job->is_aligned && !kind.is_deep && x >= 4 && x + 8 <= job->columns;

	for (int j = 2 - reach; j <= 2 + reach; j++) {
		const int row_y = raw_mirrored(y + j - 2, job->rows);
		const uint32_t *words =
			(const uint32_t *)(const void *)(job->in +
							 (uint64_t)row_y * job->row_bytes + x);

		if (is_inside) {
			const uint32_t before = words[-1], here = words[0], after = words[1];

			for (int i = 0; i < 2; i++) {
				out->at[j][i] = (int)(before >> (16 + 8 * i) & 0xff);
				out->at[j][RAW_ACROSS + 2 + i] = (int)(after >> (8 * i) & 0xff);
			}
			for (int i = 0; i < RAW_ACROSS; i++)
				out->at[j][2 + i] = (int)(here >> (8 * i) & 0xff);
			continue;
		}
		for (int i = 2 - reach; i < RAW_ACROSS + 2 + reach; i++)
			if (x + i - 2 < job->columns + reach)
				out->at[j][i] = raw_at(job, kind, row_y,
						       raw_mirrored(x + i - 2, job->columns));
	}
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

/* i: of the pixels of a thread */
GPU_INLINE struct raw_sums raw_sums_at(struct raw_kind kind, const struct raw_window *window, int i)
{
	const int *above = &window->at[1][i + 2], *here = &window->at[2][i + 2];
	const int *below = &window->at[3][i + 2];
	struct raw_sums s;

	s.centre = here[0];
	s.across = here[-1] + here[1];
	s.down = above[0] + below[0];
	s.diag = above[-1] + above[1] + below[-1] + below[1];
	s.far_across = s.far_down = 0;
	if (kind.layout == RAW_MALVAR) {
		s.far_across = here[-2] + here[2];
		s.far_down = window->at[0][i + 2] + window->at[4][i + 2];
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

GPU_INLINE void raw_from_bayer(const struct raw_job *job, struct raw_kind kind,
			       const struct raw_window *window, int y, int x, int i, int *rgb)
{
	const int most = kind.is_deep ? 65535 : 255;
	const int is_red_row = (y & 1) == job->red_y;
	const int is_red_column = ((x + i) & 1) == job->red_x;
	struct raw_sums s = raw_sums_at(kind, window, i);

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

/*
 * Bilinear, of u8 in whole words: four pixels of a word are averaged at a time, and rounded as the
 * sums of raw_from_bayer are.
 */

/* (a + b + 1) / 2 of each byte */
GPU_INLINE uint32_t raw_mean_of_2(uint32_t a, uint32_t b)
{
	return (a | b) - (((a ^ b) >> 1) & 0x7f7f7f7fu);
}

/* (a + b + c + d + 2) / 4 of each byte */
GPU_INLINE uint32_t raw_mean_of_4(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	const uint32_t even = 0x00ff00ffu;
	uint32_t low = (a & even) + (b & even) + (c & even) + (d & even) + 0x00020002u;
	uint32_t high =
		(a >> 8 & even) + (b >> 8 & even) + (c >> 8 & even) + (d >> 8 & even) + 0x00020002u;

	return (low >> 2 & even) | (high << 6 & ~even);
}

/* Four pixels of a row, between the four before them and the four after. */
GPU_INLINE void raw_words_at(const struct raw_job *job, int y, int x, uint32_t words[3])
{
	const unsigned char *row = job->in + (uint64_t)raw_mirrored(y, job->rows) * job->row_bytes;
	const uint32_t *from = (const uint32_t *)(const void *)(row + x);

	words[1] = from[0];
	/* the two nearest beyond the border are mirrored */
	words[0] = x > 0 ? from[-1] : GPU_BYTES(words[1], words[1], 0x1200);
	words[2] = x + 4 < job->columns ? from[1] : GPU_BYTES(words[1], words[1], 0x0012);
}

/* Four pixels of a row, and those that lie before and after each of them. */
struct raw_row {
	uint32_t before, here, after;
};

GPU_INLINE struct raw_row raw_row_at(const struct raw_job *job, int y, int x)
{
	uint32_t w[3];

	raw_words_at(job, y, x, w);
	return (struct raw_row){w[1] << 8 | w[0] >> 24, w[1], w[1] >> 8 | w[2] << 24};
}

/*
 * Puts four pixels of RGB together.
 * - same: of the row's own colour, red or blue; other: of the other one
 * - words: receives them
 */
GPU_INLINE void raw_join(int is_red_row, uint32_t same, uint32_t green, uint32_t other,
			 uint32_t words[3])
{
	uint32_t red = is_red_row ? same : other, blue = is_red_row ? other : same;

	words[0] = GPU_BYTES(GPU_BYTES(red, green, 0x5140), blue, 0x2410);
	words[1] = GPU_BYTES(GPU_BYTES(green, blue, 0x2051), red, 0x3610);
	words[2] = GPU_BYTES(GPU_BYTES(red, green, 0x0730), blue, 0x7216);
}

/* words: receives four pixels of RGB */
GPU_INLINE void raw_bilinear_words(const struct raw_job *job, int y, const struct raw_row *above,
				   const struct raw_row *row, const struct raw_row *below,
				   uint32_t words[3])
{
	const int is_red_row = (y & 1) == job->red_y;
	/* where the pixel is of the row's own colour, and not green */
	const uint32_t own = (job->red_x == 0) == is_red_row ? 0x00ff00ffu : 0xff00ff00u;
	uint32_t across = raw_mean_of_2(row->before, row->after);
	uint32_t down = raw_mean_of_2(above->here, below->here);
	uint32_t cross = raw_mean_of_4(row->before, row->after, above->here, below->here);
	uint32_t diag = raw_mean_of_4(above->before, above->after, below->before, below->after);

	raw_join(is_red_row, (row->here & own) | (across & ~own),
		 (cross & own) | (row->here & ~own), (diag & own) | (down & ~own), words);
}

#define RAW_DOWN 4

/* Four columns from x on, and RAW_DOWN rows from y on. */
GPU_INLINE void raw_bilinear(const struct raw_job *job, int y, int x)
{
	uint64_t at = ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	struct raw_row rows[RAW_DOWN + 2];

	for (int j = 0; j < RAW_DOWN + 2; j++) /* the rows beyond the last are not used */
		rows[j] = raw_row_at(job, y + j - 1 < job->rows ? y + j - 1 : job->rows, x);
	for (int j = 0; j < RAW_DOWN; j++, at += (uint64_t)job->columns * 3)
		if (y + j < job->rows)
			raw_bilinear_words(job, y + j, &rows[j], &rows[j + 1], &rows[j + 2],
					   (uint32_t *)(void *)(job->out + at));
}

/*
 * Malvar, of u8 in whole words: four numbers of a row are multiplied by four weights at a time.
 * The weights are those of raw_sums, for five pixels of a row, of which the third is the pixel's.
 */
#define RAW_WEIGHTS(a, b, c, d, e)                                                                 \
	((uint64_t)(uint8_t)(a) | (uint64_t)(uint8_t)(b) << 8 | (uint64_t)(uint8_t)(c) << 16 |     \
	 (uint64_t)(uint8_t)(d) << 24 | (uint64_t)(uint8_t)(e) << 32)

/* i: of the four pixels of a thread; it and the weights are constant in a kernel */
GPU_INLINE int raw_weighted(const uint32_t words[3], int i, uint64_t weights, int sum)
{
	const int shift = 8 * (i + 2);
	const uint32_t first = (uint32_t)(weights << shift);
	const uint32_t second =
		(uint32_t)(shift < 32 ? weights >> (32 - shift) : weights << (shift - 32));
	const uint32_t third = (uint32_t)(weights >> (64 - shift));

	if (first != 0)
		sum = GPU_DOT(words[0], first, sum);
	if (second != 0)
		sum = GPU_DOT(words[1], second, sum);
	if (third != 0)
		sum = GPU_DOT(words[2], third, sum);
	return sum;
}

/* The weights of the pixel's row, of those beside it, and of those two rows away. */
GPU_INLINE int raw_filtered(const uint32_t (*rows)[3], int i, uint64_t here, uint64_t near,
			    uint64_t far)
{
	int sum = raw_weighted(rows[2], i, here, 8);

	sum = raw_weighted(rows[1], i, near, sum);
	sum = raw_weighted(rows[3], i, near, sum);
	sum = raw_weighted(rows[0], i, far, sum);
	return raw_weighted(rows[4], i, far, sum) >> 4;
}

/*
 * words: receives four pixels of RGB.
 * - rows: from two above the pixels to two below
 * - own: the first pixel of the row's own colour, 0 or 1; constant in a kernel
 */
GPU_INLINE void raw_malvar_words(const uint32_t (*rows)[3], int own, int is_red_row,
				 uint32_t words[3])
{
	int green[2], same[2], other[4];

	for (int i = 0; i < 4; i++) {
		if ((i & 1) != own) {
			same[i / 2] = raw_filtered(rows, i, RAW_WEIGHTS(-2, 8, 10, 8, -2),
						   RAW_WEIGHTS(0, -2, 0, -2, 0),
						   RAW_WEIGHTS(0, 0, 1, 0, 0));
			other[i] = raw_filtered(rows, i, RAW_WEIGHTS(1, 0, 10, 0, 1),
						RAW_WEIGHTS(0, -2, 8, -2, 0),
						RAW_WEIGHTS(0, 0, -2, 0, 0));
			continue;
		}
		green[i / 2] =
			raw_filtered(rows, i, RAW_WEIGHTS(-2, 4, 8, 4, -2),
				     RAW_WEIGHTS(0, 0, 4, 0, 0), RAW_WEIGHTS(0, 0, -2, 0, 0));
		other[i] = raw_filtered(rows, i, RAW_WEIGHTS(-3, 0, 12, 0, -3),
					RAW_WEIGHTS(0, 4, 0, 4, 0), RAW_WEIGHTS(0, 0, -3, 0, 0));
	}
	raw_join(is_red_row,
		 GPU_BYTES(rows[2][1], GPU_PACK(same[0], same[1], 0), own == 0 ? 0x5240 : 0x3514),
		 GPU_BYTES(rows[2][1], GPU_PACK(green[0], green[1], 0), own == 0 ? 0x3514 : 0x5240),
		 GPU_PACK(other[0], other[1], GPU_PACK(other[2], other[3], 0)), words);
}

/* Four columns from x on, and RAW_DOWN rows from y on. */
GPU_INLINE void raw_malvar(const struct raw_job *job, int y, int x)
{
	uint64_t at = ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	uint32_t rows[RAW_DOWN + 4][3];

	GPU_UNROLL
	for (int j = 0; j < RAW_DOWN + 4; j++) /* rows far beyond the last are not used */
		raw_words_at(job, y + j - 2 < job->rows + 1 ? y + j - 2 : job->rows + 1, x,
			     rows[j]);
	GPU_UNROLL
	for (int j = 0; j < RAW_DOWN; j++, at += (uint64_t)job->columns * 3) {
		const int is_red_row = (j & 1) == job->red_y; /* y is even */
		uint32_t *words = (uint32_t *)(void *)(job->out + at);

		if (y + j >= job->rows)
			return;
		if ((job->red_x == 0) == is_red_row)
			raw_malvar_words(rows + j, 0, is_red_row, words);
		else
			raw_malvar_words(rows + j, 1, is_red_row, words);
	}
}

/* The rows of a thread. */
GPU_INLINE int raw_down(int layout)
{
	return layout == RAW_BILINEAR_WORDS || layout == RAW_MALVAR_WORDS ? RAW_DOWN : 1;
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
		break;
	}
}

/* The pixels of a thread, of a Bayer pattern. */
GPU_INLINE void raw_read_bayer(const struct raw_job *job, struct raw_kind kind, int y, int x,
			       int rgb[RAW_ACROSS][3])
{
	struct raw_window window;

	raw_read_window(job, kind, y, x, kind.layout == RAW_MALVAR ? 2 : 1, &window);
	for (int i = 0; i < RAW_ACROSS; i++)
		if (x + i < job->columns)
			raw_from_bayer(job, kind, &window, y, x, i, rgb[i]);
}

/* Four pixels whose YUV lies in whole words. Returns whether it read them so. */
GPU_INLINE int raw_read_words(const struct raw_job *job, struct raw_kind kind, int y, int x,
			      int rgb[4][3])
{
	const unsigned char *row = job->in + (uint64_t)y * job->row_bytes, *below;
	uint32_t first, second;

	if (!job->is_aligned)
		return 0;
	below = job->in + (uint64_t)(job->rows + y / 2) * job->row_bytes;
	if (kind.layout == RAW_SEMIPLANAR && kind.is_deep) {
		const struct gpu_pair luma = *(const struct gpu_pair *)(const void *)(row + 2 * x);
		const struct gpu_pair color =
			*(const struct gpu_pair *)(const void *)(below + 2 * x);

		for (int i = 0; i < 4; i++)
			raw_from_yuv(job, 1, (int)(luma.at[i / 2] >> (16 * (i & 1)) & 0xffff),
				     (int)(color.at[i / 2] & 0xffff), (int)(color.at[i / 2] >> 16),
				     rgb[i]);
		return 1;
	}
	if (kind.layout == RAW_SEMIPLANAR) {
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

/* RAW_ACROSS pixels of a row. */
GPU_INLINE void raw_pixels_of_row(const struct raw_job *job, struct raw_kind kind, int x, int y)
{
	uint64_t at;
	int rgb[RAW_ACROSS][3];

	at = ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	if (kind.layout == RAW_BILINEAR || kind.layout == RAW_MALVAR)
		raw_read_bayer(job, kind, y, x, rgb);
	else if (!raw_read_words(job, kind, y, x, rgb))
		for (int i = 0; i < RAW_ACROSS; i++)
			if (x + i < job->columns)
				raw_read(job, kind, y, x + i, rgb[i]);
	if (job->is_aligned) {
		const int bytes = kind.is_deep ? 2 : 1, in_word = 4 / bytes;
		const int behind = (x / RAW_ACROSS / GPU_WARP + 1) * GPU_WARP * RAW_ACROSS;
		uint32_t words[6] = {0, 0, 0, 0, 0, 0};

		for (int i = 0; i < 12; i++)
			words[i / in_word] |= (uint32_t)rgb[i / 3][i % 3]
					      << (8 * bytes * (i % in_word));
		if (kind.is_deep) /* whose lines would be stored in three parts each */
			gpu_store((uint32_t *)(void *)(job->out + at * 2), words, 6,
				  behind <= job->columns);
		else
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

/* x, y: of the threads, of which each has raw_down rows */
GPU_INLINE void raw_pixels(const struct raw_job *job, struct raw_kind kind, int x, int y)
{
	x *= RAW_ACROSS;
	y *= raw_down(kind.layout);
	if (x >= job->columns || y >= job->rows)
		return;
	if (kind.layout == RAW_BILINEAR_WORDS)
		raw_bilinear(job, y, x);
	else if (kind.layout == RAW_MALVAR_WORDS)
		raw_malvar(job, y, x);
	else
		raw_pixels_of_row(job, kind, x, y);
}

/* The kernels, X(name, layout, is_deep). */
#define RAW_KERNELS(X)                                                                             \
	X(vision_raw_nv12, RAW_SEMIPLANAR, 0)                                                      \
	X(vision_raw_p010, RAW_SEMIPLANAR, 1)                                                      \
	X(vision_raw_yuv420, RAW_PLANAR, 0)                                                        \
	X(vision_raw_yuyv, RAW_YUYV, 0)                                                            \
	X(vision_raw_uyvy, RAW_UYVY, 0)                                                            \
	X(vision_raw_bilinear_words, RAW_BILINEAR_WORDS, 0)                                        \
	X(vision_raw_bilinear, RAW_BILINEAR, 0)                                                    \
	X(vision_raw_bilinear_deep, RAW_BILINEAR, 1)                                               \
	X(vision_raw_malvar_words, RAW_MALVAR_WORDS, 0)                                            \
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

#endif
