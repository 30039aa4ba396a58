/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_EXEC_H
#define FRAGI_SCHED_EXEC_H

#include <base/stamp.h>
#include <sched/sched.h>

/*
 * What a scheduler keeps of one operator: its ports bound to edges, its conditions flattened into gates, and
 * the tick that is passed to compute. tick.c is what operators call from inside a tick; exec.c is what
 * schedulers call around one. One thread at a time works on an exec.
 */

/* The most messages that one tick may receive: they stay until it ends. */
#define FRAGI_RECEIVED_MAX 65536u

struct fragi_exec_port {
	const struct frag_type *type; /* of the value; NULL: any message, or a tensor */
	enum frag_dir dir;
	bool tensor;
	bool in_turn;   /* a plain input with several flows: their messages are taken in turn */
	uint32_t next;  /* in_turn: the flow that is asked first */
	uint32_t count; /* flows */
	struct fragi_rx **rx;
	struct fragi_tx **tx;
	const struct frag_message **all; /* receive_all's array, `count` long */
};

struct frag_tick {
	struct frag_op *op;
	struct fragi_exec_port *ports;
	uint32_t port_count;
	uint64_t stamp;  /* as it began: the receive time of its messages */
	uint64_t number; /* from 1 */
	int64_t time_ns; /* the same moment on CLOCK_MONOTONIC; 0: nobody has asked */
	struct frag_message **received;
	uint32_t received_count, received_capacity;
	struct frag_metadata *metadata;
	bool metadata_used; /* it may hold something, so it is cleared before the next tick */
	const struct frag_message *metadata_of; /* the message whose metadata it is, unchanged */
	int fault;   /* an emit found a full queue of policy fault: the tick fails with this code */
	int refused; /* what the last emit that failed returned, on which port, in which tick: for words */
	uint32_t refused_port;
	uint64_t refused_in;
};

/* A condition about the flows of one port. */
struct fragi_gate {
	struct fragi_rx **rx;
	struct fragi_tx **tx;
	uint32_t count;
	uint32_t min;                          /* messages, or room for them, on each flow */
	uint32_t max;                          /* in: not while more are waiting; 0: no such limit */
	const struct fragi_exec_port *in_turn; /* not NULL: the messages on all flows count together */
};

/* The same, flow by flow: for the usual look that finds nothing unusual. */
struct fragi_gate_in {
	const struct fragi_rx *rx;
	uint32_t min;
};
struct fragi_gate_out {
	const struct fragi_tx *tx;
	uint32_t min;
};

struct fragi_exec {
	struct frag_tick tick;
	/* constant while it runs */
	struct fragi_gate_in *flows_in;
	struct fragi_gate_out *flows_out;
	struct fragi_gate
		*turns; /* those of `in` whose flows are taken in turn, each content with one message */
	uint32_t flow_in_count, flow_out_count, turn_count;
	bool plain; /* no conditions but about ports */
	int (*compute)(void *self, struct frag_tick *tick);
	void *self; /* the operator's state */
	struct frag_op *op;
	struct fragi_op_row *row;
	struct fragi_sched *sched;
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
	uint32_t live_tx;     /* one of txs whose receiver still takes */
	int64_t begin_ns;     /* of the present or last tick, when timed */
	const char *callback; /* the one it is in, or was in last; NULL: none yet */
	int64_t until_ns;     /* when the last look said WAIT_TIME */
	struct fragi_exec *next;
	uint64_t peak; /* recent longest tick, in stamps, slowly forgotten; 0: not ticked yet */
	_Atomic bool timer_armed;
	bool dirty; /* greedy: to be looked at again */
	/* any thread */
	_Alignas(64) _Atomic bool stop_asked;
	_Atomic bool draining;  /* a sink without conditions about its inputs: it ends with them now */
	_Atomic bool remote;    /* greedy: dirty, told by another thread */
	_Atomic uint32_t state; /* event_based: FRAGI_QUEUED, FRAGI_RUNNING */
};

#define FRAGI_QUEUED 1u
#define FRAGI_RUNNING 2u

/*
 * Makes op's exec and binds it; sets op->exec. `notify` is told, with the exec, whenever something happens
 * that a condition may care about. Returns 0 or -ENOMEM.
 */
int fragi_exec_create(struct frag_op *op, const struct fragi_binding *bindings, struct fragi_op_row *row,
		      struct fragi_sched *sched, void (*notify)(void *exec));
void fragi_exec_destroy(struct frag_op *op); /* NULL exec is accepted */

/*
 * What the conditions say together. *out_until_ns is set with FRAGI_WAIT_TIME. Once it said FRAGI_NEVER the
 * scheduler calls fragi_exec_finish.
 */
enum fragi_ready fragi_exec_ready_all(struct fragi_exec *exec, int64_t *out_until_ns);

/* Whether a message waits on any of the flows. */
static inline bool fragi_gate_has_message(const struct fragi_gate *gate)
{
	uint32_t i = gate->in_turn->next;

	for (uint32_t n = gate->count; n > 0; n--) {
		if (fragi_rx_available(gate->rx[i]) > 0)
			return true;
		i = i + 1 < gate->count ? i + 1 : 0;
	}
	return false;
}

