// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/kernel.h>

static const struct {
	unsigned int number;
	const char *name;
	bool of_hosts;
	const char *remedy;
} calls[] = {
	{SYS_epoll_create1, "epoll_create1", false, "let its container allow"},
	{SYS_eventfd2, "eventfd2", false, "let its container allow"},
	{SYS_pipe2, "pipe2", false, "let its container allow"},
	{SYS_socketpair, "socketpair", false, "let its container allow"},
	{SYS_signalfd4, "signalfd4", true, "let its container allow"},
	{SYS_timerfd_create, "timerfd_create", true, "let its container allow"},
	{SYS_memfd_create, "memfd_create", true, "let its container allow"},
	{SYS_pidfd_open, "pidfd_open", true, "let its container allow"},
	{SYS_openat, "to open /dev/null", true, "give the container a /dev"},
};

/* From now on the kernel refuses a system call to this process, as a container does. */
static void forbid(unsigned int call)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(rules) / sizeof(rules[0]), rules};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		_exit(99);
}

/* What a child returns that does this without the i-th call. */
static int in_child(int (*deed)(size_t i), size_t i)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(deed(i));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int check_without(size_t i)
{
	struct frag_err err = FRAG_ERR_INIT;
	char sentence[200];

	forbid(calls[i].number);
	if (fragi_kernel_check(false, NULL) != (calls[i].of_hosts ? 0 : -EPERM))
		return 1;
	if (fragi_kernel_check(true, &err) != -EPERM)
		return 2;
	snprintf(sentence, sizeof(sentence),
		 "the system refuses %s, without which nothing runs: Operation not permitted; %s",
		 calls[i].name, calls[i].remedy);
	return strncmp(err.text, sentence, strlen(sentence)) == 0 &&
			       fragi_err_failure(&err) == FRAGI_FAILURE_SYSTEM_REFUSED
		       ? 0
		       : 3;
}

Test(kernel, each_call_that_is_refused_is_named)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(fragi_kernel_check(true, &err), 0, "%s", err.text);
	for (size_t i = 0; i < FRAG_COUNT_OF(calls); i++) {
		cr_assert_not_null(fragi_kernel_call_at(i));
		cr_expect_str_eq(fragi_kernel_call_at(i)->name, calls[i].name);
		cr_expect_eq(in_child(check_without, i), 0, "%s", calls[i].name);
	}
	cr_expect_null(fragi_kernel_call_at(FRAG_COUNT_OF(calls)));
}

static int check_files(size_t files)
{
	const struct rlimit limit = {files, files};
	struct frag_err err = FRAG_ERR_INIT;

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	return fragi_kernel_check(true, &err) == -EMFILE && strstr(err.text, "the 20 files") != NULL
		       ? 0
		       : 2;
}

Test(kernel, too_few_files_come_first)
{
	cr_expect_eq(in_child(check_files, 4), 0);
	cr_expect_eq(in_child(check_files, 22), 0);
}

/* The limit of a user holds for all but root. */
static int name_limit_of_user(size_t most)
{
	const struct rlimit limit = {most, most};
	char remedy[FRAGI_KERNEL_REMEDY_MAX];

	if (setrlimit(RLIMIT_NPROC, &limit) < 0 || (getuid() == 0 && setuid(65534) < 0))
		return 1;
	return strcmp(fragi_kernel_remedy(-EAGAIN, remedy),
		      "; its user may have 4711 processes and threads: raise that (ulimit -u, LimitNPROC= of its unit)") ==
			       0
		       ? 0
		       : 2;
}

static int name_limit_of_machine(size_t most)
{
	const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
	char remedy[FRAGI_KERNEL_REMEDY_MAX];

	(void)most;
	(void)setrlimit(RLIMIT_NPROC, &limit);
	return getuid() != 0 || strstr(fragi_kernel_remedy(-EAGAIN, remedy),
				       "kernel.threads-max (") != NULL
		       ? 0
		       : 2;
}

Test(kernel, the_limit_of_processes_is_named)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];

	cr_expect_eq(in_child(name_limit_of_user, 4711), 0);
	cr_expect_eq(in_child(name_limit_of_machine, 0), 0);
	cr_expect_str_eq(fragi_kernel_remedy(-EMFILE, remedy), "", "its text says it");
	cr_expect_not_null(strstr(fragi_kernel_remedy(-ENOSYS, remedy), "seccomp"));
}
