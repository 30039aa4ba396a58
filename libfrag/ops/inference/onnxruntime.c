/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "onnxruntime_engine.h"

/*
 * Models and their runs by ONNX Runtime. Each request has a thread, which gives it the run: on the
 * CPU it takes part in the work; for a GPU it launches the kernels on the operator's stream, which
 * takes a tenth of a millisecond and more, and waits for none of them. Inputs and outputs are bound
 * to the memory of frag's tensors, so nothing is copied.
 */

static const struct ort *ort;

struct model {
	struct inference_model base;
	struct inference_options options;
	ort_session_t *session;
	ort_memory_info_t *host, *device; /* device: of a GPU, else NULL */
	ort_memory_info_t *out;           /* one of both: where outputs are made */
};

/* An input or output of the run that is prepared or under way. */
struct slot {
	ort_value_t *value;
	void *data; /* of the caller; NULL: the engine makes it */
	size_t bytes;
	struct frag_tensor *fixed; /* memory that a graph of CUDA was recorded with; else NULL */
};

enum state { IDLE, RUNNING, ENDING };

struct inference_request {
	struct model *model;
	ort_binding_t *binding;
	ort_run_options_t *run_options;
	struct slot *inputs, *outputs;
	bool is_bound; /* the memory of a graph is, for good */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum state state;
	struct frag_err failure; /* of the last run */
	void (*done)(void *context);
	void *context;
};

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

static int to_dtype(int type, struct frag_dtype *out)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(element_types); i++) {
		if (element_types[i].type == type) {
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
			return element_types[i].type;
	return 0;
}

static const char *element_type_name(int type)
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
	out->ndim = (int32_t)count;
	for (size_t i = 0; i < count; i++) { /* the names go with the info */
		out->sides[i] = out->shape[i] < 0 && out->sides[i][0] != '\0'
					? strdup(out->sides[i])
					: NULL;
	}
	if (to_dtype(type, &out->dtype) == 0)
		return 0;
	return frag_err_set(
		err, -ENOTSUP,
		"the %s \"%s\" of %s holds %s, which no tensor does; export the model so that it holds numbers of 8 bits or more",
		what, out->name, path, element_type_name(type));
}

struct direction {
	const char *what;
	ort_status_t *(*name)(const ort_session_t *, size_t, ort_allocator_t *, char **);
	ort_status_t *(*type)(const ort_session_t *, size_t, ort_type_info_t **);
};

/* Describes one input or output, and refuses what no tensor can be. */
static int describe(const char *path, const struct direction *direction, const struct model *model,
		    size_t i, struct inference_tensor *out, struct frag_err *err)
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
			const struct model *model, size_t count, struct inference_tensor **out,
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

static void onnxruntime_unload(struct inference_model *base)
{
	struct model *model = (struct model *)base;

	if (model->session != NULL)
		ort->ReleaseSession(model->session);
	if (model->host != NULL)
		ort->ReleaseMemoryInfo(model->host);
	if (model->device != NULL)
		ort->ReleaseMemoryInfo(model->device);
	tensors_free(base->inputs, base->input_count);
	tensors_free(base->outputs, base->output_count);
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

static int compile(const char *path, struct model *model, struct frag_err *err)
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

static int place(struct model *model, struct frag_err *err)
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
static int check_graph(const char *path, const struct model *model, struct frag_err *err)
{
	const struct inference_model *base = &model->base;

	for (size_t i = 0; i < base->input_count + base->output_count; i++) {
		const struct inference_tensor *tensor =
			i < base->input_count ? &base->inputs[i]
					      : &base->outputs[i - base->input_count];

		for (int32_t k = 0; k < tensor->ndim; k++)
			if (tensor->shape[k] < 0)
				return frag_err_set(
					err, -ENOTSUP,
					"enable_cuda_graphs: \"%s\" of %s has sides that are any; export the model with fixed sides, or leave enable_cuda_graphs out",
					tensor->name, path);
	}
	return 0;
}

static int onnxruntime_load(const char *path, const struct inference_options *options,
			    struct inference_model **out, struct frag_err *err)
{
	struct direction in = {"input", NULL, NULL}, made = {"output", NULL, NULL};
	struct inference_model *base;
	struct model *model;
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
		onnxruntime_unload(base);
		return r;
	}
	*out = base;
	return 0;
}

