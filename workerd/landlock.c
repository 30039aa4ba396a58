// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/landlock.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FD_MIN 10

/* The installed header may be older than the kernel. */
#define RIGHT_TRUNCATE (UINT64_C(1) << 14)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)
#define ABI_TRUNCATE 3
#define ABI_SCOPES 6

struct rules_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

/* What may be done to a file or a device, and what only below a folder. */
#define FILE_RIGHTS (LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_TRUNCATE)
#define FOLDER_RIGHTS                                                                              \
	(FILE_RIGHTS | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |            \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                               \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |                             \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
/* No host may make a device. */
#define HANDLED_RIGHTS                                                                             \
	(FOLDER_RIGHTS | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define CORE_RIGHTS (FILE_RIGHTS | LANDLOCK_ACCESS_FS_MAKE_REG)

/* Where CUDA has its interprocess events, on a machine that has its devices. */
#define CUDA_DEVICE "/dev/nvidiactl"
#define CUDA_FOLDER "/dev/shm"

/*
 * What every program may write to, the cards that CUDA, graphics and RDMA work with, and cameras. A
 * driver may make nodes while a worker runs, so they are looked for at each start of a host.
 */
static const char *const devices[] = {
	"/dev/null",    "/dev/zero", "/dev/full",       "/dev/random",
	"/dev/urandom", "/dev/tty",  "/dev/nvidia*",    "/dev/nvmap",
	"/dev/nvhost*", "/dev/dri",  "/dev/infiniband", "/dev/video*",
};

int wrk_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
			   LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? -errno : (int)abi;
}

struct wrk_landlock_rights wrk_landlock_rights_of(int abi)
{
	struct wrk_landlock_rights rights = {.handled = HANDLED_RIGHTS};

	/*
	 * Version 1 refuses every move and link between folders, even without this right. Devices
	 * are not restricted by their ioctl (version 5): what may be opened may be used.
	 */
	if (abi < 2)
		rights.handled &= ~(uint64_t)LANDLOCK_ACCESS_FS_REFER;
	if (abi < ABI_TRUNCATE)
		rights.handled &= ~RIGHT_TRUNCATE;
	if (abi >= ABI_SCOPES)
		rights.scoped = SCOPE_SIGNAL;
	return rights;
}

/* Returns 0, also for what does not exist, or negative errno. */
static int allow(int rules_fd, const struct wrk_landlock_rights *rights, const char *path,
		 uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access & rights->handled};
	struct stat st;
	int r = 0;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -errno;
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= FILE_RIGHTS;
	if (syscall(SYS_landlock_add_rule, rules_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0u) < 0)
		r = -errno;
	close(rule.parent_fd);
	return r;
}

static int allow_devices(int rules_fd, const struct wrk_landlock_rights *rights)
{
	glob_t found;
	int r = 0;

	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(devices); i++) {
		if (glob(devices[i], 0, NULL, &found) != 0)
			continue;
		for (size_t j = 0; r == 0 && j < found.gl_pathc; j++)
			r = allow(rules_fd, rights, found.gl_pathv[j], FILE_RIGHTS);
		globfree(&found);
	}
	if (r == 0 && access(CUDA_DEVICE, F_OK) == 0)
		r = allow(rules_fd, rights, CUDA_FOLDER, FOLDER_RIGHTS);
	return r;
}

/* The kernel writes a core file with the rights of the process that crashed. */
static int allow_cores(int rules_fd, const struct wrk_landlock_rights *rights)
{
	FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
	char pattern[256] = "", *slash;

	if (file != NULL) {
		if (fgets(pattern, sizeof(pattern), file) == NULL)
			pattern[0] = '\0';
		fclose(file);
	}
	slash = strrchr(pattern, '/');
	if (pattern[0] != '/' || slash == pattern)
		return 0;
	*slash = '\0';
	return allow(rules_fd, rights, pattern, CORE_RIGHTS);
}

int wrk_landlock_create(int abi, const char *const *paths, size_t count, struct frag_err *err)
{
	const struct wrk_landlock_rights rights = wrk_landlock_rights_of(abi);
	const struct rules_attr attr = {.handled_access_fs = rights.handled,
					.scoped = rights.scoped};
	const char *what = "Landlock";
	int made = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0u), fd = -1, r;

	r = made < 0 ? -errno : allow_devices(made, &rights);
	if (r == 0)
		r = allow_cores(made, &rights);
	for (size_t i = 0; r == 0 && i < count; i++) {
		what = paths[i];
		r = allow(made, &rights, paths[i], FOLDER_RIGHTS);
	}
	if (r == 0) {
		fd = fcntl(made, F_DUPFD_CLOEXEC, FD_MIN);
		r = fd < 0 ? -errno : 0;
	}
	if (made >= 0)
		close(made);
	return r == 0 ? fd
		      : frag_err_set(err, r, "cannot restrict what hosts may write (%.200s): %s",
				     what, frag_strerror(r));
}

/*
 * The names of this process's threads: CUDA does not start where it cannot write them. The rule is
 * about an inode of /proc that is made anew when nobody holds the folder open, so fraghost does.
 */
static int allow_thread_names(int rules_fd)
{
	/* They are opened to be truncated, a right that versions before 3 do not know. */
	static const uint64_t access[] = {FILE_RIGHTS, LANDLOCK_ACCESS_FS_WRITE_FILE};
	struct landlock_path_beneath_attr rule = {
		.parent_fd = open("/proc/self/task", O_PATH | O_CLOEXEC)};
	int r = -EINVAL;

	if (rule.parent_fd < 0) /* no /proc */
		return 0;
	for (size_t i = 0; r == -EINVAL && i < FRAG_COUNT_OF(access); i++) {
		rule.allowed_access = access[i];
		r = syscall(SYS_landlock_add_rule, rules_fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
			    0u) < 0
			    ? -errno
			    : 0;
	}
	close(rule.parent_fd);
	return r;
}

int wrk_landlock_restrict(int rules_fd)
{
	int r = allow_thread_names(rules_fd);

	if (r < 0)
		return r;
	return syscall(SYS_landlock_restrict_self, rules_fd, 0u) < 0 ? -errno : 0;
}
