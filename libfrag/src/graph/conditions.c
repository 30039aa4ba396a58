// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/holoscan.h>
#include <graph/compose.h>

static void refuse_type(struct frag_op *op, const char *name, const struct fragi_node *place)
{
	const char *names[FRAGI_ENTRY_NAMES_MAX];
	size_t count = 0;

	while (count < FRAG_COUNT_OF(names) && fragi_built_in_condition_at(count) != NULL) {
		names[count] = fragi_built_in_condition_at(count)->type.name;
		count++;
	}
	if (op->fragment->registry != NULL)
		count = fragi_registry_names(op->fragment->registry, FRAGI_ENTRY_CONDITION, names,
					     count);
	fragi_making_refuse_type(op->fragment, place, op->subject, FRAGI_HOLOSCAN_CONDITION, name,
				 names, count);
}

/*
 * Finds the type of that name: of an extension, else built in, else of a built-in library. Reports
 * an error when there is none.
 */
static bool type_find(struct frag_condition *condition, const char *name,
		      const struct fragi_node *place)
{
	struct fragi_registry *registry = condition->op->fragment->registry;
	const char *type_name = fragi_alias(FRAGI_HOLOSCAN_CONDITION, name);

	if (registry != NULL)
		condition->type = fragi_registry_condition(registry, type_name, false);
	if (condition->type == NULL) {
		condition->built_in = fragi_built_in_condition(type_name);
		if (condition->built_in != NULL)
			condition->type = &condition->built_in->type;
	}
	if (condition->type == NULL && registry != NULL)
		condition->type = fragi_registry_condition(registry, type_name, true);
	if (condition->type == NULL && !condition->op->fragment->making->no_library)
		refuse_type(condition->op, name, place);
	return condition->type != NULL;
}

/*
 * Chooses a name when none was given: that of the type, without LANGUAGE: and what has dots, and
 * with a number when it is taken.
 */
static const char *condition_name(struct frag_op *op, const char *type)
{
	const char *name = type + strlen(type);

	while (name > type && name[-1] != '.' && name[-1] != ':')
		name--;
	type = name;

	for (unsigned int i = 2; name != NULL && frag_op_condition(op, name) != NULL; i++)
		name = fragi_arena_printf(&op->fragment->arena, "%s_%u", type, i);
	return name;
}

struct frag_condition *fragi_condition_make(struct frag_op *op, const char *name,
					    const char *type_name,
					    const struct fragi_spec_setting *settings, size_t count,
					    const struct fragi_node *place)
{
	struct frag_fragment *fragment = op->fragment;
	struct fragi_made *made = op->made;
	struct frag_condition *condition, **conditions, draft = {.op = op, .port = UINT32_MAX};
	struct fragi_made_condition *records;

	if (!type_find(&draft, type_name, place))
		goto err_failed;
	if (name == NULL) {
		name = condition_name(op, draft.type->name);
	} else if (!fragi_name_is_valid(name)) {
		fragi_making_fail(fragment, -EINVAL, place, op->subject,
				  "\"%.80s\" is not a valid name of a condition", name);
		goto err_failed;
	} else if (frag_op_condition(op, name) != NULL) {
		fragi_making_fail(fragment, -EINVAL, place, op->subject,
				  "two conditions are called \"%s\"", name);
		goto err_failed;
	}
	condition = fragi_arena_alloc(&fragment->arena, sizeof(*condition));
	conditions = fragi_making_room(fragment, op->conditions, op->condition_count,
				       &made->condition_capacity, sizeof(struct frag_condition *));
	records = fragi_making_room(fragment, made->conditions, op->condition_count,
				    &made->made_condition_capacity, sizeof(*records));
	draft.name = fragi_arena_strdup(&fragment->arena, name);
	draft.state = fragi_arena_alloc(&fragment->arena, draft.type->state_size + 1);
	if (condition == NULL || draft.name == NULL || draft.state == NULL || conditions == NULL ||
	    records == NULL) {
		fragi_making_fail(fragment, -ENOMEM, place, op->subject,
				  "out of memory for a condition");
		goto err_failed;
	}
	op->conditions = conditions;
	made->conditions = records;
	*condition = draft;
	records[op->condition_count] = (struct fragi_made_condition){settings, count, place};
	conditions[op->condition_count++] = condition;
	return condition;

err_failed:
	made->failed = true;
	return NULL;
}

