// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/host/process.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOG_TOPIC "host"
#include <base/diag.h>
#include <base/log.h>
#include <run/console.h>
#include <run/crash.h>
#include <workerd/core/host_exit.h>
#include <workerd/host/host.h>
#include <workerd/spawn.h>

#define LAST_COUNT_NS INT64_C(100000000) /* what the count of dropped lines may take at the end */

static int stop_fd = -1;

static void on_sigterm(int number)
{
	uint64_t one = 1;
	int saved = errno;

	(void)number;
	(void)!write(stop_fd, &one, sizeof(one));
	errno = saved;
}

static int prepare(void)
{
	struct sigaction action;

	/* Held open for a rule of Landlock, which is about it (workerd/landlock.c). */
	(void)open("/proc/self/task", O_PATH | O_CLOEXEC);
	stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_fd < 0)
		return -errno;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_sigterm;
	action.sa_flags = SA_RESTART;
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	(void)signal(SIGINT, SIG_IGN); /* a terminal's Ctrl-C is workerd's to act on */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f returns EFBIG */
	fragi_crash_init("fraghost", WRK_HOST_FD_NOTE);
	fragi_crash_guard_exit();
	/* Processes that operators start must not hold the control socket open. */
	if (fcntl(WRK_HOST_FD_CONTROL, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(WRK_HOST_FD_LEDGER, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(WRK_HOST_FD_NOTE, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(WRK_HOST_FD_SAVED, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return fragi_console_begin();
}

int host_process_run(enum fragi_library_paths paths, bool trusted_only)
{
	struct host_options options = {
		.control_fd = WRK_HOST_FD_CONTROL,
		.ledger_fd = WRK_HOST_FD_LEDGER,
		.saved_fd = WRK_HOST_FD_SAVED,
		.paths = paths,
		.trusted_only = trusted_only,
	};
	bool hangs;
	int r = prepare();

	fragi_log_keep_text(); /* its worker writes its lines, in its format */
	if (r < 0) {
		fprintf(stderr, "fraghost: cannot start: %s\n", frag_strerror(r));
		return 1;
	}
	options.stop_fd = stop_fd;
	r = host_run(&options, &hangs);
	if (hangs)
		_exit(r);
	fragi_console_end();
	fragi_log_catch_up(LAST_COUNT_NS);
	fragi_crash_orderly();
	return r;
}

/* Returns what workerd decided about library paths; any other word is not believed. */
static enum fragi_library_paths library_paths(void)
{
	const char *word = getenv("FRAG_LIBRARY_PATHS");

	if (word != NULL && strcmp(word, "any") == 0)
		return FRAGI_LIBRARY_PATHS_ANY;
	return word != NULL && strcmp(word, "app") == 0 ? FRAGI_LIBRARY_PATHS_IN_APP
							: FRAGI_LIBRARY_PATHS_NONE;
}

int host_process_main(int *out_status)
{
	pid_t parent = getppid();
	int type;
	socklen_t size = sizeof(type);

	if (getsockopt(WRK_HOST_FD_CONTROL, SOL_SOCKET, SO_TYPE, &type, &size) < 0)
		return -errno;
	/* Set by workerd already; again in case that something stood between. */
	*out_status = WRK_HOST_EXIT_LOST;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return 0;
	fragi_log_init(0);
	*out_status = host_process_run(library_paths(), true);
	return 0;
}
