// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/alloc.h>
#include <cond/condition.h>
#include <graph/op.h>

#include "built.h"
#include "unit/graph_texts.h"

/* The state of libgood.so's scale, as far as it is looked at. */
struct scale {
	double factor;
	bool loud;
	int64_t count;
	uint64_t room;
	int64_t pause;
	const char *mode;
	const char *path;
	struct frag_resource *pool;
	struct frag_condition *gate;
	struct frag_i64_list sizes;
	struct frag_string_list names;
};

static struct fragi_registry *registry;

static void set_up(void)
{
	cr_assert_eq(
		fragi_registry_create(
			&(struct fragi_registry_config){
				.library_path =
					(const char *const[]){built("tests/sample_plugins"), NULL}},
			&registry),
		0);
}

static void tear_down(void)
{
	fragi_registry_destroy(registry);
}

TestSuite(fragment, .init = set_up, .fini = tear_down);

#define HEAD                                                                                       \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"extensions: [libgood.so]\n"

static int compose(const struct fragi_spec *spec, struct fragi_diag *diag,
		   struct frag_fragment **out)
{
	return fragi_fragment_compose(spec, &spec->fragments[0], registry, diag, out);
}

/* The one fragment of a graph without errors. */
static struct frag_fragment *good(const struct graph_text *graph, struct fragi_spec **out_spec)
{
	struct fragi_spec *spec = good_graph(graph);
	struct frag_fragment *fragment = NULL;
	struct fragi_diag diag = {0};
	int r = compose(spec, &diag, &fragment);

	expect_errors(&diag, "");
	fragi_diag_fini(&diag);
	cr_assert_eq(r, 0);
	*out_spec = spec;
	return fragment;
}

/* A graph whose texts are right, and all that is wrong with it once the plugins are there. */
static void bad(const struct graph_text *graph, int code, const char *lines)
{
	struct fragi_spec *spec = good_graph(graph);
	struct frag_fragment *fragment = NULL;
	struct fragi_diag diag = {0};

	cr_expect_eq(compose(spec, &diag, &fragment), code);
	cr_expect_null(fragment);
	expect_errors(&diag, lines);
	fragi_diag_fini(&diag);
	fragi_spec_destroy(spec);
}

#define TEXT(...) (&(const struct graph_text){.text = __VA_ARGS__})

static struct frag_op *op_named(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (strcmp(fragment->ops[i]->name, name) == 0)
			return fragment->ops[i];
	cr_assert_fail("no operator %s", name);
	return NULL;
}

/* An integer parameter of a condition. */
static int64_t param_of(const struct frag_condition *condition, const char *name)
{
	const struct frag_condition_type *type = condition->type;

	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0)
			return *(const int64_t *)(const void *)((const char *)condition->state +
								type->params[i].offset);
	cr_assert_fail("no parameter %s", name);
	return 0;
}

/* The inner level wins: application, fragment, operator. */
Test(fragment, metadata_on_three_levels)
{
	struct fragi_spec *spec = good_graph(TEXT(
		"frag: 1\n"
		"application: app\n"
		"extensions: [libgood.so]\n"
		"metadata: false\n"
		"metadata_policy: update\n"
		"fragments:\n"
		"  on:\n"
		"    metadata: true\n"
		"    metadata_policy: reject\n"
		"    operators:\n"
		"      as_fragment: {type: source, parameters: {inputs: 1}}\n"
		"      off: {type: source, parameters: {inputs: 1}, metadata: false, metadata_policy: inplace_update}\n"
		"  as_application:\n"
		"    operators:\n"
		"      off: {type: source, parameters: {inputs: 1}}\n"
		"      on: {type: source, parameters: {inputs: 1}, metadata: true, metadata_policy: raise}\n"));
	static const struct {
		const char *fragment, *op;
		bool on;
		enum frag_metadata_policy policy;
	} expected[] = {
		{"on", "as_fragment", true, FRAG_METADATA_REJECT},
		{"on", "off", false, FRAG_METADATA_INPLACE_UPDATE},
		{"as_application", "off", false, FRAG_METADATA_UPDATE},
		{"as_application", "on", true, FRAG_METADATA_RAISE},
	};

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct frag_fragment *fragment = NULL;
		struct fragi_diag diag = {0};
		const struct frag_op *op;

		cr_assert_eq(fragi_fragment_compose(spec, &spec->fragments[i / 2], registry, &diag,
						    &fragment),
			     0, "%s", diag.count > 0 ? diag.items[0].text : "");
		op = op_named(fragment, expected[i].op);
		cr_expect_eq(op->metadata, expected[i].on, "%s", op->subject);
		cr_expect_eq(op->metadata_policy, expected[i].policy, "%s", op->subject);
		fragi_fragment_destroy(fragment);
		fragi_diag_fini(&diag);
	}
	fragi_spec_destroy(spec);
}

