// SPDX-License-Identifier: Apache-2.0
#include <graph/compose.h>
#include <run/state.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* Instances that a composer makes of subgraphs that the graph declares. */

static void (*in_compose)(struct frag_fragment *fragment);

static int compose(struct frag_fragment *fragment)
{
	in_compose(fragment);
	return 0;
}

/* A subgraph of a library, whose operators come from one of the graph. */
static int compose_outer(struct frag_subgraph *outer, struct frag_fragment *fragment)
{
	struct frag_subgraph *inner =
		frag_make_subgraph(fragment, "in", "numbers", FRAG_ARGS({"count", "4"}));

	return frag_add_interface_port_of(outer, inner, "data", NULL);
}
static const struct frag_subgraph_type subgraphs[] = {{"outer", NULL, compose_outer}};

static const struct frag_op_type *const ops[] = {&source_type, &sink_type};
static const struct frag_composer composers[] = {{"c", NULL, compose}};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "making", FRAG_OPS(ops),
					  FRAG_SUBGRAPHS(subgraphs), FRAG_COMPOSERS(composers)};

#define GRAPH                                                                                                        \
	"frag: 1\n"                                                                                                  \
	"application: app\n"                                                                                         \
	"config: {two: {count: 2}}\n"                                                                                \
	"subgraphs:\n"                                                                                               \
	"  numbers:\n"                                                                                               \
	"    parameters: {count: {default: 3}, pool: {default: ~}}\n"                                                \
	"    resources: {own: {type: unbounded_allocator}}\n"                                                        \
	"    operators: {tx: {type: source, parameters: {count: \"${count}\"}}}\n"                                   \
	"    ports: {data: tx.out}\n"                                                                                \
	"  pair:\n"                                                                                                  \
	"    operators: {n: {subgraph: numbers, parameters: {count: 5}}, rx: {type: sink, parameters: {slot: 7}}}\n" \
	"    flows: [n.data -> rx.in]\n"                                                                             \
	"    ports: {data: n.data, more: {in: rx.in}}\n"                                                             \
	"compose: c\n"

/* Composes it, and compares operators, resources and flows, or all errors. */
static void composed(const char *yaml, void (*fn)(struct frag_fragment *fragment),
		     const char *lines, const char *errors)
{
	char *text = NULL, from[200], to[200];
	struct rig rig;
	size_t size;
	FILE *out;

	in_compose = fn;
	cr_expect_eq(rig_prepare(&rig, &plugin, yaml), errors[0] != '\0' ? -EINVAL : 0);
	expect_errors(&rig.diag, errors);
	if (errors[0] == '\0') {
		const struct frag_fragment *fragment = rig.run->fragments[0].fragment;

		out = open_memstream(&text, &size);
		for (uint32_t i = 0; i < fragment->op_count; i++)
			fprintf(out, "%s%s", i > 0 ? " " : "", fragment->ops[i]->name);
		for (uint32_t i = 0; i < fragment->resource_count; i++)
			fprintf(out, " $%s", fragment->resources[i]->name);
		fputc('\n', out);
		for (size_t i = 0; i < fragment->flow_count; i++)
			fprintf(out, "%s -> %s\n",
				fragi_flow_from(&fragment->info, &fragment->flows[i], from,
						sizeof(from)),
				fragi_flow_to(&fragment->info, &fragment->flows[i], to,
					      sizeof(to)));
		fclose(out);
		cr_expect_str_eq(text, lines, "got:\n%swanted:\n%s", text, lines);
		free(text);
	}
	rig_end(&rig);
}

static void make_two(struct frag_fragment *fragment)
{
	struct frag_subgraph *x =
		frag_make_subgraph(fragment, "x", "numbers", FRAG_ARGS({"from_config", "two"}));
	struct frag_subgraph *y = frag_make_subgraph(fragment, "y", "pair", NULL);

	frag_add_operator(fragment, frag_make_operator(fragment, "z", "sink", NULL));
	frag_add_named_flow(fragment, "x", "data", "y", "more", 0, FRAG_POLICY_DEFAULT);
	frag_add_named_flow(fragment, "y", "data", "z", "in", 0, FRAG_POLICY_DEFAULT);
	cr_expect_str_eq(frag_op_name(frag_subgraph_operator(x, 0)), "x_tx");
	cr_expect_str_eq(frag_op_name(frag_subgraph_operator(y, 1)), "y_rx");
	cr_expect_null(frag_subgraph_operator(y, 2));
}

