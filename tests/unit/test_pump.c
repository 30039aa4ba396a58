// SPDX-License-Identifier: Apache-2.0
/* The pump with an engine that is a counter and a pipe. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <base/stamp.h>
#include <edge/pump.h>

#include "slow.h"

#define PATIENCE_NS 20000000000
/* A waiter asks at first, under the lock, when it has unlocked, and last when it has armed. */
#define LAST_ASKED 4

/*
 * events are made by fake_event and handled by progress. As with UCX, an event makes the fd
 * readable only if a thread has armed since the last one.
 */
struct engine {
	int fd;
	_Atomic uint64_t events;
	_Atomic uint64_t handled;
	_Atomic bool armed;
	_Atomic uint32_t inside; /* more than one thread in here is an error */
	_Atomic uint32_t collisions;
	uint64_t entries; /* not atomic: ThreadSanitizer sees whether the lock orders its holders */
	_Atomic uint64_t rounds;
	_Atomic uint64_t rounds_of_others; /* than the thread of the test */
	pthread_t test;
	struct fragi_pump *pump;
	struct fragi_pump_waiter *pokes; /* progress makes work for it and says so; NULL: none */
	_Atomic bool *done_in_arm; /* work that is published while a thread arms; NULL: none */
};

/* of the thread of the test */
static struct fragi_pump_waiter here;

static void enter(struct engine *t)
{
	if (atomic_fetch_add_explicit(&t->inside, 1, memory_order_relaxed) != 0)
		atomic_fetch_add(&t->collisions, 1);
	t->entries++;
}

static void leave(struct engine *t)
{
	atomic_fetch_sub_explicit(&t->inside, 1, memory_order_relaxed);
}

static void wake(void *object)
{
	const struct engine *t = object;
	uint64_t one = 1;

	cr_assert_eq(write(t->fd, &one, sizeof(one)), sizeof(one));
}

static void fake_event(struct engine *t)
{
	atomic_fetch_add(&t->events, 1);
	if (atomic_exchange(&t->armed, false))
		wake(t);
}

static uint32_t progress(void *object, int64_t now_ns)
{
	struct engine *t = object;
	uint64_t new;

	enter(t);
	atomic_fetch_add(&t->rounds, 1);
	if (!pthread_equal(pthread_self(), t->test))
		atomic_fetch_add(&t->rounds_of_others, 1);
	new = atomic_load(&t->events) - atomic_load(&t->handled);
	atomic_fetch_add(&t->handled, new);
	if (new > 0 && t->pokes != NULL)
		fragi_pump_poke(t->pump, t->pokes);
	leave(t);
	return (uint32_t) new;
}

static int arm(void *object)
{
	struct engine *t = object;
	uint64_t n;

	enter(t);
	if (read(t->fd, &n, sizeof(n)) == sizeof(n)) {
		leave(t);
		return -EBUSY;
	}
	if (t->done_in_arm != NULL) {
		atomic_store(t->done_in_arm, true);
		fragi_pump_poke(t->pump, &here);
	}
	atomic_store(&t->armed, true);
	if (atomic_load(&t->events) != atomic_load(&t->handled)) {
		atomic_store(&t->armed, false);
		leave(t);
		return -EBUSY;
	}
	leave(t);
	return 0;
}

static int fd_of(const void *object)
{
	return ((const struct engine *)object)->fd;
}

static int64_t deadline_ns(const void *object)
{
	return INT64_MAX;
}

static const struct fragi_pump_ops fake_ops = {
	.progress = progress,
	.arm = arm,
	.fd = fd_of,
	.deadline_ns = deadline_ns,
	.wake = wake,
};

static struct fragi_pump *pump;
static struct engine fake;

static void open_pump(void)
{
	cr_assert_eq(fragi_pump_create(&pump), 0);
	fake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake.pump = pump;
	fake.test = pthread_self();
	cr_assert_eq(fragi_pump_attach(pump, &fake_ops, &fake), 0);
}

static void close_pump(void)
{
	fragi_pump_destroy(pump);
	cr_assert_eq(fake.collisions, 0);
	close(fake.fd);
}

