// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/alias.h>
#include <graph/compose.h>

/* Types that the schema has and this version does not. */
static const char *const conditions_later[] = {
	"asynchronous",
	"cuda_buffer",
	"cuda_event",
	"cuda_stream",
	"expiring_message_available",
	"memory_available",
	"multi_message_available",
	"multi_message_available_timeout",
};
static const char *const resources_later[] = {
	"async_data_logger", "cuda_green_context", "cuda_green_context_pool",  "cuda_stream_pool",
	"data_logger",       "rmm_allocator",      "stream_ordered_allocator",
};

static bool is_later(const char *const *later, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(later[i], name) == 0)
			return true;
	return false;
}

static void refuse_type(struct frag_fragment *fragment, const struct fragi_node *place,
			const char *subject, const char *what, const char *type, bool later,
			const char *const *names, size_t count)
{
	char advice[400];

	if (later)
		fragi_making_fail(fragment, -EINVAL, place, subject,
				  "%s type \"%s\" is not built yet", what, type);
	else
		fragi_making_fail(
			fragment, -EINVAL, place, subject, "unknown %s type \"%.80s\"%s", what,
			type, fragi_advise(advice, sizeof(advice), type, "valid", names, count));
}

static const struct fragi_cond_type *condition_type(struct frag_op *op, const char *name,
						    const struct fragi_node *place)
{
	const char *type_name = fragi_alias(name), *names[64];
	const struct fragi_cond_type *type = fragi_cond_type_find(type_name), *types;
	size_t count;

	if (type != NULL)
		return type;
	types = fragi_cond_types(&count);
	for (size_t i = 0; i < count && i < FRAG_COUNT_OF(names); i++)
		names[i] = types[i].name;
	refuse_type(op->fragment, place, op->subject, "condition", name,
		    is_later(conditions_later, FRAG_COUNT_OF(conditions_later), type_name), names,
		    count);
	return NULL;
}

/*
 * A name of the condition's own when none was given: the type's, with a number when that is taken.
 */
static const char *condition_name(struct frag_op *op, const char *type)
{
	const char *name = type;

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
	const struct fragi_cond_type *type = condition_type(op, type_name, place);
	struct frag_condition *condition, **conditions;
	struct fragi_made_condition *said;

	if (type == NULL)
		goto err_failed;
	if (name == NULL) {
		name = condition_name(op, type->name);
	} else if (!fragi_name_is_valid(name)) {
		fragi_making_fail(fragment, -EINVAL, place, op->subject,
				  "\"%.80s\" is no name of a condition", name);
		goto err_failed;
	} else if (frag_op_condition(op, name) != NULL) {
		fragi_making_fail(fragment, -EINVAL, place, op->subject,
				  "two conditions are called \"%s\"", name);
		goto err_failed;
	}
	condition = fragi_arena_alloc(&fragment->arena, sizeof(*condition));
	conditions = fragi_making_room(fragment, op->conditions, op->condition_count,
				       &made->condition_capacity, sizeof(struct frag_condition *));
	said = fragi_making_room(fragment, made->conditions, op->condition_count,
				 &made->made_condition_capacity, sizeof(*said));
	name = fragi_arena_strdup(&fragment->arena, name);
	if (condition == NULL || name == NULL || conditions == NULL || said == NULL) {
		fragi_making_fail(fragment, -ENOMEM, place, op->subject,
				  "memory is short for a condition");
		goto err_failed;
	}
	op->conditions = conditions;
	made->conditions = said;
	condition->type = type;
	condition->name = name;
	condition->op = op;
	condition->port = UINT32_MAX;
	said[op->condition_count] = (struct fragi_made_condition){settings, count, place};
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

	for (uint32_t i = 0; i < op->condition_count; i++) {
		condition = op->conditions[i];
		made = &op->made->conditions[i];
		context.subject = fragi_arena_printf(&op->fragment->arena, "%s: condition %s",
						     op->subject, condition->name);
		if (context.subject == NULL)
			return -ENOMEM;
		context.place = made->place;
		r = fragi_params_fill(&(struct fragi_param_table){condition->type->params,
								  condition->type->param_count,
								  sizeof(struct frag_param)},
				      made->settings, made->count, &condition->params, &context);
		if (r < 0)
			result = r;
		else
			fragi_cond_reset(condition);
	}
	return result;
}

