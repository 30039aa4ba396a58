// SPDX-License-Identifier: Apache-2.0
#include <driverd/system.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>
#include <time.h>

#include <base/stamp.h>

void drv_system_random(void *arg, void *bytes, size_t size)
{
	uint8_t *at = bytes;
	ssize_t n;

	(void)arg;
	while (size > 0) {
		n = getrandom(at, size, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			abort(); /* a token that can be guessed is worse than no driver */
		at += n;
		size -= (size_t)n;
	}
}

int64_t drv_system_realtime_offset_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - fragi_now_ns();
}
