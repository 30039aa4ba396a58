/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_EVENT_H
#define FRAGI_SCHED_EVENT_H

#include <base/lock.h>
#include <sched/kind.h>

/* The event-based scheduler: event_based.c is its threads at work, event_wait.c those that wait. */
#define WAKE_NS 40000           /* let other work wait for so long before waking a thread for it */
#define LASTING_NS 100000       /* a queue that has not been empty for so long ... */
#define LASTING_BACKLOG_NS 4000 /* ... and holds so much is worth a thread more */
/* predicted longer than this: see that somebody minds timers and the pump */
#define LONG_TICK_NS 200000
#define BATCH_NS 2000 /* ticks of one operator in a row before what they made ready */
#define RECHECK_MIN_NS 1000000
#define RECHECK_MAX_NS 8000000
#define STREAK_MAX 16u /* operators that go on at once while others wait in the queue */
#define THREADS_MAX 1024u

struct worker {
	struct fragi_sched_thread here; /* first */
	pthread_t thread;
	bool created;
	bool holding; /* inside a tick: notifications are held */
	struct fragi_exec *held, **held_end;
	struct fragi_exec *next; /* to run before anything of the queue */
	uint32_t streak;
	uint64_t turns, sleeps; /* for the log */
	int64_t recheck_ns;
	int64_t base_ns; /* CLOCK_MONOTONIC at base_stamp */
	uint64_t base_stamp;
};

struct event {
	struct fragi_sched base;
	struct worker *workers;
	uint32_t worker_count;
	uint64_t wake_stamps, lasting_stamps, lasting_backlog_stamps, long_stamps, hint_stamps,
		batch_stamps; /* the limits above, in stamps */
	struct fragi_lock lock;
	_Atomic uint32_t queued;  /* length of the queue; written under the lock */
	_Atomic int64_t timer_ns; /* the earliest time somebody waits for; written under the lock */
	_Atomic bool
		waking; /* an idle thread has been woken and has not looked yet; written under the lock */
	_Atomic bool ending;
	_Atomic uint32_t leaving; /* threads that have not left yet */
	/* written under the lock; what is atomic may be read without */
	struct fragi_exec *head, **tail;
	_Atomic uint64_t backlog; /* of the queue: sum of its peaks */
	/* stamp since when the queue has never been empty; 0: not seen yet */
	_Atomic uint64_t waits_since;
	uint64_t rounds; /* times that something was queued */
	_Atomic uint32_t idle;
	uint32_t parked;
	_Atomic bool in_pump; /* an idle thread is */
	bool seeded;          /* the operators have been started */
	/* when an idle thread will wake by itself; INT64_MAX: none will */
	_Atomic int64_t covers_ns;
	_Atomic uint32_t park; /* futex */
};

enum whom { NOBODY, PARKED, PUMP };

/* A guess of how long the next tick will be, in stamps. */
static inline uint64_t event_peak(const struct fragi_exec *exec)
{
	return exec->peak == 0 ? 1000000 : exec->peak;
}

/* The queue, with the lock held. */

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

/* Chooses an idle thread to wake; fragi_event_wake does it once the lock is free. */
enum whom fragi_event_choose_locked(struct event *event);
void fragi_event_wake(struct event *event, enum whom whom);
/* Ends all waiting for good. */
void fragi_event_end(struct event *event);
/* Wakes those that wait for the operators to be started, and waits for it. */
void fragi_event_seeded(struct event *event);
void fragi_event_wait_for_seed(struct event *event);

/* At exec->until_ns. */
void fragi_event_timer_arm(struct event *event, struct fragi_exec *exec);
void fragi_event_timer_disarm(struct event *event, struct fragi_exec *exec);
/* Queues those whose time has come. */
void fragi_event_timers_fire(struct event *event, int64_t now_ns);

/* Every thread is idle, and nothing is queued or armed. */
bool fragi_event_rests_locked(const struct event *event);
/* Waits until there may be something to do. */
void fragi_event_idle(struct event *event, struct worker *worker);

#endif
