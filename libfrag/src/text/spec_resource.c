// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/builder.h>
#include <text/holoscan.h>

#define PATH_SIZE (2 * FRAG_NAME_MAX + 2)

const char *fragi_spec_read_type(struct fragi_builder *builder, const struct fragi_node *node,
				 const char *subject, enum fragi_holoscan_kind kind)
{
	const char *text = fragi_read_text(builder, node, subject, "type");

	if (text == NULL)
		return NULL;
	text = fragi_alias(kind, text);
	if (fragi_type_name_is_valid(text))
		return text;
	return fragi_check_name(builder, node, subject, "type", text) ? text : NULL;
}

/* Returns the map of one resource or service, whose name was read; NULL: there is nothing more. */
static struct fragi_node *read_object(struct fragi_builder *builder, struct fragi_node *node,
				      const char *fragment, const char *what, const char *example,
				      char *path, size_t path_size,
				      struct fragi_spec_object *object)
{
	char article[16];

	object->place = node->key;
	if (!fragi_check_name(builder, node->key, fragment, what, node->key->text))
		return NULL;
	object->name = node->key->text;
	snprintf(path, path_size, "%s.%s", fragment, object->name);
	snprintf(article, sizeof(article), "a %s", what);
	if (fragi_node_get(node, "type") == NULL && node->kind != FRAGI_NODE_SCALAR &&
	    node->kind != FRAGI_NODE_LIST)
		fragi_builder_error(builder, node->key, path,
				    "%s has no type; write for example {type: %s}", article,
				    example);
	node = fragi_read_map(builder, node, path, article);
	if (node != NULL)
		object->type = fragi_spec_read_type(builder, fragi_node_get(node, "type"), path,
						    FRAGI_HOLOSCAN_RESOURCE);
	return node;
}

static void read_resource(struct fragi_builder *builder, struct fragi_node *node,
			  const char *fragment, const char *what, const char *example,
			  struct fragi_spec_object *resource)
{
	static const char *const reserved[] = {"type", "when"};
	struct fragi_settings settings = {0};
	char path[PATH_SIZE];

	node = read_object(builder, node, fragment, what, example, path, sizeof(path), resource);
	if (node == NULL)
		return;
	fragi_settings_read(builder, node, path, reserved, FRAG_COUNT_OF(reserved), &settings);
	fragi_settings_end(builder, &settings, &resource->settings, &resource->setting_count);
}

static void read_logger(struct fragi_builder *builder, struct fragi_node *node,
			const char *fragment, struct fragi_spec_object *logger)
{
	logger->kind = FRAGI_OBJECT_LOGGER;
	read_resource(builder, node, fragment, "data logger", "basic_console_logger", logger);
}

static void read_service(struct fragi_builder *builder, struct fragi_node *node,
			 const char *fragment, struct fragi_spec_object *service)
{
	static const char *const reserved[] = {"type", "when", "id"};
	struct fragi_settings settings = {0};
	char path[PATH_SIZE];

	service->kind = FRAGI_OBJECT_SERVICE;
	node = read_object(builder, node, fragment, "service", "unbounded_allocator", path,
			   sizeof(path), service);
	if (node == NULL)
		return;
	service->id = fragi_read_name(builder, fragi_node_get(node, "id"), path, "id");
	if (fragi_node_get(node, "id") != NULL && service->id == NULL)
		service->type = NULL; /* which of them it is is not known */
	fragi_settings_read(builder, node, path, reserved, FRAG_COUNT_OF(reserved), &settings);
	fragi_settings_end(builder, &settings, &service->settings, &service->setting_count);
}

/* Reads one of the section `resources`, where those of instances of subgraphs of all kinds are. */
static void read_one(struct fragi_builder *builder, struct fragi_node *node, const char *fragment,
		     struct fragi_spec_object *object)
{
	if (node->origin != NULL) {
		object->kind = node->origin->kind;
		object->scope = node->origin->scope;
	}
	if (object->kind == FRAGI_OBJECT_SERVICE)
		read_service(builder, node, fragment, object);
	else if (object->kind == FRAGI_OBJECT_LOGGER)
		read_logger(builder, node, fragment, object);
	else
		read_resource(builder, node, fragment, "resource", "unbounded_allocator", object);
}

static size_t count_of(const struct fragi_node *map)
{
	return map != NULL ? map->count : 0;
}

static bool is_lost(const struct fragi_node *map)
{
	return map != NULL && (map->is_reported || map->lost_a_name ||
			       map->kind == FRAGI_NODE_SCALAR || map->kind == FRAGI_NODE_LIST);
}

