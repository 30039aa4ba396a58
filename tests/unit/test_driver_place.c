// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <driverd/core/placement/place.h>
#include <driverd/core/base/timer.h>

static const char chain[] = "frag: 1\napplication: app\nfragments:\n"
			    "  f1: {operators: {o: {type: t}}}\n"
			    "  f2: {operators: {o: {type: t}}}\n"
			    "  f3: {operators: {o: {type: t}}}\n"
			    "flows: [f1.o -> f3.o, f2.o -> f3.o]\n";

struct fixture {
	struct fragi_spec *spec;
	struct fragi_arena arena;
	struct drv_place places[8];
};

static void fixture_init_with(struct fixture *f, const char *text)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
	struct fragi_diag diag = {0};

	memset(f, 0, sizeof(*f));
	cr_assert_eq(fragi_spec_parse(&source, &diag, &f->spec), 0);
	fragi_diag_fini(&diag);
}

static void fixture_init(struct fixture *f)
{
	fixture_init_with(f, chain);
}

static void fixture_fini(struct fixture *f)
{
	fragi_spec_destroy(f->spec);
	fragi_arena_fini(&f->arena);
}

#define WORKER(worker_name, worker_cores, ...)                                                     \
	{                                                                                          \
		.name = worker_name, .has = {(worker_cores)*FRAGI_AMOUNT_ONE},                     \
		.fragments = (const char *const[]){__VA_ARGS__},                                   \
		.fragment_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)      \
	}

Test(driver_place, a_named_fragment_goes_to_a_worker_that_names_it_only)
{
	struct drv_place_worker workers[] = {
		WORKER("any", 64, "all"),
		WORKER("b", 1, "f1", "app/f2"),
		WORKER("other", 8, "else/f3"),
	};
	struct fixture f;

	fixture_init(&f);
	cr_expect_eq(drv_place(f.spec, workers, 3, &f.arena, f.places), 0);
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_eq(f.places[1].worker, 1);
	cr_expect_eq(f.places[2].worker, 0);
	cr_expect_str_eq(f.places[0].reason, "worker b is the only one that names it");
	cr_expect_str_eq(f.places[2].reason, "worker any is the only one that takes whatever fits");
	cr_expect_eq(drv_place(f.spec, workers + 1, 2, &f.arena, f.places), 1);
	cr_expect_eq(f.places[2].worker, -1);
	cr_expect_str_eq(f.places[2].reason,
			 "no live worker names it, and none takes whatever fits");
	cr_expect_eq(drv_place(f.spec, NULL, 0, &f.arena, f.places), 3);
	fixture_fini(&f);
}

Test(driver_place, neighbours_then_free_cores_then_the_name_decide)
{
	struct drv_place_worker named[] = {WORKER("a", 9, "f1", "f3"),
					   WORKER("b", 1, "f2", "f3", "f3", "app/f3"),
					   WORKER("c", 99, "f3")};
	struct drv_place_worker free_cores[] = {{.name = "a", .has = {4000}, .load = 3000},
						{.name = "b", .has = {2000}}};
	struct drv_place_worker neighbours[] = {WORKER("a", 64, "f3"),
						WORKER("b", 1, "f1", "f2", "f3")};
	struct drv_place_worker equal[] = {{.name = "b", .has = {2000}},
					   {.name = "a", .has = {2000}}};
	struct fixture f;

	fixture_init(&f);
	cr_expect_eq(drv_place(f.spec, named, 3, &f.arena, f.places), 0);
	cr_expect_eq(f.places[2].worker, 0,
		     "a and b hold one neighbour each, a has more free cores, c holds none");
	cr_expect_str_eq(
		f.places[2].reason,
		"of 3 workers of which each names it, a was chosen: it has most free cores");
	cr_expect_eq(drv_place(f.spec, neighbours, 2, &f.arena, f.places), 0);
	cr_expect_eq(f.places[2].worker, 1, "its neighbours count more than free cores");
	cr_expect_str_eq(
		f.places[2].reason,
		"of 2 workers of which each names it, b was chosen: most of its neighbours are there");
	cr_expect_eq(drv_place(f.spec, free_cores, 2, &f.arena, f.places), 0);
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_str_eq(
		f.places[0].reason,
		"of 2 workers of which each takes whatever fits, b was chosen: it has most free cores");
	cr_expect_eq(drv_place(f.spec, equal, 2, &f.arena, f.places), 0);
	cr_expect_eq(f.places[0].worker, 1);
	cr_expect_str_eq(
		f.places[0].reason,
		"of 2 workers of which each takes whatever fits, a was chosen: it is the first by name");
	cr_expect_eq(f.places[1].worker, 0, "f1 took a core of a");
	fixture_fini(&f);
}

