// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "gpu.h"
#include "maps.h"

/* A tick may have so many results of one flow. */
static int need_room(struct frag_op *op, const char *port, const char *size)
{
	return frag_make_condition(op, port, "downstream_affordable",
				   FRAG_ARGS({"transmitter", port}, {"min_size", size})) != NULL
		       ? 0
		       : -EINVAL;
}

static int add_outputs(struct batch *batch, struct frag_op *op, const struct frag_tree *names,
		       const char *size)
{
	if (map_count(names) > BATCH_FLOWS_MAX)
		return frag_op_fail(op, -EINVAL, "batch: cameras has %zu names; give %d at most",
				    map_count(names), BATCH_FLOWS_MAX);
	for (size_t i = 0; i < map_count(names); i++) {
		const struct frag_port port = {.name = map_text(names, i),
					       .dir = FRAG_OUT,
					       .type = "tensor",
					       .headline = "results of one flow's frames"};
		int r = frag_op_add_port(op, &port);

		if (r < 0)
			return r;
		batch->ports[batch->port_count++] = (uint32_t)r;
		r = need_room(op, port.name, size);
		if (r < 0)
			return r;
	}
	return map_count(names) > 0 ? 0 : need_room(op, "transmitter", size);
}

int batch_setup(struct batch *batch, struct frag_op *op, const struct frag_tree *parameter)
{
	const struct frag_tree *size, *delay;
	const char *text;
	char *end;
	long number;
	int r = map_check(op, "batch", parameter);

	if (parameter == NULL || r < 0)
		return r;
	size = map_entry(parameter, "size");
	delay = map_entry(parameter, "max_delay");
	text = map_count(size) == 1 ? map_text(size, 0) : "";
	number = strtol(text, &end, 10);
	for (size_t i = 0; i < parameter->count; i++)
		if (strcmp(parameter->items[i].key, "size") != 0 &&
		    strcmp(parameter->items[i].key, "max_delay") != 0 &&
		    strcmp(parameter->items[i].key, "cameras") != 0)
			return frag_op_fail(
				op, -EINVAL,
				"batch has no \"%s\"; write batch: {size: 8, max_delay: 5ms, cameras: [left, right]}",
				parameter->items[i].key);
	if (end == text || *end != '\0' || number < 1 || number > BATCH_SIZE_MAX)
		return frag_op_fail(op, -EINVAL,
				    "batch: size is \"%s\"; give a number from 1 to %d", text,
				    BATCH_SIZE_MAX);
	r = add_outputs(batch, op, map_entry(parameter, "cameras"), text);
	if (r == 0 && frag_make_condition(op, NULL, "multi_message_available_timeout",
					  FRAG_ARGS({"receivers", "[receivers]"}, {"min_sum", text},
						    {"execution_frequency",
						     map_count(delay) == 1 ? map_text(delay, 0)
									   : "5ms"})) == NULL)
		r = -EINVAL;
	batch->size = r == 0 ? (size_t)number : 0;
	return r;
}

int batch_check(const struct batch *batch, struct frag_op *op, uint32_t port)
{
	uint32_t flows = frag_op_flow_count(op, port);

	if (batch->size == 0)
		return 0;
	if (flows > BATCH_FLOWS_MAX)
		return frag_op_fail(op, -EINVAL, "batch: %u flows come in; %d at most can", flows,
				    BATCH_FLOWS_MAX);
	if (batch->port_count > 0 && flows > batch->port_count)
		return frag_op_fail(
			op, -EINVAL,
			"batch: cameras names %zu outputs, and %u flows come in; name one for each, in their order",
			batch->port_count, flows);
	return 0;
}

