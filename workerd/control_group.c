// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/control_group.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERIOD_US 100000
#define QUOTA_MIN_US 1000 /* the kernel takes no less */

static int read_at(int folder_fd, const char *name, char *out, size_t size)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	out[n] = '\0';
	return 0;
}

static int read_text(const char *folder, const char *name, char *out, size_t size)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return read_at(AT_FDCWD, path, out, size);
}

static int write_text(const char *folder, const char *name, const char *text)
{
	char path[4200];
	int fd, r = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ' ') &&
		    (at[length] == '\0' || at[length] == ' ' || at[length] == '\n'))
			return true;
	return false;
}

/* Whether a process is this one, or a child of it: its reporter. */
static bool is_own(const char *proc, long pid)
{
	char name[64], text[512];
	const char *end;
	long parent;

	if (pid == getpid())
		return true;
	snprintf(name, sizeof(name), "%ld/stat", pid);
	if (read_text(proc, name, text, sizeof(text)) < 0)
		return true; /* it has ended */
	end = strrchr(text, ')');
	return end != NULL && sscanf(end + 1, " %*c %ld", &parent) == 1 && parent == getpid();
}

/* The line "0::/path" is that of version 2. */
static int find_folder(struct wrk_control_groups *groups, const char *proc, const char *root)
{
	char text[4096], *line, *rest = text;

	if (read_text(proc, "self/cgroup", text, sizeof(text)) < 0)
		return -ENOENT;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (strncmp(line, "0::/", 4) == 0) {
			snprintf(groups->folder, sizeof(groups->folder), "%s%s", root,
				 strcmp(line + 3, "/") != 0 ? line + 3 : "");
			return 0;
		}
	return -ENOENT;
}

static void look(struct wrk_control_groups *groups, const char *proc, const char *root)
{
	char text[16384];
	char *rest = text;
	const char *line;

	if (read_text(root, "cgroup.controllers", text, sizeof(text)) < 0 ||
	    find_folder(groups, proc, root) < 0) {
		snprintf(groups->why, sizeof(groups->why), "there is no cgroup v2 at %.80s", root);
		return;
	}
	if (read_text(groups->folder, "cgroup.controllers", text, sizeof(text)) < 0 ||
	    !has_word(text, "cpu") || !has_word(text, "memory")) {
		snprintf(
			groups->why, sizeof(groups->why),
			"the controllers cpu and memory are not delegated to this worker; run it as frag-worker.service, or with Delegate=cpu memory");
		return;
	}
	snprintf(text, sizeof(text), "%s/cgroup.subtree_control", groups->folder);
	if (access(groups->folder, W_OK) < 0 || access(text, W_OK) < 0) {
		snprintf(
			groups->why, sizeof(groups->why),
			"it may not make control groups in %.80s (%s); run it as frag-worker.service, or with Delegate=cpu memory",
			groups->folder, frag_strerror(-errno));
		return;
	}
	if (read_text(groups->folder, "cgroup.procs", text, sizeof(text)) < 0)
		text[0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0' && !is_own(proc, strtol(line, NULL, 10))) {
			snprintf(
				groups->why, sizeof(groups->why),
				"its control group has other processes; run it as frag-worker.service, or by `systemd-run -p Delegate=yes workerd ...`");
			return;
		}
}

void wrk_control_groups_init(struct wrk_control_groups *groups, const char *proc, const char *root)
{
	memset(groups, 0, sizeof(*groups));
	look(groups, proc, root);
	if (groups->why[0] != '\0')
		groups->folder[0] = '\0';
}

/* Moves this process, and its reporter, out of the way. */
static int get_ready(struct wrk_control_groups *groups)
{
	char own[4200], text[16384];
	char *rest = text;
	const char *line;
	int r;

	if (groups->is_ready)
		return 0;
	snprintf(own, sizeof(own), "%s/worker", groups->folder);
	if (mkdir(own, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = read_text(groups->folder, "cgroup.procs", text, sizeof(text));
	while (r == 0 && (line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0') {
			r = write_text(own, "cgroup.procs", line);
			r = r == -ESRCH ? 0 : r; /* it has just ended; the next ones have not */
		}
	if (r == 0)
		r = write_text(groups->folder, "cgroup.subtree_control", "+cpu +memory");
	groups->is_ready = r == 0;
	return r;
}

/* A kernel without swap has no such file. */
static int forbid_swap(const char *folder)
{
	int r = write_text(folder, "memory.swap.max", "0");

	return r == -ENOENT ? 0 : r;
}

static int limit(const char *folder, uint32_t cpu_limit, uint64_t memory_limit)
{
	uint64_t quota_us = (uint64_t)cpu_limit * PERIOD_US / 1000;
	char text[64];
	int r = 0;

	if (cpu_limit != 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " %d",
			 quota_us < QUOTA_MIN_US ? QUOTA_MIN_US : quota_us, PERIOD_US);
		r = write_text(folder, "cpu.max", text);
	}
	if (r == 0 && memory_limit != 0) {
		snprintf(text, sizeof(text), "%" PRIu64, memory_limit);
		r = write_text(folder, "memory.max", text);
		if (r == 0)
			r = forbid_swap(folder);
		if (r == 0) /* a host goes as a whole */
			r = write_text(folder, "memory.oom.group", "1");
	}
	return r;
}

int wrk_control_groups_make(struct wrk_control_groups *groups, uint32_t cpu_limit,
			    uint64_t memory_limit, int *out_fd, struct frag_err *err)
{
	char folder[4200];
	int r;

	wrk_control_groups_clear(groups);
	if (groups->left_count == WRK_CONTROL_GROUPS_MAX)
		return frag_err_set(
			err, -EBUSY,
			"cannot start a host: %d control groups of hosts are still there",
			WRK_CONTROL_GROUPS_MAX);
	r = get_ready(groups);
	snprintf(folder, sizeof(folder), "%s/host-%" PRIu32, groups->folder, groups->last + 1);
	if (r == 0)
		(void)rmdir(folder); /* one of an earlier worker, with other limits */
	if (r == 0 && mkdir(folder, 0755) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		groups->left[groups->left_count++] = ++groups->last;
		r = limit(folder, cpu_limit, memory_limit);
	}
	if (r == 0) {
		*out_fd = open(folder, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		r = *out_fd < 0 ? -errno : 0;
	}
	return r == 0 ? 0
		      : frag_err_set(err, r,
				     "cannot start a host with limits: its control group %.80s: %s",
				     folder, frag_strerror(r));
}

int wrk_control_group_enter(int fd)
{
	int procs = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	int r = procs < 0 || write(procs, "0", 1) < 0 ? -errno : 0;

	if (procs >= 0)
		close(procs);
	return r;
}

uint64_t wrk_control_group_exceeded(int fd)
{
	char events[512], limit[64];
	const char *kills;

	if (fd < 0 || read_at(fd, "memory.events", events, sizeof(events)) < 0 ||
	    read_at(fd, "memory.max", limit, sizeof(limit)) < 0)
		return 0;
	kills = strstr(events, "oom_kill ");
	return kills != NULL && strtoull(kills + strlen("oom_kill "), NULL, 10) > 0
		       ? strtoull(limit, NULL, 10)
		       : 0;
}

void wrk_control_groups_clear(struct wrk_control_groups *groups)
{
	char folder[4200];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < groups->left_count; i++) {
		snprintf(folder, sizeof(folder), "%s/host-%" PRIu32, groups->folder,
			 groups->left[i]);
		if (rmdir(folder) < 0 && errno != ENOENT) /* somebody lives there */
			groups->left[kept++] = groups->left[i];
	}
	groups->left_count = kept;
}
