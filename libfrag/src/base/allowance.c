// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/allowance.h>

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static bool read_file(const char *folder, const char *name, char *out, size_t size)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, size - 1);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* A number at the begin of a file; "max", a negative one, or no such file: INT64_MAX. */
static int64_t read_number(const char *folder, const char *name)
{
	char text[64];
	long long value;

	if (!read_file(folder, name, text, sizeof(text)) || sscanf(text, "%lld", &value) != 1 ||
	    value < 0)
		return INT64_MAX;
	return value;
}

static void limit_cores(struct fragi_allowance *out, int64_t cores, const char *why)
{
	cores = cores > 0 ? cores : 1;
	if (cores >= out->cores)
		return;
	out->cores = cores;
	out->cores_why = why;
}

static void limit_memory(struct fragi_allowance *out, int64_t bytes, const char *why)
{
	if (bytes >= out->memory_bytes)
		return;
	out->memory_bytes = bytes;
	out->memory_why = why;
}

static void read_cpu_group(struct fragi_allowance *out, const char *folder)
{
	int64_t quota_us = read_number(folder, "cpu.cfs_quota_us"),
		period_us = read_number(folder, "cpu.cfs_period_us");
	char text[64];

	if (read_file(folder, "cpu.max", text, sizeof(text)) &&
	    sscanf(text, "%" SCNd64 " %" SCNd64, &quota_us, &period_us) != 2)
		return; /* "max 100000" */
	if (quota_us != INT64_MAX && period_us > 0 && period_us != INT64_MAX)
		limit_cores(out, quota_us / period_us, "the CPU quota of its control group");
}

static void read_memory_group(struct fragi_allowance *out, const char *folder)
{
	static const char *const names[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		limit_memory(out, read_number(folder, names[i]),
			     "the memory limit of its control group");
}

static void read_pids_group(struct fragi_allowance *out, const char *folder)
{
	int64_t most = read_number(folder, "pids.max"), now = read_number(folder, "pids.current");

	if (most == INT64_MAX || now == INT64_MAX || most - now >= out->processes_left)
		return;
	out->processes = most;
	out->processes_left = most - now;
}

/*
 * A group and all above it. The names may be those of the machine while a container shows its own
 * part of the tree as the root: then only that is there.
 */
static void read_groups(struct fragi_allowance *out, const char *root, const char *controller,
			const char *path,
			void (*read_group)(struct fragi_allowance *, const char *))
{
	char folder[PATH_MAX];
	size_t top;

	if ((size_t)snprintf(folder, sizeof(folder), "%s%s", root, controller) >= sizeof(folder))
		return;
	top = strlen(folder);
	if (strstr(path, "/..") == NULL) /* a group outside of what the container sees */
		snprintf(folder + top, sizeof(folder) - top, "%s", path);
	for (;;) {
		char *slash = strrchr(folder + top, '/');

		read_group(out, folder);
		if (slash == NULL)
			return;
		*slash = '\0';
	}
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word))
		if ((at == words || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
			return true;
	return false;
}

/* Lines "4:memory:/path" of version 1, and "0::/path" of version 2. */
static void read_control_groups(struct fragi_allowance *out, const char *proc, const char *root)
{
	char text[4096], *rest = text, *line;

	if (!read_file(proc, "self/cgroup", text, sizeof(text)))
		return;
	while ((line = strsep(&rest, "\n")) != NULL) {
		const char *number = strsep(&line, ":"), *controllers = strsep(&line, ":");

		(void)number;
		if (controllers == NULL || line == NULL)
			continue;
		if (controllers[0] == '\0') {
			read_groups(out, root, "", line, read_cpu_group);
			read_groups(out, root, "", line, read_memory_group);
			read_groups(out, root, "", line, read_pids_group);
		}
		if (has_word(controllers, "cpu"))
			read_groups(out, root, "/cpu", line, read_cpu_group);
		if (has_word(controllers, "memory"))
			read_groups(out, root, "/memory", line, read_memory_group);
		if (has_word(controllers, "pids"))
			read_groups(out, root, "/pids", line, read_pids_group);
	}
}

static void read_limit(struct fragi_allowance *out, int which, const char *why)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)which, &limit) == 0 && limit.rlim_cur <= INT64_MAX)
		limit_memory(out, (int64_t)limit.rlim_cur, why);
}

void fragi_allowance_read(const char *proc, const char *groups, struct fragi_allowance *out)
{
	cpu_set_t cores;

	out->machine_cores = sysconf(_SC_NPROCESSORS_ONLN);
	out->cores = out->machine_cores;
	out->memory_bytes = INT64_MAX;
	out->processes = out->processes_left = INT64_MAX;
	out->cores_why = out->memory_why = NULL;
	if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
		limit_cores(out, CPU_COUNT(&cores), "its affinity");
	read_control_groups(out, proc, groups);
	read_limit(out, RLIMIT_AS, "ulimit -v");
	read_limit(out, RLIMIT_DATA, "ulimit -d");
}
