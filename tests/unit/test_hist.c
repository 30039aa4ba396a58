// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <base/hist.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t quantile(const struct fragi_hist_alone *hist, uint32_t per_mille)
{
	return fragi_hist_quantile(&hist->hist, fragi_hist_alone_buckets(hist), per_mille);
}

static uint64_t total(const struct fragi_hist_alone *hist)
{
	return fragi_hist_total(&hist->hist, fragi_hist_alone_buckets(hist));
}

Test(hist, quantiles_are_within_an_eighth_of_the_exact_ones)
{
	static struct fragi_hist_alone hist;
	static uint64_t values[10000];
	static const uint32_t per_mille[] = {1, 10, 250, 500, 900, 990, 999};
	uint64_t x = 88172645463325252u, exact, got;

	for (int i = 0; i < 10000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		values[i] = (x >> (20 + x % 40)) | 8; /* less counts as 8 */
		fragi_hist_alone_add(&hist, values[i]);
	}
	qsort(values, 10000, sizeof(values[0]), by_value);
	for (size_t i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++) {
		exact = values[per_mille[i] * 10 - 1];
		got = quantile(&hist, per_mille[i]);
		cr_expect(got <= exact + exact / 8 && got >= exact - exact / 8,
			  "%u: %llu, not %llu", per_mille[i], (unsigned long long)got,
			  (unsigned long long)exact);
	}
	cr_expect_eq(quantile(&hist, 1000), values[9999]);
	cr_expect_eq(atomic_load(&hist.hist.count), 10000);
	cr_expect_eq(atomic_load(&hist.hist.max), values[9999]);
}

Test(hist, buckets_are_contiguous_and_their_middles_lie_inside)
{
	static struct fragi_hist_alone hist;
	uint32_t last = 0, index;

	for (uint64_t ns = 0; ns < 100000; ns++) {
		index = fragi_hist_index(ns);
		cr_assert(index == last || index == last + 1);
		last = index;
	}
	cr_expect_eq(fragi_hist_index(UINT64_MAX), FRAGI_HIST_BUCKETS - 1);
	cr_expect_eq(fragi_hist_index(8), 0);
	cr_expect_eq(fragi_hist_index(9), 1);
	cr_expect_lt(fragi_hist_index(((uint64_t)1 << 63) / 8 * 15 - 1), FRAGI_HIST_BUCKETS - 1);
	for (uint32_t shift = 0; shift < 64; shift++) {
		memset(&hist, 0, sizeof(hist));
		fragi_hist_alone_add(&hist, (uint64_t)1 << shift);
		atomic_store(&hist.hist.max, UINT64_MAX);
		cr_expect_eq(fragi_hist_index(quantile(&hist, 500)),
			     fragi_hist_index((uint64_t)1 << shift));
	}
}

Test(hist, never_above_max)
{
	static struct fragi_hist_alone hist;

	cr_expect_eq(quantile(&hist, 500), 0);
	fragi_hist_alone_add(&hist, 1024);
	cr_expect_eq(quantile(&hist, 500), 1024);
}

/* A value lies in the memory of its own histogram and octave, whatever its neighbours hold. */
Test(hist, those_of_a_group_do_not_meet)
{
	static struct fragi_hist_group groups[2], empty;
	struct fragi_hist hist[FRAGI_HIST_GROUP + 1] = {0};
	const uint32_t last = FRAGI_HIST_GROUP;

	for (uint32_t i = 0; i <= last; i++) {
		hist[i].bucket = fragi_hist_in_group(groups, i);
		for (uint32_t n = 0; n <= i; n++) {
			fragi_hist_add(&hist[i], 0);
			fragi_hist_add(&hist[i], (uint64_t)1000 << i % 40);
			fragi_hist_add(&hist[i], UINT64_MAX);
		}
	}
	for (uint32_t i = 0; i <= last; i++) {
		const struct fragi_hist_buckets buckets = {hist[i].bucket, 8 * FRAGI_HIST_GROUP};
		struct fragi_quantiles q;

		fragi_hist_read(&hist[i], buckets, &q);
		cr_assert_eq(q.count, 3 * (i + 1));
		cr_assert_eq(fragi_hist_index(q.p50), fragi_hist_index((uint64_t)1000 << i % 40));
		cr_assert_eq(fragi_hist_quantile(&hist[i], buckets, 333), 8);
		cr_assert_eq(q.p999, fragi_hist_quantile(&hist[i], buckets, 999));
	}
	cr_assert_eq(memcmp(groups[1].bucket[0][1], &empty, sizeof(empty.bucket[0]) - 64), 0);
}

