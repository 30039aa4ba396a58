// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/seccomp.h>

#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/alloc.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_CHECKED 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define LEAKS_ARE_CHECKED 1
#endif

/* By name, because not every architecture has all of them, and libseccomp may not know the rest. */
static const char *const denied[] = {
/* LeakSanitizer stops the threads of its own process with it. */
#ifndef LEAKS_ARE_CHECKED
	"ptrace",
#endif
	/* other processes */
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"pidfd_getfd",
	"kcmp",
	/* code and hooks in the kernel, and what is most used to attack it */
	"bpf",
	"perf_event_open",
	"userfaultfd",
	"init_module",
	"finit_module",
	"delete_module",
	"create_module",
	"kexec_load",
	"kexec_file_load",
	"fanotify_init",
	"lookup_dcookie",
	"nfsservctl",
	"uselib",
	"vm86",
	"vm86old",
	"modify_ldt",
	"_sysctl",
	/* keys of the kernel */
	"add_key",
	"request_key",
	"keyctl",
	/* what is mounted, and where; files by number instead of path */
	"mount",
	"umount",
	"umount2",
	"move_mount",
	"mount_setattr",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"pivot_root",
	"chroot",
	"open_by_handle_at",
	"quotactl",
	"quotactl_fd",
	/* the machine */
	"reboot",
	"swapon",
	"swapoff",
	"acct",
	"settimeofday",
	"clock_settime",
	"stime",
	"sethostname",
	"setdomainname",
	"syslog",
	"vhangup",
	"iopl",
	"ioperm",
	/* namespaces: in one of its own a process has all capabilities */
	"setns",
};

/* CLONE_NEWTIME is no flag of clone, where its bit is part of a signal's number. */
static const uint64_t namespaces[] = {CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
				      CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};

static int deny_namespaces(scmp_filter_ctx filter)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(namespaces); i++) {
		const struct scmp_arg_cmp has_flag =
			SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]);

		r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
					   &has_flag);
		if (r == 0)
			r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone),
						   1, &has_flag);
	}
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWTIME, CLONE_NEWTIME));
	/* Its flags are in memory, which a filter cannot read; libc falls back to clone. */
	return r < 0 ? r : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* Typing for somebody else into a terminal. */
static int deny_terminals(scmp_filter_ctx filter)
{
	static const unsigned int requests[] = {TIOCSTI, TIOCLINUX};
	int r = 0;

	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(requests); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, requests[i]));
	return r;
}

static int add_rules(struct wrk_seccomp *seccomp, scmp_filter_ctx filter)
{
	/* Programs for other system call tables, as those of 32 bits, do not run. */
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(denied); i++) {
		int number = seccomp_syscall_resolve_name(denied[i]);

		if (number < 0) /* this architecture has none, or libseccomp does not know it */
			continue;
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
		seccomp->denied++;
	}
	if (r == 0)
		r = deny_namespaces(filter);
	return r < 0 ? r : deny_terminals(filter);
}

/* The program that libseccomp makes of the rules, for a child that may only make system calls. */
static int take_program(struct wrk_seccomp *seccomp, scmp_filter_ctx filter)
{
	int fd = memfd_create("frag-seccomp", MFD_CLOEXEC), r;
	struct sock_filter *code = NULL;
	struct stat st = {0};

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(filter, fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0) {
		code = fragi_malloc((size_t)st.st_size);
		r = code == NULL ? -ENOMEM : 0;
	}
	if (r == 0 && pread(fd, code, (size_t)st.st_size, 0) != st.st_size)
		r = -EIO;
	close(fd);
	if (r < 0) {
		fragi_free(code);
		return r;
	}
	seccomp->program.filter = code;
	seccomp->program.len = (unsigned short)((size_t)st.st_size / sizeof(*code));
	return 0;
}

int wrk_seccomp_probe(void)
{
	const unsigned int action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &action) < 0 ? -errno : 0;
}

int wrk_seccomp_init(struct wrk_seccomp *seccomp, struct frag_err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	*seccomp = (struct wrk_seccomp){0};
	r = filter == NULL ? -ENOMEM : add_rules(seccomp, filter);
	if (r == 0)
		r = take_program(seccomp, filter);
	seccomp_release(filter);
	return r == 0 ? 0
		      : frag_err_set(err, r, "cannot make the filter of system calls: %s",
				     frag_strerror(r));
}

void wrk_seccomp_fini(struct wrk_seccomp *seccomp)
{
	fragi_free(seccomp->program.filter);
	*seccomp = (struct wrk_seccomp){0};
}
