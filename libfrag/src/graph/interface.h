/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_INTERFACE_H
#define FRAGI_GRAPH_INTERFACE_H

#include <graph/resolve.h>

/*
 * Interface ports of subgraphs that hosts have composed: puts the inner ports in the place of ends
 * that name them. With them each end names an operator, so nobody else knows of interface ports.
 * Returns 0 and the flows, which are specs itself where nothing changes and otherwise live in
 * arena; -EINVAL with errors in diag, and the flows without the ends that are wrong; -ENOMEM. The
 * other parameters are as for fragi_flows_resolve.
 */
FRAGI_API int fragi_interfaces_apply(struct fragi_arena *arena, const struct fragi_spec_flow *specs,
				     size_t spec_count, int own_fragment,
				     const struct fragi_fragment_info *fragments,
				     size_t fragment_count, struct fragi_diag *diag,
				     const struct fragi_spec_flow **out_specs, size_t *out_count);

#endif
