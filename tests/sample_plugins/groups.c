// SPDX-License-Identifier: Apache-2.0
/* Subgraphs, and a composer that makes some. */
#include <frag/frag.h>

/* Two receivers behind one input. */
static int compose_ears(struct frag_subgraph *ears, struct frag_fragment *fragment)
{
	struct frag_op *left = frag_make_operator(fragment, "left", "ping_rx", FRAG_NO_ARGS);
	struct frag_op *right = frag_make_operator(fragment, "right", "ping_rx", FRAG_NO_ARGS);

	frag_add_operator(fragment, left);
	frag_add_operator(fragment, right);
	frag_add_interface_port(ears, left, "in", NULL);
	return frag_add_interface_port(ears, right, "in", NULL);
}

/* A forward, with its own pool, before ears; what it has received goes to all three. */
static int compose_head(struct frag_subgraph *head, struct frag_fragment *fragment)
{
	struct frag_subgraph *ears = frag_make_subgraph(fragment, "ears", "ears", FRAG_NO_ARGS);
	struct frag_op *neck = frag_make_operator(fragment, "neck", "forward", FRAG_NO_ARGS);

	frag_make_resource(fragment, "pool", "unbounded_allocator", FRAG_NO_ARGS);
	frag_add_operator(fragment, neck);
	frag_add_interface_port_of(head, ears, "in", "sound");
	frag_add_input_interface_port(head, neck, "in", "sound");
	return frag_add_output_interface_port(head, neck, NULL, frag_subgraph_argument(head, "as"));
}

static int compose_heads(struct frag_fragment *fragment)
{
	struct frag_op *tx = frag_make_operator(fragment, "tx", "ping_tx", FRAG_NO_ARGS);

	frag_make_condition(tx, NULL, "count", FRAG_ARGS({"count", "4"}));
	frag_make_subgraph(fragment, "one", "head", FRAG_ARGS({"as", "answer"}));
	frag_make_subgraph(fragment, "two", "head", FRAG_NO_ARGS);
	frag_add_named_flow(fragment, "tx", "out", "one", "sound", 0, FRAG_POLICY_DEFAULT);
	return frag_add_named_flow(fragment, "one", "answer", "two", NULL, 5, FRAG_POLICY_DEFAULT);
}

static const struct frag_subgraph_type subgraphs[] = {
	{"ears", "two receivers", compose_ears},
	{"head", "ears behind a neck", compose_head},
};
static const struct frag_composer composers[] = {{"heads", "two heads in a row", compose_heads}};

FRAG_PLUGIN(.name = "groups", .version = "1.0.0", FRAG_SUBGRAPHS(subgraphs),
	    FRAG_COMPOSERS(composers));
