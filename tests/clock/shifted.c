// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a worker and its hosts, so that its machine seems to keep its clocks differently:
 * - FRAG_SHIFT_REALTIME_S: CLOCK_REALTIME shows so many seconds more, as where it shows TAI
 * - FRAG_SHIFT_SLEPT: from the moment that this file is there, the machine has slept for 5 s:
 *   CLOCK_BOOTTIME has moved on by that, and CLOCK_MONOTONIC has not
 * - FRAG_SHIFT_LEAP: while that file is there, a leap second is announced to its kernel
 * - FRAG_SHIFT_PAUSED: once that file is there, all its clocks have stood still for 2 s, as those
 *   of a virtual machine that was paused; whoever makes it has stopped the processes meanwhile
 * - FRAG_SHIFT_SET: once that file is there, somebody has set the system clock back by an hour
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define SLEPT_S 5
#define PAUSED_S 2
#define SET_S 3600

static bool is_there(const char *variable)
{
	const char *file = getenv(variable);

	return file != NULL && access(file, F_OK) == 0;
}

static time_t ahead_s(clockid_t clock)
{
	const char *realtime = getenv("FRAG_SHIFT_REALTIME_S");
	time_t ahead = clock == CLOCK_REALTIME && realtime != NULL ? atoi(realtime) : 0;

	if (clock == CLOCK_BOOTTIME && is_there("FRAG_SHIFT_SLEPT"))
		ahead += SLEPT_S;
	if (clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID &&
	    is_there("FRAG_SHIFT_PAUSED"))
		ahead -= PAUSED_S;
	if (clock == CLOCK_REALTIME && is_there("FRAG_SHIFT_SET"))
		ahead -= SET_S;
	return ahead;
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
	int r;

	if (next == NULL)
		next = (int (*)(struct timex *))dlsym(RTLD_NEXT, "adjtimex");
	r = next(timex);
	if (r >= 0 && is_there("FRAG_SHIFT_LEAP"))
		timex->status |= STA_INS;
	return r;
}
