// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <time.h>

#include "loader.h"

#define REPORT_S 10

static void *work(void *arg)
{
	struct loader *loader = arg;
	int r = loader->load(loader->context, &loader->err);

	pthread_mutex_lock(&loader->lock);
	loader->result = r;
	loader->has_ended = true;
	pthread_cond_broadcast(&loader->changed);
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

int loader_begin(struct loader *loader, int (*load)(void *context, struct frag_err *err),
		 void *context)
{
	pthread_condattr_t attributes;

	*loader = (struct loader){.load = load, .context = context, .err = FRAG_ERR_INIT};
	pthread_mutex_init(&loader->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&loader->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	loader->is_begun = pthread_create(&loader->thread, NULL, work, loader) == 0;
	return loader->is_begun ? 0 : -EAGAIN;
}

bool loader_is_ready(struct loader *loader)
{
	bool is_ready;

	if (!loader->is_begun)
		return false;
	pthread_mutex_lock(&loader->lock);
	is_ready = loader->has_ended;
	pthread_mutex_unlock(&loader->lock);
	return is_ready;
}

int loader_end(struct loader *loader, const struct frag_op *op, const char *what,
	       struct frag_err *err)
{
	struct timespec until;
	int seconds = 0;

	if (!loader->is_begun)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += REPORT_S;
	pthread_mutex_lock(&loader->lock);
	while (!loader->has_ended) {
		if (pthread_cond_timedwait(&loader->changed, &loader->lock, &until) != ETIMEDOUT)
			continue;
		seconds += REPORT_S;
		until.tv_sec += REPORT_S;
		frag_op_log(op, "%s since %d s", what, seconds);
	}
	pthread_mutex_unlock(&loader->lock);
	pthread_join(loader->thread, NULL);
	pthread_cond_destroy(&loader->changed);
	pthread_mutex_destroy(&loader->lock);
	loader->is_begun = false;
	if (loader->result < 0)
		*err = loader->err;
	return loader->result;
}
