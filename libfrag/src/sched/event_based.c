// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "sched"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/log.h>
#include <graph/thread_pool.h>
#include <sched/event.h>

/*
 * Threads, and queues of operators whose conditions must be evaluated. A notification of
 * an operator sets QUEUED in its state. The thread that finds the state 0 before that, and only
 * that thread, puts the operator into a queue. A thread that takes it out evaluates the conditions
 * and ticks the operator if it is ready. Before the operator may wait, the thread sets the state
 * from QUEUED to RUNNING, evaluates again, and clears RUNNING. If QUEUED was set meanwhile, it
 * queues the operator again. So an operator is in one place at a time, and no notification is lost.
 *
 * Which thread runs an operator depends on how long its ticks take (the mean of the recent ones):
 * - To run a tick on another thread costs cache misses on both sides: the operator, its queues, its
 *   messages. A tick that takes less than that is faster where the others are. So one thread, the
 *   home thread, runs all short operators, and nobody else takes them out of their queue. However
 *   many threads there are, a graph of short operators runs as it does on one.
 * - Any thread runs long operators.
 * - The operators that a tick notifies are held until the tick ends. At home they then wait in the
 *   thread's round, a queue without a lock, and so does the operator itself: most often those that
 *   it has notified make it ready again, so it is evaluated when its turn comes, not before. Its
 *   state stays QUEUED meanwhile, so a notification changes nothing. An operator that was not
 *   ready at its turn waits for notifications after its next ticks (PARKS).
 * - Away from home the first of them runs next on the same thread, where its message is, for up to
 *   STREAK_MAX short operators in a row; the others are queued.
 * - Only a tick that takes much longer than a thread needs to take an operator lets others run
 *   beside it: the long operators that it notifies are queued at once. So a source with a queue for
 *   one message computes the next one while its receiver computes. After such a tick the thread
 *   keeps an operator that is not ready for a while: a notification then sets QUEUED and does
 *   nothing else, and the thread, which looks at the state, goes on (fragi_event_keep).
 * - Before a long tick the home thread gives its role up. A thread takes the role when it has a
 *   short operator and nobody has the role.
 *
 * Waking a thread costs the waker several microseconds. So another thread is woken only when queued
 * operators would have to wait for longer than that, or have waited again and again: see
 * event_is_worth_waking. Three things bound the delay when a prediction is wrong: while other
 * threads work, one idle thread sleeps with a timeout; who finds the home thread in the same turn
 * as a millisecond ago lets another thread take the role; and the control thread calls
 * fragi_sched_wake_stalled, which does both.
 *
 * One idle thread waits in the pump, so that the thread that receives a message is the thread that
 * computes. Further idle threads wait on a futex of the scheduler.
 *
 * All of this is about operators in no thread pool; event_pool.c runs the others. For the threads
 * here a thread of a pool is one from outside.
 */

/* Queues an operator that was notified outside of a tick of this scheduler, and wakes a thread. */
static void queue_from_outside(struct fragi_exec *exec)
{
	struct event *event = (struct event *)exec->sched;
	/* A thread of this scheduler will look at the queue when it leaves the pump. */
	bool is_ours = fragi_sched_here != NULL && fragi_sched_here->sched == &event->base;
	enum wake_target target = WAKE_NOBODY;

	fragi_lock_take(&event->lock);
	event_push_locked(event, exec);
	/* The thread that runs the short operators will look at their queue too. */
	if (!is_ours && atomic_load(&event->spinning) == 0 &&
	    !(event_is_short(exec) && atomic_load(&event->home) != NULL))
		target = fragi_event_choose_idle_locked(event);
	fragi_lock_leave(&event->lock);
	fragi_event_wake(event, target);
}

static inline void hold(struct event_thread *thread, struct fragi_exec *exec)
{
	exec->next = NULL;
	*thread->held_end = exec;
	thread->held_end = &exec->next;
}

/* Queues a long operator that was notified inside a long tick: it need not wait for its end. */
static void queue_beside(struct fragi_exec *exec)
{
	struct event *event = (struct event *)exec->sched;
	enum wake_target target = WAKE_NOBODY;

	fragi_lock_take(&event->lock);
	event_push_locked(event, exec);
	if (atomic_load_explicit(&event->idle, memory_order_relaxed) > 0 &&
	    event_is_worth_waking(event, exec->expected))
		target = fragi_event_choose_idle_locked(event);
	fragi_lock_leave(&event->lock);
	fragi_event_wake(event, target);
}

