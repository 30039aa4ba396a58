/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ENGINE_CALLS_H
#define TESTS_ENGINE_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The calls of an engine of tests that may fail, and the objects that it has made and not got back.
 * Each engine exports one as engine_calls.
 */
struct engine_calls {
	int until; /* the call that fails; 0: none */
	atomic_int made;
	atomic_int live;
};

#ifdef ENGINE_OF_TESTS
__attribute__((visibility("default"))) extern struct engine_calls engine_calls;
struct engine_calls engine_calls;

static inline bool call_fails(void)
{
	return atomic_fetch_add(&engine_calls.made, 1) + 1 == engine_calls.until;
}

static inline void *create(size_t count, size_t size)
{
	void *object = calloc(count, size);

	if (object != NULL)
		atomic_fetch_add(&engine_calls.live, 1);
	return object;
}

static inline char *create_text(const char *text)
{
	char *copy = create(1, strlen(text) + 1);

	return copy != NULL ? strcpy(copy, text) : NULL;
}

static inline void release(void *object)
{
	if (object != NULL)
		atomic_fetch_sub(&engine_calls.live, 1);
	free(object);
}
#endif

#endif
