// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "ctl_shown.h"
#include "expected.h"

#include <base/call.h>
#include <fragctl/child.h>

/*
 * What fragctl says of a child that loads somebody's libraries and ends, or does not, compared with
 * a recorded text. The clock is played. Steps of the child:
 *   L, S, e     loads a library, calls the setup of an operator, is back from that
 *   p, n        prints a line, a part of one
 *   m, M, q, Q  the clock moves on by 10 s, 10 s and a nanosecond, 60 s, 60 s and a nanosecond
 *   w           waits until others have looked; z: for ever
 *   x, u        calls exit, _exit; k, P: is ended by SIGKILL, SIGPIPE; a digit: returns it
 */
static const struct {
	const char *steps;
	bool cannot_fork;
} rows[] = {
	{"p0"},   {"ppn3"}, {"Lpe0"}, {"LeSe2"},    {"Lmw5"}, {"LMz"}, {"LeMw5"},
	{"SMw5"}, {"Sqw5"}, {"SQz"},  {"qw5"},      {"Qz"},   {"LQz"}, {"x"},
	{"Lx"},   {"u"},    {"Su"},   {"k"},        {"Lk"},   {"Sk"},  {"SeLek"},
	{"P"},    {"LP"},   {"SP"},   {"n4", true},
};

static struct shared {
	_Atomic int64_t now_ns;
	pid_t parent;
	atomic_bool is_watched; /* the parent has begun: it has looked at the clock */
} * shared;
static bool cannot_fork;

int clock_gettime(clockid_t id, struct timespec *out)
{
	if (shared == NULL)
		return (int)syscall(SYS_clock_gettime, id, out);
	shared->is_watched |= getpid() == shared->parent;
	*out = (struct timespec){shared->now_ns / 1000000000, shared->now_ns % 1000000000};
	return 0;
}

pid_t fork(void)
{
	errno = EAGAIN;
	return cannot_fork ? -1 : _Fork();
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static int take_steps(void *arg)
{
	while (!shared->is_watched)
		sleep_ms(1);
	for (const char *step = arg;; step++) {
		switch (*step) {
		case 'L':
			fragi_call_begin("/x/liby.so", FRAGI_CALL_LOAD, 0);
			break;
		case 'S':
			fragi_call_begin("app.tx", FRAGI_CALL_SETUP, 0);
			break;
		case 'e':
			fragi_call_end();
			break;
		case 'p':
			printf("a line\n");
			break;
		case 'n':
			printf("a part");
			break;
		case 'm':
		case 'M':
			shared->now_ns += 10000000000 + (*step == 'M');
			break;
		case 'q':
		case 'Q':
			shared->now_ns += 60000000000 + (*step == 'Q');
			break;
		case 'w':
			sleep_ms(250);
			break;
		case 'z':
			for (;;)
				pause();
		case 'x':
			exit(7);
		case 'u':
			_exit(8);
		case 'k':
			raise(SIGKILL);
			break;
		case 'P':
			(void)signal(SIGPIPE, SIG_DFL);
			raise(SIGPIPE);
			break;
		default:
			return *step - '0';
		}
	}
}

/* In a process of its own, which may end as its child does. */
static void show_row(const char *steps, bool cannot, FILE *out)
{
	char said[600] = "";
	int fds[2], status;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	shared->now_ns = 1000000000;
	fprintf(out, "%s%s\n", steps, cannot ? ", no process can be started" : "");
	shown_begin();
	pid = fork();
	if (pid == 0) {
		struct frag_err err = FRAG_ERR_INIT;
		int result = -1, r;

		alarm(30);
		shared->parent = getpid();
		shared->is_watched = false;
		cannot_fork = cannot;
		r = ctl_child_run("app.yaml", take_steps, (void *)(uintptr_t)steps, &result, &err);
		dprintf(fds[1], "  %d, result %d, error %d%s%.*s\n", r, result, err.code,
			err.code != 0 ? ": " : "",
			(int)(cannot ? strcspn(err.text, ";") : strlen(err.text)), err.text);
		_exit(0);
	}
	close(fds[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_geq(read(fds[0], said, sizeof(said) - 1), 0);
	close(fds[0]);
	shown_end(out);
	fputs(said, out);
	if (status != 0)
		fprintf(out, "  ended by signal %d\n", WTERMSIG(status));
}

Test(ctl_child, is_watched)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	unsetenv("FRAG_LOG_LEVEL");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(shared, MAP_FAILED);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		show_row(rows[i].steps, rows[i].cannot_fork, out);
	fclose(out);
	expected_compare("fragctl/child", text);
	free(text);
}
