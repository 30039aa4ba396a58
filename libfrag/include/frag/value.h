/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_VALUE_H
#define FRAG_VALUE_H

#include <stdio.h>

#include <frag/message.h>

FRAG_BEGIN_DECLS

/*
 * Values of messages as JSON: a struct is an object with its fields, an array a list, a complex
 * number a list of two. NaN and infinity, which JSON does not have, are null.
 */

/*
 * Writes a value on one line, with all its elements. A value that only its plugin understands is
 * a text with its number of bytes.
 * - type, value, size: as from frag_message_value
 * Returns 0; -EIO: out cannot be written to.
 * Thread: any. Blocks: while it writes. RT-safe: no.
 */
FRAG_API int frag_value_print(const struct frag_type *type, const void *value, size_t size,
			      FILE *out);
/*
 * Sets the value of a message from JSON. Every field of a struct must be there.
 * - type: a scalar, string, a plain struct, or an array of scalars or plain structs; registered
 * - json: one value; YAML in flow style will do
 * - err: receives what is wrong and, in line and column, where in json; NULL is accepted
 * Returns 0; -EINVAL: json is no value of this type; -EOPNOTSUPP: values of this type cannot be
 * read; -EBUSY: the message is shared; -ENOMEM.
 * Thread: the one that created the message. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_message_read_value(struct frag_message *message, const struct frag_type *type,
				     const char *json, struct frag_err *err);

FRAG_END_DECLS

#endif
