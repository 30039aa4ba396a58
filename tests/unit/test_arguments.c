// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "unit/graph_texts.h"

#define HEAD                                                                                       \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"arguments:\n"                                                                             \
	"  source: {default: replayer, choices: [replayer, aja], help: where frames come from}\n"  \
	"  verbose: {default: false}\n"                                                            \
	"  path: {}\n"                                                                             \
	"  n: {default: 7}\n"
#define OPS "operators: {a: {type: ping_tx}}\n"

static const char *value(const struct fragi_spec *spec, const char *op, const char *name)
{
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	for (size_t i = 0; i < fragment->operator_count; i++)
		for (size_t j = 0; j < fragment->operators[i].setting_count; j++)
			if (strcmp(fragment->operators[i].name, op) == 0 &&
			    strcmp(fragment->operators[i].settings[j].name, name) == 0)
				return fragment->operators[i].settings[j].value->text;
	return NULL;
}

Test(arguments, defaults_hold_until_others_are_given)
{
	struct fragi_spec *spec = good_text(HEAD OPS);

	cr_expect_eq(spec->argument_count, 4);
	cr_expect_str_eq(fragi_spec_argument(spec, "source"), "replayer");
	cr_expect_str_eq(fragi_spec_argument(spec, "verbose"), "false");
	cr_expect_str_eq(fragi_spec_argument(spec, "n"), "7");
	cr_expect_null(fragi_spec_argument(spec, "path"));
	cr_expect_null(fragi_spec_argument(spec, "none"));
	fragi_spec_destroy(spec);
}

Test(arguments, both_forms_and_booleans_without_a_value)
{
	const struct graph_text graph = {
		.text = HEAD OPS,
		.args = {"--source", "aja", "--verbose", "--path=a=b", "--n", "-3"},
	};
	const struct graph_text said = {.text = HEAD OPS,
					.args = {"--verbose", "yes", "--n=1", "--n=2"}};
	struct fragi_spec *spec = good_graph(&graph);

	cr_expect_str_eq(fragi_spec_argument(spec, "source"), "aja");
	cr_expect_str_eq(fragi_spec_argument(spec, "verbose"), "true");
	cr_expect_str_eq(fragi_spec_argument(spec, "path"), "a=b");
	cr_expect_str_eq(fragi_spec_argument(spec, "n"), "-3");
	fragi_spec_destroy(spec);
	spec = good_graph(&said);
	cr_expect_str_eq(fragi_spec_argument(spec, "verbose"), "true");
	cr_expect_str_eq(fragi_spec_argument(spec, "n"), "2");
	fragi_spec_destroy(spec);
}

Test(arguments, what_is_wrong_in_what_is_given)
{
	bad_graph(&(const struct graph_text){.text = HEAD OPS,
					     .args = {"--sorce", "aja", "--source=ajja", "plain",
						      "--path"}},
		  "unknown argument --sorce; did you mean \"source\"?\n"
		  "argument --source: \"ajja\" is not one of its choices; did you mean \"aja\"?\n"
		  "argument \"plain\": not understood; write --NAME VALUE or --NAME=VALUE\n"
		  "argument --path: its value is missing; write --path=VALUE\n");
	bad_graph(&(const struct graph_text){.text = HEAD OPS,
					     .args = {"--verbose=maybe", "--zzzzzzzz"}},
		  "argument --verbose: \"maybe\" is neither true nor false\n"
		  "unknown argument --zzzzzzzz; declared: source, verbose, path, n\n");
	bad_graph(&(const struct graph_text){.text = "frag: 1\napplication: app\n" OPS,
					     .args = {"--x"}},
		  "unknown argument --x; none are declared\n");
}

