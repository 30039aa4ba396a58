// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "sched"
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include <base/alloc.h>
#include <base/log.h>
#include <graph/thread_pool.h>
#include <sched/event.h>
#include <sched/realtime.h>

/*
 * The threads of thread pools. A crew is the threads that run the same operators: those of a pool,
 * or the one thread of an operator that is pinned. It has a queue, and its threads take operators
 * out of it, evaluate their conditions and tick them, with the same states of an operator as
 * elsewhere in this scheduler (event_based.c). Who notifies an operator of a crew puts it into the
 * queue and wakes a thread of the crew if one sleeps.
 *
 * What is different from the scheduler's own threads: what a tick notifies is not held to its end,
 * since others run it, no matter how long a tick takes, nobody else runs the operators of the
 * crew, and its threads never drive the pump. A crew watches the timers of its operators itself:
 * one of its idle threads sleeps until the next one is due, or the thread that ends a tick looks.
 *
 * A crew that works, or waits for a timer, counts as one pending tick of the scheduler. So the
 * fragment rests when its other threads rest and no crew counts. A crew stops counting only after
 * what it notified last was queued elsewhere. Where the clock only moves once everything waits, a
 * timer does not count; such a clock asks for the earliest one, and says when it has moved.
 */
struct crew_thread {
	struct event_crew *crew;
	struct fragi_current *current;
	uint64_t stamp; /* the latest one that it read */
	uint64_t turns, sleeps;
	pthread_t pthread;
	bool created;
};

struct event_crew {
	/* constant */
	struct event *event;
	const struct fragi_crew *plan;
	const char *subject; /* "fragment.pool" or "fragment.operator" */
	struct crew_thread *threads;

	_Alignas(64) struct fragi_lock lock;
	/* Guarded by the lock. */
	struct event_queue queue;
	struct fragi_exec *timers; /* those that wait for a time, the earliest first */
	uint64_t rounds;           /* how many times an operator was queued */
	uint32_t idle;             /* threads that sleep and that nobody has woken */
	uint32_t woken;            /* threads that were woken and have not looked yet */
	int64_t covers_ns; /* when an idle thread will wake by itself; INT64_MAX: none will */
	bool is_counted;   /* it counts as a pending tick of the scheduler */
	/* futexes */
	_Atomic uint32_t park;
	_Atomic uint32_t entered; /* of real time: the thread is scheduled as wanted, or is not */
	struct frag_err refusal;  /* set before that; code 0: none */
	struct fragi_pace pace;   /* its thread's */
};

/* The caller holds the lock of the crew. */

/* When the earliest timer is due on the fragment's clock; INT64_MAX: there is none. */
static int64_t next_ns_locked(const struct event_crew *crew)
{
	return crew->timers != NULL ? crew->timers->until_ns : INT64_MAX;
}

/* The same on CLOCK_MONOTONIC; INT64_MAX too where the clock says when it moves. */
static int64_t timer_ns_locked(const struct event_crew *crew)
{
	return fragi_clock_machine_ns(crew->event->clock, next_ns_locked(crew));
}

/* Counts the crew, or stops counting it. */
static void count_locked(struct event_crew *crew)
{
	bool counts = crew->idle < crew->plan->thread_count || crew->queue.head != NULL ||
		      (crew->timers != NULL && !fragi_clock_is_virtual(crew->event->clock));

	if (counts == crew->is_counted)
		return;
	crew->is_counted = counts;
	if (counts)
		atomic_fetch_add(&crew->event->base.pending, 1);
	else
		atomic_fetch_sub(&crew->event->base.pending, 1);
}

static void push_locked(struct event_crew *crew, struct fragi_exec *exec)
{
	exec->next = NULL;
	*crew->queue.tail = exec;
	crew->queue.tail = &exec->next;
	crew->rounds++;
	count_locked(crew);
}

static struct fragi_exec *pop_locked(struct event_crew *crew)
{
	struct fragi_exec *exec = crew->queue.head;

