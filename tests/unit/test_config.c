// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "unit/graph_texts.h"

#define HEAD                                                                                       \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"arguments: {source: {default: replayer}}\n"

/* "name=text ..." of an operator's settings, lists as [a,b]. */
static const char *settings_text(const struct fragi_spec_setting *settings, size_t count)
{
	static char text[1024];
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const struct fragi_node *value = settings[i].value;

		length += (size_t)sprintf(text + length, "%s%s=%s", i > 0 ? " " : "",
					  settings[i].name,
					  value->kind == FRAGI_NODE_SCALAR ? value->text
					  : value->kind == FRAGI_NODE_NULL ? "~"
					  : value->kind == FRAGI_NODE_MAP  ? "{"
									   : "[");
		for (const struct fragi_node *child = value->first; child != NULL;
		     child = child->next)
			length += (size_t)sprintf(text + length, "%s%s", child->text,
						  child->next != NULL ? "," : "]");
	}
	return text;
}

static void expect_settings(const struct graph_text *graph, const char *wanted)
{
	struct fragi_spec *spec = good_graph(graph);
	const struct fragi_spec_operator *op = &spec->fragments[0].operators[0];

	cr_expect_str_eq(settings_text(op->settings, op->setting_count), wanted);
	fragi_spec_destroy(spec);
}

static void expect_text(const char *text, const char *wanted)
{
	expect_settings(&(const struct graph_text){.text = text}, wanted);
}

Test(config, maps_merge_and_all_else_is_replaced)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = HEAD "config: {a: {b: 1, c: [1, 2], d: {e: 1}}, f: 1, g: {h: 1}}\n"
			     "operators: {x: {type: t}}\n",
		.config = "a: {c: [3], d: {i: \"${source}\"}, k: 5}\nf: {l: 1}\ng: 7\nm: n\n",
	});
	const struct fragi_node *config = spec->config;

	cr_expect_str_eq(fragi_node_at(config, "a.b")->text, "1");
	cr_expect_eq(fragi_node_at(config, "a.c")->count, 1);
	cr_expect_str_eq(fragi_node_at(config, "a.c")->first->text, "3");
	cr_expect_str_eq(fragi_node_at(config, "a.c")->file, "more.yaml");
	cr_expect_str_eq(fragi_node_at(config, "a.d.e")->text, "1");
	cr_expect_str_eq(fragi_node_at(config, "a.d.i")->text, "replayer");
	cr_expect_str_eq(fragi_node_at(config, "a.k")->text, "5");
	cr_expect_str_eq(fragi_node_at(config, "f.l")->text, "1");
	cr_expect_str_eq(fragi_node_at(config, "g")->text, "7");
	cr_expect_str_eq(fragi_node_at(config, "m")->text, "n");
	cr_expect_str_eq(config->last->key->text, "m");
	fragi_spec_destroy(spec);
}

Test(config, later_files_win_and_a_graph_needs_none)
{
	const struct fragi_spec_text configs[] = {{"1.yaml", "a: 1\nb: {c: 1}\n", 15},
						  {"2.yaml", "", 0},
						  {"3.yaml", "b: {c: 2}\n", 10}};
	static const char text[] = "frag: 1\napplication: app\noperators: {x: {type: t}}\n";
	const struct fragi_spec_source source = {.graph = {"app.yaml", text, sizeof(text) - 1},
						 .configs = configs,
						 .config_count = 3};
	struct fragi_diag diag = {0};
	struct fragi_spec *spec;

	cr_assert_eq(fragi_spec_parse(&source, &diag, &spec), 0);
	cr_expect_str_eq(fragi_node_at(spec->config, "a")->text, "1");
	cr_expect_str_eq(fragi_node_at(spec->config, "b.c")->text, "2");
	fragi_spec_destroy(spec);
}

Test(config, large_maps_merge)
{
	char *text = malloc(1 << 20), *config = malloc(1 << 20);
	size_t length = (size_t)sprintf(text, HEAD "operators: {x: {type: t}}\nconfig:\n"), at = 0;
	struct graph_text graph = {.text = text, .config = config};
	struct fragi_spec *spec;

	for (int i = 0; i < 20000; i++)
		length += (size_t)sprintf(text + length, "  k%d: %d\n", i, i);
	for (int i = 10000; i < 30000; i++)
		at += (size_t)sprintf(config + at, "k%d: new\n", i);
	spec = good_graph(&graph);
	cr_expect_eq(spec->config->count, 30000);
	cr_expect_str_eq(fragi_node_at(spec->config, "k9999")->text, "9999");
	cr_expect_str_eq(fragi_node_at(spec->config, "k10000")->text, "new");
	cr_expect_str_eq(fragi_node_at(spec->config, "k29999")->text, "new");
	fragi_spec_destroy(spec);
	free(text);
	free(config);
}