static __attribute__((noinline)) void queue_or_hold(struct event_thread *thread,
						    struct fragi_exec *exec)
{
	if (thread == NULL || thread->here.sched != exec->sched || !thread->overlaps)
		queue_from_outside(exec);
	else if (event_is_short(exec))
		hold(thread, exec);
	else
		queue_beside(exec);
}

/* The notification of an operator: its conditions must be evaluated. */
static void event_notify(void *arg)
{
	struct fragi_exec *exec = arg;
	struct event_thread *thread = (struct event_thread *)fragi_sched_here;

	if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) != 0)
		return;
	if (__builtin_expect(thread == NULL || thread->here.sched != exec->sched ||
				     !atomic_load_explicit(&thread->holding, memory_order_relaxed),
			     0))
		queue_or_hold(thread, exec);
	else
		hold(thread, exec);
}

/* The same for an operator that may be in a pool. */
static void notify_any(void *arg)
{
	struct fragi_exec *exec = arg;

	if (exec->op->crew == 0)
		event_notify(exec);
	else
		fragi_event_crew_notify(exec);
}

static void (*event_notifier(const struct frag_op *op))(void *exec)
{
	return op->crew == 0 ? event_notify : fragi_event_crew_notify;
}

static void start_operators(struct event *event)
{
	struct fragi_sched *sched = &event->base;
	bool started = fragi_sched_start_ops(sched) == 0;

	for (uint32_t i = 0; started && i < sched->count; i++)
		if (sched->execs[i]->op->crew > 0)
			fragi_event_crew_notify(sched->execs[i]);
	fragi_lock_take(&event->lock);
	for (uint32_t i = 0; started && i < sched->count; i++)
		if (sched->execs[i]->op->crew == 0 &&
		    atomic_fetch_or(&sched->execs[i]->state, FRAGI_QUEUED) == 0)
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
	fragi_event_work(event, thread);
	log_debug(sched->config.fragment->name,
		  "a thread ran operators %llu times and slept %llu times",
		  (unsigned long long)atomic_load(&thread->turns),
		  (unsigned long long)thread->sleeps);
	/* Closing the ports sends notifications, which must not queue anything. */
	event_set_holding(thread, true);
	fragi_event_leave(event);
	fragi_sched_here = NULL;
}

void fragi_event_leave(struct event *event)
{
	if (atomic_fetch_sub(&event->leaving, 1) != 1)
		return;
	fragi_sched_finish_ops(&event->base);
	event->base.config.finished(event->base.config.arg);
}

static void *thread_main(void *arg)
{
	struct event_thread *thread = arg;
	struct fragi_sched_alive alive;

	fragi_sched_alive_begin(thread->here.sched, &alive);
	pthread_cleanup_push(fragi_sched_thread_lost, &alive);
	thread_run(thread);
	pthread_cleanup_pop(0);
	fragi_sched_alive_end(&alive);
	return NULL;
}

/* Creation, start and end. */

