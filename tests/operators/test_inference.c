// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "inference/inference.h"
#include "inference_harness.h"

/*
 * The operator inference with the engine of tests/engine, which is loaded in place of OpenVINO.
 * Models are files in a folder of their own.
 */
static char folder[] = "/tmp/frag-inference-XXXXXX";
static char model_path[PATH_MAX], other_path[PATH_MAX], log_path[PATH_MAX];

static void use_engine(void)
{
	setenv("FRAG_OPENVINO", built("tests/engine"), 1);
	cr_assert_not_null(mkdtemp(folder));
	snprintf(model_path, sizeof(model_path), "%s/a.model", folder);
	snprintf(other_path, sizeof(other_path), "%s/b.model", folder);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	setenv("FRAG_TEST_ENGINE_LOG", log_path, 1);
}

static void remove_files(void)
{
	unlink(model_path);
	unlink(other_path);
	unlink(log_path);
	rmdir(folder);
}

TestSuite(ops_inference, .init = use_engine, .fini = remove_files);

/* u8 [1, 2, 2, 3] in, f32 [1, 4] and i32 [1] out */
static const char small[] = "engine of tests\n"
			    "input image 16 1 2 2 3\n"
			    "output boxes 4 1 4\n"
			    "output count 9 1\n";

static struct frag_tensor *tensor(int32_t ndim, const int64_t *shape, const uint8_t *values)
{
	struct frag_tensor *t;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, ndim,
					shape, &t),
		     0);
	if (values != NULL)
		memcpy(frag_tensor_writable(t), values, frag_tensor_size_bytes(t));
	else if (frag_tensor_size_bytes(t) > 0)
		memset(frag_tensor_writable(t), 7, frag_tensor_size_bytes(t));
	return t;
}

static char paths[2 * PATH_MAX + 64];

struct frag_harness *create(const struct frag_arg *more, struct frag_err *err)
{
	struct frag_arg args[16] = {
		{"model_path_map", paths},
		{"pre_processor_map", "{a: [image]}"},
		{"inference_map", "{a: [boxes, number]}"},
	};
	size_t count = 3;

	snprintf(paths, sizeof(paths), "{a: %s}", model_path);
	for (; more != NULL && more->name != NULL; more++)
		args[count++] = *more;
	return frag_harness_create(&inference_inference_type, args, err);
}

static const float *floats(const struct frag_message *m, const char *name)
{
	const struct frag_tensor *t = frag_message_tensor(m, name);

	cr_assert_not_null(t, "no tensor %s", name);
	return frag_tensor_data(t);
}

/* The outputs have the names of inference_map: by the model's own name, else by the place. */
Test(ops_inference, runs_a_model)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(NULL);
	m = run_once(h, tensor(4, (int64_t[]){1, 2, 2, 3}, NULL));
	cr_expect_eq(frag_message_tensor_count(m), 2);
	cr_expect_float_eq(floats(m, "boxes")[3], 7.0f, 1e-6f);
	cr_expect_eq(*(const int32_t *)frag_tensor_data(frag_message_tensor(m, "number")), 8);
	cr_expect(dl(m, "boxes")->ndim == 2 && dl(m, "boxes")->shape[1] == 4);
	frag_message_unref(m);
	frag_harness_destroy(h);
	h = make(FRAG_ARGS({"inference_map", "{a: ['count:0', boxes]}"},
			   {"out_tensor_names", "['count:0']"}));
	m = run_once(h, tensor(4, (int64_t[]){1, 2, 2, 3}, NULL));
	cr_expect_eq(frag_message_tensor_count(m), 1);
	cr_expect_eq(*(const int32_t *)frag_tensor_data(frag_message_tensor(m, "count:0")), 8);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

