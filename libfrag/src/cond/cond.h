/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_COND_COND_H
#define FRAGI_COND_COND_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <base/notify.h>
#include <frag/condition.h>
#include <frag/operator.h>

/*
 * Conditions answer when an operator may be ticked. Built-in ones are one table of types; those
 * about a port are looked at inline by the scheduler.
 */
/* in the order of precedence under AND */
enum fragi_ready {
	FRAGI_READY,
	FRAGI_WAIT_TIME,  /* until a time */
	FRAGI_WAIT,       /* something will notify: an arrival, room */
	FRAGI_WAIT_EVENT, /* somebody outside will */
	FRAGI_NEVER,
};

enum fragi_cond_kind {
	FRAGI_COND_MESSAGE_AVAILABLE,
	FRAGI_COND_DOWNSTREAM_AFFORDABLE,
	FRAGI_COND_COUNT,
	FRAGI_COND_BOOLEAN,
	FRAGI_COND_PERIODIC,
	FRAGI_COND_NONE,
};

struct fragi_cond_type {
	enum fragi_cond_kind kind;
	const char *name;
	const char *headline;
	const struct frag_param *params; /* into struct frag_condition's params field */
	uint32_t param_count;
	/* NULL for kinds that the scheduler looks at itself. */
	enum fragi_ready (*check)(struct frag_condition *condition, int64_t now_ns,
				  int64_t *out_until_ns);
	/* After a tick that began at now_ns. NULL: nothing to do. */
	void (*ticked)(struct frag_condition *condition, int64_t now_ns);
};

FRAGI_API const struct fragi_cond_type *
fragi_cond_type_find(const char *name); /* NULL: none; aliases not applied */
/* All types, for "did you mean" and inspect. */
FRAGI_API const struct fragi_cond_type *fragi_cond_types(size_t *out_count);

struct frag_condition {
	const struct fragi_cond_type *type;
	const char *name;
	struct frag_op *op;
	/* parameters of all kinds; each type's table names its own */
	struct fragi_cond_params {
		const char *receiver, *transmitter, *port; /* port names */
		int64_t min_size;
		int64_t front_stage_max_size;
		int64_t count;
		bool enable_tick;
		int64_t recess_period;
		const char *policy;
	} params;
	uint32_t port; /* resolved index; UINT32_MAX: none */
	/* run time */
	_Atomic bool enabled;        /* boolean */
	int64_t left;                /* count */
	int64_t next_ns;             /* periodic: 0 before the first tick */
	struct fragi_notify changed; /* boolean: whom to tell */
};

/*
 * Sets the run-time fields from the parameters: once, when the operator's parameters are final and
 * before any callback that may switch it.
 */
FRAGI_API void fragi_cond_reset(struct frag_condition *condition);

#endif
