// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inference_state.h"
#include "maps.h"

bool inference_is_listed(const struct frag_string_list *names, const char *name)
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
		{"dla_core_map", in->dla_core_map, false},
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
	if (in->is_engine_path)
		return frag_op_fail(
			op, -ENOTSUP,
			"is_engine_path is true, and engines of TensorRT are not read; give model_path_map the ONNX files they were made of, and name a folder in engine_cache, which keeps engines from run to run");
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
			 const struct frag_tree *path, const char *file, struct network *network)
{
	const struct frag_tree *takes = map_entry(in->pre_processor_map, path->key);
	const struct frag_tree *makes = map_entry(in->inference_map, path->key);
	int64_t active;
	int r = number_of(op, "temporal_map", in->temporal_map, path->key, 1, &network->every);

	if (r == 0)
		r = number_of(op, "activation_map", in->activation_map, path->key, 1, &active);
	if (r < 0)
		return r;
	network->is_on = network->active = active != 0;
	network->every = network->every > 0 ? network->every : 1;
	network->name = path->key;
	network->path = full_path(in, file);
	network->inputs = calloc(map_count(takes), sizeof(*network->inputs));
	network->outputs = calloc(map_count(makes), sizeof(*network->outputs));
	if (network->path == NULL || network->inputs == NULL || network->outputs == NULL)
		return -ENOMEM;
	for (; network->input_count < map_count(takes); network->input_count++) {
		const char *name = map_text(takes, network->input_count);

		if (!inference_is_listed(&in->in_tensor_names, name))
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

static bool makes_tensor(const struct networks *networks, const char *name)
{
	for (size_t i = 0; i < networks->count; i++)
		for (size_t k = 0; k < networks->items[i].output_count; k++)
			if (strcmp(networks->items[i].outputs[k].name, name) == 0)
				return true;
	return false;
}

static void network_free(struct network *network)
{
	network_close(network);
	free((char *)(uintptr_t)network->path);
	free(network->inputs);
	free(network->outputs);
	*network = (struct network){0};
}

static void networks_free(struct networks *networks)
{
	for (size_t i = 0; i < networks->count; i++)
		network_free(&networks->items[i]);
	free(networks->items);
	*networks = (struct networks){0};
}

/* The file of a model that `model` chooses; a list that is shorter gives its last one. */
static const char *file_of(const struct frag_tree *path, int64_t model)
{
	size_t count = map_count(path);

	return map_text(path, (size_t)model <= count ? (size_t)model - 1 : count - 1);
}

int inference_networks_setup(struct inference *in, struct frag_op *op)
{
	const struct frag_tree *paths = in->model_path_map;
	struct networks *networks = &in->networks;
	int r = check_maps(in, op);

	if (r == 0)
		r = check_devices(in, op);
	if (r < 0)
		return r;
	networks->items = calloc(paths->count + 1, sizeof(*networks->items));
	if (networks->items == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < paths->count && r == 0; i++, networks->count++)
		r = network_setup(in, op, &paths->items[i], file_of(&paths->items[i], in->model),
				  &networks->items[i]);
	for (size_t i = 0; i < in->out_tensor_names.count && r == 0; i++)
		if (!makes_tensor(networks, in->out_tensor_names.items[i]))
			r = frag_op_fail(
				op, -EINVAL,
				"out_tensor_names names \"%s\", which no model makes; name tensors of inference_map",
				in->out_tensor_names.items[i]);
	in->loaded = in->model;
	if (r < 0)
		networks_free(networks);
	return r;
}

/* Where a model runs: device_map goes before provider, and that before infer_on_cpu. */
static int choose_device(const struct inference *in, struct frag_op *op, const char *model,
			 enum inference_provider implied, struct inference_options *out)
{
	const struct frag_tree *entry = map_entry(in->device_map, model);
	const char *device = map_count(entry) > 0 ? map_text(entry, 0) : "";
	bool on_gpu = implied != INFERENCE_CPU || !in->infer_on_cpu;
	char *end;
	long number = strtol(device, &end, 10);

	out->gpu = (int32_t)in->device_id;
	if (strcmp(in->provider, "auto") != 0)
		on_gpu = strcmp(in->provider, "cpu") != 0;
	if (strcasecmp(device, "cpu") == 0) {
		on_gpu = false;
	} else if (strcasecmp(device, "gpu") == 0 || strcasecmp(device, "cuda") == 0) {
		on_gpu = true;
	} else if (end != device && *end == '\0' && number >= 0 && number < 1024) {
		on_gpu = true;
		out->gpu = (int32_t)number;
	} else if (map_count(entry) > 0) {
		return frag_op_fail(
			op, -EINVAL,
			"device_map puts the model %s on \"%s\"; write cpu, gpu or the number of a GPU",
			model, device);
	}
	if (strcmp(in->provider, "cuda") == 0)
		implied = INFERENCE_CUDA;
	out->provider = !on_gpu ? INFERENCE_CPU
			: strcmp(in->provider, "tensorrt") == 0 || implied == INFERENCE_TENSORRT
				? INFERENCE_TENSORRT
				: INFERENCE_CUDA;
	return 0;
}

static int choose_dla(const struct inference *in, struct frag_op *op, const char *model,
		      struct inference_options *out)
{
	int r = number_of(op, "dla_core_map", in->dla_core_map, model, in->dla_core,
			  &out->dla_core);

	if (r < 0 || out->dla_core < 0)
		return r;
	if (out->provider != INFERENCE_TENSORRT)
		return frag_op_fail(
			op, -ENOTSUP,
			"model %s: dla_core needs TensorRT; set provider: tensorrt, or leave dla_core out",
			model);
	if (!in->dla_gpu_fallback)
		return frag_op_fail(
			op, -ENOTSUP,
			"model %s: dla_gpu_fallback is false, and ONNX Runtime lets the GPU do what DLA cannot; leave it out",
			model);
	return 0;
}

/* The models of an operator that are on a GPU share its stream. */
static int use_gpu(struct inference *in, struct frag_op *op, struct inference_options *options)
{
	struct frag_device gpu = {FRAG_DEVICE_CUDA, options->gpu};
	int r = 0;

	if (options->provider == INFERENCE_CPU)
		return 0;
	if (!in->has_stream)
		r = frag_op_use_stream(op, in->cuda_stream_pool, gpu);
	else if (in->gpu != options->gpu)
		r = frag_op_fail(
			op, -ENOTSUP,
			"its models are on GPU %d and GPU %d, and the models of one operator use one GPU; give those of the other an operator of their own",
			(int)in->gpu, (int)options->gpu);
	if (r < 0)
		return r;
	in->has_stream = true;
	in->gpu = options->gpu;
	options->stream = in->stream = frag_op_stream(op);
	options->host_outputs = !in->output_on_cuda || !in->transmit_on_cuda;
	options->graphs = in->enable_cuda_graphs && !options->host_outputs;
	return 0;
}

/* Settles what a network needs to be opened; frag_op_use_stream is for initialize alone. */
static int choose(struct inference *in, struct frag_op *op, struct network *network)
{
	const struct frag_tree *own = map_entry(in->backend_map, network->name);
	enum inference_provider implied = INFERENCE_CPU;
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	network->options = (struct inference_options){
		.threads = in->threads,
		.streams = in->streams,
		.half = in->enable_fp16,
		.dla_core = -1,
		.memory_bytes = (int64_t)in->gpu_memory,
		.engine_cache = in->engine_cache != NULL && in->engine_cache[0] != '\0'
					? in->engine_cache
					: NULL,
	};
	network->backend = inference_backend_find(
		map_count(own) > 0 ? map_text(own, 0) : in->backend, &implied, &err);
	if (network->backend == NULL)
		return frag_op_fail(op, err.code, "model %s: %s", network->name, err.text);
	r = choose_device(in, op, network->name, implied, &network->options);
	if (r == 0)
		r = choose_dla(in, op, network->name, &network->options);
	if (r == 0 && network->options.provider != INFERENCE_CPU &&
	    network->backend == &inference_openvino)
		r = frag_op_fail(
			op, -ENOTSUP,
			"model %s is to run on a GPU, and openvino runs models on the CPU; use backend: onnxruntime for a GPU",
			network->name);
	return r == 0 ? use_gpu(in, op, &network->options) : r;
}

struct opening {
	struct network *network;
	struct frag_op *op;
};

/* On a thread of the loader. */
static int open_one(void *context, struct frag_err *err)
{
	const struct opening *opening = context;
	struct network *network = opening->network;
	bool on_gpu = network->options.provider != INFERENCE_CPU;
	int r = network_open(network, opening->op, err);

	if (r == 0 && on_gpu)
		r = network_warm(network, network->options.graphs ? 3 : 2, err);
	return r;
}

int inference_networks_open(struct inference *in, struct frag_op *op)
{
	struct networks *networks = &in->networks;
	struct frag_err err = FRAG_ERR_INIT;
	char text[400], what[160];

	for (size_t i = 0; i < networks->count; i++) {
		struct network *network = &networks->items[i];
		struct opening opening = {network, op};
		int r = choose(in, op, network);

		if (r < 0)
			return r;
		snprintf(what, sizeof(what), "model %s is made ready", network->name);
		r = loader_begin(&in->loader, open_one, &opening);
		if (r == 0)
			r = loader_end(&in->loader, op, what, &err);
		for (size_t k = 0; k < i && r == 0; k++)
			r = network_agree(&networks->items[k], network, &err);
		if (r < 0)
			return frag_op_fail(op, r, "model %s: %s", network->name,
					    err.code != 0 ? err.text : frag_strerror(r));
		frag_op_log(op, "model %s takes %s", network->name,
			    network_takes(network, text, sizeof(text)));
		if (network->options.provider != INFERENCE_CPU)
			frag_op_log(op, "model %s runs on GPU %d by %s", network->name,
				    (int)network->options.gpu,
				    network->options.provider == INFERENCE_TENSORRT ? "TensorRT"
										    : "CUDA");
	}
	return 0;
}

/* The networks whose files another value of `model` chooses; the others have no path. */
static int replacement_create(struct inference *in, struct frag_op *op)
{
	const struct frag_tree *paths = in->model_path_map;
	int r = 0;

	in->next.items = calloc(in->networks.count + 1, sizeof(*in->next.items));
	if (in->next.items == NULL)
		return -ENOMEM;
	for (; in->next.count < in->networks.count && r == 0; in->next.count++) {
		const struct frag_tree *path = &paths->items[in->next.count];
		const struct network *now = &in->networks.items[in->next.count];
		struct network *next = &in->next.items[in->next.count];

		if (strcmp(file_of(path, in->model), file_of(path, in->loaded)) == 0)
			continue;
		r = network_setup(in, op, path, file_of(path, in->model), next);
		next->options = now->options;
		next->backend = now->backend;
	}
	return r;
}

/*
 * On a thread of the loader. A graph of CUDA cannot be recorded while the stream is in use, so such
 * a model is warmed by its first frames.
 */
static int open_next(void *context, struct frag_err *err)
{
	struct inference *in = context;
	int r = 0;

	for (size_t i = 0; i < in->next.count && r == 0; i++) {
		struct network *next = &in->next.items[i];

		if (next->path == NULL)
			continue;
		r = network_open(next, in->op, err);
		if (r == 0 && next->options.provider != INFERENCE_CPU && !next->options.graphs)
			r = network_warm(next, 2, err);
		for (size_t k = 0; k < in->next.count && r == 0; k++)
			if (k != i)
				r = network_agree(in->next.items[k].path != NULL && k < i
							  ? &in->next.items[k]
							  : &in->networks.items[k],
						  next, err);
	}
	return r;
}

static void replace(struct inference *in, struct frag_op *op)
{
	for (size_t i = 0; i < in->next.count; i++) {
		struct network *next = &in->next.items[i];

		if (next->path == NULL)
			continue;
		network_free(&in->networks.items[i]);
		in->networks.items[i] = *next;
		*next = (struct network){0};
		frag_op_log(op, "model %s is now %s", in->networks.items[i].name,
			    in->networks.items[i].path);
	}
}

void inference_networks_follow(struct inference *in, struct frag_op *op)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (in->loader.is_begun) {
		if (!loader_is_ready(&in->loader))
			return;
		r = loader_end(&in->loader, op, "", &err);
		if (r == 0)
			replace(in, op);
		else
			frag_op_log(op, "model %lld is not used, and the one before stays: %s",
				    (long long)in->asked, err.text);
		networks_free(&in->next);
	}
	if (in->model == in->loaded)
		return;
	in->op = op;
	in->asked = in->model;
	r = replacement_create(in, op);
	in->loaded = in->model;
	if (r == 0)
		r = loader_begin(&in->loader, open_next, in);
	if (r < 0) {
		networks_free(&in->next);
		frag_op_log(op, "model %lld is not used: %s", (long long)in->asked,
			    frag_strerror(r));
	}
}

int inference_networks_activate(struct inference *in, const char *text, struct frag_err *err)
{
	const char *at = text + strspn(text, "{ ");
	char name[128];
	int on, used;

	while (*at != '\0' && *at != '}') {
		size_t i = 0;

		if (sscanf(at, " %127[^:=, ] %*1[:=] %d %n", name, &on, &used) != 2)
			return frag_err_set(
				err, -EINVAL,
				"the metadata activation_map is \"%s\"; write the models and 0 or 1: person: 0, face: 1",
				text);
		while (i < in->networks.count && strcmp(in->networks.items[i].name, name) != 0)
			i++;
		if (i == in->networks.count)
			return frag_err_set(
				err, -EINVAL,
				"the metadata activation_map names the model %s, which model_path_map lacks",
				name);
		in->networks.items[i].active = on != 0;
		at += used;
		at += strspn(at, ", ");
	}
	return 0;
}

void inference_networks_close(struct inference *in)
{
	struct frag_err ignored = FRAG_ERR_INIT;

	loader_end(&in->loader, in->op, "the model that was set is made ready", &ignored);
	networks_free(&in->next);
	networks_free(&in->networks);
}
