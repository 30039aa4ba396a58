// SPDX-License-Identifier: Apache-2.0
/* An operator whose values have a type that another library brings. */
#include <frag/frag.h>

static const struct frag_port ports[] = {{.name = "in", .dir = FRAG_IN, .type = "pose"}};

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static const struct frag_op_type type = {FRAG_OP_TYPE_INIT, .name = "borrower", FRAG_PORTS(ports),
					 .compute = compute};
static const struct frag_op_type *const ops[] = {&type};
FRAG_PLUGIN(.name = "borrower", FRAG_OPS(ops));
