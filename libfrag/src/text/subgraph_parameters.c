// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/subgraph.h>

/*
 * Parameters of subgraphs: `parameters: {count: {default: 10, help: how many}}` declares them,
 * `cam1: {subgraph: camera, parameters: {count: 5}}` gives them, and ${count} in what the subgraph
 * declares is put in place in each instance. A value that is "${count}" and nothing else becomes
 * whatever was given, also a list or a map; within a text it must be a single value.
 */
#define SUBJECT_SIZE (FRAG_NAME_MAX + 16)

void fragi_subgraph_declare_parameters(struct fragi_builder *builder, struct fragi_subgraph *graph,
				       struct fragi_node *map)
{
	static const struct fragi_key fields[] = {{"default"}, {"help"}};
	char subject[SUBJECT_SIZE], path[SUBJECT_SIZE * 2];
	struct fragi_node *declared;

	snprintf(subject, sizeof(subject), "subgraphs.%s", graph->name);
	graph->parameters = fragi_read_map(builder, map, subject, "parameters");
	for (struct fragi_node *child = graph->parameters != NULL ? graph->parameters->first : NULL;
	     child != NULL; child = child->next) {
		if (!fragi_check_name(builder, child->key, subject, "parameter",
				      child->key->text)) {
			child->is_reported = true;
			continue;
		}
		snprintf(path, sizeof(path), "%s.%s", subject, child->key->text);
		declared = fragi_read_map(builder, child, path, "a parameter");
		child->is_reported = declared == NULL && child->kind != FRAGI_NODE_NULL;
		if (declared == NULL)
			continue;
		fragi_keys_check(builder, declared, path, fields, FRAG_COUNT_OF(fields));
		(void)fragi_read_text(builder, fragi_node_get(declared, "help"), path, "help");
	}
}

void fragi_subgraph_replace(struct fragi_builder *builder, struct fragi_node *map)
{
	struct fragi_node *parameters = fragi_node_get(map, "parameters");

	fragi_replace(builder, parameters);
	if (map == NULL || map->kind != FRAGI_NODE_MAP) {
		fragi_replace(builder, map);
		return;
	}
	builder->locals = parameters;
	for (struct fragi_node *child = map->first; child != NULL; child = child->next)
		if (child != parameters)
			fragi_replace(builder, child);
	builder->locals = NULL;
}

/* Reports what is given and not declared. */
static void check_given(struct fragi_builder *builder, const struct fragi_subgraph *graph,
			const struct fragi_node *given, const char *subject)
{
	const bool is_map = given != NULL && given->kind == FRAGI_NODE_MAP;
	char advice[512];

	for (const struct fragi_node *child = is_map ? given->first : NULL; child != NULL;
	     child = child->next)
		if (fragi_node_get(graph->parameters, child->key->text) == NULL &&
		    !fragi_spec_may_be_lost(builder, graph->parameters, child->key->text))
			fragi_builder_error(
				builder, child->key, subject, "unknown parameter \"%.80s\"%s",
				child->key->text,
				fragi_builder_advise_keys(builder, advice, sizeof(advice),
							  child->key->text, "its parameters",
							  graph->parameters));
}

struct fragi_node *fragi_subgraph_values(struct fragi_builder *builder,
					 const struct fragi_subgraph *graph,
					 const struct fragi_node *given,
					 const struct fragi_node *place, const char *subject)
{
	/* given that is no map was reported; what it should have been is not missed as well */
	struct fragi_node *values = fragi_subgraph_node(builder, FRAGI_NODE_MAP, place, NULL);
	const struct fragi_node *value;
	struct fragi_node *copy;

	check_given(builder, graph, given, subject);
	for (const struct fragi_node *child = graph->parameters->first;
	     values != NULL && child != NULL; child = child->next) {
		value = fragi_node_get(given, child->key->text);
		if (value == NULL)
			value = fragi_node_get(child, "default");
		copy = fragi_builder_alloc(builder, 1, sizeof(*copy));
		if (copy == NULL)
			return NULL;
		if (value == NULL && !child->is_reported &&
		    (given == NULL || given->kind == FRAGI_NODE_MAP ||
		     given->kind == FRAGI_NODE_NULL))
			fragi_builder_error(
				builder, place, subject,
				"parameter \"%s\" of subgraph %s is required and not set",
				child->key->text, graph->name);
		if (value != NULL)
			*copy = *value;
		else
			*copy = (struct fragi_node){.kind = FRAGI_NODE_NULL, .is_reported = true};
		copy->key = child->key;
		fragi_subgraph_append(values, copy);
	}
	return values;
}

