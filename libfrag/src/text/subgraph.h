/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_SUBGRAPH_H
#define FRAGI_TEXT_SUBGRAPH_H

#include <text/builder.h>

/*
 * Subgraphs that the graph declares (`subgraphs:`) and their instances (`cam1: {subgraph: NAME}`
 * among the operators). An instance is replaced in the tree, before anything else reads it, by
 * copies of the subgraph's operators with qualified names (cam1_OPERATOR), and the ends of flows
 * that name its interface ports by the inner ports that these stand for. So nobody else knows that
 * there were subgraphs, and each copy keeps the place where it was written.
 *
 * Instances of subgraphs that a plugin lists stay as they are: their host composes them.
 */
#define FRAGI_SUBGRAPH_DEPTH_MAX 16        /* instances within instances */
#define FRAGI_SUBGRAPH_OPERATORS_MAX 20000 /* made by instances, in an application */
#define FRAGI_SUBGRAPH_NODES_MAX 300000    /* copied for instances, in an application */

/* What an interface port stands for, or an end of a flow in a subgraph, as it is written. */
struct fragi_subgraph_inner {
	const char *op, *port;          /* port NULL: the operator's only one */
	const char *graph;              /* the subgraph */
	const char *name;               /* of the port; NULL: op is the end of a flow */
	const struct fragi_node *place; /* of the text */
	/* the nearest that states a direction: {in: ...}, or the end of a flow; NULL: none */
	const struct fragi_subgraph_inner *directed;
};
#define FRAGI_SUBGRAPH_INNER_SIZE 512
/* subgraph_flow.c: what an error calls it: "subgraphs.GRAPH: port "NAME": OP.PORT"; returns out */
const char *fragi_subgraph_inner_text(const struct fragi_subgraph_inner *inner, char *out,
				      size_t size);

enum fragi_subgraph_dir { FRAGI_SUBGRAPH_ANY, FRAGI_SUBGRAPH_IN, FRAGI_SUBGRAPH_OUT };

struct fragi_subgraph_port {
	const char *name;
	enum fragi_subgraph_dir dir; /* ANY: that of the inner port, which is not known here */
	struct fragi_subgraph_inner *inner;
	size_t inner_count;
	bool is_invalid; /* an error was reported about it */
	struct fragi_subgraph_port *next;
};

struct fragi_subgraph {
	const char *name;
	const struct fragi_node *place;
	/* NULL: none */
	struct fragi_node *operators, *resources, *services, *loggers, *flows, *parameters, *config;
	struct fragi_subgraph_port *first_port, *last_port;
	bool lost_ports;    /* an error was reported about ports; there may be more */
	bool is_refused;    /* it has no operators, or contains itself: there are no instances */
	bool is_of_library; /* it has a configuration only: a library lists the subgraph */
	enum { FRAGI_SUBGRAPH_NEW, FRAGI_SUBGRAPH_UNDER_WAY, FRAGI_SUBGRAPH_MEASURED } state;
	uint32_t depth;          /* 1: without instances */
	uint64_t operator_count; /* with those of its instances; ends at OPERATORS_MAX + 1 */
};

struct fragi_subgraph_instance {
	const char *name; /* qualified */
	const struct fragi_subgraph
		*graph; /* NULL: it was refused, or is for the host to compose */
};

/* subgraph_declare.c: reads `subgraphs:`. */
void fragi_subgraphs_declare(struct fragi_builder *builder, struct fragi_node *map);
/* Returns the subgraph; NULL when none is declared by that name. */
struct fragi_subgraph *fragi_subgraph_find(const struct fragi_builder *builder, const char *name);
/* Returns its interface port; NULL when there is none of that name. */
struct fragi_subgraph_port *fragi_subgraph_port(const struct fragi_builder *builder,
						const struct fragi_subgraph *graph,
						const char *name);
/*
 * Returns the execution port that it stands for, FRAG_INPUT_EXEC or FRAG_OUTPUT_EXEC; NULL when it
 * is a port for messages.
 */
const char *fragi_subgraph_execution(const struct fragi_builder *builder,
				     const struct fragi_subgraph *graph,
				     const struct fragi_subgraph_port *port);

/* subgraph.c: puts all instances into the tree. */
void fragi_subgraphs_expand(struct fragi_builder *builder);
/* "cam1" and "fwd" to "cam1_fwd"; a copy of name when prefix is NULL. NULL: out of memory. */
const char *fragi_subgraph_join(struct fragi_builder *builder, const char *prefix,
				const char *name);
/* Returns a node at the place of another one. NULL: out of memory. */
struct fragi_node *fragi_subgraph_node(struct fragi_builder *builder, enum fragi_node_kind kind,
				       const struct fragi_node *place, const char *key);
void fragi_subgraph_append(struct fragi_node *parent, struct fragi_node *child);
/* Counts what was made for instances. Returns whether it was still allowed; reports it once. */
bool fragi_subgraph_spend(struct fragi_builder *builder, const struct fragi_node *place);
/* Copies a node without what is below it. NULL: too many, or out of memory. */
struct fragi_node *fragi_subgraph_copy_alone(struct fragi_builder *builder,
					     const struct fragi_node *node);

/*
 * subgraph_merge.c: merges an override into what an instance has made: maps are merged, conditions
 * added, all else is replaced.
 */
void fragi_subgraph_merge(struct fragi_builder *builder, struct fragi_node *into,
			  struct fragi_node *over);

/*
 * subgraph_parameters.c: reads `parameters:` of a subgraph; puts arguments of the application in
 * place of ${name} in what it declares, but for names of its parameters.
 */
void fragi_subgraph_declare_parameters(struct fragi_builder *builder, struct fragi_subgraph *graph,
				       struct fragi_node *map);
void fragi_subgraph_replace(struct fragi_builder *builder, struct fragi_node *map);
/*
 * Returns the values of the parameters of an instance, a map; given: what it is given, NULL:
 * nothing; place: of the instance, for what is missing. graph->parameters is not NULL. NULL: out of
 * memory.
 */
struct fragi_node *fragi_subgraph_values(struct fragi_builder *builder,
					 const struct fragi_subgraph *graph,
					 const struct fragi_node *given,
					 const struct fragi_node *place, const char *subject);
/* Returns a copy of a scalar that holds "${", with values in place. NULL: out of memory. */
struct fragi_node *fragi_subgraph_substitute(struct fragi_builder *builder,
					     const struct fragi_node *values,
					     const struct fragi_node *node);

/*
 * subgraph_flow.c: returns the flow with its ends put into qualified names and inner ports: the
 * node itself where nothing changes, else a new one. NULL: out of memory.
 * - fragment: whose flow it is; NULL: one between fragments
 * - prefix, graph: the instance whose subgraph declares the flow, and that; NULL: none
 */
struct fragi_node *fragi_subgraph_flow(struct fragi_builder *builder, struct fragi_node *node,
				       const char *fragment, const char *prefix, const char *graph);
/* Splits "a.x -> b.y" at its one arrow. Returns whether it has one. */
bool fragi_subgraph_split(struct fragi_builder *builder, const char *text, const char **out_from,
			  const char **out_to);

#endif
