// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/call.h>
#include <base/failure.h>
#include <base/may_write.h>
#include <base/names.h>
#include <base/units.h>
#include <graph/compose.h>
#include <graph/pools.h>
#include <res/data_logger.h>
#include <text/holoscan.h>

struct frag_resource *fragi_resource_find(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		if (strcmp(frag_resource_name(fragment->resources[i]), name) == 0)
			return fragment->resources[i];
	return NULL;
}

/* A data logger may be any of the built-in libraries, or of one that the graph lists. */
static void refuse_logger_type(struct frag_fragment *fragment, const char *subject,
			       const struct fragi_spec_object *object)
{
	const char *names[FRAGI_ENTRY_NAMES_MAX];
	size_t count = 0;
	char advice[600];

	if (fragi_holoscan_explain(advice, sizeof(advice), FRAGI_HOLOSCAN_RESOURCE, object->type)) {
		fragi_making_fail(fragment, -EINVAL, object->place, subject, "%s", advice);
		return;
	}
	if (fragment->registry != NULL)
		count = fragi_registry_names(fragment->registry, FRAGI_ENTRY_DATA_LOGGER, names, 0);
	fragi_advise(advice, sizeof(advice), object->type, "valid", names, count);
	fragi_making_fail(fragment, -EINVAL, object->place, subject,
			  "unknown type \"%.80s\" of a data logger%s%s", object->type, advice,
			  fragi_suggest(object->type, names, count) != NULL
				  ? ""
				  : "; or list the library that has it under extensions");
}

static void refuse_type(struct frag_fragment *fragment, const char *subject,
			const struct fragi_spec_object *object)
{
	const char *names[FRAGI_ENTRY_NAMES_MAX];
	size_t count = 0;

	while (count < FRAG_COUNT_OF(names) && fragi_built_in_resource_at(count) != NULL) {
		names[count] = fragi_built_in_resource_at(count)->type.name;
		count++;
	}
	if (fragment->registry != NULL) {
		count = fragi_registry_names(fragment->registry, FRAGI_ENTRY_RESOURCE, names,
					     count);
		count = fragi_registry_names(fragment->registry, FRAGI_ENTRY_DATA_LOGGER, names,
					     count);
	}
	fragi_making_refuse_type(fragment, object->place, subject, FRAGI_HOLOSCAN_RESOURCE,
				 object->type, names, count);
}

/* The type of that name which libraries have: a resource, else a data logger. NULL: none. */
static const struct frag_resource_type *
type_of_library(struct frag_fragment *fragment, const char *name, bool built_in,
		const struct fragi_built_in_resource **out_built_in)
{
	const struct frag_resource_type *type;
	const struct frag_data_logger_type *logger;

	if (fragment->registry == NULL)
		return NULL;
	type = fragi_registry_resource(fragment->registry, name, built_in);
	if (type != NULL)
		return type;
	logger = fragi_registry_data_logger(fragment->registry, name, built_in);
	if (logger == NULL)
		return NULL;
	*out_built_in = fragi_data_logger_resource_type(&fragment->arena, logger);
	if (*out_built_in == NULL) {
		fragi_making_note(fragment, -ENOMEM);
		return NULL;
	}
	return &(*out_built_in)->type;
}

/*
 * Finds the type of that name: of an extension, else built in, else of a built-in library. Reports
 * an error when there is none.
 */
static const struct frag_resource_type *
type_find(struct frag_fragment *fragment, const char *subject,
	  const struct fragi_spec_object *object,
	  const struct fragi_built_in_resource **out_built_in)
{
	const char *type_name = fragi_alias(FRAGI_HOLOSCAN_RESOURCE, object->type);
	const struct frag_resource_type *type =
		type_of_library(fragment, type_name, false, out_built_in);

	if (type == NULL) {
		*out_built_in = fragi_built_in_resource(type_name);
		if (*out_built_in != NULL)
			return &(*out_built_in)->type;
	}
	if (type == NULL)
		type = type_of_library(fragment, type_name, true, out_built_in);
	if (type == NULL && !fragment->making->no_library) {
		if (object->kind == FRAGI_OBJECT_LOGGER)
			refuse_logger_type(fragment, subject, object);
		else
			refuse_type(fragment, subject, object);
	}
	return type;
}