Test(arguments, what_is_wrong_in_a_declaration)
{
	bad_text(
		"frag: 1\n"
		"application: app\n"
		"arguments:\n"
		"  a.b: {}\n"
		"  help: {}\n"
		"  c: {default: x, choices: [y, z]}\n"
		"  d: {defalt: 1}\n"
		"  e: {default: \"${c}\"}\n"
		"  f: 5\n"
		"  g: {default: [1], choices: 2, help: {}}\n" OPS,
		"app.yaml:4:3: arguments: argument \"a.b\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:5:3: arguments: help is taken: --help lists the arguments; choose another name\n"
		"app.yaml:6:16: argument c: default \"x\" is not one of the choices; choices: y, z\n"
		"app.yaml:7:7: argument d: unknown key \"defalt\"; did you mean \"default\"?\n"
		"app.yaml:8:16: argument e: default \"${c}\" refers to an argument; arguments cannot refer to one another\n"
		"app.yaml:9:6: argument f: an argument is a single value; it must be a map (keys and values)\n"
		"app.yaml:10:16: argument g: default is a list; it must be a single value\n"
		"app.yaml:10:30: argument g: choices is a single value; it must be a list ([a, b])\n"
		"app.yaml:10:39: argument g: help is a map; it must be a single value\n");
}

#define TEN "abcdefghij"
#define LONGEST TEN TEN TEN TEN TEN TEN "abc" /* FRAG_NAME_MAX characters */
#define OTHER "012345678901234567890123456789012345678901234567890123456789012"

Test(arguments, the_longest_name)
{
	const char *const text = "frag: 1\napplication: app\narguments: {" LONGEST ": {}}\n" OPS;
	struct fragi_spec *spec =
		good_graph(&(const struct graph_text){.text = text, .args = {"--" LONGEST "=x"}});

	cr_expect_str_eq(fragi_spec_argument(spec, LONGEST), "x");
	fragi_spec_destroy(spec);
	spec = good_graph(&(const struct graph_text){.text = text, .args = {"--" LONGEST, ""}});
	cr_expect_str_eq(fragi_spec_argument(spec, LONGEST), "", "an empty value is one");
	fragi_spec_destroy(spec);
	/* cut to what a name may have; what follows one that is not known is its value */
	bad_graph(&(const struct graph_text){.text = text,
					     .args = {"--" OTHER "4", "x", "--=y", "--"}},
		  "unknown argument --" OTHER "; declared: " LONGEST "\n"
		  "unknown argument --; declared: " LONGEST "\n"
		  "argument \"--\": not understood; write --NAME VALUE or --NAME=VALUE\n");
}

Test(arguments, more_than_are_listed)
{
	static char text[64 * 1024], many[1000], want[1000];
	size_t length = (size_t)sprintf(text, "frag: 1\napplication: app\narguments:\n"), at = 0;
	struct fragi_spec *spec;

	for (int i = 0; i < 300; i++)
		length += (size_t)sprintf(text + length, "  a%d: {}\n", i);
	sprintf(text + length, OPS);
	bad_graph(&(const struct graph_text){.text = text, .args = {"--a2555"}},
		  "unknown argument --a2555; did you mean \"a255\"?\n");
	bad_graph(
		&(const struct graph_text){.text = text, .args = {"--a256_"}},
		"unknown argument --a256_; declared: a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, ...\n");
	length = (size_t)sprintf(text, "frag: 1\napplication: app\narguments: {a: {choices: [");
	for (int i = 0; i < 10; i++)
		at += (size_t)sprintf(many + at, "%s%d" TEN TEN TEN TEN TEN TEN TEN,
				      i > 0 ? ", " : "", i);
	sprintf(text + length, "%s]}}\n" OPS, many);
	spec = good_text(text);
	/* each with 64 characters, as long as there is room for one more */
	at = (size_t)sprintf(want, "  %-24s (", "--a VALUE");
	for (int i = 0; i < 7; i++)
		at += (size_t)sprintf(want + at, "%s%d" LONGEST, i > 0 ? ", " : "", i);
	sprintf(want + at, "; no default)\n");
	cr_expect_str_eq(fragi_spec_arguments_help(spec), want);
	fragi_spec_destroy(spec);
}

