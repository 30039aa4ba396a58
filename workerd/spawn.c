// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/spawn.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/kernel.h>
#include <workerd/confine.h>

#define DESCRIPTORS_MAX 65536
#define FD_ERROR 7 /* until exec: where a failure is reported */
#define FD_FIRST_OTHER 8

/*
 * A child that is not executed anew would otherwise keep the parent's end of its own socket open.
 * close_range(2) may be lacking in the kernel, or refused by a sandbox.
 */
void wrk_spawn_close_from(int first)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, (unsigned int)first, ~0u, 0u) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > DESCRIPTORS_MAX)
		limit.rlim_cur = DESCRIPTORS_MAX;
	for (int fd = first; fd < (int)limit.rlim_cur; fd++)
		close(fd);
}

/* What the child could not do, through the pipe; both processes have the same static texts. */
struct refusal {
	int error;
	const char *what; /* NULL: start at all */
};

/* Ends with the parent, also when the parent has ended already. A change of user clears that. */
static int end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != parent)
		_exit(127);
	return 0;
}

/*
 * Only async-signal-safe calls from here to exec or main. Returns negative errno when something
 * failed, and what.
 */
static int child_setup(const struct wrk_spawn *spawn, int error_fd, const char **out_what)
{
	const int from[FD_ERROR] = {-1,
				    spawn->output_fd,
				    spawn->output_fd,
				    [WRK_HOST_FD_CONTROL] = spawn->control_fd,
				    [WRK_HOST_FD_LEDGER] = spawn->ledger_fd,
				    [WRK_HOST_FD_NOTE] = spawn->note_fd,
				    [WRK_HOST_FD_SAVED] = spawn->saved_fd};
	int moved[FD_ERROR], failed_fd, null;
	sigset_t none;

	/*
	 * A session of its own: what a terminal or timeout(1) sends to the whole process group is
	 * for the worker, which ends, stops and continues its hosts in order.
	 */
	(void)setsid();
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, i == SIGINT || i == SIGPIPE ? SIG_IGN : SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* First out of the way of one another, then to where they belong. */
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0) {
		*out_what = "open /dev/null (its container has to have one)";
		return -errno;
	}
	*out_what = "duplicate its descriptors";
	for (int i = 1; i < FD_ERROR; i++) {
		moved[i] = fcntl(from[i] != 0 ? from[i] : null, F_DUPFD_CLOEXEC, 10);
		if (moved[i] < 0)
			return -errno;
	}
	failed_fd = fcntl(error_fd, F_DUPFD_CLOEXEC, 10);
	if (failed_fd < 0 || (!spawn->keeps_stdin && dup2(null, 0) < 0))
		return -errno;
	for (int i = 1; i < FD_ERROR; i++)
		if (dup2(moved[i], i) < 0)
			return -errno;
	dup2(failed_fd, FD_ERROR);
	(void)fcntl(FD_ERROR, F_SETFD, FD_CLOEXEC);
	*out_what = NULL;
	return 0;
}

static void child_main(const struct wrk_spawn *spawn, pid_t parent, int error_fd)
{
	char *name[] = {(char *)(uintptr_t)spawn->program, NULL};
	char *const *argv = spawn->arguments != NULL ? spawn->arguments : name;
	struct refusal refusal = {0};

	refusal.error = child_setup(spawn, error_fd, &refusal.what);
	if (refusal.error == 0) {
		error_fd = FD_ERROR;
		if (spawn->confine != NULL)
			refusal.error = wrk_confine(spawn->confine, &refusal.what);
	}
	if (refusal.error == 0) {
		refusal = (struct refusal){.error = end_with(parent)};
		wrk_spawn_close_from(FD_FIRST_OTHER);
	}
	if (refusal.error == 0 && spawn->program == NULL) {
		close(FD_ERROR);
		environ = (char **)(uintptr_t)spawn->environment;
		exit(spawn->main());
	}
	if (refusal.error == 0) {
		execve(spawn->program, argv, spawn->environment);
		refusal.error = -errno;
		if (refusal.error == -ENOENT && access(spawn->program, F_OK) == 0)
			refusal.what =
				"find the dynamic linker that it names (it is for another C library or machine)";
	}
	(void)!write(error_fd, &refusal, sizeof(refusal));
	_exit(127);
}