int batch_receive(struct batch *batch, struct frag_tick *tick, uint32_t port)
{
	const struct frag_message *const *messages;
	bool any = true;

	batch->frame_count = batch->first = batch->count = 0;
	while (any && batch->frame_count < batch->size) {
		int flows = frag_tick_receive_all(tick, port, &messages);

		any = false;
		if (flows < 0)
			return flows;
		for (int i = 0; i < flows; i++) {
			if (messages[i] == NULL ||
			    (batch->port_count > 0 && (size_t)i >= batch->port_count))
				continue;
			any = true;
			batch->frames[batch->frame_count++] =
				(struct batch_frame){messages[i], (uint32_t)i};
		}
	}
	return (int)batch->frame_count;
}

static struct frag_tensor *find(const struct frag_message *message, const char *name)
{
	struct frag_tensor *tensor = frag_message_tensor(message, name);

	return tensor == NULL && name[0] == '\0' ? frag_message_tensor(message, NULL) : tensor;
}

/* All frames of a batch have one shape, and a model takes it. */
static int check(const struct batch *batch, const char *name, struct frag_device device,
		 struct frag_err *err)
{
	const struct frag_tensor *first = find(batch->frames[batch->first].message, name);

	for (size_t i = 0; i < batch->count; i++) {
		const struct batch_frame *frame = &batch->frames[batch->first + i];
		const struct frag_tensor *tensor = find(frame->message, name);
		const struct frag_dltensor *dl, *as;
		char came[INFERENCE_TEXT_SIZE], other[INFERENCE_TEXT_SIZE];

		if (tensor == NULL || first == NULL)
			return frag_err_set(
				err, -EINVAL,
				"a message of flow %u holds no tensor \"%s\"; correct pre_processor_map or the name that the sender gives",
				frame->flow + 1, name);
		dl = frag_tensor_dl(tensor);
		as = frag_tensor_dl(first);
		if (dl->ndim != as->ndim ||
		    memcmp(&dl->dtype, &as->dtype, sizeof(dl->dtype)) != 0 ||
		    memcmp(dl->shape, as->shape, (size_t)dl->ndim * sizeof(*dl->shape)) != 0)
			return frag_err_set(
				err, -EINVAL,
				"frames of a batch differ: \"%s\" is %s in flow %u and %s in flow %u; convert them to one size and type before, for example by format_converter",
				name, inference_tensor_text(as->dtype, as->ndim, as->shape, other),
				batch->frames[batch->first].flow + 1,
				inference_tensor_text(dl->dtype, dl->ndim, dl->shape, came),
				frame->flow + 1);
		if (!frag_tensor_is_compact(tensor))
			return frag_err_set(
				err, -EINVAL,
				"the rows of the tensor \"%s\" have gaps; a batch needs it compact: pass it through format_converter",
				name);
		if (device.type == FRAG_DEVICE_CPU && dl->device.type != FRAG_DEVICE_CPU &&
		    dl->device.type != FRAG_DEVICE_CUDA_HOST)
			return frag_err_set(
				err, -EINVAL,
				"the tensor \"%s\" is in memory of a device, and the models of the batch run on the CPU; use provider: cuda",
				name);
	}
	return 0;
}

static int copy(const struct frag_tensor *from, char *to, struct frag_device device, void *stream,
		struct frag_err *err)
{
	size_t bytes = frag_tensor_size_bytes(from);

	if (device.type != FRAG_DEVICE_CPU)
		return inference_gpu_copy(device.id, stream, to, frag_tensor_data(from), bytes,
					  err);
	memcpy(to, frag_tensor_data(from), bytes);
	return 0;
}

/* Makes memory for as many frames as a run may have; what is there is used again. */
static int need_memory(struct batch_input *input, struct frag_device device,
		       struct frag_dtype dtype, size_t bytes, struct frag_err *err)
{
	const int64_t elements = (int64_t)(bytes / (dtype.bits / 8));
	int r;

