// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "postprocessors.h"
#include "inference/inference.h"

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
