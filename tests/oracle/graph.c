// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "oracle.h"

/*
 * Makes a graph from a seed. There are three kinds:
 * - PLAIN: what every flow delivers follows from the graph
 * - ENDS: operators end before their inputs do, so that what those upstream of them still send
 *   depends on time
 * - ALL: also queues that drop, ports without conditions, flows that are taken in turn, cycles
 * Each kind may have execution flows and operators that choose their flows. Under a manual clock
 * there are batches, too, that a time ends.
 */
enum kind { PLAIN, ENDS, ALL };

struct making {
	struct oracle_graph *graph;
	uint64_t random;
	enum kind kind;
	/* messages that each operator emits on an output, at most */
	uint32_t emitted[ORACLE_OPS_MAX];
};
#define EMITTED_MAX 300u /* an operator that would send more passes on less */

/* splitmix64 */
static uint64_t draw(struct making *m)
{
	uint64_t z = m->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* A number from low to high. */
static uint32_t between(struct making *m, uint32_t low, uint32_t high)
{
	return low + (uint32_t)(draw(m) % (high - low + 1));
}

static bool chance(struct making *m, uint32_t percent)
{
	return draw(m) % 100 < percent;
}

/* Ports that have the property, as bits. */
static uint32_t some_ports(struct making *m, uint32_t count, uint32_t percent)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < count; i++)
		bits |= (uint32_t)chance(m, percent) << i;
	return bits;
}

bool oracle_flow_exists(const struct oracle_graph *graph, uint32_t flow)
{
	const struct oracle_flow *f = &graph->flows[flow];

	return !f->removed && !graph->ops[f->from].removed && !graph->ops[f->to].removed;
}

bool oracle_input_has_flow(const struct oracle_graph *graph, uint32_t op, uint32_t in)
{
	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (graph->flows[i].to == op && graph->flows[i].in == in &&
		    !graph->flows[i].execution && oracle_flow_exists(graph, i))
			return true;
	return false;
}

bool oracle_waits_for_execution(const struct oracle_graph *graph, uint32_t op)
{
	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (graph->flows[i].to == op && graph->flows[i].execution &&
		    oracle_flow_exists(graph, i))
			return true;
	return graph->ops[op].started;
}

static bool is_connected(const struct oracle_graph *graph, uint32_t from, uint32_t out, uint32_t to,
			 uint32_t in)
{
	for (uint32_t i = 0; i < graph->flow_count; i++) {
		const struct oracle_flow *f = &graph->flows[i];

		if (f->from == from && f->out == out && f->to == to && f->in == in && !f->execution)
			return true;
	}
	return false;
}

static uint32_t capacity(struct making *m, uint32_t least)
{
	uint32_t one = between(m, 0, 99);
	uint32_t size = one < 60   ? 1
			: one < 85 ? between(m, 2, 4)
			: one < 95 ? between(m, 5, 16)
				   : between(m, 17, 1000);

	return size > least ? size : least;
}

static enum frag_policy policy(struct making *m)
{
	static const enum frag_policy drops[] = {FRAG_POLICY_POP, FRAG_POLICY_REJECT,
						 FRAG_POLICY_LATEST};

	if (m->kind == ALL && chance(m, 15))
		return drops[between(m, 0, 2)];
	return chance(m, 15) ? FRAG_POLICY_FAULT : FRAG_POLICY_BLOCK;
}

/* Adds a flow, unless it exists. */
static void connect_with(struct making *m, uint32_t from, uint32_t out, uint32_t to, uint32_t in,
			 enum frag_policy flow_policy)
{
	struct oracle_graph *graph = m->graph;
	uint32_t emit = graph->ops[from].emit, take = graph->ops[to].take;

	if (graph->flow_count == ORACLE_FLOWS_MAX || is_connected(graph, from, out, to, in))
		return;
	/* The newest message alone never makes up for several that a condition asks for. */
	if (flow_policy == FRAG_POLICY_LATEST && take > 1)
		flow_policy = FRAG_POLICY_POP;
	/* emit and a full queue without a condition is a failure under fault. */
	if (flow_policy == FRAG_POLICY_FAULT && (graph->ops[from].free_out >> out & 1) != 0)
		flow_policy = FRAG_POLICY_BLOCK;
	graph->flows[graph->flow_count++] =
		(struct oracle_flow){.from = from,
				     .out = out,
				     .to = to,
				     .in = in,
				     .capacity = capacity(m, emit > take ? emit : take),
				     .policy = flow_policy};
}

