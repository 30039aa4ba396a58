/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_HIST_H
#define FRAGI_BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * A log-linear histogram of nanoseconds: 8 buckets an octave (relative error below 1/8), up to 2^44
 * ns (4.9 h), in memory that another process may read while it is written. One writer; plain load
 * and store.
 */
#define FRAGI_HIST_BUCKETS 336

struct fragi_hist {
	_Atomic uint64_t count;
	_Atomic uint64_t max;
	_Atomic uint64_t bucket[FRAGI_HIST_BUCKETS];
};

static inline uint32_t fragi_hist_index(uint64_t ns)
{
	/* The | 8: below 8 a bucket is as wide as in the first octave. */
	uint32_t shift = (63u ^ (uint32_t)__builtin_clzll(ns | 8)) - 3;
	uint32_t i = shift * 8 + (uint32_t)(ns >> shift); /* the leading 1 adds the missing 8 */

	return i < FRAGI_HIST_BUCKETS ? i : FRAGI_HIST_BUCKETS - 1;
}

static inline void fragi_count(_Atomic uint64_t *counter,
			       uint64_t n) /* one writer: no read-modify-write needed */
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void fragi_hist_add(struct fragi_hist *hist, uint64_t ns)
{
	fragi_count(hist->bucket + fragi_hist_index(ns), 1);
	fragi_count(&hist->count, 1);
	if (ns > atomic_load_explicit(&hist->max, memory_order_relaxed))
		atomic_store_explicit(&hist->max, ns, memory_order_relaxed);
}

/* A histogram in a few numbers: 500, 990 and 999 of 1000 lie below p50, p99 and p999; max is exact. */
struct fragi_quantiles {
	uint64_t count, p50, p99, p999, max;
};

/*
 * The value below which `per_mille` of 1000 recorded ones lie (500: the median), the middle of its
 * bucket and never above max; 0 when nothing was recorded. Bounded whatever the memory holds.
 */
FRAGI_API uint64_t fragi_hist_quantile(const struct fragi_hist *hist, uint32_t per_mille);
/* All of them from one look at the buckets, so that p50 <= p99 <= p999 whatever the memory holds. */
FRAGI_API void fragi_hist_read(const struct fragi_hist *hist, struct fragi_quantiles *out);

#endif
