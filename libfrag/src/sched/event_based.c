// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/alloc.h>
#include <sched/kind.h>

/*
 * A pool of threads and one queue of operators to look at. What happens to an operator sets QUEUED in its
 * state; who finds the state 0 before that puts it into the queue, and nobody else. A thread that takes it
 * out sets RUNNING alone, looks, ticks while it is ready, and takes RUNNING away; if QUEUED was set meanwhile
 * it goes into the queue once more. So an operator is in one place at a time and no event is missed.
 *
 * Waking a thread costs the waker several microseconds, more than many ticks take. So what a tick's own emits
 * and receives make ready is held until the tick ends; the first goes on at once on the same thread, and the
 * rest wake another thread only when they would have to wait for longer than waking takes. How long a tick
 * will be is guessed from the operator's recent longest one. Against wrong guesses, one idle thread sleeps
 * with a timeout while others work, and the control thread looks in (fragi_sched_look).
 *
 * An idle thread waits in the pump, so that the thread that receives is the thread that computes; further
 * idle threads wait on a futex of the scheduler's own.
 */
#define WAKE_NS 40000       /* let other work wait for so long before waking a thread for it */
#define LONG_TICK_NS 200000 /* predicted longer than this: see that somebody minds timers and the pump */
#define BATCH_NS 2000       /* ticks of one operator in a row before what they made ready */
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
	int64_t recheck_ns;
	int64_t base_ns; /* CLOCK_MONOTONIC at base_stamp */
	uint64_t base_stamp;
};

struct event {
	struct fragi_sched base;
	struct worker *workers;
	uint32_t worker_count;
	uint64_t wake_stamps, long_stamps, hint_stamps, batch_stamps; /* the limits above, in stamps */
	pthread_mutex_t lock;
	_Atomic uint32_t queued;  /* length of the queue; written under the lock */
	_Atomic int64_t timer_ns; /* the earliest time somebody waits for; written under the lock */
	_Atomic bool
		waking; /* an idle thread has been woken and has not looked yet; written under the lock */
	_Atomic bool ending;
	_Atomic uint32_t leaving; /* threads that have not left yet */
	/* under the lock */
	struct fragi_exec *head, **tail;
	uint64_t backlog; /* of the queue: sum of its peaks */
	uint64_t rounds;  /* times that something was queued */
	uint32_t idle, parked;
	bool in_pump;          /* an idle thread is */
	bool seeded;           /* the operators have been started */
	int64_t covers_ns;     /* when an idle thread will wake by itself; INT64_MAX: none will */
	_Atomic uint32_t park; /* futex */
};

/* The queue; all with the lock held. */

static uint64_t peak_of(const struct fragi_exec *exec)
{
	return exec->peak == 0 ? 1000000 : exec->peak;
}

static void count(_Atomic uint32_t *counter, uint32_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void queue_push_locked(struct event *event, struct fragi_exec *exec)
{
	exec->next = NULL;
	*event->tail = exec;
	event->tail = &exec->next;
	event->backlog += peak_of(exec);
	event->rounds++;
	count(&event->queued, 1);
}

static struct fragi_exec *queue_pop_locked(struct event *event)
{
	struct fragi_exec *exec = event->head;

	if (exec == NULL)
		return NULL;
	event->head = exec->next;
	if (event->head == NULL)
		event->tail = &event->head;
	count(&event->queued, (uint32_t)-1);
	event->backlog =
		event->head == NULL || event->backlog < peak_of(exec) ? 0 : event->backlog - peak_of(exec);
	return exec;
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t until_ns)
{
	struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, until_ns == INT64_MAX ? NULL : &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

enum whom { NOBODY, PARKED, PUMP };

/* Chooses an idle thread to wake; wake() does it once the lock is free. */
static enum whom choose_locked(struct event *event)
{
	if (event->idle == 0 || atomic_load_explicit(&event->waking, memory_order_relaxed))
		return NOBODY;
	atomic_store(&event->waking, true);
	if (event->parked == 0)
		return PUMP;
	atomic_fetch_add(&event->park, 1);
	return PARKED;
}

static void wake(struct event *event, enum whom whom)
{
	if (whom == PARKED)
		futex_wake(&event->park, 1);
	if (whom == PUMP) {
		/* What was written before is seen by has_work, or who waits there is seen by poke. */
		atomic_thread_fence(memory_order_seq_cst);
		fragi_pump_poke(event->base.config.pump);
	}
}

static void wake_all(struct fragi_sched *sched)
{
	struct event *event = (struct event *)sched;

	atomic_store(&event->ending, true);
	pthread_mutex_lock(&event->lock);
	atomic_fetch_add(&event->park, 1);
	pthread_mutex_unlock(&event->lock);
	futex_wake(&event->park, INT_MAX);
	fragi_pump_poke(sched->config.pump);
}

/* Somebody's operator has something to look at. */
static void event_notify(void *arg)
{
	struct fragi_exec *exec = arg;
	struct event *event = (struct event *)exec->sched;
	struct worker *worker = (struct worker *)fragi_sched_here;
	enum whom whom = NOBODY;

	if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) != 0)
		return;
	if (worker != NULL && worker->here.sched == &event->base) {
		if (worker->holding) {
			exec->next = NULL;
			*worker->held_end = exec;
			worker->held_end = &exec->next;
			return;
		}
		/* In the pump: this thread itself comes out with it. */
		pthread_mutex_lock(&event->lock);
		queue_push_locked(event, exec);
		pthread_mutex_unlock(&event->lock);
		return;
	}
	pthread_mutex_lock(&event->lock);
	queue_push_locked(event, exec);
	whom = choose_locked(event);
	pthread_mutex_unlock(&event->lock);
	wake(event, whom);
}

