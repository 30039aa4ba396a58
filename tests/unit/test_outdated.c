// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <time.h>

#include <frag/frag.h>
#include <sched/exec.h>

/* sched/outdated.c: how old live frames are when an operator gets them. */

#define SECOND INT64_C(1000000000)

static struct fragi_op_row row;
static struct frag_op op;
static struct fragi_exec operator_exec = {.row = &row, .op = &op};

/* One a second; the camera takes ten to send it. live: whether it says that it is. */
static uint64_t get(int64_t waited_ns, bool live, double rate)
{
	struct frag_metadata *metadata;
	struct timespec t;

	cr_assert_eq(frag_metadata_create(FRAG_METADATA_RAISE, &metadata), 0);
	clock_gettime(CLOCK_REALTIME, &t);
	if (live)
		cr_assert_eq(frag_metadata_set_i64(metadata, "live_ns",
						   t.tv_sec * SECOND + t.tv_nsec - 10 * SECOND -
							   waited_ns),
			     0);
	cr_assert_eq(frag_metadata_set_f64(metadata, "frame_rate", rate), 0);
	fragi_exec_judge_age(&operator_exec, metadata);
	frag_metadata_destroy(metadata);
	return atomic_load(&row.outdated);
}

Test(outdated, frames_count_that_waited_for_more_than_three_periods)
{
	cr_expect_eq(get(0, true, 1.0), 0, "the delay of the camera is its own");
	cr_expect_eq(get(2 * SECOND, true, 1.0), 0);
	cr_expect_eq(get(5 * SECOND, true, 1.0), 1);
	cr_expect_eq(get(5 * SECOND, true, 0.2), 1, "that is one period");
	cr_expect_eq(get(0, true, 1.0), 1);
	cr_expect_eq(get(4 * SECOND, true, 1.0), 2);
}

Test(outdated, what_is_not_live_has_no_age)
{
	cr_expect_eq(get(0, false, 1.0), 0);
	cr_expect_eq(get(99 * SECOND, false, 1.0), 0);
	cr_expect_eq(get(0, true, 0.0), 0);
	cr_expect_eq(get(99 * SECOND, true, 0.0), 0);
}

/* Clocks drift: what is a little later with each frame is not late after an hour. */
Test(outdated, the_freshest_one_is_forgotten_slowly)
{
	for (int64_t i = 0; i < 20000; i++)
		cr_assert_eq(get(i * SECOND / 2000, true, 1.0), 0, "frame %lld", (long long)i);
}
