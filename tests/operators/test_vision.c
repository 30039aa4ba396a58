// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "vision/vision.h"

static struct frag_tensor *picture(int64_t rows, int64_t columns, int64_t channels, uint8_t value)
{
	int64_t shape[] = {rows, columns, channels};
	struct frag_tensor *t;

	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape, &t),
		0);
	memset(frag_tensor_writable(t), value, frag_tensor_size_bytes(t));
	return t;
}

static struct frag_message *run_once(struct frag_harness *h, const char *in, const char *out,
				     struct frag_tensor *t)
{
	struct frag_message *m = NULL;

	give_tensor(h, in, "", t);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, out, &m), 0);
	return m;
}

Test(ops_format_converter, resizes_and_converts)
{
	struct frag_harness *h = make(
		&vision_format_converter_type,
		FRAG_ARGS({"out_dtype", "float32"}, {"resize_width", "8"}, {"resize_height", "4"},
			  {"out_tensor_name", "small"}, {"scale_min", "-1"}, {"scale_max", "1"}));
	struct frag_message *m = run_once(h, "source_video", "tensor", picture(16, 32, 4, 255));
	const struct frag_tensor *t = frag_message_tensor(m, "small");
	const struct frag_dltensor *dl;

	cr_assert_not_null(t);
	dl = frag_tensor_dl(t);
	cr_assert(dl->ndim == 3 && dl->shape[0] == 4 && dl->shape[1] == 8 && dl->shape[2] == 3);
	cr_assert(dl->dtype.code == FRAG_DTYPE_FLOAT && dl->dtype.bits == 32);
	for (int i = 0; i < 4 * 8 * 3; i++)
		cr_assert_float_eq(((const float *)frag_tensor_data(t))[i], 1.0, 1e-5);
	finish(h, m);
}

Test(ops_format_converter, writes_planes)
{
	struct frag_harness *h = make(&vision_format_converter_type,
				      FRAG_ARGS({"out_dtype", "rgb888"}, {"out_layout", "chw"},
						{"out_channel_order", "[2, 1, 0]"}));
	struct frag_tensor *t = picture(4, 5, 3, 0);
	struct frag_message *m;
	const struct frag_dltensor *dl;
	const uint8_t *out;

	for (int i = 0; i < 4 * 5 * 3; i++)
		((uint8_t *)frag_tensor_writable(t))[i] = (uint8_t)(i % 3);
	m = run_once(h, "source_video", "tensor", t);
	dl = frag_tensor_dl(frag_message_tensor(m, ""));
	out = frag_tensor_data(frag_message_tensor(m, ""));
	cr_assert(dl->ndim == 3 && dl->shape[0] == 3 && dl->shape[1] == 4 && dl->shape[2] == 5);
	for (int i = 0; i < 3 * 20; i++)
		cr_expect_eq(out[i], 2 - i / 20);
	finish(h, m);
}

/* A frame of 2 x 4 in 7 x 8: a row above, two below; beside the picture, alpha is alpha_value. */
Test(ops_format_converter, pads_to_keep_the_ratio)
{
	struct frag_harness *h =
		make(&vision_format_converter_type,
		     FRAG_ARGS({"out_dtype", "rgba8888"}, {"resize_width", "8"},
			       {"resize_height", "7"}, {"resize_mode", "1"}, {"pad", "true"},
			       {"pad_value", "114"}, {"alpha_value", "9"}));
	struct frag_message *m = run_once(h, "source_video", "tensor", picture(2, 4, 4, 200));
	const struct frag_dltensor *dl = frag_tensor_dl(frag_message_tensor(m, ""));
	const uint8_t *out = frag_tensor_data(frag_message_tensor(m, ""));

	cr_assert(dl->ndim == 3 && dl->shape[0] == 7 && dl->shape[1] == 8 && dl->shape[2] == 4);
	for (int i = 0; i < 7 * 8 * 4; i++)
		cr_expect_eq(out[i],
			     i / 32 >= 1 && i / 32 < 5 ? 200
			     : i % 4 == 3              ? 9
						       : 114,
			     "element %d is %d", i, out[i]);
	finish(h, m);
}

