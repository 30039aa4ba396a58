// SPDX-License-Identifier: Apache-2.0
#include <frag/frag.h>

struct hello {
	const char *name;
};

static const struct frag_param hello_params[] = {
	FRAG_PARAM_STRING(struct hello, name, "world", .headline = "Whom to greet"),
};

static int hello_compute(void *state, struct frag_tick *tick)
{
	const struct hello *h = state;

	frag_op_log(frag_tick_op(tick), "Hello, %s!", h->name);
	return FRAG_DONE; /* once is enough */
}

static const struct frag_op_type hello_type = {
	FRAG_OP_TYPE_INIT,         .name = "hello",
	.headline = "Says hello",  .state_size = sizeof(struct hello),
	FRAG_PARAMS(hello_params), .compute = hello_compute,
};
static const struct frag_op_type *const hello_ops[] = {&hello_type};
FRAG_PLUGIN(.name = "hello", .version = "1.0.0", FRAG_OPS(hello_ops));
