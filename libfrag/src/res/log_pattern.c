// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <res/data_logger.h>

/*
 * The patterns of a logger: POSIX extended regular expressions, compiled once and searched for in
 * the ids. What the expressions of std::regex have beyond them is refused, because regcomp would
 * take it for something else. libc compiles an interval like {1,1000} by repeating its operand, so
 * the repetitions of a pattern are bounded.
 */
#define PATTERNS_MAX 256
#define PATTERN_BYTES_MAX 512
#define REPETITIONS_MAX 1000

/* Returns why a pattern is refused; NULL: it is not. */
static const char *reason_to_refuse(const char *text)
{
	uint64_t repetitions = 1, count;
	bool in_brackets = false;

	if (strlen(text) > PATTERN_BYTES_MAX)
		return "is longer than 512 bytes; split it into several";
	for (const char *at = text; *at != '\0'; at++) {
		if (in_brackets) {
			in_brackets = *at != ']';
			continue;
		}
		if (*at == '\\') {
			at++;
			if (isdigit((unsigned char)*at))
				return "has a back-reference, which patterns of loggers do not have; write the text again";
			if (*at == 'd' || *at == 'D')
				return "has \\d, which POSIX expressions do not have; write [0-9]";
			if (*at == '\0')
				return "ends in a backslash; write \\\\ for the character";
		} else if (*at == '[') {
			in_brackets = true;
			at += at[1] == '^' ? 1 : 0;
			at += at[1] == ']' ? 1 : 0; /* the first one is a character */
		} else if (*at == '(' && at[1] == '?') {
			return "has (?, which POSIX expressions do not have; write a plain group";
		} else if (strchr("*+?}", *at) != NULL && at[1] == '?') {
			return "has a lazy quantifier, which POSIX expressions do not have; leave out the ?";
		} else if (*at == '{') {
			for (; *at != '}' && *at != '\0'; at++) {
				if (!isdigit((unsigned char)at[1]) || isdigit((unsigned char)at[0]))
					continue;
				count = strtoull(at + 1, NULL, 10);
				if (count > 0 && repetitions <= REPETITIONS_MAX)
					repetitions *= count < 2000 ? count : 2000;
			}
			if (repetitions > REPETITIONS_MAX)
				return "repeats too much; let the numbers in its {} multiply to 1000 at most";
			if (*at == '\0')
				return "has a { without its }; write \\{ for the character";
		}
	}
	return NULL;
}

static int compile(regex_t *out, const char *text, const char *what, struct frag_err *err)
{
	const char *reason = reason_to_refuse(text);
	char why[128];
	int r;

	if (reason != NULL)
		return frag_err_set(err, -EINVAL, "%s: \"%.80s\" %s", what, text, reason);
	r = regcomp(out, text, REG_EXTENDED | REG_NOSUB);
	if (r == 0)
		return 0;
	regerror(r, out, why, sizeof(why));
	if (r == REG_ESPACE)
		return -ENOMEM;
	return frag_err_set(
		err, -EINVAL,
		"%s: \"%.80s\" is no POSIX extended regular expression: %s; correct it, for example ^app\\.tx\\.",
		what, text, why);
}

int fragi_log_patterns_compile(struct fragi_log_patterns *patterns,
			       const struct frag_string_list *texts, const char *what,
			       struct frag_err *err)
{
	int r;

	if (texts->count == 0)
		return 0;
	if (texts->count > PATTERNS_MAX)
		return frag_err_set(err, -EINVAL,
				    "%s has %zu patterns, and %d is the most; join some with |",
				    what, texts->count, PATTERNS_MAX);
	patterns->items = fragi_calloc(texts->count, sizeof(*patterns->items));
	if (patterns->items == NULL)
		return -ENOMEM;
	for (; patterns->count < texts->count; patterns->count++) {
		r = compile(&patterns->items[patterns->count], texts->items[patterns->count], what,
			    err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool fragi_log_patterns_match(const struct fragi_log_patterns *patterns, const char *id)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (regexec(&patterns->items[i], id, 0, NULL, 0) == 0)
			return true;
	return false;
}

void fragi_log_patterns_fini(struct fragi_log_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		regfree(&patterns->items[i]);
	fragi_free(patterns->items);
	*patterns = (struct fragi_log_patterns){0};
}
