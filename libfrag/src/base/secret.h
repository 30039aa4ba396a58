/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_SECRET_H
#define FRAGI_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * Memory for keys. Each block has pages of its own: they are not written into core files, a child
 * of fork reads zeros there, and they stay out of the swap space where RLIMIT_MEMLOCK allows it. A
 * debugger of the same user still reads them. What is copied elsewhere is for the copier to wipe
 * (explicit_bzero).
 */

/* Returns zeroed memory of `size` bytes (1 or more), for fragi_secret_free to free; or NULL. */
FRAGI_API void *fragi_secret_alloc(size_t size);
/* Wipes and unmaps it. size: as it was allocated. NULL: nothing. */
FRAGI_API void fragi_secret_free(void *secret, size_t size);
/* Whether they are equal; takes as long for equal bytes as for any others. */
FRAGI_API bool fragi_secret_equal(const void *a, const void *b, size_t size);

#endif
