/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SLOW_H
#define TESTS_SLOW_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * How many times as long all takes where this runs: tests/run.py says so of valgrind, emulators and
 * ThreadSanitizer.
 */
static inline int64_t times_slower(void)
{
	const char *times = getenv("FRAG_TEST_SLOW");

	return times != NULL ? atoi(times) : 1;
}

/*
 * How many times longer things take because others want the same cores, 4 at most: as busy.py. Time
 * limits that catch a hang are multiplied by it.
 */
static inline double times_busier(void)
{
	double load = 0;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (getloadavg(&load, 1) != 1 || cores < 1 || load < (double)cores)
		return 1;
	return load / (double)cores < 4 ? load / (double)cores : 4;
}

/* How long a test waits for what comes at once on an idle machine; what takes longer hangs. */
static inline int64_t patience_ns(void)
{
	return (int64_t)(60e9 * times_busier()) * times_slower();
}

/* The processor time of this process, which others do not make longer. */
static inline int64_t own_time_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

/* How many times as much a long repetition has: make nightly asks for more of the same. */
static inline int times_more(void)
{
	const char *times = getenv("FRAG_TEST_MORE");

	return times != NULL ? atoi(times) : 1;
}

#endif
