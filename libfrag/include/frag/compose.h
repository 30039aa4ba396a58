/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_COMPOSE_H
#define FRAG_COMPOSE_H

#include <frag/flow.h>
#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Composing a fragment in C: the same graph that a YAML file declares, made by a composer that a
 * plugin lists and a graph names (`compose: endoscopy_view`). All functions below are called inside
 * the composer, on its thread. They copy names and texts. A failure is worded in the fragment, so
 * that a composer passes a negative return on, and need not check a NULL before it passes it to the
 * next call. None of them blocks or is RT-safe.
 */

/*
 * One argument of an operator, resource or condition: the name of a parameter and the text that a
 * graph would write.
 */
struct frag_arg {
	/* of the parameter; NULL ends a list */
	const char *name;
	/* its value, as a graph would write it */
	const char *text;
};

/*
 * A list of arguments: FRAG_ARGS({"count", "10"}, {"path", "a.mp4"}). FRAG_NO_ARGS is the empty
 * list. A list ends with an entry whose name is NULL. When a name appears twice the later one wins.
 * {"from_config", "a.b"} stands for what the configuration has there (config.h).
 */
#define FRAG_ARGS(...) ((const struct frag_arg[]){__VA_ARGS__, {NULL, NULL}})
#define FRAG_NO_ARGS NULL
/*
 * Returns a list of arguments as YAML, for people; NULL when memory is short. The caller calls
 * free() on it. Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API char *frag_args_describe(const struct frag_arg *args);

/*
 * Makes an operator of a registered type. It becomes part of the graph when it is added, by
 * frag_add_operator or frag_add_flow.
 * - name: unique in the fragment
 * - type: name of a type that is built in or that a loaded plugin lists
 * - args: its parameters; NULL is accepted
 * Returns the operator, which belongs to the fragment; NULL on failure.
 */
FRAG_API struct frag_op *frag_make_operator(struct frag_fragment *fragment, const char *name,
					    const char *type, const struct frag_arg *args);
/*
 * Makes an operator as frag_make_operator does, from a table that need not be registered. The
 * table's callbacks must stay loaded as long as the fragment lives.
 */
FRAG_API struct frag_op *frag_make_operator_of(struct frag_fragment *fragment, const char *name,
					       const struct frag_op_type *type,
					       const struct frag_arg *args);
/*
 * Adds an operator to the graph, without flows. Adding it again does nothing.
 * Returns 0; -EINVAL: op is NULL or of another fragment; -EBUSY: not inside a composer; -ENOMEM.
 */
FRAG_API int frag_add_operator(struct frag_fragment *fragment, struct frag_op *op);
/*
 * Connects an output to an input and adds both operators. Connecting the same two ports again in
 * the same way does nothing; in another way it is an error. The ports are looked up when the
 * composer has returned.
 * - out_port, in_port: names; NULL where the operator has exactly one output, or input. Both NULL,
 *   and `to` has no inputs: an execution flow (flow.h)
 * - capacity: messages that the flow's queue holds, 65536 at most; 0: as the input declares
 * - policy: of the full queue; FRAG_POLICY_DEFAULT: as the input declares
 * Returns 0; -EINVAL: from or to is NULL, capacity is too large, or policy is none; -EBUSY: not
 * inside a composer; -ENOMEM.
 */
FRAG_API int frag_add_flow(struct frag_fragment *fragment, struct frag_op *from,
			   const char *out_port, struct frag_op *to, const char *in_port);
FRAG_API int frag_add_flow_with(struct frag_fragment *fragment, struct frag_op *from,
				const char *out_port, struct frag_op *to, const char *in_port,
				uint32_t capacity, enum frag_policy policy);

/*
 * Returns the fragment's start operator, `<|start|>`, which it adds. It ticks once, at the begin,
 * and has no ports of its own. The operators that execution flows lead to from it follow. Each call
 * returns the same one; NULL on failure.
 */
FRAG_API struct frag_op *frag_start_op(struct frag_fragment *fragment);

/*
 * Sets what happens when messages that the operator receives in one tick carry the same key of
 * metadata. A graph's metadata_policy wins over it.
 * Returns 0; -EINVAL: op is NULL or policy is none; -EBUSY: not inside a composer.
 */
FRAG_API int frag_set_metadata_policy(struct frag_op *op, enum frag_metadata_policy policy);
/*
 * Turns the metadata of an operator on (1, the default) or off (0): then nothing is merged at
 * receive and nothing attached at emit. Returns as above, without the policy.
 */
FRAG_API int frag_enable_metadata(struct frag_op *op, int enable);
/*
 * Sets the metadata policy, or whether metadata is enabled, for all operators of the fragment that
 * have no setting of their own. A setting of the graph wins over one of a composer on the same
 * level: an operator, a fragment. The inner level wins over the outer one: an operator, its
 * fragment, the application.
 */
FRAG_API int frag_fragment_set_metadata_policy(struct frag_fragment *fragment,
					       enum frag_metadata_policy policy);
