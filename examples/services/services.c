// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include <frag/frag.h>

/* A service of a fragment: operators count together, without a parameter that names the counter. */
struct tally {
	_Atomic int64_t count;
};

static const struct frag_resource_type tally_type = {
	FRAG_RESOURCE_TYPE_INIT,
	.name = "tally",
	.headline = "Counts for several operators",
	.state_size = sizeof(struct tally),
};

/*
 * A service of the application. Each process that runs fragments has one. The one beside the first
 * fragment is the meeting point: it tells the others where it is.
 */
struct meeting {
	int64_t port;
	char place[FRAG_ANNOUNCEMENT_MAX + 1];
};

static const struct frag_param meeting_params[] = {
	FRAG_PARAM_I64(struct meeting, port, 4711, .headline = "Port of the meeting point",
		       .min = 1, .max = 65535),
};

/* A real one would listen on the port here. */
static int meeting_driver_start(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct meeting *s = state;
	char place[64];

	(void)err;
	snprintf(place, sizeof(place), "127.0.0.1:%lld", (long long)s->port);
	fprintf(stderr, "meeting: open at %s\n", place);
	return frag_service_announce(resource, place);
}

static int meeting_driver_stop(void *state, struct frag_resource *resource)
{
	(void)state;
	(void)resource;
	fprintf(stderr, "meeting: closed\n");
	return 0;
}

/* A real one would connect. */
static int meeting_worker_connect(void *state, struct frag_resource *resource, const char *driver,
				  struct frag_err *err)
{
	struct meeting *s = state;

	(void)resource;
	if (driver == NULL)
		return frag_err_set(err, -EDESTADDRREQ, "nobody has opened the meeting");
	snprintf(s->place, sizeof(s->place), "%s", driver);
	return 0;
}

static int meeting_worker_disconnect(void *state, struct frag_resource *resource)
{
	(void)resource;
	fprintf(stderr, "meeting: left %s\n", ((const struct meeting *)state)->place);
	return 0;
}

static const struct frag_resource_type meeting_type = {
	FRAG_RESOURCE_TYPE_INIT,
	.name = "meeting",
	.headline = "Where the processes of an application meet",
	.state_size = sizeof(struct meeting),
	FRAG_PARAMS(meeting_params),
	.driver_start = meeting_driver_start,
	.driver_stop = meeting_driver_stop,
	.worker_connect = meeting_worker_connect,
	.worker_disconnect = meeting_worker_disconnect,
};

/* Counts its ticks in the tally, and says at the end what it and its fellows have counted. */
struct visitor {
	struct tally *tally;
	const struct meeting *meeting;
};

static int visitor_start(void *state, struct frag_op *op)
{
	struct visitor *s = state;

	s->tally = frag_resource_state(frag_op_service(op, "tally", NULL), "tally");
	s->meeting = frag_resource_state(frag_op_service(op, "meeting", "town"), "meeting");
	if (s->tally == NULL || s->meeting == NULL)
		return frag_op_fail(op, -ENOENT,
				    "there is no tally or no meeting; declare both under services");
	return 0;
}

static int visitor_compute(void *state, struct frag_tick *tick)
{
	struct visitor *s = state;
	int64_t count = atomic_fetch_add(&s->tally->count, 1) + 1;

	frag_op_log(frag_tick_op(tick), "visitor %lld of this fragment, meeting at %s",
		    (long long)count, s->meeting->place);
	return 0;
}

static const struct frag_op_type visitor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "visitor",
	.headline = "Counts its ticks together with others",
	.state_size = sizeof(struct visitor),
	.start = visitor_start,
	.compute = visitor_compute,
};

static const struct frag_resource_type *const resources[] = {&tally_type, &meeting_type};
static const struct frag_op_type *const ops[] = {&visitor_type};
FRAG_PLUGIN(.name = "services", .version = "1.0.0", FRAG_OPS(ops), FRAG_RESOURCES(resources));