void fragi_spec_read_resources(struct fragi_builder *builder, struct fragi_node *map,
			       struct fragi_node *services, struct fragi_spec_fragment *fragment)
{
	fragment->lost_resources = is_lost(map) || is_lost(services);
	map = fragi_read_map(builder, map, fragment->name, "resources");
	services = fragi_read_map(builder, services, fragment->name, "services");
	if (count_of(map) + count_of(services) == 0)
		return;
	fragment->resources = fragi_builder_alloc(builder, count_of(map) + count_of(services),
						  sizeof(*fragment->resources));
	if (fragment->resources == NULL)
		return;
	for (struct fragi_node *child = map != NULL ? map->first : NULL; child != NULL;
	     child = child->next)
		read_one(builder, child, fragment->name,
			 &fragment->resources[fragment->resource_count++]);
	for (struct fragi_node *child = services != NULL ? services->first : NULL; child != NULL;
	     child = child->next)
		read_service(builder, child, fragment->name,
			     &fragment->resources[fragment->resource_count++]);
}

void fragi_spec_read_services(struct fragi_builder *builder, struct fragi_node *map)
{
	struct fragi_spec *spec = builder->spec;

	map = fragi_read_map(builder, map, NULL, "services");
	if (map == NULL || spec->application == NULL)
		return;
	if (map->count > FRAGI_SPEC_SERVICES_MAX) {
		fragi_builder_error(builder, map->key, NULL,
				    "more than %d services; put them into fewer types",
				    FRAGI_SPEC_SERVICES_MAX);
		return;
	}
	spec->services = fragi_builder_alloc(builder, map->count, sizeof(*spec->services));
	for (struct fragi_node *child = map->first; spec->services != NULL && child != NULL;
	     child = child->next)
		read_service(builder, child, spec->application,
			     &spec->services[spec->service_count++]);
}

void fragi_spec_read_references(struct fragi_builder *builder, struct fragi_node *list,
				const char *subject, void *out)
{
	struct fragi_spec_operator *op = out;
	const char *text;

	list = fragi_read_list(builder, list, subject, "resources");
	if (list == NULL)
		return;
	op->resources = fragi_builder_alloc(builder, list->count, sizeof(*op->resources));
	for (const struct fragi_node *child = list->first; op->resources != NULL && child != NULL;
	     child = child->next) {
		text = fragi_read_text(builder, child, subject, "a resource");
		if (text == NULL)
			continue;
		if (text[0] != '$') {
			fragi_builder_error(builder, child, subject,
					    "\"%.80s\" is no reference to a resource; write $%.80s",
					    text, text);
			continue;
		}
		op->resources[op->resource_count++] =
			(struct fragi_spec_reference){text + 1, child};
	}
}

static void check_logger_name(struct fragi_builder *builder, const struct fragi_spec_object *logger,
			      const char *subject, const struct fragi_spec *application)
{
	for (size_t i = 0; i < application->logger_count; i++)
		if (logger->name != NULL && application->loggers[i].name != NULL &&
		    strcmp(application->loggers[i].name, logger->name) == 0)
			fragi_builder_error(
				builder, logger->place, subject,
				"data logger \"%s\" is given at the top too, for all fragments; rename one",
				logger->name);
}

void fragi_spec_read_loggers(struct fragi_builder *builder, struct fragi_node *map,
			     const char *subject, const struct fragi_spec *application,
			     struct fragi_spec_object **out_loggers, size_t *out_count)
{
	size_t before = application != NULL ? application->logger_count : 0, count = before;
	struct fragi_spec_object *loggers;

	map = fragi_read_map(builder, map, subject, "data_loggers");
	loggers = fragi_builder_alloc(builder, before + (map != NULL ? map->count : 0) + 1,
				      sizeof(*loggers));
	if (loggers == NULL)
		return;
	if (before > 0)
		memcpy(loggers, application->loggers, before * sizeof(*loggers));
	for (size_t i = 0; i < before; i++)
		loggers[i].is_shared = true;
	for (struct fragi_node *child = map != NULL ? map->first : NULL; child != NULL;
	     child = child->next) {
		read_logger(builder, child, subject != NULL ? subject : "", &loggers[count]);
		if (application != NULL)
			check_logger_name(builder, &loggers[count], subject, application);
		count++;
	}
	*out_loggers = loggers;
	*out_count = count;
}
