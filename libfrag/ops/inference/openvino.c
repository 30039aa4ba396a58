// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "library.h"
#include "openvino_api.h"

/* The oldest release whose structs and numbers are those of openvino_api.h. */
#define OLDEST_YEAR 2025

/*
 * The engine is loaded when the first model is, and stays: its threads and its own libraries cannot
 * be taken out of a process safely.
 */
#define MEMBER(result, name, args) result(*name) args;
static struct {
	OV_FUNCTIONS(MEMBER)
} ov;
static ov_core_t *core;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct model {
	struct inference_model base;
	ov_compiled_model_t *compiled;
};

struct inference_request {
	ov_infer_request_t *request;
	const struct model *model;
	ov_tensor_t **inputs, **outputs; /* of the run that was started last */
	bool running;
	ov_callback_t callback; /* borrowed by the engine */
	void (*done)(void *context);
	void *context;
};

static const struct {
	int ov;
	struct frag_dtype dtype;
} element_types[] = {
	{OV_F32, {FRAG_DTYPE_FLOAT, 32, 1}},   {OV_U8, {FRAG_DTYPE_UINT, 8, 1}},
	{OV_I32, {FRAG_DTYPE_INT, 32, 1}},     {OV_I64, {FRAG_DTYPE_INT, 64, 1}},
	{OV_F16, {FRAG_DTYPE_FLOAT, 16, 1}},   {OV_F64, {FRAG_DTYPE_FLOAT, 64, 1}},
	{OV_I8, {FRAG_DTYPE_INT, 8, 1}},       {OV_I16, {FRAG_DTYPE_INT, 16, 1}},
	{OV_U16, {FRAG_DTYPE_UINT, 16, 1}},    {OV_U32, {FRAG_DTYPE_UINT, 32, 1}},
	{OV_U64, {FRAG_DTYPE_UINT, 64, 1}},    {OV_BF16, {FRAG_DTYPE_BFLOAT, 16, 1}},
	{OV_BOOLEAN, {FRAG_DTYPE_BOOL, 8, 1}},
};

static int to_dtype(int type, struct frag_dtype *out)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(element_types); i++) {
		if (element_types[i].ov == type) {
			*out = element_types[i].dtype;
			return 0;
		}
	}
	return -ENOTSUP;
}

static int from_dtype(struct frag_dtype dtype)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(element_types); i++)
		if (element_types[i].dtype.code == dtype.code &&
		    element_types[i].dtype.bits == dtype.bits)
			return element_types[i].ov;
	return 0;
}

/* The engine's message has several lines: places in its code, then what is wrong. */
static const char *reason(char *out, size_t size)
{
	const char *text = ov.get_last_err_msg();
	const char *line = text, *last = text;

	for (; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += strspn(line, "\n");
		if (line[strcspn(line, "\n")] == '\0' && *line == '\0')
			break;
		last = line;
	}
	snprintf(out, size, "%.*s", last != NULL ? (int)strcspn(last, "\n") : 0,
		 last != NULL ? last : "");
	return out[0] != '\0' ? out : "the engine gives no reason";
}

static int engine_failed(struct frag_err *err, int code, const char *what, const char *advice)
{
	char text[512];

	return frag_err_set(err, code, "%s: %s; %s", what, reason(text, sizeof(text)), advice);
}

static void *open_engine(struct frag_err *err)
{
	void *engine = inference_library_open("FRAG_OPENVINO", "openvino", "libopenvino_c.so");

	if (engine == NULL)
		frag_err_set(
			err, -ELIBACC,
			"the engine OpenVINO cannot be loaded: %s; run make deps-ai, or set FRAG_OPENVINO to the folder that holds libopenvino_c.so",
			dlerror());
	return engine;
}

static int find_symbol(void *engine, const char *name, void *out, struct frag_err *err)
{
	void *symbol = dlsym(engine, name);

	if (symbol == NULL)
		return frag_err_set(
			err, -ELIBBAD,
			"this libopenvino_c.so has no function %s; use OpenVINO %d or newer (make deps-ai)",
			name, OLDEST_YEAR);
	memcpy(out, &symbol, sizeof(symbol));
	return 0;
}

