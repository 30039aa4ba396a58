/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_CONVERT_PIXEL_H
#define VISION_CONVERT_PIXEL_H

/*
 * What a thread of the GPU does: one pixel of the output, resized and converted, with the
 * operations of resize.c and convert.c in their order, so that the results are the same bits. It is
 * compiled by nvcc for GPUs, and by the C compiler for the tests, which run it on the CPU.
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
	/* [columns], [columns][across], [rows], [rows][down]: struct taps; not without resizing */
	const int32_t *across_first, *down_first;
	const float *across_weights, *down_weights;
	const float *values; /* [256]: what each u8 is as an f32 */
	uint64_t in_row_bytes;
	double scale_min, scale_span;
	int32_t in_rows, in_columns, in_channels, in_is_float;
	int32_t rows, columns, channels, is_float;
	int32_t across, down;  /* taps of each side; 0: the size stays */
	int32_t pixel_step;    /* elements from a pixel of the output to the next */
	uint64_t channel_step; /* elements from a channel of the output to the next */
	float alpha_f32;
	unsigned char alpha, order[4];
};

#define CONVERT_THREADS_X 32
#define CONVERT_THREADS_Y 8

/*
 * The kernels, X(name, float input, channels of the input, taps): those of the usual formats, with
 * the numbers as constants, and one that takes all numbers from the job (-1).
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

CONVERT_INLINE int convert_clamp(int x, int size)
{
	return x < 0 ? 0 : x >= size ? size - 1 : x;
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
CONVERT_INLINE void convert_resized(const struct convert_job *job, int x, int y, int in_is_float,
				    int channels, int across, int down, float *sum)
{
	const float *weights = job->across_weights + (size_t)x * (size_t)across;
	int left = job->across_first[x], top = job->down_first[y];

	for (int c = 0; c < 4; c++)
		sum[c] = 0.0f;
	for (int j = 0; j < down; j++) {
		const unsigned char *row =
			job->in +
			(uint64_t)convert_clamp(top + j, job->in_rows) * job->in_row_bytes;
		float weight = job->down_weights[(size_t)y * (size_t)down + (size_t)j];
		float wide[4] = {0.0f, 0.0f, 0.0f, 0.0f};

		for (int k = 0; k < across; k++) {
			int from = convert_clamp(left + k, job->in_columns) * channels;

			for (int c = 0; c < 4; c++)
				if (c < channels)
					wide[c] += weights[k] *
						   convert_element(row, from + c, in_is_float);
		}
		for (int c = 0; c < 4; c++)
			if (c < channels)
				sum[c] += weight * wide[c];
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

CONVERT_INLINE void convert_store_u8(const struct convert_job *job, const unsigned int *pixel,
				     int in_channels, uint64_t at)
{
	unsigned int red = pixel[0];

	if (job->channels == 1 && in_channels != 1)
		red = (19595u * pixel[0] + 38470u * pixel[1] + 7471u * pixel[2] + 32768u) >> 16;
	for (int c = 0; c < 4; c++) {
		int from = job->order[c];
		unsigned int value;

		if (c >= job->channels)
			break;
		if (job->channels == 1 || (in_channels == 1 && from < 3))
			value = red;
		else if (from == 3)
			value = in_channels == 4 ? pixel[3] : job->alpha;
		else
			value = from == 0 ? pixel[0] : from == 1 ? pixel[1] : pixel[2];
		if (job->is_float)
			((float *)(void *)job->out)[at] = job->values[value];
		else
			job->out[at] = (unsigned char)value;
		at += job->channel_step;
	}
}

/* The last three as in CONVERT_KERNELS. */
CONVERT_INLINE void convert_pixel(const struct convert_job *job, int x, int y, int float_input,
				  int input_channels, int taps)
{
	int in_is_float = float_input >= 0 ? float_input : job->in_is_float;
	int channels = input_channels >= 0 ? input_channels : job->in_channels;
	int across = taps >= 0 ? taps : job->across, down = taps >= 0 ? taps : job->down;
	uint64_t at =
		((uint64_t)y * (uint64_t)job->columns + (uint64_t)x) * (uint64_t)job->pixel_step;
	unsigned int whole[4] = {0, 0, 0, 0};
	float pixel[4] = {0.0f, 0.0f, 0.0f, 0.0f};

	if (x >= job->columns || y >= job->rows)
		return;
	if (across > 0) {
		convert_resized(job, x, y, in_is_float, channels, across, down, pixel);
		for (int c = 0; c < 4; c++)
			if (!in_is_float)
				whole[c] =
					(unsigned int)lrintf(fminf(fmaxf(pixel[c], 0.0f), 255.0f));
	} else {
		const unsigned char *row = job->in + (uint64_t)y * job->in_row_bytes;

		for (int c = 0; c < 4; c++)
			if (c < channels && in_is_float)
				pixel[c] = ((const float *)(const void *)row)[x * channels + c];
			else if (c < channels)
				whole[c] = row[x * channels + c];
	}
	if (in_is_float)
		convert_store_f32(job, pixel, at);
	else
		convert_store_u8(job, whole, channels, at);
}

#endif
