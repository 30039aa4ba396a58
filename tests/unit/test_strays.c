// SPDX-License-Identifier: Apache-2.0
/* Which children of a worker are ended with a host, and which are its own. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* A child in a session of its own with this variable alone. */
static pid_t marked(const char *variable)
{
	char sleep_path[] = "/bin/sleep", seconds[] = "100", copy[64];
	char *const argv[] = {sleep_path, seconds, NULL};
	char *const environment[] = {copy, NULL};
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", variable);
	pid = fork();
	if (pid == 0) {
		setsid();
		execve(argv[0], argv, environment);
		_exit(1);
	}
	cr_assert_gt(pid, 0);
	return pid;
}

/* Until it runs, a child still has this process's environment. It has its own a moment later. */
static void wait_executed(pid_t pid)
{
	char path[40], name[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	do {
		name[0] = '\0';
		file = fopen(path, "r");
		cr_assert(file != NULL && fgets(name, sizeof(name), file) != NULL);
		fclose(file);
	} while (strcmp(name, "sleep\n") != 0);
}

/* Of several hosts each has its own, by the whole mark. */
Test(strays, the_mark_says_whose_a_stray_is)
{
	static const struct {
		const char *variable;
		bool is_its_own;
	} rows[] = {{"FRAG_HOST=1.7", true},
		    {"FRAG_HOST=1.77", false},
		    {"FRAG_HOST=1.", false},
		    {"FRAG_HOST=2.7", false},
		    {"OTHER=1.7", false}};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	const struct wrk_strays_of of = {.host = 1, .mark = "FRAG_HOST=1.7"};
	pid_t pids[ROWS];

	wrk_strays_adopt();
	for (size_t i = 0; i < ROWS; i++) {
		pids[i] = marked(rows[i].variable);
		wait_executed(pids[i]);
	}
	while (wrk_strays_end(&of, none_is_host) > 0)
		usleep(1000);
	for (size_t i = 0; i < ROWS; i++)
		cr_expect_eq(lives(pids[i]), !rows[i].is_its_own, "%s", rows[i].variable);
	wrk_strays_end_all();
	for (size_t i = 0; i < ROWS; i++)
		cr_expect(ends(pids[i]));
}

/* The kernel takes the old environment away before it writes the new one, and as a process ends. */
Test(strays, one_that_is_being_executed_is_ended_too)
{
	const struct wrk_strays_of of = {.host = 1, .mark = "FRAG_HOST=1.7"};
	int missed = 0; /* of 200 some 10, where nothing waits */

	wrk_strays_adopt();
	for (int i = 0; i < 200; i++) {
		pid_t pid = marked("FRAG_HOST=1.7");

		wait_executed(pid);
		while (wrk_strays_end(&of, none_is_host) > 0)
			usleep(1000);
		missed += lives(pid);
	}
	cr_expect_eq(missed, 0);
	wrk_strays_end_all();
}
