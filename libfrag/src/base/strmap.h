/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STRMAP_H
#define FRAGI_BASE_STRMAP_H

#include <stddef.h>

#include <base/diag.h>

/*
 * A hash map from text to pointer, for names while a graph is built. Keys are borrowed as long as
 * the map lives. A zeroed struct is an empty map.
 */
struct fragi_strmap {
	struct fragi_strmap_slot *slots;
	size_t count;
	size_t capacity; /* a power of two, or 0 */
};

/* Returns the value of key; NULL when it is not there. */
FRAGI_API void *fragi_strmap_get(const struct fragi_strmap *map, const char *key);
/* Adds a key. value must not be NULL. Returns 0; -EEXIST: the map is unchanged; -ENOMEM. */
FRAGI_API int fragi_strmap_put(struct fragi_strmap *map, const char *key, void *value);
/*
 * Makes room for `more` keys, so that fragi_strmap_put cannot return -ENOMEM for that many new
 * keys.
 * Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_strmap_reserve(struct fragi_strmap *map, size_t more);
FRAGI_API void fragi_strmap_fini(struct fragi_strmap *map);

#endif
