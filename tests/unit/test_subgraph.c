// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "unit/graph_texts.h"

/* Subgraphs that a graph declares: what their instances become, and what is refused. */

#define HEAD "frag: 1\napplication: app\n"

static void write_ends(const struct fragi_spec_flow *flow, FILE *out)
{
	for (size_t i = 0; i < flow->to_count; i++) {
		const struct fragi_spec_end *to = &flow->to[i];

		fprintf(out, "%s%s%s%s%s", i > 0 ? ", " : " -> ",
			to->fragment != NULL ? to->fragment : "", to->fragment != NULL ? "." : "",
			to->op, to->port != NULL ? "." : "");
		fputs(to->port != NULL ? to->port : "", out);
	}
	fprintf(out, " order %u capacity %u line %d\n", flow->order, flow->capacity,
		flow->place->line);
}

static void write_flows(const struct fragi_spec_flow *flows, size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct fragi_spec_end *from = &flows[i].from;

		fprintf(out, "%s%s%s%s%s", from->fragment != NULL ? from->fragment : "",
			from->fragment != NULL ? "." : "", from->op, from->port != NULL ? "." : "",
			from->port != NULL ? from->port : "");
		write_ends(&flows[i], out);
	}
}

/* All operators and flows of a graph, a line each. */
static void expect_flat_of(const struct graph_text *graph, const char *lines)
{
	struct fragi_spec *spec = good_graph(graph);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t f = 0; f < spec->fragment_count; f++) {
		const struct fragi_spec_fragment *fragment = &spec->fragments[f];

		fprintf(out, "%s:", fragment->name);
		for (size_t i = 0; i < fragment->operator_count; i++)
			fprintf(out, " %s", fragment->operators[i].name);
		for (size_t i = 0; i < fragment->resource_count; i++)
			fprintf(out, " $%s", fragment->resources[i].name);
		fputc('\n', out);
		write_flows(fragment->flows, fragment->flow_count, out);
	}
	write_flows(spec->flows, spec->flow_count, out);
	fclose(out);
	cr_expect_str_eq(text, lines, "got:\n%swanted:\n%s", text, lines);
	free(text);
	fragi_spec_destroy(spec);
}

#define expect_flat(text_, lines_) expect_flat_of(&(const struct graph_text){.text = text_}, lines_)

Test(subgraph, two_instances_become_operators_with_qualified_names)
{
	expect_flat(HEAD
		    "subgraphs:\n"
		    "  camera:\n"
		    "    operators: {source: {type: s}, fwd: {type: f}}\n"
		    "    flows: [source.out -> fwd.in]\n"
		    "    ports: {data_out: fwd.out}\n"
		    "operators:\n"
		    "  cam1: {subgraph: camera}\n"
		    "  mid: {type: m}\n"
		    "  cam2: {subgraph: camera}\n"
		    "flows: [cam1.data_out -> mid.in1, {from: cam2, to: mid.in2, capacity: 3}]\n",
		    "app: cam1_source cam1_fwd mid cam2_source cam2_fwd\n"
		    "cam1_source.out -> cam1_fwd.in order 0 capacity 0 line 6\n"
		    "cam2_source.out -> cam2_fwd.in order 1 capacity 0 line 6\n"
		    "cam1_fwd.out -> mid.in1 order 2 capacity 0 line 12\n"
		    "cam2_fwd.out -> mid.in2 order 3 capacity 3 line 12\n");
}

Test(subgraph, three_levels_nest_and_each_exports_the_ports_of_the_next)
{
	expect_flat(HEAD "subgraphs:\n"
			 "  one: {operators: {a: {type: t}}, ports: [a.in, a.out]}\n"
			 "  two:\n"
			 "    operators: {x: {subgraph: one}, y: {subgraph: one}}\n"
			 "    flows: [x.out -> y.in]\n"
			 "    ports: {in: x.in, out: y.out}\n"
			 "  three:\n"
			 "    operators: {l: {subgraph: two}, r: {subgraph: two}}\n"
			 "    flows: [{from: l.out, to: [r.in]}]\n"
			 "    ports: {in: {in: l.in}, out: {out: r.out}}\n"
			 "operators: {n: {subgraph: three}, tx: {type: t}, rx: {type: t}}\n"
			 "flows: [tx -> n, n -> rx, n_l.out -> rx]\n",
		    "app: n_l_x_a n_l_y_a n_r_x_a n_r_y_a tx rx\n"
		    "n_l_x_a.out -> n_l_y_a.in order 0 capacity 0 line 7\n"
		    "n_r_x_a.out -> n_r_y_a.in order 1 capacity 0 line 7\n"
		    "n_l_y_a.out -> n_r_x_a.in order 2 capacity 0 line 11\n"
		    "tx -> n_l_x_a.in order 3 capacity 0 line 14\n"
		    "n_r_y_a.out -> rx order 4 capacity 0 line 14\n"
		    "n_l_y_a.out -> rx order 5 capacity 0 line 14\n");
}