Test(arguments, help_lists_them_and_looks_at_nothing_else)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = HEAD "operators: {a: {tpye: \"${path}\"}}\n", .args = {"--bad", "--help"}});

	cr_expect(spec->help_wanted);
	cr_expect_str_eq(
		fragi_spec_arguments_help(spec),
		"  --source VALUE           where frames come from (replayer, aja; default replayer)\n"
		"  --verbose                (default false)\n"
		"  --path VALUE             (no default)\n"
		"  --n VALUE                (default 7)\n");
	fragi_spec_destroy(spec);
	spec = good_graph(&(const struct graph_text){.text = "frag: 1\napplication: app\n" OPS,
						     .args = {"--help"}});
	cr_expect_str_eq(fragi_spec_arguments_help(spec),
			 "  (this application declares no arguments)\n");
	fragi_spec_destroy(spec);
}

Test(arguments, references_are_replaced_in_every_scalar)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = "frag: 1\n"
			"application: \"${name}\"\n"
			"arguments: {name: {default: app}, op: {default: tx}, n: {default: 4}, u: {default: _}}\n"
			"operators:\n"
			"  tx: {type: \"ping${u}tx\", parameters: {text: \"a ${n}${n} $b $ {c} ${op}\"}}\n"
			"  rx: {type: ping_rx, conditions: [{type: count, count: \"${n}\"}]}\n"
			"flows:\n"
			"  - ${op}.out -> rx.in\n"
			"  - {from: \"${op}.out\", to: [rx.in], capacity: \"${n}\"}\n",
		.sets = {"app.tx.m=x${n}"},
	});
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_expect_str_eq(spec->application, "app");
	cr_expect_str_eq(fragment->name, "app");
	cr_expect_str_eq(fragment->operators[0].type, "ping_tx");
	cr_expect_str_eq(value(spec, "tx", "text"), "a 44 $b $ {c} tx");
	cr_expect_str_eq(value(spec, "tx", "m"), "x4");
	cr_expect_str_eq(fragment->operators[1].conditions[0].settings[0].value->text, "4");
	cr_expect_str_eq(fragment->flows[0].from.op, "tx");
	cr_expect_str_eq(fragment->flows[0].to[0].port, "in");
	cr_expect_eq(fragment->flows[1].capacity, 4);
	fragi_spec_destroy(spec);
}

Test(arguments, references_that_lead_nowhere)
{
	bad_text(
		HEAD
		"operators:\n"
		"  a: {type: ping_tx, parameters: {x: \"${sorce}\", y: \"${path}\", z: \"${n\", w: \"${}\"}}\n",
		"app.yaml:9:38: unknown argument \"sorce\"; did you mean \"source\"?\n"
		"app.yaml:9:53: argument path is needed here and has no value; give `-- --path VALUE` or declare a default\n"
		"app.yaml:9:67: \"${n\" begins a reference to an argument and does not name one; write ${NAME}\n"
		"app.yaml:9:77: \"${}\" begins a reference to an argument and does not name one; write ${NAME}\n");
}

Test(arguments, what_references_make_is_bounded)
{
	static char text[200 * 1024];
	static char given[300 * 1024] = "--path=";
	size_t length = (size_t)sprintf(text, HEAD "operators: {a: {type: t, parameters: {x: \"");
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	struct graph_text graph = {.text = text, .args = {given}};

	memset(given + 7, 'x', sizeof(given) - 8);
	for (int i = 0; i < 20000; i++)
		length += (size_t)sprintf(text + length, "${path}");
	sprintf(text + length, "\"}}}\n");
	cr_expect_eq(parse_graph(&graph, &diag, &spec), -EINVAL);
	expect_errors(
		&diag,
		"app.yaml:8:42: the values of arguments make more than 16 MiB of text; shorten them\n");
	fragi_diag_fini(&diag);
}

#define WHEN                                                                                              \
	HEAD "operators:\n"                                                                               \
	     "  tx: {type: ping_tx, when: {source: replayer}}\n"                                          \
	     "  cam: {type: no_such_thing, when: {source: aja}, parameters: {p: \"${path}\"}, nonsense: " \
	     "1}\n"                                                                                       \
	     "  both: {type: ping_rx, when: {source: [replayer, aja]}}\n"                                 \
	     "  loud: {type: ping_rx, when: {verbose: yes, source: replayer}}\n"                          \
	     "resources: {pool: {type: block_memory_pool, when: {source: aja}}}\n"                        \
	     "flows:\n"                                                                                   \
	     "  - {from: tx.out, to: both.in, when: {source: replayer}}\n"                                \
	     "  - {from: cam.out, to: both.in, when: {source: aja}}\n"

