// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/sentence.h>
#include <base/units.h>
#include <fragctl/pipeline.h>
#include <text/holoscan.h>

#define LINE_MAX_BYTES 65536
#define ELEMENTS_MAX 1024

int ctl_pipeline_error(struct ctl_pipeline *pipeline, size_t at, const char *format, ...)
{
	char text[900];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	return fragi_diag_add(&pipeline->diag, -EINVAL, CTL_PIPELINE_NAME, 1, (int)at + 1, "%s",
			      text);
}

/* A word of the line with its quotes removed. */
struct word {
	const char *text;
	size_t at, end;
	size_t equals; /* offset in text of the first = outside quotes; (size_t)-1: none */
	bool is_quoted;
};

/* Reads the word that begins at *at, which is no blank. Returns 0, -EINVAL or -ENOMEM. */
static int word_read(struct ctl_pipeline *pipeline, size_t at, struct word *out)
{
	const char *line = pipeline->line;
	char *text = fragi_arena_alloc(&pipeline->arena, strlen(line + at) + 1), quote = '\0';
	size_t length = 0, i = at, quote_at = at;

	*out = (struct word){.text = text, .at = at, .equals = (size_t)-1};
	if (text == NULL)
		return -ENOMEM;
	for (; line[i] != '\0' && (quote != '\0' || strchr(" \t\r\n", line[i]) == NULL); i++) {
		if (line[i] == quote) {
			quote = '\0';
		} else if (quote == '\0' && (line[i] == '"' || line[i] == '\'')) {
			quote = line[i];
			quote_at = i;
			out->is_quoted = true;
		} else if (quote == '"' && line[i] == '\\' && line[i + 1] != '\0') {
			text[length++] = line[++i];
		} else {
			if (line[i] == '=' && quote == '\0' && out->equals == (size_t)-1)
				out->equals = length;
			text[length++] = line[i];
		}
	}
	text[length] = '\0';
	out->end = i;
	return quote == '\0' ? 0
			     : ctl_pipeline_error(pipeline, quote_at, "this quote %c is not closed",
						  quote);
}

/* The array with room for one more; it grows by doubling in the arena. */
static void *room(struct ctl_pipeline *pipeline, void *items, size_t count, size_t size)
{
	void *wider;

	if ((count & (count - 1)) != 0)
		return items;
	wider = fragi_arena_alloc(&pipeline->arena, (count > 0 ? 2 * count : 1) * size);
	if (wider != NULL && count > 0)
		memcpy(wider, items, count * size);
	return wider;
}

static int property_add(struct ctl_pipeline *pipeline, const struct word *word)
{
	struct ctl_element *element;
	struct ctl_property *property;
	const char *key = fragi_arena_strndup(&pipeline->arena, word->text, word->equals);

	if (key == NULL)
		return -ENOMEM;
	if (pipeline->element_count == 0)
		return ctl_pipeline_error(
			pipeline, word->at,
			"%s stands before any operator; write the operator's type first",
			word->text);
	element = &pipeline->elements[pipeline->element_count - 1];
	if (element->type == NULL)
		return ctl_pipeline_error(
			pipeline, word->at,
			"%s follows a reference; write it after the operator's type", word->text);
	if (!fragi_name_is_valid(key))
		return ctl_pipeline_error(pipeline, word->at,
					  "\"%.80s\" is not a valid name of a parameter", key);
	for (size_t i = 0; i < element->property_count; i++)
		if (strcmp(element->properties[i].key, key) == 0)
			return ctl_pipeline_error(pipeline, word->at, "%s is given twice", key);
	if (strcmp(key, "name") == 0) {
		element->name = word->text + word->equals + 1;
		if (!fragi_name_is_valid(element->name))
			return ctl_pipeline_error(pipeline, word->at,
						  "\"%.80s\" is not a valid name of an operator",
						  element->name);
	}
	property = room(pipeline, element->properties, element->property_count, sizeof(*property));
	if (property == NULL)
		return -ENOMEM;
	element->properties = property;
	property[element->property_count++] =
		(struct ctl_property){key, word->text + word->equals + 1, word->at};
	return 0;
}

/* A type, or a reference NAME. or NAME.PORT. */
static int element_add(struct ctl_pipeline *pipeline, const struct word *word)
{
	const char *dot = strchr(word->text, '.'), *name;
	struct ctl_element *elements;

	if (pipeline->element_count == ELEMENTS_MAX)
		return ctl_pipeline_error(pipeline, word->at,
					  "more than %d operators; write a file", ELEMENTS_MAX);
	name = dot != NULL ? fragi_arena_strndup(&pipeline->arena, word->text,
						 (size_t)(dot - word->text))
			   : word->text;
	elements = room(pipeline, pipeline->elements, pipeline->element_count, sizeof(*elements));
	if (name == NULL || elements == NULL)
		return -ENOMEM;
	pipeline->elements = elements;
	elements[pipeline->element_count++] = (struct ctl_element){
		.type = dot == NULL ? name : NULL,
		.name = dot == NULL ? NULL : name,
		.port = dot != NULL && dot[1] != '\0' ? dot + 1 : NULL,
		.at = word->at,
	};
	if (strchr(word->text, '!') != NULL)
		return ctl_pipeline_error(pipeline, word->at, "write spaces on both sides of !");
	if (!fragi_name_is_valid(name) ||
	    (dot != NULL && dot[1] != '\0' && !fragi_name_is_valid(dot + 1)))
		return ctl_pipeline_error(
			pipeline, word->at,
			"\"%.80s\" is neither the type of an operator nor a reference NAME.PORT",
			word->text);
	return 0;
}

