// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/cuda.h>

#include "models.h"
#include "network.h"
#include "network_outputs.h"

/* Lists inputs or outputs: "image" u8 [1, 300, 300, 3], "size" i32 [2]. */
static const char *list(const struct inference_tensor *tensors, size_t count, char *out,
			size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count && at < size; i++) {
		char text[INFERENCE_TEXT_SIZE];

		at += (size_t)snprintf(out + at, size - at, "%s\"%s\" %s", i > 0 ? ", " : "",
				       tensors[i].name,
				       inference_tensor_text(tensors[i].dtype, tensors[i].ndim,
							     tensors[i].shape, text));
	}
	return out;
}

/* Whether an output of the model is one of the first `count` of the list. */
static bool is_taken(const struct network *network, size_t count, size_t index)
{
	for (size_t i = 0; i < count; i++)
		if (network->outputs[i].index == index)
			return true;
	return false;
}

/*
 * An output is named as the model names it, or takes the place that it has in the list: the first
 * free one, if that output is named elsewhere.
 */
static int outputs_bind(struct network *network, struct frag_err *err)
{
	const struct inference_model *model = network->model;
	size_t count = network->output_count;
	char text[700];

	if (count > model->output_count)
		return frag_err_set(
			err, -EINVAL,
			"inference_map names %zu outputs of model %s, which has %zu: %s; name these, in this order",
			count, network->name, model->output_count,
			list(model->outputs, model->output_count, text, sizeof(text)));
	for (size_t i = 0; i < count; i++) {
		int named = model->backend->find_output(model, network->outputs[i].name);

		network->outputs[i].index = named >= 0 ? (size_t)named : SIZE_MAX;
		if (named >= 0 && is_taken(network, i, (size_t)named))
			return frag_err_set(
				err, -EINVAL,
				"inference_map names the output \"%s\" of model %s twice; name each once",
				network->outputs[i].name, network->name);
	}
	for (size_t i = 0; i < count; i++) {
		size_t free_index = i;

		if (network->outputs[i].index != SIZE_MAX)
			continue;
		if (is_taken(network, count, i))
			for (free_index = 0; is_taken(network, count, free_index);)
				free_index++;
		network->outputs[i].index = free_index;
	}
	return 0;
}

int network_open(struct network *network, struct frag_op *op, struct frag_err *err)
{
	const struct inference_backend *backend = network->backend;
	char text[700];
	int r = inference_model_open(backend, network->path, &network->options, &network->model,
				     err);

	if (r < 0)
		return r;
	if (network->input_count != network->model->input_count)
		return frag_err_set(
			err, -EINVAL,
			"pre_processor_map gives %zu tensors to model %s, which takes %zu: %s; name one tensor for each, in this order",
			network->input_count, network->name, network->model->input_count,
			list(network->model->inputs, network->model->input_count, text,
			     sizeof(text)));
	r = outputs_bind(network, err);
	for (size_t i = 0; i < network->model->runs_at_a_time && r == 0; i++) {
		network->requests[i].op = op;
		r = backend->request_create(network->model, &network->requests[i].request, err);
	}
	return r;
}

/* Whether a tensor may be what both want. The first dimension counts inputs, and may be absent. */
static bool agree(const struct inference_tensor *a, const struct inference_tensor *b)
{
	int32_t common = a->ndim < b->ndim ? a->ndim : b->ndim;

	if (a->dtype.code != b->dtype.code || a->dtype.bits != b->dtype.bits)
		return false;
	for (int32_t i = 1; i < common; i++) {
		int64_t of_a = a->shape[a->ndim - i], of_b = b->shape[b->ndim - i];

		if (of_a >= 0 && of_b >= 0 && of_a != of_b)
			return false;
	}
	return true;
}

int network_agree(const struct network *a, const struct network *b, struct frag_err *err)
{
	for (size_t i = 0; i < a->input_count && a->active && b->active; i++) {
		for (size_t k = 0; k < b->input_count; k++) {
			const struct inference_tensor *for_a = &a->model->inputs[i];
			const struct inference_tensor *for_b = &b->model->inputs[k];
			char text_a[INFERENCE_TEXT_SIZE], text_b[INFERENCE_TEXT_SIZE];

			if (strcmp(a->inputs[i].name, b->inputs[k].name) != 0 ||
			    agree(for_a, for_b))
				continue;
			return frag_err_set(
				err, -EINVAL,
				"both take the tensor \"%s\", which %s wants as %s, and %s as %s; convert it for one of them, for example by format_converter, and give the result another name (out_tensor_name)",
				a->inputs[i].name, a->name,
				inference_tensor_text(for_a->dtype, for_a->ndim, for_a->shape,
						      text_a),
				b->name,
				inference_tensor_text(for_b->dtype, for_b->ndim, for_b->shape,
						      text_b));
		}
	}
	return 0;
}