Test(fragment, declared_in_a_graph)
{
	struct fragi_spec *spec;
	struct frag_fragment *fragment = good(
		TEXT(HEAD
		     "arguments: {side: {default: left}}\n"
		     "resources: {pool: {type: BlockMemoryPool, storage_type: 2, block_size: 1K, num_blocks: 2}}\n"
		     "operators:\n"
		     "  ones:\n"
		     "    type: source\n"
		     "    parameters: {inputs: 3}\n"
		     "    conditions: [{type: CountCondition, count: 7}, {type: periodic, name: beat, recess_period: 10ms}]\n"
		     "  twice:\n"
		     "    type: scale\n"
		     "    parameters: {factor: 0.5, pool: $pool, gate: $gate, names: [a, \"b c\"], mode: slow}\n"
		     "    conditions: [{type: boolean, name: gate, enable_tick: false}]\n"
		     "    ports: {in: {capacity: 5, policy: pop, condition: none}}\n"
		     "    metadata_policy: reject\n"
		     "    watchdog: 2s\n"
		     "  sink: {type: sink, parameters: {inputs: 2}, metadata: false}\n"
		     "flows:\n"
		     "  - ones -> twice\n"
		     "  - {from: twice, to: [sink.in0, sink.in1], capacity: 3, policy: reject}\n"
		     "  - ones -> twice\n"),
		&spec);
	const struct frag_op *ones = op_named(fragment, "ones"),
			     *twice = op_named(fragment, "twice"),
			     *sink = op_named(fragment, "sink");
	const struct scale *scale = twice->state;

	cr_expect_eq(fragment->op_count, 3);
	cr_expect_str_eq(twice->subject, "app.twice");
	cr_expect_str_eq(frag_op_argument(twice, "side"), "left");
	cr_expect_null(frag_op_argument(twice, "size"));
	cr_expect_eq(scale->factor, 0.5);
	cr_expect_eq(scale->count, 10);
	cr_expect_eq(scale->room, 4096);
	cr_expect_str_eq(scale->mode, "slow");
	cr_expect_null(scale->path);
	cr_expect_str_eq(frag_resource_name(scale->pool), "pool");
	cr_expect_eq(scale->pool, frag_op_resource(sink, "pool"));
	cr_expect_eq(scale->gate, frag_op_condition(twice, "gate"));
	cr_expect_eq(scale->gate->type->check(scale->gate->state, 0, NULL), FRAG_WAIT_EVENT);
	cr_assert_eq(scale->names.count, 2);
	cr_expect_str_eq(scale->names.items[1], "b c");
	cr_assert_eq(scale->sizes.count, 2);
	cr_expect_eq(scale->sizes.items[1], 2);
	cr_expect_eq(twice->metadata_policy, FRAG_METADATA_REJECT);
	cr_expect_eq(twice->watchdog_ns, 2000000000);
	cr_expect(twice->metadata);
	cr_expect_not(sink->metadata);
	cr_expect_eq(twice->ports[0].capacity, 5);
	cr_expect_eq(twice->ports[0].policy, FRAG_POLICY_POP);
	cr_expect(twice->ports[0].flags & FRAG_PORT_NO_CONDITION);
	cr_expect_not(twice->ports[1].flags & FRAG_PORT_NO_CONDITION);
	cr_expect_eq(twice->ports[0].type, &frag_type_f64);
	cr_assert_eq(ones->condition_count, 2);
	cr_expect_str_eq(ones->conditions[0]->name, "count");
	cr_expect_eq(param_of(ones->conditions[0], "count"), 7);
	cr_expect_eq(param_of(ones->conditions[1], "recess_period"), 10000000);

	cr_assert_eq(fragment->flow_count, 3);
	cr_expect_eq(fragment->flows[0].capacity, 5);
	cr_expect_eq(fragment->flows[0].policy, FRAG_POLICY_POP);
	cr_expect_eq(fragment->flows[2].to_port, 1);
	cr_expect_eq(fragment->flows[2].capacity, 3);
	cr_expect_eq(frag_op_flow_count(twice, 1), 2);
	cr_expect_eq(frag_op_flow_count(twice, 0), 1);
	cr_expect_eq(fragment->info.op_count, 3);
	cr_expect_str_eq(fragment->info.ops[2].ports[1].name, "in1");
	cr_expect_str_eq(fragment->info.ops[2].ports[1].type, "f64");
	cr_expect(fragment->info.ops[2].ports[1].has_codec);
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);
}

