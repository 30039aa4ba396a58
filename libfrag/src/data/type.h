/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TYPE_H
#define FRAGI_DATA_TYPE_H

#include <stdbool.h>

#include <base/diag.h>
#include <frag/type.h>

/*
 * What the registry computes once for each registered type. It is found by the address of the table
 * or by the type id, without a lock and without comparing strings.
 */
enum fragi_type_kind {
	FRAGI_TYPE_SCALAR,
	FRAGI_TYPE_STRING,
	FRAGI_TYPE_BYTES,
	FRAGI_TYPE_ARRAY,  /* of elements of fixed size, one after the other */
	FRAGI_TYPE_LIST,   /* of elements of any size: a collection */
	FRAGI_TYPE_MAP,    /* from texts to elements of any size: a collection */
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
	/* Any bytes are a valid value, and the wire format equals the memory: one copy suffices. */
	bool is_dense;
	uint32_t depth;                        /* of the nesting of structs */
	uint32_t nesting;                      /* of arrays, lists and maps: those in the name */
	uint64_t wire_size;                    /* bytes of an encoded value; 0: it varies */
	const struct fragi_type_info *element; /* of an array, a list or a map */
	const struct fragi_type_field *fields; /* of a plain struct */
	uint32_t field_count;
	bool is_twin; /* another table of this type was registered before and is found by name */
};

#define FRAGI_TYPE_ALIGN_MAX 64u
#define FRAGI_TYPE_FIELDS_MAX 1024u
#define FRAGI_TYPE_DEPTH_MAX 16u
#define FRAGI_TYPE_NESTING_MAX 4u
#define FRAGI_TYPE_SIZE_MAX (1u << 30) /* bytes of one value, in memory and on the wire */

/*
 * Return NULL when the type is not registered. A collection of registered types is made when its
 * name or its id is first met, so a receiver knows every collection of the types that it knows.
 */
const struct fragi_type_info *fragi_type_info(const struct frag_type *type);
const struct fragi_type_info *fragi_type_info_by_id(uint64_t id);
/*
 * The same for a type that an operator names. Each file of a plugin that includes the header of a
 * struct has a table of its own, and FRAG_TYPES lists one of them: another one that equals it is
 * registered when it is first met here.
 */
const struct fragi_type_info *fragi_type_resolve(const struct frag_type *type);

static inline bool fragi_type_info_has_codec(const struct fragi_type_info *info)
{
	while (info->kind == FRAGI_TYPE_ARRAY)
		info = info->element;
	return info->kind != FRAGI_TYPE_OPAQUE;
}

/* Returns the id of a type, which was computed at registration; 0: it is not registered. */
FRAGI_API uint64_t fragi_type_id(const struct frag_type *type);
/* Returns the registered type with that id; NULL when there is none. */
FRAGI_API const struct frag_type *fragi_type_by_id(uint64_t id);
/* Returns whether values of the type can leave the process. */
FRAGI_API bool fragi_type_has_codec(const struct frag_type *type);

static inline bool fragi_type_is_collection(const struct fragi_type_info *info)
{
	return info->kind == FRAGI_TYPE_LIST || info->kind == FRAGI_TYPE_MAP;
}

/* Returns the bytes of the name in front of its "[]" and "{}". */
size_t fragi_type_stem_length(const char *name);
/*
 * Returns why there is no type of that name although one of its stem is registered, as the end of a
 * sentence; NULL: that is not the case.
 */
const char *fragi_type_why_not(const char *name);

/* Returns 0 when a value of the type may have `size` bytes, else -EINVAL. */
int fragi_type_check_size(const struct frag_type *type, size_t size);
/* Calls the type's fini on a value of `size` bytes; for an array, on each element. */
void fragi_value_fini(const struct frag_type *type, void *value, size_t size);

/*
 * The fini of an array whose elements have one. It does nothing: fragi_value_fini recognises it and
 * calls fini on each element.
 */
void fragi_array_fini(void *value);

/* Of an array, a list or a map. */
static inline bool fragi_type_is_array(const struct frag_type *type)
{
	return type->size == 0 && type != &frag_type_string && type != &frag_type_bytes;
}

#endif
