// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "vision/convert.h"
#include "vision/resize.h"

static const struct convert rgb = {
	.channels = 3, .scale_max = 1.0, .alpha = 255, .order = {0, 1, 2, 3}};

static struct frame frame_of(const void *data, int64_t rows, int64_t columns, int64_t channels,
			     bool is_float)
{
	struct frame f = {.data = data,
			  .rows = rows,
			  .columns = columns,
			  .channels = channels,
			  .is_float = is_float};

	f.row_bytes = (size_t)(columns * channels) * frame_element_bytes(&f);
	return f;
}

Test(ops_convert, channel_order_swaps)
{
	const uint8_t in[] = {1, 2, 3, 4, 5, 6};
	struct frame f = frame_of(in, 1, 2, 3, false);
	struct convert c = rgb;
	uint8_t out[6];

	cr_assert_eq(vision_convert_is_identity(&c, &f), 1);
	c.order[0] = 2;
	c.order[2] = 0;
	cr_assert_eq(vision_convert_is_identity(&c, &f), 0);
	vision_convert(&c, &f, out);
	cr_assert_arr_eq(out, ((uint8_t[]){3, 2, 1, 6, 5, 4}), 6);
}

Test(ops_convert, planes_hold_one_channel_each)
{
	const uint8_t in[] = {1, 2, 3, 4, 5, 6};
	struct frame f = frame_of(in, 1, 2, 3, false);
	struct convert c = rgb;
	uint8_t out[6];
	float out_f[6];

	c.is_planar = true;
	cr_assert_eq(vision_convert_is_identity(&c, &f), 0);
	vision_convert(&c, &f, out);
	cr_assert_arr_eq(out, ((uint8_t[]){1, 4, 2, 5, 3, 6}), 6);
	c.is_float = true;
	c.scale_max = 255.0;
	vision_convert(&c, &f, out_f);
	for (int i = 0; i < 6; i++)
		cr_expect_float_eq(out_f[i], (float)out[i], 1e-6);
}

Test(ops_convert, alpha_is_set_kept_and_dropped)
{
	const uint8_t in3[] = {1, 2, 3}, in4[] = {1, 2, 3, 77};
	struct frame f3 = frame_of(in3, 1, 1, 3, false), f4 = frame_of(in4, 1, 1, 4, false);
	struct convert c = rgb;
	uint8_t out[4];

	c.channels = 4;
	c.alpha = 9;
	vision_convert(&c, &f3, out);
	cr_assert_arr_eq(out, ((uint8_t[]){1, 2, 3, 9}), 4);
	vision_convert(&c, &f4, out);
	cr_assert_arr_eq(out, in4, 4);
	c.order[0] = 3; /* ARGB */
	c.order[1] = 0;
	c.order[2] = 1;
	c.order[3] = 2;
	vision_convert(&c, &f4, out);
	cr_assert_arr_eq(out, ((uint8_t[]){77, 1, 2, 3}), 4);
	vision_convert(&rgb, &f4, out);
	cr_assert_arr_eq(out, in3, 3);
}

Test(ops_convert, gray_is_the_weighted_sum)
{
	const uint8_t in[] = {255, 255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255};
	struct frame f = frame_of(in, 1, 4, 3, false);
	struct convert c = rgb;
	uint8_t gray[4], back[12];

	c.channels = 1;
	vision_convert(&c, &f, gray);
	cr_assert_arr_eq(gray, ((uint8_t[]){255, 76, 150, 29}), 4);
	f = frame_of(gray, 1, 4, 1, false);
	vision_convert(&rgb, &f, back);
	cr_assert_arr_eq(back, ((uint8_t[]){255, 255, 255, 76, 76, 76, 150, 150, 150, 29, 29, 29}),
			 12);
}

/* Every u8 survives the way to f32 and back, for any scale, also one that turns round. */
Test(ops_convert, scale_round_trips)
{
	static const double scales[][2] = {{0, 1}, {-1, 1}, {0, 255}, {1, 0}, {-1000, 3}};
	uint8_t in[256], out[256];

	for (int i = 0; i < 256; i++)
		in[i] = (uint8_t)i;
	for (size_t s = 0; s < FRAG_COUNT_OF(scales); s++) {
		struct convert c = {.channels = 1,
				    .is_float = true,
				    .scale_min = scales[s][0],
				    .scale_max = scales[s][1]};
		struct frame f = frame_of(in, 16, 16, 1, false);
		float mid[256];

		vision_convert(&c, &f, mid);
		cr_assert_float_eq(mid[0], scales[s][0], 1e-4);
		cr_assert_float_eq(mid[255], scales[s][1], 1e-4);
		f = frame_of(mid, 16, 16, 1, true);
		c.is_float = false;
		vision_convert(&c, &f, out);
		cr_assert_arr_eq(out, in, 256);
	}
}

Test(ops_convert, floats_out_of_range_saturate)
{
	const float in[] = {-5.0f, 1.5f, NAN, INFINITY, -INFINITY, 0.5f};
	struct frame f = frame_of(in, 2, 3, 1, true);
	struct convert c = {.channels = 1, .scale_max = 1.0};
	uint8_t out[6];

	vision_convert(&c, &f, out);
	cr_assert_arr_eq(out, ((uint8_t[]){0, 255, 0, 255, 0, 128}), 6);
}

Test(ops_convert, rows_may_lie_apart)
{
	const uint8_t in[] = {1, 2, 3, 0, 0, 4, 5, 6, 0, 0};
	struct frame f = frame_of(in, 2, 1, 3, false);
	uint8_t out[6];

	f.row_bytes = 5;
	vision_convert(&rgb, &f, out);
	cr_assert_arr_eq(out, ((uint8_t[]){1, 2, 3, 4, 5, 6}), 6);
}

