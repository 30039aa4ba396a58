/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TYPE_H
#define FRAGI_DATA_TYPE_H

#include <stdbool.h>

#include <base/diag.h>
#include <frag/type.h>

/*
 * What the registry works out once about each registered type. Found by the table's address or by
 * the id without a lock and without comparing a string.
 */
enum fragi_type_kind {
	FRAGI_TYPE_SCALAR,
	FRAGI_TYPE_STRING,
	FRAGI_TYPE_BYTES,
	FRAGI_TYPE_ARRAY,
	FRAGI_TYPE_PLAIN,  /* a struct by its fields */
	FRAGI_TYPE_CUSTOM, /* has encode and decode */
	FRAGI_TYPE_OPAQUE, /* cannot leave its process */
};

struct fragi_type_info;

struct fragi_type_field {
	const struct fragi_type_info *of;
	uint32_t offset;
	uint32_t count;
};

struct fragi_type_info {
	const struct frag_type *type;
	uint64_t id;
	enum fragi_type_kind kind;
	/* Every pattern of the value's bytes is a value, and they travel as they lie in memory. */
	bool is_dense;
	uint32_t depth;                        /* of structs in structs */
	uint64_t wire_size;                    /* bytes of a value as it travels; 0: it varies */
	const struct fragi_type_info *element; /* of an array */
	const struct fragi_type_field *fields; /* of a plain struct */
	uint32_t field_count;
};

#define FRAGI_TYPE_ALIGN_MAX 64u
#define FRAGI_TYPE_FIELDS_MAX 1024u
#define FRAGI_TYPE_DEPTH_MAX 16u
#define FRAGI_TYPE_SIZE_MAX (1u << 30) /* bytes of one value, in memory and on the wire */

/* NULL for a type that is not registered. */
const struct fragi_type_info *fragi_type_info(const struct frag_type *type);
const struct fragi_type_info *fragi_type_info_by_id(uint64_t id);

static inline bool fragi_type_info_has_codec(const struct fragi_type_info *info)
{
	while (info->kind == FRAGI_TYPE_ARRAY)
		info = info->element;
	return info->kind != FRAGI_TYPE_OPAQUE;
}

/* Id of a registered type, never 0; 0 for one that is not registered. Kept, not computed. */
FRAGI_API uint64_t fragi_type_id(const struct frag_type *type);
/* The registered type with that id, NULL when there is none. No string is compared. */
FRAGI_API const struct frag_type *fragi_type_by_id(uint64_t id);
/* Whether values of the type can leave the process. */
FRAGI_API bool fragi_type_has_codec(const struct frag_type *type);

/* Whether a value of the type may have that many bytes: 0 or -EINVAL. */
int fragi_type_check_size(const struct frag_type *type, size_t size);
/* Frees what a value of size bytes holds: fini, of an array for each element. */
void fragi_value_fini(const struct frag_type *type, void *value, size_t size);

/* The fini of an array whose elements have one: tells fragi_value_fini to go through them. */
void fragi_array_fini(void *value);

static inline bool fragi_type_is_array(const struct frag_type *type)
{
	return type->size == 0 && type != &frag_type_string && type != &frag_type_bytes;
}

#endif
