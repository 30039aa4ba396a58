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
	for (int j = 0; j < RAW_DOWN; j++, at += (uint64_t)job->columns * 3) {
		if (y + j >= job->rows)
			return;
		raw_bilinear_words(job, y + j, &rows[j], &rows[j + 1], &rows[j + 2],
				   (uint32_t *)(void *)(job->out + at));
	}
}

/*
 * Malvar, of u8 in whole words: two pixels at a time, of which one lies between them, in the halves
 * of a word. Sums of raw_sums go from -3060 to 7140, so a half has room for them; what a negative
 * one takes from the upper half is given back when the halves are taken apart.
 */

/* Pixels k and k + 2, of those from the first one on: from -2 to 5. */
GPU_INLINE uint32_t raw_two_at(const uint32_t words[3], int k)
{
	const uint32_t low = k < 0 ? words[0] : words[1], high = k < 0 ? words[1] : words[2];
	const uint32_t first = (uint32_t)(k < 0 ? k + 4 : k);

	return GPU_BYTES(low, high, (first + 2) << 8 | first) & 0x00ff00ffu;
}

/* Of pixels 0 and 2, and of pixels 1 and 3: themselves, and those beside them. */
struct raw_twos {
	uint32_t centre[2], across[2], far_across[2];
};

GPU_INLINE struct raw_twos raw_twos_at(const uint32_t words[3])
{
	struct raw_twos twos;

	for (int k = 0; k < 2; k++) {
		twos.centre[k] = raw_two_at(words, k);
		twos.across[k] = raw_two_at(words, k - 1) + raw_two_at(words, k + 1);
		twos.far_across[k] = raw_two_at(words, k - 2) + raw_two_at(words, k + 2);
	}
	return twos;
}

/* The halves of sums of 16ths, which hold what rounds them. */
GPU_INLINE int raw_lower(uint32_t sums)
{
	return (int)(sums << 16) >> 20;
}

GPU_INLINE int raw_upper(uint32_t sums)
{
	return (int)(sums + 0x8000u) >> 20;
}

/*
 * words: receives four pixels of RGB.
 * - rows: from two above the pixels to two below
 * - here: the pixels' own numbers
 * - own: the first pixel of the row's own colour, 0 or 1; constant in a kernel
 */
GPU_INLINE void raw_malvar_words(const struct raw_twos *rows, uint32_t here, int own,
				 int is_red_row, uint32_t words[3])
{
	const int between = 1 - own; /* green */
	const uint32_t half = 0x00080008u;
	uint32_t down, far_down, diag, far, green, same, opposite, above, base;

	down = rows[1].centre[own] + rows[3].centre[own];
	diag = rows[1].across[own] + rows[3].across[own];
	far = rows[2].far_across[own] + rows[0].centre[own] + rows[4].centre[own];
	green = 8 * rows[2].centre[own] + 4 * (rows[2].across[own] + down) - 2 * far + half;
	opposite = 12 * rows[2].centre[own] + 4 * diag - 3 * far + half;
	down = rows[1].centre[between] + rows[3].centre[between];
	far_down = rows[0].centre[between] + rows[4].centre[between];
	diag = rows[1].across[between] + rows[3].across[between];
	base = 10 * rows[2].centre[between] - 2 * diag + half;
	same = base + 8 * rows[2].across[between] - 2 * rows[2].far_across[between] + far_down;
	above = base + 8 * down - 2 * far_down + rows[2].far_across[between];
	raw_join(is_red_row,
		 GPU_BYTES(here, GPU_PACK(raw_lower(same), raw_upper(same), 0),
			   own == 0 ? 0x5240 : 0x3514),
		 GPU_BYTES(here, GPU_PACK(raw_lower(green), raw_upper(green), 0),
			   own == 0 ? 0x3514 : 0x5240),
		 own == 0 ? GPU_PACK(raw_lower(opposite), raw_lower(above),
				     GPU_PACK(raw_upper(opposite), raw_upper(above), 0))
			  : GPU_PACK(raw_lower(above), raw_lower(opposite),
				     GPU_PACK(raw_upper(above), raw_upper(opposite), 0)),
		 words);
}

/* Four columns from x on, and RAW_DOWN rows from y on. */
GPU_INLINE void raw_malvar(const struct raw_job *job, int y, int x)
{
	uint64_t at = ((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * 3;
	struct raw_twos rows[RAW_DOWN + 4];
	uint32_t here[RAW_DOWN + 4];

	GPU_UNROLL
	for (int j = 0; j < RAW_DOWN + 4; j++) { /* rows far beyond the last are not used */
		uint32_t words[3];

		raw_words_at(job, y + j - 2 < job->rows + 1 ? y + j - 2 : job->rows + 1, x, words);
		rows[j] = raw_twos_at(words);
		here[j] = words[1];
	}
	GPU_UNROLL
	for (int j = 0; j < RAW_DOWN; j++, at += (uint64_t)job->columns * 3) {
		const int is_red_row = (j & 1) == job->red_y; /* y is even */
		uint32_t *words = (uint32_t *)(void *)(job->out + at);

		if (y + j >= job->rows)
			return;
		if ((job->red_x == 0) == is_red_row)
			raw_malvar_words(rows + j, here[j + 2], 0, is_red_row, words);
		else
			raw_malvar_words(rows + j, here[j + 2], 1, is_red_row, words);
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