Test(ops_convert, a_picture_fits_into_every_size)
{
	static const int64_t sizes[] = {1, 2, 3, 7, 10, 640, 1000, 32767};

	for (size_t i = 0; i < 8 * 8 * 8 * 8; i++) {
		struct frame f = frame_of(NULL, sizes[i % 8], sizes[i / 8 % 8], 3, false);
		int64_t rows = sizes[i / 64 % 8], columns = sizes[i / 512];
		struct convert_place p = vision_convert_fit(&f, rows, columns);
		double high = (double)f.rows / (double)f.columns * (double)p.picture_columns;
		double wide = (double)f.columns / (double)f.rows * (double)p.picture_rows;

		cr_assert(p.picture_rows >= 1 && p.picture_columns >= 1);
		cr_assert(p.top >= 0 && p.left >= 0);
		/* one side is full, and the other has the ratio */
		cr_assert(p.picture_columns == columns
				  ? fabs(fmax(high, 1.0) - (double)p.picture_rows) <= 0.5 ||
					    p.picture_rows == rows
				  : p.picture_rows == rows &&
					    fabs(fmax(wide, 1.0) - (double)p.picture_columns) <=
						    0.5);
		/* in the middle */
		cr_assert(rows - p.picture_rows - 2 * p.top == 0 ||
			  rows - p.picture_rows - 2 * p.top == 1);
		cr_assert(columns - p.picture_columns - 2 * p.left == 0 ||
			  columns - p.picture_columns - 2 * p.left == 1);
	}
}

static const enum resize_mode modes[] = {RESIZE_DEFAULT, RESIZE_NEAREST, RESIZE_LINEAR,
					 RESIZE_CUBIC, RESIZE_SUPER};

/* A picture of one colour stays it, at any size. */
Test(ops_resize, flat_stays_flat)
{
	static const int64_t sizes[][2] = {{1, 1}, {7, 3}, {16, 16}, {5, 31}};
	uint8_t in[12 * 16 * 3] = {0}, out[31 * 31 * 3];
	struct frame f = frame_of(in, 12, 16, 3, false);

	memset(in, 201, sizeof(in));
	for (size_t m = 0; m < FRAG_COUNT_OF(modes); m++) {
		for (size_t s = 0; s < FRAG_COUNT_OF(sizes); s++) {
			int64_t rows = sizes[s][0], columns = sizes[s][1];

			memset(out, 0, sizeof(out));
			cr_assert_eq(vision_resize(&f, modes[m], rows, columns, out), 0);
			for (int64_t i = 0; i < rows * columns * 3; i++)
				cr_assert_eq(out[i], 201);
		}
	}
}

Test(ops_resize, same_size_is_a_copy)
{
	uint8_t in[9 * 11] = {0}, out[9 * 11];
	struct frame f = frame_of(in, 9, 11, 1, false);

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 37);
	for (size_t m = 0; m < FRAG_COUNT_OF(modes); m++) {
		cr_assert_eq(vision_resize(&f, modes[m], 9, 11, out), 0);
		cr_assert_arr_eq(out, in, sizeof(in));
	}
}

/* A ramp is what linear interpolation keeps exactly, away from the borders; cubic by Keys too. */
Test(ops_resize, ramps_stay_ramps)
{
	float in[32] = {0}, out[128];
	struct frame f = frame_of(in, 1, 32, 1, true);

	for (int i = 0; i < 32; i++)
		in[i] = (float)i;
	for (size_t m = 0; m < 2; m++) {
		cr_assert_eq(vision_resize(&f, m == 0 ? RESIZE_LINEAR : RESIZE_CUBIC, 1, 128, out),
			     0);
		for (int i = 8; i < 120; i++)
			cr_assert_float_eq(out[i], ((float)i + 0.5f) / 4.0f - 0.5f, 1e-4);
	}
}

Test(ops_resize, super_is_the_mean_of_the_area)
{
	const uint8_t in[] = {0, 100, 10, 30, 200, 100, 50, 10};
	struct frame f = frame_of(in, 2, 4, 1, false);
	uint8_t out[2];

	cr_assert_eq(vision_resize(&f, RESIZE_SUPER, 1, 2, out), 0);
	cr_assert_arr_eq(out, ((uint8_t[]){100, 25}), 2);
}

/* The side that grows is linear, the other one still a mean. */
Test(ops_resize, super_enlarges_linearly)
{
	const uint8_t in[] = {0, 100, 40, 20}; /* two rows, whose means are 20 and 60 */
	struct frame f = frame_of(in, 2, 2, 1, false);
	uint8_t out[4], linear[16], super[16];

	cr_assert_eq(vision_resize(&f, RESIZE_SUPER, 1, 4, out), 0);
	cr_assert_arr_eq(out, ((uint8_t[]){20, 30, 50, 60}), 4);
	cr_assert_eq(vision_resize(&f, RESIZE_SUPER, 4, 1, out), 0);
	cr_assert_arr_eq(out, ((uint8_t[]){50, 45, 35, 30}), 4);
	cr_assert_eq(vision_resize(&f, RESIZE_SUPER, 4, 4, super), 0);
	cr_assert_eq(vision_resize(&f, RESIZE_LINEAR, 4, 4, linear), 0);
	cr_assert_arr_eq(super, linear, 16);
}

Test(ops_resize, nearest_takes_pixels_as_they_are)
{
	const uint8_t in[] = {1, 2, 3, 4};
	struct frame f = frame_of(in, 2, 2, 1, false);
	uint8_t out[16];

	cr_assert_eq(vision_resize(&f, RESIZE_NEAREST, 4, 4, out), 0);
	cr_assert_arr_eq(out, ((uint8_t[]){1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}), 16);
}
