// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "sched"
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/log.h>
#include <sched/event.h>

/*
 * A pool of threads and one queue of operators whose conditions must be evaluated. A notification
 * of an operator sets QUEUED in its state. The thread that finds the state 0 before that, and only
 * that thread, puts the operator into the queue. A thread that takes it out sets the state to
 * RUNNING, evaluates the conditions, ticks the operator while it is ready, and clears RUNNING. If
 * QUEUED was set meanwhile, it queues the operator again. So an operator is in one place at a time,
 * and no notification is lost.
 *
 * Waking a thread costs the waker several microseconds, which is more than many ticks take. So the
 * operators that a tick notifies are held until the tick ends. The first of them runs next on the
 * same thread. The others are queued, and another thread is woken only if they would have to wait
 * for longer than waking takes. The length of a tick is predicted from the operator's longest
 * recent one. Two things bound the delay when a prediction is wrong: while other threads work, one
 * idle thread sleeps with a timeout, and the control thread calls fragi_sched_wake_stalled.
 *
 * One idle thread waits in the pump, so that the thread that receives a message is the thread that
 * computes. Further idle threads wait on a futex of the scheduler.
 */

/* Queues an operator that was notified outside of a tick of this scheduler, and wakes a thread. */
static __attribute__((noinline)) void queue_from_outside(struct fragi_exec *exec)
{
	struct event *event = (struct event *)exec->sched;
	/* A thread of this scheduler will look at the queue when it leaves the pump. */
	bool is_ours = fragi_sched_here != NULL && fragi_sched_here->sched == &event->base;
	enum wake_target target = WAKE_NOBODY;

	fragi_lock_take(&event->lock);
	event_push_locked(event, exec);
	if (!is_ours)
		target = fragi_event_choose_idle_locked(event);
	fragi_lock_leave(&event->lock);
	fragi_event_wake(event, target);
}

/* The notification of an operator: its conditions must be evaluated. */
static void event_notify(void *arg)
{
	struct fragi_exec *exec = arg;
	struct event_thread *thread = (struct event_thread *)fragi_sched_here;

	if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) != 0)
		return;
	if (__builtin_expect(
		    thread == NULL || thread->here.sched != exec->sched || !thread->holding, 0)) {
		queue_from_outside(exec);
		return;
	}
	exec->next = NULL;
	*thread->held_end = exec;
	thread->held_end = &exec->next;
}

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

/* Work. */

/*
 * Returns whether another thread should be woken before a tick that will take about `length`
 * stamps:
 * - the queued operators would wait for too long
 * - the queue has been too long for too long
 * - no thread would watch the timers and the pump during a long tick
 * It reads without the lock: a wrong answer wakes one thread too many, or too late.
 */
static bool is_worth_waking(struct event *event, uint64_t length, uint64_t now)
{
	uint64_t backlog = atomic_load_explicit(&event->backlog, memory_order_relaxed), since;

	if (length > event->long_stamps &&
	    (!atomic_load_explicit(&event->in_pump, memory_order_relaxed) ||
	     atomic_load_explicit(&event->timer_ns, memory_order_relaxed) <
		     atomic_load_explicit(&event->covers_ns, memory_order_relaxed)))
		return true;
	if (atomic_load_explicit(&event->queued, memory_order_relaxed) == 0)
		return false;
	if (length + backlog > event->wake_stamps)
		return true;
	since = atomic_load_explicit(&event->waits_since, memory_order_relaxed);
	if (since == 0) {
		atomic_store_explicit(&event->waits_since, now, memory_order_relaxed);
		return false;
	}
	return backlog > event->lasting_backlog_stamps && now - since > event->lasting_stamps;
}

/* Before a tick that may be long: wakes another thread for the work that would have to wait. */
static void wake_for_long_tick(struct event *event, const struct fragi_exec *exec, uint64_t now)
{
	uint64_t length = event_peak(exec);
	enum wake_target target = WAKE_NOBODY;

	if (__builtin_expect(length < event->long_stamps, 1) &&
	    (event->thread_count == 1 ||
	     atomic_load_explicit(&event->queued, memory_order_relaxed) == 0))
		return;
	if (atomic_load_explicit(&event->idle, memory_order_relaxed) > 0 &&
	    is_worth_waking(event, length, now)) {
		fragi_lock_take(&event->lock);
		target = fragi_event_choose_idle_locked(event);
		fragi_lock_leave(&event->lock);
	}
	if (target != WAKE_NOBODY)
		fragi_event_wake(event, target);
	else if (length > event->hint_stamps)
		fragi_pump_hint(event->base.config.pump);
}

/* Ticks an operator while it is ready, for BATCH_NS at most. Returns its last answer. */
static inline enum frag_ready tick_while_ready(struct event *event, struct event_thread *thread,
					       struct fragi_exec *exec)
{
	uint64_t begin = thread->here.stamp, start, length;
	enum frag_ready ready;
	bool over = false;
	int r;

