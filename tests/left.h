/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LEFT_H
#define TESTS_LEFT_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What this process has of the system; a fixture compares it before and after a test. */
struct left {
	unsigned int descriptors, threads,
		shared_maps; /* these: of memfds and files for shared memory */
};

/*
 * What a test leaves on purpose: it says so here, and why. Where it is run by mini_criterion, all
 * else that it leaves fails it.
 */
struct left left_own __attribute__((weak));

/* It goes past what a test puts in the place of the C library's calls. */
static inline int left_open(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

static inline unsigned int left_entries(const char *path)
{
	_Alignas(struct dirent) char entries[4096];
	int fd = left_open(path);
	unsigned int count = 0;
	long bytes;

	while (fd >= 0 && (bytes = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < bytes; count++)
			at += ((const struct dirent *)(const void *)(entries + at))->d_reclen;
	if (fd >= 0)
		syscall(SYS_close, fd);
	return count;
}

/* ThreadSanitizer starts a thread of its own with the first one of the test: none are counted. */
static inline unsigned int left_threads(void)
{
#ifdef __SANITIZE_THREAD__
	return 0;
#else
	return left_entries("/proc/self/task");
#endif
}

static inline struct left left_now(void)
{
	struct left now = {left_entries("/proc/self/fd"), left_threads(), 0};
	int fd = left_open("/proc/self/maps");
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[512];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		now.shared_maps +=
			strstr(line, "/memfd:") != NULL || strstr(line, "/dev/shm/") != NULL;
	if (maps != NULL)
		fclose(maps);
	return now;
}

static inline bool left_differs(struct left now, struct left before)
{
	return now.descriptors > before.descriptors || now.threads > before.threads ||
	       now.shared_maps > before.shared_maps;
}

/* What other threads give back, and a thread that was joined, may still be seen for a while. */
static inline bool left_is_more(struct left before)
{
	struct left now = left_now();

	for (int i = 0; i < 500 && left_differs(now, before); i++, now = left_now())
		usleep(10000);
	if (!left_differs(now, before))
		return false;
	fprintf(stderr,
		"left: %u descriptors (%u before), %u threads (%u), %u maps of memory (%u)\n",
		now.descriptors, before.descriptors, now.threads, before.threads, now.shared_maps,
		before.shared_maps);
	return true;
}

#endif
