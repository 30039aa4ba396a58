// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

static int own_thread_create(pthread_t *out_thread, const pthread_attr_t *attr,
			     void *(*run)(void *arg), void *arg);
#define pthread_create own_thread_create
#include <runner/thread.c> /* over a host that this file plays */
#undef pthread_create

/*
 * A host in a thread: what it is given, how it is told to end, and what is left of it, also where
 * it never began.
 */
static FILE *out;
static int fails_at, calls; /* that call of those that may fail does; 0: none */
static bool hangs;
static sem_t has_begun, may_end;

static int may_fail(const char *what, int code)
{
	bool fails = ++calls == fails_at;

	fprintf(out, "  %s%s\n", what, fails ? ": fails" : "");
	return fails ? code : 0;
}

static int own_thread_create(pthread_t *out_thread, const pthread_attr_t *attr,
			     void *(*run)(void *arg), void *arg)
{
	int r = may_fail("thread", EAGAIN);

	return r != 0 ? r : pthread_create(out_thread, attr, run, arg);
}

void fragi_crash_init(const char *program, int note_fd)
{
	fprintf(out, "  signals of faults, for %s, note %d\n", program, note_fd);
}

void fragi_crash_guard_exit(void)
{
	fprintf(out, "  exit is guarded\n");
}

void fragi_crash_orderly(void)
{
	fprintf(out, "  exit is in order\n");
}

int fragi_console_begin(void)
{
	return may_fail("console", -EMFILE);
}

