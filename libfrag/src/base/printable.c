// SPDX-License-Identifier: Apache-2.0
#include <base/printable.h>
#include <base/sentence.h>

#include <stdio.h>
#include <string.h>

#define CHARACTER_MAX 4

size_t fragi_printable(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	size_t length = byte[0] < 0x80   ? 1
			: byte[0] < 0xC2 ? 0
			: byte[0] < 0xE0 ? 2
			: byte[0] < 0xF0 ? 3
					 : 4;

	if (byte[0] < 0x20 || byte[0] == 0x7F || byte[0] > 0xF4)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((byte[i] & 0xC0) != 0x80)
			return 0;
	/* written longer than needed; surrogates; beyond U+10FFFF; control characters of Latin-1 */
	if ((byte[0] == 0xE0 && byte[1] < 0xA0) || (byte[0] == 0xED && byte[1] > 0x9F) ||
	    (byte[0] == 0xF0 && byte[1] < 0x90) || (byte[0] == 0xF4 && byte[1] > 0x8F) ||
	    (byte[0] == 0xC2 && byte[1] < 0xA0))
		return 0;
	return length;
}

void fragi_make_printable(char *text, char replacement)
{
	size_t length;

	for (; *text != '\0'; text += length) {
		length = fragi_printable(text);
		if (length == 0) {
			*text = replacement;
			length = 1;
		}
	}
}

/* The character at text, of which size bytes are left. */
static size_t printable_at(const char *text, size_t size)
{
	char character[CHARACTER_MAX + 1] = "";

	memcpy(character, text, size < CHARACTER_MAX ? size : CHARACTER_MAX);
	return character[0] == '\t' ? 1 : fragi_printable(character);
}

size_t fragi_show(const char *text, size_t size, char *out, size_t out_size)
{
	size_t used = 0, length;

	if (size > 0 && text[size - 1] == '\r')
		size--;
	for (size_t i = 0; i < size; i += length) {
		char escape[8];
		const char *from = text + i;
		size_t wanted;

		length = wanted = printable_at(from, size - i);
		if (length == 0) {
			length = 1;
			wanted = (size_t)snprintf(escape, sizeof(escape), "\\x%02x",
						  (unsigned int)(unsigned char)text[i]);
			from = escape;
		}
		if (used + wanted >= out_size) {
			out[used] = '\0';
			return strlen(fragi_sentence_add(out, out_size, "..."));
		}
		memcpy(out + used, from, wanted);
		used += wanted;
	}
	out[used] = '\0';
	return used;
}
