/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_EVENT_H
#define FRAGI_SCHED_EVENT_H

#include <base/lock.h>
#include <sched/kind.h>

/*
 * The event-based scheduler. event_based.c has its notifications, start and end, event_run.c the
 * threads while they work, event_wait.c while they wait, event_pool.c the threads of thread pools.
 * event_based.c explains the whole.
 */

/*
 * What it costs to run a tick on another thread, in cache misses on both sides, and for each flow.
 * An operator whose ticks take longer is long: any thread runs it. The others are short: one thread
 * runs them all.
 */
#define MOVE_NS 2000
#define MOVE_FLOW_NS 50
/* Another thread is woken when queued operators would have to wait for longer than this. */
#define WAKE_NS 100000
/* It is also woken when ticks for which others waited have taken so long since the last time. */
#define WAITED_NS 200000
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
 * A thread runs at most so many short operators in a row that are not in the shared queues, while
 * others are.
 */
#define STREAK_MAX 16u
#define THREADS_MAX 1024u
/*
 * An operator that was not ready when its turn in the round came waits for notifications after its
 * next so many ticks; then it takes turns again.
 */
#define PARKS 15
/*
 * What a tick that is predicted to take longer notifies need not wait for its end. It is well above
 * MOVE_NS: to queue inside a tick makes the tick longer, and must not make it one of these.
 */
#define OVERLAP_NS 8000
/*
 * After such a tick the thread keeps an operator that is not ready, for half as long as the tick,
 * within these bounds: to sleep and to be woken takes as long as the lower one. It does so only if
 * the operator waited less the last time, and looks for other work from MOVE_NS on.
 */
#define KEEP_MIN_NS 50000
#define KEEP_MAX_NS 300000

/* Operators whose conditions must be evaluated, the oldest first. */
struct event_queue {
	struct fragi_exec *head, **tail;
};

struct event_thread {
	struct fragi_sched_thread here; /* first */
	pthread_t pthread;
	bool created;
	/* inside a tick: the operators that it notifies are held; only the short ones */
	_Atomic bool holding;
	bool overlaps;
	struct fragi_exec *held, **held_end;
	/* how long to keep the operator of this tick when it is not ready afterwards */
	uint64_t keep_stamps;
	/* the thread does not sleep before this stamp, but looks for other work */
	uint64_t look_until;
	/* away from home: runs before anything in the queue */
	struct fragi_exec *next;
	/*
	 * Of the home thread: the short operators that it runs in turn. They are the thread's own,
	 * but while it holds what a tick notifies (fragi_event_leave_home_locked).
	 */
	struct event_queue round;
	bool was_home; /* when it took its last operator; else its round is empty */
	/* short operators in a row that came from `next` or `round` although others were due */
	uint32_t streak;
	/* how many times it ran an operator, and slept */
	_Atomic uint64_t turns;
	uint64_t sleeps;
	int64_t recheck_ns;
	/* `turns` of the home thread when this thread last looked, and when that was */
	uint64_t stalled_turns, looked_stamp;
	/* CLOCK_MONOTONIC at base_stamp */
	int64_t base_ns;
	uint64_t base_stamp;
};

struct event_crew; /* event_pool.c: the threads of a pool, or of one pinned operator of it */

struct event {
	struct fragi_sched base;
	struct event_thread *threads;
	uint32_t thread_count;
	struct event_crew *crews; /* as fragment->crews */
	uint32_t crew_count;
	/* the limits above, in stamps */
	uint64_t wake_stamps, waited_stamps, long_stamps, hint_stamps, batch_stamps, recheck_stamps,
		overlap_stamps, keep_min_stamps, keep_max_stamps, move_stamps;
	/* tests set it to false: nobody looks now and then for work that was forgotten */
	bool polls;

	/* What all threads look at, and what seldom changes while short operators run. */
	_Alignas(64) _Atomic bool ending;
	/* A thread was woken and has not looked at the queues yet. Written under the lock. */
	_Atomic bool waking;
	/* an idle thread waits in the pump */
	_Atomic bool in_pump;
	/* idle threads; written under the lock */
	_Atomic uint32_t idle;
	/* threads that keep an operator, and look for work */
	_Atomic uint32_t spinning;
	/* when the earliest timer is due on CLOCK_MONOTONIC; written under the lock */
	_Atomic int64_t timer_ns;
	/* the time at which an idle thread will wake by itself; INT64_MAX: none will */
	_Atomic int64_t covers_ns;
	/*
	 * The thread that runs the short operators; NULL: the next one that has any. It is awake,
	 * and looks at their queue before it sleeps.
	 */
	_Atomic(struct event_thread *) home;
	/* the long operators in the queue; written under the lock */
	_Atomic uint32_t long_count;
	/* how long their next ticks will take together, in stamps; written under the lock */
	_Atomic uint64_t backlog;
	/* how long ticks have taken for which others waited, in stamps */
	_Atomic uint64_t waited;

