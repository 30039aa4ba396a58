// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/policy.h>
#include <base/units.h>
#include <text/port_tensor.h>
#include <type/registry.h>
#include <type/params.h>

#define PORTS_MAX 1024u
#define PORT_FLAGS (FRAG_PORT_MULTI | FRAG_PORT_OPTIONAL | FRAG_PORT_NO_CONDITION)

int fragi_port_check(const struct frag_port *port, struct frag_err *err)
{
	if (port->name == NULL || !fragi_name_is_valid(port->name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is not a valid name of a port",
				    port->name != NULL ? port->name : "");
	if (port->dir != FRAG_IN && port->dir != FRAG_OUT)
		return frag_err_set(err, -EINVAL, "port \"%s\" is neither FRAG_IN nor FRAG_OUT",
				    port->name);
	if ((port->flags & ~PORT_FLAGS) != 0)
		return frag_err_set(err, -EINVAL,
				    "port \"%s\" has flags 0x%x, which this libfrag does not know",
				    port->name, port->flags & ~PORT_FLAGS);
	if ((port->flags & FRAG_PORT_MULTI) != 0 && port->dir != FRAG_IN)
		return frag_err_set(err, -EINVAL,
				    "port \"%s\" is an output and so cannot be FRAG_PORT_MULTI",
				    port->name);
	if (port->capacity > FRAGI_CAPACITY_MAX)
		return frag_err_set(err, -EINVAL, "port \"%s\" has capacity %u; give %u at most",
				    port->name, port->capacity, FRAGI_CAPACITY_MAX);
	if (fragi_policy(port->policy) == NULL)
		return frag_err_set(err, -EINVAL,
				    "port \"%s\" has policy %d, which this libfrag does not know",
				    port->name, (int)port->policy);
	if (port->tensors != NULL && !fragi_port_tensors_are_valid(port->tensors))
		return frag_err_set(
			err, -EINVAL,
			"the tensors of port \"%s\" are declared as \"%.80s\"; write \"KIND: LAYOUT | CONVERTER\" for each kind once, separated by \";\", in %d bytes at most",
			port->name, port->tensors, FRAG_PORT_TENSORS_MAX);
	return 0;
}

static int ports_copy(struct fragi_arena *arena, const struct frag_op_type *type,
		      struct frag_op_type *copy, struct frag_err *err)
{
	size_t size = type->port_size < sizeof(struct frag_port) ? type->port_size
								 : sizeof(struct frag_port);
	struct frag_port *ports;
	int r;

	copy->ports = NULL;
	copy->port_size = sizeof(struct frag_port);
	if (type->port_count == 0)
		return 0;
	if (type->ports == NULL || type->port_count > PORTS_MAX)
		return frag_err_set(err, -EINVAL, "%u ports in an invalid table", type->port_count);
	if (type->port_size < offsetof(struct frag_port, headline) || type->port_size % 8 != 0)
		return frag_err_set(
			err, -EINVAL,
			"ports of %u bytes each are not valid; set the table with FRAG_PORTS",
			type->port_size);
	ports = fragi_arena_alloc(arena, type->port_count * sizeof(*ports));
	if (ports == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < type->port_count; i++) {
		memcpy(&ports[i], (const char *)type->ports + (size_t)i * type->port_size, size);
		r = fragi_port_check(&ports[i], err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(ports[j].name, ports[i].name) == 0)
				return frag_err_set(err, -EINVAL, "two ports are called \"%s\"",
						    ports[i].name);
	}
	copy->ports = ports;
	return 0;
}

static int save_check(const struct frag_op_type *type, struct frag_err *err)
{
	if ((type->save == NULL) != (type->restore == NULL))
		return frag_err_set(err, -EINVAL, "it has %s but no %s; give both",
				    type->save != NULL ? "save" : "restore",
				    type->save != NULL ? "restore" : "save");
	if (type->save != NULL && (type->save_size == 0 || type->save_size > FRAG_SAVE_SIZE_MAX))
		return frag_err_set(err, -EINVAL, "save_size is %zu; give 1 to %zu bytes",
				    type->save_size, FRAG_SAVE_SIZE_MAX);
	return 0;
}

/* Adds the name of the type to the error. */
static int blame(struct frag_err *err, const char *name, int r, const struct frag_err *cause)
{
	if (r == -ENOMEM)
		return frag_err_set(err, r, "operator type \"%s\": out of memory", name);
	return frag_err_set(err, r, "operator type \"%s\": %s", name, cause->text);
}

int fragi_op_type_copy(struct fragi_arena *arena, const struct frag_op_type *type,
		       const struct frag_op_type **out_type, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	struct frag_op_type *copy;
	int r;

	if (type == NULL)
		return frag_err_set(err, -EINVAL, "the table of an operator type is NULL");
	if (type->struct_size < offsetof(struct frag_op_type, setup))
		return frag_err_set(
			err, -EINVAL,
			"an operator type of %zu bytes is not valid; begin its table with FRAG_OP_TYPE_INIT",
			type->struct_size);
	copy = fragi_arena_alloc(arena, sizeof(*copy));
	if (copy == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for an operator type");
	memcpy(copy, type, type->struct_size < sizeof(*copy) ? type->struct_size : sizeof(*copy));
	copy->struct_size = sizeof(*copy);
	if (copy->name == NULL || !fragi_type_name_is_valid(copy->name))
		return frag_err_set(err, -EINVAL,
				    "\"%.80s\" is not a valid name of an operator type",
				    copy->name != NULL ? copy->name : "");
	if (copy->compute == NULL)
		return frag_err_set(err, -EINVAL, "operator type \"%s\" has no compute",
				    copy->name);
	r = save_check(copy, &cause);
	if (r == 0)
		r = ports_copy(arena, type, copy, &cause);
	if (r == 0)
		r = fragi_params_copy(arena,
				      &(struct fragi_param_table){type->params, type->param_count,
								  type->param_size},
				      type->state_size, &copy->params, &cause);
	copy->param_size = sizeof(struct frag_param);
	if (r < 0)
		return blame(err, copy->name, r, &cause);
	*out_type = copy;
	return 0;
}
