// SPDX-License-Identifier: Apache-2.0
#include "graph_texts.h"
#include "stamp_ops.h"

/* Deadlines of operators and of paths: what is missed is counted, dropped, or stops. */

/* Passes each message on as it is; `joins`: one of all that have come, as a new one. */
struct relay {
	bool joins;
};
static const struct frag_port relay_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_MULTI},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param relay_params[] = {FRAG_PARAM_BOOL(struct relay, joins, false)};

static int relay_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *const *messages;
	const struct relay *s = state;
	int64_t joined = 0;
	int count, r = 0;
	bool any;

	do {
		count = frag_tick_receive_all(tick, 0, &messages);
		any = false;
		for (int i = 0; i < count && r == 0; i++) {
			any |= messages[i] != NULL;
			joined += messages[i] != NULL;
			if (messages[i] != NULL && !s->joins)
				r = frag_tick_emit(tick, 1, frag_message_ref(messages[i]));
		}
	} while (any && s->joins);
	return s->joins && joined > 0 ? frag_tick_emit_i64(tick, 1, joined) : r;
}

TEST_OP(relay, FRAG_PORTS(relay_ports), FRAG_PARAMS(relay_params),
	.state_size = sizeof(struct relay));

/* Deadlines in C, as `wrong` says: one of an operator that a graph may replace, one of a path. */
static int self_setup(void *state, struct frag_op *op)
{
	return frag_set_deadline(op, 1000000, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_COUNT);
}

TEST_OP_BY(self, middle_compute, FRAG_PORTS(middle_ports), FRAG_PARAMS(middle_params),
	   .setup = self_setup, .state_size = sizeof(struct middle), .start = middle_start,
	   .stop = middle_stop);

static struct frag_op *path[3];

static int make_path(struct frag_fragment *fragment)
{
	path[0] = frag_make_operator(fragment, "a", "source", FRAG_ARGS({"count", "3"}));
	path[1] = frag_make_operator(fragment, "b", "self", FRAG_ARGS({"work_us", "2000"}));
	path[2] = frag_make_operator(fragment, "c", "sink", FRAG_NO_ARGS);
	frag_add_flow(fragment, path[0], NULL, path[1], NULL);
	return frag_add_flow(fragment, path[1], NULL, path[2], NULL);
}

static int compose_right(struct frag_fragment *fragment)
{
	int r = make_path(fragment);

	if (r == 0)
		r = frag_set_deadline(path[2], 3600000000000, FRAG_DEADLINE_FROM_ACQUISITION,
				      FRAG_ON_MISS_DROP);
	return r < 0 ? r : frag_add_path_deadline(fragment, path, 3, 1000000, FRAG_ON_MISS_COUNT);
}

static int compose_wrong(struct frag_fragment *fragment)
{
	static const int64_t hour = 3600000000000;
	struct frag_op *gap[] = {NULL, NULL};

	make_path(fragment);
	gap[0] = path[0];
	frag_set_deadline(path[0], 0, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_COUNT);
	frag_set_deadline(path[0], -1, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_COUNT);
	frag_set_deadline(path[0], hour, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_DROP);
	frag_set_deadline(path[0], hour, FRAG_DEADLINE_FROM_TICK, (enum frag_on_miss)7);
	frag_set_deadline(path[0], hour, (enum frag_deadline_from)5, FRAG_ON_MISS_STOP);
	frag_add_path_deadline(fragment, path, 1, hour, FRAG_ON_MISS_COUNT);
	frag_add_path_deadline(fragment, path, 2, 0, FRAG_ON_MISS_COUNT);
	frag_add_path_deadline(fragment, gap, 2, hour, FRAG_ON_MISS_COUNT);
	cr_expect_eq(frag_set_deadline(NULL, hour, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_COUNT),
		     -EINVAL);
	return 0;
}

