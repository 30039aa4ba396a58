// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>

#include <base/alloc.h>
#include <driverd/core/base/timer.h>

/* The timers of a driver: each fires once, at its time, the earliest first. */
#define COUNT 60

static struct drv_timers timers;
static struct drv_timer all[COUNT];
static int64_t at_ns[COUNT]; /* when each is to fire; 0: it is not set */
static int64_t now_ns, last_ns;
static uint32_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % below;
}

static void fires(struct drv_timer *timer, int64_t fired_ns, void *arg)
{
	const size_t i = (size_t)(timer - all);

	cr_expect_eq(arg, &timers);
	cr_expect_eq(timer->owner, &at_ns[i]);
	cr_expect_eq(fired_ns, now_ns);
	cr_expect(timer->is_due);
	cr_expect_not(drv_timer_is_set(timer));
	cr_assert(at_ns[i] != 0 && at_ns[i] <= now_ns, "%zu", i);
	cr_expect_geq(at_ns[i], last_ns, "the earliest first");
	last_ns = at_ns[i];
	at_ns[i] = 0;
}

static int64_t next_ns(void)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < COUNT; i++)
		if (at_ns[i] != 0 && at_ns[i] < next)
			next = at_ns[i];
	return next;
}

Test(driver_timer, drawn_timers_fire_in_their_order)
{
	for (size_t i = 0; i < COUNT; i++)
		all[i] = (struct drv_timer){.fire = fires, .owner = &at_ns[i]};
	for (int step = 0; step < 20000; step++) {
		const size_t i = draw(COUNT);

		switch (draw(4)) {
		case 0:
			drv_timer_cancel(&timers, &all[i]);
			at_ns[i] = 0;
			cr_expect_not(all[i].is_due);
			break;
		case 1:
			now_ns += draw(20);
			last_ns = 0;
			drv_timers_run(&timers, now_ns, &timers);
			cr_assert_gt(next_ns(), now_ns, "all that are due have fired");
			break;
		default:
			at_ns[i] = now_ns + 1 + draw(100);
			cr_assert_eq(drv_timer_set(&timers, &all[i], at_ns[i]), 0);
			cr_expect_not(all[i].is_due);
		}
		cr_assert_eq(drv_timers_next_ns(&timers), next_ns(), "step %d", step);
		for (size_t k = 0; k < COUNT; k++)
			cr_assert_eq(drv_timer_is_set(&all[k]), at_ns[k] != 0);
	}
	drv_timers_fini(&timers);
	cr_expect_eq(timers.count, 0);
	cr_expect_eq(drv_timers_next_ns(&timers), INT64_MAX);
}

/* Room that was reserved is there when memory is short. */
Test(driver_timer, what_was_reserved_can_be_set)
{
	static struct drv_timer many[100];
	int r;

	cr_assert_eq(drv_timers_reserve(&timers, 40), 0);
	cr_assert_eq(drv_timers_reserve(&timers, 60), 0);
	fragi_alloc_fail_after(0, INT64_MAX);
	for (size_t i = 0; i < 100; i++)
		cr_expect_eq(drv_timer_set(&timers, &many[i], 100 - (int64_t)i), 0, "%zu", i);
	for (r = 0; r == 0;)
		r = drv_timers_reserve(&timers, 10);
	fragi_alloc_fail_off();
	cr_expect_eq(r, -ENOMEM);
	cr_expect_leq(timers.reserved, timers.capacity);
	cr_expect_eq(drv_timers_next_ns(&timers), 1);
	drv_timers_release(&timers, 100);
	for (size_t i = 0; i < 100; i++)
		drv_timer_cancel(&timers, &many[i]);
	cr_expect_eq(timers.count, 0);
	drv_timers_fini(&timers);
}
