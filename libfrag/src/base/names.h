/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_NAMES_H
#define FRAGI_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/* Names in a sentence: "a, b, c and 37 more". A text that does not fit ends with "...". */
#define FRAGI_NAMES_MAX 3
struct fragi_names {
	char *text; /* borrowed; it is a sentence after each name */
	size_t size, used;
	uint32_t count;
	const char *separator; /* NULL: ", " */
};
FRAGI_API void fragi_names_add(struct fragi_names *names, const char *format, ...)
	FRAG_PRINTF(2, 3);

#endif
