// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/load.h"
#include "inference/inference.h"
#include "inference/inference_state.h"
#include "inference_harness.h"

/*
 * The operator inference with the engine of tests/engine/onnxruntime.c in place of ONNX Runtime, on
 * the CPU and over the driver of tests.
 */
#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define F32 ((struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1})

void fragi_gpu_limit_set(uint64_t bytes); /* of libfrag's data/gpu_limit.h */

static char folder[] = "/tmp/frag-onnxruntime-XXXXXX";
static char model_path[PATH_MAX], other_path[PATH_MAX], log_path[PATH_MAX], gate[PATH_MAX];

static void use_engine(void)
{
	setenv("FRAG_ONNXRUNTIME", built("tests/engine"), 1);
	cr_assert_not_null(mkdtemp(folder));
	snprintf(model_path, sizeof(model_path), "%s/a.model", folder);
	snprintf(other_path, sizeof(other_path), "%s/b.model", folder);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	snprintf(gate, sizeof(gate), "%s/gate", folder);
	setenv("FRAG_TEST_ENGINE_LOG", log_path, 1);
	setenv("FRAG_TEST_ENGINE_GATE", gate, 1);
	unsetenv("ORT_DISABLE_TELEMETRY");
	load_fake();
}

static void remove_files(void)
{
	const char *paths[] = {model_path, other_path, log_path, gate};

	for (size_t i = 0; i < FRAG_COUNT_OF(paths); i++)
		unlink(paths[i]);
	rmdir(folder);
}

TestSuite(ops_onnxruntime, .init = use_engine, .fini = remove_files);

/* f32 [1, 3] in, f32 [1, 2] and f32 [1] out */
static const char small[] = "engine of tests\ninput image 1 1 3\noutput boxes 1 1 2\n"
			    "output scores 1 1\n";
/* any number of rows; the output has as many */
static const char any[] = "engine of tests\ninput image 1 n 3\noutput boxes 1 n 2\n"
			  "output scores 1 n\n";
/* what is not known before it runs: how many rows the second one has */
static const char found[] = "engine of tests\ninput image 1 n 3\noutput boxes 1 found 2\n"
			    "output scores 1 n\n";

static struct frag_tensor *rows(struct frag_device device, int64_t count, float first)
{
	const int64_t shape[] = {count, 3};
	struct frag_tensor *host, *there;

	cr_assert_eq(frag_tensor_create(NULL, F32, 2, shape, &host), 0);
	for (int64_t i = 0; i < count * 3; i++)
		((float *)frag_tensor_writable(host))[i] = first + (float)(i / 3);
	if (device.type == FRAG_DEVICE_CPU)
		return host;
	cr_assert_eq(frag_tensor_copy(host, NULL, device, &there, NULL), 0);
	frag_tensor_unref(host);
	return there;
}

static struct frag_tensor *host_rows(int64_t count, float first)
{
	return rows((struct frag_device){FRAG_DEVICE_CPU, 0}, count, first);
}

static char paths[2 * PATH_MAX + 64];

struct frag_harness *create(const struct frag_arg *more, struct frag_err *err)
{
	struct frag_arg args[16] = {
		{"backend", "onnxruntime"},
		{"model_path_map", paths},
		{"pre_processor_map", "{a: [image]}"},
		{"inference_map", "{a: [boxes, scores]}"},
	};
	size_t count = 4;

	snprintf(paths, sizeof(paths), "{a: [%s, %s]}", model_path, other_path);
	for (; more != NULL && more->name != NULL; more++)
		args[count++] = *more;
	return frag_harness_create(&inference_inference_type, args, err);
}

/* Reads an element, wherever the tensor lies; frag_tensor_copy waits until it is written. */
static float element(const struct frag_message *m, const char *name, size_t i)
{
	struct frag_tensor *host;
	float value;

	cr_assert_eq(frag_tensor_copy(frag_message_tensor(m, name), NULL,
				      (struct frag_device){FRAG_DEVICE_CPU, 0}, &host, NULL),
		     0);
	value = ((const float *)frag_tensor_data(host))[i];
	frag_tensor_unref(host);
	return value;
}

static bool is_logged(const char *line)
{
	char text[4096] = "";
	FILE *log = fopen(log_path, "r");

	if (log != NULL) {
		cr_expect_gt(fread(text, 1, sizeof(text) - 1, log), 0);
		fclose(log);
	}
	return strstr(text, line) != NULL;
}

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

#define ON_GPU                                                                                     \
	{                                                                                          \
		"provider", "cuda"                                                                 \
	}

