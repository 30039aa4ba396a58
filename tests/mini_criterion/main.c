// SPDX-License-Identifier: Apache-2.0
/*
 * Runs the tests of a program one after the other, each in a fork: PROGRAM [--tap=FILE] [--timeout
 * SECONDS] [--filter SUITE/TEST] [--fail-fast] [--exec], the filter with *, ? and @(A|B). SECONDS
 * are for a test that does not ask for more itself. A test fails by an expectation, by its exit
 * status (a sanitizer's report is one) or by its time. --exec executes the program again for each
 * test, for qemu-user, where a fork cannot start a thread.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../left.h"
#include "../slow.h"

static struct mini_test *tests, **last_test = &tests;
static struct mini_suite *suites;
static pthread_t first;
static jmp_buf end;
static _Atomic bool failed;
static bool skipped;

#define EXIT_SKIPPED 77

void mini_add_test(struct mini_test *test)
{
	*last_test = test;
	last_test = &test->next;
}

void mini_add_suite(struct mini_suite *suite)
{
	suite->next = suites;
	suites = suite;
}

__attribute__((format(printf, 4, 0))) static void
tell(const char *file, int line, const char *expected, const char *format, va_list args)
{
	failed = true;
	flockfile(stderr);
	fprintf(stderr, "%s:%d: expected: %s:", file, line, expected);
	vfprintf(stderr, format, args);
	putc('\n', stderr);
	funlockfile(stderr);
}

void mini_fail(const char *file, int line, const char *expected, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(file, line, expected, format, args);
	va_end(args);
}

void mini_end(const char *file, int line, const char *expected, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(file, line, expected, format, args);
	va_end(args);
	if (!pthread_equal(pthread_self(), first))
		_exit(1);
	longjmp(end, 1);
}

void mini_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	putc('\n', stderr);
	skipped = true;
	longjmp(end, 1);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) /* TSan sees it, too */
/* In libfrag and modules as well: a mutex that nobody has locked is not unlocked. */
__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static _Atomic(void *) found;
	int (*next)(pthread_mutex_t *);
	void *function = found;

	if (function == NULL) {
		function = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
		found = function;
	}
	if (mutex->__data.__lock == 0) {
		fprintf(stderr, "a mutex is unlocked that nobody has locked\n");
		abort();
	}
	*(void **)(void *)&next = function;
	return next(mutex);
}
#endif

static const struct mini_suite *suite_of(const struct mini_test *test)
{
	static const struct mini_suite none;

	for (const struct mini_suite *s = suites; s != NULL; s = s->next)
		if (strcmp(s->name, test->suite) == 0)
			return s;
	return &none;
}

/* What a test may change of its process, and has to give back. */
struct kept {
	struct left left;
	sigset_t blocked;
	mode_t umask;
	char name[16]; /* of the thread */
};

/* libuv keeps a pipe and threads for the whole of a process that uses it. */
void uv_library_shutdown(void) __attribute__((weak));

static struct kept kept_now(void)
{
	struct kept now = {.left = left_now()};

	pthread_sigmask(SIG_SETMASK, NULL, &now.blocked);
	umask(now.umask = umask(0));
	pthread_getname_np(pthread_self(), now.name, sizeof(now.name));
	return now;
}

static void expect_kept(const struct mini_test *test, const struct kept *before)
{
	struct kept now;
	struct left most = before->left;

	if (uv_library_shutdown != NULL)
		uv_library_shutdown();
	most.descriptors += left_own.descriptors;
	most.threads += left_own.threads;
	most.shared_maps += left_own.shared_maps;
	now = kept_now();
	failed = left_is_more(most);
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&now.blocked, s) != sigismember(&before->blocked, s)) {
			fprintf(stderr, "left: signal %d, blocked: %d (%d before)\n", s,
				sigismember(&now.blocked, s), sigismember(&before->blocked, s));
			failed = true;
		}
	if (now.umask != before->umask || strcmp(now.name, before->name) != 0) {
		fprintf(stderr, "left: umask %03o (%03o before), thread %s (%s)\n", now.umask,
			before->umask, now.name, before->name);
		failed = true;
	}
	if (failed)
		fprintf(stderr, "%s::%s leaves what it had not found\n", test->suite, test->name);
}