Test(ops_format_converter, pads_planes_of_floats)
{
	struct frag_harness *h = make(
		&vision_format_converter_type,
		FRAG_ARGS({"out_dtype", "float32"}, {"resize_width", "5"}, {"resize_height", "4"},
			  {"resize_mode", "2"}, {"out_layout", "chw"}, {"pad", "true"},
			  {"pad_value", "51"}, {"scale_min", "-1"}, {"scale_max", "1"}));
	/* of the same size, so that nothing is resized */
	struct frag_message *m = run_once(h, "source_video", "tensor", picture(4, 2, 3, 255));
	const struct frag_dltensor *dl = frag_tensor_dl(frag_message_tensor(m, ""));
	const float *out = frag_tensor_data(frag_message_tensor(m, ""));

	cr_assert(dl->ndim == 3 && dl->shape[0] == 3 && dl->shape[1] == 4 && dl->shape[2] == 5);
	for (int i = 0; i < 3 * 4 * 5; i++)
		cr_expect_float_eq(out[i], i % 5 == 1 || i % 5 == 2 ? 1.0 : -0.6, 1e-6,
				   "element %d is %g", i, (double)out[i]);
	finish(h, m);
}

Test(ops_format_converter, passes_on_what_is_as_wanted)
{
	struct frag_harness *h =
		make(&vision_format_converter_type, FRAG_ARGS({"out_dtype", "rgb888"}));
	struct frag_tensor *t = picture(4, 4, 3, 1);
	const void *data = frag_tensor_data(t);
	struct frag_message *m = run_once(h, "source_video", "tensor", t);

	cr_assert_eq(frag_tensor_data(frag_message_tensor(m, "")), data, "no copy");
	finish(h, m);
}

Test(ops_format_converter, takes_its_output_from_a_pool)
{
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 (const struct frag_arg[]){{"storage_type", "2"},
					   {"block_size", "48"},
					   {"num_blocks", "1"},
					   {NULL, NULL}}},
		{NULL, NULL, NULL},
	};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create_with(
		&vision_format_converter_type,
		FRAG_ARGS({"out_dtype", "rgb888"}, {"pool", "$pool"}), pools, &err);
	struct frag_message *m;

	cr_assert_not_null(h, "%s", err.text);
	m = run_once(h, "source_video", "tensor", picture(4, 4, 4, 1));
	give_tensor(h, "source_video", "", picture(4, 4, 4, 1));
	cr_assert_eq(frag_harness_tick(h), -ENOMEM, "the only block is out");
	cr_assert(strstr(frag_harness_error(h), "pool") != NULL, "said: %s", frag_harness_error(h));
	finish(h, m);
}

Test(ops_format_converter, refuses_by_name)
{
	static const struct {
		struct frag_arg args[4];
		const char *says;
	} cases[] = {
		{{{"out_dtype", "nv12"}}, "not built yet"},
		{{{"out_dtype", "rgb"}}, "not a valid format"},
		{{{"resize_width", "3"}}, "out_dtype"},
		{{{"out_dtype", "rgb888"}, {"resize_width", "3"}}, "give both"},
		{{{"out_dtype", "rgb888"}, {"resize_mode", "16"}}, "not built yet"},
		{{{"out_dtype", "rgb888"}, {"out_channel_order", "[0, 1, 4]"}}, "channel 4"},
		{{{"out_dtype", "float32"}, {"scale_min", "1"}}, "differ"},
		{{{"out_dtype", "rgb888"}, {"pad", "true"}}, "pad is true without a new size"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(
			frag_harness_create(&vision_format_converter_type, cases[i].args, &err),
			"case %zu", i);
		cr_assert(strstr(err.text, cases[i].says) != NULL, "case %zu said: %s", i,
			  err.text);
	}
}

Test(ops_format_converter, refuses_frames_that_are_none)
{
	int64_t shape[] = {2, 2, 3};
	struct frag_harness *h = make(&vision_format_converter_type,
				      FRAG_ARGS({"out_dtype", "rgb888"}, {"in_dtype", "rgb888"}));
	struct frag_tensor *t;

	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_INT, 16, 1}, 3, shape, &t),
		0);
	give_tensor(h, "source_video", "", t);
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_assert(strstr(frag_harness_error(h), "u8 nor f32") != NULL, "said: %s",
		  frag_harness_error(h));
	frag_harness_destroy(h);

	h = make(&vision_format_converter_type,
		 FRAG_ARGS({"out_dtype", "rgb888"}, {"in_dtype", "rgb888"}));
	give_tensor(h, "source_video", "", picture(2, 2, 4, 0));
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_assert(strstr(frag_harness_error(h), "in_dtype is rgb888") != NULL, "said: %s",
		  frag_harness_error(h));
	frag_harness_destroy(h);
}

