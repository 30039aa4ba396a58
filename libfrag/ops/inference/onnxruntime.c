// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "onnxruntime_model.h"

/*
 * The runs of models by ONNX Runtime. Each request has a thread, which gives it the run: on the
 * CPU it takes part in the work; for a GPU it launches the kernels on the operator's stream, which
 * takes a tenth of a millisecond and more, and waits for none of them. Inputs and outputs are bound
 * to the memory of frag's tensors, so nothing is copied.
 */

static const struct ort *ort; /* once a model is open */

/* An input or output of the run that is prepared or under way. */
struct slot {
	ort_value_t *value;
	void *data; /* of the caller; NULL: the engine makes it */
	size_t bytes;
	struct frag_tensor *fixed; /* memory that a graph of CUDA was recorded with; else NULL */
};

enum state { IDLE, RUNNING, ENDING };

struct inference_request {
	struct ort_model *model;
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
						   shape, (size_t)ndim,
						   ort_from_dtype(tensor->dtype), out);
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
	const struct ort_model *model = request->model;
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
		if (i < request->model->base.output_count && request->outputs[i].data == NULL) {
			drop(&request->outputs[i].value);
			request->outputs[i].value = values[i];
		} else {
			ort->ReleaseValue(values[i]);
		}
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
	struct ort_model *model = request->model;
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
	struct ort_model *model = (struct ort_model *)base;
	struct inference_request *request = calloc(1, sizeof(*request));
	ort_status_t *status;

	ort = ort_open(err);
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
	const struct ort_model *model = request->model;
	bool is_host = device.type == FRAG_DEVICE_CPU || device.type == FRAG_DEVICE_CUDA_HOST;

	return set(&request->inputs[input], model->options.graphs,
		   is_host ? model->host : model->device, &model->base.inputs[input], ndim, shape,
		   (void *)(uintptr_t)data, err);
}

static int onnxruntime_set_output(struct inference_request *request, size_t output, int32_t ndim,
				  const int64_t *shape, void *data, struct frag_err *err)
{
	const struct ort_model *model = request->model;
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
	const struct ort_model *model = request->model;
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
	if (count > FRAG_TENSOR_NDIM_MAX || ort_to_dtype(type, &out->dtype) < 0)
		return frag_err_set(
			err, -ENOTSUP,
			"the output \"%s\" of the model has %zu dimensions of %s; a tensor has %d at most, of numbers",
			model->base.outputs[output].name, count, ort_element_type_name(type),
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
	.load = ort_model_load,
	.unload = ort_model_unload,
	.find_output = ort_model_find_output,
	.request_create = onnxruntime_request_create,
	.request_destroy = onnxruntime_request_destroy,
	.set_input = onnxruntime_set_input,
	.set_output = onnxruntime_set_output,
	.start = onnxruntime_start,
	.wait = onnxruntime_wait,
	.result = onnxruntime_result,
};
