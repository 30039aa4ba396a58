// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <graph/predict.h>
#include <run/state.h>

#include "rig_ops.h"

/* What rates and budgets predict: every number here can be computed by hand. */

/* Two inputs, each of which must have a message; nothing is ever run. */
static const struct frag_port join_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "b", .dir = FRAG_IN, .type = "i64"},
	{.name = "free", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_NO_CONDITION},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static int join_compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}
TEST_OP(join, FRAG_PORTS(join_ports));
TEST_PLUGIN(predict, &source_type, &middle_type, &sink_type, &gather_type, &join_type);

static struct rig rig;
static struct fragi_prediction prediction;
static struct fragi_diag warnings;
static char *lines;

/* Predicts what is prepared. */
static void show(void)
{
	size_t size;
	FILE *out;

	cr_assert(fragi_predict_wanted(rig.spec));
	cr_assert_eq(fragi_predict(rig.spec, rig.run->infos, rig.run->flows, rig.run->flow_count,
				   &prediction),
		     0);
	out = open_memstream(&lines, &size);
	fragi_predict_print(&prediction, rig.spec, rig.run->infos, rig.run->flows,
			    rig.run->flow_count, 4, out, &warnings);
	fclose(out);
}

static void predict(const char *graph)
{
	rig_prepare_good(&rig, &predict_plugin, rig_graph(0, graph));
	show();
}

static void end(void)
{
	fragi_prediction_fini(&prediction);
	fragi_diag_fini(&warnings);
	warnings = (struct fragi_diag){0};
	free(lines);
	rig_end(&rig);
}

static const struct fragi_predicted_op *op(const char *name)
{
	for (size_t i = 0; i < rig.run->infos[0].op_count; i++)
		if (strcmp(rig.run->infos[0].ops[i].name, name) == 0)
			return &prediction.ops[i];
	cr_assert_fail("no operator %s", name);
	return NULL;
}

#define NEAR(a, b) cr_expect_float_eq(a, b, 1e-6 * ((b) + 1), "%f is not %f", a, (double)(b))

static bool warns(const char *text)
{
	for (size_t i = 0; i < warnings.count; i++)
		if (strstr(warnings.items[i].text, text) != NULL)
			return true;
	return false;
}

Test(predict, a_chain_ticks_at_the_rate_of_its_source)
{
	predict("operators:\n"
		"  tx: {type: source, rate: 50hz, budget: 1ms}\n"
		"  mx: {type: middle, budget: 4ms}\n"
		"  rx: {type: sink}\n"
		"flows: [tx -> mx, mx -> rx]\n");
	NEAR(op("tx")->rate, 50);
	NEAR(op("mx")->rate, 50);
	NEAR(op("rx")->rate, 50);
	NEAR(prediction.flows[0].wait_s, 0.005); /* its own 4 ms, and 1 ms of tx on one thread */
	cr_expect_eq(prediction.flows[0].depth, 1);
	cr_expect_eq(warnings.count, 0);
	cr_expect_not_null(strstr(lines, "  app.mx: 50 a second x 4.0 ms = 20 % of a thread\n"),
			   "%s", lines);
	cr_expect_not_null(strstr(lines, "  app: 25 % of a thread in all, and there is 1\n"), "%s",
			   lines);
	end();
}

Test(predict, one_that_is_too_slow_holds_up_who_blocks)
{
	predict("operators:\n"
		"  tx: {type: source, rate: 100hz}\n"
		"  mx: {type: middle}\n"
		"  rx: {type: sink, budget: 20ms}\n"
		"  also: {type: sink}\n"
		"flows:\n  - tx -> mx\n  - mx -> rx\n  - tx -> also\n");
	NEAR(op("rx")->demand, 100);
	NEAR(op("rx")->rate, 50);
	NEAR(op("mx")->rate, 50);
	NEAR(op("tx")->rate, 50);
	NEAR(op("also")->rate, 50);
	cr_expect(warns("overload: 100 ticks a second are asked for, and a budget of 20.0 ms "
			"allows 50 (100 x 20.0 ms = 200 % of a thread)"));
	cr_expect_not_null(strstr(lines, "  app.tx: 100 a second; it will be 50 a second\n"), "%s",
			   lines);
	end();
}