/* Timers. */

static void timer_arm(struct event *event, struct fragi_exec *exec, int64_t until_ns)
{
	pthread_mutex_lock(&event->lock);
	exec->until_ns = until_ns;
	atomic_store_explicit(&exec->timer_armed, true, memory_order_relaxed);
	if (until_ns < atomic_load_explicit(&event->timer_ns, memory_order_relaxed))
		atomic_store_explicit(&event->timer_ns, until_ns, memory_order_relaxed);
	pthread_mutex_unlock(&event->lock);
}

static void timer_disarm(struct event *event, struct fragi_exec *exec)
{
	int64_t earliest = INT64_MAX;

	pthread_mutex_lock(&event->lock);
	exec->timer_armed = false;
	for (uint32_t i = 0; i < event->base.count; i++)
		if (event->base.execs[i]->timer_armed && event->base.execs[i]->until_ns < earliest)
			earliest = event->base.execs[i]->until_ns;
	atomic_store_explicit(&event->timer_ns, earliest, memory_order_relaxed);
	pthread_mutex_unlock(&event->lock);
}

/* Queues those whose time has come. */
static void timers_fire(struct event *event, int64_t now_ns)
{
	int64_t earliest = INT64_MAX;

	pthread_mutex_lock(&event->lock);
	for (uint32_t i = 0; i < event->base.count; i++) {
		struct fragi_exec *exec = event->base.execs[i];

		if (!exec->timer_armed)
			continue;
		if (exec->until_ns > now_ns) {
			earliest = exec->until_ns < earliest ? exec->until_ns : earliest;
			continue;
		}
		exec->timer_armed = false;
		if (atomic_fetch_or_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel) == 0)
			queue_push_locked(event, exec);
	}
	atomic_store_explicit(&event->timer_ns, earliest, memory_order_relaxed);
	pthread_mutex_unlock(&event->lock);
}

/* CLOCK_MONOTONIC at the thread's latest stamp, without a call; corrected ten times a second. */
static int64_t worker_now_ns(struct worker *worker)
{
	uint64_t since_ns = fragi_stamp_diff_ns(worker->base_stamp, worker->here.stamp);

	if (since_ns > 100000000) {
		worker->base_ns = fragi_now_ns();
		worker->base_stamp = worker->here.stamp = fragi_stamp();
		return worker->base_ns;
	}
	return worker->base_ns + (int64_t)since_ns;
}

/* Idle. */

static bool has_work(void *arg)
{
	struct event *event = arg;

	return atomic_load(&event->queued) > 0 || atomic_load(&event->ending) || atomic_load(&event->waking);
}

static void rest_if_all_locked(struct event *event, bool *out_rests)
{
	*out_rests = event->seeded && event->idle == event->worker_count && event->head == NULL &&
		     atomic_load_explicit(&event->timer_ns, memory_order_relaxed) == INT64_MAX;
}

/*
 * Until when an idle thread may sleep: the next timer, or a while as long as others work, unless another idle
 * thread wakes by then anyway.
 */
