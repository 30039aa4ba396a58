// SPDX-License-Identifier: Apache-2.0
#include <base/json.h>

#include <string.h>

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
	for (; *at != '\0' && !ferror(out); at += length) {
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

static const char *space(const char *at)
{
	return at + strspn(at, " \t\n\r");
}

/* Each of these returns what follows, or NULL: it is none. */
static const char *text(const char *at)
{
	size_t length;

	if (*at++ != '"')
		return NULL;
	while (*at != '"') {
		length = utf8_length((const unsigned char *)at);
		if (length == 0 || (unsigned char)*at < 0x20)
			return NULL;
		if (*at == '\\' && at[1] == 'u') {
			if (strspn(at + 2, "0123456789abcdefABCDEF") < 4)
				return NULL;
			at += 6;
		} else if (*at == '\\') {
			if (at[1] == '\0' || strchr("\"\\/bfnrt", at[1]) == NULL)
				return NULL;
			at += 2;
		} else {
			at += length;
		}
	}
	return at + 1;
}

static const char *digits(const char *at)
{
	size_t count = strspn(at, "0123456789");

	return count > 0 ? at + count : NULL;
}

static const char *number(const char *at)
{
	at += *at == '-';
	at = *at == '0' ? at + 1 : digits(at);
	if (at != NULL && *at == '.')
		at = digits(at + 1);
	if (at != NULL && (*at == 'e' || *at == 'E')) {
		at++;
		at = digits(at + (*at == '+' || *at == '-'));
	}
	return at;
}

static const char *value(const char *at, int depth);

/* An array, or an object, whose elements have names. */
static const char *elements(const char *at, int depth)
{
	const char close = *at == '{' ? '}' : ']';

	if (depth == FRAGI_JSON_DEPTH_MAX)
		return NULL;
	at = space(at + 1);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (close == '}') {
			at = text(at);
			at = at != NULL ? space(at) : "";
			if (*at++ != ':')
				return NULL;
		}
		at = value(space(at), depth + 1);
		if (at == NULL)
			return NULL;
		at = space(at);
		if (*at == close)
			return at + 1;
		if (*at++ != ',')
			return NULL;
		at = space(at);
	}
}

static const char *value(const char *at, int depth)
{
	static const char *const words[] = {"true", "false", "null"};

	if (*at == '{' || *at == '[')
		return elements(at, depth);
	if (*at == '"')
		return text(at);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return at + strlen(words[i]);
	return number(at);
}

bool fragi_json_is_value(const char *whole)
{
	const char *end = value(space(whole), 0);

	return end != NULL && *space(end) == '\0';
}
