// SPDX-License-Identifier: Apache-2.0
/*
 * An engine for tests, in place of ONNX Runtime's libonnxruntime.so.1, with its provider for CUDA
 * over the driver of tests. A model is a text file, as for tests/engine/openvino_c.c:
 *
 * 	engine of tests
 * 	input NAME TYPE SIDE SIDE ...      TYPE: the number of an element type; SIDE: a name for any
 * 	output NAME TYPE SIDE SIDE ...     the side of the first input that has this name, or its
 *                                      first one
 * 	lacks OPERATION                    the engine does not read the model
 * 	fails | memory | waits             what a run does otherwise; waits: until the file exists
 *                                      that FRAG_TEST_ENGINE_GATE names
 * 	slow                               so does the loading of the model
 * 	rows                               an output gets the first element of its own row
 *
 * A run fills output k with the first element of the first input plus k. On a GPU it has a stream
 * copy the first element to every place, and returns. FRAG_TEST_ENGINE_VERSION changes the version;
 * FRAG_TEST_ENGINE_LOG names a file that gets a line for each session and each run, with the first
 * element of each row in the host if the model has rows, and whether telemetry is off. calls.h says
 * what else a test may ask for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENGINE_OF_TESTS
#include "calls.h"
#include "inference/onnxruntime_api.h"

#define SIDES_MAX 10
#define TENSORS_MAX 4
#define EXPORT __attribute__((visibility("default")))
#define REFUSED "the tests let this call fail"
#define MAY_FAIL()                                                                                 \
	do {                                                                                       \
		if (call_fails())                                                                  \
			return failure(REFUSED);                                                   \
	} while (0)

struct ort_shape_info {
	int type;
	size_t count;
	int64_t sides[SIDES_MAX];
	char names[SIDES_MAX][16];
};
struct port {
	char name[64];
	struct ort_shape_info shape;
};
struct ort_status {
	char text[256];
};
struct ort_session_options {
	int threads;
	bool on_gpu, no_spinning;
	char provider[300];
	void *stream;
};
struct ort_cuda_options {
	char text[280];
	void *stream;
};
struct ort_session {
	struct port inputs[TENSORS_MAX], outputs[TENSORS_MAX];
	size_t input_count, output_count;
	bool fails, memory, waits, rows;
	struct ort_session_options options;
};
struct ort_memory_info {
	bool is_gpu;
};
struct ort_value {
	struct ort_shape_info shape;
	bool is_gpu, owns;
	char *data;
	size_t bytes;
	int users;
};
struct ort_binding {
	ort_session_t *session;
	ort_value_t *inputs[TENSORS_MAX], *outputs[TENSORS_MAX];
	bool is_gpu[TENSORS_MAX], is_bound[TENSORS_MAX];
};
struct ort_run_options {
	bool asynchronous;
};

static ort_status_t *failure(const char *text)
{
	ort_status_t *status = create(1, sizeof(*status));

	snprintf(status->text, sizeof(status->text), "%s", text);
	return status;
}

static void report(const char *what, const char *settings, int number)
{
	const char *path = getenv("FRAG_TEST_ENGINE_LOG");
	FILE *log = path != NULL ? fopen(path, "a") : NULL;

	if (log == NULL)
		return;
	fprintf(log, "%s %s %d\n", what, settings, number);
	fclose(log);
}

static size_t element_size(int type)
{
	return type == ORT_FLOAT || type == ORT_INT32 ? 4 : type == ORT_INT64 ? 8 : 1;
}

static size_t count_of(const struct ort_shape_info *shape)
{
	size_t count = 1;

	for (size_t i = 0; i < shape->count; i++)
		count *= (size_t)shape->sides[i];
	return count;
}

static const char *GetErrorMessage(const ort_status_t *status)
{
	return status->text;
}

static ort_status_t *CreateEnv(int severity, const char *id, ort_env_t **out)
{
	const char *off = getenv("ORT_DISABLE_TELEMETRY");
	static int only;

	MAY_FAIL();
	report("telemetry", off != NULL && strcmp(off, "1") == 0 ? "off" : "on", 0);
	*out = (ort_env_t *)&only;
	return NULL;
}

static ort_status_t *CreateSessionOptions(ort_session_options_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	return NULL;
}

static ort_status_t *SetSessionLogSeverityLevel(ort_session_options_t *options, int level)
{
	MAY_FAIL();
	return NULL;
}

static ort_status_t *SetIntraOpNumThreads(ort_session_options_t *options, int threads)
{
	MAY_FAIL();
	options->threads = threads;
	return NULL;
}

static ort_status_t *AddSessionConfigEntry(ort_session_options_t *options, const char *key,
					   const char *value)
{
	MAY_FAIL();
	options->no_spinning =
		strcmp(key, "session.intra_op.allow_spinning") == 0 && strcmp(value, "0") == 0;
	return NULL;
}

static bool read_port(const char *line, struct port *port)
{
	int at = 0, used;
	char side[16];

	if (sscanf(line, "%63s %d%n", port->name, &port->shape.type, &at) != 2)
		return false;
	while (port->shape.count < SIDES_MAX && sscanf(line + at, " %15s%n", side, &used) == 1) {
		char *end;
		int64_t number = strtoll(side, &end, 10);

		port->shape.sides[port->shape.count] = *end == '\0' ? number : -1;
		if (*end != '\0')
			strcpy(port->shape.names[port->shape.count], side);
		port->shape.count++;
		at += used;
	}
	return true;
}

static void wait_for_gate(void)
{
	while (access(getenv("FRAG_TEST_ENGINE_GATE"), F_OK) != 0)
		usleep(1000);
}

static bool read_line(const char *line, ort_session_t *session)
{
	if (strncmp(line, "input ", 6) == 0 && session->input_count < TENSORS_MAX)
		return read_port(line + 6, &session->inputs[session->input_count++]);
	if (strncmp(line, "output ", 7) == 0 && session->output_count < TENSORS_MAX)
		return read_port(line + 7, &session->outputs[session->output_count++]);
	session->fails |= strcmp(line, "fails\n") == 0;
	session->memory |= strcmp(line, "memory\n") == 0;
	session->waits |= strcmp(line, "waits\n") == 0;
	if (strcmp(line, "slow\n") == 0)
		wait_for_gate();
	else if (strcmp(line, "rows\n") == 0)
		session->rows = true;
	else if (!session->fails && !session->memory && !session->waits)
		return false;
	return true;
}

static ort_status_t *CreateSession(const ort_env_t *env, const char *path,
				   const ort_session_options_t *options, ort_session_t **out)
{
	ort_session_t *session;
	char line[256] = "", text[250];
	FILE *file;
	bool good;

	MAY_FAIL();
	session = create(1, sizeof(*session));
	file = fopen(path, "r");
	good = file != NULL && fgets(line, sizeof(line), file) != NULL &&
	       strcmp(line, "engine of tests\n") == 0;
	while (good && fgets(line, sizeof(line), file) != NULL)
		good = read_line(line, session);
	if (file != NULL)
		fclose(file);
	session->options = *options;
	report("session", options->on_gpu ? options->provider : "cpu", options->threads);
	if (good && options->no_spinning) {
		*out = session;
		return NULL;
	}
	release(session);
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "lacks ", 6) != 0)
		return failure("Load model failed:Protobuf parsing failed.\nmore lines");
	snprintf(text, sizeof(text),
		 "Load model failed:Fatal error: %.150s(-1) is not a registered function/op",
		 line + 6);
	return failure(text);
}

static ort_status_t *SessionGetInputCount(const ort_session_t *session, size_t *out)
{
	MAY_FAIL();
	*out = session->input_count;
	return NULL;
}

static ort_status_t *SessionGetOutputCount(const ort_session_t *session, size_t *out)
{
	MAY_FAIL();
	*out = session->output_count;
	return NULL;
}

static ort_status_t *SessionGetInputTypeInfo(const ort_session_t *session, size_t i,
					     ort_type_info_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(struct port));
	*(struct port *)*out = session->inputs[i];
	return NULL;
}

static ort_status_t *SessionGetOutputTypeInfo(const ort_session_t *session, size_t i,
					      ort_type_info_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(struct port));
	*(struct port *)*out = session->outputs[i];
	return NULL;
}

static ort_status_t *SessionGetInputName(const ort_session_t *session, size_t i,
					 ort_allocator_t *allocator, char **out)
{
	MAY_FAIL();
	*out = create_text(session->inputs[i].name);
	return NULL;
}

static ort_status_t *SessionGetOutputName(const ort_session_t *session, size_t i,
					  ort_allocator_t *allocator, char **out)
{
	MAY_FAIL();
	*out = create_text(session->outputs[i].name);
	return NULL;
}

static ort_status_t *CreateRunOptions(ort_run_options_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	return NULL;
}

static ort_status_t *AddRunConfigEntry(ort_run_options_t *options, const char *key,
				       const char *value)
{
	MAY_FAIL();
	options->asynchronous = strcmp(key, "disable_synchronize_execution_providers") == 0 &&
				strcmp(value, "1") == 0;
	return NULL;
}

static ort_status_t *CreateTensorWithDataAsOrtValue(const ort_memory_info_t *memory, void *data,
						    size_t bytes, const int64_t *sides,
						    size_t count, int type, ort_value_t **out)
{
	struct ort_shape_info shape = {.type = type, .count = count};
	ort_value_t *value;

	MAY_FAIL();
	if (data == NULL)
		return failure("no data");
	memcpy(shape.sides, sides, count * sizeof(*sides));
	if (count_of(&shape) * element_size(type) != bytes)
		return failure("not enough space");
	value = create(1, sizeof(*value));
	value->shape = shape;
	value->is_gpu = memory->is_gpu;
	value->data = data;
	value->bytes = bytes;
	value->users = 1;
	*out = value;
	return NULL;
}

static ort_status_t *GetTensorMutableData(ort_value_t *value, void **out)
{
	MAY_FAIL();
	*out = value->data;
	return NULL;
}

static ort_status_t *CastTypeInfoToTensorInfo(const ort_type_info_t *info,
					      const ort_shape_info_t **out)
{
	MAY_FAIL();
	*out = &((const struct port *)info)->shape;
	return NULL;
}

static ort_status_t *GetOnnxTypeFromTypeInfo(const ort_type_info_t *info, int *out)
{
	MAY_FAIL();
	*out = ((const struct port *)info)->shape.type == 99 ? 2 : ORT_TYPE_TENSOR;
	return NULL;
}

static ort_status_t *GetTensorElementType(const ort_shape_info_t *shape, int *out)
{
	MAY_FAIL();
	*out = shape->type;
	return NULL;
}

static ort_status_t *GetDimensionsCount(const ort_shape_info_t *shape, size_t *out)
{
	MAY_FAIL();
	*out = shape->count;
	return NULL;
}

static ort_status_t *GetDimensions(const ort_shape_info_t *shape, int64_t *out, size_t count)
{
	MAY_FAIL();
	memcpy(out, shape->sides, count * sizeof(*out));
	return NULL;
}

static ort_status_t *GetSymbolicDimensions(const ort_shape_info_t *shape, const char **out,
					   size_t count)
{
	MAY_FAIL();
	for (size_t i = 0; i < count; i++)
		out[i] = shape->names[i];
	return NULL;
}

static ort_status_t *GetTensorTypeAndShape(const ort_value_t *value, ort_shape_info_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	**out = value->shape;
	return NULL;
}

static ort_status_t *CreateMemoryInfo(const char *name, int type, int id, int kind,
				      ort_memory_info_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	(*out)->is_gpu = strcmp(name, "Cuda") == 0;
	return NULL;
}

static ort_status_t *AllocatorFree(ort_allocator_t *allocator, void *memory)
{
	release(memory);
	return call_fails() ? failure(REFUSED) : NULL;
}

static ort_status_t *GetAllocatorWithDefaultOptions(ort_allocator_t **out)
{
	static int only;

	MAY_FAIL();
	*out = (ort_allocator_t *)&only;
	return NULL;
}

/* The driver of tests, which the process has opened. */
static void *driver(const char *name)
{
	return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
}