void fragi_console_end(void)
{
	fprintf(out, "  console ends\n");
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

int host_run(const struct host_options *options, bool *out_hangs)
{
	fprintf(out,
		"  a host, open: %d %d %d, saved %d, paths %d, trusted %d, guest %d, libraries %s\n",
		is_open(options->control_fd), is_open(options->ledger_fd),
		is_open(options->stop_fd), options->saved_fd, options->paths, options->trusted_only,
		options->is_guest, options->library_path != NULL ? options->library_path : "none");
	sem_post(&has_begun);
	sem_wait(&may_end);
	fprintf(out, "  it ends, told to %d\n", is_readable(options->stop_fd));
	close(options->ledger_fd);
	*out_hangs = hangs;
	return 5;
}

static int descriptor_count(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

static int exit_fd;

static int start_one(const struct wrk_spawn_ops *ops, char *const *environment, int control_fd)
{
	const struct wrk_spawn spawn = {
		.environment = environment, .control_fd = control_fd, .ledger_fd = 1};
	struct frag_err err = FRAG_ERR_INIT;
	pid_t pid = -1;
	int r;

	calls = 0;
	exit_fd = -1;
	r = ops->start(&spawn, &pid, &exit_fd, &err);
	if (r < 0)
		fprintf(out, "  %s: %.*s\n", strerrorname_np(-r), (int)strcspn(err.text, ";"),
			err.text); /* the remedy is this machine's */
	else
		sem_wait(&has_begun);
	cr_expect_eq(pid, r < 0 ? -1 : getpid());
	cr_expect_eq(is_open(exit_fd), r == 0);
	return r;
}

static void reap(const struct wrk_spawn_ops *ops)
{
	char core_file[8] = "before";
	int status = -1, signal = -1;
	int r = ops->reap(getpid(), &status, &signal, core_file, sizeof(core_file));

	fprintf(out, "  reaped: %s, status %d, signal %d, core '%s'\n",
		r < 0 ? strerrorname_np(-r) : "0", status, signal, core_file);
}

/* Lets it end, and waits until that shows. */
static void let_end(void)
{
	struct pollfd p = {.fd = exit_fd, .events = POLLIN};

	sem_post(&may_end);
	cr_expect_eq(poll(&p, 1, 20000), 1);
}

static void join_one(void)
{
	bool is_gone = runner_thread_join();

	fprintf(out, "  gone %d, stuck %d\n", is_gone, runner_thread_is_stuck());
	close(exit_fd);
}

static void begin(char **text, size_t *size)
{
	out = open_memstream(text, size);
	sem_init(&has_begun, 0, 0);
	sem_init(&may_end, 0, 0);
	unsetenv("A");
	unsetenv("B");
	setenv("FRAG_LIBRARY_PATH", "/before", 1);
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

static char variable_a[] = "A=1", variable_b[] = "B=", no_variable[] = "C",
	    variable_path[] = "FRAG_LIBRARY_PATH=/lib",
	    variable_later[] = "FRAG_LIBRARY_PATH=/later",
	    variable_like_it[] = "FRAG_LIBRARY_PATHS=any";
static char *variables[] = {variable_a,     variable_b,       no_variable, variable_path,
			    variable_later, variable_like_it, NULL};
static char *nothing[] = {NULL};

Test(runner_thread, a_host_of_ours)
{
	const struct wrk_spawn_ops *ops = &runner_thread;
	size_t size;
	char *text;
	int before, first;

	begin(&text, &size);
	before = descriptor_count();
	cr_expect(runner_thread_join(), "none was there");
	cr_assert_eq(start_one(ops, variables, 0), 0);
	cr_expect_str_eq(getenv("A"), "1");
	cr_expect_str_eq(getenv("B"), "");
	cr_expect_null(getenv("C"));
	cr_expect_str_eq(getenv("FRAG_LIBRARY_PATH"), "/later");
	reap(ops);
	cr_expect(host.control_fd > 2 && host.ledger_fd > 2 && exit_fd > 2);
	fprintf(out, "another one\n");
	first = exit_fd;
	cr_expect_eq(start_one(ops, nothing, 0), -EBUSY);
	exit_fd = first;
	ops->signal(getpid(), SIGSTOP);
	ops->signal(getpid(), SIGCONT);
	cr_expect_not(is_readable(host.stop_fd));
	ops->signal(getpid(), SIGTERM);
	cr_expect(is_readable(host.stop_fd));
	cr_expect_not(is_readable(exit_fd));
	reap(ops);
	let_end();
	reap(ops);
	join_one();
	cr_expect(runner_thread_join(), "once more");
	cr_expect_eq(descriptor_count(), before);
	compare("runner/host_ours", &text);
}

Test(runner_thread, a_guest)
{
	const struct wrk_spawn_ops *ops = &runner_guest_thread;
	size_t size;
	char *text;
	int before;

	begin(&text, &size);
	before = descriptor_count();
	cr_assert_eq(start_one(ops, variables, 0), 0);
	cr_expect_null(getenv("A"));
	cr_expect_str_eq(getenv("FRAG_LIBRARY_PATH"), "/before");
	let_end();
	reap(ops);
	join_one();
	fprintf(out, "the next one has no libraries\n");
	cr_assert_eq(start_one(ops, nothing, 0), 0);
	fprintf(out, "killed\n");
	ops->signal(getpid(), SIGKILL);
	cr_expect(is_readable(exit_fd));
	cr_expect_not(is_readable(host.stop_fd));
	reap(ops);
	fprintf(out, "but it runs on\n");
	cr_expect_not(runner_thread_is_stuck());
	cr_expect_not(runner_thread_join());
	cr_expect(runner_thread_is_stuck());
	sem_post(&may_end);
	while (!atomic_load(&host.ended))
		usleep(1000);
	join_one();
	fprintf(out, "one that hangs\n");
	hangs = true;
	cr_assert_eq(start_one(ops, nothing, 0), 0);
	let_end();
	reap(ops);
	join_one();
	fprintf(out, "and one after it that does not\n");
	hangs = false;
	cr_assert_eq(start_one(ops, nothing, 0), 0);
	let_end();
	reap(ops);
	join_one();
	cr_expect_eq(descriptor_count(), before);
	compare("runner/host_guest", &text);
}

Test(runner_thread, what_never_began)
{
	size_t size;
	char *text;
	int before;

	begin(&text, &size);
	before = descriptor_count();
	fprintf(out, "no descriptor\n");
	cr_expect_eq(start_one(&runner_thread, variables, -1), -EBADF);
	fprintf(out, "no console\n");
	fails_at = 1;
	cr_expect_eq(start_one(&runner_thread, variables, 0), -EMFILE);
	fprintf(out, "no thread\n");
	fails_at = 2;
	cr_expect_eq(start_one(&runner_thread, variables, 0), -EAGAIN);
	fprintf(out, "no thread of a guest\n");
	fails_at = 1;
	cr_expect_eq(start_one(&runner_guest_thread, variables, 0), -EAGAIN);
	cr_expect_null(host.library_path);
	fails_at = 0;
	for (int i = 0; i < 4; i++) {
		fprintf(out, "no memory, %d\n", i);
		fragi_alloc_fail_after(i / 2, 1);
		cr_expect_eq(
			start_one(i % 2 == 0 ? &runner_thread : &runner_guest_thread, variables, 0),
			-ENOMEM);
		cr_expect_eq(fragi_alloc_fail_off(), 1);
	}
	cr_expect_eq(descriptor_count(), before);
	cr_expect(host.control_fd == -1 && host.stop_fd == -1 && !host.started);
	fprintf(out, "then one begins\n");
	cr_assert_eq(start_one(&runner_guest_thread, nothing, 0), 0);
	let_end();
	join_one();
	cr_expect_eq(descriptor_count(), before);
	compare("runner/host_never", &text);
}
