// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <pthread.h>

#include <frag/frag.h>

/* Passes messages on, and prints which thread it runs on. */
enum { IN, OUT };
static const struct frag_port where_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN},
	[OUT] = {.name = "out", .dir = FRAG_OUT},
};

static int where_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, IN, &message);
	char name[16] = "";

	(void)state;
	if (r < 0)
		return r;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	frag_op_log(frag_tick_op(tick), "on thread %s", name);
	return frag_tick_emit(tick, OUT, frag_message_ref(message));
}

static const struct frag_op_type where_type = {
	FRAG_OP_TYPE_INIT,
	.name = "where",
	.headline = "Prints which thread it runs on",
	FRAG_PORTS(where_ports),
	.compute = where_compute,
};

static const struct frag_op_type *const ops[] = {&where_type};
FRAG_PLUGIN(.name = "thread_pools", .version = "1.0.0", FRAG_OPS(ops));