static uint8_t at(const struct frag_tensor *t, int64_t x, int64_t y, int64_t c)
{
	const struct frag_dltensor *dl = frag_tensor_dl(t);

	return ((const uint8_t *)frag_tensor_data(t))[(y * dl->shape[1] + x) * dl->shape[2] + c];
}

Test(ops_motion_boxes, draws_its_boxes_and_tells_them)
{
	struct frag_harness *h =
		make(&vision_motion_boxes_type,
		     FRAG_ARGS({"warmup", "3"}, {"min_area", "100"}, {"color", "[255, 0, 0]"}));

	for (int i = 0; i < 20; i++) {
		struct frag_tensor *t = picture(64, 96, 3, 90);
		uint8_t *p = frag_tensor_writable(t);
		const void *given = frag_tensor_data(t);
		struct frag_message *m;
		const struct frag_tensor *boxes, *out;

		for (int y = 20; y < 40 && i >= 3; y++)
			memset(p + (y * 96 + 2 * i) * 3, 240, 20 * 3);
		m = run_once(h, "in", "out", t);
		out = frag_message_tensor(m, "");
		boxes = frag_message_tensor(m, "boxes");
		cr_assert(out != NULL && boxes != NULL);
		cr_assert_eq(frag_tensor_dl(boxes)->ndim, 2);
		cr_assert_eq(frag_tensor_dl(boxes)->shape[1], 4);
		cr_assert_eq(frag_tensor_dl(boxes)->shape[0], i >= 3 ? 1 : 0, "frame %d", i);
		if (i < 3) {
			cr_assert_eq(frag_tensor_data(out), given,
				     "a frame without boxes is passed on");
		} else {
			const float *b = frag_tensor_data(boxes);

			/* Parts of the frame: x of 96 columns, y of 64 rows. */
			int64_t x0 = lroundf(b[0] * 96), y0 = lroundf(b[1] * 64);
			int64_t x1 = lroundf(b[2] * 96), y1 = lroundf(b[3] * 64);

			cr_assert_float_eq((double)b[0], 2 * i / 96.0, 4 / 96.0);
			cr_assert_float_eq((double)b[1], 20 / 64.0, 4 / 64.0);
			cr_assert_float_eq((double)b[2], (2 * i + 20) / 96.0, 4 / 96.0);
			cr_assert_float_eq((double)b[3], 40 / 64.0, 4 / 64.0);
			cr_assert(at(out, x0, y0, 0) == 255 && at(out, x0, y0, 1) == 0);
			cr_assert(at(out, x1 - 1, y1 - 1, 0) == 255 &&
				  at(out, x1 - 1, y1 - 1, 2) == 0);
			cr_assert_eq(at(out, 2 * i + 10, 30, 1), 240, "the inside stays");
			cr_assert_eq(at(out, x1, y1, 0), 90, "the outside stays");
		}
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

/* Frames of another size have no background yet, also where they have as many pixels. */
Test(ops_motion_boxes, a_frame_of_another_size_begins_anew)
{
	static const struct {
		int64_t rows, columns;
	} sizes[] = {{64, 96}, {96, 64}, {48, 96}, {64, 96}, {64, 72}};
	struct frag_harness *h =
		make(&vision_motion_boxes_type, FRAG_ARGS({"warmup", "3"}, {"min_area", "100"}));

	for (size_t i = 0; i < FRAG_COUNT_OF(sizes); i++) {
		for (int k = 0; k < 5; k++) {
			struct frag_tensor *frame = picture(sizes[i].rows, sizes[i].columns, 3, 90);
			uint8_t *p = frag_tensor_writable(frame);
			struct frag_message *m;

			/*
			 * From the second frame on a bar is there, over the whole width, so that it
			 * is one in rows of any length, and from the fourth on elsewhere.
			 */
			if (k > 0)
				memset(p + (k < 3 ? 8 : 24) * sizes[i].columns * 3, 240,
				       (size_t)(6 * sizes[i].columns * 3));
			m = run_once(h, "in", "out", frame);
			cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, "boxes"))->shape[0] > 0,
				     k >= 3, "size %zu, frame %d", i, k);
			frag_message_unref(m);
		}
	}
	frag_harness_destroy(h);
}

