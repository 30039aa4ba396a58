/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_EXEC_H
#define FRAGI_SCHED_EXEC_H

#include <base/stamp.h>
#include <sched/sched.h>

/*
 * What a scheduler keeps of one operator: its ports bound to edges, its conditions flattened into
 * gates, and the tick that is passed to compute. tick.c is what operators call from inside a tick;
 * exec.c is what schedulers call around one. One thread at a time works on an exec.
 */

/* The most messages that one tick may receive: they stay until it ends. */
#define FRAGI_RECEIVED_MAX 65536u

struct fragi_exec_port {
	/* of an input with one flow, or in_turn: the one that is asked first; else NULL */
	struct fragi_rx *next_rx;
	/* of an output of values with one flow, inside the process, else NULL */
	struct fragi_tx *only_tx;
	const struct frag_type *type; /* of the value; NULL: any message, or a tensor */
	struct fragi_rx **rx;
	struct fragi_tx **tx;
	const struct frag_message **all; /* receive_all's array, `count` long */
	uint32_t count;                  /* flows */
	enum frag_dir dir;
	bool tensor;
	bool in_turn; /* a plain input with several flows: their messages are taken in turn */
};

struct frag_tick {
	struct frag_op *op;
	struct fragi_exec_port *ports;
	uint32_t port_count;
	uint64_t number; /* from 1 */
	struct frag_message **received;
	uint32_t received_count, received_capacity;
	uint64_t stamp; /* as it began: the receive time of its messages */
	struct frag_metadata *metadata;
	bool metadata_used; /* it may hold something, so it is cleared before the next tick */
	const struct frag_message *metadata_of; /* the message whose metadata it is, unchanged */
	int64_t time_ns; /* its begin on CLOCK_MONOTONIC; 0: nobody has asked */
	int fault; /* an emit found a full queue of policy fault: the tick fails with this code */
	/* what the last emit that failed returned, on which port, in which tick: for words */
	int refused;
	uint32_t refused_port;
	uint64_t refused_in;
};

/* A condition about the flows of one port. */
struct fragi_gate {
	struct fragi_rx **rx;
	struct fragi_tx **tx;
	uint32_t count;
	uint32_t min; /* messages, or room for them, on each flow */
	uint32_t max; /* in: not while more are waiting; 0: no such limit */
	/* not NULL: the messages on all flows count together */
	const struct fragi_exec_port *in_turn;
};

/*
 * The same of one flow of a queue in this process, for the usual look that finds nothing unusual:
 * the one of its indices must be so far ahead of the other. Messages: the tail ahead of the head.
 * Room: the head, as the tail may be ahead by the capacity.
 */
struct fragi_distance {
	const _Atomic uint64_t *ahead,
		*behind; /* behind is read first, so that an answer is never too good */
	int64_t least;
	const _Atomic bool *closed; /* by the other side */
};

struct fragi_exec {
	struct frag_tick tick;
	/* constant while it runs */
	int (*compute)(void *self, struct frag_tick *tick);
	void *self; /* the operator's state */
	struct frag_op *op;
	struct fragi_op_row *row;
	struct fragi_sched *sched;
	struct fragi_distance *distances, *distances_end;
	/*
	 * What is no distance: inputs whose flows are taken in turn, and ends of flows to other
	 * hosts.
	 */
	const struct fragi_exec_port **turns, **turns_end; /* content with one message */
	const struct fragi_tx **rooms, **rooms_end;        /* content with room for one */
	bool has_more_gates;                               /* there are such */
	bool minds_ticks; /* conditions, or a watchdog, are to be told of each */
	struct fragi_gate *in, *out;
	uint32_t in_count, out_count;
	struct frag_condition **others; /* those with a check function */
	uint32_t other_count;
	struct fragi_tx **txs; /* of all outputs, port by port */
	uint32_t tx_count;
	struct fragi_rx **rxs;
	uint32_t rx_count;
	bool timed; /* a condition needs the time */
	bool sink;  /* ends with its inputs, whatever its conditions say */
	/* of the thread that works on it */
	bool started, done, failed;
	int64_t watchdog_ns;
	const _Atomic bool *
		receiver_done; /* of one of txs whose receiver still took when last seen; no txs: false */
	int64_t begin_ns; /* of the present or last tick, when timed */
	/* the one it is in, or was in last; NULL: none yet. Any reads it. */
	const char *_Atomic callback;
	int64_t until_ns; /* of the last look that said WAIT_TIME */
	struct fragi_exec *next;
	/* recent longest tick, in stamps, slowly forgotten; the scheduler's, to guess by */
	uint64_t peak;
	_Atomic bool timer_armed;
	uint64_t *mark, mark_bit; /* greedy: where it says that it is to be looked at again */
	/* any thread */
	/* the short look is not enough: other conditions, a stop, a halt, done */
	_Alignas(64) _Atomic bool unusual;
	_Atomic bool stop_asked;
	/* a sink without conditions about its inputs: it ends with them now */
	_Atomic bool draining;
	_Atomic bool remote;    /* greedy: dirty, told by another thread */
	_Atomic uint32_t state; /* event_based: FRAGI_QUEUED, FRAGI_RUNNING */
};

#define FRAGI_QUEUED 1u
#define FRAGI_RUNNING 2u

