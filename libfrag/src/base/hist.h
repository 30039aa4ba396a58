/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_HIST_H
#define FRAGI_BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * A log-linear histogram of nanoseconds: 8 buckets for each octave, a factor of two (relative error
 * below 1/8); what is below 8 ns counts as 8. It has one writer, which uses plain loads and stores;
 * another process may read the memory at the same time.
 */
#define FRAGI_HIST_OCTAVES 61
#define FRAGI_HIST_BUCKETS (8 * FRAGI_HIST_OCTAVES)

struct fragi_hist {
	_Atomic uint64_t count;
	_Atomic uint64_t max;
	/* the largest error of a value, ns; written by who converts times */
	_Atomic uint64_t error;
	_Atomic uint64_t *bucket; /* the first, in a group; of the writing process alone */
};

/*
 * The buckets of 64 histograms. Each octave of all of them is as large as a page, so octaves in
 * which none of them has a value take no memory, and most have values in a few.
 */
#define FRAGI_HIST_GROUP 64
struct fragi_hist_group {
	_Atomic uint64_t bucket[FRAGI_HIST_OCTAVES][FRAGI_HIST_GROUP][8];
};

/* One by itself, which costs all of its buckets. */
struct fragi_hist_alone {
	struct fragi_hist hist;
	_Atomic uint64_t bucket[FRAGI_HIST_OCTAVES][1][8];
};

/* Where a reader finds the buckets: those of octave k are first[k * stride] and the 7 behind it. */
struct fragi_hist_buckets {
	const _Atomic uint64_t *first;
	uint32_t stride;
};

/* Gives one that has none buckets that all such share and nobody reads. */
FRAGI_API void fragi_hist_give_buckets(struct fragi_hist *hist);

static inline uint32_t fragi_hist_index(uint64_t ns)
{
	uint32_t octave;

	ns = ns < 8 ? 8 : ns;
	octave = 60 - (uint32_t)__builtin_clzll(ns);
	return octave * 8 + (uint32_t)(ns >> octave) - 8;
}

/* Adds n to a counter that has one writer, so that no read-modify-write is needed. */
static inline void fragi_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline __attribute__((always_inline)) void fragi_hist_count(struct fragi_hist *hist,
								   _Atomic uint64_t *bucket,
								   uint32_t octave_bytes,
								   uint64_t ns)
{
	const uint64_t value = ns < 8 ? 8 : ns;
	const uint64_t octave = 60 - (uint64_t)__builtin_clzll(value);
	char *at = (char *)bucket + octave * octave_bytes;

	fragi_count((_Atomic uint64_t *)(void *)at + (value >> octave) - 8, 1);
	fragi_count(&hist->count, 1);
	if (ns > atomic_load_explicit(&hist->max, memory_order_relaxed))
		atomic_store_explicit(&hist->max, ns, memory_order_relaxed);
}

static inline void fragi_hist_add(struct fragi_hist *hist, uint64_t ns)
{
	fragi_hist_count(hist, hist->bucket, 64 * FRAGI_HIST_GROUP, ns);
}

static inline void fragi_hist_alone_add(struct fragi_hist_alone *alone, uint64_t ns)
{
	fragi_hist_count(&alone->hist, alone->bucket[0][0], 64, ns);
}

static inline struct fragi_hist_buckets
fragi_hist_alone_buckets(const struct fragi_hist_alone *alone)
{
	return (struct fragi_hist_buckets){alone->bucket[0][0], 8};
}

/* Those of histogram i of some groups. */
static inline _Atomic uint64_t *fragi_hist_in_group(struct fragi_hist_group *groups, uint32_t i)
{
	return groups[i / FRAGI_HIST_GROUP].bucket[0][i % FRAGI_HIST_GROUP];
}

static inline void fragi_hist_note_error(struct fragi_hist *hist, uint64_t ns)
{
	if (ns > atomic_load_explicit(&hist->error, memory_order_relaxed))
		atomic_store_explicit(&hist->error, ns, memory_order_relaxed);
}

/* Bars of metrics: bar i holds what is below FRAGI_HIST_BAR_NS(i) and in no bar before it. */
#define FRAGI_HIST_BARS 12
#define FRAGI_HIST_BAR_NS(i) (UINT64_C(1) << (12 + 2 * (i))) /* 4 us to 4 s; the last bar: all */

/*
 * A histogram in a few numbers: 500, 990 and 999 of 1000 lie below p50, p99 and p999; max is exact.
 */
struct fragi_quantiles {
	uint64_t count, p50, p99, p999, max;
	uint64_t error_ns; /* each lies at most so far from the truth; 0: one clock measured them */
	/* of a running application: since somebody looked; total_ns: as fragi_hist_total */
	uint64_t bars[FRAGI_HIST_BARS], total_ns;
};

static inline void fragi_bars_forget(struct fragi_quantiles *quantiles)
{
	for (int i = 0; i < FRAGI_HIST_BARS; i++)
		quantiles->bars[i] = 0;
	quantiles->total_ns = 0;
}
/* What a later process has counted too: quantiles cannot be added, they are those of the last. */
FRAGI_API void fragi_quantiles_add(struct fragi_quantiles *total,
				   const struct fragi_quantiles *later);

/*
 * Returns the value below which `per_mille` of 1000 recorded values lie (500: the median), in
 * nanoseconds: the middle of its bucket, and never above max; 0 when nothing was recorded. Whatever
 * another process wrote into the memory, the call ends.
 */
FRAGI_API uint64_t fragi_hist_quantile(const struct fragi_hist *hist,
				       struct fragi_hist_buckets buckets, uint32_t per_mille);
/*
 * Returns the sum of the recorded values by the middles of their buckets: within 7 %, and a longer
 * run is nearer.
 */
FRAGI_API uint64_t fragi_hist_total(const struct fragi_hist *hist,
				    struct fragi_hist_buckets buckets);
/*
 * Computes all of them from one copy of the buckets, so that p50 <= p99 <= p999 whatever the memory
 * holds.
 */
FRAGI_API void fragi_hist_read(const struct fragi_hist *hist, struct fragi_hist_buckets buckets,
			       struct fragi_quantiles *out);

#endif
