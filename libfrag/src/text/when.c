// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

/* Returns whether the argument has the value; true after an error. */
static bool is_value(struct fragi_builder *builder, const struct fragi_spec_argument *argument,
		     const struct fragi_node *node)
{
	const char *text = fragi_read_text(builder, node, "when", "a value");
	char advice[512];
	bool wanted, given;
	size_t count = 0;

	if (text == NULL)
		return true;
	if (argument->is_boolean) {
		if (fragi_parse_bool(text, &wanted) < 0) {
			fragi_builder_error(builder, node, "when",
					    "argument %s is true or false, never \"%.80s\"",
					    argument->name, text);
			return true;
		}
		return fragi_parse_bool(argument->value, &given) == 0 && wanted == given;
	}
	while (argument->choices != NULL && argument->choices[count] != NULL &&
	       strcmp(argument->choices[count], text) != 0)
		count++;
	if (argument->choices != NULL && argument->choices[count] == NULL) {
		fragi_builder_error(builder, node, "when", "argument %s is never \"%.80s\"%s",
				    argument->name, text,
				    fragi_builder_advise(builder, advice, sizeof(advice), text,
							 "choices", argument->choices, count));
		return true;
	}
	return argument->value != NULL && strcmp(argument->value, text) == 0;
}

/* Returns whether one `argument: value` or `argument: [values]` holds; true after an error. */
static bool holds(struct fragi_builder *builder, const struct fragi_node *node)
{
	const struct fragi_spec_argument *argument =
		fragi_arguments_find(builder, node->key, node->key->text);
	bool any = false;

	if (argument == NULL)
		return true;
	if (node->kind != FRAGI_NODE_LIST)
		return is_value(builder, argument, node);
	for (const struct fragi_node *child = node->first; child != NULL; child = child->next)
		any = is_value(builder, argument, child) || any;
	return any;
}

static bool is_excluded(struct fragi_builder *builder, struct fragi_node *node)
{
	struct fragi_node *when = fragi_node_get(node, "when");
	bool all = true;

	if (when == NULL)
		return false;
	when = fragi_read_map(builder, when, NULL, "when");
	if (when == NULL)
		return false;
	fragi_replace(builder, when);
	for (const struct fragi_node *child = when->first; child != NULL; child = child->next)
		all = holds(builder, child) && all;
	return !all;
}

/* Removes the excluded children of parent; fragment NULL: parent holds fragments. */
static void prune(struct fragi_builder *builder, struct fragi_node *parent, const char *fragment,
		  bool named)
{
	struct fragi_node *child, *next, *last = NULL;
	const char *key;

	if (parent == NULL || parent->kind < FRAGI_NODE_LIST)
		return;
	child = parent->first;
	parent->first = NULL;
	parent->count = 0;
	for (; child != NULL; child = next) {
		next = child->next;
		child->next = NULL;
		if (is_excluded(builder, child)) {
			if (named && child->key != NULL) {
				key = fragment != NULL ? fragi_builder_join(builder, fragment,
									    child->key->text)
						       : child->key->text;
				fragi_builder_note(builder, &builder->excluded, key, child);
			}
			continue;
		}
		if (last != NULL)
			last->next = child;
		else
			parent->first = child;
		last = child;
		parent->count++;
	}
	parent->last = last;
}

static void prune_pools(struct fragi_builder *builder, struct fragi_node *pools,
			const char *fragment)
{
	prune(builder, pools, fragment, false);
	for (struct fragi_node *pool = pools != NULL && pools->kind == FRAGI_NODE_MAP ? pools->first
										      : NULL;
	     pool != NULL; pool = pool->next)
		prune(builder, fragi_node_get(pool, "add"), fragment, false);
}

static void prune_fragment(struct fragi_builder *builder, struct fragi_node *map,
			   const char *fragment)
{
	prune(builder, fragi_node_get(map, "operators"), fragment, true);
	prune(builder, fragi_node_get(map, "resources"), fragment, false);
	prune(builder, fragi_node_get(map, "services"), fragment, false);
	prune(builder, fragi_node_get(map, "data_loggers"), fragment, false);
	prune(builder, fragi_node_get(map, "flows"), fragment, false);
	prune_pools(builder, fragi_node_get(map, "thread_pools"), fragment);
}

void fragi_when_prune_subgraph(struct fragi_builder *builder, struct fragi_node *map,
			       const char *subject)
{
	prune_fragment(builder, map, subject);
}

static void prune_subgraphs(struct fragi_builder *builder, struct fragi_node *map)
{
	char subject[FRAG_NAME_MAX + 16];

	for (struct fragi_node *child = map != NULL && map->kind == FRAGI_NODE_MAP ? map->first
										   : NULL;
	     child != NULL; child = child->next) {
		snprintf(subject, sizeof(subject), "subgraphs.%.*s", FRAG_NAME_MAX,
			 child->key->text);
		prune_fragment(builder, child, subject);
	}
}

void fragi_when_prune(struct fragi_builder *builder, const char *application)
{
	struct fragi_node *fragments = fragi_node_get(builder->root, "fragments");

	prune(builder, fragi_node_get(builder->root, "variables"), "", false);
	prune_subgraphs(builder, fragi_node_get(builder->root, "subgraphs"));
	if (fragments == NULL) {
		prune_fragment(builder, builder->root, application != NULL ? application : "");
		return;
	}
	prune(builder, fragi_node_get(builder->root, "services"), "", false);
	prune(builder, fragments, NULL, true);
	prune(builder, fragi_node_get(builder->root, "data_loggers"), "", false);
	if (fragments->kind == FRAGI_NODE_MAP)
		for (struct fragi_node *child = fragments->first; child != NULL;
		     child = child->next)
			prune_fragment(builder, child, child->key->text);
	prune(builder, fragi_node_get(builder->root, "flows"), "", false);
}