Test(fragment, later_settings_win)
{
	static const struct graph_text composed = {
		.text = HEAD
		"config: {line: {inputs: 4}}\n"
		"compose: line\n"
		"operators: {twice: {parameters: {factor: 3, loud: true}, ports: {in: {capacity: 6}}}}\n",
		.sets = {"app.twice.factor=4", "app.sink.inputs=1"},
	};
	struct fragi_spec *spec;
	struct frag_fragment *fragment = good(&composed, &spec);
	const struct frag_op *twice = op_named(fragment, "twice");
	const struct scale *scale = twice->state;

	cr_expect_eq(scale->factor, 4);      /* --set over the graph over C */
	cr_expect(scale->loud);              /* the graph over the default */
	cr_expect_eq(scale->sizes.count, 3); /* C over the default */
	cr_expect_eq(scale->count, 10);      /* the default */
	/* config, read in C */
	cr_expect_eq(*(const int64_t *)op_named(fragment, "ones")->state, 4);
	cr_expect_eq(twice->ports[0].capacity, 6);
	cr_assert_eq(fragment->flow_count, 2);
	cr_expect_eq(fragment->flows[1].capacity, 3);
	cr_expect_eq(fragment->flows[1].policy, FRAG_POLICY_POP);
	/* In the order in which they were added. */
	cr_expect_str_eq(fragment->ops[0]->name, "ones");
	cr_expect_str_eq(fragment->ops[2]->name, "sink");
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);
}

Test(fragment, composed_and_declared_together)
{
	struct fragi_spec *spec;
	struct frag_fragment *fragment =
		good(TEXT(HEAD "compose: line\n"
			       "operators: {more: {type: scale}, end: {type: sink}}\n"
			       "flows: [ones -> more, more -> end, twice -> end]\n"),
		     &spec);

	cr_expect_eq(fragment->op_count, 5);
	cr_expect_str_eq(fragment->ops[0]->name, "more");
	cr_expect_str_eq(fragment->ops[2]->name, "ones");
	cr_expect_eq(fragment->flow_count, 5);
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);
}

Test(fragment, composed_with_conditions_and_resources)
{
	struct fragi_spec *spec;
	struct frag_fragment *fragment = good(TEXT(HEAD "compose: equipped\n"), &spec);
	const struct frag_op *twice = op_named(fragment, "twice");
	const struct scale *scale = twice->state;

	cr_assert_eq(twice->condition_count, 2);
	cr_expect_str_eq(twice->conditions[0]->name, "gate");
	cr_expect_eq(scale->gate, twice->conditions[0]);
	cr_expect_eq(scale->gate->type->check(scale->gate->state, 0, NULL), FRAG_WAIT_EVENT);
	cr_expect_str_eq(twice->conditions[1]->name, "count");
	cr_expect_eq(param_of(twice->conditions[1], "count"), 9);
	cr_assert_not_null(scale->pool);
	cr_expect_eq(scale->pool, frag_op_resource(twice, "pool"));
	cr_expect_eq(frag_resource_blocks_free(scale->pool), 3);
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);
}