static int64_t sleep_until_locked(struct event *event, struct worker *worker)
{
	int64_t until_ns = atomic_load_explicit(&event->timer_ns, memory_order_relaxed), recheck;

	if (event->idle < event->worker_count) {
		worker->recheck_ns =
			worker->recheck_ns * 2 < RECHECK_MAX_NS ? worker->recheck_ns * 2 : RECHECK_MAX_NS;
		recheck = fragi_now_ns() + worker->recheck_ns;
		until_ns = recheck < until_ns ? recheck : until_ns;
	}
	if (event->covers_ns <= until_ns)
		return INT64_MAX;
	event->covers_ns = until_ns;
	return until_ns;
}

static void idle(struct event *event, struct worker *worker)
{
	struct fragi_sched *sched = &event->base;
	bool pumps, rests;
	int64_t until_ns;
	uint32_t park;

	pthread_mutex_lock(&event->lock);
	atomic_store(&event->waking, false);
	if (has_work(event)) {
		pthread_mutex_unlock(&event->lock);
		return;
	}
	event->idle++;
	pumps = !event->in_pump;
	if (pumps)
		event->in_pump = true;
	else
		event->parked++;
	until_ns = sleep_until_locked(event, worker);
	rest_if_all_locked(event, &rests);
	park = atomic_load(&event->park);
	pthread_mutex_unlock(&event->lock);

	if (rests && sched->config.rested != NULL)
		sched->config.rested(sched->config.arg);
	if (pumps)
		fragi_pump_wait(sched->config.pump, until_ns, has_work, event);
	else
		futex_wait(&event->park, park, until_ns);

	pthread_mutex_lock(&event->lock);
	event->idle--;
	if (pumps)
		event->in_pump = false;
	else
		event->parked--;
	atomic_store(&event->waking, false);
	if (until_ns != INT64_MAX && event->covers_ns == until_ns)
		event->covers_ns = INT64_MAX;
	pthread_mutex_unlock(&event->lock);
	worker->here.stamp = worker->here.pump_stamp = fragi_stamp();
}

/* Work. */

/* Before a tick that may be long: sees that what would have to wait for it does not. */
static void share(struct event *event, const struct fragi_exec *exec)
{
	uint64_t length = peak_of(exec);
	enum whom whom = NOBODY;

	if (__builtin_expect(length < event->long_stamps, 1) &&
	    (event->worker_count == 1 || atomic_load_explicit(&event->queued, memory_order_relaxed) == 0))
		return;
	pthread_mutex_lock(&event->lock);
	if ((event->head != NULL && length + event->backlog > event->wake_stamps) ||
	    (length > event->long_stamps &&
	     (!event->in_pump ||
	      atomic_load_explicit(&event->timer_ns, memory_order_relaxed) < event->covers_ns)))
		whom = choose_locked(event);
	pthread_mutex_unlock(&event->lock);
	if (whom != NOBODY)
		wake(event, whom);
	else if (length > event->hint_stamps)
		fragi_pump_hint(event->base.config.pump);
}

/* Ticks exec while it is ready and its turn lasts. Returns what it said last. */
static enum fragi_ready turn(struct event *event, struct worker *worker, struct fragi_exec *exec,
			     int64_t *out_until_ns)
{
	uint64_t begin = worker->here.stamp;
	enum fragi_ready ready;
	int r;

	for (;;) {
		ready = fragi_exec_ready(exec, out_until_ns);
		if (ready != FRAGI_READY)
			return ready;
		if (atomic_load_explicit(&event->base.halting, memory_order_relaxed))
			return FRAGI_READY;
		share(event, exec);
		r = fragi_exec_tick(exec, worker->here.current, worker->here.stamp, &worker->here.stamp);
		if (__builtin_expect(r < 0, 0)) {
			fragi_sched_fail(&event->base, exec, "compute", r);
			return FRAGI_READY;
		}
		if (__builtin_expect(r == FRAG_DONE, 0))
			return FRAGI_NEVER;
		if (worker->here.stamp - begin + exec->peak > event->batch_stamps)
			return fragi_exec_ready(exec, out_until_ns);
	}
}

/* Hands on what the turn made ready: the first stays here, the rest and exec itself, if it is to go on,
 * queue. */
