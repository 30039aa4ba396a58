// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a worker and its hosts, so that its machine seems to keep its clocks differently:
 * - FRAG_SHIFT_REALTIME_S: CLOCK_REALTIME shows so many seconds more, as where it shows TAI
 * - FRAG_SHIFT_SLEPT: from the moment that this file is there, the machine has slept for 5 s:
 *   CLOCK_BOOTTIME has moved on by that, and CLOCK_MONOTONIC has not
 * - FRAG_SHIFT_LEAP: while that file is there, a leap second is announced to its kernel
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define SLEPT_S 5

static time_t ahead_s(clockid_t clock)
{
	const char *realtime = getenv("FRAG_SHIFT_REALTIME_S"), *slept = getenv("FRAG_SHIFT_SLEPT");

	if (clock == CLOCK_REALTIME && realtime != NULL)
		return atoi(realtime);
	return clock == CLOCK_BOOTTIME && slept != NULL && access(slept, F_OK) == 0 ? SLEPT_S : 0;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*next)(clockid_t, struct timespec *);
	int r;

	if (next == NULL)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	r = next(clock, time);
	if (r == 0)
		time->tv_sec += ahead_s(clock);
	return r;
}

__attribute__((visibility("default"))) int adjtimex(struct timex *timex)
{
	static int (*next)(struct timex *);
	const char *leap = getenv("FRAG_SHIFT_LEAP");
	int r;

	if (next == NULL)
		next = (int (*)(struct timex *))dlsym(RTLD_NEXT, "adjtimex");
	r = next(timex);
	if (r >= 0 && leap != NULL && access(leap, F_OK) == 0)
		timex->status |= STA_INS;
	return r;
}
