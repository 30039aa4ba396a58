// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "service"
#include <base/call.h>
#include <base/failure.h>
#include <base/log.h>
#include <base/units.h>
#include <frag/service.h>
#include <graph/subgraph.h>

/* Registering. */

static bool is_of_application(const struct frag_resource_type *type)
{
	return type->driver_start != NULL || type->driver_stop != NULL ||
	       type->worker_connect != NULL || type->worker_disconnect != NULL;
}

static bool is_registered(const struct frag_fragment *fragment, const char *type, const char *id)
{
	const char *scope = fragment->making->scope;

	for (uint32_t i = 0; i < fragment->service_count; i++)
		if (strcmp(fragment->services[i].resource->type.name, type) == 0 &&
		    strcmp(fragment->services[i].id, id) == 0 &&
		    fragi_scope_holds(fragment->services[i].scope, scope) &&
		    fragi_scope_holds(scope, fragment->services[i].scope))
			return true;
	return false;
}

int fragi_service_register(struct frag_fragment *fragment, struct frag_resource *resource,
			   const char *id, const struct fragi_node *place)
{
	const char *type = resource->type.name;
	struct fragi_service *services;

	id = id != NULL ? id : "";
	if (id[0] != '\0' && !fragi_name_is_valid(id))
		return fragi_making_fail(fragment, -EINVAL, place, NULL,
					 "\"%.80s\" is not a valid id of a service", id);
	/* of a fragment without `own` they are those of the application, or of a test */
	if (is_of_application(&resource->type) && fragment->own != NULL)
		return fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"service \"%s\" is of type %s, which follows the driver and the workers of an application; declare it in `services` at the top of the graph",
			resource->name, type);
	if (is_registered(fragment, type, id)) {
		if (id[0] != '\0')
			fragi_making_fail(
				fragment, -EINVAL, place, NULL,
				"two services of type %s have the id \"%s\"; give one of them another id",
				type, id);
		else
			fragi_making_fail(
				fragment, -EINVAL, place, NULL,
				"two services of type %s have no id; give one of them an id", type);
		return -EEXIST;
	}
	services = fragi_making_room(fragment, fragment->services, fragment->service_count,
				     &fragment->making->service_capacity, sizeof(*services));
	if (services == NULL)
		return -ENOMEM;
	fragment->services = services;
	services += fragment->service_count;
	*services = (struct fragi_service){
		.id = fragi_arena_strdup(&fragment->arena, id),
		.scope = fragment->making->scope,
		.resource = resource,
	};
	if (services->id == NULL)
		return fragi_making_fail(fragment, -ENOMEM, place, NULL,
					 "out of memory for a service");
	fragment->service_count++;
	return 0;
}

int frag_register_service(struct frag_fragment *fragment, struct frag_resource *resource,
			  const char *id)
{
	const struct fragi_making *making = fragment->making;

	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (resource == NULL)
		return making->code < 0 || making->no_library
			       ? -EINVAL
			       : fragi_making_fail(fragment, -EINVAL, NULL, NULL,
						   "frag_register_service: the resource is NULL");
	if (resource->fragment != fragment)
		return fragi_making_fail(
			fragment, -EINVAL, NULL, NULL,
			"frag_register_service: resource \"%s\" is of another fragment",
			resource->name);
	return fragi_service_register(fragment, resource, id, NULL);
}

/* Looking up. */

bool fragi_scope_holds(const char *scope, const char *path)
{
	size_t length = scope != NULL ? strlen(scope) : 0;

	if (scope == NULL || path == NULL)
		return scope == NULL;
	return strncmp(path, scope, length) == 0 && (path[length] == '\0' || path[length] == '.');
}

/*
 * Of the services of that type and id: that of the innermost instance in which the one at `path`
 * is, else the only one.
 */
static struct frag_resource *find_in(const struct frag_fragment *fragment, const char *path,
				     const char *type, const char *id)
{
	const struct fragi_service *best = NULL, *any = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < fragment->service_count; i++) {
		const struct fragi_service *service = &fragment->services[i];

		if (strcmp(service->resource->type.name, type) != 0 || strcmp(service->id, id) != 0)
			continue;
		any = service;
		count++;
		if (fragi_scope_holds(service->scope, path) &&
		    (best == NULL || fragi_scope_holds(best->scope, service->scope)))
			best = service;
	}
	if (best == NULL && count == 1)
		best = any;
	return best != NULL ? best->resource : NULL;
}

static struct frag_resource *find(const struct frag_fragment *fragment, const char *path,
				  const char *type, const char *id)
{
	struct frag_resource *found;

	if (fragment == NULL || type == NULL)
		return NULL;
	type = fragi_alias(FRAGI_HOLOSCAN_RESOURCE, type);
	id = id != NULL ? id : "";
	found = find_in(fragment, path, type, id);
	if (found == NULL && fragment->shared != NULL)
		found = find_in(fragment->shared, NULL, type, id);
	return found;
}

struct frag_resource *frag_op_service(const struct frag_op *op, const char *type, const char *id)
{
	return find(op->fragment, op->scope, type, id);
}

struct frag_resource *frag_condition_service(const struct frag_condition *condition,
					     const char *type, const char *id)
{
	return find(condition->op->fragment, condition->op->scope, type, id);
}

struct frag_resource *frag_resource_service(const struct frag_resource *resource, const char *type,
					    const char *id)
{
	return find(resource->fragment, resource->scope, type, id);
}