/*
 * Makes op's exec and binds it; sets op->exec. `notify` is told, with the exec, whenever something
 * happens that a condition may care about. Returns 0 or -ENOMEM.
 */
int fragi_exec_create(struct frag_op *op, const struct fragi_binding *bindings,
		      struct fragi_op_row *row, struct fragi_sched *sched,
		      void (*notify)(void *exec));
void fragi_exec_destroy(struct frag_op *op); /* NULL exec is accepted */

/*
 * What the conditions say together, until exec->until_ns with FRAGI_WAIT_TIME. Once it said
 * FRAGI_NEVER the scheduler calls fragi_exec_finish.
 */
enum fragi_ready fragi_exec_ready_all(struct fragi_exec *exec);
/* Whether a message waits on any of the input's flows. */
bool fragi_exec_port_has_message(const struct fragi_exec_port *in);
/* The same answer, found shortly in the usual cases. */
static inline enum fragi_ready fragi_exec_ready(struct fragi_exec *exec)
{
	enum fragi_ready ready = FRAGI_READY;

	if (__builtin_expect(
		    atomic_load_explicit(&exec->unusual, memory_order_acquire) ||
			    atomic_load_explicit(exec->receiver_done, memory_order_acquire),
		    0))
		return fragi_exec_ready_all(exec);
	for (const struct fragi_distance *distance = exec->distances;
	     distance < exec->distances_end; distance++) {
		uint64_t behind = atomic_load_explicit(distance->behind, memory_order_acquire);

		if ((int64_t)(atomic_load_explicit(distance->ahead, memory_order_acquire) -
			      behind) >= distance->least)
			continue;
		if (atomic_load_explicit(distance->closed, memory_order_acquire))
			return fragi_exec_ready_all(exec);
		ready = FRAGI_WAIT;
	}
	if (__builtin_expect(!exec->has_more_gates, 1))
		return ready;
	for (const struct fragi_exec_port **in = exec->turns; in < exec->turns_end; in++)
		if (fragi_rx_available((*in)->next_rx) == 0 && !fragi_exec_port_has_message(*in))
			return fragi_exec_ready_all(exec);
	for (const struct fragi_tx **tx = exec->rooms; tx < exec->rooms_end; tx++)
		if ((*tx)->ops->room(*tx) == 0)
			return fragi_exec_ready_all(exec);
	return ready;
}

/* It is to be done as soon as it is looked at. Thread: any. */
void fragi_exec_ask_stop(struct fragi_exec *exec);

/* Calls start. Returns 0 or the failure. */
int fragi_exec_start(struct fragi_exec *exec);
/* The sentence for a failure of "start" or "compute". Returns out. */
const char *fragi_exec_words(const struct fragi_exec *exec, const char *callback, int code,
			     char *out, size_t size);
/*
 * Closes the outputs, in order, and the inputs, and calls stop if start succeeded. Once. stopped:
 * it has not ended by itself.
 */
void fragi_exec_finish(struct fragi_exec *exec, bool stopped);
/* Drops what the last tick received, and its metadata. */
void fragi_tick_clear_metadata(struct frag_tick *tick);
static inline void fragi_tick_end(struct frag_tick *tick)
{
	for (uint32_t i = 0; i < tick->received_count; i++)
		fragi_message_unref(tick->received[i]);
	tick->received_count = 0;
	if (__builtin_expect(tick->metadata_used, 0))
		fragi_tick_clear_metadata(tick);
}

/* The calling thread's, for its ticks. */
struct fragi_current *fragi_exec_current(void);
/* Before and after a tick of one that minds_ticks. */
void fragi_exec_tick_begins(struct fragi_exec *exec);
void fragi_exec_tick_ended(struct fragi_exec *exec);

/* What a tick comes to that was not plainly right. */
int fragi_exec_odd_result(struct fragi_exec *exec, int r);

/*
 * One tick: compute, and what belongs around it. start is a stamp not long past; *out_end one taken
 * after compute. Returns 0, FRAG_DONE, or the failure (fragi_exec_words words it).
 */
static inline int fragi_exec_tick(struct fragi_exec *exec, struct fragi_current *current,
				  uint64_t start, uint64_t *out_end)
{
	struct frag_tick *tick = &exec->tick;
	struct fragi_op_row *row = exec->row;
	uint64_t end;
	int r;

	tick->stamp = start;
	tick->time_ns = 0;
	tick->number++;
	/* For who asks after a crash: more ticks than computes are counted, so it is in one. */
	atomic_store_explicit(&row->ticks, tick->number, memory_order_relaxed);
	if (__builtin_expect(exec->minds_ticks, 0))
		fragi_exec_tick_begins(exec);
	/* for a signal handler of this thread */
	*(const struct frag_op *volatile *)&current->op = exec->op;
	r = exec->compute(exec->self, tick);
	*(const struct frag_op *volatile *)&current->op = NULL;
	end = fragi_stamp();
	*out_end = end;
	fragi_hist_add(&row->compute, fragi_stamp_diff_ns(start, end));
	fragi_tick_end(tick);
	if (__builtin_expect(exec->minds_ticks, 0))
		fragi_exec_tick_ended(exec);
	if (__builtin_expect((r | exec->op->err.code) == 0, 1))
		return 0;
	return fragi_exec_odd_result(exec, r);
}

#endif
