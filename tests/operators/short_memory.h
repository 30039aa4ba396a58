/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_SHORT_MEMORY_H
#define TESTS_OPERATORS_SHORT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Memory of the operators' objects, linked with --wrap: one allocation fails, and what is kept
 * shows.
 */
#define LIVE_MAX 4096
static struct {
	bool is_on;
	int until; /* the call that fails; 0: none, and nothing is counted */
	int calls;
	void *live[LIVE_MAX];
} memory;

/* The linker takes a sanitizer's library for one that calls them. */
#define VISIBLE __attribute__((visibility("default")))
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *p);
VISIBLE void *__wrap_malloc(size_t size);
VISIBLE void *__wrap_calloc(size_t count, size_t size);
VISIBLE void *__wrap_realloc(void *old, size_t size);
VISIBLE char *__wrap_strdup(const char *text);
VISIBLE void __wrap_free(void *p);

static bool is_short(void)
{
	return memory.is_on && ++memory.calls == memory.until;
}

static void *live(void *made)
{
	for (size_t i = 0; memory.is_on && made != NULL && i < LIVE_MAX; i++)
		if (memory.live[i] == NULL) {
			memory.live[i] = made;
			break;
		}
	return made;
}

static void forget(const void *p)
{
	for (size_t i = 0; p != NULL && i < LIVE_MAX; i++)
		if (memory.live[i] == p) {
			memory.live[i] = NULL;
			break;
		}
}

void *__wrap_malloc(size_t size)
{
	return is_short() ? NULL : live(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_short() ? NULL : live(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	if (is_short())
		return NULL;
	forget(old);
	return live(__real_realloc(old, size));
}

char *__wrap_strdup(const char *text)
{
	return is_short() ? NULL : live(__real_strdup(text));
}

void __wrap_free(void *p)
{
	forget(p);
	__real_free(p);
}

#endif