Test(subgraph, an_input_goes_to_all_that_it_stands_for)
{
	expect_flat(
		HEAD
		"subgraphs:\n"
		"  pair: {operators: {a: {type: t}, b: {type: t}}, ports: {in: [a.in, b.in]}}\n"
		"  both: {operators: {p: {subgraph: pair}, c: {type: t}}, ports: {in: [p.in, c]}}\n"
		"fragments:\n"
		"  f: {operators: {tx: {type: t}, w: {subgraph: both}}, flows: [tx -> w.in]}\n"
		"  g: {operators: {tx: {type: t}}}\n"
		"flows: [{from: g.tx.out, to: [f.w.in, f.tx], encrypt: true}]\n",
		"f: tx w_p_a w_p_b w_c\n"
		"tx -> w_p_a.in, w_p_b.in, w_c order 0 capacity 0 line 7\n"
		"g: tx\n"
		"g.tx.out -> f.w_p_a.in, f.w_p_b.in, f.w_c, f.tx order 0 capacity 0 line 9\n");
}

#define STEPS                                                                                      \
	"  steps:\n"                                                                               \
	"    operators: {a: {type: t}, b: {type: t}}\n"                                            \
	"    flows: [a -> b, a.__output_exec__ -> b.__input_exec__]\n"                             \
	"    ports: {go: a.__input_exec__, gone: b.__output_exec__, data: {in: a.in}, out: {out: b.out}}\n"

Test(subgraph, execution_ports_are_interface_ports)
{
	expect_flat(
		HEAD "subgraphs:\n" STEPS "  nested:\n"
		     "    operators: {s: {subgraph: steps}, c: {type: t}}\n"
		     "    ports: {begin: [s.go, c.__input_exec__], end: s.gone}\n"
		     "operators: {x: {subgraph: steps}, n: {subgraph: nested}, o: {type: t}}\n"
		     "flows: [<|start|> -> n, n -> x.go, o -> x, x -> o, x.gone -> o]\n",
		"app: x_a x_b n_s_a n_s_b n_c o\n"
		"x_a -> x_b order 0 capacity 0 line 6\n"
		"x_a.__output_exec__ -> x_b.__input_exec__ order 1 capacity 0 line 6\n"
		"n_s_a -> n_s_b order 2 capacity 0 line 6\n"
		"n_s_a.__output_exec__ -> n_s_b.__input_exec__ order 3 capacity 0 line 6\n"
		"<|start|> -> n_s_a.__input_exec__, n_c.__input_exec__ order 4 capacity 0 line 12\n"
		"n_s_b.__output_exec__ -> x_a.__input_exec__ order 6 capacity 0 line 12\n"
		"o -> x_a.in order 7 capacity 0 line 12\n"
		"x_b.out -> o order 8 capacity 0 line 12\n"
		"x_b.__output_exec__ -> o order 9 capacity 0 line 12\n");
	bad_text(
		HEAD
		"subgraphs:\n" STEPS
		"  twice: {operators: {a: {type: t}}, ports: {go: a.__input_exec__, on: {in: a.__input_exec__}}}\n"
		"  wrong:\n"
		"    operators: {a: {type: t}}\n"
		"    ports: {x: {out: a.__input_exec__}, y: a.__exec__, z: [a.__output_exec__, a.__output_exec__]}\n"
		"operators: {x: {subgraph: steps}, t: {subgraph: twice}, w: {subgraph: wrong}, o: {type: t}}\n"
		"flows: [o -> x.gone, x.go -> o, o -> t, w.x -> o, t -> o]\n",
		"app.yaml:11:22: subgraphs.wrong: port \"x\": __input_exec__ is an input, and it is to be an output\n"
		"app.yaml:11:44: subgraphs.wrong: port \"y\": \"a.__exec__\" is not valid; write OPERATOR.PORT or OPERATOR\n"
		"app.yaml:11:59: subgraphs.wrong: port \"z\" is an output and stands for several ports; only an input may\n"
		"app.yaml:13:9: flow end x.gone: port \"gone\" of subgraph \"steps\" is an output, and a flow ends at an input; its inputs: go, data\n"
		"app.yaml:13:22: flow end x.go: port \"go\" of subgraph \"steps\" is an input, and a flow begins at an output; its outputs: gone, out\n"
		"app.yaml:13:33: flow end t: several could be meant; name the port; its inputs: go, on\n"
		"app.yaml:13:51: flow end t: subgraph \"twice\" has no outputs; declare `ports:` in it\n");
}

