/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STAMP_H
#define FRAGI_BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <base/diag.h>

/*
 * Stamps: the cheapest steady clock of the machine (rdtsc, cntvct_el0), in ticks of its own, comparable
 * between threads of one process. Only differences are converted to nanoseconds, so a calibration error never
 * grows with the run. Where the counter is not invariant, a stamp is CLOCK_MONOTONIC in nanoseconds.
 */
FRAGI_API extern bool fragi_stamp_is_tsc; /* constant after load */
FRAGI_API extern uint64_t
	fragi_stamp_ns_per_tick_q32; /* nanoseconds a tick, in 1/2^32; constant after load */

static inline int64_t fragi_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline uint64_t fragi_stamp(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(fragi_stamp_is_tsc, 1))
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (__builtin_expect(fragi_stamp_is_tsc, 1)) {
		uint64_t ticks;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
		return ticks;
	}
#endif
	return (uint64_t)fragi_now_ns();
}

/* Nanoseconds from stamp a to the later stamp b; 0 when b is not later (stamps of two threads may cross). */
static inline uint64_t fragi_stamp_diff_ns(uint64_t a, uint64_t b)
{
	int64_t ticks = (int64_t)(b - a);

	if (ticks <= 0)
		return 0;
	return (uint64_t)(((unsigned __int128)(uint64_t)ticks * fragi_stamp_ns_per_tick_q32) >> 32);
}

/* The stamp that lies ns before b. */
static inline uint64_t fragi_stamp_before(uint64_t b, uint64_t ns)
{
	return b - (uint64_t)(((unsigned __int128)ns << 32) / fragi_stamp_ns_per_tick_q32);
}

#endif
