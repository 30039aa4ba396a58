// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "network_outputs.h"

/* Makes the tensor that the results of all runs are written into. */
static int output_create(const struct network *network, struct network_output *output,
			 const struct inference_result *result, int64_t runs,
			 struct frag_resource *allocator, struct frag_err *err)
{
	struct frag_device device = network->model->out_device;
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	char text[INFERENCE_TEXT_SIZE];
	int r;

	memcpy(shape, result->shape, sizeof(shape));
	if (result->ndim > 0)
		shape[0] *= runs;
	frag_tensor_unref(output->tensor);
	output->tensor = NULL;
	if (device.type == FRAG_DEVICE_CPU)
		r = frag_tensor_create(allocator, result->dtype, result->ndim, shape,
				       &output->tensor);
	else
		r = frag_tensor_create_on(allocator, device, result->dtype, result->ndim, shape,
					  &output->tensor);
	if (r < 0)
		return frag_err_set(
			err, r, "cannot make the tensor \"%s\" %s%s: %s; %s", output->name,
			inference_tensor_text(result->dtype, result->ndim, shape, text),
			device.type == FRAG_DEVICE_CPU ? "" : " on the GPU", frag_strerror(r),
			r == -EXDEV ? "give the operator an allocator with memory of that device"
				    : "give the allocator larger or more blocks");
	return 0;
}

/* The side of the current inputs that has this name; -1: none has. */
static int64_t side_of(const struct network *network, const char *name)
{
	for (size_t i = 0; i < network->input_count && name != NULL; i++) {
		const struct inference_tensor *wanted = &network->model->inputs[i];

		for (int32_t k = 0; k < wanted->ndim; k++)
			if (wanted->sides[k] != NULL && strcmp(wanted->sides[k], name) == 0)
				return network->inputs[i].shape[k];
	}
	return -1;
}

int network_output_give(struct network *network, struct network_output *output,
			struct frag_resource *allocator, struct frag_err *err)
{
	const struct inference_tensor *declared = &network->model->outputs[output->index];
	struct inference_result plan = {.dtype = declared->dtype, .ndim = declared->ndim};
	int r;

	if (declared->ndim < 0 || (declared->ndim == 0 && network->runs > 1))
		return 0;
	for (int32_t i = 0; i < plan.ndim; i++) {
		plan.shape[i] = declared->shape[i] >= 0 ? declared->shape[i]
							: side_of(network, declared->sides[i]);
		if (plan.shape[i] <= 0)
			return 0;
	}
	r = output_create(network, output, &plan, network->runs, allocator, err);
	if (r < 0)
		return r;
	output->is_given = true;
	output->data = frag_tensor_writable(output->tensor);
	output->run_bytes = inference_tensor_bytes(plan.dtype, plan.ndim, plan.shape);
	output->ndim = plan.ndim;
	memcpy(output->shape, plan.shape, sizeof(output->shape));
	return 0;
}

int network_output_take(struct network *network, struct network_output *output,
			struct inference_result *result, struct frag_err *err)
{
	const struct frag_dltensor description = {.data = (void *)(uintptr_t)result->data,
						  .device = network->model->out_device,
						  .ndim = result->ndim,
						  .dtype = result->dtype,
						  .shape = result->shape};
	int r;

	frag_tensor_unref(output->tensor);
	output->tensor = NULL;
	if (network->runs > 1)
		r = frag_err_set(
			err, -ENOTSUP,
			"the results of the runs of model %s cannot be joined into the tensor \"%s\" on a GPU, because their shapes are not known before; give the model one input at a time, or output_on_cuda: false",
			network->name, output->name);
	else
		r = frag_tensor_wrap(&description, result->release, result->owner, &output->tensor);
	if (r < 0)
		result->release(result->owner);
	return r;
}

int network_output_copy(struct network *network, struct network_output *output,
			const struct inference_result *result, struct frag_resource *allocator,
			struct frag_err *err)
{
	int r = 0;

	if (network->collected == 0)
		r = output_create(network, output, result, network->runs, allocator, err);
	if (r < 0)
		return r;
	if (network->runs > 1 && result->ndim == 0)
		return frag_err_set(
			err, -EINVAL,
			"the results of the runs of model %s cannot be joined into the tensor \"%s\", which has no dimensions; give the model one input at a time",
			network->name, output->name);
	if (network->runs > 1 &&
	    (frag_tensor_size_bytes(output->tensor) != (size_t)network->runs * result->size_bytes))
		return frag_err_set(
			err, -EINVAL,
			"the results of the runs of model %s cannot be joined into the tensor \"%s\": they have different shapes; give the model one input at a time",
			network->name, output->name);
	if (result->size_bytes > 0)
		memcpy((char *)frag_tensor_writable(output->tensor) +
			       (size_t)network->collected * result->size_bytes,
		       result->data, result->size_bytes);
	return 0;
}

int network_outputs_make_empty(struct network *network, struct frag_resource *allocator,
			       struct frag_err *err)
{
	int r = 0;

	for (size_t i = 0; i < network->output_count && r == 0; i++) {
		struct network_output *output = &network->outputs[i];
		const struct inference_tensor *declared = &network->model->outputs[output->index];
		struct inference_result empty = {.dtype = declared->dtype,
						 .ndim = declared->ndim > 0 ? declared->ndim : 1};

		for (int32_t k = 1; k < empty.ndim; k++)
			empty.shape[k] = declared->shape[k] < 0 ? 0 : declared->shape[k];
		r = output_create(network, output, &empty, 0, allocator, err);
	}
	return r;
}
