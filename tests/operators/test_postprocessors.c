// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "inference/detections.h"
#include "inference/inference.h"

/* The operators that stand behind inference, with tensors that are written here. */

static void refused(const struct frag_op_type *type, const struct frag_arg *args, const char *words)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(type, args, &err);

	cr_expect_null(h);
	cr_expect_not_null(strstr(err.text, words), "\"%s\" is not in: %s", words, err.text);
	frag_harness_destroy(h);
}

static struct frag_tensor *tensor(enum frag_dtype_code code, int32_t ndim, const int64_t *shape,
				  const void *values)
{
	return tensor_of((struct frag_dtype){(uint8_t)code, 32, 1}, ndim, shape, values);
}

#define FLOATS(ndim, shape, values) tensor(FRAG_DTYPE_FLOAT, ndim, (const int64_t[])shape, values)
#define SIDES(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static struct frag_message *message(const char *name, struct frag_tensor *t)
{
	struct frag_message *m = frag_message_create();

	cr_assert_not_null(m);
	cr_assert_eq(frag_message_add_tensor(m, name, t), 0);
	return m;
}

static const void *data(const struct frag_message *m, const char *name, int64_t first_side)
{
	const struct frag_tensor *t = frag_message_tensor(m, name);

	cr_assert_not_null(t, "no tensor %s", name);
	cr_assert_eq(frag_tensor_dl(t)->shape[0], first_side);
	return frag_tensor_data(t);
}

static struct frag_message *tick(struct frag_harness *h, const char *out)
{
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, out, &m), 0);
	return m;
}

static void tick_fails(struct frag_harness *h, const char *words)
{
	cr_expect_lt(frag_harness_tick(h), 0);
	cr_expect_not_null(strstr(frag_harness_error(h), words), "\"%s\" is not in: %s", words,
			   frag_harness_error(h));
}

/* Detections. */

static const struct frag_op_type *const detections = &inference_detection_postprocessor_type;

