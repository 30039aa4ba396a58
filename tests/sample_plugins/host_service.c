// SPDX-License-Identifier: Apache-2.0
/* A service of an application that fails in one of its callbacks: `where`, `deed`. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/frag.h>

struct hub {
	const char *where, *deed;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct hub, where, "nowhere"),
	FRAG_PARAM_STRING(struct hub, deed, "fail"),
};

static int act(const void *state, const char *callback, struct frag_err *err)
{
	const struct hub *s = state;

	fprintf(stderr, "hub: %s\n", callback);
	if (strcmp(s->where, callback) != 0)
		return 0;
	if (strcmp(s->deed, "crash") == 0)
		abort();
	if (strcmp(s->deed, "leave_thread") == 0)
		pthread_exit(NULL);
	while (strcmp(s->deed, "hang") == 0)
		pause();
	return frag_err_set(err, -ECONNREFUSED, "%s was refused; open the port", callback);
}

static int driver_start(void *state, struct frag_resource *resource, struct frag_err *err)
{
	return act(state, "driver_start", err);
}

static int driver_stop(void *state, struct frag_resource *resource)
{
	return act(state, "driver_stop", NULL);
}

static int worker_connect(void *state, struct frag_resource *resource, const char *driver,
			  struct frag_err *err)
{
	return act(state, "worker_connect", err);
}

static int worker_disconnect(void *state, struct frag_resource *resource)
{
	return act(state, "worker_disconnect", NULL);
}

static const struct frag_resource_type hub_type = {
	FRAG_RESOURCE_TYPE_INIT,          .name = "hub",
	.state_size = sizeof(struct hub), FRAG_PARAMS(params),
	.driver_start = driver_start,     .driver_stop = driver_stop,
	.worker_connect = worker_connect, .worker_disconnect = worker_disconnect,
};
static const struct frag_resource_type *const resources[] = {&hub_type};
FRAG_PLUGIN(.name = "host_service", .version = "1", FRAG_RESOURCES(resources));