/* The longest path, and one operator more. */
static int compose_long(struct frag_fragment *fragment)
{
	struct frag_op *longest[FRAGI_SPEC_PATH_MAX + 1];
	char name[8];
	int r = 0;

	for (int i = 0; i <= FRAGI_SPEC_PATH_MAX; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		longest[i] = frag_make_operator(fragment, name, "relay", FRAG_NO_ARGS);
		if (i > 0 && r == 0)
			r = frag_add_flow(fragment, longest[i - 1], "out", longest[i], "in");
	}
	path[0] = frag_make_operator(fragment, "a", "source", FRAG_ARGS({"count", "3"}));
	if (r == 0)
		r = frag_add_flow(fragment, path[0], NULL, longest[0], "in");
	if (r == 0)
		r = frag_add_path_deadline(fragment, longest, FRAGI_SPEC_PATH_MAX, 1,
					   FRAG_ON_MISS_COUNT);
	return r;
}

static int compose_too_long(struct frag_fragment *fragment)
{
	struct frag_op *too_long[FRAGI_SPEC_PATH_MAX + 1] = {NULL};

	frag_add_operator(fragment, frag_make_operator(fragment, "a", "source", FRAG_NO_ARGS));
	return frag_add_path_deadline(fragment, too_long, FRAGI_SPEC_PATH_MAX + 1, 1,
				      FRAG_ON_MISS_COUNT);
}

static int compose_back(struct frag_fragment *fragment)
{
	int r = make_path(fragment);
	struct frag_op *const back[] = {path[2], path[0]};

	return r < 0 ? r : frag_add_path_deadline(fragment, back, 2, 1, FRAG_ON_MISS_COUNT);
}

static const struct frag_composer composers[] = {
	{.name = "right", .compose = compose_right},
	{.name = "wrong", .compose = compose_wrong},
	{.name = "backward", .compose = compose_back},
	{.name = "long", .compose = compose_long},
	{.name = "too_long", .compose = compose_too_long},
};

static const struct frag_op_type *const ops[] = {
	&stamper_type, &pair_type, &source_type, &middle_type, &sink_type, &relay_type, &self_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "deadline", FRAG_OPS(ops),
					  FRAG_COMPOSERS(composers)};

static struct rig rig;

static void run(const char *scheduler, const char *yaml)
{
	static char text[4096];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\nscheduler: {type: %s}\n%s",
		 scheduler, yaml);
	notes_clear();
	rig_run(&rig, &plugin, text);
	cr_expect(rig_balances(&rig));
	for (uint32_t i = 0; i < fragi_run_ledger(rig.run)->op_count; i++)
		cr_expect_eq(atomic_load(&fragi_run_ledger(rig.run)->ops[i].path_clocks), 0,
			     "%u: all times are of one clock", i);
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

/*
 * Where the system runs other programs in between, another operator may be slower, but not again
 * and again.
 */
#define TRIES 6