/* f2 goes to b, f3 beside it, f1 to d, which alone has memory and names f5; f4 finds no GPU. */
static const char demanding[] =
	"frag: 1\napplication: app\nfragments:\n"
	"  f1: {operators: {o: {type: t}}, requirements: {apart: [f2], memory: 1Gi}}\n"
	"  f2: {operators: {o: {type: t}}, requirements: {labels: {zone: b}, cpu: 2}}\n"
	"  f3: {operators: {o: {type: t}}, requirements: {near: [f2]}}\n"
	"  f4: {operators: {o: {type: t}}, requirements: {gpu: 1}}\n"
	"  f5: {operators: {o: {type: t}}, requirements: {mig: 1g.10gb}}\n"
	"flows: [f1.o -> f3.o, f2.o -> f3.o]\n";

static void expect_same_places(const struct drv_place *a, const struct drv_place *b)
{
	struct fragi_arena arena = {0};

	for (size_t f = 0; f < 5; f++) {
		cr_assert_eq(a[f].worker, b[f].worker);
		cr_assert_str_eq(a[f].reason, b[f].reason);
		cr_assert_eq(a[f].other_count, b[f].other_count);
		for (uint32_t i = 0; i < a[f].other_count; i++) {
			cr_assert_str_eq(a[f].others[i].worker, b[f].others[i].worker);
			cr_assert_str_eq(drv_place_why(&arena, &a[f].others[i]),
					 drv_place_why(&arena, &b[f].others[i]));
		}
	}
	fragi_arena_fini(&arena);
}

Test(driver_place, every_failure_of_memory_is_told)
{
	static const char *const zone[] = {"zone=b"};
	struct drv_place_worker workers[] = {WORKER("a", 1, "f2", "all"),
					     WORKER("b", 8, "f2", "f2", "all"),
					     {.name = "c", .has = {1000}},
					     WORKER("d", 9, "f5", "all")};
	struct drv_mig mig = {0};
	struct fixture f, short_of;
	bool more = true;

	drv_mig_offer(&mig, "1g.10gb=1");
	workers[3].mig = &mig;
	workers[3].has[FRAGI_AMOUNT_MEMORY] = INT64_C(1) << 31;
	workers[0].labels = workers[1].labels = workers[2].labels = zone;
	workers[0].label_count = workers[1].label_count = workers[2].label_count = 1;
	fixture_init_with(&f, demanding);
	cr_assert_eq(drv_place(f.spec, workers, 4, &f.arena, f.places), 1, "f4 has none");
	for (int64_t skip = 0; more; skip++) {
		int r;

		fixture_init_with(&short_of, demanding);
		fragi_alloc_fail_after(skip, 1);
		r = drv_place(short_of.spec, workers, 4, &short_of.arena, short_of.places);
		more = fragi_alloc_fail_off() != 0;
		cr_assert_eq(r, more ? -ENOMEM : 1, "%d", (int)skip);
		if (!more)
			expect_same_places(short_of.places, f.places);
		fixture_fini(&short_of);
	}
	fixture_fini(&f);
}

static int64_t fired[4096];
static size_t fired_count;

static void fire(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	fired[fired_count++] = timer->at_ns;
}

Test(driver_timer, short_memory_is_reported)
{
	struct drv_timers heap = {0};
	struct drv_timer timer = {.fire = fire};

	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(drv_timer_set(&heap, &timer, 1), -ENOMEM);
	fragi_alloc_fail_off();
	cr_expect_eq(heap.count, 0);
	cr_expect_eq(drv_timer_set(&heap, &timer, 1), 0);
	drv_timers_fini(&heap);
}

/* A timer is due from when it fires until it is set or cancelled. */
Test(driver_timer, what_is_set_anew_is_not_due)
{
	struct drv_timers heap = {0};
	struct drv_timer timer = {.fire = fire};

	for (int cancels = 0; cancels < 2; cancels++) {
		fired_count = 0;
		cr_assert_eq(drv_timer_set(&heap, &timer, 5), 0);
		drv_timers_run(&heap, 4, NULL);
		cr_expect_not(timer.is_due);
		drv_timers_run(&heap, 5, NULL);
		cr_expect(timer.is_due);
		cr_expect_eq(fired_count, 1);
		if (cancels)
			drv_timer_cancel(&heap, &timer);
		else
			cr_assert_eq(drv_timer_set(&heap, &timer, 9), 0);
		cr_expect_not(timer.is_due, "%d", cancels);
	}
	drv_timers_fini(&heap);
}

Test(driver_timer, timers_fire_in_order_whatever_was_moved_and_cancelled)
{
	static struct drv_timer timers[1000];
	struct drv_timers heap = {0};
	uint64_t seed = 5;
	size_t expected = 0;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 1000; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			timers[i].fire = fire;
			cr_assert_eq(drv_timer_set(&heap, &timers[i], (int64_t)(seed >> 44)), 0);
			if (i % 3 == 0)
				drv_timer_cancel(&heap, &timers[(seed >> 20) % 1000]);
		}
	}
	expected = heap.count;
	drv_timers_run(&heap, INT64_MAX, NULL);
	cr_expect_eq(fired_count, expected);
	for (size_t i = 1; i < fired_count; i++)
		cr_assert_leq(fired[i - 1], fired[i]);
	cr_expect_eq(drv_timers_next_ns(&heap), INT64_MAX);
	drv_timer_cancel(&heap, &timers[0]);
	drv_timers_fini(&heap);
}
