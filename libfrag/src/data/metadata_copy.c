// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/codec.h>
#include <data/metadata.h>

/* Dictionaries that belong to an operator, and their copies. */

static int given(struct frag_metadata *metadata, struct frag_metadata **out)
{
	if (metadata == NULL)
		return -ENOMEM;
	*out = metadata;
	return 0;
}

int frag_metadata_create(enum frag_metadata_policy policy, struct frag_metadata **out)
{
	if (policy < FRAG_METADATA_DEFAULT || policy > FRAG_METADATA_RAISE)
		return -EINVAL;
	return given(fragi_metadata_create(policy), out);
}

void frag_metadata_destroy(struct frag_metadata *metadata)
{
	fragi_metadata_destroy(metadata);
}

int frag_metadata_copy(const struct frag_metadata *metadata, struct frag_metadata **out)
{
	return given(fragi_metadata_copy(metadata), out);
}

int frag_metadata_update(struct frag_metadata *metadata, const struct frag_metadata *other)
{
	return fragi_metadata_merge(metadata, other, NULL);
}

/* Whether a value is only its bytes. */
static bool is_flat(const struct frag_type *type)
{
	return type->fini == NULL;
}

/*
 * Copies a value into zeroed memory of the same size. One that owns other memory is copied as it
 * would be for another process.
 */
static int value_copy(const struct frag_type *type, const void *value, size_t size, void *to)
{
	const struct fragi_type_info *info = fragi_type_resolve(type);
	struct frag_writer writer = {.limit = FRAGI_DECODED_MAX};
	int r;

	if (is_flat(type)) {
		memcpy(to, value, size);
		return 0;
	}
	if (info == NULL || !fragi_type_info_has_codec(info))
		return -ENOTSUP;
	r = fragi_value_encode(info, value, size, &writer);
	if (r == 0)
		r = fragi_value_decode(info, writer.bytes, writer.size, to, size);
	fragi_free(writer.bytes);
	return r;
}

int frag_metadata_deep_copy(const struct frag_metadata *metadata, struct frag_metadata **out)
{
	struct frag_metadata *copy = fragi_metadata_create(fragi_metadata_policy(metadata));
	uint32_t count = frag_metadata_count(metadata);
	const struct frag_type *type;
	const void *value;
	const char *key;
	void *to;
	size_t size;
	int r = 0;

	if (copy == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && r == 0; i++) {
		key = fragi_metadata_at(metadata, i, &type, &value, &size);
		r = fragi_metadata_append(copy, key, strlen(key), type, size, &to);
		if (r == 0)
			r = value_copy(type, value, size, to);
	}
	if (r < 0) {
		fragi_metadata_destroy(copy);
		return r;
	}
	*out = copy;
	return 0;
}