/* While streams do nothing, a tick is over and its message is there: nobody waits for the GPU. */
GPU_TEST(ops_onnxruntime, a_tick_gives_its_work_to_the_stream)
{
	struct frag_harness *h;
	struct frag_message *m;
	int waits;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU));
	cr_assert_eq(frag_harness_give_tensor(h, "receivers", "image", rows(GPU, 1, 6.0f)), 0);
	waits = fake.calls("cuStreamSynchronize");
	fake.hold(true);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_expect_eq(fake.calls("cuStreamSynchronize"), waits);
	fake.hold(false);
	cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
	cr_expect_eq(dl(m, "boxes")->device.type, FRAG_DEVICE_CUDA);
	cr_expect_float_eq(element(m, "boxes", 1), 6.0f, 0);
	frag_message_unref(m);
	cr_expect(is_logged("session cuda device_id=0 enable_cuda_graph=0 "));
	cr_expect(is_logged("run asynchronous 1\n") && !is_logged("run waits"));
	frag_harness_destroy(h);
}

/* Outputs of known shape are the operator's; another one is taken as the engine has made it. */
GPU_TEST(ops_onnxruntime, shapes_on_a_gpu)
{
	static const char *const models[] = {any, found};
	struct frag_harness *h;
	struct frag_message *m;

	for (size_t i = 0; i < FRAG_COUNT_OF(models); i++) {
		write_model(model_path, models[i]);
		h = make(FRAG_ARGS(ON_GPU));
		for (int64_t count = 1; count < 4; count++) {
			m = run_once(h, rows(GPU, count, 2.0f));
			cr_expect(dl(m, "boxes")->shape[0] == count &&
				  dl(m, "scores")->shape[0] == count);
			cr_expect_float_eq(element(m, "boxes", (size_t)count * 2 - 1), 2.0f, 0);
			cr_expect_float_eq(element(m, "scores", 0), 2.0f, 0);
			frag_message_unref(m);
		}
		frag_harness_destroy(h);
	}
}

GPU_TEST(ops_onnxruntime, batches_on_a_gpu_keep_their_order)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU, {"out_tensor_names", "[boxes]"}));
	m = run_once(h, rows(GPU, 5, 10.0f));
	for (size_t i = 0; i < 5; i++)
		cr_expect_float_eq(element(m, "boxes", 2 * i + 1), 10.0f + (float)i, 0);
	cr_expect_eq(frag_message_tensor_count(m), 1);
	frag_message_unref(m);
	m = run_once(h, host_rows(1, 3.0f));
	cr_expect_float_eq(element(m, "boxes", 0), 3.0f, 0);
	frag_message_unref(m);
	frag_harness_destroy(h);
	write_model(model_path, "engine of tests\ninput image 1 1 3\noutput boxes 1 found 2\n");
	h = make(FRAG_ARGS(ON_GPU, {"inference_map", "{a: boxes}"}));
	tick_fails(h, "image", rows(GPU, 2, 1.0f),
		   "cannot be joined into the tensor \"boxes\" on a GPU");
	frag_harness_destroy(h);
}

GPU_TEST(ops_onnxruntime, outputs_may_be_made_in_host_memory)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU, {"transmit_on_cuda", "false"}));
	m = run_once(h, host_rows(1, 3.0f));
	cr_expect_eq(dl(m, "boxes")->device.type, FRAG_DEVICE_CPU);
	cr_expect_float_eq(element(m, "scores", 0), 4.0f, 0);
	frag_message_unref(m);
	cr_expect(is_logged("run waits 1\n") && !is_logged("run asynchronous"));
	frag_harness_destroy(h);
}

/* A graph has memory of its own, which is copied to and from on the stream. */
GPU_TEST(ops_onnxruntime, graphs_of_cuda)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU, {"enable_cuda_graphs", "true"}));
	for (int i = 0; i < 3; i++) {
		m = run_once(h, rows(GPU, 1, (float)i));
		cr_expect_float_eq(element(m, "boxes", 1), (float)i, 0);
		frag_message_unref(m);
	}
	cr_expect(is_logged("enable_cuda_graph=1"));
	frag_harness_destroy(h);
	write_model(model_path, any);
	refused(FRAG_ARGS(ON_GPU, {"enable_cuda_graphs", "true"}),
		"enable_cuda_graphs: \"image\" of /tmp/frag-onnxruntime-");
	write_model(model_path, small);
	h = make(FRAG_ARGS({"enable_cuda_graphs", "true"}));
	frag_harness_destroy(h);
}

