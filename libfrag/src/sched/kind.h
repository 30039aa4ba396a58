/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_KIND_H
#define FRAGI_SCHED_KIND_H

#include <pthread.h>

#include <sched/exec.h>

/* What both schedulers are made of; each adds its own after it. */
struct fragi_sched_kind {
	const char *name;
	int (*create)(const struct fragi_sched_config *config, struct fragi_sched **out_sched);
	int (*start)(struct fragi_sched *sched, struct frag_err *err);
	void (*wake)(struct fragi_sched *sched); /* all threads: a flag below has changed */
	void (*join)(struct fragi_sched *sched);
	bool (*at_rest)(struct fragi_sched *sched, uint64_t *out_rounds);
	void (*look)(struct fragi_sched *sched, int64_t now_ns);
	void (*destroy)(struct fragi_sched *sched);
	void (*notify)(void *exec);
};
extern const struct fragi_sched_kind fragi_sched_greedy, fragi_sched_event_based;

struct fragi_sched {
	const struct fragi_sched_kind *kind;
	struct fragi_sched_config config;
	struct fragi_exec **execs; /* in topological order */
	uint32_t count;
	bool started;
	_Atomic uint32_t live; /* operators not done */
	_Atomic bool halting;  /* no tick begins any more */
	_Atomic bool has_failed;
	_Atomic bool has_stopped; /* frag_fragment_stop_execution was told on */
};

/* A thread of a scheduler, while it is inside one. */
struct fragi_sched_thread {
	struct fragi_sched *sched;
	struct fragi_current *current;
	uint64_t stamp;       /* latest */
	uint64_t pump_stamp;  /* of its latest progress of the pump */
	uint64_t turn_stamps; /* FRAGI_PUMP_TURN_NS */
};
/* So many nanoseconds in stamps. */
uint64_t fragi_sched_stamps(uint64_t ns);

extern __thread struct fragi_sched_thread *fragi_sched_here
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Creates a thread named after the fragment, with signals blocked but for those of its own faults,
 * on the cores that the spec asks for. Returns 0 or a negative errno with a sentence.
 */
int fragi_sched_thread_create(struct fragi_sched *sched, void *(*main)(void *arg), void *arg,
			      pthread_t *out_thread, struct frag_err *err);
/* Cores this process may use. */
uint32_t fragi_sched_cores(void);

/*
 * First thread: calls start of every operator in order. Returns 0 or the failure, which has been
 * told.
 */
int fragi_sched_start_ops(struct fragi_sched *sched);
/* Last thread: finishes what is not done. */
void fragi_sched_finish_ops(struct fragi_sched *sched);
/* An operator is done. Returns true when it was the last one. */
bool fragi_sched_finish_op(struct fragi_sched *sched, struct fragi_exec *exec);
/* Tells of the first failure and halts. */
void fragi_sched_fail(struct fragi_sched *sched, struct fragi_exec *exec, const char *callback,
		      int code);

/* After so much work without it, a thread gives the pump a turn. */
#define FRAGI_PUMP_TURN_NS 50000
static inline void fragi_sched_pump_turn(struct fragi_sched_thread *thread, struct fragi_pump *pump)
{
	if (__builtin_expect(thread->stamp - thread->pump_stamp < thread->turn_stamps, 1))
		return;
	fragi_pump_progress(pump);
	thread->pump_stamp = thread->stamp = fragi_stamp();
}

/* From this length on a tick should not be the pump's only driver's. */
#define FRAGI_HINT_NS 1000000

#endif