Test(predict, one_that_is_too_slow_loses_what_is_dropped)
{
	predict("operators:\n"
		"  tx: {type: source, rate: 100hz}\n"
		"  rx: {type: sink, budget: 25ms}\n"
		"flows:\n  - {from: tx, to: rx, policy: pop, capacity: 6}\n");
	NEAR(op("tx")->rate, 100);
	NEAR(op("rx")->rate, 40);
	NEAR(prediction.flows[0].offered, 100);
	NEAR(prediction.flows[0].taken, 40);
	cr_expect_eq(prediction.flows[0].depth, 6);
	cr_expect(warns("60 of 100 messages a second will be lost: the receiver takes 40"));
	cr_expect_not_null(
		strstr(lines, "the queue of 6 is full after 100 ms, then messages are lost"), "%s",
		lines);
	end();
}

Test(predict, inputs_that_must_all_have_a_message_take_the_slowest)
{
	predict("operators:\n"
		"  x: {type: source, rate: 30hz}\n"
		"  y: {type: source, conditions: [{type: periodic, recess_period: 50ms}]}\n"
		"  z: {type: source, rate: 5hz}\n"
		"  j: {type: join, budget: 1us}\n"
		"  all: {type: gather}\n"
		"flows: [x -> j.a, y -> j.b, z -> j.free, x -> all, z -> all]\n");
	NEAR(op("y")->demand, 20);
	NEAR(op("j")->demand, 20);
	NEAR(op("j")->rate, 5); /* x brings no more */
	NEAR(op("all")->rate, 5);
	NEAR(op("x")->rate, 5); /* it waits for room at all, which waits for z */
	end();
}

Test(predict, flows_in_turn_come_together_and_ports_have_rates)
{
	predict("operators:\n"
		"  x: {type: source, ports: {out: {rate: 10hz}}}\n"
		"  y: {type: source, rate: 30hz}\n"
		"  rx: {type: sink}\n"
		"  mx: {type: middle, ports: {out: {rate: 2hz}}}\n"
		"  slow: {type: sink}\n"
		"flows: [x -> rx, y -> rx, y -> mx, mx -> slow]\n");
	NEAR(op("x")->rate, 10);
	NEAR(op("rx")->rate, 40);
	NEAR(op("mx")->rate, 30);
	NEAR(op("slow")->rate, 2);
	end();
}

Test(predict, queues_and_threads)
{
	predict("operators:\n"
		"  tx: {type: source, rate: 1000hz}\n"
		"  rx: {type: sink, budget: 900us}\n"
		"  other: {type: source, rate: 20hz, budget: 15ms}\n"
		"  ox: {type: sink}\n"
		"flows: [tx -> rx, other -> ox]\n");
	NEAR(prediction.flows[0].wait_s, 0.0159);
	cr_expect_eq(prediction.flows[0].depth, 16);
	cr_expect(warns("16 messages will wait at times (1000 a second x 15.9 ms), and the queue "
			"holds 1: the sender will wait; set capacity to 16"));
	cr_expect(warns("overload: its operators need 120 % of a thread together, and the "
			"scheduler has 1; give it 2, or lower the rates"));
	end();
}

Test(predict, blocks_of_pools)
{
	predict("resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 9}}\n"
		"operators:\n"
		"  tx: {type: source, rate: 100hz, budget: 1ms}\n"
		"  rx: {type: sink, budget: 9ms}\n"
		"flows:\n  - {from: tx, to: rx, capacity: 3}\n");
	cr_expect_null(strstr(lines, "blocks"), "no operator has it");
	end();
}

