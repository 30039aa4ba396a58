// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <text/syntax.h>

#define QUOTED_MAX 40 /* bytes of a line that a sentence quotes */

/*
 * libyaml tells its errors apart by their English texts alone, so these are its codes; they are
 * mapped here, once.
 */
struct explaining {
	const yaml_parser_t *parser;
	const char *text, *end;
	const char *at; /* the character that libyaml stopped at; end: beyond the last */
	const yaml_mark_t *bracket;
	struct fragi_syntax_error *error;
};

/* Marks count characters, not bytes. */
static const char *at_mark(const struct explaining *explaining, const yaml_mark_t *mark)
{
	const char *at = explaining->text;

	for (size_t i = 0; i < mark->index && at < explaining->end; i++)
		do
			at++;
		while (at < explaining->end && ((unsigned char)*at & 0xC0) == 0x80);
	return at;
}

static char char_at(const struct explaining *explaining, const char *at)
{
	if (at == explaining->end)
		return '\0';
	return *at;
}

static const char *line_of(const struct explaining *explaining, const char *at)
{
	while (at > explaining->text && at[-1] != '\n' && at[-1] != '\r')
		at--;
	return at;
}

static size_t indentation_of(const struct explaining *explaining, const char *at)
{
	const char *line = line_of(explaining, at), *first = line;

	while (char_at(explaining, first) == ' ')
		first++;
	return (size_t)(first - line);
}

static bool is_first_of_line(const struct explaining *explaining)
{
	const char *line = line_of(explaining, explaining->at);

	return line + indentation_of(explaining, explaining->at) == explaining->at;
}

#define report(explaining, where, ...)                                                             \
	do {                                                                                       \
		(explaining)->error->mark = (where);                                               \
		snprintf((explaining)->error->text, sizeof((explaining)->error->text),             \
			 __VA_ARGS__);                                                             \
	} while (0)

/*
 * Inside a bracket. A line that is not indented deeper than the one of the bracket goes on with the
 * map around it, so the bracket was meant to end before.
 */
static void explain_bracket(struct explaining *explaining)
{
	const yaml_mark_t *open = explaining->bracket;
	const yaml_mark_t here = explaining->parser->problem_mark;
	const char *at = at_mark(explaining, open);
	char opens = char_at(explaining, at), closes = opens == '[' ? ']' : '}';
	char c = char_at(explaining, explaining->at);

	if (c == '{' && explaining->at > explaining->text && explaining->at[-1] == '$')
		report(explaining, here,
		       "a reference to an argument needs quotes inside [] and {}; write \"${NAME}\"");
	else if ((c == ']' || c == '}') && c != closes)
		report(explaining, here,
		       "\"%c\" closes the \"%c\" of line %zu, column %zu; write \"%c\"", c, opens,
		       open->line + 1, open->column + 1, closes);
	else if (c == '\0' ||
		 (here.line > open->line &&
		  indentation_of(explaining, explaining->at) <= indentation_of(explaining, at)))
		report(explaining, *open, "this \"%c\" is not closed; add \"%c\"", opens, closes);
	else if (c == ',')
		report(explaining, here, "a value is missing before this comma");
	else
		report(explaining, here,
		       "inside the \"%c\" of line %zu, column %zu a comma is missing, or quotes around a text that holds a colon or a bracket",
		       opens, open->line + 1, open->column + 1);
}

/* A line that fits into no map or list around it, or something behind a value that is complete. */
static void explain_unexpected(struct explaining *explaining)
{
	const yaml_mark_t here = explaining->parser->problem_mark;
	char c = char_at(explaining, explaining->at);

	if (c == ']' || c == '}')
		report(explaining, here,
		       "\"%c\" closes nothing; remove it, or add the \"%c\" that it is to close", c,
		       c == ']' ? '[' : '{');
	else if (is_first_of_line(explaining))
		report(explaining, here,
		       "this line is indented otherwise than those before it; begin the keys of one map, and the items of one list, in the same column");
	else
		report(explaining, here,
		       "a value ends before this; put quotes around all of it, or begin a new line");
}

