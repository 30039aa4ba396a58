/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_METADATA_H
#define FRAG_METADATA_H

#include <frag/tensor.h>
#include <frag/type.h>

FRAG_BEGIN_DECLS

/*
 * A dictionary of typed values that travels with messages. The metadata of every message that an
 * operator receives in a tick is merged into the tick's dictionary, under the operator's policy.
 * Each emit sends the dictionary as it is at that moment. The keys keep their order. (Semantics:
 * Holoscan SDK user guide, "Dynamic Application Metadata".)
 */
struct frag_metadata;

/* The effect of setting a key that is there already. */
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
/* Set a value of type "bool", "i64", "f64" or "string"; otherwise as frag_metadata_set. */
FRAG_API int frag_metadata_set_bool(struct frag_metadata *metadata, const char *key, int value);
FRAG_API int frag_metadata_set_i64(struct frag_metadata *metadata, const char *key, int64_t value);
FRAG_API int frag_metadata_set_f64(struct frag_metadata *metadata, const char *key, double value);
FRAG_API int frag_metadata_set_string(struct frag_metadata *metadata, const char *key,
				      const char *value);
/*
 * Sets a tensor, whose data is immutable from now on; otherwise as frag_metadata_set.
 * - tensor: takes the reference, also on failure
 * To another process a tensor travels with the message's descriptors, which are 64 MiB at most
 * together; larger tensors belong into the message. -EINVAL also: tensor is NULL.
 */
FRAG_API int frag_metadata_set_tensor(struct frag_metadata *metadata, const char *key,
				      struct frag_tensor *tensor);

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
/*
 * Reads a key that holds a tensor, which is borrowed as above; frag_tensor_ref keeps it.
 * Returns 0; -ENOENT: there is no such key; -EPROTOTYPE: the value is of another type.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_metadata_get_tensor(const struct frag_metadata *metadata, const char *key,
				      struct frag_tensor **out_value);
/*
 * Get a value as above, or `otherwise` if there is no such key. A text that is given as `otherwise`
 * must be valid as long as the result is used.
 * Returns 0, also when there is no such key; -EPROTOTYPE: the value is of another type.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_metadata_get_bool_or(const struct frag_metadata *metadata, const char *key,
				       int otherwise, int *out_value);
FRAG_API int frag_metadata_get_i64_or(const struct frag_metadata *metadata, const char *key,
				      int64_t otherwise, int64_t *out_value);
FRAG_API int frag_metadata_get_f64_or(const struct frag_metadata *metadata, const char *key,
				      double otherwise, double *out_value);
FRAG_API int frag_metadata_get_string_or(const struct frag_metadata *metadata, const char *key,
					 const char *otherwise, const char **out_value);

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

/*
 * Dictionaries of an operator's own, for example to keep what it received for a later tick. Each is
 * used by one thread at a time.
 *
 * frag_metadata_create makes an empty one.
 * frag_metadata_copy makes one that shares the content with another one. What either of them is
 * set to later does not show in the other: the first change copies the list of keys, once.
 * frag_metadata_deep_copy makes one that shares nothing: every value is copied, with the data of
 * tensors. -ENOTSUP: a value has a fini and no codec, or a tensor lies in memory of a device.
 * Both copies have the policy of the original.
 * - out: receives the dictionary, to be destroyed
 * frag_metadata_update sets all keys of another one, under the policy of metadata, or none:
 * -EEXIST, -E2BIG as frag_metadata_set.
 * All return 0; -EINVAL: the policy is none; -ENOMEM.
 * frag_metadata_destroy frees one; NULL is accepted. That of a tick is not the operator's to free.
 * Thread: any, one at a time. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_metadata_create(enum frag_metadata_policy policy, struct frag_metadata **out);
FRAG_API int frag_metadata_copy(const struct frag_metadata *metadata, struct frag_metadata **out);
FRAG_API int frag_metadata_deep_copy(const struct frag_metadata *metadata,
				     struct frag_metadata **out);
FRAG_API int frag_metadata_update(struct frag_metadata *metadata,
				  const struct frag_metadata *other);
FRAG_API void frag_metadata_destroy(struct frag_metadata *metadata);
/*
 * Returns how many times a change of this dictionary had to copy content that it shared with a
 * message or a copy, since it was made. A dictionary of a tick lives as long as its operator.
 * Thread: the dictionary's. Blocks: no. RT-safe: yes.
 */
FRAG_API uint64_t frag_metadata_copies(const struct frag_metadata *metadata);

FRAG_END_DECLS

#endif