/* A frame lacks the model's first dimension; a batch has a larger one, or is empty. */
Test(ops_inference, takes_single_frames_and_batches)
{
	uint8_t values[9 * 12];
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(NULL);
	m = run_once(h, tensor(3, (int64_t[]){2, 2, 3}, NULL));
	cr_expect_eq(dl(m, "boxes")->shape[0], 1);
	frag_message_unref(m);
	for (size_t i = 0; i < sizeof(values); i++)
		values[i] = (uint8_t)(i / 12);
	m = run_once(h, tensor(4, (int64_t[]){9, 2, 2, 3}, values));
	cr_expect(dl(m, "boxes")->shape[0] == 9 && dl(m, "number")->shape[0] == 9);
	for (int i = 0; i < 9; i++)
		cr_expect_float_eq(floats(m, "boxes")[4 * i], (float)i, 1e-6f);
	frag_message_unref(m);
	m = run_once(h, tensor(4, (int64_t[]){0, 2, 2, 3}, NULL));
	cr_expect(dl(m, "boxes")->shape[0] == 0 && dl(m, "boxes")->shape[1] == 4);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

/* "" takes a tensor without a name, or else the first one that came. */
Test(ops_inference, the_first_message_that_has_the_tensor_counts)
{
	static const struct {
		const char *takes, *first, *second; /* names; the values are 1 and 2 */
		float expected;
	} cases[] = {
		{"{a: [image]}", "image", "image", 1}, {"{a: [image]}", "image", "other", 1},
		{"{a: [image]}", "other", "image", 2}, {"{a: ['']}", "", "", 1},
		{"{a: ['']}", "image", "", 2},         {"{a: ['']}", "image", "other", 1},
	};

	write_model(model_path, small);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h = make(FRAG_ARGS({"pre_processor_map", cases[i].takes}));
		struct frag_message *m = NULL;

		for (uint8_t n = 1; n <= 2; n++) {
			uint8_t values[12];

			memset(values, n, sizeof(values));
			cr_assert_eq(
				frag_harness_give_tensor(h, n == 1 ? "receivers" : "receivers:1",
							 n == 1 ? cases[i].first : cases[i].second,
							 tensor(3, (int64_t[]){2, 2, 3}, values)),
				0);
		}
		cr_assert_eq(frag_harness_tick(h), 0, "case %zu: %s", i, frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
		cr_expect_float_eq(floats(m, "boxes")[0], cases[i].expected, 1e-6f, "case %zu", i);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

Test(ops_inference, what_does_not_fit_is_explained)
{
	static const char wants[] =
		"model a wants its input \"image\" as u8 [1, 2, 2, 3], and the tensor \"image\" that came is u8 ";
	struct frag_harness *h;

	write_model(model_path, small);
	h = make(NULL);
	tick_fails(h, "image", tensor(3, (int64_t[]){4, 4, 3}, NULL), wants);
	tick_fails(h, "image", tensor(3, (int64_t[]){4, 4, 3}, NULL), "[4, 4, 3]; convert it");
	tick_fails(h, "image", tensor(5, (int64_t[]){1, 1, 2, 2, 3}, NULL), wants);
	tick_fails(h, "picture", tensor(3, (int64_t[]){2, 2, 3}, NULL),
		   "no message holds the tensor \"image\" of model a; these came: \"picture\"");
	frag_harness_destroy(h);
	write_model(model_path, "engine of tests\ninput image 4 1 2 2 3\noutput boxes 4 1\n");
	h = make(FRAG_ARGS({"inference_map", "{a: boxes}"}));
	tick_fails(h, "image", tensor(3, (int64_t[]){2, 2, 3}, NULL), "as f32 [1, 2, 2, 3]");
	frag_harness_destroy(h);
}

/* Compares what the engine has compiled. */
static void expect_log(const char *expected)
{
	char lines[512] = "";
	FILE *log = fopen(log_path, "r");

	cr_assert_not_null(log);
	cr_expect_gt(fread(lines, 1, sizeof(lines) - 1, log), 0);
	fclose(log);
	cr_expect_str_eq(lines, expected, "%s", lines);
}

/* Two operators and two entries of one file: it is compiled once. */
Test(ops_inference, a_file_is_compiled_once)
{
	struct frag_harness *h, *second;

	write_model(model_path, small);
	h = make(NULL);
	second = make(NULL);
	frag_message_unref(run_once(second, tensor(3, (int64_t[]){2, 2, 3}, NULL)));
	frag_harness_destroy(h);
	frag_message_unref(run_once(second, tensor(3, (int64_t[]){2, 2, 3}, NULL)));
	frag_harness_destroy(second);
	expect_log("compiled for CPU PERFORMANCE_HINT=LATENCY INFERENCE_PRECISION_HINT=f32\n");
}

/* What differs in one setting only is another model. */
Test(ops_inference, settings_reach_the_engine)
{
	static const struct frag_arg rows[][4] = {
		{{"streams", "4"}, {NULL, NULL}},
		{{"threads", "2"}, {NULL, NULL}},
		{{"enable_fp16", "true"}, {NULL, NULL}},
		{{"streams", "4"}, {"threads", "2"}, {"enable_fp16", "true"}, {NULL, NULL}}};
	struct frag_harness *plain, *set[FRAG_COUNT_OF(rows)];

	write_model(model_path, small);
	plain = make(NULL);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		set[i] = make(rows[i]);
	frag_harness_destroy(plain);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		frag_harness_destroy(set[i]);
	expect_log("compiled for CPU PERFORMANCE_HINT=LATENCY INFERENCE_PRECISION_HINT=f32\n"
		   "compiled for CPU PERFORMANCE_HINT=LATENCY INFERENCE_PRECISION_HINT=f32 "
		   "NUM_STREAMS=4\n"
		   "compiled for CPU PERFORMANCE_HINT=LATENCY INFERENCE_PRECISION_HINT=f32 "
		   "INFERENCE_NUM_THREADS=2\n"
		   "compiled for CPU PERFORMANCE_HINT=LATENCY INFERENCE_PRECISION_HINT=f16\n"
		   "compiled for CPU PERFORMANCE_HINT=LATENCY INFERENCE_PRECISION_HINT=f16 "
		   "INFERENCE_NUM_THREADS=2 NUM_STREAMS=4\n");
}

static void create_two(struct frag_harness **out, const char *more_name, const char *more)
{
	struct frag_err err = FRAG_ERR_INIT;

	snprintf(paths, sizeof(paths), "{a: %s, b: %s}", model_path, other_path);
	*out = frag_harness_create(&inference_inference_type,
				   FRAG_ARGS({"model_path_map", paths},
					     {"pre_processor_map", "{a: [image], b: [image]}"},
					     {"inference_map", "{a: [boxes], b: [class]}"},
					     {more_name, more}),
				   &err);
	cr_assert_not_null(*out, "%s", err.text);
}

static const char other[] = "engine of tests\ninput image 16 1 2 2 3\noutput - 4 1 5\n";

Test(ops_inference, several_models_in_one_operator)
{
	static const char *const parallel[] = {"true", "false"};

	write_model(model_path, small);
	write_model(other_path, other);
	for (int i = 0; i < 2; i++) {
		struct frag_harness *h;
		struct frag_message *m;

		create_two(&h, "parallel_inference", parallel[i]);
		m = run_once(h, tensor(3, (int64_t[]){2, 2, 3}, NULL));
		cr_expect(dl(m, "boxes")->shape[1] == 4 && dl(m, "class")->shape[1] == 5);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

Test(ops_inference, models_that_want_one_tensor_differently_are_refused)
{
	static const struct {
		const char *input, *wants; /* NULL: it fits */
	} cases[] = {
		{"input image 16 1 2 2 3\n", NULL},
		{"input image 16 5 2 2 3\n", NULL},
		{"input image 16 2 2 3\n", NULL},
		{"input image 16 1 -1 -1 3\n", NULL},
		{"input image 4 1 2 2 3\n", "b as f32 [1, 2, 2, 3]; convert it"},
		{"input image 16 1 4 4 3\n", "b as u8 [1, 4, 4, 3]; convert it"},
	};
	char both[2 * PATH_MAX + 64];

	write_model(model_path, small);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct frag_arg args[] = {
			{"model_path_map", both},
			{"pre_processor_map", "{a: [image], b: [image]}"},
			{"inference_map", "{a: [boxes, number], b: [class]}"},
			{NULL, NULL},
		};
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h;
		char text[200];

		snprintf(text, sizeof(text), "engine of tests\n%soutput class 4 1 5\n",
			 cases[i].input);
		write_model(other_path, text);
		snprintf(both, sizeof(both), "{a: %s, b: %s}", model_path, other_path);
		h = frag_harness_create(&inference_inference_type, args, &err);
		if (cases[i].wants == NULL) {
			cr_expect_not_null(h, "%s: %s", cases[i].input, err.text);
		} else {
			cr_expect_null(h);
			cr_expect_not_null(strstr(err.text, "both take the tensor \"image\", which "
							    "a wants as u8 [1, 2, 2, 3], and "),
					   "%s", err.text);
			cr_expect_not_null(strstr(err.text, cases[i].wants), "%s", err.text);
		}
		frag_harness_destroy(h);
	}
}

/* The latest result of a model that rests is emitted again; one that is off makes none. */
Test(ops_inference, models_may_rest_or_be_off)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	write_model(other_path, other);
	create_two(&h, "temporal_map", "{b: 2}");
	for (uint8_t i = 0; i < 4; i++) {
		uint8_t values[12];

		memset(values, i, sizeof(values));
		m = run_once(h, tensor(3, (int64_t[]){2, 2, 3}, values));
		cr_expect_float_eq(floats(m, "boxes")[0], (float)i, 1e-6f);
		cr_expect_float_eq(floats(m, "class")[0], (float)(i - i % 2), 1e-6f);
		frag_message_unref(m);
	}
	frag_harness_destroy(h);
	create_two(&h, "activation_map", "{b: 0}");
	m = run_once(h, tensor(3, (int64_t[]){2, 2, 3}, NULL));
	cr_expect_eq(frag_message_tensor_count(m), 1);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

Test(ops_inference, bad_models_are_refused_before_anything_runs)
{
	char onnx[64], large[80];

	snprintf(onnx, sizeof(onnx), "%s/a.onnx", folder);
	refused(NULL, "a.model: No such file or directory; check model_path_map");
	write_model(model_path, "");
	refused(NULL, "is empty; copy or download it again");
	write_model(model_path, "engine of tests\ninput im");
	refused(NULL, "is not a model that OpenVINO reads: this is no model of the tests; give it");
	snprintf(large, sizeof(large), "{a: %s}", onnx);
	write_model(onnx, "");
	cr_assert_eq(truncate(onnx, (off_t)1 << 31), 0);
	refused(FRAG_ARGS({"model_path_map", large}),
		"has 2147483648 bytes, and a file of ONNX has 2 GB at most; export the model");
	unlink(onnx);
	write_model(model_path, "engine of tests\nlacks acme.Frobnicate, Sqeeze-9\n");
	refused(NULL, "/a.model uses operations that OpenVINO does not have: acme.Frobnicate, "
		      "Sqeeze-9; export the model with others");
	write_model(model_path, small);
	refused(FRAG_ARGS({"pre_processor_map", "{a: [x, y]}"}),
		"gives 2 tensors to model a, which takes 1: \"image\" u8 [1, 2, 2, 3]; name one");
	refused(FRAG_ARGS({"inference_map", "{a: [x, y, z]}"}),
		"names 3 outputs of model a, which has 2: \"boxes\" f32 [1, 4], \"count\" i32 [1]");
}

/* Each beside one that is just accepted. */
Test(ops_inference, what_no_tensor_can_be_is_refused_by_name)
{
	static const struct {
		const char *model, *says;
	} cases[] = {
		{"input image 23 1\noutput boxes 4 1\n",
		 "the input \"image\" of /tmp/frag-inference-"},
		{"input image 23 1\noutput boxes 4 1\n",
		 "holds texts, which no tensor does; export"},
		{"input image 16 1\noutput boxes 14 1\n",
		 "/a.model holds u4, which no tensor does"},
		{"input image 16 1\noutput boxes 6 1\n", "the output \"boxes\" of /tmp/frag-"},
		{"input image 16 1\noutput boxes 99 1\n", "a type that the engine does not name"},
		{"input image 16 1 1 1 1 1 1 1 1 1\noutput boxes 4 1\n",
		 "a.model has 9 dimensions, and a tensor has 8 at most; export"},
		{"input image 16 1\noutput boxes 4 1 1 1 1 1 1 1 1 1\n", "the output \"boxes\" of"},
	};
	const char *taken[] = {"input image 16 1 1 1 1 1 1 1 1\noutput boxes 4 1 1 1 1 1 1 1 1\n",
			       "input image 1 1\noutput boxes 3 1\n",
			       "input image 2 1\noutput boxes 1 1\n"};
	char text[200];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		snprintf(text, sizeof(text), "engine of tests\n%s", cases[i].model);
		write_model(model_path, text);
		refused(FRAG_ARGS({"inference_map", "{a: boxes}"}), cases[i].says);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(taken); i++) {
		snprintf(text, sizeof(text), "engine of tests\n%s", taken[i]);
		write_model(model_path, text);
		frag_harness_destroy(make(FRAG_ARGS({"inference_map", "{a: boxes}"})));
	}
}

/* An output without dimensions is one number; a batch of several runs makes several. */
Test(ops_inference, outputs_without_dimensions)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, "engine of tests\ninput image 16 1 3\noutput boxes 4\n");
	h = make(FRAG_ARGS({"inference_map", "{a: boxes}"}));
	m = run_once(h, tensor(2, (int64_t[]){1, 3}, NULL));
	cr_expect_eq(dl(m, "boxes")->ndim, 0);
	cr_expect_float_eq(floats(m, "boxes")[0], 7.0, 1e-6);
	frag_message_unref(m);
	tick_fails(h, "image", tensor(2, (int64_t[]){2, 3}, NULL),
		   "into the tensor \"boxes\", which has no dimensions; give the model one input");
	frag_harness_destroy(h);
}

/* A side that the model leaves open may be 0; then the model runs, and says what it makes of it. */
Test(ops_inference, empty_tensors_are_given_to_the_model)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, "engine of tests\ninput image 16 -1 3\noutput boxes 4 -1 2\n");
	h = make(FRAG_ARGS({"inference_map", "{a: boxes}"}));
	m = run_once(h, tensor(2, (int64_t[]){0, 3}, NULL));
	cr_expect(dl(m, "boxes")->ndim == 2 && dl(m, "boxes")->shape[0] == 0 &&
		  dl(m, "boxes")->shape[1] == 2);
	frag_message_unref(m);
	m = run_once(h, tensor(2, (int64_t[]){2, 3}, NULL));
	cr_expect_eq(dl(m, "boxes")->shape[0], 2);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

