// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a process of frag, it makes one call site of ours fail, once: allocations, writes,
 * files, processes, mappings. Where a call comes from decides: a return address in a file below
 * FAULT_ROOT, but not below FAULT_ROOT/tests, is ours; libc, libuv and UCX are left alone. A site
 * is the function called and the return addresses of up to FAULT_DEPTH frames of ours, for a place
 * that allocates for many is many sites.
 *
 *   FAULT_PROGRAM  the program to work in; elsewhere, also in what it starts, nothing happens
 *   FAULT_ROOT     the build folder
 *   FAULT_LOG      a line for each site as it is first reached, and "failed SITE" for the one that
 *   failed
 *   FAULT_SITE     the site that fails; without it none does
 *   FAULT_SKIP     how many of its calls succeed before
 *
 * Our objects keep frame pointers, and only their frames are followed. What is linked into them may
 * keep none (libgcov), and have anything in that register.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SEEN 8192                         /* a power of two, far above the number of sites */
#define FRAMES_BYTES ((uintptr_t)1 << 18) /* from one frame to the next, at most */

static bool is_on;
static char root[512], tests_folder[520];
static char wanted[512];
static int depth;
static _Atomic long left_to_skip;
static char log_path[512];
static _Atomic uint64_t seen[SEEN];

/* Returns how much of `out` is used then. */
static size_t add_text(char *out, size_t size, size_t used, const char *text)
{
	while (*text != '\0' && used + 1 < size)
		out[used++] = *text++;
	out[used] = '\0';
	return used;
}

static size_t add_hex(char *out, size_t size, size_t used, uintptr_t value)
{
	char digits[20];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = "0123456789abcdef"[value % 16];
	while ((value /= 16) != 0);
	return add_text(out, size, used, digits + at);
}

/*
 * Returns the object's name and the address in it, NULL when it is not ours. Takes no lock,
 * allocates nothing.
 */
static const char *ours(uintptr_t address, uintptr_t *out_offset)
{
	struct dl_find_object object;
	const char *name;

	if (_dl_find_object((void *)address, &object) != 0) /* NOLINT: an address of code */
		return NULL;
	name = object.dlfo_link_map->l_name;
	*out_offset = address - object.dlfo_link_map->l_addr;
	if (*name == '\0')
		return program_invocation_short_name;
	if (strncmp(name, root, strlen(root)) != 0 ||
	    strncmp(name, tests_folder, strlen(tests_folder)) == 0)
		return NULL;
	return name + strlen(root);
}

/* Beside every wrapper; nothing stays open. */
static void note(const char *word, const char *site)
{
	char line[600];
	int fd;
	size_t used = add_text(line, sizeof(line) - 1, 0, word);

	used = add_text(line, sizeof(line) - 1, used, site);
	line[used++] = '\n';
	fd = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
			  0644);
	(void)syscall(SYS_write, fd, line, used);
	(void)syscall(SYS_close, fd);
}

static bool is_new(const char *site)
{
	uint64_t hash = 14695981039346656037u, none;

	for (const char *c = site; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	hash |= 1;
	for (size_t i = 0; i < SEEN; i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&seen[(hash + i) % SEEN], &none, hash))
			return true;
		if (none == hash)
			return false;
	}
	return false;
}

/* Whether the call that returns to `address`, made in the frame that `frame` points to, fails. */
static bool strikes(const char *function, uintptr_t address, const uintptr_t *frame)
{
	char site[512];
	const char *object;
	uintptr_t offset, below = (uintptr_t)__builtin_frame_address(0);
	size_t used;
	int saved = errno;

	object = ours(address, &offset);
	if (object == NULL)
		return false;
	used = add_text(site, sizeof(site), 0, function);
	for (int i = 0; i < depth && object != NULL; i++) {
		used = add_text(site, sizeof(site), used, i == 0 ? " " : ",");
		used = add_text(site, sizeof(site), used, object);
		used = add_text(site, sizeof(site), used, "+");
		used = add_hex(site, sizeof(site), used, offset);
		if ((uintptr_t)frame % 8 != 0 || (uintptr_t)frame - below > FRAMES_BYTES)
			break;
		below = (uintptr_t)frame;
		object = ours(frame[1], &offset);
		frame = (const uintptr_t *)frame[0];
	}
	if (is_new(site))
		note("", site);
	errno = saved;
	if (strcmp(site, wanted) != 0 || atomic_fetch_sub(&left_to_skip, 1) != 0)
		return false;
	note("failed ", site);
	return true;
}

/*
 * In each wrapper: the frame pointer of its caller lies at the begin of its own frame. (A caller
 * that jumped instead of calling has left already; then it is the frame of the caller's caller, and
 * so is the return address.)
 */
#define STRIKES(function)                                                                          \
	(__builtin_expect(is_on, 0) &&                                                             \
	 strikes(function, (uintptr_t)__builtin_return_address(0),                                 \
		 (const uintptr_t *)*(const uintptr_t *)__builtin_frame_address(0)))

#define REAL(name)                                                                                 \
	static typeof(name) *_Atomic real_pointer;                                                 \
	typeof(name) *real = real_pointer;                                                         \
                                                                                                   \
	if (real == NULL)                                                                          \
	real_pointer = real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