Test(deadline, of_a_path_the_slowest_operator_is_named)
{
	for (int s = 0; s < 2; s++) {
		uint64_t slowest = 0;

		for (int i = 0; i < TRIES && slowest < 2; i++) {
			run(schedulers[s],
			    "operators:\n"
			    "  a: {type: source, parameters: {count: 3}}\n"
			    "  b: {type: middle}\n"
			    "  c: {type: middle, parameters: {work_us: 60000}}\n"
			    "  d: {type: sink}\n"
			    "flows: [{from: a, to: b, capacity: 3}, {from: b, to: c, capacity: 3},\n"
			    "        {from: c, to: d, capacity: 3}, {from: b, to: d, capacity: 3}]\n"
			    "deadlines:\n"
			    "  - {path: [a, b, c, d], budget: 10ms}\n"
			    "  - {path: [b, c], budget: 1h, on_miss: stop}\n");
			cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
			EXPECT(3, path_misses,
			       3); /* what comes from b at once takes another path */
			EXPECT(2, path_misses, 0);
			slowest = atomic_load(&fragi_run_ledger(rig.run)->ops[2].slowest);
			rig_end(&rig);
		}
		/* the first one may wait for d as long, if the scheduler ticks c again before */
		cr_expect_geq(slowest, 2);
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

/* Whichever is looked at last. */
Test(deadline, one_of_two_paths_that_end_together_stops)
{
	static const char *const paths[] = {
		"deadlines: [{path: [a, b, c], budget: 1ms, on_miss: stop}, {path: [b, c], budget: 1h}]\n",
		"deadlines: [{path: [b, c], budget: 1h}, {path: [a, b, c], budget: 1ms, on_miss: stop}]\n",
	};
	char yaml[600];

	for (int i = 0; i < 2; i++) {
		snprintf(yaml, sizeof(yaml),
			 "operators:\n"
			 "  a: {type: source, parameters: {count: 1, work_us: 3000}}\n"
			 "  b: {type: middle}\n"
			 "  c: {type: sink}\n"
			 "flows: [a -> b, b -> c]\n%s",
			 paths[i]);
		run("greedy", yaml);
		cr_expect_eq(rig.failed, 1, "%d", i);
		EXPECT(2, path_misses, 1);
		rig_end(&rig);
	}
}

Test(deadline, of_a_path_what_is_late_is_dropped_before_the_last_tick)
{
	for (int s = 0; s < 2; s++) {
		run(schedulers[s], "operators:\n"
				   "  a: {type: source, parameters: {count: 4, work_us: 3000}}\n"
				   "  b: {type: middle}\n"
				   "  c: {type: sink}\n"
				   "  d: {type: sink, parameters: {slot: 1}}\n"
				   "flows: [a -> b, {from: b, to: [c, d]}]\n"
				   "deadlines:\n"
				   "  - {path: [a, b, c], budget: 1ms, on_miss: drop}\n"
				   "  - {path: [a, b, d], budget: 1h, on_miss: drop}\n");
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect_eq(noted(0), 0);
		cr_expect_eq(rig_dropped(rig_row(&rig, 1), FRAGI_DROP_DEADLINE), 4);
		EXPECT(2, path_misses, 4);
		cr_expect_eq(noted(1), 4);
		EXPECT(3, path_misses, 0);
		rig_end(&rig);
	}
}

/* d gets what x passed on as it was, and what came from a at once. */
Test(deadline, what_another_operator_passes_on_has_left_the_path)
{
	run("greedy", "operators:\n"
		      "  a: {type: source, parameters: {count: 3, work_us: 3000}}\n"
		      "  x: {type: relay}\n"
		      "  d: {type: sink}\n"
		      "flows: [{from: a, to: [x, d]}, x -> d]\n"
		      "deadlines: [{path: [a, d], budget: 1ms}]\n");
	cr_expect_eq(noted(0), 6);
	EXPECT(2, path_misses, 3);
	rig_end(&rig);
}

Test(deadline, a_path_may_pass_an_operator_that_forwards)
{
	run("greedy", "operators:\n"
		      "  a: {type: source, parameters: {count: 3, work_us: 3000}}\n"
		      "  x: {type: relay}\n"
		      "  d: {type: sink}\n"
		      "flows: [{from: a, to: [x, d]}, x -> d]\n"
		      "deadlines: [{path: [a, d], budget: 1h}, {path: [a, x, d], budget: 1ms}]\n");
	cr_expect_eq(noted(0), 6);
	EXPECT(2, path_misses, 3);
	rig_end(&rig);
}

Test(deadline, what_a_tick_makes_of_several_messages_counts_once)
{
	run("greedy", "operators:\n"
		      "  a: {type: source, parameters: {count: 3, work_us: 3000}}\n"
		      "  b: {type: middle}\n"
		      "  c: {type: middle}\n"
		      "  j: {type: relay, parameters: {joins: true}}\n"
		      "  d: {type: sink}\n"
		      "flows: [{from: a, to: [b, c]}, b -> j, c -> j, {from: j, to: d}]\n"
		      "deadlines:\n"
		      "  - {path: [a, b, j, d], budget: 1ms}\n"
		      "  - {path: [b, j, d], budget: 1h}\n"
		      "  - {path: [a, c, j], budget: 1ms}\n");
	cr_expect_eq(noted(0), 3);
	EXPECT(3, path_misses, 3);
	EXPECT(4, path_misses, 3);
	rig_end(&rig);
}

/* It took the path once, in time, however long it is used. */
Test(deadline, a_message_that_is_used_again_has_left_the_path)
{
	static const char yaml[] =
		"clock: manual\n"
		"operators:\n"
		"  b: {type: source, parameters: {count: 1}}\n"
		"  a: {type: source, parameters: {count: 6},\n"
		"      conditions: [{type: periodic, recess_period: 1s}]}\n"
		"  p: {type: pair, ports: {a: {age: 1h, missing: wait}, b: {age: 1h, missing: reuse_last}}}\n"
		"flows: [b -> p.b, a -> p.a]\n"
		"deadlines: [{path: [b, p], budget: 1500ms}]\n";

	run("greedy", yaml);
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	cr_expect_eq(atomic_load(&rig_row(&rig, 0)->reused), 5);
	EXPECT(2, path_misses, 0);
	rig_end(&rig);
}

/* Since the begin of the oldest. */
Test(deadline, messages_of_one_path_that_come_together_go_on_as_the_oldest)
{
	run("greedy", "operators:\n"
		      "  a: {type: source, parameters: {count: 4, work_us: 30000}}\n"
		      "  j: {type: relay, parameters: {joins: true},\n"
		      "      conditions: [{type: message_available, min_size: 2}]}\n"
		      "  d: {type: sink}\n"
		      "flows: [{from: a, to: j, capacity: 2}, j -> d]\n"
		      "deadlines: [{path: [a, j, d], budget: 50ms}]\n");
	cr_expect_eq(noted(0), 2);
	cr_expect_eq(notes[0]->values[0], 2);
	EXPECT(2, path_misses, 2);
	rig_end(&rig);
}

Test(deadline, paths_are_followed_beside_tracking)
{
	notes_clear();
	rig_run(&rig, &plugin,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: source, parameters: {count: 5, work_us: 3000}}},\n"
		"        tracking: {is_limited_tracking: true, print: false}}\n"
		"  two: {operators: {m: {type: middle}, k: {type: sink}}, flows: [m -> k]}\n"
		"flows: [one.a -> two.m]\n"
		"deadlines: [{path: [one.a, two.m, two.k], budget: 2ms}]\n");
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	EXPECT(2, path_misses, 5);
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
		"test.yaml:4:31: app.a: deadline \"5\" has no unit; write for example 5s\n"
		"test.yaml:5:31: app.b: the budget of a deadline is 0; leave the deadline out\n"
		"test.yaml:6:54: app.c: on_miss: drop needs `from: acquisition`, since what a tick has sent cannot be taken back\n"
		"test.yaml:7:31: app.d: a deadline has no budget; add for example `budget: 20ms`\n"
		"test.yaml:7:38: app.d: from \"acquisiton\" is not known; did you mean \"acquisition\"?\n"
		"test.yaml:7:50: app.d: unknown key \"on_mis\"; did you mean \"on_miss\"?\n"
		"test.yaml:8:31: app.e: deadline is a list; it must be a map (keys and values)\n"
		"test.yaml:10:16: app: unknown operator \"app.bb\"; operators: a, b, c, d, e\n"
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
		"  one: {operators: {a: {type: source}}}\n"
		"  two: {operators: {b: {type: middle}, c: {type: sink}}, flows: [b -> c]}\n"
		"flows: [one.a -> two.b]\n"
		"deadlines: [{path: [one.a, two.c], budget: 1ms}]\n",
		"test.yaml:7:28: a deadline has a path from one.a to two.c, and no flow leads there\n");
}

