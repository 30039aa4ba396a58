// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <edge/pump.h>

#define LOG_TOPIC "pump"
#include <base/log.h>

/*
 * Who drives. A waiting thread that finds no other waiter driving becomes the driver: it makes
 * progress, and sleeps on the transport's fd. The spare thread drives only while no waiter does; a
 * waiter that comes takes the role over without telling it, and the spare notices with its next
 * event, or look.
 *
 * Sleep against wake. A sleeper raises `sleepers`, passes a full fence, asks has_work once more,
 * and sleeps on a futex whose key it had read before, or on the fd. Who has made work visible
 * passes a full fence and reads `sleepers`. So one of the two sees the other. The increment alone
 * is no fence: what has_work loads may be read before it is stored (aarch64 does so).
 *
 * Progress while another thread sleeps on the fd may consume the event that the sleeper armed for,
 * and arming the wake-up that it was poked with: whoever does so beside a sleeper arms again for
 * it, and wakes it again if it was poked, before it unlocks.
 */
#define SPIN_NS 30000 /* adaptive, where there are cores to spare */
#define SPIN_CORES_MIN 5
#define TICK_NS INT64_C(10000000) /* of the spare */
#define REST_TICKS 100            /* without any wake-up: the tick stops */
#define SLEEP_NS_MAX 500000000    /* lost wake-ups exist */
#define SPARE_BACKOFF_NS 20000
#define SPARE_ROUNDS 64 /* of work without giving way */
#define SPARE_LOOK_NS 1000000
/* threads that compute and come as often as this need no spare at each event */
#define PASSING_NS 200000
#define PASSING_STAY_NS (PASSING_NS / 2)
#define DISPOSE_MAX 64
#define REARM_ROUNDS_MAX 16

enum driver {
	DRIVER_NONE,
	DRIVER_WAITER,
	DRIVER_SPARE,
};

struct fragi_pump {
	/* constant after attach */
	const struct fragi_transport_ops *ops;
	struct fragi_transport *transport;
	int fd;
	bool busy_poll;
	int64_t spin_ns;
	/* the lock, and what it guards */
	_Alignas(64) _Atomic uint32_t lock;
	_Atomic uint32_t lock_waiters; /* in fragi_pump_lock: nobody overtakes them */
	uint32_t disposed_count;
	struct frag_message *disposed[DISPOSE_MAX];
	uint32_t fd_wakes_seen;  /* fd_wakes when the sleeper on the fd has armed */
	_Atomic uint64_t passed; /* how often threads that compute have come; the holder counts */
	/* submitted work, newest first */
	_Alignas(64) _Atomic(struct fragi_pump_work *) submitted;
	/* sleepers */
	_Alignas(64) _Atomic uint32_t driver; /* enum driver */
	_Atomic uint32_t sleepers;            /* on the futex, on the fd: all that poke must wake */
	_Atomic uint32_t fd_sleepers;
	_Atomic uint32_t fd_wakes; /* how often it was poked */
	_Atomic uint32_t poke_key; /* futex */
	/* the spare */
	_Alignas(64) _Atomic uint32_t spare_key; /* futex: hints, stop */
	_Atomic bool spare_stop;
	_Atomic bool spare_rests; /* sleeps without a tick */
	_Atomic bool hinted;
	_Atomic uint64_t turns; /* how often a waiter became the driver */
	bool spare_started;
	pthread_t spare;
};

/* the pump this thread makes progress on as a waiter */
static _Thread_local struct fragi_pump *driving;
static _Thread_local bool poke_absorbed;

static void futex_wait(_Atomic uint32_t *key, uint32_t seen, int64_t until_ns)
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

