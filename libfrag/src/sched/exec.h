/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_EXEC_H
#define FRAGI_SCHED_EXEC_H

#include <base/stamp.h>
#include <sched/around.h>
#include <sched/sched.h>

/*
 * An exec is what a scheduler keeps of one operator: its ports bound to the ends of flows, its
 * conditions flattened into gates, and the tick that is passed to compute. tick.c holds the
 * functions that operators call inside a tick, exec.c those that schedulers call around a tick. One
 * thread at a time works on an exec.
 */

/* The most messages that one tick may receive: they are held until it ends. */
#define FRAGI_RECEIVED_MAX 65536u

struct fragi_exec_port {
	/* of an input with one flow, or in_turn: the flow that is tried first; else NULL */
	struct fragi_rx *next_rx;
	/* of an output of values with one flow, inside the process: its end; else NULL */
	struct fragi_tx *only_tx;
	const struct frag_type *type; /* of the value; NULL: any message, or a tensor */
	struct fragi_rx **rx;
	struct fragi_tx **tx;
	const struct frag_message **all; /* the array of receive_all, with `count` elements */
	uint32_t count;                  /* flows */
	enum frag_dir dir;
	bool tensor;
	bool in_turn; /* a plain input with several flows: their messages are taken in turn */
	/* of an input with timing, whose flows are there, so that count is 0; else NULL */
	struct fragi_timed_port *timed;
};

/* metadata may hold keys: it is cleared when the tick ends */
#define FRAGI_ATTACH_METADATA 1u
/* something goes around each message (around.h); never cleared */
#define FRAGI_ATTACH_ALWAYS 2u
/* a tap goes around each message, for as long as there is one */
#define FRAGI_ATTACH_TAP 4u

struct frag_tick {
	struct frag_op *op;
	struct fragi_exec_port *ports;
	uint32_t port_count;
	uint8_t attaches; /* FRAGI_ATTACH_*: what an emit gives its message */
	uint64_t number;  /* from 1 */
	struct frag_message **received;
	uint32_t received_count, received_capacity;
	uint64_t stamp; /* its begin, which is also the receive time of its messages */
	struct frag_metadata *metadata;
	const struct frag_message *metadata_of; /* the message whose metadata it is, unchanged */
	/* called by an emit if `attaches` is not 0: fragi_tick_attach, or what goes around it */
	struct frag_message *(*attach)(struct frag_tick *tick, uint32_t port,
				       struct frag_message *message);
	int64_t time_ns; /* its begin on the fragment's clock; 0: not computed yet */
	int fault; /* an emit found a full queue of policy fault: the tick fails with this code */
	/* the code of the last emit that failed, its port and its tick, for the sentence */
	int refused;
	uint32_t refused_port;
	uint64_t refused_in;
};

/* A gate: message_available or downstream_affordable of one port. */
struct fragi_gate {
	struct fragi_rx **rx;
	struct fragi_tx **tx;
	uint32_t count;
	uint32_t min; /* messages, or room for messages, on each flow */
	uint32_t max; /* of an input: WAIT while a flow has more messages; 0: no limit */
	/* not NULL: the messages of all flows count together */
	const struct fragi_exec_port *in_turn;
};

/* The inputs with timing: timing.c. */
struct fragi_timing_state;

/* A condition that is no gate, or a term of a combination: check.c. */
struct fragi_check;

/*
 * The gate of one flow inside this process, in the form that the fast check reads: one index of the
 * queue must be ahead of the other by `least`. For messages the tail must be ahead of the head. For
 * room the head must be ahead of the tail by a negative number, because the tail may be ahead by
 * the capacity.
 */
struct fragi_distance {
	/* `behind` is read first: a change in between can only make the distance look smaller */
	const _Atomic uint64_t *ahead, *behind;
	int64_t least;
	const _Atomic bool *closed; /* set by the other end */
};

/* outdated.c: of the live frames that an operator has got */
struct fragi_outdated {
	int64_t best_ns; /* the age of the freshest one */
	bool has_best, is_logged;
};

