/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_SUBGRAPH_H
#define FRAG_SUBGRAPH_H

#include <frag/compose.h>

FRAG_BEGIN_DECLS

/*
 * Subgraphs: a group of operators and flows under one name, made as often as it is wanted. Each
 * instance is put flat into its fragment when this is composed: operator "fwd" of instance "cam1"
 * is operator "cam1_fwd", and a message passes through no more than if it had been written so.
 * Interface ports are names for ports of inner operators: flows name them as ports of the instance.
 *
 * All functions below are called inside a composer, or inside the compose function of a
 * subgraph, on its thread. They copy names and texts. A failure is worded in the fragment, as for
 * those of compose.h. None of them blocks or is RT-safe.
 */
struct frag_subgraph;

/* A kind of subgraph, as a plugin lists it (FRAG_SUBGRAPHS). */
struct frag_subgraph_type {
	/* in graphs: `cam1: {subgraph: NAME}` */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/*
	 * Composes one instance. While it runs, frag_make_operator, frag_make_resource and
	 * frag_make_subgraph put the instance's name before the names that they are given, and
	 * frag_add_named_flow does so too; "$pool" in arguments means a resource of this instance,
	 * if it has made one of that name, else one of the fragment.
	 * Returns 0 or a negative errno.
	 */
	int (*compose)(struct frag_subgraph *subgraph, struct frag_fragment *fragment);
};

/*
 * Makes an instance of a subgraph and composes it. Inside another subgraph it is nested in that
 * one, 16 deep at most.
 * - name: unique in the fragment, also among the operators
 * - type: name of a subgraph that the graph declares (`subgraphs:`), else of one that a loaded
 *   plugin lists
 * - args: its parameters: those that the graph declares for it, else for frag_subgraph_argument;
 *   NULL is accepted
 * Returns the instance, which belongs to the fragment; NULL on failure.
 */
FRAG_API struct frag_subgraph *frag_make_subgraph(struct frag_fragment *fragment, const char *name,
						  const char *type, const struct frag_arg *args);
/* Makes a subgraph as frag_make_subgraph does, from a table that need not be registered. */
FRAG_API struct frag_subgraph *frag_make_subgraph_of(struct frag_fragment *fragment,
						     const char *name,
						     const struct frag_subgraph_type *type,
						     const struct frag_arg *args);

/*
 * Gives the instance an interface port: a name for a port of one of its operators, whose direction,
 * type, queue and conditions it has. A name given to several inputs, 16 at most, is an input whose
 * messages go to all of them; a name stands for one output at most, and never for inputs and
 * outputs.
 * - op: an operator that the subgraph has made
 * - port: of op; NULL where op has exactly one port, or exactly one of the direction;
 *   FRAG_INPUT_EXEC or FRAG_OUTPUT_EXEC (frag/flow.h): for execution flows
 * - name: of the interface port; NULL: that of port
 * Returns 0; -EINVAL: subgraph or op is NULL or of another fragment; -EBUSY: not inside its
 * compose; -ENOMEM. The port is looked up when the fragment is complete.
 */
FRAG_API int frag_add_interface_port(struct frag_subgraph *subgraph, struct frag_op *op,
				     const char *port, const char *name);
/* Add an interface port likewise; it is an error if the operator's port has another direction. */
FRAG_API int frag_add_input_interface_port(struct frag_subgraph *subgraph, struct frag_op *op,
					   const char *port, const char *name);
FRAG_API int frag_add_output_interface_port(struct frag_subgraph *subgraph, struct frag_op *op,
					    const char *port, const char *name);
/*
 * Makes an interface port of a nested instance one of this instance as well.
 * - inner: an instance that the subgraph has made
 * - port: one of its interface ports
 * - name: NULL: that of port
 * Returns as frag_add_interface_port.
 */
FRAG_API int frag_add_interface_port_of(struct frag_subgraph *subgraph,
					const struct frag_subgraph *inner, const char *port,
					const char *name);

/*
 * Connects an output to an input as frag_add_flow_with does, by names: each end is an operator or
 * an instance made before, with one of its ports or interface ports.
 * - out_port, in_port: NULL where there is exactly one output, or input
 * Returns 0; -EINVAL: from or to names neither, capacity is too large, or policy is none; -EBUSY:
 * not inside a composer; -ENOMEM.
 */
FRAG_API int frag_add_named_flow(struct frag_fragment *fragment, const char *from,
				 const char *out_port, const char *to, const char *in_port,
				 uint32_t capacity, enum frag_policy policy);

/*
 * Returns the text of a parameter that the instance was given, borrowed as long as the fragment
 * lives; NULL when it was not. A parameter that compose never asks for is an error of whoever gives
 * it.
 */
FRAG_API const char *frag_subgraph_argument(struct frag_subgraph *subgraph, const char *name);
/* Returns the instance's name as the fragment knows it: "cam1". Borrowed. RT-safe: yes. */
FRAG_API const char *frag_subgraph_name(const struct frag_subgraph *subgraph);
/*
 * Returns the i-th operator of the instance and of those nested in it, in the order in which they
 * were made; NULL when there are no more. For i = 0, 1, ...
 */
FRAG_API struct frag_op *frag_subgraph_operator(const struct frag_subgraph *subgraph, uint32_t i);

FRAG_END_DECLS

#endif