int wrk_spawn_refuse(struct frag_err *err, int code, const char *name, const char *call)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];

	return frag_err_set(err, code, "cannot start %s: %s: %s%s", name, call, frag_strerror(code),
			    fragi_kernel_remedy(code, remedy));
}

int wrk_spawn(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_pidfd, struct frag_err *err)
{
	const char *name = spawn->program != NULL ? spawn->program : "a host";
	struct refusal refusal = {0};
	int error_pipe[2], r, pidfd;
	pid_t parent = getpid(), pid;
	ssize_t n;

	if (pipe2(error_pipe, O_CLOEXEC) < 0)
		return wrk_spawn_refuse(err, -errno, name, "pipe2");
	pid = fork();
	if (pid == 0)
		child_main(spawn, parent, error_pipe[1]);
	r = pid < 0 ? wrk_spawn_refuse(err, -errno, name, "fork") : 0;
	close(error_pipe[1]);
	do
		n = r < 0 ? 0 : read(error_pipe[0], &refusal, sizeof(refusal));
	while (n < 0 && errno == EINTR);
	close(error_pipe[0]);
	r = r < 0 ? r : refusal.error;
	pidfd = r < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0u);
	if (r == 0 && pidfd < 0) {
		r = wrk_spawn_refuse(err, -errno, name, "pidfd_open");
		kill(pid, SIGKILL);
	}
	if (r < 0) {
		if (pid > 0)
			waitpid(pid, NULL, 0);
		if (refusal.what != NULL)
			return frag_err_set(err, r, "cannot start %s: it could not %s: %s", name,
					    refusal.what, frag_strerror(r));
		return frag_err_set(err, r, "cannot start %s: %s", name, frag_strerror(r));
	}
	*out_pid = pid;
	*out_pidfd = pidfd;
	return 0;
}

/*
 * Where the kernel put the core, as far as its pattern is a path with nothing but %p and %P in it.
 */
static void describe_core(pid_t pid, char *out, size_t size)
{
	char pattern[256] = "";
	FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
	size_t used;

	if (file != NULL) {
		if (fgets(pattern, sizeof(pattern), file) != NULL)
			pattern[strcspn(pattern, "\n")] = '\0';
		fclose(file);
	}
	if (pattern[0] == '|') {
		snprintf(out, size, "core dump given to %.120s", pattern + 1);
		return;
	}
	used = (size_t)snprintf(out, size, "core file ");
	for (const char *c = pattern; *c != '\0' && used + 16 < size; c++) {
		if (c[0] == '%' && (c[1] == 'p' || c[1] == 'P')) {
			used += (size_t)snprintf(out + used, size - used, "%d", (int)pid);
			c++;
		} else {
			out[used++] = *c;
		}
	}
	out[used] = '\0';
}

int wrk_spawn_reap(pid_t pid, int *out_status, int *out_signal, char *core_file, size_t size)
{
	int status = 0;
	pid_t r = waitpid(pid, &status, WNOHANG);

	if (r == 0 || (r < 0 && errno == EINTR))
		return -EAGAIN;
	core_file[0] = '\0';
	*out_status = r > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	*out_signal = r > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (r > 0 && WIFSIGNALED(status) && WCOREDUMP(status))
		describe_core(pid, core_file, size);
	return 0;
}

static void process_signal(pid_t pid, int number)
{
	kill(pid, number);
}

const struct wrk_spawn_ops wrk_spawn_process = {
	.start = wrk_spawn,
	.signal = process_signal,
	.reap = wrk_spawn_reap,
};

/*
 * build/bin/workerd finds build/libexec/frag/fraghost, /usr/bin/workerd finds
 * /usr/libexec/frag/fraghost.
 */
int wrk_spawn_find_host(char *out, size_t size)
{
	char self[PATH_MAX - 32] = "", *slash;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		slash = strrchr(self, '/');
		if (slash == NULL)
			return -ENOENT;
		*slash = '\0';
	}
	snprintf(out, size, "%s/libexec/frag/fraghost", self);
	return access(out, X_OK) < 0 ? -errno : 0;
}