Test(subgraph, a_subgraph_may_have_a_file_of_its_own)
{
	expect_flat_of(
		&(const struct graph_text){.text = HEAD
					   "arguments: {file: {default: cam.yaml}}\n"
					   "subgraphs: {cam: {from_file: \"${file}\"}}\n"
					   "operators: {c: {subgraph: cam}, rx: {type: r}}\n"
					   "flows: [c -> rx]\n",
					   .file = "cam.yaml",
					   .file_text = "operators:\n"
							"  a: {type: t}\n"
							"  b: {type: t, when: {file: other.yaml}}\n"
							"ports: [a.out]\n"},
		"app: c_a rx\nc_a.out -> rx order 0 capacity 0 line 6\n");
	bad_graph(
		&(const struct graph_text){.text = HEAD
					   "subgraphs: {cam: {from_file: cam.yaml, ports: {}}}\n"
					   "operators: {c: {subgraph: cam}}\n",
					   .file = "cam.yaml",
					   .file_text = "extensions: [libx.so]\n"
							"operators: {a: {type: t}}\n"
							"flows: [a -> c]\n"},
		"app.yaml:3:40: subgraphs.cam: unknown key \"ports\"; valid keys: from_file\n"
		"cam.yaml:1:1: subgraphs.cam: extensions belong to the application or to a fragment; list them there\n"
		"cam.yaml:3:9: subgraphs.cam: a flow: unknown operator \"c\"; operators: a\n");
	bad_text(
		HEAD "subgraphs: {cam: {from_file: cam.yaml}}\noperators: {c: {subgraph: cam}}\n",
		"app.yaml:3:30: subgraphs.cam: the text of from_file \"cam.yaml\" does not come with the graph; start the application where the file is\n");
}

/* The value of the only parameter of an operator. */
static const char *value_of(const struct fragi_spec *spec, size_t op, const char *name)
{
	const struct fragi_spec_operator *own = &spec->fragments[0].operators[op];

	for (size_t i = 0; i < own->setting_count; i++)
		if (strcmp(own->settings[i].name, name) == 0)
			return own->settings[i].value->text;
	return "none";
}

Test(subgraph, the_graph_and_set_change_operators_of_an_instance)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = HEAD
		"subgraphs:\n"
		"  in: {operators: {a: {type: t, parameters: {p: 1, q: 2, r: 3, s: 4}, conditions: [{type: count, count: 1}]}}}\n"
		"  out: {operators: {i: {subgraph: in}, i_a: {parameters: {q: 20, r: 30}}}}\n"
		"operators:\n"
		"  o_i_a: {parameters: {r: 300}, conditions: [{type: count, name: more, count: 2}], metadata: false}\n"
		"  o: {subgraph: out}\n"
		"  p: {subgraph: out}\n",
		.sets = {"app.o_i_a.s=4000"}});

	cr_expect_eq(spec->fragments[0].operator_count, 2);
	cr_expect_str_eq(spec->fragments[0].operators[0].name, "o_i_a");
	cr_expect_str_eq(value_of(spec, 0, "p"), "1");
	cr_expect_str_eq(value_of(spec, 0, "q"), "20");
	cr_expect_str_eq(value_of(spec, 0, "r"), "300");
	cr_expect_str_eq(value_of(spec, 0, "s"), "4000");
	cr_expect_eq(spec->fragments[0].operators[0].condition_count, 2);
	cr_expect_eq(spec->fragments[0].operators[0].metadata, 0);
	cr_expect_str_eq(value_of(spec, 1, "r"), "30", "the other instance keeps its own");
	cr_expect_str_eq(value_of(spec, 1, "s"), "4");
	cr_expect_eq(spec->fragments[0].operators[1].condition_count, 1);
	fragi_spec_destroy(spec);
}

