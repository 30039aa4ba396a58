// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "op"
#include <base/alloc.h>
#include <base/call.h>
#include <base/failure.h>
#include <base/log.h>
#include <base/may_write.h>
#include <base/sentence.h>
#include <base/units.h>
#include <data/codec.h>
#include <graph/compose.h>

#define STATE_ALIGN 64u
#define PORTS_MAX 4096u

static _Thread_local struct fragi_current current;

struct fragi_current *fragi_current(void)
{
	return &current;
}

void fragi_op_show_running(const struct frag_op *op, bool running)
{
	if (op != NULL && op->running != NULL)
		atomic_store_explicit(op->running, running, memory_order_relaxed);
}

void fragi_current_set(const struct frag_op *op, enum fragi_call_kind callback)
{
	assert((op == NULL || current.op == NULL) && "a callback begins outside of another");
	fragi_op_show_running(current.op, false);
	__atomic_store_n(&current.callback, callback, __ATOMIC_RELAXED);
	__atomic_store_n(&current.op, op, __ATOMIC_RELAXED);
	fragi_op_show_running(op, true);
	if (op != NULL)
		fragi_call_begin(op->subject, callback, op->watchdog_ns);
	else
		fragi_call_end();
}

static struct fragi_port *port_room(struct frag_op *op)
{
	struct fragi_port *ports = fragi_making_room(op->fragment, op->ports, op->port_count,
						     &op->made->port_capacity, sizeof(*ports));

	if (ports != NULL)
		op->ports = ports;
	return ports != NULL ? ports + op->port_count : NULL;
}

int fragi_op_append_port(struct frag_op *op, const char *name, enum frag_dir dir)
{
	struct fragi_port *port = port_room(op);

	if (port == NULL)
		return -ENOMEM;
	*port = (struct fragi_port){
		.name = name, .dir = dir, .type_name = "message", .min_size = 1};
	return (int)op->port_count++;
}

/*
 * Appends a port to the operator's; its texts are copied. Returns its index, -EEXIST, -EINVAL or
 * -ENOMEM.
 */
static int port_append(struct frag_op *op, const struct frag_port *port, struct frag_err *err)
{
	struct fragi_arena *arena = &op->fragment->arena;
	struct fragi_port *ports;
	int r = fragi_port_check(port, err);

	if (r < 0)
		return r;
	if (op->port_count >= PORTS_MAX)
		return frag_err_set(err, -EINVAL, "more than %u ports", PORTS_MAX);
	for (uint32_t i = 0; i < op->port_count; i++)
		if (strcmp(op->ports[i].name, port->name) == 0)
			return frag_err_set(err, -EEXIST, "two ports are called \"%s\"",
					    port->name);
	ports = port_room(op);
	if (ports == NULL)
		return -ENOMEM;
	*ports = (struct fragi_port){
		.name = fragi_arena_strdup(arena, port->name),
		.tensors = port->tensors != NULL ? fragi_arena_strdup(arena, port->tensors) : NULL,
		.dir = port->dir,
		.type_name = port->type != NULL ? fragi_arena_strdup(arena, port->type) : "message",
		.flags = port->flags,
		.capacity = port->capacity,
		.policy = port->policy,
		.min_size = port->min_size > 0 ? port->min_size : 1,
	};
	if (ports->name == NULL || ports->type_name == NULL ||
	    (port->tensors != NULL && ports->tensors == NULL))
		return -ENOMEM;
	return (int)op->port_count++;
}

/* Sets what an operator has from its type alone. */
static struct frag_op *op_alloc(struct frag_fragment *fragment, const char *name,
				const struct frag_op_type *type, const struct fragi_node *place)
{
	struct fragi_arena *arena = &fragment->arena;
	struct frag_op *op = fragi_arena_alloc(arena, sizeof(*op));
	struct fragi_made *made = fragi_arena_alloc(&fragment->making->arena, sizeof(*made));
	const struct fragi_spec_fragment *own = fragment->own;

	if (op == NULL || made == NULL)
		return NULL;
	made->place = place;
	op->made = made;
	op->place = place;
	op->fragment = fragment;
	op->index = UINT32_MAX;
	op->type = type;
	op->metadata = true;
	op->scope = fragment->making->scope;
	made->metadata = -1;
	if (own != NULL)
		op->watchdog_ns = own->watchdog_ns;
	op->name = fragi_arena_strdup(arena, name);
	op->subject = fragi_arena_printf(arena, "%s.%s", fragment->name, name);
	/* Most get no more than those of the type. */
	op->ports = fragi_arena_alloc(arena, type->port_count * sizeof(*op->ports));
	made->port_capacity = type->port_count;
	if (op->name == NULL || op->subject == NULL || op->ports == NULL)
		return NULL;
	for (uint32_t i = 0; i < type->port_count; i++)
		if (port_append(op, &type->ports[i], NULL) < 0)
			return NULL;
	return op;
}

