// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/child.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/call.h>
#include <base/kernel.h>
#include <base/stamp.h>
#include <fragctl/ctl.h>
#include <run/console.h>
#include <run/crash.h>

#define LOOK_MS 100

/* What the child is found to have exceeded. */
enum overrun { OVERRUN_NONE, OVERRUN_LOAD, OVERRUN_ALL };

static void child(pid_t parent, struct fragi_call *call, int (*fn)(void *arg), void *arg,
		  int result_fd)
{
	int result;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(CTL_FAILED);
	fragi_crash_init("fragctl", -1);
	fragi_crash_guard_exit();
	fragi_console_begin();
	fragi_call_record(call);
	result = fn(arg);
	result = ctl_end_stdout(result);
	fragi_console_end();
	(void)!write(result_fd, &result, sizeof(result));
	_exit(result);
}

static bool is_load(const struct fragi_call_seen *call)
{
	return call->kind == FRAGI_CALL_LOAD;
}

/* Waits for the result, or for the child to end without one, or to take too long. */
static bool await_result(int fd, struct fragi_call *call, int *out_result,
			 enum overrun *out_overrun)
{
	int64_t now_ns = fragi_now_ns(), end_ns = now_ns + CTL_CHILD_S * INT64_C(1000000000);
	struct pollfd result = {.fd = fd, .events = POLLIN};
	struct fragi_call_seen seen;

	while (poll(&result, 1, LOOK_MS) <= 0) {
		now_ns = fragi_now_ns();
		if (fragi_call_look(call, &seen) && is_load(&seen) &&
		    now_ns - seen.since_ns > CTL_LOAD_S * INT64_C(1000000000)) {
			*out_overrun = OVERRUN_LOAD;
			return false;
		}
		if (now_ns > end_ns) {
			*out_overrun = OVERRUN_ALL;
			return false;
		}
	}
	return read(fd, out_result, sizeof(*out_result)) == (ssize_t)sizeof(*out_result);
}

/* "app.yaml: loading /x/liby.so", or "app.yaml: app.a: setup" */
static void name_place(const char *what, struct fragi_call *call, char *out, size_t size)
{
	struct fragi_call_seen seen;

	if (!fragi_call_look(call, &seen))
		snprintf(out, size, "%s: what it loads", what);
	else if (is_load(&seen))
		snprintf(out, size, "%s: library %s", what, seen.subject);
	else
		snprintf(out, size, "%s: %s: %s", what, seen.subject, fragi_call_name(seen.kind));
}

static void report(const char *what, struct fragi_call *call, enum overrun overrun, int status,
		   struct frag_err *err)
{
	char place[FRAGI_CALL_SUBJECT_MAX + 200];

	name_place(what, call, place, sizeof(place));
	if (overrun == OVERRUN_LOAD)
		frag_err_set(err, -ETIMEDOUT,
			     "%s takes longer than %d s to load; look at its constructors", place,
			     CTL_LOAD_S);
	else if (overrun == OVERRUN_ALL)
		frag_err_set(err, -ETIMEDOUT, "%s does not return; all together may take %d s",
			     place, CTL_CHILD_S);
	else if (WIFSIGNALED(status))
		frag_err_set(err, -ECANCELED, "%s crashed (SIG%s)", place,
			     sigabbrev_np(WTERMSIG(status)));
	else
		frag_err_set(err, -ECANCELED, "%s ended the process (status %d)", place,
			     WEXITSTATUS(status));
}

/* Whether the child has ended because nobody reads stdout any more, and not in somebody's code. */
static bool is_reader_gone(struct fragi_call *call, int status)
{
	struct fragi_call_seen seen;

	return WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE && !fragi_call_look(call, &seen);
}

int ctl_child_run(const char *what, int (*fn)(void *arg), void *arg, int *out_result,
		  struct frag_err *err)
{
	struct fragi_call *call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum overrun overrun = OVERRUN_NONE;
	pid_t parent = getpid(), pid;
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	int fds[2], status = 0, r = 0;

	if (call == MAP_FAILED || pipe2(fds, O_CLOEXEC) < 0)
		return fragi_err_fail(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, -errno,
				      "cannot start a process: %s", frag_strerror(-errno));
	fragi_call_init(call);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		child(parent, call, fn, arg, fds[1]);
	if (pid < 0) {
		r = -errno;
		fragi_err_fail(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, r,
			       "cannot start a process: %s%s", frag_strerror(r),
			       fragi_kernel_remedy(r, remedy));
	}
	close(fds[1]);
	if (pid > 0 && !await_result(fds[0], call, out_result, &overrun))
		r = -ECANCELED;
	if (overrun != OVERRUN_NONE)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && r < 0 && is_reader_gone(call, status))
		raise(SIGPIPE); /* as it would end without a child */
	if (pid > 0 && r < 0)
		report(what, call, overrun, status, err);
	close(fds[0]);
	munmap(call, sizeof(*call));
	return r;
}
