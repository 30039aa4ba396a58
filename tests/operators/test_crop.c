// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "vision/vision.h"

#define ROWS 12
#define COLUMNS 24

static struct frag_message *cropped(struct frag_harness *h, struct frag_tensor *frame,
				    struct frag_tensor *boxes)
{
	struct frag_message *m;

	give_tensor(h, "source_video", "", frame);
	give_tensor(h, "boxes", "boxes", boxes);
	m = ticked(h, "out");
	return m;
}

/* A frame whose red is the column and whose green the row. */
static struct frag_tensor *coordinates(void)
{
	static uint8_t data[ROWS][COLUMNS][3];

	for (int y = 0; y < ROWS; y++) {
		for (int x = 0; x < COLUMNS; x++) {
			data[y][x][0] = (uint8_t)(x * 10);
			data[y][x][1] = (uint8_t)(y * 10);
		}
	}
	return tensor_of((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3,
			 (const int64_t[]){ROWS, COLUMNS, 3}, data);
}

Test(ops_crop, cuts_boxes_out_of_a_frame)
{
	const float boxes[] = {8 / 24.0f, 4 / 12.0f, 12 / 24.0f, 8 / 12.0f,
			       0,         0,         2 / 24.0f,  4 / 12.0f};
	struct frag_harness *h =
		make(&vision_crop_type, FRAG_ARGS({"width", "4"}, {"height", "4"}, {"scale", "1"}));
	struct frag_message *m = cropped(h, coordinates(), numbers(2, 4, boxes));
	const struct frag_tensor *crops = frag_message_tensor(m, ""),
				 *regions = frag_message_tensor(m, "boxes");
	const int64_t *shape = frag_tensor_dl(crops)->shape;
	const uint8_t *pixel = frag_tensor_data(crops);
	const float *region = frag_tensor_data(regions);

	cr_assert(frag_tensor_dl(crops)->ndim == 4 && shape[0] == 2 && shape[1] == 4 &&
		  shape[2] == 4 && shape[3] == 3);
	for (int y = 0; y < 4; y++) {
		for (int x = 0; x < 4; x++, pixel += 3)
			cr_expect(pixel[0] == (8 + x) * 10 && pixel[1] == (4 + y) * 10);
	}
	/* The second box is 2 wide and 4 high: a square from -1 on, where the border goes on. */
	for (int y = 0; y < 4; y++) {
		for (int x = 0; x < 4; x++, pixel += 3)
			cr_expect(pixel[0] == (x < 1 ? 0 : x - 1) * 10 && pixel[1] == y * 10);
	}
	for (int i = 0; i < 4; i++)
		cr_expect_float_eq(region[i], boxes[i], 1e-6);
	cr_expect_float_eq(region[4], -1 / 24.0, 1e-6);
	cr_expect_float_eq(region[6], 3 / 24.0, 1e-6);
	cr_expect_float_eq(region[7], 4 / 12.0, 1e-6);
	finish(h, m);
}

Test(ops_crop, enlarges_and_converts)
{
	/* The second one is more than it takes. */
	const float boxes[] = {8 / 24.0f, 4 / 12.0f, 12 / 24.0f, 8 / 12.0f, 0, 0, 1, 1};
	struct frag_harness *h =
		make(&vision_crop_type,
		     FRAG_ARGS({"width", "2"}, {"height", "2"}, {"out_dtype", "float32"},
			       {"scale", "2"}, {"scale_max", "255"}, {"max_boxes", "1"}));
	struct frag_message *m = cropped(h, coordinates(), numbers(1, 4, boxes));
	const float *number = frag_tensor_data(frag_message_tensor(m, ""));
	const float *region = frag_tensor_data(frag_message_tensor(m, "boxes"));

	cr_expect_float_eq(region[0], 6 / 24.0, 1e-6);
	cr_expect_float_eq(region[3], 10 / 12.0, 1e-6);
	cr_expect_float_eq(number[0], 75, 1e-3, "between columns 7 and 8: %g", number[0]);
	cr_expect_float_eq(number[1], 35, 1e-3, "between rows 3 and 4: %g", number[1]);
	cr_expect_float_eq(number[3], 115, 1e-3);
	frag_message_unref(m);

	m = cropped(h, coordinates(), numbers(2, 4, boxes));
	cr_assert_eq(frag_tensor_dl(frag_message_tensor(m, ""))->shape[0], 1);
	region = frag_tensor_data(frag_message_tensor(m, "boxes"));
	cr_expect_float_eq(region[0], 6 / 24.0, 1e-6, "the first one");
	frag_message_unref(m);
	m = cropped(h, coordinates(), numbers(0, 4, NULL));
	cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, ""))->shape[0], 0, "no box, no crop");
	finish(h, m);
}