/* Checks the name of an operator; reports errors. */
static bool name_is_free(struct frag_fragment *fragment, const char *name,
			 const struct fragi_node *place)
{
	const struct frag_op *other;

	if (name == NULL || !fragi_name_is_valid(name)) {
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"\"%.80s\" is not a valid name of an operator; write a letter, then letters, digits, _ or -, %d at most",
			name != NULL ? name : "", FRAG_NAME_MAX);
		return false;
	}
	if (fragi_strmap_get(&fragment->making->subgraphs, name) != NULL) {
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"an operator and an instance of a subgraph are called \"%s\"; rename one of them",
			name);
		return false;
	}
	other = fragi_strmap_get(&fragment->making->ops, name);
	if (other == NULL)
		return true;
	if (other->made->place != NULL && place == NULL)
		fragi_making_fail(
			fragment, -EINVAL, other->made->place, other->subject,
			"the composer makes an operator of this name too; leave the type out here to set parameters of that one");
	else
		fragi_making_fail(fragment, -EINVAL, place, NULL, "operator \"%s\" is made twice",
				  name);
	return false;
}

static const struct frag_op_type *type_of(struct frag_fragment *fragment, const char *name,
					  const char *type_name, const struct fragi_node *place)
{
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_op_type *type = NULL;
	char subject[2 * FRAG_NAME_MAX + 2];

	snprintf(subject, sizeof(subject), "%s.%s", fragment->name, name);
	if (fragment->registry == NULL)
		frag_err_set(&err, -EINVAL, "no types are registered here; make it of its table");
	else
		type = fragi_registry_op(fragment->registry, type_name, &err);
	if (type == NULL && !fragment->making->no_library)
		fragi_making_fail_by(fragment, &err, place, subject, "");
	return type;
}

struct frag_op *fragi_op_make(struct frag_fragment *fragment, const char *name,
			      const char *type_name, const struct frag_op_type *type,
			      const struct fragi_node *place)
{
	struct fragi_making *making = fragment->making;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_op *op = NULL, **made;
	int r;

	if (type != &fragi_start_type && !name_is_free(fragment, name, place))
		return NULL;
	if (type_name != NULL) {
		type = type_of(fragment, name, type_name, place);
	} else {
		r = fragi_op_type_copy(&fragment->arena, type, &type, &err);
		if (r < 0) {
			fragi_making_fail(fragment, r, place, NULL, "operator \"%s\": %s", name,
					  err.text);
			type = NULL;
		}
	}
	if (type == NULL)
		goto err_bad;
	op = op_alloc(fragment, name, type, place);
	made = fragi_making_room(fragment, fragment->made, fragment->made_count,
				 &making->made_capacity, sizeof(struct frag_op *));
	if (op == NULL || made == NULL || fragi_strmap_put(&making->ops, op->name, op) < 0) {
		fragi_making_fail(fragment, -ENOMEM, place, NULL,
				  "out of memory for operator \"%s\"", name);
		goto err_bad;
	}
	fragment->made = made;
	fragment->made[fragment->made_count++] = op;
	return op;

err_bad:
	fragi_making_note_bad(fragment, &making->bad_ops, name);
	return NULL;
}

int fragi_op_add(struct frag_op *op)
{
	struct frag_fragment *fragment = op->fragment;
	struct frag_op **ops;

	if (op->index != UINT32_MAX)
		return 0;
	ops = fragi_making_room(fragment, fragment->ops, fragment->op_count,
				&fragment->making->op_capacity, sizeof(struct frag_op *));
	if (ops == NULL)
		return -ENOMEM;
	fragment->ops = ops;
	op->index = fragment->op_count;
	fragment->ops[fragment->op_count++] = op;
	return 0;
}

/* A placeholder for a resource that could not be made, which was reported. */
static struct frag_resource bad_resource;