static bool has_port(const struct oracle_graph *graph, uint32_t op)
{
	return graph->ops[op].outputs > 0;
}

/* Adds an execution flow, unless it exists. */
static void connect_execution(struct making *m, uint32_t from, uint32_t to)
{
	struct oracle_graph *graph = m->graph;

	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (graph->flows[i].execution && graph->flows[i].from == from &&
		    graph->flows[i].to == to)
			return;
	if (graph->flow_count < ORACLE_FLOWS_MAX)
		graph->flows[graph->flow_count++] =
			(struct oracle_flow){.execution = true,
					     .from = from,
					     .to = to,
					     .capacity = capacity(m, 1),
					     .policy = FRAG_POLICY_BLOCK};
}

/* Connects an input to operators before it. */
static void connect_input(struct making *m, uint32_t to, uint32_t in)
{
	struct oracle_graph *graph = m->graph;
	struct oracle_op *op = &graph->ops[to];
	bool multi = (op->multi >> in & 1) != 0;
	uint32_t flows = 1, from;

	if (multi || (m->kind == ALL && chance(m, 30)))
		flows = between(m, 1, 4);
	for (uint32_t i = 0; i < flows; i++) {
		/* Near operators make long graphs, far ones wide graphs. */
		from = chance(m, 75) && to > 4 ? between(m, to - 4, to - 1) : between(m, 0, to - 1);
		if (has_port(graph, from))
			connect_with(m, from, between(m, 0, graph->ops[from].outputs - 1), to, in,
				     policy(m));
	}
}

/* How often an operator will tick, at most, from what it may receive. */
static uint32_t ticks_of(const struct making *m, uint32_t index)
{
	const struct oracle_op *op = &m->graph->ops[index];
	uint32_t most = 0, all = 0;

	for (uint32_t i = 0; i < m->graph->flow_count; i++) {
		const struct oracle_flow *flow = &m->graph->flows[i];

		if (flow->to != index)
			continue;
		all += m->emitted[flow->from];
		most = m->emitted[flow->from] > most ? m->emitted[flow->from] : most;
	}
	if (op->multi == 0)
		most = all;
	if (op->count > 0 && (op->count < most || most == 0))
		most = op->count;
	if (op->count_condition > 0 && (op->count_condition < most || most == 0))
		most = op->count_condition;
	return most;
}

static void make_ports(struct making *m, uint32_t index, struct oracle_op *op)
{
	if (index > 0 && !chance(m, 10))
		op->inputs = m->kind == PLAIN || chance(m, 70) ? 1 : between(m, 2, 3);
	op->outputs = chance(m, 78) ? 1 : between(m, 0, 3);
	if (index == 0)
		op->outputs = 1;
	op->multi = some_ports(m, op->inputs, 25);
	if (m->kind == ALL && chance(m, 20)) {
		op->free_in = some_ports(m, op->inputs, 40);
		op->free_out = some_ports(m, op->outputs, 40);
	}
	op->take = chance(m, 95) ? 1 : between(m, 2, 4);
	if (m->kind == ALL && op->inputs > 0 && chance(m, 4))
		op->front_max = between(m, op->take, 8);
	op->routes = op->outputs > 1 && chance(m, 15);
}

/* Lets it end by itself; sources must. */
static void make_end(struct making *m, struct oracle_op *op, uint32_t ticks)
{
	bool is_source = op->inputs == 0;

	if (is_source || (m->kind != PLAIN && chance(m, 8)))
		*(chance(m, 50) ? &op->count : &op->count_condition) = between(m, 1, ticks);
	if (between(m, 0, 199) == 0 && (is_source || m->kind != PLAIN))
		op->disable_at = between(m, 1, ticks); /* which ends it too */
}

static void make_timing(struct making *m, struct oracle_op *op, uint32_t ticks)
{
	if (chance(m, 12)) {
		op->work_ns = between(m, 500, ticks > 60 ? 4000 : 30000);
		op->work_every = between(m, 1, 5);
	}
	if (ticks <= 100 && chance(m, 4))
		op->pend_every = between(m, 1, 8);
	if (ticks <= 60 && chance(m, 3))
		op->period_us = between(m, 5, 100);
}

