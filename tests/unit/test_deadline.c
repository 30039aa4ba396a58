// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "graph_texts.h"
#include "stamp_ops.h"

/* Deadlines of operators and of paths: what is missed is counted, dropped, or stops. */

static const struct frag_op_type *const ops[] = {&stamper_type, &pair_type, &source_type,
						 &middle_type, &sink_type};
static const struct frag_plugin plugin = {.struct_size = sizeof(struct frag_plugin),
					  .abi_major = FRAG_ABI_MAJOR,
					  .name = "deadline",
					  .version = "1",
					  FRAG_OPS(ops)};

static struct rig rig;

static void run(const char *scheduler, const char *yaml)
{
	static char text[4096];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\nscheduler: {type: %s}\n%s",
		 scheduler, yaml);
	notes_clear();
	rig_run(&rig, &plugin, text);
	cr_expect(rig_balances(&rig));
}

/* The row of the i-th operator, in the order of the graph. */
#define EXPECT(i, member, n)                                                                       \
	cr_expect_eq(atomic_load(&fragi_run_ledger(rig.run)->ops[i].member), n,                    \
		     "%s of %d is %llu", #member, i,                                               \
		     (unsigned long long)atomic_load(&fragi_run_ledger(rig.run)->ops[i].member))

static const char *const schedulers[] = {"greedy", "event_based"};

Test(deadline, ticks_that_take_too_long_are_counted)
{
	for (int s = 0; s < 2; s++) {
		run(schedulers[s],
		    "operators:\n"
		    "  a: {type: source, parameters: {count: 5}, deadline: 1h}\n"
		    "  b: {type: middle, parameters: {work_us: 2000}, deadline: 1ms}\n"
		    "  c: {type: sink, deadline: {budget: 1h, on_miss: stop}}\n"
		    "flows: [a -> b, b -> c]\n");
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect_eq(noted(0), 5);
		EXPECT(0, deadline_misses, 0);
		EXPECT(1, deadline_misses, 5);
		EXPECT(2, deadline_misses, 0);
		rig_end(&rig);
	}
}

Test(deadline, from_the_acquisition_the_oldest_message_counts)
{
	run("greedy", "operators:\n"
		      "  a: {type: stamper, parameters: {values: [1, 2, 3], ages: [0, 7200, 0]}}\n"
		      "  b: {type: stamper, parameters: {values: [1, 2, 3]}}\n"
		      "  p: {type: pair, deadline: {budget: 1h, from: acquisition}}\n"
		      "flows: [a -> p.a, b -> p.b]\n");
	cr_expect_eq(noted(0), 3);
	EXPECT(2, deadline_misses, 1);
	rig_end(&rig);
}

Test(deadline, what_is_too_late_before_the_tick_is_dropped)
{
	run("greedy",
	    "operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3], ages: [0, 7200, 0]}}\n"
	    "  p: {type: pair, deadline: {budget: 1h, from: acquisition, on_miss: drop}}\n"
	    "flows: [a -> p.a]\n");
	cr_assert_eq(noted(0), 2);
	cr_expect_eq(notes[0]->values[1], 3999);
	cr_expect_eq(rig_dropped(rig_row(&rig, 0), FRAGI_DROP_DEADLINE), 1);
	EXPECT(1, deadline_misses, 1);
	rig_end(&rig);
}

Test(deadline, a_miss_may_stop_the_application)
{
	run("greedy",
	    "operators:\n"
	    "  a: {type: source, parameters: {count: 5}}\n"
	    "  b: {type: sink, parameters: {work_us: 2000}, deadline: {budget: 1ms, on_miss: stop}}\n"
	    "flows: [a -> b]\n");
	cr_expect_eq(rig.failed, 1);
	cr_expect_eq(rig.failure, FRAGI_FAILURE_DEADLINE_MISSED);
	cr_expect_eq(strncmp(rig.sentence, "app.b: tick 1 missed a deadline: compute took ", 46), 0,
		     "%s", rig.sentence);
	cr_expect_not_null(strstr(rig.sentence, ", and its budget is 1.0 ms"));
	rig_end(&rig);
}

Test(deadline, of_a_path_the_slowest_operator_is_named)
{
	for (int s = 0; s < 2; s++) {
		run(schedulers[s], "operators:\n"
				   "  a: {type: source, parameters: {count: 3}}\n"
				   "  b: {type: middle}\n"
				   "  c: {type: middle, parameters: {work_us: 60000}}\n"
				   "  d: {type: sink}\n"
				   "flows: [a -> b, b -> c, c -> d, {from: b, to: d}]\n"
				   "deadlines:\n"
				   "  - {path: [a, b, c, d], budget: 10ms}\n"
				   "  - {path: [b, c], budget: 1h, on_miss: stop}\n");
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		EXPECT(3, path_misses, 3); /* what comes from b at once takes another path */
		/* where the system runs other programs in between, another one may be slower */
		cr_expect_geq(atomic_load(&fragi_run_ledger(rig.run)->ops[2].slowest), 2);
		EXPECT(2, path_misses, 0);
		rig_end(&rig);
	}
}

