/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_COMPOSE_H
#define FRAGI_GRAPH_COMPOSE_H

#include <base/strmap.h>
#include <cond/condition.h>
#include <graph/op.h>
#include <text/holoscan.h>

/*
 * The state that the files of the composer share. What a composer makes is only recorded until the
 * fragment is complete, because a graph may set parameters of operators that C composed: at the end
 * the parameters of each operator are filled in and its setup is called, once. Errors are
 * collected. What could not be made is remembered, so that references to it are not reported as
 * well.
 */
struct fragi_made_condition {
	const struct fragi_spec_setting *settings;
	size_t count;
	const struct fragi_node *place;
};

struct fragi_made {
	struct fragi_spec_setting *args; /* given in C */
	size_t arg_count;
	const struct fragi_spec_operator *own; /* from the graph; NULL: none */
	const struct fragi_node *place;
	struct fragi_made_condition *conditions; /* parallel to op->conditions */
	uint32_t condition_capacity, made_condition_capacity, port_capacity;
	uint32_t filled_conditions; /* whose parameters are in place */
	int metadata;               /* 0 off, 1 on, -1 not given in C */
	bool failed;                /* its parameters or its setup */
	/* Execution flows (execution.c): an end that needs the port; one that may. */
	bool needs_exec_in, may_exec_in, needs_exec_out;
	uint32_t resource_capacity;
	/* of frag_set_input_timing and frag_align_inputs */
	struct fragi_spec_port *timings;
	uint32_t timing_count, timing_capacity;
	struct fragi_spec_align align;
	bool bad_resource; /* a parameter names a resource that could not be made */
};

/* One interface port as it was added; its port is looked up when the fragment is complete. */
struct fragi_made_interface {
	const struct frag_subgraph *subgraph;
	const char *name;                  /* NULL: that of the inner port */
	struct frag_op *op;                /* NULL: it is one of inner */
	const struct frag_subgraph *inner; /* NULL: it is one of op */
	const char *port;                  /* of op or inner; NULL: left out */
	bool is_directed;                  /* dir was given */
	enum frag_dir dir;
	const struct fragi_node *place; /* in the graph; NULL: C adds it */
};

struct fragi_making {
	int code; /* the result of composing so far */
	bool sealed, no_library, no_composer;
	struct fragi_strmap ops;     /* name: struct frag_op */
	struct fragi_strmap bad_ops; /* names of operators that could not be made or completed */
	struct fragi_strmap bad_resources; /* the same for resources */
	struct frag_subgraph *subgraph;    /* that is being composed; NULL: none */
	const char *scope; /* path of the instance that has what is being made; NULL: none */
	struct fragi_strmap subgraphs; /* qualified name: struct frag_subgraph */
	struct fragi_made_interface *interfaces;
	uint32_t interface_count, interface_capacity;
	bool exports_execution; /* one of them is for execution */
	/* those of C, and once they are resolved those of the graph too */
	const struct fragi_spec_flow *flows;
	uint32_t flow_count, flow_capacity;
	uint32_t op_capacity, made_capacity, resource_capacity, pool_capacity, service_capacity;
	uint32_t logger_capacity, path_capacity;
	/* of the fragment, given in C */
	int metadata; /* 0 off, 1 on, -1 not given */
	enum frag_metadata_policy metadata_policy;
	struct fragi_arena arena; /* of what is not needed once the fragment is complete */
};

/*
 * Adds an error, "SUBJECT: SENTENCE"; subject NULL: the fragment's name. Returns code. Composing
 * returns the most severe one: -ENOMEM, then -ENOENT, then -EINVAL for all others.
 */
int fragi_making_fail(struct frag_fragment *fragment, int code, const struct fragi_node *place,
		      const char *subject, const char *format, ...) FRAG_PRINTF(5, 6);
/* The same for an error of another part: with its code and class, and `what` before its text. */
void fragi_making_fail_by(struct frag_fragment *fragment, const struct frag_err *cause,
			  const struct fragi_node *place, const char *subject, const char *what);
/* Records the code of an error that is in diag already. */
void fragi_making_note(struct frag_fragment *fragment, int code);
/* The error for a type that is none. names: those that are. */
void fragi_making_refuse_type(struct frag_fragment *fragment, const struct fragi_node *place,
			      const char *subject, enum fragi_holoscan_kind kind, const char *type,
			      const char *const *names, size_t count);