Test(fragment, a_plugin_brings_conditions)
{
	struct fragi_spec *spec;
	struct frag_fragment *fragment = good(
		TEXT(HEAD
		     "compose: thrifty\n"
		     "operators:\n"
		     "  more: {type: source, parameters: {inputs: 3},\n"
		     "         conditions: [{type: budget, ticks: 7, saved: 1}, {type: count, count: 4}]}\n"
		     "  end: {type: sink}\n"
		     "flows: [more -> end]\n"),
		&spec);
	struct frag_op *more = op_named(fragment, "more");
	const struct frag_op *ones = op_named(fragment, "ones");
	char *text = frag_op_describe(more);

	cr_assert_eq(more->condition_count, 2);
	cr_expect_str_eq(frag_condition_name(more->conditions[0]), "budget");
	cr_expect_eq(param_of(more->conditions[0], "ticks"), 7);
	cr_expect_eq(param_of(more->conditions[0], "saved"), 1);
	cr_expect_eq(frag_condition_state(more->conditions[0], "budget"),
		     more->conditions[0]->state);
	cr_expect_null(frag_condition_state(more->conditions[0], "count"));
	cr_expect_null(frag_condition_state(NULL, "count"));
	cr_assert_not_null(strstr(text, "  - name: budget\n"
					"    type: budget\n"
					"    parameters:\n"
					"      ticks: 7\n"
					"      saved: 1\n"
					"  - name: count\n"));
	free(text);
	cr_assert_eq(ones->condition_count, 2);
	cr_expect_eq(param_of(ones->conditions[0], "ticks"), 3);
	cr_expect_str_eq(frag_condition_name(ones->conditions[1]), "more");
	cr_expect_eq(param_of(ones->conditions[1], "saved"), 2);
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);
}

Test(fragment, conditions_of_a_plugin_are_refused_like_built_in_ones)
{
	bad(TEXT(HEAD
		 "operators:\n"
		 "  a: {type: source, parameters: {inputs: 1}, conditions: [{type: budget}]}\n"
		 "  b: {type: source, parameters: {inputs: 1}, conditions: [{type: budget, ticks: 0, tricks: 3}]}\n"
		 "  c: {type: source, parameters: {inputs: 1}, conditions: [{type: budgets, ticks: 1}]}\n"
		 "  d: {type: source, parameters: {inputs: 1}, conditions: [{type: budget, ticks: 5, saved: 5}]}\n"
		 "  e: {type: source, parameters: {inputs: 1}, conditions: [{type: budget, ticks: 5, saved: 13}]}\n"),
	    -EINVAL,
	    "app.yaml:5:59: app.a: condition budget: parameter \"ticks\" (i64) is required and not set\n"
	    "app.yaml:6:81: app.b: condition budget: parameter \"ticks\": 0 is out of range; it must be from 1 to 1000\n"
	    "app.yaml:6:84: app.b: condition budget: unknown parameter \"tricks\"; did you mean \"ticks\"?\n"
	    "app.yaml:7:59: app.c: unknown condition type \"budgets\"; did you mean \"budget\"?\n"
	    "app.yaml:8:59: app.d: condition budget: budget saves all its ticks; save less\n"
	    "app.yaml:9:59: app.e: condition budget: Numerical argument out of domain\n");
}

Test(fragment, all_errors_at_once)
{
	bad(TEXT(HEAD
		 "resources: {pool: {type: block_memory_poll}}\n"
		 "operators:\n"
		 "  a: {type: scal}\n"
		 "  b:\n"
		 "    type: scale\n"
		 "    parameters:\n"
		 "      facter: 1\n"
		 "      count: 0\n"
		 "      loud: perhaps\n"
		 "      mode: fastt\n"
		 "      pause: soon\n"
		 "      pool: $pool\n"
		 "      gate: $gat\n"
		 "      sizes: [1, x]\n"
		 "    conditions: [{type: boolean, name: gate}, {type: counter}, {type: first_pixel_out}]\n"
		 "    ports: {inn: {capacity: 2}}\n"
		 "  c: {type: source}\n"
		 "flows: [a -> b, c.out -> b.in, c -> b.inn]\n"),
	    -EINVAL,
	    "app.yaml:4:13: app.pool: unknown resource type \"block_memory_poll\"; did you mean \"block_memory_pool\"?\n"
	    "app.yaml:6:3: app.a: unknown operator type \"scal\"; did you mean \"scale\"?\n"
	    "app.yaml:10:7: app.b: unknown parameter \"facter\"; did you mean \"factor\"?\n"
	    "app.yaml:11:14: app.b: parameter \"count\": 0 is out of range; it must be from 1 to 1000\n"
	    "app.yaml:12:13: app.b: parameter \"loud\": \"perhaps\" is not a valid bool; write true or false\n"
	    "app.yaml:13:13: app.b: parameter \"mode\": \"fastt\" is not a valid choice; did you mean \"fast\"?\n"
	    "app.yaml:14:14: app.b: parameter \"pause\": \"soon\" is not a valid duration; write nanoseconds, or a number with a unit such as 10ms, 2s or 30hz\n"
	    "app.yaml:16:13: app.b: parameter \"gate\": there is no condition \"gat\"; did you mean \"gate\"?\n"
	    "app.yaml:17:18: app.b: parameter \"sizes\": \"x\" is not a valid integer; write a whole number such as 3\n"
	    "app.yaml:18:47: app.b: unknown condition type \"counter\"; did you mean \"count\"?\n"
	    "app.yaml:18:64: app.b: condition type \"first_pixel_out\" is not part of frag; use a periodic condition, since there is no window to wait for\n"
	    "app.yaml:19:13: app.b: unknown port \"inn\"; did you mean \"in\"?\n"
	    "app.yaml:20:3: app.c: parameter \"inputs\" (i64) is required and not set\n"
	    "app.yaml:21:32: flow end app.b.inn: no input \"inn\"; did you mean \"in\"?\n");
}