/* Each process sees its own end of the flows to others. */
Test(deadline, of_a_path_to_another_process_the_near_end_is_checked)
{
	static char yaml[] =
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {operators: {a: {type: source}, b: {type: sink}}, flows: [a -> b]}\n"
		"  two: {operators: {c: {type: middle}, d: {type: sink}}, flows: [c -> d]}\n"
		"flows: [one.a -> two.c]\n"
		"deadlines: [{path: [one.a, two.d], budget: 1ms}, {path: [two.c, two.d], budget: 1s},\n"
		"            {path: [two.d, one.b], budget: 1s}]\n";
	static const char *const lines[] = {
		"test.yaml:8:28: a deadline has a path from two.d to one.b, and no flow leads there\n",
		"test.yaml:7:28: a deadline has a path from one.a to two.d, and no flow leads there\n"
		"test.yaml:8:28: a deadline has a path from two.d to one.b, and no flow leads there\n"};
	static const char *const names[] = {"one", "two"};

	for (int i = 0; i < 2; i++) {
		cr_expect_lt(rig_prepare_host(&rig, &plugin, yaml,
					      (const char *const[]){names[i], NULL}, (uint32_t)i),
			     0);
		expect_errors(&rig.diag, lines[i]);
		rig_end(&rig);
	}
}

