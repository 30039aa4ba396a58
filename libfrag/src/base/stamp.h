/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STAMP_H
#define FRAGI_BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <base/diag.h>

/*
 * Stamps: the cheapest steady clock of the machine (rdtsc, cntvct_el0), in ticks of its own,
 * comparable between threads of one process. Only differences are converted to nanoseconds, so a
 * calibration error never grows with the run. Where the counter is not invariant, a stamp is
 * CLOCK_MONOTONIC in nanoseconds.
 */
FRAGI_API extern bool fragi_stamp_is_tsc; /* constant after load */
FRAGI_API extern uint64_t
	fragi_stamp_ns_per_tick_q56; /* nanoseconds a tick, in 1/2^56; constant after load */
FRAGI_API extern uint64_t fragi_stamp_ticks_per_ns_q32; /* the reverse, in 1/2^32 */

static inline int64_t fragi_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Out of line, so that who takes a stamp need not have a struct timespec on its stack. */
FRAGI_API uint64_t fragi_stamp_without_counter(void);

/* A stamp where fragi_stamp_is_tsc. */
static inline uint64_t fragi_stamp_of_counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

static inline uint64_t fragi_stamp(void)
{
	return __builtin_expect(fragi_stamp_is_tsc, 1) ? fragi_stamp_of_counter()
						       : fragi_stamp_without_counter();
}

/*
 * Nanoseconds from stamp a to the later stamp b, less than months after it; 0 when b is not later
 * (stamps of two threads may cross).
 */
static inline uint64_t fragi_stamp_diff_ns(uint64_t a, uint64_t b)
{
	int64_t ticks = (int64_t)(b - a);

	if (ticks <= 0)
		return 0;
	/* The upper half of a product: a shift over two registers costs each hop a nanosecond. */
	return (uint64_t)(((unsigned __int128)((uint64_t)ticks << 8) *
			   fragi_stamp_ns_per_tick_q56) >>
			  64);
}

/* The stamp that lies ns before b. */
static inline uint64_t fragi_stamp_before(uint64_t b, uint64_t ns)
{
	return b - (uint64_t)(((unsigned __int128)ns * fragi_stamp_ticks_per_ns_q32) >> 32);
}

/* One moment on both clocks: to find a near time on the other without reading it. */
struct fragi_moment {
	int64_t ns; /* CLOCK_MONOTONIC */
	uint64_t stamp;
};

static inline struct fragi_moment fragi_moment_now(void)
{
	int64_t ns = fragi_now_ns();

	return (struct fragi_moment){ns, fragi_stamp()};
}

/* CLOCK_MONOTONIC at stamp. */
static inline int64_t fragi_moment_ns_at(const struct fragi_moment *moment, uint64_t stamp)
{
	int64_t ticks = (int64_t)(stamp - moment->stamp);

	return moment->ns +
	       (int64_t)(((__int128)ticks * (__int128)fragi_stamp_ns_per_tick_q56) >> 56);
}

/* The stamp at ns, which may be anything. */
static inline uint64_t fragi_moment_stamp_at(const struct fragi_moment *moment, int64_t ns)
{
	int64_t since = (int64_t)((uint64_t)ns - (uint64_t)moment->ns);

	return moment->stamp +
	       (uint64_t)(((__int128)since * (__int128)fragi_stamp_ticks_per_ns_q32) >> 32);
}

#endif
