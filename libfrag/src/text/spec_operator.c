// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/builder.h>
#include <text/holoscan.h>

#define OR_KEY "or_combine_port_conditions"

static void read_condition(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, struct fragi_strmap *names,
			   struct fragi_spec_object *condition)
{
	static const char *const reserved[] = {"type", "name"};
	struct fragi_settings settings = {0};

	condition->place = node;
	if (fragi_read_map(builder, node, subject, "a condition") == NULL) {
		if (node->kind == FRAGI_NODE_NULL)
			fragi_builder_error(builder, node, subject,
					    "a condition is empty; write {type: count, count: 10}");
		return;
	}
	if (fragi_node_get(node, "type") == NULL)
		fragi_builder_error(
			builder, node, subject,
			"a condition has no type; write for example {type: count, count: 10}");
	condition->type = fragi_spec_read_type(builder, fragi_node_get(node, "type"), subject,
					       FRAGI_HOLOSCAN_CONDITION);
	condition->name = fragi_read_name(builder, fragi_node_get(node, "name"), subject, "name");
	if (condition->name != NULL && fragi_strmap_get(names, condition->name) != NULL) {
		fragi_builder_error(
			builder, node, subject,
			"two conditions are called \"%s\"; names are unique in an operator",
			condition->name);
		condition->name = NULL; /* so that nothing more is reported about it */
	} else if (condition->name != NULL)
		fragi_builder_note(builder, names, condition->name, condition);
	fragi_settings_read(builder, node, subject, reserved, FRAG_COUNT_OF(reserved), &settings);
	fragi_settings_end(builder, &settings, &condition->settings, &condition->setting_count);
}

/* A list of ports becomes a condition that combines theirs. */
static void read_combination(struct fragi_builder *builder, struct fragi_node *ports,
			     const char *subject, struct fragi_spec_object *condition)
{
	struct fragi_settings settings = {0};

	condition->place = ports;
	if (fragi_read_list(builder, ports, subject, OR_KEY) == NULL)
		return;
	condition->type = "or";
	fragi_settings_put(builder, &settings, "ports", ports, ports, subject);
	fragi_settings_end(builder, &settings, &condition->settings, &condition->setting_count);
}

/* One list of ports, or a list of such lists. */
static bool is_list_of_lists(const struct fragi_node *list)
{
	return list != NULL && list->first != NULL && list->first->kind == FRAGI_NODE_LIST;
}

static void read_conditions(struct fragi_builder *builder, struct fragi_node *list,
			    struct fragi_node *combined, const char *subject,
			    struct fragi_spec_operator *op)
{
	struct fragi_strmap names = {0};
	size_t count = 0;

	list = fragi_read_list(builder, list, subject, "conditions");
	combined = fragi_read_list(builder, combined, subject, OR_KEY);
	count = (list != NULL ? list->count : 0) + (combined != NULL ? combined->count + 1 : 0);
	if (count == 0)
		return;
	op->conditions = fragi_builder_alloc(builder, count, sizeof(*op->conditions));
	if (op->conditions == NULL)
		return;
	for (struct fragi_node *child = list != NULL ? list->first : NULL; child != NULL;
	     child = child->next)
		read_condition(builder, child, subject, &names,
			       &op->conditions[op->condition_count++]);
	if (combined != NULL && !is_list_of_lists(combined))
		read_combination(builder, combined, subject,
				 &op->conditions[op->condition_count++]);
	for (struct fragi_node *child = is_list_of_lists(combined) ? combined->first : NULL;
	     child != NULL; child = child->next)
		read_combination(builder, child, subject, &op->conditions[op->condition_count++]);
	fragi_strmap_fini(&names);
}

const char *const fragi_metadata_policies[] = {"update", "inplace_update", "reject", "raise", NULL};

/* One of a subgraph that a library lists; those of the graph were expanded before. */
static void read_instance_keys(struct fragi_builder *builder, struct fragi_node *node,
			       const char *subject, struct fragi_spec_operator *op,
			       struct fragi_settings *settings)
{
	static const struct fragi_key fields[] = {{"subgraph"}, {"parameters"}, {"when"}};
	struct fragi_node *parameters;

