// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <cond/condition.h>
#include <fragctl/pipeline.h>
#include <text/holoscan.h>

#define NAMES_MAX 128

struct writer {
	struct ctl_pipeline *pipeline;
	struct fragi_registry *registry;
	FILE *out;
	size_t *places; /* of each line of the graph, in the line of the pipeline */
	size_t count, capacity;
	bool no_memory;
};

/* Writes one line of the graph, which was made of the word at this place. */
static void put(struct writer *writer, size_t at, const char *format, ...) FRAG_PRINTF(3, 4);
static void put(struct writer *writer, size_t at, const char *format, ...)
{
	size_t capacity = writer->capacity > 0 ? 2 * writer->capacity : 64, *wider;
	va_list args;

	if (writer->count == writer->capacity) {
		wider = fragi_arena_alloc(&writer->pipeline->arena, capacity * sizeof(*wider));
		if (wider == NULL) {
			writer->no_memory = true;
			return;
		}
		if (writer->count > 0)
			memcpy(wider, writer->places, writer->count * sizeof(*wider));
		writer->places = wider;
		writer->capacity = capacity;
	}
	writer->places[writer->count++] = at;
	va_start(args, format);
	vfprintf(writer->out, format, args);
	va_end(args);
	fputc('\n', writer->out);
}

/* A value as YAML: lists and maps as they are, plain words as they are, all else in quotes. */
static const char *yaml_of(struct writer *writer, const char *value)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./$+-";
	char *text, *to;

	if (value[0] == '[' || value[0] == '{' ||
	    (value[0] != '\0' && value[0] != '-' && strspn(value, plain) == strlen(value) &&
	     strcmp(value, "null") != 0))
		return value;
	text = to = fragi_arena_alloc(&writer->pipeline->arena, 4 * strlen(value) + 3);
	if (text == NULL) {
		writer->no_memory = true;
		return "";
	}
	*to++ = '"';
	for (; *value != '\0'; value++) {
		if ((unsigned char)*value < 0x20) {
			to += sprintf(to, "\\x%02x", (unsigned int)*value);
			continue;
		}
		if (*value == '"' || *value == '\\')
			*to++ = '\\';
		*to++ = *value;
	}
	*to++ = '"';
	*to = '\0';
	return text;
}

static bool has_param(const struct frag_op_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0)
			return true;
	return false;
}

static const struct frag_condition_type *condition_of(const struct writer *writer, const char *name)
{
	const struct fragi_built_in_condition *built_in = fragi_built_in_condition(name);

	return built_in != NULL ? &built_in->type
				: fragi_registry_condition(writer->registry, name, true);
}

static void refuse_property(struct writer *writer, const struct ctl_element *element,
			    const struct ctl_property *property, const struct frag_op_type *type)
{
	const char *names[NAMES_MAX];
	const struct fragi_built_in_condition *condition;
	char advice[600];
	size_t count = 0;

	for (uint32_t i = 0; i < type->param_count && count < NAMES_MAX; i++)
		names[count++] = type->params[i].name;
	for (size_t i = 0;
	     (condition = fragi_built_in_condition_at(i)) != NULL && count < NAMES_MAX; i++)
		names[count++] = condition->type.name;
	ctl_pipeline_error(
		writer->pipeline, property->at,
		"\"%.80s\" is neither a parameter of %s nor a condition%s", property->key,
		element->type,
		fragi_advise(advice, sizeof(advice), property->key, "valid", names, count));
}

static void put_condition(struct writer *writer, const struct ctl_property *property,
			  const struct frag_condition_type *condition)
{
	if (condition->param_count > 0)
		put(writer, property->at, "      - {type: %s, %s: %s}", condition->name,
		    condition->params[0].name, yaml_of(writer, property->value));
	else
		put(writer, property->at, "      - {type: %s}", condition->name);
}

static void put_operator(struct writer *writer, const struct ctl_element *element)
{
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_op_type *type = fragi_registry_op(writer->registry, element->type, &err);
	const struct frag_condition_type *condition;
	const struct ctl_property *property;
	size_t conditions = 0, params = 0;

	if (type == NULL) {
		ctl_pipeline_error(writer->pipeline, element->at, "%s", err.text);
		return;
	}
	put(writer, element->at, "  %s:", element->name);
	put(writer, element->at, "    type: %s", type->name);
	for (size_t i = 0; i < element->property_count; i++) {
		property = &element->properties[i];
		if (!has_param(type, property->key))
			continue;
		if (params++ == 0)
			put(writer, element->at, "    parameters:");
		put(writer, property->at, "      %s: %s", property->key,
		    yaml_of(writer, property->value));
	}
	for (size_t i = 0; i < element->property_count; i++) {
		property = &element->properties[i];
		if (has_param(type, property->key) || strcmp(property->key, "name") == 0)
			continue;
		condition =
			condition_of(writer, fragi_alias(FRAGI_HOLOSCAN_CONDITION, property->key));
		if (condition == NULL) {
			refuse_property(writer, element, property, type);
			continue;
		}
		if (conditions++ == 0)
			put(writer, element->at, "    conditions:");
		put_condition(writer, property, condition);
	}
}

/* The libraries that have the types which are not built in. */
static void put_extensions(struct writer *writer)
{
	struct ctl_pipeline *pipeline = writer->pipeline;
	const char *library;
	size_t count = 0;

	for (size_t i = 0; i < pipeline->element_count; i++) {
		const struct ctl_element *element = &pipeline->elements[i];

		if (element->type == NULL ||
		    fragi_registry_discover(writer->registry, element->type, &library) < 0 ||
		    library == NULL)
			continue;
		if (count++ == 0)
			put(writer, element->at, "extensions:");
		put(writer, element->at, "  - %s", yaml_of(writer, library));
	}
}

static const char *end_of(struct writer *writer, size_t element)
{
	const struct ctl_element *end = &writer->pipeline->elements[element];
	const char *text = end->port == NULL ? end->name
					     : fragi_arena_printf(&writer->pipeline->arena, "%s.%s",
								  end->name, end->port);

	if (text != NULL)
		return text;
	writer->no_memory = true;
	return "";
}

int ctl_pipeline_write(struct ctl_pipeline *pipeline, struct fragi_registry *registry, FILE *out,
		       const size_t **out_places, size_t *out_count)
{
	struct writer writer = {.pipeline = pipeline, .registry = registry, .out = out};

	put(&writer, 0, "frag: 1");
	put(&writer, 0, "application: pipeline");
	put_extensions(&writer);
	put(&writer, 0, "operators:");
	for (size_t i = 0; i < pipeline->element_count; i++)
		if (pipeline->elements[i].type != NULL)
			put_operator(&writer, &pipeline->elements[i]);
	if (pipeline->flow_count > 0)
		put(&writer, 0, "flows:");
	for (size_t i = 0; i < pipeline->flow_count; i++)
		put(&writer, pipeline->flows[i].at, "  - %s -> %s",
		    end_of(&writer, pipeline->flows[i].from),
		    end_of(&writer, pipeline->flows[i].to));
	if (writer.no_memory)
		return -ENOMEM;
	if (fflush(out) != 0)
		return ctl_pipeline_error(pipeline, 0, "cannot write the graph: %s",
					  strerror(errno));
	*out_places = writer.places;
	*out_count = writer.count;
	return pipeline->diag.count > 0 ? -EINVAL : 0;
}