static struct frag_resource *resource_named(void *arg, const char *name)
{
	struct frag_op *op = arg;
	struct frag_resource *resource = fragi_resource_find(op->fragment, name);

	if (resource != NULL ||
	    (fragi_strmap_get(&op->fragment->making->bad_resources, name) == NULL &&
	     (op->fragment->own == NULL || !op->fragment->own->lost_resources)))
		return resource;
	op->made->bad_resource = true;
	return &bad_resource;
}

static struct frag_condition *condition_named(void *arg, const char *name)
{
	return frag_op_condition(arg, name);
}

static const char *name_at(void *arg, enum frag_param_kind kind, size_t i)
{
	const struct frag_op *op = arg;

	if (kind == FRAG_PARAM_KIND_CONDITION)
		return i < op->condition_count ? op->conditions[i]->name : NULL;
	return i < op->fragment->resource_count ? frag_resource_name(op->fragment->resources[i])
						: NULL;
}

void fragi_op_references(struct frag_op *op, struct fragi_param_context *context)
{
	context->arg = op;
	context->resource = resource_named;
	context->condition = condition_named;
	context->name_at = name_at;
}

/*
 * Allocates the state and fills in the parameters: those given in C first, then those of the graph.
 */
static int state_fill(struct frag_op *op)
{
	struct frag_fragment *fragment = op->fragment;
	const struct fragi_made *made = op->made;
	const struct fragi_spec_operator *own = made->own;
	struct fragi_param_context context = {
		.arena = &fragment->arena,
		.diag = fragment->diag,
		.subject = op->subject,
		.place = own != NULL ? own->place : NULL,
		.app_folder = fragment->spec != NULL ? fragment->spec->app_folder : NULL,
	};
	struct fragi_param_table table = {op->type->params, op->type->param_count,
					  sizeof(struct frag_param)};
	size_t size = op->type->state_size > 0 ? op->type->state_size : 1;
	size_t own_count = own != NULL ? own->setting_count : 0;
	struct fragi_spec_setting *all = fragi_arena_alloc(
		&fragment->arena, (made->arg_count + own_count + 1) * sizeof(*all));

	fragi_op_references(op, &context);
	op->state = fragi_aligned_alloc(STATE_ALIGN, size);
	if (op->state == NULL || all == NULL)
		return fragi_making_fail(fragment, -ENOMEM, NULL, op->subject,
					 "out of memory for %zu bytes of state", size);
	memset(op->state, 0, size);
	if (made->arg_count > 0)
		memcpy(all, made->args, made->arg_count * sizeof(*all));
	if (own_count > 0)
		memcpy(all + made->arg_count, own->settings, own_count * sizeof(*all));
	return fragi_params_fill(&table, all, made->arg_count + own_count, op->state, &context);
}

int fragi_op_callback_result(struct frag_op *op, enum fragi_call_kind callback, int r)
{
	if (r <= 0)
		return r;
	return frag_op_fail(op, -EINVAL, "%s returned %d; return 0 or a negative errno",
			    fragi_call_name(callback), r);
}

int fragi_op_callback_failed(struct frag_op *op, struct fragi_diag *diag,
			     enum fragi_call_kind callback, int r)
{
	const int said = fragi_op_own_error(op)[0] != '\0' ? op->failed.text->failure : 0;
	const enum fragi_failure failure = said != FRAGI_FAILURE_NONE ? (enum fragi_failure)said
					   : r == -EINVAL ? FRAGI_FAILURE_OPERATOR_REFUSED
					   : r == -ENOENT ? FRAGI_FAILURE_OPERATOR_LACKS_FILE
							  : FRAGI_FAILURE_OPERATOR_FAILED;
	const size_t first = diag->count;
	char hint[FRAGI_MAY_WRITE_HINT_SIZE];

	fragi_may_write_hint(r, hint, sizeof(hint));
	if (fragi_op_own_error(op)[0] != '\0')
		fragi_node_error(diag, op->place, op->subject, "%s%s", fragi_op_own_error(op),
				 hint);
	else
		fragi_node_error(diag, op->place, op->subject, "%s returned %d (%s)%s",
				 fragi_call_name(callback), r, frag_strerror(r), hint);
	fragi_diag_classify(diag, first, failure, op->subject);
	return r;
}