/* As CUDA's runtime does, whatever thread calls. */
static void enter(void)
{
	int (*retain)(void **, int), (*push)(void *);
	void *context = NULL;

	*(void **)&retain = driver("cuDevicePrimaryCtxRetain");
	*(void **)&push = driver("cuCtxPushCurrent_v2");
	if (retain(&context, 0) != 0 || push(context) != 0)
		abort();
}

static void leave(void)
{
	int (*pop)(void **);
	void *context;

	*(void **)&pop = driver("cuCtxPopCurrent_v2");
	pop(&context);
}

static void ReleaseValue(ort_value_t *value)
{
	int (*give)(unsigned long long);

	if (value == NULL || --value->users > 0)
		return;
	if (value->owns && value->is_gpu) {
		enter();
		*(void **)&give = driver("cuMemFree_v2");
		give((unsigned long long)(uintptr_t)value->data);
		leave();
	} else if (value->owns) {
		free(value->data);
	}
	release(value);
}

static ort_status_t *CreateIoBinding(ort_session_t *session, ort_binding_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	(*out)->session = session;
	return NULL;
}

static void ReleaseIoBinding(ort_binding_t *binding)
{
	for (size_t i = 0; i < TENSORS_MAX; i++) {
		ReleaseValue(binding->inputs[i]);
		ReleaseValue(binding->outputs[i]);
	}
	release(binding);
}

