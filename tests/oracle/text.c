// SPDX-License-Identifier: Apache-2.0
#include <base/policy.h>

#include "oracle.h"

static void write_number(FILE *out, const char *key, uint32_t value, uint32_t usual)
{
	if (value != usual)
		fprintf(out, ", %s: %u", key, value);
}

static void write_parameters(const struct oracle_op *op, uint32_t index, FILE *out)
{
	fprintf(out, "index: %u", index);
	write_number(out, "inputs", op->inputs, 0);
	write_number(out, "outputs", op->outputs, 0);
	write_number(out, "multi", op->multi, 0);
	write_number(out, "free_in", op->free_in, 0);
	write_number(out, "free_out", op->free_out, 0);
	write_number(out, "take", op->take, 1);
	write_number(out, "emit", op->emit, 1);
	write_number(out, "count", op->count, 0);
	write_number(out, "disable_at", op->disable_at, 0);
	write_number(out, "enable_at", op->enable_at, 0);
	if (op->enable_at > 0)
		write_number(out, "enables", op->enables, 0);
	write_number(out, "work_ns", op->work_ns, 0);
	write_number(out, "work_every", op->work_every, 1);
	write_number(out, "pend_every", op->pend_every, 0);
	write_number(out, "turns", op->turns, 0);
	if (op->routes)
		fprintf(out, ", routes: true");
	if (op->chooses)
		fprintf(out, ", chooses: true");
	if (op->blocks > 0)
		fprintf(out, ", pool: $pool%u", index);
}

static void write_conditions(const struct oracle_graph *graph, uint32_t index, FILE *out)
{
	const struct oracle_op *op = &graph->ops[index];

	fprintf(out, ", conditions: [{type: boolean, enable_tick: %s}",
		op->starts_disabled ? "false" : "true");
	if (op->count_condition > 0)
		fprintf(out, ", {type: count, count: %u}", op->count_condition);
	if (op->period_us > 0)
		fprintf(out, ", {type: periodic, recess_period: %uus}", op->period_us);
	if (op->batch > 0)
		fprintf(out,
			", {type: expiring_message_available, max_batch_size: %u, max_delay_ns: %uus}",
			op->batch, op->delay_us);
	for (uint32_t in = 0;
	     in < op->inputs && op->batch == 0 && (op->take > 1 || op->front_max > 0); in++) {
		if ((op->free_in >> in & 1) != 0)
			continue;
		fprintf(out, ", {type: message_available, receiver: in%u, min_size: %u", in,
			op->take);
		write_number(out, "front_stage_max_size", op->front_max, 0);
		fprintf(out, "}");
	}
	for (uint32_t port = 0; port < op->outputs && op->emit > 1; port++)
		if ((op->free_out >> port & 1) == 0)
			fprintf(out,
				", {type: downstream_affordable, transmitter: out%u, min_size: %u}",
				port, op->emit);
	fprintf(out, "]");
}

static void write_ports(const struct oracle_op *op, FILE *out)
{
	const char *comma = "";

	if ((op->free_in | op->free_out) == 0)
		return;
	fprintf(out, ", ports: {");
	for (uint32_t i = 0; i < op->inputs; i++)
		if ((op->free_in >> i & 1) != 0) {
			fprintf(out, "%sin%u: {condition: none}", comma, i);
			comma = ", ";
		}
	for (uint32_t i = 0; i < op->outputs; i++)
		if ((op->free_out >> i & 1) != 0) {
			fprintf(out, "%sout%u: {condition: none}", comma, i);
			comma = ", ";
		}
	fprintf(out, "}");
}

static void write_op(const struct oracle_graph *graph, uint32_t index, FILE *out)
{
	/* A condition costs the fast way of the evaluation: some operators have none. */
	const struct oracle_op *op = &graph->ops[index];
	bool conditions = op->starts_disabled || op->disable_at > 0 || op->count_condition > 0 ||
			  op->period_us > 0 || op->batch > 0 || op->take > 1 || op->emit > 1 ||
			  op->front_max > 0 || index % 7 == 0;

	fprintf(out, "      n%u: {type: oracle_node, parameters: {", index);
	write_parameters(op, index, out);
	fprintf(out, "}");
	if (conditions)
		write_conditions(graph, index, out);
	write_ports(op, out);
	fprintf(out, "}\n");
}

static void write_flow(const struct oracle_graph *graph, uint32_t index, bool between, FILE *out)
{
	const struct oracle_flow *flow = &graph->flows[index];

	fprintf(out,
		between ? "  - {from: f%u." : "      - {from: ", graph->ops[flow->from].fragment);
	if (flow->execution)
		fprintf(out, "n%u.__output_exec__, to: ", flow->from);
	else
		fprintf(out, "n%u.out%u, to: ", flow->from, flow->out);
	if (between)
		fprintf(out, "f%u.", graph->ops[flow->to].fragment);
	if (flow->execution)
		fprintf(out, "n%u.__input_exec__", flow->to);
	else
		fprintf(out, "n%u.in%u", flow->to, flow->in);
	if (oracle_is_dynamic(&graph->ops[flow->from]))
		fprintf(out, ", dynamic: true");
	if (flow->policy != FRAG_POLICY_LATEST)
		fprintf(out, ", capacity: %u", flow->capacity);
	fprintf(out, ", policy: %s}\n", fragi_policy(flow->policy)->name);
}

