// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/policy.h>
#include <base/units.h>
#include <graph/outlet.h>
#include <graph/predict.h>

/* Prints a prediction with its arithmetic, and warns of what will not work. */

#define SLACK 1.000001

struct printing {
	const struct fragi_prediction *prediction;
	const struct fragi_spec *spec;
	const struct fragi_fragment_info *fragments;
	const struct fragi_flow_info *flows;
	size_t flow_count;
	uint32_t cores;
	FILE *out;
	struct fragi_diag *warnings;
};

/* "30", "29.97", "1500" a second. */
static const char *number(double x, char *out, size_t size)
{
	snprintf(out, size, "%.4g", x);
	if (x >= 10000)
		snprintf(out, size, "%.0f", x);
	return out;
}

static const char *seconds(double s, char *out, size_t size)
{
	return fragi_format_duration((int64_t)(s * 1e9 + 0.5), out, size);
}

static void print_op(const struct printing *p, uint32_t f, size_t i)
{
	const struct fragi_predicted_op *op = &p->prediction->ops[p->prediction->first_op[f] + i];
	const struct fragi_spec_operator *own =
		fragi_predict_spec(&p->spec->fragments[f], p->fragments[f].ops[i].name, i);
	const char *name = p->fragments[f].ops[i].name;
	char rate[32], demand[32], most[32], budget[32], subject[2 * FRAG_NAME_MAX + 2];
	double load = op->demand * (double)op->budget_ns / 1e9;

	if (op->demand <= 0)
		return;
	number(op->rate, rate, sizeof(rate));
	number(op->demand, demand, sizeof(demand));
	snprintf(subject, sizeof(subject), "%s.%s", p->fragments[f].name, name);
	fprintf(p->out, "  %s: ", subject);
	if (op->budget_ns > 0)
		fprintf(p->out, "%s a second x %s = %.3g %% of a thread", demand,
			fragi_format_duration(op->budget_ns, budget, sizeof(budget)), load * 100);
	else
		fprintf(p->out, "%s a second", demand);
	if (op->rate * SLACK < op->demand)
		fprintf(p->out, "; it will be %s a second", rate);
	fputc('\n', p->out);
	if (load <= SLACK)
		return;
	number(1e9 / (double)op->budget_ns, most, sizeof(most));
	fragi_node_error(
		p->warnings, own != NULL ? own->place : NULL, subject,
		"overload: %s ticks a second are asked for, and a budget of %s allows %s (%s x %s = %.3g %% of a thread); lower the rate, shorten the budget, or share the work between several operators",
		demand, budget, most, demand, budget, load * 100);
}

/*
 * What holds for a flow between fragments where their hosts are two. Under block and fault the
 * window bounds what waits at both ends and on the way, and the credit comes back when a message is
 * taken. Else it comes back when one arrives: up to a window waits to be sent, another one travels,
 * and the queue is the receiver's. How long an edge takes is measured, not declared.
 */
static void print_between(const struct printing *p, size_t i, const char *subject)
{
	const struct fragi_flow_info *flow = &p->flows[i];
	const struct fragi_predicted_flow *predicted = &p->prediction->flows[i];
	bool blocks = fragi_policy(flow->policy)->blocking;
	double way_s =
		(double)flow->capacity / predicted->offered - (blocks ? predicted->wait_s : 0);
	char offered[32], wait[32], way[32];

	if (flow->from_fragment == flow->to_fragment)
		return;
	fprintf(p->out, "  %s, between hosts: ", subject);
	if (!blocks)
		fprintf(p->out, "%u to be sent, %u on the way and %u here at most; ",
			flow->capacity, flow->capacity, flow->capacity);
	if (way_s <= 0) {
		fputs("the sender waits, however fast the edge is\n", p->out);
		return;
	}
	fprintf(p->out, "%u / %s a second", flow->capacity,
		number(predicted->offered, offered, sizeof(offered)));
	if (blocks)
		fprintf(p->out, " - %s", seconds(predicted->wait_s, wait, sizeof(wait)));
	fprintf(p->out,
		" = %s for the way there and the credit back, or %s; only a run shows how long that takes\n",
		seconds(way_s, way, sizeof(way)),
		blocks ? "the sender waits" : "messages are lost at the sender");
}