Test(when, decides_what_there_is)
{
	struct fragi_spec *spec = good_text(WHEN);

	cr_assert_eq(spec->fragments[0].operator_count, 2);
	cr_expect_str_eq(spec->fragments[0].operators[0].name, "tx");
	cr_expect_str_eq(spec->fragments[0].operators[1].name, "both");
	cr_expect_eq(spec->fragments[0].resource_count, 0);
	cr_assert_eq(spec->fragments[0].flow_count, 1);
	cr_expect_str_eq(spec->fragments[0].flows[0].from.op, "tx");
	fragi_spec_destroy(spec);
	spec = good_graph(&(const struct graph_text){.text = WHEN, .args = {"--verbose"}});
	cr_expect_eq(spec->fragments[0].operator_count, 3);
	fragi_spec_destroy(spec);
	bad_graph(
		&(const struct graph_text){.text = WHEN, .args = {"--source=aja", "--path=/dev/x"}},
		"app.yaml:10:79: app.cam: unknown key \"nonsense\"; valid keys: type, parameters, conditions, ports, when, watchdog, metadata, metadata_policy, or_combine_port_conditions, resources, align, deadline, rate, budget\n");
}

Test(when, fragments_and_flows_between_them)
{
	static const char text[] = HEAD "fragments:\n"
					"  f: {operators: {a: {type: t}}}\n"
					"  g: {operators: {b: {type: t}}, when: {source: aja}}\n"
					"flows:\n"
					"  - {from: f.a, to: g.b, when: {source: aja}}\n";
	struct fragi_spec *spec = good_text(text);

	cr_expect_eq(spec->fragment_count, 1);
	cr_expect_eq(spec->flow_count, 0);
	fragi_spec_destroy(spec);
	spec = good_graph(&(const struct graph_text){.text = text, .args = {"--source=aja"}});
	cr_expect_eq(spec->fragment_count, 2);
	cr_expect_eq(spec->flow_count, 1);
	fragi_spec_destroy(spec);
}

Test(when, errors)
{
	bad_text(HEAD "operators:\n"
		      "  a: {type: t, when: {sorce: aja}}\n"
		      "  b: {type: t, when: {source: ajja}}\n"
		      "  c: {type: t, when: source}\n"
		      "  d: {type: t, when: {verbose: maybe}}\n",
		 "app.yaml:9:23: unknown argument \"sorce\"; did you mean \"source\"?\n"
		 "app.yaml:10:31: when: argument source is never \"ajja\"; did you mean \"aja\"?\n"
		 "app.yaml:11:22: when is a single value; it must be a map (keys and values)\n"
		 "app.yaml:12:32: when: argument verbose is true or false, never \"maybe\"\n");
	bad_text(
		HEAD "operators: {a: {type: t, when: {source: aja}}}\n",
		"app.yaml:1:1: app: has no operators (or `when` excludes all of them); add operators or a composer\n");
	bad_text(
		HEAD "fragments: {f: {operators: {a: {type: t}}, when: {source: aja}}}\n",
		"app.yaml:8:1: there are no fragments (or `when` excludes all of them); add one\n");
	bad_text(
		HEAD
		"fragments:\n"
		"  f: {operators: {a: {type: t}, b: {type: t, when: {source: aja}}}, flows: [a -> b.in]}\n"
		"  g: {operators: {a: {type: t}}, when: {source: aja}}\n"
		"flows: [f.a -> g.a, f.b -> f.a]\n",
		"app.yaml:9:77: flow end b.in: operator f.b is excluded by its when; give the flow the same when\n"
		"app.yaml:11:9: flow end g.a: fragment g is excluded by its when; give the flow the same when\n"
		"app.yaml:11:21: flow end f.b: operator f.b is excluded by its when; give the flow the same when\n"
		"app.yaml:11:21: both ends of this flow are in fragment f; write it into the flows of that fragment\n");
}
