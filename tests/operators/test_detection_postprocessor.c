// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "postprocessors.h"
#include "inference/detections.h"
#include "inference/inference.h"

static const struct frag_op_type *const detections = &inference_detection_postprocessor_type;

/* Boxes of TensorFlow's order, top left bottom right, with scores, in two messages. */
static void give(struct frag_harness *h, int64_t count, const float *boxes, const float *scores)
{
	struct frag_message *m = message("boxes", FLOATS(3, SIDES(1, count, 4), boxes));

	cr_assert_eq(frag_message_add_tensor(m, "scores", FLOATS(2, SIDES(1, count), scores)), 0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
}

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
