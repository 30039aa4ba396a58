/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_JSON_H
#define FRAGI_BASE_JSON_H

#include <stdio.h>

#include <base/diag.h>

/* Writes text as a JSON string, and NULL as null. Bytes that are not UTF-8 become U+FFFD. */
FRAGI_API void fragi_json_text(const char *text, FILE *out);

#endif
