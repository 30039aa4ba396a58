/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_TYPE_CHECK_H
#define FRAGI_DATA_TYPE_CHECK_H

#include <data/type.h>

/*
 * Checks the table of a type and computes its info, except the id.
 * - find: returns the info of a registered type by name; NULL when there is none
 * - out_info: receives the info, in one allocation
 * Returns 0; -EINVAL with a sentence; -ENOMEM.
 */
int fragi_type_check(const struct frag_type *type,
		     struct fragi_type_info *(*find)(const char *name),
		     struct fragi_type_info **out_info, struct frag_err *err);

/*
 * Returns the i-th field of a type. The elements of the table may be larger than struct frag_field
 * is here, when the plugin was built with newer headers.
 */
static inline const struct frag_field *fragi_type_field_at(const struct frag_type *type, uint32_t i)
{
	return (const struct frag_field *)(const void *)((const char *)type->fields +
							 (size_t)i * type->field_size);
}

#endif
