/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_CONVERT_RGB_H
#define VISION_CONVERT_RGB_H

#include "../gpu/kernel.h"
#include "convert_pixel.h"

/*
 * The kernels of the most frequent conversions: RGB of u8, resized with two taps on each side, to
 * three channels of f32 or u8 in any order. The rows of the input have a multiple of 4 bytes.
 *
 * It reads words, and not bytes, filters a row of the input that two pixels below each other share
 * once, and computes what a u8 is as an f32 instead of reading it from a table, where that gives
 * the same bits. Words that hold a byte of the frame may begin before it or end behind it; memory
 * of GPUs has whole words.
 */

#ifdef __CUDACC__
#define CONVERT_LOAD(pointer) __ldg(pointer)
#define CONVERT_UNROLL _Pragma("unroll")
#else
#define CONVERT_LOAD(pointer) (*(pointer))
#define CONVERT_UNROLL
#endif

/* What a channel is stored as: an f32 that is computed or read from a table, or a u8. */
enum convert_store { CONVERT_LINE, CONVERT_TABLE, CONVERT_BYTE };

/* The kernels, X(name, store), in the order of convert_store. */
#define CONVERT_RGB_KERNELS(X)                                                                     \
	X(convert_rgb_f32_line, CONVERT_LINE)                                                      \
	X(convert_rgb_f32, CONVERT_TABLE)                                                          \
	X(convert_rgb_u8, CONVERT_BYTE)

/* Two taps: an entry of the table of a side. */
struct convert_pair {
	int32_t from[2];
	float weights[2];
};

CONVERT_INLINE struct convert_pair convert_pair_at(const void *table, int at)
{
	struct convert_pair pair;
#ifdef __CUDACC__
	int4 words = __ldg((const int4 *)table + at);
#else
	struct convert_pair words = ((const struct convert_pair *)table)[at];
#endif
	memcpy(&pair, &words, sizeof(pair));
	return pair;
}

/* The two pixels that a column of the picture reads from a row of the input. */
struct convert_pixel_pair {
	const unsigned char *at;   /* of the word with the first byte, in the first row */
	unsigned int shift;        /* bits before that byte */
	int has_second, has_third; /* words with bytes of the pixels */
	uint32_t second;           /* selects the second pixel */
	float weights[2];
	float minus[2]; /* 2^23 times a weight, which a product with 2^23 + u8 has too much */
};

CONVERT_INLINE struct convert_pixel_pair convert_pixel_pair_at(const struct convert_job *job, int x)
{
	struct convert_pair taps = convert_pair_at(job->across_taps, x);
	uintptr_t first = (uintptr_t)job->in + (uintptr_t)(3 * taps.from[0]);
	/* at the border both taps read one pixel */
	int bytes = taps.from[0] != taps.from[1] ? 6 : 3, before = (int)(first & 3);

	return (struct convert_pixel_pair){
		.at = (const unsigned char *)(first - (uintptr_t)before),
		.shift = (unsigned int)before * 8,
		.has_second = before + bytes > 4,
		.has_third = before + bytes > 8,
		.second = bytes == 6 ? 0x7543 : 0x7210,
		.weights = {taps.weights[0], taps.weights[1]},
		.minus = {taps.weights[0] * -CONVERT_2_23, taps.weights[1] * -CONVERT_2_23},
	};
}

struct convert_words {
	uint32_t word[3];
};

CONVERT_INLINE struct convert_words convert_words_of(const struct convert_job *job,
						     const struct convert_pixel_pair *pair, int row)
{
	const uint32_t *at = (const uint32_t *)(const void *)(pair->at + (uint64_t)(uint32_t)row *
										 job->row_bytes);

	return (struct convert_words){{CONVERT_LOAD(at),
				       pair->has_second ? CONVERT_LOAD(at + 1) : 0,
				       pair->has_third ? CONVERT_LOAD(at + 2) : 0}};
}

CONVERT_INLINE uint32_t convert_shifted(uint32_t low, uint32_t high, unsigned int bits)
{
#ifdef __CUDACC__
	return __funnelshift_r(low, high, bits);
#else
	return (uint32_t)(((uint64_t)high << 32 | low) >> bits);
#endif
}

/* weight * byte, rounded once as a product is */
CONVERT_INLINE float convert_product(uint32_t pixel, int channel, float weight, float minus)
{
	uint32_t bits = GPU_BYTES(pixel, CONVERT_2_23_BITS, 0x7440u + (uint32_t)channel);
	float sum;

	memcpy(&sum, &bits, sizeof(sum));
	return fmaf(weight, sum, minus);
}

/* Filters a row of the input. */
CONVERT_INLINE void convert_wide(const struct convert_pixel_pair *pair, struct convert_words row,
				 float *wide)
{
	uint32_t low = convert_shifted(row.word[0], row.word[1], pair->shift);
	uint32_t high = convert_shifted(row.word[1], row.word[2], pair->shift);
	uint32_t second = GPU_BYTES(low, high, pair->second);

	for (int c = 0; c < 3; c++)
		wide[c] = convert_product(low, c, pair->weights[0], pair->minus[0]) +
			  convert_product(second, c, pair->weights[1], pair->minus[1]);
}

/*
 * Stores the u8 nearest to x, as what it is to be. Weights of two taps are from 0 to 1, and add up
 * to 1: x rounds to 0 to 255.
 * - to: where channel 0 of the output begins; at: the element
 */
CONVERT_INLINE void convert_put(const struct convert_job *job, void *to, uint32_t at, float x,
				int store)
{
	float sum = x + CONVERT_2_23, u8 = sum - CONVERT_2_23;
	uint32_t bits;

	memcpy(&bits, &sum, sizeof(bits));
	if (store == CONVERT_BYTE)
		((unsigned char *)to)[at] = (unsigned char)bits;
	else if (store == CONVERT_LINE)
		((float *)to)[at] = fmaf(u8, job->line[0], fmaf(u8, job->line[1], job->line[2]));
	else
		((float *)to)[at] = CONVERT_LOAD(job->values + (bits & 0xff));
}

/* Column x of the picture, from row y on. store: as a constant. */
CONVERT_INLINE void convert_rgb(const struct convert_job *job, int x, int y, int store)
{
	/* below 2^32, since sides are below 2^15 */
	uint32_t at = ((uint32_t)(y + job->top) * (uint32_t)job->out_columns +
		       (uint32_t)(x + job->left)) *
		      (uint32_t)job->pixel_step;
	uint32_t row_step = (uint32_t)(job->out_columns * job->pixel_step);
	struct convert_pixel_pair pair;
	float above[3], below[3] = {0.0f, 0.0f, 0.0f};
	int last = -1;

	if (x >= job->columns)
		return;
	pair = convert_pixel_pair_at(job, x);
	CONVERT_UNROLL
	for (int i = 0; i < CONVERT_ROWS; i++) {
		struct convert_words words;
		struct convert_pair taps;

		if (y + i >= job->rows)
			return;
		taps = convert_pair_at(job->down_taps, y + i);
		words = convert_words_of(job, &pair, taps.from[1]);
		if (i > 0 && taps.from[0] == last)
			memcpy(above, below, sizeof(above));
		else
			convert_wide(&pair, convert_words_of(job, &pair, taps.from[0]), above);
		convert_wide(&pair, words, below);
		last = taps.from[1];
		for (int c = 0; c < 3; c++)
			convert_put(job, job->planes[c], at,
				    taps.weights[0] * above[c] + taps.weights[1] * below[c], store);
		at += row_step;
	}
}

#endif
