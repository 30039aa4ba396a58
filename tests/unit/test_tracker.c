// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <graph/tracker.h>

/* The numbers of a tracker, with latencies that the test gives. */
#define MS UINT64_C(1000000)

static struct frag_tracker *tracker_of(uint64_t skip, uint64_t discard)
{
	static const char *const names[] = {"a", "b", "c"};
	struct frag_tracker *tracker = fragi_tracker_create();

	for (int i = 0; i < 3; i++)
		cr_assert_eq(fragi_tracker_add_op(tracker, names[i]), i);
	frag_tracker_set_skip_starting_messages(tracker, skip);
	cr_assert_eq(frag_tracker_set_discard_last_messages(tracker, discard), 0);
	return tracker;
}

static void arrive(struct frag_tracker *tracker, const char *path, uint64_t ms)
{
	struct fragi_step steps[8];
	uint32_t length = (uint32_t)strlen(path);

	for (uint32_t i = 0; i < length; i++)
		steps[i] = (struct fragi_step){.op = (uint32_t)(path[i] - 'a'), .left = length - i};
	fragi_tracker_count(tracker, steps, ms * MS);
}

static double metric(struct frag_tracker *tracker, const char *path, enum frag_track_metric m)
{
	double value = -1;

	cr_assert_eq(frag_tracker_metric(tracker, path, m, &value), 0, "%s", path);
	return value;
}

Test(tracker, defaults_are_those_of_holoscan)
{
	struct frag_tracker *tracker = fragi_tracker_create();
	double value;

	fragi_tracker_add_op(tracker, "a");
	for (uint64_t i = 1; i <= 20; i++)
		arrive(tracker, "a", i);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 0);
	cr_expect_eq(frag_tracker_metric(tracker, "a", FRAG_TRACK_AVG_E2E_LATENCY, &value),
		     -ENODATA);
	arrive(tracker, "a", 21);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 1);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_AVG_E2E_LATENCY), 11);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MAX_MESSAGE_ID), 1);
	frag_tracker_unref(tracker);
}

Test(tracker, first_and_last_messages_are_not_counted)
{
	static const uint64_t took[] = {100, 1, 7, 3, 7, 4, 3, 200, 0};
	struct frag_tracker *tracker = tracker_of(2, 2);

	for (size_t i = 0; i < FRAG_COUNT_OF(took); i++)
		arrive(tracker, "ab", took[i]);
	cr_expect_eq(frag_tracker_num_paths(tracker), 1);
	cr_expect_str_eq(frag_tracker_path(tracker, 0), "a,b");
	cr_expect_null(frag_tracker_path(tracker, 1));
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_NUM_DST_MESSAGES), 5);
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_MAX_E2E_LATENCY), 7);
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_MIN_E2E_LATENCY), 3);
	cr_expect_float_eq(metric(tracker, "a,b", FRAG_TRACK_AVG_E2E_LATENCY), 4.8, 1e-9);
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_MAX_MESSAGE_ID), 3, "the last of two");
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_MIN_MESSAGE_ID), 5);
	frag_tracker_unref(tracker);
}

Test(tracker, each_path_has_its_own_numbers)
{
	struct frag_tracker *tracker = tracker_of(1, 0);

	arrive(tracker, "ab", 5);
	arrive(tracker, "ac", 6);
	arrive(tracker, "aba", 8);
	arrive(tracker, "ab", 9);
	cr_expect_eq(frag_tracker_num_paths(tracker), 3);
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_NUM_DST_MESSAGES), 1);
	cr_expect_eq(metric(tracker, "a,b", FRAG_TRACK_MAX_E2E_LATENCY), 9);
	cr_expect_eq(metric(tracker, "a,c", FRAG_TRACK_NUM_DST_MESSAGES), 0);
	cr_expect_eq(metric(tracker, "a,b,a", FRAG_TRACK_NUM_DST_MESSAGES), 0);
	frag_tracker_unref(tracker);
}

Test(tracker, settings_can_change_while_messages_arrive)
{
	struct frag_tracker *tracker = tracker_of(0, 3);

	for (uint64_t i = 1; i <= 100; i++)
		arrive(tracker, "a", i);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 97);
	frag_tracker_set_discard_last_messages(tracker, 50);
	for (uint64_t i = 101; i <= 120; i++)
		arrive(tracker, "a", i);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MAX_E2E_LATENCY), 97);
	frag_tracker_set_discard_last_messages(tracker, 1);
	frag_tracker_set_skip_latencies(tracker, 121);
	arrive(tracker, "a", 120);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 97, "it took less");
	arrive(tracker, "a", 121);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 120);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MAX_E2E_LATENCY), 120);
	cr_expect_eq(frag_tracker_set_discard_last_messages(tracker, FRAG_TRACK_DISCARD_MAX + 1),
		     -EINVAL);
	frag_tracker_unref(tracker);
}