Test(fragment, a_missing_library_is_the_only_error_it_makes)
{
	bad(TEXT("frag: 1\n"
		 "application: app\n"
		 "extensions: [libmajor.so]\n"
		 "compose: line\n"
		 "operators: {a: {type: scale}, b: {parameters: {x: 1}}}\n"
		 "flows: [a -> b]\n"),
	    -EINVAL,
	    "app.yaml:3:14: library libmajor.so was built for plugin ABI 9, this is frag " FRAG_VERSION
	    " with plugin ABI 1; build it again with this frag's headers\n");
	bad(TEXT("frag: 1\n"
		 "application: app\n"
		 "extensions: [libnothing.so]\n"
		 "operators: {a: {type: scale}}\n"),
	    -ENOENT,
	    "app.yaml:3:14: library libnothing.so is not a plugin: it has no symbol frag_plugin_v1; define it with FRAG_PLUGIN(...)\n");
}

Test(fragment, composers_that_fail)
{
	static const char line[] = HEAD "compose: failing\narguments: {how: {default: silent}}\n";

	bad(&(const struct graph_text){.text = line}, -EINVAL,
	    "app.yaml:1:1: app: composer \"failing\" returned -5 (Input/output error)\n");
	bad(&(const struct graph_text){.text = line, .args = {"--how", "positive"}}, -EINVAL,
	    "app.yaml:1:1: app: composer \"failing\" returned 1; return 0 or a negative errno\n");
	bad(&(const struct graph_text){.text = line, .args = {"--how", "worded"}}, -EINVAL,
	    "app: no camera named \"worded\"; see the manual\n");
	bad(&(const struct graph_text){.text = line, .args = {"--how", "type"}}, -EINVAL,
	    "app.x: unknown operator type \"scal\"; did you mean \"scale\"?\n");
	bad(&(const struct graph_text){.text = line, .args = {"--how", "null"}}, -EINVAL,
	    "app: frag_add_operator: the operator is NULL\n");
	bad(TEXT(HEAD "compose: forgetful\n"), -EINVAL,
	    "app: operator \"lost\" was made but never added; pass it to frag_add_operator or frag_add_flow\n");
	bad(TEXT(HEAD "compose: lime\n"), -EINVAL,
	    "app.yaml:1:1: app: compose: unknown composer \"lime\"; did you mean \"line\"?\n");
	bad(TEXT(HEAD "compose: line\noperators: {sink: {type: sink}}\n"), -EINVAL,
	    "app.yaml:5:13: app.sink: the composer makes an operator of this name too; leave the type out here to set parameters of that one\n");
	bad(TEXT(HEAD "compose: line\noperators: {twicw: {parameters: {factor: 1}}}\n"), -EINVAL,
	    "app.yaml:5:13: app: operator \"twicw\" has no type, and composer \"line\" makes none of this name; did you mean \"twice\"?\n");
}

Test(fragment, setups_that_fail)
{
	bad(TEXT(HEAD "operators:\n"
		      "  a: {type: sink, parameters: {fail: setup}}\n"
		      "  b: {type: sink, parameters: {fail: word}}\n"
		      "  c: {type: sink, parameters: {fail: port, inputs: 2}}\n"
		      "  s: {type: source, parameters: {inputs: 1}}\n"
		      "flows: [s -> a.in0]\n"),
	    -ENOENT,
	    "app.yaml:5:3: app.a: setup returned -5 (Input/output error)\n"
	    "app.yaml:6:3: app.b: there is no device; plug one in\n"
	    "app.yaml:7:3: app.c: cannot add a port: two ports are called \"in0\"\n");
}