static size_t find(const struct port *ports, const char *name)
{
	size_t i = 0;

	while (strcmp(ports[i].name, name) != 0)
		i++;
	return i;
}

static ort_status_t *BindInput(ort_binding_t *binding, const char *name, const ort_value_t *value)
{
	size_t i = find(binding->session->inputs, name);

	MAY_FAIL();
	((ort_value_t *)(uintptr_t)value)->users++;
	ReleaseValue(binding->inputs[i]);
	binding->inputs[i] = (ort_value_t *)(uintptr_t)value;
	return NULL;
}

static ort_status_t *BindOutput(ort_binding_t *binding, const char *name, const ort_value_t *value)
{
	size_t i = find(binding->session->outputs, name);

	MAY_FAIL();
	((ort_value_t *)(uintptr_t)value)->users++;
	ReleaseValue(binding->outputs[i]);
	binding->outputs[i] = (ort_value_t *)(uintptr_t)value;
	binding->is_bound[i] = true;
	return NULL;
}

static ort_status_t *BindOutputToDevice(ort_binding_t *binding, const char *name,
					const ort_memory_info_t *memory)
{
	size_t i = find(binding->session->outputs, name);

	MAY_FAIL();
	ReleaseValue(binding->outputs[i]);
	binding->outputs[i] = NULL;
	binding->is_gpu[i] = memory->is_gpu;
	binding->is_bound[i] = false;
	return NULL;
}