/* As many as a message can carry. */
Test(deadline, paths_to_other_processes_are_bounded)
{
	static char yaml[65536];

	for (size_t more = 0; more < 2; more++) {
		size_t used = (size_t)snprintf(yaml, sizeof(yaml),
					       "frag: 1\napplication: app\nfragments:\n"
					       "  one: {operators: {a: {type: source}}}\n"
					       "  two: {operators: {b: {type: sink}}}\n"
					       "flows: [one.a -> two.b]\ndeadlines:\n");

		for (size_t i = 0; i < FRAGI_TRAIL_MAX + more; i++)
			used += (size_t)snprintf(yaml + used, sizeof(yaml) - used,
						 "  - {path: [one.a, two.b], budget: 1s}\n");
		int r = rig_prepare_host(&rig, &plugin, yaml, (const char *const[]){"one", NULL},
					 0);

		/* without a module for the flow beside this program, that is an error */
		cr_expect(more == 0 || r < 0);
		if (more > 0)
			expect_errors(
				&rig.diag,
				"test.yaml:264:13: one.a is 256 times on paths with deadlines that lead to other processes, and no more are possible; give these fragments to one host, or remove some\n");
		for (size_t i = 0; more == 0 && i < rig.diag.count; i++)
			cr_expect_null(strstr(rig.diag.items[i].text, "256 times"));
		rig_end(&rig);
	}
}

Test(deadline, in_c_the_same_can_be_set)
{
	run("greedy", "compose: right\noperators: {c: {deadline: {budget: 1ns}}}\n");
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	EXPECT(1, deadline_misses, 3); /* of its own setup */
	EXPECT(2, deadline_misses, 3); /* the graph's wins */
	EXPECT(2, path_misses, 3);
	rig_end(&rig);
}

Test(deadline, in_c_mistakes_are_refused_with_the_same_sentences)
{
	expect_refused(
		"compose: wrong\n",
		"app.a: the budget of a deadline is 0; leave the deadline out\n"
		"app.a: the budget of a deadline is negative; give nanoseconds\n"
		"app.a: on_miss: drop needs `from: acquisition`, since what a tick has sent cannot be taken back\n"
		"app.a: 7 is not a valid on_miss of a deadline; take one of FRAG_ON_MISS_...\n"
		"app.a: 5 is not a valid begin of a deadline; take one of FRAG_DEADLINE_FROM_...\n"
		"app: a deadline has a path of 2 to 64 operators; write for example `path: [camera, detect, view]`\n"
		"app: the budget of a deadline is 0; leave the deadline out\n"
		"app: frag_add_path_deadline: operator 2 of the path is NULL\n");
	expect_refused(
		"compose: too_long\n",
		"app: a deadline has a path of 2 to 64 operators; write for example `path: [camera, detect, view]`\n");
	run("greedy", "compose: long\n");
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	rig_end(&rig);
	expect_refused("compose: backward\n",
		       "a deadline has a path from app.c to app.a, and no flow leads there\n");
}
