// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <base/alloc.h>

#define CACHE_LINE 64u
#define HUGE_PAGE (2u << 20)

static _Atomic bool fault_armed;
static _Atomic int64_t fault_skip, fault_repeat, fault_hits;

static __attribute__((noinline, cold)) bool fault_strikes(void)
{
	if (atomic_fetch_sub(&fault_skip, 1) > 0)
		return false;
	if (atomic_fetch_sub(&fault_repeat, 1) <= 0)
		return false;
	atomic_fetch_add(&fault_hits, 1);
	return true;
}

static inline bool fails(void)
{
	return __builtin_expect(atomic_load_explicit(&fault_armed, memory_order_relaxed), 0) &&
	       fault_strikes();
}

bool fragi_alloc_fails(void)
{
	return fails();
}

void *fragi_malloc(size_t size)
{
	return fails() ? NULL : malloc(size);
}

void *fragi_calloc(size_t count, size_t size)
{
	return fails() ? NULL : calloc(count, size);
}

void *fragi_realloc(void *memory, size_t size)
{
	return fails() ? NULL : realloc(memory, size);
}

void *fragi_aligned_alloc(size_t alignment, size_t size)
{
	void *memory = NULL;

	if (fails() || posix_memalign(&memory, alignment, size) != 0)
		return NULL;
	return memory;
}

void *fragi_bulk_alloc(size_t size)
{
	void *memory = fragi_aligned_alloc(size < HUGE_PAGE ? CACHE_LINE : HUGE_PAGE, size);

	if (memory != NULL && size >= HUGE_PAGE)
		(void)madvise(memory, size, MADV_HUGEPAGE); /* a kernel without them says no */
	return memory;
}

char *fragi_strdup(const char *text)
{
	return fails() ? NULL : strdup(text);
}

void fragi_free(void *memory)
{
	free(memory);
}

void fragi_alloc_fail_after(int64_t skip, int64_t repeat)
{
	atomic_store(&fault_armed, false);
	atomic_store(&fault_skip, skip);
	atomic_store(&fault_repeat, repeat);
	atomic_store(&fault_hits, 0);
	atomic_store(&fault_armed, true);
}

int64_t fragi_alloc_fail_off(void)
{
	atomic_store(&fault_armed, false);
	return atomic_load(&fault_hits);
}
