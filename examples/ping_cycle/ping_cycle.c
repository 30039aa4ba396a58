// SPDX-License-Identifier: Apache-2.0
#include <frag/frag.h>

/* Adds 1 to a number and passes it on. */
enum { IN, OUT };
static const struct frag_port increment_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "i64"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64"},
};

static int increment_compute(void *state, struct frag_tick *tick)
{
	int64_t value;
	int r = frag_tick_receive_i64(tick, IN, &value);

	(void)state;
	if (r < 0)
		return r;
	frag_op_log(frag_tick_op(tick), "received %lld", (long long)value);
	return frag_tick_emit_i64(tick, OUT, value + 1);
}

static const struct frag_op_type increment_type = {
	FRAG_OP_TYPE_INIT,           .name = "increment",          .headline = "Adds 1 to a number",
	FRAG_PORTS(increment_ports), .compute = increment_compute,
};

static const struct frag_op_type *const ops[] = {&increment_type};
FRAG_PLUGIN(.name = "ping_cycle", .version = "1.0.0", FRAG_OPS(ops));
