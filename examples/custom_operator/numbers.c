// SPDX-License-Identifier: Apache-2.0
#include <frag/frag.h>

/* An operator that sends numbers, and one that prints what arrives. */
struct numbers {
	double start, step;
	int64_t count, sent;
};

enum { OUT };
static const struct frag_port numbers_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "f64"},
};
static const struct frag_param numbers_params[] = {
	FRAG_PARAM_F64(struct numbers, start, 1.0, .headline = "First number"),
	FRAG_PARAM_F64(struct numbers, step, 1.0, .headline = "From one number to the next"),
	FRAG_PARAM_I64(struct numbers, count, 5, .headline = "How many numbers", .min = 1,
		       .max = 1e9),
};

static int numbers_compute(void *state, struct frag_tick *tick)
{
	struct numbers *n = state;
	int r = frag_tick_emit_f64(tick, OUT, n->start + n->step * (double)n->sent);

	if (r < 0)
		return r;
	return ++n->sent < n->count ? 0 : FRAG_DONE;
}

const struct frag_op_type numbers_type = {
	FRAG_OP_TYPE_INIT,
	.name = "numbers",
	.headline = "Sends some numbers",
	.state_size = sizeof(struct numbers),
	FRAG_PORTS(numbers_ports),
	FRAG_PARAMS(numbers_params),
	.compute = numbers_compute,
};

enum { IN };
static const struct frag_port print_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "f64"},
};

static int print_compute(void *state, struct frag_tick *tick)
{
	double x;
	int r = frag_tick_receive_f64(tick, IN, &x);

	(void)state;
	if (r < 0)
		return r;
	frag_op_log(frag_tick_op(tick), "%g", x);
	return 0;
}

const struct frag_op_type print_type = {
	FRAG_OP_TYPE_INIT,       .name = "print",          .headline = "Prints numbers",
	FRAG_PORTS(print_ports), .compute = print_compute,
};

static const struct frag_op_type *const numbers_ops[] = {&numbers_type, &print_type};
FRAG_PLUGIN(.name = "numbers", .version = "1.0.0", FRAG_OPS(numbers_ops));
