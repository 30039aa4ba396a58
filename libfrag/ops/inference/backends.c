/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

static const struct inference_backend *const backends[] = {&inference_openvino};

/* What Holoscan calls its backends. */
static const struct {
	const char *name, *advice;
} unbuilt[] = {
	{"trt", "TensorRT is not built yet; openvino reads the same ONNX files, on the CPU"},
	{"onnxrt", "ONNX Runtime is not built yet; openvino reads the same ONNX files"},
	{"torch", "TorchScript is not built yet; export the model as ONNX, which openvino reads"},
};

const struct inference_backend *inference_backend_find(const char *name, struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(backends); i++)
		if (strcmp(backends[i]->name, name) == 0)
			return backends[i];
	for (size_t i = 0; i < FRAG_COUNT_OF(unbuilt); i++) {
		if (strcmp(unbuilt[i].name, name) != 0)
			continue;
		frag_err_set(err, -ENOTSUP, "backend %s: %s", name, unbuilt[i].advice);
		return NULL;
	}
	frag_err_set(err, -EINVAL, "backend \"%s\" is unknown; use openvino", name);
	return NULL;
}

static const char *dtype_name(struct frag_dtype dtype)
{
	static const struct {
		uint8_t code, bits;
		const char *name;
	} names[] = {
		{FRAG_DTYPE_INT, 8, "i8"},     {FRAG_DTYPE_INT, 16, "i16"},
		{FRAG_DTYPE_INT, 32, "i32"},   {FRAG_DTYPE_INT, 64, "i64"},
		{FRAG_DTYPE_UINT, 8, "u8"},    {FRAG_DTYPE_UINT, 16, "u16"},
		{FRAG_DTYPE_UINT, 32, "u32"},  {FRAG_DTYPE_UINT, 64, "u64"},
		{FRAG_DTYPE_FLOAT, 16, "f16"}, {FRAG_DTYPE_FLOAT, 32, "f32"},
		{FRAG_DTYPE_FLOAT, 64, "f64"}, {FRAG_DTYPE_BFLOAT, 16, "bf16"},
		{FRAG_DTYPE_BOOL, 8, "bool"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		if (names[i].code == dtype.code && names[i].bits == dtype.bits)
			return names[i].name;
	return "other";
}

const char *inference_tensor_text(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
				  char *out)
{
	size_t at = (size_t)snprintf(out, INFERENCE_TEXT_SIZE, "%s [%s", dtype_name(dtype),
				     ndim < 0 ? "any shape" : "");

	for (int32_t i = 0; i < ndim && at < INFERENCE_TEXT_SIZE; i++) {
		const char *comma = i > 0 ? ", " : "";

		if (shape[i] < 0)
			at += (size_t)snprintf(out + at, INFERENCE_TEXT_SIZE - at, "%sany", comma);
		else
			at += (size_t)snprintf(out + at, INFERENCE_TEXT_SIZE - at, "%s%lld", comma,
					       (long long)shape[i]);
	}
	if (at < INFERENCE_TEXT_SIZE)
		snprintf(out + at, INFERENCE_TEXT_SIZE - at, "]");
	return out;
}
