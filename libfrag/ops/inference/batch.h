/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_BATCH_H
#define INFERENCE_BATCH_H

#include "network.h"

/*
 * Frames of several flows (cameras) that go through the networks of an operator in one run. Their
 * tensors are copied side by side into memory of the batch; each frame gets its part of the
 * results, in a message with its stamps and metadata.
 */
#define BATCH_SIZE_MAX 64
#define BATCH_FLOWS_MAX 64
#define BATCH_INPUTS_MAX 16
#define BATCH_ROWS_MAX 65536

struct batch_frame {
	const struct frag_message *message; /* borrowed until the tick is over */
	uint32_t flow;
};

/* The tensors of one name side by side. The memory is used again by the next batch. */
struct batch_input {
	const char *name;
	struct frag_tensor *memory;
};

struct batch {
	size_t size; /* frames of a run; 0: there are no batches */
	/* outputs of the operator, one for each flow; none: all go to the transmitter */
	uint32_t ports[BATCH_FLOWS_MAX];
	size_t port_count;
	struct batch_input inputs[BATCH_INPUTS_MAX];
	size_t input_count;
	/* of the tick that is under way */
	struct batch_frame frames[BATCH_SIZE_MAX + BATCH_FLOWS_MAX];
	size_t frame_count, first, count; /* of the frames: those of the current run */
	size_t rows;                      /* that the run has for all frames, padding included */
	struct frag_message *message;     /* what the networks take; owned */
	const struct frag_message *messages[1];
};

/*
 * Reads the parameter: {size: 8, max_delay: 5ms, cameras: [left, right]}. Adds the outputs and the
 * condition. In setup; words failures in the operator.
 */
int batch_setup(struct batch *batch, struct frag_op *op, const struct frag_tree *parameter);
/* Checks that each flow of the input has an output. In initialize. */
int batch_check(const struct batch *batch, struct frag_op *op, uint32_t port);
/* Receives what is waiting, up to the size. Returns the number of frames or a failure. */
int batch_receive(struct batch *batch, struct frag_tick *tick, uint32_t port);
/*
 * Makes the next run of the frames of the tick. Returns 1: batch->messages is ready; 0: no frame is
 * left; or a failure with a sentence.
 * - stream: of the networks that are on a GPU
 */
int batch_next(struct batch *batch, const struct network *networks, size_t count, void *stream,
	       struct frag_err *err);
/*
 * Makes a frame's part of a result. Returns 0 or a failure with a sentence.
 * - i: of the frame among those of the run
 */
int batch_part(const struct batch *batch, const struct network_output *output, size_t i,
	       struct frag_tensor **out, struct frag_err *err);
/* Forgets the run; the frames that are left stay. */
void batch_drop(struct batch *batch);
void batch_fini(struct batch *batch);

#endif