Test(config, what_cannot_be_merged)
{
	bad_graph(
		&(const struct graph_text){.text = HEAD "config: 5\noperators: {x: {type: t}}\n",
					   .config = "- a\n"},
		"app.yaml:4:9: config is a single value; it must be a map (keys and values)\n"
		"more.yaml:1:1: a file of --config is a map, with the keys that stand below config: in the graph; write for example `detection: {threshold: 0.5}`\n");
	bad_graph(&(const struct graph_text){.text = HEAD "operators: {x: {type: t}}\n",
					     .config = "a: [\n"},
		  "more.yaml:1:4: this \"[\" is not closed; add \"]\"\n");
}

#define CONFIG                                                                                     \
	HEAD "config: {det: {a: 1, b: 2}, det_aja: {b: 3}, n: 5, deep: {er: {c: 1}, l: [1, 2]}}\n"

Test(from_config, a_map_gives_its_children_and_a_value_itself)
{
	expect_text(CONFIG "operators: {x: {type: t, parameters: {from_config: det}}}\n",
		    "a=1 b=2");
	expect_text(CONFIG "operators: {x: {type: t, parameters: {from_config: n}}}\n", "n=5");
	expect_text(CONFIG "operators: {x: {type: t, parameters: {from_config: deep.er}}}\n",
		    "c=1");
	expect_text(CONFIG "operators: {x: {type: t, parameters: {from_config: deep.er.c}}}\n",
		    "c=1");
	expect_text(CONFIG "operators: {x: {type: t, parameters: {from_config: deep.l}}}\n",
		    "l=[1,2]");
	expect_text(CONFIG
		    "operators: {x: {type: t, parameters: {from_config: [det, det_aja, n]}}}\n",
		    "a=1 b=3 n=5");
}

Test(from_config, keys_beside_win_wherever_they_stand)
{
	expect_text(CONFIG
		    "operators: {x: {type: t, parameters: {b: 9, from_config: det, z: ~}}}\n",
		    "a=1 b=9 z=~");
}

Test(from_config, a_name_made_from_an_argument_may_be_missing_in_a_list)
{
	static const char text[] = CONFIG
		"operators: {x: {type: t, parameters: {from_config: [det, \"det_${source}\"]}}}\n";

	expect_settings(&(const struct graph_text){.text = text}, "a=1 b=2");
	expect_settings(&(const struct graph_text){.text = text, .args = {"--source=aja"}},
			"a=1 b=3");
	bad_text(
		CONFIG "operators: {x: {type: t, parameters: {from_config: \"det_${source}\"}}}\n",
		"app.yaml:5:52: app.x: from_config: config has no \"det_replayer\"; its keys: det, det_aja, n, deep\n");
}

Test(from_config, as_the_value_of_one_parameter)
{
	expect_text(
		CONFIG
		"operators: {x: {type: t, parameters: {l: {from_config: deep.l}, v: {from_config: n}, w: {from_config: [n, \"${source}\"]}}}}\n",
		"l=[1,2] v=5 w=5");
	bad_text(
		CONFIG
		"operators: {x: {type: t, parameters: {l: {from_config: deep.l, m: 1}, v: {from_config: {}}, w: {from_config: [\"${source}\"]}}}}\n",
		"app.yaml:5:42: app.x: l: from_config stands alone in a value; put the other keys into config\n"
		"app.yaml:5:88: app.x: from_config is a map; it must be a single value\n"
		"app.yaml:5:110: app.x: from_config: config has none of these\n");
}

Test(from_config, of_conditions_and_resources)
{
	struct fragi_spec *spec = good_text(
		CONFIG
		"operators: {x: {type: t, conditions: [{type: count, from_config: det_aja}]}}\n"
		"resources: {p: {type: unbounded_allocator, from_config: n}}\n");
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_expect_str_eq(settings_text(fragment->operators[0].conditions[0].settings, 1), "b=3");
	cr_expect_str_eq(settings_text(fragment->resources[0].settings, 1), "n=5");
	fragi_spec_destroy(spec);
}

Test(from_config, what_is_missing_is_said)
{
	bad_text(
		CONFIG
		"operators: {x: {type: t, parameters: {from_config: [det, det_ajja, deep.err]}}}\n",
		"app.yaml:5:58: app.x: from_config: config has no \"det_ajja\"; did you mean \"det_aja\"?\n"
		"app.yaml:5:68: app.x: from_config: config has no \"deep.err\"\n");
	bad_text(
		"frag: 1\napplication: app\noperators: {x: {type: t, parameters: {from_config: det}}}\n",
		"app.yaml:3:52: app.x: from_config: config has no \"det\"\n");
}