const char *network_takes(const struct network *network, char *out, size_t size)
{
	return list(network->model->inputs, network->model->input_count, out, size);
}

void network_close(struct network *network)
{
	if (network->model == NULL)
		return;
	for (size_t i = 0; i < INFERENCE_REQUESTS; i++)
		network->model->backend->request_destroy(network->requests[i].request);
	for (size_t i = 0; i < network->output_count; i++)
		frag_tensor_unref(network->outputs[i].tensor);
	inference_model_close(network->model);
	network->model = NULL;
}

/* "" names the tensor without a name, or else the first one. */
static struct frag_tensor *find(const char *name, const struct frag_message *const *messages,
				size_t count)
{
	struct frag_tensor *tensor = NULL;

	for (size_t i = 0; i < count && tensor == NULL; i++)
		if (messages[i] != NULL)
			tensor = frag_message_tensor(messages[i], name);
	for (size_t i = 0; i < count && tensor == NULL && name[0] == '\0'; i++)
		if (messages[i] != NULL)
			tensor = frag_message_tensor(messages[i], NULL);
	return tensor;
}

/* Lists the names of the tensors that came. */
static const char *names(const struct frag_message *const *messages, size_t count, char *out,
			 size_t size)
{
	const char *name;
	size_t at = 0;

	snprintf(out, size, "none");
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; messages[i] != NULL && at < size &&
				     frag_message_tensor_at(messages[i], k, &name) != NULL;
		     k++)
			at += (size_t)snprintf(out + at, size - at, "%s\"%s\"", at > 0 ? ", " : "",
					       name);
	return out;
}

/*
 * Compares a tensor with what the model wants. It may lack the first dimension where that is 1, and
 * its first dimension may be a multiple of the model's.
 * Returns the number of runs; -1: it does not fit.
 */
static int64_t fit(const struct inference_tensor *wanted, const struct frag_dltensor *dl,
		   struct network_input *input)
{
	int32_t lacking = wanted->ndim - dl->ndim;
	int64_t runs = 1;

	if (dl->dtype.code != wanted->dtype.code || dl->dtype.bits != wanted->dtype.bits ||
	    dl->dtype.lanes != 1)
		return -1;
	input->ndim = wanted->ndim < 0 ? dl->ndim : wanted->ndim;
	if (wanted->ndim < 0) {
		memcpy(input->shape, dl->shape, (size_t)dl->ndim * sizeof(*dl->shape));
		return 1;
	}
	if (lacking != 0 && (lacking != 1 || wanted->shape[0] > 1))
		return -1;
	for (int32_t i = 0; i < wanted->ndim; i++) {
		int64_t side = i < lacking ? 1 : dl->shape[i - lacking];

		input->shape[i] = wanted->shape[i] < 0 ? side : wanted->shape[i];
		if (i == 0 && side == 0)
			runs = wanted->shape[0] > 0 ? 0 : 1;
		else if (i == 0 && wanted->shape[0] > 0 && side % wanted->shape[0] == 0)
			runs = side / wanted->shape[0];
		else if (side != input->shape[i])
			return -1;
	}
	return runs;
}

/* The layout in which a tensor has the channels that are wanted; NULL: none, or it has it. */
static const char *layout_that_fits(const struct inference_tensor *wanted,
				    const struct frag_dltensor *dl)
{
	const int64_t *want = wanted->shape + wanted->ndim - 3, *came = dl->shape + dl->ndim - 3;

	if (wanted->ndim < 3 || dl->ndim < 3)
		return NULL;
	if (want[0] >= 1 && want[0] <= 4 && want[0] == came[2] && want[0] != came[0])
		return "out_layout: chw";
	if (want[2] >= 1 && want[2] <= 4 && want[2] == came[0] && want[2] != came[2])
		return "out_layout: hwc";
	return NULL;
}

/* Whether a tensor lacks nothing but that a model of so many inputs at a time gets as many. */
static bool has_another_count(const struct inference_tensor *wanted, const struct frag_dltensor *dl)
{
	int32_t lacking = wanted->ndim - dl->ndim;

	if (lacking < 0 || lacking > 1 || wanted->ndim == 0 || wanted->shape[0] <= 1 ||
	    dl->dtype.code != wanted->dtype.code || dl->dtype.bits != wanted->dtype.bits)
		return false;
	for (int32_t i = 1; i < wanted->ndim; i++)
		if (wanted->shape[i] >= 0 && dl->shape[i - lacking] != wanted->shape[i])
			return false;
	return true;
}

static bool is_host(struct frag_device device)
{
	return device.type == FRAG_DEVICE_CPU || device.type == FRAG_DEVICE_CUDA_HOST;
}