/* Lines are drawn inside a box, however thick they are, also in one with a middle. */
Test(ops_motion_boxes, lines_stay_within_their_box)
{
	static const struct {
		const char *thickness;
		int64_t width, height;
	} rows[] = {
		{"0", 20, 20}, {"1", 21, 9},   {"2", 9, 21},   {"3", 31, 7},
		{"3", 7, 31},  {"100", 31, 7}, {"100", 7, 31}, {"100", 20, 20},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const int64_t t = atoi(rows[i].thickness);
		struct frag_harness *h =
			make(&vision_motion_boxes_type,
			     FRAG_ARGS({"warmup", "3"}, {"min_area", "20"},
				       {"color", "[255, 0, 0]"}, {"thickness", rows[i].thickness}));
		struct frag_message *m = NULL;
		const struct frag_tensor *out;
		const float *b;
		int64_t box[4];

		for (int k = 0; k < 4; k++) {
			struct frag_tensor *frame = picture(64, 96, 3, 90);
			uint8_t *p = frag_tensor_writable(frame);

			for (int64_t y = 20; y < 20 + rows[i].height && k == 3; y++)
				memset(p + (y * 96 + 30) * 3, 240, (size_t)rows[i].width * 3);
			frag_message_unref(m);
			m = run_once(h, "in", "out", frame);
		}
		out = frag_message_tensor(m, "");
		cr_assert_eq(frag_tensor_dl(frag_message_tensor(m, "boxes"))->shape[0], 1,
			     "row %zu", i);
		b = frag_tensor_data(frag_message_tensor(m, "boxes"));
		for (int k = 0; k < 4; k++)
			box[k] = lroundf(b[k] * (k % 2 == 0 ? 96 : 64));
		for (int64_t y = 0; y < 64; y++) {
			for (int64_t x = 0; x < 96; x++) {
				const int64_t across =
					x - box[0] < box[2] - 1 - x ? x - box[0] : box[2] - 1 - x;
				const int64_t down =
					y - box[1] < box[3] - 1 - y ? y - box[1] : box[3] - 1 - y;
				const bool is_line =
					across >= 0 && down >= 0 && (across < t || down < t);

				cr_assert_eq(at(out, x, y, 0) == 255, is_line,
					     "row %zu, box %d to %d, %d to %d: %d, %d", i,
					     (int)box[0], (int)box[2], (int)box[1], (int)box[3],
					     (int)x, (int)y);
			}
		}
		finish(h, m);
	}
}

/* Two boxes of a frame of 640 x 480, in pixels. */
static const float pixels_xyxy[] = {64, 96, 320, 480, 0, 24, 16, 48};

static void expect_boxes(const struct frag_tensor *boxes, const float wanted[8])
{
	const float *b = frag_tensor_data(boxes);

	cr_assert_eq(frag_tensor_dl(boxes)->shape[0], 2);
	for (int i = 0; i < 8; i++)
		cr_expect_float_eq((double)b[i], (double)wanted[i], 1e-4, "number %d is %f", i,
				   (double)b[i]);
}

