/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_BLAME_H
#define FRAGI_BASE_BLAME_H

#include <stdint.h>

#include <base/diag.h>

/*
 * Where the time of a message on a path with a deadline went: parts that add up to the time from
 * the begin of the path to where the message is. Each operator adds what it knows when it has the
 * message, so that nothing is asked of other hosts. Pure functions; whoever calls them measures.
 */

/*
 * X(NAME, name, text, what): what a part was spent with. EDGE: it is about the flow that leads to
 * operator `at` of the path; else about the operator. A cause's place is its number on the wire,
 * and the order is that of the counters late_ of operators (base/counters.h): append.
 */
#define FRAGI_BLAME_LIST(X)                                                                        \
	X(QUEUE, queue, "waited in queue", "the operator was busy with earlier messages")          \
	X(COMPUTE, compute, "computed long", "its tick, without what follows")                     \
	X(PREEMPTED, preempted, "was preempted",                                                   \
	  "its thread could run, and the kernel gave it no core")                                  \
	X(THREAD, thread, "no thread", "it could tick, and no thread of the host was free")        \
	X(POOL, pool, "pool empty", "it waited for memory of a pool")                              \
	X(WINDOW, window, "window closed", "the flow had no room")                                 \
	X(NETWORK, network, "network", "between sent and arrived")                                 \
	X(GPU, gpu, "GPU queue", "work of a GPU was waited for")                                   \
	X(RESTART, restart, "restart", "the receiving host was not there")                         \
	X(CLOCK, clock, "clock unsure", "it was late by less than the clocks are exact")

#define FRAGI_BLAME_ENUM(NAME, name, text, what) FRAGI_BLAME_##NAME,
enum fragi_blame_cause { FRAGI_BLAME_LIST(FRAGI_BLAME_ENUM) FRAGI_BLAME_CAUSES };
#undef FRAGI_BLAME_ENUM

/* The most parts of a path; of more, the smallest are added up. */
#define FRAGI_BLAME_PARTS_MAX 8u

struct fragi_blame_part {
	uint16_t at; /* place of the operator on the path; of a flow, of the one it leads to */
	uint16_t cause;
	uint64_t ns; /* not 0 */
};

/* Zeroed: nothing yet. */
struct fragi_blame_parts {
	uint64_t rest_ns; /* parts that had no place */
	uint32_t count;
	struct fragi_blame_part parts[FRAGI_BLAME_PARTS_MAX];
};

/* How a message came from operator at - 1 to the begin of the tick of operator `at`. */
struct fragi_blame_way {
	uint16_t at;
	uint64_t took_ns;    /* from its emit to the begin of the tick */
	uint64_t arrived_ns; /* from its emit to its arrival in the queue; 0: in one process */
	/* until it was sent, by the sender's clock; of these: no receiver, work of a GPU */
	uint64_t held_ns, restart_ns, gpu_ns;
	uint64_t unstarted_ns; /* in the queue of an operator that was not started yet */
	/* of what is left, ticks with earlier messages; else the operator was in none and waited */
	uint64_t busy_ns;
	uint64_t pool_ns, thread_ns, room_ns, suspended_ns;
	uint64_t away_ns; /* of room_ns: the host behind that flow was not there */
	/* its thread could run and the kernel gave it no core: between ticks; in earlier ticks */
	uint64_t starved_ns, denied_ns;
};

/* How long it was in a tick. */
struct fragi_blame_stay {
	uint16_t at;
	uint64_t took_ns;
	uint64_t preempted_ns, gpu_ns;
};

FRAGI_API void fragi_blame_add(struct fragi_blame_parts *parts, uint32_t at,
			       enum fragi_blame_cause cause, uint64_t ns);
/* Add parts of together took_ns, whatever the other numbers are. */
FRAGI_API void fragi_blame_way(struct fragi_blame_parts *parts, const struct fragi_blame_way *way);
FRAGI_API void fragi_blame_stay(struct fragi_blame_parts *parts,
				const struct fragi_blame_stay *stay);
FRAGI_API uint64_t fragi_blame_sum(const struct fragi_blame_parts *parts);

/* What is usual on a path: the sums of messages that were in time. */
struct fragi_blame_usual {
	uint64_t messages;
	uint64_t *ns; /* [at * FRAGI_BLAME_CAUSES + cause] */
	uint32_t places;
};
FRAGI_API void fragi_blame_learn(struct fragi_blame_usual *usual,
				 const struct fragi_blame_parts *parts);

/*
 * The part to blame for a message that was late: the one that took longest beyond what is usual. It
 * is CLOCK where the message was late by no more than error_ns.
 * - late_ns: how far beyond the budget
 * - error_ns: how exact the time of the whole path is
 */
FRAGI_API struct fragi_blame_part fragi_blame(const struct fragi_blame_parts *parts,
					      const struct fragi_blame_usual *usual,
					      uint64_t late_ns, uint64_t error_ns);

/*
 * A place on paths that end in the same operator, and how often it was to blame there. Causes that
 * are about a flow concern the one that leads from `from` to it.
 */
struct fragi_late_place {
	const char *from;   /* "front.tx"; NULL: no flow of these paths leads to it */
	const char *at;     /* "front.detect" */
	const char *worker; /* on which it runs now; NULL: not known, or there are no workers */
	uint64_t late[FRAGI_BLAME_CAUSES];
};
#define FRAGI_LATE_PLACES_MAX 128u /* of a host, of which this is counted */

FRAGI_API const char *fragi_blame_name(enum fragi_blame_cause cause); /* "queue" */
FRAGI_API const char *fragi_blame_text(enum fragi_blame_cause cause); /* "waited in queue" */
/* Whether a cause is about the flow that leads to an operator. */
static inline int fragi_blame_is_edge(enum fragi_blame_cause cause)
{
	return cause == FRAGI_BLAME_WINDOW || cause == FRAGI_BLAME_NETWORK ||
	       cause == FRAGI_BLAME_RESTART;
}

#endif