Test(fragment, inputs_left_open_are_reported_unless_an_end_in_doubt_may_be_meant_for_them)
{
#define OPERATORS                                                                                  \
	"operators:\n"                                                                             \
	"  a: {type: source, parameters: {inputs: 1}}\n"                                           \
	"  b: {type: sink, parameters: {inputs: 3}}\n"                                             \
	"  c: {type: scale}\n"
	bad(TEXT(HEAD OPERATORS "flows: [a -> b.in1]\n"), -EINVAL,
	    "app.yaml:6:3: app.b: input \"in0\" is not connected; add a flow that ends there\n"
	    "app.yaml:6:3: app.b: input \"in2\" is not connected; add a flow that ends there\n"
	    "app.yaml:7:3: app.c: input \"in\" is not connected; add a flow that ends there\n");
	bad(TEXT(HEAD OPERATORS "flows: [a -> b]\n"), -EINVAL,
	    "app.yaml:7:3: app.c: input \"in\" is not connected; add a flow that ends there\n"
	    "app.yaml:8:9: flow end app.b: several could be meant; name the port; its inputs: in0, in1, in2\n");
	bad(TEXT(HEAD OPERATORS "flows: [a -> b.in1, a -> b.on2, a.aut -> b.in0]\n"), -EINVAL,
	    "app.yaml:7:3: app.c: input \"in\" is not connected; add a flow that ends there\n"
	    "app.yaml:8:21: flow end app.b.on2: no input \"on2\"; did you mean \"in2\"?\n"
	    "app.yaml:8:33: flow end app.a.aut: no output \"aut\"; did you mean \"out\"?\n");
#undef OPERATORS
	/* A flow to the same name in another fragment connects nothing here. */
	bad(TEXT("frag: 1\n"
		 "application: app\n"
		 "extensions: [libgood.so]\n"
		 "fragments:\n"
		 "  one:\n"
		 "    operators:\n"
		 "      tx: {type: source, parameters: {inputs: 0}}\n"
		 "      rx: {type: scale}\n"
		 "  two: {operators: {rx: {type: scale}}}\n"
		 "flows: [one.tx -> two.rx]\n"),
	    -EINVAL,
	    "app.yaml:8:7: one.rx: input \"in\" is not connected; add a flow that ends there\n");
}

Test(fragment, conditions_name_ports)
{
	struct fragi_spec *spec;
	struct frag_fragment *fragment = good(
		TEXT(HEAD
		     "operators:\n"
		     "  s: {type: sink, parameters: {inputs: 2}, conditions: [{type: message_available, receiver: in1, min_size: 2}, {type: count}, {type: count, count: 2}]}\n"
		     "  t: {type: scale, conditions: [{type: none}]}\n"
		     "  u: {type: scale, conditions: [{type: downstream_affordable}]}\n"
		     "  ones: {type: source, parameters: {inputs: 1}}\n"
		     "flows: [ones -> s.in0, {from: ones, to: s.in1, capacity: 2}, ones -> t, ones -> u]\n"),
		&spec);
	const struct frag_op *s = op_named(fragment, "s");

	cr_expect_eq(s->conditions[0]->port, 1);
	cr_expect(s->ports[1].flags & FRAG_PORT_NO_CONDITION);
	cr_expect_not(s->ports[0].flags & FRAG_PORT_NO_CONDITION);
	cr_expect_str_eq(s->conditions[2]->name, "count_2");
	cr_expect(op_named(fragment, "t")->ports[0].flags & FRAG_PORT_NO_CONDITION);
	cr_expect(op_named(fragment, "t")->ports[1].flags & FRAG_PORT_NO_CONDITION);
	cr_expect_eq(op_named(fragment, "u")->conditions[0]->port, 1);
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);

	bad(TEXT(HEAD
		 "operators:\n"
		 "  s: {type: sink, parameters: {inputs: 2}, conditions: [{type: message_available}]}\n"
		 "  t: {type: scale, conditions: [{type: message_available, receiver: out}, {type: periodic}]}\n"
		 "  u: {type: source, parameters: {inputs: 1}, conditions: [{type: message_available}]}\n"
		 "  ones: {type: source, parameters: {inputs: 1}}\n"
		 "flows: [ones -> s.in0, ones -> s.in1, ones -> t]\n"),
	    -EINVAL,
	    "app.yaml:5:57: app.s: condition message_available: name the port with receiver; its inputs: in0, in1\n"
	    "app.yaml:6:75: app.t: condition periodic: parameter \"recess_period\" (duration) is required and not set\n"
	    "app.yaml:7:59: app.u: condition message_available: name the port with receiver; it has no inputs\n");
}