	if (exec == NULL)
		return NULL;
	crew->queue.head = exec->next;
	if (crew->queue.head == NULL)
		crew->queue.tail = &crew->queue.head;
	return exec;
}

/* Returns whether the caller is to wake a thread, once the lock is free. */
static bool choose_idle_locked(struct event_crew *crew)
{
	if (crew->idle == 0)
		return false;
	crew->idle--;
	crew->woken++;
	atomic_fetch_add(&crew->park, 1);
	return true;
}

static void fire_timers_locked(struct event_crew *crew)
{
	int64_t now_ns = fragi_clock_now_ns(crew->event->clock);
	struct fragi_exec *exec;

	while ((exec = crew->timers) != NULL && exec->until_ns <= now_ns) {
		crew->timers = exec->next_timer;
		exec->has_timer = false;
		if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) == 0)
			push_locked(crew, exec);
	}
}

/* With the lock free. */

static void wake(struct event_crew *crew)
{
	fragi_event_futex_wake(&crew->park, 1);
}

static struct event_crew *crew_of(const struct fragi_exec *exec)
{
	return &((struct event *)exec->sched)->crews[exec->op->crew - 1];
}

void fragi_event_crew_notify(void *arg)
{
	struct fragi_exec *exec = arg;
	struct event_crew *crew = crew_of(exec);
	bool wakes;

	if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) != 0)
		return;
	fragi_lock_take(&crew->lock);
	push_locked(crew, exec);
	wakes = choose_idle_locked(crew);
	fragi_lock_leave(&crew->lock);
	if (wakes)
		wake(crew);
}

static void arm_timer(struct event_crew *crew, struct fragi_exec *exec)
{
	struct fragi_exec **place = &crew->timers;

	fragi_lock_take(&crew->lock);
	while (*place != NULL && (*place)->until_ns <= exec->until_ns)
		place = &(*place)->next_timer;
	exec->next_timer = *place;
	*place = exec;
	exec->has_timer = true;
	/* The clock may have been moved since the operator was evaluated. */
	if (fragi_clock_is_virtual(crew->event->clock))
		fire_timers_locked(crew);
	fragi_lock_leave(&crew->lock);
}

static void disarm_timer(struct event_crew *crew, struct fragi_exec *exec)
{
	struct fragi_exec **place = &crew->timers;

	fragi_lock_take(&crew->lock);
	while (*place != NULL && *place != exec)
		place = &(*place)->next_timer;
	if (*place != NULL)
		*place = exec->next_timer;
	exec->has_timer = false;
	fragi_lock_leave(&crew->lock);
}

/* Ticks an operator while it is ready, for BATCH_NS at most. Returns its last answer. */
static enum frag_ready tick_while_ready(struct crew_thread *thread, struct fragi_exec *exec)
{
	struct event *event = thread->crew->event;
	uint64_t begin = thread->stamp = fragi_stamp();
	enum frag_ready ready;
	bool is_over = false;
	int r;

	for (;;) {
		ready = fragi_exec_ready(exec);
		if (ready != FRAG_READY || is_over)
			return ready;
		r = fragi_exec_tick(exec, thread->current, thread->stamp, &thread->stamp);
		if (r < 0) {
			fragi_sched_fail(&event->base, exec, FRAGI_CALL_COMPUTE, r);
			return FRAG_READY;
		}
		if (r == FRAG_DONE)
			return FRAG_NEVER;
		if (thread->crew->pace.period_ns > 0) {
			fragi_pace_wait(&thread->crew->pace);
			thread->stamp = fragi_stamp();
		}
		is_over = thread->stamp - begin + 1 > event->batch_stamps;
	}
}

