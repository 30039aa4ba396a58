/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STAMP_H
#define FRAGI_BASE_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <base/diag.h>

/*
 * Stamps: readings of the cheapest steady clock of the machine (rdtsc, cntvct_el0), in units of
 * that clock. Stamps of all threads of a process can be compared. Only differences are converted to
 * nanoseconds, so a calibration error does not grow with the length of the run. Where the counter
 * is not invariant, a stamp is CLOCK_MONOTONIC in nanoseconds. A run under a virtual clock takes
 * stamps of that instead (base/clock.h).
 */
FRAGI_API extern bool fragi_stamp_is_tsc; /* constant while threads take stamps */
/* Constant after fragi_stamp_refine: nanoseconds a tick, in 1/2^56; the reverse, in 1/2^32. */
FRAGI_API extern uint64_t fragi_stamp_ns_per_tick_q56;
FRAGI_API extern uint64_t fragi_stamp_ticks_per_ns_q32;

/*
 * Measures the counter again where it is only known roughly, within 0.5 %: over the time since the
 * library was loaded, so that a program that starts need not wait for it. For those who time what
 * messages do, before they start threads; further calls do nothing.
 */
FRAGI_API void fragi_stamp_refine(void);
/*
 * Takes stamps, in nanoseconds and never 0, from a function; NULL: no longer. No other thread may
 * take any meanwhile.
 */
FRAGI_API void fragi_stamp_take_from(uint64_t (*now)(void));
/* Whether they are: what the kernel measures cannot be compared with them. */
FRAGI_API bool fragi_stamp_is_virtual(void);

static inline int64_t fragi_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The same with the time for which the machine was suspended. */
static inline int64_t fragi_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Out of line, so that the caller needs no struct timespec on its stack. */
FRAGI_API uint64_t fragi_stamp_without_counter(void);

/* A stamp; only where fragi_stamp_is_tsc is true. */
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
 * Returns the nanoseconds from stamp a to stamp b, which must be less than months later; 0 when b
 * is not later, as happens with stamps of two threads.
 */
static inline uint64_t fragi_stamp_diff_ns(uint64_t a, uint64_t b)
{
	int64_t ticks = (int64_t)(b - a);

	if (ticks <= 0)
		return 0;
	/*
	 * Takes the upper half of a product: shifting over two registers would cost each hop a
	 * nanosecond.
	 */
	return (uint64_t)(((unsigned __int128)((uint64_t)ticks << 8) *
			   fragi_stamp_ns_per_tick_q56) >>
			  64);
}

/* Returns the stamp that lies `ns` before b. */
static inline uint64_t fragi_stamp_before(uint64_t b, uint64_t ns)
{
	return b - (uint64_t)(((unsigned __int128)ns * fragi_stamp_ticks_per_ns_q32) >> 32);
}

/* The same moment on both clocks, to convert times near it without a system call. */
struct fragi_moment {
	int64_t ns; /* CLOCK_MONOTONIC */
	uint64_t stamp;
};

/*
 * Reads both clocks. It reads them again when the thread was interrupted between the two, because
 * the pair would be wrong by as much.
 */
FRAGI_API struct fragi_moment fragi_moment_now(void);

/* Returns CLOCK_MONOTONIC at a stamp. */
static inline int64_t fragi_moment_ns_at(const struct fragi_moment *moment, uint64_t stamp)
{
	int64_t ticks = (int64_t)(stamp - moment->stamp);

	/* Of a stamp from elsewhere the time may be anything, and so may the sum. */
	return (int64_t)((uint64_t)moment->ns +
			 (uint64_t)(((__int128)ticks * (__int128)fragi_stamp_ns_per_tick_q56) >>
				    56));
}

/*
 * The time between two moments. Stamps after the first one lie on the line through both. Thus they
 * keep their order, however the kernel slews CLOCK_MONOTONIC meanwhile, where each interval begins
 * with the last moment of the one before it.
 */
struct fragi_interval {
	struct fragi_moment first, last;
};

/* Returns CLOCK_MONOTONIC at a stamp. Any stamp is accepted. */
static inline int64_t fragi_interval_ns_at(const struct fragi_interval *interval, uint64_t stamp)
{
	const int64_t ticks = (int64_t)(stamp - interval->first.stamp);
	const int64_t length = (int64_t)(interval->last.stamp - interval->first.stamp);

	if (ticks <= 0 || length <= 0)
		return fragi_moment_ns_at(&interval->first, stamp);
	return (int64_t)((uint64_t)interval->first.ns +
			 (uint64_t)((__int128)ticks * (interval->last.ns - interval->first.ns) /
				    length));
}

/* Returns the stamp at a time of CLOCK_MONOTONIC. Any value of ns is accepted. */
static inline uint64_t fragi_moment_stamp_at(const struct fragi_moment *moment, int64_t ns)
{
	int64_t since = (int64_t)((uint64_t)ns - (uint64_t)moment->ns);

	return moment->stamp +
	       (uint64_t)(((__int128)since * (__int128)fragi_stamp_ticks_per_ns_q32) >> 32);
}

#endif
