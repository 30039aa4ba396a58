// SPDX-License-Identifier: Apache-2.0
/*
 * Round trips. Tight: kick starts ping, which sends, waits for what pong sends back, and sends
 * again. Paced: pacer sends when its periodic condition says so, pong sends back, clock receives.
 * Half of a round trip is one way, as ucx_perftest counts it. `file` gets "count p50 p99 p999 min
 * max", in ns one way.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define TRIPS_MAX 4000000

struct trips {
	int64_t *ns;
	int64_t count, warm_up, seen;
};

static int trips_init(struct trips *trips, struct frag_op *op, int64_t count)
{
	if (count < 1 || count > TRIPS_MAX)
		return frag_op_fail(op, -EINVAL, "count must be 1 to %d", TRIPS_MAX);
	trips->count = count;
	trips->warm_up = count / 10 + 1;
	trips->ns = calloc((size_t)count, sizeof(*trips->ns));
	return trips->ns != NULL ? 0 : -ENOMEM;
}

/* Returns whether there are enough. */
static bool trips_add(struct trips *trips, int64_t ns)
{
	int64_t i = trips->seen++ - trips->warm_up;

	if (i >= 0 && i < trips->count)
		trips->ns[i] = ns;
	return i + 1 >= trips->count;
}

static int trips_write(struct trips *trips, struct frag_op *op, const char *file)
{
	int64_t n = trips->seen - trips->warm_up;
	FILE *f;

	if (n > trips->count)
		n = trips->count;
	if (n < 1)
		return frag_op_fail(op, -ENODATA, "no round trip was made");
	qsort(trips->ns, (size_t)n, sizeof(*trips->ns), bench_by_size);
	f = fopen(file, "w");
	if (f == NULL)
		return frag_op_fail(op, -errno, "cannot write %s: %s", file, strerror(errno));
	fprintf(f, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", n,
		trips->ns[n / 2] / 2, trips->ns[n * 99 / 100] / 2, trips->ns[n * 999 / 1000] / 2,
		trips->ns[0] / 2, trips->ns[n - 1] / 2);
	return fclose(f) == 0 ? 0 : -EIO;
}

static const struct frag_port out_ports[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_port both_ports[] = {
	{.name = "in", .dir = FRAG_IN},
	{.name = "out", .dir = FRAG_OUT},
};

static int kick_compute(void *state, struct frag_tick *tick)
{
	int r = frag_tick_emit_i64(tick, 0, 0);

	return r < 0 ? r : FRAG_DONE;
}

const struct frag_op_type bench_kick_type = {
	FRAG_OP_TYPE_INIT,     .name = "bench_kick",    .headline = "Sends one number",
	FRAG_PORTS(out_ports), .compute = kick_compute,
};

struct ping {
	int64_t count;
	uint64_t bytes;
	const char *file;
	struct bench_load load;
	struct trips trips;
	int64_t sent_ns; /* 0: not yet */
};

static const struct frag_param ping_params[] = {
	FRAG_PARAM_I64(struct ping, count, 1000),
	FRAG_PARAM_SIZE(struct ping, bytes, 8),
	FRAG_PARAM_STRING(struct ping, file, NULL, .flags = FRAG_PARAM_REQUIRED),
};

static int ping_initialize(void *state, struct frag_op *op)
{
	struct ping *p = state;
	int r = bench_load_init(&p->load, op, p->bytes);

	return r < 0 ? r : trips_init(&p->trips, op, p->count);
}

static int ping_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	struct ping *p = state;
	int r = frag_tick_receive(tick, 0, &message);

	if (r < 0)
		return r;
	if (p->sent_ns != 0 && trips_add(&p->trips, bench_now_ns() - p->sent_ns))
		return FRAG_DONE;
	p->sent_ns = bench_now_ns();
	return bench_load_emit(&p->load, tick, 1, p->trips.seen);
}

static int ping_stop(void *state, struct frag_op *op)
{
	struct ping *p = state;

	return trips_write(&p->trips, op, p->file);
}

static void ping_fini(void *state, struct frag_op *op)
{
	struct ping *p = state;

	bench_load_fini(&p->load);
	free(p->trips.ns);
}