struct fragi_node *fragi_subgraph_copy_alone(struct fragi_builder *builder,
					     const struct fragi_node *node)
{
	struct fragi_node *copy;

	if (!fragi_subgraph_spend(builder, node))
		return NULL;
	copy = fragi_builder_alloc(builder, 1, sizeof(*copy));
	if (copy == NULL)
		return NULL;
	*copy = *node;
	copy->first = copy->last = copy->next = NULL;
	copy->count = 0;
	return copy;
}

/* Copies a value with all below it. NULL: too many, or out of memory. */
static struct fragi_node *copy_value(struct fragi_builder *builder, const struct fragi_node *value)
{
	struct fragi_node *copy = fragi_subgraph_copy_alone(builder, value), *below;

	if (copy == NULL)
		return NULL;
	for (const struct fragi_node *child = value->first; child != NULL; child = child->next) {
		below = copy_value(builder, child);
		if (below == NULL)
			return NULL;
		fragi_subgraph_append(copy, below);
	}
	return copy;
}

/* The value that "${name}" at text stands for; NULL: none, and it stays as it is. */
static const struct fragi_node *value_at(const struct fragi_node *values, const char *text,
					 size_t *out_length)
{
	const char *end = strchr(text, '}');
	char name[FRAG_NAME_MAX + 1];
	size_t length = end != NULL ? (size_t)(end - text) - 2 : 0;

	*out_length = 2;
	if (length == 0 || length > FRAG_NAME_MAX)
		return NULL;
	memcpy(name, text + 2, length);
	name[length] = '\0';
	*out_length = length + 3;
	return fragi_node_get(values, name);
}

/* The text with values in place. NULL: reported, or out of memory. */
static const char *replaced_text(struct fragi_builder *builder, const struct fragi_node *values,
				 const struct fragi_node *node)
{
	const char *text = "", *rest = node->text, *mark;
	const struct fragi_node *value;
	size_t length;

	for (; text != NULL && (mark = strstr(rest, "${")) != NULL; rest = mark + length) {
		value = value_at(values, mark, &length);
		if (value != NULL && value->is_reported)
			return NULL;
		if (value != NULL && value->kind != FRAGI_NODE_SCALAR) {
			fragi_builder_error(
				builder, value, NULL,
				"parameter \"%s\" stands within a text (%.80s:%d), so give it a single value",
				value->key->text, node->file, node->line);
			return NULL;
		}
		text = fragi_arena_printf(&builder->spec->arena, "%s%.*s%.*s", text,
					  (int)(mark - rest), rest,
					  value != NULL ? (int)strlen(value->text) : (int)length,
					  value != NULL ? value->text : mark);
		builder->replaced_bytes += text != NULL ? strlen(text) : 0;
		if (builder->replaced_bytes > FRAGI_SPEC_REPLACED_MAX)
			break;
	}
	if (text != NULL)
		text = fragi_arena_printf(&builder->spec->arena, "%s%s", text, rest);
	builder->no_memory = builder->no_memory || text == NULL;
	return text;
}

struct fragi_node *fragi_subgraph_substitute(struct fragi_builder *builder,
					     const struct fragi_node *values,
					     const struct fragi_node *node)
{
	const struct fragi_node *value = NULL;
	struct fragi_node *copy;
	size_t length = 0;

	if (strncmp(node->text, "${", 2) == 0)
		value = value_at(values, node->text, &length);
	if (value != NULL && node->text[length] == '\0') {
		copy = copy_value(builder, value);
		if (copy != NULL)
			copy->key = node->key;
		return copy;
	}
	copy = copy_value(builder, node);
	if (copy == NULL)
		return NULL;
	copy->text = replaced_text(builder, values, node);
	copy->replaced = true;
	if (copy->text == NULL) {
		copy->kind = FRAGI_NODE_NULL;
		copy->is_reported = true;
	}
	return copy;
}
