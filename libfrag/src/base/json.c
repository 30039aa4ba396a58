// SPDX-License-Identifier: Apache-2.0
#include <base/json.h>

/*
 * Returns the length in bytes of the UTF-8 character at text; 0 when there is none. As RFC 3629
 * says, surrogates and overlong forms are no characters.
 */
static size_t utf8_length(const unsigned char *text)
{
	unsigned char c = text[0];
	size_t length = c < 0x80                ? 1
			: c >= 0xC2 && c < 0xE0 ? 2
			: c >= 0xE0 && c < 0xF0 ? 3
			: c >= 0xF0 && c < 0xF5 ? 4
						: 0;

	for (size_t i = 1; i < length; i++)
		if ((text[i] & 0xC0) != 0x80)
			return 0;
	if ((c == 0xE0 && text[1] < 0xA0) || (c == 0xED && text[1] > 0x9F) ||
	    (c == 0xF0 && text[1] < 0x90) || (c == 0xF4 && text[1] > 0x8F))
		return 0;
	return length;
}

void fragi_json_text(const char *text, FILE *out)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length;

	if (text == NULL) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (; *at != '\0'; at += length) {
		length = utf8_length(at);
		if (length == 0) {
			fputs("\\ufffd", out);
			length = 1;
		} else if (*at == '"' || *at == '\\') {
			fprintf(out, "\\%c", *at);
		} else if (*at < 0x20) {
			fprintf(out, "\\u%04x", *at);
		} else {
			fwrite(at, 1, length, out);
		}
	}
	fputc('"', out);
}
