// SPDX-License-Identifier: Apache-2.0
#include <assert.h>

#include <sched/event.h>

/*
 * What a thread of the event-based scheduler does while it works: which operator it runs next, how
 * it runs it, and where what was notified meanwhile is queued. event_based.c explains the whole.
 */

/*
 * Returns CLOCK_MONOTONIC at the thread's latest stamp, without a system call. The base is
 * corrected ten times a second.
 */
static int64_t thread_now_ns(struct event_thread *thread)
{
	uint64_t since_ns = fragi_stamp_diff_ns(thread->base_stamp, thread->here.stamp);

	if (since_ns > 100000000) {
		thread->base_ns = fragi_now_ns();
		thread->base_stamp = thread->here.stamp = fragi_stamp();
		return thread->base_ns;
	}
	return thread->base_ns + (int64_t)since_ns;
}

/* Not inlined: few ticks overlap others, and all would pay for it. */
static __attribute__((noinline)) void set_overlaps(struct event_thread *thread, bool overlaps)
{
	event_set_holding(thread, !overlaps);
	thread->overlaps = overlaps;
}

/* How long to keep the operator after its next tick, if it is not ready then. */
static uint64_t keep_stamps(const struct event *event, const struct event_thread *thread,
			    const struct fragi_exec *exec)
{
	int64_t waited = (int64_t)(thread->here.stamp - exec->tick.stamp - exec->expected);
	uint64_t keep = exec->expected / 2;

	keep = keep < event->keep_min_stamps ? event->keep_min_stamps : keep;
	keep = keep > event->keep_max_stamps ? event->keep_max_stamps : keep;
	return waited < (int64_t)keep ? keep : 0;
}

static inline bool is_home(struct event *event, const struct event_thread *thread)
{
	return atomic_load_explicit(&event->home, memory_order_relaxed) == thread;
}

static void leave_home(struct event *event, struct event_thread *thread)
{
	fragi_lock_take(&event->lock);
	event_give_home_up_locked(event, thread);
	fragi_lock_leave(&event->lock);
}

/*
 * Before a tick that may delay others: lets another thread run the short operators if it is a long
 * one, and wakes a thread if that is worth it. A first tick may be long.
 */
static __attribute__((noinline)) void
let_others_work(struct event *event, struct event_thread *thread, const struct fragi_exec *exec)
{
	uint64_t length = exec->expected == 0 ? event->long_stamps + 1 : exec->expected;
	enum wake_target target = WAKE_NOBODY;

	if (length >= exec->long_from && is_home(event, thread))
		leave_home(event, thread);
	if (exec->expected >= event->overlap_stamps) {
		set_overlaps(thread, true);
		thread->keep_stamps = keep_stamps(event, thread, exec);
	}
	if (atomic_load_explicit(&event->idle, memory_order_relaxed) > 0 &&
	    event_is_worth_waking(event, length)) {
		atomic_store_explicit(&event->waited, 0, memory_order_relaxed);
		fragi_lock_take(&event->lock);
		target = fragi_event_choose_idle_locked(event);
		fragi_lock_leave(&event->lock);
	}
	if (target != WAKE_NOBODY)
		fragi_event_wake(event, target);
	else if (length > event->hint_stamps)
		fragi_pump_hint(event->base.config.pump);
}

/* Returns as compute does; a failure was reported. Holds what is notified. */
static inline __attribute__((always_inline)) int
tick(struct event *event, struct event_thread *thread, struct fragi_exec *exec)
{
	uint64_t start, length;
	int r;

	if (event_may_delay(event, exec))
		let_others_work(event, thread, exec);
	start = thread->here.stamp;
	r = fragi_exec_tick(exec, thread->here.current, start, &thread->here.stamp);
	if (__builtin_expect(thread->overlaps, 0))
		set_overlaps(thread, false);
	length = thread->here.stamp - start;
	exec->expected += (uint64_t)((int64_t)(length - exec->expected) >> 4);
	exec->expected |= 1;
	if (__builtin_expect(r < 0, 0))
		fragi_sched_fail(&event->base, exec, FRAGI_CALL_COMPUTE, r);
	return r;
}

/* Queues an operator where its next turn is due. `event->lock` is free. */
static inline void queue_at_home(struct event *event, struct event_thread *thread,
				 struct fragi_exec *exec)
{
	if (__builtin_expect(event_is_short(exec), 1)) {
		event_enqueue(&thread->round, exec);
		return;
	}
	fragi_lock_take(&event->lock);
	event_push_locked(event, exec);
	fragi_lock_leave(&event->lock);
}