Test(subgraph, a_subgraph_may_have_a_configuration_of_its_own)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = HEAD
		"config: {at: {p: app, q: app}, only: {r: app}, list: {s: app}}\n"
		"subgraphs:\n"
		"  own:\n"
		"    parameters: {n: {default: 1}}\n"
		"    config: {at: {p: \"own${n}\"}, deep: {from_file: cam.yaml}}\n"
		"    operators:\n"
		"      a: {type: t, parameters: {from_config: [at, only, deep.x], v: {from_config: at.p}}}\n"
		"      b: {subgraph: none}\n"
		"  none: {operators: {c: {type: t, parameters: {from_config: at}}}}\n"
		"operators:\n"
		"  x: {subgraph: own}\n"
		"  y: {subgraph: own, parameters: {n: 2}}\n"
		"  y_a: {parameters: {w: {from_config: at.q}}}\n"
		"  z: {type: t, parameters: {from_config: at}}\n",
		.file = "cam.yaml",
		.file_text = "x: {s: file}\n"});

	cr_assert_eq(spec->fragments[0].operator_count, 5);
	cr_expect_str_eq(value_of(spec, 0, "p"), "own1");
	cr_expect_str_eq(value_of(spec, 0, "q"), "none", "the map of its own, not both");
	cr_expect_str_eq(value_of(spec, 0, "r"), "app");
	cr_expect_str_eq(value_of(spec, 0, "s"), "file");
	cr_expect_str_eq(value_of(spec, 0, "v"), "own1");
	cr_expect_str_eq(value_of(spec, 1, "p"), "app", "a nested one has not that of the outer");
	cr_expect_str_eq(value_of(spec, 2, "p"), "own2");
	cr_expect_str_eq(value_of(spec, 2, "w"), "app", "what the graph adds is read in the graph");
	cr_expect_str_eq(value_of(spec, 4, "p"), "app");
	fragi_spec_destroy(spec);
	bad_graph(
		&(const struct graph_text){
			.text = HEAD
			"subgraphs:\n"
			"  a: {config: {at: 1}, operators: {o: {type: t, parameters: {from_config: [att, at.x]}}}}\n"
			"  b: {config: [1], operators: {o: {type: t, parameters: {from_config: at}}}}\n"
			"  c: {from_file: cam.yaml}\n"
			"  d: {config: {x: 1}}\n"
			"operators: {a: {subgraph: a}, b: {subgraph: b}, c: {subgraph: c}, d: {subgraph: d}}\n",
			.file = "cam.yaml",
			.file_text =
				"config: {x: {from_file: more.yaml}}\noperators: {o: {type: t}}\n"},
		"app.yaml:4:76: app.a_o: from_config: config has no \"att\"; did you mean \"at\"?\n"
		"app.yaml:4:81: app.a_o: from_config: config has no \"at.x\"\n"
		"app.yaml:5:15: subgraphs.b: config is a list; it must be a map (keys and values)\n"
		"app.yaml:8:81: app.d: subgraph \"d\" has a configuration only; list its library under extensions, or add operators\n"
		"cam.yaml:1:25: config: a subgraph's own file names no further files; write here what is in \"more.yaml\"\n");
}

Test(subgraph, resources_belong_to_the_instance)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"subgraphs:\n"
		"  s:\n"
		"    resources: {pool: {type: block_memory_pool}}\n"
		"    operators: {a: {type: t, parameters: {own: $pool, shared: $all, text: \"$pool\"}}}\n"
		"resources: {all: {type: unbounded_allocator}}\n"
		"operators: {x: {subgraph: s}, y: {subgraph: s}}\n");
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_assert_eq(fragment->resource_count, 3);
	cr_expect_str_eq(fragment->resources[0].name, "all");
	cr_expect_str_eq(fragment->resources[1].name, "x_pool");
	cr_expect_str_eq(fragment->resources[2].name, "y_pool");
	cr_expect_str_eq(value_of(spec, 1, "own"), "$y_pool");
	cr_expect_str_eq(value_of(spec, 1, "shared"), "$all");
	cr_expect_str_eq(value_of(spec, 1, "text"), "$pool");
	fragi_spec_destroy(spec);
}

