/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_METADATA_H
#define FRAG_METADATA_H

#include <frag/type.h>

FRAG_BEGIN_DECLS

/*
 * A dictionary of typed values that travels with messages. What an operator receives is merged into
 * its tick's dictionary by the operator's policy, and that dictionary, as it then is, goes out with
 * every emit. (Semantics: Holoscan SDK, "Dynamic Application Metadata".)
 */
struct frag_metadata;

/* what happens to a key that is already there */
enum frag_metadata_policy {
	FRAG_METADATA_DEFAULT = 0,
	FRAG_METADATA_UPDATE = 1, /* the new value takes its place */
	/* the same; the key keeps its position */
	FRAG_METADATA_INPLACE_UPDATE = 2,
	FRAG_METADATA_REJECT = 3, /* the old value stays */
	FRAG_METADATA_RAISE = 4,  /* -EEXIST (the default) */
};

/* The most keys of one dictionary; one more is -E2BIG. */
#define FRAG_METADATA_KEYS_MAX 1024

/*
 * Sets key to a copy of value under the dictionary's policy; a value of type "string" is given by
 * its NUL-terminated text. Returns 0, -EEXIST (raise), -EINVAL (no name), -E2BIG, -ENOMEM. Thread:
 * the tick's. Blocks: no. RT-safe: no (allocates).
 */
FRAG_API int frag_metadata_set(struct frag_metadata *metadata, const char *key,
			       const struct frag_type *type, const void *value, size_t size);
FRAG_API int frag_metadata_set_bool(struct frag_metadata *metadata, const char *key, int value);
FRAG_API int frag_metadata_set_i64(struct frag_metadata *metadata, const char *key, int64_t value);
FRAG_API int frag_metadata_set_f64(struct frag_metadata *metadata, const char *key, double value);
FRAG_API int frag_metadata_set_string(struct frag_metadata *metadata, const char *key,
				      const char *value);

/*
 * Reads key. out_value points into the dictionary and is valid until it is changed or the tick
 * ends. Returns 0; -ENOENT when the key is not there; -EPROTOTYPE (typed forms) when it holds
 * another type. Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_metadata_get(const struct frag_metadata *metadata, const char *key,
			       const struct frag_type **out_type, const void **out_value,
			       size_t *out_size);
FRAG_API int frag_metadata_get_bool(const struct frag_metadata *metadata, const char *key,
				    int *out_value);
FRAG_API int frag_metadata_get_i64(const struct frag_metadata *metadata, const char *key,
				   int64_t *out_value);
FRAG_API int frag_metadata_get_f64(const struct frag_metadata *metadata, const char *key,
				   double *out_value);
FRAG_API int frag_metadata_get_string(const struct frag_metadata *metadata, const char *key,
				      const char **out_value);

/* 1 when key is there. */
FRAG_API int frag_metadata_has(const struct frag_metadata *metadata, const char *key);
/* Returns 0, or -ENOENT. */
FRAG_API int frag_metadata_erase(struct frag_metadata *metadata, const char *key);
FRAG_API void frag_metadata_clear(struct frag_metadata *metadata);
FRAG_API uint32_t frag_metadata_count(const struct frag_metadata *metadata);
/* The i-th key in insertion order, NULL beyond the last. */
FRAG_API const char *frag_metadata_key(const struct frag_metadata *metadata, uint32_t i);

FRAG_END_DECLS

#endif