static void print_flow(const struct printing *p, size_t i)
{
	const struct fragi_flow_info *flow = &p->flows[i];
	const struct fragi_predicted_flow *predicted = &p->prediction->flows[i];
	char from[4 * FRAG_NAME_MAX], to[4 * FRAG_NAME_MAX], offered[32], excess[32], full[32],
		wait[32], subject[8 * FRAG_NAME_MAX + 8];
	double more = predicted->offered - predicted->taken;

	if (predicted->offered <= 0)
		return;
	snprintf(subject, sizeof(subject), "%s -> %s",
		 fragi_flow_from(p->fragments, flow, from, sizeof(from)),
		 fragi_flow_to(p->fragments, flow, to, sizeof(to)));
	number(predicted->offered, offered, sizeof(offered));
	fprintf(p->out, "  %s: ", subject);
	if (predicted->offered <= predicted->taken * SLACK) {
		fprintf(p->out,
			"%s a second x %s until one is taken = %.3g: %u wait%s, and the queue holds %u\n",
			offered, seconds(predicted->wait_s, wait, sizeof(wait)),
			predicted->offered * predicted->wait_s, predicted->depth,
			predicted->depth == 1 ? "s" : "", flow->capacity);
		print_between(p, i, subject);
		if (predicted->depth <= flow->capacity)
			return;
		fragi_node_error(
			p->warnings, flow->place, subject,
			fragi_policy(flow->policy)->blocking
				? "%u messages will wait at times (%s a second x %s), and the queue holds %u: the sender will wait; set capacity to %u"
				: "%u messages will wait at times (%s a second x %s), and the queue holds %u: some will be lost; set capacity to %u",
			predicted->depth, offered, wait, flow->capacity, predicted->depth);
		return;
	}
	number(more, excess, sizeof(excess));
	fprintf(p->out,
		"%s a second, and %.4g are taken: the queue of %u is full after %s, then %s\n",
		offered, predicted->taken, flow->capacity,
		seconds((double)flow->capacity / more, full, sizeof(full)),
		fragi_policy(flow->policy)->blocking ? "the sender waits" : "messages are lost");
	print_between(p, i, subject);
	if (!fragi_policy(flow->policy)->blocking)
		fragi_node_error(
			p->warnings, flow->place, subject,
			"%s of %s messages a second will be lost: the receiver takes %.4g; lower the rate, or make it faster",
			excess, offered, predicted->taken);
}

static void print_threads(const struct printing *p, uint32_t f)
{
	uint32_t threads =
		fragi_predict_threads(&p->spec->fragments[f], p->fragments[f].op_count, p->cores);
	const struct fragi_predicted_op *ops = &p->prediction->ops[p->prediction->first_op[f]];
	double load = 0;

	for (size_t i = 0; i < p->fragments[f].op_count; i++)
		load += ops[i].rate * (double)ops[i].budget_ns / 1e9;
	if (load <= 0)
		return;
	fprintf(p->out, "  %s: %.3g %% of a thread in all, and there %s %u\n", p->fragments[f].name,
		load * 100, threads == 1 ? "is" : "are", threads);
	if (load <= threads * SLACK)
		return;
	fragi_node_error(
		p->warnings, p->spec->fragments[f].place, p->fragments[f].name,
		"overload: its operators need %.3g %% of a thread together, and the scheduler has %u; give it %u, or lower the rates",
		load * 100, threads, (uint32_t)load + 1);
}

static bool names(const struct fragi_spec_operator *op, const char *resource)
{
	for (size_t i = 0; i < op->setting_count; i++) {
		const struct fragi_node *value = op->settings[i].value;

		if (value->kind == FRAGI_NODE_SCALAR && value->text[0] == '$' &&
		    strcmp(value->text + 1, resource) == 0)
			return true;
	}
	return false;
}