int fragi_conditions_fill(struct frag_op *op)
{
	struct fragi_param_context context = {.arena = &op->fragment->arena,
					      .diag = op->fragment->diag};
	const struct fragi_made_condition *made;
	struct frag_condition *condition;
	int r, result = 0;

	fragi_op_references(op, &context);
	for (; op->made->filled_conditions < op->condition_count; op->made->filled_conditions++) {
		condition = op->conditions[op->made->filled_conditions];
		made = &op->made->conditions[op->made->filled_conditions];
		context.subject = fragi_arena_printf(&op->fragment->arena, "%s: condition %s",
						     op->subject, condition->name);
		if (context.subject == NULL)
			return -ENOMEM;
		context.place = made->place;
		r = fragi_params_fill(&(struct fragi_param_table){condition->type->params,
								  condition->type->param_count,
								  sizeof(struct frag_param)},
				      made->settings, made->count, condition->state, &context);
		if (r < 0)
			result = r;
	}
	return result;
}

/* Finds the port of that name and direction (0: any); name NULL: the only one. Reports errors. */
static struct fragi_port *port_of(struct frag_op *op, const struct frag_condition *condition,
				  const struct fragi_node *place, const char *param,
				  const char *name, enum frag_dir dir)
{
	const char *what = dir == FRAG_IN    ? "input"
			   : dir == FRAG_OUT ? "output"
					     : "port",
		   *names[64];
	struct fragi_only_port only = {0};
	size_t count = 0;
	char advice[400], lead[32];

	for (uint32_t i = 0; i < op->port_count; i++) {
		if (dir != 0 && op->ports[i].dir != dir)
			continue;
		if (name != NULL && strcmp(op->ports[i].name, name) == 0)
			return &op->ports[i];
		fragi_only_port_add(&only, i, dir != 0 ? op->ports[i].flags : 0);
		if (count < FRAG_COUNT_OF(names))
			names[count++] = op->ports[i].name;
	}
	if (name == NULL && fragi_only_port_is_known(&only))
		return &op->ports[only.port];
	snprintf(lead, sizeof(lead), "its %ss", what);
	fragi_advise(advice, sizeof(advice), name != NULL ? name : "", lead, names, count);
	if (count == 0)
		snprintf(advice, sizeof(advice), "; it has no %ss", what);
	if (name != NULL)
		fragi_making_fail(op->fragment, -EINVAL, place, op->subject,
				  "condition %s: there is no %s \"%.80s\"%s", condition->name, what,
				  name, advice);
	else
		fragi_making_fail(op->fragment, -EINVAL, place, op->subject,
				  "condition %s: name the port with %s%s", condition->name, param,
				  advice);
	return NULL;
}

/* Returns the field of a parameter; NULL: the type has none of this name and kind. */
static const void *param_value(const struct frag_condition *condition, const char *name,
			       enum frag_param_kind kind)
{
	const struct frag_condition_type *type = condition->type;

	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0 && type->params[i].kind == kind)
			return (const char *)condition->state + type->params[i].offset;
	return NULL;
}

struct frag_string_list fragi_condition_names(const struct frag_condition *condition,
					      const char *param)
{
	const struct frag_string_list *list =
		param_value(condition, param, FRAG_PARAM_KIND_STRING_LIST);

	return list != NULL ? *list : (struct frag_string_list){NULL, 0};
}

/* Returns the value of the parameter that names a port; NULL: left out. */
static const char *port_name(const struct frag_condition *condition)
{
	const char *const *name =
		param_value(condition, condition->built_in->port_param, FRAG_PARAM_KIND_STRING);

	return name != NULL ? *name : NULL;
}

/* Adds a port that the condition is about, and removes that port's default condition. */
static int port_add(struct frag_condition *condition, struct fragi_port *port,
		    const struct fragi_node *place)
{
	struct frag_op *op = condition->op;
	uint32_t index = (uint32_t)(port - op->ports);

	for (uint32_t i = 0; i < condition->port_count; i++)
		if (condition->ports[i] == index)
			return fragi_making_fail(op->fragment, -EINVAL, place, op->subject,
						 "condition %s: port \"%s\" is named twice",
						 condition->name, port->name);
	port->flags |= FRAG_PORT_NO_CONDITION;
	condition->ports[condition->port_count++] = index;
	return 0;
}

/* The ports that a list names; an empty one: all of its direction. */
static int ports_of_list(struct frag_condition *condition, const struct fragi_node *place)
{
	const struct fragi_built_in_condition *built_in = condition->built_in;
	struct frag_string_list names = fragi_condition_names(condition, built_in->port_param);
	struct frag_op *op = condition->op;
	struct fragi_port *port;
	int r = 0;

	for (size_t i = 0; r == 0 && i < names.count; i++) {
		port = port_of(op, condition, place, built_in->port_param, names.items[i],
			       built_in->port_dir);
		r = port != NULL ? port_add(condition, port, place) : -EINVAL;
	}
	for (uint32_t i = 0; names.count == 0 && i < op->port_count; i++)
		if (op->ports[i].dir == built_in->port_dir)
			port_add(condition, &op->ports[i], place);
	if (r == 0 && condition->port_count == 0)
		r = fragi_making_fail(op->fragment, -EINVAL, place, op->subject,
				      "condition %s: the operator has no inputs", condition->name);
	return r;
}