/* With two GPUs, each has a stream by which the module frees. */
Test(ops_onnxruntime, devices_are_chosen_as_holoscan_does)
{
	char cache[64], made[256], device[16];
	struct frag_harness *h;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	write_model(model_path, small);
	frag_harness_destroy(make(FRAG_ARGS({"infer_on_cpu", "false"}, {"backend", "onnxrt"})));
	cr_expect(is_logged("session cuda device_id=0"));
	cr_assert_eq(unlink(log_path), 0);
	frag_harness_destroy(make(FRAG_ARGS(ON_GPU, {"backend", "trt"})));
	cr_expect(is_logged("session cuda device_id=0"), "provider decides, as the advice says");
	h = make(FRAG_ARGS({"device_map", "{a: 1}"}, {"gpu_memory", "1 MiB"}));
	cr_expect(is_logged("session cuda device_id=1") && is_logged("gpu_mem_limit=1048576"));
	tick_fails(h, "image", rows(GPU, 1, 1.0f),
		   "is in memory of GPU 0, and model a runs on GPU 1; run");
	frag_harness_destroy(h);
	frag_harness_destroy(make(FRAG_ARGS(ON_GPU, {"device_map", "{a: cpu}"})));
	cr_expect(is_logged("session cpu"));
	h = make(NULL);
	tick_fails(h, "image", rows(GPU, 1, 1.0f),
		   "needs it in host memory: run the model there (backend");
	frag_harness_destroy(h);
	refused(FRAG_ARGS({"device_map", "{a: 7}"}), "");
	/* what TensorRT makes for one kind of GPU is no use to another */
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	for (int i = 0; i < 2; i++) {
		snprintf(device, sizeof(device), "{a: %d}", i);
		frag_harness_destroy(make(FRAG_ARGS({"backend", "trt"}, {"device_map", device},
						    {"engine_cache", cache})));
		snprintf(made, sizeof(made),
			 "rmdir '%s/Fake_%d-1.31.1' && { [ %d = 0 ] || rmdir '%s'; }", cache, i, i,
			 cache);
		cr_expect_eq(system(made), 0);
	}
}

