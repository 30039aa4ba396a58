// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/kernel.h>
#include <fragctl/ctl.h>
#include <fragctl/run_top.h>

int ctl_run_top_init(struct ctl_run_top *top)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("fragctl: --top needs a terminal; it runs without, and `fragctl top` in a "
		      "terminal shows it\n",
		      stderr);
		return CTL_OK;
	}
	top->out_fd = memfd_create("stdout", MFD_CLOEXEC);
	top->error_fd = memfd_create("stderr", MFD_CLOEXEC);
	if (top->out_fd >= 0 && top->error_fd >= 0)
		return CTL_OK;
	return ctl_fail(CTL_FAILED, "cannot keep what the daemons write: %s", strerror(errno));
}

void ctl_run_top_hide(const struct ctl_run_top *top)
{
	if (top->out_fd < 0)
		return;
	dup2(top->out_fd, STDOUT_FILENO);
	dup2(top->error_fd, STDERR_FILENO);
}

int ctl_run_top_start(struct ctl_run_top *top, const char *address, const sigset_t *blocked)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	int r;

	fflush(NULL);
	top->pid = fork();
	r = -errno;
	if (top->pid == 0) {
		sigprocmask(SIG_SETMASK, blocked, NULL);
		execl("/proc/self/exe", "fragctl", "top", "--address", address, (char *)NULL);
		_exit(CTL_FAILED);
	}
	return top->pid > 0 ? CTL_OK
			    : ctl_fail(CTL_MISSING, "cannot start a process: %s%s",
				       frag_strerror(r), fragi_kernel_remedy(r, remedy));
}

static void print_kept(int from, int to)
{
	char text[4096];
	ssize_t n;

	lseek(from, 0, SEEK_SET);
	while ((n = read(from, text, sizeof(text))) > 0)
		if (write(to, text, (size_t)n) < 0)
			break;
	close(from);
}

void ctl_run_top_end(struct ctl_run_top *top)
{
	if (top->pid > 0) {
		kill(top->pid, SIGTERM);
		while (waitpid(top->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (top->error_fd >= 0)
		print_kept(top->error_fd, STDERR_FILENO);
	if (top->out_fd >= 0)
		print_kept(top->out_fd, STDOUT_FILENO);
}
