/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_VERDICT_H
#define FRAGI_TRACK_VERDICT_H

#include <track/cause.h>

/* Between cause.c, which finds the culprit, and cause_text.c, which puts it into words. */

/* What is wrong with an application, as a person notices it. */
enum fragi_symptom_kind {
	FRAGI_SYMPTOM_BOUND,     /* nothing is: something waits, and no promise is broken */
	FRAGI_SYMPTOM_RATE,      /* an operator ticks too seldom */
	FRAGI_SYMPTOM_DROPS,     /* a flow drops messages */
	FRAGI_SYMPTOM_LOST,      /* a flow lost messages */
	FRAGI_SYMPTOM_SUSPENDED, /* an operator does not run */
};

struct fragi_symptom {
	enum fragi_symptom_kind kind;
	uint32_t op;                 /* where the search begins */
	uint32_t flow;               /* of drops and losses; else FRAGI_LOOK_NONE */
	uint64_t is_mhz, wanted_mhz; /* ticks; of drops: messages dropped and sent */
	uint32_t per_mille;          /* how bad it is */
};

/* What a slow operator does in its callbacks. */
enum fragi_work { FRAGI_WORK_CPU, FRAGI_WORK_DISK, FRAGI_WORK_OUTSIDE };

/* An operator on the way from the symptom to the culprit, and what it waits for there. */
struct fragi_verdict_step {
	uint32_t op;
	enum fragi_use use; /* BUSY: it waits for nothing */
};

struct fragi_verdict {
	enum fragi_cause_kind kind;
	struct fragi_symptom symptom;
	uint32_t op, flow, host;
	enum fragi_work work;    /* of an OPERATOR */
	uint64_t outside_ns;     /* and how long it did that */
	uint64_t host_busy_ns;   /* of all operators of the host */
	uint64_t host_thread_ns; /* how long they waited for a thread */
	uint32_t host_operators; /* that computed */
	bool is_own;             /* of CORES: its own threads are too many for its cores */
	const struct fragi_verdict_step *steps;
	uint32_t step_count;
};

/* Whether the ends of a flow are in two hosts. */
bool fragi_look_flow_crosses(const struct fragi_look *look, uint32_t flow);
/* Fills in sentence, help and chain. Returns 0 or -ENOMEM. */
int fragi_cause_write(const struct fragi_look *look, const struct fragi_verdict *verdict,
		      struct fragi_arena *arena, struct fragi_cause *out);

#endif
