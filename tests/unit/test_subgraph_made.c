// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include <frag/frag.h>
#include <graph/op.h>

#include "graph_texts.h"

/* Subgraphs made in C: what they become in the fragment, and what their author can get wrong. */

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static const struct frag_port ports[] = {
	{.name = "in", .dir = FRAG_IN, .flags = FRAG_PORT_OPTIONAL},
	{.name = "all", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI | FRAG_PORT_OPTIONAL},
	{.name = "out", .dir = FRAG_OUT},
};
static const struct frag_op_type plain = {FRAG_OP_TYPE_INIT, .name = "plain", FRAG_PORTS(ports),
					  .compute = compute};

static struct frag_fragment *begin(struct fragi_diag *diag)
{
	struct frag_fragment *fragment;

	cr_assert_eq(fragi_fragment_begin("app", NULL, NULL, NULL, diag, &fragment), 0);
	return fragment;
}

/* Completes the fragment and compares its operators and flows, or its errors. */
static void end(struct frag_fragment *fragment, struct fragi_diag *diag, const char *lines,
		const char *errors)
{
	char *text = NULL, from[200], to[200];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_expect_eq(fragi_fragment_complete(fragment), errors[0] != '\0' ? -EINVAL : 0);
	expect_errors(diag, errors);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", fragment->ops[i]->name);
	fputc('\n', out);
	for (size_t i = 0; i < fragment->flow_count; i++)
		fprintf(out, "%s -> %s capacity %u\n",
			fragi_flow_from(&fragment->info, &fragment->flows[i], from, sizeof(from)),
			fragi_flow_to(&fragment->info, &fragment->flows[i], to, sizeof(to)),
			fragment->flows[i].capacity);
	fclose(out);
	if (lines != NULL)
		cr_expect_str_eq(text, lines, "got:\n%swanted:\n%s", text, lines);
	free(text);
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(diag);
}

static struct frag_op *op(struct frag_fragment *fragment, const char *name)
{
	struct frag_op *made = frag_make_operator_of(fragment, name, &plain, FRAG_NO_ARGS);

	frag_add_operator(fragment, made);
	return made;
}

/* Two in a row; input in, output out. */
static int compose_row(struct frag_subgraph *row, struct frag_fragment *fragment)
{
	struct frag_op *a = op(fragment, "a"), *b = op(fragment, "b");
	int r = frag_add_flow(fragment, a, "out", b, "in");

	if (r == 0)
		r = frag_add_interface_port(row, a, "in", NULL);
	return r < 0 ? r : frag_add_output_interface_port(row, b, NULL, "end");
}
static const struct frag_subgraph_type row_type = {"row", NULL, compose_row};

/* Two rows side by side behind one input, and a third one behind both. */
static int compose_field(struct frag_subgraph *field, struct frag_fragment *fragment)
{
	struct frag_subgraph *l = frag_make_subgraph_of(fragment, "l", &row_type, NULL);
	struct frag_subgraph *r = frag_make_subgraph_of(fragment, "r", &row_type, NULL);
	struct frag_op *sum = op(fragment, "sum");

	cr_expect_eq(frag_add_named_flow(fragment, "l", "end", "sum", "all", 0, 0), 0);
	cr_expect_eq(frag_add_named_flow(fragment, "r", NULL, "sum", "all", 7, 0), 0);
	cr_expect_eq(frag_add_interface_port_of(field, l, "in", NULL), 0);
	cr_expect_eq(frag_add_interface_port_of(field, r, "in", "in"), 0);
	cr_expect_eq(frag_add_input_interface_port(field, sum, "all", "in"), 0);
	return frag_add_interface_port(field, sum, "out", NULL);
}
static const struct frag_subgraph_type field_type = {"field", NULL, compose_field};

static int compose_world(struct frag_subgraph *world, struct frag_fragment *fragment)
{
	struct frag_subgraph *f = frag_make_subgraph_of(fragment, "f", &field_type, NULL);

	return frag_add_interface_port_of(world, f, "in", "data");
}
static const struct frag_subgraph_type world_type = {"world", NULL, compose_world};

Test(subgraph_made, instances_are_flat_operators_and_flows)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_op *tx = op(fragment, "tx");

	cr_expect_not_null(frag_make_subgraph_of(fragment, "x", &row_type, NULL));
	cr_expect_not_null(frag_make_subgraph_of(fragment, "y", &row_type, NULL));
	cr_expect_eq(frag_add_named_flow(fragment, "tx", "out", "x", "in", 0, 0), 0);
	cr_expect_eq(frag_add_named_flow(fragment, "x", "end", "y", NULL, 3, 0), 0);
	cr_expect_eq(frag_add_named_flow(fragment, "x_a", "out", "y", "in", 0, 0), 0);
	(void)tx;
	end(fragment, &diag,
	    "tx x_a x_b y_a y_b\n"
	    "app.x_a.out -> app.x_b.in capacity 1\n"
	    "app.y_a.out -> app.y_b.in capacity 1\n"
	    "app.tx.out -> app.x_a.in capacity 1\n"
	    "app.x_b.out -> app.y_a.in capacity 3\n"
	    "app.x_a.out -> app.y_a.in capacity 1\n",
	    "");
}