/* Writes those of a fragment, or those between fragments (fragment_count). */
static void write_flows(const struct oracle_graph *graph, uint32_t fragment, FILE *out)
{
	bool any = false, between = fragment == graph->fragment_count;

	for (uint32_t i = 0; i < graph->flow_count; i++) {
		uint32_t from = graph->ops[graph->flows[i].from].fragment;
		uint32_t to = graph->ops[graph->flows[i].to].fragment;

		if (!oracle_flow_exists(graph, i) ||
		    (between ? from == to : from != fragment || to != fragment))
			continue;
		if (!any)
			fprintf(out, between ? "flows:\n" : "    flows:\n");
		any = true;
		write_flow(graph, i, between, out);
	}
	for (uint32_t i = 0; i < graph->op_count && !between; i++) {
		if (graph->ops[i].removed || !graph->ops[i].started ||
		    graph->ops[i].fragment != fragment)
			continue;
		if (!any)
			fprintf(out, "    flows:\n");
		any = true;
		fprintf(out, "      - <|start|> -> n%u.__input_exec__\n", i);
	}
}

static bool fragment_has_ops(const struct oracle_graph *graph, uint32_t fragment)
{
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (!graph->ops[i].removed && graph->ops[i].fragment == fragment)
			return true;
	return false;
}

/* Writes the operators of a pool that are pinned, or those that are not. */
static void write_members(const struct oracle_graph *graph, uint32_t fragment, uint32_t pool,
			  bool pinned, FILE *out)
{
	const char *comma = "";

	for (uint32_t i = 0; i < graph->op_count; i++) {
		const struct oracle_op *op = &graph->ops[i];

		if (op->removed || op->fragment != fragment || op->pool != pool ||
		    op->pinned != pinned)
			continue;
		if (comma[0] == '\0')
			fprintf(out, "        - {pin_operator: %s, operators: [",
				pinned ? "true" : "false");
		fprintf(out, "%sn%u", comma, i);
		comma = ", ";
	}
	if (comma[0] != '\0')
		fprintf(out, "]}\n");
}

static bool pool_has_ops(const struct oracle_graph *graph, uint32_t fragment, uint32_t pool)
{
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (!graph->ops[i].removed && graph->ops[i].fragment == fragment &&
		    graph->ops[i].pool == pool)
			return true;
	return false;
}

static void write_pools(const struct oracle_graph *graph, uint32_t fragment, FILE *out)
{
	bool any = false;

	for (uint32_t pool = 1; pool <= ORACLE_POOLS_MAX; pool++) {
		if (!pool_has_ops(graph, fragment, pool))
			continue;
		if (!any)
			fprintf(out, "    thread_pools:\n");
		any = true;
		fprintf(out, "      p%u:\n        initial_size: %u\n        add:\n", pool,
			graph->pool_sizes[pool]);
		write_members(graph, fragment, pool, false, out);
		write_members(graph, fragment, pool, true, out);
	}
}

static void write_fragment(const struct oracle_graph *graph, uint32_t fragment,
			   const char *scheduler, FILE *out)
{
	bool any = false;

	fprintf(out, "  f%u:\n    scheduler: %s\n", fragment, scheduler);
	write_pools(graph, fragment, out);
	for (uint32_t i = 0; i < graph->op_count; i++) {
		const struct oracle_op *op = &graph->ops[i];

		if (op->removed || op->fragment != fragment || op->blocks == 0)
			continue;
		if (!any)
			fprintf(out, "    resources:\n");
		any = true;
		fprintf(out,
			"      pool%u: {type: block_memory_pool, block_size: 64, num_blocks: %u}\n",
			i, op->blocks);
	}
	fprintf(out, "    operators:\n");
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (!graph->ops[i].removed && graph->ops[i].fragment == fragment)
			write_op(graph, i, out);
	write_flows(graph, fragment, out);
}

void oracle_graph_write(const struct oracle_graph *graph, const char *scheduler, bool extension,
			FILE *out)
{
	fprintf(out, "frag: 1\napplication: oracle\n");
	if (extension)
		fprintf(out, "extensions: [liboracle.so]\n");
	if (graph->manual_clock)
		fprintf(out, "clock: {type: manual}\n");
	fprintf(out, "fragments:\n");
	for (uint32_t i = 0; i < graph->fragment_count; i++)
		if (fragment_has_ops(graph, i))
			write_fragment(graph, i, scheduler, out);
	write_flows(graph, graph->fragment_count, out);
}
