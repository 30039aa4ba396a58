// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <base/log.h>
#include <poll.h>
#include <sys/wait.h>

static void own_keep_text(void);
static void own_catch_up(int64_t within_ns);
#define fragi_log_keep_text own_keep_text
#define fragi_log_catch_up own_catch_up
#include <workerd/host/process.c> /* over a host that this file plays */

#include "logged.h"

/* The process of a host: what it sets up before its host runs, and what it ends with. */
static FILE *out;
static bool hangs, console_fails, is_brief;

static void own_keep_text(void)
{
	fprintf(out, "  lines are text\n");
}

static void own_catch_up(int64_t within_ns)
{
	fprintf(out, "  waits %d ms for its reader\n", (int)(within_ns / 1000000));
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
	fprintf(out, "  console\n");
	return console_fails ? -ENOMEM : 0;
}

void fragi_console_end(void)
{
	fprintf(out, "  console ends\n");
}

static const char *handler_of(int number)
{
	struct sigaction action;

	cr_assert_eq(sigaction(number, NULL, &action), 0);
	return action.sa_handler == SIG_DFL          ? "default"
	       : action.sa_handler == SIG_IGN        ? "ignored"
	       : (action.sa_flags & SA_RESTART) != 0 ? "handled, restarts"
						     : "handled";
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

int host_run(const struct host_options *options, bool *out_hangs)
{
	int death = 0;

	fprintf(out, "  host: control %d, ledger %d, saved %d, paths %d, trusted %d, guest %d\n",
		options->control_fd, options->ledger_fd, options->saved_fd, options->paths,
		options->trusted_only, options->is_guest);
	if (is_brief)
		dprintf(50, "  paths %d\n", options->paths);
	for (int fd = 3; fd <= 6; fd++)
		cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC, "%d", fd);
	cr_expect_eq(fcntl(options->stop_fd, F_GETFD), FD_CLOEXEC);
	cr_expect((fcntl(options->stop_fd, F_GETFL) & O_NONBLOCK) != 0);
	prctl(PR_GET_PDEATHSIG, &death);
	fprintf(out, "  TERM %s, INT %s, PIPE %s, XFSZ %s, dies by %d\n", handler_of(SIGTERM),
		handler_of(SIGINT), handler_of(SIGPIPE), handler_of(SIGXFSZ), death);
	cr_expect_not(is_readable(options->stop_fd));
	errno = 77;
	raise(SIGTERM);
	cr_expect_eq(errno, 77);
	cr_expect(is_readable(options->stop_fd));
	*out_hangs = hangs;
	return 9;
}

/* The descriptors of a host; closed: one that is missing. */
static void open_all(int closed)
{
	int pair[2], null_fd = open("/dev/null", O_RDWR);

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert_eq(dup2(pair[0], 13), 13);
	for (int fd = 4; fd <= 6; fd++)
		cr_assert_eq(dup2(null_fd, fd), fd);
	cr_assert_eq(dup2(13, 3), 3);
	close(closed);
	if (closed < 7) { /* what is opened does not take its place */
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
	}
}

static void run_in_child(const char *what, int closed, int (*run)(void))
{
	int status;
	pid_t pid;

	fprintf(out, "%s\n", what);
	fflush(out);
	pid = fork();
	if (pid == 0) {
		open_all(closed);
		if (is_brief)
			out = fopen("/dev/null", "w");
		status = run();
		fprintf(out, "  returns %d\n", status);
		fflush(out);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	fprintf(out, "  exit status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	fflush(out);
}

static int run_one(void)
{
	return host_process_run(FRAGI_LIBRARY_PATHS_IN_APP, false);
}

static int run_main(void)
{
	int status = -1, r = host_process_main(&status);

	fprintf(out, "  status %d\n", status);
	return r;
}

static int run_without_socket(void)
{
	cr_assert_eq(dup2(4, 3), 3);
	return run_main();
}

Test(host_process, lives)
{
	static const char *const words[] = {"any", "app", "none", "anywhere"};
	char text[20000] = "";
	int fd = memfd_create("out", MFD_CLOEXEC);

	cr_assert_eq(dup2(fd, 50), 50); /* which no test closes */
	close(fd);
	out = fdopen(50, "w");
	setvbuf(out, NULL, _IOLBF, 0);
	unsetenv("FRAG_LIBRARY_PATHS");
	logged_begin();
	run_in_child("it runs and ends", 99, run_one);
	hangs = true;
	run_in_child("it hangs", 99, run_one);
	hangs = false;
	for (int closed = 3; closed <= 6; closed++)
		run_in_child("a descriptor is missing", closed, run_one);
	console_fails = true;
	run_in_child("no console", 99, run_one);
	console_fails = false;
	run_in_child("no socket", 99, run_without_socket);
	run_in_child("by its worker", 99, run_main);
	is_brief = true;
	for (size_t i = 0; i < FRAG_COUNT_OF(words); i++) {
		setenv("FRAG_LIBRARY_PATHS", words[i], 1);
		run_in_child(words[i], 99, run_main);
	}
	logged_end(out);
	fflush(out);
	cr_assert_gt(pread(50, text, sizeof(text) - 1, 0), 0);
	expected_compare("host/process", text);
	fclose(out);
}
