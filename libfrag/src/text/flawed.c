// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

/*
 * What is left of a spec with errors, so that the rest can be looked at in the same go. Everything
 * that is not whole goes, with what names it: an error that only follows from another one is worse
 * than none.
 */
static bool objects_are_whole(const struct fragi_spec_object *objects, size_t count, bool named)
{
	for (size_t i = 0; i < count; i++)
		if (objects[i].type == NULL || (named && objects[i].name == NULL))
			return false;
	return true;
}

static bool operator_is_whole(const struct fragi_spec_fragment *fragment,
			      const struct fragi_spec_operator *op)
{
	if (op->name == NULL || !fragi_name_is_valid(op->name) ||
	    (op->type == NULL && fragment->compose == NULL) ||
	    !objects_are_whole(op->conditions, op->condition_count, false))
		return false;
	for (size_t i = 0; i < op->port_count; i++)
		if (op->ports[i].name == NULL)
			return false;
	return true;
}

/* The first of that name among the first `count`. */
static const struct fragi_spec_operator *find_operator(const struct fragi_spec_fragment *fragment,
						       const char *name, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fragment->operators[i].name != NULL &&
		    strcmp(fragment->operators[i].name, name) == 0)
			return &fragment->operators[i];
	return NULL;
}

static const struct fragi_spec_fragment *find_fragment(const struct fragi_spec *spec,
						       const char *name, size_t count)
{
	for (size_t i = 0; name != NULL && i < count; i++)
		if (strcmp(spec->fragments[i].name, name) == 0)
			return &spec->fragments[i];
	return NULL;
}

static bool end_is_whole(const struct fragi_spec *spec, const struct fragi_spec_fragment *fragment,
			 const struct fragi_spec_end *end)
{
	const struct fragi_spec_operator *op;

	if (fragment == NULL)
		fragment = find_fragment(spec, end->fragment, spec->fragment_count);
	if (fragment == NULL || end->op == NULL)
		return false;
	op = find_operator(fragment, end->op, fragment->operator_count);
	return op != NULL ? operator_is_whole(fragment, op) : fragment->compose != NULL;
}

static void prune_flows(const struct fragi_spec *spec, const struct fragi_spec_fragment *fragment,
			struct fragi_spec_flow *flows, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++) {
		struct fragi_spec_flow *flow = &flows[i];
		size_t ends = 0;

		for (size_t k = 0; k < flow->to_count; k++)
			if (end_is_whole(spec, fragment, &flow->to[k]))
				flow->to[ends++] = flow->to[k];
		flow->to_count = ends;
		if (ends > 0 && end_is_whole(spec, fragment, &flow->from))
			flows[kept++] = *flow;
	}
	*count = kept;
}

static void prune_operators(struct fragi_spec_fragment *fragment)
{
	size_t kept = 0;

	for (size_t i = 0; i < fragment->operator_count; i++)
		if (operator_is_whole(fragment, &fragment->operators[i]) &&
		    find_operator(fragment, fragment->operators[i].name, kept) == NULL)
			fragment->operators[kept++] = fragment->operators[i];
	fragment->operator_count = kept;
}

void fragi_spec_prune(struct fragi_spec *spec)
{
	size_t kept = 0;

	for (size_t i = 0; i < spec->fragment_count; i++)
		if (objects_are_whole(spec->fragments[i].resources,
				      spec->fragments[i].resource_count, true) &&
		    find_fragment(spec, spec->fragments[i].name, kept) == NULL)
			spec->fragments[kept++] = spec->fragments[i];
	spec->fragment_count = kept;
	prune_flows(spec, NULL, spec->flows, &spec->flow_count);
	for (size_t i = 0; i < spec->fragment_count; i++) {
		struct fragi_spec_fragment *fragment = &spec->fragments[i];

		prune_flows(spec, fragment, fragment->flows, &fragment->flow_count);
		prune_operators(fragment);
	}
}
