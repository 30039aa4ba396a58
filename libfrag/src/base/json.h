/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_JSON_H
#define FRAGI_BASE_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include <base/diag.h>

/* Writes text as a JSON string, and NULL as null. Bytes that are not UTF-8 become U+FFFD. */
FRAGI_API void fragi_json_text(const char *text, FILE *out);
/* Whether the text is one value of JSON (RFC 8259), nested FRAGI_JSON_DEPTH_MAX deep at most. */
#define FRAGI_JSON_DEPTH_MAX 32
FRAGI_API bool fragi_json_is_value(const char *text);

#endif