static void futex_wake(_Atomic uint32_t *key, int count)
{
	syscall(SYS_futex, key, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

int fragi_pump_create(struct fragi_pump **out_pump)
{
	const char *mode = getenv("FRAG_PUMP");
	struct fragi_pump *pump = fragi_aligned_alloc(64, sizeof(*pump));

	if (pump == NULL)
		return -ENOMEM;
	memset(pump, 0, sizeof(*pump));
	pump->fd = -1;
	if (mode != NULL && strcmp(mode, "busy_poll") == 0)
		pump->busy_poll = true;
	else if (mode != NULL && strcmp(mode, "event") == 0)
		pump->spin_ns = 0;
	else
		pump->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) >= SPIN_CORES_MIN ? SPIN_NS : 0;
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
			pause_briefly();
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
	struct frag_message *disposed[DISPOSE_MAX];
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
	if (pump->disposed_count < DISPOSE_MAX)
		pump->disposed[pump->disposed_count++] = message;
	else
		fragi_message_unref(message);
}

/* Wake-ups. */

static void wake_on_fd(struct fragi_pump *pump)
{
	atomic_fetch_add(&pump->fd_wakes, 1);
	pump->ops->wake(pump->transport);
}

void fragi_pump_poke(struct fragi_pump *pump)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&pump->sleepers, memory_order_relaxed) == 0)
		return;
	atomic_fetch_add(&pump->poke_key, 1);
	futex_wake(&pump->poke_key, INT_MAX);
	if (atomic_load(&pump->fd_sleepers) != 0)
		wake_on_fd(pump);
}

void fragi_pump_poke_one(struct fragi_pump *pump)
{
	uint32_t on_fd;

	if (driving == pump && !poke_absorbed) {
		poke_absorbed = true;
		return;
	}
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&pump->sleepers, memory_order_relaxed) == 0)
		return;
	on_fd = atomic_load(&pump->fd_sleepers);
	atomic_fetch_add(&pump->poke_key, 1);
	/* The driver is left to drive when there is another. */
	if (atomic_load(&pump->sleepers) > on_fd || on_fd == 0)
		futex_wake(&pump->poke_key, 1);
	else
		wake_on_fd(pump);
}

void fragi_pump_hint(struct fragi_pump *pump)
{
	if (!pump->spare_started ||
	    atomic_load_explicit(&pump->driver, memory_order_relaxed) != DRIVER_NONE)
		return;
	atomic_store(&pump->hinted, true);
	atomic_fetch_add(&pump->spare_key, 1);
	futex_wake(&pump->spare_key, 1);
}

/* Driving. */

/* Under the lock: others wait for it, or for what is done when it is free. */
static bool is_wanted(struct fragi_pump *pump)
{
	return atomic_load_explicit(&pump->submitted, memory_order_relaxed) != NULL ||
	       atomic_load_explicit(&pump->lock_waiters, memory_order_relaxed) != 0 ||
	       pump->disposed_count > DISPOSE_MAX / 2;
}

/*
 * Under the lock: lets a thread that sleeps on the fd go on sleeping rightly, or wakes it. What
 * arms consumes the transport's wake-ups, also one that the sleeper was poked with and has not
 * seen.
 */
static void rearm_for_sleeper(struct fragi_pump *pump)
{
	if (atomic_load(&pump->fd_sleepers) == 0)
		return;
	for (int i = 0; i < REARM_ROUNDS_MAX && !is_wanted(pump); i++) {
		if (pump->ops->arm(pump->transport) == 0) {
			if (atomic_load(&pump->fd_wakes) != pump->fd_wakes_seen)
				break;
			return;
		}
		pump->ops->progress(pump->transport, fragi_now_ns());
	}
	pump->ops->wake(pump->transport);
}

void fragi_pump_progress(struct fragi_pump *pump)
{
	int64_t now, until_ns;
	uint32_t happened;
	bool consumed = false;

	if (pump->transport == NULL || !fragi_pump_try_lock(pump))
		return;
	fragi_count(&pump->passed, 1);
	now = fragi_now_ns();
	until_ns = now + PASSING_STAY_NS;
	do {
		happened = pump->ops->progress(pump->transport, now);
		consumed = consumed || happened > 0;
		now = fragi_now_ns();
	} while (happened > 0 && now < until_ns && !is_wanted(pump));
	if (consumed)
		rearm_for_sleeper(pump);
	fragi_pump_unlock(pump);
}

