/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_CAUSE_H
#define FRAGI_TRACK_CAUSE_H

#include <base/arena.h>
#include <base/look.h>

/*
 * The root cause: what makes an application slower than it could be, or lose messages. It is found
 * by following "waits for room" downstream and "waits for input" upstream, to the operator, pool,
 * link, thread, core, clock or command that holds up the rest.
 */
enum fragi_cause_kind {
	FRAGI_CAUSE_NONE,       /* nothing is wrong */
	FRAGI_CAUSE_UNMEASURED, /* the window is empty */
	FRAGI_CAUSE_OPERATOR,   /* it computes too long, on the CPU, on the GPU or for a disk */
	FRAGI_CAUSE_POOL,       /* a pool of memory is too small */
	FRAGI_CAUSE_LINK,    /* messages travel too slowly, or the window of a flow is too small */
	FRAGI_CAUSE_THREADS, /* a scheduler has too few threads */
	FRAGI_CAUSE_CORES,   /* other processes or threads take the cores away */
	FRAGI_CAUSE_CLOCK,   /* an operator ticks at a rate below what the graph promises */
	FRAGI_CAUSE_SUSPENDED, /* a restart, a move or a command */
	FRAGI_CAUSE_LOSS,      /* messages were lost with a host or a link */
	FRAGI_CAUSE_RULE,      /* an input drops what comes too late, too old or out of step */
};

struct fragi_cause {
	enum fragi_cause_kind kind;
	/*
	 * What is to blame, or under NONE what bounds the rate; FRAGI_LOOK_NONE: not such a thing.
	 */
	uint32_t op, flow, host;
	const char *sentence; /* one, with numbers, and in short what would help */
	const char *help;     /* what to write where; NULL: nothing is known */
	struct fragi_look_step *chain;
	uint32_t chain_count;
};

/* "none", "operator", ... for programs. */
FRAGI_API const char *fragi_cause_name(enum fragi_cause_kind kind);
/*
 * Finds the root cause, in time linear in the tables. An application has none while it meets its
 * promises (rates, and the periods of sources) and neither drops nor loses messages. Texts are put
 * into the arena.
 * Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_cause_find(const struct fragi_look *look, struct fragi_arena *arena,
			       struct fragi_cause *out);

#endif
