// SPDX-License-Identifier: Apache-2.0
#include <base/names.h>
#include <base/sentence.h>

#include <stdarg.h>
#include <string.h>

#define NAME_MAX_BYTES 1024 /* of one name, which may have a reason with it */

void fragi_names_add(struct fragi_names *names, const char *format, ...)
{
	const char *separator = names->separator != NULL ? names->separator : ", ";
	char name[NAME_MAX_BYTES];
	va_list args;

	names->text[names->used] = '\0'; /* without " and 5 more" */
	if (names->count++ >= FRAGI_NAMES_MAX) {
		fragi_sentence_add(names->text, names->size, " and %u more",
				   names->count - FRAGI_NAMES_MAX);
		return;
	}
	va_start(args, format);
	fragi_sentence_of(name, sizeof(name), format, args);
	va_end(args);
	fragi_sentence_add(names->text, names->size, "%s%s", names->count > 1 ? separator : "",
			   name);
	names->used = strlen(names->text);
}
