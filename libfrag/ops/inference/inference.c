/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inference.h"
#include "maps.h"
#include "network.h"
#include "received.h"

struct inference {
	const char *backend, *model_folder;
	const struct frag_tree *backend_map, *model_path_map, *pre_processor_map, *inference_map;
	const struct frag_tree *device_map, *dla_core_map, *temporal_map, *activation_map;
	const struct frag_tree *trt_opt_profile;
	struct frag_string_list in_tensor_names, out_tensor_names;
	int64_t threads, streams, dla_core;
	bool infer_on_cpu, parallel_inference, input_on_cuda, output_on_cuda, transmit_on_cuda;
	bool enable_fp16, enable_cuda_graphs, is_engine_path, dynamic_input_dims, dla_gpu_fallback;
	struct frag_resource *allocator, *cuda_stream_pool;

	struct network *networks;
	size_t count;
	/* of the tick that is under way; borrowed until it is over */
	bool running;
	const struct frag_message *const *messages;
	int message_count;
	size_t begun; /* networks that were started, or need not be */
};

enum { RECEIVERS, TRANSMITTER };
static const struct frag_port inference_ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline = "the tensors that pre_processor_map names",
		       .flags = FRAG_PORT_MULTI},
	[TRANSMITTER] = {.name = "transmitter",
			 .dir = FRAG_OUT,
			 .type = "tensor",
			 .headline = "the tensors of out_tensor_names"},
};