Test(subgraph, parameters_are_put_in_place_in_each_instance)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"arguments: {name: {default: arg}, n: {default: \"9\"}}\n"
		"subgraphs:\n"
		"  s:\n"
		"    parameters:\n"
		"      n: {help: how many}\n"
		"      list: {default: [1, 2]}\n"
		"      pool: {default: $all}\n"
		"      type: {default: \"${name}\"}\n"
		"    operators:\n"
		"      a: {type: \"${type}\", parameters: {n: \"${n}\", text: \"${name}-${n}.x\", list: \"${list}\", pool: \"${pool}\"}}\n"
		"      b: {type: t, conditions: [{type: count, count: \"${n}\"}]}\n"
		"    flows: [{from: a, to: b, capacity: \"${n}\"}]\n"
		"  u:\n"
		"    parameters: {k: {default: 3}}\n"
		"    resources: {own: {type: unbounded_allocator}}\n"
		"    operators: {i: {subgraph: s, parameters: {n: \"${k}\", pool: $own}}}\n"
		"resources: {all: {type: unbounded_allocator}}\n"
		"operators:\n"
		"  x: {subgraph: s, parameters: {n: 5, type: other}}\n"
		"  y: {subgraph: u}\n"
		"  z: {type: t, parameters: {n: \"${n}\"}}\n");
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_assert_eq(fragment->operator_count, 5);
	cr_expect_str_eq(fragment->operators[0].type, "other");
	cr_expect_str_eq(value_of(spec, 0, "n"), "5");
	cr_expect_str_eq(value_of(spec, 0, "text"), "arg-5.x");
	cr_expect_str_eq(value_of(spec, 0, "pool"), "$all");
	cr_expect_eq(fragment->operators[0].settings[2].value->count, 2);
	cr_expect_str_eq(fragment->operators[1].conditions[0].settings[0].value->text, "5");
	cr_expect_eq(fragment->flows[0].capacity, 5);
	cr_expect_str_eq(fragment->operators[2].type, "arg", "a default may hold arguments");
	cr_expect_str_eq(value_of(spec, 2, "n"), "3",
			 "parameters of the outer one reach the inner");
	cr_expect_str_eq(value_of(spec, 2, "pool"), "$y_own");
	cr_expect_eq(fragment->flows[1].capacity, 3);
	cr_expect_str_eq(value_of(spec, 4, "n"), "9", "outside it is the argument");
	fragi_spec_destroy(spec);
}

Test(subgraph, parameters_are_checked)
{
	bad_text(
		HEAD
		"subgraphs:\n"
		"  s:\n"
		"    parameters: {n: {}, m: {default: [1]}, \"a b\": {}, p: 3, q: {defalt: 1}}\n"
		"    operators: {a: {type: t, parameters: {x: \"${o}\", y: \"m ${m}\"}}}\n"
		"  v: {parameters: [n], operators: {a: {type: t}}}\n"
		"operators: {x: {subgraph: s}, y: {subgraph: s, parameters: {n: 1, mm: 2}}, z: {subgraph: s, parameters: 3}, w: {subgraph: s, parameters: }}\n",
		"app.yaml:5:38: parameter \"m\" stands within a text (app.yaml:6), so give it a single value\n"
		"app.yaml:5:44: subgraphs.s: parameter \"a b\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:5:58: subgraphs.s.p: a parameter is a single value; it must be a map (keys and values)\n"
		"app.yaml:5:65: subgraphs.s.q: unknown key \"defalt\"; did you mean \"default\"?\n"
		"app.yaml:6:46: unknown argument \"o\"; declared: n, m, a b, p, q\n"
		"app.yaml:7:19: subgraphs.v: parameters is a list; it must be a map (keys and values)\n"
		"app.yaml:8:13: app.x: parameter \"n\" of subgraph s is required and not set\n"
		"app.yaml:8:67: app.y: unknown parameter \"mm\"; its parameters: n, m, a b, p, q\n"
		"app.yaml:8:105: app.z: parameters is a single value; it must be a map (keys and values)\n"
		"app.yaml:8:109: app.w: parameter \"n\" of subgraph s is required and not set\n");
}