Test(deadline, of_a_path_no_other_path_counts)
{
	run("greedy", "operators:\n"
		      "  slow: {type: source, parameters: {count: 2, work_us: 60000}}\n"
		      "  fast: {type: source, parameters: {count: 2}}\n"
		      "  d: {type: sink}\n"
		      "flows: [slow -> d, fast -> d]\n"
		      "deadlines: [{path: [slow, d], budget: 20ms}]\n");
	EXPECT(2, path_misses, 2);
	rig_end(&rig);
	run("greedy", "operators:\n"
		      "  slow: {type: source, parameters: {count: 2, work_us: 60000}}\n"
		      "  fast: {type: source, parameters: {count: 1}}\n"
		      "  d: {type: sink}\n"
		      "flows: [slow -> d, fast -> d]\n"
		      "deadlines: [{path: [fast, d], budget: 50ms}]\n");
	cr_expect_leq(atomic_load(&fragi_run_ledger(rig.run)->ops[2].path_misses), 1);
	rig_end(&rig);
}

Test(deadline, a_path_leads_through_fragments)
{
	notes_clear();
	rig_run(&rig, &plugin,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: source, parameters: {count: 5, work_us: 3000}}}}\n"
		"  two: {operators: {m: {type: middle}, k: {type: sink}}, flows: [m -> k],\n"
		"        deadlines: [{path: [m, k], budget: 1h}]}\n"
		"flows: [one.a -> two.m]\n"
		"deadlines: [{path: [one.a, two.m, two.k], budget: 2ms}]\n");
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	EXPECT(2, path_misses, 5);
	rig_end(&rig);
}

Test(deadline, a_path_may_stop_the_application)
{
	run("greedy", "operators:\n"
		      "  a: {type: source, parameters: {count: 5, work_us: 60000}}\n"
		      "  b: {type: sink}\n"
		      "flows: [a -> b]\n"
		      "deadlines: [{path: [a, b], budget: 20ms, on_miss: stop}]\n");
	cr_expect_eq(rig.failed, 1);
	cr_expect_eq(
		strncmp(rig.sentence,
			"app.b: tick 1 missed a deadline: the path from app.a (slowest: app.a) took ",
			75),
		0, "%s", rig.sentence);
	rig_end(&rig);
}

static void expect_refused(const char *yaml, const char *lines)
{
	static char text[4096];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\n%s", yaml);
	cr_expect_lt(rig_prepare(&rig, &plugin, text), 0);
	expect_errors(&rig.diag, lines);
	rig_end(&rig);
}

Test(deadline, mistakes_are_refused_with_a_sentence)
{
	expect_refused(
		"operators:\n"
		"  a: {type: source, deadline: 5}\n"
		"  b: {type: source, deadline: 0ms}\n"
		"  c: {type: source, deadline: {budget: 1ms, on_miss: drop}}\n"
		"  d: {type: source, deadline: {from: acquisiton, on_mis: stop}}\n"
		"  e: {type: source, deadline: [1ms]}\n"
		"deadlines:\n"
		"  - {path: [a, bb], budget: 1ms, on_miss: drop}\n"
		"  - {path: [a], budget: 1ms}\n"
		"  - {path: [a, f.b], budegt: 1ms}\n"
		"  - 5\n",
		"test.yaml:4:31: app.a: budget \"5\" has no unit; write for example 5s\n"
		"test.yaml:5:31: app.b: the budget of a deadline is 0; leave the deadline out\n"
		"test.yaml:6:54: app.c: on_miss: drop needs `from: acquisition`, since what a tick has sent cannot be taken back\n"
		"test.yaml:7:31: app.d: a deadline has no budget; add for example `budget: 20ms`\n"
		"test.yaml:7:38: app.d: from \"acquisiton\" is not known; did you mean \"acquisition\"?\n"
		"test.yaml:7:50: app.d: unknown key \"on_mis\"; did you mean \"on_miss\"?\n"
		"test.yaml:8:31: app.e: deadline is a list; it must be a map (keys and values)\n"
		"test.yaml:10:16: app: unknown operator \"app.bb\"; operators: a, b, c, d, e\n"
		"test.yaml:10:43: app: a message that has gone its path cannot be dropped; give the last operator `deadline: {from: acquisition, on_miss: drop}`\n"
		"test.yaml:11:12: app: a deadline has a path of 2 to 64 operators; write for example `path: [camera, detect, view]`\n"
		"test.yaml:12:16: app: \"f.b\" is not an operator; write its name\n"
		"test.yaml:12:22: app: unknown key \"budegt\"; did you mean \"budget\"?\n"
		"test.yaml:13:5: app: a deadline is a single value; it must be a map (keys and values)\n");
	expect_refused(
		"operators:\n"
		"  a: {type: source}\n"
		"  b: {type: sink}\n"
		"flows: [a -> b]\n"
		"deadlines: [{path: [b, a], budget: 1ms}]\n",
		"test.yaml:7:24: a deadline has a path from app.b to app.a, and no flow leads there\n");
	expect_refused(
		"fragments:\n"
		"  one: {operators: {a: {type: source}}, tracking: true}\n"
		"  two: {operators: {b: {type: sink}}}\n"
		"flows: [one.a -> two.b]\n"
		"deadlines: [{path: [one.a, two.b], budget: 1ms}]\n",
		"test.yaml:4:41: one: deadlines at the top follow messages through all fragments; move tracking to the top too\n");
}
