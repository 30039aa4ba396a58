/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_KIND_H
#define FRAGI_SCHED_KIND_H

#include <pthread.h>

#include <sched/exec.h>

/* The table of a scheduler kind, and the part that both kinds share. */
struct fragi_sched_kind {
	const char *name;
	int (*create)(const struct fragi_sched_config *config, struct fragi_sched **out_sched);
	int (*start)(struct fragi_sched *sched, struct frag_err *err);
	/* Wakes all threads, because `halting` was set. */
	void (*wake)(struct fragi_sched *sched);
	void (*join)(struct fragi_sched *sched);
	bool (*at_rest)(struct fragi_sched *sched, uint64_t *out_rounds);
	void (*wake_stalled)(struct fragi_sched *sched, int64_t now_ns);
	void (*destroy)(struct fragi_sched *sched);
	void (*notify)(void *exec); /* of any operator */
	/* Returns the function that notifies this operator; NULL: notify does for all. */
	void (*(*notifier)(const struct frag_op *op))(void *exec);
	/* An operator was made: before any thread of any scheduler can notify it. May be NULL. */
	void (*made)(struct fragi_sched *sched, struct fragi_exec *exec);
};
extern const struct fragi_sched_kind fragi_sched_greedy, fragi_sched_event_based;

struct fragi_sched {
	const struct fragi_sched_kind *kind;
	struct fragi_sched_config config;
	struct fragi_exec **execs; /* in topological order */
	uint32_t count;
	bool started;
	_Atomic uint32_t live;    /* operators not done */
	_Atomic uint32_t pending; /* ticks that are pending: the fragment does not rest */
	_Atomic bool halting;     /* no further tick may begin */
	_Atomic bool has_failed;
	_Atomic bool has_stopped;        /* config.stopped was called */
	int64_t limit_ns;                /* of fragi_sched_limit_calls; 0: none */
	struct fragi_sched_alive *alive; /* its threads; under the lock of alive.c */
};

/* A thread of a scheduler; the first member of each kind's own struct. */
struct fragi_sched_thread {
	struct fragi_sched *sched;
	struct fragi_current *current;
	uint64_t stamp;       /* the latest one that it read */
	uint64_t pump_stamp;  /* when it last drove the pump */
	uint64_t turn_stamps; /* FRAGI_PUMP_TURN_NS */
};
/* Converts nanoseconds to stamps. */
uint64_t fragi_sched_stamps(uint64_t ns);

/* The calling thread, when it is one of a scheduler; else NULL. */
extern __thread struct fragi_sched_thread *fragi_sched_here
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Cores that a thread may run on; none: all. subject: of messages about them. */
struct fragi_sched_cores {
	const char *subject;
	const uint32_t *items;
	size_t count;
};
/* Those that the graph asks for under `scheduler`. */
struct fragi_sched_cores fragi_sched_own_cores(const struct fragi_sched *sched);
/*
 * Creates a thread. All signals are blocked except those of faults. Returns 0 or a negative errno
 * with a sentence.
 */
int fragi_sched_thread_create(struct fragi_sched *sched, const struct fragi_sched_cores *cores,
			      void *(*main)(void *arg), void *arg, pthread_t *out_thread,
			      struct frag_err *err);
/*
 * On the new thread: makes it one of the scheduler, with the fragment's name. A thread that names
 * itself needs no file of /proc: that would cost as much as the thread does, and again when the
 * process ends.
 */
void fragi_sched_thread_begin(struct fragi_sched_thread *thread);
/* An entry on the stack of a thread, from its begin to its end: whoever looks sees it end. */
struct fragi_sched_alive {
	struct fragi_sched_alive *next;
	struct fragi_sched *sched;
	int tid;
	const struct fragi_current *current;
};
void fragi_sched_alive_begin(struct fragi_sched *sched, struct fragi_sched_alive *alive);
void fragi_sched_alive_end(struct fragi_sched_alive *alive);
/* The cleanup handler of such a thread: an operator has ended it. arg: its entry. */
void fragi_sched_thread_lost(void *arg);
/* Returns the number of cores that this process may use. */
uint32_t fragi_sched_cores(void);

/*
 * Called by the first thread: calls start of every operator in order. Returns 0 or the failure,
 * which was reported.
 */
int fragi_sched_start_ops(struct fragi_sched *sched);
/* Called by the last thread: ends the operators that have not ended. */
void fragi_sched_finish_ops(struct fragi_sched *sched);
/* Ends one operator. Returns true when it was the last one. */
bool fragi_sched_finish_op(struct fragi_sched *sched, struct fragi_exec *exec);
/* Reports the first failure and halts. */
void fragi_sched_fail(struct fragi_sched *sched, struct fragi_exec *exec,
		      enum fragi_call_kind callback, int code);

/* A thread that has worked for this long drives the pump once. */
#define FRAGI_PUMP_TURN_NS 50000
static inline void fragi_sched_pump_turn(struct fragi_sched_thread *thread, struct fragi_pump *pump)
{
	if (__builtin_expect(thread->stamp - thread->pump_stamp < thread->turn_stamps, 1))
		return;
	fragi_pump_progress(pump);
	thread->pump_stamp = thread->stamp = fragi_stamp();
}

/* Before a tick that takes longer than this, another thread should take over the pump. */
#define FRAGI_HINT_NS 1000000

#endif