/* Sleeps on the fd until its event, or until_ns. */
static void fd_sleep(struct fragi_pump *pump, int64_t now_ns, int64_t until_ns)
{
	struct pollfd p = {.fd = pump->fd, .events = POLLIN};
	int64_t ns = until_ns - now_ns;
	struct timespec t;

	if (ns <= 0)
		return;
	if (ns > SLEEP_NS_MAX)
		ns = SLEEP_NS_MAX;
	t.tv_sec = ns / 1000000000;
	t.tv_nsec = ns % 1000000000;
	ppoll(&p, 1, &t, NULL);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Makes rounds until there is something to do. The caller has made itself the driver. */
static void drive(struct fragi_pump *pump, int64_t until_ns, bool (*has_work)(void *arg), void *arg)
{
	int64_t now = fragi_now_ns(), busy_ns = now, deadline;
	uint32_t happened, misses = 0, poked;
	int r;

	for (;;) {
		poked = atomic_load(&pump->poke_key);
		if (!fragi_pump_try_lock(pump)) {
			/* Somebody sends or receives: it will not be long. */
			if (has_work(arg) || now >= until_ns)
				return;
			if (++misses < 200)
				pause_briefly();
			else
				sched_yield();
			now = fragi_now_ns();
			continue;
		}
		misses = 0;
		driving = pump;
		poke_absorbed = false;
		happened = pump->ops->progress(pump->transport, now);
		fragi_pump_unlock(pump);
		driving = NULL;
		if (has_work(arg))
			return;
		now = fragi_now_ns();
		if (now >= until_ns)
			return;
		if (happened > 0) {
			busy_ns = now;
			continue;
		}
		if (pump->busy_poll || now - busy_ns < pump->spin_ns)
			continue; /* a round takes long enough */
		if (!fragi_pump_try_lock(pump))
			continue;
		r = pump->ops->arm(pump->transport);
		deadline = pump->ops->deadline_ns(pump->transport);
		if (r == 0) {
			pump->fd_wakes_seen = atomic_load(&pump->fd_wakes);
			atomic_fetch_add(&pump->sleepers, 1);
			atomic_fetch_add(&pump->fd_sleepers, 1);
		}
		fragi_pump_unlock(pump);
		if (r != 0)
			continue;
		atomic_thread_fence(memory_order_seq_cst); /* against poke's */
		if (!has_work(arg) && atomic_load(&pump->poke_key) == poked)
			fd_sleep(pump, now, earlier(until_ns, deadline));
		atomic_fetch_sub(&pump->fd_sleepers, 1);
		atomic_fetch_sub(&pump->sleepers, 1);
		now = fragi_now_ns();
		if (atomic_load(&pump->poke_key) != poked) {
			/* The poke's own event on the fd is consumed by the next round. */
			return;
		}
		if (now >= until_ns)
			return;
	}
}

static bool become_driver(struct fragi_pump *pump)
{
	uint32_t seen = atomic_load(&pump->driver);

	while (seen != DRIVER_WAITER) {
		if (atomic_compare_exchange_weak(&pump->driver, &seen, DRIVER_WAITER)) {
			fragi_count(&pump->turns, 1);
			return true;
		}
	}
	return false;
}

/* Back to compute: from now on the spare's tick counts. */
static void leave_driving(struct fragi_pump *pump)
{
	atomic_store(&pump->driver, DRIVER_NONE);
	if (atomic_load(&pump->spare_rests)) {
		atomic_store(&pump->spare_rests, false);
		atomic_fetch_add(&pump->spare_key, 1);
		futex_wake(&pump->spare_key, 1);
	}
}

static void futex_sleep(struct fragi_pump *pump, uint32_t poked, int64_t until_ns,
			bool (*has_work)(void *arg), void *arg)
{
	atomic_fetch_add(&pump->sleepers, 1);
	atomic_thread_fence(memory_order_seq_cst); /* against poke's */
	if (!has_work(arg))
		futex_wait(&pump->poke_key, poked, until_ns);
	atomic_fetch_sub(&pump->sleepers, 1);
}

/* Returns true when there is no need to sleep. */
static bool spin(const struct fragi_pump *pump, int64_t until_ns, bool (*has_work)(void *arg),
		 void *arg)
{
	int64_t now, start;

	if (!pump->busy_poll && pump->spin_ns == 0)
		return false;
	now = start = fragi_now_ns();
	while (pump->busy_poll || now - start < pump->spin_ns) {
		if (has_work(arg) || now >= until_ns)
			return true;
		pause_briefly();
		now = fragi_now_ns();
	}
	return false;
}

void fragi_pump_wait(struct fragi_pump *pump, int64_t until_ns, bool (*has_work)(void *arg),
		     void *arg)
{
	uint32_t poked;

	if (has_work(arg))
		return;
	poked = atomic_load(&pump->poke_key);
	if (pump->transport == NULL) {
		if (!spin(pump, until_ns, has_work, arg))
			futex_sleep(pump, poked, until_ns, has_work, arg);
		return;
	}
	if (become_driver(pump)) {
		drive(pump, until_ns, has_work, arg);
		leave_driving(pump);
		return;
	}
	/*
	 * Another drives, and may sleep: a last round, for what operators on this thread have left
	 * to send. Should the driver go to compute, this thread takes over at its tick, as the
	 * spare would.
	 */
	fragi_pump_progress(pump);
	futex_sleep(pump, poked, earlier(until_ns, fragi_now_ns() + TICK_NS * 10), has_work, arg);
}

/*
 * The spare. It has no priority above others: UCX takes spinlocks that its own async thread holds
 * too, and a thread of SCHED_FIFO that spins for one on a busy machine keeps the holder, and
 * everything else, from the core.
 */

static bool spare_should_leave(void *arg)
{
	struct fragi_pump *pump = arg;

	return atomic_load(&pump->driver) != DRIVER_SPARE || atomic_load(&pump->spare_stop);
}

/* what the spare has seen of threads that compute */
struct passing {
	int64_t since_ns;
	uint64_t passed;
	bool often;
};

/* Whether they came often in the last millisecond or more. */
static bool come_often(struct fragi_pump *pump, int64_t now_ns, struct passing *p)
{
	uint64_t passed = atomic_load_explicit(&pump->passed, memory_order_relaxed);

	if (now_ns - p->since_ns < SPARE_LOOK_NS)
		return p->often;
	p->often = (int64_t)(passed - p->passed) * PASSING_NS >= now_ns - p->since_ns;
	p->since_ns = now_ns;
	p->passed = passed;
	return p->often;
}

/*
 * As drive, but never spins, and does not fight for the lock. It may run before all others of its
 * core: a round in which nothing happened though something is announced waits for somebody, perhaps
 * for a peer's spare on this very core, so it gives way; so does every so many a round, however
 * much there is to do. Threads whose ticks are short make progress in passing, and a spare that
 * woke up for each event, or tried for the lock that they hold, would only take the core from them:
 * then it looks in by the clock, and is back soon after one of their ticks has become long.
 */
static void spare_drive(struct fragi_pump *pump)
{
	const struct timespec backoff = {.tv_nsec = SPARE_BACKOFF_NS},
			      look = {.tv_nsec = SPARE_LOOK_NS};
	int64_t now = fragi_now_ns(), deadline;
	struct passing passing = {now, atomic_load_explicit(&pump->passed, memory_order_relaxed),
				  false};
	uint32_t happened, rounds = 0;
	bool often;
	int r;

	while (!spare_should_leave(pump)) {
		now = fragi_now_ns();
		often = come_often(pump, now, &passing);
		if (!fragi_pump_try_lock(pump)) {
			nanosleep(often ? &look : &backoff, NULL);
			continue;
		}
		happened = pump->ops->progress(pump->transport, now);
		r = happened > 0 ? -EBUSY : pump->ops->arm(pump->transport);
		deadline = pump->ops->deadline_ns(pump->transport);
		rearm_for_sleeper(pump); /* of a waiter that has just come */
		fragi_pump_unlock(pump);
		if (spare_should_leave(pump))
			continue;
		if (often)
			nanosleep(&look, NULL);
		else if (r == 0)
			fd_sleep(pump, now, earlier(deadline, now + TICK_NS * 10));
		else if (happened == 0 || ++rounds % SPARE_ROUNDS == 0)
			nanosleep(&backoff, NULL);
	}
}

static void *spare_main(void *arg)
{
	struct fragi_pump *pump = arg;
	uint64_t turns = 0, seen;
	uint32_t key = atomic_load(&pump->spare_key), none, idle_ticks = 0;

	while (!atomic_load(&pump->spare_stop)) {
		if (idle_ticks >= REST_TICKS) {
			atomic_store(&pump->spare_rests, true);
			/* A driver that left before it could see the mark counts as activity. */
			if (atomic_load(&pump->driver) == DRIVER_WAITER &&
			    !atomic_load(&pump->spare_stop))
				futex_wait(&pump->spare_key, key, INT64_MAX);
			atomic_store(&pump->spare_rests, false);
			idle_ticks = 0;
		} else if (!atomic_load(&pump->spare_stop)) {
			futex_wait(&pump->spare_key, key, fragi_now_ns() + TICK_NS);
		}
		key = atomic_load(&pump->spare_key); /* a hint from here on ends the next sleep */
		seen = atomic_load(&pump->turns);
		none = DRIVER_NONE;
		if (atomic_load(&pump->driver) == DRIVER_NONE &&
		    (atomic_exchange(&pump->hinted, false) || seen == turns) &&
		    atomic_compare_exchange_strong(&pump->driver, &none, DRIVER_SPARE)) {
			spare_drive(pump);
			none = DRIVER_SPARE;
			atomic_compare_exchange_strong(&pump->driver, &none, DRIVER_NONE);
		}
		idle_ticks = seen == turns && atomic_load(&pump->driver) == DRIVER_WAITER
				     ? idle_ticks + 1
				     : 0;
		turns = seen;
	}
	return NULL;
}

int fragi_pump_attach(struct fragi_pump *pump, const struct fragi_transport_ops *ops,
		      struct fragi_transport *transport)
{
	sigset_t all, before;
	int r;

	pump->ops = ops;
	pump->fd = ops->fd(transport);
	pump->transport = transport;
	sigfillset(&all); /* signals are for the threads of the program */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&pump->spare, NULL, spare_main, pump);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		pump->transport = NULL;
		return -r;
	}
	pump->spare_started = true;
	pthread_setname_np(pump->spare, "frag-spare");
	return 0;
}

void fragi_pump_detach(struct fragi_pump *pump)
{
	if (pump->spare_started) {
		atomic_store(&pump->spare_stop, true);
		atomic_fetch_add(&pump->spare_key, 1);
		futex_wake(&pump->spare_key, 1);
		if (pump->transport != NULL)
			pump->ops->wake(pump->transport);
		pthread_join(pump->spare, NULL);
		pump->spare_started = false;
	}
	pump->transport = NULL;
}

void fragi_pump_destroy(struct fragi_pump *pump)
{
	if (pump == NULL)
		return;
	fragi_pump_detach(pump);
	unref_all(pump->disposed, pump->disposed_count);
	fragi_free(pump);
}