static void hand_on(struct event *event, struct worker *worker, struct fragi_exec *again)
{
	struct fragi_exec *rest;

	worker->next = worker->held;
	if (worker->next == NULL) {
		if (again == NULL)
			return;
		if (atomic_load_explicit(&event->queued, memory_order_relaxed) == 0) {
			worker->next = again;
			return;
		}
		rest = NULL;
	} else {
		rest = worker->next->next;
		if (rest == NULL && again == NULL)
			goto out;
	}
	pthread_mutex_lock(&event->lock);
	while (rest != NULL) {
		struct fragi_exec *next = rest->next;

		queue_push_locked(event, rest);
		rest = next;
	}
	if (again != NULL)
		queue_push_locked(event, again);
	pthread_mutex_unlock(&event->lock);
out:
	worker->held = NULL;
	worker->held_end = &worker->held;
}

static void run(struct event *event, struct worker *worker, struct fragi_exec *exec)
{
	enum fragi_ready ready;
	struct fragi_exec *again = NULL;
	int64_t until_ns = 0;
	bool last = false;

	atomic_exchange_explicit(&exec->state, FRAGI_RUNNING, memory_order_acq_rel);
	if (__builtin_expect(exec->done, 0)) {
		/* Stays RUNNING: nobody queues it again. */
		return;
	}
	worker->holding = true;
	if (exec->timer_armed)
		timer_disarm(event, exec);
	ready = turn(event, worker, exec, &until_ns);
	if (ready == FRAGI_NEVER) {
		last = fragi_sched_finish_op(&event->base, exec);
	} else if (ready == FRAGI_READY) {
		/* An exchange, so that whoever runs it next sees what was notified meanwhile. */
		atomic_exchange_explicit(&exec->state, FRAGI_QUEUED, memory_order_acq_rel);
		again = exec;
	} else {
		if (ready == FRAGI_WAIT_TIME)
			timer_arm(event, exec, until_ns);
		if (atomic_fetch_and_explicit(&exec->state, ~FRAGI_RUNNING, memory_order_acq_rel) &
		    FRAGI_QUEUED)
			again = exec;
	}
	worker->holding = false;
	hand_on(event, worker, again);
	if (last)
		wake_all(&event->base);
}

/* What to run next: what was handed on, but not for ever while others wait in the queue. */
static struct fragi_exec *take(struct event *event, struct worker *worker)
{
	struct fragi_exec *exec = worker->next;

	worker->next = NULL;
	if (atomic_load_explicit(&event->queued, memory_order_relaxed) == 0)
		return exec;
	if (exec != NULL && ++worker->streak < STREAK_MAX)
		return exec;
	worker->streak = 0;
	pthread_mutex_lock(&event->lock);
	if (exec != NULL)
		queue_push_locked(event, exec);
	exec = queue_pop_locked(event);
	pthread_mutex_unlock(&event->lock);
	return exec;
}

static void work(struct event *event, struct worker *worker)
{
	struct fragi_exec *exec;
	int64_t timer_ns;

	while (!atomic_load_explicit(&event->ending, memory_order_relaxed)) {
		timer_ns = atomic_load_explicit(&event->timer_ns, memory_order_relaxed);
		if (timer_ns != INT64_MAX && worker_now_ns(worker) >= timer_ns)
			timers_fire(event, fragi_now_ns());
		exec = take(event, worker);
		if (exec == NULL) {
			idle(event, worker);
			continue;
		}
		worker->recheck_ns = RECHECK_MIN_NS / 2;
		run(event, worker, exec);
		fragi_sched_pump_turn(&worker->here, event->base.config.pump);
	}
}

static void seed(struct event *event)
{
	struct fragi_sched *sched = &event->base;
	bool started = fragi_sched_start_ops(sched) == 0;

	pthread_mutex_lock(&event->lock);
	event->seeded = true;
	for (uint32_t i = 0; started && i < sched->count; i++)
		if (atomic_fetch_or(&sched->execs[i]->state, FRAGI_QUEUED) == 0)
			queue_push_locked(event, sched->execs[i]);
	atomic_fetch_add(&event->park, 1);
	pthread_mutex_unlock(&event->lock);
	futex_wake(&event->park, INT_MAX);
	if (sched->count == 0)
		wake_all(sched);
}

