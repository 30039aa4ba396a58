// SPDX-License-Identifier: Apache-2.0
#include "unit/graph_texts.h"

#define HEAD "frag: 1\napplication: app\n"
#define FRAGMENTS                                                                                  \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: a}, other: {type: a, when: {x: yes}}}}\n"                   \
	"  f2: {operators: {rx: {type: b}}}\n"                                                     \
	"  f3: {compose: c}\n"                                                                     \
	"  f4: {when: {x: yes}, operators: {late: {type: b}}}\n"                                   \
	"arguments: {x: {default: no}}\n"

Test(spec_variable, all_kinds_are_read)
{
	const struct graph_text graph = {
		HEAD FRAGMENTS
		"variables:\n"
		"  gain: {type: f32, shape: [3, -1], writer: f1.tx, readers: [f2.rx, f3]}\n"
		"  one: {type: i64, writer: f1, readers: f2}\n"
		"  row: {type: u8, shape: 12, writer: f3.composed}\n"
		"  name: {type: string, writer: f1.tx, readers: [f4, f1.other, f2]}\n"
		"  data: {type: path, path: /data/in, readers: [f2.rx]}\n"
		"  gone: {type: f32, when: {x: yes}, writer: f4.late}\n"};
	struct fragi_spec *spec = good_graph(&graph);
	const struct fragi_spec_variable *v;

	cr_assert_eq(spec->variable_count, 5);
	v = &spec->variables[0];
	cr_expect_str_eq(v->name, "gain");
	cr_expect_eq(v->dtype.code, FRAG_DTYPE_FLOAT);
	cr_expect_eq(v->dtype.bits, 32);
	cr_expect_eq(v->dtype.lanes, 1);
	cr_expect_eq(v->ndim, 2);
	cr_expect_eq(v->shape[0], 3);
	cr_expect_eq(v->shape[1], -1);
	cr_expect(v->is_dynamic);
	cr_expect_str_eq(v->writer.fragment, "f1");
	cr_expect_str_eq(v->writer.op, "tx");
	cr_assert_eq(v->reader_count, 2);
	cr_expect_str_eq(v->readers[0].op, "rx");
	cr_expect_str_eq(v->readers[1].fragment, "f3");
	cr_expect_null(v->readers[1].op);
	v = &spec->variables[1];
	cr_expect_eq(v->ndim, 0);
	cr_expect_not(v->is_dynamic);
	cr_expect_null(v->writer.op);
	cr_assert_eq(v->reader_count, 1);
	cr_expect_str_eq(v->readers[0].fragment, "f2");
	cr_expect_eq(spec->variables[2].ndim, 1);
	cr_expect_eq(spec->variables[2].shape[0], 12);
	cr_expect_eq(spec->variables[2].reader_count, 0);
	v = &spec->variables[3];
	cr_expect_eq(v->dtype.bits, 8);
	cr_expect(v->is_dynamic);
	cr_assert_eq(v->reader_count, 1, "what `when` excludes is left out");
	cr_expect_str_eq(v->readers[0].fragment, "f2");
	cr_expect_str_eq(spec->variables[4].path, "/data/in");
	cr_expect_null(spec->variables[4].writer.fragment);
	fragi_spec_destroy(spec);
}

Test(spec_variable, one_fragment_may_stand_at_the_top)
{
	const struct graph_text graph = {
		HEAD "operators: {tx: {type: a}}\n"
		     "variables: {v: {type: f64, writer: tx, readers: [app, app.tx]}}\n"};
	struct fragi_spec *spec = good_graph(&graph);

	cr_expect_str_eq(spec->variables[0].writer.fragment, "app");
	cr_expect_str_eq(spec->variables[0].writer.op, "tx");
	cr_expect_null(spec->variables[0].readers[0].op);
	cr_expect_str_eq(spec->variables[0].readers[1].op, "tx");
	fragi_spec_destroy(spec);
}

Test(spec_variable, what_is_wrong_has_its_place_and_a_sentence)
{
	const struct graph_text graph = {
		HEAD FRAGMENTS
		"variables:\n"
		"  a: {type: f31, writer: f1.tx}\n"
		"  b: {typ: f32, writer: f1.tx}\n"
		"  c: {type: f32, writer: f1.tz}\n"
		"  d: {type: f32, writer: f5.tx}\n"
		"  e: {type: f32, shape: [0], writer: f1}\n"
		"  f: {type: f32, shape: [], writer: f1}\n"
		"  g: {type: f32, shape: 2x2, writer: f1}\n"
		"  h: {type: f32, readers: [f1]}\n"
		"  i: {type: string, shape: [2], writer: f1}\n"
		"  j: {type: f32, path: x, writer: f1}\n"
		"  k: {type: path, writer: f1}\n"
		"  l: {writer: f1}\n"
		"  m:\n"
		"  n: {type: f32, writer: a.b.c}\n"
		"  o: {type: f32, writer: f4.late}\n"
		"  p: {type: f32, writer: f1, readers: [[f2]]}\n"
		"  q: {type: f64, shape: [1048576, 1048576], writer: f1}\n"
		"  5: {type: f64, writer: f1}\n"
		"  r: {type: f64, shape: [1, 1, 1, 1, 1, 1, 1, 1, 1], writer: f1}\n"};

	bad_graph(
		&graph,
		"app.yaml:10:13: variables.a: type \"f31\" is not known; did you mean \"f32\"?\n"
		"app.yaml:11:7: variables.b: unknown key \"typ\"; did you mean \"type\"?\n"
		"app.yaml:12:26: variables.c: writer f1.tz: fragment f1 has no operator \"tz\"; operators: tx\n"
		"app.yaml:13:26: variables.d: writer f5.tx: unknown fragment \"f5\"; fragments: f1, f2, f3\n"
		"app.yaml:14:26: variables.e: a dimension of 0 holds nothing; write its size, or -1 where the writer decides\n"
		"app.yaml:15:25: variables.f: shape has 0 dimensions; it may have 1 to 8\n"
		"app.yaml:16:25: variables.g: a dimension \"2x2\" is not a whole number from -1 to 1099511627776\n"
		"app.yaml:17:3: variables.h: nobody writes it; add `writer: FRAGMENT.OPERATOR`\n"
		"app.yaml:18:21: variables.i: a variable of type string has no shape; leave it out\n"
		"app.yaml:19:18: variables.j: a variable of type f32 has no path; leave it out\n"
		"app.yaml:20:6: variables.k: a variable of type path without a path; add `path: FOLDER`\n"
		"app.yaml:21:3: variables.l: a variable without a type; add one, such as `type: f32`\n"
		"app.yaml:22:3: variables.m: a variable without a type and a writer\n"
		"app.yaml:23:26: variables.n: writer \"a.b.c\" is neither FRAGMENT nor FRAGMENT.OPERATOR\n"
		"app.yaml:24:26: variables.o: writer f4.late is excluded by its when; give the variable the same when\n"
		"app.yaml:25:40: variables.p: reader is a list; it must be a single value\n"
		"app.yaml:26:25: variables.q: the shape takes more than 1024 GiB\n"
		"app.yaml:27:3: variable \"5\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:28:25: variables.r: shape has 9 dimensions; it may have 1 to 8\n");
}
