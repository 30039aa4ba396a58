/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_SUBGRAPH_H
#define FRAGI_GRAPH_SUBGRAPH_H

#include <graph/compose.h>

#define FRAGI_SUBGRAPH_NESTING_MAX 16

/* An instance while its fragment is composed. */
struct frag_subgraph {
	struct frag_fragment *fragment;
	const char *name;                /* qualified: "cam1" */
	const char *subject;             /* "fragment1.cam1" */
	const char *outer_scope, *scope; /* paths as in text/spec.h; outer NULL: none */
	struct frag_subgraph *outer;
	uint32_t depth;
	const struct frag_subgraph_type *type; /* borrowed while it is composed */
	const struct fragi_spec_setting *settings;
	size_t setting_count;
	bool *is_asked; /* of each setting */
	const char *asked[32];
	size_t asked_count;
	const struct fragi_node *config; /* its own; NULL: none */
	uint32_t first_op, op_end;       /* among fragment->made */
	const struct fragi_node *place;
};

/* subgraph_declared.c: composes an instance of a subgraph that the graph declares. */
int fragi_subgraph_make_declared(struct frag_subgraph *subgraph);

#endif