Test(ops_box_converter, converts_layouts_and_units)
{
	static const struct {
		const char *layout;
		float numbers[8];
	} cases[] = {
		{"xyxy", {0.1f, 0.2f, 0.5f, 1.0f, 0.0f, 0.05f, 0.025f, 0.1f}},
		{"yxyx", {0.2f, 0.1f, 1.0f, 0.5f, 0.05f, 0.0f, 0.1f, 0.025f}},
		{"xywh", {0.1f, 0.2f, 0.4f, 0.8f, 0.0f, 0.05f, 0.025f, 0.05f}},
		{"cxcywh", {0.3f, 0.6f, 0.4f, 0.8f, 0.0125f, 0.075f, 0.025f, 0.05f}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *there = make(
			&vision_box_converter_type,
			FRAG_ARGS({"in_tensor_name", ""}, {"in_width", "640"}, {"in_height", "480"},
				  {"out_layout", cases[i].layout}, {"out_tensor_name", "made"}));
		struct frag_harness *back =
			make(&vision_box_converter_type,
			     FRAG_ARGS({"in_tensor_name", ""}, {"out_width", "640"},
				       {"out_height", "480"}, {"in_layout", cases[i].layout}));
		struct frag_message *m = run_once(there, "in", "out", numbers(2, 4, pixels_xyxy));

		cr_assert_eq(frag_message_tensor_count(m), 1, "the boxes replace what came");
		expect_boxes(frag_message_tensor(m, "made"), cases[i].numbers);
		frag_message_unref(m);
		m = run_once(back, "in", "out", numbers(2, 4, cases[i].numbers));
		expect_boxes(frag_message_tensor(m, "boxes"), pixels_xyxy);
		finish(there, m);
		frag_harness_destroy(back);
	}
}

Test(ops_box_converter, passes_on_what_is_no_box_and_refuses_what_cannot_be_one)
{
	struct frag_harness *h = make(&vision_box_converter_type, NULL);
	struct frag_message *m = frag_message_create(), *out = NULL;
	struct frag_tensor *frame = picture(4, 6, 3, 7), *bad;
	uint64_t sequence = 0;

	cr_assert_eq(frag_message_add_tensor(m, "frame", frag_tensor_ref(frame)), 0);
	cr_assert_eq(frag_message_add_tensor(m, "boxes", numbers(2, 4, pixels_xyxy)), 0);
	cr_assert_eq(frag_message_set_sequence(m, 23), 0);
	cr_assert_eq(frag_harness_give(h, "in", m), 0);
	out = ticked(h, "out");
	cr_expect_eq(frag_message_tensor(out, "frame"), frame);
	expect_boxes(frag_message_tensor(out, "boxes"), pixels_xyxy);
	cr_expect_eq(frag_message_sequence(out, &sequence), 0);
	cr_expect_eq(sequence, 23);
	frag_message_unref(out);

	give_tensor(h, "in", "other", frag_tensor_ref(frame));
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_expect(strstr(frag_harness_error(h), "holds no tensor \"boxes\"") != NULL, "%s",
		  frag_harness_error(h));
	frag_harness_destroy(h);
	frag_tensor_unref(frame);
	h = make(&vision_box_converter_type, NULL);
	for (size_t i = 0; (bad = bad_boxes(i)) != NULL; i++) {
		give_tensor(h, "in", "boxes", bad);
		cr_expect_eq(frag_harness_tick(h), -EINVAL, "bad boxes %zu", i);
		cr_expect(strstr(frag_harness_error(h), "is not [n, 4] of f32") != NULL,
			  "bad boxes %zu: %s", i, frag_harness_error(h));
	}
	frag_harness_destroy(h);
}

static void read_png(const char *path, png_image *image, uint8_t *pixels)
{
	memset(image, 0, sizeof(*image));
	image->version = PNG_IMAGE_VERSION;
	cr_assert(png_image_begin_read_from_file(image, path), "%s", image->message);
	image->format = PNG_FORMAT_RGB;
	cr_assert(png_image_finish_read(image, NULL, pixels, 0, NULL), "%s", image->message);
}

/* A folder of its own; the caller removes what it made in it. */
static void scratch(char folder[256])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, 256, "%s/frag-ops-XXXXXX", tmp != NULL ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
}

