// SPDX-License-Identifier: Apache-2.0
#include <base/hist.h>

static uint64_t bucket_middle(uint32_t i)
{
	uint32_t shift;

	if (i < 8)
		return i;
	shift = i / 8 - 1;
	return ((uint64_t)(8 + i % 8) << shift) + (((uint64_t)1 << shift) >> 1);
}

uint64_t fragi_hist_quantile(const struct fragi_hist *hist, uint32_t per_mille)
{
	uint64_t bucket[FRAGI_HIST_BUCKETS], max, middle;
	unsigned __int128 total = 0, seen = 0, rank;

	/* One copy: the writer goes on meanwhile, and `count` may be ahead of the buckets. */
	for (uint32_t i = 0; i < FRAGI_HIST_BUCKETS; i++) {
		bucket[i] = atomic_load_explicit(&hist->bucket[i], memory_order_relaxed);
		total += bucket[i];
	}
	if (total == 0)
		return 0;
	max = atomic_load_explicit(&hist->max, memory_order_relaxed);
	if (per_mille >= 1000)
		return max;
	rank = (total * per_mille + 999) / 1000;
	if (rank == 0)
		rank = 1;
	for (uint32_t i = 0; i < FRAGI_HIST_BUCKETS; i++) {
		seen += bucket[i];
		if (seen >= rank) {
			middle = bucket_middle(i);
			return middle < max ? middle : max;
		}
	}
	return max;
}
