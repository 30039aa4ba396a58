// SPDX-License-Identifier: Apache-2.0
/*
 * An engine for tests, in place of OpenVINO's libopenvino_c.so. A model is a text file:
 *
 * 	engine of tests
 * 	input NAME TYPE SIDE SIDE ...      TYPE: the number of an element type; SIDE: -1 for any
 * 	output NAME TYPE SIDE SIDE ...     -1: as large as the first input's first side
 * 	lacks OPERATION                    the engine does not read the model
 * 	fails | nan | waits | dies         what a run does otherwise; waits: until the file exists
 *                                      that FRAG_TEST_ENGINE_GATE in the environment names
 *
 * An output also has the name NAME:0. A run fills output k with the first element of the first
 * input plus k, after a millisecond on a thread of its own. FRAG_TEST_ENGINE_VERSION in the
 * environment changes the version, and FRAG_TEST_ENGINE_LOG names a file that gets a line for each
 * model that is compiled. calls.h says what else a test may ask for.
 */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENGINE_OF_TESTS
#include "calls.h"
#include "inference/openvino_api.h"

#define SIDES_MAX 10 /* more than a tensor of frag has */
#define TENSORS_MAX 4
#define INVALID_PARAMETER -14
#define EXPORT __attribute__((visibility("default")))
#define DECLARE(result, name, args) EXPORT result ov_##name args;
OV_FUNCTIONS(DECLARE)

struct ov_output_const_port {
	char name[64];
	int type;
	int64_t rank, sides[SIDES_MAX];
};
struct ov_model {
	struct ov_output_const_port inputs[TENSORS_MAX], outputs[TENSORS_MAX];
	size_t input_count, output_count;
	bool fails, nan, waits, dies;
};
struct ov_compiled_model {
	struct ov_model model;
};
struct ov_tensor {
	int type;
	int64_t rank, sides[SIDES_MAX];
	void *data;
	bool owns;
};
struct ov_core {
	int unused;
};
struct ov_infer_request {
	struct ov_model model;
	const struct ov_tensor *inputs[TENSORS_MAX];
	struct ov_tensor outputs[TENSORS_MAX];
	ov_callback_t callback;
	pthread_t thread;
	bool running, failed;
};

static const char *last_error = "";

#define MAY_FAIL()                                                                                 \
	do {                                                                                       \
		if (call_fails())                                                                  \
			return refused();                                                          \
	} while (0)

static int refused(void)
{
	last_error = "the tests let this call fail\n";
	return -1;
}

static size_t element_size(int type)
{
	switch (type) {
	case OV_F32:
	case OV_I32:
		return 4;
	case OV_I64:
		return 8;
	default:
		return 1;
	}
}

static size_t count_of(const struct ov_tensor *tensor)
{
	size_t count = 1;

	for (int64_t i = 0; i < tensor->rank; i++)
		count *= (size_t)tensor->sides[i];
	return count;
}

int ov_get_openvino_version(ov_version_t *version)
{
	const char *text = getenv("FRAG_TEST_ENGINE_VERSION");

	*version = (ov_version_t){text != NULL ? text : "2026.4.1-tests", "engine of tests"};
	return 0;
}

void ov_version_free(ov_version_t *version)
{
}

const char *ov_get_last_err_msg(void)
{
	return last_error;
}

void ov_free(const char *text)
{
	release((char *)(uintptr_t)text);
}

int ov_core_create(ov_core_t **core)
{
	static struct ov_core only;

	MAY_FAIL();
	*core = &only;
	return 0;
}

static bool read_port(const char *line, struct ov_output_const_port *port)
{
	int at = 0, used;
	long long side;

	if (sscanf(line, "%63s %d%n", port->name, &port->type, &at) != 2)
		return false;
	if (strcmp(port->name, "-") == 0)
		port->name[0] = '\0';
	while (port->rank < SIDES_MAX && sscanf(line + at, " %lld%n", &side, &used) == 1) {
		port->sides[port->rank++] = side;
		at += used;
	}
	return true;
}

static bool read_line(const char *line, struct ov_model *model)
{
	if (strncmp(line, "input ", 6) == 0 && model->input_count < TENSORS_MAX)
		return read_port(line + 6, &model->inputs[model->input_count++]);
	if (strncmp(line, "output ", 7) == 0 && model->output_count < TENSORS_MAX)
		return read_port(line + 7, &model->outputs[model->output_count++]);
	model->fails |= strcmp(line, "fails\n") == 0;
	model->nan |= strcmp(line, "nan\n") == 0;
	model->waits |= strcmp(line, "waits\n") == 0;
	model->dies |= strcmp(line, "dies\n") == 0;
	return model->fails || model->nan || model->waits || model->dies;
}

