/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/log.h>
#include <run/console.h>
#include <run/crash.h>
#include <workerd/host/host.h>
#include <workerd/spawn.h>

static int stop_fd = -1;

static void on_sigterm(int number)
{
	uint64_t one = 1;
	int saved = errno;

	(void)number;
	(void)!write(stop_fd, &one, sizeof(one));
	errno = saved;
}

static int prepare_process(void)
{
	struct sigaction action;

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
	fragi_crash_init("fraghost");
	fragi_crash_guard_exit();
	/* What operators start must not hold the control socket open. */
	if (fcntl(WRK_HOST_FD_CONTROL, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(WRK_HOST_FD_LEDGER, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return fragi_console_begin();
}

int main(int argc, char **argv)
{
	pid_t parent = getppid();
	int type, r;
	socklen_t size = sizeof(type);

	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("fraghost %s\n", FRAG_VERSION);
		return 0;
	}
	if (argc > 1 || getsockopt(WRK_HOST_FD_CONTROL, SOL_SOCKET, SO_TYPE, &type, &size) < 0) {
		fprintf(argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
			"fraghost runs fragments; workerd starts it with a socket at descriptor %d. It is not started by hand: use workerd, or fragctl run.\n",
			WRK_HOST_FD_CONTROL);
		return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
	}
	/* Set by workerd already; again in case that something stood between. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return 3;
	fragi_log_init(0);
	r = prepare_process();
	if (r < 0) {
		fprintf(stderr, "fraghost: cannot start: %s\n", frag_strerror(r));
		return 1;
	}
	r = host_run(WRK_HOST_FD_CONTROL, WRK_HOST_FD_LEDGER, stop_fd);
	fragi_console_end();
	fragi_crash_orderly();
	return r;
}