static ort_status_t *GetBoundOutputValues(const ort_binding_t *binding, ort_allocator_t *allocator,
					  ort_value_t ***out, size_t *out_count)
{
	MAY_FAIL();
	*out_count = binding->session->output_count;
	*out = create(*out_count, sizeof(**out));
	for (size_t i = 0; i < *out_count; i++) {
		(*out)[i] = binding->outputs[i];
		(*out)[i]->users++;
	}
	return NULL;
}

/* Makes an output that was not bound, of the shape that the model declares. */
static ort_value_t *make(const ort_binding_t *binding, size_t k)
{
	const struct port *port = &binding->session->outputs[k];
	const struct port *first = &binding->session->inputs[0];
	const ort_value_t *input = binding->inputs[0];
	ort_value_t *value = create(1, sizeof(*value));
	int (*take)(unsigned long long *, size_t);
	unsigned long long address = 0;

	value->shape = port->shape;
	for (size_t i = 0; i < port->shape.count; i++) {
		if (port->shape.sides[i] >= 0)
			continue;
		value->shape.sides[i] = input->shape.sides[0];
		for (size_t j = 0; j < first->shape.count; j++)
			if (strcmp(first->shape.names[j], port->shape.names[i]) == 0)
				value->shape.sides[i] = input->shape.sides[j];
	}
	value->bytes = count_of(&value->shape) * element_size(value->shape.type);
	value->is_gpu = binding->is_gpu[k];
	value->owns = true;
	value->users = 1;
	if (value->is_gpu) {
		enter();
		*(void **)&take = driver("cuMemAlloc_v2");
		if (take(&address, value->bytes + 1) != 0)
			abort();
		leave();
		value->data = (char *)(uintptr_t)address;
	} else {
		value->data = calloc(1, value->bytes + 1);
	}
	return value;
}

