// SPDX-License-Identifier: Apache-2.0
/*
 * An operator for graphs as Holoscan's tests have them. Each tick takes one message of `a` and of
 * `b` if there is one, prints what it took, and sends the number of the tick.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <frag/frag.h>

struct ported {
	bool all, stop_fails;
	int64_t disable_at, ticks;
};

static const struct frag_param params[] = {
	FRAG_PARAM_BOOL(struct ported, all, false, .headline = "Takes all messages that wait"),
	FRAG_PARAM_BOOL(struct ported, stop_fails, false, .headline = "Fails in stop"),
	FRAG_PARAM_I64(struct ported, disable_at, 0,
		       .headline = "Tick in which it disables its condition `switch`; 0: none"),
};

enum { A, B, X };
static const struct frag_port ports[] = {
	[A] = {.name = "a", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_OPTIONAL},
	[B] = {.name = "b", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_OPTIONAL},
	[X] = {.name = "x", .dir = FRAG_OUT, .type = "i64"},
};

static int ported_compute(void *state, struct frag_tick *tick)
{
	struct ported *s = state;
	struct frag_op *op = frag_tick_op(tick);
	char taken[256] = "";
	size_t length = 0;

	s->ticks++;
	for (uint32_t port = A; port <= B; port++) {
		int64_t value;

		while (frag_tick_receive_i64(tick, port, &value) == 0) {
			length += (size_t)snprintf(taken + length, sizeof(taken) - length,
						   " %" PRId64, value);
			if (!s->all || length > sizeof(taken) - 24)
				break;
		}
	}
	frag_op_log(op, "count %" PRId64 " took%s", s->ticks, taken);
	if (s->ticks == s->disable_at)
		frag_condition_disable_tick(frag_op_condition(op, "switch"));
	return frag_tick_emit_i64(tick, X, s->ticks);
}

static int ported_stop(void *state, struct frag_op *op)
{
	return ((const struct ported *)state)->stop_fails
		       ? frag_op_fail(op, -EIO, "the disk is full")
		       : 0;
}

static const struct frag_op_type ported = {
	FRAG_OP_TYPE_INIT,
	.name = "ported",
	.headline = "Prints what it takes, and sends the number of its tick",
	.state_size = sizeof(struct ported),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.compute = ported_compute,
	.stop = ported_stop,
};

static const struct frag_op_type *const ops[] = {&ported};
FRAG_PLUGIN(.name = "ported", .version = "1.0.0", FRAG_OPS(ops));
