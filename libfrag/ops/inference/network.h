/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_NETWORK_H
#define INFERENCE_NETWORK_H

#include "backend.h"

/*
 * One model in an operator: which tensors it takes, which it makes, and its runs for the current
 * messages. A tensor that holds several times what the model takes in one run is a batch: the model
 * runs once for each part, and the results are joined along the first dimension.
 */

/* Runs of one model that may be under way at a time. */
#define NETWORK_REQUESTS 4

struct network_input {
	const char *name; /* of the tensor in a message */
	/* of the current messages */
	const void *data;
	size_t run_bytes;
	int32_t ndim;
	int64_t shape[FRAG_TENSOR_NDIM_MAX]; /* of one run */
};

struct network_output {
	const char *name;           /* of the tensor that is emitted */
	size_t index;               /* among the model's outputs */
	struct frag_tensor *tensor; /* the latest result; owned */
};

struct network {
	const char *name; /* in the maps of the graph */
	const char *path;
	bool active;
	int64_t every; /* it runs in every so many ticks */
	struct inference_model *model;
	struct inference_request *requests[NETWORK_REQUESTS];
	struct network_input *inputs;
	size_t input_count;
	struct network_output *outputs;
	size_t output_count;
	int64_t runs, started, ended; /* of the current messages */
};

/*
 * Opens the model and checks the names against it.
 * Returns 0 or a negative errno; the sentence shows what the model has.
 */
int network_open(struct network *network, const struct inference_backend *backend,
		 const struct inference_options *options, struct frag_err *err);
/* Waits for what is under way and frees everything but the arrays. */
void network_close(struct network *network);

/*
 * Takes the tensors of a tick, which stay borrowed until network_finish.
 * - messages: [count]; NULL where a flow has none
 * Returns 0 or a negative errno; the sentence shows what the model wants and what came.
 */
int network_take(struct network *network, const struct frag_message *const *messages, size_t count,
		 struct frag_err *err);
/* Starts as many runs as may be under way at a time. */
int network_start(struct network *network, struct frag_err *err);
/* Waits until all runs have ended, and replaces the outputs by the results. */
int network_finish(struct network *network, struct frag_resource *allocator, struct frag_err *err);
/* Waits for what is under way and forgets it. */
void network_abandon(struct network *network);

#endif