/* A frame of f32 of one number. */
static struct frag_tensor *plain(int64_t channels, float number)
{
	const int64_t shape[] = {ROWS, COLUMNS, channels};
	struct frag_tensor *t =
		tensor_of((struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 3, shape, NULL);
	float *to = frag_tensor_writable(t);

	for (int64_t i = 0; i < ROWS * COLUMNS * channels; i++)
		to[i] = number;
	return t;
}

/* What a crop is cut out into before it is converted is large enough for each frame. */
Test(ops_crop, frames_may_have_more_channels_than_those_before)
{
	static const struct {
		int64_t channels;
		float number;
		uint8_t u8;
	} frames[] = {{1, 0.2f, 51}, {4, 0.4f, 102}, {3, 0.6f, 153}, {1, 0.8f, 204}, {4, 0.2f, 51}};
	const float all[] = {0, 0, 1, 1, 0.25f, 0.25f, 0.75f, 0.75f};
	struct frag_harness *h =
		make(&vision_crop_type, FRAG_ARGS({"width", "256"}, {"height", "256"},
						  {"scale", "1"}, {"out_dtype", "uint8"}));

	for (size_t i = 0; i < FRAG_COUNT_OF(frames); i++) {
		struct frag_message *m =
			cropped(h, plain(frames[i].channels, frames[i].number), numbers(2, 4, all));
		const struct frag_tensor *crops = frag_message_tensor(m, "");
		const uint8_t *pixel = frag_tensor_data(crops);

		cr_assert_eq(frag_tensor_size_bytes(crops),
			     (size_t)(2 * 256 * 256 * frames[i].channels));
		for (size_t k = 0; k < frag_tensor_size_bytes(crops); k++)
			cr_assert_eq(pixel[k], frames[i].u8, "frame %zu, %zu: %d", i, k, pixel[k]);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

Test(ops_crop, any_boxes_are_harmless)
{
	const float boxes[] = {NAN,    0, 1, 1, -INFINITY, 0, INFINITY, 1, 1e30f, 1e30f,
			       -1e30f, 0, 1, 1, 1,         1, 0.5f,     2, 0.25f, 9};
	struct frag_harness *h = make(
		&vision_crop_type, FRAG_ARGS({"width", "8"}, {"height", "8"}, {"max_boxes", "5"}));
	struct frag_tensor *bad;

	frag_message_unref(cropped(h, coordinates(), numbers(5, 4, boxes)));
	for (size_t i = 0; (bad = bad_boxes(i)) != NULL; i++) {
		give_tensor(h, "source_video", "", coordinates());
		give_tensor(h, "boxes", "boxes", bad);
		cr_expect_eq(frag_harness_tick(h), -EINVAL, "bad boxes %zu", i);
		cr_expect(strstr(frag_harness_error(h), "is not [n, 4] of f32") != NULL,
			  "bad boxes %zu: %s", i, frag_harness_error(h));
	}
	frag_message_unref(cropped(h, coordinates(), numbers(5, 4, boxes)));
	frag_harness_destroy(h);
}

Test(ops_resize, one_side_follows_the_ratio)
{
	struct frag_harness *h =
		make(&vision_resize_type, FRAG_ARGS({"width", "12"}, {"mode", "area"}));
	struct frag_message *m;
	const struct frag_tensor *t;
	const uint8_t *pixel;

	give_tensor(h, "in", "", coordinates());
	m = ticked(h, "out");
	t = frag_message_tensor(m, "");
	pixel = frag_tensor_data(t);
	cr_assert(frag_tensor_dl(t)->shape[0] == 6 && frag_tensor_dl(t)->shape[1] == 12);
	cr_expect(pixel[3] == 25 && pixel[1] == 5, "the mean of four pixels: %d, %d", pixel[3],
		  pixel[1]);
	finish(h, m);

	h = make(&vision_resize_type, FRAG_ARGS({"height", "24"}, {"mode", "area"}));
	give_tensor(h, "in", "", coordinates());
	m = ticked(h, "out");
	t = frag_message_tensor(m, "");
	cr_expect(frag_tensor_dl(t)->shape[0] == 24 && frag_tensor_dl(t)->shape[1] == 48);
	finish(h, m);
	cr_assert_null(frag_harness_create(&vision_resize_type, NULL, NULL), "no size");
}

/* The other side is rounded, and is never 0. */
Test(ops_resize, a_side_by_the_ratio_has_one_pixel_at_least)
{
	static const struct {
		const char *name, *value;
		int64_t rows, columns;
	} rows[] = {
		/* of 12 x 24 */
		{"width", "1", 1, 1},    {"width", "2", 1, 2},  {"width", "3", 2, 3},
		{"width", "23", 12, 23}, {"height", "1", 1, 2}, {"height", "13", 13, 26},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h =
			make(&vision_resize_type, FRAG_ARGS({rows[i].name, rows[i].value}));
		struct frag_message *m;
		const int64_t *shape;

		give_tensor(h, "in", "", coordinates());
		m = ticked(h, "out");
		shape = frag_tensor_dl(frag_message_tensor(m, ""))->shape;
		cr_expect(shape[0] == rows[i].rows && shape[1] == rows[i].columns, "%s %s: %d x %d",
			  rows[i].name, rows[i].value, (int)shape[0], (int)shape[1]);
		finish(h, m);
	}
}

Test(ops_resize, a_frame_of_that_size_is_passed_on)
{
	struct frag_harness *h = make(&vision_resize_type, FRAG_ARGS({"width", "24"}));
	struct frag_tensor *t = coordinates();
	const void *data = frag_tensor_data(t);
	struct frag_message *m;

	give_tensor(h, "in", "", t);
	m = ticked(h, "out");
	cr_assert_eq(frag_tensor_data(frag_message_tensor(m, "")), data);
	finish(h, m);
}

/* Regions of the crop's size: on whole pixels, as far as f32 can say it, and half a pixel off. */
Test(ops_crop, whole_pixels_stay_as_they_are)
{
	struct frag_harness *h = make(
		&vision_crop_type,
		FRAG_ARGS({"width", "8"}, {"height", "6"},
			  {"regions", "[[0.25, 0.25, 0.583333, 0.75], [0.2708333, 0.25, 0.6041666, "
				      "0.75], [0.666667, 0.5, 1, 1]]"}));
	static const struct {
		int64_t x, y;
		bool is_between;
	} places[] = {{6, 3, false}, {6, 3, true}, {16, 6, false}};
	struct frag_tensor *frame = coordinates();
	const uint8_t *from = frag_tensor_data(frame), *pixel;
	struct frag_message *m;

	frag_tensor_ref(frame);
	give_tensor(h, "source_video", "", frame);
	m = ticked(h, "out");
	pixel = frag_tensor_data(frag_message_tensor(m, ""));
	for (size_t i = 0; i < FRAG_COUNT_OF(places); i++) {
		for (int64_t k = 0; k < 6 * 8 * 3; k++, pixel++) {
			int64_t y = places[i].y + k / 24, x = places[i].x * 3 + k % 24;
			const uint8_t *at = from + y * COLUMNS * 3 + x;

			if (places[i].is_between)
				cr_expect(abs(*pixel * 2 - at[0] - at[3]) <= 1, "%zu, %d", i,
					  (int)k);
			else
				cr_expect_eq(*pixel, *at, "%zu, %d", i, (int)k);
		}
	}
	frag_tensor_unref(frame);
	finish(h, m);
}

Test(ops_crop, cuts_the_same_regions_out_of_every_frame)
{
	struct frag_harness *h =
		make(&vision_crop_type,
		     FRAG_ARGS({"width", "4"}, {"height", "4"},
			       {"regions", "[[0.25, 0.25, 0.5, 0.75], [0.0, 0.0, 0.125, 0.25]]"}));
	const float regions[] = {0.25f, 0.25f, 0.5f, 0.75f, 0, 0, 0.125f, 0.25f};

	for (int i = 0; i < 2; i++) {
		struct frag_message *m;
		const uint8_t *pixel;
		const struct frag_tensor *crops;

		give_tensor(h, "source_video", "", coordinates());
		m = ticked(h, "out");
		crops = frag_message_tensor(m, "");
		pixel = frag_tensor_data(crops);
		cr_assert_eq(frag_tensor_dl(crops)->shape[0], 2);
		cr_expect_arr_eq(frag_tensor_data(frag_message_tensor(m, "boxes")), regions,
				 sizeof(regions), "neither enlarged nor made square");
		/* 24 x 12 pixels: 6 columns from 6 on, 6 rows from 3 on, both to 4. */
		cr_expect(pixel[0] == 62 && pixel[1] == 32, "%d %d", pixel[0], pixel[1]);
		pixel += 3 * 16;
		/* 3 columns and 3 rows from 0 on. */
		cr_expect(pixel[0] == 0 && pixel[3 * 3] == 21, "%d", pixel[3 * 3]);
		frag_message_unref(m);
	}
	give_tensor(h, "source_video", "", coordinates());
	give_tensor(h, "boxes", "boxes", numbers(2, 4, regions));
	cr_expect_eq(frag_harness_tick(h), -EINVAL);
	cr_expect(strstr(frag_harness_error(h), "it has regions, and boxes came too") != NULL,
		  "said: %s", frag_harness_error(h));
	frag_harness_destroy(h);
}

Test(ops_crop, regions_that_are_none_are_refused)
{
	static const char *const bad[] = {
		"[[0.5, 0, 0.5, 1]]",  "[[0, 0.5, 1, 0.5]]", "[[0.5, 0, 0.4, 1]]",
		"[[0, 0.5, 1, 0.4]]",  "[[0, 0, 1, 2]]",     "[[0, 0, 1.01, 1]]",
		"[[0, 0, 1]]",         "[[0, 0, 1, 1, 1]]",  "[[0, 0, 1, nan]]",
		"[[0, 0, 1, 1x]]",     "[[0, -0.1, 1, 1]]",  "[[-0.1, 0, 1, 1]]",
		"[[0, 0, 1, 1], all]",
	};

	frag_harness_destroy(
		make(&vision_crop_type, FRAG_ARGS({"regions", "[[0, 0, 1, 1], [0.5, 0, 0.51, 1], "
							      "[0, 0.5, 1, 0.51]]"})));

	for (size_t i = 0; i < FRAG_COUNT_OF(bad); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_null(frag_harness_create(&vision_crop_type,
						   FRAG_ARGS({"regions", bad[i]}), &err));
		cr_expect(strstr(err.text, "of regions is no part of a frame") != NULL, "%s: %s",
			  bad[i], err.text);
	}
}
