// SPDX-License-Identifier: Apache-2.0
/*
 * ONNX Runtime alone, as a floor for the operator inference: it runs a model in a loop, with
 * nothing of frag but the declarations.
 *
 * usage: network MODEL PROVIDER resident|host COUNT SIDE...
 *        network MODEL PROVIDER compare REFERENCE INPUT SIDE...
 *
 * PROVIDER: cpu, cuda, tensorrt, or graphs, which is cuda with CUDA graphs.
 *
 * resident: input and outputs stay on the GPU, and each run is waited for; host: the input comes
 * from host memory each time, and the outputs go there. SIDE: of the input. Prints "RATE P50 P99":
 * runs a second, and times of a run in ms, behind the first tenth.
 *
 * compare: what MODEL makes beside what the model REFERENCE makes on the CPU, from the input that
 * is in the file INPUT, a number behind the other, or from noise if INPUT is `noise`. Prints for
 * each output "NUMBER SHARE": the largest difference, as a share of the largest number of the
 * output.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inference/onnxruntime_engine.h"

#define SIDES_MAX 4
#define OUTPUTS_MAX 16

static const struct ort *ort;

static void need(ort_status_t *status)
{
	if (status == NULL)
		return;
	fprintf(stderr, "network: %s\n", ort->GetErrorMessage(status));
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Graphs are not recorded on the stream that the provider uses by itself. */
static void *make_stream(void)
{
	void *library = dlopen("libcudart.so.13", RTLD_NOW), *stream = NULL;
	int (*create)(void **out_stream, unsigned int flags) = NULL;

	if (library != NULL)
		*(void **)&create = dlsym(library, "cudaStreamCreateWithFlags");
	if (create == NULL || create(&stream, 1) != 0) { /* it waits for no other stream */
		fprintf(stderr, "network: CUDA 13 makes no stream\n");
		exit(1);
	}
	return stream;
}

static ort_session_t *open_model(const char *path, const char *provider)
{
	struct inference_options options = {.dla_core = -1};
	struct frag_err err = FRAG_ERR_INIT;
	ort_session_options_t *settings;
	ort_session_t *session = NULL;

	options.graphs = strcmp(provider, "graphs") == 0;
	if (options.graphs)
		options.stream = make_stream();
	if (strcmp(provider, "cpu") != 0)
		options.provider =
			strcmp(provider, "tensorrt") == 0 ? INFERENCE_TENSORRT : INFERENCE_CUDA;
	ort = ort_open(&err);
	if (ort == NULL) {
		fprintf(stderr, "network: %s\n", err.text);
		exit(1);
	}
	need(ort->CreateSessionOptions(&settings));
	if (ort_add_provider(ort, &options, settings, &err) < 0) {
		fprintf(stderr, "network: %s\n", err.text);
		exit(1);
	}
	need(ort->CreateSession(ort->env, path, settings, &session));
	return session;
}

/* Runs a model once. Returns its outputs, in memory of the host. */
static ort_value_t **results_of(const char *path, const char *provider, void *data, size_t bytes,
				const int64_t *sides, size_t ndim, int type, size_t *out_count)
{
	ort_session_t *session = open_model(path, provider);
	ort_value_t *input = NULL, **results;
	ort_run_options_t *options;
	ort_memory_info_t *host;
	ort_binding_t *binding;
	char *name;

	need(ort->CreateMemoryInfo("Cpu", ORT_ARENA_ALLOCATOR, 0, ORT_MEM_DEFAULT, &host));
	need(ort->CreateRunOptions(&options));
	need(ort->CreateIoBinding(session, &binding));
	need(ort->SessionGetInputName(session, 0, ort->allocator, &name));
	need(ort->CreateTensorWithDataAsOrtValue(host, data, bytes, sides, ndim, type, &input));
	need(ort->BindInput(binding, name, input));
	need(ort->SessionGetOutputCount(session, out_count));
	for (size_t i = 0; i < *out_count; i++) {
		need(ort->SessionGetOutputName(session, i, ort->allocator, &name));
		need(ort->BindOutputToDevice(binding, name, host));
	}
	need(ort->RunWithBinding(session, options, binding));
	need(ort->GetBoundOutputValues(binding, ort->allocator, &results, out_count));
	return results;
}

static const float *floats_of(ort_value_t *value, size_t *out_count)
{
	ort_shape_info_t *info;
	int64_t shape[8];
	size_t ndim = 0;
	int type = 0;
	void *data;

	need(ort->GetTensorTypeAndShape(value, &info));
	need(ort->GetTensorElementType(info, &type));
	need(ort->GetDimensionsCount(info, &ndim));
	if (type != ORT_FLOAT || ndim > 8) {
		fprintf(stderr, "network: an output is not of f32\n");
		exit(1);
	}
	need(ort->GetDimensions(info, shape, ndim));
	*out_count = 1;
	for (size_t i = 0; i < ndim; i++)
		*out_count *= (size_t)shape[i];
	need(ort->GetTensorMutableData(value, &data));
	return data;
}

static int input_type(ort_session_t *session)
{
	const ort_shape_info_t *shape;
	ort_type_info_t *info;
	int type = 0;

	need(ort->SessionGetInputTypeInfo(session, 0, &info));
	need(ort->CastTypeInfoToTensorInfo(info, &shape));
	need(ort->GetTensorElementType(shape, &type));
	return type;
}

