// SPDX-License-Identifier: Apache-2.0
#include "inference_onnxruntime.h"

#include "inference/backend.h"

/* Gives a frame of one flow; its sequence is the value in it. */
static void give_frame(struct frag_harness *h, const char *port, struct frag_tensor *t,
		       uint64_t sequence)
{
	struct frag_message *m = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(m, "image", t), 0);
	cr_assert_eq(frag_message_set_sequence(m, sequence), 0);
	cr_assert_eq(frag_harness_give(h, port, m), 0);
}

/* Takes a frame's results, which are those of the frame with this value. */
static void expect_frame(struct frag_harness *h, const char *port, uint64_t value)
{
	struct frag_message *m = NULL;
	uint64_t sequence = 0;

	cr_assert_eq(frag_harness_take(h, port, &m), 0, "%s: no result of %d", port, (int)value);
	cr_expect(dl(m, "boxes")->shape[0] == 1 && dl(m, "boxes")->shape[1] == 2);
	cr_expect_float_eq(element(m, "boxes", 1), (float)value, 0);
	cr_expect_eq(frag_message_sequence(m, &sequence), 0);
	cr_expect_eq(sequence, value);
	frag_message_unref(m);
}

/* A model that takes each row by itself, and gives it back: a row of results for each frame. */
static const char *const rows_models[] = {
	"engine of tests\nrows\ninput image 1 n 3\noutput boxes 1 n 2\n",
	"engine of tests\nrows\ninput image 1 1 3\noutput boxes 1 1 2\n",
	"engine of tests\nrows\ninput image 1 4 3\noutput boxes 1 4 2\n",
};

static void run_batches(const char *provider, struct frag_device device)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(rows_models); i++) {
		struct frag_harness *h;
		struct frag_message *none = NULL;

		write_model(model_path, rows_models[i]);
		h = make(
			FRAG_ARGS({"provider", provider}, {"inference_map", "{a: boxes}"},
				  {"batch", "{size: 3, max_delay: 20ms, cameras: [left, right]}"}));
		give_frame(h, "receivers", rows(device, 1, 10.0f), 10);
		give_frame(h, "receivers", rows(device, 1, 11.0f), 11);
		give_frame(h, "receivers:1", rows(device, 1, 20.0f), 20);
		give_frame(h, "receivers:1", rows(device, 1, 21.0f), 21);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		expect_frame(h, "left", 10);
		expect_frame(h, "left", 11);
		expect_frame(h, "right", 20);
		expect_frame(h, "right", 21);
		give_frame(h, "receivers:1", rows(device, 1, 22.0f), 22);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		expect_frame(h, "right", 22);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_expect_lt(frag_harness_take(h, "right", &none), 0);
		frag_harness_destroy(h);
	}
}

Test(ops_onnxruntime, frames_of_several_flows_go_in_one_run)
{
	run_batches("cpu", (struct frag_device){FRAG_DEVICE_CPU, 0});
	cr_expect(is_logged("rows 10 20 11 3\nrows 21 1\n"), "as many as there are");
	cr_expect(is_logged("rows 10 20 11 11 4\nrows 21 21 21 21 4\n"), "the last one again");
}

GPU_TEST(ops_onnxruntime, frames_of_several_flows_on_a_gpu)
{
	run_batches("cuda", GPU);
	cr_expect(is_logged("run asynchronous 3\n") && is_logged("run asynchronous 4\n"));
}

/*
 * Each model gets as many frames as it takes, the last one again where it takes more than there
 * are. A frame's results are its own whatever the others take.
 */