static void make_op(struct making *m, uint32_t index, uint32_t ticks)
{
	struct oracle_graph *graph = m->graph;
	struct oracle_op *op = &graph->ops[index];

	*op = (struct oracle_op){.emit = 1, .take = 1, .work_every = 1};
	op->fragment = between(m, 0, graph->fragment_count - 1);
	make_ports(m, index, op);
	make_end(m, op, ticks);
	for (uint32_t in = 0; in < op->inputs; in++)
		connect_input(m, index, in);
	ticks = ticks_of(m, index);
	if (ticks < EMITTED_MAX / 3 && chance(m, 6))
		op->emit = between(m, 2, 3);
	if (ticks > EMITTED_MAX && op->count == 0)
		op->outputs = 0;
	m->emitted[index] = ticks * op->emit;
	make_timing(m, op, ticks);
	if (op->inputs == 0 && op->free_out == 0 && op->emit == 1 && chance(m, 12))
		op->blocks = 1;
}

/* One operator is off until another one of its fragment switches it on. */
static void make_switch(struct making *m)
{
	struct oracle_graph *graph = m->graph;
	uint32_t a = between(m, 0, graph->op_count - 1), b = between(m, 0, graph->op_count - 1);

	if (a == b || graph->ops[a].fragment != graph->ops[b].fragment ||
	    graph->ops[a].enable_at > 0 || graph->ops[b].starts_disabled ||
	    graph->ops[b].disable_at > 0)
		return;
	graph->ops[a].enable_at = between(m, 1, 5);
	graph->ops[a].enables = b;
	graph->ops[b].starts_disabled = true;
}

/* A cycle in which one message goes round until the first operator has had enough of it. */
static void make_ring(struct making *m)
{
	struct oracle_graph *graph = m->graph;
	uint32_t length = between(m, 1, 6), first = graph->op_count, last = first + length;

	if (last + 1 > ORACLE_OPS_MAX)
		return;
	for (uint32_t i = first; i <= last; i++) {
		graph->ops[i] = (struct oracle_op){
			.emit = 1, .take = 1, .work_every = 1, .outputs = 1, .inputs = i > first};
		graph->ops[i].fragment = between(m, 0, graph->fragment_count - 1);
		make_timing(m, &graph->ops[i], 50);
	}
	graph->op_count = last + 1;
	graph->ops[first].count = 1;
	graph->ops[first + 1].count = between(m, 2, 50);
	graph->ops[first + 1].one_token = true;
	for (uint32_t i = first; i < last; i++)
		connect_with(m, i, 0, i + 1, 0, FRAG_POLICY_BLOCK);
	connect_with(m, last, 0, first + 1, 0, FRAG_POLICY_BLOCK);
}

/* A flow from behind to a new input: with a condition nothing in the cycle ever begins. */
static void make_back_edge(struct making *m)
{
	struct oracle_graph *graph = m->graph;
	uint32_t to = between(m, 0, graph->op_count - 1);
	uint32_t from = between(m, to, graph->op_count - 1), in = graph->ops[to].inputs;

	if (!has_port(graph, from) || in == 0 || in == ORACLE_PORTS_MAX)
		return;
	graph->ops[to].inputs++;
	if (chance(m, 95))
		graph->ops[to].free_in |= 1u << in;
	connect_with(m, from, between(m, 0, graph->ops[from].outputs - 1), to, in,
		     FRAG_POLICY_BLOCK);
}

/* An operator without inputs; it ticks when execution flows lead to it. Its index; UINT32_MAX. */
static uint32_t make_step(struct making *m)
{
	struct oracle_graph *graph = m->graph;
	struct oracle_op *op = &graph->ops[graph->op_count];

	if (graph->op_count == ORACLE_OPS_MAX)
		return UINT32_MAX;
	*op = (struct oracle_op){.emit = 1, .take = 1, .work_every = 1};
	op->fragment = between(m, 0, graph->fragment_count - 1);
	if (m->kind != PLAIN && chance(m, 8))
		op->count = between(m, 1, 20);
	make_timing(m, op, 50);
	return graph->op_count++;
}

/* A sink for what an operator emits. */
static void make_sink(struct making *m, uint32_t from)
{
	struct oracle_graph *graph = m->graph;
	uint32_t sink = make_step(m);

	if (sink == UINT32_MAX)
		return;
	graph->ops[from].outputs = 1;
	graph->ops[sink].inputs = 1;
	connect_with(m, from, 0, sink, 0, FRAG_POLICY_BLOCK);
}