/* What holds where a flow between fragments leaves its host; how long it takes is not declared. */
Test(predict, between_hosts_windows_bound_what_waits)
{
	static const char *const wanted[] = {
		"  one.tx.out -> two.a.in, between hosts: 8 / 100 a second - 20.0 ms = 60.0 ms for the way there and the credit back, or the sender waits; only a run shows how long that takes\n",
		"  one.tx.out -> two.b.in, between hosts: 4 to be sent, 4 on the way and 4 here at most; 4 / 100 a second = 40.0 ms for the way there and the credit back, or messages are lost at the sender; only a run shows how long that takes\n",
		"  one.tx.out -> three.c.in, between hosts: the sender waits, however fast the edge is\n",
		"  one.ty.out -> four.d.in, between hosts: 4 / 500 a second - 2.0 ms = 6.0 ms for the way there and the credit back, or the sender waits; only a run shows how long that takes\n",
	};

	rig_prepare_good(
		&rig, &predict_plugin,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {tx: {type: source, rate: 100hz}, ty: {type: source, rate: 1000hz},\n"
		"                    near: {type: sink}}, flows: [tx -> near]}\n"
		"  two: {scheduler: {type: greedy}, operators: {a: {type: sink, budget: 10ms},\n"
		"                                               b: {type: sink, budget: 10ms}}}\n"
		"  three: {scheduler: {type: greedy}, operators: {c: {type: sink, budget: 5ms},\n"
		"                                                 e: {type: sink, budget: 10ms}}}\n"
		"  four: {operators: {d: {type: sink, budget: 2ms}}}\n"
		"flows:\n"
		"  - {from: one.tx, to: two.a, capacity: 8}\n"
		"  - {from: one.tx, to: two.b, capacity: 4, policy: pop}\n"
		"  - {from: one.tx, to: three.c, capacity: 1}\n"
		"  - {from: one.tx, to: three.e, capacity: 4}\n"
		"  - {from: one.ty, to: four.d, capacity: 4}\n");
	show();
	for (size_t i = 0; i < FRAG_COUNT_OF(wanted); i++)
		cr_expect_not_null(strstr(lines, wanted[i]), "no %s in\n%s", wanted[i], lines);
	cr_expect_null(strstr(lines, "near.in, between hosts"));
	end();
}

Test(predict, cycles_and_what_nobody_declares_are_not_predicted)
{
	predict("operators:\n"
		"  a: {type: middle, budget: 1ms}\n"
		"  b: {type: middle}\n"
		"  tx: {type: source}\n"
		"  rx: {type: sink, budget: 1s}\n"
		"flows: [a -> b, b -> a, tx -> rx]\n");
	cr_expect_eq(op("a")->rate, 0);
	cr_expect_eq(op("tx")->rate, 0);
	cr_expect_eq(op("rx")->rate, 0);
	cr_expect_eq(warnings.count, 0);
	cr_expect_str_eq(lines, "");
	end();
}

Test(predict, a_graph_without_rates_wants_none)
{
	rig_prepare_good(&rig, &predict_plugin,
			 rig_graph(0,
				   "operators:\n  tx: {type: source, conditions: [{type: periodic, "
				   "recess_period: 1s}]}\n"));
	cr_expect_not(fragi_predict_wanted(rig.spec));
	rig_end(&rig);
}

/* Found at its place, behind it, and before it. */
Test(predict, what_the_graph_says_of_an_operator)
{
	static const char *const names[] = {"a", "b", "rx"};

	predict("operators:\n"
		"  a: {type: source, rate: 1hz}\n"
		"  b: {type: middle}\n"
		"  rx: {type: sink}\n"
		"flows: [a -> b, b -> rx]\n");
	for (size_t name = 0; name < 3; name++)
		for (size_t place = 0; place < 5; place++)
			cr_expect_eq(
				fragi_predict_spec(&rig.spec->fragments[0], names[name], place),
				&rig.spec->fragments[0].operators[name]);
	cr_expect_null(fragi_predict_spec(&rig.spec->fragments[0], "c", 2));
	end();
}
