/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_SCHED_H
#define FRAGI_SCHED_SCHED_H

#include <cond/cond.h>
#include <edge/pump.h>
#include <graph/op.h>

/*
 * A scheduler runs one fragment's operators on its own threads. Two of them share tick.c (one tick
 * of one operator): greedy: one thread, operators in topological order, deterministic; the oracle
 * the other is tested against. event_based: never scans. What happens to an operator (arrival,
 * room, timer, stop) marks it and queues it; a pool thread evaluates its conditions and runs it or
 * parks it. Two bits, one atomic: QUEUED, RUNNING (notify = fetch_or QUEUED and queue if the old
 * value was 0; start = exchange RUNNING; end = fetch_and ~RUNNING, queue again if QUEUED was set
 * meanwhile). A tick's notifications are held to its end; the first runs next on the same thread,
 * the rest are queued and others woken.
 */
struct fragi_sched;

/* How operators are bound to the flows' ends; filled by run/ before start. */
struct fragi_binding {
	struct fragi_rx **rx; /* of an input: in the order of the flows */
	struct fragi_tx **tx; /* of an output */
	uint32_t count;
};

struct fragi_sched_config {
	struct frag_fragment *fragment;
	struct fragi_binding **bindings; /* [op index][port index] */
	struct fragi_op_row *rows;       /* [op index] */
	struct fragi_pump *pump;
	int stop_fd; /* readable once the run is told to stop */
	void *arg;
	/* Events, on a scheduler's thread; must not block. */
	void (*op_done)(void *arg, struct frag_op *op);
	void (*failed)(void *arg, struct frag_op *op, int code,
		       const char *sentence); /* first failure of the fragment */
	/* frag_fragment_stop_execution was called; on its caller's thread */
	void (*stopped)(void *arg);
	/*
	 * Every operator is done, or the fragment failed or was halted: all have been stopped. Last
	 * thing the last thread does; it may take its time.
	 */
	void (*finished)(void *arg);
	/*
	 * Every operator waits, and for no time: told each time this begins. For who wants to end
	 * what is at rest without asking all the time; NULL: nobody.
	 */
	void (*rested)(void *arg);
};

FRAGI_API int fragi_sched_create(const struct fragi_sched_config *config,
				 struct fragi_sched **out_sched);
/*
 * Starts the threads; they call start of every operator, then tick. Returns 0 or negative errno
 * with a sentence.
 */
FRAGI_API int fragi_sched_start(struct fragi_sched *sched, struct frag_err *err);
/*
 * Orderly stop: operators without inputs (and all in a cycle without a source) become NEVER, so
 * close cascades; what is queued drains. Thread: any.
 */
FRAGI_API void fragi_sched_drain(struct fragi_sched *sched);
/* At once: after their present tick all operators are done. Thread: any. */
FRAGI_API void fragi_sched_halt(struct fragi_sched *sched);
/* Joins the threads; stop was called for every operator whose start succeeded. */
FRAGI_API void fragi_sched_join(struct fragi_sched *sched);
FRAGI_API void fragi_sched_destroy(struct fragi_sched *sched);

/*
 * At rest: no operator is queued or running, no timer is armed and nobody outside may wake one.
 * `rounds` counts notifications, so that two equal answers mean that nothing happened between them.
 * For deadlock detection of the run. Thread: any.
 */
FRAGI_API bool fragi_sched_at_rest(struct fragi_sched *sched, uint64_t *out_rounds);
/*
 * For the control thread, every 100 ms or so: wakes a thread for work that lies about because the
 * one that was to take it is unexpectedly long in a tick.
 */
FRAGI_API void fragi_sched_look(struct fragi_sched *sched, int64_t now_ns);
/*
 * The watchdog's look: first operator that has been in a callback for longer than its watchdog
 * allows; NULL: none.
 */
FRAGI_API struct frag_op *fragi_sched_hung(struct fragi_sched *sched, int64_t now_ns,
					   int64_t *out_for_ns);
/*
 * "fragment.operator" whose callback this thread is in, NULL: none. For the console prefix and
 * crash reports.
 */
FRAGI_API const char *fragi_current_op_name(void);

#endif
