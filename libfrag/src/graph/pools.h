/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_POOLS_H
#define FRAGI_GRAPH_POOLS_H

#include <graph/op.h>

/*
 * Pools of blocks, and the flows whose messages hold them: how many blocks a graph needs, and which
 * pool has too few.
 */

/*
 * Computes how many blocks of each pool of a fragment can be in use at a time, keeps that in the
 * resource, and adds a warning to `warnings` for each pool that has fewer, and for a fragment whose
 * pools take more memory of GPUs than its gpuMemoryLimit.
 * - index: of the fragment in the tables that `between` refers to
 * - between: flows between fragments; those from other fragments are skipped
 * Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_pools_check(const struct frag_fragment *fragment, uint32_t index,
				const struct fragi_flow_info *between, size_t between_count,
				struct fragi_diag *warnings);
/* Logs the warnings in the order of the file. */
FRAGI_API void fragi_pools_warn(struct fragi_diag *warnings);
/* The resource that is the operator's i-th parameter; NULL: it is none, or not given. */
FRAGI_API struct frag_resource *fragi_op_resource(const struct frag_op *op, uint32_t param);
/* Whether the operator has the resource as a parameter. */
bool fragi_op_uses(const struct frag_op *op, const struct frag_resource *resource);
/* Returns a pool of the operator that has refused a block; NULL: none. Thread: any. */
FRAGI_API struct frag_resource *fragi_op_starved_pool(const struct frag_op *op);
/* Whether messages of the port may hold blocks: values and execution messages have no tensors. */
static inline bool fragi_port_may_carry_tensors(const struct fragi_port *port)
{
	return port->type == NULL && !fragi_port_is_execution(port->name);
}

#endif