static bool never(void *arg)
{
	return false;
}

static bool is_true(void *arg)
{
	return atomic_load((_Atomic bool *)arg);
}

static void compute_for(int64_t ns)
{
	int64_t until = fragi_now_ns() + ns;

	while (fragi_now_ns() < until)
		;
}

Test(pump, waits_until_the_time_comes)
{
	int64_t start;

	for (int with = 0; with < 2; with++) {
		if (with)
			open_pump();
		else
			cr_assert_eq(fragi_pump_create(&pump), 0);
		start = fragi_now_ns();
		while (fragi_now_ns() - start < 30000000)
			fragi_pump_wait(pump, &here, start + 30000000, never, NULL);
		fragi_pump_wait(pump, &here, 0, never, NULL); /* past: returns */
		if (with)
			close_pump();
		else
			fragi_pump_destroy(pump);
	}
}

static _Atomic bool seen_unlocked, seen_locked;

/*
 * An event comes once the thread drives. Notes whether it is shown while the lock is held, or
 * afterwards.
 */
static bool sees_event(void *arg)
{
	uint32_t *asked = arg;

	if (++*asked == 2)
		atomic_fetch_add(&fake.events, 1);
	if (atomic_load(&fake.handled) == 0)
		return false;
	if (!fragi_pump_try_lock(pump)) {
		atomic_store(&seen_locked, true);
		return true;
	}
	fragi_pump_unlock(pump);
	atomic_store(&seen_unlocked, true);
	return true;
}

/* Else a thread that takes the lock then counts the message, and finds nobody busy with it. */
Test(pump, an_event_is_shown_before_the_lock_is_free)
{
	uint32_t asked = 0;

	setenv("FRAG_PUMP", "event", 1);
	open_pump();
	while (!atomic_load(&seen_locked) && !atomic_load(&seen_unlocked))
		fragi_pump_wait(pump, &here, fragi_now_ns() + 10000000, sees_event, &asked);
	cr_expect(atomic_load(&seen_locked));
	cr_expect_not(atomic_load(&seen_unlocked));
	close_pump();
}

/* Something happens that wakes nobody, once the thread is about to sleep. */
static bool slips_in(void *arg)
{
	if (atomic_load(&fake.armed) && atomic_load(&fake.events) == 0)
		atomic_fetch_add(&fake.events, 1);
	return false;
}

Test(pump, a_sleep_that_ends_by_time_has_a_last_round)
{
	setenv("FRAG_PUMP", "event", 1);
	open_pump();
	for (int i = 0; i < 100 && atomic_load(&fake.events) == 0; i++)
		fragi_pump_wait(pump, &here, fragi_now_ns() + 10000000, slips_in, NULL);
	cr_assert_eq(atomic_load(&fake.events), 1);
	cr_expect_eq(atomic_load(&fake.handled), 1);
	close_pump();
}

static bool has_event(void *arg)
{
	return atomic_load(&fake.handled) >= (uintptr_t)arg;
}

/* A busy machine has time for few of them. */
#define ENOUGH_NS 5000000000
static _Atomic bool enough;

static void *make_events(void *arg)
{
	for (uintptr_t i = 1; i <= (uintptr_t)arg && !atomic_load(&enough); i++) {
		while (atomic_load(&fake.handled) < i - 1 && !atomic_load(&enough))
			sched_yield();
		fake_event(&fake);
	}
	return NULL;
}