static struct frag_resource *resource_named(void *arg, const char *name)
{
	return fragi_resource_find(arg, name);
}

static const char *name_at(void *arg, enum frag_param_kind kind, size_t i)
{
	const struct frag_fragment *fragment = arg;

	if (kind != FRAG_PARAM_KIND_RESOURCE || i >= fragment->resource_count)
		return NULL;
	return frag_resource_name(fragment->resources[i]);
}

/* Fills in the parameters and calls setup. Reports errors. */
static int set_up(struct frag_fragment *fragment, struct frag_resource *resource,
		  const char *subject, const struct fragi_spec_object *object)
{
	const struct fragi_node *place = object->place;
	const struct fragi_param_context context = {
		.arena = &resource->arena,
		.diag = fragment->diag,
		.subject = subject,
		.place = place,
		.app_folder = fragment->spec != NULL ? fragment->spec->app_folder : NULL,
		.arg = fragment,
		.resource = resource_named,
		.name_at = name_at};
	const struct fragi_param_table table = {resource->type.params, resource->type.param_count,
						sizeof(struct frag_param)};
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_params_fill(&table, object->settings, object->setting_count,
				  fragi_resource_state(resource), &context);

	if (r < 0) {
		fragi_making_note(fragment, r);
		return r;
	}
	if (place != NULL) /* else it is a part of the call of a composer */
		fragi_call_begin(subject, FRAGI_CALL_SETUP, 0);
	r = fragi_resource_set_up(resource, &err);
	if (place != NULL)
		fragi_call_end();
	if (r < 0)
		fragi_making_fail(fragment, r == -ENOMEM ? r : -EINVAL, place, subject, "%s",
				  err.text[0] != '\0' ? err.text : frag_strerror(r));
	return r;
}

/* Makes it and puts it into the fragment. NULL: reported. */
static struct frag_resource *make(struct frag_fragment *fragment, const char *subject,
				  const struct fragi_spec_object *object,
				  const struct frag_resource_type *type,
				  const struct fragi_built_in_resource *built_in)
{
	struct frag_resource *resource = NULL, **resources;

	resources = fragi_making_room(fragment, fragment->resources, fragment->resource_count,
				      &fragment->making->resource_capacity,
				      sizeof(struct frag_resource *));
	if (resources == NULL ||
	    fragi_resource_create(type, built_in, object->name, &resource) < 0) {
		fragi_making_fail(fragment, -ENOMEM, object->place, subject, "out of memory");
		return NULL;
	}
	fragment->resources = resources;
	resource->fragment = fragment;
	resource->scope = fragment->making->scope;
	if (set_up(fragment, resource, subject, object) < 0) {
		fragi_resource_unref(resource);
		return NULL;
	}
	fragment->resources[fragment->resource_count++] = resource;
	return resource;
}

/* type: the table, where the object names none. NULL: an error is reported. */
static struct frag_resource *make_of_object(struct frag_fragment *fragment,
					    const struct fragi_spec_object *object,
					    const struct frag_resource_type *type)
{
	const char *name = object->name;
	const char *subject = fragi_arena_printf(&fragment->arena, "%s.%s", fragment->name, name);
	const struct fragi_built_in_resource *built_in = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_resource *resource = NULL;
	int r;

	if (!fragi_name_is_valid(name)) {
		fragi_making_fail(fragment, -EINVAL, object->place, NULL,
				  "\"%.80s\" is not a valid name of a resource", name);
		return NULL;
	}
	if (fragi_resource_find(fragment, name) != NULL) {
		fragi_making_fail(fragment, -EINVAL, object->place, NULL,
				  "two resources or services are called \"%s\"", name);
		return NULL;
	}
	if (subject == NULL) {
		fragi_making_note(fragment, -ENOMEM);
		type = NULL;
	} else if (object->type != NULL) {
		type = type_find(fragment, subject, object, &built_in);
	} else {
		r = fragi_resource_type_copy(&fragment->arena, type, &type, &err);
		if (r < 0) {
			fragi_making_fail(fragment, r, object->place, subject, "%s", err.text);
			type = NULL;
		}
	}
	if (type != NULL)
		resource = make(fragment, subject, object, type, built_in);
	if (resource == NULL)
		fragi_making_note_bad(fragment, &fragment->making->bad_resources, name);
	return resource;
}