/* What takes less than the threshold is not one of those that are skipped either. */
/* The room for the last messages grows when their first one is not the first in it. */
Test(tracker, the_order_stays_when_more_messages_are_kept)
{
	struct frag_tracker *tracker = tracker_of(0, 10);

	for (uint64_t i = 1; i <= 60; i++) {
		if (i == 21)
			frag_tracker_set_discard_last_messages(tracker, 40);
		arrive(tracker, "a", i == 18 ? 1000 : 100 + i);
	}
	frag_tracker_set_discard_last_messages(tracker, 0);
	arrive(tracker, "a", 1);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 61);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MAX_MESSAGE_ID), 18);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MAX_E2E_LATENCY), 1000);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MIN_MESSAGE_ID), 61);
	frag_tracker_unref(tracker);
}

Test(tracker, the_threshold_comes_before_skipping)
{
	struct frag_tracker *tracker = tracker_of(1, 0);

	frag_tracker_set_skip_latencies(tracker, 10);
	arrive(tracker, "a", 9);
	arrive(tracker, "a", 10);
	arrive(tracker, "a", 11);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_NUM_DST_MESSAGES), 1);
	cr_expect_eq(metric(tracker, "a", FRAG_TRACK_MIN_E2E_LATENCY), 11);
	frag_tracker_unref(tracker);
}

Test(tracker, what_is_no_metric_is_refused)
{
	struct frag_tracker *tracker = tracker_of(0, 0);
	double value = 7;

	arrive(tracker, "ab", 1);
	cr_expect_eq(frag_tracker_metric(tracker, "b,a", FRAG_TRACK_AVG_E2E_LATENCY, &value),
		     -ENOENT);
	cr_expect_eq(frag_tracker_metric(tracker, "a,b", FRAG_TRACK_NUM_SRC_MESSAGES, &value),
		     -EINVAL);
	cr_expect_eq(frag_tracker_metric(tracker, "a,b", (enum frag_track_metric)99, &value),
		     -EINVAL);
	cr_expect_eq(value, 7);
	frag_tracker_unref(tracker);
}

Test(tracker, paths_are_bounded)
{
	struct frag_tracker *tracker = tracker_of(0, 0);
	char name[16];

	for (int i = 3; i < FRAG_TRACK_PATHS_MAX + 5; i++) {
		snprintf(name, sizeof(name), "op%d", i);
		cr_assert_eq(fragi_tracker_add_op(tracker, name), i);
	}
	for (uint32_t i = 0; i < FRAG_TRACK_PATHS_MAX + 5; i++)
		fragi_tracker_count(tracker, &(struct fragi_step){.op = i, .left = 1}, MS);
	fragi_tracker_count(tracker, &(struct fragi_step){.op = 1000, .left = 1}, 3 * MS);
	cr_expect_eq(frag_tracker_num_paths(tracker), FRAG_TRACK_PATHS_MAX);
	cr_expect_eq(frag_tracker_untracked(tracker), 5);
	cr_expect_eq(metric(tracker, "op1000", FRAG_TRACK_NUM_DST_MESSAGES), 2);
	frag_tracker_unref(tracker);
}

Test(tracker, results_are_described_as_holoscan_prints_them)
{
	struct frag_tracker *tracker = tracker_of(0, 1);
	_Atomic uint64_t *sent = fragi_tracker_add_source(tracker, "a", "out");
	char *text;

	*sent = 12;
	for (uint64_t i = 1; i <= 4; i++)
		arrive(tracker, "ab", i);
	arrive(tracker, "ac", 1);
	text = frag_tracker_describe(tracker);
	cr_expect_str_eq(
		text,
		"Data Flow Tracking Results:\n"
		"Total paths: 2\n\n"
		"Path 1: a,b\n"
		"Number of messages: 3\n"
		"Max Latency Message No: 3\n"
		"Max end-to-end Latency (ms): 3.000\n"
		"Avg end-to-end Latency (ms): 2.000\n"
		"Min Latency Message No: 1\n"
		"Min end-to-end Latency (ms): 1.000\n"
		"p50, p99, p99.9 end-to-end Latency (ms): 2.032, 3.000, 3.000\n\n"
		"Path 2: a,c\n"
		"No messages tracked for this path.\n\n"
		"Number of source messages [format: source operator->transmitter name: number of messages]:\n"
		"a->out: 12\n");
	free(text);
	frag_tracker_unref(tracker);
}