Test(subgraph_made, instances_nest_and_an_input_goes_to_several)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);
	struct frag_subgraph *f;

	op(fragment, "tx");
	f = frag_make_subgraph_of(fragment, "f", &field_type, NULL);
	cr_expect_str_eq(frag_subgraph_name(f), "f");
	for (uint32_t i = 0; i < 5; i++)
		cr_expect_str_eq(
			frag_op_name(frag_subgraph_operator(f, i)),
			((const char *const[]){"f_l_a", "f_l_b", "f_r_a", "f_r_b", "f_sum"})[i]);
	cr_expect_null(frag_subgraph_operator(f, 5));
	cr_expect_eq(frag_add_named_flow(fragment, "tx", "out", "f", "in", 0, 0), 0);
	end(fragment, &diag,
	    "tx f_l_a f_l_b f_r_a f_r_b f_sum\n"
	    "app.f_l_a.out -> app.f_l_b.in capacity 1\n"
	    "app.f_r_a.out -> app.f_r_b.in capacity 1\n"
	    "app.f_l_b.out -> app.f_sum.all capacity 1\n"
	    "app.f_r_b.out -> app.f_sum.all capacity 7\n"
	    "app.tx.out -> app.f_l_a.in capacity 1\n"
	    "app.tx.out -> app.f_r_a.in capacity 1\n"
	    "app.tx.out -> app.f_sum.all capacity 1\n",
	    "");
}

/* sum of the inner one is field's, so its names are one level deeper here. */
static int compose_outer(struct frag_subgraph *outer, struct frag_fragment *fragment)
{
	struct frag_subgraph *inner = frag_make_subgraph_of(fragment, "row", &row_type, NULL);
	int r = frag_add_interface_port_of(outer, inner, "in", "data_in");

	return r < 0 ? r : frag_add_interface_port_of(outer, inner, "end", NULL);
}
static const struct frag_subgraph_type outer_type = {"outer", NULL, compose_outer};

static int compose_outermost(struct frag_subgraph *outermost, struct frag_fragment *fragment)
{
	struct frag_subgraph *inner = frag_make_subgraph_of(fragment, "o", &outer_type, NULL);

	return frag_add_interface_port_of(outermost, inner, "data_in", NULL);
}
static const struct frag_subgraph_type outermost_type = {"outermost", NULL, compose_outermost};

Test(subgraph_made, ports_are_exported_through_three_levels)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	op(fragment, "tx");
	frag_make_subgraph_of(fragment, "t", &outermost_type, NULL);
	cr_expect_eq(frag_add_named_flow(fragment, "tx", "out", "t", NULL, 0, 0), 0);
	end(fragment, &diag,
	    "tx t_o_row_a t_o_row_b\n"
	    "app.t_o_row_a.out -> app.t_o_row_b.in capacity 1\n"
	    "app.tx.out -> app.t_o_row_a.in capacity 1\n",
	    "");
}

static const struct frag_op_type bare = {FRAG_OP_TYPE_INIT, .name = "bare", .compute = compute};

/* Two operators without ports, one of which begins and one ends; `all` of plain is exported too. */
static int compose_steps(struct frag_subgraph *steps, struct frag_fragment *fragment)
{
	struct frag_op *a = frag_make_operator_of(fragment, "a", &bare, NULL);
	struct frag_op *b = frag_make_operator_of(fragment, "b", &bare, NULL);

	cr_expect_eq(frag_add_flow(fragment, a, NULL, b, NULL), 0);
	cr_expect_eq(frag_add_input_interface_port(steps, a, FRAG_INPUT_EXEC, "go"), 0);
	cr_expect_eq(frag_add_output_interface_port(steps, b, FRAG_OUTPUT_EXEC, "gone"), 0);
	return 0;
}
static const struct frag_subgraph_type steps_type = {"steps", NULL, compose_steps};

static int compose_mixed(struct frag_subgraph *mixed, struct frag_fragment *fragment)
{
	struct frag_subgraph *s = frag_make_subgraph_of(fragment, "s", &steps_type, NULL);
	struct frag_op *c = op(fragment, "c");

	cr_expect_eq(frag_add_interface_port_of(mixed, s, "go", "begin"), 0);
	cr_expect_eq(frag_add_interface_port(mixed, c, FRAG_INPUT_EXEC, "begin"), 0);
	cr_expect_eq(frag_add_interface_port_of(mixed, s, "gone", NULL), 0);
	return frag_add_interface_port(mixed, c, "out", NULL);
}
static const struct frag_subgraph_type mixed_type = {"mixed", NULL, compose_mixed};

