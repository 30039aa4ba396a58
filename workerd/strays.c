// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/strays.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/alloc.h>

#define END_ALL_ROUNDS 200
#define END_ALL_PAUSE_NS 5000000
#define ENVIRONMENT_MAX ((size_t)128 * 1024)

#define SPARED_MAX 8

/* A pid may stand here until another process gets it: then it is taken out as it is reaped. */
static pid_t spared[SPARED_MAX];
static bool adopts; /* wrk_strays_adopt was called; else every child is somebody else's */

static pid_t *place_of(pid_t pid)
{
	for (size_t i = 0; i < SPARED_MAX; i++)
		if (spared[i] == pid)
			return &spared[i];
	return NULL;
}

void wrk_strays_except(pid_t pid)
{
	pid_t *place = place_of(0);

	if (place != NULL && place_of(pid) == NULL)
		*place = pid;
}

void wrk_strays_reaped(pid_t pid)
{
	pid_t *place = pid != 0 ? place_of(pid) : NULL;

	if (place != NULL)
		*place = 0;
}

void wrk_strays_adopt(void)
{
	adopts = true;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/*
 * Whether a process carries the mark in the environment that it was executed or forked with: 1 or
 * 0. -EAGAIN: it has none, as for a moment a process that is being executed, whose old one the
 * kernel takes away before the new one can be read, and one that was killed and is still ending.
 */
static int has_mark(pid_t pid, const char *mark)
{
	char path[40], *text = fragi_malloc(ENVIRONMENT_MAX);
	size_t length = strlen(mark) + 1;
	ssize_t n = -1;
	int fd, r = 0;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && text != NULL)
		n = read(fd, text, ENVIRONMENT_MAX);
	else if (fd < 0 && errno == ESRCH)
		n = 0;
	if (fd >= 0)
		close(fd);
	if (n > 0)
		r = memmem(text, (size_t)n, mark, length) != NULL;
	else if (n == 0)
		r = -EAGAIN;
	fragi_free(text);
	return r;
}

static int belongs(pid_t pid, const struct wrk_strays_of *of)
{
	if (of == NULL)
		return 0;
	return of->is_only || getsid(pid) == of->host ? 1 : has_mark(pid, of->mark);
}

/* The children of this process; several threads may have some. */
struct children {
	pid_t *pids;
	size_t count, capacity;
};

static void add_child(struct children *children, pid_t pid)
{
	size_t capacity = children->capacity == 0 ? 64 : 2 * children->capacity;
	pid_t *pids = children->pids;

	if (children->count == children->capacity) {
		pids = fragi_realloc(pids, capacity * sizeof(*pids));
		if (pids == NULL) /* the next time, then */
			return;
		children->pids = pids;
		children->capacity = capacity;
	}
	pids[children->count++] = pid;
}

static void list_children_of(const char *thread, struct children *children)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);
	file = fopen(path, "re");
	while (file != NULL && fscanf(file, "%d", &pid) == 1)
		add_child(children, (pid_t)pid);
	if (file != NULL)
		fclose(file);
}

/*
 * Calls fn for each child. The list is complete, because it is read before any of them is reaped,
 * which nobody else does.
 */
static size_t for_each_child(size_t (*fn)(pid_t pid, void *arg), void *arg)
{
	DIR *threads = opendir("/proc/self/task");
	struct children children = {0};
	const struct dirent *entry;
	size_t sum = 0;

	while (threads != NULL && (entry = readdir(threads)) != NULL)
		if (entry->d_name[0] != '.')
			list_children_of(entry->d_name, &children);
	if (threads != NULL)
		closedir(threads);
	for (size_t i = 0; i < children.count; i++)
		sum += fn(children.pids[i], arg);
	fragi_free(children.pids);
	return sum;
}

struct looking {
	const struct wrk_strays_of *of;
	bool (*is_host)(pid_t pid);
};

static size_t end_one(pid_t pid, void *arg)
{
	const struct looking *looking = arg;
	int r;

	if (looking->is_host(pid))
		return 0;
	if (waitpid(pid, NULL, WNOHANG) == pid) {
		wrk_strays_reaped(pid);
		return 0;
	}
	r = place_of(pid) == NULL ? belongs(pid, looking->of) : 0;
	if (r > 0)
		kill(pid, SIGKILL);
	return r != 0;
}

size_t wrk_strays_end(const struct wrk_strays_of *of, bool (*is_host)(pid_t pid))
{
	struct looking looking = {of, is_host};

	return adopts ? for_each_child(end_one, &looking) : 0;
}

static size_t end_any(pid_t pid, void *arg)
{
	(void)arg;
	if (waitpid(pid, NULL, WNOHANG) == pid)
		return 0;
	kill(pid, SIGKILL);
	/* One of ours may be held in the driver of a GPU: it ends when it comes back. */
	return place_of(pid) == NULL;
}

void wrk_strays_end_all(void)
{
	const struct timespec pause = {.tv_nsec = END_ALL_PAUSE_NS};

	/* What ends may leave children of its own, which come here then. */
	for (int round = 0; adopts && round < END_ALL_ROUNDS; round++) {
		if (waitpid(-1, NULL, WNOHANG) < 0) /* there is no child */
			return;
		if (for_each_child(end_any, NULL) > 0)
			nanosleep(&pause, NULL);
	}
}

char **wrk_strays_mark(char mark[static WRK_STRAYS_MARK_MAX], char *const *environment)
{
	static unsigned int hosts;
	size_t count = 0;
	char **marked;

	snprintf(mark, WRK_STRAYS_MARK_MAX, WRK_STRAYS_MARK "=%d-%u", (int)getpid(), ++hosts);
	while (environment[count] != NULL)
		count++;
	marked = fragi_calloc(count + 2, sizeof(*marked));
	if (marked == NULL)
		return NULL;
	memcpy(marked, environment, count * sizeof(*marked));
	marked[count] = mark;
	return marked;
}
