/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_INFERENCE_ONNXRUNTIME_H
#define TESTS_OPERATORS_INFERENCE_ONNXRUNTIME_H

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda/load.h"
#include "inference/inference.h"
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

static inline void use_engine(void)
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

static inline void remove_files(void)
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

static inline struct frag_tensor *rows(struct frag_device device, int64_t count, float first)
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

static inline struct frag_tensor *host_rows(int64_t count, float first)
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
static inline float element(const struct frag_message *m, const char *name, size_t i)
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

static inline bool is_logged(const char *line)
{
	char text[4096] = "";
	FILE *log = fopen(log_path, "r");

	if (log != NULL) {
		cr_expect_gt(fread(text, 1, sizeof(text) - 1, log), 0);
		fclose(log);
	}
	return strstr(text, line) != NULL;
}

#endif