/* Whether a model on that device reads memory of this one. */
static bool is_reached(struct frag_device memory, struct frag_device device)
{
	return is_host(memory) || (device.type != FRAG_DEVICE_CPU && memory.id == device.id);
}

static int not_reached(const struct network *network, const char *name, struct frag_device memory,
		       struct frag_err *err)
{
	if (network->model->device.type == FRAG_DEVICE_CPU)
		return frag_err_set(
			err, -EINVAL,
			"the tensor \"%s\" is in memory of a device; model %s runs on the CPU and needs it in host memory: run the model there (backend: onnxruntime, provider: cuda), or give the sender an allocator of the host",
			name, network->name);
	return frag_err_set(
		err, -EINVAL,
		"the tensor \"%s\" is in memory of GPU %d, and model %s runs on GPU %d; run it there (device_id), or copy the tensor",
		name, (int)memory.id, network->name, (int)network->model->device.id);
}

static int take_one(struct network *network, size_t i, const struct frag_tensor *tensor,
		    struct frag_err *err)
{
	const struct inference_tensor *wanted = &network->model->inputs[i];
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	struct network_input *input = &network->inputs[i];
	char wants[INFERENCE_TEXT_SIZE], came[INFERENCE_TEXT_SIZE];
	int64_t runs = fit(wanted, dl, input);

	if (runs < 0 && has_another_count(wanted, dl))
		return frag_err_set(
			err, -EINVAL,
			"model %s takes %lld at a time of its input \"%s\", %s, and the tensor \"%s\" that came is %s; give it as many, with batch: {size: %lld} or the regions of crop, or export it for any number",
			network->name, (long long)wanted->shape[0], wanted->name,
			inference_tensor_text(wanted->dtype, wanted->ndim, wanted->shape, wants),
			input->name, inference_tensor_text(dl->dtype, dl->ndim, dl->shape, came),
			(long long)wanted->shape[0]);
	if (runs < 0) {
		const char *layout = layout_that_fits(wanted, dl);

		return frag_err_set(
			err, -EINVAL,
			"model %s wants its input \"%s\" as %s, and the tensor \"%s\" that came is %s; convert it before, for example by format_converter (resize_width, resize_height, out_dtype%s%s)",
			network->name, wanted->name,
			inference_tensor_text(wanted->dtype, wanted->ndim, wanted->shape, wants),
			input->name, inference_tensor_text(dl->dtype, dl->ndim, dl->shape, came),
			layout != NULL ? ", " : "", layout != NULL ? layout : "");
	}
	if (!is_reached(dl->device, network->model->device))
		return not_reached(network, input->name, dl->device, err);
	if (!frag_tensor_is_compact(tensor))
		return frag_err_set(
			err, -EINVAL,
			"the rows of the tensor \"%s\" have gaps; model %s needs it compact: pass it through format_converter",
			input->name, network->name);
	if (i > 0 && runs != network->runs)
		return frag_err_set(
			err, -EINVAL,
			"the tensors of model %s are batches of different sizes: \"%s\" holds %lld, \"%s\" %lld; give it as many of each",
			network->name, network->inputs[0].name, (long long)network->runs,
			input->name, (long long)runs);
	network->runs = runs;
	input->data = frag_tensor_data(tensor);
	input->device = dl->device;
	input->run_bytes = runs > 0 ? frag_tensor_size_bytes(tensor) / (size_t)runs : 0;
	return 0;
}

static int take(struct network *network, const struct frag_message *const *messages, size_t count,
		struct frag_err *err)
{
	int r = 0;

	network->runs = 1;
	network->started = 0;
	network->collected = 0;
	for (size_t i = 0; i < network->output_count; i++)
		network->outputs[i].is_given = false;
	for (size_t i = 0; i < network->input_count && r == 0; i++) {
		const struct frag_tensor *tensor = find(network->inputs[i].name, messages, count);
		char text[400];

		if (tensor == NULL)
			return frag_err_set(
				err, -EINVAL,
				"no message holds the tensor \"%s\" of model %s; these came: %s; correct pre_processor_map or the name that the sender gives",
				network->inputs[i].name, network->name,
				names(messages, count, text, sizeof(text)));
		r = take_one(network, i, tensor, err);
	}
	return r;
}

/* On a thread of the engine. */
static void run_ended(void *context)
{
	struct network_request *request = context;

	atomic_store(&request->ended, true);
	frag_op_resume(request->op);
}

static struct network_request *request_of(struct network *network, int64_t run)
{
	return &network->requests[(size_t)run % network->model->runs_at_a_time];
}