Test(pump, an_event_ends_the_wait)
{
	int64_t begun = fragi_now_ns();
	pthread_t thread;

	open_pump();
	pthread_create(&thread, NULL, make_events, (void *)1000);
	for (uintptr_t i = 1; i <= 1000 && fragi_now_ns() - begun < ENOUGH_NS; i++) {
		int64_t until = fragi_now_ns() + PATIENCE_NS;

		while (!has_event((void *)i) && fragi_now_ns() < until)
			fragi_pump_wait(pump, &here, until, has_event, (void *)i);
		cr_assert(has_event((void *)i), "event %zu", (size_t)i);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	close_pump();
}

/* Who publishes work and pokes is never missed by who looks for work and sleeps. */

#define WORKERS_MAX 4
static _Atomic uint64_t work_made, work_done;
static struct fragi_pump_waiter waiters[WORKERS_MAX];

static bool has_work(void *arg)
{
	return atomic_load(&work_made) > atomic_load(&work_done);
}

static void *make_work(void *arg)
{
	const int *workers = arg;
	int64_t until = fragi_now_ns() + ENOUGH_NS;

	for (int i = 0; i < 20000 && fragi_now_ns() < until; i++) {
		while (atomic_load(&work_made) - atomic_load(&work_done) > 3 &&
		       fragi_now_ns() < until)
			sched_yield();
		atomic_fetch_add(&work_made, 1);
		fragi_pump_poke(pump, &waiters[i % *workers]);
	}
	return NULL;
}

static _Atomic bool workers_stop;

static bool work_or_stop(void *arg)
{
	return has_work(arg) || atomic_load(&workers_stop);
}

static void *do_work(void *arg)
{
	uint64_t done;

	while (!atomic_load(&workers_stop)) {
		done = atomic_load(&work_done);
		if (atomic_load(&work_made) > done) {
			atomic_compare_exchange_strong(&work_done, &done, done + 1);
			continue;
		}
		fragi_pump_wait(pump, arg, INT64_MAX, work_or_stop, NULL);
	}
	return NULL;
}

static void work_with(int workers)
{
	pthread_t maker, worker[WORKERS_MAX];
	int64_t until = fragi_now_ns() + patience_ns();

	atomic_store(&work_made, 0);
	atomic_store(&work_done, 0);
	atomic_store(&workers_stop, false);
	for (int i = 0; i < workers; i++)
		pthread_create(&worker[i], NULL, do_work, &waiters[i]);
	pthread_create(&maker, NULL, make_work, &workers);
	pthread_join(maker, NULL);
	while (has_work(NULL) && fragi_now_ns() < until)
		sched_yield();
	cr_assert_not(has_work(NULL), "a poke was lost");
	atomic_store(&workers_stop, true);
	for (int i = 0; i < workers; i++)
		fragi_pump_poke(pump, &waiters[i]);
	for (int i = 0; i < workers; i++)
		pthread_join(worker[i], NULL);
}

Test(pump, pokes_are_not_lost_without_a_transport)
{
	cr_assert_eq(fragi_pump_create(&pump), 0);
	work_with(1);
	work_with(3);
	fragi_pump_destroy(pump);
}

Test(pump, pokes_are_not_lost_with_a_transport)
{
	open_pump();
	work_with(1);
	work_with(3);
	close_pump();
}

static _Atomic long woken;

static void *sleep_until_stop(void *arg)
{
	struct rusage usage;

	while (!atomic_load(&workers_stop)) {
		fragi_pump_wait(pump, arg, INT64_MAX, is_true, &workers_stop);
		getrusage(RUSAGE_THREAD, &usage);
		atomic_store(&woken, usage.ru_nvcsw);
	}
	return NULL;
}

/* Of two that sleep, the one that drives and the one beside it, each is woken alone. */
Test(pump, a_poke_wakes_nobody_else)
{
	pthread_t sleeper;
	int64_t until = fragi_now_ns() + PATIENCE_NS;

	setenv("FRAG_PUMP", "event", 1);
	for (int poked = 0; poked < 2; poked++) {
		open_pump();
		atomic_store(&workers_stop, false);
		atomic_store(&woken, 0);
		pthread_create(&sleeper, NULL, sleep_until_stop, &waiters[1]);
		while (atomic_load(&waiters[1].sleeps) == 0 && fragi_now_ns() < until)
			sched_yield();
		for (int i = 0; i < 1000; i++)
			fragi_pump_poke(pump, &waiters[poked]);
		atomic_store(&workers_stop, true);
		fragi_pump_poke(pump, &waiters[1]);
		pthread_join(sleeper, NULL);
		cr_expect(poked == 1 || atomic_load(&woken) < 20, "%ld", atomic_load(&woken));
		close_pump();
	}
}

/*
 * Work that is published after a thread has looked for it, and before it counts as a sleeper: who
 * publishes it sees nobody to wake, so the thread must look once more.
 */

Test(pump, work_that_comes_while_a_driver_arms_is_seen)
{
	static _Atomic bool done;
	int64_t until = fragi_now_ns() + PATIENCE_NS;

	setenv("FRAG_PUMP", "event", 1);
	open_pump();
	fake.done_in_arm = &done;
	fragi_pump_wait(pump, &here, until, is_true, &done);
	cr_assert_lt(fragi_now_ns(), until);
	cr_assert(atomic_load(&done));
	close_pump();
}

/* The work comes while it is asked for the second time. */
static bool second_look(void *arg)
{
	int *looks = arg;

	return ++*looks > 1;
}

Test(pump, work_that_comes_before_a_thread_sleeps_is_seen)
{
	int64_t until = fragi_now_ns() + PATIENCE_NS;
	int looks = 0;

	setenv("FRAG_PUMP", "event", 1);
	cr_assert_eq(fragi_pump_create(&pump), 0);
	fragi_pump_wait(pump, &here, until, second_look, &looks);
	cr_assert_lt(fragi_now_ns(), until);
	fragi_pump_destroy(pump);
}

/* How often the thread slept in 50 waits of a millisecond each. */
static long sleeps_of_waiting(void)
{
	struct rusage before, after;
	int64_t until;

	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < 50; i++)
		for (until = fragi_now_ns() + 1000000; fragi_now_ns() < until;)
			fragi_pump_wait(pump, &here, until, never, NULL);
	getrusage(RUSAGE_THREAD, &after);
	return after.ru_nvcsw - before.ru_nvcsw;
}