/* Boxes of TensorFlow's order, top left bottom right, with scores, in two messages. */
static void give(struct frag_harness *h, int64_t count, const float *boxes, const float *scores)
{
	struct frag_message *m = message("boxes", FLOATS(3, SIDES(1, count, 4), boxes));

	cr_assert_eq(frag_message_add_tensor(m, "scores", FLOATS(2, SIDES(1, count), scores)), 0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
}

static const float three_boxes[] = {
	0.10f, 0.20f, 0.50f, 0.30f, /* kept */
	0.12f, 0.20f, 0.52f, 0.30f, /* overlaps the first one */
	0.50f, 0.60f, 0.90f, 1.40f, /* reaches out of the picture */
};

Test(ops_detection_postprocessor, thresholds_overlaps_and_borders)
{
	struct frag_harness *h = make(detections, FRAG_ARGS({"labels", "[person]"}));
	struct frag_message *m;
	const float *boxes;
	const void *text;
	size_t size;

	give(h, 3, three_boxes, (const float[]){0.7f, 0.8f, 0.9f});
	m = tick(h, "out");
	boxes = data(m, "boxes", 2);
	cr_expect(boxes[0] == 0.6f && boxes[1] == 0.5f && boxes[2] == 1.0f && boxes[3] == 0.9f);
	cr_expect(boxes[4] == 0.2f && boxes[5] == 0.12f && boxes[7] == 0.52f);
	cr_expect_float_eq(((const float *)data(m, "scores", 2))[1], 0.8f, 1e-6f);
	cr_expect_eq(((const int32_t *)data(m, "labels", 2))[0], 0);
	cr_expect_arr_eq(data(m, "rectangles", 4), boxes, 8 * sizeof(float));
	cr_expect_float_eq(((const float *)data(m, "label_coords", 2))[4], 0.12f, 1e-6f);
	cr_expect(frag_type_equal(frag_message_value(m, &text, &size), &frag_type_string));
	cr_expect_str_eq(text, "person\nperson\n");
	frag_message_unref(m);
	give(h, 3, three_boxes, (const float[]){0.49f, 0.1f, 0.0f});
	m = tick(h, "out");
	data(m, "boxes", 0);
	data(m, "rectangles", 0);
	frag_message_unref(m);
	give(h, 0, NULL, NULL);
	frag_message_unref(tick(h, "out"));
	frag_harness_destroy(h);
}

/* Two boxes are kept: fewer where fewer may be, the best first. */
Test(ops_detection_postprocessor, the_most_boxes_of_a_message)
{
	static const struct {
		const char *most;
		int64_t kept;
	} rows[] = {{"1", 1}, {"2", 2}, {"3", 2}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h =
			make(detections, FRAG_ARGS({"max_detections", rows[i].most}));
		struct frag_message *m;

		give(h, 3, three_boxes, (const float[]){0.7f, 0.8f, 0.9f});
		m = tick(h, "out");
		cr_expect_float_eq(((const float *)data(m, "scores", rows[i].kept))[0], 0.9f,
				   1e-6f);
		data(m, "boxes", rows[i].kept);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

/* A box inside of a better one overlaps it by little when it is small. */
Test(ops_detection_postprocessor, boxes_inside_of_others)
{
	static const float nested[] = {0.1f, 0.1f, 0.9f, 0.9f, 0.4f, 0.4f, 0.6f, 0.6f};
	static const char *const thresholds[] = {"1.0", "0.7"};

	for (int64_t i = 0; i < 2; i++) {
		struct frag_harness *h =
			make(detections, FRAG_ARGS({"inside_threshold", thresholds[i]}));
		struct frag_message *m;

		give(h, 2, nested, (const float[]){0.9f, 0.8f});
		m = tick(h, "out");
		data(m, "boxes", 2 - i);
		finish(h, m);
	}
}

Test(ops_detection_postprocessor, every_layout_of_boxes)
{
	static const struct {
		const char *name;
		float numbers[4];
	} layouts[] = {
		{"yxyx", {20, 10, 60, 30}},
		{"xyxy", {10, 20, 30, 60}},
		{"xywh", {10, 20, 20, 40}},
		{"cxcywh", {20, 40, 20, 40}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(layouts); i++) {
		struct frag_harness *h =
			make(detections, FRAG_ARGS({"box_layout", layouts[i].name},
						   {"box_width", "100"}, {"box_height", "200"}));
		struct frag_message *m;
		const float *box;

		give(h, 1, layouts[i].numbers, (const float[]){1.0f});
		m = tick(h, "out");
		box = data(m, "boxes", 1);
		cr_expect(fabsf(box[0] - 0.1f) < 1e-6f && fabsf(box[1] - 0.1f) < 1e-6f &&
				  fabsf(box[2] - 0.3f) < 1e-6f && fabsf(box[3] - 0.3f) < 1e-6f,
			  "%s", layouts[i].name);
		finish(h, m);
	}
}

/* Boxes of different classes do not suppress each other. */
Test(ops_detection_postprocessor, classes_by_number_and_by_column)
{
	struct frag_harness *h = make(
		detections, FRAG_ARGS({"classes_tensor_name", "classes"}, {"labels", "[cat, dog]"},
				      {"first_class", "1"}, {"count_tensor_name", "count"}));
	struct frag_message *m;

	give(h, 3, three_boxes, (const float[]){0.7f, 0.8f, 0.9f});
	m = message("classes", FLOATS(2, SIDES(1, 3), ((const float[]){1, 2, 2})));
	cr_assert_eq(frag_message_add_tensor(
			     m, "count",
			     tensor(FRAG_DTYPE_INT, 1, (const int64_t[]){1}, (const int32_t[]){2})),
		     0);
	cr_assert_eq(frag_harness_give(h, "receivers:1", m), 0);
	m = tick(h, "out");
	cr_expect_eq(((const int32_t *)data(m, "labels", 2))[0], 2);
	cr_expect_eq(((const int32_t *)data(m, "labels", 2))[1], 1);
	finish(h, m);

	h = make(detections, FRAG_ARGS({"labels", "[cat, dog]"}, {"keep_labels", "[dog]"}));
	m = message("boxes", FLOATS(2, SIDES(3, 4), three_boxes));
	cr_assert_eq(
		frag_message_add_tensor(
			m, "scores",
			FLOATS(2, SIDES(3, 2), ((const float[]){0.9f, 0.1f, 0.2f, 0.8f, 0, 0}))),
		0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = tick(h, "out");
	cr_expect_eq(((const int32_t *)data(m, "labels", 1))[0], 1);
	finish(h, m);
	refused(detections, FRAG_ARGS({"labels", "[cat]"}, {"keep_labels", "[dog]"}),
		"keep_labels names \"dog\", which labels lacks");
}

/* Of several columns with the same score the first one is the class, as with one alone. */
Test(ops_detection_postprocessor, the_class_is_the_first_column_of_the_highest_score)
{
	static const struct {
		float scores[3];
		int32_t label;
	} rows[] = {{{0.5f, 0.5f, 0.4f}, 0}, {{0.4f, 0.5f, 0.5f}, 1}, {{0.5f, 0.4f, 0.5f}, 0},
		    {{0.5f, 0.5f, 0.5f}, 0}, {{0.3f, 0.4f, 0.5f}, 2}, {{0.5f, 0.4f, 0.3f}, 0}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h = make(detections, NULL);
		struct frag_message *m = message("boxes", FLOATS(2, SIDES(1, 4), three_boxes));

		cr_assert_eq(frag_message_add_tensor(m, "scores",
						     FLOATS(2, SIDES(1, 3), rows[i].scores)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		m = tick(h, "out");
		cr_expect_eq(((const int32_t *)data(m, "labels", 1))[0], rows[i].label, "row %zu",
			     i);
		finish(h, m);
	}
}

/* Each border of a part cuts boxes that come near it, but for those of the frame itself. */
Test(ops_detection_postprocessor, each_border_of_a_part_cuts)
{
	static const float middle[] = {0.2f, 0.2f, 0.8f, 0.8f};

	for (int side = 0; side < 4; side++) {
		const bool is_far = side >= 2; /* right or bottom */

		for (int near = 0; near < 3; near++) {
			for (int inside = 0; inside < 2; inside++) {
				const float borders[] = {DETECTION_CUT, 0.0099f, 0.0f};
				float box[4], part[4] = {0, 0, 1, 1};
				struct detection d;
				bool is_kept;

				memcpy(box, middle, sizeof(box));
				box[side] = is_far ? 1.0f - borders[near] : borders[near];
				if (inside)
					part[side] = is_far ? 0.75f : 0.25f;
				d = (struct detection){box[0], box[1], box[2], box[3], 0, 0, 0};
				is_kept = detection_move(&d, part);
				cr_expect_eq(is_kept, !inside || near == 0,
					     "side %d, %g from the border, inside %d", side,
					     (double)borders[near], inside);
				cr_expect(!is_kept ||
					  fabsf(d.top - (part[1] + box[1] * (part[3] - part[1]))) <
						  1e-6f);
				cr_expect(!is_kept ||
					  fabsf(d.right -
						(part[0] + box[2] * (part[2] - part[0]))) < 1e-6f);
			}
		}
	}
}

/*
 * The left and the right part of a frame, which overlap: a box that a border inside the frame cuts
 * is left out, and what both parts show is there once.
 */
Test(ops_detection_postprocessor, boxes_of_parts_go_to_their_places)
{
	static const float regions[] = {0.0f, 0.0f, 0.6f, 1.0f, 0.4f, 0.0f, 1.0f, 1.0f};
	static const float boxes[] = {
		0.2f, 0.0f,  0.8f, 0.1f,  0.2f, 0.7f, 0.8f, 0.9f, /* of the left part */
		0.2f, 0.04f, 0.8f, 0.23f, 0.1f, 0.0f, 0.8f, 0.5f, /* of the right one */
	};
	struct frag_harness *h = make(detections, FRAG_ARGS({"regions_tensor_name", "parts"},
							    {"count_tensor_name", "counts"}));
	struct frag_message *m = message("boxes", FLOATS(3, SIDES(2, 2, 4), boxes));
	const float *box;

	cr_assert_eq(frag_message_add_tensor(
			     m, "scores",
			     FLOATS(2, SIDES(2, 2), ((const float[]){0.9f, 0.8f, 0.7f, 0.6f}))),
		     0);
	cr_assert_eq(
		frag_message_add_tensor(m, "counts", FLOATS(1, SIDES(2), ((const float[]){2, 2}))),
		0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	cr_assert_eq(frag_harness_give(h, "receivers:1",
				       message("parts", FLOATS(2, SIDES(2, 4), regions))),
		     0);
	m = tick(h, "out");
	box = data(m, "boxes", 2);
	cr_expect(box[0] == 0.0f && fabsf(box[2] - 0.06f) < 1e-6f);
	cr_expect(fabsf(box[4] - 0.42f) < 1e-6f && fabsf(box[6] - 0.54f) < 1e-6f);
	frag_message_unref(m);

	for (int64_t counts = 1; counts <= 3; counts += 2) {
		char sentence[64];

		m = message("boxes", FLOATS(3, SIDES(2, 2, 4), boxes));
		cr_assert_eq(frag_message_add_tensor(m, "scores", FLOATS(2, SIDES(2, 2), boxes)),
			     0);
		cr_assert_eq(frag_message_add_tensor(m, "counts", FLOATS(1, SIDES(counts), boxes)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		cr_assert_eq(frag_harness_give(h, "receivers:1",
					       message("parts", FLOATS(2, SIDES(2, 4), regions))),
			     0);
		snprintf(sentence, sizeof(sentence), "there are 4 boxes, 2 regions and %d counts",
			 (int)counts);
		tick_fails(h, sentence);
	}
	frag_harness_destroy(h);
}

Test(ops_detection_postprocessor, bad_tensors_have_their_sentences)
{
	static const float nan_box[] = {0.1f, 0.1f, NAN, 0.2f};
	struct frag_harness *h = make(detections, NULL);

	give(h, 1, nan_box, (const float[]){0.9f});
	tick_fails(h, "box 0 of the network is not a number (NaN); check that the network's input");
	give(h, 3, three_boxes, (const float[]){0.9f, NAN, 0.1f});
	tick_fails(h, "box 1 of the network is not a number");
	cr_assert_eq(frag_harness_give(h, "receivers",
				       message("boxes", FLOATS(2, SIDES(3, 4), three_boxes))),
		     0);
	tick_fails(h, "no message holds the tensor \"scores\"; correct scores_tensor_name");
	cr_assert_eq(frag_harness_give(h, "receivers",
				       message("boxes", tensor(FRAG_DTYPE_INT, 1,
							       (const int64_t[]){1}, "abc"))),
		     0);
	tick_fails(h, "the tensor \"boxes\" is not f32 without gaps");
	give(h, 3, three_boxes, (const float[]){0.9f, 0.2f, 0.1f});
	frag_message_unref(tick(h, "out"));
	frag_harness_destroy(h);
	h = make(detections, FRAG_ARGS({"boxes_tensor_name", "scores"}));
	give(h, 3, three_boxes, (const float[]){0.9f, 0.2f, 0.1f});
	tick_fails(h, "does not hold boxes of four numbers");
	frag_harness_destroy(h);
}

/* Masks. */

static const struct frag_op_type *const masks = &inference_segmentation_postprocessor_type;

static const uint8_t *mask(const struct frag_message *m, int64_t rows, int64_t columns)
{
	const struct frag_dltensor *dl;

	data(m, "out_tensor", rows);
	dl = frag_tensor_dl(frag_message_tensor(m, "out_tensor"));
	cr_assert(dl->ndim == 3 && dl->shape[1] == columns && dl->shape[2] == 1);
	return frag_tensor_data(frag_message_tensor(m, "out_tensor"));
}

Test(ops_segmentation_postprocessor, softmax_takes_the_largest_channel)
{
	static const float adjacent[] = {1, 2, 0, 5, 4, 0, 0, 0, 1, 0, 0, 0};
	static const float planes[] = {1, 5, 0, 0, 2, 4, 0, 0, 0, 0, 1, 0};
	static const char *const formats[] = {"hwc", "nhwc", "nchw"};

	for (int i = 0; i < 3; i++) {
		struct frag_harness *h = make(masks, FRAG_ARGS({"data_format", formats[i]}));
		struct frag_tensor *t = i == 0   ? FLOATS(3, SIDES(2, 2, 3), adjacent)
					: i == 1 ? FLOATS(4, SIDES(1, 2, 2, 3), adjacent)
						 : FLOATS(4, SIDES(1, 3, 2, 2), planes);
		struct frag_message *m;

		give_tensor(h, "in_tensor", "", t);
		m = tick(h, "out_tensor");
		cr_expect_arr_eq(mask(m, 2, 2), ((const uint8_t[]){1, 0, 2, 0}), 4, "%s",
				 formats[i]);
		finish(h, m);
	}
}

Test(ops_segmentation_postprocessor, sigmoid_compares_with_the_threshold)
{
	struct frag_harness *h =
		make(masks, FRAG_ARGS({"network_output_type", "sigmoid"}, {"threshold", "0.7"}));
	struct frag_message *m;

	give_tensor(h, "in_tensor", "any",
		    FLOATS(3, SIDES(1, 3, 1), ((const float[]){0.6f, 0.7f, 0.8f})));
	m = tick(h, "out_tensor");
	cr_expect_arr_eq(mask(m, 1, 3), ((const uint8_t[]){0, 0, 1}), 3);
	finish(h, m);
}

/* Each mask is put into its box, which may reach beyond the frame. */
Test(ops_segmentation_postprocessor, masks_go_where_they_were_cut_out)
{
	static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
	static const float boxes[] = {-0.25f, 0.0f, 0.25f, 0.5f, 0.5f, 0.5f, 1.0f, 1.0f};
	static const uint8_t expected[] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 2, 0, 0, 2, 2};
	struct frag_harness *h =
		make(masks, FRAG_ARGS({"network_output_type", "sigmoid"}, {"rows", "4"},
				      {"columns", "4"}, {"instances", "true"}));
	struct frag_message *m;

	give_tensor(h, "in_tensor", "", FLOATS(4, SIDES(2, 2, 2, 1), ones));
	give_tensor(h, "boxes", "boxes", FLOATS(2, SIDES(2, 4), boxes));
	m = tick(h, "out_tensor");
	cr_expect_arr_eq(mask(m, 4, 4), expected, sizeof(expected));
	frag_message_unref(m);
	give_tensor(h, "in_tensor", "", FLOATS(4, SIDES(0, 2, 2, 1), NULL));
	give_tensor(h, "boxes", "boxes", FLOATS(2, SIDES(0, 4), NULL));
	m = tick(h, "out_tensor");
	cr_expect_eq(mask(m, 4, 4)[0], 0);
	frag_message_unref(m);
	give_tensor(h, "in_tensor", "", FLOATS(4, SIDES(2, 2, 2, 1), ones));
	give_tensor(h, "boxes", "boxes", FLOATS(2, SIDES(1, 4), boxes));
	tick_fails(h, "there are 1 boxes and 2 pictures");
	frag_harness_destroy(h);
}

Test(ops_segmentation_postprocessor, where_boxes_overlap_the_nearer_one_has_the_pixel)
{
	static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	static const float boxes[] = {0.0f, 0.0f, 0.75f, 1.0f, 0.25f, 0.0f,
				      1.0f, 1.0f, 0.0f,  0.0f, 0.75f, 1.0f};
	static const uint8_t expected[] = {1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2};
	struct frag_harness *h =
		make(masks, FRAG_ARGS({"network_output_type", "sigmoid"}, {"rows", "4"},
				      {"columns", "4"}, {"instances", "true"}));
	struct frag_message *m;

	give_tensor(h, "in_tensor", "", FLOATS(4, SIDES(3, 2, 2, 1), ones));
	give_tensor(h, "boxes", "boxes", FLOATS(2, SIDES(3, 4), boxes));
	m = tick(h, "out_tensor");
	cr_expect_arr_eq(mask(m, 4, 4), expected, sizeof(expected), "the third lies on the first");
	finish(h, m);
}

/* [2, 2, 1], with the elements of a column side by side */
static struct frag_tensor *in_columns(void)
{
	static const int64_t shape[] = {2, 2, 1}, strides[] = {1, 2, 1};
	static float values[4];
	struct frag_tensor *t;

	cr_assert_eq(frag_tensor_wrap(&(struct frag_dltensor){.data = values,
							      .device = {FRAG_DEVICE_CPU, 0},
							      .ndim = 3,
							      .dtype = {FRAG_DTYPE_FLOAT, 32, 1},
							      .shape = (int64_t *)shape,
							      .strides = (int64_t *)strides},
				      NULL, NULL, &t),
		     0);
	return t;
}

Test(ops_segmentation_postprocessor, bad_tensors_have_their_sentences)
{
	static const float nan_pixel[] = {0.1f, NAN, 0.3f, 0.4f};
	struct frag_harness *h = make(masks, FRAG_ARGS({"network_output_type", "sigmoid"}));

	give_tensor(h, "in_tensor", "", FLOATS(3, SIDES(2, 2, 1), nan_pixel));
	tick_fails(h, "picture 0 of the network holds numbers that are none (NaN); check");
	give_tensor(h, "in_tensor", "", FLOATS(1, SIDES(4), nan_pixel));
	tick_fails(h, "has 1 dimensions; a network for segmentation gives [rows, columns");
	give_tensor(h, "in_tensor", "",
		    tensor(FRAG_DTYPE_INT, 3, (const int64_t[]){1, 1, 1}, "abc"));
	tick_fails(h, "the elements of the tensor \"\" are not f32; in_tensor_name selects");
	give_tensor(h, "in_tensor", "", in_columns());
	tick_fails(h, "has gaps, or its last dimension is not the innermost one in memory; send");
	frag_harness_destroy(h);
	h = make(masks, NULL);
	give_tensor(h, "in_tensor", "", FLOATS(3, SIDES(2, 2, 1), nan_pixel));
	tick_fails(h, "one class, and network_output_type is softmax; set it to sigmoid");
	frag_harness_destroy(h);
	h = make(masks, FRAG_ARGS({"network_output_type", "sigmoid"}));
	give_tensor(h, "in_tensor", "", FLOATS(4, SIDES(2, 1, 1, 1), three_boxes));
	tick_fails(h, "is a batch of 2 pictures; connect boxes");
	give_tensor(h, "in_tensor", "", FLOATS(3, SIDES(1, 1, 1), three_boxes));
	give_tensor(h, "boxes", "boxes", FLOATS(2, SIDES(1, 4), three_boxes));
	tick_fails(h, "boxes came, and rows and columns are not set");
	frag_harness_destroy(h);
	refused(masks, FRAG_ARGS({"rows", "4"}), "rows is 4 and columns 0; give");
	refused(masks, FRAG_ARGS({"columns", "4"}), "rows is 0 and columns 4; give");
}

/* What is missing is named. */
Test(ops_segmentation_postprocessor, tensors_that_are_not_there)
{
	static const struct {
		const char *in, *boxes; /* as they are called */
		int64_t sides;          /* of the boxes */
		const char *sentence;
	} rows[] = {
		{"out", "boxes", 4, ""},
		{"in", "boxes", 4, "the message holds no tensor \"out\"; set in_tensor_name"},
		{"out", "box", 4, "holds no tensor \"boxes\"; set boxes_tensor_name"},
		{"out", "boxes", 3, "the tensor \"boxes\" is not f32 [N, 4]"},
		{"out", "boxes", 5, "the tensor \"boxes\" is not f32 [N, 4]"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h = make(masks, FRAG_ARGS({"network_output_type", "sigmoid"},
							       {"in_tensor_name", "out"},
							       {"rows", "4"}, {"columns", "4"}));

		give_tensor(h, "in_tensor", rows[i].in, FLOATS(4, SIDES(1, 1, 1, 1), three_boxes));
		give_tensor(h, "boxes", rows[i].boxes,
			    FLOATS(2, SIDES(1, rows[i].sides), three_boxes));
		if (rows[i].sentence[0] == '\0') {
			finish(h, tick(h, "out_tensor"));
			continue;
		}
		tick_fails(h, rows[i].sentence);
		frag_harness_destroy(h);
	}
}

/* The largest and the smallest network, and one beyond each. */
Test(ops_segmentation_postprocessor, bounds_of_a_network)
{
	static const float zeros[32768];
	static const struct {
		int64_t rows, columns, channels;
		bool fits;
	} rows[] = {
		{1, 1, 1, true},      {1, 1, 256, true},    {1, 1, 257, false},
		{1, 32767, 1, true},  {1, 32768, 1, false}, {32767, 1, 1, true},
		{32768, 1, 1, false}, {0, 1, 1, false},     {1, 0, 1, false},
		{1, 1, 0, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		for (int planar = 0; planar < 2; planar++) {
			struct frag_harness *h =
				make(masks, FRAG_ARGS({"network_output_type", "sigmoid"},
						      {"data_format", planar ? "nchw" : "hwc"}));
			const int64_t sides[] = {planar ? rows[i].channels : rows[i].rows,
						 planar ? rows[i].rows : rows[i].columns,
						 planar ? rows[i].columns : rows[i].channels};

			give_tensor(h, "in_tensor", "", tensor(FRAG_DTYPE_FLOAT, 3, sides, zeros));
			if (rows[i].fits)
				finish(h, tick(h, "out_tensor"));
			else {
				tick_fails(h, "sides go to 32767 and classes to 256");
				frag_harness_destroy(h);
			}
		}
}

/* Small operations. */

static const struct frag_op_type *const processor = &inference_inference_processor_type;

Test(ops_inference_processor, what_each_operation_makes)
{
	static const float heat[] = {
		9, 0, 1, 9, 0, 5, 9, 7, 0, /* 3 columns of 3 channels */
		9, 0, 0, 9, 0, 0, 9, 0, 6,
	};
	struct frag_harness *h =
		make(processor,
		     FRAG_ARGS({"process_operations",
				"{heat: [max_per_channel_scaled, print, argmax], odds: softmax}"},
			       {"processed_map", "{heat: [places, largest], odds: [chance]}"}));
	struct frag_message *m = message("heat", FLOATS(4, SIDES(1, 2, 3, 3), heat));
	const float *places, *chance;

	cr_assert_eq(frag_message_add_tensor(m, "odds",
					     FLOATS(1, SIDES(2), ((const float[]){1000, 1000}))),
		     0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = tick(h, "transmitter");
	places = data(m, "places", 2);
	cr_expect_float_eq(places[0], 2.0f / 3.0f, 1e-6f);
	cr_expect_float_eq(places[1], 0.0f, 1e-6f);
	cr_expect_float_eq(places[2], 2.0f / 3.0f, 1e-6f);
	cr_expect_float_eq(places[3], 0.5f, 1e-6f);
	cr_expect_eq(((const int32_t *)data(m, "largest", 1))[0], 0);
	chance = data(m, "chance", 2);
	cr_expect_float_eq(chance[0], 0.5f, 1e-6f);
	finish(h, m);
}

/* A result that is left out does not give its name to the next one. */
Test(ops_inference_processor, results_may_be_left_out)
{
	static const struct {
		const char *names;
		bool first, second;
	} rows[] = {{"[]", true, true}, {"[first]", true, false}, {"[second]", false, true}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h =
			make(processor, FRAG_ARGS({"process_operations", "{a: [softmax, argmax]}"},
						  {"processed_map", "{a: [first, second]}"},
						  {"out_tensor_names", rows[i].names}));
		struct frag_message *m;

		give_tensor(h, "receivers", "a", FLOATS(2, SIDES(1, 2), ((const float[]){1, 3})));
		m = tick(h, "transmitter");
		cr_expect_eq(frag_message_tensor_count(m), 0u + rows[i].first + rows[i].second);
		if (rows[i].first)
			cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, "first"))->ndim, 2);
		if (rows[i].second)
			cr_expect_eq(((const int32_t *)data(m, "second", 1))[0], 1);
		finish(h, m);
	}
}

Test(ops_inference_processor, numbers_that_are_none_have_their_sentence)
{
	static const float scores[] = {0.1f, NAN};
	struct frag_harness *h =
		make(processor, FRAG_ARGS({"process_operations", "{a: [print, argmax]}"},
					  {"processed_map", "{a: [b]}"}));

	give_tensor(h, "receivers", "a", FLOATS(1, SIDES(2), scores));
	tick_fails(h, "\"a\" of the network holds numbers that are none (NaN); check");
	frag_harness_destroy(h);
}

/* The line is printed on stderr. */
Test(ops_inference_processor, which_of_two_classes_is_printed)
{
	static const float scores[][2] = {{0, -3}, {-3, 0}, {0, 0}};
	static const char *const lines[] = {"inside. Confidence: 0.5\n",
					    "out, side. Confidence: 0.5\n",
					    "out, side. Confidence: 0.5\n"};
	char path[] = "/tmp/frag-classes-XXXXXX", text[4096];
	int file = mkstemp(path), before = dup(STDERR_FILENO);
	struct frag_harness *h = make(
		processor,
		FRAG_ARGS(
			{"process_operations",
			 "{a: [\"print_custom_binary_classification,   inside,   out, side\"]}"}));

	cr_assert_geq(file, 0);
	for (size_t i = 0; i < 3; i++) {
		ssize_t size;

		cr_assert_eq(ftruncate(file, 0), 0);
		cr_assert_eq(lseek(file, 0, SEEK_SET), 0);
		dup2(file, STDERR_FILENO);
		give_tensor(h, "receivers", "a", FLOATS(1, SIDES(2), scores[i]));
		cr_assert_eq(frag_harness_tick(h), 0);
		dup2(before, STDERR_FILENO);
		size = pread(file, text, sizeof(text) - 1, 0);
		cr_assert_geq(size, 0);
		text[size] = '\0';
		cr_expect(strstr(text, lines[i]) != NULL, "%s", text);
	}
	give_tensor(h, "receivers", "a", FLOATS(1, SIDES(3), ((const float[]){1, 2, 3})));
	tick_fails(h, "takes a tensor of 2 numbers, and \"a\" has 3");
	frag_harness_destroy(h);
	close(file);
	unlink(path);
}

Test(ops_inference_processor, wrong_parameters_are_refused)
{
	refused(processor, FRAG_ARGS({"process_operations", "{a: [guess]}"}),
		"there is no operation \"guess\"; use max_per_channel_scaled, softmax");
	for (size_t i = 0; i < 3; i++)
		refused(processor,
			FRAG_ARGS(
				{"process_operations",
				 ((const char *[]){
					 "{a: [\"print, in\"]}",
					 "{a: [print_custom_binary_classification]}",
					 "{a: [\"print_custom_binary_classification, in\"]}"})[i]}),
			"or \"print_custom_binary_classification, TEXT, TEXT\"");
	refused(processor, FRAG_ARGS({"process_operations", "{a: [softmax]}"}),
		"make 1 results, and processed_map names 0");
	refused(processor,
		FRAG_ARGS({"process_operations", "{a: [print]}"}, {"in_tensor_names", "[b]"}),
		"which in_tensor_names lacks");
}

/* Keypoints follow their boxes, which are sorted, into the units of the boxes. */
Test(ops_detection_postprocessor, keypoints_of_the_boxes_that_are_left)
{
	static const float boxes[] = {10, 10, 30, 30, 60, 20, 90, 45};
	static const float points[] = {20, 15, 0.5f, 25, 10, 0.25f, 75, 60, 0.75f, 80, 85, 1};
	static const float pairs[] = {20, 15, 25, 10, 75, 60, 80, 85};

	for (int values = 2; values <= 3; values++) {
		struct frag_harness *h =
			make(detections, FRAG_ARGS({"box_width", "100"}, {"box_height", "50"},
						   {"box_layout", "xyxy"},
						   {"keypoint_values", values == 3 ? "3" : "2"},
						   {"keypoints_tensor_name", "points"}));
		const float scores[] = {0.7f, 0.9f};
		struct frag_message *m;
		const float *k;

		give(h, 2, boxes, scores);
		m = message("points",
			    FLOATS(2, SIDES(2, 2 * values), values == 3 ? points : pairs));
		cr_assert_eq(frag_harness_give(h, "receivers:2", m), 0);
		m = tick(h, "out");
		k = data(m, "keypoints", 2);
		cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, "keypoints"))->shape[1], 2);
		cr_assert_eq(frag_tensor_dl(frag_message_tensor(m, "keypoints"))->shape[2], 3);
		cr_expect(k[0] == 0.75f && k[1] == 1.2f && k[3] == 0.8f && k[4] == 1.7f);
		cr_expect(k[6] == 0.2f && k[7] == 0.3f && k[9] == 0.25f && k[10] == 0.2f);
		cr_expect(k[2] == (values == 3 ? 0.75f : 1.0f) &&
			  k[11] == (values == 3 ? 0.25f : 1.0f));
		frag_message_unref(m);
		/* of one box too few */
		give(h, 2, boxes, scores);
		m = message("points", FLOATS(2, SIDES(1, values), points));
		cr_assert_eq(frag_harness_give(h, "receivers:2", m), 0);
		tick_fails(h, "2 boxes and");
		frag_harness_destroy(h);
	}
}
