/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STRMAP_H
#define FRAGI_BASE_STRMAP_H

#include <stddef.h>

#include <base/diag.h>

/*
 * A hash map from text to pointer, for names while a graph is built. Keys are borrowed. Zeroed: an
 * empty map.
 */
struct fragi_strmap {
	struct fragi_strmap_slot *slots;
	size_t count;
	size_t capacity; /* a power of two, or 0 */
};

/* NULL: not there */
FRAGI_API void *fragi_strmap_get(const struct fragi_strmap *map, const char *key);
/* Returns 0, -EEXIST (unchanged), -ENOMEM. value must not be NULL. */
FRAGI_API int fragi_strmap_put(struct fragi_strmap *map, const char *key, void *value);
/* Room for `more` keys: fragi_strmap_put does not fail for want of memory until they are in. */
FRAGI_API int fragi_strmap_reserve(struct fragi_strmap *map, size_t more);
FRAGI_API void fragi_strmap_fini(struct fragi_strmap *map);

#endif
