// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

static const struct {
	const char *name;
	const struct inference_backend *backend;
	enum inference_provider provider;
} names[] = {
	{"openvino", &inference_openvino, INFERENCE_CPU},
	{"onnxruntime", &inference_onnxruntime, INFERENCE_CPU},
	/* what Holoscan calls them */
	{"onnxrt", &inference_onnxruntime, INFERENCE_CPU},
	{"trt", &inference_onnxruntime, INFERENCE_TENSORRT},
};

const struct inference_backend *inference_backend_find(const char *name,
						       enum inference_provider *out_provider,
						       struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		if (strcmp(names[i].name, name) != 0)
			continue;
		if (names[i].provider != INFERENCE_CPU)
			*out_provider = names[i].provider;
		return names[i].backend;
	}
	if (strcmp(name, "torch") == 0)
		frag_err_set(
			err, -ENOTSUP,
			"backend torch: no engine here reads TorchScript; export the model as ONNX, which onnxruntime and openvino read");
	else
		frag_err_set(err, -EINVAL, "backend \"%s\" is unknown; use openvino or onnxruntime",
			     name);
	return NULL;
}

size_t inference_tensor_bytes(struct frag_dtype dtype, int32_t ndim, const int64_t *shape)
{
	size_t bytes = dtype.bits / 8;

	for (int32_t i = 0; i < ndim; i++)
		bytes *= (size_t)shape[i];
	return bytes;
}

static const char *dtype_name(struct frag_dtype dtype)
{
	static const struct {
		uint8_t code, bits;
		const char *name;
	} dtypes[] = {
		{FRAG_DTYPE_INT, 8, "i8"},     {FRAG_DTYPE_INT, 16, "i16"},
		{FRAG_DTYPE_INT, 32, "i32"},   {FRAG_DTYPE_INT, 64, "i64"},
		{FRAG_DTYPE_UINT, 8, "u8"},    {FRAG_DTYPE_UINT, 16, "u16"},
		{FRAG_DTYPE_UINT, 32, "u32"},  {FRAG_DTYPE_UINT, 64, "u64"},
		{FRAG_DTYPE_FLOAT, 16, "f16"}, {FRAG_DTYPE_FLOAT, 32, "f32"},
		{FRAG_DTYPE_FLOAT, 64, "f64"}, {FRAG_DTYPE_BFLOAT, 16, "bf16"},
		{FRAG_DTYPE_BOOL, 8, "bool"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(dtypes); i++)
		if (dtypes[i].code == dtype.code && dtypes[i].bits == dtype.bits)
			return dtypes[i].name;
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