/* A colon where no key can stand. */
static void explain_colon(struct explaining *explaining)
{
	const char *line = line_of(explaining, explaining->at);

	for (const char *at = line; at + 1 < explaining->at; at++) {
		if (at[0] != ':' || at[1] != ' ')
			continue;
		report(explaining, explaining->parser->problem_mark,
		       "a second colon in this line; put quotes around the value if the colon is a part of it");
		return;
	}
	report(explaining, explaining->parser->problem_mark,
	       "no key can stand here; indent it as the keys around it, and write a space after the colon in the line before");
}

static void explain_key(struct explaining *explaining)
{
	const yaml_mark_t *key = &explaining->parser->context_mark;
	const char *at = at_mark(explaining, key);
	size_t length = 0;

	while (length < QUOTED_MAX && at + length < explaining->end && at[length] != '\n' &&
	       at[length] != '\r')
		length++;
	report(explaining, *key,
	       "\"%.*s\" is no key with a value; write a colon and a space after the key",
	       (int)length, at);
}

static void explain_character(struct explaining *explaining)
{
	char c = char_at(explaining, explaining->at);

	if (c == '\t')
		report(explaining, explaining->parser->problem_mark,
		       "a tab; indent with spaces, since YAML allows no tabs there");
	else
		report(explaining, explaining->parser->problem_mark,
		       "a text cannot begin with \"%c\"; put it into quotes", c);
}

static void explain_quote(struct explaining *explaining)
{
	const yaml_mark_t *open = &explaining->parser->context_mark;

	report(explaining, *open, "this quote (%c) is not closed; add one at the end of the text",
	       char_at(explaining, at_mark(explaining, open)));
}

static void explain_escape(struct explaining *explaining)
{
	report(explaining, explaining->parser->problem_mark,
	       "inside double quotes a backslash begins an escape, and this is none; write two of them, or single quotes around the text");
}

static void explain_item(struct explaining *explaining)
{
	report(explaining, explaining->parser->problem_mark,
	       "no item of a list (\"- \") can stand here; begin it in a line of its own, below the key of the list");
}

static const struct rule {
	const char *problem, *context; /* libyaml's; context NULL: any */
	void (*explain)(struct explaining *explaining);
} rules[] = {
	{"did not find expected key", NULL, explain_unexpected},
	{"did not find expected '-' indicator", NULL, explain_unexpected},
	{"mapping values are not allowed in this context", NULL, explain_colon},
	{"could not find expected ':'", NULL, explain_key},
	{"found character that cannot start any token", NULL, explain_character},
	{"found a tab character that violates indentation", NULL, explain_character},
	{"found unexpected end of stream", "while scanning a quoted scalar", explain_quote},
	{"found unexpected document indicator", "while scanning a quoted scalar", explain_quote},
	{"found unknown escape character", NULL, explain_escape},
	{"block sequence entries are not allowed in this context", NULL, explain_item},
	/* inside a bracket */
	{"did not find expected ',' or ']'", NULL, explain_bracket},
	{"did not find expected ',' or '}'", NULL, explain_bracket},
	{"did not find expected node content", "while parsing a flow node", explain_bracket},
};

static const struct rule *find_rule(const yaml_parser_t *parser)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].problem, parser->problem) == 0 &&
		    (rules[i].context == NULL ||
		     (parser->context != NULL && strcmp(rules[i].context, parser->context) == 0)))
			return &rules[i];
	return NULL;
}

void fragi_syntax_explain(const yaml_parser_t *parser, const char *text, size_t length,
			  const yaml_mark_t *bracket, struct fragi_syntax_error *out_error)
{
	struct explaining explaining = {.parser = parser,
					.text = text,
					.end = text + length,
					.bracket = bracket,
					.error = out_error};
	const struct rule *rule = find_rule(parser);

	explaining.at = at_mark(&explaining, &parser->problem_mark);
	if (rule != NULL && (rule->explain != explain_bracket || bracket != NULL))
		rule->explain(&explaining);
	else
		report(&explaining, parser->problem_mark, "not YAML: %s%s%s", parser->problem,
		       parser->context != NULL ? " " : "",
		       parser->context != NULL ? parser->context : "");
}