FRAG_API int frag_fragment_enable_metadata(struct frag_fragment *fragment, int enable);

/*
 * Makes a resource (resource.h) and calls its setup; parameters of operators, conditions and later
 * resources name it as $name.
 * - name: unique in the fragment
 * - type: name of a type that is built in or that a loaded plugin lists
 * - args: its parameters; NULL is accepted
 * Returns the resource, which belongs to the fragment; NULL on failure.
 */
FRAG_API struct frag_resource *frag_make_resource(struct frag_fragment *fragment, const char *name,
						  const char *type, const struct frag_arg *args);
/*
 * Makes a resource as frag_make_resource does, from a table that need not be registered. The
 * table's callbacks must stay loaded as long as the resource lives.
 */
FRAG_API struct frag_resource *frag_make_resource_of(struct frag_fragment *fragment,
						     const char *name,
						     const struct frag_resource_type *type,
						     const struct frag_arg *args);
/*
 * Gives an operator a resource by position: the first call's is frag_op_resource_at(op, 0). Those
 * that a graph lists for the operator follow.
 * Returns 0; -EINVAL: op or resource is NULL, or they are of different fragments; -EBUSY: not
 * inside a composer; -ENOMEM.
 */
FRAG_API int frag_add_resource(struct frag_op *op, struct frag_resource *resource);
/*
 * Adds a condition to an operator, in a composer or in the operator's own setup. Its type is built
 * in or listed by a loaded plugin (condition.h).
 * - name: unique in the operator; NULL: the name of the type
 * - args: its parameters; NULL is accepted
 * Returns the condition, which belongs to the operator; NULL on failure.
 */
FRAG_API struct frag_condition *frag_make_condition(struct frag_op *op, const char *name,
						    const char *type, const struct frag_arg *args);

/*
 * Combines the conditions of several ports of an operator: it is ticked when those of one of them
 * are met. This adds a condition of type `or`. In a composer or in the operator's own setup.
 * - ports, count: names of ports, each with a condition of its own or its default one
 * Returns 0; -EINVAL: op is NULL, or a name is none; -EBUSY: neither in a composer nor in setup;
 * -ENOMEM. What is wrong about a port is reported when the composer has returned.
 * Source: Holoscan SDK, OperatorSpec::or_combine_port_conditions.
 */
FRAG_API int frag_or_combine_port_conditions(struct frag_op *op, const char *const *ports,
					     size_t count);

/*
 * Chooses the clock of the fragment (clock.h), as `clock` does in the graph, whose own choice, for
 * the fragment or at the top, wins over it.
 * - type: realtime, manual or synthetic
 * - args: initial_time_offset, initial_time_scale and use_time_since_epoch of realtime,
 *   initial_timestamp of the others; NULL is accepted
 * Returns 0; -EINVAL: there is no such type or argument, a value is wrong or out of range, or a
 * composer has chosen before; -EBUSY: not inside a composer; -ENOMEM.
 * Source: Holoscan SDK, the argument `clock` of schedulers.
 */
FRAG_API int frag_fragment_set_clock(struct frag_fragment *fragment, const char *type,
				     const struct frag_arg *args);
/*
 * Sets one clock that all fragments of the application share, except those that have a clock of
 * their own; parameters as of frag_fragment_set_clock. `clock` at the top of the graph wins over
 * it. Composers of several fragments may choose the same clock; different choices are an error,
 * found when all fragments are composed. A process knows the choices of its own fragments only: if
 * the application may run in several processes, let the composer of each fragment choose, or write
 * the clock into the graph.
 */
FRAG_API int frag_application_set_clock(struct frag_fragment *fragment, const char *type,
					const struct frag_arg *args);

/*
 * Words a failure of the composer itself: `return frag_fragment_fail(f, -EINVAL, "...")`.
 * - code: negative errno
 * - format: printf format of the sentence
 * Returns code.
 */
FRAG_API int frag_fragment_fail(struct frag_fragment *fragment, int code, const char *format, ...)
	FRAG_PRINTF(3, 4);
/*
 * Returns the fragment's name, borrowed as long as the fragment lives. Thread: any. RT-safe: yes.
 */
FRAG_API const char *frag_fragment_name(const struct frag_fragment *fragment);
/*
 * Returns the value of an argument of the application, borrowed as long as the fragment lives; NULL
 * when none is declared by that name.
 */
FRAG_API const char *frag_fragment_argument(const struct frag_fragment *fragment, const char *name);
/*
 * Returns the text of a scalar in the graph's `config:`, borrowed as long as the fragment lives;
 * NULL when there is none.
 * - path: keys, separated by dots: "detection.threshold"
 */
FRAG_API const char *frag_fragment_config(const struct frag_fragment *fragment, const char *path);

/* A composer, as a plugin lists it. */
struct frag_composer {
	/* in graphs */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/* Composes the fragment. Returns 0 or a negative errno. */
	int (*compose)(struct frag_fragment *fragment);
};

FRAG_END_DECLS

#endif
