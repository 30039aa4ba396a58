// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

struct set {
	const char *parameter;
	const struct fragi_node *value, *place;
	struct set *next;
};

/* all --set of one operator */
struct fragi_set_group {
	const char *fragment, *op, *path;
	struct set *first, *last;
	bool used;
	struct fragi_set_group *next;             /* in the order of the command line */
	struct fragi_set_group *next_of_fragment; /* those of one fragment are also linked here */
};

/* in the same map, under the name of the fragment, which has no dot */
struct set_fragment {
	struct fragi_set_group *first, *last;
};

/*
 * Parses the value as in a graph: lists, maps and quoted texts are YAML; anything else is taken as
 * it is, so that # and : need no quotes beyond those of the shell.
 */
static const struct fragi_node *set_value(struct fragi_builder *builder, const char *text,
					  const struct fragi_node *place)
{
	struct fragi_node *node = NULL;
	int r;

	if (text[0] != '\0' && strchr("[{\"'", text[0]) != NULL) {
		r = fragi_yaml_parse(&builder->spec->arena, place->file, text, strlen(text),
				     builder->diag, &node);
		if (r == -ENOMEM)
			builder->no_memory = true;
		return node;
	}
	node = fragi_builder_alloc(builder, 1, sizeof(*node));
	if (node == NULL)
		return NULL;
	*node = *place;
	node->kind = strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ? FRAGI_NODE_NULL
									 : FRAGI_NODE_SCALAR;
	node->text = text;
	node->quoted = text[0] == '\0';
	fragi_replace(builder, node);
	return node;
}

static struct fragi_set_group *group_of(struct fragi_builder *builder, const char *fragment,
					const char *op)
{
	char *path = fragi_builder_join(builder, fragment, op);
	struct fragi_set_group *group =
		path != NULL ? fragi_strmap_get(&builder->sets, path) : NULL;
	struct set_fragment *of = fragi_strmap_get(&builder->sets, fragment);

	if (group != NULL || path == NULL)
		return group;
	group = fragi_builder_alloc(builder, 1, sizeof(*group));
	if (of == NULL) {
		of = fragi_builder_alloc(builder, 1, sizeof(*of));
		if (of != NULL)
			fragi_builder_note(builder, &builder->sets, fragment, of);
	}
	if (group == NULL || of == NULL)
		return NULL;
	*group = (struct fragi_set_group){.fragment = fragment, .op = op, .path = path};
	fragi_builder_note(builder, &builder->sets, path, group);
	if (of->last != NULL)
		of->last->next_of_fragment = group;
	else
		of->first = group;
	of->last = group;
	if (builder->last_set != NULL)
		builder->last_set->next = group;
	else
		builder->first_set = group;
	builder->last_set = group;
	return group;
}

/* The name of the only fragment; NULL: there are several, or none. */
static const char *only_fragment(const struct fragi_builder *builder)
{
	const struct fragi_node *fragments = fragi_node_get(builder->root, "fragments");

	if (fragments == NULL)
		return builder->spec->application;
	return fragments->kind == FRAGI_NODE_MAP && fragments->count == 1
		       ? fragments->first->key->text
		       : NULL;
}

static void read_set(struct fragi_builder *builder, const char *text)
{
	struct fragi_node *place = fragi_builder_alloc(builder, 1, sizeof(*place));
	char *copy = fragi_builder_strdup(builder, text), *op, *parameter, *value;
	const char *fragment = copy;
	struct fragi_set_group *group;
	struct set *set;

	if (place == NULL || copy == NULL)
		return;
	place->file = fragi_arena_printf(&builder->spec->arena, "--set %s", text);
	place->kind = FRAGI_NODE_SCALAR;
	value = strchr(copy, '=');
	if (value != NULL)
		*value++ = '\0';
	op = strchr(copy, '.');
	if (op != NULL)
		*op++ = '\0';
	parameter = op != NULL ? strchr(op, '.') : NULL;
	if (parameter != NULL)
		*parameter++ = '\0';
	if (op != NULL && parameter == NULL && only_fragment(builder) != NULL) {
		fragment = only_fragment(builder);
		parameter = op;
		op = copy;
	}
	if (value == NULL || parameter == NULL || !fragi_name_is_valid(fragment) ||
	    !fragi_name_is_valid(op) || !fragi_name_is_valid(parameter)) {
		fragi_builder_error(builder, place, NULL,
				    "not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE");
		return;
	}
	group = group_of(builder, fragment, op);
	set = fragi_builder_alloc(builder, 1, sizeof(*set));
	if (group == NULL || set == NULL)
		return;
	*set = (struct set){.parameter = parameter, .place = place};
	set->value = set_value(builder, value, place);
	if (group->last != NULL)
		group->last->next = set;
	else
		group->first = set;
	group->last = set;
}