static int op_setup(struct frag_op *op)
{
	int r = 0;

	if (op->type->setup != NULL) {
		op->in_setup = true;
		fragi_current_set(op, FRAGI_CALL_SETUP);
		r = op->type->setup(op->state, op);
		fragi_current_set(NULL, FRAGI_CALL_NONE);
		op->in_setup = false;
	}
	r = fragi_op_callback_result(op, FRAGI_CALL_SETUP, r);
	if (r < 0)
		return fragi_op_callback_failed(op, op->fragment->diag, FRAGI_CALL_SETUP, r);
	op->setup_done = true;
	return 0;
}

/* `size`: the default condition waits for so many messages, for which the queue has room. */
static void port_size(struct frag_op *op, struct fragi_port *port,
		      const struct fragi_spec_port *spec)
{
	if (port->dir != FRAG_IN)
		fragi_making_fail(op->fragment, -EINVAL, spec->place, op->subject,
				  "port \"%s\" is an output; only inputs have a size", port->name);
	port->has_size = true;
	port->min_size = spec->size > 0 ? (uint32_t)spec->size : FRAG_PORT_PRECEDING_COUNT;
	if (spec->capacity == 0 && spec->size > 0)
		port->capacity = (uint32_t)spec->size;
}

/* Applies the section `ports` of this operator in the graph. */
static int ports_override(struct frag_op *op, const struct fragi_spec_operator *own)
{
	const struct fragi_spec_port *spec_port;
	struct fragi_port *port;
	const char *names[64];
	uint32_t i;
	char advice[400];
	int result = 0;

	for (uint32_t j = 0; j < op->port_count && j < FRAG_COUNT_OF(names); j++)
		names[j] = op->ports[j].name;
	for (size_t j = 0; j < own->port_count; j++) {
		spec_port = &own->ports[j];
		for (i = 0; i < op->port_count && strcmp(op->ports[i].name, spec_port->name) != 0;
		     i++)
			;
		if (i == op->port_count) {
			result = fragi_making_fail(
				op->fragment, -EINVAL, spec_port->place, op->subject,
				"unknown port \"%.80s\"%s", spec_port->name,
				fragi_advise(advice, sizeof(advice), spec_port->name, "its ports",
					     names,
					     op->port_count < FRAG_COUNT_OF(names)
						     ? op->port_count
						     : FRAG_COUNT_OF(names)));
			continue;
		}
		port = &op->ports[i];
		port->capacity = spec_port->capacity > 0 ? spec_port->capacity : port->capacity;
		port->policy =
			spec_port->policy != FRAG_POLICY_DEFAULT ? spec_port->policy : port->policy;
		if (spec_port->no_condition)
			port->flags |= FRAG_PORT_NO_CONDITION;
		if (spec_port->size >= 0)
			port_size(op, port, spec_port);
	}
	return result;
}

/* Finds the types of the ports' values. */
static int ports_type(struct frag_op *op)
{
	struct fragi_port *port;
	const char *why;
	int result = 0;

	for (uint32_t i = 0; i < op->port_count; i++) {
		port = &op->ports[i];
		if (strcmp(port->type_name, "message") == 0 ||
		    strcmp(port->type_name, "tensor") == 0)
			continue;
		port->type = op->fragment->registry != NULL
				     ? fragi_registry_type(op->fragment->registry, port->type_name)
				     : frag_type_find(port->type_name);
		if (port->type != NULL)
			continue;
		why = fragi_type_why_not(port->type_name);
		result = fragi_making_fail(
			op->fragment, -EINVAL, op->place, op->subject,
			"port \"%s\" is of type \"%.80s\", which is not registered; %s", port->name,
			port->type_name,
			why != NULL ? why
			: op->fragment->registry != NULL
				? "load the extension that has it"
				: "register it first, with frag_type_register");
	}
	return result;
}

/*
 * The settings of metadata: those of the operator, else of its fragment, else of the application.
 * On each level the graph's count before those of C.
 */
static void metadata_fill(struct frag_op *op)
{
	const struct fragi_spec *spec = op->fragment->spec;
	const struct fragi_spec_fragment *fragment = op->fragment->own;
	const struct fragi_spec_operator *own = op->made->own;
	const struct fragi_making *making = op->fragment->making;
	const int enabled[] = {
		own != NULL ? own->metadata : -1,           op->made->metadata,
		fragment != NULL ? fragment->metadata : -1, making->metadata,
		spec != NULL ? spec->metadata : true,
	};
	const enum frag_metadata_policy policies[] = {
		own != NULL ? own->metadata_policy : FRAG_METADATA_DEFAULT,
		op->metadata_policy,
		fragment != NULL ? fragment->metadata_policy : FRAG_METADATA_DEFAULT,
		making->metadata_policy,
		spec != NULL ? spec->metadata_policy : FRAG_METADATA_DEFAULT,
	};
	uint32_t i = 0, k = 0;

	while (enabled[i] < 0)
		i++;
	while (k + 1 < FRAG_COUNT_OF(policies) && policies[k] == FRAG_METADATA_DEFAULT)
		k++;
	op->metadata = enabled[i] != 0;
	op->metadata_policy = policies[k];
}