/* Where the element of the input lies that an element of an output is made of. */
static const char *source(const ort_session_t *session, const ort_value_t *input,
			  const ort_value_t *output, size_t i)
{
	size_t columns, row;

	if (!session->rows)
		return input->data;
	columns = count_of(&output->shape) / (size_t)output->shape.sides[0];
	row = i / columns;
	return input->data + row * (input->bytes / (size_t)input->shape.sides[0]);
}

static double number_at(const ort_value_t *value, const char *at)
{
	if (value->bytes == 0)
		return 0.0;
	return value->shape.type == ORT_FLOAT ? (double)*(const float *)(const void *)at
					      : *(const uint8_t *)at;
}

static void fill(const ort_session_t *session, const ort_value_t *input, ort_value_t *output,
		 double more)
{
	for (size_t i = 0; i < count_of(&output->shape); i++) {
		double value = number_at(input, source(session, input, output, i)) + more;

		if (output->shape.type == ORT_FLOAT)
			((float *)(void *)output->data)[i] = (float)value;
		else if (output->shape.type == ORT_INT32)
			((int32_t *)(void *)output->data)[i] = (int32_t)value;
		else
			((uint8_t *)output->data)[i] = (uint8_t)value;
	}
}

/* Outputs on a GPU get the element of the input as it is, in the order of the stream. */
static void fill_gpu(const ort_session_t *session, const ort_value_t *input, ort_value_t *output)
{
	int (*copy)(void *, unsigned long long, unsigned long long, size_t);
	int (*poke)(unsigned long long, const void *, size_t);
	size_t size = element_size(output->shape.type);

	*(void **)&copy = driver("fake_cuda_copy");
	*(void **)&poke = driver("fake_cuda_poke");
	for (size_t i = 0; i < count_of(&output->shape); i++) {
		unsigned long long to = (uintptr_t)output->data + i * size;
		const char *from = source(session, input, output, i);

		if (input->is_gpu)
			copy(session->options.stream, to, (uintptr_t)from, size);
		else
			poke(to, from, size);
	}
}

/* Outputs in the host get the first element of an input on a GPU. */
static void fetch(const ort_value_t *input, ort_value_t *output)
{
	int (*peek)(unsigned long long, void *, size_t);
	size_t size = element_size(output->shape.type);

	*(void **)&peek = driver("fake_cuda_peek");
	for (size_t i = 0; i < count_of(&output->shape); i++)
		peek((uintptr_t)input->data, output->data + i * size, size);
}

static void report_rows(const ort_value_t *input)
{
	size_t rows = (size_t)input->shape.sides[0], at = 0;
	char text[256] = "";

	for (size_t i = 0; i < rows && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.0f", i > 0 ? " " : "",
				       number_at(input, input->data + i * (input->bytes / rows)));
	report("rows", text, (int)rows);
}