static void run(struct crew_thread *thread, struct fragi_exec *exec)
{
	struct event_crew *crew = thread->crew;
	enum frag_ready ready;
	bool again = false;

	atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
	assert(!exec->done); /* it stays RUNNING, so no thread queues it again */
	if (exec->has_timer)
		disarm_timer(crew, exec);
	ready = tick_while_ready(thread, exec);
	if (ready == FRAG_NEVER) {
		if (fragi_sched_finish_op(&crew->event->base, exec))
			fragi_event_end(crew->event);
		return;
	}
	if (ready == FRAG_READY) {
		atomic_exchange_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel);
		again = true;
	} else {
		if (ready == FRAG_WAIT_TIME)
			arm_timer(crew, exec);
		again = atomic_fetch_sub_explicit(&exec->state, FRAGI_RUNNING,
						  memory_order_acq_rel) != FRAGI_RUNNING;
	}
	if (!again)
		return;
	fragi_lock_take(&crew->lock);
	push_locked(crew, exec);
	fragi_lock_leave(&crew->lock);
}

/*
 * Takes the oldest operator of the queue; NULL: there is none. An idle thread is woken for what is
 * left, unless one is on its way: for more operators, and for a timer that no idle thread watches.
 */
static struct fragi_exec *next_exec(struct event_crew *crew)
{
	struct fragi_exec *exec;
	bool wakes = false;

	fragi_lock_take(&crew->lock);
	if (crew->timers != NULL)
		fire_timers_locked(crew);
	exec = pop_locked(crew);
	if (exec != NULL && crew->woken == 0 &&
	    (crew->queue.head != NULL || timer_ns_locked(crew) < crew->covers_ns))
		wakes = choose_idle_locked(crew);
	fragi_lock_leave(&crew->lock);
	if (wakes)
		wake(crew);
	return exec;
}

static void report_rest(struct event *event)
{
	bool rests;

	fragi_lock_take(&event->lock);
	rests = fragi_event_at_rest_locked(event);
	fragi_lock_leave(&event->lock);
	if (rests && event->base.config.rested != NULL)
		event->base.config.rested(event->base.config.arg);
}

/* Waits until there may be work. */
static void idle(struct event_crew *crew)
{
	struct event *event = crew->event;
	int64_t until_ns = INT64_MAX;
	uint32_t park;
	bool rests;

	fragi_lock_take(&crew->lock);
	if (crew->queue.head != NULL || atomic_load(&event->ending)) {
		fragi_lock_leave(&crew->lock);
		return;
	}
	crew->idle++;
	if (timer_ns_locked(crew) < crew->covers_ns)
		crew->covers_ns = until_ns = timer_ns_locked(crew);
	count_locked(crew);
	rests = !crew->is_counted;
	park = atomic_load(&crew->park);
	fragi_lock_leave(&crew->lock);

	if (rests) {
		report_rest(event);
		fragi_clock_waiting(event->clock);
	}
	fragi_event_futex_wait(&crew->park, park, until_ns);

	fragi_lock_take(&crew->lock);
	if (crew->woken > 0)
		crew->woken--;
	else
		crew->idle--;
	if (until_ns != INT64_MAX && crew->covers_ns == until_ns)
		crew->covers_ns = INT64_MAX;
	count_locked(crew);
	fragi_lock_leave(&crew->lock);
}

/* The kernel keeps 15 bytes: a part of the fragment's name, and more of the operator's or pool's. */
static void set_name(const struct event_crew *crew)
{
	const struct fragi_crew *plan = crew->plan;
	const char *own = plan->pinned != NULL ? plan->pinned->name : plan->pool->name;
	const char *fragment = crew->event->base.config.fragment->name;
	int left = 14 - (int)(strlen(own) < 9 ? strlen(own) : 9);
	char name[16];

	snprintf(name, sizeof(name), "%.*s%c%s", left, fragment, plan->pinned != NULL ? '.' : ':',
		 own);
	(void)prctl(PR_SET_NAME, name);
}

/*
 * On a real-time thread, before any operator is started: has the kernel schedule it as wanted, and
 * notes in the ledger what the kernel says.
 */
