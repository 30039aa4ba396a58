// SPDX-License-Identifier: Apache-2.0
#include <frag/frag.h>

struct scale {
	double factor;
	int64_t seen;
};

enum { IN, OUT };
static const struct frag_port scale_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "f64"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "f64"},
};
static const struct frag_param scale_params[] = {
	FRAG_PARAM_F64(struct scale, factor, 2.0, .headline = "Factor",
		       .flags = FRAG_PARAM_DYNAMIC),
};

static int scale_compute(void *state, struct frag_tick *tick)
{
	struct scale *s = state;
	double x;
	int r = frag_tick_receive_f64(tick, IN, &x);

	if (r < 0)
		return r;
	s->seen++;
	return frag_tick_emit_f64(tick, OUT, s->factor * x);
}

const struct frag_op_type scale_type = {
	FRAG_OP_TYPE_INIT,
	.name = "scale",
	.headline = "Multiplies a number",
	.state_size = sizeof(struct scale),
	FRAG_PORTS(scale_ports),
	FRAG_PARAMS(scale_params),
	.compute = scale_compute,
};
static const struct frag_op_type *const scale_ops[] = {&scale_type};
FRAG_PLUGIN(.name = "scale", .version = "1.0.0", FRAG_OPS(scale_ops));