/* Composed in C alone, as the harness does it. */
static int nothing(void *state, struct frag_tick *tick)
{
	return 0;
}

static uint32_t initialized[16], initialized_count, finished_count;

static int note(void *state, struct frag_op *op)
{
	cr_expect_eq(fragi_current()->op, op);
	cr_expect_eq(fragi_current()->callback, FRAGI_CALL_INITIALIZE);
	initialized[initialized_count++] = op->index;
	return op->name[0] == 'z' ? -ENODEV : 0;
}

static void note_end(void *state, struct frag_op *op)
{
	cr_expect_eq(fragi_current()->op, op);
	finished_count++;
}

static const struct frag_port any_ports[] = {
	{.name = "in", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI},
	{.name = "out", .dir = FRAG_OUT},
};
static const struct frag_op_type any = {FRAG_OP_TYPE_INIT,     .name = "any",
					FRAG_PORTS(any_ports), .compute = nothing,
					.initialize = note,    .fini = note_end};

/* edges: pairs of letters; operators are made in the order of `names`. */
static struct frag_fragment *graph_of(const char *names, const char *edges, struct fragi_diag *diag)
{
	struct frag_fragment *fragment;
	struct frag_op *ops[128] = {NULL};
	char name[2] = "";

	cr_assert_eq(fragi_fragment_begin("app", NULL, NULL, NULL, diag, &fragment), 0);
	for (const char *c = names; *c != '\0'; c++) {
		name[0] = *c;
		ops[(int)*c] = frag_make_operator_of(fragment, name, &any, FRAG_NO_ARGS);
		cr_assert_eq(frag_add_operator(fragment, ops[(int)*c]), 0);
	}
	for (const char *c = edges; c[0] != '\0'; c += 2)
		cr_assert_eq(frag_add_flow(fragment, ops[(int)c[0]], "out", ops[(int)c[1]], "in"),
			     0);
	cr_assert_eq(fragi_fragment_complete(fragment), 0);
	return fragment;
}

static void expect_order(const char *names, const char *edges, const char *order)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = graph_of(names, edges, &diag);
	char got[16] = "";

	for (uint32_t i = 0; i < fragment->op_count; i++)
		got[i] = fragment->ops[fragi_fragment_order(fragment)[i]]->name[0];
	cr_expect_str_eq(got, order);
	initialized_count = 0;
	cr_expect_eq(fragi_fragment_initialize(fragment, &diag), 0);
	for (uint32_t i = 0; i < initialized_count; i++)
		cr_expect_eq(initialized[i], fragi_fragment_order(fragment)[i]);
	cr_expect_eq(initialized_count, fragment->op_count);
	cr_expect_null(fragi_current()->op);
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(&diag);
}

Test(fragment, topological_order)
{
	expect_order("a", "", "a");
	expect_order("cba", "abbc", "abc");       /* a line made backwards */
	expect_order("abcd", "acbcad", "abcd");   /* of those that are ready, the first made */
	expect_order("abcd", "abbccbcd", "abcd"); /* a cycle with a root */
	expect_order("dcba", "abbccbcd", "abcd"); /* its entry is what the root leads to */
	expect_order("bca", "abbcca", "bca");     /* a cycle without a root: the first added */
	expect_order("abc", "aaabbc", "abc");     /* a flow to oneself */
	expect_order("abcdef", "abbadeedcf", "cfabde"); /* two cycles and a line */
}

Test(fragment, initialize_stops_at_the_first_failure)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = graph_of("zab", "azzb", &diag);

	initialized_count = 0;
	cr_expect_eq(fragi_fragment_initialize(fragment, &diag), -ENODEV);
	expect_errors(&diag, "app.z: initialize returned -19 (No such device)\n");
	cr_expect_eq(initialized_count, 2);
	finished_count = 0;
	fragi_fragment_destroy(fragment);
	cr_expect_eq(finished_count, 3, "whoever was set up is finished, initialised or not");
	fragi_diag_fini(&diag);
}

