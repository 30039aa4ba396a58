// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "oracle.h"

/*
 * A graph whose operators wait for each message that they read, and whose queues lose nothing, is a
 * process network in the sense of Kahn (The semantics of a simple language for parallel
 * programming, 1974): what each flow carries follows from the graph, whatever the order of the
 * ticks, with bounded queues too. That includes execution flows, whose messages are all the same,
 * so that it does not matter in which order they are taken, and operators that choose their flows
 * by what they have received. Where it does not hold:
 *
 * - An operator is free when what it reads depends on time: its flows are taken in turn, one of
 *   them drops messages, an input has no condition, or it waits while too many messages wait. What
 *   it emits, and all that comes of that, is not compared.
 * - When an operator ends before its inputs, the operators upstream end too, soon after. How much
 *   they have sent until then depends on time, and so does what is queued where a free operator
 *   stops taking. In such a part of the graph, of two runs one delivers what the other begins with.
 */
struct parts {
	const struct oracle_graph *graph;
	uint32_t part[ORACLE_OPS_MAX]; /* operators that are connected have the same number */
	bool is_free[ORACLE_OPS_MAX];
	bool is_cut[ORACLE_OPS_MAX]; /* [part] */
};

bool oracle_flow_is_lossy(const struct oracle_graph *graph, uint32_t flow)
{
	const struct oracle_flow *f = &graph->flows[flow];

	if (f->execution)
		return false;
	return f->policy == FRAG_POLICY_POP || f->policy == FRAG_POLICY_REJECT ||
	       f->policy == FRAG_POLICY_LATEST || (graph->ops[f->from].free_out >> f->out & 1) != 0;
}

static void join(struct parts *parts, uint32_t a, uint32_t b)
{
	uint32_t from = parts->part[b], to = parts->part[a];

	for (uint32_t i = 0; i < parts->graph->op_count; i++)
		if (parts->part[i] == from)
			parts->part[i] = to;
}

static void find_parts(struct parts *parts)
{
	const struct oracle_graph *graph = parts->graph;

	for (uint32_t i = 0; i < graph->op_count; i++)
		parts->part[i] = i;
	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (oracle_flow_exists(graph, i))
			join(parts, graph->flows[i].from, graph->flows[i].to);
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (!graph->ops[i].removed && graph->ops[i].enable_at > 0)
			join(parts, i, graph->ops[i].enables);
}

/* Operators that are free by themselves. */
static bool is_free(const struct oracle_graph *graph, uint32_t index)
{
	const struct oracle_op *op = &graph->ops[index];
	uint32_t flows[ORACLE_PORTS_MAX] = {0};

	if (op->front_max > 0)
		return true;
	for (uint32_t i = 0; i < graph->flow_count; i++) {
		if (graph->flows[i].to != index || !oracle_flow_exists(graph, i))
			continue;
		if (oracle_flow_is_lossy(graph, i))
			return true;
		if (!graph->flows[i].execution)
			flows[graph->flows[i].in]++;
	}
	for (uint32_t in = 0; in < op->inputs; in++)
		if (flows[in] > 0 &&
		    ((op->free_in >> in & 1) != 0 ||
		     (flows[in] > 1 && (op->multi >> in & 1) == 0 && !op->one_token)))
			return true;
	return false;
}

static void find_free(struct parts *parts)
{
	const struct oracle_graph *graph = parts->graph;
	bool changed = true;

	for (uint32_t i = 0; i < graph->op_count; i++)
		parts->is_free[i] = !graph->ops[i].removed && is_free(graph, i);
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < graph->flow_count; i++) {
			const struct oracle_flow *flow = &graph->flows[i];

			if (!oracle_flow_exists(graph, i) || !parts->is_free[flow->from] ||
			    parts->is_free[flow->to])
				continue;
			parts->is_free[flow->to] = changed = true;
		}
	}
}

/* Returns whether the operator may end before all its inputs have. */
static bool ends_early(const struct oracle_graph *graph, uint32_t index)
{
	const struct oracle_op *op = &graph->ops[index];
	uint32_t connected = oracle_waits_for_execution(graph, index);

	for (uint32_t in = 0; in < op->inputs; in++)
		connected += oracle_input_has_flow(graph, index, in);
	return connected > 1 || (connected > 0 && (op->count > 0 || op->count_condition > 0));
}

void oracle_sameness(const struct oracle_graph *graph, struct oracle_sameness *out)
{
	struct parts parts = {.graph = graph};

	memset(out, 0, sizeof(*out));
	find_parts(&parts);
	find_free(&parts);
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (!graph->ops[i].removed && (parts.is_free[i] || ends_early(graph, i)))
			parts.is_cut[parts.part[i]] = true;
	for (uint32_t i = 0; i < graph->flow_count; i++) {
		uint32_t from = graph->flows[i].from;

		if (!oracle_flow_exists(graph, i))
			continue;
		out->exact[i] = !parts.is_cut[parts.part[from]];
		out->prefix[i] = !parts.is_free[from] && !oracle_flow_is_lossy(graph, i);
	}
}