struct frag_resource *frag_fragment_service(const struct frag_fragment *fragment, const char *type,
					    const char *id)
{
	return find(fragment, NULL, type, id);
}

/* Those of the application. */

int fragi_services_compose(const struct fragi_spec *spec, struct fragi_registry *registry,
			   struct fragi_diag *diag, struct frag_fragment **out_shared)
{
	struct frag_fragment *shared = NULL;
	int r;

	*out_shared = NULL;
	if (spec->service_count == 0)
		return 0;
	r = fragi_fragment_begin(spec->application, spec, NULL, registry, diag, &shared);
	if (r == 0)
		r = fragi_registry_create_within(registry, &shared->own_registry);
	if (r < 0) {
		fragi_fragment_destroy(shared);
		return fragi_diag_add(diag, r, NULL, 0, 0, "%s: out of memory", spec->application);
	}
	shared->registry = shared->own_registry;
	fragi_extensions_load(shared, spec->extensions, spec->extension_count);
	fragi_resources_make(shared, spec->services, spec->service_count);
	r = fragi_fragment_complete(shared);
	if (r < 0)
		fragi_fragment_destroy(shared);
	else
		*out_shared = shared;
	return r;
}

/* Marks who is called, for who looks at a call that does not return. */
static void begin_call(const struct frag_resource *resource, enum fragi_call_kind kind)
{
	char subject[2 * FRAG_NAME_MAX + 2];

	snprintf(subject, sizeof(subject), "%s.%s", resource->fragment->name, resource->name);
	fragi_call_begin(subject, kind, 0);
}

int fragi_services_start(struct frag_fragment *shared, struct fragi_diag *diag)
{
	for (uint32_t i = 0; shared != NULL && i < shared->service_count; i++) {
		struct frag_resource *resource = shared->services[i].resource;
		struct frag_err err = FRAG_ERR_INIT;
		int r = 0;

		if (resource->type.driver_start != NULL) {
			begin_call(resource, FRAGI_CALL_DRIVER_START);
			resource->is_starting = true;
			r = resource->type.driver_start(fragi_resource_state(resource), resource,
							&err);
			resource->is_starting = false;
			fragi_call_end();
		}
		r = fragi_resource_result("driver_start", r, &err);
		if (r < 0)
			return fragi_resource_failed(resource, "driver_start", r, &err, diag);
		resource->is_driver = true;
	}
	return 0;
}

int frag_service_announce(struct frag_resource *resource, const char *text)
{
	const char *copy;

	if (text == NULL)
		return -EINVAL;
	if (strlen(text) > FRAG_ANNOUNCEMENT_MAX)
		return -EMSGSIZE;
	if (!resource->is_starting)
		return -EBUSY;
	copy = fragi_arena_strdup(&resource->arena, text);
	if (copy == NULL)
		return -ENOMEM;
	resource->announced = copy;
	return 0;
}

int fragi_services_connect(struct frag_fragment *shared, const char *const *announced,
			   uint32_t count, struct frag_err *err)
{
	for (uint32_t i = 0; shared != NULL && i < shared->service_count; i++) {
		struct frag_resource *resource = shared->services[i].resource;
		struct frag_err cause = FRAG_ERR_INIT;
		int r = 0;

		if (resource->type.worker_connect != NULL) {
			begin_call(resource, FRAGI_CALL_WORKER_CONNECT);
			r = resource->type.worker_connect(
				fragi_resource_state(resource), resource,
				i < count && announced[i][0] != '\0' ? announced[i] : NULL, &cause);
			fragi_call_end();
		}
		r = fragi_resource_result("worker_connect", r, &cause);
		if (r < 0)
			return fragi_err_fail(err,
					      r == -EINVAL ? FRAGI_FAILURE_OPERATOR_REFUSED
							   : FRAGI_FAILURE_OPERATOR_FAILED,
					      NULL, r, "%s.%s: %s", shared->name, resource->name,
					      cause.text[0] != '\0' ? cause.text
								    : frag_strerror(r));
		resource->is_connected = true;
	}
	return 0;
}

/* A callback of the end, whose failure is only logged. */
static void call_end(struct frag_resource *resource, enum fragi_call_kind kind,
		     int (*callback)(void *state, struct frag_resource *resource))
{
	int r;

	if (callback == NULL)
		return;
	begin_call(resource, kind);
	r = callback(fragi_resource_state(resource), resource);
	fragi_call_end();
	if (r != 0)
		log_warn(resource->name, "%s returned %d (%s)", fragi_call_name(kind), r,
			 r < 0 ? frag_strerror(r) : "return 0 or a negative errno");
}

void fragi_services_disconnect(struct frag_fragment *shared)
{
	for (uint32_t i = shared != NULL ? shared->service_count : 0; i-- > 0;) {
		struct frag_resource *resource = shared->services[i].resource;

		if (resource->is_connected)
			call_end(resource, FRAGI_CALL_WORKER_DISCONNECT,
				 resource->type.worker_disconnect);
		resource->is_connected = false;
	}
}

void fragi_services_stop(struct frag_fragment *shared)
{
	for (uint32_t i = shared != NULL ? shared->service_count : 0; i-- > 0;) {
		struct frag_resource *resource = shared->services[i].resource;

		if (resource->is_driver)
			call_end(resource, FRAGI_CALL_DRIVER_STOP, resource->type.driver_stop);
		resource->is_driver = false;
	}
}