static int start_one(struct network *network, struct frag_err *err)
{
	const struct inference_backend *backend = network->model->backend;
	struct network_request *request = request_of(network, network->started);
	int r = 0;

	for (size_t i = 0; i < network->input_count && r == 0; i++) {
		const struct network_input *input = &network->inputs[i];

		r = backend->set_input(
			request->request, i, input->ndim, input->shape, input->device,
			(const char *)input->data + (size_t)network->started * input->run_bytes,
			err);
	}
	for (size_t i = 0; i < network->output_count && r == 0 && backend->set_output; i++) {
		const struct network_output *output = &network->outputs[i];

		r = backend->set_output(request->request, output->index, output->ndim,
					output->shape,
					output->is_given ? output->data + (size_t)network->started *
										  output->run_bytes
							 : NULL,
					err);
	}
	atomic_store(&request->ended, false);
	if (r == 0)
		r = backend->start(request->request, run_ended, request, err);
	if (r == 0)
		network->started++;
	return r;
}

int network_start(struct network *network, const struct frag_message *const *messages, size_t count,
		  struct frag_resource *allocator, struct frag_err *err)
{
	int r = take(network, messages, count, err);

	for (size_t i = 0; i < network->output_count && r == 0 && network->runs > 0 &&
			   network->model->backend->set_output != NULL;
	     i++)
		r = network_output_give(network, &network->outputs[i], allocator, err);
	network->busy = r == 0;
	while (r == 0 && network->started < network->runs &&
	       network->started < (int64_t)network->model->runs_at_a_time)
		r = start_one(network, err);
	return r;
}

static bool is_fixed(const struct inference_tensor *tensor)
{
	for (int32_t i = 0; i < tensor->ndim; i++)
		if (tensor->shape[i] < 0)
			return false;
	return tensor->ndim >= 0;
}

/* The inputs are zeros: kernels may take them for places in other tensors. */
int network_warm(struct network *network, int times, struct frag_err *err)
{
	const struct inference_model *model = network->model;
	struct frag_device host = {FRAG_DEVICE_CPU, 0};
	struct inference_request *request = network->requests[0].request;
	size_t most = 1;
	void *zeros;
	int r = 0;

	for (size_t i = 0; i < model->input_count; i++) {
		const struct inference_tensor *in = &model->inputs[i];

		if (!is_fixed(in))
			return 0;
		if (inference_tensor_bytes(in->dtype, in->ndim, in->shape) > most)
			most = inference_tensor_bytes(in->dtype, in->ndim, in->shape);
	}
	zeros = calloc(1, most);
	if (zeros == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the first run of a model");
	for (int run = 0; run < times && r == 0; run++) {
		for (size_t i = 0; i < model->input_count && r == 0; i++)
			r = model->backend->set_input(request, i, model->inputs[i].ndim,
						      model->inputs[i].shape, host, zeros, err);
		for (size_t i = 0; i < model->output_count && r == 0; i++)
			r = model->backend->set_output(request, i, 0, NULL, NULL, err);
		if (r == 0)
			r = model->backend->start(request, NULL, NULL, err);
		if (r == 0)
			r = model->backend->wait(request, err);
	}
	/* The runs have ended, but the stream may still have to copy the zeros. */
	if (network->options.stream != NULL) {
		const struct frag_device gpu = {FRAG_DEVICE_CUDA, network->options.gpu};
		int waited = frag_stream_wait(gpu, network->options.stream, r == 0 ? err : NULL);

		r = r == 0 ? waited : r;
	}
	free(zeros);
	return r;
}

static int collect_one(struct network *network, struct frag_resource *allocator,
		       struct frag_err *err)
{
	const struct inference_backend *backend = network->model->backend;
	struct inference_request *request = request_of(network, network->collected)->request;
	int r = backend->wait(request, err); /* it has ended: this only asks for its failure */

	for (size_t i = 0; i < network->output_count && r == 0; i++) {
		struct inference_result result = {0};

		if (network->outputs[i].is_given)
			continue;
		r = backend->result(request, network->outputs[i].index, &result, err);
		if (r == 0 && result.release != NULL)
			r = network_output_take(network, &network->outputs[i], &result, err);
		else if (r == 0)
			r = network_output_copy(network, &network->outputs[i], &result, allocator,
						err);
	}
	network->collected++;
	return r;
}

int network_collect(struct network *network, struct frag_resource *allocator, struct frag_err *err)
{
	int r = network->busy && network->runs == 0
			? network_outputs_make_empty(network, allocator, err)
			: 0;

	while (r == 0 && network->collected < network->started &&
	       atomic_load(&request_of(network, network->collected)->ended)) {
		r = collect_one(network, allocator, err);
		if (r == 0 && network->started < network->runs)
			r = start_one(network, err);
	}
	if (r == 0 && network->collected == network->runs)
		network->busy = false;
	return r;
}

void network_abandon(struct network *network)
{
	struct frag_err ignored = FRAG_ERR_INIT;

	for (; network->collected < network->started; network->collected++)
		network->model->backend->wait(request_of(network, network->collected)->request,
					      &ignored);
	network->busy = false;
}