void fragi_sets_read(struct fragi_builder *builder)
{
	for (size_t i = 0; i < builder->source->set_count; i++)
		if (!fragi_spec_set_tracking(builder, builder->source->sets[i]) &&
		    !fragi_spec_is_test_set(builder->source->sets[i]) &&
		    !fragi_spec_is_swap_set(builder->source->sets[i]))
			read_set(builder, builder->source->sets[i]);
}

static void apply(struct fragi_builder *builder, struct fragi_set_group *group,
		  struct fragi_settings *settings)
{
	group->used = true;
	for (const struct set *set = group->first; set != NULL; set = set->next)
		if (set->value != NULL)
			fragi_settings_put(builder, settings, set->parameter, set->value,
					   set->place, group->path);
}

void fragi_sets_apply(struct fragi_builder *builder, const char *path,
		      struct fragi_settings *settings)
{
	struct fragi_set_group *group = fragi_strmap_get(&builder->sets, path);

	if (group != NULL)
		apply(builder, group, settings);
}

static bool is_left(const struct fragi_builder *builder, const struct fragi_set_group *group)
{
	return !group->used && fragi_strmap_get(&builder->operators, group->path) == NULL &&
	       fragi_strmap_get(&builder->excluded, group->path) == NULL;
}

size_t fragi_sets_left(struct fragi_builder *builder, const char *fragment)
{
	const struct set_fragment *of = fragi_strmap_get(&builder->sets, fragment);
	size_t count = 0;

	for (const struct fragi_set_group *group = of != NULL ? of->first : NULL; group != NULL;
	     group = group->next_of_fragment)
		count += is_left(builder, group);
	return count;
}

size_t fragi_sets_make(struct fragi_builder *builder, const char *fragment,
		       struct fragi_spec_operator *ops)
{
	const struct set_fragment *of = fragi_strmap_get(&builder->sets, fragment);
	struct fragi_settings settings = {0};
	size_t count = 0;

	for (struct fragi_set_group *group = of != NULL ? of->first : NULL; group != NULL;
	     group = group->next_of_fragment) {
		if (!is_left(builder, group))
			continue;
		ops[count] = (struct fragi_spec_operator){
			.name = group->op, .metadata = -1, .place = group->first->place};
		apply(builder, group, &settings);
		fragi_settings_end(builder, &settings, &ops[count].settings,
				   &ops[count].setting_count);
		count++;
	}
	return count;
}

void fragi_sets_check(struct fragi_builder *builder)
{
	const struct fragi_node *fragment;
	char advice[512];

	for (const struct fragi_set_group *group = builder->first_set; group != NULL;
	     group = group->next) {
		const struct fragi_node *place = group->first->place;

		if (group->used)
			continue;
		fragment = fragi_strmap_get(&builder->fragments, group->fragment);
		if (fragi_strmap_get(&builder->excluded, group->fragment) != NULL)
			fragi_builder_error(builder, place, NULL,
					    "fragment %s is excluded by its when", group->fragment);
		else if (fragi_strmap_get(&builder->excluded, group->path) != NULL)
			fragi_builder_error(builder, place, NULL,
					    "operator %s is excluded by its when", group->path);
		else if (fragment == NULL && fragi_node_get(builder->root, "fragments") == NULL)
			fragi_builder_error(
				builder, place, NULL,
				"unknown fragment \"%s\"; the only fragment has the name of the application, %s",
				group->fragment, builder->spec->application);
		else if (fragment == NULL)
			fragi_builder_error(
				builder, place, NULL, "unknown fragment \"%s\"%s", group->fragment,
				fragi_builder_advise_keys(
					builder, advice, sizeof(advice), group->fragment,
					"fragments", fragi_node_get(builder->root, "fragments")));
		else
			fragi_builder_error(
				builder, place, NULL, "unknown operator \"%s\"%s", group->path,
				fragi_builder_advise_keys(builder, advice, sizeof(advice),
							  group->op, "operators",
							  fragi_node_get(fragment, "operators")));
	}
}