int ov_core_read_model(const ov_core_t *core, const char *path, const char *weights,
		       ov_model_t **out)
{
	static char lacking[512];
	char line[256] = "";
	ov_model_t *model;
	FILE *file;
	bool good;

	MAY_FAIL();
	file = fopen(path, "r");
	model = create(1, sizeof(*model));
	good = file != NULL && model != NULL && fgets(line, sizeof(line), file) != NULL &&
	       strcmp(line, "engine of tests\n") == 0;
	while (good && fgets(line, sizeof(line), file) != NULL)
		good = read_line(line, model);
	if (file != NULL)
		fclose(file);
	if (good) {
		*out = model;
		return 0;
	}
	release(model);
	if (strncmp(line, "lacks ", 6) == 0) {
		snprintf(lacking, sizeof(lacking),
			 "Exception from tests/engine:1:\nModel wasn't fully converted.\nSummary:\n"
			 "-- No conversion rule found for operations: %s\n\n",
			 line + 6);
		last_error = lacking;
		return -1;
	}
	last_error = "Exception from tests/engine:1:\nCheck 'good' failed at tests/engine:2:\n"
		     "this is no model of the tests\n\n";
	return -1;
}

int ov_core_compile_model(const ov_core_t *core, const ov_model_t *model, const char *device,
			  size_t count, ov_compiled_model_t **out, ...)
{
	const char *log = getenv("FRAG_TEST_ENGINE_LOG");
	va_list properties;
	FILE *file;

	MAY_FAIL();
	file = log != NULL ? fopen(log, "a") : NULL;
	va_start(properties, out);
	if (file != NULL) {
		fprintf(file, "compiled for %s", device);
		for (size_t i = 0; i < count; i++)
			fprintf(file, i % 2 == 0 ? " %s" : "=%s", va_arg(properties, const char *));
		fprintf(file, "\n");
		fclose(file);
	}
	va_end(properties);
	*out = create(1, sizeof(**out));
	if (*out == NULL)
		return -1;
	(*out)->model = *model;
	return 0;
}

void ov_model_free(ov_model_t *model)
{
	release(model);
}

int ov_compiled_model_inputs_size(const ov_compiled_model_t *compiled, size_t *out)
{
	MAY_FAIL();
	*out = compiled->model.input_count;
	return 0;
}

int ov_compiled_model_outputs_size(const ov_compiled_model_t *compiled, size_t *out)
{
	MAY_FAIL();
	*out = compiled->model.output_count;
	return 0;
}

static int copy_port(const struct ov_output_const_port *port, ov_output_const_port_t **out)
{
	*out = create(1, sizeof(**out));
	if (*out == NULL)
		return -1;
	**out = *port;
	return 0;
}

int ov_compiled_model_input_by_index(const ov_compiled_model_t *compiled, size_t i,
				     ov_output_const_port_t **out)
{
	MAY_FAIL();
	return copy_port(&compiled->model.inputs[i], out);
}

int ov_compiled_model_output_by_index(const ov_compiled_model_t *compiled, size_t i,
				      ov_output_const_port_t **out)
{
	MAY_FAIL();
	return copy_port(&compiled->model.outputs[i], out);
}

int ov_compiled_model_output_by_name(const ov_compiled_model_t *compiled, const char *name,
				     ov_output_const_port_t **out)
{
	MAY_FAIL();
	for (size_t i = 0; i < compiled->model.output_count; i++) {
		const struct ov_output_const_port *port = &compiled->model.outputs[i];
		size_t length = strlen(port->name);

		if (length > 0 && strncmp(name, port->name, length) == 0 &&
		    (name[length] == '\0' || strcmp(name + length, ":0") == 0))
			return copy_port(port, out);
	}
	return -1;
}

void ov_compiled_model_free(ov_compiled_model_t *compiled)
{
	release(compiled);
}

int ov_port_get_any_name(const ov_output_const_port_t *port, char **out)
{
	MAY_FAIL();
	if (port->name[0] == '\0')
		return -1;
	*out = create_text(port->name);
	return *out != NULL ? 0 : -1;
}

int ov_port_get_element_type(const ov_output_const_port_t *port, int *out)
{
	MAY_FAIL();
	*out = port->type;
	return 0;
}

int ov_port_get_partial_shape(const ov_output_const_port_t *port, ov_partial_shape_t *out)
{
	MAY_FAIL();
	out->rank = (ov_dimension_t){port->rank, port->rank};
	out->dims = create((size_t)port->rank + 1, sizeof(*out->dims));
	if (out->dims == NULL)
		return -1;
	for (int64_t i = 0; i < port->rank; i++)
		out->dims[i] = port->sides[i] < 0
				       ? (ov_dimension_t){0, INT64_MAX}
				       : (ov_dimension_t){port->sides[i], port->sides[i]};
	return 0;
}

void ov_output_const_port_free(ov_output_const_port_t *port)
{
	release(port);
}

void ov_partial_shape_free(ov_partial_shape_t *shape)
{
	release(shape->dims);
}

int ov_shape_free(ov_shape_t *shape)
{
	release(shape->dims);
	return 0;
}

