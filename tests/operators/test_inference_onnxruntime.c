// SPDX-License-Identifier: Apache-2.0
#include "inference_onnxruntime.h"
#include "inference/inference_state.h"

Test(ops_onnxruntime, runs_models_on_the_cpu)
{
	const char *models[] = {small, any, found};
	struct frag_harness *h;
	struct frag_message *m;

	for (size_t i = 0; i < FRAG_COUNT_OF(models); i++) {
		write_model(model_path, models[i]);
		h = make(FRAG_ARGS({"threads", "3"}));
		m = run_once(h, host_rows(1, 7.0f));
		cr_expect_float_eq(element(m, "boxes", 1), 7.0f, 0);
		cr_expect_float_eq(element(m, "scores", 0), 8.0f, 0);
		cr_expect(dl(m, "boxes")->ndim == 2 && dl(m, "boxes")->shape[1] == 2);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
	cr_expect(is_logged("session cpu 3\n"));
	/* nothing about the models leaves the machine */
	cr_expect(is_logged("telemetry off") && !is_logged("telemetry on"));
}

Test(ops_onnxruntime, an_input_without_a_shape_takes_any)
{
	struct frag_harness *h;

	write_model(model_path, "engine of tests\ninput image 1\noutput boxes 1 1 2\n"
				"output scores 1 1\n");
	h = make(NULL);
	for (int64_t count = 1; count <= 2; count++) {
		struct frag_message *m = run_once(h, host_rows(count, 7.0f));

		cr_expect_float_eq(element(m, "boxes", 1), 7.0f, 0);
		cr_expect(dl(m, "boxes")->ndim == 2 && dl(m, "boxes")->shape[0] == 1);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
}

/* Six inputs of a model for one: six runs, up to four at a time, in their order. */
Test(ops_onnxruntime, batches_keep_their_order)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(NULL);
	for (int tick = 0; tick < 2; tick++) {
		m = run_once(h, host_rows(6, 10.0f));
		cr_expect(dl(m, "boxes")->shape[0] == 6 && dl(m, "scores")->shape[0] == 6);
		for (size_t i = 0; i < 6; i++) {
			cr_expect_float_eq(element(m, "boxes", 2 * i + 1), 10.0f + (float)i, 0);
			cr_expect_float_eq(element(m, "scores", i), 11.0f + (float)i, 0);
		}
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
	write_model(model_path, any);
	h = make(NULL);
	m = run_once(h, host_rows(6, 10.0f));
	cr_expect(dl(m, "boxes")->shape[0] == 6);
	frag_message_unref(m);
	m = run_once(h, host_rows(0, 0.0f));
	cr_expect(dl(m, "boxes")->shape[0] == 0 && dl(m, "boxes")->shape[1] == 2);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

/* What would help is not to convert the tensor, but to give more of them. */
Test(ops_onnxruntime, a_model_of_several_at_a_time_asks_for_as_many)
{
	const char *sentence =
		"model a takes 4 at a time of its input \"image\", f32 [4, 3], and the "
		"tensor \"image\" that came is f32 [3, 3]; give it as many, with "
		"batch: {size: 4}";
	struct frag_harness *h;

	write_model(model_path, "engine of tests\ninput image 1 4 3\noutput boxes 1 4 2\n");
	h = make(FRAG_ARGS({"inference_map", "{a: boxes}"}));
	frag_message_unref(run_once(h, host_rows(8, 1.0f)));
	tick_fails(h, "image", host_rows(3, 1.0f), sentence);
	frag_harness_destroy(h);
	write_model(model_path, "engine of tests\ninput image 1 4 5\noutput boxes 1 4 2\n");
	h = make(FRAG_ARGS({"inference_map", "{a: boxes}"}));
	tick_fails(h, "image", host_rows(3, 1.0f), "convert it before");
	frag_harness_destroy(h);
}

Test(ops_onnxruntime, outputs_that_are_not_named_take_free_places)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS({"inference_map", "{a: [scores, corners]}"}));
	m = run_once(h, host_rows(1, 7.0f));
	cr_expect(dl(m, "scores")->ndim == 1 && dl(m, "corners")->ndim == 2);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

Test(ops_onnxruntime, bad_models_are_refused_before_anything_runs)
{
	write_model(model_path, "engine of tests\nlacks acme:Frobnicate\n");
	refused(NULL, "/a.model uses operations that ONNX Runtime does not have: Load model failed:"
		      "Fatal error: acme:Frobnicate(-1) is not a registered function/op; export");
	write_model(model_path, "no model");
	refused(NULL, "is not a model that ONNX Runtime reads: Load model failed:Protobuf parsing "
		      "failed.; give it .onnx");
	cr_assert_eq(truncate(model_path, (off_t)1 << 31), 0);
	refused(NULL, "has 2147483648 bytes, and a file of ONNX has 2 GB at most; export the model "
		      "with its weights in files beside it (external data)");
	write_model(model_path, "engine of tests\ninput image 8 1\noutput boxes 1 1\n");
	refused(NULL, "the input \"image\" of /tmp/frag-onnxruntime-");
	refused(NULL, "holds texts, which no tensor does; export the model so that it holds "
		      "numbers of 8 bits or more (of texts, the numbers of their tokens)");
	write_model(model_path, "engine of tests\ninput image 99 1\noutput boxes 1 1\n");
	refused(NULL, "is no tensor but a sequence, a map or an optional; export");
	write_model(model_path, "engine of tests\ninput image 1 1 1 1 1 1 1 1 1 1\noutput b 1 1\n");
	refused(NULL, "has 9 dimensions, and a tensor has 8 at most");
	write_model(model_path, small);
	setenv("FRAG_ONNXRUNTIME", folder, 1);
	refused(FRAG_ARGS({"inference_map", "{a: [boxes, boxes]}"}), "of model a twice");
}

Test(ops_onnxruntime, without_the_engine_the_sentence_says_how_to_get_it)
{
	write_model(model_path, small);
	setenv("FRAG_ONNXRUNTIME", folder, 1);
	refused(NULL, "run make deps-ai, or set FRAG_ONNXRUNTIME to the folder");
}

Test(ops_onnxruntime, an_engine_that_is_too_old_is_refused)
{
	write_model(model_path, small);
	setenv("FRAG_TEST_ENGINE_VERSION", "1.15.9", 1);
	refused(NULL, "is of ONNX Runtime 1.15.9; use 1.16 or newer (make deps-ai)");
	setenv("FRAG_TEST_ENGINE_VERSION", "1.16.0", 1);
	frag_harness_destroy(make(NULL));
}

Test(ops_onnxruntime, a_run_that_fails_fails_the_operator)
{
	struct frag_harness *h;
	char text[256];

	snprintf(text, sizeof(text), "%sfails\n", small);
	write_model(model_path, text);
	h = make(NULL);
	tick_fails(h, "image", host_rows(6, 1.0f),
		   "the model failed: Non-zero status code returned while");
	frag_harness_destroy(h);
	snprintf(text, sizeof(text), "%smemory\n", small);
	write_model(model_path, text);
	h = make(NULL);
	tick_fails(
		h, "image", host_rows(1, 1.0f),
		"the model failed: Available memory of 9 is smaller than requested bytes of 99; give "
		"it smaller batches or frames, or use");
	frag_harness_destroy(h);
}

static struct frag_message *with_activation(const char *text)
{
	struct frag_metadata *metadata;
	struct frag_message *m = frag_message_create();

	cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &metadata), 0);
	frag_metadata_set_string(metadata, "activation_map", text);
	cr_assert_eq(frag_message_add_tensor(m, "image", host_rows(1, 5.0f)), 0);
	cr_assert_eq(frag_message_set_metadata(m, metadata), 0);
	frag_metadata_destroy(metadata);
	return m;
}

