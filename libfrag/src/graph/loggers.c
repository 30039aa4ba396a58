// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <graph/compose.h>
#include <res/data_logger.h>

/* Data loggers of a fragment, which are resources, and of its instances of subgraphs. */

/* What the files of the logger have behind their names, so that no two loggers write to one. */
static int set_suffix(struct frag_fragment *fragment, struct fragi_data_logger *logger,
		      bool is_shared)
{
	const struct fragi_spec *spec = fragment->spec;
	const char *instance = logger->scope, *inner;
	bool has_fragment =
		spec != NULL && spec->fragment_count > 1 && (is_shared || logger->scope != NULL);

	if (instance != NULL && (inner = strrchr(instance, '.')) != NULL)
		instance = inner + 1;
	if (instance == NULL && !has_fragment)
		return 0;
	if (instance != NULL && has_fragment)
		logger->suffix =
			fragi_arena_printf(&fragment->arena, ".%s.%s", fragment->name, instance);
	else
		logger->suffix = fragi_arena_printf(&fragment->arena, ".%s",
						    has_fragment ? fragment->name : instance);
	return logger->suffix != NULL ? 0 : -ENOMEM;
}

static bool has_scope(const struct fragi_data_logger *logger, const char *scope)
{
	if (logger->scope == NULL || scope == NULL)
		return logger->scope == scope;
	return strcmp(logger->scope, scope) == 0;
}

int fragi_logger_add(struct frag_fragment *fragment, struct frag_resource *resource, bool is_shared,
		     const struct fragi_node *place)
{
	struct fragi_data_logger *logger = fragi_data_logger_of(resource);
	struct fragi_making *making = fragment->making;
	struct frag_resource **loggers;

	if (logger == NULL)
		return fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"%s is no data logger: its type is %s; name one, for example basic_console_logger",
			resource->name, resource->type.name);
	for (uint32_t i = 0; i < fragment->logger_count; i++)
		if (fragment->loggers[i] == resource)
			return has_scope(logger, making->scope)
				       ? 0
				       : fragi_making_fail(
						 fragment, -EINVAL, place, NULL,
						 "data logger %s is added in two places; make one for each of them",
						 resource->name);
	logger->scope = making->scope;
	loggers = fragi_making_room(fragment, fragment->loggers, fragment->logger_count,
				    &making->logger_capacity, sizeof(struct frag_resource *));
	if (loggers != NULL) {
		fragment->loggers = loggers;
		fragment->loggers[fragment->logger_count++] = resource;
	}
	if (loggers == NULL || set_suffix(fragment, logger, is_shared) < 0)
		return fragi_making_fail(fragment, -ENOMEM, place, NULL,
					 "out of memory for data logger %s", resource->name);
	return 0;
}

void fragi_loggers_make(struct frag_fragment *fragment)
{
	for (size_t i = 0; i < fragment->own->logger_count; i++)
		fragi_resource_make_declared(fragment, &fragment->own->loggers[i]);
}

int frag_add_data_logger(struct frag_fragment *fragment, struct frag_resource *logger)
{
	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (logger == NULL || fragi_resource_find(fragment, logger->name) != logger)
		return frag_fragment_fail(
			fragment, -EINVAL,
			"a data logger is NULL or of another fragment; make it with frag_make_resource");
	return fragi_logger_add(fragment, logger, false, NULL);
}