/* Operators that follow others, started or not, some of them several. */
static void make_followers(struct making *m)
{
	struct oracle_graph *graph = m->graph;

	for (uint32_t more = between(m, 1, 5); more > 0; more--) {
		uint32_t before = graph->op_count, op = make_step(m);

		if (op == UINT32_MAX)
			return;
		graph->ops[op].started = chance(m, 25);
		for (uint32_t i = graph->ops[op].started ? 0 : between(m, 1, 3); i > 0; i--)
			connect_execution(m,
					  between(m, chance(m, 60) && before > 4 ? before - 4 : 0,
						  before - 1),
					  op);
		if (chance(m, 50))
			make_sink(m, op);
	}
}

/* A loop that its first operator chooses so many times; of one operator: to itself. */
static void make_loop(struct making *m)
{
	struct oracle_graph *graph = m->graph;
	uint32_t first = make_step(m), last = first, next;

	if (first == UINT32_MAX)
		return;
	graph->ops[first].started = true;
	graph->ops[first].turns = between(m, 1, 40);
	for (uint32_t length = between(m, 0, 4); length > 0; length--) {
		next = make_step(m);
		if (next == UINT32_MAX)
			return;
		connect_execution(m, last, next);
		last = next;
	}
	connect_execution(m, last, first);
	make_sink(m, chance(m, 50) ? first : last);
}

/* Some operators choose where what they emit goes. */
static void make_choosers(struct making *m)
{
	struct oracle_graph *graph = m->graph;

	for (uint32_t i = 0; i < graph->op_count; i++) {
		struct oracle_op *op = &graph->ops[i];

		if (op->free_out == 0 && !op->routes && op->turns == 0 && !op->one_token &&
		    op->outputs > 0)
			op->chooses = chance(m, 10);
	}
}

/* Some operators are in thread pools, a few of them with a thread of their own. */
static void make_pools(struct making *m)
{
	struct oracle_graph *graph = m->graph;
	uint32_t pools = between(m, 1, ORACLE_POOLS_MAX), pinned = 0;
	uint32_t percent = chance(m, 20) ? 100 : between(m, 10, 80);

	for (uint32_t i = 1; i <= pools; i++)
		graph->pool_sizes[i] = between(m, 1, 3);
	for (uint32_t i = 0; i < graph->op_count; i++) {
		if (!chance(m, percent))
			continue;
		graph->ops[i].pool = between(m, 1, pools);
		graph->ops[i].pinned = pinned < 6 && chance(m, 25);
		pinned += graph->ops[i].pinned;
	}
}

static uint32_t add_timed(struct making *m, struct oracle_op op)
{
	struct oracle_graph *graph = m->graph;

	op.work_every = 1;
	op.fragment = between(m, 0, graph->fragment_count - 1);
	graph->ops[graph->op_count] = op;
	return graph->op_count++;
}

/*
 * A source that sends every so often, an operator that takes batches or what is there after some
 * time, and one that gets what it makes of them. The time is no multiple of the period: so it is
 * never over when a message comes, and which messages are in a batch follows from the graph.
 */
static void make_batches(struct making *m)
{
	uint32_t period = between(m, 2, 50), emit = between(m, 1, 3), from, to;
	uint32_t batch = between(m, 2, 6);

	if (m->graph->op_count + 3 > ORACLE_OPS_MAX)
		return;
	from = add_timed(m, (struct oracle_op){.outputs = 1,
					       .take = 1,
					       .emit = emit,
					       .period_us = period,
					       .count = between(m, 1, 40)});
	to = add_timed(m, (struct oracle_op){
				  .inputs = 1,
				  .outputs = 1,
				  .take = batch,
				  .emit = 1,
				  .batch = batch,
				  .delay_us = between(m, 0, 3) * period + between(m, 1, period - 1),
			  });
	connect_with(m, from, 0, to, 0, FRAG_POLICY_BLOCK);
	/* The source never waits for room, which would come in the midst of a tick. */
	if (m->graph->flow_count < ORACLE_FLOWS_MAX)
		m->graph->flows[m->graph->flow_count - 1].capacity += batch + emit;
	from = to;
	to = add_timed(m, (struct oracle_op){.inputs = 1, .take = 1, .emit = 1});
	connect_with(m, from, 0, to, 0, FRAG_POLICY_BLOCK);
}

/* All times are those of a manual clock, on which a period costs nothing. */
static void make_timed(struct making *m)
{
	struct oracle_graph *graph = m->graph;

	graph->manual_clock = true;
	for (uint32_t i = 0; i < graph->op_count; i++)
		if (chance(m, 10))
			graph->ops[i].period_us = between(m, 1, 100000);
	for (uint32_t extra = between(m, 1, 2); extra > 0; extra--)
		make_batches(m);
}