const struct frag_op_type bench_ping_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_ping",
	.headline = "Measures round trips, one at a time",
	.state_size = sizeof(struct ping),
	FRAG_PORTS(both_ports),
	FRAG_PARAMS(ping_params),
	.initialize = ping_initialize,
	.compute = ping_compute,
	.stop = ping_stop,
	.fini = ping_fini,
};

struct pong {
	uint64_t bytes;
	struct bench_load load;
};

static const struct frag_param pong_params[] = {FRAG_PARAM_SIZE(struct pong, bytes, 8)};

static int pong_initialize(void *state, struct frag_op *op)
{
	struct pong *p = state;

	return bench_load_init(&p->load, op, p->bytes);
}

static int pong_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	struct pong *p = state;
	int r = frag_tick_receive(tick, 0, &message);

	return r < 0 ? r : bench_load_emit(&p->load, tick, 1, 0);
}

static void pong_fini(void *state, struct frag_op *op)
{
	bench_load_fini(&((struct pong *)state)->load);
}

const struct frag_op_type bench_pong_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_pong",
	.headline = "Answers each message with one of its own",
	.state_size = sizeof(struct pong),
	FRAG_PORTS(both_ports),
	FRAG_PARAMS(pong_params),
	.initialize = pong_initialize,
	.compute = pong_compute,
	.fini = pong_fini,
};

/* When pacer sent the n-th message; clock, in the same process, receives the n-th answer. */
#define PACED_MAX 65536
static _Atomic int64_t paced_ns[PACED_MAX];

struct pacer {
	int64_t count, next;
	uint64_t bytes;
	struct bench_load load;
};

static const struct frag_param pacer_params[] = {
	FRAG_PARAM_I64(struct pacer, count, 1000, .min = 1, .max = PACED_MAX),
	FRAG_PARAM_SIZE(struct pacer, bytes, 8),
};

static int pacer_initialize(void *state, struct frag_op *op)
{
	struct pacer *p = state;

	return bench_load_init(&p->load, op, p->bytes);
}

static int pacer_compute(void *state, struct frag_tick *tick)
{
	struct pacer *p = state;
	int r;

	paced_ns[p->next] = bench_now_ns();
	r = bench_load_emit(&p->load, tick, 0, p->next);
	return r < 0 ? r : ++p->next == p->count ? FRAG_DONE : 0;
}

static void pacer_fini(void *state, struct frag_op *op)
{
	bench_load_fini(&((struct pacer *)state)->load);
}

const struct frag_op_type bench_pacer_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_pacer",
	.headline = "Sends at its conditions' pace and notes when",
	.state_size = sizeof(struct pacer),
	FRAG_PORTS(out_ports),
	FRAG_PARAMS(pacer_params),
	.initialize = pacer_initialize,
	.compute = pacer_compute,
	.fini = pacer_fini,
};

struct clock {
	int64_t count;
	const char *file;
	struct trips trips;
};

static const struct frag_port clock_ports[] = {{.name = "in", .dir = FRAG_IN}};
static const struct frag_param clock_params[] = {
	FRAG_PARAM_I64(struct clock, count, 1000, .min = 1, .max = PACED_MAX),
	FRAG_PARAM_STRING(struct clock, file, NULL, .flags = FRAG_PARAM_REQUIRED),
};

static int clock_initialize(void *state, struct frag_op *op)
{
	struct clock *c = state;

	return trips_init(&c->trips, op, c->count);
}

static int clock_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	struct clock *c = state;
	int r = frag_tick_receive(tick, 0, &message);

	if (r < 0)
		return r;
	if (c->trips.seen < c->count)
		trips_add(&c->trips, bench_now_ns() - paced_ns[c->trips.seen]);
	return 0;
}

static int clock_stop(void *state, struct frag_op *op)
{
	struct clock *c = state;

	return trips_write(&c->trips, op, c->file);
}

static void clock_fini(void *state, struct frag_op *op)
{
	free(((struct clock *)state)->trips.ns);
}

const struct frag_op_type bench_clock_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_clock",
	.headline = "Measures the round trips that a pacer began",
	.state_size = sizeof(struct clock),
	FRAG_PORTS(clock_ports),
	FRAG_PARAMS(clock_params),
	.initialize = clock_initialize,
	.compute = clock_compute,
	.stop = clock_stop,
	.fini = clock_fini,
};