static int onnxruntime_find_output(const struct inference_model *base, const char *name)
{
	for (size_t i = 0; i < base->output_count; i++)
		if (strcmp(base->outputs[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static void drop(ort_value_t **value)
{
	if (*value != NULL)
		ort->ReleaseValue(*value);
	*value = NULL;
}

static ort_status_t *wrap(const ort_memory_info_t *memory, const struct inference_tensor *tensor,
			  int32_t ndim, const int64_t *shape, void *data, size_t bytes,
			  ort_value_t **out)
{
	static double nothing; /* the engine takes no NULL for an empty tensor */

	drop(out);
	return ort->CreateTensorWithDataAsOrtValue(memory, data != NULL ? data : &nothing, bytes,
						   shape, (size_t)ndim, from_dtype(tensor->dtype),
						   out);
}

/* Binds the memory that a graph is recorded with, for good. */
static int bind_fixed(struct inference_request *request, struct frag_err *err)
{
	const struct inference_model *base = &request->model->base;
	ort_status_t *status = NULL;
	int r = 0;

	for (size_t i = 0; i < base->input_count + base->output_count && r == 0; i++) {
		bool is_input = i < base->input_count;
		size_t k = is_input ? i : i - base->input_count;
		const struct inference_tensor *tensor =
			is_input ? &base->inputs[k] : &base->outputs[k];
		struct slot *slot = is_input ? &request->inputs[k] : &request->outputs[k];

		r = frag_tensor_create_on(NULL, base->device, tensor->dtype, tensor->ndim,
					  tensor->shape, &slot->fixed);
		if (r < 0)
			return frag_err_set(
				err, r,
				"no memory on GPU %d for \"%s\": %s; use less of it elsewhere",
				(int)base->device.id, tensor->name, frag_strerror(r));
		slot->bytes = frag_tensor_size_bytes(slot->fixed);
		status = wrap(request->model->device, tensor, tensor->ndim, tensor->shape,
			      frag_tensor_writable(slot->fixed), slot->bytes, &slot->value);
		if (status == NULL)
			status = (is_input ? ort->BindInput : ort->BindOutput)(
				request->binding, tensor->name, slot->value);
		if (status != NULL)
			r = ort_failed(ort, status, -EIO, "ONNX Runtime refuses memory of a GPU",
				       "leave enable_cuda_graphs out", err);
	}
	request->is_bound = r == 0;
	return r;
}

static ort_status_t *bind(struct inference_request *request)
{
	const struct model *model = request->model;
	ort_status_t *status = NULL;

	for (size_t i = 0; i < model->base.input_count && status == NULL; i++)
		status = ort->BindInput(request->binding, model->base.inputs[i].name,
					request->inputs[i].value);
	for (size_t i = 0; i < model->base.output_count && status == NULL; i++) {
		const char *name = model->base.outputs[i].name;

		if (request->outputs[i].data != NULL)
			status = ort->BindOutput(request->binding, name, request->outputs[i].value);
		else
			status = ort->BindOutputToDevice(request->binding, name, model->out);
	}
	return status;
}

/* Takes over the outputs that the engine has made. */
static ort_status_t *take_outputs(struct inference_request *request)
{
	size_t count = 0, missing = 0;
	ort_value_t **values = NULL;
	ort_status_t *status;

	for (size_t i = 0; i < request->model->base.output_count; i++)
		missing += request->outputs[i].data == NULL;
	if (missing == 0)
		return NULL;
	status = ort->GetBoundOutputValues(request->binding, ort->allocator, &values, &count);
	if (status != NULL)
		return status;
	for (size_t i = 0; i < count; i++) {
		if (i < request->model->base.output_count && request->outputs[i].data == NULL)
			request->outputs[i].value = values[i];
		else
			ort->ReleaseValue(values[i]);
	}
	return ort->AllocatorFree(ort->allocator, values);
}

/* Gives the copies between the caller's memory and that of the graph to the stream. */
static int copy_fixed(struct inference_request *request, bool inputs, struct frag_err *err)
{
	const struct inference_model *base = &request->model->base;
	const struct inference_options *options = &request->model->options;
	size_t count = inputs ? base->input_count : base->output_count;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		struct slot *slot = inputs ? &request->inputs[i] : &request->outputs[i];
		/* The tensor is the request's own, whatever was bound to it. */
		void *fixed = (void *)(uintptr_t)frag_tensor_data(slot->fixed);

		if (slot->data != NULL)
			r = inference_gpu_copy(options->gpu, options->stream,
					       inputs ? fixed : slot->data,
					       inputs ? slot->data : fixed, slot->bytes, err);
	}
	return r;
}

static int run(struct inference_request *request, struct frag_err *err)
{
	struct model *model = request->model;
	bool graphs = model->options.graphs;
	ort_status_t *status = NULL;
	int r = 0;

	if (graphs && !request->is_bound)
		r = bind_fixed(request, err);
	if (graphs && r == 0)
		r = copy_fixed(request, true, err);
	if (r < 0)
		return r;
	if (!graphs)
		status = bind(request);
	if (status == NULL)
		status =
			ort->RunWithBinding(model->session, request->run_options, request->binding);
	if (status == NULL && !graphs)
		status = take_outputs(request);
	if (status != NULL)
		return ort_failed(ort, status, -EIO, "the model failed",
				  "check that its inputs hold what it was trained with", err);
	return graphs ? copy_fixed(request, false, err) : 0;
}

static void *work(void *arg)
{
	struct inference_request *request = arg;

	pthread_mutex_lock(&request->lock);
	while (request->state != ENDING) {
		if (request->state == IDLE) {
			pthread_cond_wait(&request->changed, &request->lock);
			continue;
		}
		pthread_mutex_unlock(&request->lock);
		request->failure = (struct frag_err)FRAG_ERR_INIT;
		run(request, &request->failure);
		if (request->done != NULL)
			request->done(request->context);
		pthread_mutex_lock(&request->lock);
		request->state = IDLE; /* only now: whoever waits may free what done has used */
		pthread_cond_broadcast(&request->changed);
	}
	pthread_mutex_unlock(&request->lock);
	return NULL;
}

static void wait_idle(struct inference_request *request)
{
	pthread_mutex_lock(&request->lock);
	while (request->state == RUNNING)
		pthread_cond_wait(&request->changed, &request->lock);
	pthread_mutex_unlock(&request->lock);
}

static void slots_free(struct slot *slots, size_t count)
{
	for (size_t i = 0; slots != NULL && i < count; i++) {
		drop(&slots[i].value);
		frag_tensor_unref(slots[i].fixed);
	}
	free(slots);
}

static void onnxruntime_request_destroy(struct inference_request *request)
{
	if (request == NULL)
		return;
	if (request->has_thread) {
		wait_idle(request);
		pthread_mutex_lock(&request->lock);
		request->state = ENDING;
		pthread_cond_broadcast(&request->changed);
		pthread_mutex_unlock(&request->lock);
		pthread_join(request->thread, NULL);
	}
	if (request->binding != NULL)
		ort->ReleaseIoBinding(request->binding);
	if (request->run_options != NULL)
		ort->ReleaseRunOptions(request->run_options);
	slots_free(request->inputs, request->model->base.input_count);
	slots_free(request->outputs, request->model->base.output_count);
	pthread_cond_destroy(&request->changed);
	pthread_mutex_destroy(&request->lock);
	free(request);
}

static int onnxruntime_request_create(struct inference_model *base, struct inference_request **out,
				      struct frag_err *err)
{
	struct model *model = (struct model *)base;
	struct inference_request *request = calloc(1, sizeof(*request));
	ort_status_t *status;

	if (request == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a run of a model");
	request->model = model;
	pthread_mutex_init(&request->lock, NULL);
	pthread_cond_init(&request->changed, NULL);
	request->inputs = calloc(base->input_count + 1, sizeof(*request->inputs));
	request->outputs = calloc(base->output_count + 1, sizeof(*request->outputs));
	status = ort->CreateIoBinding(model->session, &request->binding);
	if (status == NULL)
		status = ort->CreateRunOptions(&request->run_options);
	if (status == NULL && base->out_device.type != FRAG_DEVICE_CPU)
		status = ort->AddRunConfigEntry(request->run_options,
						"disable_synchronize_execution_providers", "1");
	if (request->inputs == NULL || request->outputs == NULL || status != NULL) {
		ort->ReleaseStatus(status);
		onnxruntime_request_destroy(request);
		return frag_err_set(err, -ENOMEM,
				    "out of memory for a run of a model; use a smaller model");
	}
	*out = request;
	return 0;
}

static int set(struct slot *slot, bool fixed, const ort_memory_info_t *memory,
	       const struct inference_tensor *tensor, int32_t ndim, const int64_t *shape,
	       void *data, struct frag_err *err)
{
	ort_status_t *status;

	slot->data = data;
	if (fixed)
		return 0;
	slot->bytes = inference_tensor_bytes(tensor->dtype, ndim, shape);
	status = wrap(memory, tensor, ndim, shape, data, slot->bytes, &slot->value);
	if (status != NULL)
		return ort_failed(ort, status, -EINVAL, "ONNX Runtime refuses a tensor",
				  "check its shape", err);
	return 0;
}

static int onnxruntime_set_input(struct inference_request *request, size_t input, int32_t ndim,
				 const int64_t *shape, struct frag_device device, const void *data,
				 struct frag_err *err)
{
	const struct model *model = request->model;
	bool is_host = device.type == FRAG_DEVICE_CPU || device.type == FRAG_DEVICE_CUDA_HOST;

	return set(&request->inputs[input], model->options.graphs,
		   is_host ? model->host : model->device, &model->base.inputs[input], ndim, shape,
		   (void *)(uintptr_t)data, err);
}

static int onnxruntime_set_output(struct inference_request *request, size_t output, int32_t ndim,
				  const int64_t *shape, void *data, struct frag_err *err)
{
	const struct model *model = request->model;
	struct slot *slot = &request->outputs[output];

	if (data == NULL && !model->options.graphs)
		drop(&slot->value);
	if (data == NULL) {
		slot->data = NULL;
		return 0;
	}
	return set(slot, model->options.graphs, model->out, &model->base.outputs[output], ndim,
		   shape, data, err);
}

static int onnxruntime_start(struct inference_request *request, void (*done)(void *context),
			     void *context, struct frag_err *err)
{
	if (!request->has_thread && pthread_create(&request->thread, NULL, work, request) != 0)
		return frag_err_set(err, -EAGAIN,
				    "no thread for a run of a model; raise the limit of threads");
	request->has_thread = true;
	pthread_mutex_lock(&request->lock);
	request->done = done;
	request->context = context;
	request->state = RUNNING;
	pthread_cond_broadcast(&request->changed);
	pthread_mutex_unlock(&request->lock);
	return 0;
}

static int onnxruntime_wait(struct inference_request *request, struct frag_err *err)
{
	wait_idle(request);
	if (request->failure.code != 0)
		*err = request->failure;
	return request->failure.code;
}

static void release_value(void *owner)
{
	ort->ReleaseValue(owner);
}

static int onnxruntime_result(struct inference_request *request, size_t output,
			      struct inference_result *out, struct frag_err *err)
{
	const struct model *model = request->model;
	struct slot *slot = &request->outputs[output];
	ort_shape_info_t *info = NULL;
	ort_status_t *status;
	void *data = NULL;
	size_t count = 0;
	int type = 0;

	if (slot->value == NULL)
		return frag_err_set(err, -EIO, "ONNX Runtime gives no output \"%s\"",
				    model->base.outputs[output].name);
	status = ort->GetTensorTypeAndShape(slot->value, &info);
	if (status == NULL)
		status = ort->GetTensorElementType(info, &type);
	if (status == NULL)
		status = ort->GetDimensionsCount(info, &count);
	if (status == NULL && count <= FRAG_TENSOR_NDIM_MAX)
		status = ort->GetDimensions(info, out->shape, count);
	if (status == NULL)
		status = ort->GetTensorMutableData(slot->value, &data);
	if (info != NULL)
		ort->ReleaseTensorTypeAndShapeInfo(info);
	if (status != NULL)
		return ort_failed(ort, status, -EIO, "ONNX Runtime gives no output",
				  "check the model", err);
	if (count > FRAG_TENSOR_NDIM_MAX || to_dtype(type, &out->dtype) < 0)
		return frag_err_set(
			err, -ENOTSUP,
			"the output \"%s\" of the model has %zu dimensions of %s; a tensor has %d at most, of numbers",
			model->base.outputs[output].name, count, element_type_name(type),
			FRAG_TENSOR_NDIM_MAX);
	out->ndim = (int32_t)count;
	out->size_bytes = inference_tensor_bytes(out->dtype, out->ndim, out->shape);
	out->data = data;
	if (model->base.out_device.type != FRAG_DEVICE_CPU) {
		out->release = release_value;
		out->owner = slot->value;
		slot->value = NULL;
	}
	return 0;
}

const struct inference_backend inference_onnxruntime = {
	.name = "onnxruntime",
	.load = onnxruntime_load,
	.unload = onnxruntime_unload,
	.find_output = onnxruntime_find_output,
	.request_create = onnxruntime_request_create,
	.request_destroy = onnxruntime_request_destroy,
	.set_input = onnxruntime_set_input,
	.set_output = onnxruntime_set_output,
	.start = onnxruntime_start,
	.wait = onnxruntime_wait,
	.result = onnxruntime_result,
};
