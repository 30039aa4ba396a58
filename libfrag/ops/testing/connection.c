// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "testing.h"

/*
 * Measures the way to an operator that sends back what it gets, for fragctl doctor: what one
 * message takes there and back, then how many bytes a second go each way. The first message that it
 * gets, of anybody, begins it.
 */
#define TRIPS 101
#define BULKS 64
#define BULK_BYTES (1 << 20)
#define UNDER_WAY 4 /* bulks; the queues of its graph hold more */

struct test_connection {
	struct frag_tensor *small, *bulk;
	int64_t began_ns, took_ns[TRIPS];
	uint32_t trips, sent, received;
};

enum { IN, OUT };
static const struct frag_port connection_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .headline = "what came back"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor", .headline = "bytes"},
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int connection_start(void *state, struct frag_op *op)
{
	static const struct frag_dtype byte = {FRAG_DTYPE_UINT, 8, 1};
	const int64_t small = 8, bulk = BULK_BYTES;
	struct test_connection *c = state;
	int r = frag_tensor_create(NULL, byte, 1, &small, &c->small);

	if (r == 0)
		r = frag_tensor_create(NULL, byte, 1, &bulk, &c->bulk);
	if (r < 0)
		return frag_op_fail(op, r, "cannot make a tensor: %s", frag_strerror(r));
	/* What the memory held before is not sent. */
	memset(frag_tensor_writable(c->small), 0, (size_t)small);
	memset(frag_tensor_writable(c->bulk), 0, (size_t)bulk);
	return 0;
}

static int send(struct frag_tick *tick, struct frag_tensor *tensor)
{
	return frag_tick_emit_tensor(tick, OUT, "", frag_tensor_ref(tensor));
}

static int end(const struct test_connection *c, const struct frag_op *op)
{
	double took_s = (double)(now_ns() - c->began_ns) * 1e-9;

	frag_op_log(op, "round_trip_ns=%" PRId64 " bytes_per_s=%.0f", c->took_ns[TRIPS / 2],
		    (double)BULKS * BULK_BYTES / took_s);
	return FRAG_DONE;
}

static int connection_compute(void *state, struct frag_tick *tick)
{
	struct test_connection *c = state;
	const struct frag_message *message;
	int64_t at_ns = now_ns();
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	if (c->began_ns != 0 && c->trips < TRIPS)
		c->took_ns[c->trips++] = at_ns - c->began_ns;
	else if (c->began_ns != 0)
		c->received++;
	if (c->trips < TRIPS) {
		c->began_ns = at_ns;
		return send(tick, c->small);
	}
	if (c->sent == 0) {
		qsort(c->took_ns, TRIPS, sizeof(c->took_ns[0]), compare);
		c->began_ns = now_ns();
	}
	while (r == 0 && c->sent < BULKS && c->sent - c->received < UNDER_WAY) {
		r = send(tick, c->bulk);
		c->sent += r == 0;
	}
	return r == 0 && c->received == BULKS ? end(c, frag_tick_op(tick)) : r;
}

static int connection_stop(void *state, struct frag_op *op)
{
	struct test_connection *c = state;

	(void)op;
	frag_tensor_unref(c->small);
	frag_tensor_unref(c->bulk);
	*c = (struct test_connection){0};
	return 0;
}

const struct frag_op_type testing_connection_type = {
	FRAG_OP_TYPE_INIT,
	.name = "test_connection",
	.headline = "Measures the way to an operator that sends back, for fragctl doctor",
	.state_size = sizeof(struct test_connection),
	FRAG_PORTS(connection_ports),
	.start = connection_start,
	.compute = connection_compute,
	.stop = connection_stop,
};