/*
 * An operator that no condition lets wait for a message ticks until it ends: so one that has no
 * end gets one.
 */
static void mend_end(struct oracle_graph *graph, uint32_t index)
{
	struct oracle_op *op = &graph->ops[index];
	bool waits = oracle_waits_for_execution(graph, index);

	for (uint32_t in = 0; in < op->inputs; in++)
		waits |= (op->free_in >> in & 1) == 0 && oracle_input_has_flow(graph, index, in);
	if (!waits && op->count == 0 && op->count_condition == 0)
		op->count_condition = 5;
}

/* The blocks that docs/GRAPH.md asks for ("Pools"). */
static uint32_t blocks_of_output(const struct oracle_graph *graph, uint32_t op, uint32_t out)
{
	uint32_t longest = 1, sum = 0;

	for (uint32_t i = 0; i < graph->flow_count; i++) {
		const struct oracle_flow *f = &graph->flows[i];
		bool inside = graph->ops[f->from].fragment == graph->ops[f->to].fragment;
		uint32_t more = graph->ops[f->to].take - 1;

		if (f->from != op || f->out != out || f->execution || !oracle_flow_exists(graph, i))
			continue;
		if (f->policy == FRAG_POLICY_LATEST)
			sum += (inside ? 3 : 5) + more;
		else if (f->policy == FRAG_POLICY_POP || f->policy == FRAG_POLICY_REJECT)
			sum += (inside ? f->capacity : 3 * f->capacity) + 2 + more;
		else if (oracle_is_dynamic(&graph->ops[op])) /* each flow has other messages */
			sum += f->capacity + more;
		else if (f->capacity + 1 + more > longest)
			longest = f->capacity + 1 + more;
	}
	return longest + sum;
}

/* Whether what comes to the operator comes every so often. */
static bool has_timed_source(const struct oracle_graph *graph, uint32_t index)
{
	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (graph->flows[i].to == index && oracle_flow_exists(graph, i))
			return graph->ops[graph->flows[i].from].period_us > 0;
	return false;
}

void oracle_graph_mend(struct oracle_graph *graph)
{
	for (uint32_t i = 0; i < graph->op_count; i++) {
		struct oracle_op *op = &graph->ops[i];

		if (op->removed)
			continue;
		mend_end(graph, i);
		if (op->batch > 0 && !has_timed_source(graph, i))
			op->batch = 0;
		if (op->enable_at > 0 && graph->ops[op->enables].removed)
			op->enable_at = 0;
		if (op->blocks == 0)
			continue;
		op->blocks = 0;
		for (uint32_t out = 0; out < op->outputs; out++)
			op->blocks += blocks_of_output(graph, i, out);
		op->blocks += op->outputs == 0;
	}
}

void oracle_graph_make(struct oracle_graph *graph, uint64_t seed)
{
	struct making m = {.graph = graph, .random = seed};
	uint32_t size, ticks, extra;

	memset(graph, 0, sizeof(*graph));
	graph->seed = seed;
	m.kind = chance(&m, 50) ? PLAIN : chance(&m, 40) ? ENDS : ALL;
	size = between(&m, 0, 99);
	graph->op_count = size < 50   ? between(&m, 2, 8)
			  : size < 85 ? between(&m, 9, 30)
			  : size < 96 ? between(&m, 31, 80)
				      : between(&m, 81, 190);
	ticks = graph->op_count > 80 ? 40 : graph->op_count > 30 ? 70 : 120;
	graph->fragment_count = chance(&m, 75) ? 1 : between(&m, 2, 3);
	for (uint32_t i = 0; i < graph->op_count; i++)
		make_op(&m, i, ticks);
	if (m.kind == ALL)
		for (extra = between(&m, 0, 3); extra > 0; extra--)
			make_back_edge(&m);
	if (m.kind != PLAIN && chance(&m, 40))
		make_ring(&m);
	if (chance(&m, 15))
		for (extra = between(&m, 1, 3); extra > 0; extra--)
			make_switch(&m);
	/* Last, so that the seeds make what they made before there were execution flows. */
	if (chance(&m, 25))
		make_followers(&m);
	if (m.kind != PLAIN && chance(&m, 20))
		make_loop(&m);
	if (chance(&m, 25))
		make_choosers(&m);
	if (chance(&m, 30))
		make_pools(&m);
	if (chance(&m, 20))
		make_timed(&m);
	oracle_graph_mend(graph);
}
