/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_ARENA_H
#define FRAGI_BASE_ARENA_H

#include <stddef.h>

#include <base/diag.h>

/*
 * An arena: memory that is freed all at once. Its pieces are zeroed and aligned to 16 bytes. It is
 * not thread-safe. A zeroed struct is an empty arena.
 */
struct fragi_arena {
	struct fragi_arena_block *blocks;
	size_t used_bytes;  /* of all pieces so far */
	size_t limit_bytes; /* of used_bytes: an allocation beyond it fails; 0: no limit */
};

/* Returns NULL when memory is short or the limit is reached. */
FRAGI_API void *fragi_arena_alloc(struct fragi_arena *arena, size_t size);
/* The same, aligned to more than 16 bytes: to a power of two. */
FRAGI_API void *fragi_arena_alloc_aligned(struct fragi_arena *arena, size_t alignment, size_t size);
/* The same for a copy of a text. A NULL text gives NULL. */
FRAGI_API char *fragi_arena_strdup(struct fragi_arena *arena, const char *text);
FRAGI_API char *fragi_arena_strndup(struct fragi_arena *arena, const char *text, size_t length);
FRAGI_API char *fragi_arena_printf(struct fragi_arena *arena, const char *format, ...)
	FRAG_PRINTF(2, 3);
/* A copy of a path; a relative one, unless it is "", starts in the folder. NULL: it stays relative. */
FRAGI_API char *fragi_arena_path(struct fragi_arena *arena, const char *folder, const char *path);
FRAGI_API void fragi_arena_fini(struct fragi_arena *arena);
/* The same for an arena that has held secrets: what was in it is overwritten first. */
FRAGI_API void fragi_arena_wipe(struct fragi_arena *arena);

#endif
