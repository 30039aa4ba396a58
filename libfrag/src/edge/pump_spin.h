/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_PUMP_SPIN_H
#define FRAGI_EDGE_PUMP_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Whether a thread that waits should look again and again before it sleeps, and for how long. To
 * spin is right where the next event is nearer than a sleep and a wake-up are long, and another
 * core makes it meanwhile. Nobody knows that beforehand, so it is learned from the waits before:
 * - Spinning is paid from a credit, and only successful spins and short sleeps fill it. So the time
 *   that is spun in vain is a small part of the time for which messages came in quick succession;
 *   at rest, and at 1,000 messages a second, a thread never spins.
 * - It spins no longer than a few times the usual interval between events.
 * - A thread that has not slept for a while, but was preempted and did not have the processor all
 *   the time, shares it with another one: then it sleeps at once for QUIET_NS.
 * Nothing here reads a clock.
 */
#define FRAGI_SPIN_MAX_NS INT64_C(50000)

/* Of one thread at a time. Begins as zeros. */
struct fragi_spin {
	int64_t credit_ns;
	int64_t interval_ns;   /* the mean of the last waits; longer ones count as SPIN_MAX_NS */
	int64_t quiet_till_ns; /* until then it sleeps at once */
	/* since when it has not slept (0: unknown), and what fragi_spin_share was given then */
	int64_t awake_ns, cpu_ns, preemptions;
	/* of the wait that goes on */
	int64_t begin_ns, limit_ns;
	bool slept;
};

/* A wait begins. */
FRAGI_API void fragi_spin_begin(struct fragi_spin *spin, int64_t now_ns);
static inline bool fragi_spin_goes_on(const struct fragi_spin *spin, int64_t now_ns)
{
	return now_ns - spin->begin_ns < spin->limit_ns;
}
/* The thread is about to sleep, and spins no more in this wait. */
FRAGI_API void fragi_spin_sleeps(struct fragi_spin *spin);
/* The wait has ended: by an event, or else by time. */
FRAGI_API void fragi_spin_end(struct fragi_spin *spin, int64_t now_ns, bool by_event);
/* Whether fragi_spin_share should be called: it spins, and has not slept for long enough. */
FRAGI_API bool fragi_spin_asks_share(const struct fragi_spin *spin);
/* Takes the processor time of the thread, and how often it was preempted, both since its start. */
FRAGI_API void fragi_spin_share(struct fragi_spin *spin, int64_t cpu_ns, int64_t preemptions);

#endif
