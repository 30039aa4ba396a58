/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_COLLECTION_H
#define FRAG_COLLECTION_H

#include <frag/type.h>

FRAG_BEGIN_DECLS

/*
 * Collections: nested arrays, and maps from texts. The name of a type may end in up to 4 of "[]"
 * (an array of that) and "{}" (a map from texts to that), read from left to right:
 * - "string[]": texts; "f64[][]": arrays of f64, each with its own number of elements
 * - "string{}": a map from text to text; "i64[]{}": a map from text to arrays of i64
 *
 * The elements are scalars, texts, bytes, plain structs, arrays of them, or collections. Only
 * "NAME[]" of a type of fixed size is none: its value is the C array.
 *
 * The value of a collection is one block of bytes without pointers. It may be copied, and be an
 * element of another collection. The functions below read it. To make one, add its elements to a
 * struct frag_collection, then pass what frag_collection_value returns to frag_tick_emit_value,
 * frag_message_set_value or frag_metadata_set. An array is built in its order. The keys of a map
 * are kept in the order of their bytes, each once.
 */

/*
 * Returns the number of elements.
 * - value: of a collection, aligned as a message aligns it
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API uint32_t frag_collection_count(const void *value);
/*
 * Returns the i-th element, from 0, borrowed as long as value is valid; NULL: there are not as
 * many. A text ends with a NUL; an array of a fixed type is a C array; a collection is read by
 * these functions.
 * - out_size: receives its bytes, of a text without the NUL; NULL is accepted
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const void *frag_collection_at(const void *value, uint32_t i, size_t *out_size);
/*
 * Returns the key of the i-th element of a map, borrowed likewise; NULL: there are not as many, or
 * it is an array. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_collection_key(const void *value, uint32_t i);
/*
 * Returns the element of a key of a map, as frag_collection_at does; NULL: it has no such key, or
 * is an array. Thread: any. Blocks: no. RT-safe: yes (it compares about log2(count) texts).
 */
FRAG_API const void *frag_collection_get(const void *value, const char *key, size_t *out_size);

/* A collection that is being built. */
struct frag_collection;

/* The most bytes of the value of a collection. */
#define FRAG_COLLECTION_BYTES_MAX (1u << 30)

/*
 * Begins an empty collection.
 * - type: name of its type, for example "f64[][]"
 * - out: receives the collection, to be destroyed
 * - err: receives the sentence; NULL is accepted
 * Returns 0; -EINVAL: no such type is registered, or it is no collection; -ENOMEM.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_collection_create(const char *type, struct frag_collection **out,
				    struct frag_err *err);
/* Frees it; NULL is accepted. Thread: any. Blocks: no. RT-safe: no. */
FRAG_API void frag_collection_destroy(struct frag_collection *collection);
/* Returns its type, to emit it with. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API const struct frag_type *frag_collection_type(const struct frag_collection *collection);
/*
 * Appends a copy of an element to an array.
 * - value: its bytes
 * - size: bytes of the element, as frag_message_set_value wants them (of a text without the NUL)
 * Returns 0; -EINVAL: it is a map, or an element cannot have this size; -EMSGSIZE: its elements
 * would have more than FRAG_COLLECTION_BYTES_MAX bytes together; -ENOMEM.
 * Thread: one at a time. Blocks: no. RT-safe: no (it allocates).
 */
FRAG_API int frag_collection_add(struct frag_collection *collection, const void *value,
				 size_t size);
/*
 * Sets a key of a map to a copy of a value. Of equal keys the last one counts.
 * - key: a text, which may be ""; copied
 * - value, size: as above
 * Returns 0; -EINVAL: it is an array, or an element cannot have this size; -EMSGSIZE, -ENOMEM: as
 * above. Thread: one at a time. Blocks: no. RT-safe: no (it allocates).
 */
FRAG_API int frag_collection_put(struct frag_collection *collection, const char *key,
				 const void *value, size_t size);
/*
 * Lays out the value.
 * - out_value, out_size: receive its address and its bytes, borrowed until the collection is
 *   changed or destroyed
 * Returns 0; -EMSGSIZE: it has more than FRAG_COLLECTION_BYTES_MAX bytes; -ENOMEM.
 * Thread: one at a time. Blocks: no. RT-safe: no (it allocates).
 */
FRAG_API int frag_collection_value(struct frag_collection *collection, const void **out_value,
				   size_t *out_size);
/* Removes all elements, and keeps the memory. Thread: one at a time. Blocks: no. RT-safe: yes. */
FRAG_API void frag_collection_clear(struct frag_collection *collection);

FRAG_END_DECLS

#endif