static int check_version(struct frag_err *err)
{
	ov_version_t version = {0};
	int year = 0;

	if (ov.get_openvino_version(&version) == 0 && version.buildNumber != NULL)
		year = atoi(version.buildNumber);
	if (year < OLDEST_YEAR)
		frag_err_set(
			err, -ELIBBAD,
			"this libopenvino_c.so is of OpenVINO %s; use %d or newer (make deps-ai)",
			version.buildNumber != NULL ? version.buildNumber : "unknown", OLDEST_YEAR);
	ov.version_free(&version);
	return year < OLDEST_YEAR ? -ELIBBAD : 0;
}

static int load_engine_locked(struct frag_err *err)
{
	void *engine;
	int r = 0;

	if (core != NULL)
		return 0;
	engine = open_engine(err);
	if (engine == NULL)
		return -ELIBACC;
#define FIND(result, name, args)                                                                   \
	if (r == 0)                                                                                \
		r = find_symbol(engine, "ov_" #name, &ov.name, err);
	OV_FUNCTIONS(FIND)
	if (r == 0)
		r = check_version(err);
	if (r == 0 && ov.core_create(&core) != 0)
		r = engine_failed(err, -ELIBBAD, "OpenVINO does not start",
				  "check that all its libraries are in one folder (make deps-ai)");
	if (r < 0)
		dlclose(engine);
	return r;
}

static int load_engine(struct frag_err *err)
{
	int r;

	pthread_mutex_lock(&lock);
	r = load_engine_locked(err);
	pthread_mutex_unlock(&lock);
	return r;
}

static const char *element_type_name(int type)
{
	static const struct {
		int type;
		const char *name;
	} names[] = {
		{OV_I4, "i4"},        {OV_U1, "u1"},         {OV_U2, "u2"},
		{OV_U3, "u3"},        {OV_U4, "u4"},         {OV_U6, "u6"},
		{OV_NF4, "nf4"},      {OV_F8E4M3, "f8e4m3"}, {OV_F8E5M2, "f8e5m2"},
		{OV_STRING, "texts"}, {OV_F4E2M1, "f4e2m1"}, {OV_F8E8M0, "f8e8m0"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		if (names[i].type == type)
			return names[i].name;
	}
	return "a type that the engine does not name";
}

/*
 * Describes one input or output, and refuses what no tensor can be.
 * - what: "input" or "output"
 * Returns 0 or a failure with a sentence.
 */
static int describe(const char *path, const char *what, const ov_output_const_port_t *port,
		    struct inference_tensor *out, struct frag_err *err)
{
	ov_partial_shape_t shape = {0};
	char *name = NULL;
	int type = 0;

	if (ov.port_get_any_name(port, &name) == 0)
		out->name = strdup(name);
	else
		out->name = strdup(""); /* what the model does not name */
	ov.free(name);
	if (out->name == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	if (ov.port_get_element_type(port, &type) != 0 ||
	    ov.port_get_partial_shape(port, &shape) != 0)
		return engine_failed(err, -EIO, "OpenVINO does not describe the model",
				     "use another one");
	out->ndim = shape.rank.min == shape.rank.max ? (int32_t)shape.rank.max : -1;
	if (shape.rank.min > FRAG_TENSOR_NDIM_MAX) {
		ov.partial_shape_free(&shape);
		return frag_err_set(
			err, -ENOTSUP,
			"the %s \"%s\" of %s has %d dimensions, and a tensor has %d at most; export the model so that it joins some of them",
			what, out->name, path, out->ndim, FRAG_TENSOR_NDIM_MAX);
	}
	for (int32_t i = 0; i < out->ndim; i++)
		out->shape[i] = shape.dims[i].min == shape.dims[i].max ? shape.dims[i].min : -1;
	ov.partial_shape_free(&shape);
	if (to_dtype(type, &out->dtype) == 0)
		return 0;
	return frag_err_set(
		err, -ENOTSUP,
		"the %s \"%s\" of %s holds %s, which no tensor does; export the model so that it holds numbers of 8 bits or more (of texts, the numbers of their tokens)",
		what, out->name, path, element_type_name(type));
}

static int describe_all(const char *path, const char *what, const struct model *model,
			int (*at)(const ov_compiled_model_t *, size_t, ov_output_const_port_t **),
			size_t count, struct inference_tensor **out, struct frag_err *err)
{
	int r = 0;

	*out = calloc(count + 1, sizeof(**out));
	if (*out == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	for (size_t i = 0; i < count && r == 0; i++) {
		ov_output_const_port_t *port = NULL;

		if (at(model->compiled, i, &port) != 0)
			return engine_failed(err, -EIO, "OpenVINO does not describe the model",
					     "use another one");
		r = describe(path, what, port, &(*out)[i], err);
		ov.output_const_port_free(port);
	}
	return r;
}

static void tensors_free(struct inference_tensor *tensors, size_t count)
{
	for (size_t i = 0; tensors != NULL && i < count; i++)
		free((char *)tensors[i].name);
	free(tensors);
}

static void openvino_unload(struct inference_model *base)
{
	struct model *model = (struct model *)base;

	if (model->compiled != NULL)
		ov.compiled_model_free(model->compiled);
	tensors_free(base->inputs, base->input_count);
	tensors_free(base->outputs, base->output_count);
	free(model);
}

/* Whether the engine refused a model for what it uses; then *out lists that. */
static bool lacks_operations(char *out, size_t size)
{
	static const char *const marks[] = {"No conversion rule found for operations: ",
					    "from unsupported opset: "};
	const char *text = ov.get_last_err_msg(), *at = NULL;

	for (size_t i = 0; text != NULL && at == NULL && i < FRAG_COUNT_OF(marks); i++) {
		at = strstr(text, marks[i]);
		at = at != NULL ? at + strlen(marks[i]) : NULL;
	}
	if (at == NULL)
		return false;
	snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

/* Reads the file and compiles it for the CPU. */
static int compile(const char *path, const struct inference_options *options,
		   ov_compiled_model_t **out, struct frag_err *err)
{
	char threads[24], streams[24], what[PATH_MAX + 64];
	const char *more[4] = {NULL}; /* names and values of properties */
	char operations[256];
	ov_model_t *read = NULL;
	size_t count = 0;
	int r;

	if (ov.core_read_model(core, path, NULL, &read) != 0) {
		if (lacks_operations(operations, sizeof(operations)))
			return frag_err_set(
				err, -ENOTSUP,
				"%s uses operations that OpenVINO does not have: %s; export the model with others, or use a newer OpenVINO",
				path, operations);
		snprintf(what, sizeof(what), "%s is not a model that OpenVINO reads", path);
		return engine_failed(
			err, -EBADMSG, what,
			"give it IR (.xml with its .bin), .onnx, TensorFlow's .pb or .tflite, and check that the file is complete");
	}
	if (options->threads > 0) {
		snprintf(threads, sizeof(threads), "%lld", (long long)options->threads);
		more[count++] = "INFERENCE_NUM_THREADS";
		more[count++] = threads;
	}
	if (options->streams > 0) {
		snprintf(streams, sizeof(streams), "%lld", (long long)options->streams);
		more[count++] = "NUM_STREAMS";
		more[count++] = streams;
	}
	r = ov.core_compile_model(core, read, "CPU", 4 + count, out, "PERFORMANCE_HINT", "LATENCY",
				  "INFERENCE_PRECISION_HINT", options->half ? "f16" : "f32",
				  more[0], more[1], more[2], more[3]);
	ov.model_free(read);
	if (r == 0)
		return 0;
	snprintf(what, sizeof(what), "OpenVINO cannot compile %s for the CPU", path);
	return engine_failed(
		err, -EBADMSG, what,
		"export it again, with operations and shapes that this engine compiles");
}

static int openvino_load(const char *path, const struct inference_options *options,
			 struct inference_model **out, struct frag_err *err)
{
	struct model *model;
	int r;

	if (options->provider != INFERENCE_CPU)
		return frag_err_set(
			err, -ENOTSUP,
			"openvino runs models on the CPU; use backend: onnxruntime for a GPU");
	r = load_engine(err);
	if (r < 0)
		return r;
	model = calloc(1, sizeof(*model));
	if (model == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	model->base.backend = &inference_openvino;
	model->base.runs_at_a_time = INFERENCE_REQUESTS;
	model->base.device = model->base.out_device = (struct frag_device){FRAG_DEVICE_CPU, 0};
	r = compile(path, options, &model->compiled, err);
	if (r == 0 &&
	    (ov.compiled_model_inputs_size(model->compiled, &model->base.input_count) != 0 ||
	     ov.compiled_model_outputs_size(model->compiled, &model->base.output_count) != 0))
		r = engine_failed(err, -EIO, "OpenVINO does not describe the model",
				  "use another one");
	if (r == 0)
		r = describe_all(path, "input", model, ov.compiled_model_input_by_index,
				 model->base.input_count, &model->base.inputs, err);
	if (r == 0)
		r = describe_all(path, "output", model, ov.compiled_model_output_by_index,
				 model->base.output_count, &model->base.outputs, err);
	if (r < 0) {
		openvino_unload(&model->base);
		return r;
	}
	*out = &model->base;
	return 0;
}

/* Two ports with the same name of the engine's choice are the same. */
static int openvino_find_output(const struct inference_model *base, const char *name)
{
	const struct model *model = (const struct model *)base;
	ov_output_const_port_t *port = NULL;
	char *chosen = NULL;
	int index = -ENOENT;

	if (ov.compiled_model_output_by_name(model->compiled, name, &port) != 0)
		return -ENOENT;
	if (ov.port_get_any_name(port, &chosen) == 0)
		for (size_t i = 0; i < base->output_count; i++)
			if (strcmp(base->outputs[i].name, chosen) == 0)
				index = (int)i;
	ov.free(chosen);
	ov.output_const_port_free(port);
	return index;
}

static void drop(ov_tensor_t **tensor)
{
	if (*tensor != NULL)
		ov.tensor_free(*tensor);
	*tensor = NULL;
}

static void openvino_request_destroy(struct inference_request *request)
{
	if (request == NULL)
		return;
	if (request->running)
		ov.infer_request_wait(request->request);
	if (request->request != NULL)
		ov.infer_request_free(request->request);
	for (size_t i = 0; request->inputs != NULL && i < request->model->base.input_count; i++)
		drop(&request->inputs[i]);
	for (size_t i = 0; request->outputs != NULL && i < request->model->base.output_count; i++)
		drop(&request->outputs[i]);
	free(request->inputs);
	free(request->outputs);
	free(request);
}

static void ended(void *args)
{
	struct inference_request *request = args;

	if (request->done != NULL)
		request->done(request->context);
}

static int openvino_request_create(struct inference_model *base, struct inference_request **out,
				   struct frag_err *err)
{
	const struct model *model = (const struct model *)base;
	struct inference_request *request = calloc(1, sizeof(*request));

	if (request == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a run of a model");
	request->model = model;
	request->inputs = calloc(base->input_count + 1, sizeof(ov_tensor_t *));
	request->outputs = calloc(base->output_count + 1, sizeof(ov_tensor_t *));
	request->callback = (ov_callback_t){ended, request};
	if (request->inputs == NULL || request->outputs == NULL ||
	    ov.compiled_model_create_infer_request(model->compiled, &request->request) != 0 ||
	    ov.infer_request_set_callback(request->request, &request->callback) != 0) {
		openvino_request_destroy(request);
		return frag_err_set(err, -ENOMEM,
				    "out of memory for a run of a model; use a smaller model");
	}
	*out = request;
	return 0;
}

static int openvino_set_input(struct inference_request *request, size_t input, int32_t ndim,
			      const int64_t *shape, struct frag_device device, const void *data,
			      struct frag_err *err)
{
	const struct inference_tensor *wanted = &request->model->base.inputs[input];
	int64_t dims[FRAG_TENSOR_NDIM_MAX];
	static const double nothing = 0.0; /* the engine takes no NULL for an empty tensor */

	(void)device;
	memcpy(dims, shape, (size_t)ndim * sizeof(*dims));
	drop(&request->inputs[input]);
	if (ov.tensor_create_from_host_ptr(from_dtype(wanted->dtype), (ov_shape_t){ndim, dims},
					   (void *)(uintptr_t)(data != NULL ? data : &nothing),
					   &request->inputs[input]) != 0 ||
	    ov.infer_request_set_input_tensor_by_index(request->request, input,
						       request->inputs[input]) != 0)
		return engine_failed(err, -EINVAL, "OpenVINO refuses an input",
				     "check the shape of the tensor");
	return 0;
}

static int openvino_start(struct inference_request *request, void (*done)(void *context),
			  void *context, struct frag_err *err)
{
	request->done = done;
	request->context = context;
	request->running = true;
	if (ov.infer_request_start_async(request->request) == 0)
		return 0;
	request->running = false;
	return engine_failed(err, -EIO, "OpenVINO does not start a run", "check the model");
}

static int openvino_wait(struct inference_request *request, struct frag_err *err)
{
	request->running = false;
	if (ov.infer_request_wait(request->request) == 0)
		return 0;
	return engine_failed(err, -EIO, "the model failed",
			     "check that its inputs hold what it was trained with");
}

static int openvino_result(struct inference_request *request, size_t output,
			   struct inference_result *out, struct frag_err *err)
{
	const struct inference_tensor *declared = &request->model->base.outputs[output];
	ov_tensor_t **tensor = &request->outputs[output];
	ov_shape_t shape = {0};
	void *data = NULL;
	int type = 0;

	drop(tensor);
	if (ov.infer_request_get_output_tensor_by_index(request->request, output, tensor) != 0)
		return engine_failed(err, -EIO, "OpenVINO gives no output", "check the model");
	/* The engine has a shape for no tensor without dimensions. */
	if (ov.tensor_get_shape(*tensor, &shape) != 0 && declared->ndim > 0)
		return engine_failed(err, -EIO, "OpenVINO gives no output", "check the model");
	out->ndim = shape.dims != NULL ? (int32_t)shape.rank : 0;
	for (int32_t i = 0; i < out->ndim && i < FRAG_TENSOR_NDIM_MAX; i++)
		out->shape[i] = shape.dims[i];
	if (shape.dims != NULL)
		ov.shape_free(&shape);
	if (out->ndim > FRAG_TENSOR_NDIM_MAX)
		return frag_err_set(
			err, -ENOTSUP,
			"the output \"%s\" of the model has %d dimensions; a tensor has %d at most",
			declared->name, out->ndim, FRAG_TENSOR_NDIM_MAX);
	if (ov.tensor_get_element_type(*tensor, &type) != 0 || to_dtype(type, &out->dtype) < 0 ||
	    ov.tensor_get_byte_size(*tensor, &out->size_bytes) != 0 ||
	    ov.tensor_data(*tensor, &data) != 0)
		return engine_failed(err, -EIO, "OpenVINO gives no output", "check the model");
	out->data = data;
	return 0;
}

const struct inference_backend inference_openvino = {
	.name = "openvino",
	.load = openvino_load,
	.unload = openvino_unload,
	.find_output = openvino_find_output,
	.request_create = openvino_request_create,
	.request_destroy = openvino_request_destroy,
	.set_input = openvino_set_input,
	.start = openvino_start,
	.wait = openvino_wait,
	.result = openvino_result,
};
