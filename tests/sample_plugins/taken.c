// SPDX-License-Identifier: Apache-2.0
/* Lists a name that libgood.so lists too. */
#include <frag/frag.h>

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static const struct frag_op_type fresh = {FRAG_OP_TYPE_INIT, .name = "fresh", .compute = compute};
static const struct frag_op_type scale = {FRAG_OP_TYPE_INIT, .name = "scale", .compute = compute};
static const struct frag_op_type *const ops[] = {&fresh, &scale};
FRAG_PLUGIN(.name = "taken", FRAG_OPS(ops));
