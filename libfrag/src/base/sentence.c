// SPDX-License-Identifier: Apache-2.0
#include <base/sentence.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "...";
#define CHARACTER_MAX 4

void fragi_sentence_mark(char *out, size_t size)
{
	size_t length = size > sizeof(mark) ? size - sizeof(mark) : 0;

	if (length == 0)
		return;
	for (int i = 1;
	     i < CHARACTER_MAX && length > 0 && ((unsigned char)out[length] & 0xC0) == 0x80; i++)
		length--;
	memcpy(out + length, mark, sizeof(mark));
}

char *fragi_sentence_of(char *out, size_t size, const char *format, va_list args)
{
	int n = vsnprintf(out, size, format, args);

	if (n < 0 && size > 0)
		out[0] = '\0';
	else if (n >= 0 && (size_t)n >= size)
		fragi_sentence_mark(out, size);
	return out;
}

char *fragi_sentence(char *out, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fragi_sentence_of(out, size, format, args);
	va_end(args);
	return out;
}

/* It ends with the mark, and as near to the end of its room as a cut may be. */
static bool is_cut(const char *text, size_t length, size_t size)
{
	return length + CHARACTER_MAX >= size && length >= sizeof(mark) - 1 &&
	       strcmp(text + length - (sizeof(mark) - 1), mark) == 0;
}

char *fragi_sentence_add(char *out, size_t size, const char *format, ...)
{
	const size_t used = strnlen(out, size);
	va_list args;
	int n;

	if (used >= size || is_cut(out, used, size))
		return out;
	va_start(args, format);
	n = vsnprintf(out + used, size - used, format, args);
	va_end(args);
	if (n < 0)
		out[used] = '\0';
	else if ((size_t)n >= size - used)
		fragi_sentence_mark(out, size);
	return out;
}
