// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

/* A place in a file, for sentences. */
struct place {
	const char *path;
	unsigned int line;
	struct frag_err *err;
};

static int refuse(const struct place *place, const char *what, const char *text)
{
	return frag_err_set(place->err, -EINVAL, "%s:%u: %s \"%.80s\"", place->path, place->line,
			    what, text);
}

static int read_time(const struct place *place, const char *text, int64_t *out_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double number = strtod(text, &end);

	if (end != text && number >= 0 && number < 1e9)
		for (size_t i = 0; i < FRAG_COUNT_OF(units); i++)
			if (strcmp(end, units[i].name) == 0) {
				*out_ns = llround(number * units[i].ns);
				return 0;
			}
	return refuse(place, "no time; write for example 10ms or 1.5s in place of", text);
}

static int read_value(const struct place *place, const char *type, const char *text,
		      struct script_message *message)
{
	char *end = NULL;

	errno = 0;
	if (strcmp(type, "i64") == 0) {
		message->type = &frag_type_i64;
		message->value.i = strtoll(text, &end, 10);
	} else if (strcmp(type, "f64") == 0) {
		message->type = &frag_type_f64;
		message->value.f = strtod(text, &end);
	} else if (strcmp(type, "bool") == 0) {
		message->type = &frag_type_bool;
		message->value.b = strcmp(text, "true") == 0;
		if (!message->value.b && strcmp(text, "false") != 0)
			return refuse(place, "neither true nor false:", text);
		return 0;
	} else if (strcmp(type, "string") == 0) {
		message->type = &frag_type_string;
		message->value.text = strdup(text);
		return message->value.text != NULL ? 0 : -ENOMEM;
	} else {
		return refuse(place, "a message has a bool, i64, f64 or string, and no", type);
	}
	if (end == text || *end != '\0' || errno == ERANGE)
		return refuse(place, "not a number of this type:", text);
	return 0;
}

/* `TIME TYPE VALUE`; the value is all that follows one blank. */
static int read_line(const struct place *place, char *line, struct script_message *message)
{
	char *type, *value, *rest = line;
	const char *time = strsep(&rest, " \t");
	int r = read_time(place, time, &message->at_ns);

	if (r < 0)
		return r;
	rest += rest != NULL ? strspn(rest, " \t") : 0;
	type = strsep(&rest, " \t");
	value = rest;
	if (type == NULL || value == NULL)
		return refuse(place, "not of the form `TIME TYPE VALUE`:", time);
	return read_value(place, type, value, message);
}

static struct script_message *script_add(struct script *script)
{
	struct script_message *messages;

	if ((script->count & (script->count - 1)) == 0) {
		messages = realloc(script->messages, (script->count == 0 ? 1 : 2 * script->count) *
							     sizeof(*messages));
		if (messages == NULL)
			return NULL;
		script->messages = messages;
	}
	memset(&script->messages[script->count], 0, sizeof(*script->messages));
	script->messages[script->count].order = script->count;
	return &script->messages[script->count++];
}

static int read_file(struct script *script, const char *path, uint32_t port, struct frag_err *err)
{
	struct place place = {.path = path, .err = err};
	struct script_message *message;
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t length;
	int r = 0;

	if (in == NULL)
		return frag_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	while (r == 0 && (length = getline(&line, &size, in)) >= 0) {
		place.line++;
		if (length > 0 && line[length - 1] == '\n')
			line[--length] = '\0';
		if (line[0] == '#' || line[strspn(line, " \t")] == '\0')
			continue;
		if ((size_t)length > SCRIPT_LINE_MAX || strlen(line) != (size_t)length ||
		    script->count == SCRIPT_MESSAGES_MAX) {
			r = refuse(&place, "too long, too many, or with a byte 0: the line", line);
			break;
		}
		message = script_add(script);
		if (message == NULL)
			r = frag_err_set(err, -ENOMEM, "out of memory");
		else
			r = read_line(&place, line, message);
		if (message != NULL)
			message->port = port;
	}
	free(line);
	fclose(in);
	return r;
}

/* Lines with one time stay in their order. */
static int compare(const void *a, const void *b)
{
	const struct script_message *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int script_read(struct script *script, const struct frag_string_map *files, struct frag_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->count; i++)
		r = read_file(script, files->items[i].text, (uint32_t)i, err);
	if (script->count > 0)
		qsort(script->messages, script->count, sizeof(*script->messages), compare);
	return r;
}

void script_fini(struct script *script)
{
	for (size_t i = 0; i < script->count; i++)
		if (script->messages[i].type == &frag_type_string)
			free(script->messages[i].value.text);
	free(script->messages);
}
