// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <var/variable.h>

/*
 * The seals: it cannot shrink, or a read beyond its end would kill the reader, and nobody can map
 * it for writing any more; the mapping of the process that made it is older and goes on.
 */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define SEALS_NEEDED (F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)
#define BYTES_MAX ((uint64_t)1 << 46)

_Static_assert(sizeof(struct fragi_variable_page) <= FRAGI_VARIABLE_DATA_AT, "the page");

void fragi_variable_memory_init(struct fragi_variable_memory *memory)
{
	*memory = (struct fragi_variable_memory){.fd = -1};
}

void fragi_variable_memory_fini(struct fragi_variable_memory *memory)
{
	size_t bytes = FRAGI_VARIABLE_DATA_AT + (size_t)memory->size;

	if (memory->own != NULL)
		munmap(memory->own, bytes);
	if (memory->page != NULL)
		munmap((void *)(uintptr_t)memory->page, bytes);
	if (memory->fd >= 0)
		close(memory->fd);
	fragi_variable_memory_init(memory);
}

/* What may be written at most: the machine's memory, or what the limits of this process leave. */
static uint64_t most_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 1u << 30;
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur / 2 < bytes)
		bytes = limit.rlim_cur / 2;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur / 16 < bytes)
		bytes = limit.rlim_cur / 16;
	return bytes;
}

static int map(struct fragi_variable_memory *memory, int protection, void **out_base)
{
	void *base = mmap(NULL, FRAGI_VARIABLE_DATA_AT + (size_t)memory->size, protection,
			  MAP_SHARED | MAP_NORESERVE, memory->fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	/* What others have is of no use in a core file, and would make it huge. */
	(void)madvise(base, FRAGI_VARIABLE_DATA_AT + (size_t)memory->size, MADV_DONTDUMP);
	*out_base = base;
	return 0;
}

int fragi_variable_memory_create(struct fragi_variable_memory *memory, uint64_t bytes)
{
	uint64_t most = most_bytes();
	void *own = NULL, *page = NULL;
	int r;

	if (bytes > most)
		return -EMSGSIZE;
	memory->size = bytes == 0 ? most : bytes;
	memory->fd = memfd_create("frag-variable", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = memory->fd < 0 || ftruncate(memory->fd,
					(off_t)(FRAGI_VARIABLE_DATA_AT + memory->size)) < 0
		    ? -errno
		    : map(memory, PROT_READ | PROT_WRITE, &own);
	if (r == 0) {
		memory->own = own;
		r = map(memory, PROT_READ, &page);
	}
	if (r == 0) {
		memory->page = page;
		r = fcntl(memory->fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
	}
	if (r < 0)
		fragi_variable_memory_fini(memory);
	return r;
}

int fragi_variable_memory_open(struct fragi_variable_memory *memory, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), r = -EBADMSG;
	struct statfs system;
	struct stat file;
	void *page = NULL;

	memory->fd = fd;
	/* Of other files, a page that is not there yet may kill the reader. */
	if (seals >= 0 && (seals & SEALS_NEEDED) == SEALS_NEEDED && fstatfs(fd, &system) == 0 &&
	    system.f_type == TMPFS_MAGIC && fstat(fd, &file) == 0 &&
	    file.st_size > FRAGI_VARIABLE_DATA_AT && (uint64_t)file.st_size < BYTES_MAX) {
		memory->size = (uint64_t)file.st_size - FRAGI_VARIABLE_DATA_AT;
		r = map(memory, PROT_READ, &page);
		memory->page = page;
	}
	if (r < 0)
		fragi_variable_memory_fini(memory);
	return r;
}

int fragi_variable_memory_reopen(const struct fragi_variable_memory *memory)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int fragi_variable_memory_lock(const struct fragi_variable_memory *memory, bool exclusive)
{
	int r;

	do
		r = flock(memory->fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

void fragi_variable_memory_unlock(const struct fragi_variable_memory *memory)
{
	(void)flock(memory->fd, LOCK_UN);
}

/* Not a private futex: the others are in other processes, and can only read it. */
static void futex(const _Atomic uint32_t *word, int operation, uint32_t value,
		  const struct timespec *timeout)
{
	syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void fragi_variable_memory_publish(struct fragi_variable_memory *memory, uint64_t version)
{
	atomic_store_explicit(&memory->own->version, version, memory_order_release);
	atomic_fetch_add_explicit(&memory->own->changes, 1, memory_order_release);
	futex(&memory->own->changes, FUTEX_WAKE, INT_MAX, NULL);
}

void fragi_variable_memory_wait(const struct fragi_variable_memory *memory, uint32_t changes,
				int64_t timeout_ns)
{
	const struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};

	futex(&memory->page->changes, FUTEX_WAIT, changes, &timeout);
}
