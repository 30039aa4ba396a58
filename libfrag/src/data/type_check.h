/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TYPE_CHECK_H
#define FRAGI_DATA_TYPE_CHECK_H

#include <data/type.h>

/*
 * Checks a table that is to be registered and works out what the registry keeps of it, all but the
 * id. `find` gives a registered type by name. Returns 0 (*out_info: one allocation), -EINVAL with a
 * sentence, or -ENOMEM.
 */
int fragi_type_check(const struct frag_type *type,
		     struct fragi_type_info *(*find)(const char *name),
		     struct fragi_type_info **out_info, struct frag_err *err);

/* The i-th entry of a type's table of fields, whose elements may be larger than we know. */
static inline const struct frag_field *fragi_type_field_at(const struct frag_type *type, uint32_t i)
{
	return (const struct frag_field *)(const void *)((const char *)type->fields +
							 (size_t)i * type->field_size);
}

#endif
