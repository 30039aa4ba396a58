// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/harness.h>

#include "inference/inference.h"

/*
 * One model by both engines of make deps-ai: a network that finds faces, on pictures of noise. What
 * each makes of them differs by less than TOLERANCE of the largest number of its output: both
 * compute with f32, in different orders.
 */
#define AI ".cache/ai"
#define MODEL AI "/models/centerface.onnx"
#define TOLERANCE 1e-4
#define OUTPUTS 4

static const char *const outputs[OUTPUTS] = {"537", "538", "539", "540"};

/* Returns why the engines cannot run here; NULL: they can. */
static const char *hindrance(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return "the engine does not run under sanitizers";
#elif !defined(__x86_64__)
	return "make deps-ai fetches the engine for x86-64";
#endif
	if (access(MODEL, R_OK) != 0)
		return "make deps-ai has not fetched the engine and the models";
	setenv("FRAG_OPENVINO", AI "/openvino", 1);
	setenv("FRAG_ONNXRUNTIME", AI "/onnxruntime", 1);
	return NULL;
}

static struct frag_harness *open_engine(const char *backend)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(
		&inference_inference_type,
		FRAG_ARGS({"backend", backend}, {"model_path_map", "{face: " MODEL "}"},
			  {"pre_processor_map", "{face: image}"},
			  {"inference_map", "{face: ['537', '538', '539', '540']}"},
			  {"threads", "2"}),
		&err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

/* The same numbers for both, between 0 and 255. */
static struct frag_tensor *noise(int64_t count, int64_t rows, int64_t columns)
{
	const int64_t shape[] = {count, 3, rows, columns};
	struct frag_tensor *t;
	uint32_t x = 1;
	float *data;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 4,
					shape, &t),
		     0);
	data = frag_tensor_writable(t);
	for (int64_t i = 0; i < count * 3 * rows * columns; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (float)(x >> 24);
	}
	return t;
}

static struct frag_message *run(struct frag_harness *h, struct frag_tensor *t)
{
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_give_tensor(h, "receivers", "image", t), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
	return m;
}

static void compare(const struct frag_tensor *a, const struct frag_tensor *b, const char *name)
{
	const float *of_a = frag_tensor_data(a), *of_b = frag_tensor_data(b);
	size_t count = frag_tensor_size_bytes(a) / sizeof(*of_a);
	double most = 0.0, differs = 0.0;

	cr_assert_eq(frag_tensor_dl(a)->ndim, frag_tensor_dl(b)->ndim);
	for (int32_t i = 0; i < frag_tensor_dl(a)->ndim; i++)
		cr_assert_eq(frag_tensor_dl(a)->shape[i], frag_tensor_dl(b)->shape[i]);
	for (size_t i = 0; i < count; i++) {
		most = fmax(most, fabs((double)of_a[i]));
		differs = fmax(differs, fabs((double)of_a[i] - (double)of_b[i]));
	}
	cr_expect_gt(most, 0.0, "%s is empty", name);
	cr_expect_lt(differs, TOLERANCE * most, "%s: %g of %g", name, differs, most);
}

Test(engines, make_the_same_of_a_model, .timeout = 120)
{
	static const int64_t sizes[][3] = {{1, 96, 160}, {3, 64, 96}};
	struct frag_harness *a, *b;

	if (hindrance() != NULL)
		cr_skip_test("%s", hindrance());
	a = open_engine("openvino");
	b = open_engine("onnxruntime");
	for (size_t i = 0; i < FRAG_COUNT_OF(sizes); i++) {
		struct frag_message *of_a = run(a, noise(sizes[i][0], sizes[i][1], sizes[i][2]));
		struct frag_message *of_b = run(b, noise(sizes[i][0], sizes[i][1], sizes[i][2]));

		for (size_t k = 0; k < OUTPUTS; k++)
			compare(frag_message_tensor(of_a, outputs[k]),
				frag_message_tensor(of_b, outputs[k]), outputs[k]);
		frag_message_unref(of_a);
		frag_message_unref(of_b);
	}
	frag_harness_destroy(a);
	frag_harness_destroy(b);
}