	if (input->memory != NULL && frag_tensor_size_bytes(input->memory) >= bytes)
		return 0;
	frag_tensor_unref(input->memory);
	input->memory = NULL;
	r = device.type == FRAG_DEVICE_CPU
		    ? frag_tensor_create(NULL, dtype, 1, &elements, &input->memory)
		    : frag_tensor_create_on(NULL, device, dtype, 1, &elements, &input->memory);
	return r < 0 ? frag_err_set(err, r, "no memory for a batch of \"%s\": %s; lower its size",
				    input->name, frag_strerror(r))
		     : 0;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
	return b == 0 ? a : greatest_common_divisor(b, a % b);
}

/*
 * Settles how many rows a run has: those of its frames, and for models of a fixed number of inputs
 * the last frame again until it is a multiple of what each of them takes.
 */
static int count_rows(struct batch *batch, const struct network *networks, size_t count,
		      struct frag_err *err)
{
	int64_t multiple = 1;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < networks[i].input_count && networks[i].active; k++) {
			const struct inference_tensor *wanted = &networks[i].model->inputs[k];
			const struct frag_tensor *tensor = find(batch->frames[batch->first].message,
								networks[i].inputs[k].name);
			const struct frag_dltensor *dl =
				tensor != NULL ? frag_tensor_dl(tensor) : NULL;
			int64_t step;

			if (dl == NULL || wanted->ndim <= 0 || wanted->shape[0] <= 1)
				continue;
			step = wanted->shape[0];
			if (dl->ndim == wanted->ndim && dl->shape[0] > 0)
				step /= greatest_common_divisor(step, dl->shape[0]);
			step /= greatest_common_divisor(multiple, step);
			if (step > BATCH_ROWS_MAX / multiple)
				return frag_err_set(
					err, -E2BIG,
					"the models of the batch take numbers of frames of which no multiple up to %d is common; export them with any number, or with the same",
					BATCH_ROWS_MAX);
			multiple *= step;
		}
	}
	batch->rows = (batch->count + (size_t)multiple - 1) / (size_t)multiple * (size_t)multiple;
	return 0;
}

/* Copies the tensors of one name side by side, and adds them to the message of the batch. */
static int gather(struct batch *batch, struct batch_input *input,
		  const struct inference_tensor *wanted, struct frag_device device, void *stream,
		  struct frag_err *err)
{
	const struct frag_dltensor *dl;
	struct frag_dltensor all;
	int64_t shape[FRAG_TENSOR_NDIM_MAX + 1], lead = 1;
	struct frag_tensor *tensor;
	size_t bytes;
	int r = check(batch, input->name, device, err);

	if (r < 0)
		return r;
	tensor = find(batch->frames[batch->first].message, input->name);
	dl = frag_tensor_dl(tensor);
	bytes = frag_tensor_size_bytes(tensor);
	all = (struct frag_dltensor){.device = device, .dtype = dl->dtype, .shape = shape};
	if (dl->ndim == wanted->ndim && dl->ndim > 0) {
		lead = dl->shape[0];
		memcpy(shape, dl->shape, (size_t)dl->ndim * sizeof(*shape));
		all.ndim = dl->ndim;
	} else if (dl->ndim < FRAG_TENSOR_NDIM_MAX) {
		memcpy(shape + 1, dl->shape, (size_t)dl->ndim * sizeof(*shape));
		all.ndim = dl->ndim + 1;
	}
	r = need_memory(input, device, dl->dtype, batch->rows * bytes, err);
	for (size_t i = 0; i < batch->rows && r == 0; i++) {
		size_t frame = batch->first + (i < batch->count ? i : batch->count - 1);

		r = copy(find(batch->frames[frame].message, input->name),
			 (char *)(uintptr_t)frag_tensor_data(input->memory) + i * bytes, device,
			 stream, err);
	}
	shape[0] = (int64_t)batch->rows * lead;
	all.data = (void *)(uintptr_t)frag_tensor_data(input->memory);
	if (r == 0)
		r = frag_tensor_wrap(&all, NULL, NULL, &tensor);
	if (r == 0)
		r = frag_message_add_tensor(batch->message, input->name, tensor);
	return r;
}