	for (;;) {
		ready = fragi_exec_ready(exec);
		if (ready != FRAG_READY || over)
			return ready;
		wake_for_long_tick(event, exec, thread->here.stamp);
		start = thread->here.stamp;
		r = fragi_exec_tick(exec, thread->here.current, start, &thread->here.stamp);
		length = thread->here.stamp - start;
		exec->peak = length >= exec->peak ? length : exec->peak - (exec->peak >> 4);
		if (__builtin_expect(r < 0, 0)) {
			fragi_sched_fail(&event->base, exec, FRAGI_CALL_COMPUTE, r);
			return FRAG_READY;
		}
		if (__builtin_expect(r == FRAG_DONE, 0))
			return FRAG_NEVER;
		over = thread->here.stamp - begin + exec->peak > event->batch_stamps;
	}
}

/*
 * Distributes the operators that were notified during the ticks: the first runs next on this
 * thread; the others, and `again` (the operator itself, when it must run again), are queued.
 */
static void queue_notified(struct event *event, struct event_thread *thread,
			   struct fragi_exec *again)
{
	struct fragi_exec *rest;

	thread->next = thread->held;
	if (thread->next == NULL) {
		if (again == NULL)
			return;
		if (atomic_load_explicit(&event->queued, memory_order_relaxed) == 0) {
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

static void run(struct event *event, struct event_thread *thread, struct fragi_exec *exec)
{
	enum frag_ready ready;
	struct fragi_exec *again = NULL;
	bool last = false;

	atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
	if (__builtin_expect(atomic_load_explicit(&exec->needs_full_check, memory_order_relaxed),
			     0)) {
		if (exec->done)
			return; /* it stays RUNNING, so that no thread queues it again */
		if (exec->timer_armed)
			fragi_event_timer_disarm(event, exec);
	}
	thread->holding = true;
	ready = tick_while_ready(event, thread, exec);
	if (ready == FRAG_NEVER) {
		last = fragi_sched_finish_op(&event->base, exec);
	} else if (ready == FRAG_READY) {
		/* An exchange, so that the next thread that runs it sees what notifiers wrote. */
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
	thread->holding = false;
	queue_notified(event, thread, again);
	if (last)
		fragi_event_end(event);
}

/*
 * Returns the operator to run next: the one that this thread just made ready, but after STREAK_MAX
 * of those the first one in the queue.
 */
static struct fragi_exec *next_exec(struct event *event, struct event_thread *thread)
{
	struct fragi_exec *exec = thread->next;

	thread->next = NULL;
	if (atomic_load_explicit(&event->queued, memory_order_relaxed) == 0)
		return exec;
	if (exec != NULL && ++thread->streak < STREAK_MAX)
		return exec;
	thread->streak = 0;
	fragi_lock_take(&event->lock);
	if (exec != NULL)
		event_push_locked(event, exec);
	exec = event_pop_locked(event);
	fragi_lock_leave(&event->lock);
	return exec;
}

static void work(struct event *event, struct event_thread *thread)
{
	struct fragi_exec *exec;
	int64_t timer_ns;

	while (!atomic_load_explicit(&event->ending, memory_order_relaxed)) {
		timer_ns = atomic_load_explicit(&event->timer_ns, memory_order_relaxed);
		if (timer_ns != INT64_MAX && thread_now_ns(thread) >= timer_ns)
			fragi_event_timers_fire(event, fragi_now_ns());
		exec = next_exec(event, thread);
		if (exec == NULL) {
			thread->sleeps++;
			fragi_event_idle(event, thread);
			continue;
		}
		thread->recheck_ns = RECHECK_MIN_NS / 2;
		thread->turns++;
		run(event, thread, exec);
		fragi_sched_pump_turn(&thread->here, event->base.config.pump);
	}
}

static void start_operators(struct event *event)
{
	struct fragi_sched *sched = &event->base;
	bool started = fragi_sched_start_ops(sched) == 0;

	fragi_lock_take(&event->lock);
	for (uint32_t i = 0; started && i < sched->count; i++)
		if (atomic_fetch_or(&sched->execs[i]->state, FRAGI_QUEUED) == 0)
			event_push_locked(event, sched->execs[i]);
	fragi_lock_leave(&event->lock);
	fragi_event_operators_started(event);
	if (sched->count == 0)
		fragi_event_end(event);
}

/* Not inlined: the caller saves its registers for a cleanup handler, which would cost each tick. */
static __attribute__((noinline)) void thread_run(struct event_thread *thread)
{
	struct event *event = (struct event *)thread->here.sched;
	struct fragi_sched *sched = &event->base;

	fragi_sched_thread_begin(&thread->here);
	if (thread == &event->threads[0])
		start_operators(event);
	else
		fragi_event_wait_for_start(event);
	thread->base_ns = fragi_now_ns();
	thread->base_stamp = thread->here.stamp = thread->here.pump_stamp = fragi_stamp();
	work(event, thread);
	log_debug(sched->config.fragment->name,
		  "a thread ran operators %llu times and slept %llu times",
		  (unsigned long long)thread->turns, (unsigned long long)thread->sleeps);
	if (atomic_fetch_sub(&event->leaving, 1) == 1) {
		/* Closing the ports sends notifications, which must not queue anything. */
		thread->holding = true;
		fragi_sched_finish_ops(sched);
		sched->config.finished(sched->config.arg);
	}
	fragi_sched_here = NULL;
}

static void *thread_main(void *arg)
{
	struct event_thread *thread = arg;

	pthread_cleanup_push(fragi_sched_thread_lost, thread->here.sched);
	thread_run(thread);
	pthread_cleanup_pop(0);
	return NULL;
}

/* Creation, start and end. */

static int event_create(const struct fragi_sched_config *config, struct fragi_sched **out_sched)
{
	const struct fragi_spec_fragment *own = config->fragment->own;
	uint32_t threads = own != NULL ? own->scheduler.worker_thread_number : 0;
	struct event *event = fragi_aligned_alloc(64, sizeof(*event));

	if (event == NULL)
		return -ENOMEM;
	memset(event, 0, sizeof(*event));
	if (threads == 0) {
		threads = fragi_sched_cores();
		threads =
			threads > config->fragment->op_count ? config->fragment->op_count : threads;
	}
	threads = threads == 0 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
	event->threads = fragi_calloc(threads, sizeof(struct event_thread));
	if (event->threads == NULL) {
		fragi_free(event);
		return -ENOMEM;
	}
	event->thread_count = threads;
	for (uint32_t i = 0; i < threads; i++) {
		event->threads[i].here.sched = &event->base;
		event->threads[i].here.turn_stamps = fragi_sched_stamps(FRAGI_PUMP_TURN_NS);
		event->threads[i].held_end = &event->threads[i].held;
		event->threads[i].recheck_ns = RECHECK_MIN_NS / 2;
	}
	event->tail = &event->head;
	event->covers_ns = INT64_MAX;
	atomic_store(&event->timer_ns, INT64_MAX);
	event->lasting_stamps = fragi_sched_stamps(LASTING_NS);
	event->lasting_backlog_stamps = fragi_sched_stamps(LASTING_BACKLOG_NS);
	event->wake_stamps = fragi_sched_stamps(WAKE_NS);
	event->long_stamps = fragi_sched_stamps(LONG_TICK_NS);
	event->hint_stamps = fragi_sched_stamps(FRAGI_HINT_NS);
	event->batch_stamps = fragi_sched_stamps(BATCH_NS);
	*out_sched = &event->base;
	return 0;
}

/* Called when `halting` was set. */
static void event_wake(struct fragi_sched *sched)
{
	fragi_event_end((struct event *)sched);
}

static void event_join(struct fragi_sched *sched)
{
	struct event *event = (struct event *)sched;

	for (uint32_t i = 0; i < event->thread_count; i++)
		if (event->threads[i].created) {
			pthread_join(event->threads[i].pthread, NULL);
			event->threads[i].created = false;
		}
}

static int event_start(struct fragi_sched *sched, struct frag_err *err)
{
	struct event *event = (struct event *)sched;
	int r;

	atomic_store(&event->leaving, event->thread_count);
	/* Creates the first thread last: it starts the operators, when all threads exist. */
	for (uint32_t i = event->thread_count; i-- > 0;) {
		r = fragi_sched_thread_create(sched, thread_main, &event->threads[i],
					      &event->threads[i].pthread, err);
		if (r < 0) {
			/* No operator was started, so the threads that exist only leave. */
			fragi_sched_halt(sched);
			event_join(sched);
			return r;
		}
		event->threads[i].created = true;
	}
	return 0;
}

static bool event_at_rest(struct fragi_sched *sched, uint64_t *out_rounds)
{
	struct event *event = (struct event *)sched;
	bool rests;

	if (atomic_load(&sched->live) == 0) {
		*out_rounds = 0;
		return true;
	}
	fragi_lock_take(&event->lock);
	rests = fragi_event_at_rest_locked(event);
	*out_rounds = event->rounds;
	fragi_lock_leave(&event->lock);
	return rests;
}

static void event_wake_stalled(struct fragi_sched *sched, int64_t now_ns)
{
	struct event *event = (struct event *)sched;
	enum wake_target target = WAKE_NOBODY;

	fragi_lock_take(&event->lock);
	if (event->head != NULL ||
	    atomic_load_explicit(&event->timer_ns, memory_order_relaxed) < now_ns)
		target = fragi_event_choose_idle_locked(event);
	fragi_lock_leave(&event->lock);
	if (target != WAKE_NOBODY)
		log_debug(sched->config.fragment->name, "queued work was waiting; waking a thread");
	fragi_event_wake(event, target);
}

static void event_destroy(struct fragi_sched *sched)
{
	struct event *event = (struct event *)sched;

	fragi_free(event->threads);
	fragi_free(event);
}

const struct fragi_sched_kind fragi_sched_event_based = {
	.name = "event_based",
	.create = event_create,
	.start = event_start,
	.wake = event_wake,
	.join = event_join,
	.at_rest = event_at_rest,
	.wake_stalled = event_wake_stalled,
	.destroy = event_destroy,
	.notify = event_notify,
};
