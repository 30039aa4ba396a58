// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/stamp.h>
#include <workerd/host/lease.c> /* it is a part of fraghost alone */

/* The kernel ends a process with its lease, whoever sleeps. */
#define MS 1000000ll

/* Returns for how long a child lived that was to end after 100 ms, and was stopped meanwhile. */
static int64_t lives_ns(int64_t more_ns, bool stops)
{
	int64_t begun_ns = fragi_boot_ns();
	int status = 0;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		if (host_lease_hold_until(begun_ns + 100 * MS) < 0 ||
		    (more_ns > 0 && host_lease_hold_until(begun_ns + 100 * MS + more_ns) < 0))
			_exit(1);
		if (stops)
			raise(SIGSTOP);
		for (;;)
			pause();
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFSIGNALED(status), "it exited with %d", status);
	cr_expect_eq(WTERMSIG(status), SIGKILL);
	return fragi_boot_ns() - begun_ns;
}

Test(host_lease, ends_a_process_in_time)
{
	cr_expect_geq(lives_ns(0, false), 100 * MS);
}

Test(host_lease, ends_one_that_is_stopped)
{
	cr_expect_geq(lives_ns(0, true), 100 * MS);
}

Test(host_lease, can_be_moved)
{
	cr_expect_geq(lives_ns(200 * MS, false), 300 * MS);
}
