// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "bench.h"

/* Sends `count` numbers, each on the next of its flows in turn. */
struct router {
	int64_t count, next;
	const struct frag_flow_info *const *flows;
	uint32_t flow_count;
};

static const struct frag_port router_ports[] = {
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param router_params[] = {
	FRAG_PARAM_I64(struct router, count, 0),
};

static int router_choose(void *state, struct frag_tick *tick, void *arg)
{
	const struct router *s = state;

	return frag_tick_add_dynamic_flow_info(tick, s->flows[s->next % s->flow_count]);
}

static int router_setup(void *state, struct frag_op *op)
{
	return frag_set_dynamic_flows(op, router_choose, NULL);
}

static int router_start(void *state, struct frag_op *op)
{
	struct router *s = state;

	s->flow_count = frag_op_next_flows(op, &s->flows);
	return s->flow_count > 0 ? 0 : frag_op_fail(op, -EINVAL, "no flow leads away");
}

static int router_compute(void *state, struct frag_tick *tick)
{
	struct router *s = state;
	int r = frag_tick_emit_i64(tick, 0, s->next);

	if (r < 0)
		return r;
	return ++s->next == s->count ? FRAG_DONE : 0;
}

const struct frag_op_type bench_router_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_router",
	.headline = "Sends numbers on one flow after the other",
	.state_size = sizeof(struct router),
	FRAG_PORTS(router_ports),
	FRAG_PARAMS(router_params),
	.setup = router_setup,
	.start = router_start,
	.compute = router_compute,
};