static void run(const struct mini_test *test)
{
	/* They survive longjmp. */
	static const struct mini_suite *suite;
	static struct kept before;

	suite = suite_of(test);
	before = kept_now();
	first = pthread_self();
	if (setjmp(end) == 0) {
		if (suite->init != NULL)
			suite->init();
		if (test->init != NULL)
			test->init();
		test->fn();
	}
	if (setjmp(end) == 0) {
		if (test->fini != NULL)
			test->fini();
		if (suite->fini != NULL)
			suite->fini();
	}
	if (!failed && !skipped)
		expect_kept(test, &before);
	exit(!failed && skipped ? EXIT_SKIPPED : failed);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * Waits for the child; returns its wait status, or -1 after it had to be killed, on a busy machine
 * later. SIGCHLD is blocked.
 */
static int wait_for(pid_t child, double seconds)
{
	const struct timespec limit = {.tv_sec = 1};
	const double begun_s = now_s();
	sigset_t chld;
	int status;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	/*
	 * One that is left from a test before, which children may leave behind too, only makes it
	 * look once more.
	 */
	while (waitpid(child, &status, WNOHANG) == 0) {
		if (sigtimedwait(&chld, NULL, &limit) < 0 && errno == EAGAIN &&
		    now_s() - begun_s >= seconds * times_busier()) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -1;
		}
	}
	return status;
}

enum verdict { FAILED, PASSED, SKIPPED };

/* program: what to execute for it, or NULL. */
static enum verdict judge(const struct mini_test *test, double seconds, const char *program)
{
	double own = test->timeout > 0 ? test->timeout : suite_of(test)->timeout;
	sigset_t chld, before;
	int status;
	pid_t child;

	fflush(NULL);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(2);
	}
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		if (program == NULL)
			run(test);
		execl(program, program, "--one", test->suite, test->name, NULL);
		perror(program);
		_exit(1);
	}
	if (own > seconds)
		seconds = own;
	status = wait_for(child, seconds);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (status == -1)
		fprintf(stderr, "%s::%s: still running after %g s\n", test->suite, test->name,
			seconds);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == test->signal)
		return PASSED;
	else if (WIFSIGNALED(status))
		fprintf(stderr, "%s::%s: ended by signal %d\n", test->suite, test->name,
			WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_SKIPPED)
		return SKIPPED;
	else if (WEXITSTATUS(status) != 0 || test->signal != 0)
		fprintf(stderr, "%s::%s: failed, exit status %d\n", test->suite, test->name,
			WEXITSTATUS(status));
	return status == 0 && test->signal == 0 ? PASSED : FAILED;
}

static bool chosen(const struct mini_test *test, const char *filter)
{
	char name[256];

	snprintf(name, sizeof(name), "%s/%s", test->suite, test->name);
	return fnmatch(filter, name, FNM_EXTMATCH) == 0;
}

/* Executed for this test. */
static int run_one(const char *suite, const char *name)
{
	for (const struct mini_test *t = tests; t != NULL; t = t->next)
		if (strcmp(t->suite, suite) == 0 && strcmp(t->name, name) == 0)
			run(t);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"tap", required_argument, NULL, 'p'},    {"timeout", required_argument, NULL, 't'},
		{"filter", required_argument, NULL, 'f'}, {"fail-fast", no_argument, NULL, 'F'},
		{"exec", no_argument, NULL, 'e'},         {0}};
	static const char *const verdicts[] = {"not ok", "ok", "ok"};
	unsigned int counts[3] = {0};
	const char *filter = "*", *program = NULL;
	double seconds = 120;
	bool fail_fast = false;
	FILE *tap = NULL;
	int c;

	if (argc == 4 && strcmp(argv[1], "--one") == 0)
		return run_one(argv[2], argv[3]);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'f') {
			filter = optarg;
		} else if (c == 't') {
			seconds = atof(optarg);
		} else if (c == 'F') {
			fail_fast = true;
		} else if (c == 'e') {
			program = argv[0];
		} else if (c != 'p' || (tap = fopen(optarg, "we")) == NULL) {
			fprintf(stderr,
				"usage: %s [--tap=FILE] [--timeout SECONDS] [--filter SUITE/TEST]"
				" [--fail-fast] [--exec]\n",
				argv[0]);
			return 2;
		}
	}
	for (const struct mini_test *t = tests; t != NULL; t = t->next) {
		time_t begin = time(NULL);
		enum verdict verdict;

		if (!chosen(t, filter))
			continue;
		verdict = judge(t, seconds, program);
		if (time(NULL) - begin > 1)
			printf("  took %ld s: %s::%s\n", (long)(time(NULL) - begin), t->suite,
			       t->name);
		counts[verdict]++;
		if (tap != NULL)
			fprintf(tap, "%s - %s::%s %s\n", verdicts[verdict], t->suite, t->name,
				verdict == SKIPPED ? "# SKIP" : "");
		if (verdict == FAILED && fail_fast)
			break;
	}
	if (tap != NULL)
		fclose(tap);
	printf("Synthesis: Tested: %u | Passing: %u | Failing: %u | Skipped: %u\n",
	       counts[FAILED] + counts[PASSED], counts[PASSED], counts[FAILED], counts[SKIPPED]);
	return counts[FAILED] > 0;
}
