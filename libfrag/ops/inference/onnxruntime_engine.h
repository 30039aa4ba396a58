/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_ONNXRUNTIME_ENGINE_H
#define INFERENCE_ONNXRUNTIME_ENGINE_H

#include "backend.h"
#include "onnxruntime_api.h"

/* ONNX Runtime in this process: its functions, and the providers that it opens. */

#define ORT_MEMBER(place, result, name, args) result(*name) args;
struct ort {
	ORT_FUNCTIONS(ORT_MEMBER)
	ort_env_t *env;
	ort_allocator_t *allocator; /* of names and arrays that it returns */
	char version[32];
};

/*
 * Opens the library; once in a process, where it stays: its threads and its own libraries cannot be
 * taken out of a process safely. Returns NULL with a sentence that says where it is looked for.
 */
const struct ort *ort_open(struct frag_err *err);
/*
 * Adds the provider of options to a session's, and refuses one of another version than the library.
 */
int ort_add_provider(const struct ort *ort, const struct inference_options *options,
		     ort_session_options_t *session, struct frag_err *err);
/*
 * Words a failure and frees its status: "what: the engine's reason; advice". Memory that a GPU does
 * not have is -ENOMEM with advice of its own. Returns the code.
 */
int ort_failed(const struct ort *ort, ort_status_t *status, int code, const char *what,
	       const char *advice, struct frag_err *err);
/* The names of providers in graphs. */
const char *ort_provider_name(enum inference_provider provider);

#endif