static struct batch_input *input_of(struct batch *batch, const char *name)
{
	for (size_t i = 0; i < batch->input_count; i++)
		if (strcmp(batch->inputs[i].name, name) == 0)
			return &batch->inputs[i];
	if (batch->input_count == BATCH_INPUTS_MAX)
		return NULL;
	batch->inputs[batch->input_count].name = name;
	return &batch->inputs[batch->input_count++];
}

/*
 * Where the tensors of a name are put side by side: in the host if a model on the CPU takes them,
 * which reads no other memory, also in ticks in which that one is off.
 */
static struct frag_device device_of(const struct network *networks, size_t count, const char *name)
{
	struct frag_device device = {FRAG_DEVICE_CPU, 0};

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < networks[i].input_count; k++) {
			if (strcmp(networks[i].inputs[k].name, name) != 0)
				continue;
			device = networks[i].model->device;
			if (device.type == FRAG_DEVICE_CPU)
				return device;
		}
	}
	return device;
}

int batch_next(struct batch *batch, const struct network *networks, size_t count, void *stream,
	       struct frag_err *err)
{
	size_t left = batch->frame_count - batch->first - batch->count;
	int r = 0;

	batch_drop(batch);
	batch->first += batch->count;
	batch->count = left < batch->size ? left : batch->size;
	if (batch->count == 0)
		return 0;
	batch->message = frag_message_create();
	if (batch->message == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a batch");
	r = count_rows(batch, networks, count, err);
	for (size_t i = 0; i < count && r == 0; i++) {
		for (size_t k = 0; k < networks[i].input_count && r == 0; k++) {
			const char *name = networks[i].inputs[k].name;
			struct batch_input *input = input_of(batch, name);

			if (frag_message_tensor(batch->message, name) != NULL ||
			    !networks[i].active)
				continue;
			if (input == NULL)
				return frag_err_set(
					err, -E2BIG,
					"the models of a batch take more than %d tensors",
					BATCH_INPUTS_MAX);
			r = gather(batch, input, &networks[i].model->inputs[k],
				   device_of(networks, count, name), stream, err);
		}
	}
	batch->messages[0] = batch->message;
	return r < 0 ? r : 1;
}

static void release(void *whole)
{
	frag_tensor_unref(whole);
}

int batch_part(const struct batch *batch, const struct network_output *output, size_t i,
	       struct frag_tensor **out, struct frag_err *err)
{
	const struct frag_dltensor *whole = frag_tensor_dl(output->tensor);
	int64_t rows = (int64_t)batch->rows, shape[FRAG_TENSOR_NDIM_MAX];
	struct frag_dltensor part = *whole;
	int r;

	if (whole->ndim == 0 || whole->shape[0] % rows != 0)
		return frag_err_set(
			err, -EINVAL,
			"the tensor \"%s\" has no part for each of %zu frames: it is not one row of results for each input; leave batch out",
			output->name, batch->count);
	memcpy(shape, whole->shape, (size_t)whole->ndim * sizeof(*shape));
	shape[0] /= rows;
	part.shape = shape;
	part.strides = NULL;
	part.byte_offset += i * frag_tensor_size_bytes(output->tensor) / batch->rows;
	r = frag_tensor_wrap(&part, release, frag_tensor_ref(output->tensor), out);
	if (r < 0) {
		frag_tensor_unref(output->tensor);
		frag_err_set(err, r, "out of memory for the results of a batch");
	}
	return r;
}

void batch_drop(struct batch *batch)
{
	frag_message_unref(batch->message);
	batch->message = NULL;
}

void batch_fini(struct batch *batch)
{
	batch_drop(batch);
	for (size_t i = 0; i < batch->input_count; i++)
		frag_tensor_unref(batch->inputs[i].memory);
}
