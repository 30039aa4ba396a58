// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

int bench_load_init(struct bench_load *load, struct frag_op *op, uint64_t bytes)
{
	int64_t shape = (int64_t)bytes;
	int r;

	if (bytes <= sizeof(int64_t))
		return 0;
	r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &shape,
			       &load->tensor);
	if (r < 0)
		return frag_op_fail(op, r, "no memory for a tensor of %" PRIu64 " bytes", bytes);
	memset(frag_tensor_writable(load->tensor), 1, bytes);
	return 0;
}

int bench_load_emit(struct bench_load *load, struct frag_tick *tick, uint32_t port, int64_t value)
{
	if (load->tensor == NULL)
		return frag_tick_emit_i64(tick, port, value);
	return frag_tick_emit_tensor(tick, port, "", frag_tensor_ref(load->tensor));
}

void bench_load_fini(struct bench_load *load)
{
	frag_tensor_unref(load->tensor);
	load->tensor = NULL;
}

/* Sends `count` messages, 0: without end; each takes work_ns. */
struct source {
	int64_t count, work_ns, next;
	uint64_t bytes;
	struct bench_load load;
};

static const struct frag_port source_ports[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_param source_params[] = {
	FRAG_PARAM_I64(struct source, count, 0),
	FRAG_PARAM_I64(struct source, work_ns, 0),
	FRAG_PARAM_SIZE(struct source, bytes, 8),
};

static int source_initialize(void *state, struct frag_op *op)
{
	struct source *s = state;

	return bench_load_init(&s->load, op, s->bytes);
}

static int source_compute(void *state, struct frag_tick *tick)
{
	struct source *s = state;
	int64_t until_ns = s->work_ns > 0 ? bench_now_ns() + s->work_ns : 0;
	int r;

	while (until_ns > 0 && bench_now_ns() < until_ns)
		;
	r = bench_load_emit(&s->load, tick, 0, s->next);
	if (r < 0)
		return r;
	return ++s->next == s->count ? FRAG_DONE : 0;
}

static void source_fini(void *state, struct frag_op *op)
{
	bench_load_fini(&((struct source *)state)->load);
}

const struct frag_op_type bench_source_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_source",
	.headline = "Sends numbers or tensors",
	.state_size = sizeof(struct source),
	FRAG_PORTS(source_ports),
	FRAG_PARAMS(source_params),
	.initialize = source_initialize,
	.compute = source_compute,
	.fini = source_fini,
};

static const struct frag_port pass_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64"},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};

/* A new message for each: the dearer of the two ways to pass something on. */
static int pass_compute(void *state, struct frag_tick *tick)
{
	int64_t x;
	int r = frag_tick_receive_i64(tick, 0, &x);

	return r < 0 ? r : frag_tick_emit_i64(tick, 1, x);
}

const struct frag_op_type bench_pass_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_pass",
	.headline = "Receives a number and sends it",
	FRAG_PORTS(pass_ports),
	.compute = pass_compute,
};

/* Receives a number of each flow, computes for work_ns, and sends one. */
struct work {
	int64_t work_ns;
};

static const struct frag_port work_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_MULTI},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param work_params[] = {FRAG_PARAM_I64(struct work, work_ns, 0)};

static int work_compute(void *state, struct frag_tick *tick)
{
	int64_t until_ns = bench_now_ns() + ((struct work *)state)->work_ns;
	const int64_t *const *numbers;
	int count = frag_tick_receive_all_i64(tick, 0, &numbers);

	if (count < 1)
		return count;
	while (bench_now_ns() < until_ns)
		;
	return frag_tick_emit_i64(tick, 1, *numbers[0]);
}

const struct frag_op_type bench_work_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_work",
	.headline = "Receives numbers, computes and sends one",
	.state_size = sizeof(struct work),
	FRAG_PORTS(work_ports),
	FRAG_PARAMS(work_params),
	.compute = work_compute,
};

/*
 * Receives what comes; with `file` writes "count first_ns last_ns" there when it stops, as from the
 * message behind the `warm_up` first. With `last` it reads the clock for the first and for that
 * message only, so that reading it is no part of what is measured.
 */
struct sink {
	const char *file;
	uint64_t warm_up, last;
	int64_t count, first_ns, last_ns;
};

static const struct frag_port sink_ports[] = {{.name = "in", .dir = FRAG_IN}};
static const struct frag_param sink_params[] = {
	FRAG_PARAM_STRING(struct sink, file, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_SIZE(struct sink, warm_up, 0),
	FRAG_PARAM_SIZE(struct sink, last, 0),
};

static int sink_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	struct sink *s = state;
	int r = frag_tick_receive(tick, 0, &message);

	if (r < 0)
		return r;
	if (s->warm_up > 0) {
		s->warm_up--;
		return 0;
	}
	s->count++;
	if (s->file == NULL || (s->count != 1 && s->last != 0 && (uint64_t)s->count != s->last))
		return 0;
	s->last_ns = bench_now_ns();
	if (s->count == 1)
		s->first_ns = s->last_ns;
	return 0;
}

static int sink_stop(void *state, struct frag_op *op)
{
	struct sink *s = state;
	FILE *f;

	if (s->file == NULL)
		return 0;
	f = fopen(s->file, "w");
	if (f == NULL)
		return frag_op_fail(op, -errno, "cannot write %s: %s", s->file, strerror(errno));
	fprintf(f, "%" PRId64 " %" PRId64 " %" PRId64 "\n", s->count, s->first_ns, s->last_ns);
	return fclose(f) == 0 ? 0 : -EIO;
}

const struct frag_op_type bench_sink_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_sink",
	.headline = "Receives and counts",
	.state_size = sizeof(struct sink),
	FRAG_PORTS(sink_ports),
	FRAG_PARAMS(sink_params),
	.compute = sink_compute,
	.stop = sink_stop,
};
