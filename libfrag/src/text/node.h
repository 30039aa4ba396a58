/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_NODE_H
#define FRAGI_TEXT_NODE_H

#include <stdbool.h>

#include <base/arena.h>
#include <base/diag.h>

/*
 * A YAML text as a tree, built from libyaml's events. Bounded: FRAGI_YAML_TEXT_MAX bytes of text,
 * FRAGI_YAML_DEPTH_MAX levels, FRAGI_YAML_NODES_MAX nodes with aliases expanded. Merge keys (<<),
 * type tags and several documents are refused; a key given twice in one map is an error. Every node
 * knows its place.
 */
#define FRAGI_YAML_TEXT_MAX (3u << 20)
#define FRAGI_YAML_DEPTH_MAX 64
#define FRAGI_YAML_NODES_MAX 1000000

enum fragi_node_kind {
	FRAGI_NODE_NULL,   /* empty, ~ or null, not quoted */
	FRAGI_NODE_SCALAR, /* text; its reader decides what it means */
	FRAGI_NODE_LIST,
	FRAGI_NODE_MAP,
};

struct fragi_origin;         /* builder.h */
struct fragi_subgraph_inner; /* subgraph.h */

struct fragi_node {
	enum fragi_node_kind kind;
	bool quoted;
	bool replaced; /* a ${name} in the text was replaced by its value */
	/*
	 * An error about the value was reported; it counts as given, and nothing more is reported
	 * about it.
	 */
	bool is_reported;
	/* MAP: an error was reported about one of its names; what seems missing may be that one */
	bool lost_a_name;
	const char *file;                /* name of its text; shared, lives as long as the arena */
	int line, column;                /* 1-based */
	const char *text;                /* SCALAR */
	size_t count;                    /* LIST, MAP */
	const struct fragi_node *key;    /* of this entry, when it is in a MAP */
	struct fragi_node *first, *last; /* children, in the order of the file */
	struct fragi_node *next;         /* sibling */
	const struct fragi_origin *origin; /* what an instance of a subgraph has; else NULL */
	/* the end of a flow that a subgraph names, in this node's place; else NULL */
	const struct fragi_subgraph_inner *inner;
};

/*
 * Parses one document. The tree lives in arena. Errors go to diag with file:line:column. Returns 0;
 * -EINVAL when diag got errors (if all of them are keys given twice, the tree is complete and
 * *out_root is set, so that checking can go on); -ENOMEM.
 */
FRAGI_API int fragi_yaml_parse(struct fragi_arena *arena, const char *file, const char *text,
			       size_t length, struct fragi_diag *diag,
			       struct fragi_node **out_root);
/* Returns the value of a map's key; NULL when there is none, or node is NULL or not a map. */
FRAGI_API struct fragi_node *fragi_node_get(const struct fragi_node *map, const char *key);
/* Returns the node at a dotted path ("a.b.c") below node; NULL when there is none. */
FRAGI_API struct fragi_node *fragi_node_at(const struct fragi_node *node, const char *path);

/*
 * Writes the path of the first node below root that stands at this place, or whose key does, into
 * out: "fragments.a.operators.tx.count", "flows[2]". Returns whether there is one; a path that does
 * not fit counts as none.
 */
FRAGI_API bool fragi_node_path(const struct fragi_node *root, int line, int column, char *out,
			       size_t size);

/*
 * Adds an error about the node at place (NULL: none) to diag: "SUBJECT: SENTENCE", where subject is
 * a path ("fragment1.detect"; NULL: none). Characters that are not printable become "?", since much
 * of a sentence is quoted from files. Returns -EINVAL.
 */
FRAGI_API int fragi_node_error(struct fragi_diag *diag, const struct fragi_node *place,
			       const char *subject, const char *format, ...) FRAG_PRINTF(4, 5);

#endif
