/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_NETWORK_H
#define INFERENCE_NETWORK_H

#include <stdatomic.h>

#include "backend.h"

/*
 * One model in an operator: which tensors it takes, which it makes, and its runs for the current
 * messages. A tensor that holds several times what the model takes in one run is a batch: the model
 * runs once for each part, and the results are joined along the first dimension.
 */

/* Takes one run after the other. */
struct network_request {
	struct inference_request *request;
	struct frag_op *op;
	_Atomic bool ended; /* the engine has ended the run; set on one of its threads */
};

struct network_input {
	const char *name; /* of the tensor in a message */
	/* of the current messages */
	const void *data;
	struct frag_device device;
	size_t run_bytes;
	int32_t ndim;
	int64_t shape[FRAG_TENSOR_NDIM_MAX]; /* of one run */
};

struct network_output {
	const char *name;           /* of the tensor that is emitted */
	size_t index;               /* among the model's outputs */
	struct frag_tensor *tensor; /* the latest result; owned */
	/* of the current messages: the runs write into the tensor; else their results are taken */
	bool is_given;
	char *data;
	size_t run_bytes;
	int32_t ndim;
	int64_t shape[FRAG_TENSOR_NDIM_MAX]; /* of one run */
};

struct network {
	const char *name; /* in the maps of the graph */
	const char *path;
	const struct inference_backend *backend;
	struct inference_options options;
	bool is_on, active; /* in the graph, and in this tick */
	int64_t every;      /* it runs in every so many ticks */
	struct inference_model *model;
	struct network_request requests[INFERENCE_REQUESTS];
	struct network_input *inputs;
	size_t input_count;
	struct network_output *outputs;
	size_t output_count;
	/* of the current messages */
	bool busy;
	int64_t runs, started, collected;
};

/*
 * Opens the model and checks the names against it.
 * - op: is resumed (frag_op_resume) each time that a run has ended
 * Returns 0 or a negative errno; the sentence shows what the model has.
 */
int network_open(struct network *network, struct frag_op *op, struct frag_err *err);
/*
 * Compares what two networks want of a tensor that both take. Returns 0; -EINVAL: no tensor is
 * both, with a sentence that shows what they want.
 */
int network_agree(const struct network *a, const struct network *b, struct frag_err *err);
/* Writes what the model takes into out: "image" u8 [1, 300, 300, 3]. Returns out. */
const char *network_takes(const struct network *network, char *out, size_t size);
/* Waits for what is under way and frees everything but the arrays. */
void network_close(struct network *network);

/*
 * Runs a model on a GPU before messages come, until a run costs what later ones do: the engine
 * chooses kernels by trying them. Does nothing for one whose sides are any.
 */
int network_warm(struct network *network, int times, struct frag_err *err);

/*
 * Takes the tensors of a tick and starts as many runs as may be under way at a time. The network is
 * then busy, and the messages stay borrowed, until network_collect has made it idle or
 * network_abandon was called.
 * - messages: [count]; NULL where a flow has none
 * Returns 0 or a negative errno; the sentence shows what the model wants and what came.
 */
int network_start(struct network *network, const struct frag_message *const *messages, size_t count,
		  struct frag_resource *allocator, struct frag_err *err);
/*
 * Takes over the results of the runs that have ended, in order, and starts those that are left.
 * After the last one the outputs are the new results and the network is not busy any more. It does
 * not wait for a run.
 */
int network_collect(struct network *network, struct frag_resource *allocator, struct frag_err *err);
/* Waits for what is under way and forgets it. */
void network_abandon(struct network *network);

#endif
