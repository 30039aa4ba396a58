/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_COND_CONDITION_H
#define FRAGI_COND_CONDITION_H

#include <base/diag.h>
#include <base/notify.h>
#include <data/work.h>
#include <frag/condition.h>
#include <frag/operator.h>

#define FRAGI_TIME_UNKNOWN INT64_MIN

/* What a condition that looks at inputs finds at one of them. */
struct fragi_waiting {
	uint64_t count; /* messages of all flows */
	/*
	 * Of the flow with the fewest among those that can still get more. An input whose flows are
	 * taken in turn counts as one flow. UINT64_MAX: no flow can get more.
	 */
	uint64_t least;
	/* when the first one was emitted; FRAGI_TIME_UNKNOWN: not known, or none waits */
	int64_t oldest_ns;
	bool ended; /* empty, and no message can come any more */
	/* of a condition that looks at messages: what it waits for; NULL: nothing */
	struct fragi_work *unwritten;
};

/*
 * A condition of an operator: the table of its type, and its state. One file of this folder holds
 * one built-in type. Those that only look at the queue of one port have no check: they are a gate,
 * which the scheduler checks in line.
 */
struct fragi_built_in_condition {
	struct frag_condition_type type;
	/*
	 * The port that it is about, whose default condition it replaces: the parameter that names
	 * the port, or of `all_ports` those that it names, and their direction (0: either). NULL:
	 * it is about no port.
	 */
	const char *port_param;
	enum frag_dir port_dir;
	bool all_ports;  /* without a name it is about all ports, not about the only one */
	bool takes_list; /* the parameter is a list of names */
	/* Whether it ends the operator, by its parameters; NULL: as FRAG_CONDITION_ENDS says. */
	bool (*ends)(const void *state);
	/*
	 * In place of check: what waits at the condition's inputs, in the order of the parameter.
	 * FRAG_NEVER means that no message can come any more.
	 */
	enum frag_ready (*check_inputs)(void *state, const struct fragi_waiting *inputs,
					uint32_t count, int64_t now_ns, int64_t *out_until_ns);
	/*
	 * Of a condition that looks at messages: the work of a GPU that it waits for, of the next
	 * message of a flow; NULL: none. It is not called for flows whose sender drops the oldest
	 * message, because that one may go meanwhile.
	 */
	struct fragi_work *(*unwritten)(const void *state, const struct frag_message *message);
};

/* The built-in type of that name; NULL: there is none. Aliases are not applied. */
FRAGI_API const struct fragi_built_in_condition *fragi_built_in_condition(const char *name);
/* The allocator whose memory a condition waits for; NULL: it waits for none. */
const struct frag_resource *fragi_condition_memory(const struct frag_condition *condition);
/* The i-th one, NULL beyond the last: to list them. */
FRAGI_API const struct fragi_built_in_condition *fragi_built_in_condition_at(size_t i);

extern const struct fragi_built_in_condition fragi_condition_asynchronous, fragi_condition_boolean,
	fragi_condition_count, fragi_condition_cuda_buffer, fragi_condition_cuda_event,
	fragi_condition_cuda_stream, fragi_condition_downstream_affordable,
	fragi_condition_expiring_message_available, fragi_condition_memory_available,
	fragi_condition_message_available, fragi_condition_multi_message_available,
	fragi_condition_multi_message_available_timeout, fragi_condition_none, fragi_condition_or,
	fragi_condition_periodic;

struct frag_condition {
	const struct frag_condition_type *type;          /* in this libfrag's size */
	const struct fragi_built_in_condition *built_in; /* NULL: a plugin's */
	const char *name;
	struct frag_op *op;
	void *state;   /* parameters and what the type keeps; of the fragment's arena */
	bool bound;    /* fini is due */
	bool started;  /* stop is due */
	bool is_term;  /* it counts through a combination */
	uint32_t port; /* of a gate; UINT32_MAX: it is none */
	/* A gate: messages, or room for them, that each flow must have; 0: it is none. */
	uint32_t gate_min;
	uint32_t gate_max; /* of an input: not while a flow has more messages; 0: no limit */
	/* the ports that it is about; of a gate the one above */
	uint32_t *ports, port_count;
	/* messages that must be able to wait at each of its ports; NULL or 0: any number */
	const int64_t *sizes;
	uint64_t sum;                  /* the same for all of them together; 0: any number */
	struct frag_condition **terms; /* of a combination */
	uint32_t term_count;
	struct fragi_notify changed; /* checks it again; set while a scheduler has the operator */
};

#endif
