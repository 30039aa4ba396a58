/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_MODELS_H
#define INFERENCE_MODELS_H

#include "backend.h"

/*
 * The models of this process. A file is read and compiled once for the CPU, however many operators
 * use it, as long as one of them does.
 */

/*
 * Opens a model. Returns 0 or a negative errno; the sentence says what to do.
 * - path: of the file
 * - out: receives the model; give it back with inference_model_close
 * Thread: any. Blocks: while a model is compiled.
 */
int inference_model_open(const struct inference_backend *backend, const char *path,
			 const struct inference_options *options, struct inference_model **out,
			 struct frag_err *err);
/* Gives a model back; NULL is accepted. */
void inference_model_close(struct inference_model *model);

#endif
