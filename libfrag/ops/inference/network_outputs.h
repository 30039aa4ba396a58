/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_NETWORK_OUTPUTS_H
#define INFERENCE_NETWORK_OUTPUTS_H

#include "network.h"

/* The tensors that the runs of a network make; for network.c. */

/*
 * Gives the runs the memory to write an output into, where its shape is known before: sides that
 * are any have the names of sides of inputs. Otherwise the run makes a result.
 */
int network_output_give(struct network *network, struct network_output *output,
			struct frag_resource *allocator, struct frag_err *err);
/* Takes a result that lies on a GPU as it is: its memory is the engine's. */
int network_output_take(struct network *network, struct network_output *output,
			struct inference_result *result, struct frag_err *err);
/* Copies a result in host memory to its place in the tensor, which the first one makes. */
int network_output_copy(struct network *network, struct network_output *output,
			const struct inference_result *result, struct frag_resource *allocator,
			struct frag_err *err);
/* An empty batch has empty results, of the shape that the model declares. */
int network_outputs_make_empty(struct network *network, struct frag_resource *allocator,
			       struct frag_err *err);

#endif
