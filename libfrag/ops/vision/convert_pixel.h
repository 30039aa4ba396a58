/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_CONVERT_PIXEL_H
#define VISION_CONVERT_PIXEL_H

/*
 * What a thread of the GPU does: pixels of the output below each other, resized and converted, with
 * the operations of resize.c and convert.c in their order, so that the results are the same bits.
 * It is compiled by nvcc for GPUs, and by the C compiler for the tests, which run it on the CPU.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define CONVERT_INLINE static __device__ __forceinline__
#else
#define CONVERT_INLINE static inline __attribute__((always_inline))
#endif

/* Parameters of the kernels. Pointers are those of the GPU. */
struct convert_job {
	const unsigned char *in;
	unsigned char *out;
	/* of each column and row of the picture, if it is resized: convert_from, convert_weights */
	const void *across_taps, *down_taps;
	const float *values; /* [256]: what each u8 is as an f32 */
	uint64_t in_row_bytes;
	double scale_min, scale_span;
	int32_t in_rows, in_columns, in_channels, in_is_float;
	int32_t rows, columns, channels, is_float; /* of the picture */
	int32_t out_rows, out_columns, top, left;  /* the picture in the output */
	int32_t across, down;                      /* taps of each side; 0: the size stays */
	int32_t pixel_step;    /* elements from a pixel of the output to the next */
	uint64_t channel_step; /* elements from a channel of the output to the next */
	float alpha_f32;
	uint32_t alpha, pad;
	unsigned char order[4];
	/* only for the kernel in convert_rgb.h */
	void *planes[3]; /* where the values of a channel of the input go */
	uint32_t row_bytes;
	float line[3]; /* the values are line[0] * u8 + (line[1] * u8 + line[2]) */
};

#define CONVERT_THREADS_X 64
#define CONVERT_THREADS_Y 4
#define CONVERT_ROWS 4 /* pixels of a thread */

/*
 * The kernels, X(name, float input, channels of the input, taps): those of the usual formats of u8,
 * with the numbers as constants, and one that takes all numbers from the job (-1).
 */
#define CONVERT_KERNELS(X)                                                                         \
	X(convert_u8_1_0, 0, 1, 0)                                                                 \
	X(convert_u8_1_2, 0, 1, 2)                                                                 \
	X(convert_u8_1_4, 0, 1, 4)                                                                 \
	X(convert_u8_3_0, 0, 3, 0)                                                                 \
	X(convert_u8_3_2, 0, 3, 2)                                                                 \
	X(convert_u8_3_4, 0, 3, 4)                                                                 \
	X(convert_u8_4_0, 0, 4, 0)                                                                 \
	X(convert_u8_4_2, 0, 4, 2)                                                                 \
	X(convert_u8_4_4, 0, 4, 4)                                                                 \
	X(convert_any, -1, -1, -1)

/*
 * The table of a side has, for each place of the picture, the pixels of the input that its taps
 * read, and then their weights.
 */
CONVERT_INLINE const int32_t *convert_from(const void *table, int at, int taps)
{
	return (const int32_t *)table + (int64_t)at * 2 * taps;
}

CONVERT_INLINE const float *convert_weights(const void *table, int at, int taps)
{
	return (const float *)table + (int64_t)at * 2 * taps + taps;
}

/*
 * Between whole numbers from 0 to 255 and floats, without conversions, of which a GPU makes few at
 * a time: from 2^23 on the lowest bit of a float counts ones, so a sum is rounded as lrintf does,
 * and its last bits are the number.
 */
#define CONVERT_2_23 8388608.0f
#define CONVERT_2_23_BITS 0x4b000000u

CONVERT_INLINE float convert_float_of(unsigned char byte)
{
	uint32_t bits = CONVERT_2_23_BITS | byte;
	float sum;

	memcpy(&sum, &bits, sizeof(sum));
	return sum - CONVERT_2_23;
}

CONVERT_INLINE unsigned int convert_nearest(float x)
{
	float sum = fminf(fmaxf(x, 0.0f), 255.0f) + CONVERT_2_23;
	uint32_t bits;

	memcpy(&bits, &sum, sizeof(bits));
	return bits & 0xff;
}

CONVERT_INLINE float convert_element(const unsigned char *row, int at, int in_is_float)
{
	return in_is_float ? ((const float *)(const void *)row)[at] : convert_float_of(row[at]);
}