static ort_status_t *RunWithBinding(ort_session_t *session, const ort_run_options_t *options,
				    const ort_binding_t *bound)
{
	ort_binding_t *binding = (ort_binding_t *)(uintptr_t)bound;
	bool on_gpu = session->options.on_gpu;

	MAY_FAIL();
	if (session->waits)
		wait_for_gate();
	if (on_gpu)
		report("run", options->asynchronous ? "asynchronous" : "waits",
		       (int)binding->inputs[0]->shape.sides[0]);
	if (session->rows && !binding->inputs[0]->is_gpu)
		report_rows(binding->inputs[0]);
	if (session->fails)
		return failure("Non-zero status code returned while running Add node.");
	if (session->memory)
		return failure("/onnxruntime_src/bfc_arena.cc:360 void* Alloc(size_t, Stream*) "
			       "Available memory of 9 is smaller than requested bytes of 99");
	for (size_t k = 0; k < session->output_count; k++) {
		if (!binding->is_bound[k]) {
			ReleaseValue(binding->outputs[k]);
			binding->outputs[k] = make(binding, k);
		}
		if (binding->outputs[k]->is_gpu)
			fill_gpu(session, binding->inputs[0], binding->outputs[k]);
		else if (!binding->inputs[0]->is_gpu)
			fill(session, binding->inputs[0], binding->outputs[k], (double)k);
		else
			fetch(binding->inputs[0], binding->outputs[k]);
	}
	return NULL;
}

static ort_status_t *CreateCUDAProviderOptions(ort_cuda_options_t **out)
{
	MAY_FAIL();
	*out = create(1, sizeof(**out));
	return NULL;
}

static ort_status_t *UpdateCUDAProviderOptions(ort_cuda_options_t *options, const char *const *keys,
					       const char *const *values, size_t count)
{
	MAY_FAIL();
	for (size_t i = 0; i < count; i++) {
		size_t at = strlen(options->text);

		snprintf(options->text + at, sizeof(options->text) - at, " %s=%s", keys[i],
			 values[i]);
	}
	return NULL;
}

static ort_status_t *UpdateCUDAProviderOptionsWithValue(ort_cuda_options_t *options,
							const char *key, void *value)
{
	MAY_FAIL();
	options->stream = value;
	return strcmp(key, "user_compute_stream") == 0 ? NULL : failure("unknown option");
}

static ort_status_t *
SessionOptionsAppendExecutionProvider_CUDA_V2(ort_session_options_t *options,
					      const ort_cuda_options_t *provider)
{
	size_t at = strlen(options->provider);

	MAY_FAIL();
	if (getenv("FRAG_TEST_ENGINE_WITHOUT") != NULL)
		return failure("/onnxruntime_src/provider_bridge_ort.cc:2043 Provider& Get() "
			       "[ONNXRuntimeError] : 1 : FAIL : "
			       "Failed to load library libonnxruntime_providers_cuda.so with "
			       "error: libcublas.so.13: cannot open shared object file");
	snprintf(options->provider + at, sizeof(options->provider) - at, "cuda%s", provider->text);
	options->on_gpu = true;
	options->stream = provider->stream;
	return NULL;
}

/* TensorRT has the same options here, but their names. */
static ort_status_t *
SessionOptionsAppendExecutionProvider_TensorRT_V2(ort_session_options_t *options,
						  const ort_tensorrt_options_t *provider)
{
	MAY_FAIL();
	snprintf(options->provider, sizeof(options->provider), "tensorrt%.200s, ",
		 ((const ort_cuda_options_t *)provider)->text);
	return NULL;
}

#define CreateTensorRTProviderOptions CreateCUDAProviderOptions
#define UpdateTensorRTProviderOptions UpdateCUDAProviderOptions
#define UpdateTensorRTProviderOptionsWithValue UpdateCUDAProviderOptionsWithValue
#define ReleaseTensorRTProviderOptions release
#define ReleaseCUDAProviderOptions release
#define ReleaseStatus release
#define ReleaseMemoryInfo release
#define ReleaseSession release
#define ReleaseRunOptions release
#define ReleaseTypeInfo release
#define ReleaseTensorTypeAndShapeInfo release
#define ReleaseSessionOptions release

static const char *version(void)
{
	const char *text = getenv("FRAG_TEST_ENGINE_VERSION");

	return text != NULL ? text : "1.31.1";
}

static const void *const *api(uint32_t asked)
{
	static const void *table[ORT_PLACES];

#define PUT(place, result, name, args) table[place] = (const void *)(uintptr_t)name;
	ORT_FUNCTIONS(PUT)
	return table;
}

EXPORT const struct ort_api_base *OrtGetApiBase(void);
const struct ort_api_base *OrtGetApiBase(void)
{
	static const struct ort_api_base base = {api, version};

	return &base;
}