static int link_add(struct ctl_pipeline *pipeline, size_t at)
{
	struct ctl_flow *flows =
		room(pipeline, pipeline->flows, pipeline->flow_count, sizeof(*flows));

	if (flows == NULL)
		return -ENOMEM;
	pipeline->flows = flows;
	flows[pipeline->flow_count++] = (struct ctl_flow){
		.from = pipeline->element_count - 2, .to = pipeline->element_count - 1, .at = at};
	return 0;
}

static bool name_is_taken(const struct ctl_pipeline *pipeline, const char *name, size_t except)
{
	for (size_t i = 0; i < pipeline->element_count; i++)
		if (i != except && pipeline->elements[i].type != NULL &&
		    pipeline->elements[i].name != NULL &&
		    strcmp(pipeline->elements[i].name, name) == 0)
			return true;
	return false;
}

/* Names the operators that have none; checks that names are unique and references lead to one. */
static int names_complete(struct ctl_pipeline *pipeline)
{
	struct ctl_element *element;

	for (size_t i = 0; i < pipeline->element_count; i++) {
		element = &pipeline->elements[i];
		if (element->type != NULL && element->name != NULL &&
		    name_is_taken(pipeline, element->name, i))
			ctl_pipeline_error(pipeline, element->at, "two operators are called \"%s\"",
					   element->name);
	}
	for (size_t i = 0; i < pipeline->element_count; i++) {
		const char *type;

		element = &pipeline->elements[i];
		if (element->type == NULL || element->name != NULL)
			continue;
		type = fragi_alias(FRAGI_HOLOSCAN_OPERATOR, element->type);
		element->name = type;
		for (unsigned int n = 2;
		     element->name != NULL && name_is_taken(pipeline, element->name, i); n++)
			element->name = fragi_arena_printf(&pipeline->arena, "%s_%u", type, n);
		if (element->name == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < pipeline->element_count; i++) {
		element = &pipeline->elements[i];
		if (element->type == NULL && !name_is_taken(pipeline, element->name, i))
			ctl_pipeline_error(
				pipeline, element->at,
				"no operator of this line is called \"%s\"; name one with name=%s",
				element->name, element->name);
	}
	return 0;
}

int ctl_pipeline_parse(struct ctl_pipeline *pipeline, const char *line)
{
	bool linked = false; /* the last word was a ! */
	size_t at = 0, link_at = 0;
	struct word word;
	int r = 0;

	*pipeline = (struct ctl_pipeline){.line = line};
	if (strlen(line) > LINE_MAX_BYTES)
		return ctl_pipeline_error(pipeline, 0, "more than %d bytes; write a file",
					  LINE_MAX_BYTES);
	while (r != -ENOMEM && line[at += strspn(line + at, " \t\r\n")] != '\0') {
		r = word_read(pipeline, at, &word);
		at = word.end;
		if (r < 0)
			continue;
		if (strcmp(word.text, "!") == 0 && !word.is_quoted) {
			if (pipeline->element_count == 0 || linked)
				r = ctl_pipeline_error(pipeline, word.at,
						       "no operator stands before this !");
			linked = true;
			link_at = word.at;
		} else if (word.equals != (size_t)-1) {
			r = linked ? ctl_pipeline_error(pipeline, word.at,
							"write an operator's type after the !")
				   : property_add(pipeline, &word);
		} else {
			r = element_add(pipeline, &word);
			if (r != -ENOMEM && linked && pipeline->element_count > 1)
				r = link_add(pipeline, link_at);
			linked = false;
		}
	}
	if (r != -ENOMEM && linked)
		ctl_pipeline_error(pipeline, link_at, "no operator follows this !");
	if (r != -ENOMEM && pipeline->element_count == 0)
		ctl_pipeline_error(pipeline, 0, "the line names no operator");
	if (r != -ENOMEM)
		r = names_complete(pipeline);
	return r == -ENOMEM ? r : pipeline->diag.count > 0 ? -EINVAL : 0;
}

void ctl_pipeline_fini(struct ctl_pipeline *pipeline)
{
	fragi_diag_fini(&pipeline->diag);
	fragi_arena_fini(&pipeline->arena);
}
