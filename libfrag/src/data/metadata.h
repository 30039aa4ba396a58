/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_METADATA_H
#define FRAGI_DATA_METADATA_H

#include <base/diag.h>
#include <frag/metadata.h>

/*
 * A dictionary is a handle on a reference-counted body, and a body holds references to immutable
 * items (a key and its value). So a copy of a dictionary costs one handle, and merging into an
 * empty dictionary only shares the body. Writing to a shared body copies it first.
 */

/* Returns NULL when memory is short. */
FRAGI_API struct frag_metadata *fragi_metadata_create(enum frag_metadata_policy policy);
enum frag_metadata_policy fragi_metadata_policy(const struct frag_metadata *metadata);
/* NULL is accepted. */
FRAGI_API void fragi_metadata_destroy(struct frag_metadata *metadata);
/* Returns a dictionary with the same policy that shares the content; NULL when memory is short. */
FRAGI_API struct frag_metadata *fragi_metadata_copy(const struct frag_metadata *metadata);
/*
 * Merges all keys of src into dst, under dst's policy, or none.
 * - src: NULL: empty
 * - out_key: receives the key that both have with -EEXIST, borrowed from src; NULL is accepted
 * Returns 0; -EEXIST: both have a key and the policy is raise; -E2BIG; -ENOMEM.
 */
FRAGI_API int fragi_metadata_merge(struct frag_metadata *dst, const struct frag_metadata *src,
				   const char **out_key);

/* Reads the i-th entry in order, for encoding. Returns its key; NULL beyond the last. */
const char *fragi_metadata_at(const struct frag_metadata *metadata, uint32_t i,
			      const struct frag_type **out_type, const void **out_value,
			      size_t *out_size);
/*
 * Appends a key with a zeroed value of `size` bytes, whatever the policy. The caller fills in
 * *out_value before the dictionary is shared. Returns 0; -EEXIST; -EINVAL: the key is not a valid
 * name; -E2BIG; -ENOMEM.
 */
int fragi_metadata_append(struct frag_metadata *metadata, const char *key, size_t key_length,
			  const struct frag_type *type, size_t size, void **out_value);

#endif
