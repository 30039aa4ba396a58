// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* sched_getaffinity */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_model.h"

static const struct ort *ort;

static const struct {
	int type;
	struct frag_dtype dtype;
} element_types[] = {
	{ORT_FLOAT, {FRAG_DTYPE_FLOAT, 32, 1}},     {ORT_UINT8, {FRAG_DTYPE_UINT, 8, 1}},
	{ORT_INT8, {FRAG_DTYPE_INT, 8, 1}},         {ORT_UINT16, {FRAG_DTYPE_UINT, 16, 1}},
	{ORT_INT16, {FRAG_DTYPE_INT, 16, 1}},       {ORT_INT32, {FRAG_DTYPE_INT, 32, 1}},
	{ORT_INT64, {FRAG_DTYPE_INT, 64, 1}},       {ORT_BOOL, {FRAG_DTYPE_BOOL, 8, 1}},
	{ORT_FLOAT16, {FRAG_DTYPE_FLOAT, 16, 1}},   {ORT_DOUBLE, {FRAG_DTYPE_FLOAT, 64, 1}},
	{ORT_UINT32, {FRAG_DTYPE_UINT, 32, 1}},     {ORT_UINT64, {FRAG_DTYPE_UINT, 64, 1}},
	{ORT_BFLOAT16, {FRAG_DTYPE_BFLOAT, 16, 1}},
};

int ort_to_dtype(int type, struct frag_dtype *out)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(element_types); i++) {
		if (element_types[i].type == type) {
			*out = element_types[i].dtype;
			return 0;
		}
	}
	return -ENOTSUP;
}

int ort_from_dtype(struct frag_dtype dtype)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(element_types); i++)
		if (element_types[i].dtype.code == dtype.code &&
		    element_types[i].dtype.bits == dtype.bits)
			return element_types[i].type;
	return 0;
}

const char *ort_element_type_name(int type)
{
	static const char *const names[] = {
		[ORT_STRING] = "texts",
		[ORT_COMPLEX64] = "c64",
		[ORT_COMPLEX128] = "c128",
		[ORT_FLOAT8E4M3FN] = "f8e4m3",
		[ORT_FLOAT8E4M3FNUZ] = "f8e4m3fnuz",
		[ORT_FLOAT8E5M2] = "f8e5m2",
		[ORT_FLOAT8E5M2FNUZ] = "f8e5m2fnuz",
		[ORT_UINT4] = "u4",
		[ORT_INT4] = "i4",
	};

	return type >= 0 && type < (int)FRAG_COUNT_OF(names) && names[type] != NULL
		       ? names[type]
		       : "elements of a type without a name here";
}

static int undescribed(ort_status_t *status, const char *path, struct frag_err *err)
{
	char what[PATH_MAX + 64];

	snprintf(what, sizeof(what), "ONNX Runtime does not describe %s", path);
	return ort_failed(ort, status, -EIO, what, "use another model", err);
}

static int read_shape(const char *path, const char *what, const ort_shape_info_t *info,
		      struct inference_tensor *out, struct frag_err *err)
{
	ort_status_t *status;
	size_t count = 0;
	int type = 0;

	status = ort->GetTensorElementType(info, &type);
	if (status == NULL)
		status = ort->GetDimensionsCount(info, &count);
	if (status == NULL && count > FRAG_TENSOR_NDIM_MAX)
		return frag_err_set(
			err, -ENOTSUP,
			"the %s \"%s\" of %s has %zu dimensions, and a tensor has %d at most; export the model so that it joins some of them",
			what, out->name, path, count, FRAG_TENSOR_NDIM_MAX);
	if (status == NULL)
		status = ort->GetDimensions(info, out->shape, count);
	if (status == NULL)
		status = ort->GetSymbolicDimensions(info, out->sides, count);
	if (status != NULL)
		return undescribed(status, path, err);
	/*
	 * ONNX Runtime gives no dimensions to a single number, and none where the model states no
	 * shape. Which it is, it checks at each run.
	 */
	out->ndim = count > 0 ? (int32_t)count : -1;
	for (size_t i = 0; i < count; i++) { /* the names go with the info */
		out->sides[i] = out->shape[i] < 0 && out->sides[i][0] != '\0'
					? strdup(out->sides[i])
					: NULL;
	}
	if (ort_to_dtype(type, &out->dtype) == 0)
		return 0;
	return frag_err_set(
		err, -ENOTSUP,
		"the %s \"%s\" of %s holds %s, which no tensor does; export the model so that it holds numbers of 8 bits or more (of texts, the numbers of their tokens)",
		what, out->name, path, ort_element_type_name(type));
}

struct direction {
	const char *what;
	ort_status_t *(*name)(const ort_session_t *, size_t, ort_allocator_t *, char **);
	ort_status_t *(*type)(const ort_session_t *, size_t, ort_type_info_t **);
};

