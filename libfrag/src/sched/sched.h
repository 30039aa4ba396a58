/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_SCHED_H
#define FRAGI_SCHED_SCHED_H

#include <base/failure.h>
#include <cond/condition.h>
#include <edge/edge.h>
#include <edge/pump.h>
#include <graph/op.h>

/*
 * A scheduler runs the operators of one fragment on its own threads. There are two kinds:
 * - greedy: one thread, operators in topological order, deterministic. The tests compare the other
 *   kind with it.
 * - event_based: a pool of threads, which never scans the operators. An event of an operator (a
 *   message arrived, a queue has room, a timer, a stop) queues it; a thread of the pool evaluates
 *   its conditions, and ticks it or lets it wait. event_based.c explains how.
 */
struct fragi_sched;

/* The ends of a port's flows; run/ fills it in before the start. */
struct fragi_binding {
	struct fragi_rx **rx; /* of an input: in the order of the flows */
	struct fragi_tx **tx; /* of an output */
	/* parallel to tx, where they lead; NULL: the operator chooses no flows */
	const struct frag_flow_info *flows;
	uint32_t count;
};

struct fragi_sched_config {
	struct frag_fragment *fragment;
	struct fragi_binding **bindings; /* [op index][port index]; until it is created */
	struct fragi_op_row *rows;       /* [op index] */
	struct fragi_pump *pump;
	/* becomes readable when the run is to stop */
	int stop_fd;
	bool has_peers; /* other hosts, which may hold memory of its pools for a while */

	/*
	 * Callbacks. They run on a thread of the scheduler and must not block; finished may.
	 * - op_done: an operator has ended; may be NULL
	 * - failed: the first failure of the fragment
	 * - stopped: frag_fragment_stop_execution was called; runs on the caller's thread; may be
	 *   NULL
	 * - finished: all operators have been stopped, because every one is done, or the fragment
	 *   failed or was halted; the last call of the last thread
	 * - started: start of every operator has succeeded; may be NULL
	 * - hung: a thread will not come back from an operator: what it uses must be left; may be
	 *   NULL
	 * - rested: every operator waits and none of them for a time; called each time this begins;
	 *   may be NULL
	 */
	void *arg;
	void (*op_done)(void *arg, struct frag_op *op);
	void (*failed)(void *arg, struct frag_op *op, enum fragi_failure failure,
		       const char *sentence);
	void (*stopped)(void *arg);
	void (*finished)(void *arg);
	void (*started)(void *arg);
	void (*hung)(void *arg);
	void (*rested)(void *arg);
};

FRAGI_API int fragi_sched_create(const struct fragi_sched_config *config,
				 struct fragi_sched **out_sched);
/*
 * Starts the threads, which call start of every operator and then tick them. Returns 0 or a
 * negative errno with a sentence.
 */
FRAGI_API int fragi_sched_start(struct fragi_sched *sched, struct frag_err *err);
/*
 * Stops in order: the sources end (and all operators of a cycle without a source), queued messages
 * are still delivered, and the end cascades along the flows. Thread: any.
 */
FRAGI_API void fragi_sched_drain(struct fragi_sched *sched);
/*
 * The same for a fragment whose time is over, whatever the others do: operators that other
 * fragments feed end as sources do, and what arrives for them later is dropped. Thread: any.
 */
FRAGI_API void fragi_sched_drain_alone(struct fragi_sched *sched);
/* Stops at once: every operator ends after its current tick. Thread: any. */
FRAGI_API void fragi_sched_halt(struct fragi_sched *sched);
/*
 * The first half of it: no further tick begins, but nobody is woken yet. Where several schedulers
 * are to halt, none of them may see the operators of another one end and tick because of it.
 * Thread: any.
 */
FRAGI_API void fragi_sched_forbid_ticks(struct fragi_sched *sched);
/* Joins the threads. stop was then called for every operator whose start succeeded. */
FRAGI_API void fragi_sched_join(struct fragi_sched *sched);
FRAGI_API void fragi_sched_destroy(struct fragi_sched *sched);

/*
 * Returns whether the fragment is at rest: no operator is queued or running, and no timer is armed.
 * - out_rounds: receives a number that changes with every notification: two calls that return the
 *   same one mean that nothing happened between them
 * The run detects deadlocks by it. Thread: any.
 */
FRAGI_API bool fragi_sched_at_rest(struct fragi_sched *sched, uint64_t *out_rounds);
/*
 * Safety net: wakes a thread when queued work waits because the thread that was to take it is in an
 * unexpectedly long tick. The control thread calls it about every 100 ms.
 */
FRAGI_API void fragi_sched_wake_stalled(struct fragi_sched *sched, int64_t now_ns);
/* A time for which this process did not run. */
struct fragi_pause {
	int64_t until_ns, lasted_ns;
};
/* A callback that has run for longer than it may. */
struct fragi_sched_hang {
	struct frag_op *op;
	enum fragi_call_kind callback;
	int64_t for_ns, allowed_ns;
	bool is_draining; /* all callbacks are limited, because the run is to end */
};
/* How long `stop` may take without a watchdog. */
#define FRAGI_OP_STOP_NS 10000000000ll
/* From now on no callback may run longer. Thread: the one that looks for hangs. */
FRAGI_API void fragi_sched_limit_calls(struct fragi_sched *sched, int64_t limit_ns);
/*
 * Finds an operator that has been in a callback for longer than its watchdog, FRAGI_OP_STOP_NS or
 * the limit of fragi_sched_limit_calls allows. The control thread calls it about every 100 ms.
 * - pause: the last time for which this process did not run; it does not count
 */
FRAGI_API bool fragi_sched_find_hang(struct fragi_sched *sched, int64_t now_ns,
				     const struct fragi_pause *pause, struct fragi_sched_hang *out);
/* What a thread of the scheduler was in when it ended by a system call of its own. */
struct fragi_sched_lost {
	const struct frag_op *op;
	enum fragi_call_kind callback;
};
/* Finds such a thread, from the control thread too. */
FRAGI_API bool fragi_sched_find_lost(struct fragi_sched *sched, struct fragi_sched_lost *out);
/* Returns the operator that is in start, and for how long; NULL: none. */
FRAGI_API const struct frag_op *fragi_sched_in_start(struct fragi_sched *sched, int64_t now_ns,
						     int64_t *out_for_ns);

#endif