Test(subgraph_made, execution_ports_are_interface_ports)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	op(fragment, "rx");
	frag_add_operator(fragment, frag_make_operator_of(fragment, "last", &bare, NULL));
	frag_start_op(fragment);
	for (uint32_t i = 0; i < 3; i++)
		frag_make_subgraph_of(fragment, ((const char *const[]){"x", "m", "idle"})[i],
				      i == 0 ? &steps_type : &mixed_type, NULL);
	cr_expect_eq(frag_add_named_flow(fragment, "x", NULL, "m", NULL, 0, 0), 0);
	cr_expect_eq(frag_add_named_flow(fragment, "m", NULL, "rx", "in", 0, 0), 0);
	cr_expect_eq(frag_add_named_flow(fragment, "m", "gone", "last", NULL, 2, 0), 0);
	cr_expect_eq(frag_add_named_flow(fragment, "last", NULL, "x", "go", 0, 0), 0);
	end(fragment, &diag,
	    "rx last <|start|> x_a x_b m_s_a m_s_b m_c idle_s_a idle_s_b idle_c\n"
	    "app.x_a.__output_exec__ -> app.x_b.__input_exec__ capacity 1\n"
	    "app.m_s_a.__output_exec__ -> app.m_s_b.__input_exec__ capacity 1\n"
	    "app.idle_s_a.__output_exec__ -> app.idle_s_b.__input_exec__ capacity 1\n"
	    "app.x_b.__output_exec__ -> app.m_s_a.__input_exec__ capacity 1\n"
	    "app.x_b.__output_exec__ -> app.m_c.__input_exec__ capacity 1\n"
	    "app.m_c.out -> app.rx.in capacity 1\n"
	    "app.m_s_b.__output_exec__ -> app.last.__input_exec__ capacity 2\n"
	    "app.last.__output_exec__ -> app.x_a.__input_exec__ capacity 1\n",
	    "");
}

static int compose_wrong(struct frag_subgraph *wrong, struct frag_fragment *fragment)
{
	struct frag_op *a = op(fragment, "a"), *b = op(fragment, "b");
	struct frag_subgraph *row = frag_make_subgraph_of(fragment, "row", &row_type, NULL);

	cr_expect_eq(frag_add_interface_port(wrong, a, "inn", NULL), 0);
	cr_expect_eq(frag_add_interface_port(wrong, a, NULL, "x"), 0);
	cr_expect_eq(frag_add_input_interface_port(wrong, a, "out", NULL), 0);
	cr_expect_eq(frag_add_interface_port(wrong, a, "in", "both"), 0);
	cr_expect_eq(frag_add_interface_port(wrong, b, "out", "both"), 0);
	cr_expect_eq(frag_add_interface_port(wrong, a, "out", "two"), 0);
	cr_expect_eq(frag_add_interface_port(wrong, b, "out", "two"), 0);
	cr_expect_eq(frag_add_interface_port_of(wrong, row, NULL, "x"), -EINVAL);
	cr_expect_eq(frag_add_interface_port(wrong, a, "in", "a.b"), -EINVAL);
	cr_expect_eq(frag_add_named_flow(fragment, "a", "out", "c", "in", 0, 0), -EINVAL);
	cr_expect_eq(frag_add_named_flow(fragment, "a", "out", "b", "in", 0, 99), -EINVAL);
	cr_expect_eq(frag_add_named_flow(fragment, NULL, "out", "b", "in", 0, 0), -EINVAL);
	return 0;
}
static const struct frag_subgraph_type wrong_type = {"wrong", NULL, compose_wrong};

Test(subgraph_made, ports_and_flows_that_are_wrong_are_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	cr_expect_not_null(frag_make_subgraph_of(fragment, "w", &wrong_type, NULL));
	end(fragment, &diag, NULL,
	    "app.w: frag_add_interface_port_of: name the port of \"w_row\"\n"
	    "app.w: \"a.b\" is not a valid name of a port\n"
	    "app: frag_add_named_flow: there is no operator and no instance \"w_c\"; make it first\n"
	    "app: flow a -> b: 99 is not a valid policy; take one of FRAG_POLICY_...\n"
	    "app: frag_add_named_flow: a name is NULL\n"
	    "app.w: an interface port: operator \"w_a\" has no port \"inn\"; did you mean \"in\"?\n"
	    "app.w: an interface port of operator \"w_a\" without its port: several could be meant; name one; its ports: in, all, out\n"
	    "app.w: interface port \"out\" is to be an input, and port \"out\" of \"w_a\" is an output\n"
	    "app.w: interface port \"both\" is an input and an output; give them two names\n"
	    "app.w: interface port \"two\" stands for two outputs; only an input may stand for several\n");
}

