// SPDX-License-Identifier: Apache-2.0
#include <base/hist.h>

#include <string.h>

static struct fragi_hist_group unread;

void fragi_hist_give_buckets(struct fragi_hist *hist)
{
	if (hist->bucket == NULL)
		hist->bucket = unread.bucket[0][0];
}

static uint64_t bucket_middle(uint32_t i)
{
	const uint32_t octave = i / 8;

	return ((uint64_t)(8 + i % 8) << octave) + (((uint64_t)1 << octave) >> 1);
}

/*
 * A copy of the buckets: the writer goes on meanwhile, and `count` may be ahead of them. Only the
 * octaves from the lowest value to the largest one are looked at: to read an empty page would make
 * it take memory.
 */
struct snapshot {
	uint64_t bucket[FRAGI_HIST_BUCKETS], max;
	uint32_t count; /* of buckets */
	unsigned __int128 total;
};

static void copy_buckets(const struct fragi_hist *hist, struct fragi_hist_buckets buckets,
			 struct snapshot *out)
{
	uint32_t i;

	out->total = 0;
	out->count = 0;
	out->max = atomic_load_explicit(&hist->max, memory_order_relaxed);
	if (atomic_load_explicit(&hist->count, memory_order_relaxed) != 0)
		out->count = fragi_hist_index(out->max) / 8 * 8 + 8;
	for (i = out->count; i > 0; i -= 8) {
		/* What has come meanwhile is counted too, so values below are not taken for it. */
		atomic_thread_fence(memory_order_acquire);
		if (out->total >= atomic_load_explicit(&hist->count, memory_order_relaxed))
			break;
		for (uint32_t k = i - 8; k < i; k++) {
			out->bucket[k] =
				atomic_load_explicit(&buckets.first[k / 8 * buckets.stride + k % 8],
						     memory_order_relaxed);
			out->total += out->bucket[k];
		}
	}
	memset(out->bucket, 0, i * sizeof(out->bucket[0]));
}

static uint64_t quantile(const struct snapshot *snapshot, uint32_t per_mille)
{
	unsigned __int128 seen = 0, rank = (snapshot->total * per_mille + 999) / 1000;
	uint64_t middle;

	if (snapshot->total == 0)
		return 0;
	if (per_mille >= 1000)
		return snapshot->max;
	if (rank == 0)
		rank = 1;
	for (uint32_t i = 0; i < snapshot->count; i++) {
		seen += snapshot->bucket[i];
		if (seen >= rank) {
			middle = bucket_middle(i);
			return middle < snapshot->max ? middle : snapshot->max;
		}
	}
	return snapshot->max;
}

static uint64_t total_of(const struct snapshot *snapshot)
{
	unsigned __int128 total = 0;

	for (uint32_t i = 0; i < snapshot->count; i++)
		total += (unsigned __int128)snapshot->bucket[i] * bucket_middle(i);
	return total < UINT64_MAX ? (uint64_t)total : UINT64_MAX;
}

uint64_t fragi_hist_quantile(const struct fragi_hist *hist, struct fragi_hist_buckets buckets,
			     uint32_t per_mille)
{
	struct snapshot snapshot;

	copy_buckets(hist, buckets, &snapshot);
	return quantile(&snapshot, per_mille);
}

void fragi_hist_read(const struct fragi_hist *hist, struct fragi_hist_buckets buckets,
		     struct fragi_quantiles *out)
{
	struct snapshot snapshot;

	copy_buckets(hist, buckets, &snapshot);
	out->count = atomic_load_explicit(&hist->count, memory_order_relaxed);
	out->p50 = quantile(&snapshot, 500);
	out->p99 = quantile(&snapshot, 990);
	out->p999 = quantile(&snapshot, 999);
	out->max = snapshot.max;
	out->error_ns = atomic_load_explicit(&hist->error, memory_order_relaxed);
	out->total_ns = total_of(&snapshot);
	memset(out->bars, 0, sizeof(out->bars));
	for (uint32_t i = 0, bar = 0; i < snapshot.count; i++) {
		if (bar < FRAGI_HIST_BARS - 1 && i == fragi_hist_index(FRAGI_HIST_BAR_NS(bar)))
			bar++;
		out->bars[bar] += snapshot.bucket[i];
	}
}

void fragi_quantiles_add(struct fragi_quantiles *total, const struct fragi_quantiles *later)
{
	const struct fragi_quantiles before = *total;

	if (later->count == 0)
		return;
	*total = *later;
	for (int i = 0; i < FRAGI_HIST_BARS; i++)
		total->bars[i] += before.bars[i];
	total->total_ns += before.total_ns;
	if (total->error_ns < before.error_ns)
		total->error_ns = before.error_ns;
}

uint64_t fragi_hist_total(const struct fragi_hist *hist, struct fragi_hist_buckets buckets)
{
	struct snapshot snapshot;

	copy_buckets(hist, buckets, &snapshot);
	return total_of(&snapshot);
}
