// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>

#ifdef __SANITIZE_ADDRESS__
#define ARENA_ASAN 1
#elif defined(__has_feature)
#define ARENA_ASAN __has_feature(address_sanitizer)
#else
#define ARENA_ASAN 0
#endif

/* Under AddressSanitizer the gaps between the pieces of a block are poisoned. */
#if ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define ARENA_GAP ((size_t)ARENA_ALIGN)
#define arena_forbid(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define arena_allow(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define ARENA_GAP ((size_t)0)
#define arena_forbid(at, size) ((void)(at), (void)(size))
#define arena_allow(at, size) ((void)(at), (void)(size))
#endif

#define ARENA_ALIGN 16u
#define BLOCK_MIN ((size_t)4096)
#define BLOCK_MAX ((size_t)65536)

struct fragi_arena_block {
	struct fragi_arena_block *next;
	size_t size, used; /* in bytes */
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

/*
 * Adds a block with room for `size` bytes. A block that is larger than usual goes behind the first
 * one, which may still have room.
 */
static struct fragi_arena_block *arena_grow(struct fragi_arena *arena, size_t size)
{
	struct fragi_arena_block *first = arena->blocks, *block;
	size_t usual = first == NULL             ? BLOCK_MIN
		       : first->size < BLOCK_MAX ? first->size * 2
						 : BLOCK_MAX;
	size_t block_size = size > usual ? size : usual;

	if (block_size > SIZE_MAX - sizeof(*block))
		return NULL;
	block = fragi_calloc(1, sizeof(*block) + block_size);
	if (block == NULL)
		return NULL;
	block->size = block_size;
	arena_forbid(block->bytes, block_size);
	if (first != NULL && size > usual) {
		block->next = first->next;
		first->next = block;
	} else {
		block->next = first;
		arena->blocks = block;
	}
	return block;
}

/* Bytes to leave out so that the next piece of a block is aligned. */
static size_t arena_pad(const struct fragi_arena_block *block, size_t alignment)
{
	return -(uintptr_t)(block->bytes + block->used) & (alignment - 1);
}

void *fragi_arena_alloc_aligned(struct fragi_arena *arena, size_t alignment, size_t size)
{
	struct fragi_arena_block *block = arena->blocks;
	size_t wanted = size;
	void *memory;

	assert(alignment >= ARENA_ALIGN && (alignment & (alignment - 1)) == 0);
	if (fragi_alloc_fails() || size > SIZE_MAX - 2 * alignment - ARENA_ALIGN)
		return NULL;
	size = size == 0 ? ARENA_ALIGN : (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	if (arena->limit_bytes != 0 &&
	    (size > arena->limit_bytes || arena->used_bytes > arena->limit_bytes - size))
		return NULL;
	if (block == NULL ||
	    block->size - block->used < arena_pad(block, alignment) + size + ARENA_GAP)
		block = arena_grow(arena, size + ARENA_GAP + (alignment - ARENA_ALIGN));
	if (block == NULL)
		return NULL;
	block->used += arena_pad(block, alignment);
	memory = block->bytes + block->used;
	arena_allow(memory, wanted);
	block->used += size + ARENA_GAP;
	arena->used_bytes += size;
	return memory;
}

void *fragi_arena_alloc(struct fragi_arena *arena, size_t size)
{
	return fragi_arena_alloc_aligned(arena, ARENA_ALIGN, size);
}

char *fragi_arena_strndup(struct fragi_arena *arena, const char *text, size_t length)
{
	char *copy;

	if (text == NULL || length == SIZE_MAX)
		return NULL;
	length = strnlen(text, length);
	copy = fragi_arena_alloc(arena, length + 1);
	if (copy != NULL)
		memcpy(copy, text, length);
	return copy;
}

char *fragi_arena_strdup(struct fragi_arena *arena, const char *text)
{
	return text == NULL ? NULL : fragi_arena_strndup(arena, text, strlen(text));
}

/* Most texts are short: they are formatted once, and not only to learn how long they are. */
char *fragi_arena_printf(struct fragi_arena *arena, const char *format, ...)
{
	char shorter[256], *text;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(shorter, sizeof(shorter), format, args);
	va_end(args);
	if (n < 0)
		return NULL;
	if ((size_t)n < sizeof(shorter))
		return fragi_arena_strndup(arena, shorter, (size_t)n);
	text = fragi_arena_alloc(arena, (size_t)n + 1);
	if (text == NULL)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)n + 1, format, args);
	va_end(args);
	return text;
}

char *fragi_arena_path(struct fragi_arena *arena, const char *folder, const char *path)
{
	if (path == NULL || path[0] == '/' || path[0] == '\0' || folder == NULL)
		return fragi_arena_strdup(arena, path);
	return fragi_arena_printf(arena, "%s/%s", folder, path);
}

void fragi_arena_wipe(struct fragi_arena *arena)
{
	for (struct fragi_arena_block *block = arena->blocks; block != NULL; block = block->next) {
		arena_allow(block->bytes, block->used);
		explicit_bzero(block->bytes, block->used);
	}
	fragi_arena_fini(arena);
}

void fragi_arena_fini(struct fragi_arena *arena)
{
	struct fragi_arena_block *block = arena->blocks, *next;

	for (; block != NULL; block = next) {
		next = block->next;
		arena_allow(block->bytes, block->size);
		fragi_free(block);
	}
	arena->blocks = NULL;
	arena->used_bytes = 0;
}
