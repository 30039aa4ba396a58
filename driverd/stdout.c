// SPDX-License-Identifier: Apache-2.0
#include <driverd/stdout.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <base/nowait.h>

#define LOOK_NS INT64_C(50000000) /* how often a writer that waits looks for a signal */

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
	(void)number;
	is_stopped = 1;
}

static int write_all(const char *text, size_t size)
{
	size_t at = 0;

	while (at < size) {
		errno = 0;
		at += fragi_write_within(STDOUT_FILENO, text + at, size - at, LOOK_NS);
		if (at == size)
			break;
		if (errno != EAGAIN)
			return errno != 0 ? -errno : -EIO;
		if (is_stopped)
			return -EINTR;
	}
	return 0;
}

int drv_stdout_write(const char *text, size_t size)
{
	struct sigaction action = {.sa_handler = on_signal}, before[STOP_SIGNALS];
	int r;

	is_stopped = 0;
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaction(stop_signals[i], &action, &before[i]);
	r = write_all(text, size);
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaction(stop_signals[i], &before[i], NULL);
	return r;
}