Test(pump, busy_poll_never_sleeps)
{
	setenv("FRAG_PUMP", "busy_poll", 1);
	cr_assert_eq(fragi_pump_create(&pump), 0);
	cr_expect_lt(sleeps_of_waiting(), 25);
	fragi_pump_destroy(pump);
	open_pump();
	work_with(1);
	cr_expect_lt(sleeps_of_waiting(), 25);
	close_pump();
}

/* Where it would sleep at once, and with one core it does. */
Test(pump, it_does_not_sleep_while_an_event_is_near)
{
	const bool may_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	long sleeps;

	setenv("FRAG_PUMP", "adaptive", 1);
	open_pump();
	cr_expect_geq(sleeps_of_waiting(), 50);
	fragi_pump_lock(pump);
	fragi_pump_stay_awake(pump, fragi_now_ns() + PATIENCE_NS);
	fragi_pump_unlock(pump);
	sleeps = sleeps_of_waiting();
	cr_expect(may_spin ? sleeps < 25 : sleeps >= 50);
	fragi_pump_lock(pump);
	fragi_pump_stay_awake(pump, fragi_now_ns());
	fragi_pump_unlock(pump);
	cr_expect_geq(sleeps_of_waiting(), 50);
	close_pump();
}

Test(pump, event_sleeps_at_once)
{
	setenv("FRAG_PUMP", "event", 1);
	cr_assert_eq(fragi_pump_create(&pump), 0);
	cr_expect_geq(sleeps_of_waiting(), 50);
	cr_expect_lt(sleeps_of_waiting(), 100);
	fragi_pump_destroy(pump);
	open_pump();
	cr_expect_geq(sleeps_of_waiting(), 50);
	close_pump();
}

/*
 * When to spin, from the waits before (edge/pump_spin.c). Times of a thread whose event comes
 * `interval_ns` after it has begun to wait, and who sees it wake_ns later if it sleeps.
 */

struct waits {
	struct fragi_spin spin;
	int64_t now_ns;
	int64_t slept, spun;         /* how many waits */
	int64_t vain_ns;             /* spun before it slept after all */
	int64_t cpu_ns, preemptions; /* of the thread */
};