#define NO_EFFECT "Accepted, because Holoscan has it; without effect: "
static const struct frag_param inference_params[] = {
	FRAG_PARAM_STRING(struct inference, backend, "openvino",
			  .headline = "Engine that runs the models: openvino (on the CPU)"),
	FRAG_PARAM_TREE(struct inference, backend_map, NULL,
			.headline = "Engine of single models: {model: engine}",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct inference, model_path_map, NULL,
			.headline = "File of each model: {model: path}",
			.description =
				"IR (.xml with its .bin), ONNX, TensorFlow (.pb), TensorFlow Lite",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_PATH(struct inference, model_folder, ".",
			.headline = "Folder that relative paths of model_path_map start from"),
	FRAG_PARAM_TREE(struct inference, pre_processor_map, NULL,
			.headline =
				"Tensors that each model takes, in its order: {model: [tensor]}",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_TREE(struct inference, inference_map, NULL,
			.headline = "Names of the tensors that each model makes: {model: [tensor]}",
			.description =
				"In the order of the model's outputs, or as the model calls them",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_STRING_LIST(struct inference, in_tensor_names, NULL,
			       .headline = "Tensors to take from the messages; empty: all needed",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING_LIST(struct inference, out_tensor_names, NULL,
			       .headline = "Tensors to emit; empty: all of inference_map",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct inference, temporal_map, NULL,
			.headline = "Ticks from one run of a model to the next: {model: ticks}",
			.description = "In between the latest results are emitted again",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct inference, activation_map, NULL,
			.headline = "0 switches a model off: {model: 0}",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, parallel_inference, true,
			.headline = "Run all models at the same time; else one after the other"),
	FRAG_PARAM_I64(struct inference, threads, 0,
		       .headline = "Threads of a model's runs; 0: the engine decides", .min = 0,
		       .max = 1024),
	FRAG_PARAM_I64(
		struct inference, streams, 0,
		.headline =
			"Runs of a batch at a time, which share the threads; 0: the engine decides",
		.description =
			"A batch of several is done sooner in as many streams as there are cores, a single run later.",
		.min = 0, .max = 64),
	FRAG_PARAM_RESOURCE(struct inference, allocator, NULL,
			    .headline = "Allocator of the tensors that are emitted",
			    .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, infer_on_cpu, true,
			.headline = "On the CPU; false needs a backend for GPUs"),
	FRAG_PARAM_TREE(struct inference, device_map, NULL,
			.headline = "Device of single models: {model: cpu}",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, enable_fp16, false,
			.headline = "Compute with 16 bits where the processor is faster so"),
	FRAG_PARAM_BOOL(struct inference, input_on_cuda, false,
			.headline = NO_EFFECT "tensors are in host memory"),
	FRAG_PARAM_BOOL(struct inference, output_on_cuda, false,
			.headline = NO_EFFECT "tensors are in host memory"),
	FRAG_PARAM_BOOL(struct inference, transmit_on_cuda, false,
			.headline = NO_EFFECT "tensors are in host memory"),
	FRAG_PARAM_BOOL(struct inference, enable_cuda_graphs, false,
			.headline = NO_EFFECT "there is no backend for GPUs"),
	FRAG_PARAM_BOOL(struct inference, is_engine_path, false,
			.headline = "The files are engines of TensorRT, which is not built yet"),
	FRAG_PARAM_BOOL(struct inference, dynamic_input_dims, false,
			.headline = NO_EFFECT "models of any shape are taken as they are"),
	FRAG_PARAM_TREE(struct inference, trt_opt_profile, NULL,
			.headline = NO_EFFECT "it is TensorRT's", .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64(struct inference, dla_core, -1,
		       .headline = NO_EFFECT "there is no backend for DLA"),
	FRAG_PARAM_TREE(struct inference, dla_core_map, NULL,
			.headline = NO_EFFECT "there is no backend for DLA",
			.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct inference, dla_gpu_fallback, true,
			.headline = NO_EFFECT "there is no backend for DLA"),
	FRAG_PARAM_RESOURCE(struct inference, cuda_stream_pool, NULL,
			    .headline = NO_EFFECT "there is no backend for GPUs",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static bool is_listed(const struct frag_string_list *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	return names->count == 0;
}

/* Every key of the other maps must be a model, and the maps of names must know every model. */
static int check_maps(const struct inference *in, struct frag_op *op)
{
	const struct {
		const char *name;
		const struct frag_tree *map;
		bool whole;
	} maps[] = {
		{"model_path_map", in->model_path_map, true},
		{"pre_processor_map", in->pre_processor_map, true},
		{"inference_map", in->inference_map, true},
		{"backend_map", in->backend_map, false},
		{"device_map", in->device_map, false},
		{"temporal_map", in->temporal_map, false},
		{"activation_map", in->activation_map, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(maps); i++) {
		const struct frag_tree *map = maps[i].map;
		int r = map_check(op, maps[i].name, map);

		for (size_t k = 0; map != NULL && k < map->count && r == 0; k++)
			if (map_entry(in->model_path_map, map->items[k].key) == NULL)
				r = frag_op_fail(
					op, -EINVAL,
					"%s names the model %s, which model_path_map lacks; give it a path there, or correct the name",
					maps[i].name, map->items[k].key);
		for (size_t k = 0; maps[i].whole && k < in->model_path_map->count && r == 0; k++)
			if (map_count(map_entry(map, in->model_path_map->items[k].key)) == 0)
				r = frag_op_fail(
					op, -EINVAL,
					"%s names no tensor of the model %s; list its tensors there",
					maps[i].name, in->model_path_map->items[k].key);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_devices(const struct inference *in, struct frag_op *op)
{
	for (size_t i = 0; in->device_map != NULL && i < in->device_map->count; i++) {
		const struct frag_tree *entry = &in->device_map->items[i];

		if (entry->kind != FRAG_TREE_TEXT || strcasecmp(entry->text, "cpu") != 0)
			return frag_op_fail(
				op, -ENOTSUP,
				"device_map puts the model %s on \"%s\"; there is no backend for GPUs yet: write cpu, or leave it out",
				entry->key, entry->kind == FRAG_TREE_TEXT ? entry->text : "");
	}
	if (!in->infer_on_cpu)
		return frag_op_fail(
			op, -ENOTSUP,
			"infer_on_cpu is false, and there is no backend for GPUs yet; leave it out");
	if (in->is_engine_path)
		return frag_op_fail(
			op, -ENOTSUP,
			"is_engine_path is true, and engines of TensorRT are not built yet; give model_path_map the ONNX files they were made of");
	return 0;
}

/* Reads a number of a map; `otherwise` when the model is not in it. */
static int number_of(struct frag_op *op, const char *parameter, const struct frag_tree *map,
		     const char *model, int64_t otherwise, int64_t *out)
{
	const struct frag_tree *entry = map_entry(map, model);
	char *end;

	*out = otherwise;
	if (entry == NULL)
		return 0;
	*out = strtoll(map_count(entry) > 0 ? map_text(entry, 0) : "", &end, 10);
	if (map_count(entry) != 1 || end == map_text(entry, 0) || *end != '\0' || *out < 0 ||
	    *out > 1000000)
		return frag_op_fail(op, -EINVAL,
				    "%s: %s is not a number from 0 to 1000000; write %s: {%s: 1}",
				    parameter, model, parameter, model);
	return 0;
}

static char *full_path(const struct inference *in, const char *path)
{
	char *full;

	if (path[0] == '/')
		return strdup(path);
	return asprintf(&full, "%s/%s", in->model_folder, path) < 0 ? NULL : full;
}

/* Fills in one model from the maps. */
static int network_setup(const struct inference *in, struct frag_op *op,
			 const struct frag_tree *path, struct network *network)
{
	const struct frag_tree *takes = map_entry(in->pre_processor_map, path->key);
	const struct frag_tree *makes = map_entry(in->inference_map, path->key);
	int64_t active;
	int r = number_of(op, "temporal_map", in->temporal_map, path->key, 1, &network->every);

	if (r == 0)
		r = number_of(op, "activation_map", in->activation_map, path->key, 1, &active);
	if (r < 0)
		return r;
	network->active = active != 0;
	network->every = network->every > 0 ? network->every : 1;
	network->name = path->key;
	network->path = full_path(in, map_text(path, 0));
	network->inputs = calloc(map_count(takes), sizeof(*network->inputs));
	network->outputs = calloc(map_count(makes), sizeof(*network->outputs));
	if (network->path == NULL || network->inputs == NULL || network->outputs == NULL)
		return -ENOMEM;
	for (; network->input_count < map_count(takes); network->input_count++) {
		const char *name = map_text(takes, network->input_count);

		if (!is_listed(&in->in_tensor_names, name))
			return frag_op_fail(
				op, -EINVAL,
				"the model %s takes the tensor \"%s\", which in_tensor_names lacks; add it there",
				network->name, name);
		network->inputs[network->input_count].name = name;
	}
	for (; network->output_count < map_count(makes); network->output_count++)
		network->outputs[network->output_count].name =
			map_text(makes, network->output_count);
	return 0;
}

static bool makes_tensor(const struct inference *in, const char *name)
{
	for (size_t i = 0; i < in->count; i++)
		for (size_t k = 0; k < in->networks[i].output_count; k++)
			if (strcmp(in->networks[i].outputs[k].name, name) == 0)
				return true;
	return false;
}

static void networks_free(struct inference *in)
{
	for (size_t i = 0; i < in->count; i++) {
		network_close(&in->networks[i]);
		free((char *)(uintptr_t)in->networks[i].path);
		free(in->networks[i].inputs);
		free(in->networks[i].outputs);
	}
	free(in->networks);
	in->networks = NULL;
	in->count = 0;
}

static int networks_create(struct inference *in, struct frag_op *op)
{
	int r = 0;

	in->networks = calloc(in->model_path_map->count, sizeof(*in->networks));
	if (in->networks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < in->model_path_map->count && r == 0; i++, in->count++)
		r = network_setup(in, op, &in->model_path_map->items[i], &in->networks[i]);
	for (size_t i = 0; i < in->out_tensor_names.count && r == 0; i++)
		if (!makes_tensor(in, in->out_tensor_names.items[i]))
			r = frag_op_fail(
				op, -EINVAL,
				"out_tensor_names names \"%s\", which no model makes; name tensors of inference_map",
				in->out_tensor_names.items[i]);
	return r;
}

static int inference_setup(void *state, struct frag_op *op)
{
	struct inference *in = state;
	int r = check_maps(in, op);

	if (r == 0)
		r = check_devices(in, op);
	if (r == 0)
		r = networks_create(in, op);
	if (r < 0)
		networks_free(in);
	return r;
}

/* Models are compiled before anything runs, so that no message waits for it. */
static int inference_initialize(void *state, struct frag_op *op)
{
	struct inference *in = state;
	const struct inference_options options = {
		.threads = in->threads, .streams = in->streams, .half = in->enable_fp16};
	struct frag_err err = FRAG_ERR_INIT;

	char text[400];

	for (size_t i = 0; i < in->count; i++) {
		struct network *network = &in->networks[i];
		const struct frag_tree *own = map_entry(in->backend_map, network->name);
		const struct inference_backend *backend = inference_backend_find(
			map_count(own) > 0 ? map_text(own, 0) : in->backend, &err);
		int r = backend != NULL ? network_open(network, op, backend, &options, &err)
					: err.code;

		for (size_t k = 0; k < i && r == 0; k++)
			r = network_agree(&in->networks[k], network, &err);
		if (r < 0)
			return frag_op_fail(op, r, "model %s: %s", network->name, err.text);
		frag_op_log(op, "model %s takes %s", network->name,
			    network_takes(network, text, sizeof(text)));
	}
	return 0;
}

static int add_outputs(const struct inference *in, const struct network *network,
		       struct frag_message *message)
{
	int r = 0;

	for (size_t i = 0; i < network->output_count && r == 0; i++) {
		const struct network_output *output = &network->outputs[i];

		if (output->tensor != NULL && is_listed(&in->out_tensor_names, output->name))
			r = frag_message_add_tensor(message, output->name,
						    frag_tensor_ref(output->tensor));
	}
	return r;
}

/* Emits the results in one message, with the acquisition time of the first that came. */
static int emit(const struct inference *in, struct frag_tick *tick)
{
	struct frag_message *message = frag_message_create();
	int r = message != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; i < in->count && r == 0; i++)
		if (in->networks[i].active)
			r = add_outputs(in, &in->networks[i], message);
	if (r == -EEXIST)
		r = frag_op_fail(
			frag_tick_op(tick), r,
			"two models make a tensor of the same name; give them different names in inference_map");
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	if (frag_message_tensor_count(message) == 0) {
		frag_message_unref(message);
		return 0;
	}
	received_stamp(in->messages, in->message_count, message);
	return frag_tick_emit(tick, TRANSMITTER, message);
}

static bool is_due(const struct network *network, const struct frag_tick *tick)
{
	return network->active && frag_tick_count(tick) % (uint64_t)network->every == 0;
}

/*
 * Starts the models that are due, one after the other unless parallel_inference is set, and
 * collects what has ended. Returns 0 when all have; FRAG_PENDING: not yet; or a failure.
 */
static int advance(struct inference *in, const struct frag_tick *tick, struct frag_err *err)
{
	bool busy = false;
	int r = 0;

	for (size_t i = 0; i < in->count && r == 0 && (in->parallel_inference || !busy); i++) {
		struct network *network = &in->networks[i];

		if (i == in->begun) {
			in->begun++;
			if (is_due(network, tick))
				r = network_start(network, in->messages, (size_t)in->message_count,
						  err);
		}
		if (r == 0)
			r = network_collect(network, in->allocator, err);
		busy |= network->busy;
	}
	return r < 0 ? r : busy ? FRAG_PENDING : 0;
}

static void abandon_all(struct inference *in)
{
	for (size_t i = 0; i < in->count; i++)
		network_abandon(&in->networks[i]);
	in->running = false;
}

/* While the engine works no thread of the scheduler waits: each run that ends resumes the tick. */
static int inference_compute(void *state, struct frag_tick *tick)
{
	struct inference *in = state;
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (!in->running) {
		in->message_count = frag_tick_receive_all(tick, RECEIVERS, &in->messages);
		if (in->message_count < 0)
			return in->message_count;
		in->running = true;
		in->begun = 0;
	}
	r = advance(in, tick, &err);
	if (r == FRAG_PENDING)
		return r;
	if (r < 0)
		abandon_all(in);
	in->running = false;
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "%s", err.text) : emit(in, tick);
}

/* The engine reads what was received until its runs have ended. */
static int inference_stop(void *state, struct frag_op *op)
{
	(void)op;
	abandon_all(state);
	return 0;
}

static void inference_fini(void *state, struct frag_op *op)
{
	(void)op;
	networks_free(state);
}

const struct frag_op_type inference_inference_type = {
	FRAG_OP_TYPE_INIT,
	.name = "inference",
	.headline = "Runs neural networks on tensors",
	.description =
		"Each model takes tensors by name from the messages and makes tensors, which go into one message. A tensor that holds several inputs of a model is a batch. Models are compiled before anything runs, once in a process. While the engine works, the thread does other operators' work.",
	.state_size = sizeof(struct inference),
	FRAG_PORTS(inference_ports),
	FRAG_PARAMS(inference_params),
	.setup = inference_setup,
	.initialize = inference_initialize,
	.compute = inference_compute,
	.stop = inference_stop,
	.fini = inference_fini,
};