Test(from_config, the_place_of_a_setting_is_where_it_is_written)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = HEAD "operators: {x: {type: t, parameters: {from_config: det, c: 1}}}\n",
		.config = "# one\ndet:\n  a: 1\n"});
	const struct fragi_spec_setting *settings = spec->fragments[0].operators[0].settings;

	cr_expect_str_eq(settings[0].place->file, "more.yaml");
	cr_expect_eq(settings[0].place->line, 3);
	cr_expect_eq(settings[0].place->column, 3);
	cr_expect_str_eq(settings[1].place->file, "app.yaml");
	cr_expect_eq(settings[1].place->line, 4);
	fragi_spec_destroy(spec);
}

Test(from_config, many_operators_with_one_large_map_are_bounded)
{
	char *text = malloc(4 << 20);
	size_t length = (size_t)sprintf(text, HEAD "config:\n  m:\n");
	struct graph_text graph = {.text = text};

	for (int i = 0; i < 20000; i++)
		length += (size_t)sprintf(text + length, "    k%d: %d\n", i, i);
	length += (size_t)sprintf(text + length, "operators:\n");
	for (int i = 0; i < 20000; i++)
		length += (size_t)sprintf(text + length,
					  "  o%d: {type: t, parameters: {from_config: m}}\n", i);
	bad_graph(
		&graph,
		"app.yaml:6:5: app.o50: more than 1000000 parameters are set, those of from_config counted; make the graph smaller\n");
	free(text);
}

Test(from_file, puts_the_files_content_in_place)
{
	const struct graph_text graph = {
		.text = HEAD
		"config: {labels: {from_file: \"${source}.yaml\"}, again: {in: {from_file: replayer.yaml}}}\n"
		"operators: {x: {type: t, parameters: {l: {from_config: labels}, from_config: again}}}\n",
		.file = "replayer.yaml",
		.file_text = "- a\n- ${b}\n",
	};

	expect_settings(&graph, "in=[a,${b}] l=[a,${b}]");
}

Test(from_file, what_is_wrong)
{
	bad_graph(
		&(const struct graph_text){
			.text = HEAD
			"config: {a: {from_file: no.yaml}, b: {from_file: [x]}, c: {from_file: no.yaml}}\n"
			"operators: {x: {type: t}}\n"},
		"app.yaml:4:25: config: the text of from_file \"no.yaml\" does not come with the graph; start the application where the file is\n"
		"app.yaml:4:50: config: from_file is a list; it must be a single value\n");
	bad_graph(&(const struct graph_text){.text = HEAD "config: {a: {from_file: f.yaml}}\n"
							  "operators: {x: {type: t}}\n",
					     .file = "f.yaml",
					     .file_text = "a: 1\na: 2\n"},
		  "f.yaml:2:1: the key \"a\" is given twice in one map; remove one\n");
}

#define SETS                                                                                       \
	"frag: 1\napplication: app\nfragments:\n"                                                  \
	"  f: {operators: {a: {type: t, parameters: {p: 1, q: 2}}, b: {type: t}}}\n"               \
	"  g: {compose: c, operators: {v: {parameters: {title: x}}}}\n"

Test(sets, win_over_the_graph_and_the_later_wins)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = SETS,
		.sets = {"f.a.q=3", "f.a.r=[1, 2]", "f.a.q=\"4 # no: comment\"",
			 "f.a.s=5 # : it"}});
	const struct fragi_spec_operator *op = &spec->fragments[0].operators[0];

	cr_expect_str_eq(settings_text(op->settings, op->setting_count),
			 "p=1 q=4 # no: comment r=[1,2] s=5 # : it");
	cr_expect_str_eq(op->settings[1].place->file, "--set f.a.q=\"4 # no: comment\"");
	cr_expect_eq(op->settings[1].place->line, 0);
	fragi_spec_destroy(spec);
	spec = good_graph(&(const struct graph_text){.text = SETS,
						     .sets = {"f.b.x=", "f.b.y=~", "f.b.z=$pool"}});
	op = &spec->fragments[0].operators[1];
	cr_expect_str_eq(settings_text(op->settings, op->setting_count), "x= y=~ z=$pool");
	fragi_spec_destroy(spec);
}

Test(sets, reach_what_a_composer_makes)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = SETS,
		.sets = {"g.other.p=1", "g.v.title=y", "g.other.q=2", "g.third.p=3"}});
	const struct fragi_spec_fragment *g = &spec->fragments[1];

	cr_assert_eq(g->operator_count, 3);
	cr_expect_str_eq(g->operators[0].name, "v");
	cr_expect_str_eq(settings_text(g->operators[0].settings, g->operators[0].setting_count),
			 "title=y");
	cr_expect_str_eq(g->operators[1].name, "other");
	cr_expect_null(g->operators[1].type);
	cr_expect_eq(g->operators[1].metadata, -1);
	cr_expect_str_eq(settings_text(g->operators[1].settings, g->operators[1].setting_count),
			 "p=1 q=2");
	cr_expect_str_eq(g->operators[2].name, "third");
	fragi_spec_destroy(spec);
}

