// SPDX-License-Identifier: Apache-2.0
/* Which children of a worker are ended with a host, and which are its own. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <workerd/strays.h>

static bool none_is_host(pid_t pid)
{
	(void)pid;
	return false;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	cr_assert_gt(pid, 0);
	return pid;
}

static bool lives(pid_t pid)
{
	return kill(pid, 0) == 0 && waitpid(pid, NULL, WNOHANG) == 0;
}

/* Whether it ends: it is killed, and may have to wait for a processor. */
static bool ends(pid_t pid)
{
	for (int i = 0; i < 20000 && lives(pid); i++)
		usleep(1000);
	return !lives(pid);
}

/* Ends the strays of the only host until none is left that is to be ended. */
static void end_strays(void)
{
	const struct wrk_strays_of of = {.is_only = true};

	while (wrk_strays_end(&of, none_is_host) > 0)
		usleep(1000);
}

Test(strays, children_of_the_worker_itself_outlive_a_host)
{
	pid_t stray, own, other;

	stray = child();
	own = child();
	other = child();
	wrk_strays_adopt();
	wrk_strays_except(own);
	wrk_strays_except(other);
	end_strays();
	cr_expect_not(lives(stray));
	cr_expect(lives(own));
	cr_expect(lives(other));
	/* One that has ended makes room, and its pid says nothing any more. */
	wrk_strays_reaped(other);
	end_strays();
	cr_expect_not(lives(other));
	cr_expect(lives(own));
	wrk_strays_end_all();
	cr_expect(ends(own));
}