static void enter_realtime(struct event_crew *crew)
{
	const struct fragi_crew *plan = crew->plan;
	struct fragi_op_row *row = plan->pinned->exec->row;
	struct fragi_realtime granted;
	char text[96];
	int r = fragi_realtime_enter(&plan->realtime, &granted, &crew->refusal);

	if (plan->realtime.policy == FRAGI_SCHED_DEADLINE) {
		crew->pace.period_ns = (int64_t)plan->realtime.period_ns;
		crew->pace.by_kernel = r == 0;
	}
	atomic_store(&row->sched_runtime_ns, granted.runtime_ns);
	atomic_store(&row->sched_deadline_ns, granted.deadline_ns);
	atomic_store(&row->sched_period_ns, granted.period_ns);
	atomic_store(&row->sched, (uint64_t)granted.policy | (uint64_t)granted.priority << 32);
	if (r == 0)
		log_info(crew->subject, "its thread runs under %s",
			 fragi_realtime_text(&granted, text, sizeof(text)));
	if (r < 0 && plan->best_effort) {
		log_warn(crew->subject, "%s; it runs without", crew->refusal.text);
		crew->refusal.code = 0;
	}
	atomic_store(&crew->entered, 1);
	fragi_event_futex_wake(&crew->entered, 1);
}

/* Waits for that. Returns 0, or the refusal with its sentence. */
static int await_realtime(struct event_crew *crew, struct frag_err *err)
{
	while (atomic_load(&crew->entered) == 0)
		fragi_event_futex_wait(&crew->entered, 0, INT64_MAX);
	if (crew->refusal.code == 0)
		return 0;
	return frag_err_set(err, crew->refusal.code, "%s: %s, or write best_effort: true",
			    crew->subject, crew->refusal.text);
}

/* Not inlined: see thread_run of event_based.c. */
static __attribute__((noinline)) void thread_run(struct crew_thread *thread)
{
	struct event_crew *crew = thread->crew;
	struct event *event = crew->event;
	struct fragi_exec *exec;

	set_name(crew);
	thread->current = fragi_exec_current();
	if (crew->plan->realtime.policy != FRAGI_SCHED_NONE)
		enter_realtime(crew);
	fragi_event_wait_for_start(event);
	while (!atomic_load_explicit(&event->ending, memory_order_relaxed)) {
		exec = next_exec(crew);
		if (exec != NULL) {
			thread->turns++;
			run(thread, exec);
		} else {
			thread->sleeps++;
			idle(crew);
		}
	}
	log_debug(crew->subject, "a thread ran operators %llu times and slept %llu times",
		  (unsigned long long)thread->turns, (unsigned long long)thread->sleeps);
	fragi_event_leave(event);
}

static void *thread_main(void *arg)
{
	struct crew_thread *thread = arg;
	struct fragi_sched_alive alive;

	fragi_sched_alive_begin(&thread->crew->event->base, &alive);
	pthread_cleanup_push(fragi_sched_thread_lost, &alive);
	thread_run(thread);
	pthread_cleanup_pop(0);
	fragi_sched_alive_end(&alive);
	return NULL;
}

/* Creation, start and end. */

static int crew_create(struct event_crew *crew, struct event *event, const struct fragi_crew *plan)
{
	crew->event = event;
	crew->plan = plan;
	crew->subject = plan->pinned != NULL ? plan->pinned->subject : plan->pool->subject;
	crew->queue.tail = &crew->queue.head;
	crew->covers_ns = INT64_MAX;
	crew->threads = fragi_calloc(plan->thread_count, sizeof(*crew->threads));
	if (crew->threads == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->thread_count; i++)
		crew->threads[i].crew = crew;
	return 0;
}

int fragi_event_crews_create(struct event *event, const struct frag_fragment *fragment)
{
	const size_t size = fragment->crew_count * sizeof(struct event_crew);

	if (fragment->crew_count == 0)
		return 0;
	event->crews = fragi_aligned_alloc(64, size);
	if (event->crews == NULL)
		return -ENOMEM;
	memset(event->crews, 0, size);
	event->crew_count = fragment->crew_count;
	for (uint32_t i = 0; i < event->crew_count; i++)
		if (crew_create(&event->crews[i], event, &fragment->crews[i]) < 0) {
			fragi_event_crews_destroy(event);
			return -ENOMEM;
		}
	return 0;
}

