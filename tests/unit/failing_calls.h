/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_FAILING_CALLS_H
#define TESTS_UNIT_FAILING_CALLS_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * System calls of the code under test, which is linked into the program, of which one fails with
 * EIO: the test says how many succeed before. Those of libraries are left alone, and where
 * FAILING_IN_LIBFRAG is defined, those of other threads; then more calls fail.
 */
#ifdef FAILING_IN_LIBFRAG
static _Thread_local int failing_left = -1;
#else
static atomic_int failing_left = -1; /* -1: none fails */
#endif
static const char *failing_name; /* of the one that failed; NULL: none has */

extern const char __executable_start[], etext[];

static bool call_fails(const char *name, const void *caller)
{
	const char *at = caller;

	if (at < __executable_start || at >= etext || failing_left < 0 || failing_left-- > 0)
		return false;
	failing_name = name;
	errno = EIO;
	return true;
}

static inline void fail_after(int calls)
{
	failing_name = NULL;
	failing_left = calls;
}

/* Returns the name of the call that failed; NULL: there were not so many. */
static inline const char *fail_off(void)
{
	failing_left = -1;
	return failing_name;
}

static inline int descriptor_count(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

#define FAILING(name, parameters, arguments)                                                       \
	int name parameters                                                                        \
	{                                                                                          \
		static int(*real) parameters;                                                      \
                                                                                                   \
		if (call_fails(#name, __builtin_return_address(0)))                                \
			return -1;                                                                 \
		if (real == NULL)                                                                  \
			*(void **)(void *)&real = dlsym(RTLD_NEXT, #name);                         \
		return real arguments;                                                             \
	}

FAILING(socket, (int domain, int type, int protocol), (domain, type, protocol))
FAILING(socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds))
FAILING(bind, (int fd, __CONST_SOCKADDR_ARG address, socklen_t size), (fd, address, size))
FAILING(listen, (int fd, int count), (fd, count))
FAILING(pipe2, (int fds[2], int flags), (fds, flags))
FAILING(memfd_create, (const char *name, unsigned int flags), (name, flags))
FAILING(ftruncate, (int fd, off_t size), (fd, size))
FAILING(fstat, (int fd, struct stat *at), (fd, at))
FAILING(lstat, (const char *path, struct stat *at), (path, at))
FAILING(chmod, (const char *path, mode_t mode), (path, mode))
FAILING(fchmod, (int fd, mode_t mode), (fd, mode))
FAILING(mkdir, (const char *path, mode_t mode), (path, mode))
FAILING(rename, (const char *from, const char *to), (from, to))
FAILING(flock, (int fd, int what), (fd, what))

#ifdef FAILING_IN_LIBFRAG
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

FAILING(epoll_create1, (int flags), (flags))
FAILING(epoll_ctl, (int epoll, int what, int fd, struct epoll_event *event),
	(epoll, what, fd, event))
FAILING(eventfd, (unsigned int count, int flags), (count, flags))
FAILING(timerfd_create, (clockid_t clock, int flags), (clock, flags))
FAILING(connect, (int fd, __CONST_SOCKADDR_ARG address, socklen_t size), (fd, address, size))
FAILING(accept4, (int fd, __SOCKADDR_ARG address, socklen_t *size, int flags),
	(fd, address, size, flags))
FAILING(setsockopt, (int fd, int level, int name, const void *value, socklen_t size),
	(fd, level, name, value, size))
FAILING(munmap, (void *at, size_t size), (at, size))
FAILING(fsync, (int fd), (fd))
FAILING(link, (const char *from, const char *to), (from, to))
FAILING(linkat, (int from_at, const char *from, int to_at, const char *to, int flags),
	(from_at, from, to_at, to, flags))
FAILING(renameat, (int from_at, const char *from, int to_at, const char *to),
	(from_at, from, to_at, to))

void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
	static void *(*real)(void *at, size_t size, int access, int flags, int fd, off_t offset);

	if (call_fails("mmap", __builtin_return_address(0)))
		return MAP_FAILED;
	if (real == NULL)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "mmap");
	return real(at, size, access, flags, fd, offset);
}
#endif

#define FAILING_OPEN(name, parameters, arguments)                                                  \
	int name parameters                                                                        \
	{                                                                                          \
		static int(*real) parameters;                                                      \
		va_list list;                                                                      \
		mode_t mode;                                                                       \
                                                                                                   \
		va_start(list, flags);                                                             \
		mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;                          \
		va_end(list);                                                                      \
		if (call_fails(#name, __builtin_return_address(0)))                                \
			return -1;                                                                 \
		if (real == NULL)                                                                  \
			*(void **)(void *)&real = dlsym(RTLD_NEXT, #name);                         \
		return real arguments;                                                             \
	}

FAILING_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
FAILING_OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))

int fcntl(int fd, int what, ...)
{
	static int (*real)(int fd, int what, ...);
	va_list list;
	long value;

	va_start(list, what);
	value = va_arg(list, long);
	va_end(list);
	if (call_fails("fcntl", __builtin_return_address(0)))
		return -1;
	if (real == NULL)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "fcntl");
	return real(fd, what, value);
}

/* They return the error. */
#define FAILING_CODE(name, parameters, arguments)                                                  \
	int name parameters                                                                        \
	{                                                                                          \
		static int(*real) parameters;                                                      \
                                                                                                   \
		if (call_fails(#name, __builtin_return_address(0)))                                \
			return EIO;                                                                \
		if (real == NULL)                                                                  \
			*(void **)(void *)&real = dlsym(RTLD_NEXT, #name);                         \
		return real arguments;                                                             \
	}

#ifdef FAILING_IN_LIBFRAG
FAILING_CODE(pthread_create,
	     (pthread_t * thread, const pthread_attr_t *attributes, void *(*body)(void *arg),
	      void *arg),
	     (thread, attributes, body, arg))
FAILING_CODE(posix_memalign, (void **at, size_t alignment, size_t size), (at, alignment, size))
#endif
FAILING_CODE(posix_spawn_file_actions_init, (posix_spawn_file_actions_t * actions), (actions))
FAILING_CODE(posix_spawn_file_actions_adddup2,
	     (posix_spawn_file_actions_t * actions, int from, int to), (actions, from, to))
FAILING_CODE(posix_spawn_file_actions_addopen,
	     (posix_spawn_file_actions_t * actions, int fd, const char *path, int flags,
	      mode_t mode),
	     (actions, fd, path, flags, mode))
FAILING_CODE(posix_spawn,
	     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
	      const posix_spawnattr_t *attributes, char *const arguments[],
	      char *const environment[]),
	     (pid, path, actions, attributes, arguments, environment))

#endif
