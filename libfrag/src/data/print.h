/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_PRINT_H
#define FRAGI_DATA_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include <base/diag.h>
#include <frag/message.h>

/*
 * Write values and tensors as JSON, for people and programs that read logs. Of arrays and tensors
 * the first `max_elements` are written, and how many there are; numbers that JSON does not have
 * (NaN, infinity) are null; values that only their plugin understands are their number of bytes.
 */
FRAGI_API void fragi_value_print(const struct frag_type *type, const void *value, size_t size,
				 uint64_t max_elements, FILE *out);
/* - with_content: the data may be read */
FRAGI_API void fragi_tensor_print(const struct frag_tensor *tensor, bool with_content,
				  uint64_t max_elements, FILE *out);

#endif