static void wait_times(struct waits *w, int count, int64_t interval_ns, int64_t wake_ns)
{
	int64_t limit_ns;

	for (int i = 0; i < count; i++) {
		fragi_spin_begin(&w->spin, w->now_ns);
		if (fragi_spin_asks_share(&w->spin))
			fragi_spin_share(&w->spin, w->cpu_ns, w->preemptions);
		limit_ns = w->spin.limit_ns;
		cr_assert(limit_ns >= 0 && limit_ns <= FRAGI_SPIN_MAX_NS);
		cr_assert_eq(fragi_spin_goes_on(&w->spin, w->now_ns + interval_ns),
			     interval_ns < limit_ns);
		if (interval_ns >= limit_ns) {
			fragi_spin_sleeps(&w->spin);
			w->slept++;
			w->vain_ns += limit_ns;
		} else {
			w->spun++;
		}
		w->now_ns += interval_ns + (interval_ns < limit_ns ? 0 : wake_ns);
		fragi_spin_end(&w->spin, w->now_ns, true);
		w->cpu_ns += interval_ns;
	}
}

/* Two ends that answer each other: as long as one sleeps, the other one waits for its wake-up. */
Test(pump, two_ends_that_sleep_learn_to_spin)
{
	static const int64_t wakes[] = {4000, 15000, 35000};
	struct waits w;

	for (int i = 0; i < 3; i++) {
		w = (struct waits){.now_ns = 1};
		wait_times(&w, 1000, wakes[i] + 1000, wakes[i]);
		cr_expect_gt(w.spun, 500, "%ld", (long)wakes[i]);
		w.slept = 0;
		wait_times(&w, 1000, 1000, wakes[i]);
		cr_expect_eq(w.slept, 0, "%ld", (long)wakes[i]);
	}
}

/* So does the one whose peer spins already: its event is there at once, and it slept for it. */
Test(pump, the_second_end_learns_to_spin_too)
{
	struct waits w = {.now_ns = 1};

	wait_times(&w, 1000, 1000, 30000);
	cr_expect_gt(w.spun, 500);
}

Test(pump, a_spin_is_as_long_as_a_few_intervals)
{
	struct waits w = {.now_ns = 1};

	wait_times(&w, 1000, 1000, 30000);
	fragi_spin_begin(&w.spin, w.now_ns);
	cr_expect(w.spin.limit_ns > 2000 && w.spin.limit_ns < 10000, "%ld", (long)w.spin.limit_ns);
	/* One that is late now and then changes nothing. */
	for (int i = 0; i < 20; i++) {
		w.slept = 0;
		wait_times(&w, 1, 40000, 30000);
		wait_times(&w, 50, 1000, 30000);
		cr_expect_eq(w.slept, 1);
	}
}

/* 1,000 and 60 a second; and a pacer, which waits for each answer, then for its time. */
Test(pump, a_thread_that_rests_between_messages_sleeps)
{
	struct waits w = {.now_ns = 1};

	wait_times(&w, 1000, 1000000, 30000);
	wait_times(&w, 100, 16000000, 30000);
	cr_expect_eq(w.spun, 0);
	cr_expect_eq(w.vain_ns, 0);
	w = (struct waits){.now_ns = 1};
	for (int i = 0; i < 1000; i++) {
		wait_times(&w, 1, 35000, 30000);
		wait_times(&w, 1, 900000, 30000);
	}
	cr_expect_lt(w.vain_ns, w.now_ns / 1000);
	cr_expect_lt(w.spun, 20);
}

/* After a busy time the credit is gone within a few waits. */
Test(pump, spinning_ends_with_the_messages)
{
	struct waits w = {.now_ns = 1};

	wait_times(&w, 1000, 1000, 30000);
	wait_times(&w, 1000, 1000000, 30000);
	cr_expect_gt(w.vain_ns, 0);
	cr_expect_leq(w.vain_ns, 2 * FRAGI_SPIN_MAX_NS);
}

/* What comes a little too late for a spin costs next to nothing. */
Test(pump, spins_in_vain_are_rare)
{
	struct waits w = {.now_ns = 1};

	wait_times(&w, 10000, 60000, 10000);
	cr_expect_gt(w.vain_ns, 0);
	cr_expect_lt(w.vain_ns, w.now_ns / 100);
}