/* Reads the input, or makes noise, from 0 to 1 or of u8. Returns its bytes. */
static size_t fill(const char *path, int type, size_t numbers, void *data)
{
	const size_t bytes = numbers * (type == ORT_FLOAT ? sizeof(float) : 1);
	FILE *file = strcmp(path, "noise") != 0 ? fopen(path, "rb") : NULL;
	uint32_t state = 1;

	for (size_t i = 0; i < numbers && strcmp(path, "noise") == 0; i++) {
		state = state * 1664525u + 1013904223u;
		if (type == ORT_FLOAT)
			((float *)data)[i] = (float)(state >> 8) / (float)(1 << 24);
		else
			((unsigned char *)data)[i] = (unsigned char)(state >> 24);
	}
	if (strcmp(path, "noise") == 0)
		return bytes;
	if (file == NULL || fread(data, 1, bytes, file) != bytes) {
		fprintf(stderr, "network: %s has not %zu bytes\n", path, bytes);
		exit(1);
	}
	fclose(file);
	return bytes;
}

static int compare(char **argv, const int64_t *sides, size_t ndim, size_t numbers)
{
	const int type = input_type(open_model(argv[4], "cpu"));
	void *data = calloc(numbers, sizeof(float));
	const size_t bytes = fill(argv[5], type, numbers, data);
	ort_value_t **here, **there;
	size_t count = 0;

	here = results_of(argv[4], "cpu", data, bytes, sides, ndim, type, &count);
	there = results_of(argv[1], argv[2], data, bytes, sides, ndim, type, &count);
	for (size_t i = 0; i < count; i++) {
		size_t size = 0, other = 0;
		const float *a = floats_of(here[i], &size), *b = floats_of(there[i], &other);
		float most = 0.0f, largest = 0.0f;

		for (size_t k = 0; k < size && k < other; k++) {
			most = fmaxf(most, fabsf(a[k] - b[k]));
			largest = fmaxf(largest, fabsf(a[k]));
		}
		printf("%zu %.2g\n", i, size == other ? (double)(most / largest) : 1.0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int64_t sides[SIDES_MAX] = {0};
	ort_memory_info_t *host, *gpu, *out;
	ort_run_options_t *options;
	ort_binding_t *binding;
	ort_session_t *session;
	ort_value_t *input = NULL;
	char *name, *made[OUTPUTS_MAX];
	size_t outputs, bytes = 1, count, behind;
	int type;
	bool is_resident;
	double *times, begin, start, sum;
	void *data;

	if (argc > 6 && argc <= 6 + SIDES_MAX && strcmp(argv[3], "compare") == 0) {
		size_t numbers = 1;

		for (int i = 6; i < argc; i++)
			numbers *= (size_t)(sides[i - 6] = atoi(argv[i]));
		return compare(argv, sides, (size_t)(argc - 6), numbers);
	}
	if (argc < 6 || argc > 5 + SIDES_MAX)
		return 2;
	is_resident = strcmp(argv[3], "resident") == 0;
	count = (size_t)atoi(argv[4]);
	for (int i = 5; i < argc; i++) {
		sides[i - 5] = atoi(argv[i]);
		bytes *= (size_t)sides[i - 5];
	}
	session = open_model(argv[1], argv[2]);
	type = input_type(session);
	bytes *= type == ORT_FLOAT ? sizeof(float) : 1;
	times = calloc(count, sizeof(*times));
	data = calloc(1, bytes);
	need(ort->CreateMemoryInfo("Cpu", ORT_ARENA_ALLOCATOR, 0, ORT_MEM_DEFAULT, &host));
	need(ort->CreateMemoryInfo("Cuda", ORT_DEVICE_ALLOCATOR, 0, ORT_MEM_DEFAULT, &gpu));
	out = is_resident && strcmp(argv[2], "cpu") != 0 ? gpu : host;
	need(ort->CreateRunOptions(&options));
	need(ort->CreateIoBinding(session, &binding));
	need(ort->SessionGetInputName(session, 0, ort->allocator, &name));
	need(ort->CreateTensorWithDataAsOrtValue(host, data, bytes, sides, (size_t)(argc - 5), type,
						 &input));
	need(ort->SessionGetOutputCount(session, &outputs));
	for (size_t i = 0; i < outputs && i < OUTPUTS_MAX; i++)
		need(ort->SessionGetOutputName(session, i, ort->allocator, &made[i]));
	need(ort->BindInput(binding, name, input)); /* which copies it to the GPU */
	for (size_t i = 0; i < outputs && i < OUTPUTS_MAX; i++)
		need(ort->BindOutputToDevice(binding, made[i], out));
	for (int i = 0; i < 20; i++)
		need(ort->RunWithBinding(session, options, binding));
	start = now_ms();
	for (size_t i = 0; i < count; i++) {
		begin = now_ms();
		if (!is_resident)
			need(ort->BindInput(binding, name, input));
		need(ort->RunWithBinding(session, options, binding));
		times[i] = now_ms() - begin;
	}
	sum = now_ms() - start;
	behind = count - count / 10;
	qsort(times + count / 10, behind, sizeof(*times), by_size);
	printf("%.1f %.3f %.3f\n", (double)count / sum * 1e3, times[count / 10 + behind / 2],
	       times[count / 10 + behind * 99 / 100]);
	return 0;
}