struct frag_resource *fragi_resource_make_declared(struct frag_fragment *fragment,
						   const struct fragi_spec_object *object)
{
	const char *scope = fragment->making->scope;
	struct frag_resource *resource;

	if (object->type == NULL) {
		fragi_making_note_bad(fragment, &fragment->making->bad_resources, object->name);
		return NULL;
	}
	fragment->making->scope = object->scope;
	resource = make_of_object(fragment, object, NULL);
	if (resource != NULL && object->kind == FRAGI_OBJECT_SERVICE)
		fragi_service_register(fragment, resource, object->id, object->place);
	if (resource != NULL && object->kind == FRAGI_OBJECT_LOGGER)
		fragi_logger_add(fragment, resource, object->is_shared, object->place);
	fragment->making->scope = scope;
	return resource;
}

void fragi_resources_make(struct frag_fragment *fragment, const struct fragi_spec_object *objects,
			  size_t count)
{
	for (size_t i = 0; i < count; i++)
		fragi_resource_make_declared(fragment, &objects[i]);
}

static struct frag_resource *make_resource(struct frag_fragment *fragment, const char *name,
					   const char *type_name,
					   const struct frag_resource_type *type,
					   const struct frag_arg *args)
{
	struct fragi_spec_object object = {.type = type_name};
	const char *subject = NULL;

	if (!fragi_making_is_open(fragment))
		return NULL;
	name = fragi_subgraph_qualify(fragment, name);
	if (name != NULL)
		subject = fragi_arena_printf(&fragment->arena, "%s.%s", fragment->name, name);
	if (fragi_making_settings(fragment, subject, args, &object.settings,
				  &object.setting_count) < 0) {
		if (name != NULL)
			fragi_making_note_bad(fragment, &fragment->making->bad_resources, name);
		return NULL;
	}
	object.name = name != NULL ? name : "";
	return make_of_object(fragment, &object, type);
}

struct frag_resource *frag_make_resource(struct frag_fragment *fragment, const char *name,
					 const char *type, const struct frag_arg *args)
{
	return make_resource(fragment, name, type != NULL ? type : "", NULL, args);
}

struct frag_resource *frag_make_resource_of(struct frag_fragment *fragment, const char *name,
					    const struct frag_resource_type *type,
					    const struct frag_arg *args)
{
	return make_resource(fragment, name, NULL, type, args);
}

/* Appends a resource to those that the operator has by position. */
static int give(struct frag_op *op, struct frag_resource *resource)
{
	struct frag_resource **given =
		fragi_making_room(op->fragment, op->resources, op->resource_count,
				  &op->made->resource_capacity, sizeof(struct frag_resource *));

	if (given == NULL)
		return -ENOMEM;
	op->resources = given;
	given[op->resource_count++] = resource;
	return 0;
}

int frag_add_resource(struct frag_op *op, struct frag_resource *resource)
{
	if (op == NULL)
		return -EINVAL;
	if (!fragi_making_is_open(op->fragment))
		return -EBUSY;
	if (resource == NULL)
		return op->fragment->making->code < 0 || op->fragment->making->no_library
			       ? -EINVAL
			       : fragi_making_fail(op->fragment, -EINVAL, NULL, op->subject,
						   "frag_add_resource: the resource is NULL");
	if (resource->fragment != op->fragment)
		return fragi_making_fail(op->fragment, -EINVAL, NULL, op->subject,
					 "resource \"%s\" is of another fragment", resource->name);
	return give(op, resource);
}