static int event_create(const struct fragi_sched_config *config, struct fragi_sched **out_sched)
{
	const struct fragi_spec_fragment *own = config->fragment->own;
	uint32_t threads = own != NULL ? own->scheduler.worker_thread_number : 0;
	const char *polls = getenv("FRAG_TEST_NO_SAFETY_POLL");
	struct event *event = fragi_aligned_alloc(64, sizeof(*event));

	if (event == NULL)
		return -ENOMEM;
	memset(event, 0, sizeof(*event));
	if (threads == 0) {
		const uint32_t op_count = fragi_thread_pools_unpooled(config->fragment);

		threads = fragi_sched_cores();
		threads = threads > op_count ? op_count : threads;
	}
	threads = threads == 0 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
	event->threads = fragi_calloc(threads, sizeof(struct event_thread));
	if (event->threads == NULL || fragi_event_crews_create(event, config->fragment) < 0) {
		fragi_free(event->threads);
		fragi_free(event);
		return -ENOMEM;
	}
	event->thread_count = threads;
	for (uint32_t i = 0; i < threads; i++) {
		event->threads[i].here.sched = &event->base;
		event->threads[i].here.turn_stamps = fragi_sched_stamps(FRAGI_PUMP_TURN_NS);
		event->threads[i].held_end = &event->threads[i].held;
		event->threads[i].round.tail = &event->threads[i].round.head;
		event->threads[i].recheck_ns = RECHECK_MIN_NS / 2;
	}
	event->shorts.tail = &event->shorts.head;
	event->longs.tail = &event->longs.head;
	event->covers_ns = INT64_MAX;
	fragi_event_use_clock(event, config->fragment->clock);
	atomic_store(&event->timer_ns, INT64_MAX);
	event->hint_stamps = fragi_sched_stamps(FRAGI_HINT_NS);
	event->recheck_stamps = fragi_sched_stamps(RECHECK_MIN_NS);
	event->polls = polls == NULL || strcmp(polls, "all") != 0;
	event->wake_stamps = fragi_sched_stamps(WAKE_NS);
	event->waited_stamps = fragi_sched_stamps(WAITED_NS);
	event->overlap_stamps = threads > 1 ? fragi_sched_stamps(OVERLAP_NS) : UINT64_MAX;
	event->keep_min_stamps = fragi_sched_stamps(KEEP_MIN_NS);
	event->move_stamps = fragi_sched_stamps(MOVE_NS);
	event->long_stamps = fragi_sched_stamps(LONG_TICK_NS);
	/* Where stamps stand still, no time would ever end a batch, nor what is kept. */
	if (!fragi_clock_is_virtual(event->clock)) {
		event->batch_stamps = fragi_sched_stamps(BATCH_NS);
		event->keep_max_stamps = fragi_sched_stamps(KEEP_MAX_NS);
	}
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
	fragi_event_crews_join(event);
}

/* One thread moves nothing: what is long only matters to the pump. */
static void event_made(struct fragi_sched *sched, struct fragi_exec *exec)
{
	const struct event *event = (const struct event *)sched;
	uint64_t flows = (uint64_t)exec->rx_count + exec->tx_count;

	exec->long_from = event->thread_count > 1
				  ? fragi_sched_stamps(MOVE_NS + MOVE_FLOW_NS * flows)
				  : event->hint_stamps;
}

static int event_start(struct fragi_sched *sched, struct frag_err *err)
{
	const struct fragi_sched_cores cores = fragi_sched_own_cores(sched);
	struct event *event = (struct event *)sched;
	int r;

	atomic_store(&event->leaving, event->thread_count + fragi_event_crews_threads(event));
	r = fragi_event_crews_start(event, err);
	/* Creates the first thread last: it starts the operators, when all threads exist. */
	for (uint32_t i = event->thread_count; r == 0 && i-- > 0;) {
		r = fragi_sched_thread_create(sched, &cores, thread_main, &event->threads[i],
					      &event->threads[i].pthread, err);
		event->threads[i].created = r == 0;
	}
	if (r < 0) {
		/* No operator was started, so the threads that exist only leave. */
		fragi_sched_halt(sched);
		event_join(sched);
	}
	return r;
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
	*out_rounds += fragi_event_crews_rounds(event);
	return rests;
}

static void event_wake_stalled(struct fragi_sched *sched, int64_t now_ns)
{
	struct event *event = (struct event *)sched;
	enum wake_target target = WAKE_NOBODY;

	if (!event->polls)
		return;
	fragi_lock_take(&event->lock);
	fragi_event_leave_home_locked(event, &event->stalled_turns);
	if (!event_is_empty_for(event, NULL) ||
	    atomic_load_explicit(&event->timer_ns, memory_order_relaxed) < now_ns)
		target = fragi_event_choose_idle_locked(event);
	fragi_lock_leave(&event->lock);
	if (target != WAKE_NOBODY)
		log_debug(sched->config.fragment->name, "queued work was waiting; waking a thread");
	fragi_event_wake(event, target);
	fragi_event_crews_wake_stalled(event, now_ns);
}

static void event_destroy(struct fragi_sched *sched)
{
	struct event *event = (struct event *)sched;

	fragi_clock_leave(event->clock, &event->clock_user);
	fragi_event_crews_destroy(event);
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
	.notify = notify_any,
	.notifier = event_notifier,
	.made = event_made,
};
