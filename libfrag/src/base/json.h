/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_JSON_H
#define FRAGI_BASE_JSON_H

#include <stdio.h>

#include <base/diag.h>

/* Writes text as a JSON string, NULL as null. What is no UTF-8 becomes U+FFFD. */
FRAGI_API void fragi_json_text(const char *text, FILE *out);

#endif