Test(subgraph_made, ends_of_flows_that_are_wrong_are_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	op(fragment, "tx");
	frag_make_subgraph_of(fragment, "x", &row_type, NULL);
	frag_make_subgraph_of(fragment, "o", &world_type, NULL);
	frag_add_named_flow(fragment, "tx", "out", "x", "inn", 0, 0);
	frag_add_named_flow(fragment, "x", "in", "x", "in", 0, 0);
	frag_add_named_flow(fragment, "o", NULL, "x", "in", 0, 0);
	frag_add_named_flow(fragment, "o", "data", "x", "in", 0, 0);
	end(fragment, &diag, NULL,
	    "flow end app.x.inn: the subgraph has no port \"inn\"; did you mean \"in\"?\n"
	    "flow end app.o: the subgraph has no outputs\n"
	    "flow end app.o.data: it stands for several inner inputs, and a flow begins at an output\n"
	    "flow end app.x_a.in: this is an input, and a flow begins at an output; its outputs: out\n");
}

/* Nests itself until it is refused. */
static int compose_endless(struct frag_subgraph *endless, struct frag_fragment *fragment);
static const struct frag_subgraph_type endless_type = {"e", NULL, compose_endless};

static int compose_endless(struct frag_subgraph *endless, struct frag_fragment *fragment)
{
	return frag_make_subgraph_of(fragment, "e", &endless_type, NULL) != NULL ? 0 : -EINVAL;
}

static int compose_failing(struct frag_subgraph *failing, struct frag_fragment *fragment)
{
	return -EIO;
}
static const struct frag_subgraph_type failing_type = {"failing", NULL, compose_failing};

static int compose_strange(struct frag_subgraph *strange, struct frag_fragment *fragment)
{
	return 1;
}
static const struct frag_subgraph_type strange_type = {"strange", NULL, compose_strange};

Test(subgraph_made, instances_that_cannot_be_made_are_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	op(fragment, "taken");
	op(fragment, "x_a");
	cr_expect_null(frag_make_subgraph_of(fragment, "taken", &row_type, NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, "a.b", &row_type, NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, NULL, &row_type, NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, "n", NULL, NULL));
	cr_expect_null(frag_make_subgraph(fragment, "n", "row", NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, "e", &endless_type, NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, "f", &failing_type, NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, "s", &strange_type, NULL));
	cr_expect_not_null(frag_make_subgraph_of(fragment, "y", &row_type, NULL));
	cr_expect_null(frag_make_subgraph_of(fragment, "y", &row_type, NULL));
	op(fragment, "y");
	cr_expect_null(frag_make_subgraph_of(fragment, "x", &row_type, NULL),
		       "its a is called as an operator that is there");
	end(fragment, &diag, NULL,
	    "app: an operator and an instance of a subgraph are called \"taken\"; rename one of them\n"
	    "app: \"a.b\" is not a valid name of an instance; write a letter, then letters, digits, _ or -, 63 in all at most\n"
	    "app: \"\" is not a valid name of an instance; write a letter, then letters, digits, _ or -, 63 in all at most\n"
	    "app: frag_make_subgraph_of: the type has no name or no compose\n"
	    "app.n: no subgraphs are registered here; make it of its table\n"
	    "app: instances of subgraphs are more than 16 deep: e > e > e > e > e > e > e > e > e > e > e > e > e > e > e > e > e; nest them less\n"
	    "app.f: subgraph \"failing\" returned -5 (Input/output error)\n"
	    "app.s: subgraph \"strange\" returned 1; return 0 or a negative errno\n"
	    "app: two instances of subgraphs are called \"y\"; rename one of them\n"
	    "app: an operator and an instance of a subgraph are called \"y\"; rename one of them\n"
	    "app: operator \"x_a\" is made twice\n");
}

static int compose_asking(struct frag_subgraph *asking, struct frag_fragment *fragment)
{
	const char *count = frag_subgraph_argument(asking, "count");

	cr_expect_str_eq(count != NULL ? count : "none", "7");
	cr_expect_null(frag_subgraph_argument(asking, "other"));
	return 0;
}
static const struct frag_subgraph_type asking_type = {"asking", NULL, compose_asking};

Test(subgraph_made, parameters_that_it_never_asks_for_are_refused)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment = begin(&diag);

	cr_expect_not_null(frag_make_subgraph_of(fragment, "a", &asking_type,
						 FRAG_ARGS({"count", "1"}, {"count", "7"})));
	cr_expect_null(frag_make_subgraph_of(fragment, "b", &asking_type,
					     FRAG_ARGS({"count", "7"}, {"coutn", "8"})));
	end(fragment, &diag, NULL, "app.b: unknown parameter \"coutn\"; did you mean \"count\"?\n");
}
