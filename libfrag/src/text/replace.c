// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <text/builder.h>

/*
 * Returns the value of the argument that "${name}" at text names; NULL and an error when there is
 * none. That of a local name is text itself.
 */
static const char *value_at(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *text, const char **out_rest, size_t *out_length)
{
	const char *begin = text + 2, *end = strchr(begin, '}');
	char name[FRAG_NAME_MAX + 1];
	const struct fragi_spec_argument *argument;
	size_t length = end != NULL ? (size_t)(end - begin) : 0;

	if (end == NULL || length == 0 || length > FRAG_NAME_MAX) {
		fragi_builder_error(
			builder, node, NULL,
			"\"%.80s\" begins a reference to an argument and does not name one; write ${NAME}",
			text);
		return NULL;
	}
	memcpy(name, begin, length);
	name[length] = '\0';
	if (fragi_node_get(builder->locals, name) != NULL) {
		*out_rest = end + 1;
		*out_length = length + 3;
		return text;
	}
	argument = fragi_arguments_find(builder, node, name);
	if (argument != NULL && argument->value == NULL) {
		if (argument->is_invalid)
			return NULL;
		fragi_builder_error(
			builder, node, NULL,
			"argument %s is needed here and has no value; give `-- --%s VALUE` or declare a default",
			name, name);
		return NULL;
	}
	if (argument == NULL)
		return NULL;
	*out_rest = end + 1;
	*out_length = strlen(argument->value);
	return argument->value;
}

/*
 * Copies the text with ${name} replaced; into NULL: only measures. Returns the length; SIZE_MAX
 * after an error.
 */
static size_t fill(struct fragi_builder *builder, const struct fragi_node *node, char *into)
{
	const char *text = node->text, *mark, *value, *rest;
	size_t length = 0, part, value_length;

	for (; (mark = strstr(text, "${")) != NULL; text = rest) {
		value = value_at(builder, node, mark, &rest, &value_length);
		if (value == NULL)
			return SIZE_MAX;
		part = (size_t)(mark - text);
		if (into != NULL) {
			memcpy(into + length, text, part);
			memcpy(into + length + part, value, value_length);
		}
		length += part + value_length;
		if (length > FRAGI_SPEC_REPLACED_MAX)
			break;
	}
	part = strlen(text);
	if (into != NULL)
		memcpy(into + length, text, part);
	return length + part;
}

static void replace_scalar(struct fragi_builder *builder, struct fragi_node *node)
{
	size_t length;
	char *text;

	if (builder->replaced_bytes > FRAGI_SPEC_REPLACED_MAX)
		return;
	length = fill(builder, node, NULL);
	node->is_reported = length == SIZE_MAX;
	if (node->is_reported)
		return;
	builder->replaced_bytes += length;
	if (builder->replaced_bytes > FRAGI_SPEC_REPLACED_MAX) {
		fragi_builder_error(
			builder, node, NULL,
			"the values of arguments make more than %u MiB of text; shorten them",
			FRAGI_SPEC_REPLACED_MAX >> 20);
		return;
	}
	text = fragi_builder_alloc(builder, length + 1, 1);
	if (text == NULL)
		return;
	fill(builder, node, text);
	node->text = text;
	node->replaced = true;
}

void fragi_replace(struct fragi_builder *builder, struct fragi_node *node)
{
	if (node == NULL)
		return;
	if (node->kind == FRAGI_NODE_SCALAR && strstr(node->text, "${") != NULL)
		replace_scalar(builder, node);
	for (struct fragi_node *child = node->first; child != NULL; child = child->next)
		fragi_replace(builder, child);
}