/*
 * Distributes the operators that were notified during the tick, and `again` (the operator itself,
 * when it must run again; else NULL). The home thread runs the short ones in turn.
 */
static inline void queue_all_at_home(struct event *event, struct event_thread *thread,
				     struct fragi_exec *again)
{
	struct fragi_exec *exec = thread->held, *next;

	if (exec != NULL) {
		thread->held = NULL;
		thread->held_end = &thread->held;
		for (; exec != NULL; exec = next) {
			next = exec->next;
			queue_at_home(event, thread, exec);
		}
	}
	if (again != NULL)
		queue_at_home(event, thread, again);
}

/* On another thread the first one runs next; the others are queued. */
static void queue_all_away(struct event *event, struct event_thread *thread,
			   struct fragi_exec *again)
{
	struct fragi_exec *rest;

	thread->next = thread->held;
	if (thread->next == NULL) {
		if (again == NULL)
			return;
		if (event_is_empty_for(event, thread)) {
			thread->next = again;
			return;
		}
		rest = NULL;
	} else {
		rest = thread->next->next;
		if (rest == NULL && again == NULL)
			goto out;
	}
	fragi_lock_take(&event->lock);
	while (rest != NULL) {
		struct fragi_exec *next = rest->next;

		event_push_locked(event, rest);
		rest = next;
	}
	if (again != NULL)
		event_push_locked(event, again);
	fragi_lock_leave(&event->lock);
out:
	thread->held = NULL;
	thread->held_end = &thread->held;
}

/* After a tick of an operator that may be ready again: for BATCH_NS at most. */
static __attribute__((noinline)) bool is_ready_again(struct event *event,
						     const struct event_thread *thread,
						     struct fragi_exec *exec, uint64_t begin)
{
	return thread->here.stamp - begin < event->batch_stamps && event_is_short(exec) &&
	       fragi_exec_ready(exec) == FRAG_READY;
}

/*
 * After a tick, or instead of one: evaluates the operator, and lets it wait, end or run again.
 * - ready: the answer before the tick; not FRAG_READY: there was none
 * - is_running: its state is RUNNING, not QUEUED
 * - r: of the tick; 0: or there was none
 */
static __attribute__((noinline)) void settle(struct event *event, struct event_thread *thread,
					     struct fragi_exec *exec, enum frag_ready ready,
					     bool is_running, int r)
{
	struct fragi_exec *again = NULL;
	bool last = false;

	if (__builtin_expect(thread->keep_stamps > 0, 0)) {
		ready = fragi_event_keep(event, thread, exec, r);
		is_running = true;
	}
	event_set_holding(thread, true);
	if (r == FRAG_DONE)
		ready = FRAG_NEVER;
	if (r == 0 && ready != FRAG_NEVER && (ready == FRAG_READY || !is_running)) {
		/* An exchange, so that what was written before each notification is seen. */
		if (!is_running)
			atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
		ready = fragi_exec_ready(exec);
	}
	if (ready == FRAG_NEVER) {
		last = fragi_sched_finish_op(&event->base, exec);
	} else if (ready == FRAG_READY) {
		/* So that the next thread that runs it sees what notifiers wrote. */
		atomic_exchange_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel);
		again = exec;
	} else {
		if (ready == FRAG_WAIT_TIME)
			fragi_event_timer_arm(event, exec);
		/* Clears RUNNING, as fetch_and would, but in one instruction. */
		if (atomic_fetch_sub_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel) !=
		    FRAGI_RUNNING)
			again = exec;
	}
	event_set_holding(thread, false);
	if (is_home(event, thread))
		queue_all_at_home(event, thread, again);
	else
		queue_all_away(event, thread, again);
	if (last)
		fragi_event_end(event);
}

/* The same as run for an operator that needs the full check. */
static __attribute__((noinline)) void run_checked(struct event *event, struct event_thread *thread,
						  struct fragi_exec *exec)
{
	enum frag_ready ready;
	int r = 0;

	event_set_holding(thread, true);
	atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
	assert(!exec->done); /* its state is never 0, so no thread queues it again */
	if (exec->timer_armed)
		fragi_event_timer_disarm(event, exec);
	ready = fragi_exec_ready_all(exec);
	if (ready == FRAG_READY)
		r = tick(event, thread, exec);
	settle(event, thread, exec, ready, true, r);
}