	fragi_keys_check(builder, node, subject, fields, FRAG_COUNT_OF(fields));
	op->subgraph =
		fragi_read_name(builder, fragi_node_get(node, "subgraph"), subject, "subgraph");
	op->is_invalid = op->subgraph == NULL;
	parameters =
		fragi_read_map(builder, fragi_node_get(node, "parameters"), subject, "parameters");
	if (parameters != NULL)
		fragi_settings_read(builder, parameters, subject, NULL, 0, settings);
}

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_operator, m)
static const struct fragi_key operator_keys[] = {
	{"type"},
	{"parameters"},
	{"conditions"},
	{"ports", .read = fragi_spec_read_ports},
	{"when"},
	{"watchdog", FRAGI_KEY_TIME, MEMBER(watchdog_ns)},
	{"metadata", FRAGI_KEY_BOOL, MEMBER(metadata)},
	{"metadata_policy", FRAGI_KEY_WORD, MEMBER(metadata_policy), .min = FRAG_METADATA_UPDATE,
	 .words = fragi_metadata_policies},
	{OR_KEY},
	{"resources", .read = fragi_spec_read_references},
	{"align", MEMBER(align), .read = fragi_spec_read_align},
	{"deadline", MEMBER(deadline), .read = fragi_spec_read_deadline},
	{"rate", FRAGI_KEY_TIME, MEMBER(rate_ns)},
	{"budget", FRAGI_KEY_TIME, MEMBER(budget_ns)},
};

static void read_operator_keys(struct fragi_builder *builder, struct fragi_node *node,
			       const char *subject, struct fragi_spec_operator *op,
			       struct fragi_settings *settings)
{
	struct fragi_node *parameters;

	fragi_section_read(builder, node, subject, "an operator", FRAGI_KEYS(operator_keys), op);
	op->type = fragi_spec_read_type(builder, fragi_node_get(node, "type"), subject,
					FRAGI_HOLOSCAN_OPERATOR);
	parameters =
		fragi_read_map(builder, fragi_node_get(node, "parameters"), subject, "parameters");
	if (parameters != NULL)
		fragi_settings_read(builder, parameters, subject, NULL, 0, settings);
	read_conditions(builder, fragi_node_get(node, "conditions"), fragi_node_get(node, OR_KEY),
			subject, op);
}

static void read_operator(struct fragi_builder *builder, struct fragi_node *operators,
			  struct fragi_node *node, const struct fragi_spec_fragment *fragment,
			  struct fragi_spec_operator *op)
{
	char *path = fragi_builder_join(builder, fragment->name, node->key->text);
	struct fragi_settings settings = {0};
	struct fragi_node *map;

	op->name = node->key->text;
	op->place = node->key;
	op->scope = node->origin != NULL ? node->origin->scope : NULL;
	op->metadata = -1;
	if (path == NULL)
		return;
	fragi_builder_note(builder, &builder->operators, path, node);
	if (!fragi_check_name(builder, node->key, fragment->name, "operator", op->name)) {
		operators->lost_a_name = true;
		return;
	}
	op->is_invalid = node->is_reported;
	map = fragi_read_map(builder, node, path, "an operator");
	if (map != NULL && fragi_node_get(map, "subgraph") != NULL)
		read_instance_keys(builder, map, path, op, &settings);
	else if (map != NULL)
		read_operator_keys(builder, map, path, op, &settings);
	/* Without a composer an operator needs a type. A wrong type was reported already. */
	if (!fragment->is_composed && (map != NULL || node->kind == FRAGI_NODE_NULL) &&
	    fragi_node_get(map, "type") == NULL && fragi_node_get(map, "subgraph") == NULL)
		fragi_builder_error(builder, node->key, path,
				    "has no type, and no composer makes it; add `type: NAME`");
	fragi_sets_apply(builder, path, &settings);
	fragi_settings_end(builder, &settings, &op->settings, &op->setting_count);
}

void fragi_spec_read_operators(struct fragi_builder *builder, struct fragi_node *map,
			       const char *subject, void *out)
{
	struct fragi_spec_fragment *fragment = out;
	size_t composed = 0, count;

	map = fragi_read_map(builder, map, subject, "operators");
	if (fragment->is_composed)
		composed = fragi_sets_left(builder, fragment->name);
	count = (map != NULL ? map->count : 0) + composed;
	if (count == 0)
		return;
	fragment->operators = fragi_builder_alloc(builder, count, sizeof(*fragment->operators));
	if (fragment->operators == NULL)
		return;
	for (struct fragi_node *child = map != NULL ? map->first : NULL; child != NULL;
	     child = child->next)
		read_operator(builder, map, child, fragment,
			      &fragment->operators[fragment->operator_count++]);
	if (fragment->is_composed)
		fragment->operator_count += fragi_sets_make(
			builder, fragment->name, &fragment->operators[fragment->operator_count]);
}
