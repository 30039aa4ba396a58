/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_ONNXRUNTIME_MODEL_H
#define INFERENCE_ONNXRUNTIME_MODEL_H

#include "onnxruntime_engine.h"

/* A model of ONNX Runtime: what it takes and makes, and where. For onnxruntime.c. */
struct ort_model {
	struct inference_model base;
	struct inference_options options;
	uint64_t kept_bytes; /* of what the host may have of GPUs (frag_gpu_memory_take) */
	ort_session_t *session;
	ort_memory_info_t *host, *device; /* device: of a GPU, else NULL */
	ort_memory_info_t *out;           /* one of both: where outputs are made */
};

/* Returns 0; -ENOTSUP: no tensor has such elements. */
int ort_to_dtype(int type, struct frag_dtype *out);
/* Returns the number of an element type that ort_to_dtype knows; else 0. */
int ort_from_dtype(struct frag_dtype dtype);
const char *ort_element_type_name(int type);

/* As those of inference_backend. */
int ort_model_load(const char *path, const struct inference_options *options,
		   struct inference_model **out, struct frag_err *err);
void ort_model_unload(struct inference_model *base);
int ort_model_find_output(const struct inference_model *base, const char *name);

#endif