/* Finds the ports that the condition is about, and removes the default conditions of them. */
static int ports_bind(struct frag_condition *condition, const struct fragi_node *place)
{
	const struct fragi_built_in_condition *built_in = condition->built_in;
	struct frag_op *op = condition->op;
	struct fragi_port *port;
	const char *name;

	if (built_in == NULL || built_in->port_param == NULL)
		return 0;
	condition->ports = fragi_arena_alloc(&op->fragment->arena,
					     (op->port_count + 1) * sizeof(*condition->ports));
	if (condition->ports == NULL)
		return fragi_making_fail(op->fragment, -ENOMEM, place, op->subject,
					 "out of memory for a condition");
	if (built_in->takes_list)
		return ports_of_list(condition, place);
	name = port_name(condition);
	if (name == NULL && built_in->all_ports) {
		for (uint32_t i = 0; i < op->port_count; i++)
			op->ports[i].flags |= FRAG_PORT_NO_CONDITION;
		return 0;
	}
	port = port_of(op, condition, place, built_in->port_param, name, built_in->port_dir);
	if (port == NULL)
		return -EINVAL;
	if (built_in->check_inputs == NULL)
		condition->port = (uint32_t)(port - op->ports);
	return port_add(condition, port, place);
}

struct frag_condition *fragi_condition_of_port(struct frag_op *op, const struct fragi_port *port,
					       const struct fragi_node *place)
{
	bool is_in = port->dir == FRAG_IN;
	char min_size[16];
	struct fragi_spec_setting *settings;
	struct frag_condition *condition = NULL;
	size_t count;

	snprintf(min_size, sizeof(min_size), "%u",
		 port->min_size != FRAG_PORT_PRECEDING_COUNT ? port->min_size
		 : port->flow_count > 0                      ? port->flow_count
							     : 1);
	if (fragi_settings_from_args(&op->fragment->arena,
				     FRAG_ARGS({is_in ? "receiver" : "transmitter", port->name},
					       {"min_size", min_size}),
				     &settings, &count) == 0)
		condition = fragi_condition_make(
			op, NULL, is_in ? "message_available" : "downstream_affordable", settings,
			count, place);
	if (condition == NULL || fragi_conditions_fill(op) < 0 || ports_bind(condition, place) < 0)
		return NULL;
	condition->bound = true;
	return condition;
}

/* Calls bind. Returns 0 or its failure, which is reported. */
static int call_bind(struct frag_condition *condition, const struct fragi_node *place)
{
	struct frag_op *op = condition->op;
	struct frag_err err = FRAG_ERR_INIT;
	int r = 0;

	if (condition->type->bind != NULL) {
		fragi_current_set(op, FRAGI_CALL_BIND);
		r = condition->type->bind(condition->state, condition, &err);
		fragi_current_set(NULL, FRAGI_CALL_NONE);
	}
	if (r > 0)
		r = frag_err_set(&err, -EINVAL, "bind returned %d; return 0 or a negative errno",
				 r);
	if (r < 0)
		fragi_making_fail(op->fragment, r, place, op->subject, "condition %s: %s",
				  condition->name,
				  err.text[0] != '\0' ? err.text : frag_strerror(r));
	return r;
}

int fragi_conditions_bind(struct frag_op *op)
{
	uint32_t count = op->condition_count;
	struct frag_condition *condition;
	int r, result = 0;

	/* `bound` means until the last step that nothing has failed. */
	for (uint32_t i = 0; i < count; i++) {
		r = ports_bind(op->conditions[i], op->made->conditions[i].place);
		op->conditions[i]->bound = r == 0;
		result = r < 0 ? r : result;
	}
	for (uint32_t i = 0; result == 0 && i < count; i++) {
		condition = op->conditions[i];
		if (condition->type->combine == NULL)
			continue;
		result = fragi_condition_bind_terms(op, i);
		condition->bound = result == 0;
	}
	for (uint32_t i = 0; i < op->condition_count; i++) {
		condition = op->conditions[i];
		r = condition->bound ? call_bind(condition, op->made->conditions[i].place) : 0;
		condition->bound = condition->bound && r == 0;
		result = r < 0 ? r : result;
	}
	return result;
}

void fragi_conditions_fini(struct frag_op *op)
{
	for (uint32_t i = 0; i < op->condition_count; i++)
		if (op->conditions[i]->bound && op->conditions[i]->type->fini != NULL)
			op->conditions[i]->type->fini(op->conditions[i]->state);
}