/* Describes one input or output, and refuses what no tensor can be. */
static int describe(const char *path, const struct direction *direction,
		    const struct ort_model *model, size_t i, struct inference_tensor *out,
		    struct frag_err *err)
{
	const ort_shape_info_t *shape = NULL;
	ort_type_info_t *info = NULL;
	ort_status_t *status;
	char *name = NULL;
	int kind = 0, r;

	status = direction->name(model->session, i, ort->allocator, &name);
	if (status != NULL)
		return undescribed(status, path, err);
	out->name = strdup(name);
	ort->ReleaseStatus(ort->AllocatorFree(ort->allocator, name));
	if (out->name == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	status = direction->type(model->session, i, &info);
	if (status == NULL)
		status = ort->GetOnnxTypeFromTypeInfo(info, &kind);
	if (status == NULL)
		status = ort->CastTypeInfoToTensorInfo(info, &shape);
	if (status != NULL)
		r = undescribed(status, path, err);
	else if (kind != ORT_TYPE_TENSOR || shape == NULL)
		r = frag_err_set(err, -ENOTSUP,
				 "the %s \"%s\" of %s is no tensor but a sequence, a map or an "
				 "optional; export the model so that it takes and makes tensors",
				 direction->what, out->name, path);
	else
		r = read_shape(path, direction->what, shape, out, err);
	if (info != NULL)
		ort->ReleaseTypeInfo(info);
	return r;
}

static int describe_all(const char *path, const struct direction *direction,
			const struct ort_model *model, size_t count, struct inference_tensor **out,
			struct frag_err *err)
{
	int r = 0;

	*out = calloc(count + 1, sizeof(**out));
	if (*out == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	for (size_t i = 0; i < count && r == 0; i++)
		r = describe(path, direction, model, i, &(*out)[i], err);
	return r;
}

static void tensors_free(struct inference_tensor *tensors, size_t count)
{
	for (size_t i = 0; tensors != NULL && i < count; i++) {
		free((char *)(uintptr_t)tensors[i].name);
		for (size_t k = 0; k < FRAG_TENSOR_NDIM_MAX; k++)
			free((char *)(uintptr_t)tensors[i].sides[k]);
	}
	free(tensors);
}

void ort_model_unload(struct inference_model *base)
{
	struct ort_model *model = (struct ort_model *)base;

	if (model->session != NULL)
		ort->ReleaseSession(model->session);
	if (model->host != NULL)
		ort->ReleaseMemoryInfo(model->host);
	if (model->device != NULL)
		ort->ReleaseMemoryInfo(model->device);
	tensors_free(base->inputs, base->input_count);
	tensors_free(base->outputs, base->output_count);
	frag_gpu_memory_give(model->kept_bytes);
	free(model);
}

static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Threads that wait do not spin: other operators use the cores too. */
static int set_options(const struct inference_options *options, ort_session_options_t *session,
		       struct frag_err *err)
{
	int threads = options->threads > 0 ? (int)options->threads : processors();
	ort_status_t *status = ort->SetIntraOpNumThreads(session, threads);

	if (status == NULL)
		status = ort->SetSessionLogSeverityLevel(session, ORT_LOG_FATAL);
	if (status == NULL)
		status =
			ort->AddSessionConfigEntry(session, "session.intra_op.allow_spinning", "0");
	if (status != NULL)
		return ort_failed(ort, status, -EIO, "ONNX Runtime refuses its settings",
				  "use another version of it", err);
	return ort_add_provider(ort, options, session, err);
}

static int refused(const char *path, const struct inference_options *options, ort_status_t *status,
		   struct frag_err *err)
{
	static const char *const lacks[] = {"is not a registered function/op",
					    "Could not find an implementation",
					    "No Op registered for"};
	const char *text = ort->GetErrorMessage(status);
	char what[PATH_MAX + 64];

