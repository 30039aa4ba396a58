// SPDX-License-Identifier: Apache-2.0
/* A parameter that lies outside its state. */
#include <frag/frag.h>

struct state {
	int64_t a, b;
};

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct state, a, 1),
	FRAG_PARAM_I64(struct state, b, 1),
};
static const struct frag_op_type type = {
	FRAG_OP_TYPE_INIT,   .name = "short",    .state_size = sizeof(int64_t),
	FRAG_PARAMS(params), .compute = compute,
};
static const struct frag_op_type *const ops[] = {&type};
FRAG_PLUGIN(.name = "tables", FRAG_OPS(ops));