struct fragi_exec {
	struct frag_tick tick;
	/* the operator's compute, or that of what goes around it */
	int (*compute)(void *self, struct frag_tick *tick);
	/* constant while the operator runs */
	struct fragi_flow_control *flow_control; /* NULL: no execution flows, no dynamic ones */
	void *self;                              /* the operator's state */
	struct frag_op *op;
	struct fragi_op_row *row;
	struct fragi_sched *sched;
	struct frag_clock *clock; /* the fragment's; its conditions wait by it */
	struct fragi_distance *distances, *distances_end;
	/*
	 * The gates that are not a distance: inputs whose flows are taken in turn, which must have
	 * one message, and ends of flows to other hosts, which must have room for one.
	 */
	const struct fragi_exec_port **turns, **turns_end;
	const struct fragi_tx **rooms, **rooms_end;
	bool has_more_gates; /* turns or rooms is not empty */
	bool is_never_fast;  /* needs_full_check is always set */
	bool repeats; /* right after a tick it may be ready again: no gate needs a whole queue */
	bool watches_ticks;    /* fragi_exec_tick_begins and _ended are called around each tick */
	bool waits_for_inputs; /* a condition is about an input */
	bool timed;            /* a condition needs the time */
	bool sink;             /* it ends with its inputs, whatever its conditions say */
	bool is_free_in_cycle; /* it is in a cycle, and waits for no message */
	struct fragi_gate *in, *out; /* one array: those of inputs come first */
	uint32_t in_count, out_count;
	struct fragi_check *checks; /* of all conditions that are more than a gate (check.c) */
	uint32_t check_count;
	/* around.c: the entries that are wanted, a bit each */
	uint16_t around_ticks, around_emits;
	struct fragi_timing_state *timing; /* NULL: no input has timing */
	uint64_t deadline_begin;           /* stamp: since when its deadline counts */
	struct fragi_outdated outdated;
	struct fragi_tx **txs; /* of all outputs, port by port */
	uint32_t tx_count;
	uint32_t receiver_count; /* the first of txs, which lead to the receivers that count */
	struct fragi_rx **rxs;
	uint32_t rx_count;
	/* used by the thread that works on it */
	bool started, done, failed;
	bool awaits_outside;  /* a condition waits for an event from outside (check.c) */
	bool pending;         /* a tick is pending (pending.c) */
	bool missed_deadline; /* and therefore it has failed */
	bool has_timer;       /* event_based, in a pool: it is in its crew's list of timers */
	_Atomic bool timer_armed;
	uint8_t parks; /* event_based: after so many ticks it waits for notifications (PARKS) */
	int64_t pending_time_ns; /* its begin */
	uint64_t busy_ns;        /* how long its calls of compute took */
	int64_t watchdog_ns;
	/* receiver_done of an output whose receiver still took messages; without outputs: false */
	const _Atomic bool *receiver_done;
	int64_t begin_ns; /* of the current or last tick, when timed */
	/* the callback that runs or ran last; any thread reads it */
	_Atomic(enum fragi_call_kind) callback;
	int result;         /* of the latest call of compute */
	int64_t until_ns;   /* of the last answer WAIT_TIME */
	uint64_t last_tick; /* its number, once all receivers have ended; else 0 */
	int64_t poll_ns;    /* between two checks of a condition that is polled */
	/* control thread, while callbacks are limited: the call that it saw last, and since when */
	uint64_t seen_call;
	int64_t seen_since_ns;
	struct fragi_exec *next;
	uint64_t order; /* of operators in the queues: a later one has a greater number */
	/*
	 * How long the next tick will take by the recent ones, in stamps; 0: there was none.
	 * event_based: their mean; greedy: the last long one.
	 */
	uint64_t expected;
	uint64_t long_from; /* event_based: it is long if it is expected to take so long */
	/* event_based, in a pool: the next one in that list */
	struct fragi_exec *next_timer;
	uint64_t *mark, mark_bit; /* greedy: the bit that asks for a visit */
	struct fragi_tap *taps;