/* The end of a time is no event. */
Test(pump, timers_teach_nothing)
{
	struct fragi_spin spin = {0};

	for (int64_t now_ns = 1; now_ns < 10000000; now_ns += 20000) {
		fragi_spin_begin(&spin, now_ns);
		cr_assert_eq(spin.limit_ns, 0);
		fragi_spin_sleeps(&spin);
		fragi_spin_end(&spin, now_ns + 20000, false);
	}
}

/* Who spins but does not have the processor all the time takes it from others. */
Test(pump, a_shared_processor_ends_spinning)
{
	struct waits w = {.now_ns = 1};

	wait_times(&w, 1000, 1000, 30000);
	w.slept = 0;
	wait_times(&w, 10000, 1000, 30000);
	cr_assert_eq(w.slept, 0);
	w.now_ns += 2000000; /* an operator that sleeps */
	wait_times(&w, 10000, 1000, 30000);
	cr_assert_eq(w.slept, 0);
	w.now_ns += 2000000; /* somebody else's turn */
	w.preemptions++;
	wait_times(&w, 3000, 1000, 30000);
	w.spun = 0;
	wait_times(&w, 100, 1000, 30000);
	cr_expect_eq(w.spun, 0);
	wait_times(&w, 10000, 1000, 30000); /* as long as all is quiet again */
	cr_expect_gt(w.spun, 1000);
}

/* An event that comes while the thread asks for the 50th time. */
static bool fiftieth_look(void *arg)
{
	return ++*(int *)arg >= 50;
}

/* Returns in how many of 100 such waits the thread did not sleep, where it may spin. */
static int waits_without_sleep(void)
{
	struct rusage before, after;
	int awake = 0, looks;

	for (int i = 0; i < 100; i++) {
		here.spin = (struct fragi_spin){.credit_ns = 2 * FRAGI_SPIN_MAX_NS,
						.interval_ns = FRAGI_SPIN_MAX_NS};
		getrusage(RUSAGE_THREAD, &before);
		for (looks = 0; looks < 50;)
			fragi_pump_wait(pump, &here, fragi_now_ns() + 100000, fiftieth_look,
					&looks);
		getrusage(RUSAGE_THREAD, &after);
		awake += after.ru_nvcsw == before.ru_nvcsw;
	}
	return awake;
}

Test(pump, by_default_it_spins_where_that_was_right)
{
	static const char *const modes[] = {"event", "adaptive"};
	bool may_spin;

	for (int i = 0; i < 2; i++) {
		setenv("FRAG_PUMP", modes[i], 1);
		may_spin = i == 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1;
		cr_assert_eq(fragi_pump_create(&pump), 0);
		cr_expect_eq(waits_without_sleep() > 0, may_spin);
		fragi_pump_destroy(pump);
		open_pump();
		cr_expect_eq(waits_without_sleep() > 0, may_spin);
		close_pump();
	}
}

/* Submitted work runs once each, in the order of its thread, one at a time. */

#define SUBMITTERS 3
#define SUBMITS 50000

struct submitted {
	struct fragi_pump_work work;
	int number;
	_Atomic bool free;
};

static _Atomic uint32_t running;
static _Atomic int ran[SUBMITTERS];
static _Atomic int disorder;

static void run_work(struct fragi_pump_work *work)
{
	struct submitted *s = (struct submitted *)work;
	int who = s->number / SUBMITS, number = s->number % SUBMITS;

	if (atomic_fetch_add(&running, 1) != 0 || atomic_load(&ran[who]) != number)
		atomic_fetch_add(&disorder, 1);
	atomic_fetch_add(&ran[who], 1);
	atomic_fetch_sub(&running, 1);
	atomic_store(&s->free, true);
}

static void *submit_all(void *arg)
{
	static struct submitted items[SUBMITTERS][64];
	uintptr_t who = (uintptr_t)arg;

	for (int i = 0; i < SUBMITS; i++) {
		struct submitted *s = &items[who][i % 64];

		while (i >= 64 && !atomic_load(&s->free))
			sched_yield();
		atomic_store(&s->free, false);
		s->number = (int)who * SUBMITS + i;
		s->work.fn = run_work;
		fragi_pump_submit(pump, &s->work);
	}
	return NULL;
}

