/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_ALLOC_H
#define FRAGI_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * The heap functions that all of libfrag uses: those of libc, each with a fault point in front, so
 * that a test can make every single allocation of a function fail. Free the memory with fragi_free.
 */
FRAGI_API void *fragi_malloc(size_t size);
FRAGI_API void *fragi_calloc(size_t count, size_t size);
FRAGI_API void *fragi_realloc(void *memory, size_t size);
/* alignment: a power of two, at least sizeof(void *). */
FRAGI_API void *fragi_aligned_alloc(size_t alignment, size_t size);
/*
 * Memory for what messages carry, on a cache line of its own. From 2 MiB on it begins at a huge
 * page, and the kernel is asked for such pages: the first use of fresh memory then takes an eighth
 * of the time, and a copy in or out of the kernel some percent less.
 */
FRAGI_API void *fragi_bulk_alloc(size_t size);
FRAGI_API char *fragi_strdup(const char *text);
FRAGI_API void fragi_free(void *memory);

/*
 * The fault point alone, for allocators that cut pieces from larger blocks. Returns whether the
 * allocation of this piece must fail.
 */
FRAGI_API bool fragi_alloc_fails(void);

/*
 * For tests: the next `skip` allocations of this process succeed, then the next `repeat` fail
 * (INT64_MAX: all).
 */
FRAGI_API void fragi_alloc_fail_after(int64_t skip, int64_t repeat);
/* Stops that. Returns how many allocations failed since fragi_alloc_fail_after. */
FRAGI_API int64_t fragi_alloc_fail_off(void);

#endif
