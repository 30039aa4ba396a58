// SPDX-License-Identifier: Apache-2.0
#include <base/names.h>

#include <stdarg.h>
#include <stdio.h>

/* used is at most size - 1, so that what follows has a place. */
static void note_used(struct fragi_names *names, int written)
{
	names->used += written > 0 ? (size_t)written : 0;
	if (names->used >= names->size)
		names->used = names->size - 1;
}

void fragi_names_add(struct fragi_names *names, const char *format, ...)
{
	const char *separator = names->separator != NULL ? names->separator : ", ";
	va_list args;

	if (names->count++ >= FRAGI_NAMES_MAX) {
		snprintf(names->text + names->used, names->size - names->used, " and %u more",
			 names->count - FRAGI_NAMES_MAX);
		return;
	}
	note_used(names, snprintf(names->text + names->used, names->size - names->used, "%s",
				  names->count > 1 ? separator : ""));
	va_start(args, format);
	note_used(names,
		  vsnprintf(names->text + names->used, names->size - names->used, format, args));
	va_end(args);
}
