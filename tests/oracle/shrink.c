// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "oracle.h"

/*
 * Makes a failing graph smaller: removes operators, many at a time at first, then flows, then what
 * is special about the operators and flows that are left. A change stays when the graph still
 * fails.
 */
struct shrinking {
	struct oracle_graph *graph;
	bool (*fails)(const struct oracle_graph *graph);
};

static bool try(struct shrinking *shrinking, const struct oracle_graph *changed)
{
	static struct oracle_graph mended;

	if (memcmp(changed, shrinking->graph, sizeof(*changed)) == 0)
		return false;
	mended = *changed;
	oracle_graph_mend(&mended);
	if (!shrinking->fails(&mended))
		return false;
	*shrinking->graph = mended;
	return true;
}

static bool remove_ops(struct shrinking *shrinking, uint32_t at_once)
{
	static struct oracle_graph changed;
	bool any = false;

	for (uint32_t i = 0; i < shrinking->graph->op_count; i += at_once) {
		changed = *shrinking->graph;
		for (uint32_t k = i; k < i + at_once && k < changed.op_count; k++)
			changed.ops[k].removed = true;
		any |= try(shrinking, &changed);
	}
	return any;
}

static bool remove_flows(struct shrinking *shrinking)
{
	static struct oracle_graph changed;
	bool any = false;

	for (uint32_t i = 0; i < shrinking->graph->flow_count; i++) {
		if (!oracle_flow_exists(shrinking->graph, i))
			continue;
		changed = *shrinking->graph;
		changed.flows[i].removed = true;
		any |= try(shrinking, &changed);
	}
	return any;
}

/* One property of an operator as it usually is. */
static void simplify(struct oracle_op *op, uint32_t property)
{
	uint32_t *const zeros[] = {&op->work_ns,  &op->period_us,  &op->pend_every, &op->blocks,
				   &op->multi,    &op->disable_at, &op->enable_at,  &op->free_in,
				   &op->free_out, &op->front_max,  &op->pool,       &op->batch};
	const uint32_t count = sizeof(zeros) / sizeof(zeros[0]);

	if (property < count)
		*zeros[property] = 0;
	else if (property == count)
		op->starts_disabled = op->routes = false;
	else if (property == count + 1)
		op->take = op->emit = 1;
	else if (property == count + 2)
		op->chooses = false;
	else if (property == count + 3)
		op->turns /= 2;
	else if (property == count + 4)
		op->pinned = false;
	else if (op->count > 1)
		op->count /= 2;
	else if (op->count_condition > 1)
		op->count_condition /= 2;
}
#define PROPERTIES 18u

static bool simplify_all(struct shrinking *shrinking)
{
	static struct oracle_graph changed;
	bool any = false;

	for (uint32_t i = 0; i < shrinking->graph->op_count; i++)
		for (uint32_t k = 0; k < PROPERTIES && !shrinking->graph->ops[i].removed; k++) {
			changed = *shrinking->graph;
			simplify(&changed.ops[i], k);
			any |= try(shrinking, &changed);
		}
	changed = *shrinking->graph;
	for (uint32_t i = 0; i < changed.op_count; i++)
		changed.ops[i].fragment = 0;
	changed.fragment_count = 1;
	return try(shrinking, &changed) || any;
}

void oracle_shrink(struct oracle_graph *graph, bool (*fails)(const struct oracle_graph *graph))
{
	struct shrinking shrinking = {graph, fails};
	bool any = true;

	for (uint32_t at_once = graph->op_count / 2; at_once > 1; at_once /= 2)
		remove_ops(&shrinking, at_once);
	while (any) {
		any = remove_ops(&shrinking, 1);
		any |= remove_flows(&shrinking);
		any |= simplify_all(&shrinking);
	}
}