	for (size_t i = 0; i < FRAG_COUNT_OF(lacks); i++) {
		if (strstr(text, lacks[i]) == NULL)
			continue;
		snprintf(what, sizeof(what), "%s uses operations that ONNX Runtime does not have",
			 path);
		return ort_failed(ort, status, -ENOTSUP, what,
				  "export the model with others, or use a newer ONNX Runtime", err);
	}
	if (options->provider == INFERENCE_CPU) {
		snprintf(what, sizeof(what), "%s is not a model that ONNX Runtime reads", path);
		return ort_failed(ort, status, -EBADMSG, what,
				  "give it .onnx, and check that the file is complete", err);
	}
	snprintf(what, sizeof(what), "ONNX Runtime cannot make %s ready for %s", path,
		 ort_provider_name(options->provider));
	return ort_failed(ort, status, -EBADMSG, what,
			  "check that the file is complete, and try provider: cpu", err);
}

/*
 * The engine takes memory of the GPU as it likes, up to a limit. Where the host has one, the model
 * keeps its part of that; without a part of its own, all that is left.
 */
static int keep_memory(struct ort_model *model, struct frag_err *err)
{
	struct inference_options *options = &model->options;
	uint64_t left = frag_gpu_memory_left(), bytes = (uint64_t)options->memory_bytes;
	int r;

	if (options->provider == INFERENCE_CPU || left == UINT64_MAX)
		return 0;
	if (bytes == 0)
		bytes = left > 0 ? left : 1;
	r = frag_gpu_memory_take(bytes, err);
	if (r < 0)
		return r;
	model->kept_bytes = bytes;
	options->memory_bytes = (int64_t)bytes;
	return 0;
}

static int compile(const char *path, struct ort_model *model, struct frag_err *err)
{
	ort_session_options_t *session = NULL;
	ort_status_t *status = ort->CreateSessionOptions(&session);
	int r;

	if (status != NULL)
		return ort_failed(ort, status, -ENOMEM, "ONNX Runtime has no settings",
				  "free memory", err);
	r = set_options(&model->options, session, err);
	if (r == 0)
		status = ort->CreateSession(ort->env, path, session, &model->session);
	ort->ReleaseSessionOptions(session);
	return status != NULL ? refused(path, &model->options, status, err) : r;
}

static int place(struct ort_model *model, struct frag_err *err)
{
	const struct inference_options *options = &model->options;
	ort_status_t *status =
		ort->CreateMemoryInfo("Cpu", ORT_ARENA_ALLOCATOR, 0, ORT_MEM_DEFAULT, &model->host);

	model->base.device = model->base.out_device = (struct frag_device){FRAG_DEVICE_CPU, 0};
	model->base.runs_at_a_time = INFERENCE_REQUESTS;
	model->out = model->host;
	if (status == NULL && options->provider != INFERENCE_CPU) {
		model->base.device = (struct frag_device){FRAG_DEVICE_CUDA, options->gpu};
		model->base.runs_at_a_time = 1; /* a stream has one order */
		status = ort->CreateMemoryInfo("Cuda", ORT_DEVICE_ALLOCATOR, options->gpu,
					       ORT_MEM_DEFAULT, &model->device);
		if (!options->host_outputs) {
			model->base.out_device = model->base.device;
			model->out = model->device;
		}
	}
	if (status != NULL)
		return ort_failed(ort, status, -EIO, "ONNX Runtime does not know memory of GPUs",
				  "use another version of it", err);
	return 0;
}

/* A graph is recorded with the memory of one shape. */
static int check_graph(const char *path, const struct ort_model *model, struct frag_err *err)
{
	const struct inference_model *base = &model->base;

	for (size_t i = 0; i < base->input_count + base->output_count; i++) {
		const struct inference_tensor *tensor =
			i < base->input_count ? &base->inputs[i]
					      : &base->outputs[i - base->input_count];

		for (int32_t k = 0; k < tensor->ndim || (k == 0 && tensor->ndim < 0); k++)
			if (tensor->ndim < 0 || tensor->shape[k] < 0)
				return frag_err_set(
					err, -ENOTSUP,
					"enable_cuda_graphs: \"%s\" of %s has sides that are any; export the model with fixed sides, or leave enable_cuda_graphs out",
					tensor->name, path);
	}
	return 0;
}

int ort_model_load(const char *path, const struct inference_options *options,
		   struct inference_model **out, struct frag_err *err)
{
	struct direction in = {"input", NULL, NULL}, made = {"output", NULL, NULL};
	struct inference_model *base;
	struct ort_model *model;
	ort_status_t *status;
	int r;

	ort = ort_open(err);
	if (ort == NULL)
		return err->code;
	in.name = ort->SessionGetInputName;
	in.type = ort->SessionGetInputTypeInfo;
	made.name = ort->SessionGetOutputName;
	made.type = ort->SessionGetOutputTypeInfo;
	model = calloc(1, sizeof(*model));
	if (model == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	base = &model->base;
	base->backend = &inference_onnxruntime;
	model->options = *options;
	r = keep_memory(model, err);
	if (r == 0)
		r = compile(path, model, err);
	if (r == 0)
		r = place(model, err);
	if (r == 0) {
		status = ort->SessionGetInputCount(model->session, &base->input_count);
		if (status == NULL)
			status = ort->SessionGetOutputCount(model->session, &base->output_count);
		r = status != NULL ? undescribed(status, path, err) : 0;
	}
	if (r == 0)
		r = describe_all(path, &in, model, base->input_count, &base->inputs, err);
	if (r == 0)
		r = describe_all(path, &made, model, base->output_count, &base->outputs, err);
	if (r == 0 && options->graphs)
		r = check_graph(path, model, err);
	if (r < 0) {
		ort_model_unload(base);
		return r;
	}
	*out = base;
	return 0;
}

int ort_model_find_output(const struct inference_model *base, const char *name)
{
	for (size_t i = 0; i < base->output_count; i++)
		if (strcmp(base->outputs[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}