void fragi_event_crews_destroy(struct event *event)
{
	for (uint32_t i = 0; i < event->crew_count; i++)
		fragi_free(event->crews[i].threads);
	fragi_free(event->crews);
}

uint32_t fragi_event_crews_threads(const struct event *event)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < event->crew_count; i++)
		count += event->crews[i].plan->thread_count;
	return count;
}

int fragi_event_crews_start(struct event *event, struct frag_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < event->crew_count; i++) {
		struct event_crew *crew = &event->crews[i];
		const struct fragi_sched_cores cores = {crew->subject, crew->plan->cores,
							crew->plan->core_count};

		fragi_lock_take(&crew->lock);
		count_locked(crew);
		fragi_lock_leave(&crew->lock);
		for (uint32_t k = 0; r == 0 && k < crew->plan->thread_count; k++) {
			r = fragi_sched_thread_create(&event->base, &cores, thread_main,
						      &crew->threads[k], &crew->threads[k].pthread,
						      err);
			crew->threads[k].created = r == 0;
		}
		if (r == 0 && crew->plan->realtime.policy != FRAGI_SCHED_NONE)
			r = await_realtime(crew, err);
	}
	return r;
}

void fragi_event_crews_join(struct event *event)
{
	for (uint32_t i = 0; i < event->crew_count; i++)
		for (uint32_t k = 0; k < event->crews[i].plan->thread_count; k++) {
			struct crew_thread *thread = &event->crews[i].threads[k];

			if (thread->created)
				pthread_join(thread->pthread, NULL);
			thread->created = false;
		}
}

void fragi_event_crews_end(struct event *event)
{
	for (uint32_t i = 0; i < event->crew_count; i++) {
		struct event_crew *crew = &event->crews[i];

		/* Under the lock: who has not seen `ending` reads the word before this. */
		fragi_lock_take(&crew->lock);
		atomic_fetch_add(&crew->park, 1);
		fragi_lock_leave(&crew->lock);
		fragi_event_futex_wake(&crew->park, INT_MAX);
	}
}

void fragi_event_crews_wake_stalled(struct event *event, int64_t now_ns)
{
	for (uint32_t i = 0; i < event->crew_count; i++) {
		struct event_crew *crew = &event->crews[i];
		bool wakes = false;

		fragi_lock_take(&crew->lock);
		if (crew->queue.head != NULL || timer_ns_locked(crew) < now_ns)
			wakes = choose_idle_locked(crew);
		fragi_lock_leave(&crew->lock);
		if (!wakes)
			continue;
		log_debug(crew->subject, "queued work was waiting; waking a thread");
		wake(crew);
	}
}

int64_t fragi_event_crews_next_ns(const struct event *event)
{
	int64_t next_ns = INT64_MAX, own_ns;

	for (uint32_t i = 0; i < event->crew_count; i++) {
		fragi_lock_take(&event->crews[i].lock);
		own_ns = next_ns_locked(&event->crews[i]);
		fragi_lock_leave(&event->crews[i].lock);
		next_ns = own_ns < next_ns ? own_ns : next_ns;
	}
	return next_ns;
}

void fragi_event_crews_clock_moved(struct event *event)
{
	for (uint32_t i = 0; i < event->crew_count; i++) {
		struct event_crew *crew = &event->crews[i];
		bool wakes = false;

		fragi_lock_take(&crew->lock);
		if (crew->timers != NULL) {
			fire_timers_locked(crew);
			wakes = choose_idle_locked(crew);
			count_locked(crew);
		}
		fragi_lock_leave(&crew->lock);
		if (wakes)
			wake(crew);
	}
}

uint64_t fragi_event_crews_rounds(struct event *event)
{
	uint64_t rounds = 0;

	for (uint32_t i = 0; i < event->crew_count; i++) {
		fragi_lock_take(&event->crews[i].lock);
		rounds += event->crews[i].rounds;
		fragi_lock_leave(&event->crews[i].lock);
	}
	return rounds;
}