/*
 * The blocks of the messages of one output: the one that is filled and those that wait, which a
 * blocking queue has room for, and the one that the receiver computes with. Receivers of the same
 * message share its block: the slowest one counts. 0: not known.
 */
static uint64_t blocks_of_port(const struct printing *p, uint32_t f, uint32_t op, uint32_t port,
			       const char **out_receiver)
{
	uint64_t most = 0;

	for (size_t i = 0; i < p->flow_count; i++) {
		const struct fragi_flow_info *flow = &p->flows[i];
		uint64_t depth = p->prediction->flows[i].depth, blocks;

		if (flow->from_fragment != f || flow->from_op != op || flow->from_port != port)
			continue;
		if (depth == 0)
			return 0;
		if (fragi_policy(flow->policy)->blocking)
			blocks = depth < flow->capacity ? depth + 1 : flow->capacity;
		else
			blocks = (depth < flow->capacity ? depth : flow->capacity) + 1;
		if (blocks < most)
			continue;
		most = blocks;
		*out_receiver = p->fragments[flow->to_fragment].ops[flow->to_op].name;
	}
	return most;
}

/* The flows of one output, by the rule of outlet.h, with the terms. Returns their sum. */
static uint64_t blocks_of_outlet(const struct printing *p, uint32_t f, uint32_t op, uint32_t port,
				 bool is_first, FILE *out)
{
	const struct fragi_op_info *info = &p->fragments[f].ops[op];
	struct fragi_outlet all = {0};

	for (size_t i = 0; i < p->flow_count; i++) {
		const struct fragi_flow_info *flow = &p->flows[i];

		if (flow->from_fragment == f && flow->from_op == op && flow->from_port == port)
			fragi_outlet_add(&all, flow, flow->to_fragment != f, false);
	}
	fprintf(out, "%s%llu at %s.%s", is_first ? "" : " + ", (unsigned long long)all.newest,
		info->name, info->ports[port].name);
	for (size_t i = 0; i < p->flow_count; i++) {
		const struct fragi_flow_info *flow = &p->flows[i];
		struct fragi_outlet one = {0};

		if (flow->from_fragment != f || flow->from_op != op || flow->from_port != port)
			continue;
		fragi_outlet_add(&one, flow, flow->to_fragment != f, false);
		if (one.older > 0)
			fprintf(out, " + %llu more of its flow to %s.%s",
				(unsigned long long)one.older, p->fragments[flow->to_fragment].name,
				p->fragments[flow->to_fragment].ops[flow->to_op].name);
	}
	return all.newest + all.older;
}

/*
 * The blocks of the messages of one operator, whatever the rates are, where its flows to other
 * fragments leave their host. Returns their sum; 0: it has no such flows.
 */
static uint64_t blocks_between(const struct printing *p, uint32_t f, uint32_t op, FILE *out)
{
	const struct fragi_op_info *info = &p->fragments[f].ops[op];
	uint64_t all = 0;

	for (uint32_t port = 0; port < info->port_count; port++) {
		bool leaves = false;

		for (size_t i = 0; i < p->flow_count; i++)
			leaves |= p->flows[i].from_fragment == f && p->flows[i].from_op == op &&
				  p->flows[i].from_port == port && p->flows[i].to_fragment != f;
		/* values have no tensors, and execution messages neither */
		if (leaves && info->ports[port].type_id == 0 &&
		    !fragi_port_is_execution(info->ports[port].name))
			all += blocks_of_outlet(p, f, op, port, all == 0, out);
	}
	return all;
}

