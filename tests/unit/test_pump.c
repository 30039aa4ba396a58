// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "slow.h"
#include "pump_engine.h"

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
