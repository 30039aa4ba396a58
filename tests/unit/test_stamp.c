// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <base/starved.h>

#include "left.h"

/* How far stamps are off the monotonic clock. */
static int64_t error_ppm(void)
{
	int64_t best_error = INT64_MAX, ns0, ns1, error;
	uint64_t stamp0, stamp1;

	/* The nearest of a few: a busy machine may stop us between the two readings. */
	for (int i = 0; i < 20; i++) {
		ns0 = fragi_now_ns();
		stamp0 = fragi_stamp();
		while (fragi_now_ns() - ns0 < 2000000)
			;
		ns1 = fragi_now_ns();
		stamp1 = fragi_stamp();
		error = llabs((int64_t)fragi_stamp_diff_ns(stamp0, stamp1) - (ns1 - ns0)) *
			1000000 / (ns1 - ns0);
		best_error = error < best_error ? error : best_error;
	}
	return best_error;
}

Test(stamp, differences_agree_with_the_monotonic_clock)
{
	int64_t error = error_ppm();

	cr_expect_lt(error, 10000, "off by %d ppm", (int)error);
	for (int i = 0; i < 2; i++) {
		fragi_stamp_refine();
		error = error_ppm();
		cr_expect_lt(error, 500, "off by %d ppm", (int)error);
	}
}

Test(stamp, crossed_stamps_differ_by_nothing)
{
	cr_expect_eq(fragi_stamp_diff_ns(1000, 1000), 0);
	cr_expect_eq(fragi_stamp_diff_ns(1000, 900), 0);
	cr_expect_eq(fragi_stamp_diff_ns(UINT64_MAX, 0), fragi_stamp_diff_ns(0, 1));
}

Test(stamp, before_is_the_inverse)
{
	uint64_t now = fragi_stamp();
	uint64_t ns = fragi_stamp_diff_ns(fragi_stamp_before(now, 1000000000), now);

	cr_expect(ns > 999999980 && ns < 1000000020, "%llu", (unsigned long long)ns);
}

Test(stamp, a_moment_leads_from_one_clock_to_the_other_and_back)
{
	struct fragi_moment moment = fragi_moment_now();

	for (int64_t off = -1000000000; off <= 1000000000; off += 99999999) {
		int64_t ns = moment.ns + off;
		int64_t back = fragi_moment_ns_at(&moment, fragi_moment_stamp_at(&moment, ns));

		cr_expect(back > ns - 20 && back < ns + 20, "%lld", (long long)(back - ns));
	}
	/* What a header says may be anything. */
	fragi_moment_stamp_at(&moment, INT64_MIN);
	fragi_moment_stamp_at(&moment, INT64_MAX);
}

static uint64_t backwards(void)
{
	static uint64_t stamp = 1000000;

	return stamp -= 10;
}

/* Counters of two cores may differ by a little, and a thread changes its core at any time. */
Test(stamp, a_moment_during_which_the_counter_goes_back_is_near)
{
	struct fragi_moment moment;

	fragi_stamp_take_from(backwards);
	moment = fragi_moment_now();
	fragi_stamp_take_from(NULL);
	cr_expect(moment.stamp > 999000 && moment.stamp <= 1000000, "%llu",
		  (unsigned long long)moment.stamp);
	cr_expect_gt(moment.ns, 0);
}

/* The second interval begins late by a pair that was wrong, and yet no stamp goes back. */
Test(stamp, times_of_intervals_that_follow_each_other_keep_their_order)
{
	const struct fragi_moment at[] = {{1000, 1000}, {5000, 6000}, {9000, 9000}};
	const struct fragi_interval intervals[] = {{at[0], at[1]}, {at[1], at[2]}};
	int64_t last = INT64_MIN;

	cr_expect_eq(fragi_interval_ns_at(&intervals[0], 1000), 1000);
	cr_expect_eq(fragi_interval_ns_at(&intervals[0], 3500), 3000);
	cr_expect_eq(fragi_interval_ns_at(&intervals[1], 6000), 5000);
	cr_expect_eq(fragi_interval_ns_at(&intervals[1], 7500), 7000);
	/* Before an interval time goes on at the rate of all stamps. */
	cr_expect_eq(fragi_interval_ns_at(&intervals[1], 2000), fragi_moment_ns_at(&at[1], 2000));
	for (uint64_t stamp = 1000; stamp < 12000; stamp += 10) {
		int64_t ns = fragi_interval_ns_at(&intervals[stamp > 6000], stamp);

		cr_expect_geq(ns, last, "%llu", (unsigned long long)stamp);
		last = ns;
	}
	cr_expect_eq(fragi_interval_ns_at(&(struct fragi_interval){at[0], at[0]}, 1000), 1000);
	fragi_interval_ns_at(&intervals[0], UINT64_MAX);
	fragi_interval_ns_at(&intervals[0], 0);
}

static void *take_stamp(void *out)
{
	*(uint64_t *)out = fragi_stamp();
	return NULL;
}

Test(stamp, another_threads_stamp_lies_between)
{
	uint64_t before, between = 0, after;
	pthread_t thread;

	for (int i = 0; i < 50; i++) {
		before = fragi_stamp();
		cr_assert_eq(pthread_create(&thread, NULL, take_stamp, &between), 0);
		pthread_join(thread, NULL);
		after = fragi_stamp();
		cr_assert((int64_t)(between - before) >= 0 && (int64_t)(after - between) >= 0);
	}
}

static _Atomic bool is_starved;

static void *compete(void *arg)
{
	while (!atomic_load(&is_starved))
		;
	return arg;
}

static uint64_t one_forever(void)
{
	return 1;
}

/* A run on a virtual clock comes out the same on a busy machine. */
Test(stamp, no_core_is_missed_on_a_virtual_clock)
{
	int64_t end_ns = fragi_now_ns() + 20000000000;
	pthread_t rival;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	left_own.descriptors = 1; /* this thread reads its own account until it ends */
	cr_assert_eq(pthread_create(&rival, NULL, compete, NULL), 0);
	while (fragi_starved_read(fragi_stamp()) < 1000 && fragi_now_ns() < end_ns)
		;
	atomic_store(&is_starved, true);
	pthread_join(rival, NULL);
	cr_expect_gt(fragi_starved_read(fragi_stamp()), 0);
	fragi_stamp_take_from(one_forever);
	cr_expect_eq(fragi_starved_read(fragi_stamp()), 0);
	fragi_stamp_take_from(NULL);
	cr_expect_gt(fragi_starved_read(fragi_stamp()), 0);
}