/*
 * Makes room in the fragment's arena for one more than `count` items; the old array stays valid.
 * NULL: out of memory (recorded).
 */
void *fragi_making_room(struct frag_fragment *fragment, void *items, uint32_t count,
			uint32_t *capacity, size_t size);
/* Records the name of an object that could not be made. */
void fragi_making_note_bad(struct frag_fragment *fragment, struct fragi_strmap *bad,
			   const char *name);

/*
 * op.c: makes an operator; its type by name, or by table when type_name is NULL. NULL on failure.
 */
struct frag_op *fragi_op_make(struct frag_fragment *fragment, const char *name,
			      const char *type_name, const struct frag_op_type *type,
			      const struct fragi_node *place);
int fragi_op_add(struct frag_op *op);
/* Appends a port with a name that operators cannot take. Returns its index or -ENOMEM. */
int fragi_op_append_port(struct frag_op *op, const char *name, enum frag_dir dir);
/* Fills in conditions and parameters, calls setup, completes the ports. Failures go to diag. */
void fragi_op_complete(struct frag_op *op);
/* How parameters of the operator and of its conditions find what they name as $name. */
void fragi_op_references(struct frag_op *op, struct fragi_param_context *context);
/* Adds the failure of a callback to diag; returns r. */
int fragi_op_callback_failed(struct frag_op *op, struct fragi_diag *diag,
			     enum fragi_call_kind callback, int r);

/* Returns whether a composer may make something now; reports an error otherwise. */
bool fragi_making_is_open(struct frag_fragment *fragment);
/* Copies a name, which may be NULL. Returns 0 or -ENOMEM. */
int fragi_making_keep(struct frag_fragment *fragment, const char *name, const char **out_name);
/* Returns 0, or -EINVAL with an error. */
int fragi_making_check_flow(struct frag_fragment *fragment, const char *from, const char *to,
			    uint32_t capacity, enum frag_policy policy);
/* Adds a flow that was checked; texts of its ends live as long as the fragment. */
int fragi_making_flow(struct frag_fragment *fragment, const struct fragi_spec_end *from,
		      const struct fragi_spec_end *to, uint32_t capacity, enum frag_policy policy);

/* subgraph.c: makes an instance, of a type by name, or by table when type_name is NULL. */
struct frag_subgraph *fragi_subgraph_make(struct frag_fragment *fragment, const char *name,
					  const char *type_name,
					  const struct frag_subgraph_type *type,
					  const struct fragi_spec_setting *settings, size_t count,
					  const struct fragi_node *place);
/*
 * A name as it is in the fragment: behind the name of the subgraph that is being composed. NULL:
 * out of memory (recorded), or name is NULL.
 */
const char *fragi_subgraph_qualify(struct frag_fragment *fragment, const char *name);
/* Puts $name of resources of the subgraph that is being composed into qualified names. */
int fragi_subgraph_qualify_args(struct frag_fragment *fragment, struct fragi_spec_setting *settings,
				size_t count);
/* Fills fragment->info with the interface ports, once the operators are known. */
int fragi_subgraphs_complete(struct frag_fragment *fragment);
/*
 * Of an interface port of a nested instance: the one of that instance; NULL: there is none, or it
 * is one of an operator.
 */
const struct fragi_made_interface *fragi_made_inner(const struct fragi_making *making,
						    const struct fragi_made_interface *made);
/* Returns the execution port that an interface port stands for; NULL: it is for messages. */
const char *fragi_made_execution(const struct fragi_making *making,
				 const struct fragi_made_interface *made);

/*
 * execution.c: the execution ports, in three steps: before the operators are completed, which flows
 * may need which ports; an operator's input, once its setup has added its ports; the outputs, once
 * all inputs are known. Failures go to diag.
 */
void fragi_execution_begin(struct frag_fragment *fragment);
int fragi_execution_add_input(struct frag_op *op);
void fragi_execution_add_outputs(struct frag_fragment *fragment);
/* The type of the start operator, which alone may be called FRAGI_START_OP. */
extern const struct frag_op_type fragi_start_type;

/*
 * timing.c: applies the timing of inputs, before and after the conditions are bound. Failures go to
 * diag.
 */
void fragi_timing_apply(struct frag_op *op);
void fragi_timing_check(struct frag_op *op);
/* deadline.c: the graph's, else what C has given. Between the two of timing.c. */
void fragi_deadline_complete(struct frag_op *op);