/* The stream goes on meanwhile, and what the old one has emitted stays. */
GPU_TEST(ops_onnxruntime, a_model_on_a_gpu_is_replaced_while_it_runs)
{
	write_model(model_path, small);
	write_model(other_path, small);
	for (int graphs = 0; graphs < 2; graphs++) {
		struct frag_harness *h =
			make(FRAG_ARGS(ON_GPU, {"enable_cuda_graphs", graphs ? "true" : "false"}));
		struct inference *in = frag_harness_state(h);
		struct frag_message *first = run_once(h, rows(GPU, 1, 7.0f)), *m;

		in->model = 2;
		for (int i = 0; i < 2000 && strcmp(in->networks.items[0].path, other_path) != 0;
		     i++) {
			m = run_once(h, rows(GPU, 1, (float)i));
			cr_assert_float_eq(element(m, "scores", 0), (float)i, 0, "tick %d", i);
			frag_message_unref(m);
			usleep(1000);
		}
		cr_expect_str_eq(in->networks.items[0].path, other_path);
		m = run_once(h, rows(GPU, 1, 5.0f));
		cr_expect_float_eq(element(m, "scores", 0), 5.0f, 0);
		cr_expect_float_eq(element(first, "scores", 0), 7.0f, 0);
		frag_message_unref(first);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

/* A model keeps its part of what the host may have of GPUs, or all that is left. */
GPU_TEST(ops_onnxruntime, models_share_the_limit_of_the_host)
{
	struct frag_harness *first, *second;

	write_model(model_path, small);
	fragi_gpu_limit_set(3000);
	frag_harness_destroy(make(NULL));
	cr_expect_eq(frag_gpu_memory_left(), 3000, "on the CPU it takes none");
	refused(FRAG_ARGS(ON_GPU, {"gpu_memory", "3001"}),
		"3001 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 3000 bytes, and 0 are");
	first = make(FRAG_ARGS(ON_GPU, {"gpu_memory", "1000"}));
	cr_expect(is_logged("gpu_mem_limit=1000 "));
	cr_expect_eq(frag_gpu_memory_left(), 2000);
	second = make(FRAG_ARGS(ON_GPU));
	cr_expect(is_logged("gpu_mem_limit=2000 "));
	cr_expect_eq(frag_gpu_memory_left(), 0);
	refused(FRAG_ARGS(ON_GPU), "and 3000 are in use or kept for models; raise it");
	frag_harness_destroy(second);
	frag_harness_destroy(first);
	cr_expect_eq(frag_gpu_memory_left(), 3000);
	write_model(model_path, "no model");
	refused(FRAG_ARGS(ON_GPU), "");
	cr_expect_eq(frag_gpu_memory_left(), 3000, "a model that was refused keeps nothing");
}

GPU_TEST(ops_onnxruntime, tensorrt_gets_its_options)
{
	char cache[PATH_MAX], made[PATH_MAX + 64];
	struct stat file;

	write_model(model_path, small);
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	frag_harness_destroy(make(FRAG_ARGS({"backend", "trt"}, {"enable_fp16", "true"},
					    {"dla_core", "1"}, {"engine_cache", cache})));
	cr_expect(
		is_logged("session tensorrt device_id=0 trt_fp16_enable=1 trt_cuda_graph_enable=0 "
			  "trt_dla_enable=1 trt_dla_core=1 trt_engine_cache_enable=1 "));
	cr_expect(is_logged(", cuda device_id=0"), "what TensorRT leaves is for CUDA");
	cr_assert_eq(stat(cache, &file), 0);
	cr_expect_eq(file.st_mode & 0777, 0700);
	cr_assert_eq(chmod(cache, 0770), 0);
	refused(FRAG_ARGS({"backend", "trt"}, {"engine_cache", cache}),
		"other users may write to the folder /tmp/frag-onnxruntime-");
	refused(FRAG_ARGS({"backend", "trt"}, {"dla_core", "0"}, {"dla_gpu_fallback", "false"}),
		"lets the GPU do what DLA cannot");
	cr_assert_eq(chmod(cache, 0700), 0);
	snprintf(made, sizeof(made), "%s/Fake_0-1.31.1", cache);
	cr_assert_eq(chmod(made, 0777), 0);
	refused(FRAG_ARGS({"backend", "trt"}, {"engine_cache", cache}), "Fake_0-1.31.1, and an");
	snprintf(made, sizeof(made), "rm -r '%s'", cache);
	cr_expect_eq(system(made), 0);
}

/* Who may rename the folder of the cache may put another one in its place. */
GPU_TEST(ops_onnxruntime, the_folders_above_the_engines_are_looked_at)
{
	static const struct {
		mode_t mode;
		const char *words; /* NULL: it is taken */
	} cases[] = {
		{0777, "write to the folder /tmp/frag-onnxruntime-"}, {01777, NULL}, {0755, NULL}};
	char above[PATH_MAX], cache[PATH_MAX + 16], link[PATH_MAX], text[2 * PATH_MAX + 64];

	write_model(model_path, small);
	snprintf(above, sizeof(above), "%s/above", folder);
	snprintf(cache, sizeof(cache), "%s/cache", above);
	snprintf(link, sizeof(link), "%s/link", folder);
	cr_assert(mkdir(above, 0700) == 0 && symlink(cache, link) == 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct frag_arg *args =
			FRAG_ARGS({"backend", "trt"}, {"engine_cache", cache});

		cr_assert_eq(chmod(above, cases[i].mode), 0);
		if (cases[i].words != NULL)
			refused(args, cases[i].words);
		else
			frag_harness_destroy(make(args));
	}
	frag_harness_destroy(make(FRAG_ARGS({"backend", "trt"}, {"engine_cache", link})));
	snprintf(text, sizeof(text), "trt_engine_cache_path=%s/Fake_0-1.31.1", link);
	cr_expect(!is_logged(text), "who owns the link cannot change it afterwards");
	snprintf(text, sizeof(text), "rm -r '%s' '%s'", above, link);
	cr_expect_eq(system(text), 0);
}

GPU_TEST(ops_onnxruntime, what_is_missing_is_named)
{
	struct frag_harness *h;
	char text[256];

	write_model(model_path, small);
	setenv("FRAG_TEST_ENGINE_WITHOUT", "cuda", 1);
	refused(FRAG_ARGS(ON_GPU), "provider cuda does not load: Failed to load library");
	refused(FRAG_ARGS(ON_GPU), "(LD_LIBRARY_PATH), or use provider: cpu");
	unsetenv("FRAG_TEST_ENGINE_WITHOUT");
	snprintf(text, sizeof(text), "%smemory\n", small);
	write_model(model_path, text);
	refused(FRAG_ARGS(ON_GPU), "bytes of 99; give it smaller batches or frames");
	snprintf(text, sizeof(text), "%sfails\n", any);
	write_model(model_path, text);
	h = make(FRAG_ARGS(ON_GPU));
	tick_fails(h, "image", rows(GPU, 1, 1.0f), "the model failed: Non-zero status code");
	frag_harness_destroy(h);
}

GPU_TEST(ops_onnxruntime, a_provider_of_another_version_is_refused)
{
	write_model(model_path, small);
	setenv("FRAG_TEST_ENGINE_VERSION", "1.32.0", 1);
	refused(FRAG_ARGS(ON_GPU), "is 1.32.0, and its provider /");
	refused(FRAG_ARGS(ON_GPU), "_cuda.so is 1.31.1; take both from one wheel onnxruntime-gpu");
}

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
