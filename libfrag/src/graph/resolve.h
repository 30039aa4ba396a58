/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_RESOLVE_H
#define FRAGI_GRAPH_RESOLVE_H

#include <frag/operator.h>
#include <text/spec.h>

/*
 * Flows between ports: completes omitted ports, checks that both ends exist, point the right way,
 * agree on the type and on layout and unit of tensors and, between processes, have a codec. One
 * code for the flows inside a fragment (in its host) and for those between fragments (in the
 * driver, which knows only these plain tables that hosts reported). A graph with errors has tables
 * with gaps: nothing is said of a flow's end that may name what is missing there, and its other
 * end is checked all the same.
 */
struct fragi_port_info {
	const char *name;
	enum frag_dir dir;
	const char *type; /* "message" for any */
	uint64_t type_id; /* 0 for "message" and "tensor" */
	bool has_codec;   /* values of the type can leave the process */
	uint32_t flags;   /* FRAG_PORT_* */
	uint32_t capacity;
	enum frag_policy policy;
	const char *tensors; /* of struct frag_port; NULL or "": not declared */
};

/* The port that is meant where none is named: the only one, or the only one not optional. */
struct fragi_only_port {
	uint32_t port, count, required;
};

/* Another port that could be meant; flags: FRAG_PORT_*, 0 where its direction is open. */
static inline void fragi_only_port_add(struct fragi_only_port *only, uint32_t port, uint32_t flags)
{
	const bool is_optional = (flags & FRAG_PORT_OPTIONAL) != 0;

	if (only->required == 0 || !is_optional)
		only->port = port;
	only->count++;
	only->required += !is_optional;
}

static inline bool fragi_only_port_is_known(const struct fragi_only_port *only)
{
	return only->count == 1 || only->required == 1;
}

struct fragi_op_info {
	const char *name;
	const char *type;
	struct fragi_port_info *ports;
	size_t port_count;
	bool has_gaps; /* it may have more ports than these */
	/* allocators whose memory its conditions wait for: "frames, masks"; NULL: none */
	const char *pools;
	/* its parameters, where it was composed; NULL: not known here */
	const struct frag_op_type *table;
};

#define FRAGI_INTERFACES_MAX 4096      /* of a fragment */
#define FRAGI_INTERFACE_INPUTS_MAX 16u /* that one input stands for */
/*
 * An interface port of a subgraph that the host composed, and one inner port that it stands for. An
 * input may have several rows.
 */
struct fragi_interface_info {
	const char *instance, *port;
	uint32_t op, op_port; /* indices into the fragment's tables */
};

struct fragi_fragment_info {
	const char *name;
	struct fragi_op_info *ops;
	size_t op_count;
	uint32_t host;      /* fragments with the same number share a process */
	const char *memory; /* hosts with the same text share memory; NULL: with nobody */
	bool has_gaps;      /* it may have more operators than these */
	struct fragi_interface_info *interfaces;
	size_t interface_count;
};

/* One flow from one port to one port. */
struct fragi_flow_info {
	uint32_t from_fragment, from_op, from_port; /* indices into the tables above */
	uint32_t to_fragment, to_op, to_port;
	uint32_t capacity;       /* decided: never 0 */
	enum frag_policy policy; /* decided: never DEFAULT */
	/* The order of the flows of a multi-receiver: inner ones first, then as in the graph. */
	uint32_t order;
	/*
	 * The flow leaves its process: over this transport, for this reason (a text for people).
	 * Also within one host if the graph asks for it. NULL: a pointer is passed.
	 */
	bool between_hosts;
	const char *transport, *transport_reason;
	bool encrypt;                   /* where it leaves its process */
	const struct fragi_node *place; /* NULL: composed in C */
};

/*
 * Resolves the flows that texts declare. own_fragment: index of the fragment whose inner flows
 * these are, or -1 for flows between fragments. Appends to *flows (from the heap, *count long;
 * unchanged on failure; free with fragi_free); the same pair again with the same attributes adds
 * nothing, with others is an error. Errors go to diag, naming the valid ports. Returns 0, -EINVAL
 * with errors in diag, -ENOMEM.
 */
FRAGI_API int fragi_flows_resolve(const struct fragi_spec_flow *specs, size_t spec_count,
				  int own_fragment, const struct fragi_fragment_info *fragments,
				  size_t fragment_count, struct fragi_diag *diag,
				  struct fragi_flow_info **flows, size_t *count);
/*
 * The same in steps, for a caller that must not be held up for long. What is passed to begin stays
 * in place until the end; begin returns NULL when memory is short. A step goes on until about
 * *items flows and operators have been handled, and takes what it has handled off *items: a
 * fragment's operators are handled at once, so *items may become negative. It returns -EAGAIN when
 * there is more to do, else as fragi_flows_resolve, -ENOMEM without a text in diag.
 */
FRAGI_API struct fragi_resolving *
fragi_resolving_begin(const struct fragi_spec_flow *specs, size_t spec_count, int own_fragment,
		      const struct fragi_fragment_info *fragments, size_t fragment_count,
		      const struct fragi_flow_info *flows, size_t count, struct fragi_diag *diag);
FRAGI_API int fragi_resolving_step(struct fragi_resolving *resolving, int64_t *items);
/* After the last step, which returned 0: replaces *flows, which it frees, by the result. */
FRAGI_API void fragi_resolving_take(struct fragi_resolving *resolving,
				    struct fragi_flow_info **flows, size_t *count);
FRAGI_API void fragi_resolving_end(struct fragi_resolving *resolving); /* NULL is accepted */
/*
 * The messages that the queue of a flow holds: as the flow says, else as its input says, else the
 * default, which is another one between fragments.
 */
uint32_t fragi_flow_capacity(const struct fragi_spec_flow *spec,
			     const struct fragi_port_info *input, bool between_fragments);
/* "fragment1.tx.out" into out. Returns out. */
FRAGI_API const char *fragi_flow_from(const struct fragi_fragment_info *fragments,
				      const struct fragi_flow_info *flow, char *out, size_t size);
FRAGI_API const char *fragi_flow_to(const struct fragi_fragment_info *fragments,
				    const struct fragi_flow_info *flow, char *out, size_t size);

#endif