/* Runs an operator that was taken out of a queue: its state is QUEUED. */
static inline void run(struct event *event, struct event_thread *thread, struct fragi_exec *exec)
{
	uint64_t begin = thread->here.stamp;
	enum frag_ready ready;
	int r;

	if (__builtin_expect(atomic_load_explicit(&exec->needs_full_check, memory_order_relaxed),
			     0)) {
		run_checked(event, thread, exec);
		return;
	}
	event_set_holding(thread, true);
	ready = fragi_exec_ready(exec);
	if (__builtin_expect(ready != FRAG_READY, 0)) {
		if (exec->parks == 0)
			exec->parks = PARKS;
		settle(event, thread, exec, ready, false, 0);
		return;
	}
	do
		r = tick(event, thread, exec);
	while (__builtin_expect(exec->repeats, 0) && r == 0 &&
	       is_ready_again(event, thread, exec, begin));
	event_set_holding(thread, false);
	if (__builtin_expect(
		    (r | exec->parks) == 0 && is_home(event, thread) && event_is_short(exec), 1)) {
		queue_all_at_home(event, thread, exec);
		return;
	}
	if (exec->parks > 0)
		exec->parks--;
	settle(event, thread, exec, ready, false, r);
}

/*
 * On a thread away from home: lets another thread run the short operators when the home thread has
 * been in one turn for a while.
 */
static void look_after_home(struct event *event, struct event_thread *thread)
{
	if (thread->here.stamp - thread->looked_stamp < event->recheck_stamps)
		return;
	thread->looked_stamp = thread->here.stamp;
	fragi_lock_take(&event->lock);
	fragi_event_leave_home_locked(event, &thread->stalled_turns);
	fragi_lock_leave(&event->lock);
}

/*
 * Returns whether a thread away from home runs the operator that it has just made ready, or sleeps
 * when there is none, before it looks at the queues:
 * - a short one, but after STREAK_MAX of those it is another operator's turn
 * - a long one when nothing is queued
 */
static bool runs_at_once_away(struct event *event, struct event_thread *thread,
			      const struct fragi_exec *exec)
{
	if (exec != NULL && event_is_short(exec))
		return event_settle(event, thread) || ++thread->streak < STREAK_MAX;
	look_after_home(event, thread);
	if (!event_is_empty_for(event, thread))
		return false;
	thread->streak = 0;
	return true;
}

/* The same as next_exec away from home, or where others are due. */
static __attribute__((noinline)) struct fragi_exec *next_of_queues(struct event *event,
								   struct event_thread *thread)
{
	struct fragi_exec *exec = thread->next;

	thread->next = NULL;
	if (!thread->was_home && runs_at_once_away(event, thread, exec)) {
		thread->was_home = is_home(event, thread);
		return exec;
	}
	thread->streak = 0;
	fragi_lock_take(&event->lock);
	if (!is_home(event, thread))
		event_share_round_locked(event, thread);
	if (exec != NULL)
		event_push_locked(event, exec);
	exec = event_pop_locked(event, thread);
	/* The role is not taken away while the lock is held. */
	thread->was_home = is_home(event, thread);
	if (exec == NULL && thread->round.head != NULL)
		exec = event_dequeue(&thread->round);
	fragi_lock_leave(&event->lock);
	return exec;
}

/* Returns the operator to run next; NULL: none. */
static inline struct fragi_exec *next_exec(struct event *event, struct event_thread *thread)
{
	if (__builtin_expect(!is_home(event, thread), 0))
		return next_of_queues(event, thread);
	if (atomic_load_explicit(&event->queued, memory_order_relaxed) != 0 &&
	    (thread->round.head == NULL || ++thread->streak >= STREAK_MAX))
		return next_of_queues(event, thread);
	return thread->round.head != NULL ? event_dequeue(&thread->round) : NULL;
}

static inline void count_turn(struct event_thread *thread)
{
	atomic_store_explicit(&thread->turns,
			      atomic_load_explicit(&thread->turns, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

void fragi_event_work(struct event *event, struct event_thread *thread)
{
	struct fragi_exec *exec;
	int64_t timer_ns;

	while (!atomic_load_explicit(&event->ending, memory_order_relaxed)) {
		timer_ns = atomic_load_explicit(&event->timer_ns, memory_order_relaxed);
		if (timer_ns != INT64_MAX && thread_now_ns(thread) >= timer_ns)
			fragi_event_timers_fire(event);
		exec = next_exec(event, thread);
		if (exec == NULL) {
			if (fragi_event_look(event, thread))
				continue;
			thread->sleeps++;
			fragi_event_idle(event, thread);
			continue;
		}
		thread->recheck_ns = RECHECK_MIN_NS / 2;
		count_turn(thread);
		run(event, thread, exec);
		fragi_sched_pump_turn(&thread->here, event->base.config.pump);
	}
}