Test(ops_image_writer, writes_the_frame_that_was_asked_for)
{
	char folder[256], path[300], inner[280];
	struct frag_harness *h;
	uint8_t pixels[3 * 5 * 3];
	png_image image;

	scratch(folder);
	snprintf(inner, sizeof(inner), "%s/new", folder);
	snprintf(path, sizeof(path), "%s/frame.png", inner);
	h = make(&vision_image_writer_type, FRAG_ARGS({"path", path}, {"frame", "2"}));
	for (uint8_t i = 0; i < 5; i++) {
		give_tensor(h, "in", "", picture(3, 5, 3, (uint8_t)(10 * i)));
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(access(path, F_OK) == 0, i >= 2);
	}
	frag_harness_destroy(h);
	read_png(path, &image, pixels);
	cr_assert(image.width == 5 && image.height == 3);
	for (size_t i = 0; i < sizeof(pixels); i++)
		cr_assert_eq(pixels[i], 20);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(rmdir(inner), 0, "nothing else is left there");
	cr_assert_eq(rmdir(folder), 0);
}

Test(ops_image_writer, writes_every_nth)
{
	char folder[256], path[300], numbered[320];
	struct frag_harness *h;

	scratch(folder);
	snprintf(path, sizeof(path), "%s/p.png", folder);
	h = make(&vision_image_writer_type,
		 FRAG_ARGS({"path", path}, {"frame", "1"}, {"every", "3"}));
	for (int i = 0; i < 6; i++) {
		give_tensor(h, "in", "", picture(2, 2, i % 2 ? 1 : 4, 9));
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	}
	frag_harness_destroy(h);
	for (int i = 1; i < 6; i += 3) {
		snprintf(numbered, sizeof(numbered), "%s/p-%06d.png", folder, i);
		cr_assert_eq(unlink(numbered), 0, "%s", numbered);
	}
	cr_assert_eq(rmdir(folder), 0);
}

Test(ops_image_writer, follows_no_link_that_somebody_planted)
{
	char folder[256], path[300], planted[320], target[320];
	struct frag_harness *h;

	scratch(folder);
	snprintf(path, sizeof(path), "%s/p.png", folder);
	snprintf(planted, sizeof(planted), "%s.part", path);
	snprintf(target, sizeof(target), "%s/target", folder);
	cr_assert_eq(symlink(target, planted), 0);
	h = make(&vision_image_writer_type, FRAG_ARGS({"path", path}));
	give_tensor(h, "in", "", picture(2, 2, 3, 9));
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	frag_harness_destroy(h);
	cr_expect_eq(access(target, F_OK), -1, "it was written through the link");
	cr_assert_eq(unlink(planted), 0);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(rmdir(folder), 0);
}

Test(ops_image_writer, writes_png_only)
{
	struct frag_err err = FRAG_ERR_INIT;

	for (int i = 0; i < 3; i++) {
		static const char *const good[] = {"/tmp/a.jpg/frame", "/tmp/frame.PNG", "frame"};

		frag_harness_destroy(make(&vision_image_writer_type, FRAG_ARGS({"path", good[i]})));
	}
	cr_assert_null(frag_harness_create(&vision_image_writer_type,
					   FRAG_ARGS({"path", "/tmp/a.png/frame.jpg"}), &err));
	cr_assert(strstr(err.text, "written as PNG, and path ends with .jpg") != NULL, "%s",
		  err.text);
	for (int i = 0; i < 2; i++) {
		static const char *const urls[] = {"http://h/a.png", "/tmp/ftp://h/a.png"};
		struct frag_err refused = FRAG_ERR_INIT;

		cr_assert_null(frag_harness_create(&vision_image_writer_type,
						   FRAG_ARGS({"path", urls[i]}), &refused));
		cr_assert(strstr(refused.text,
				 "tp://h/a.png, and this operator writes files only") != NULL,
			  "%s", refused.text);
	}
}