/* The metadata of a message switches models for its tick, and for that one alone. */
Test(ops_onnxruntime, a_message_switches_models)
{
	static const struct {
		const char *text;
		uint32_t tensors;
	} cases[] = {{"a: 0", 1}, {"{a: 0, b: 1}", 1}, {"a=1,b=1", 2}, {"", 2}, {NULL, 2}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	write_model(other_path, small);
	snprintf(paths, sizeof(paths), "{a: %s, b: %s}", model_path, other_path);
	h = frag_harness_create(&inference_inference_type,
				FRAG_ARGS({"backend", "onnxruntime"}, {"model_path_map", paths},
					  {"pre_processor_map", "{a: image, b: image}"},
					  {"inference_map", "{a: boxes, b: corners}"}),
				&err);
	cr_assert_not_null(h, "%s", err.text);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		if (cases[i].text != NULL)
			frag_harness_give(h, "receivers", with_activation(cases[i].text));
		else
			frag_harness_give_tensor(h, "receivers", "image", host_rows(1, 5.0f));
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
		cr_expect_eq(frag_message_tensor_count(m), cases[i].tensors, "%zu", i);
		frag_message_unref(m);
	}
	frag_harness_give(h, "receivers", with_activation("c: 1"));
	cr_expect_lt(frag_harness_tick(h), 0);
	cr_expect_not_null(strstr(frag_harness_error(h), "names the model c, which model_path_map"),
			   "%s", frag_harness_error(h));
	frag_harness_destroy(h);
}

