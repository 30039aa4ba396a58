/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_METADATA_H
#define FRAGI_DATA_METADATA_H

#include <base/diag.h>
#include <frag/metadata.h>

/*
 * A dictionary is a handle on a reference-counted body, and a body holds references to immutable
 * items (a key and its value). So copying one costs the handle only, taking over another's content
 * into an empty one costs nothing, and whoever writes to a body that others see gets a body of its
 * own first.
 */

/* Returns NULL when memory is short. */
FRAGI_API struct frag_metadata *fragi_metadata_create(enum frag_metadata_policy policy);
/* NULL is accepted. */
FRAGI_API void fragi_metadata_destroy(struct frag_metadata *metadata);
/*
 * A dictionary with the same content and policy; NULL when memory is short. Does not copy the
 * content.
 */
FRAGI_API struct frag_metadata *fragi_metadata_copy(const struct frag_metadata *metadata);
/*
 * Merges all of src (may be NULL) into dst under dst's policy, wholly or not at all. Returns 0;
 * -EEXIST under raise, *out_key (may be NULL) then names the key that both have, in src's memory;
 * -E2BIG; -ENOMEM.
 */
FRAGI_API int fragi_metadata_merge(struct frag_metadata *dst, const struct frag_metadata *src,
				   const char **out_key);

/* The i-th entry in order, for encoding. Returns its key, NULL beyond the last. */
const char *fragi_metadata_at(const struct frag_metadata *metadata, uint32_t i,
			      const struct frag_type **out_type, const void **out_value,
			      size_t *out_size);
/*
 * Appends a zeroed value of `size` bytes under key, whatever the policy; the caller fills in
 * *out_value before anybody else sees the dictionary. Returns 0, -EEXIST, -EINVAL (no key), -E2BIG,
 * -ENOMEM.
 */
int fragi_metadata_append(struct frag_metadata *metadata, const char *key, size_t key_length,
			  const struct frag_type *type, size_t size, void **out_value);

#endif
