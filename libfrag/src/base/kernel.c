// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/kernel.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <base/allowance.h>
#include <base/standard_fds.h>

static int opened(int fd)
{
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int make_epoll(void)
{
	return opened(epoll_create1(EPOLL_CLOEXEC));
}

static int make_eventfd(void)
{
	return opened(eventfd(0, EFD_CLOEXEC));
}

static int make_pipe(void)
{
	int fds[2];

	return pipe2(fds, O_CLOEXEC) < 0 ? -errno : opened(fds[0]) + opened(fds[1]);
}

static int make_socketpair(void)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0
		       ? -errno
		       : opened(fds[0]) + opened(fds[1]);
}

static int make_signalfd(void)
{
	sigset_t none;

	sigemptyset(&none);
	return opened(signalfd(-1, &none, SFD_CLOEXEC));
}

static int make_timerfd(void)
{
	return opened(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
}

static int make_memfd(void)
{
	return opened(memfd_create("frag-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
}

static int make_pidfd(void)
{
	return opened((int)syscall(SYS_pidfd_open, getpid(), 0u));
}

static int open_null(void)
{
	return opened(open("/dev/null", O_RDWR | O_CLOEXEC));
}

static const struct fragi_kernel_call calls[] = {
	{"epoll_create1", false, make_epoll, NULL},
	{"eventfd2", false, make_eventfd, NULL},
	{"pipe2", false, make_pipe, NULL},
	{"socketpair", false, make_socketpair, NULL},
	{"signalfd4", true, make_signalfd, NULL},
	{"timerfd_create", true, make_timerfd, NULL},
	{"memfd_create", true, make_memfd, NULL},
	{"pidfd_open", true, make_pidfd, NULL},
	{"to open /dev/null", true, open_null, "give the container a /dev"},
};

const struct fragi_kernel_call *fragi_kernel_call_at(size_t i)
{
	return i < FRAG_COUNT_OF(calls) ? &calls[i] : NULL;
}

int fragi_kernel_check(bool runs_hosts, struct frag_err *err)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	int r = fragi_standard_fds_check(err);

	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(calls); i++) {
		if (calls[i].of_hosts && !runs_hosts)
			continue;
		r = calls[i].make();
		if (r < 0)
			fragi_err_fail(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
				       "the system refuses %s, without which nothing runs: %s%s%s",
				       calls[i].name, frag_strerror(r),
				       calls[i].remedy != NULL ? "; " : "",
				       calls[i].remedy != NULL ? calls[i].remedy
							       : fragi_kernel_remedy(r, remedy));
	}
	return r;
}

static long long read_sysctl(const char *path)
{
	FILE *file = fopen(path, "re");
	long long value = -1;

	if (file != NULL && fscanf(file, "%lld", &value) != 1)
		value = -1;
	if (file != NULL)
		fclose(file);
	return value;
}

/*
 * clone() does not say which limit it is. A control group says how many it has; a user's own limit
 * does not hold for root.
 */
static void name_limit(char out[FRAGI_KERNEL_REMEDY_MAX])
{
	struct fragi_allowance may;
	struct rlimit user = {RLIM_INFINITY, RLIM_INFINITY};

	fragi_allowance_read("/proc", "/sys/fs/cgroup", &may);
	(void)getrlimit(RLIMIT_NPROC, &user);
	if (may.processes_left <= 0)
		snprintf(
			out, FRAGI_KERNEL_REMEDY_MAX,
			"; its control group may have %lld processes and threads (pids.max): raise that (TasksMax= of its unit, --pids-limit of its container)",
			(long long)may.processes);
	else if (getuid() != 0 && user.rlim_cur != RLIM_INFINITY)
		snprintf(
			out, FRAGI_KERNEL_REMEDY_MAX,
			"; its user may have %lld processes and threads: raise that (ulimit -u, LimitNPROC= of its unit)",
			(long long)user.rlim_cur);
	else
		snprintf(
			out, FRAGI_KERNEL_REMEDY_MAX,
			"; a limit of processes and threads is reached: kernel.threads-max (%lld), kernel.pid_max (%lld) or pids.max of a control group above its own; raise it",
			read_sysctl("/proc/sys/kernel/threads-max"),
			read_sysctl("/proc/sys/kernel/pid_max"));
}

const char *fragi_kernel_remedy(int code, char out[FRAGI_KERNEL_REMEDY_MAX])
{
	out[0] = '\0';
	if (code == -EAGAIN)
		name_limit(out);
	else if (code == -ENOSYS || code == -EPERM)
		snprintf(
			out, FRAGI_KERNEL_REMEDY_MAX,
			"; let its container allow this system call (seccomp profile), or use Linux 5.3 or newer");
	return out;
}
