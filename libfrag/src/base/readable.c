// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/readable.h>

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD 8u          /* the kernel's signal set */
#define HOW_INVALID (~0) /* the set is read first, and then refused */

static bool is_readable(uintptr_t address)
{
	int saved = errno;
	bool readable = syscall(SYS_rt_sigprocmask, HOW_INVALID, address & ~(uintptr_t)(WORD - 1),
				NULL, (size_t)WORD) == 0 ||
			errno != EFAULT;

	errno = saved;
	return readable;
}

bool fragi_memory_is_readable(const void *start, size_t size)
{
	uintptr_t first = (uintptr_t)start;

	if (size == 0)
		return true;
	if (first < WORD || size > UINTPTR_MAX - first) /* a NULL set would not be read */
		return false;
	return is_readable(first) && is_readable(first + size - 1);
}