/*
 * check.c: inputs that no flow ends at and that are not optional, of a fragment of a graph whose
 * flows are resolved. Returns 0, -EINVAL with errors in diag, -ENOMEM.
 */
int fragi_fragment_check_inputs(struct frag_fragment *fragment);
/*
 * capacity.c: conditions that ask for more messages, or more room, than the flows of their ports
 * can ever hold. As check.c.
 */
int fragi_fragment_check_capacity(struct frag_fragment *fragment);
/* variables.c: as check.c, for operators that the variables of the graph name */
void fragi_fragment_check_variables(struct frag_fragment *fragment);

/* conditions.c; settings and place are borrowed. NULL on failure. */
struct frag_condition *fragi_condition_make(struct frag_op *op, const char *name, const char *type,
					    const struct fragi_spec_setting *settings, size_t count,
					    const struct fragi_node *place);
/*
 * Fills in the parameters of the conditions that were made since the last call. Returns 0, or
 * negative errno with an error in diag.
 */
int fragi_conditions_fill(struct frag_op *op);
/* Binds conditions to ports and to each other, once these are known. Returns as above. */
int fragi_conditions_bind(struct frag_op *op);
/* Makes the default condition of a port one of the operator's list. NULL: reported. */
struct frag_condition *fragi_condition_of_port(struct frag_op *op, const struct fragi_port *port,
					       const struct fragi_node *place);
/* What a parameter of the kind FRAG_PARAM_STRING_LIST names; nothing where there is none. */
struct frag_string_list fragi_condition_names(const struct frag_condition *condition,
					      const char *param);
/* combine.c: finds the terms of the i-th condition, a combination. Returns as above. */
int fragi_condition_bind_terms(struct frag_op *op, uint32_t index);
void fragi_conditions_fini(struct frag_op *op);
/* resources.c; as above */
/* One that the graph declares. NULL also when the text has errors about it. */
struct frag_resource *fragi_resource_make_declared(struct frag_fragment *fragment,
						   const struct fragi_spec_object *object);
struct frag_resource *fragi_resource_find(const struct frag_fragment *fragment, const char *name);
/* Gives the operator the resources that its graph lists. Returns as above. */
int fragi_op_give_resources(struct frag_op *op);
/* Calls initialize of all resources. Returns 0 or the first failure, in diag. */
int fragi_resources_initialize(struct frag_fragment *fragment, struct fragi_diag *diag);
/* Lets go of all resources, the last one first. */
void fragi_resources_release(struct frag_fragment *fragment);

/*
 * config.c: arguments given in C as settings, with what they take of the configuration. $name of
 * resources of the subgraph that is being composed is put into qualified names. Returns 0 or a
 * failure, which is reported; the settings are then those without errors (-EINVAL) or unset.
 */
int fragi_making_settings(struct frag_fragment *fragment, const char *subject,
			  const struct frag_arg *args, struct fragi_spec_setting **out_settings,
			  size_t *out_count);
/* fragment.c: makes the operators of a graph that have a type, and instances of libraries. */
void fragi_operators_make(struct frag_fragment *fragment, const struct fragi_spec_operator *ops,
			  size_t count);
/* fragment.c: loads libraries; reports those that cannot be loaded. */
void fragi_extensions_load(struct frag_fragment *fragment,
			   const struct fragi_spec_extension *extensions, size_t count);
/*
 * Makes the resources and services that a graph declares. Those with errors in the text keep their
 * names, which may be referred to.
 */
void fragi_resources_make(struct frag_fragment *fragment, const struct fragi_spec_object *objects,
			  size_t count);
/*
 * services.c: registers a resource, for the instance of making->scope. Returns 0 or a failure,
 * which is reported.
 */
int fragi_service_register(struct frag_fragment *fragment, struct frag_resource *resource,
			   const char *id, const struct fragi_node *place);

/*
 * loggers.c: makes the data loggers that the graph declares; and adds one, for the instance of
 * making->scope. is_shared: it is given at the top, for all fragments. Returns 0 or a failure,
 * which is reported.
 */
void fragi_loggers_make(struct frag_fragment *fragment);
int fragi_logger_add(struct frag_fragment *fragment, struct frag_resource *resource, bool is_shared,
		     const struct fragi_node *place);

#endif