Test(subgraph_declared, becomes_flat_operators_resources_and_flows)
{
	composed(GRAPH, make_two,
		 "x_tx y_n_tx y_rx z $x_own $y_n_own\n"
		 "app.y_n_tx.out -> app.y_rx.in\n"
		 "app.x_tx.out -> app.y_rx.in\n"
		 "app.y_n_tx.out -> app.z.in\n",
		 "");
}

static void make_in_library(struct frag_fragment *fragment)
{
	frag_make_subgraph(fragment, "o", "outer", NULL);
	frag_add_operator(fragment, frag_make_operator(fragment, "z", "sink", NULL));
}

Test(subgraph_declared, the_graph_connects_and_sets_what_a_composer_has_made)
{
	composed(GRAPH "operators: {o_in_tx: {parameters: {burst: 2}}}\n"
		       "flows: [{from: o.data, to: z.in, capacity: 2}]\n",
		 make_in_library,
		 "o_in_tx z $o_in_own\n"
		 "app.o_in_tx.out -> app.z.in\n",
		 "");
}

static void make_numbers(struct frag_fragment *fragment)
{
	frag_make_subgraph(fragment, "x", "numbers", FRAG_ARGS({"count", "1"}, {"count", "6"}));
	frag_add_operator(fragment,
			  frag_make_operator(fragment, "z", "sink", FRAG_ARGS({"slot", "3"})));
	frag_add_named_flow(fragment, "x", NULL, "z", NULL, 0, FRAG_POLICY_DEFAULT);
}

RIG_ONE_TEST(subgraph_declared, runs_with_the_parameters_that_it_was_given)
{
	in_compose = make_numbers;
	rig_run(rig, &plugin, GRAPH);
	cr_expect_eq(noted(3), 6, "the later one wins");
	rig_end(rig);
	notes_clear();
	rig_run(rig, &plugin, GRAPH "operators: {x_tx: {parameters: {count: 9}}}\n");
	cr_expect_eq(noted(3), 9, "the graph wins over what it declares");
}

RIG_ONE_TEST(subgraph_declared, settings_of_the_graph_are_added_to_what_it_declares)
{
	const struct source *source;

	in_compose = make_numbers;
	rig_prepare_good(rig, &plugin, GRAPH "operators: {x_tx: {parameters: {burst: 2}}}\n");
	source = rig->run->fragments[0].fragment->ops[0]->state;
	cr_expect_eq(source->burst, 2);
	cr_expect_eq(source->count, 6);
}

static void make_wrong(struct frag_fragment *fragment)
{
	cr_expect_null(frag_make_subgraph(fragment, "x", "numbers", FRAG_ARGS({"cuont", "1"})));
	cr_expect_null(frag_make_subgraph(fragment, "y", "nombers", NULL));
	cr_expect_not_null(frag_make_subgraph(fragment, "z", "numbers", FRAG_ARGS({"count", "b"})));
	cr_expect_null(frag_make_subgraph(fragment, "z", "pair", NULL));
	frag_add_operator(fragment, frag_make_operator(fragment, "z_rx", "sink", NULL));
}

Test(subgraph_declared, what_is_wrong_is_reported)
{
	composed(
		GRAPH, make_wrong, "",
		"app.x: unknown parameter \"cuont\"; did you mean \"count\"?\n"
		"app.y: unknown subgraph \"nombers\"; did you mean \"numbers\"?\n"
		"app: two instances of subgraphs are called \"z\"; rename one of them\n"
		"app.z_tx: parameter \"count\": \"b\" is not a valid integer; write a whole number such as 3\n"
		"app.z_rx: input \"in\" is not connected; add a flow that ends there\n");
}
