// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/host/lease.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

int host_lease_hold_until(int64_t until_ns)
{
	static timer_t timer;
	static bool is_made;
	struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(until_ns / 1000000000),
					     .tv_nsec = (long)(until_ns % 1000000000)}};

	if (!is_made && timer_create(CLOCK_BOOTTIME, &kill, &timer) < 0)
		return -errno;
	is_made = true;
	return timer_settime(timer, TIMER_ABSTIME, &at, NULL) < 0 ? -errno : 0;
}
