/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_PRINTABLE_H
#define FRAGI_BASE_PRINTABLE_H

#include <stddef.h>

#include <base/diag.h>

/*
 * Names and texts may come from files and peers; what is printed must neither control a terminal
 * nor break the encoding of a log.
 */

/* Length of the UTF-8 character at text, 0 when it is none or a control character. */
FRAGI_API size_t fragi_printable(const char *text);
/* Puts replacement in the place of every byte that belongs to no printable UTF-8 character. */
FRAGI_API void fragi_make_printable(char *text, char replacement);
/*
 * Copies text of a stranger so that it can be logged: bytes that belong to no printable character,
 * except tabs, become \xNN; a carriage return at the end is left out. What does not fit is cut,
 * and "..." marks that.
 * - text: size bytes, NULs are bytes like others
 * Returns the length; out is NUL-terminated.
 */
FRAGI_API size_t fragi_show(const char *text, size_t size, char *out, size_t out_size);

#endif
