// SPDX-License-Identifier: Apache-2.0
#include <fragctl/redact.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <frag/frag.h>

#define HEX_MIN 32 /* digits: as many have at least 128 bits */
#define INSTEAD "***"

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* How much of text is a private key in PEM; 0: nothing */
static size_t pem(const char *text)
{
	const char *end;

	if (strncmp(text, "-----BEGIN", 10) != 0)
		return 0;
	end = strstr(text, "-----END");
	end = end != NULL ? strstr(end + 8, "-----") : NULL;
	return end != NULL ? (size_t)(end - text) + 5 : strlen(text);
}

/* The length of "user:password@" behind "://"; 0: there is none */
static size_t credentials(const char *text)
{
	size_t length = strcspn(text, "/?#\"'<>\\ \t\r\n");

	while (length > 0 && text[length - 1] != '@')
		length--;
	return length;
}

static size_t hex(const char *text)
{
	size_t length = strspn(text, "0123456789abcdefABCDEF");

	return length >= HEX_MIN && !is_word(text[length]) ? length : 0;
}

static const char *const names[] = {"password",  "passwd",  "passphrase",    "pwd",
				    "secret",    "token",   "credential",    "apikey",
				    "api_key",   "api-key", "authorization", "private_key",
				    "access_key"};

/* How long a name of a secret is, to the end of its word; 0: it begins none */
static size_t name_of_secret(const char *text)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		size_t length = strlen(names[i]);

		if (strncasecmp(text, names[i], length) != 0)
			continue;
		while (is_word(text[length]))
			length++;
		return length;
	}
	return 0;
}

static size_t skip(const char *text, const char *any)
{
	return strspn(text, any);
}

/*
 * What is between the name of a secret and the secret: = or :, quotes as JSON and shells have them,
 * the member "value" of a row that has the name as another member, the kind of an authorization.
 * 0: nothing is named
 */
static size_t between(const char *text, bool is_flag, char *quote)
{
	static const char member[] = ", \"value\"";
	static const char *const kinds[] = {"Bearer ", "Basic "};
	size_t at = skip(text, "\"'\\ ");
	bool has_sign;

	if (at > 0 && strncmp(text + at, member, sizeof(member) - 1) == 0)
		at += sizeof(member) - 1;
	at += skip(text + at, " ");
	has_sign = text[at] == ':' || text[at] == '=';
	if (!has_sign && !(is_flag && at > 0))
		return 0;
	at += has_sign;
	at += skip(text + at, " ");
	*quote = strchr("\"'\\", text[at]) != NULL ? text[at]
						   : '\0'; /* \: of a JSON text in another */
	at += skip(text + at, "\"'\\");
	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		if (strncasecmp(text + at, kinds[i], strlen(kinds[i])) == 0)
			at += strlen(kinds[i]);
	return at;
}

static size_t secret(const char *text, char quote)
{
	size_t length = 0;

	if (quote != '"' && quote != '\'')
		return strcspn(text, quote == '\\' ? "\\\"\n" : " \t\r\n\"',;&})]\\");
	while (text[length] != '\0' && text[length] != '\n' && text[length] != quote)
		length += text[length] == '\\' && text[length + 1] != '\0' ? 2 : 1;
	return length;
}

/* A named secret: copies what is before it. Returns how much of text that was; 0: it is none. */
static size_t named(const char *text, bool is_flag, FILE *out)
{
	size_t name = name_of_secret(text), gap, length;
	char quote = '\0';

	gap = name > 0 ? between(text + name, is_flag, &quote) : 0;
	if (gap == 0)
		return 0;
	length = secret(text + name + gap, quote);
	fwrite(text, 1, name + gap, out);
	if (length > 0)
		fputs(INSTEAD, out);
	return name + gap + length;
}

void ctl_redact(const char *text, FILE *out)
{
	const char *word = text; /* the begin of the word that text is in */
	size_t length;

	for (const char *at = text; *at != '\0'; at += length) {
		bool begins = at == text || !is_word(at[-1]);

		word = begins ? at : word;
		length = pem(at);
		if (length == 0 && begins)
			length = hex(at);
		if (length > 0) {
			fputs(INSTEAD, out);
			continue;
		}
		length = named(at, strncmp(word, "--", 2) == 0, out);
		if (length > 0)
			continue;
		length = 1;
		fputc(*at, out);
		if (strncmp(at, "://", 3) != 0)
			continue;
		fputs("//", out);
		length = 3 + credentials(at + 3);
		if (length > 3)
			fputs(INSTEAD "@", out);
	}
}
