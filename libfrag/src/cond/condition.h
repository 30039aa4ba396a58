/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_COND_CONDITION_H
#define FRAGI_COND_CONDITION_H

#include <base/diag.h>
#include <base/notify.h>
#include <frag/condition.h>
#include <frag/operator.h>

/*
 * A condition of an operator: the table of its type, and its state. One file of this folder holds
 * one built-in type. Those that only look at the queue of a port have no check: they are a gate,
 * which the scheduler checks in line.
 */
struct fragi_built_in_condition {
	struct frag_condition_type type;
	/*
	 * The port that it is about, whose default condition it replaces: the parameter that names
	 * the port, and the port's direction (0: either). NULL: it is about no port.
	 */
	const char *port_param;
	enum frag_dir port_dir;
	bool all_ports; /* without a name it is about all ports, not about the only one */
};

/* The built-in type of that name; NULL: there is none. Aliases are not applied. */
FRAGI_API const struct fragi_built_in_condition *fragi_built_in_condition(const char *name);
/* The i-th one, NULL beyond the last: to list them. */
FRAGI_API const struct fragi_built_in_condition *fragi_built_in_condition_at(size_t i);

extern const struct fragi_built_in_condition fragi_condition_boolean, fragi_condition_count,
	fragi_condition_downstream_affordable, fragi_condition_message_available,
	fragi_condition_none, fragi_condition_periodic;

struct frag_condition {
	const struct frag_condition_type *type;          /* in this libfrag's size */
	const struct fragi_built_in_condition *built_in; /* NULL: a plugin's */
	const char *name;
	struct frag_op *op;
	void *state;   /* parameters and what the type keeps; of the fragment's arena */
	bool bound;    /* fini is due */
	uint32_t port; /* that it is about; UINT32_MAX: none, or all */
	/* A gate: messages, or room for them, that each flow must have; 0: it is none. */
	uint32_t gate_min;
	uint32_t gate_max;           /* of an input: not while a flow has more; 0: no limit */
	struct fragi_notify changed; /* checks it again; set while a scheduler has the operator */
};

#endif
