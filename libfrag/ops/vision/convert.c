// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "convert.h"

int vision_convert_is_identity(const struct convert *convert, const struct frame *in)
{
	if (convert->channels != in->channels || convert->is_float != in->is_float ||
	    convert->is_deep != in->is_deep || convert->is_planar)
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

/* A float as a whole number from 0 to most. */
static uint16_t whole_of(const struct convert *convert, float x, double most)
{
	double u = (x - convert->scale_min) / (convert->scale_max - convert->scale_min) * most;

	if (!(u > 0.0)) /* NaN too */
		return 0;
	return (uint16_t)(u >= most ? most : rint(u));
}

/* Stores element `at` of the output, which comes as a float or as a u8. */
static void put_f32(const struct convert *convert, float x, int64_t at, void *out)
{
	if (convert->is_float)
		((float *)out)[at] = x;
	else if (convert->is_deep)
		((uint16_t *)out)[at] = whole_of(convert, x, UINT16_MAX);
	else
		((uint8_t *)out)[at] = (uint8_t)whole_of(convert, x, UINT8_MAX);
}

static void put_u8(const struct convert *convert, uint8_t x, const float *values, int64_t at,
		   void *out)
{
	if (convert->is_float)
		((float *)out)[at] = values[x];
	else if (convert->is_deep)
		((uint16_t *)out)[at] = (uint16_t)(x * 257);
	else
		((uint8_t *)out)[at] = x;
}

void vision_convert_values(const struct convert *convert, float values[256])
{
	for (int i = 0; i < 256; i++)
		values[i] = (float)(convert->scale_min +
				    i / 255.0 * (convert->scale_max - convert->scale_min));
}

static int64_t by_ratio(int64_t side, int64_t numerator, int64_t denominator)
{
	int64_t other = (2 * side * numerator + denominator) / (2 * denominator);

	return other < 1 ? 1 : other;
}

struct convert_place vision_convert_fit(const struct frame *in, int64_t rows, int64_t columns)
{
	bool is_wider = in->columns * rows > columns * in->rows;
	struct convert_place place = {
		.rows = rows,
		.columns = columns,
		.picture_rows = is_wider ? by_ratio(columns, in->rows, in->columns) : rows,
		.picture_columns = is_wider ? columns : by_ratio(rows, in->columns, in->rows),
	};

	place.top = (rows - place.picture_rows) / 2;
	place.left = (columns - place.picture_columns) / 2;
	return place;
}

/* Distances in the output, in elements. */
struct steps {
	int64_t pixel, channel, row;
};

static struct steps steps_of(const struct convert *convert, const struct convert_place *place)
{
	int64_t pixel = convert->is_planar ? 1 : convert->channels;

	return (struct steps){.pixel = pixel,
			      .channel = convert->is_planar ? place->rows * place->columns : 1,
			      .row = place->columns * pixel};
}

/* Writes pixels of a row of the output, from column `from` to before `to`. */
static void pad(const struct convert *convert, const struct steps *steps, const float *values,
		int64_t row, int64_t from, int64_t to, void *out)
{
	for (int64_t x = from; x < to; x++) {
		for (int64_t c = 0; c < convert->channels; c++) {
			int64_t at = row * steps->row + x * steps->pixel + c * steps->channel;
			bool is_alpha = convert->channels > 1 && convert->order[c] == 3;

			put_u8(convert, is_alpha ? convert->alpha : convert->pad, values, at, out);
		}
	}
}

/* Row y of a frame, from element `at` of the output on. */
static void convert_row(const struct convert *convert, const struct frame *in, int64_t y,
			const struct steps *steps, const float *values, int64_t at, void *out)
{
	const uint8_t *row = (const uint8_t *)in->data + (size_t)y * in->row_bytes;
	const float *row_f = (const float *)(const void *)row;

	for (int64_t x = 0; x < in->columns; x++, at += steps->pixel) {
		float pixel_float[4];
		uint8_t pixel[4];

		if (in->is_float) {
			pixel_f32(convert, row_f + x * in->channels, in->channels, pixel_float);
			for (int64_t c = 0; c < convert->channels; c++)
				put_f32(convert, pixel_float[c], at + c * steps->channel, out);
			continue;
		}
		pixel_u8(convert, row + x * in->channels, in->channels, pixel);
		for (int64_t c = 0; c < convert->channels; c++)
			put_u8(convert, pixel[c], values, at + c * steps->channel, out);
	}
}

void vision_convert_into(const struct convert *convert, const struct frame *in,
			 const struct convert_place *place, void *out)
{
	const struct steps steps = steps_of(convert, place);
	const int64_t right = place->left + in->columns;
	float values[256];

	vision_convert_values(convert, values);
	for (int64_t row = 0; row < place->rows; row++) {
		int64_t y = row - place->top;

		if (y < 0 || y >= in->rows) {
			pad(convert, &steps, values, row, 0, place->columns, out);
			continue;
		}
		pad(convert, &steps, values, row, 0, place->left, out);
		convert_row(convert, in, y, &steps, values,
			    row * steps.row + place->left * steps.pixel, out);
		pad(convert, &steps, values, row, right, place->columns, out);
	}
}

void vision_convert(const struct convert *convert, const struct frame *in, void *out)
{
	const struct convert_place place = {.rows = in->rows,
					    .columns = in->columns,
					    .picture_rows = in->rows,
					    .picture_columns = in->columns};

	vision_convert_into(convert, in, &place, out);
}