Test(hist, one_without_buckets_counts_all_the_same)
{
	struct fragi_hist hist = {0};

	fragi_hist_give_buckets(&hist);
	fragi_hist_add(&hist, 100);
	cr_expect_eq(hist.count, 1);
	cr_expect_eq(hist.max, 100);
}

Test(hist, any_memory_gives_an_answer)
{
	static struct fragi_hist_alone hist;

	memset(&hist, 0xFF, sizeof(hist));
	cr_expect_gt(quantile(&hist, 500), 0);
	cr_expect_eq(quantile(&hist, 4000000000u), UINT64_MAX);
}

Test(hist, one_look_gives_all_quantiles)
{
	static struct fragi_hist_alone hist;
	struct fragi_quantiles q;

	for (uint64_t ns = 1; ns <= 1000; ns++)
		fragi_hist_alone_add(&hist, ns);
	fragi_hist_read(&hist.hist, fragi_hist_alone_buckets(&hist), &q);
	cr_expect_eq(q.count, 1000);
	cr_expect_eq(q.p50, quantile(&hist, 500));
	cr_expect_eq(q.p99, quantile(&hist, 990));
	cr_expect_eq(q.p999, quantile(&hist, 999));
	cr_expect_eq(q.max, 1000);
	cr_expect(q.p50 < q.p99);
}

Test(hist, bars_hold_what_is_below_their_ends_and_add_up)
{
	static struct fragi_hist_alone hist;
	struct fragi_quantiles q, sum = {0};

	for (int bar = 0; bar < FRAGI_HIST_BARS - 1; bar++)
		for (int i = 0; i <= bar; i++) {
			fragi_hist_alone_add(&hist, FRAGI_HIST_BAR_NS(bar) - 1);
			fragi_hist_alone_add(&hist,
					     FRAGI_HIST_BAR_NS(bar)); /* that of the next one */
		}
	fragi_hist_read(&hist.hist, fragi_hist_alone_buckets(&hist), &q);
	cr_expect_eq(q.bars[0], 1);
	for (uint64_t bar = 1; bar < FRAGI_HIST_BARS - 1; bar++)
		cr_expect_eq(q.bars[bar], 2 * bar + 1, "%llu", (unsigned long long)bar);
	cr_expect_eq(q.bars[FRAGI_HIST_BARS - 1], FRAGI_HIST_BARS - 1);
	cr_expect_eq(q.total_ns, total(&hist));
	fragi_quantiles_add(&sum, &q);
	fragi_quantiles_add(&sum, &q);
	cr_expect_eq(sum.bars[1], 6);
	cr_expect_eq(sum.bars[FRAGI_HIST_BARS - 1], 2 * (FRAGI_HIST_BARS - 1));
	cr_expect_eq(sum.total_ns, 2 * q.total_ns);
	cr_expect_eq(sum.count, q.count, "of the last one");
	fragi_bars_forget(&q);
	fragi_quantiles_add(&sum, &q);
	cr_expect_eq(sum.bars[1], 6);
	cr_expect_eq(q.total_ns, 0);
	fragi_quantiles_add(&sum, &(struct fragi_quantiles){.p50 = 7});
	cr_expect_eq(sum.p50, q.p50, "a process that counted nothing");
}

/* Of two processes after each other: the worse error, whichever had it. */
Test(hist, the_largest_error_stays)
{
	struct fragi_quantiles sum = {.count = 1, .error_ns = 17};

	fragi_quantiles_add(&sum, &(struct fragi_quantiles){.count = 2, .error_ns = 23});
	cr_expect_eq(sum.error_ns, 23);
	fragi_quantiles_add(&sum, &(struct fragi_quantiles){.count = 3, .error_ns = 11});
	cr_expect_eq(sum.error_ns, 23);
	fragi_quantiles_add(&sum, &(struct fragi_quantiles){.error_ns = 99});
	cr_expect_eq(sum.error_ns, 23, "one that counted nothing has none");
	cr_expect_eq(sum.count, 3);
}

Test(hist, the_sum_is_within_seven_percent)
{
	static struct fragi_hist_alone hist;
	uint64_t sum = 0;

	cr_expect_eq(total(&hist), 0);
	for (uint64_t ns = 8; ns < 2000000; ns += ns / 5 + 1) {
		fragi_hist_alone_add(&hist, ns);
		sum += ns;
		cr_expect(total(&hist) * 100 <= sum * 107);
		cr_expect(total(&hist) * 107 >= sum * 100);
	}
	memset(&hist, 0xFF, sizeof(hist));
	cr_expect_eq(total(&hist), UINT64_MAX);
}