	/* used by any thread */
	/* the fast check is not enough: other conditions, a stop, a halt, or done */
	_Alignas(64) _Atomic bool needs_full_check;
	_Atomic bool stop_asked;
	_Atomic bool resumed;             /* frag_op_resume was called */
	_Atomic(struct fragi_set *) sets; /* changes of parameters, the newest first (dynamic.c) */
	_Atomic uint32_t sets_waiting;
	_Atomic(struct fragi_tap *) taps_wanted; /* and not taken yet (tap.c) */
	_Atomic bool taps_change; /* some are wanted, or end; or the trace begins, or ends */
	_Atomic(struct fragi_exec_trace *) trace; /* trace.c; NULL: there was none yet */
	/* the application drains: a sink whose inputs have no conditions ends with its inputs */
	_Atomic bool draining;
	_Atomic bool remote;    /* greedy: another thread asks for a visit */
	_Atomic uint32_t state; /* event_based: FRAGI_QUEUED, FRAGI_RUNNING */
};

/* Whether a tick whose compute has returned r goes on later: it does not end now. */
static inline bool fragi_tick_goes_on(const struct frag_tick *tick, int r)
{
	return r == FRAG_PENDING && tick->fault == 0;
}

#define FRAGI_QUEUED 1u
#define FRAGI_RUNNING 2u

/*
 * Creates the exec of an operator, binds it to its flows and sets op->exec.
 * - bindings: [port index]
 * - notify: called with the exec whenever something happens that may change a condition
 * Returns 0 or -ENOMEM.
 */
int fragi_exec_create(struct frag_op *op, const struct fragi_binding *bindings,
		      struct fragi_op_row *row, struct fragi_sched *sched,
		      void (*notify)(void *exec));
/* Destroys op->exec, which may be NULL. */
void fragi_exec_destroy(struct frag_op *op);

/*
 * Evaluates all conditions. With FRAG_WAIT_TIME, exec->until_ns is the time. After FRAG_NEVER the
 * scheduler calls fragi_exec_finish.
 */
enum frag_ready fragi_exec_ready_all(struct fragi_exec *exec);
/* Evaluates one gate. An input answers FRAG_NEVER when no message can come any more. */
enum frag_ready fragi_gate_ready(const struct fragi_gate *gate);
/* The gate of a port. */
struct fragi_gate fragi_gate_of(const struct fragi_exec *exec, uint32_t port, uint32_t min,
				uint32_t max);

/* Makes the checks of the operator's conditions. Returns 0 or -ENOMEM. */
int fragi_checks_create(struct fragi_exec *exec, void (*notify)(void *exec));
void fragi_checks_destroy(struct fragi_exec *exec);
/* Evaluates them. out_until_ns: with FRAG_WAIT_TIME, the time. */
enum frag_ready fragi_checks_ready(struct fragi_exec *exec, int64_t *out_until_ns);
/* Calls ticked of the conditions. */
void fragi_checks_ticked(struct fragi_exec *exec);
/* Whether a condition memory_available has too little. Thread: any. */
bool fragi_checks_lack_memory(const struct fragi_exec *exec);
/* The operator waits for nothing from outside any more. */
void fragi_checks_end(struct fragi_exec *exec);
/* Calls start of the conditions. Returns 0, or the failure, which is worded in the operator. */
int fragi_checks_start(struct fragi_exec *exec);
void fragi_checks_stop(struct fragi_exec *exec);

/*
 * timing.c. Takes the flows of inputs with timing from their ports. Returns 0 or -ENOMEM; does
 * nothing where there are none.
 */
int fragi_timing_create(struct fragi_exec *exec);
void fragi_timing_destroy(struct fragi_exec *exec);
/* Whether an input with timing may wait: it does more than reading the newest message again. */
bool fragi_timing_waits(const struct fragi_exec *exec);
/*
 * Chooses the messages of a tick.
 * - others: what gates and conditions answer: with READY a tick that is to be skipped is
 * Returns what inputs and others answer together; with FRAG_WAIT_TIME *out_until_ns is the time.
 */
enum frag_ready fragi_timing_ready(struct fragi_exec *exec, enum frag_ready others,
				   int64_t *out_until_ns);
/* The tick that was chosen begins: counts what it goes without. */
void fragi_timing_begins(struct fragi_exec *exec);
/* The operator has ended: drops what is held. */
void fragi_timing_end(struct fragi_exec *exec, bool stopped);
/* Gives the tick what was chosen, as frag_tick_receive and frag_tick_receive_all do. */
int fragi_timing_receive(struct frag_tick *tick, struct fragi_timed_port *port,
			 const struct frag_message **out_message);
