/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_COMPOSE_H
#define FRAGI_GRAPH_COMPOSE_H

#include <base/strmap.h>
#include <cond/condition.h>
#include <graph/op.h>
#include <text/holoscan.h>

/*
 * What the files of composing share. Everything that makes is only noted until the fragment is
 * complete, because a graph may set parameters of what C composed: parameters are filled in, and
 * setup is called, once per operator at the end. Errors are collected: what could not be made is
 * remembered, so that what names it is not reported as well.
 */
struct fragi_made_condition {
	const struct fragi_spec_setting *settings;
	size_t count;
	const struct fragi_node *place;
};

struct fragi_made {
	struct fragi_spec_setting *args; /* of C */
	size_t arg_count;
	const struct fragi_spec_operator *own; /* what the graph says; NULL: nothing */
	const struct fragi_node *place;
	struct fragi_made_condition *conditions; /* beside op->conditions */
	uint32_t condition_capacity, made_condition_capacity, port_capacity;
	bool failed;       /* its parameters or its setup */
	bool bad_resource; /* a parameter names a resource that could not be made */
};

struct fragi_making {
	int code; /* 0, or what composing returns */
	bool sealed, no_library, no_composer;
	struct fragi_strmap ops;           /* name: struct frag_op */
	struct fragi_strmap bad_ops;       /* names of those that could not be made, or completed */
	struct fragi_strmap bad_resources; /* the same */
	/* those of C, and once they are resolved those of the graph too */
	struct fragi_spec_flow *flows;
	uint32_t flow_count, flow_capacity;
	uint32_t op_capacity, made_capacity, resource_capacity;
};

/*
 * Adds an error, "SUBJECT: SENTENCE"; subject NULL: the fragment's name. Returns code; composing
 * ends with the gravest: -ENOMEM, then -ENOENT, then -EINVAL for all others.
 */
int fragi_making_fail(struct frag_fragment *fragment, int code, const struct fragi_node *place,
		      const char *subject, const char *format, ...) FRAG_PRINTF(5, 6);
/*
 * The same for an error that another part decided: its code, its class, and `what` before its
 * words.
 */
void fragi_making_fail_by(struct frag_fragment *fragment, const struct frag_err *cause,
			  const struct fragi_node *place, const char *subject, const char *what);
/* Notes a code whose error is in diag already. */
void fragi_making_note(struct frag_fragment *fragment, int code);
/* The error for a type that is none. names: those that are. */
void fragi_making_refuse_type(struct frag_fragment *fragment, const struct fragi_node *place,
			      const char *subject, enum fragi_holoscan_kind kind, const char *type,
			      const char *const *names, size_t count);
/*
 * Room for one more of `count` items in the fragment's arena; the old ones stay where they were,
 * too. NULL: memory is short (noted).
 */
void *fragi_making_room(struct frag_fragment *fragment, void *items, uint32_t count,
			uint32_t *capacity, size_t size);
/* Notes a name that could not be made. */
void fragi_making_note_bad(struct frag_fragment *fragment, struct fragi_strmap *bad,
			   const char *name);

/* op.c: type as a name, or as a table when type_name is NULL. NULL on failure. */
struct frag_op *fragi_op_make(struct frag_fragment *fragment, const char *name,
			      const char *type_name, const struct frag_op_type *type,
			      const struct fragi_node *place);
int fragi_op_add(struct frag_op *op);
/* Fills in conditions and parameters, calls setup, settles the ports. What fails is in diag. */
void fragi_op_complete(struct frag_op *op);
/* The sentence of a callback's failure into diag; returns r. */
int fragi_op_callback_failed(struct frag_op *op, struct fragi_diag *diag, const char *callback,
			     int r);

/*
 * check.c: inputs that no flow ends at and that are not optional, of a fragment of a graph whose
 * flows are resolved. Returns 0, -EINVAL with errors in diag, -ENOMEM.
 */
int fragi_fragment_check_inputs(struct frag_fragment *fragment);

/* conditions.c; settings and place are borrowed. NULL on failure. */
struct frag_condition *fragi_condition_make(struct frag_op *op, const char *name, const char *type,
					    const struct fragi_spec_setting *settings, size_t count,
					    const struct fragi_node *place);
/* 0 or negative errno, in diag. */
int fragi_conditions_fill(struct frag_op *op);
int fragi_conditions_bind(struct frag_op *op); /* to ports, once these are known */
void fragi_conditions_fini(struct frag_op *op);
/* resources.c; the same */
struct frag_resource *fragi_resource_make(struct frag_fragment *fragment, const char *name,
					  const char *type,
					  const struct fragi_spec_setting *settings, size_t count,
					  const struct fragi_node *place);
struct frag_resource *fragi_resource_find(const struct frag_fragment *fragment, const char *name);

#endif
