// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>

#include "pump_engine.h"

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
