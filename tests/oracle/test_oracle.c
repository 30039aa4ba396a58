// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <string.h>

#include "../left.h"
#include "../slow.h"
#include "oracle.h"

#define GRAPHS 300
#define GRAPHS_MIN 60 /* where all takes long */

static struct oracle_graph graph, other;

Test(oracle, the_rules_hold_for_every_graph)
{
	const uint64_t fewer = GRAPHS / (uint64_t)times_slower();
	const uint64_t graphs = fewer > GRAPHS_MIN ? fewer : GRAPHS_MIN;
	struct oracle_totals totals = {0};
	struct oracle_finding finding;

	setenv("FRAG_TEST_NO_SAFETY_POLL", "all", 1);
	left_own.threads = 1; /* which resumes ticks in all graphs (node.c) */
	for (uint64_t seed = 1; seed <= graphs; seed++) {
		oracle_graph_make(&graph, seed);
		cr_assert(oracle_check(&graph, &totals, &finding),
			  "seed %llu: %s; make oracle SEED=%llu makes the graph smaller",
			  (unsigned long long)seed, finding.text, (unsigned long long)seed);
	}
	/* The seeds reach what is to be compared, each often. */
	cr_expect_gt(totals.exact, totals.flows / 4);
	cr_expect_gt(totals.prefix, totals.flows / 4);
	cr_expect_gt(totals.rested, graphs / 5);
	cr_expect_lt(totals.rested, graphs - graphs / 5);
}

Test(oracle, a_seed_makes_one_graph)
{
	oracle_graph_make(&graph, 7);
	oracle_graph_make(&other, 8);
	cr_expect_neq(memcmp(&graph, &other, sizeof(graph)), 0);
	oracle_graph_make(&other, 7);
	cr_expect_eq(memcmp(&graph, &other, sizeof(graph)), 0);
}

static uint32_t flows_of(const struct oracle_graph *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->flow_count; i++)
		n += oracle_flow_exists(g, i);
	return n;
}

/* Under a manual clock batches that a time ends are the same ones each time. */
Test(oracle, seeds_reach_batches_that_are_compared)
{
	struct oracle_sameness same;
	uint32_t batches = 0, compared = 0;

	for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
		oracle_graph_make(&graph, seed);
		oracle_sameness(&graph, &same);
		for (uint32_t i = 0; i < graph.flow_count; i++) {
			const struct oracle_op *from = &graph.ops[graph.flows[i].from];

			cr_assert(from->batch == 0 || graph.manual_clock);
			batches += from->batch > 0;
			compared += from->batch > 0 && same.exact[i];
		}
	}
	cr_expect_gt(batches, GRAPHS / 10);
	cr_expect_eq(compared, batches);
}

/* What "fails" is a multi-receiver with a flow. */
static bool has_multi_receiver(const struct oracle_graph *g)
{
	for (uint32_t i = 0; i < g->flow_count; i++)
		if (oracle_flow_exists(g, i) &&
		    (g->ops[g->flows[i].to].multi >> g->flows[i].in & 1) != 0)
			return true;
	return false;
}

Test(oracle, a_failing_graph_is_made_as_small_as_it_can_be)
{
	uint32_t operators = 0, seed = 1;

	do
		oracle_graph_make(&graph, seed++);
	while (!has_multi_receiver(&graph) || graph.op_count < 20);
	oracle_shrink(&graph, has_multi_receiver);
	cr_expect(has_multi_receiver(&graph));
	for (uint32_t i = 0; i < graph.op_count; i++)
		operators += !graph.ops[i].removed;
	cr_expect_eq(operators, 2);
	cr_expect_eq(flows_of(&graph), 1);
}

/* tx -> rx, whatever else is special about them. */
static void make_pair(struct oracle_op tx, struct oracle_op rx, struct oracle_flow flow)
{
	memset(&graph, 0, sizeof(graph));
	graph.op_count = 2;
	graph.flow_count = graph.fragment_count = 1;
	tx.outputs = rx.inputs = 1;
	tx.take = tx.emit = rx.take = rx.emit = tx.work_every = rx.work_every = 1;
	graph.ops[0] = tx;
	graph.ops[1] = rx;
	flow.to = 1;
	flow.capacity = 1;
	graph.flows[0] = flow;
	oracle_graph_mend(&graph);
}

Test(oracle, what_depends_on_time_is_not_compared)
{
	static const struct oracle_flow block = {.policy = FRAG_POLICY_BLOCK};
	static const struct oracle_op ten = {.count = 10}, plain;
	struct oracle_sameness same;

	make_pair(ten, plain, block);
	oracle_sameness(&graph, &same);
	cr_expect(same.exact[0] && same.prefix[0]);
	make_pair(ten, (struct oracle_op){.count = 5}, block);
	oracle_sameness(&graph, &same);
	cr_expect(!same.exact[0] && same.prefix[0]);
	make_pair(ten, (struct oracle_op){.free_in = 1, .count = 5}, block);
	oracle_sameness(&graph, &same);
	cr_expect(!same.exact[0] && same.prefix[0]);
	make_pair(ten, plain, (struct oracle_flow){.policy = FRAG_POLICY_POP});
	oracle_sameness(&graph, &same);
	cr_expect(!same.exact[0] && !same.prefix[0]);
	make_pair((struct oracle_op){.free_out = 1, .count = 10}, plain, block);
	oracle_sameness(&graph, &same);
	cr_expect(!same.exact[0] && !same.prefix[0]);
}