Test(sets, errors)
{
	bad_graph(&(const struct graph_text){.text = SETS,
					     .sets = {"h.a.p=1", "f.bb.p=1", "f.a=1", "f.a.p"}},
		  "--set f.a=1: not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE\n"
		  "--set f.a.p: not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE\n"
		  "--set h.a.p=1: unknown fragment \"h\"; fragments: f, g\n"
		  "--set f.bb.p=1: unknown operator \"f.bb\"; operators: a, b\n");
	bad_graph(
		&(const struct graph_text){.text = SETS,
					   .sets = {"f.a.p=[1", "f.a.p=\"x", "f.a.p=${y}"}},
		"--set f.a.p=[1:1:1: this \"[\" is not closed; add \"]\"\n"
		"--set f.a.p=\"x:1:1: this quote (\") is not closed; add one at the end of the text\n"
		"--set f.a.p=${y}: unknown argument \"y\"; none are declared\n");
	bad_graph(
		&(const struct graph_text){
			.text = HEAD
			"operators: {a: {type: t}, b: {type: t, when: {source: aja}}}\n",
			.sets = {"f.a.p=1", "app.b.p=1", "c.p=1", "p=1"}},
		"--set p=1: not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE\n"
		"--set f.a.p=1: unknown fragment \"f\"; the only fragment has the name of the application, app\n"
		"--set app.b.p=1: operator app.b is excluded by its when\n"
		"--set c.p=1: unknown operator \"app.c\"; operators: a\n");
}

Test(sets, need_no_fragment_where_there_is_one)
{
	static const char *const graphs[] = {
		HEAD "operators: {a: {type: t}}\n",
		HEAD "fragments: {only: {operators: {a: {type: t}}}}\n",
		HEAD "fragments: {only: {operators: {a: {type: t}}}, other: {when: {source: aja}, "
		     "operators: {a: {type: t}}}}\n",
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(graphs); i++) {
		struct fragi_spec *spec = good_graph(&(const struct graph_text){
			.text = graphs[i], .sets = {"a.p=1.5", "a.q=x.y=z"}});
		const struct fragi_spec_operator *op = &spec->fragments[0].operators[0];

		cr_expect_str_eq(settings_text(op->settings, op->setting_count), "p=1.5 q=x.y=z");
		fragi_spec_destroy(spec);
	}
}

static void expect_remarks(const struct graph_text *graph, const char *warnings,
			   const char *remarks)
{
	struct fragi_spec *spec = good_graph(graph);

	expect_errors(&spec->warnings, warnings);
	expect_errors(&spec->remarks, remarks);
	fragi_spec_destroy(spec);
}

#define READS "operators: {x: {type: t, parameters: {from_config: deep.er, b: {from_config: n}}}}\n"

Test(config, keys_of_a_file_that_nothing_reads_are_remarked_on)
{
	struct graph_text graph = {.text = CONFIG READS, .config = "n: 1\ndeep: {er: {c: 2}}\n"};

	expect_remarks(&graph, "", "");
	graph.config = "n: 1\ndepp: {er: {c: 2}}\nmore: 1\n";
	expect_remarks(&graph, "", "more.yaml:2:1: no from_config reads: depp, more\n");
	graph.config = "config: 1\nn: 2\n";
	expect_remarks(&graph, "", "more.yaml:1:1: no from_config reads: config\n");
	graph.text = CONFIG "compose: c\n"; /* which may read any key */
	expect_remarks(&graph, "", "");
}

Test(config, a_file_below_config_is_warned_of)
{
	expect_remarks(
		&(const struct graph_text){.text = CONFIG READS, .config = "config: {n: 2}\n"},
		"more.yaml:1:1: the only key of this file is config, and no from_config reads it; a file of --config holds the keys below config: themselves, so leave config: out\n",
		"");
	expect_remarks(
		&(const struct graph_text){
			.text = HEAD
			"operators: {x: {type: t, parameters: {from_config: config}}}\n",
			.config = "config: {n: 2}\n"},
		"", "");
	bad_graph(
		&(const struct graph_text){.text = HEAD READS,
					   .config = "config:\n  deep: {er: {c: 1}}\n  n: 2\n"},
		"app.yaml:4:52: app.x: from_config: config has no \"deep\"; more.yaml:2 has it below a key config, which is left out there\n"
		"app.yaml:4:78: app.x: from_config: config has no \"n\"; more.yaml:3 has it below a key config, which is left out there\n");
}