Test(pump, submitted_work_runs_in_order_and_alone)
{
	pthread_t threads[SUBMITTERS];
	int64_t until;

	open_pump();
	for (uintptr_t i = 0; i < SUBMITTERS; i++)
		pthread_create(&threads[i], NULL, submit_all, (void *)i);
	for (int i = 0; i < 2000; i++) {
		fake_event(&fake);
		fragi_pump_progress(pump);
	}
	for (int i = 0; i < SUBMITTERS; i++)
		pthread_join(threads[i], NULL);
	until = fragi_now_ns() + PATIENCE_NS;
	for (int i = 0; i < SUBMITTERS;
	     i++) /* nobody has to come back for what was left in the queue */
		while (atomic_load(&ran[i]) < SUBMITS && fragi_now_ns() < until)
			sched_yield();
	for (int i = 0; i < SUBMITTERS; i++)
		cr_assert_eq(ran[i], SUBMITS);
	cr_assert_eq(disorder, 0);
	close_pump();
}

/* The only thread that would wait computes: the backup poller takes over. */
Test(pump, the_backup_poller_drives_while_operators_compute)
{
	int64_t until = fragi_now_ns() + PATIENCE_NS;

	open_pump();
	for (uint64_t i = 1; i <= 20; i++) {
		if (i % 2 == 0)
			fragi_pump_hint(pump);
		fake_event(&fake);
		while (atomic_load(&fake.handled) < i && fragi_now_ns() < until)
			sched_yield();
		cr_assert_eq(fake.handled, i);
		fragi_pump_wait(pump, &here, fragi_now_ns() + 2000000, never, NULL);
	}
	close_pump();
}

/* Work that comes with a second event, once the first one's wake-up has been consumed by arming. */
static bool second_event(void *arg)
{
	int *asked = arg;

	if (++*asked == LAST_ASKED)
		fake_event(&fake);
	return atomic_load(&fake.handled) == atomic_load(&fake.events) && *asked > LAST_ASKED;
}

/*
 * A waiter may take over and leave again before the backup poller, whose event it was, has woken
 * up. Then nobody has armed for the next event, and the backup poller must not sleep on.
 */
Test(pump, the_backup_poller_comes_back_after_a_waiter)
{
	int64_t until = fragi_now_ns() + PATIENCE_NS;
	const struct sched_param none = {0};
	uint64_t rounds;
	cpu_set_t one;
	int asked;

	/* One core, on which a thread that wakes up has to wait for its turn. */
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	sched_setscheduler(0, SCHED_BATCH, &none);
	open_pump();
	for (int i = 0; i < 20; i++) {
		do { /* the backup poller sleeps on the fd */
			rounds = atomic_load(&fake.rounds);
			compute_for(25000000);
		} while (atomic_load(&fake.rounds) != rounds && fragi_now_ns() < until);
		asked = 0;
		fake_event(&fake);
		fragi_pump_wait(pump, &here, until, second_event, &asked);
		fake_event(&fake);
		while (atomic_load(&fake.handled) != atomic_load(&fake.events) &&
		       fragi_now_ns() < until)
			sched_yield();
		cr_assert_eq(fake.handled, fake.events);
	}
	close_pump();
}

/* The event comes, without a wake-up, when the waiter asks for the last time before it sleeps. */
static bool unannounced_event(void *arg)
{
	int *asked = arg;

	if (++*asked == LAST_ASKED)
		atomic_fetch_add(&fake.events, 1);
	return atomic_load(&fake.handled) > 0;
}

/* The safety net. */
Test(pump, a_lost_wake_up_is_made_up_for)
{
	int64_t until = fragi_now_ns() + PATIENCE_NS;
	int asked = 0;

	setenv("FRAG_PUMP", "event", 1);
	unsetenv("FRAG_TEST_NO_SAFETY_POLL");
	open_pump();
	while (atomic_load(&fake.handled) == 0 && fragi_now_ns() < until)
		fragi_pump_wait(pump, &here, until, unannounced_event, &asked);
	cr_assert_lt(fragi_now_ns(), until);
	cr_assert_gt(asked, LAST_ASKED);
	close_pump();
}

