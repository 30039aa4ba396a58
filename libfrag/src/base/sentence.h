/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_SENTENCE_H
#define FRAGI_BASE_SENTENCE_H

#include <stdarg.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * Text that people read, in a buffer of fixed size. What does not fit is cut behind a whole UTF-8
 * character, and "..." stands at the end, so that nobody takes it for the whole text.
 */

/* As snprintf and vsnprintf; both return out. */
FRAGI_API char *fragi_sentence(char *out, size_t size, const char *format, ...) FRAG_PRINTF(3, 4);
FRAGI_API char *fragi_sentence_of(char *out, size_t size, const char *format, va_list args)
	FRAG_PRINTF(3, 0);
/* Goes on behind what out has; a text that was cut stays as it is. */
FRAGI_API char *fragi_sentence_add(char *out, size_t size, const char *format, ...)
	FRAG_PRINTF(3, 4);
/* Marks a text of which only the first size - 1 bytes are in out. */
FRAGI_API void fragi_sentence_mark(char *out, size_t size);

#endif
