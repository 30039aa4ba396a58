/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_STATE_H
#define INFERENCE_STATE_H

#include "batch.h"
#include "loader.h"
#include "network.h"

/* The operator inference: its parameters, and the networks that they describe. */

struct networks {
	struct network *items;
	size_t count;
};

struct inference {
	const char *backend, *provider, *model_folder, *engine_cache;
	const struct frag_tree *backend_map, *model_path_map, *pre_processor_map, *inference_map;
	const struct frag_tree *device_map, *dla_core_map, *temporal_map, *activation_map;
	const struct frag_tree *trt_opt_profile, *batch;
	struct frag_string_list in_tensor_names, out_tensor_names;
	int64_t model, threads, streams, dla_core, device_id;
	uint64_t gpu_memory;
	bool infer_on_cpu, parallel_inference, input_on_cuda, output_on_cuda, transmit_on_cuda;
	bool enable_fp16, enable_cuda_graphs, is_engine_path, dynamic_input_dims, dla_gpu_fallback;
	struct frag_resource *allocator, *cuda_stream_pool;

	struct networks networks;
	bool has_stream;
	int32_t gpu; /* of the stream */
	void *stream;
	/* the networks that will replace them */
	struct loader loader;
	struct networks next;
	struct frag_op *op;
	int64_t loaded, asked; /* values of `model` that were looked at, and opened last */
	struct batch cameras;
	/* of the tick that is under way; borrowed until it is over */
	bool running;
	const struct frag_message *const *messages;
	int message_count;
	size_t begun; /* networks that were started, or need not be */
};

/* inference_networks.c. Failures are worded in the operator. */

/* Whether a list of names has one; an empty list has all. */
bool inference_is_listed(const struct frag_string_list *names, const char *name);
/* Checks the maps and makes the networks, without their models. In setup. */
int inference_networks_setup(struct inference *in, struct frag_op *op);
/* Opens the models, each on its device. In initialize. */
int inference_networks_open(struct inference *in, struct frag_op *op);
/*
 * Follows the parameter `model`: begins to open the files that it chooses, and replaces the
 * networks when these are ready. In a tick, while no run is under way. A model that cannot be
 * opened is logged, and the old ones stay.
 */
void inference_networks_follow(struct inference *in, struct frag_op *op);
/*
 * Switches models off and on as a text says, "person: 0, face: 1". Returns 0 or -EINVAL with a
 * sentence.
 */
int inference_networks_activate(struct inference *in, const char *text, struct frag_err *err);
void inference_networks_close(struct inference *in);

#endif
