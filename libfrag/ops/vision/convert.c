/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "convert.h"

int vision_convert_is_identity(const struct convert *convert, const struct frame *in)
{
	if (convert->channels != in->channels || convert->is_float != in->is_float ||
	    convert->is_planar)
		return 0;
	for (int64_t c = 0; c < convert->channels; c++) {
		if (convert->order[c] != c)
			return 0;
	}
	return 1;
}

/* BT.601 luma in 16.16 fixed point (ITU-R BT.601-7, 2.5.1); the weights add up to 65536. */
static uint8_t luma_u8(const uint8_t *rgb)
{
	return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

static float luma_f32(const float *rgb)
{
	return 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

/* Chooses and orders the channels of one pixel, in the element type of the input. */
static void pixel_u8(const struct convert *convert, const uint8_t *in, int64_t in_channels,
		     uint8_t *out)
{
	uint8_t from[4];

	if (convert->channels == 1) {
		out[0] = in_channels == 1 ? in[0] : luma_u8(in);
		return;
	}
	for (int c = 0; c < 3; c++)
		from[c] = in[in_channels == 1 ? 0 : c];
	from[3] = in_channels == 4 ? in[3] : convert->alpha;
	for (int64_t c = 0; c < convert->channels; c++)
		out[c] = from[convert->order[c]];
}

float vision_convert_alpha(const struct convert *convert)
{
	return (float)(convert->scale_min +
		       convert->alpha / 255.0 * (convert->scale_max - convert->scale_min));
}

static void pixel_f32(const struct convert *convert, const float *in, int64_t in_channels,
		      float *out)
{
	float from[4];

	if (convert->channels == 1) {
		out[0] = in_channels == 1 ? in[0] : luma_f32(in);
		return;
	}
	for (int c = 0; c < 3; c++)
		from[c] = in[in_channels == 1 ? 0 : c];
	from[3] = in_channels == 4 ? in[3] : vision_convert_alpha(convert);
	for (int64_t c = 0; c < convert->channels; c++)
		out[c] = from[convert->order[c]];
}

static uint8_t u8_of(const struct convert *convert, float x)
{
	double u = (x - convert->scale_min) / (convert->scale_max - convert->scale_min) * 255.0;

	if (!(u > 0.0)) /* NaN too */
		return 0;
	return u >= 255.0 ? 255 : (uint8_t)lrint(u);
}

void vision_convert_values(const struct convert *convert, float values[256])
{
	for (int i = 0; i < 256; i++)
		values[i] = (float)(convert->scale_min +
				    i / 255.0 * (convert->scale_max - convert->scale_min));
}

void vision_convert(const struct convert *convert, const struct frame *in, void *out)
{
	int64_t in_step = in->channels, out_step = convert->is_planar ? 1 : convert->channels;
	int64_t next_channel = convert->is_planar ? in->rows * in->columns : 1;
	float table[256];

	vision_convert_values(convert, table);
	for (int64_t y = 0; y < in->rows; y++) {
		const uint8_t *row = (const uint8_t *)in->data + (size_t)y * in->row_bytes;
		const float *row_f = (const float *)(const void *)row;
		uint8_t *to = (uint8_t *)out + y * in->columns * out_step;
		float *to_f = (float *)out + y * in->columns * out_step;

		for (int64_t x = 0; x < in->columns; x++) {
			float pixel_float[4];
			uint8_t pixel[4];

			if (in->is_float) {
				pixel_f32(convert, row_f + x * in_step, in->channels, pixel_float);
				for (int64_t c = 0; c < convert->channels; c++) {
					int64_t at = x * out_step + c * next_channel;

					if (convert->is_float)
						to_f[at] = pixel_float[c];
					else
						to[at] = u8_of(convert, pixel_float[c]);
				}
				continue;
			}
			pixel_u8(convert, row + x * in_step, in->channels, pixel);
			for (int64_t c = 0; c < convert->channels; c++) {
				int64_t at = x * out_step + c * next_channel;

				if (convert->is_float)
					to_f[at] = table[pixel[c]];
				else
					to[at] = pixel[c];
			}
		}
	}
}