Test(ops_inference, the_layout_that_fits_is_named)
{
	static const struct {
		const char *model;
		int64_t shape[3];
		const char *says;
	} cases[] = {
		{"input image 16 1 3 8 9\n", {8, 9, 3}, "out_dtype, out_layout: chw)"},
		{"input image 16 1 3 8 9\n", {80, 90, 3}, "out_dtype, out_layout: chw)"},
		{"input image 16 1 8 9 3\n", {3, 8, 9}, "out_dtype, out_layout: hwc)"},
		{"input image 16 1 8 9 3\n", {80, 90, 3}, "out_dtype)"},
		{"input image 16 1 3 8 9\n", {3, 80, 90}, "out_dtype)"},
		{"input image 16 1 3 8 9\n", {8, 9, 1}, "out_dtype)"},
		/* a picture has 1 to 4 channels */
		{"input image 16 1 1 8 9\n", {8, 9, 1}, "out_dtype, out_layout: chw)"},
		{"input image 16 1 8 9 1\n", {1, 8, 9}, "out_dtype, out_layout: hwc)"},
		{"input image 16 1 4 8 9\n", {8, 9, 4}, "out_dtype, out_layout: chw)"},
		{"input image 16 1 8 9 4\n", {4, 8, 9}, "out_dtype, out_layout: hwc)"},
		{"input image 16 1 5 8 9\n", {8, 9, 5}, "out_dtype)"},
		{"input image 16 1 8 9 5\n", {5, 8, 9}, "out_dtype)"},
		{"input image 16 1 3 8 9\n", {3, 80, 3}, "out_dtype)"},
		{"input image 16 1 8 9 3\n", {3, 80, 3}, "out_dtype)"},
	};
	char text[200];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h;

		snprintf(text, sizeof(text), "engine of tests\n%soutput boxes 4 1\n",
			 cases[i].model);
		write_model(model_path, text);
		h = make(FRAG_ARGS({"inference_map", "{a: boxes}"}));
		tick_fails(h, "image", tensor(3, cases[i].shape, NULL), cases[i].says);
		frag_harness_destroy(h);
	}
}