/* A model that has not run yet runs in its first tick, whichever that is. */
Test(ops_onnxruntime, a_model_that_was_off_has_results_when_it_is_on)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS({"temporal_map", "{a: 1000}"}));
	frag_harness_give(h, "receivers", with_activation("a: 0"));
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_expect_lt(frag_harness_take(h, "transmitter", &m), 0);
	m = run_once(h, host_rows(1, 7.0f));
	cr_expect_float_eq(element(m, "scores", 0), 8.0f, 0);
	frag_message_unref(m);
	m = run_once(h, host_rows(1, 9.0f));
	cr_expect_float_eq(element(m, "scores", 0), 8.0f, 0, "it runs in every 1000 ticks");
	frag_message_unref(m);
	frag_harness_destroy(h);
}

/* Ticks until the log of a change was written, or too often. Returns the first element. */
static float until_replaced(struct frag_harness *h, float expected)
{
	float value = 0.0f;

	for (int i = 0; i < 2000 && value != expected; i++) {
		struct frag_message *m = run_once(h, host_rows(1, 7.0f));

		value = element(m, "scores", 0);
		frag_message_unref(m);
		usleep(1000);
	}
	return value;
}

/* Compiling takes minutes at times; whoever gives a model back meanwhile waits for nothing. */
Test(ops_onnxruntime, models_are_given_back_while_another_one_is_compiled)
{
	struct frag_harness *slow, *other;
	struct inference *in;

	write_model(model_path, small);
	write_model(other_path, "engine of tests\nslow\ninput image 1 1 3\noutput boxes 1 1 2\n"
				"output more 1 1 2\noutput scores 1 1\n");
	slow = make(NULL);
	other = make(FRAG_ARGS({"threads", "1"})); /* a model of its own */
	in = frag_harness_state(slow);
	in->model = 2;
	frag_message_unref(run_once(slow, host_rows(1, 7.0f)));
	usleep(100 * 1000); /* until it is being compiled */
	alarm(20);
	frag_harness_destroy(other);
	alarm(0);
	cr_expect(in->loader.is_begun);
	write_model(gate, "");
	cr_expect_float_eq(until_replaced(slow, 9.0f), 9.0f, 0);
	frag_harness_destroy(slow);
}

/* The one in use goes on until the other one is compiled, and stays when it cannot be. */
Test(ops_onnxruntime, a_model_is_replaced_while_it_runs)
{
	struct frag_harness *h;
	struct frag_message *m;
	struct inference *in;

	write_model(model_path, small);
	write_model(other_path, "engine of tests\nslow\ninput image 1 1 3\noutput boxes 1 1 2\n"
				"output more 1 1 2\noutput scores 1 1\n");
	h = make(NULL);
	in = frag_harness_state(h);
	in->model = 2;
	for (int i = 0; i < 3; i++) {
		m = run_once(h, host_rows(1, 7.0f));
		cr_expect_float_eq(element(m, "scores", 0), 8.0f, 0);
		frag_message_unref(m);
	}
	write_model(gate, "");
	cr_expect_float_eq(until_replaced(h, 9.0f), 9.0f, 0);
	in->model = 1;
	cr_expect_float_eq(until_replaced(h, 8.0f), 8.0f, 0);
	write_model(other_path, "no model");
	in->model = 2;
	m = run_once(h, host_rows(1, 7.0f));
	frag_message_unref(m);
	for (int i = 0; i < 2000 && in->loader.is_begun; i++) {
		usleep(1000);
		m = run_once(h, host_rows(1, 7.0f));
		cr_expect_float_eq(element(m, "scores", 0), 8.0f, 0);
		frag_message_unref(m);
	}
	cr_expect(!in->loader.is_begun);
	frag_harness_destroy(h);
}

/* Also between two ticks in which it is due: there is a result in each. */
Test(ops_onnxruntime, a_model_that_runs_seldom_is_replaced)
{
	struct frag_harness *h;
	struct frag_message *m;
	struct inference *in;

	write_model(model_path, small);
	write_model(other_path, "engine of tests\ninput image 1 1 3\noutput boxes 1 1 2\n"
				"output more 1 1 2\noutput scores 1 1\n");
	h = make(FRAG_ARGS({"temporal_map", "{a: 1000000}"}));
	m = run_once(h, host_rows(1, 7.0f));
	frag_message_unref(m);
	in = frag_harness_state(h);
	in->model = 2;
	cr_expect_float_eq(until_replaced(h, 9.0f), 9.0f, 0);
	frag_harness_destroy(h);
}