static void run_two_models(const char *first, const char *second, const char *takes, int frames)
{
	struct frag_harness *h;

	write_model(model_path, first);
	write_model(other_path, second);
	snprintf(paths, sizeof(paths), "{a: %s, b: %s}", model_path, other_path);
	h = frag_harness_create(&inference_inference_type,
				FRAG_ARGS({"backend", "onnxruntime"}, {"model_path_map", paths},
					  {"pre_processor_map", takes}, {"batch", "{size: 5}"},
					  {"inference_map", "{a: boxes, b: corners}"}),
				NULL);
	cr_assert_not_null(h);
	for (int i = 0; i < frames; i++) {
		struct frag_message *m = frag_message_create();

		frag_message_add_tensor(m, "image", host_rows(1, (float)i));
		frag_message_add_tensor(m, "other", host_rows(1, (float)(100 + i)));
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	}
	cr_assert_eq(frag_harness_tick(h), 0, "%s of %d: %s", takes, frames, frag_harness_error(h));
	for (int i = 0; i < frames; i++) {
		float other = (float)(strstr(takes, "other") != NULL ? 100 + i : i);
		struct frag_message *m = NULL;

		cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
		cr_expect(dl(m, "boxes")->shape[0] == 1 && dl(m, "corners")->shape[0] == 1);
		cr_expect_float_eq(element(m, "boxes", 0), (float)i, 0, "%s, %d", takes, i);
		cr_expect_float_eq(element(m, "corners", 0), other, 0, "%s, %d", takes, i);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

Test(ops_onnxruntime, models_of_a_batch_take_different_numbers_of_frames)
{
	const char *three = "engine of tests\nrows\ninput image 1 3 3\noutput boxes 1 3 2\n";
	const char *const models[] = {rows_models[0], rows_models[1], rows_models[2], three};

	for (int frames = 2; frames <= 5; frames += frames == 3 ? 2 : 1) {
		for (size_t a = 0; a < FRAG_COUNT_OF(models); a++) {
			for (size_t b = 0; b < FRAG_COUNT_OF(models); b++) {
				run_two_models(models[a], models[b], "{a: image, b: image}",
					       frames);
				run_two_models(models[a], models[b], "{a: image, b: other}",
					       frames);
			}
		}
	}
}

/* A model on the CPU reads no memory of a GPU, so the host gets what both take. */
GPU_TEST(ops_onnxruntime, models_of_a_batch_on_a_gpu_and_on_the_cpu_take_one_tensor)
{
	static const char *const devices[] = {"{a: 0, b: cpu}", "{a: cpu, b: 0}"};

	write_model(model_path, rows_models[0]);
	write_model(other_path, rows_models[0]);
	snprintf(paths, sizeof(paths), "{a: %s, b: %s}", model_path, other_path);
	for (size_t i = 0; i < FRAG_COUNT_OF(devices); i++) {
		struct frag_harness *h = frag_harness_create(
			&inference_inference_type,
			FRAG_ARGS({"backend", "onnxruntime"}, {"model_path_map", paths},
				  {"pre_processor_map", "{a: image, b: image}"},
				  {"inference_map", "{a: boxes, b: corners}"},
				  {"device_map", devices[i]}, {"batch", "{size: 2}"}),
			NULL);

		cr_assert_not_null(h);
		for (uint64_t k = 1; k < 3; k++)
			give_frame(h, "receivers", host_rows(1, (float)k), k);
		cr_assert_eq(frag_harness_tick(h), 0, "%s: %s", devices[i], frag_harness_error(h));
		for (uint64_t k = 1; k < 3; k++)
			expect_frame(h, "transmitter", k);
		frag_harness_destroy(h);
	}
}

/* Frames of one run have one shape; those of another, and of later ticks, may have another. */
Test(ops_onnxruntime, batches_may_differ_in_their_shape)
{
	static const int64_t counts[][3] = {{1, 1, 2}, {3, 3, 1}, {1000, 1000, 1}, {2, 2, 1000}};
	static const char *const ports[] = {"receivers", "receivers:1", "receivers:2"};
	struct frag_harness *h;

	write_model(model_path, rows_models[0]);
	h = make(FRAG_ARGS({"batch", "{size: 2}"}, {"inference_map", "{a: boxes}"}));
	for (size_t i = 0; i < FRAG_COUNT_OF(counts); i++) {
		for (int64_t k = 0; k < 3; k++)
			give_frame(h, ports[k], host_rows(counts[i][k], 100.0f * (float)k),
				   (uint64_t)k);
		cr_assert_eq(frag_harness_tick(h), 0, "row %zu: %s", i, frag_harness_error(h));
		for (size_t k = 0; k < 3; k++) {
			struct frag_message *m = NULL;

			cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0, "row %zu", i);
			cr_assert_eq(dl(m, "boxes")->shape[0], counts[i][k], "row %zu", i);
			for (int64_t row = 0; row < counts[i][k]; row++)
				cr_assert_float_eq(element(m, "boxes", (size_t)(2 * row + 1)),
						   100.0f * (float)k + (float)row, 0,
						   "row %zu, frame %zu, %d", i, k, (int)row);
			frag_message_unref(m);
		}
	}
	frag_harness_destroy(h);
}

/* When all flows but the last have two frames, the second look finds a batch nearly full. */
Test(ops_onnxruntime, the_most_frames_that_a_tick_may_find)
{
	const int flows = 63;
	char port[32], batch[512] = "{size: 64, cameras: [c0";
	struct frag_harness *h;

	for (int i = 1; i < flows; i++)
		snprintf(batch + strlen(batch), sizeof(batch) - strlen(batch), ", c%d", i);
	strcat(batch, "]}");
	write_model(model_path, rows_models[0]);
	h = make(FRAG_ARGS({"batch", batch}, {"inference_map", "{a: boxes}"}));
	for (int i = 0; i < 2 * flows; i++) {
		snprintf(port, sizeof(port), i % flows > 0 ? "receivers:%d" : "receivers",
			 i % flows);
		give_frame(h, port, host_rows(1, (float)i), (uint64_t)i);
	}
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	for (int i = 0; i < 2 * flows; i++) {
		snprintf(port, sizeof(port), "c%d", i % flows);
		expect_frame(h, port, (uint64_t)i);
	}
	frag_harness_destroy(h);
}

Test(ops_onnxruntime, shapes_are_written_in_full)
{
	static const int64_t shape[] = {1, -1, 300000, 1000000, 3, 20000000, 65536, -1};
	char text[INFERENCE_TEXT_SIZE];

	inference_tensor_text((struct frag_dtype){FRAG_DTYPE_BFLOAT, 16, 1}, 8, shape, text);
	cr_expect_str_eq(text, "bf16 [1, any, 300000, 1000000, 3, 20000000, 65536, any]");
	inference_tensor_text((struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, -1, shape, text);
	cr_expect_str_eq(text, "f32 [any shape]");
	inference_tensor_text((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 0, shape, text);
	cr_expect_str_eq(text, "u8 []");
}

Test(ops_onnxruntime, bad_batches_are_refused)
{
	struct frag_message *m = NULL;
	struct frag_harness *h;
	int64_t flow = -1;

	write_model(model_path, rows_models[0]);
	refused(FRAG_ARGS({"batch", "{size: 0}"}), "size is \"0\"; give a number from 1 to 64");
	refused(FRAG_ARGS({"batch", "{size: 65}"}), "size is \"65\"; give a number from 1 to 64");
	refused(FRAG_ARGS({"batch", "{size: 2x}"}), "size is \"2x\"; give a number from 1 to 64");
	for (int i = 0; i < 2; i++)
		frag_harness_destroy(make(FRAG_ARGS({"batch", i == 0 ? "{size: 1}" : "{size: 64}"},
						    {"inference_map", "{a: boxes}"})));
	refused(FRAG_ARGS({"batch", "{max_delay: 5ms}"}), "size is \"\"; give a number");
	refused(FRAG_ARGS({"batch", "{size: 2, delay: 5ms}"}), "batch has no \"delay\"; write");
	refused(FRAG_ARGS({"batch", "{size: 2, max_delay: soon}"}), "soon");
	refused(FRAG_ARGS({"batch", "{size: 2}"}, {"temporal_map", "{a: 2}"}), "leave one of them");
	h = make(FRAG_ARGS({"batch", "{size: 2}"}, {"inference_map", "{a: boxes}"}));
	give_frame(h, "receivers", host_rows(1, 5.0f), 5);
	give_frame(h, "receivers:1", host_rows(2, 6.0f), 6);
	cr_expect_lt(frag_harness_tick(h), 0);
	cr_expect_not_null(strstr(frag_harness_error(h), "\"image\" is f32 [1, 3] in flow 1 and "
							 "f32 [2, 3] in flow 2; convert them"),
			   "%s", frag_harness_error(h));
	frag_harness_destroy(h);
	h = make(FRAG_ARGS({"batch", "{size: 2}"}, {"inference_map", "{a: boxes}"}));
	give_frame(h, "receivers", host_rows(1, 5.0f), 5);
	give_frame(h, "receivers:1", host_rows(1, 6.0f), 6);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	for (int64_t i = 0; i < 2; i++) {
		cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
		cr_expect_eq(frag_metadata_get_i64(frag_message_metadata(m), "flow", &flow), 0);
		cr_expect_eq(flow, i);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
	write_model(model_path, "engine of tests\ninput image 1 n 3\noutput boxes 1 5 2\n");
	h = make(FRAG_ARGS({"batch", "{size: 2}"}, {"inference_map", "{a: boxes}"}));
	give_frame(h, "receivers", host_rows(1, 5.0f), 5);
	give_frame(h, "receivers:1", host_rows(1, 6.0f), 6);
	cr_expect_lt(frag_harness_tick(h), 0);
	cr_expect_not_null(strstr(frag_harness_error(h), "no part for each of 2 frames"), "%s",
			   frag_harness_error(h));
	frag_harness_destroy(h);
}