/*
 * Ticks are short and never end: the backup poller does not wake up for each event, and is there
 * when one is long.
 */
Test(pump, the_backup_poller_looks_in_where_ticks_are_short)
{
	int64_t until = fragi_now_ns() + PATIENCE_NS;
	uint64_t before, others;

	open_pump();
	do {
		before = atomic_load(&fake.rounds_of_others);
		for (int i = 0; i < 2000; i++) {
			fake_event(&fake);
			compute_for(50000);
			fragi_pump_progress(pump);
		}
		others = atomic_load(&fake.rounds_of_others) - before;
	} while (others > 500 && fragi_now_ns() < until);
	cr_assert_leq(others, 500);
	fake_event(&fake);
	while (atomic_load(&fake.handled) < atomic_load(&fake.events) && fragi_now_ns() < until)
		sched_yield();
	cr_assert_eq(fake.handled, fake.events);
	close_pump();
}

static _Atomic uint64_t taken;

static bool has_handled(void *arg)
{
	return atomic_load(&fake.handled) > atomic_load(&taken);
}

static void *take_all(void *arg)
{
	const uint64_t *count = arg;

	while (atomic_load(&taken) < *count) {
		fragi_pump_wait(pump, &waiters[0], INT64_MAX, has_handled, NULL);
		atomic_store(&taken, atomic_load(&fake.handled));
	}
	return NULL;
}

/*
 * Who sleeps on the fd is poked by one who goes on to arm for it: that must not consume the poke.
 */
Test(pump, a_poke_in_passing_reaches_the_sleeper)
{
	uint64_t count = 200;
	int64_t until;
	pthread_t thread;

	fake.pokes = &waiters[0];
	open_pump();
	pthread_create(&thread, NULL, take_all, &count);
	until = fragi_now_ns() + PATIENCE_NS;
	for (uint64_t i = 1; i <= count; i++) {
		compute_for(200000);
		atomic_fetch_add(&fake.events, 1);
		while (atomic_load(&fake.handled) < i && fragi_now_ns() < until)
			fragi_pump_progress(pump);
		while (atomic_load(&taken) < i && fragi_now_ns() < until)
			sched_yield();
	}
	cr_assert_lt(fragi_now_ns(), until);
	pthread_join(thread, NULL);
	close_pump();
}

/* At rest a sleeping thread that drives and a resting backup poller make next to no rounds. */
Test(pump, at_rest_it_sleeps)
{
	uint64_t rounds;
	int64_t until;

	setenv("FRAG_PUMP", "event", 1);
	open_pump();
	fragi_pump_wait(pump, &here, fragi_now_ns() + 1000000, never, NULL);
	rounds = atomic_load(&fake.rounds);
	for (until = fragi_now_ns() + 600000000; fragi_now_ns() < until;)
		fragi_pump_wait(pump, &here, until, never, NULL);
	cr_assert_lt(atomic_load(&fake.rounds) - rounds, 30);
	close_pump();
}

static void *lock_often(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		fragi_pump_lock(pump);
		enter(&fake);
		leave(&fake);
		fragi_pump_unlock(pump);
	}
	return NULL;
}

Test(pump, a_lock_is_had_also_against_a_busy_driver)
{
	static _Atomic bool done;
	pthread_t thread;
	int64_t until = fragi_now_ns() + PATIENCE_NS;

	setenv("FRAG_PUMP", "busy_poll", 1);
	open_pump();
	pthread_create(&thread, NULL, lock_often, NULL);
	while (pthread_tryjoin_np(thread, NULL) != 0 && fragi_now_ns() < until)
		fragi_pump_wait(pump, &here, fragi_now_ns() + 1000000, is_true, &done);
	cr_assert_lt(fragi_now_ns(), until);
	close_pump();
}