int fragi_timing_receive_all(struct frag_tick *tick, struct fragi_timed_port *port,
			     const struct frag_message **all);
/*
 * Finds when a message was acquired, on CLOCK_MONOTONIC of this machine; now_ns: of that clock.
 * Returns false: it has no such time.
 */
bool fragi_acquired_ns(const struct frag_message *message, int64_t now_ns, int64_t *out_ns);

/* stream.c: the operator has ended, so the work of its stream is waited for. */
void fragi_stream_end(struct fragi_exec *exec);
/*
 * The tensors of a received message may not be written yet: makes the operator's stream wait, or,
 * where it has none, the CPU. Returns 0, or the failure, which is worded in the operator.
 */
int fragi_stream_receive(struct frag_tick *tick, const struct frag_message *message);

/* deadline.c: the tick fails, because `what` took longer than a deadline allows. Returns -ETIME. */
int fragi_deadline_fail(struct frag_tick *tick, int64_t took_ns, int64_t budget_ns,
			const char *what);
/* tick.c: keeps a message until the tick ends, and merges its metadata. Takes it in any case. */
int fragi_tick_keep(struct frag_tick *tick, struct frag_message *message,
		    const struct frag_message **out_message);

/* Returns whether any flow of the input has a message. */
bool fragi_exec_port_has_message(const struct fragi_exec_port *in);
/* Returns the same answer; the usual cases are decided inline, without a call. */
static inline __attribute__((always_inline)) enum frag_ready
fragi_exec_ready(struct fragi_exec *exec)
{
	enum frag_ready ready = FRAG_READY;

	if (__builtin_expect(
		    atomic_load_explicit(&exec->needs_full_check, memory_order_acquire) ||
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
		ready = FRAG_WAIT;
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

/* Ends the operator at its next evaluation. Thread: any. */
void fragi_exec_request_stop(struct fragi_exec *exec);

/*
 * Changes a dynamic parameter before the next tick (dynamic.c). Returns 0; -EINVAL: it cannot be
 * changed, or not to this value; -EAGAIN: the operator does not run yet; -ESRCH: it has ended;
 * -EBUSY: too many changes wait; -ENOMEM. Thread: any.
 * - who: has asked for it, for the log
 */
int fragi_exec_set(struct frag_op *op, const char *name, const char *value, const char *who,
		   struct frag_err *err);
/* Between two ticks, on the thread that works on the exec. */
void fragi_exec_apply_sets(struct fragi_exec *exec);
void fragi_exec_free_sets(struct fragi_exec *exec);

/*
 * flow_control.c: prepares execution and dynamic flows, if the operator has any, once its gates are
 * known. Returns 0 or -ENOMEM.
 */
int fragi_flow_control_create(struct fragi_exec *exec, const struct fragi_binding *bindings);
void fragi_flow_control_destroy(struct fragi_exec *exec);
/* Keeps a message of a dynamic output until its flows are chosen. Takes it. */
int fragi_flow_control_keep(struct fragi_flow_control *control, uint32_t port,
			    struct frag_message *message);
/* tick.c: sends a message on some flows of an output, as frag_tick_emit does after all checks. */
int fragi_tick_send(struct frag_tick *tick, uint32_t port, struct fragi_tx *const *txs,
		    uint32_t count, struct frag_message *message);

/* Calls start. Returns 0 or its failure. */
int fragi_exec_start(struct fragi_exec *exec);
/* What a failure of start or compute is, for the code that it returned. */
enum fragi_failure fragi_exec_failure(const struct fragi_exec *exec, enum fragi_call_kind callback,
				      int code);
/* Writes the sentence for a failure of start or compute into out. Returns out. */
const char *fragi_exec_failure_text(const struct fragi_exec *exec, enum fragi_call_kind callback,
				    int code, char *out, size_t size);
/*
 * Ends the operator: closes the outputs in order, closes the inputs, and calls stop if start
 * succeeded. A second call does nothing.
 * - stopped: the operator did not end by itself
 * Returns 0, or the failure of stop, which fragi_exec_failure_text words.
 */
int fragi_exec_finish(struct fragi_exec *exec, bool stopped);
/*
 * Gives a message the tick's metadata; the content is shared until one side writes. Takes the
 * message and returns it, or a copy of it when others hold it. A forwarded message that carries
 * exactly this metadata is returned as it is, so forwarding does not copy. Returns NULL when memory
 * is short.
 */
struct frag_message *fragi_tick_attach(struct frag_tick *tick, uint32_t port,
				       struct frag_message *message);
/* Clears the tick's metadata. */
void fragi_tick_clear_metadata(struct frag_tick *tick);
/* Drops the messages that the tick received, and clears its metadata. */
static inline void fragi_tick_end(struct frag_tick *tick)
{
	while (tick->received_count > 0)
		fragi_message_unref(tick->received[--tick->received_count]);
	if (__builtin_expect((tick->attaches & FRAGI_ATTACH_METADATA) != 0, 0))
		fragi_tick_clear_metadata(tick);
}

/* call.c: calls a callback, and records for crash reports and the watchdog that it runs. */
int fragi_exec_call(struct fragi_exec *exec, enum fragi_call_kind kind,
		    int (*callback)(void *self, struct frag_op *op));
/* Returns the record of what the calling thread runs, prepared for ticks. */
struct fragi_current *fragi_exec_current(void);
/*
 * Called before and after each tick of an operator with watches_ticks. has_failed: the tick did not
 * end well; else what the operator saves is saved.
 */
void fragi_exec_tick_begins(struct fragi_exec *exec);
void fragi_exec_tick_ended(struct fragi_exec *exec, bool has_failed);

/* Decides the result of a tick when compute did not simply return 0. Returns as fragi_exec_tick. */
int fragi_exec_unexpected_result(struct fragi_exec *exec, int r);
/*
 * Called after a call of compute that did not simply return 0, or was not the tick's first: the
 * tick becomes pending, or ends. Returns as fragi_exec_tick.
 * - lasted_ns: how long the call took
 */
int fragi_exec_unusual_end(struct fragi_exec *exec, int r, uint64_t lasted_ns);
/* Gives up a pending tick, if there is one: the operator has ended. */
void fragi_exec_give_up_pending(struct fragi_exec *exec);

/*
 * Runs one tick: compute, and the accounting around it.
 * - start: a recent stamp, which becomes the begin of the tick
 * - out_end: receives a stamp that was taken after compute
 * Returns 0, also when the tick is pending; FRAG_DONE; or the failure, which
 * fragi_exec_failure_text words.
 */
static inline __attribute__((always_inline)) int fragi_exec_tick(struct fragi_exec *exec,
								 struct fragi_current *current,
								 uint64_t start, uint64_t *out_end)
{
	struct frag_tick *tick = &exec->tick;
	struct fragi_op_row *row = exec->row;
	uint64_t end;
	int r;

	tick->stamp = start;
	tick->time_ns = 0;
	tick->number++;
	/* A crash report tells by this that the operator was in compute: ticks exceed computes. */
	atomic_store_explicit(&row->ticks, tick->number, memory_order_relaxed);
	if (__builtin_expect(exec->watches_ticks, 0))
		fragi_exec_tick_begins(exec);
	/* A signal handler of this thread reads it, and alive.c when the thread has died. */
	__atomic_store_n(&current->op, exec->op, __ATOMIC_RELAXED);
	r = exec->compute(exec->self, tick);
	__atomic_store_n(&current->op, NULL, __ATOMIC_RELAXED);
	end = fragi_stamp();
	*out_end = end;
	if (__builtin_expect((r | exec->op->failed.code) != 0, 0))
		return fragi_exec_unusual_end(exec, r, fragi_stamp_diff_ns(start, end));
	fragi_hist_add(&row->compute, fragi_stamp_diff_ns(start, end));
	fragi_tick_end(tick);
	if (__builtin_expect(exec->watches_ticks, 0))
		fragi_exec_tick_ended(exec, false);
	return 0;
}

/* outdated.c: a message with this metadata is received. */
FRAGI_API void fragi_exec_judge_age(struct fragi_exec *exec, const struct frag_metadata *metadata);

#endif