Test(fragment, refuses_what_c_gets_wrong)
{
	struct fragi_diag diag = {0};
	struct frag_op_type wrong = any;
	struct frag_fragment *fragment, *other;
	struct frag_op *op, *stranger;

	cr_assert_eq(fragi_fragment_begin("app", NULL, NULL, NULL, &diag, &fragment), 0);
	cr_assert_eq(fragi_fragment_begin("other", NULL, NULL, NULL, &diag, &other), 0);
	stranger = frag_make_operator_of(other, "stranger", &any, FRAG_NO_ARGS);
	op = frag_make_operator_of(fragment, "a", &any, FRAG_NO_ARGS);
	cr_assert_not_null(op);
	cr_expect_null(frag_make_operator_of(fragment, "a", &any, FRAG_NO_ARGS));
	cr_expect_null(frag_make_operator_of(fragment, "a.b", &any, FRAG_NO_ARGS));
	wrong.compute = NULL;
	cr_expect_null(frag_make_operator_of(fragment, "b", &wrong, FRAG_NO_ARGS));
	wrong = any;
	wrong.struct_size = 8;
	cr_expect_null(frag_make_operator_of(fragment, "b", &wrong, FRAG_NO_ARGS));
	cr_expect_null(frag_make_operator(fragment, "b", "scale", FRAG_NO_ARGS));
	cr_expect_eq(frag_add_operator(fragment, stranger), -EINVAL);
	cr_expect_eq(frag_add_flow(fragment, op, "nowhere", op, "in"), 0);
	cr_expect_null(frag_make_condition(op, NULL, "perodic", FRAG_NO_ARGS));
	cr_expect_null(frag_make_resource(fragment, "r", "cuda_green_context", FRAG_NO_ARGS));
	cr_expect_eq(frag_op_add_port(op, &any_ports[0]), -EBUSY);
	cr_expect_eq(fragi_fragment_complete(fragment), -EINVAL);
	expect_errors(
		&diag,
		"app: operator \"a\" is made twice\n"
		"app: \"a.b\" is not a valid name of an operator; write a letter, then letters, digits, _ or -, 63 at most\n"
		"app: operator \"b\": operator type \"any\" has no compute\n"
		"app: operator \"b\": an operator type of 8 bytes is not valid; begin its table with FRAG_OP_TYPE_INIT\n"
		"app.b: no types are registered here; make it of its table\n"
		"app: operator \"stranger\" is of fragment \"other\"\n"
		"app.a: unknown condition type \"perodic\"; did you mean \"periodic\"?\n"
		"app.r: cuda_green_context_pool is not set; name a pool\n"
		"flow end app.a.nowhere: no output \"nowhere\"; its outputs: out\n");
	cr_expect_eq(frag_add_operator(fragment, op), -EBUSY);
	fragi_fragment_destroy(fragment);
	fragi_fragment_destroy(other);
	fragi_diag_fini(&diag);
}

/*
 * Every allocation fails once, one after the other: each time it is an error, and nothing is left
 * (sanitizers look).
 */
Test(fragment, short_memory_is_an_error)
{
	static const struct graph_text text = {
		.text = HEAD
		"resources: {pool: {type: unbounded_allocator}}\n"
		"compose: line\n"
		"operators:\n"
		"  twice: {parameters: {factor: 3, names: [a, b], mode: slow, path: x}}\n"
		"  more: {type: scale, parameters: {pool: $pool}, conditions: [{type: count}]}\n"
		"  end: {type: sink, ports: {in0: {capacity: 3}}}\n"
		"flows: [ones -> more, more -> end, twice -> end]\n"};
	struct frag_fragment *fragment;
	struct fragi_spec *spec;
	int64_t failed = 0;
	int r = -ENOMEM;

	/* Once without: what is loaded stays loaded. */
	fragment = good(&text, &spec);
	fragi_fragment_destroy(fragment);
	fragment = NULL;
	for (int64_t skip = 0; r == -ENOMEM && skip < 10000; skip++) {
		struct fragi_diag diag = {0};

		fragi_alloc_fail_after(skip, 1);
		r = compose(spec, &diag, &fragment);
		failed = fragi_alloc_fail_off();
		cr_expect(r == 0 ? failed == 0 || diag.count == 0 : failed == 1,
			  "r %d, failed %d, after %d", r, (int)failed, (int)skip);
		fragi_diag_fini(&diag);
	}
	cr_expect_eq(r, 0);
	cr_expect_eq(failed, 0);
	fragi_fragment_destroy(fragment);
	fragi_spec_destroy(spec);
}
