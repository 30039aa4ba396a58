// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <edge/pump_state.h>

#define LOG_TOPIC "pump"
#include <base/lock.h>
#include <base/log.h>

/*
 * Who drives. A waiting thread that finds no other waiter driving drives: it makes progress, and
 * sleeps on the fd. The backup poller drives only while no waiter does; a waiter takes the role
 * over without a signal, and the backup poller notices at its next event or poll.
 *
 * Sleep against wake. A waiter stores in `sleeps` where it is going to sleep, executes a full
 * fence, asks has_work once more, and sleeps on its futex, whose key it had read before, or on the
 * fd. A thread that publishes work executes a full fence, then reads `sleeps`. So one of the two
 * sees the other. The store alone is no fence: what has_work loads may be read before it is stored.
 *
 * Progress while another thread sleeps on the fd may consume the event that the sleeper armed for,
 * and arming may consume the wake-up that it was poked with: a thread that does so beside a sleeper
 * arms again for it, and wakes it again if it was poked, before it unlocks.
 */
#define SAFETY_NS 500000000 /* safety net: bounds the delay if a wake-up is ever lost */
#define LOOK_AGAIN_NS (FRAGI_PUMP_TICK_NS * 10) /* the same beside another thread that drives */
#define PASSING_STAY_NS 100000                  /* of a compute thread */
#define REARM_ROUNDS_MAX 16

void fragi_futex_wait(_Atomic uint32_t *key, uint32_t seen, int64_t until_ns)
{
	struct timespec t;

	if (until_ns == INT64_MAX) {
		syscall(SYS_futex, key, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL,
			FUTEX_BITSET_MATCH_ANY);
		return;
	}
	t.tv_sec = until_ns / 1000000000;
	t.tv_nsec = until_ns % 1000000000;
	syscall(SYS_futex, key, FUTEX_WAIT_BITSET_PRIVATE, seen, &t, NULL, FUTEX_BITSET_MATCH_ANY);
}