#define WRAP(type, name, failure, number, parameters, arguments)                                   \
	EXPORT type name parameters                                                                \
	{                                                                                          \
		REAL(name);                                                                        \
		if (STRIKES(#name)) {                                                              \
			errno = number;                                                            \
			return failure;                                                            \
		}                                                                                  \
		return real arguments;                                                             \
	}

WRAP(void *, malloc, NULL, ENOMEM, (size_t size), (size))
WRAP(void *, calloc, NULL, ENOMEM, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, NULL, ENOMEM, (void *memory, size_t size), (memory, size))
WRAP(char *, strdup, NULL, ENOMEM, (const char *text), (text))
WRAP(FILE *, open_memstream, NULL, ENOMEM, (char **text, size_t *size), (text, size))
WRAP(ssize_t, send, -1, ECONNRESET, (int fd, const void *bytes, size_t size, int flags),
     (fd, bytes, size, flags))
WRAP(pid_t, fork, -1, EAGAIN, (void), ())
WRAP(int, memfd_create, -1, EMFILE, (const char *name, unsigned int flags), (name, flags))
WRAP(int, ftruncate, -1, ENOSPC, (int fd, off_t size), (fd, size))
WRAP(void *, mmap, MAP_FAILED, ENOMEM,
     (void *at, size_t size, int how, int flags, int fd, off_t offset),
     (at, size, how, flags, fd, offset))
WRAP(FILE *, fopen, NULL, EMFILE, (const char *path, const char *mode), (path, mode))
WRAP(DIR *, opendir, NULL, EMFILE, (const char *path), (path))
WRAP(int, pipe2, -1, EMFILE, (int fds[2], int flags), (fds, flags))
WRAP(int, socketpair, -1, EMFILE, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds))
WRAP(int, eventfd, -1, EMFILE, (unsigned int count, int flags), (count, flags))
WRAP(int, timerfd_create, -1, EMFILE, (clockid_t clock, int flags), (clock, flags))
WRAP(int, epoll_create1, -1, EMFILE, (int flags), (flags))
WRAP(int, epoll_ctl, -1, ENOSPC, (int set, int what, int fd, struct epoll_event *event),
     (set, what, fd, event))
WRAP(int, rename, -1, ENOSPC, (const char *from, const char *to), (from, to))
WRAP(int, dup2, -1, EMFILE, (int from, int to), (from, to))
WRAP(int, execve, -1, ENOMEM, (const char *path, char *const *arguments, char *const *environment),
     (path, arguments, environment))

/* To an eventfd it cannot fail: its counter is never near its end. */
static bool is_eventfd(int fd)
{
	char path[40] = "/proc/self/fd/", target[32] = "";
	int digits = 1;

	for (int rest = fd; rest >= 10; rest /= 10)
		digits++;
	for (int i = digits - 1, rest = fd; i >= 0; i--, rest /= 10)
		path[14 + i] = (char)('0' + rest % 10);
	return syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target) - 1) > 0 &&
	       strcmp(target, "anon_inode:[eventfd]") == 0;
}

EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
	REAL(write);
	if (is_on && !is_eventfd(fd) && STRIKES("write")) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, bytes, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	REAL(posix_memalign);
	return STRIKES("posix_memalign") ? ENOMEM : real(out, alignment, size);
}

EXPORT int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*fn)(void *),
			  void *arg)
{
	REAL(pthread_create);
	return STRIKES("pthread_create") ? EAGAIN : real(out, attributes, fn, arg);
}

/* What was buffered is lost, as on a full disk. */
EXPORT int fflush(FILE *file)
{
	REAL(fflush);
	if (!STRIKES("fflush"))
		return real(file);
	real(file);
	errno = ENOSPC;
	return EOF;
}

EXPORT int fclose(FILE *file)
{
	REAL(fclose);
	if (!STRIKES("fclose"))
		return real(file);
	real(file);
	errno = ENOSPC;
	return EOF;
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;
	REAL(open);

	va_start(args, flags);
	mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (STRIKES("open")) {
		errno = EMFILE;
		return -1;
	}
	return real(path, flags, mode);
}

/* dlerror() must know why: so what cannot be there is opened. */
EXPORT void *dlopen(const char *path, int flags)
{
	REAL(dlopen);
	return real(STRIKES("dlopen") ? "/nowhere/made to fail.so" : path, flags);
}

static void copy_env(char *out, size_t size, const char *name, const char *more)
{
	const char *text = getenv(name);

	add_text(out, size, add_text(out, size, 0, text != NULL ? text : ""), more);
}

__attribute__((constructor)) static void begin(void)
{
	const char *program = getenv("FAULT_PROGRAM"), *skip = getenv("FAULT_SKIP"),
		   *frames = getenv("FAULT_DEPTH");

	if (program == NULL || strcmp(program, program_invocation_short_name) != 0)
		return;
	copy_env(root, sizeof(root), "FAULT_ROOT", "/");
	copy_env(tests_folder, sizeof(tests_folder), "FAULT_ROOT", "/tests/");
	copy_env(wanted, sizeof(wanted), "FAULT_SITE", "");
	left_to_skip = skip != NULL ? atol(skip) : 0;
	copy_env(log_path, sizeof(log_path), "FAULT_LOG", "");
	depth = frames != NULL ? atoi(frames) : 1;
	is_on = true;
}
