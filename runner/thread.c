// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <runner/thread.h>

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
#include <base/kernel.h>
#include <base/stamp.h>
#include <run/console.h>
#include <run/crash.h>
#include <workerd/host/host.h>

#define LIBRARY_PATH "FRAG_LIBRARY_PATH="

static struct {
	/* constant while it runs */
	pthread_t thread;
	int control_fd, ledger_fd, stop_fd, exit_fd;
	char *library_path; /* of a guest; NULL: none */
	bool is_guest;
	/* of the thread, before ended */
	int status;
	bool hangs;
	_Atomic bool ended;
	/* the loop's */
	bool started, killed;
	_Atomic bool stuck;
} host = {.control_fd = -1, .ledger_fd = -1, .stop_fd = -1, .exit_fd = -1};

static void notify(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

static void *thread_main(void *arg)
{
	const struct host_options options = {
		.control_fd = host.control_fd,
		.ledger_fd = host.ledger_fd,
		.stop_fd = host.stop_fd,
		.paths = FRAGI_LIBRARY_PATHS_ANY,
		.library_path = host.library_path,
		.is_guest = host.is_guest,
	};
	int exit_fd = host.exit_fd;

	(void)arg;
	host.status = host_run(&options, &host.hangs);
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

static int take_environment(char *const *environment)
{
	int r = 0;

	for (char *const *variable = environment; r == 0 && *variable != NULL; variable++) {
		if (!host.is_guest) {
			r = set_variable(*variable);
		} else if (strncmp(*variable, LIBRARY_PATH, strlen(LIBRARY_PATH)) == 0) {
			fragi_free(host.library_path);
			host.library_path = fragi_strdup(*variable + strlen(LIBRARY_PATH));
			r = host.library_path == NULL ? -ENOMEM : 0;
		}
	}
	return r;
}

static int open_descriptors(const struct wrk_spawn *spawn)
{
	host.control_fd = fcntl(spawn->control_fd, F_DUPFD_CLOEXEC, 3);
	host.ledger_fd = fcntl(spawn->ledger_fd, F_DUPFD_CLOEXEC, 3);
	host.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	host.exit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return host.control_fd < 0 || host.ledger_fd < 0 || host.stop_fd < 0 || host.exit_fd < 0
		       ? -errno
		       : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The thread was never there. */
static void undo_start(void)
{
	close_fd(&host.control_fd);
	close_fd(&host.ledger_fd);
	close_fd(&host.stop_fd);
	close_fd(&host.exit_fd);
	fragi_free(host.library_path);
	host.library_path = NULL;
}

static int start(const struct wrk_spawn *spawn, bool is_guest, pid_t *out_pid, int *out_exit_fd,
		 struct frag_err *err)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	bool has_console = false;
	int exit_fd = -1, r;

	if (host.started)
		return frag_err_set(err, -EBUSY, "cannot start a host: one is in this process");
	host.is_guest = is_guest;
	host.killed = host.hangs = false;
	atomic_store(&host.ended, false);
	r = open_descriptors(spawn);
	if (r == 0)
		r = take_environment(spawn->environment);
	if (r == 0 && !is_guest) {
		fragi_crash_init("fragctl", -1);
		fragi_crash_guard_exit();
		r = fragi_console_begin();
		has_console = r == 0;
	}
	if (r == 0) {
		exit_fd = fcntl(host.exit_fd, F_DUPFD_CLOEXEC, 3); /* which the caller closes */
		r = exit_fd < 0 ? -errno : 0;
	}
	/* Its run would do so while this thread takes stamps, of what a killed host has traced. */
	fragi_stamp_refine();
	if (r == 0)
		r = -pthread_create(&host.thread, NULL, thread_main, NULL);
	if (r < 0) {
		close_fd(&exit_fd);
		undo_start();
		if (has_console)
			fragi_console_end();
		fragi_crash_orderly();
		return frag_err_set(err, r, "cannot start a host: %s%s", frag_strerror(r),
				    fragi_kernel_remedy(r, remedy));
	}
	host.started = true;
	*out_pid = getpid();
	*out_exit_fd = exit_fd;
	return 0;
}

static int thread_start(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_exit_fd,
			struct frag_err *err)
{
	return start(spawn, false, out_pid, out_exit_fd, err);
}

static int guest_start(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_exit_fd,
		       struct frag_err *err)
{
	return start(spawn, true, out_pid, out_exit_fd, err);
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

const struct wrk_spawn_ops runner_thread = {
	.start = thread_start,
	.signal = thread_signal,
	.reap = thread_reap,
};
const struct wrk_spawn_ops runner_guest_thread = {
	.start = guest_start,
	.signal = thread_signal,
	.reap = thread_reap,
};

bool runner_thread_join(void)
{
	if (!host.started)
		return true;
	if (!atomic_load(&host.ended)) {
		atomic_store(&host.stuck, true);
		return false;
	}
	pthread_join(host.thread, NULL);
	if (!host.is_guest) {
		fragi_console_end();
		fragi_crash_orderly();
	}
	close_fd(&host.stop_fd);
	close_fd(&host.exit_fd);
	fragi_free(host.library_path);
	host.library_path = NULL;
	host.control_fd = host.ledger_fd = -1;
	host.started = false;
	atomic_store(&host.stuck, host.hangs);
	return !host.hangs;
}

bool runner_thread_is_stuck(void)
{
	return atomic_load(&host.stuck);
}
