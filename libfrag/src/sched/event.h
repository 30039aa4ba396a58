/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_EVENT_H
#define FRAGI_SCHED_EVENT_H

#include <base/lock.h>
#include <sched/kind.h>

/*
 * The event-based scheduler. event_based.c holds the threads while they work, event_wait.c while
 * they wait. event_based.c explains the whole.
 */

/* Another thread is woken when queued operators would have to wait longer than this. */
#define WAKE_NS 40000
/* Another thread is woken when the queue was not empty for LASTING_NS and holds this much work. */
#define LASTING_NS 100000
#define LASTING_BACKLOG_NS 4000
/* Before a tick that is predicted to take longer, another thread must watch timers and the pump. */
#define LONG_TICK_NS 200000
/* One operator ticks for this long at most before the operators that it made ready. */
#define BATCH_NS 2000
/*
 * While other threads work, an idle thread wakes by itself after this time, which starts at the
 * lower bound and doubles up to the upper one.
 */
#define RECHECK_MIN_NS 1000000
#define RECHECK_MAX_NS 8000000
/*
 * A thread runs at most so many operators in a row that it has made ready itself, while others are
 * queued.
 */
#define STREAK_MAX 16u
#define THREADS_MAX 1024u

struct event_thread {
	struct fragi_sched_thread here; /* first */
	pthread_t pthread;
	bool created;
	/* inside a tick: operators that it notifies are collected in held */
	bool holding;
	struct fragi_exec *held, **held_end;
	/* runs before anything in the queue */
	struct fragi_exec *next;
	/* operators in a row that came from `next` while others were queued */
	uint32_t streak;
	/* counters for the log */
	uint64_t turns, sleeps;
	int64_t recheck_ns;
	/* CLOCK_MONOTONIC at base_stamp */
	int64_t base_ns;
	uint64_t base_stamp;
};

struct event {
	struct fragi_sched base;
	struct event_thread *threads;
	uint32_t thread_count;
	/* the limits above, in stamps */
	uint64_t wake_stamps, lasting_stamps, lasting_backlog_stamps, long_stamps, hint_stamps,
		batch_stamps;
	struct fragi_lock lock;
	/*
	 * These three are written under the lock and read without it: the length of the queue; the
	 * earliest time that an operator waits for; whether a thread was woken and has not looked
	 * at the queue yet.
	 */
	_Atomic uint32_t queued;
	_Atomic int64_t timer_ns;
	_Atomic bool waking;
	_Atomic bool ending;
	/* threads that still run; the last one ends the scheduler */
	_Atomic uint32_t leaving;

	/* Guarded by the lock. The atomic ones may be read without it, as a hint. */
	struct fragi_exec *head, **tail;
	/* sum of the peaks of all queued operators, in stamps */
	_Atomic uint64_t backlog;
	/* stamp since which the queue was not empty; 0: nobody has looked yet */
	_Atomic uint64_t waits_since;
	/* how many times an operator was queued */
	uint64_t rounds;
	/* idle threads, and those of them that sleep on `park` */
	_Atomic uint32_t idle;
	uint32_t parked;
	/* an idle thread waits in the pump */
	_Atomic bool in_pump;
	bool operators_started;
	/* the time at which an idle thread will wake by itself; INT64_MAX: none will */
	_Atomic int64_t covers_ns;
	/* futex */
	_Atomic uint32_t park;
};

/* An idle thread to wake: none, one that sleeps on `park`, or the one in the pump. */
enum wake_target { WAKE_NOBODY, WAKE_PARKED, WAKE_PUMP };

/* Predicts how long the operator's next tick will take, in stamps. */
static inline uint64_t event_peak(const struct fragi_exec *exec)
{
	return exec->peak == 0 ? 1000000 : exec->peak;
}

/* The queue. The caller holds the lock. */

static inline void event_count(_Atomic uint32_t *counter, uint32_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void event_push_locked(struct event *event, struct fragi_exec *exec)
{
	exec->next = NULL;
	*event->tail = exec;
	event->tail = &exec->next;
	atomic_store_explicit(&event->backlog,
			      atomic_load_explicit(&event->backlog, memory_order_relaxed) +
				      event_peak(exec),
			      memory_order_relaxed);
	event->rounds++;
	event_count(&event->queued, 1);
}

static inline struct fragi_exec *event_pop_locked(struct event *event)
{
	struct fragi_exec *exec = event->head;
	uint64_t backlog;

	if (exec == NULL)
		return NULL;
	event->head = exec->next;
	if (event->head == NULL)
		event->tail = &event->head;
	event_count(&event->queued, (uint32_t)-1);
	backlog = atomic_load_explicit(&event->backlog, memory_order_relaxed);
	if (event->head == NULL) {
		backlog = 0;
		atomic_store_explicit(&event->waits_since, 0, memory_order_relaxed);
	} else {
		backlog = backlog > event_peak(exec) ? backlog - event_peak(exec) : 0;
	}
	atomic_store_explicit(&event->backlog, backlog, memory_order_relaxed);
	return exec;
}

/* Chooses an idle thread; the caller wakes it with fragi_event_wake once the lock is free. */
enum wake_target fragi_event_choose_idle_locked(struct event *event);
void fragi_event_wake(struct event *event, enum wake_target target);
/* Makes all threads leave: wakes those that wait, and none waits again. */
void fragi_event_end(struct event *event);
/* Reports that all operators were started, and waits for that. */
void fragi_event_operators_started(struct event *event);
void fragi_event_wait_for_start(struct event *event);

/* Arms the operator's timer at exec->until_ns, and disarms it. */
void fragi_event_timer_arm(struct event *event, struct fragi_exec *exec);
void fragi_event_timer_disarm(struct event *event, struct fragi_exec *exec);
/* Queues the operators whose timer is due. */
void fragi_event_timers_fire(struct event *event, int64_t now_ns);

/* Returns whether every thread is idle, nothing is queued and no timer is armed. */
bool fragi_event_at_rest_locked(const struct event *event);
/* Waits until there may be work. */
void fragi_event_idle(struct event *event, struct event_thread *thread);

#endif
