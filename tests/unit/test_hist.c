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

Test(hist, quantiles_are_within_an_eighth_of_the_exact_ones)
{
	static struct fragi_hist hist;
	static uint64_t values[10000];
	static const uint32_t per_mille[] = {1, 10, 250, 500, 900, 990, 999};
	uint64_t x = 88172645463325252u, exact, got;

	for (int i = 0; i < 10000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		values[i] = x >> (20 + x % 40);
		fragi_hist_add(&hist, values[i]);
	}
	qsort(values, 10000, sizeof(values[0]), by_value);
	for (size_t i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++) {
		exact = values[per_mille[i] * 10 - 1];
		got = fragi_hist_quantile(&hist, per_mille[i]);
		cr_expect(got <= exact + exact / 8 && got >= exact - exact / 8,
			  "%u: %llu, not %llu", per_mille[i], (unsigned long long)got,
			  (unsigned long long)exact);
	}
	cr_expect_eq(fragi_hist_quantile(&hist, 1000), values[9999]);
	cr_expect_eq(atomic_load(&hist.count), 10000);
	cr_expect_eq(atomic_load(&hist.max), values[9999]);
}

Test(hist, buckets_are_contiguous_and_their_middles_lie_inside)
{
	static struct fragi_hist hist;
	uint32_t last = 0, index;

	for (uint64_t ns = 0; ns < 100000; ns++) {
		index = fragi_hist_index(ns);
		cr_assert(index == last || index == last + 1);
		last = index;
	}
	cr_expect_eq(fragi_hist_index(UINT64_MAX), FRAGI_HIST_BUCKETS - 1);
	cr_expect_eq(fragi_hist_index(((uint64_t)1 << 44) - 1), FRAGI_HIST_BUCKETS - 1);
	cr_expect_lt(fragi_hist_index(((uint64_t)1 << 43) * 15 / 8 - 1), FRAGI_HIST_BUCKETS - 1);
	for (uint32_t shift = 0; shift < 44; shift++) {
		memset(&hist, 0, sizeof(hist));
		fragi_hist_add(&hist, (uint64_t)1 << shift);
		atomic_store(&hist.max, UINT64_MAX);
		cr_expect_eq(fragi_hist_index(fragi_hist_quantile(&hist, 500)),
			     fragi_hist_index((uint64_t)1 << shift));
	}
}

Test(hist, never_above_max)
{
	static struct fragi_hist hist;

	cr_expect_eq(fragi_hist_quantile(&hist, 500), 0);
	fragi_hist_add(&hist, 1024);
	cr_expect_eq(fragi_hist_quantile(&hist, 500), 1024);
}

Test(hist, any_memory_gives_an_answer)
{
	static struct fragi_hist hist;

	memset(&hist, 0xFF, sizeof(hist));
	cr_expect_gt(fragi_hist_quantile(&hist, 500), 0);
	cr_expect_eq(fragi_hist_quantile(&hist, 4000000000u), UINT64_MAX);
}

Test(hist, one_look_gives_all_quantiles)
{
	static struct fragi_hist hist;
	struct fragi_quantiles q;

	for (uint64_t ns = 1; ns <= 1000; ns++)
		fragi_hist_add(&hist, ns);
	fragi_hist_read(&hist, &q);
	cr_expect_eq(q.count, 1000);
	cr_expect_eq(q.p50, fragi_hist_quantile(&hist, 500));
	cr_expect_eq(q.p99, fragi_hist_quantile(&hist, 990));
	cr_expect_eq(q.p999, fragi_hist_quantile(&hist, 999));
	cr_expect_eq(q.max, 1000);
	cr_expect(q.p50 < q.p99);
}

Test(hist, bars_hold_what_is_below_their_ends_and_add_up)
{
	static struct fragi_hist hist;
	struct fragi_quantiles q, sum = {0};

	for (int bar = 0; bar < FRAGI_HIST_BARS - 1; bar++)
		for (int i = 0; i <= bar; i++) {
			fragi_hist_add(&hist, FRAGI_HIST_BAR_NS(bar) - 1);
			fragi_hist_add(&hist, FRAGI_HIST_BAR_NS(bar)); /* that of the next one */
		}
	fragi_hist_read(&hist, &q);
	cr_expect_eq(q.bars[0], 1);
	for (uint64_t bar = 1; bar < FRAGI_HIST_BARS - 1; bar++)
		cr_expect_eq(q.bars[bar], 2 * bar + 1, "%llu", (unsigned long long)bar);
	cr_expect_eq(q.bars[FRAGI_HIST_BARS - 1], FRAGI_HIST_BARS - 1);
	cr_expect_eq(q.total_ns, fragi_hist_total(&hist));
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

Test(hist, the_sum_is_within_seven_percent)
{
	static struct fragi_hist hist;
	uint64_t sum = 0;

	cr_expect_eq(fragi_hist_total(&hist), 0);
	for (uint64_t ns = 3; ns < 2000000; ns += ns / 5 + 1) {
		fragi_hist_add(&hist, ns);
		sum += ns;
		cr_expect(fragi_hist_total(&hist) * 100 <= sum * 107);
		cr_expect(fragi_hist_total(&hist) * 107 >= sum * 100);
	}
	memset(&hist, 0xFF, sizeof(hist));
	cr_expect_eq(fragi_hist_total(&hist), UINT64_MAX);
}
