/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_METADATA_H
#define FRAG_METADATA_H

#include <frag/type.h>

FRAG_BEGIN_DECLS

/*
 * A dictionary of typed values that travels with messages. The metadata of every message that an
 * operator receives in a tick is merged into the tick's dictionary, under the operator's policy.
 * Each emit sends the dictionary as it is at that moment. The keys keep their order. (Semantics:
 * Holoscan SDK user guide, "Dynamic Application Metadata".)
 */
struct frag_metadata;

/* What setting a key does when the key is there already. */
enum frag_metadata_policy {
	/* as FRAG_METADATA_RAISE */
	FRAG_METADATA_DEFAULT = 0,
	/* the new value replaces the old one, and the key moves to the end */
	FRAG_METADATA_UPDATE = 1,
	/* the new value replaces the old one, and the key keeps its position */
	FRAG_METADATA_INPLACE_UPDATE = 2,
	/* the old value stays */
	FRAG_METADATA_REJECT = 3,
	/* the call fails with -EEXIST */
	FRAG_METADATA_RAISE = 4,
};

/* The most keys of one dictionary. */
#define FRAG_METADATA_KEYS_MAX 1024

/*
 * Sets a key to a copy of a value, under the policy of the dictionary.
 * - key: 1 to FRAG_NAME_MAX bytes
 * - type: of the value
 * - value: its bytes; with type "string" a text that ends with a NUL
 * - size: bytes of the value, as frag_message_set_value wants them; ignored with type "string"
 * Where the type has a fini, the dictionary takes what the value holds when the call succeeds, and
 * leaves it to the caller when it fails.
 * Returns 0; -EEXIST: the key is there and the policy is raise; -EINVAL: the key is not a valid
 * name, or the size is wrong; -E2BIG: more than FRAG_METADATA_KEYS_MAX keys; -ENOMEM.
 * Thread: the tick's. Blocks: no. RT-safe: no (it allocates).
 */
FRAG_API int frag_metadata_set(struct frag_metadata *metadata, const char *key,
			       const struct frag_type *type, const void *value, size_t size);
/* The same with a value of type "bool", "i64", "f64" or "string". */
FRAG_API int frag_metadata_set_bool(struct frag_metadata *metadata, const char *key, int value);
FRAG_API int frag_metadata_set_i64(struct frag_metadata *metadata, const char *key, int64_t value);
FRAG_API int frag_metadata_set_f64(struct frag_metadata *metadata, const char *key, double value);
FRAG_API int frag_metadata_set_string(struct frag_metadata *metadata, const char *key,
				      const char *value);

/*
 * Reads a key.
 * - out_type, out_value, out_size: receive the value's type, address and size in bytes; each may be
 *   NULL. The value is borrowed until the dictionary is changed or the tick ends.
 * Returns 0; -ENOENT: there is no such key.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_metadata_get(const struct frag_metadata *metadata, const char *key,
			       const struct frag_type **out_type, const void **out_value,
			       size_t *out_size);
/*
 * Reads a key that holds a value of type "bool", "i64", "f64" or "string" into *out_value, which
 * must not be NULL. A text is borrowed as above.
 * Returns 0; -ENOENT: there is no such key; -EPROTOTYPE: the value is of another type.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_metadata_get_bool(const struct frag_metadata *metadata, const char *key,
				    int *out_value);
FRAG_API int frag_metadata_get_i64(const struct frag_metadata *metadata, const char *key,
				   int64_t *out_value);
FRAG_API int frag_metadata_get_f64(const struct frag_metadata *metadata, const char *key,
				   double *out_value);
FRAG_API int frag_metadata_get_string(const struct frag_metadata *metadata, const char *key,
				      const char **out_value);

/* Returns 1 when the key is there, else 0. Thread: the tick's. Blocks: no. RT-safe: yes. */
FRAG_API int frag_metadata_has(const struct frag_metadata *metadata, const char *key);
/*
 * Removes a key. Returns 0; -ENOENT: there is no such key; -ENOMEM: the content is shared with a
 * message and could not be copied. Thread: the tick's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_metadata_erase(struct frag_metadata *metadata, const char *key);
/* Removes all keys. Thread: the tick's. Blocks: no. RT-safe: no (it frees). */
FRAG_API void frag_metadata_clear(struct frag_metadata *metadata);
/* Returns the number of keys. Thread: the tick's. Blocks: no. RT-safe: yes. */
FRAG_API uint32_t frag_metadata_count(const struct frag_metadata *metadata);
/*
 * Returns the i-th key in order, from 0, borrowed as the values are; NULL beyond the last.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_metadata_key(const struct frag_metadata *metadata, uint32_t i);

FRAG_END_DECLS

#endif