int ov_tensor_create_from_host_ptr(int type, ov_shape_t shape, void *data, ov_tensor_t **out)
{
	MAY_FAIL();
	if (data == NULL)
		return INVALID_PARAMETER;
	*out = create(1, sizeof(**out));
	if (*out == NULL)
		return -1;
	(*out)->type = type;
	(*out)->rank = shape.rank;
	memcpy((*out)->sides, shape.dims, (size_t)shape.rank * sizeof(int64_t));
	(*out)->data = data;
	return 0;
}

/* OpenVINO, too, takes no tensor without dimensions for one that has a shape. */
int ov_tensor_get_shape(const ov_tensor_t *tensor, ov_shape_t *out)
{
	MAY_FAIL();
	if (tensor->rank == 0)
		return INVALID_PARAMETER;
	out->rank = tensor->rank;
	out->dims = create((size_t)tensor->rank + 1, sizeof(int64_t));
	if (out->dims == NULL)
		return -1;
	memcpy(out->dims, tensor->sides, (size_t)tensor->rank * sizeof(int64_t));
	return 0;
}

int ov_tensor_get_element_type(const ov_tensor_t *tensor, int *out)
{
	MAY_FAIL();
	*out = tensor->type;
	return 0;
}

int ov_tensor_get_byte_size(const ov_tensor_t *tensor, size_t *out)
{
	MAY_FAIL();
	*out = count_of(tensor) * element_size(tensor->type);
	return 0;
}

int ov_tensor_data(const ov_tensor_t *tensor, void **out)
{
	MAY_FAIL();
	*out = tensor->data;
	return 0;
}

void ov_tensor_free(ov_tensor_t *tensor)
{
	if (tensor->owns)
		free(tensor->data);
	release(tensor);
}

int ov_compiled_model_create_infer_request(const ov_compiled_model_t *compiled,
					   ov_infer_request_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	if (*out == NULL)
		return -1;
	(*out)->model = compiled->model;
	return 0;
}

int ov_infer_request_set_callback(ov_infer_request_t *request, const ov_callback_t *callback)
{
	MAY_FAIL();
	request->callback = *callback;
	return 0;
}

int ov_infer_request_set_input_tensor_by_index(ov_infer_request_t *request, size_t i,
					       const ov_tensor_t *tensor)
{
	MAY_FAIL();
	request->inputs[i] = tensor;
	return 0;
}

static double first_element(const struct ov_tensor *tensor)
{
	if (count_of(tensor) == 0)
		return 0.0;
	if (tensor->type == OV_F32)
		return (double)*(const float *)tensor->data;
	return *(const uint8_t *)tensor->data;
}

static void fill(ov_infer_request_t *request, size_t k)
{
	const struct ov_output_const_port *port = &request->model.outputs[k];
	struct ov_tensor *output = &request->outputs[k];
	double value = first_element(request->inputs[0]) + (double)k;

	free(output->data);
	output->type = port->type;
	output->rank = port->rank;
	for (int64_t i = 0; i < port->rank; i++)
		output->sides[i] =
			port->sides[i] < 0 ? request->inputs[0]->sides[0] : port->sides[i];
	output->data = calloc(count_of(output) + 1, element_size(output->type));
	for (size_t i = 0; output->data != NULL && i < count_of(output); i++) {
		if (output->type == OV_F32)
			((float *)output->data)[i] = request->model.nan ? NAN : (float)value;
		else if (output->type == OV_I32)
			((int32_t *)output->data)[i] = (int32_t)value;
		else if (output->type == OV_U8)
			((uint8_t *)output->data)[i] = (uint8_t)value;
	}
}

static void *run(void *arg)
{
	ov_infer_request_t *request = arg;

	do
		usleep(100);
	while (request->model.waits && access(getenv("FRAG_TEST_ENGINE_GATE"), F_OK) != 0);
	if (request->model.dies)
		abort();
	for (size_t k = 0; k < request->model.output_count; k++)
		fill(request, k);
	request->failed = request->model.fails;
	if (request->callback.callback_func != NULL)
		request->callback.callback_func(request->callback.args);
	return NULL;
}

int ov_infer_request_start_async(ov_infer_request_t *request)
{
	MAY_FAIL();
	if (pthread_create(&request->thread, NULL, run, request) != 0)
		return -1;
	request->running = true;
	return 0;
}

int ov_infer_request_wait(ov_infer_request_t *request)
{
	if (request->running)
		pthread_join(request->thread, NULL);
	request->running = false;
	MAY_FAIL();
	last_error = "a run of the tests failed\n";
	return request->failed ? -1 : 0;
}

int ov_infer_request_get_output_tensor_by_index(const ov_infer_request_t *request, size_t i,
						ov_tensor_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	if (*out == NULL)
		return -1;
	**out = request->outputs[i];
	return 0;
}

void ov_infer_request_free(ov_infer_request_t *request)
{
	for (size_t k = 0; k < TENSORS_MAX; k++)
		free(request->outputs[k].data);
	release(request);
}