Test(subgraph, services_belong_to_the_instance)
{
	struct fragi_spec *spec = good_text(
		HEAD
		"subgraphs:\n"
		"  s:\n"
		"    parameters: {id: {default: one}}\n"
		"    services: {tally: {type: tally}, hub: {type: hub, id: \"${id}\", size: 3}}\n"
		"    operators: {a: {type: t, resources: [$tally]}}\n"
		"operators: {x: {subgraph: s}, y: {subgraph: s, parameters: {id: two}}}\n");
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_expect_eq(spec->service_count, 0);
	cr_assert_eq(fragment->resource_count, 4);
	cr_expect_str_eq(fragment->resources[0].name, "x_tally");
	cr_expect_eq(fragment->resources[0].kind, FRAGI_OBJECT_SERVICE);
	cr_expect_str_eq(fragment->resources[0].scope, "x");
	cr_expect_null(fragment->resources[0].id);
	cr_expect_str_eq(fragment->resources[1].id, "one");
	cr_expect_eq(fragment->resources[1].setting_count, 1);
	cr_expect_str_eq(fragment->resources[3].id, "two");
	cr_expect_str_eq(fragment->resources[3].scope, "y");
	cr_expect_str_eq(fragment->operators[1].resources[0].name, "y_tally");
	fragi_spec_destroy(spec);
	bad_text(
		HEAD "subgraphs:\n"
		     "  s: {services: {a b: {type: t}, c: {id: x}}, operators: {a: {type: t}}}\n"
		     "operators: {x: {subgraph: s}}\n",
		"app.yaml:4:18: subgraphs.s: service \"a b\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:4:34: app.x_c: a service has no type; write for example {type: unbounded_allocator}\n");
}

Test(subgraph, when_excludes_instances_and_operators_of_them)
{
	static const char text[] = HEAD
		"arguments: {more: {default: false}}\n"
		"subgraphs:\n"
		"  s:\n"
		"    operators: {a: {type: t}, b: {type: t, when: {more: true}}}\n"
		"    flows: [{from: a, to: b, when: {more: true}}]\n"
		"    ports: [a.in]\n"
		"operators: {x: {subgraph: s}, y: {subgraph: s, when: {more: true}}, tx: {type: t}}\n"
		"flows: [{from: tx, to: y.in, when: {more: true}}, tx -> x.in]\n";

	expect_flat(text, "app: x_a tx\ntx -> x_a.in order 0 capacity 0 line 10\n");
	expect_flat_of(&(const struct graph_text){.text = text, .args = {"--more"}},
		       "app: x_a x_b y_a y_b tx\n"
		       "x_a -> x_b order 0 capacity 0 line 7\n"
		       "y_a -> y_b order 1 capacity 0 line 7\n"
		       "tx -> y_a.in order 2 capacity 0 line 10\n"
		       "tx -> x_a.in order 3 capacity 0 line 10\n");
	bad_text(
		HEAD
		"arguments: {more: {default: false}}\n"
		"subgraphs: {s: {operators: {a: {type: t}, b: {type: t, when: {more: true}}}, flows: [a -> b]}}\n"
		"operators: {x: {subgraph: s}, y: {subgraph: s, when: {more: true}}}\n"
		"flows: [x_a -> y.in]\n",
		"app.yaml:4:86: subgraphs.s: a flow: operator b is excluded by its when; leave it out too\n"
		"app.yaml:6:9: flow end y.in: operator app.y is excluded by its when; give the flow the same when\n");
}

Test(subgraph, cycles_and_deep_nesting_are_refused)
{
	char text[4000] = HEAD "subgraphs:\n";

	bad_text(
		HEAD "subgraphs:\n"
		     "  self: {operators: {a: {subgraph: self}}}\n"
		     "  x: {operators: {a: {subgraph: y}}}\n"
		     "  y: {operators: {b: {subgraph: x}, c: {type: t}}}\n"
		     "operators: {i: {subgraph: x}, tx: {type: t}}\n"
		     "flows: [tx -> i.in]\n",
		"app.yaml:4:36: subgraphs.self: subgraph \"self\" contains itself: self > self; take one of these instances out\n"
		"app.yaml:6:33: subgraphs.y: subgraph \"x\" contains itself: x > y > x; take one of these instances out\n");
	for (int i = 0; i < 16; i++)
		sprintf(text + strlen(text), "  s%d: {operators: {a: {subgraph: s%d}}}\n", i,
			i + 1);
	strcat(text, "  s16: {operators: {a: {type: t}}}\noperators: {i: {subgraph: s1}}\n");
	bad_text(
		text,
		"app.yaml:19:35: subgraphs.s15: instances are more than 16 deep: s0 > s1 > s2 > s3 > s4 > s5 > s6 > s7 > s8 > s9 > s10 > s11 > s12 > s13 > s14 > s15 > s16; nest them less\n");
}

