// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include <base/lock.h>

#define THREADS 4
#define TURNS 20000

static struct fragi_lock lock;
static uint64_t guarded, held_by; /* without the lock both would go wrong */
static _Atomic uint64_t overlaps;

/* Now and then the holder lets others run, so that they have to wait for long enough to sleep. */
static void *work(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		fragi_lock_take(&lock);
		held_by = me;
		guarded++;
		if (i % 50 == 0)
			sched_yield();
		if (held_by != me)
			atomic_fetch_add(&overlaps, 1);
		fragi_lock_leave(&lock);
	}
	return NULL;
}

Test(lock, one_holder_at_a_time_and_nobody_sleeps_for_ever, .timeout = 60)
{
	pthread_t threads[THREADS];

	for (uint64_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)),
			     0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(guarded, (uint64_t)THREADS * TURNS);
	cr_expect_eq(atomic_load(&overlaps), 0);
	cr_expect_eq(atomic_load(&lock.state), FRAGI_LOCK_FREE);
}