/* Writes the terms of one operator. Returns their sum; 0: not known. */
static uint64_t blocks_of(const struct printing *p, uint32_t f, uint32_t op, FILE *out)
{
	const struct fragi_op_info *info = &p->fragments[f].ops[op];
	const char *receiver = NULL;
	uint64_t all = 0, blocks;

	for (uint32_t port = 0; port < info->port_count; port++) {
		if (info->ports[port].dir != FRAG_OUT)
			continue;
		blocks = blocks_of_port(p, f, op, port, &receiver);
		if (blocks == 0)
			continue;
		fprintf(out, "%s%llu filled or waiting at %s.%s + 1 in %s", all > 0 ? " + " : "",
			(unsigned long long)blocks, info->name, info->ports[port].name, receiver);
		all += blocks + 1;
	}
	return all;
}

/* The same of all operators that have the pool, or 0. terms_of: blocks_of or blocks_between. */
static uint64_t sum_up(const struct printing *p, uint32_t f, const char *pool, bool needs_all,
		       uint64_t (*terms_of)(const struct printing *p, uint32_t f, uint32_t op,
					    FILE *out),
		       char *terms, size_t size)
{
	FILE *out = fmemopen(terms, size, "w");
	uint64_t all = 0, blocks;
	bool is_known = out != NULL;

	for (size_t i = 0; is_known && i < p->fragments[f].op_count; i++) {
		const struct fragi_spec_operator *op =
			fragi_predict_spec(&p->spec->fragments[f], p->fragments[f].ops[i].name, i);
		long before = ftell(out);

		if (op == NULL || !names(op, pool))
			continue;
		fputs(all > 0 ? " + " : "", out);
		blocks = terms_of(p, f, (uint32_t)i, out);
		if (blocks == 0)
			fseek(out, before, SEEK_SET);
		is_known = blocks > 0 || !needs_all;
		all += blocks;
	}
	if (out != NULL) {
		fputc('\0', out);
		fclose(out);
	}
	return is_known ? all : 0;
}

/* That a pool is too small for any rate is checked elsewhere (pools.h). */
static void print_pool(const struct printing *p, uint32_t f, const struct fragi_spec_object *pool)
{
	const char *fragment = p->spec->fragments[f].name;
	char terms[1024] = "";
	uint64_t all;
	int64_t has = 0;

	for (size_t i = 0; i < pool->setting_count; i++)
		if (strcmp(pool->settings[i].name, "num_blocks") == 0 &&
		    pool->settings[i].value->kind == FRAGI_NODE_SCALAR)
			(void)fragi_parse_i64(pool->settings[i].value->text, &has);
	all = sum_up(p, f, pool->name, true, blocks_of, terms, sizeof(terms));
	if (all == 0 || has <= 0)
		return;
	fprintf(p->out, "  %s.%s: %s = %llu blocks in use, and there are %lld\n", fragment,
		pool->name, terms, (unsigned long long)all, (long long)has);
	all = sum_up(p, f, pool->name, false, blocks_between, terms, sizeof(terms));
	if (all > 0)
		fprintf(p->out,
			"  %s.%s, between hosts: %s = %llu blocks at most for flows that leave the host, however long their edges take\n",
			fragment, pool->name, terms, (unsigned long long)all);
}

void fragi_predict_print(const struct fragi_prediction *prediction, const struct fragi_spec *spec,
			 const struct fragi_fragment_info *fragments,
			 const struct fragi_flow_info *flows, size_t flow_count, uint32_t cores,
			 FILE *out, struct fragi_diag *warnings)
{
	const struct printing p = {prediction, spec,  fragments, flows,
				   flow_count, cores, out,       warnings};

	for (uint32_t f = 0; f < spec->fragment_count; f++)
		for (size_t i = 0; i < fragments[f].op_count; i++)
			print_op(&p, f, i);
	for (size_t i = 0; i < flow_count; i++)
		print_flow(&p, i);
	for (uint32_t f = 0; f < spec->fragment_count; f++) {
		print_threads(&p, f);
		for (size_t i = 0; i < spec->fragments[f].resource_count; i++)
			if (spec->fragments[f].resources[i].type != NULL &&
			    strcmp(spec->fragments[f].resources[i].type, "block_memory_pool") == 0)
				print_pool(&p, f, &spec->fragments[f].resources[i]);
	}
}
