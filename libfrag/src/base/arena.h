/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_ARENA_H
#define FRAGI_BASE_ARENA_H

#include <stddef.h>

#include <base/diag.h>

/*
 * Memory that is given back all at once. Zeroed, aligned to 16. Not thread-safe. A zeroed arena is
 * an empty one.
 */
struct fragi_arena {
	struct fragi_arena_block *blocks;
	size_t used_bytes;  /* handed out so far */
	size_t limit_bytes; /* 0: none; beyond it fragi_arena_alloc returns NULL */
};

/* NULL when memory is short */
FRAGI_API void *fragi_arena_alloc(struct fragi_arena *arena, size_t size);
/* text NULL: NULL */
FRAGI_API char *fragi_arena_strdup(struct fragi_arena *arena, const char *text);
FRAGI_API char *fragi_arena_strndup(struct fragi_arena *arena, const char *text, size_t length);
FRAGI_API char *fragi_arena_printf(struct fragi_arena *arena, const char *format, ...)
	FRAG_PRINTF(2, 3);
FRAGI_API void fragi_arena_fini(struct fragi_arena *arena);

#endif