Test(ops_image_writer, says_why_it_cannot_write)
{
	struct frag_harness *h =
		make(&vision_image_writer_type, FRAG_ARGS({"path", "/proc/none/frame.png"}));

	give_tensor(h, "in", "", picture(2, 2, 3, 0));
	cr_assert_lt(frag_harness_tick(h), 0);
	cr_assert(strstr(frag_harness_error(h), "/proc/none/frame.png") != NULL, "said: %s",
		  frag_harness_error(h));
	frag_harness_destroy(h);
}

/* Metadata of what comes in stands in what goes out, although it is a new message. */
/* A frame of other sides has pixels of another shape, unless they are only rounded. */
Test(ops_vision, state_the_shape_of_pixels)
{
	const struct {
		const struct frag_op_type *type;
		const char *in, *out;
		struct frag_arg args[5];
		double aspect;
	} cases[] = {
		{&vision_resize_type, "in", "out", {{"width", "8"}}, 1.5},
		{&vision_resize_type, "in", "out", {{"width", "8"}, {"height", "20"}}, 3.75},
		{&vision_format_converter_type,
		 "source_video",
		 "tensor",
		 {{"out_dtype", "rgb888"}, {"resize_width", "20"}, {"resize_height", "10"}},
		 0.75},
		{&vision_format_converter_type,
		 "source_video",
		 "tensor",
		 {{"out_dtype", "rgb888"},
		  {"resize_width", "40"},
		  {"resize_height", "20"},
		  {"pad", "true"}},
		 1.5},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h = make(cases[i].type, cases[i].args);
		struct frag_message *m = frag_message_create();
		struct frag_metadata *metadata = NULL;
		double aspect = 0.0;

		cr_assert_eq(frag_metadata_create(FRAG_METADATA_DEFAULT, &metadata), 0);
		frag_metadata_set_f64(metadata, "sample_aspect_ratio", 1.5);
		cr_assert_eq(frag_message_set_metadata(m, metadata), 0);
		frag_metadata_destroy(metadata);
		cr_assert_eq(frag_message_add_tensor(m, "", picture(16, 16, 3, 5)), 0);
		cr_assert_eq(frag_harness_give(h, cases[i].in, m), 0);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, cases[i].out, &m), 0);
		cr_expect_eq(frag_metadata_get_f64(frag_message_metadata(m), "sample_aspect_ratio",
						   &aspect),
			     0);
		cr_expect_float_eq(aspect, cases[i].aspect, 1e-9, "%zu: %f", i, aspect);
		finish(h, m);
	}
}

Test(ops_vision, pass_metadata_through)
{
	const struct {
		const struct frag_op_type *type;
		const char *in, *out;
		const struct frag_arg *args;
	} cases[] = {
		{&vision_format_converter_type, "source_video", "tensor",
		 (const struct frag_arg[]){{"out_dtype", "float32"}, {NULL, NULL}}},
		{&vision_resize_type, "in", "out",
		 (const struct frag_arg[]){{"width", "8"}, {NULL, NULL}}},
		{&vision_motion_boxes_type, "in", "out", NULL},
		{&vision_draw_type, "receivers", "out", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frag_harness *h = make(cases[i].type, cases[i].args);
		struct frag_message *m = frag_message_create();
		struct frag_metadata *metadata = NULL;
		int64_t frame = 0;

		cr_assert_eq(frag_metadata_create(FRAG_METADATA_DEFAULT, &metadata), 0);
		frag_metadata_set_i64(metadata, "frame", 42);
		cr_assert_eq(frag_message_set_metadata(m, metadata), 0);
		frag_metadata_destroy(metadata);
		cr_assert_eq(frag_message_add_tensor(m, "", picture(16, 16, 3, 5)), 0);
		cr_assert_eq(frag_harness_give(h, cases[i].in, m), 0, "%s", cases[i].type->name);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, cases[i].out, &m), 0, "%s", cases[i].type->name);
		cr_assert_not_null(frag_message_metadata(m), "%s", cases[i].type->name);
		cr_expect_eq(frag_metadata_get_i64(frag_message_metadata(m), "frame", &frame), 0);
		cr_expect_eq(frame, 42, "%s", cases[i].type->name);
		finish(h, m);
	}
}
