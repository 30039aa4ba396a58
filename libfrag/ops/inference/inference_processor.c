// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inference.h"
#include "maps.h"
#include "received.h"

/* Numbers of a tensor that print writes; the rest is counted. */
#define PRINTED_MAX 64
#define CLASSIFICATION "print_custom_binary_classification"

struct inference_processor {
	const struct frag_tree *process_operations, *processed_map;
	struct frag_string_list in_tensor_names, out_tensor_names;
	bool input_on_cuda, output_on_cuda, transmit_on_cuda, disable_transmitter;
	struct frag_resource *allocator, *cuda_stream_pool;
};

enum { RECEIVERS, TRANSMITTER };
static const struct frag_port ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline = "the tensors that process_operations names",
		       .flags = FRAG_PORT_MULTI},
	[TRANSMITTER] = {.name = "transmitter",
			 .dir = FRAG_OUT,
			 .type = "tensor",
			 .headline = "the tensors of processed_map"},
};

#define NO_EFFECT "Accepted, because Holoscan has it; without effect: tensors are in host memory"
static const struct frag_param params[] = {
	FRAG_PARAM_TREE(
		struct inference_processor, process_operations, NULL,
		.headline = "What is done with each tensor: {tensor: [operation]}",
		.description =
			"max_per_channel_scaled: of [1, rows, columns, C] the place x, y of the largest number of each channel but the first, from 0 to 1: [C - 1, 2]; softmax: over the last dimension; argmax: the place of the largest number in the last dimension, i32; print, print_int32: the numbers, as a line of the log; print_custom_binary_classification, A, B: A or B, which of two numbers is larger, and its sigmoid, as a line of the log",
		.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_TREE(struct inference_processor, processed_map, NULL,
			.headline = "Names of the results, one for each operation that makes one",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING_LIST(struct inference_processor, in_tensor_names, NULL,
			       .headline = "Tensors to take; empty: all of process_operations",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING_LIST(struct inference_processor, out_tensor_names, NULL,
			       .headline = "Results to emit; empty: all",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference_processor, disable_transmitter, false,
			.headline = "Emit nothing"),
	FRAG_PARAM_RESOURCE(struct inference_processor, allocator, NULL,
			    .headline = "Allocator of the results", .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference_processor, input_on_cuda, false, .headline = NO_EFFECT),
	FRAG_PARAM_BOOL(struct inference_processor, output_on_cuda, false, .headline = NO_EFFECT),
	FRAG_PARAM_BOOL(struct inference_processor, transmit_on_cuda, false, .headline = NO_EFFECT),
	FRAG_PARAM_RESOURCE(struct inference_processor, cuda_stream_pool, NULL,
			    .headline = NO_EFFECT, .flags = FRAG_PARAM_OPTIONAL),
};

/* A compact tensor of f32, or of i32 to print. */
struct input {
	const char *name;
	/* what follows the operation's name and a comma; NULL: nothing */
	const char *words;
	const void *data;
	int32_t ndim;
	const int64_t *shape;
	int64_t count;
	bool is_float;
};

static int create(const struct inference_processor *ip, struct frag_op *op,
		  enum frag_dtype_code code, int32_t ndim, const int64_t *shape,
		  struct frag_tensor **out)
{
	int r = frag_tensor_create(ip->allocator, (struct frag_dtype){(uint8_t)code, 32, 1}, ndim,
				   shape, out);

	if (r < 0)
		return frag_op_fail(
			op, r, "cannot make a result: %s; give the allocator larger or more blocks",
			frag_strerror(r));
	return 0;
}

static int max_per_channel(const struct inference_processor *ip, struct frag_op *op,
			   const struct input *in, struct frag_tensor **out)
{
	const float *data = in->data;
	int64_t channels = in->ndim == 4 ? in->shape[3] : 0;
	float *to;
	int r;

	if (in->ndim != 4 || in->shape[0] != 1 || channels < 2 || in->count == 0)
		return frag_op_fail(
			op, -EINVAL,
			"max_per_channel_scaled takes a tensor [1, rows, columns, channels] with 2 channels or more, and \"%s\" is none; the first channel is the background",
			in->name);
	r = create(ip, op, FRAG_DTYPE_FLOAT, 2, (int64_t[]){channels - 1, 2}, out);
	if (r < 0)
		return r;
	to = frag_tensor_writable(*out);
	for (int64_t c = 1; c < channels; c++) {
		int64_t best = c, row;

		for (int64_t i = c; i < in->count; i += channels)
			if (data[i] > data[best])
				best = i;
		best /= channels;
		row = best / in->shape[2];
		*to++ = (float)(best % in->shape[2]) / (float)in->shape[2];
		*to++ = (float)row / (float)in->shape[1];
	}
	return 0;
}

static int softmax(const struct inference_processor *ip, struct frag_op *op, const struct input *in,
		   struct frag_tensor **out)
{
	int64_t columns = in->ndim > 0 ? in->shape[in->ndim - 1] : 1;
	const float *from = in->data;
	float *to;
	int r = create(ip, op, FRAG_DTYPE_FLOAT, in->ndim, in->shape, out);

	if (r < 0)
		return r;
	to = frag_tensor_writable(*out);
	for (int64_t i = 0; i < in->count; i += columns) {
		float largest = from[i], sum = 0.0f;

		for (int64_t c = 1; c < columns; c++)
			largest = fmaxf(largest, from[i + c]);
		for (int64_t c = 0; c < columns; c++)
			sum += to[i + c] = expf(from[i + c] - largest);
		for (int64_t c = 0; c < columns; c++)
			to[i + c] /= sum;
	}
	return 0;
}

static int argmax(const struct inference_processor *ip, struct frag_op *op, const struct input *in,
		  struct frag_tensor **out)
{
	int64_t columns = in->ndim > 0 ? in->shape[in->ndim - 1] : 1;
	const float *from = in->data;
	int32_t *to;
	int r;

	if (columns == 0)
		return frag_op_fail(
			op, -EINVAL,
			"argmax takes a tensor with numbers in its last dimension, and \"%s\" has none",
			in->name);
	r = create(ip, op, FRAG_DTYPE_INT, in->ndim > 0 ? in->ndim - 1 : 0, in->shape, out);
	if (r < 0)
		return r;
	to = frag_tensor_writable(*out);
	for (int64_t i = 0; i < in->count; i += columns) {
		int64_t best = 0;

		for (int64_t c = 1; c < columns; c++)
			if (from[i + c] > from[i + best])
				best = c;
		*to++ = (int32_t)best;
	}
	return 0;
}

static int print(const struct inference_processor *ip, struct frag_op *op, const struct input *in,
		 struct frag_tensor **out)
{
	char line[PRINTED_MAX * 16] = "";
	size_t at = 0;

	(void)ip;
	(void)out;
	for (int64_t i = 0; i < in->count && i < PRINTED_MAX; i++)
		at += (size_t)(in->is_float ? snprintf(line + at, sizeof(line) - at, " %g",
						       (double)((const float *)in->data)[i])
					    : snprintf(line + at, sizeof(line) - at, " %d",
						       ((const int32_t *)in->data)[i]));
	if (in->count > PRINTED_MAX)
		frag_op_log(op, "%s:%s ... (%lld numbers)", in->name, line, (long long)in->count);
	else
		frag_op_log(op, "%s:%s", in->name, line);
	return 0;
}

static double sigmoid(float x)
{
	return 1.0 / (1.0 + exp(-(double)x));
}

/* "print_custom_binary_classification, TEXT, TEXT": the text of the larger one of two numbers. */
static int print_classification(const struct inference_processor *ip, struct frag_op *op,
				const struct input *in, struct frag_tensor **out)
{
	const float *data = in->data;
	const char *comma = strchr(in->words, ','), *second = comma + 1;
	double chances[2];

	(void)ip;
	(void)out;
	if (in->count != 2)
		return frag_op_fail(
			op, -EINVAL,
			"print_custom_binary_classification takes a tensor of 2 numbers, and \"%s\" has %lld",
			in->name, (long long)in->count);
	for (size_t i = 0; i < 2; i++)
		chances[i] = sigmoid(data[i]);
	second += strspn(second, " ");
	if (chances[0] > chances[1])
		frag_op_log(op, "%.*s. Confidence: %g", (int)(comma - in->words), in->words,
			    chances[0]);
	else
		frag_op_log(op, "%s. Confidence: %g", second, chances[1]);
	return 0;
}

static const struct operation {
	const char *name;
	bool makes, takes_int;
	int (*run)(const struct inference_processor *ip, struct frag_op *op, const struct input *in,
		   struct frag_tensor **out);
} operations[] = {
	{"max_per_channel_scaled", true, false, max_per_channel},
	{"softmax", true, false, softmax},
	{"argmax", true, false, argmax},
	{"print", false, false, print},
	{"print_int32", false, true, print},
	{CLASSIFICATION, false, false, print_classification},
};

/* out_words: what follows the name and a comma. Returns NULL: there is no such operation. */
static const struct operation *operation_find(const char *text, const char **out_words)
{
	size_t length = strcspn(text, ",");

	*out_words =
		text[length] == ',' ? text + length + 1 + strspn(text + length + 1, " ") : NULL;
	for (size_t i = 0; i < FRAG_COUNT_OF(operations); i++)
		if (strlen(operations[i].name) == length &&
		    memcmp(operations[i].name, text, length) == 0)
			return &operations[i];
	return NULL;
}

/* Whether it has the texts that it takes: two, or none. */
static bool has_texts(const struct operation *operation, const char *words)
{
	if (strcmp(operation->name, CLASSIFICATION) != 0)
		return words == NULL;
	return words != NULL && strchr(words, ',') != NULL;
}

static bool is_listed(const struct frag_string_list *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	return names->count == 0;
}

/* Checks the operations of one tensor, and that each that makes a result has a name for it. */
static int check_operations(const struct inference_processor *ip, struct frag_op *op,
			    const struct frag_tree *entry)
{
	size_t made = 0, named = map_count(map_entry(ip->processed_map, entry->key));

	if (!is_listed(&ip->in_tensor_names, entry->key))
		return frag_op_fail(
			op, -EINVAL,
			"process_operations names the tensor \"%s\", which in_tensor_names lacks; add it there",
			entry->key);
	for (size_t i = 0; i < map_count(entry); i++) {
		const char *words;
		const struct operation *operation = operation_find(map_text(entry, i), &words);

		if (operation == NULL || !has_texts(operation, words))
			return frag_op_fail(
				op, -ENOTSUP,
				"process_operations: %s: there is no operation \"%s\"; use max_per_channel_scaled, softmax, argmax, print, print_int32 or \"print_custom_binary_classification, TEXT, TEXT\"",
				entry->key, map_text(entry, i));
		made += operation->makes;
	}
	if (made != named)
		return frag_op_fail(
			op, -EINVAL,
			"the operations of the tensor \"%s\" make %zu results, and processed_map names %zu; name each, in order",
			entry->key, made, named);
	return 0;
}

static int setup(void *state, struct frag_op *op)
{
	const struct inference_processor *ip = state;
	int r = map_check(op, "process_operations", ip->process_operations);

	if (r == 0)
		r = map_check(op, "processed_map", ip->processed_map);
	for (size_t i = 0; i < ip->process_operations->count && r == 0; i++)
		r = check_operations(ip, op, &ip->process_operations->items[i]);
	return r;
}

static int find(struct frag_op *op, const struct frag_message *const *messages, int count,
		const char *name, bool is_int, struct input *out)
{
	const struct frag_tensor *tensor = received_tensor(messages, count, name);
	const struct frag_dltensor *dl;

	if (tensor == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"no message holds the tensor \"%s\" of process_operations; correct it, or the name that the sender gives",
			name);
	dl = frag_tensor_dl(tensor);
	if (dl->dtype.code != (is_int ? FRAG_DTYPE_INT : FRAG_DTYPE_FLOAT) ||
	    dl->dtype.bits != 32 || dl->dtype.lanes != 1 || !frag_tensor_is_compact(tensor) ||
	    (dl->device.type != FRAG_DEVICE_CPU && dl->device.type != FRAG_DEVICE_CUDA_HOST))
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is not %s without gaps in host memory; leave its operations out",
			name, is_int ? "i32" : "f32");
	*out = (struct input){.name = name,
			      .data = frag_tensor_data(tensor),
			      .ndim = dl->ndim,
			      .shape = dl->shape,
			      .count = 1,
			      .is_float = !is_int};
	for (int32_t i = 0; i < dl->ndim; i++)
		out->count *= dl->shape[i];
	return 0;
}

/* A result of such numbers would look like any other. */
static int check_nan(struct frag_op *op, const struct input *in)
{
	const float *data = in->data;
	bool nan = false;

	for (int64_t i = 0; i < in->count; i++)
		nan |= isnan(data[i]) != 0;
	if (!nan)
		return 0;
	return frag_op_fail(
		op, -EBADMSG,
		"the tensor \"%s\" of the network holds numbers that are none (NaN); check that the network's input is in the range that it was trained with (scale_min, scale_max of format_converter), and its file",
		in->name);
}

/* Runs the operations of one tensor and adds their results to the message. */
static int process(const struct inference_processor *ip, struct frag_op *op,
		   const struct frag_message *const *messages, int count,
		   const struct frag_tree *entry, struct frag_message *results)
{
	const struct frag_tree *names = map_entry(ip->processed_map, entry->key);
	size_t made = 0;
	int r = 0;

	for (size_t i = 0; i < map_count(entry) && r == 0; i++) {
		const char *words;
		const struct operation *operation = operation_find(map_text(entry, i), &words);
		struct frag_tensor *result = NULL;
		struct input in = {0};

		r = find(op, messages, count, entry->key, operation->takes_int, &in);
		in.words = words;
		if (r == 0 && operation->makes)
			r = check_nan(op, &in);
		if (r == 0)
			r = operation->run(ip, op, &in, &result);
		if (r < 0 || result == NULL)
			continue;
		if (is_listed(&ip->out_tensor_names, map_text(names, made)))
			r = frag_message_add_tensor(results, map_text(names, made), result);
		else
			frag_tensor_unref(result);
		made++;
	}
	return r;
}

static int compute(void *state, struct frag_tick *tick)
{
	const struct inference_processor *ip = state;
	const struct frag_message *const *messages;
	int count = frag_tick_receive_all(tick, RECEIVERS, &messages);
	struct frag_message *results;
	int r = 0;

	if (count < 0)
		return count;
	results = frag_message_create();
	if (results == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < ip->process_operations->count && r == 0; i++)
		r = process(ip, frag_tick_op(tick), messages, count,
			    &ip->process_operations->items[i], results);
	if (r < 0 || ip->disable_transmitter || frag_message_tensor_count(results) == 0) {
		frag_message_unref(results);
		return r;
	}
	received_stamp(messages, count, results);
	return frag_tick_emit(tick, TRANSMITTER, results);
}

const struct frag_op_type inference_inference_processor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "inference_processor",
	.headline = "Does small operations on what a network made",
	.state_size = sizeof(struct inference_processor),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.setup = setup,
	.compute = compute,
};
