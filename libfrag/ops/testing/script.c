// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/npy.h>
#include <frag/value.h>

#include "script.h"

/* A place in a file, for sentences. */
struct place {
	const char *path;
	unsigned int line;
	const char *begin, *end; /* of the line */
	struct frag_err *err;
};

static unsigned int column_of(const struct place *place, const char *text)
{
	return text >= place->begin && text <= place->end ? (unsigned int)(text - place->begin) + 1
							  : 1;
}

static int refuse(const struct place *place, const char *what, const char *text)
{
	return frag_err_set(place->err, -EINVAL, "%s:%u:%u: %s \"%.80s\"", place->path, place->line,
			    column_of(place, text), what, text);
}

/* What is wrong within a text: err has its place there, or none. */
static int refuse_within(const struct place *place, const char *text, const struct frag_err *err)
{
	return frag_err_set(place->err, -EINVAL, "%s:%u:%u: %s", place->path, place->line,
			    column_of(place, text) +
				    (err->column > 0 ? (unsigned int)err->column - 1 : 0),
			    err->text);
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

/* Any other type, as JSON: read once to see what is wrong, and again to emit it. */
static int read_json(const struct place *place, const char *type, const char *text,
		     struct script_message *message)
{
	struct frag_message *scratch = frag_message_create();
	struct frag_err err = FRAG_ERR_INIT;
	int r = -ENOMEM;

	message->type = frag_type_find(type);
	if (message->type == NULL)
		r = refuse(
			place,
			"no type of values (bool, i64, string, a struct of the application's libraries ...) is called",
			type);
	else if (scratch != NULL)
		r = frag_message_read_value(scratch, message->type, text, &err);
	frag_message_unref(scratch);
	if (err.code < 0)
		r = refuse_within(place, text, &err);
	if (r < 0) {
		message->type = NULL;
		return r;
	}
	message->value.text = strdup(text);
	return message->value.text != NULL ? 0 : -ENOMEM;
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
		return read_json(place, type, text, message);
	}
	if (end == text || *end != '\0' || errno == ERANGE)
		return refuse(place, "not a number of this type:", text);
	return 0;
}

/* Paths are relative to the file's folder. */
static int read_npy(const struct place *place, const char *name, struct frag_tensor **out)
{
	const char *slash = strrchr(place->path, '/');
	struct frag_err err = FRAG_ERR_INIT;
	char *path = NULL;
	int r;

	if (name[0] == '/' || slash == NULL)
		path = strdup(name);
	else if (asprintf(&path, "%.*s/%s", (int)(slash - place->path), place->path, name) < 0)
		path = NULL;
	if (path == NULL)
		return -ENOMEM;
	r = frag_npy_read(path, out, &err);
	free(path);
	return r < 0 ? refuse_within(place, name, &err) : 0;
}

/* `"NAME" FILE`, and behind it more of them, each behind `tensor`. */
static int read_tensors(const struct place *place, char *text, struct script_message *message)
{
	struct script_tensor *tensors;
	char *name, *end, *file;
	int r = 0;

	while (r == 0) {
		end = text[0] == '"' ? strchr(text + 1, '"') : NULL;
		if (end == NULL || end[1] != ' ' || end - text - 1 > FRAG_NAME_MAX)
			return refuse(place, "not of the form `\"NAME\" FILE.npy`:", text);
		*end = '\0';
		name = text + 1;
		text = end + 1 + strspn(end + 1, " ");
		file = strsep(&text, " ");
		tensors = realloc(message->tensors, (message->tensor_count + 1) * sizeof(*tensors));
		if (tensors == NULL)
			return -ENOMEM;
		message->tensors = tensors;
		tensors += message->tensor_count++;
		*tensors = (struct script_tensor){.name = strdup(name)};
		if (tensors->name == NULL)
			return -ENOMEM;
		r = read_npy(place, file, &tensors->tensor);
		if (text == NULL || text[0] == '\0')
			break;
		if (strncmp(text, "tensor ", 7) != 0)
			return refuse(place, "not of the form `tensor \"NAME\" FILE.npy`:", text);
		text += 7;
	}
	return r;
}