Test(tracker, operators_of_other_processes_have_numbers_too)
{
	struct frag_tracker *tracker = tracker_of(0, 0);
	const struct fragi_label_names *names;
	const uint64_t now = fragi_stamp();
	int64_t there, again;
	char *text;

	cr_expect_null(fragi_tracker_names(tracker), "labels stay here");
	fragi_tracker_set_spans(tracker);
	names = fragi_tracker_names(tracker);
	cr_assert_not_null(names);
	cr_expect_eq(fragi_tracker_number_of(tracker, "b"), 1,
		     "a cycle comes back to its operator");
	there = fragi_tracker_number_of(tracker, "there.tx");
	again = fragi_tracker_number_of(tracker, "there.tx");
	cr_assert_gt(there, 2);
	cr_expect_eq(again, there);
	cr_expect_neq(fragi_tracker_number_of(tracker, "there.mx"), there);
	cr_expect_str_eq(names->name_of(names, (uint32_t)there), "there.tx");
	cr_expect_str_eq(names->name_of(names, 1), "b");

	const struct fragi_step steps[] = {
		{(uint32_t)there, 2, fragi_stamp_before(now, 6 * MS),
		 fragi_stamp_before(now, 5 * MS)},
		{1, 1, fragi_stamp_before(now, 3 * MS), fragi_stamp_before(now, 2 * MS), 400000,
		 700000},
	};

	fragi_tracker_record(tracker, steps);
	fragi_tracker_note_error(tracker, steps, 70000);
	fragi_tracker_note_error(tracker, steps, 30000);
	cr_expect_eq(metric(tracker, "there.tx,b", FRAG_TRACK_NUM_DST_MESSAGES), 1);
	cr_expect_float_eq(metric(tracker, "there.tx,b", FRAG_TRACK_P50_E2E_LATENCY), 4, 0.3);
	cr_expect_float_eq(metric(tracker, "there.tx,b", FRAG_TRACK_CLOCK_ERROR), 0.07, 1e-9);
	text = frag_tracker_describe(tracker);
	cr_expect_not_null(
		strstr(text, "Clocks of several nodes, each latency within (ms): 0.070\n"
			     "Mean time (ms) in each operator, and of the wait in front of it: "
			     "there.tx 1.000, b 1.000 (2.000: sent after 0.400, network 0.700)\n"),
		"%s", text);
	free(text);
	frag_tracker_unref(tracker);
}

Test(tracker, operators_of_other_processes_are_bounded)
{
	struct frag_tracker *tracker = tracker_of(0, 0);
	char name[16];

	for (int i = 0; i < 4096; i++) {
		snprintf(name, sizeof(name), "op%d", i);
		cr_assert_geq(fragi_tracker_number_of(tracker, name), 0, "%d", i);
	}
	cr_expect_lt(fragi_tracker_number_of(tracker, "one.more"), 0);
	cr_expect_geq(fragi_tracker_number_of(tracker, "op4095"), 0);
	frag_tracker_unref(tracker);
}

Test(tracker, a_log_that_cannot_be_written_is_reported)
{
	struct frag_tracker *tracker = tracker_of(0, 0);
	const struct fragi_step step = {0, 1, 0, 0};

	cr_expect_eq(frag_tracker_flush(tracker), 0, "there is none");
	cr_expect_eq(frag_tracker_enable_logging(tracker, "/nowhere/x.log", 1), -ENOENT);
	cr_expect_eq(frag_tracker_enable_logging(tracker, "", 1), -EINVAL);
	cr_expect_eq(frag_tracker_enable_logging(tracker, NULL, 1), -EINVAL);
	cr_expect_eq(frag_tracker_enable_logging(tracker, "/dev/full", 0), -EINVAL);
	cr_assert_eq(frag_tracker_enable_logging(tracker, "/dev/full", 1000), 0);
	fragi_tracker_log(tracker, &step, 1);
	cr_expect_eq(frag_tracker_flush(tracker), -ENOSPC);
	fragi_tracker_log(tracker, &step, 1);
	cr_expect_eq(frag_tracker_flush(tracker), -ENOSPC);
	frag_tracker_unref(tracker);
}

/* It is that one, or there is no memory; then there may be when it is asked for again. */
static void expect_number(struct frag_tracker *tracker, const char *name, int64_t expected)
{
	int64_t number = fragi_tracker_number_of(tracker, name);

	cr_expect(number == expected || number == -ENOMEM, "%s: %lld", name, (long long)number);
	if (number < 0)
		cr_expect_eq(fragi_tracker_number_of(tracker, name), expected, "%s", name);
}

/* The log before it is closed, and its name given back. */
Test(tracker, a_log_may_be_another_one_later)
{
	struct frag_tracker *tracker = tracker_of(0, 0);

	cr_expect_eq(frag_tracker_enable_logging(tracker, "/dev/null", 0), -EINVAL);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(frag_tracker_enable_logging(tracker, "/dev/null", 10), 0);
	cr_expect_eq(frag_tracker_enable_logging(tracker, "", 10), -EINVAL);
	frag_tracker_unref(tracker);
}

Test(tracker, every_failed_allocation_is_survived)
{
	int64_t failed = 1;

	for (int64_t n = 0; failed > 0; n++) {
		struct frag_tracker *tracker;

		fragi_alloc_fail_after(n, 1);
		tracker = fragi_tracker_create();
		if (tracker != NULL && fragi_tracker_add_op(tracker, "a") == 0) {
			(void)fragi_tracker_add_source(tracker, "a", "out");
			for (uint64_t i = 0; i < 40; i++)
				arrive(tracker, "a", i);
			expect_number(tracker, "there.tx", 1 << 24);
			expect_number(tracker, "a", 0);
		}
		failed = fragi_alloc_fail_off();
		frag_tracker_unref(tracker);
	}
}