/* Threads other than the first: no operator is looked at before all have been started. */
static void wait_for_seed(struct event *event)
{
	uint32_t park;
	bool seeded;

	for (;;) {
		pthread_mutex_lock(&event->lock);
		park = atomic_load(&event->park);
		seeded = event->seeded;
		pthread_mutex_unlock(&event->lock);
		if (seeded || atomic_load(&event->ending))
			return;
		futex_wait(&event->park, park, INT64_MAX);
	}
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct event *event = (struct event *)worker->here.sched;
	struct fragi_sched *sched = &event->base;

	worker->here.current = fragi_current();
	fragi_sched_here = &worker->here;
	if (worker == &event->workers[0])
		seed(event);
	else
		wait_for_seed(event);
	worker->base_ns = fragi_now_ns();
	worker->base_stamp = worker->here.stamp = worker->here.pump_stamp = fragi_stamp();
	work(event, worker);
	if (atomic_fetch_sub(&event->leaving, 1) == 1) {
		worker->holding = true; /* what now closes is not to be looked at any more */
		fragi_sched_finish_ops(sched);
		sched->config.finished(sched->config.arg);
	}
	fragi_sched_here = NULL;
	return NULL;
}

/* Life. */

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
		threads = threads > config->fragment->op_count ? config->fragment->op_count : threads;
	}
	threads = threads == 0 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
	event->workers = fragi_calloc(threads, sizeof(struct worker));
	if (event->workers == NULL) {
		fragi_free(event);
		return -ENOMEM;
	}
	event->worker_count = threads;
	for (uint32_t i = 0; i < threads; i++) {
		event->workers[i].here.sched = &event->base;
		event->workers[i].here.turn_stamps = fragi_sched_stamps(FRAGI_PUMP_TURN_NS);
		event->workers[i].held_end = &event->workers[i].held;
		event->workers[i].recheck_ns = RECHECK_MIN_NS / 2;
	}
	pthread_mutex_init(&event->lock, NULL);
	event->tail = &event->head;
	event->covers_ns = INT64_MAX;
	atomic_store(&event->timer_ns, INT64_MAX);
	event->wake_stamps = fragi_sched_stamps(WAKE_NS);
	event->long_stamps = fragi_sched_stamps(LONG_TICK_NS);
	event->hint_stamps = fragi_sched_stamps(FRAGI_HINT_NS);
	event->batch_stamps = fragi_sched_stamps(BATCH_NS);
	*out_sched = &event->base;
	return 0;
}

static void event_join(struct fragi_sched *sched)
{
	struct event *event = (struct event *)sched;

	for (uint32_t i = 0; i < event->worker_count; i++)
		if (event->workers[i].created) {
			pthread_join(event->workers[i].thread, NULL);
			event->workers[i].created = false;
		}
}

static int event_start(struct fragi_sched *sched, struct frag_err *err)
{
	struct event *event = (struct event *)sched;
	int r;

	atomic_store(&event->leaving, event->worker_count);
	/* The first one last: it starts the operators, and then all threads are there. */
	for (uint32_t i = event->worker_count; i-- > 0;) {
		r = fragi_sched_thread_create(sched, worker_main, &event->workers[i],
					      &event->workers[i].thread, err);
		if (r < 0) {
			/* Nothing has been started, and those that are there leave without a word. */
			fragi_sched_halt(sched);
			event_join(sched);
			return r;
		}
		event->workers[i].created = true;
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
	pthread_mutex_lock(&event->lock);
	rest_if_all_locked(event, &rests);
	*out_rounds = event->rounds;
	pthread_mutex_unlock(&event->lock);
	return rests;
}

static void event_look(struct fragi_sched *sched, int64_t now_ns)
{
	struct event *event = (struct event *)sched;
	enum whom whom = NOBODY;

	pthread_mutex_lock(&event->lock);
	if (event->head != NULL || atomic_load_explicit(&event->timer_ns, memory_order_relaxed) < now_ns)
		whom = choose_locked(event);
	pthread_mutex_unlock(&event->lock);
	wake(event, whom);
}

static void event_destroy(struct fragi_sched *sched)
{
	struct event *event = (struct event *)sched;

	pthread_mutex_destroy(&event->lock);
	fragi_free(event->workers);
	fragi_free(event);
}

const struct fragi_sched_kind fragi_sched_event_based = {
	.name = "event_based",
	.create = event_create,
	.start = event_start,
	.wake = wake_all,
	.join = event_join,
	.at_rest = event_at_rest,
	.look = event_look,
	.destroy = event_destroy,
	.notify = event_notify,
};