/* `TIME TYPE VALUE`; the value is all that follows one blank. */
static int read_line(const struct place *place, char *line, bool times_only,
		     struct script_message *message)
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
	if (times_only)
		return 0;
	return strcmp(type, "tensor") == 0 ? read_tensors(place, value, message)
					   : read_value(place, type, value, message);
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

static int read_file(struct script *script, const char *path, uint32_t port, bool times_only,
		     struct frag_err *err)
{
	struct place place = {.path = path, .err = err};
	struct script_message *message;
	FILE *in = fopen(path, "re");
	char *line = NULL;
	const size_t first = script->count;
	size_t size = 0;
	ssize_t length;
	int r = 0;

	if (in == NULL)
		return frag_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	while (r == 0 && (length = getline(&line, &size, in)) >= 0) {
		place.line++;
		if (length > 0 && line[length - 1] == '\n')
			line[--length] = '\0';
		place.begin = line;
		place.end = line + length;
		if (line[0] == '#' || line[strspn(line, " \t")] == '\0')
			continue;
		if ((size_t)length > SCRIPT_LINE_MAX || strlen(line) != (size_t)length ||
		    script->count == SCRIPT_MESSAGES_MAX) {
			r = refuse(&place, "too long, too many, or with a byte 0: the line", line);
			break;
		}
		message = script_add(script);
		if (message == NULL)
			r = -ENOMEM;
		else
			r = read_line(&place, line, times_only, message);
		if (message != NULL)
			message->port = port;
		if (message != NULL && script->count - 1 > first &&
		    message[-1].at_ns == message->at_ns)
			message->turn = message[-1].turn + 1;
	}
	free(line);
	fclose(in);
	return r < 0 ? frag_err_set(err, r, "%s: %s", path, frag_strerror(r)) : 0;
}

/* Lines of a file with one time stay in their order. */
static int compare(const void *a, const void *b)
{
	const struct script_message *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int script_read(struct script *script, const struct frag_string_map *files, bool times_only,
		struct frag_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->count; i++)
		r = read_file(script, files->items[i].text, (uint32_t)i, times_only, err);
	if (script->count > 0)
		qsort(script->messages, script->count, sizeof(*script->messages), compare);
	return r;
}

size_t script_after(const struct script *script, size_t message)
{
	const struct script_message *messages = script->messages;
	size_t i = message + 1;

	while (i < script->count && messages[i].at_ns == messages[message].at_ns &&
	       messages[i].turn == messages[message].turn)
		i++;
	return i;
}

static bool holds_text(const struct script_message *message)
{
	return message->type != NULL && message->type != &frag_type_i64 &&
	       message->type != &frag_type_f64 && message->type != &frag_type_bool;
}

void script_fini(struct script *script)
{
	for (size_t i = 0; i < script->count; i++) {
		struct script_message *message = &script->messages[i];

		if (holds_text(message))
			free(message->value.text);
		for (uint32_t k = 0; k < message->tensor_count; k++) {
			free(message->tensors[k].name);
			frag_tensor_unref(message->tensors[k].tensor);
		}
		free(message->tensors);
	}
	free(script->messages);
}

static int set_value(struct frag_message *made, const struct script_message *message)
{
	if (message->type == NULL)
		return 0;
	if (message->type == &frag_type_string)
		return frag_message_set_value(made, message->type, message->value.text,
					      strlen(message->value.text), NULL);
	if (holds_text(message))
		return frag_message_read_value(made, message->type, message->value.text, NULL);
	return frag_message_set_value(made, message->type, &message->value, message->type->size,
				      NULL);
}

struct frag_message *script_message_create(const struct script_message *message)
{
	struct frag_message *made = frag_message_create();
	int r = made != NULL ? set_value(made, message) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < message->tensor_count; i++)
		r = frag_message_add_tensor(made, message->tensors[i].name,
					    frag_tensor_ref(message->tensors[i].tensor));
	if (r == 0)
		return made;
	frag_message_unref(made);
	return NULL;
}