int fragi_op_give_resources(struct frag_op *op)
{
	const struct fragi_spec_operator *own = op->made->own;
	struct fragi_param_context context = {0};
	struct frag_resource *resource;
	char advice[400];
	int r, result = 0;

	fragi_op_references(op, &context);
	for (size_t i = 0; own != NULL && i < own->resource_count; i++) {
		const struct fragi_spec_reference *named = &own->resources[i];

		resource = context.resource(op, named->name);
		if (resource == NULL) {
			const char *names[64];
			size_t count = 0;

			while (count < FRAG_COUNT_OF(names) &&
			       (names[count] = name_at(op->fragment, FRAG_PARAM_KIND_RESOURCE,
						       count)) != NULL)
				count++;
			r = fragi_making_fail(op->fragment, -EINVAL, named->place, op->subject,
					      "there is no resource \"%.80s\"%s", named->name,
					      fragi_advise(advice, sizeof(advice), named->name,
							   "resources", names, count));
		} else {
			r = give(op, resource);
		}
		result = r < 0 ? r : result;
	}
	return result;
}

struct frag_resource *frag_op_resource_at(const struct frag_op *op, uint32_t i)
{
	return i < op->resource_count ? op->resources[i] : NULL;
}

void *frag_op_context(const struct frag_op *op)
{
	return op->type->context;
}

int fragi_resources_initialize(struct frag_fragment *fragment, struct fragi_diag *diag)
{
	char subject[2 * FRAG_NAME_MAX + 2];

	for (uint32_t i = 0; i < fragment->resource_count; i++) {
		struct frag_resource *resource = fragment->resources[i];
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		if (resource->type.initialize == NULL)
			continue;
		snprintf(subject, sizeof(subject), "%s.%s", fragment->name, resource->name);
		fragi_call_begin(subject, FRAGI_CALL_INITIALIZE, 0);
		r = resource->type.initialize(fragi_resource_state(resource), resource, &err);
		fragi_call_end();
		r = fragi_resource_result("initialize", r, &err);
		if (r < 0)
			return fragi_resource_failed(resource, "initialize", r, &err, diag);
	}
	return 0;
}

/* Writes which operators a resource is a parameter of: " (used by a, b)"; nothing if there is none. */
static void list_users(const struct frag_resource *resource, char *out, size_t size)
{
	const struct frag_fragment *fragment = resource->fragment;
	struct fragi_names names = {.text = out, .size = size};

	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (fragi_op_uses(fragment->ops[i], resource))
			fragi_names_add(&names, "%s%s", names.count == 0 ? " (used by " : "",
					fragment->ops[i]->name);
	if (names.count > 0 && strlen(out) + 1 < size)
		strcpy(out + strlen(out), ")");
}

int fragi_resource_failed(const struct frag_resource *resource, const char *callback, int r,
			  const struct frag_err *err, struct fragi_diag *diag)
{
	const enum fragi_failure failure = err->failure != FRAGI_FAILURE_NONE
						   ? (enum fragi_failure)err->failure
					   : r == -EINVAL ? FRAGI_FAILURE_OPERATOR_REFUSED
					   : r == -ENOENT ? FRAGI_FAILURE_OPERATOR_LACKS_FILE
							  : FRAGI_FAILURE_OPERATOR_FAILED;
	const size_t first = diag->count;
	char subject[2 * FRAG_NAME_MAX + 2], hint[FRAGI_MAY_WRITE_HINT_SIZE], users[200] = "";

	snprintf(subject, sizeof(subject), "%s.%s", resource->fragment->name, resource->name);
	fragi_may_write_hint(r, hint, sizeof(hint));
	if (failure == FRAGI_FAILURE_GPU_MISSING)
		list_users(resource, users, sizeof(users));
	if (err->text[0] != '\0')
		fragi_diag_add(diag, r, NULL, 0, 0, "%s: %s%s%s", subject, err->text, hint, users);
	else
		fragi_diag_add(diag, r, NULL, 0, 0, "%s: %s returned %d (%s)%s", subject, callback,
			       r, frag_strerror(r), hint);
	fragi_diag_classify(diag, first, failure, subject);
	return r;
}

void fragi_resources_release(struct frag_fragment *fragment)
{
	for (uint32_t i = fragment->resource_count; i-- > 0;) {
		fragment->resources[i]->fragment = NULL;
		fragi_resource_unref(fragment->resources[i]);
	}
}
