// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <base/nowait.h>
#include <driverd/stdout.h>

/* The result of an application on a stdout that this file plays. */
static const char text[] = "0123456789";
static const struct take {
	size_t most; /* that it takes */
	int error;   /* which it leaves where it takes less */
	int signal;  /* that comes meanwhile */
} * takes;
static size_t taken;

size_t fragi_write_within(int fd, const void *bytes, size_t size, int64_t patience_ns)
{
	const struct take *now = takes++;

	cr_expect_eq(fd, STDOUT_FILENO);
	cr_expect(patience_ns > 0 && patience_ns <= 100000000, "signals are looked for");
	cr_expect_eq(size, 10 - taken);
	cr_expect_eq(memcmp(bytes, text + taken, size), 0);
	if (now->signal != 0)
		raise(now->signal);
	if (now->error != 0)
		errno = now->error;
	taken += now->most < size ? now->most : size;
	return now->most < size ? now->most : size;
}

/* Logs are no matter of this. */
ssize_t fragi_write_nowait(int fd, const void *bytes, size_t size)
{
	return write(fd, bytes, size);
}

static volatile sig_atomic_t heard;

static void on_signal(int number)
{
	heard = number;
}

static void expect(const struct take *script, int r, size_t all)
{
	takes = script;
	taken = 0;
	errno = EAGAIN; /* of something before */
	cr_expect_eq(drv_stdout_write(text, 10), r);
	cr_expect_eq(taken, all);
}

#define TAKES(...) ((const struct take[]){__VA_ARGS__})

Test(driver_stdout, waits_for_a_reader_until_a_signal_comes)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

	expect(TAKES({10}), 0, 10);
	expect(TAKES({3, EAGAIN}, {0, EAGAIN}, {7}), 0, 10);
	expect(TAKES({3, EPIPE}), -EPIPE, 3);
	expect(TAKES({4}), -EIO, 4);
	expect(TAKES({0, EAGAIN}, {2}), -EIO, 2);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		expect(TAKES({3, EAGAIN, numbers[i]}), -EINTR, 3);
		expect(TAKES({3, EAGAIN}, {1, EAGAIN, numbers[i]}), -EINTR, 4);
		expect(TAKES({3, EPIPE, numbers[i]}), -EPIPE, 3);
		expect(TAKES({10, 0, numbers[i]}), 0, 10);
		expect(TAKES({3, EAGAIN}, {7}), 0, 10); /* it was about the one before */
	}
}

Test(driver_stdout, what_signals_did_before_they_do_again)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], i == 1 ? SIG_IGN : on_signal);
	expect(TAKES({3, EAGAIN, SIGTERM}), -EINTR, 3);
	cr_expect_eq(heard, 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		heard = 0;
		raise(numbers[i]);
		cr_expect_eq(heard, i == 1 ? 0 : numbers[i]);
	}
}
