/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fragctl/thread.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/alloc.h>
#include <run/console.h>
#include <run/crash.h>
#include <workerd/host/host.h>

static struct {
	/* constant while it runs */
	pthread_t thread;
	int control_fd, ledger_fd, stop_fd, exit_fd;
	/* of the thread, before ended */
	int status;
	bool hangs;
	_Atomic bool ended;
	/* the loop's */
	bool started, killed;
} host = {.control_fd = -1, .ledger_fd = -1, .stop_fd = -1};

static void notify(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

static void *thread_main(void *arg)
{
	int exit_fd = host.exit_fd;

	(void)arg;
	host.status = host_run(host.control_fd, host.ledger_fd, host.stop_fd,
			       FRAGI_LIBRARY_PATHS_ANY, &host.hangs);
	close(host.control_fd);
	atomic_store(&host.ended, true);
	notify(exit_fd);
	return NULL;
}

/* variable: NAME=VALUE. Returns 0 or -ENOMEM. */
static int set_variable(const char *variable)
{
	char *name = fragi_strdup(variable), *value = name != NULL ? strchr(name, '=') : NULL;
	int r = 0;

	if (name == NULL)
		return -ENOMEM;
	if (value != NULL) {
		*value = '\0';
		r = setenv(name, value + 1, 1) < 0 ? -ENOMEM : 0;
	}
	fragi_free(name);
	return r;
}

static int thread_start(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_exit_fd,
			struct frag_err *err)
{
	int r;

	host.control_fd = fcntl(spawn->control_fd, F_DUPFD_CLOEXEC, 3);
	host.ledger_fd = fcntl(spawn->ledger_fd, F_DUPFD_CLOEXEC, 3);
	host.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	host.exit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (host.control_fd < 0 || host.ledger_fd < 0 || host.stop_fd < 0 || host.exit_fd < 0)
		return frag_err_set(err, -errno, "cannot start a host: %s", frag_strerror(-errno));
	for (char *const *variable = spawn->environment; *variable != NULL; variable++)
		if (set_variable(*variable) < 0)
			return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	fragi_crash_init("fragctl", -1);
	fragi_crash_guard_exit();
	r = fragi_console_begin();
	if (r == 0)
		r = -pthread_create(&host.thread, NULL, thread_main, NULL);
	if (r < 0)
		return frag_err_set(err, r, "cannot start a host: %s", frag_strerror(r));
	host.started = true;
	*out_pid = getpid();
	*out_exit_fd = fcntl(host.exit_fd, F_DUPFD_CLOEXEC, 3); /* which the caller closes */
	return *out_exit_fd < 0 ? -errno : 0;
}

static void thread_signal(pid_t pid, int number)
{
	(void)pid;
	if (number == SIGSTOP || number == SIGCONT) /* which this process gets itself */
		return;
	if (number != SIGKILL) {
		notify(host.stop_fd);
		return;
	}
	host.killed = true;
	notify(host.exit_fd);
}

static int thread_reap(pid_t pid, int *out_status, int *out_signal, char *core_file, size_t size)
{
	(void)pid;
	(void)size;
	if (!atomic_load(&host.ended) && !host.killed)
		return -EAGAIN;
	core_file[0] = '\0';
	*out_status = host.killed ? 0 : host.status;
	*out_signal = host.killed ? SIGKILL : 0;
	return 0;
}

const struct wrk_spawn_ops ctl_thread = {
	.start = thread_start,
	.signal = thread_signal,
	.reap = thread_reap,
};

bool ctl_thread_join(void)
{
	if (!host.started)
		return true;
	if (!atomic_load(&host.ended))
		return false;
	pthread_join(host.thread, NULL);
	fragi_console_end();
	close(host.stop_fd);
	fragi_crash_orderly();
	return !host.hangs;
}