/* The channels of the input at a pixel of the output, resized. */
CONVERT_INLINE void convert_resized(const struct convert_job *job, int x, int y, float *sum)
{
	const int32_t *columns = convert_from(job->across_taps, x, job->across);
	const int32_t *rows = convert_from(job->down_taps, y, job->down);
	const float *across = convert_weights(job->across_taps, x, job->across);
	const float *down = convert_weights(job->down_taps, y, job->down);
	int channels = job->in_channels;

	for (int j = 0; j < job->down; j++) {
		const unsigned char *row = job->in + (uint64_t)rows[j] * job->in_row_bytes;
		float wide[4] = {0.0f, 0.0f, 0.0f, 0.0f};

		for (int k = 0; k < job->across; k++) {
			int from = columns[k] * channels;

			for (int c = 0; c < 4; c++)
				if (c < channels)
					wide[c] += across[k] *
						   convert_element(row, from + c, job->in_is_float);
		}
		for (int c = 0; c < 4; c++)
			if (c < channels)
				sum[c] += down[j] * wide[c];
	}
}

CONVERT_INLINE unsigned char convert_u8_of(const struct convert_job *job, float x)
{
	double u = (x - job->scale_min) / job->scale_span * 255.0;

	if (!(u > 0.0)) /* NaN too */
		return 0;
	return u >= 255.0 ? 255 : (unsigned char)lrint(u);
}

CONVERT_INLINE void convert_store_f32(const struct convert_job *job, const float *pixel,
				      uint64_t at)
{
	float red = pixel[0];

	if (job->channels == 1 && job->in_channels != 1)
		red = 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
	for (int c = 0; c < 4; c++) {
		int from = job->order[c];
		float value;

		if (c >= job->channels)
			break;
		if (job->channels == 1 || (job->in_channels == 1 && from < 3))
			value = red;
		else if (from == 3)
			value = job->in_channels == 4 ? pixel[3] : job->alpha_f32;
		else
			value = from == 0 ? pixel[0] : from == 1 ? pixel[1] : pixel[2];
		if (job->is_float)
			((float *)(void *)job->out)[at] = value;
		else
			job->out[at] = convert_u8_of(job, value);
		at += job->channel_step;
	}
}

/* Channel c of the output, of a pixel that has channel c in the bits from 8 * c on. */
CONVERT_INLINE unsigned int convert_channel(const struct convert_job *job, unsigned int pixel,
					    int c)
{
	return pixel >> (job->channels == 1 ? 0 : 8 * job->order[c]) & 0xff;
}

/* pixel: channel c in the bits from 8 * c on; at: element of the output */
CONVERT_INLINE void convert_store_u8(const struct convert_job *job, unsigned int pixel,
				     int in_channels, uint64_t at)
{
	if (in_channels == 1)
		pixel *= 0x010101u;
	else if (job->channels == 1)
		pixel = (19595u * (pixel & 0xff) + 38470u * (pixel >> 8 & 0xff) +
			 7471u * (pixel >> 16 & 0xff) + 32768u) >>
			16;
	if (in_channels != 4)
		pixel |= job->alpha << 24;
	/* in loops that become four stores with conditions */
	for (int c = 0; c < 4; c++)
		if (job->is_float && c < job->channels)
			((float *)(void *)job->out)[at + (uint64_t)c * job->channel_step] =
				job->values[convert_channel(job, pixel, c)];
	for (int c = 0; c < 4; c++)
		if (!job->is_float && c < job->channels)
			job->out[at + (uint64_t)c * job->channel_step] =
				(unsigned char)convert_channel(job, pixel, c);
}

/* A pixel of any format, with any number of taps. */
CONVERT_INLINE void convert_any_pixel(const struct convert_job *job, int x, int y, uint64_t at)
{
	const unsigned char *row = job->in + (uint64_t)y * job->in_row_bytes;
	float pixel[4] = {0.0f, 0.0f, 0.0f, 0.0f};
	unsigned int whole = 0;

	if (job->across > 0)
		convert_resized(job, x, y, pixel);
	else
		for (int c = 0; c < 4; c++)
			if (c < job->in_channels)
				pixel[c] = convert_element(row, x * job->in_channels + c,
							   job->in_is_float);
	if (job->in_is_float) {
		convert_store_f32(job, pixel, at);
		return;
	}
	for (int c = 0; c < 4; c++)
		if (c < job->in_channels)
			whole |= convert_nearest(pixel[c]) << (8 * c);
	convert_store_u8(job, whole, job->in_channels, at);
}

