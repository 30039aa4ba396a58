/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_ALLOC_H
#define FRAGI_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * The heap, as all of libfrag takes from it: libc's functions with a fault point in front, so that
 * a test can walk a function through every failure of memory. Memory is given back with fragi_free.
 */
FRAGI_API void *fragi_malloc(size_t size);
FRAGI_API void *fragi_calloc(size_t count, size_t size);
FRAGI_API void *fragi_realloc(void *memory, size_t size);
/* alignment: a power of two, at least sizeof(void *). */
FRAGI_API void *fragi_aligned_alloc(size_t alignment, size_t size);
FRAGI_API char *fragi_strdup(const char *text);
FRAGI_API void fragi_free(void *memory);

/*
 * The same fault point, for allocators that cut pieces from blocks of the heap: whether this piece
 * is to fail.
 */
FRAGI_API bool fragi_alloc_fails(void);

/*
 * For tests: lets `skip` allocations of this process succeed, then fails the next `repeat`
 * (INT64_MAX: all).
 */
FRAGI_API void fragi_alloc_fail_after(int64_t skip, int64_t repeat);
/* Ends it. Returns how many allocations failed since fragi_alloc_fail_after. */
FRAGI_API int64_t fragi_alloc_fail_off(void);

#endif