/* Each level has `width` instances of the one below, on ports too. */
static char *bomb(int depth, int width, bool one_operator)
{
	char *text = malloc(64 * 1024);

	strcpy(text, HEAD "subgraphs:\n  s0: {operators: {a: {type: t}}, ports: {in: [a.in]}}\n");
	for (int level = 1; level < depth; level++) {
		sprintf(text + strlen(text), "  s%d: {operators: {", level);
		for (int i = 0; i < (one_operator ? 1 : width); i++)
			sprintf(text + strlen(text), "%si%d: {subgraph: s%d}", i > 0 ? ", " : "", i,
				level - 1);
		strcat(text, "}, ports: {in: [");
		for (int i = 0; i < width; i++)
			sprintf(text + strlen(text), "%si%d.in", i > 0 ? ", " : "",
				one_operator ? 0 : i);
		strcat(text, "]}}\n");
	}
	sprintf(text + strlen(text),
		"operators: {x: {subgraph: s%d}, tx: {type: t}}\nflows: [tx -> x]\n", depth - 1);
	return text;
}

Test(subgraph, bombs_are_refused_before_they_are_expanded)
{
	char *text = bomb(12, 10, false);

	bad_text(
		text,
		"app.yaml:16:27: app.x: the instances of subgraphs have more than 20000 operators in all; use fewer\n");
	free(text);
	text = bomb(12, 10, true);
	bad_text(
		text,
		"app.yaml:17:9: the instances of subgraphs make more than 300000 values and ends of flows; use fewer\n");
	free(text);
}

Test(subgraph, names_that_meet_are_refused_with_both)
{
	bad_text(
		HEAD "subgraphs:\n"
		     "  s: {operators: {c: {type: t}, b_c: {type: t}}}\n"
		     "operators:\n"
		     "  a: {subgraph: s}\n"
		     "  a_b: {subgraph: s}\n"
		     "  x_c: {type: t}\n"
		     "  x: {subgraph: s}\n",
		"app.yaml:4:19: app: two are called \"a_b_c\": \"b_c\" of instance \"a\" (app.yaml:4:33) and \"c\" of instance \"a_b\" (app.yaml:4:19); rename one of them\n"
		"app.yaml:4:19: app: two are called \"x_c\": an operator of the fragment (app.yaml:8:3) and \"c\" of instance \"x\" (app.yaml:4:19); rename one of them\n");
	bad_text(
		HEAD "subgraphs:\n"
		     "  s: {operators: {abcdefghijklmnopqrstuvwxyz0123456789: {type: t}}}\n"
		     "operators: {abcdefghijklmnopqrstuvwxyz0123456789: {subgraph: s}}\n",
		"app.yaml:4:19: app: the name \"abcdefghijklmnopqrstuvwxyz0123456789_abcdefghijklmnopqrstuvwxyz0123456789\", of \"abcdefghijklmnopqrstuvwxyz0123456789\" in an instance, has 73 characters; 63 are allowed, so shorten the names that it is made of\n");
}

Test(subgraph, declarations_are_checked_once)
{
	bad_text(
		HEAD
		"subgraphs:\n"
		"  s:\n"
		"    operators: {first: {type: t}, second: {type: t}, 1st: {type: t}}\n"
		"    flows: [first -> secnd, {from: frst.out, to: [second.in]}]\n"
		"    ports: {a: frst.in, b: {in: [first.in], out: first.out}, c: {out: [first.o, second.o]}, d: [], e: {sideways: x}}\n"
		"    prots: {}\n"
		"  l: {operators: {x: {type: t}, y: {type: t}}, ports: [x.in, y.in, x]}\n"
		"  n: {}\n"
		"  m: [1]\n"
		"  4: {operators: {x: {type: t}}}\n"
		"operators: {i: {subgraph: s}, j: {subgraph: s}, k: {subgraph: n}}\n"
		"flows: [k.x -> i.a, i.b -> j.c]\n",
		"app.yaml:5:54: subgraphs.s: operator \"1st\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:6:13: subgraphs.s: a flow: unknown operator \"secnd\"; did you mean \"second\"?\n"
		"app.yaml:6:36: subgraphs.s: a flow: unknown operator \"frst\"; did you mean \"first\"?\n"
		"app.yaml:7:16: subgraphs.s: port \"a\": unknown operator \"frst\"; did you mean \"first\"?\n"
		"app.yaml:7:28: subgraphs.s: port \"b\" is an input and an output; give them two names\n"
		"app.yaml:7:71: subgraphs.s: port \"c\" is an output and stands for several ports; only an input may\n"
		"app.yaml:7:96: subgraphs.s: port \"d\" stands for nothing; name the inner ports\n"
		"app.yaml:7:103: subgraphs.s: port \"e\": write OPERATOR.PORT, a list of them, {in: ...} or {out: ...}\n"
		"app.yaml:8:5: subgraphs.s: unknown key \"prots\"; did you mean \"ports\"?\n"
		"app.yaml:9:62: subgraphs.l: two ports are called \"in\": x.in and y.in; give them names, or write `in: [...]` for an input of several\n"
		"app.yaml:9:68: subgraphs.l: port \"x\": a port without a name of its own is called as its inner port; write OPERATOR.PORT\n"
		"app.yaml:10:3: subgraphs.n: has no operators (or `when` excludes all of them); add operators\n"
		"app.yaml:11:6: subgraphs.m: a subgraph is a list; it must be a map (keys and values)\n"
		"app.yaml:12:3: subgraph \"4\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n");
}

