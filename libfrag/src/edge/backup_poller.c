// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <edge/pump_state.h>

/*
 * The backup poller: the thread that drives while no waiter does. It has no priority above others:
 * UCX takes spinlocks that its own async thread holds too, and a thread of SCHED_FIFO that spins
 * for one on a busy machine keeps the holder, and everything else, from the core.
 */
#define REST_TICKS 100 /* without any wake-up: the tick stops */
#define BACKOFF_NS 20000
#define ROUNDS 64 /* of work without giving way */
#define LOOK_NS 1000000
/* If compute threads poll at least this often, it is not woken for every event. */
#define PASSING_NS 200000

static bool should_leave(const struct fragi_pump *pump)
{
	return atomic_load(&pump->driving_thread) != FRAGI_DRIVING_BACKUP ||
	       atomic_load(&pump->backup_stop);
}

/* Either it sees a waiter that has taken over, or the waiter sees the mark as it leaves. */
static void sleep_on_fd(struct fragi_pump *pump, int64_t now_ns, int64_t deadline_ns)
{
	atomic_store(&pump->backup_on_fd, true);
	if (!should_leave(pump))
		fragi_pump_fd_sleep(pump, now_ns, fragi_pump_bounded(pump, deadline_ns, now_ns));
	atomic_store(&pump->backup_on_fd, false);
}

/* What it has seen of compute threads. */
struct passing {
	int64_t since_ns;
	uint64_t passed;
	bool often;
};

/* Whether they polled often in the last millisecond or more. */
static bool poll_often(struct fragi_pump *pump, int64_t now_ns, struct passing *p)
{
	uint64_t passed = atomic_load_explicit(&pump->passed, memory_order_relaxed);

	if (now_ns - p->since_ns < LOOK_NS)
		return p->often;
	p->often = (int64_t)(passed - p->passed) * PASSING_NS >= now_ns - p->since_ns;
	p->since_ns = now_ns;
	p->passed = passed;
	return p->often;
}

/*
 * As a waiter drives, but it never spins, and does not fight for the lock. It may run before all
 * others of its core: a round in which nothing happened though something is announced waits for
 * another thread, perhaps for a peer's backup poller on this very core, so it gives way; so does
 * every so many a round, however much there is to do. Compute threads whose ticks are short make
 * progress in passing, and a backup poller that woke up for each event, or tried for the lock that
 * they hold, would only take the core from them: then it polls by the clock, and is back soon after
 * one of their ticks has become long.
 */
static void backup_drive(struct fragi_pump *pump)
{
	const struct timespec backoff = {.tv_nsec = BACKOFF_NS}, look = {.tv_nsec = LOOK_NS};
	int64_t now = fragi_now_ns(), deadline;
	struct passing passing = {now, atomic_load_explicit(&pump->passed, memory_order_relaxed),
				  false};
	uint32_t happened, rounds = 0;
	bool often;
	int r;

	while (!should_leave(pump)) {
		now = fragi_now_ns();
		often = poll_often(pump, now, &passing);
		if (!fragi_pump_try_lock(pump)) {
			nanosleep(often ? &look : &backoff, NULL);
			continue;
		}
		happened = pump->ops->progress(pump->object, now);
		r = happened > 0 ? -EBUSY : pump->ops->arm(pump->object);
		deadline = pump->ops->deadline_ns(pump->object);
		fragi_pump_rearm(pump); /* of a waiter that has just come */
		fragi_pump_unlock(pump);
		if (should_leave(pump))
			continue;
		if (often)
			nanosleep(&look, NULL);
		else if (r == 0)
			sleep_on_fd(pump, now, deadline);
		else if (happened == 0 || ++rounds % ROUNDS == 0)
			nanosleep(&backoff, NULL);
	}
}

static void *backup_main(void *arg)
{
	struct fragi_pump *pump = arg;
	uint64_t turns = 0, seen;
	uint32_t key = atomic_load(&pump->backup_key), none, idle_ticks = 0;

	(void)prctl(PR_SET_NAME, "frag-backup");
	while (!atomic_load(&pump->backup_stop)) {
		if (idle_ticks >= REST_TICKS) {
			atomic_store(&pump->backup_rests, true);
			/* A thread that drove and left before it saw the mark is activity. */
			if (atomic_load(&pump->driving_thread) == FRAGI_DRIVING_WAITER &&
			    !atomic_load(&pump->backup_stop))
				fragi_futex_wait(&pump->backup_key, key, INT64_MAX);
			atomic_store(&pump->backup_rests, false);
			idle_ticks = 0;
		} else if (!atomic_load(&pump->backup_stop)) {
			fragi_futex_wait(&pump->backup_key, key,
					 fragi_now_ns() + FRAGI_PUMP_TICK_NS);
		}
		key = atomic_load(&pump->backup_key); /* a hint from here on ends the next sleep */
		seen = atomic_load(&pump->turns);
		none = FRAGI_DRIVING_NONE;
		if (atomic_load(&pump->driving_thread) == FRAGI_DRIVING_NONE &&
		    (atomic_exchange(&pump->hinted, false) || seen == turns) &&
		    atomic_compare_exchange_strong(&pump->driving_thread, &none,
						   FRAGI_DRIVING_BACKUP)) {
			backup_drive(pump);
			none = FRAGI_DRIVING_BACKUP;
			atomic_compare_exchange_strong(&pump->driving_thread, &none,
						       FRAGI_DRIVING_NONE);
		}
		idle_ticks =
			seen == turns && atomic_load(&pump->driving_thread) == FRAGI_DRIVING_WAITER
				? idle_ticks + 1
				: 0;
		turns = seen;
	}
	return NULL;
}

int fragi_pump_backup_start(struct fragi_pump *pump)
{
	sigset_t all, before;
	int r;

	sigfillset(&all); /* signals are for the threads of the program */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&pump->backup, NULL, backup_main, pump);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -r;
	pump->backup_started = true;
	return 0;
}

void fragi_pump_backup_stop(struct fragi_pump *pump)
{
	if (!pump->backup_started)
		return;
	atomic_store(&pump->backup_stop, true);
	atomic_fetch_add(&pump->backup_key, 1);
	fragi_futex_wake(&pump->backup_key, 1);
	if (pump->object != NULL)
		pump->ops->wake(pump->object);
	pthread_join(pump->backup, NULL);
	pump->backup_started = false;
}