/* The port of that name and direction (0: any); name NULL: the only one. Complains. */
static struct fragi_port *port_of(struct frag_op *op, const struct frag_condition *condition,
				  const struct fragi_node *place, const char *param,
				  const char *name, enum frag_dir dir)
{
	const char *what = dir == FRAG_IN    ? "input"
			   : dir == FRAG_OUT ? "output"
					     : "port",
		   *names[64];
	struct fragi_port *only = NULL;
	size_t count = 0;
	char advice[400], lead[32];

	for (uint32_t i = 0; i < op->port_count; i++) {
		if (dir != 0 && op->ports[i].dir != dir)
			continue;
		if (name != NULL && strcmp(op->ports[i].name, name) == 0)
			return &op->ports[i];
		only = &op->ports[i];
		if (count < FRAG_COUNT_OF(names))
			names[count++] = op->ports[i].name;
	}
	if (name == NULL && count == 1)
		return only;
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

int fragi_conditions_bind(struct frag_op *op)
{
	const struct fragi_node *place;
	struct frag_condition *condition;
	struct fragi_port *port;
	int result = 0;

	for (uint32_t i = 0; i < op->condition_count; i++) {
		condition = op->conditions[i];
		place = op->made->conditions[i].place;
		switch (condition->type->kind) {
		case FRAGI_COND_MESSAGE_AVAILABLE:
			port = port_of(op, condition, place, "receiver", condition->params.receiver,
				       FRAG_IN);
			break;
		case FRAGI_COND_DOWNSTREAM_AFFORDABLE:
			port = port_of(op, condition, place, "transmitter",
				       condition->params.transmitter, FRAG_OUT);
			break;
		case FRAGI_COND_NONE:
			if (condition->params.port == NULL) {
				for (uint32_t j = 0; j < op->port_count; j++)
					op->ports[j].flags |= FRAG_PORT_NO_CONDITION;
				continue;
			}
			port = port_of(op, condition, place, "port", condition->params.port, 0);
			break;
		default:
			continue;
		}
		if (port == NULL) {
			result = -EINVAL;
			continue;
		}
		port->flags |= FRAG_PORT_NO_CONDITION;
		condition->port = (uint32_t)(port - op->ports);
	}
	return result;
}

struct frag_resource *fragi_resource_find(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		if (strcmp(frag_resource_name(fragment->resources[i]), name) == 0)
			return fragment->resources[i];
	return NULL;
}

static const struct fragi_resource_type *resource_type(struct frag_fragment *fragment,
						       const char *subject, const char *name,
						       const struct fragi_node *place)
{
	const char *type_name = fragi_alias(name), *names[64];
	const struct fragi_resource_type *type = fragi_resource_type_find(type_name);
	size_t count = 0;

	if (type != NULL)
		return type;
	while (count < FRAG_COUNT_OF(names) && (type = fragi_resource_type_at(count)) != NULL)
		names[count++] = type->name;
	refuse_type(fragment, place, subject, "resource", name,
		    is_later(resources_later, FRAG_COUNT_OF(resources_later), type_name), names,
		    count);
	return NULL;
}

/* Fills in a resource's parameters and makes it. */
static struct frag_resource *resource_create(struct frag_fragment *fragment, const char *subject,
					     const char *name,
					     const struct fragi_resource_type *type,
					     const struct fragi_spec_setting *settings,
					     size_t count, const struct fragi_node *place)
{
	struct fragi_param_context context = {
		.arena = &fragment->arena,
		.diag = fragment->diag,
		.subject = subject,
		.place = place,
		.app_folder = fragment->spec != NULL ? fragment->spec->app_folder : NULL};
	void *state =
		fragi_arena_alloc(&fragment->arena, type->state_size > 0 ? type->state_size : 1);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_resource *resource;
	int r;

	if (state == NULL) {
		fragi_making_fail(fragment, -ENOMEM, place, subject, "memory is short");
		return NULL;
	}
	r = fragi_params_fill(&(struct fragi_param_table){type->params, type->param_count,
							  sizeof(struct frag_param)},
			      settings, count, state, &context);
	if (r < 0) {
		fragi_making_note(fragment, r);
		return NULL;
	}
	r = fragi_resource_create(type, name, state, &resource, &err);
	if (r < 0) {
		fragi_making_fail(fragment, r == -ENOMEM ? r : -EINVAL, place, subject, "%s",
				  err.text[0] != '\0' ? err.text : frag_strerror(r));
		return NULL;
	}
	return resource;
}

struct frag_resource *fragi_resource_make(struct frag_fragment *fragment, const char *name,
					  const char *type_name,
					  const struct fragi_spec_setting *settings, size_t count,
					  const struct fragi_node *place)
{
	const char *subject = fragi_arena_printf(&fragment->arena, "%s.%s", fragment->name, name);
	struct fragi_making *making = fragment->making;
	const struct fragi_resource_type *type;
	struct frag_resource *resource = NULL, **resources;

	if (!fragi_name_is_valid(name)) {
		fragi_making_fail(fragment, -EINVAL, place, NULL,
				  "\"%.80s\" is no name of a resource", name);
		return NULL;
	}
	if (fragi_resource_find(fragment, name) != NULL) {
		fragi_making_fail(fragment, -EINVAL, place, NULL, "two resources are called \"%s\"",
				  name);
		return NULL;
	}
	if (subject == NULL) {
		fragi_making_note(fragment, -ENOMEM);
		return NULL;
	}
	type = resource_type(fragment, subject, type_name, place);
	if (type != NULL)
		resource = resource_create(fragment, subject, name, type, settings, count, place);
	if (resource == NULL) {
		fragi_making_note_bad(fragment, &making->bad_resources, name);
		return NULL;
	}
	resources = fragi_making_room(fragment, fragment->resources, fragment->resource_count,
				      &making->resource_capacity, sizeof(struct frag_resource *));
	if (resources == NULL) {
		fragi_resource_unref(resource);
		return NULL;
	}
	fragment->resources = resources;
	fragment->resources[fragment->resource_count++] = resource;
	return resource;
}