void fragi_futex_wake(_Atomic uint32_t *key, int count)
{
	syscall(SYS_futex, key, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

int fragi_pump_create(struct fragi_pump **out_pump)
{
	const char *mode = getenv("FRAG_PUMP");
	struct fragi_pump *pump = fragi_aligned_alloc(64, sizeof(*pump));

	if (pump == NULL)
		return -ENOMEM;
	memset(pump, 0, sizeof(*pump));
	pump->fd = -1;
	/* Tests switch the safety net off, because it would hide a wake-up that is lost. */
	pump->safety_ns = getenv("FRAG_TEST_NO_SAFETY_POLL") == NULL ? SAFETY_NS : INT64_MAX;
	if (mode != NULL && strcmp(mode, "busy_poll") == 0)
		pump->busy_poll = true;
	else if (mode == NULL || strcmp(mode, "event") != 0)
		pump->adaptive = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	if (mode != NULL && *mode != '\0' && strcmp(mode, "busy_poll") != 0 &&
	    strcmp(mode, "event") != 0 && strcmp(mode, "adaptive") != 0)
		log_warn(
			NULL,
			"FRAG_PUMP is \"%.40s\", which is none of adaptive, busy_poll and event; using adaptive",
			mode);
	*out_pump = pump;
	return 0;
}

/* The lock. */

bool fragi_pump_try_lock(struct fragi_pump *pump)
{
	return atomic_load_explicit(&pump->lock, memory_order_relaxed) == 0 &&
	       atomic_load_explicit(&pump->lock_waiters, memory_order_relaxed) == 0 &&
	       atomic_exchange(&pump->lock, 1) == 0;
}

void fragi_pump_lock(struct fragi_pump *pump)
{
	uint32_t spins = 0;

	atomic_fetch_add(&pump->lock_waiters, 1);
	while (atomic_exchange(&pump->lock, 1) != 0) {
		if (++spins < 200)
			fragi_relax();
		else
			sched_yield();
	}
	atomic_fetch_sub(&pump->lock_waiters, 1);
}

static void run_submitted(struct fragi_pump *pump)
{
	struct fragi_pump_work *work, *next, *first = NULL;

	if (atomic_load_explicit(&pump->submitted, memory_order_relaxed) == NULL)
		return;
	for (work = atomic_exchange(&pump->submitted, NULL); work != NULL; work = next) {
		next = work->next;
		work->next = first;
		first = work;
	}
	for (work = first; work != NULL; work = next) {
		next = work->next; /* fn may submit it again */
		work->fn(work);
	}
}

static void unref_all(struct frag_message *const *messages, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fragi_message_unref(messages[i]);
}

void fragi_pump_unlock(struct fragi_pump *pump)
{
	struct frag_message *disposed[FRAGI_PUMP_DISPOSE_MAX];
	uint32_t count;

	do {
		run_submitted(pump);
		count = pump->disposed_count;
		if (__builtin_expect(count != 0, 0)) {
			memcpy(disposed, pump->disposed, count * sizeof(disposed[0]));
			pump->disposed_count = 0;
		}
		/*
		 * A full barrier: a submitter that has found the lock taken has put its work in
		 * before, so either it is seen here or the submitter sees the lock free.
		 */
		atomic_exchange(&pump->lock, 0);
		if (__builtin_expect(count != 0, 0))
			unref_all(disposed, count);
	} while (atomic_load(&pump->submitted) != NULL && fragi_pump_try_lock(pump));
}

void fragi_pump_submit(struct fragi_pump *pump, struct fragi_pump_work *work)
{
	struct fragi_pump_work *head;

	if (fragi_pump_try_lock(pump)) {
		run_submitted(pump);
		work->fn(work);
		fragi_pump_unlock(pump);
		return;
	}
	head = atomic_load_explicit(&pump->submitted, memory_order_relaxed);
	do {
		work->next = head;
	} while (!atomic_compare_exchange_weak(&pump->submitted, &head, work));
	if (atomic_exchange(&pump->lock, 1) == 0)
		fragi_pump_unlock(pump);
}

void fragi_pump_dispose(struct fragi_pump *pump, struct frag_message *message)
{
	if (pump->disposed_count < FRAGI_PUMP_DISPOSE_MAX)
		pump->disposed[pump->disposed_count++] = message;
	else
		fragi_message_unref(message);
}

/* Wake-ups. */

static void wake_on_fd(struct fragi_pump *pump)
{
	atomic_fetch_add(&pump->fd_wakes, 1);
	pump->ops->wake(pump->object);
}

void fragi_pump_poke(struct fragi_pump *pump, struct fragi_pump_waiter *waiter)
{
	uint32_t sleeps;

	atomic_thread_fence(memory_order_seq_cst);
	sleeps = atomic_load_explicit(&waiter->sleeps, memory_order_relaxed);
	if (sleeps == FRAGI_AWAKE)
		return;
	atomic_fetch_add(&waiter->pokes, 1);
	if (sleeps == FRAGI_ON_FUTEX)
		fragi_futex_wake(&waiter->pokes, 1);
	else
		wake_on_fd(pump);
}

void fragi_pump_hint(struct fragi_pump *pump)
{
	if (!pump->backup_started ||
	    atomic_load_explicit(&pump->driving_thread, memory_order_relaxed) != FRAGI_DRIVING_NONE)
		return;
	atomic_store(&pump->hinted, true);
	atomic_fetch_add(&pump->backup_key, 1);
	fragi_futex_wake(&pump->backup_key, 1);
}

/* Driving. */

/* Under the lock: others wait for it, or for what is done when it is free. */
static bool is_wanted(struct fragi_pump *pump)
{
	return atomic_load_explicit(&pump->submitted, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&pump->lock_waiters, memory_order_relaxed) != 0 ||
	       pump->disposed_count > FRAGI_PUMP_DISPOSE_MAX / 2;
}

void fragi_pump_rearm(struct fragi_pump *pump)
{
	if (!atomic_load(&pump->has_fd_sleeper))
		return;
	for (int i = 0; i < REARM_ROUNDS_MAX && !is_wanted(pump); i++) {
		if (pump->ops->arm(pump->object) == 0) {
			if (atomic_load(&pump->fd_wakes) != pump->fd_wakes_seen)
				break;
			return;
		}
		pump->ops->progress(pump->object, fragi_now_ns());
	}
	pump->ops->wake(pump->object);
}

/*
 * Asks a waiting thread's has_work before others can have the lock: who counts what is on the way
 * under it then finds that thread's scheduler busy with all that has arrived (run/watchdog.c).
 */
static bool asked_locked(bool (*has_work)(void *arg), void *arg)
{
	return has_work != NULL && has_work(arg);
}

/* has_work: of the thread, where it waits; else NULL. */
static void progress_in_passing(struct fragi_pump *pump, bool (*has_work)(void *arg), void *arg)
{
	int64_t now, until_ns;
	uint32_t happened;
	bool consumed = false;

	if (pump->object == NULL || !fragi_pump_try_lock(pump))
		return;
	fragi_count(&pump->passed, 1);
	now = fragi_now_ns();
	until_ns = now + PASSING_STAY_NS;
	do {
		happened = pump->ops->progress(pump->object, now);
		consumed = consumed || happened > 0;
		now = fragi_now_ns();
	} while (happened > 0 && now < until_ns && !is_wanted(pump));
	if (consumed)
		fragi_pump_rearm(pump);
	(void)asked_locked(has_work, arg);
	fragi_pump_unlock(pump);
}

void fragi_pump_progress(struct fragi_pump *pump)
{
	progress_in_passing(pump, NULL, NULL);
}

void fragi_pump_fd_sleep(const struct fragi_pump *pump, int64_t now_ns, int64_t until_ns)
{
	struct pollfd p = {.fd = pump->fd, .events = POLLIN};
	int64_t ns = until_ns - now_ns;
	struct timespec t;

	if (ns <= 0)
		return;
	if (ns > pump->safety_ns)
		ns = pump->safety_ns;
	t.tv_sec = ns / 1000000000;
	t.tv_nsec = ns % 1000000000;
	ppoll(&p, 1, &t, NULL);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t fragi_pump_bounded(const struct fragi_pump *pump, int64_t until_ns, int64_t now_ns)
{
	return pump->safety_ns == INT64_MAX ? until_ns : earlier(until_ns, now_ns + LOOK_AGAIN_NS);
}

static void begin_wait(const struct fragi_pump *pump, struct fragi_spin *spin, int64_t now_ns)
{
	struct rusage usage;

	if (!pump->adaptive)
		return;
	fragi_spin_begin(spin, now_ns);
	if (!fragi_spin_asks_share(spin) || getrusage(RUSAGE_THREAD, &usage) < 0)
		return;
	fragi_spin_share(spin,
			 (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
				 (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000,
			 usage.ru_nivcsw);
}

static bool spins_on(const struct fragi_pump *pump, const struct fragi_spin *spin, int64_t now_ns)
{
	return pump->busy_poll || fragi_spin_goes_on(spin, now_ns) ||
	       (pump->adaptive &&
		now_ns < atomic_load_explicit(&pump->awake_until_ns, memory_order_relaxed));
}

void fragi_pump_stay_awake(struct fragi_pump *pump, int64_t until_ns)
{
	atomic_store_explicit(&pump->awake_until_ns, until_ns, memory_order_relaxed);
}

static void end_wait(const struct fragi_pump *pump, struct fragi_spin *spin, int64_t until_ns)
{
	int64_t now;

	if (!pump->adaptive)
		return;
	now = fragi_now_ns();
	fragi_spin_end(spin, now, now < until_ns);
}

/* Makes rounds until there is something to do. The caller has made itself the driving thread. */
static void drive(struct fragi_pump *pump, struct fragi_pump_waiter *waiter, int64_t until_ns,
		  bool (*has_work)(void *arg), void *arg)
{
	int64_t now = fragi_now_ns(), deadline;
	uint32_t happened, misses = 0, poked;
	bool has;
	int r;

	begin_wait(pump, &waiter->spin, now);
	for (;;) {
		poked = atomic_load(&waiter->pokes);
		if (!fragi_pump_try_lock(pump)) {
			/* Somebody sends or receives: it will not be long. */
			if (has_work(arg) || now >= until_ns)
				return;
			if (++misses < 200)
				fragi_relax();
			else
				sched_yield();
			now = fragi_now_ns();
			continue;
		}
		misses = 0;
		happened = pump->ops->progress(pump->object, now);
		has = asked_locked(has_work, arg);
		fragi_pump_unlock(pump);
		if (has || has_work(arg))
			return;
		now = fragi_now_ns();
		if (now >= until_ns)
			return;
		if (happened > 0) {
			end_wait(pump, &waiter->spin, until_ns);
			begin_wait(pump, &waiter->spin, now);
			continue;
		}
		if (spins_on(pump, &waiter->spin, now))
			continue; /* a round takes long enough */
		if (!fragi_pump_try_lock(pump))
			continue;
		r = pump->ops->arm(pump->object);
		deadline = pump->ops->deadline_ns(pump->object);
		if (r == 0) {
			pump->fd_wakes_seen = atomic_load(&pump->fd_wakes);
			atomic_store(&pump->has_fd_sleeper, true);
			atomic_store(&waiter->sleeps, FRAGI_ON_FD);
		}
		fragi_pump_unlock(pump);
		if (r != 0)
			continue;
		fragi_spin_sleeps(&waiter->spin);
		atomic_thread_fence(memory_order_seq_cst); /* against poke's */
		if (!has_work(arg) && atomic_load(&waiter->pokes) == poked)
			fragi_pump_fd_sleep(pump, now, earlier(until_ns, deadline));
		atomic_store(&waiter->sleeps, FRAGI_AWAKE);
		atomic_store(&pump->has_fd_sleeper, false);
		now = fragi_now_ns();
		if (atomic_load(&waiter->pokes) != poked) {
			/* The poke's own event on the fd is consumed by the next round. */
			return;
		}
		/* A sleep that ended by time has a last round: peers may have given memory back. */
	}
}

static bool begin_driving(struct fragi_pump *pump)
{
	uint32_t seen = atomic_load(&pump->driving_thread);

	while (seen != FRAGI_DRIVING_WAITER) {
		if (atomic_compare_exchange_weak(&pump->driving_thread, &seen,
						 FRAGI_DRIVING_WAITER)) {
			fragi_count(&pump->turns, 1);
			return true;
		}
	}
	return false;
}

/* Back to compute: from now on the backup poller's tick counts. */
static void leave_driving(struct fragi_pump *pump)
{
	assert(atomic_load(&pump->driving_thread) == FRAGI_DRIVING_WAITER);
	atomic_store(&pump->driving_thread, FRAGI_DRIVING_NONE);
	/* It still sleeps for an event of which this thread has had the wake-up. */
	if (atomic_load(&pump->backup_on_fd))
		wake_on_fd(pump);
	if (atomic_load(&pump->backup_rests)) {
		atomic_store(&pump->backup_rests, false);
		atomic_fetch_add(&pump->backup_key, 1);
		fragi_futex_wake(&pump->backup_key, 1);
	}
}

static void futex_sleep(struct fragi_pump_waiter *waiter, uint32_t poked, int64_t until_ns,
			bool (*has_work)(void *arg), void *arg)
{
	fragi_spin_sleeps(&waiter->spin);
	atomic_store(&waiter->sleeps, FRAGI_ON_FUTEX);
	atomic_thread_fence(memory_order_seq_cst); /* against poke's */
	if (!has_work(arg))
		fragi_futex_wait(&waiter->pokes, poked, until_ns);
	atomic_store(&waiter->sleeps, FRAGI_AWAKE);
}

/* Returns true when there is no need to sleep. */
static bool spin(const struct fragi_pump *pump, struct fragi_spin *spin, int64_t until_ns,
		 bool (*has_work)(void *arg), void *arg)
{
	int64_t now = fragi_now_ns();

	begin_wait(pump, spin, now);
	while (spins_on(pump, spin, now)) {
		if (has_work(arg) || now >= until_ns)
			return true;
		fragi_relax();
		now = fragi_now_ns();
	}
	return false;
}

void fragi_pump_wait(struct fragi_pump *pump, struct fragi_pump_waiter *waiter, int64_t until_ns,
		     bool (*has_work)(void *arg), void *arg)
{
	uint32_t poked;

	if (has_work(arg))
		return;
	poked = atomic_load(&waiter->pokes);
	if (pump->object == NULL) {
		if (!spin(pump, &waiter->spin, until_ns, has_work, arg))
			futex_sleep(waiter, poked, until_ns, has_work, arg);
		end_wait(pump, &waiter->spin, until_ns);
		return;
	}
	if (begin_driving(pump)) {
		drive(pump, waiter, until_ns, has_work, arg);
		leave_driving(pump);
		end_wait(pump, &waiter->spin, until_ns);
		return;
	}
	/*
	 * Another thread drives, and may sleep: a last round, for what operators on this thread
	 * have left to send. Should the driving thread go to compute, this thread takes over at its
	 * tick, as the backup poller would.
	 */
	progress_in_passing(pump, has_work, arg);
	futex_sleep(waiter, poked, fragi_pump_bounded(pump, until_ns, fragi_now_ns()), has_work,
		    arg);
	if (fragi_now_ns() >= until_ns)
		progress_in_passing(pump, has_work, arg); /* as the thread that drives */
}

int fragi_pump_attach(struct fragi_pump *pump, const struct fragi_pump_ops *ops, void *object)
{
	int r;

	assert(pump->object == NULL && "one transport at a time");
	pump->ops = ops;
	pump->fd = ops->fd(object);
	pump->object = object;
	r = fragi_pump_backup_start(pump);
	if (r < 0)
		pump->object = NULL;
	return r;
}

void fragi_pump_detach(struct fragi_pump *pump)
{
	fragi_pump_backup_stop(pump);
	pump->object = NULL;
}

void fragi_pump_destroy(struct fragi_pump *pump)
{
	if (pump == NULL)
		return;
	fragi_pump_detach(pump);
	unref_all(pump->disposed, pump->disposed_count);
	fragi_free(pump);
}