	/* What the home thread writes all the time. */
	_Alignas(64) struct fragi_lock lock;
	/* all operators in the queues; written under the lock */
	_Atomic uint32_t queued;
	/* Guarded by the lock. */
	struct event_queue shorts, longs;
	/* how many times an operator was queued */
	uint64_t rounds;
	/* the earliest time that an operator waits for on the fragment's clock */
	int64_t next_ns;
	struct frag_clock *clock;
	struct fragi_clock_user clock_user;

	_Alignas(64) uint32_t parked; /* idle threads that sleep on `park` */
	bool operators_started;
	uint64_t stalled_turns; /* `turns` of the home thread when the control thread last looked */
	/* threads that still run; the last one ends the scheduler */
	_Atomic uint32_t leaving;
	/* futex */
	_Atomic uint32_t park;
	/* of the idle thread in the pump */
	struct fragi_pump_waiter waiter;
};

/* An idle thread to wake: none, one that sleeps on `park`, or the one in the pump. */
enum wake_target { WAKE_NOBODY, WAKE_PARKED, WAKE_PUMP };

static inline bool event_is_short(const struct fragi_exec *exec)
{
	return exec->expected < exec->long_from;
}

/* Before `home` is read: see fragi_event_leave_home_locked. */
static inline void event_set_holding(struct event_thread *thread, bool holding)
{
	atomic_store_explicit(&thread->holding, holding, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Returns whether the thread is, or now becomes, the one that runs the short operators. */
static inline bool event_settle(struct event *event, struct event_thread *thread)
{
	struct event_thread *home = atomic_load_explicit(&event->home, memory_order_relaxed);

	return home == thread ||
	       (home == NULL && atomic_compare_exchange_strong(&event->home, &home, thread));
}

/* Returns whether nothing is queued that the thread may run; a hint without the lock. */
static inline bool event_is_empty_for(struct event *event, const struct event_thread *thread)
{
	const struct event_thread *home;

	if (atomic_load_explicit(&event->long_count, memory_order_relaxed) != 0)
		return false;
	home = atomic_load_explicit(&event->home, memory_order_relaxed);
	return (home != thread && home != NULL) ||
	       atomic_load_explicit(&event->queued, memory_order_relaxed) == 0;
}

static inline void event_enqueue(struct event_queue *queue, struct fragi_exec *exec)
{
	exec->next = NULL;
	*queue->tail = exec;
	queue->tail = &exec->next;
}

static inline struct fragi_exec *event_dequeue(struct event_queue *queue)
{
	struct fragi_exec *exec = queue->head;

	queue->head = exec->next;
	if (queue->head == NULL)
		queue->tail = &queue->head;
	return exec;
}

/* The queues. The caller holds the lock. */

static inline void event_count(_Atomic uint32_t *counter, uint32_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void event_count_long(struct event *event, uint32_t n, uint64_t stamps)
{
	event_count(&event->long_count, n);
	atomic_store_explicit(&event->backlog,
			      atomic_load_explicit(&event->backlog, memory_order_relaxed) + stamps,
			      memory_order_relaxed);
}

static inline void event_push_locked(struct event *event, struct fragi_exec *exec)
{
	bool is_short = event_is_short(exec);
	struct event_queue *queue = is_short ? &event->shorts : &event->longs;

	exec->order = ++event->rounds;
	event_enqueue(queue, exec);
	event_count(&event->queued, 1);
	if (!is_short)
		event_count_long(event, 1, exec->expected);
}

/*
 * Takes the oldest operator that the thread may run; NULL: there is none. While another thread
 * wakes up or looks for long operators they are left to it.
 */
static inline struct fragi_exec *event_pop_locked(struct event *event, struct event_thread *thread)
{
	struct event_queue *queue = &event->shorts;
	struct fragi_exec *exec = queue->head, *first_long = event->longs.head;
	bool leaves_long = atomic_load_explicit(&event->waking, memory_order_relaxed) ||
			   atomic_load_explicit(&event->spinning, memory_order_relaxed) > 0;

	if (exec == NULL ||
	    (first_long != NULL && first_long->order < exec->order && !leaves_long) ||
	    !event_settle(event, thread)) {
		if (first_long == NULL || (leaves_long && thread->round.head != NULL))
			return NULL;
		queue = &event->longs;
		event_count_long(event, (uint32_t)-1, -first_long->expected);
	}
	event_count(&event->queued, (uint32_t)-1);
	return event_dequeue(queue);
}

/* Puts what is in the thread's round into the queue that others see. */
static inline void event_share_round_locked(struct event *event, struct event_thread *thread)
{
	while (thread->round.head != NULL)
		event_push_locked(event, event_dequeue(&thread->round));
}

/* Gives the role up, if the thread still has it: another one may have taken it meanwhile. */
static inline void event_give_home_up_locked(struct event *event, struct event_thread *thread)
{
	event_share_round_locked(event, thread);
	thread->was_home = false;
	if (atomic_load_explicit(&event->home, memory_order_relaxed) == thread)
		atomic_store(&event->home, NULL);
}

/* Returns `turns` of the home thread; 0: there is none. */
static inline uint64_t event_turns(const struct event_thread *home)
{
	return home != NULL ? atomic_load_explicit(&home->turns, memory_order_relaxed) : 0;
}

/*
 * Lets another thread run the short operators when the home thread is still in the turn of the last
 * call: it is in an unexpectedly long tick.
 */
void fragi_event_leave_home_locked(struct event *event, uint64_t *stalled_turns);

/*
 * Returns whether others may have to wait for the operator's next tick: it is long, or its first
 * one (0 - 1 is a large number), or long operators are queued.
 */
static inline bool event_may_delay(const struct event *event, const struct fragi_exec *exec)
{
	return exec->expected - 1 >= exec->long_from ||
	       atomic_load_explicit(&event->long_count, memory_order_relaxed) != 0;
}

/*
 * Returns whether another thread should be woken before a tick that may delay others and will take
 * about `length` stamps:
 * - no thread would watch the timers and the pump during a long tick
 * - the tick, or the long operators in the queue with it, would let others wait for too long
 * - others have waited for such ticks again and again
 * It reads without the lock: a wrong answer wakes one thread too many, or too late.
 */
static inline bool event_is_worth_waking(struct event *event, uint64_t length)
{
	uint64_t backlog = atomic_load_explicit(&event->backlog, memory_order_relaxed), waited;

	if (length > event->long_stamps &&
	    (!atomic_load_explicit(&event->in_pump, memory_order_relaxed) ||
	     atomic_load_explicit(&event->timer_ns, memory_order_relaxed) <
		     atomic_load_explicit(&event->covers_ns, memory_order_relaxed)))
		return true;
	if (atomic_load_explicit(&event->queued, memory_order_relaxed) == 0 ||
	    atomic_load_explicit(&event->spinning, memory_order_relaxed) > 0)
		return false;
	if (length + backlog > event->wake_stamps)
		return true;
	waited = atomic_load_explicit(&event->waited, memory_order_relaxed) + length;
	atomic_store_explicit(&event->waited, waited, memory_order_relaxed);
	return waited > event->waited_stamps;
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
void fragi_event_timers_fire(struct event *event);

/* Returns whether every thread is idle and nothing is queued: at most timers are armed. */
bool fragi_event_waits_locked(const struct event *event);
/* The same, and nothing will happen as time passes. */
bool fragi_event_at_rest_locked(const struct event *event);
/* Joins the fragment's clock. */
void fragi_event_use_clock(struct event *event, struct frag_clock *clock);
/* event_run.c: runs operators until the scheduler ends. */
void fragi_event_work(struct event *event, struct event_thread *thread);
/*
 * After a tick that overlapped others: makes the operator RUNNING, and keeps it while it is not
 * ready, so that who notifies it need neither queue it nor wake a thread. Gives it up after
 * keep_stamps, or for other work. Threads that look for work take what there is in reverse order:
 * so those that are one too many soon sleep. Returns what the operator's conditions answer.
 * - r: of the tick; if it is not 0 nothing is evaluated
 */
enum frag_ready fragi_event_keep(struct event *event, struct event_thread *thread,
				 struct fragi_exec *exec, int r);
/*
 * A thread that finds no operator in the queues, most often because others were quicker: looks for
 * work until it would have given its last operator up. Returns true when there is some; false: it
 * may sleep.
 */
bool fragi_event_look(struct event *event, struct event_thread *thread);
/* Waits until there may be work. */
void fragi_event_idle(struct event *event, struct event_thread *thread);
/* Sleeps until a thread changes the word, or until_ns; INT64_MAX: no time. Wakes such threads. */
void fragi_event_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t until_ns);
void fragi_event_futex_wake(_Atomic uint32_t *word, int count);
/* Called by a thread that ends its work; the last one ends the scheduler. */
void fragi_event_leave(struct event *event);

/*
 * event_pool.c: the threads of thread pools. Each crew has a queue, timers and a lock of its own;
 * nothing here runs in a graph without pools.
 */
int fragi_event_crews_create(struct event *event, const struct frag_fragment *fragment);
void fragi_event_crews_destroy(struct event *event);
/* The number of their threads. */
uint32_t fragi_event_crews_threads(const struct event *event);
int fragi_event_crews_start(struct event *event, struct frag_err *err);
void fragi_event_crews_join(struct event *event);
/* The notification of an operator that is in a pool. */
void fragi_event_crew_notify(void *arg);
/* Wakes all their threads, because `ending` was set. */
void fragi_event_crews_end(struct event *event);
/* Wakes a thread of each crew whose queued work or timers nobody takes care of. */
void fragi_event_crews_wake_stalled(struct event *event, int64_t now_ns);
/* A number that changes with every notification, of a fragment at rest. */
uint64_t fragi_event_crews_rounds(struct event *event);
/* The earliest time that an operator of a crew waits for, on the fragment's clock. */
int64_t fragi_event_crews_next_ns(const struct event *event);
/* The fragment's clock was moved, or runs at another speed. */
void fragi_event_crews_clock_moved(struct event *event);

#endif
