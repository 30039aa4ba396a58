// SPDX-License-Identifier: Apache-2.0
/*
 * An operator that tries what a host must not be able to do, in its first tick, and writes a line
 * for each into `file`: the attempt and what the kernel answered, or "done". `outside` is a folder
 * that it may not write, with a file `kept` that it may read; `victim` is a process of its user
 * that is not its own. With `fails` it only tries to make a file in `outside`, and fails as that
 * does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/frag.h>

struct intruder {
	const char *file, *outside, *victim;
	bool fails;
};

static const struct frag_param params[] = {
	FRAG_PARAM_PATH(struct intruder, file, NULL, .headline = "Where it writes its report"),
	FRAG_PARAM_PATH(struct intruder, outside, NULL, .headline = "A folder it may not write"),
	FRAG_PARAM_STRING(struct intruder, victim, "1", .headline = "A process to attack"),
	FRAG_PARAM_BOOL(struct intruder, fails, false, .headline = "Fails as open(2) did"),
};

static FILE *report;

/* result: what a system call returned, with errno. */
static void note(const char *attempt, long result)
{
	const char *answer = result >= 0 ? "done" : strerrorname_np(errno);

	fprintf(report, "%s %s\n", attempt, answer != NULL ? answer : "?");
}

static long try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd;
}

static long try_write(const struct intruder *s, const char *name, int flags)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", s->outside, name);
	return try_open(path, flags);
}

static void attack_files(const struct intruder *s)
{
	char kept[512], inside[512], other[512];

	snprintf(kept, sizeof(kept), "%s/kept", s->outside);
	snprintf(other, sizeof(other), "%s/other", s->outside);
	snprintf(inside, sizeof(inside), "%s.moved", s->file);
	note("read", try_open(kept, O_RDONLY));
	note("create", try_write(s, "made", O_WRONLY | O_CREAT));
	note("overwrite", try_open(kept, O_WRONLY));
	note("append", try_open(kept, O_WRONLY | O_APPEND));
	note("truncate", truncate(kept, 0));
	note("remove", unlink(kept));
	note("rename", rename(kept, other));
	note("move_in", rename(kept, inside));
	note("link_in", link(kept, inside));
	note("mkdir", mkdir(other, 0700));
	note("symlink", symlink("kept", other));
	note("symlink_in", symlink(kept, inside));
	note("through_symlink", try_open(inside, O_WRONLY));
	(void)unlink(inside);
	note("unnamed", try_open(s->outside, O_WRONLY | O_TMPFILE));
	note("device", mknod(inside, S_IFBLK | 0600, 1));
	note("null", try_open("/dev/null", O_WRONLY));
	note("score", try_open("/proc/self/oom_score_adj", O_WRONLY));
	snprintf(inside, sizeof(inside), "/proc/self/task/%d/comm", (int)getpid());
	note("thread_name", try_open(inside, O_WRONLY | O_TRUNC));
}

static void attack_processes(const struct intruder *s)
{
	pid_t victim = (pid_t)atoi(s->victim);
	char byte, path[64];
	struct iovec own = {&byte, 1}, theirs = {(void *)s, 1};
	int fd = (int)syscall(SYS_pidfd_open, victim, 0u);
	uint64_t clone3[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD}; /* struct clone_args */
	long child;

	note("ptrace", ptrace(PTRACE_SEIZE, victim, NULL, NULL));
	note("vm_write", process_vm_writev(victim, &own, 1, &theirs, 1, 0));
	note("take_fd", syscall(SYS_pidfd_getfd, fd, 0, 0u));
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)victim);
	note("memory", try_open(path, O_RDONLY));
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	note("memory_of_workerd", try_open(path, O_RDONLY));
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)getppid());
	note("environ_of_workerd", try_open(path, O_RDONLY));
	note("kill", kill(victim, SIGCONT));
	note("kill_workerd", kill(getppid(), SIGCONT));
	note("kill_self", kill(getpid(), 0));
	note("namespace", unshare(CLONE_NEWUSER));
	child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		_exit(0);
	note("clone_namespace", child);
	child = syscall(SYS_clone3, clone3, sizeof(clone3));
	if (child == 0)
		_exit(0);
	note("clone3", child);
}

/* What would harm the machine, were it allowed, is asked for with arguments that cannot be done. */
static void attack_kernel(const struct intruder *s)
{
	char bpf[128] = "";
	int fd;

	note("mount", mount("none", "/nonexistent", "tmpfs", 0, NULL));
	note("umount", umount2("/nonexistent", MNT_DETACH));
	note("chroot", chroot("/nonexistent"));
	note("bpf", syscall(SYS_bpf, 0, bpf, sizeof(bpf)));
	note("module", syscall(SYS_finit_module, 0, "", 0));
	note("keys", syscall(SYS_keyctl, 0, -3, 0));
	note("kexec", syscall(SYS_kexec_load, 0L, 0L, NULL, 0L));
	note("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
	note("userfault", syscall(SYS_userfaultfd, 0));
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	note("raw_socket", fd);
	if (fd >= 0)
		close(fd);
	note("type", ioctl(0, TIOCSTI, "x"));
	note("chown", chown(s->outside, 4321, 4321));
	note("setuid", (long)syscall(SYS_setresuid, 4321, 4321, 4321));
}

/* Programs that it starts: one that is setuid, and one that tries to write outside. */
static void attack_by_child(const struct intruder *s)
{
	char command[1024];

	snprintf(command, sizeof(command), "echo x 2>/dev/null >%s/by_child", s->outside);
	errno = EACCES;
	note("child_writes", system(command) == 0 ? 0 : -1);
	snprintf(command, sizeof(command), "grep -q '^NoNewPrivs:.*1$' /proc/self/status");
	errno = EACCES;
	note("child_is_bound", system(command) == 0 ? 0 : -1);
}

/* What it is: for the test to compare. */
static void describe(void)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "re");
	struct rlimit limit;

	while (status != NULL && fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "Cap", 3) == 0 || strncmp(line, "NoNewPrivs", 10) == 0 ||
		    strncmp(line, "Uid", 3) == 0 || strncmp(line, "Groups", 6) == 0 ||
		    strncmp(line, "Seccomp:", 8) == 0)
			fprintf(report, "= %s", line);
	if (status != NULL)
		fclose(status);
	fprintf(report, "= Dumpable: %d\n", prctl(PR_GET_DUMPABLE));
	getrlimit(RLIMIT_NPROC, &limit);
	fprintf(report, "= Nproc: %llu\n", (unsigned long long)limit.rlim_cur);
	fprintf(report, "= Home: %s\n", getenv("HOME"));
}

static int compute(void *state, struct frag_tick *tick)
{
	const struct intruder *s = state;

	if (s->fails)
		return try_write(s, "made", O_WRONLY | O_CREAT) < 0 ? -errno : FRAG_DONE;
	report = fopen(s->file, "we");
	if (report == NULL)
		return frag_op_fail(frag_tick_op(tick), -errno, "cannot write %s: %s", s->file,
				    strerror(errno));
	describe();
	attack_files(s);
	attack_processes(s);
	attack_by_child(s);
	attack_kernel(s);
	fclose(report);
	return FRAG_DONE;
}

static const struct frag_op_type intruder = {
	FRAG_OP_TYPE_INIT,
	.name = "intruder",
	.headline = "Tries what hosts may not do",
	.state_size = sizeof(struct intruder),
	FRAG_PARAMS(params),
	.compute = compute,
};

static const struct frag_op_type *const ops[] = {&intruder};
FRAG_PLUGIN(.name = "intruder", .version = "1.0.0", FRAG_OPS(ops));