/* Where the taps of a column of the output lie in a row of the input, and their weights. */
struct convert_column {
	int from[4];
	float weights[4];
};

/*
 * The channels of a pixel of u8. Sums begin with their first product, and not with 0: that changes
 * the sign of a 0 at most, which rounding drops.
 */
CONVERT_INLINE unsigned int convert_resized_u8(const struct convert_job *job,
					       const struct convert_column *column, int y,
					       int channels, int taps)
{
	const int32_t *rows = convert_from(job->down_taps, y, taps);
	const float *weights = convert_weights(job->down_taps, y, taps);
	float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
	unsigned int pixel = 0;

	for (int j = 0; j < taps; j++) {
		const unsigned char *row = job->in + (uint64_t)rows[j] * job->in_row_bytes;
		float weight = weights[j];

		for (int c = 0; c < channels; c++) {
			float wide =
				column->weights[0] * convert_float_of(row[column->from[0] + c]);

			for (int k = 1; k < taps; k++)
				wide += column->weights[k] *
					convert_float_of(row[column->from[k] + c]);
			sum[c] = j == 0 ? weight * wide : sum[c] + weight * wide;
		}
	}
	for (int c = 0; c < channels; c++)
		pixel |= convert_nearest(sum[c]) << (8 * c);
	return pixel;
}

CONVERT_INLINE struct convert_column convert_column_at(const struct convert_job *job, int x,
						       int channels, int taps)
{
	struct convert_column column;

	for (int k = 0; k < taps; k++) {
		column.from[k] = convert_from(job->across_taps, x, taps)[k] * channels;
		column.weights[k] = convert_weights(job->across_taps, x, taps)[k];
	}
	return column;
}

/* A pixel beside the picture. at: element of the output */
CONVERT_INLINE void convert_store_pad(const struct convert_job *job, uint64_t at)
{
	for (int c = 0; c < job->channels; c++) {
		int is_alpha = job->channels > 1 && job->order[c] == 3;

		if (job->is_float)
			((float *)(void *)job->out)[at] =
				is_alpha ? job->alpha_f32 : job->values[job->pad];
		else
			job->out[at] = (unsigned char)(is_alpha ? job->alpha : job->pad);
		at += job->channel_step;
	}
}

/* The element of the output where a pixel begins. */
CONVERT_INLINE uint64_t convert_at(const struct convert_job *job, int x, int y)
{
	return ((uint64_t)y * (uint64_t)job->out_columns + (uint64_t)x) * (uint64_t)job->pixel_step;
}

/* The pixels of column x of the output, from row y on, that lie beside the picture. */
CONVERT_INLINE void convert_pads(const struct convert_job *job, int x, int y)
{
	int left = x - job->left;

	if (x >= job->out_columns)
		return;
	for (int end = y + CONVERT_ROWS; y < end && y < job->out_rows; y++) {
		int top = y - job->top;

		if (left < 0 || left >= job->columns || top < 0 || top >= job->rows)
			convert_store_pad(job, convert_at(job, x, y));
	}
}

/* Column x of the picture, from row y on. The last three as in CONVERT_KERNELS. */
CONVERT_INLINE void convert_pixels(const struct convert_job *job, int x, int y, int float_input,
				   int channels, int taps)
{
	uint64_t at = convert_at(job, x + job->left, y + job->top);
	struct convert_column column;

	if (x >= job->columns)
		return;
	if (float_input == 0)
		column = convert_column_at(job, x, channels, taps);
	for (int end = y + CONVERT_ROWS; y < end && y < job->rows; y++) {
		const unsigned char *row = job->in + (uint64_t)y * job->in_row_bytes;
		unsigned int pixel = 0;

		if (float_input != 0) {
			convert_any_pixel(job, x, y, at);
		} else {
			if (taps > 0)
				pixel = convert_resized_u8(job, &column, y, channels, taps);
			for (int c = 0; c < channels && taps == 0; c++)
				pixel |= (unsigned int)row[x * channels + c] << (8 * c);
			convert_store_u8(job, pixel, channels, at);
		}
		at += (uint64_t)job->out_columns * (uint64_t)job->pixel_step;
	}
}

#endif