Test(ops_inference, wrong_parameters_are_refused)
{
	write_model(model_path, small);
	refused(FRAG_ARGS({"backend", "torch"}), "reads TorchScript; export the model as ONNX");
	refused(FRAG_ARGS({"backend", "magic"}), "is unknown; use openvino or onnxruntime");
	refused(FRAG_ARGS({"pre_processor_map", "{b: [image]}"}), "which model_path_map lacks");
	refused(FRAG_ARGS({"inference_map", "{}"}), "names no tensor of the model a");
	refused(FRAG_ARGS({"inference_map", "{a: {b: c}}"}), "neither a text nor a list");
	refused(FRAG_ARGS({"inference_map", "[a]"}), "inference_map is not a map");
	refused(FRAG_ARGS({"in_tensor_names", "[x]"}), "which in_tensor_names lacks");
	refused(FRAG_ARGS({"out_tensor_names", "[x]"}), "\"x\", which no model makes");
	refused(FRAG_ARGS({"device_map", "{a: \"0\"}"}),
		"model a is to run on a GPU, and openvino runs models on the CPU; use backend: on");
	refused(FRAG_ARGS({"device_map", "{a: moon}"}), "the model a on \"moon\"; write cpu, gpu");
	frag_harness_destroy(make(FRAG_ARGS({"device_map", "{a: CPU}"})));
	refused(FRAG_ARGS({"infer_on_cpu", "false"}), "use backend: onnxruntime for a GPU");
	refused(FRAG_ARGS({"dla_core", "0"}), "dla_core needs TensorRT; set provider: tensorrt");
	refused(FRAG_ARGS({"is_engine_path", "true"}), "engines of TensorRT are not read; give");
	refused(FRAG_ARGS({"inference_map", "{a: [boxes, boxes]}"}),
		"names the output \"boxes\" of model a twice");
	refused(FRAG_ARGS({"temporal_map", "{a: often}"}), "a is not a number");
}

Test(ops_inference, a_run_that_fails_fails_the_operator)
{
	struct frag_harness *h;
	char text[256];

	snprintf(text, sizeof(text), "%sfails\n", small);
	write_model(model_path, text);
	h = make(NULL);
	tick_fails(h, "image", tensor(4, (int64_t[]){6, 2, 2, 3}, NULL),
		   "the model failed: a run of the tests failed; check");
	frag_harness_destroy(h);
}

Test(ops_inference, without_the_engine_the_sentence_says_how_to_get_it)
{
	write_model(model_path, small);
	setenv("FRAG_OPENVINO", folder, 1);
	refused(NULL, "run make deps-ai, or set FRAG_OPENVINO to the folder");
}

Test(ops_inference, an_engine_that_is_too_old_is_refused)
{
	write_model(model_path, small);
	setenv("FRAG_TEST_ENGINE_VERSION", "2023.1.0", 1);
	refused(NULL, "is of OpenVINO 2023.1.0; use 2025 or newer");
}
