// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pump_engine.h"

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
