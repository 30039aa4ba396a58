// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <frag/error.h>

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST_CHARACTERS LETTERS DIGITS ".:[]%_-"
#define TRAILING ".,;:)]}>\\" /* belongs to the sentence around a URL */
#define TOKEN_BYTES 16        /* so long a word of letters and digits may be a key */

struct part {
	const char *begin, *end;
};

/* Whether a part of a path may be a user or a password, or name one. */
static bool is_suspicious(struct part part)
{
	static const char *const names[] = {"user", "usr",   "pass", "pwd",   "login",
					    "auth", "token", "key",  "secret"};
	size_t length = (size_t)(part.end - part.begin), word;

	word = strspn(part.begin, LETTERS DIGITS "._-");
	if (word < length)
		return true;
	for (const char *c = part.begin; c < part.end; c++) {
		for (size_t n = 0; n < FRAG_COUNT_OF(names); n++) {
			if (c + strlen(names[n]) <= part.end &&
			    strncasecmp(c, names[n], strlen(names[n])) == 0)
				return true;
		}
	}
	word = strspn(part.begin, LETTERS DIGITS);
	return word >= TOKEN_BYTES && strcspn(part.begin, DIGITS) < word &&
	       strcspn(part.begin, LETTERS) < word;
}

/* The last c of a part; NULL: there is none. */
static const char *last_of(struct part part, char c)
{
	for (const char *at = part.end; at > part.begin; at--)
		if (at[-1] == c)
			return at - 1;
	return NULL;
}

static char *copy(char *out, const char *begin, const char *end)
{
	memmove(out, begin, (size_t)(end - begin));
	return out + (end - begin);
}

/* Writes dots in the place of a part: three, or fewer where it is shorter. */
static char *leave_out(char *out, const char *begin, const char *end)
{
	size_t length = (size_t)(end - begin) < 3 ? (size_t)(end - begin) : 3;

	memset(out, '.', length);
	return out + length;
}

/*
 * Copies what follows the scheme and its slashes. A password may hold any character, so that what
 * stands before the last @ is not the host.
 */
static char *show(char *out, struct part rest, bool is_cut)
{
	const char *at = last_of(rest, '@'), *host = at != NULL ? at + 1 : rest.begin;
	const char *path = host + strcspn(host, "/?#"), *end;

	if (path > rest.end)
		path = rest.end;
	if ((is_cut && at == NULL) || strspn(host, HOST_CHARACTERS) < (size_t)(path - host))
		return leave_out(out, rest.begin, rest.end);
	end = path;
	while (end < rest.end && *end == '/') {
		struct part part = {end + 1, end + 1 + strcspn(end + 1, "/?#")};

		if (part.end > rest.end)
			part.end = rest.end;
		if (is_suspicious(part))
			break;
		end = part.end;
	}
	out = copy(out, host, end);
	if (end == rest.end || *end != '/')
		return out;
	*out++ = '/';
	return leave_out(out, end + 1, rest.end);
}

/*
 * Where the word around a colon ends: at a space, or at the quote that it begins behind. A password
 * may hold quotes and, within quotes, spaces.
 */
static const char *end_of(const char *text, const char *begin, const char *colon)
{
	char quote = begin > text && (begin[-1] == '"' || begin[-1] == '\'') ? begin[-1] : '\0';
	const char *close = quote != '\0' ? strchr(colon, quote) : NULL;
	const char *end = colon + strcspn(colon, " \t\r\n"), *at;

	if (close != NULL && (close >= end || last_of((struct part){close, end}, '@') == NULL))
		end = close;
	else if (last_of((struct part){colon + strcspn(colon, "\"'"), end}, '@') == NULL)
		end = colon + strcspn(colon, " \t\r\n\"'");
	at = last_of((struct part){colon, end}, '@');
	if (at != NULL && at + strcspn(at, "\"'") < end)
		end = at + strcspn(at, "\"'");
	while (end > colon + 1 && strchr(TRAILING, end[-1]) != NULL)
		end--;
	return end;
}

/* Whether dots stand for a path that leave_out took away before, behind a host. */
static bool is_left_out(const char *host, const char *dots)
{
	const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
	const char *port = strchr(bracket != NULL ? bracket : host, ':');

	return dots[-1] == '/' &&
	       (port == NULL || port > dots || port[1 + strspn(port + 1, DIGITS)] == '/');
}

/*
 * Whether the word around a colon, which ends at *end, was cut off: the text ends with it and had
 * no more room, or dots say so (base/sentence.h). Then *end moves behind what is left of it.
 */
static bool is_cut_off(const char *colon, const char **end, bool text_is_cut)
{
	const char *rest = *end + strspn(*end, TRAILING), *dots = strstr(*end, "...");

	if (dots != NULL && dots < rest && !is_left_out(colon + 1 + strspn(colon + 1, "/"), dots))
		*end = dots + 3;
	else if (text_is_cut && *rest == '\0')
		*end = rest;
	else
		return false;
	return true;
}

void frag_hide_credentials(char *text, size_t size)
{
	static const char *const schemes[] = {"rtsp", "rtsps", "http", "https", "rtmp"};
	const char *in = text, *text_end = text + strlen(text), *colon;
	bool is_cut = (size_t)(text_end - text) + 1 == size;
	char *out = text;

	while ((colon = strchr(in, ':')) != NULL) {
		const char *begin = colon, *end, *rest = colon + 1;
		bool is_url, word_is_cut;

		while (begin > in && strchr(LETTERS, begin[-1]) != NULL)
			begin--;
		end = end_of(text, begin, colon);
		word_is_cut = is_cut_off(colon, &end, is_cut);
		while (rest < end && *rest == '/')
			rest++;
		is_url = begin < colon && rest > colon + 2;
		for (size_t i = 0; i < FRAG_COUNT_OF(schemes) && rest == colon + 2; i++)
			is_url |= (size_t)(colon - begin) == strlen(schemes[i]) &&
				  strncasecmp(begin, schemes[i], strlen(schemes[i])) == 0;
		if (rest < end && last_of((struct part){rest, end}, '@') != NULL &&
		    strchr("\"'", *rest) == NULL) {
			/* a user before the colon: the scheme is missing, or its colon is */
			while (!is_url && rest == colon + 1 && begin > in &&
			       strchr("/=\"'([{, \t\r\n", begin[-1]) == NULL)
				begin--;
			if (rest == colon + 1)
				rest = begin;
			is_url = true;
		}
		if (!is_url) {
			out = copy(out, in, colon + 1);
			in = colon + 1;
			continue;
		}
		out = copy(out, in, rest);
		out = show(out, (struct part){rest, end}, word_is_cut);
		in = end;
	}
	memmove(out, in, (size_t)(text_end - in) + 1);
}
