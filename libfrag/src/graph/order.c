// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/alloc.h>
#include <graph/op.h>

/*
 * Kahn's algorithm; among operators whose predecessors are all done the one composed first comes next. When
 * only cycles are left, the next is the first that something done leads to (the way into a cycle that has a
 * root), else the first of all: the first operator of the first add_flow or add_operator.
 */
static uint32_t next_op(const uint32_t *waits_for, const bool *done, const bool *reached, uint32_t count)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++) {
		if (done[i])
			continue;
		if (waits_for[i] == 0)
			return i;
		if (best == UINT32_MAX || (reached[i] && !reached[best]))
			best = i;
	}
	return best;
}

const uint32_t *fragi_fragment_order(struct frag_fragment *fragment)
{
	uint32_t count = fragment->op_count, next;
	uint32_t *order, *waits_for;
	bool *done, *reached;
	const struct fragi_flow_info *flow;

	if (fragment->order != NULL)
		return fragment->order;
	order = fragi_arena_alloc(&fragment->arena, (count + 1) * sizeof(*order));
	waits_for = fragi_calloc(count + 1, sizeof(*waits_for));
	done = fragi_calloc(count + 1, 2 * sizeof(*done));
	if (order == NULL || waits_for == NULL || done == NULL) {
		order = NULL;
		goto out;
	}
	reached = done + count + 1;
	for (size_t i = 0; i < fragment->flow_count; i++)
		if (fragment->flows[i].from_op != fragment->flows[i].to_op)
			waits_for[fragment->flows[i].to_op]++;
	for (uint32_t i = 0; i < count; i++) {
		next = next_op(waits_for, done, reached, count);
		order[i] = next;
		done[next] = true;
		for (size_t j = 0; j < fragment->flow_count; j++) {
			flow = &fragment->flows[j];
			if (flow->from_op != next || flow->to_op == next)
				continue;
			waits_for[flow->to_op]--;
			reached[flow->to_op] = true;
		}
	}
	fragment->order = order;
out:
	fragi_free(waits_for);
	fragi_free(done);
	return order;
}
