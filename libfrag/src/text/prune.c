// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

/*
 * Error recovery: reduces a spec with errors to its valid part, so that this part can be checked in
 * the same pass. What is incomplete is marked as invalid, so that no further error about it, or
 * about references to it, is reported: an error that only follows from another one would mislead.
 */
static bool conditions_are_whole(const struct fragi_spec_operator *op)
{
	for (size_t i = 0; i < op->condition_count; i++)
		if (op->conditions[i].type == NULL)
			return false;
	return true;
}

static bool operator_is_whole(const struct fragi_spec_fragment *fragment,
			      const struct fragi_spec_operator *op)
{
	if ((op->type == NULL && !fragment->is_composed) || !conditions_are_whole(op))
		return false;
	for (size_t i = 0; i < op->port_count; i++)
		if (op->ports[i].name == NULL)
			return false;
	return true;
}

/* Returns whether one of that name is among the first `count`. */
static bool is_operator(const struct fragi_spec_fragment *fragment, const char *name, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(fragment->operators[i].name, name) == 0)
			return true;
	return false;
}

static bool is_fragment(const struct fragi_spec *spec, const char *name, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(spec->fragments[i].name, name) == 0)
			return true;
	return false;
}

static void prune_operators(struct fragi_spec_fragment *fragment)
{
	size_t kept = 0;

	for (size_t i = 0; i < fragment->operator_count; i++) {
		struct fragi_spec_operator *op = &fragment->operators[i];

		op->is_invalid = op->is_invalid || !operator_is_whole(fragment, op);
		if (op->name != NULL && fragi_name_is_valid(op->name) &&
		    !is_operator(fragment, op->name, kept))
			fragment->operators[kept++] = *op;
	}
	fragment->operator_count = kept;
}

static bool is_object(const struct fragi_spec_object *objects, const char *name, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(objects[i].name, name) == 0)
			return true;
	return false;
}

/* Resources or services. */
static void prune_objects(struct fragi_spec_object *objects, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++)
		if (objects[i].name != NULL && !is_object(objects, objects[i].name, kept))
			objects[kept++] = objects[i];
	*count = kept;
}

static void prune_loggers(struct fragi_spec_fragment *fragment)
{
	size_t kept = 0;

	for (size_t i = 0; i < fragment->logger_count; i++)
		if (fragment->loggers[i].name != NULL)
			fragment->loggers[kept++] = fragment->loggers[i];
	fragment->logger_count = kept;
}

void fragi_spec_prune(struct fragi_spec *spec)
{
	size_t kept = 0;

	for (size_t i = 0; i < spec->fragment_count; i++)
		if (!is_fragment(spec, spec->fragments[i].name, kept))
			spec->fragments[kept++] = spec->fragments[i];
	spec->fragment_count = kept;
	for (size_t i = 0; i < spec->fragment_count; i++) {
		prune_operators(&spec->fragments[i]);
		prune_objects(spec->fragments[i].resources, &spec->fragments[i].resource_count);
		prune_loggers(&spec->fragments[i]);
	}
	prune_objects(spec->services, &spec->service_count);
}
