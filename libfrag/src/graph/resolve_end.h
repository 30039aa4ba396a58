/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_RESOLVE_END_H
#define FRAGI_GRAPH_RESOLVE_END_H

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include <base/strmap.h>
#include <graph/resolve.h>
#include <text/builder.h>

/* What resolve.c and resolve_end.c, which finds the ends of flows, share. */
#define FRAGI_END_SIZE (3 * FRAG_NAME_MAX + 3)

struct fragi_end {
	uint32_t fragment, op, port;
};

enum fragi_found {
	FRAGI_FOUND_NOTHING, /* an error was reported */
	FRAGI_FOUND_END,
	/* an output where an input must stand, or the other way round */
	FRAGI_FOUND_OTHER_DIRECTION,
};

/* A resolution under way. */
struct fragi_resolving {
	const struct fragi_spec_flow *specs;
	size_t spec_count;
	/* next: a flow that was there, then one of specs, and an end of that one's list */
	size_t next_known, next_spec, next_to;
	size_t known_count;
	/* of the present one of specs: its operator, and its output unless that is for execution */
	struct fragi_end from;
	enum fragi_found from_found;
	bool from_is_op, from_looked;
	bool end_in_doubt; /* where it leads was not found: it may be an execution flow */
	const struct fragi_fragment_info *fragments;
	size_t fragment_count;
	int own_fragment;
	struct fragi_diag *diag;
	struct fragi_arena arena;      /* of the pairs' keys */
	struct fragi_strmap by_name;   /* fragments: index + 1 */
	struct fragi_strmap *ops;      /* per fragment, made when it is first named: index + 1 */
	struct fragi_strmap pairs;     /* both ends: index of the flow + 1 */
	struct fragi_flow_info *flows; /* with room for all that may be added */
	size_t count;
	int64_t items; /* items that this step may still handle */
	bool failed, no_memory;
};

#define fragi_resolving_error(resolving, place, ...)                                               \
	do {                                                                                       \
		fragi_node_error((resolving)->diag, place, NULL, __VA_ARGS__);                     \
		(resolving)->failed = true;                                                        \
	} while (0)

static inline const struct fragi_port_info *
fragi_end_port(const struct fragi_fragment_info *fragments, const struct fragi_end *end)
{
	assert(end->op < fragments[end->fragment].op_count &&
	       end->port < fragments[end->fragment].ops[end->op].port_count);
	return &fragments[end->fragment].ops[end->op].ports[end->port];
}

static inline void fragi_resolving_put(struct fragi_resolving *resolving, struct fragi_strmap *map,
				       const char *name, size_t index)
{
	if (name == NULL || fragi_strmap_put(map, name, (void *)(uintptr_t)(index + 1)) == -ENOMEM)
		resolving->no_memory = true;
}

/* Returns the index of a name; SIZE_MAX when it is not there. */
static inline size_t fragi_resolving_get(const struct fragi_strmap *map, const char *name)
{
	return (size_t)(uintptr_t)fragi_strmap_get(map, name) - 1;
}

/* "fragment1.tx.out" into out. Returns out. */
const char *fragi_end_text(const struct fragi_fragment_info *fragments, const struct fragi_end *end,
			   char *out, size_t size);
/* Finds the operator of an end. Like all below, it reports errors. */
bool fragi_end_find_op(struct fragi_resolving *resolving, const struct fragi_spec_end *from,
		       struct fragi_end *end);
/* Finds the input that a flow leads to. */
enum fragi_found fragi_end_find_to(struct fragi_resolving *resolving,
				   const struct fragi_spec_flow *spec,
				   const struct fragi_spec_end *to, struct fragi_end *end);
/*
 * Finds the output of a flow whose operator was found.
 * - to_execution: it leads to an execution port
 */
enum fragi_found fragi_end_find_from(struct fragi_resolving *resolving,
				     const struct fragi_spec_flow *spec, bool to_execution,
				     struct fragi_end *out);
/* An output where an input must stand, or the other way round. */
void fragi_end_refuse_direction(struct fragi_resolving *resolving,
				const struct fragi_spec_end *from, enum frag_dir dir,
				const struct fragi_end *end);
void fragi_end_refuse_reversed(struct fragi_resolving *resolving, const struct fragi_node *place,
			       const struct fragi_end *from, const struct fragi_end *to);
/* An execution port at one end only. */
void fragi_end_refuse_mixed(struct fragi_resolving *resolving, const struct fragi_node *place,
			    const struct fragi_end *from, const struct fragi_end *to);

#endif