/*
 * The same answer, found shortly in the usual cases: no condition but about ports, nobody closed, nobody
 * stopped.
 */
static inline enum fragi_ready fragi_exec_ready(struct fragi_exec *exec, int64_t *out_until_ns)
{
	bool wait = false;

	if (!exec->plain || atomic_load_explicit(&exec->stop_asked, memory_order_acquire))
		return fragi_exec_ready_all(exec, out_until_ns);
	for (uint32_t i = 0; i < exec->flow_in_count; i++) {
		const struct fragi_gate_in *in = &exec->flows_in[i];

		if (fragi_rx_available(in->rx) >= in->min)
			continue;
		if (atomic_load_explicit(&in->rx->queue.sender_closed, memory_order_acquire))
			return fragi_exec_ready_all(exec, out_until_ns);
		wait = true;
	}
	for (uint32_t i = 0; i < exec->turn_count; i++)
		if (!fragi_gate_has_message(&exec->turns[i]))
			return fragi_exec_ready_all(exec, out_until_ns);
	for (uint32_t i = 0; i < exec->flow_out_count; i++) {
		const struct fragi_gate_out *out = &exec->flows_out[i];
		const struct fragi_tx *tx = out->tx;

		if (tx->queue != NULL ? fragi_queue_count(tx->queue) + out->min <= tx->queue->capacity
				      : tx->ops->room(tx) >= out->min)
			continue;
		if (atomic_load_explicit(&tx->receiver_done, memory_order_acquire))
			return fragi_exec_ready_all(exec, out_until_ns);
		wait = true;
	}
	if (exec->tx_count > 0 &&
	    atomic_load_explicit(&exec->txs[exec->live_tx]->receiver_done, memory_order_acquire))
		return fragi_exec_ready_all(exec, out_until_ns);
	return wait ? FRAGI_WAIT : FRAGI_READY;
}

/* Calls start. Returns 0 or the failure. */
int fragi_exec_start(struct fragi_exec *exec);
/* The sentence for a failure of "start" or "compute". Returns out. */
const char *fragi_exec_words(const struct fragi_exec *exec, const char *callback, int code, char *out,
			     size_t size);
/* Closes the outputs, in order, and the inputs, and calls stop if start succeeded. Once. stopped: it has not
 * ended by itself. */
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

/* Around a callback: who is in it, and since when. */
void fragi_exec_watch(struct fragi_exec *exec, const char *callback); /* has a watchdog */
static inline void fragi_exec_enter(struct fragi_exec *exec, struct fragi_current *current,
				    const char *callback)
{
	current->callback = callback;
	current->tick = exec->tick.number;
	/* Read by a signal handler of this thread. */
	atomic_signal_fence(memory_order_release);
	*(const struct frag_op *volatile *)&current->op = exec->op;
	if (__builtin_expect(exec->watchdog_ns > 0, 0))
		fragi_exec_watch(exec, callback);
	atomic_store_explicit(&exec->row->running, 1, memory_order_relaxed);
}

static inline void fragi_exec_leave(struct fragi_exec *exec, struct fragi_current *current)
{
	*(const struct frag_op *volatile *)&current->op = NULL;
	atomic_store_explicit(&exec->row->running, 0, memory_order_relaxed);
	if (exec->watchdog_ns > 0)
		atomic_store_explicit(&exec->row->running_since_ns, 0, memory_order_relaxed);
}

/* What a tick comes to that was not plainly right. */
int fragi_exec_odd_result(struct fragi_exec *exec, int r);

/*
 * One tick: compute, and what belongs around it. start is a stamp not long past; *out_end one taken after
 * compute. Returns 0, FRAG_DONE, or the failure (fragi_exec_words words it).
 */
static inline int fragi_exec_tick(struct fragi_exec *exec, struct fragi_current *current, uint64_t start,
				  uint64_t *out_end)
{
	struct frag_tick *tick = &exec->tick;
	struct fragi_op_row *row = exec->row;
	uint64_t end, length;
	int r;

	tick->stamp = start;
	tick->time_ns = 0;
	tick->number++;
	atomic_store_explicit(&row->ticks, tick->number, memory_order_relaxed);
	fragi_exec_enter(exec, current, "compute");
	r = exec->compute(exec->self, tick);
	fragi_exec_leave(exec, current);
	end = fragi_stamp();
	*out_end = end;
	length = end - start;
	fragi_hist_add(&row->compute, fragi_stamp_diff_ns(start, end));
	exec->peak = length >= exec->peak ? length : exec->peak - (exec->peak >> 4);
	fragi_tick_end(tick);
	for (uint32_t i = 0; i < exec->other_count; i++)
		if (exec->others[i]->type->ticked != NULL)
			exec->others[i]->type->ticked(exec->others[i], exec->begin_ns);
	if (__builtin_expect((r | tick->fault | exec->op->err.code) == 0, 1))
		return 0;
	return fragi_exec_odd_result(exec, r);
}

#endif