void fragi_op_complete(struct frag_op *op)
{
	const struct fragi_spec_operator *own = op->made->own;
	int r, result;

	metadata_fill(op);
	if (own != NULL)
		op->watchdog_ns = own->watchdog_ns > 0 ? own->watchdog_ns : op->watchdog_ns;
	result = fragi_conditions_fill(op);
	r = state_fill(op);
	result = result < 0 ? result : r;
	r = fragi_op_give_resources(op);
	result = result < 0 ? result : r;
	if (result == 0 && !op->made->failed && !op->made->bad_resource)
		result = op_setup(op);
	if (result == 0)
		result = fragi_conditions_fill(op); /* those that setup has made */
	fragi_making_note(op->fragment, result);
	if (!op->setup_done && op->type->setup != NULL) {
		/* Not all of its ports are known, so references to them cannot be checked. */
		fragi_making_note_bad(op->fragment, &op->fragment->making->bad_ops, op->name);
		return;
	}
	r = ports_type(op);
	fragi_making_note(op->fragment, r);
	fragi_making_note(op->fragment, fragi_execution_add_input(op));
	if (own != NULL)
		ports_override(op, own);
	fragi_timing_apply(op);
	fragi_deadline_complete(op);
	if (result == 0 && !op->made->failed && !op->made->bad_resource)
		fragi_conditions_bind(op);
	fragi_timing_check(op);
}

int frag_op_add_port_sized(struct frag_op *op, const struct frag_port *port, size_t port_size)
{
	struct frag_port copy = {0};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if (!op->in_setup)
		return frag_op_fail(op, -EBUSY, "a port can only be added in setup");
	if (port == NULL || port_size < offsetof(struct frag_port, headline))
		return frag_op_fail(op, -EINVAL, "cannot add a port: there is none");
	memcpy(&copy, port, port_size < sizeof(copy) ? port_size : sizeof(copy));
	r = port_append(op, &copy, &err);
	if (r < 0)
		frag_op_fail(op, r, "cannot add a port: %s",
			     err.text[0] != '\0' ? err.text : frag_strerror(r));
	return r;
}

const char *frag_op_name(const struct frag_op *op)
{
	return op->name;
}

const char *frag_op_fragment_name(const struct frag_op *op)
{
	return op->fragment->name;
}

struct frag_fragment *frag_op_fragment(const struct frag_op *op)
{
	return op->fragment;
}

struct frag_clock *frag_op_clock(const struct frag_op *op)
{
	return op->fragment->clock;
}

struct frag_resource *frag_op_resource(const struct frag_op *op, const char *name)
{
	return name != NULL ? fragi_resource_find(op->fragment, name) : NULL;
}

struct frag_condition *frag_op_condition(const struct frag_op *op, const char *name)
{
	for (uint32_t i = 0; name != NULL && i < op->condition_count; i++)
		if (strcmp(op->conditions[i]->name, name) == 0)
			return op->conditions[i];
	return NULL;
}

const char *frag_op_argument(const struct frag_op *op, const char *name)
{
	return frag_fragment_argument(op->fragment, name);
}

uint32_t frag_op_flow_count(const struct frag_op *op, uint32_t port)
{
	return port < op->port_count ? op->ports[port].flow_count : 0;
}

void frag_op_log(const struct frag_op *op, const char *format, ...)
{
	const struct fragi_spec *spec = op->fragment->spec;
	char text[1024], subject[3 * FRAG_NAME_MAX + 3];
	va_list args;

	if (fragi_log_operator_threshold > (int)FRAGI_LOG_INFO)
		return;
	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	snprintf(subject, sizeof(subject), "%s%s%s", spec != NULL ? spec->application : "",
		 spec != NULL ? "/" : "", op->subject);
	fragi_log_write(FRAGI_LOG_INFO, LOG_TOPIC, subject, "%s", text);
}
