/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_LOADER_H
#define INFERENCE_LOADER_H

#include <pthread.h>

#include <frag/frag.h>

/*
 * Does what may take minutes, such as the compilation of a model, on a thread of its own, and
 * reports how long it has taken.
 */
struct loader {
	int (*load)(void *context, struct frag_err *err);
	void *context;
	struct frag_err err;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_begun, has_ended;
	int result;
};

/* Begins. Returns 0 or a negative errno. */
int loader_begin(struct loader *loader, int (*load)(void *context, struct frag_err *err),
		 void *context);
/* Whether it has begun and ended: loader_end then waits for nothing. */
bool loader_is_ready(struct loader *loader);
/*
 * Waits for the end, and logs each ten seconds that `what` goes on; does nothing when it has not
 * begun. Returns what load has returned.
 */
int loader_end(struct loader *loader, const struct frag_op *op, const char *what,
	       struct frag_err *err);

#endif