Test(subgraph, instances_and_their_ports_are_checked)
{
	bad_text(
		HEAD
		"subgraphs:\n"
		"  s: {operators: {x: {type: t}, y: {type: t}}, ports: {data: x.in, all: [x.in, y.in], res: {out: x.out}}}\n"
		"  q: {operators: {x: {type: t}}}\n"
		"operators:\n"
		"  a: {subgraph: s, type: t, parameters: {p: 1}}\n"
		"  b: {subgraph: r}\n"
		"  c: {subgraph: camera}\n"
		"  d: {subgraph: q, subgrap: q}\n"
		"  e: {subgraph: [q]}\n"
		"  t: {type: t}\n"
		"flows: [t -> a.dat, t -> a, a.all -> t, t -> a.res, t -> b.in, a.res -> t, t -> d, d.x -> t]\n",
		"app.yaml:7:20: app.a: unknown key \"type\"; valid keys: subgraph, when, parameters\n"
		"app.yaml:7:29: app.a: subgraph s declares no parameters; set those of its operators, for example `a_x: {parameters: {...}}` among the operators\n"
		"app.yaml:8:17: app.b: unknown subgraph \"r\"; subgraphs: s, q\n"
		"app.yaml:9:17: app.c: unknown subgraph \"camera\"; subgraphs: s, q\n"
		"app.yaml:10:20: app.d: unknown key \"subgrap\"; did you mean \"subgraph\"?\n"
		"app.yaml:11:17: app.e: subgraph is a list; it must be a single value\n"
		"app.yaml:13:9: flow end a.dat: subgraph \"s\" has no port \"dat\"; did you mean \"data\"?\n"
		"app.yaml:13:21: flow end a: several could be meant; name the port; its inputs: data, all\n"
		"app.yaml:13:29: flow end a.all: it stands for several inner ports, which only an input may\n"
		"app.yaml:13:41: flow end a.res: port \"res\" of subgraph \"s\" is an output, and a flow ends at an input; its inputs: data, all\n"
		"app.yaml:13:76: flow end d: subgraph \"q\" has no inputs; declare `ports:` in it\n"
		"app.yaml:13:84: flow end d.x: subgraph \"q\" has no port \"x\"; it has no outputs\n");
	bad_text(
		HEAD "fragments: {f: {operators: {a: {type: t}}, subgraphs: {}}}\n",
		"app.yaml:3:44: f: subgraphs stand at the top, for all fragments; move them there\n");
}

Test(subgraph, with_extensions_an_unknown_one_is_left_for_the_host)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		.text = HEAD
		"extensions: [libx.so]\n"
		"subgraphs: {s: {operators: {i: {subgraph: of_library, parameters: {n: 1}}}, ports: {in: i.in}}}\n"
		"operators: {o: {subgraph: s}, tx: {type: t}, o_i_deep: {parameters: {p: 1}}}\n"
		"flows: [tx -> o]\n",
		.sets = {"app.o_i.n=2", "app.o_i_more.q=3"}});
	const struct fragi_spec_fragment *fragment = &spec->fragments[0];

	cr_expect(fragment->is_composed);
	cr_assert_eq(fragment->operator_count, 4);
	cr_expect_str_eq(fragment->operators[0].name, "o_i");
	cr_expect_str_eq(fragment->operators[0].subgraph, "of_library");
	cr_expect_str_eq(value_of(spec, 0, "n"), "2");
	cr_expect_str_eq(fragment->operators[3].name, "o_i_more");
	cr_expect_str_eq(fragment->flows[0].to[0].op, "o_i");
	cr_expect_str_eq(fragment->flows[0].to[0].port, "in");
	fragi_spec_destroy(spec);
}
