// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <type/params.h>
#include <type/registry.h>

/* A type ends before its first callback at the earliest. */
#define SIZE_MIN offsetof(struct frag_resource_type, setup)

static int resource_type_check(const struct frag_resource_type *type, struct frag_err *err)
{
	if (type->name == NULL || !fragi_name_is_valid(type->name))
		return frag_err_set(err, -EINVAL,
				    "\"%.80s\" is not a valid name of a resource type",
				    type->name != NULL ? type->name : "");
	if ((type->alloc == NULL) != (type->free == NULL))
		return frag_err_set(err, -EINVAL,
				    "resource type \"%s\" has %s without %s; an allocator has both",
				    type->name, type->alloc != NULL ? "alloc" : "free",
				    type->alloc != NULL ? "free" : "alloc");
	return 0;
}

int fragi_resource_type_copy(struct fragi_arena *arena, const struct frag_resource_type *type,
			     const struct frag_resource_type **out_type, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	struct frag_resource_type *copy;
	int r;

	if (type == NULL)
		return frag_err_set(err, -EINVAL, "the table of a resource type is NULL");
	if (type->struct_size < SIZE_MIN)
		return frag_err_set(
			err, -EINVAL,
			"a resource type of %zu bytes is not valid; begin its table with FRAG_RESOURCE_TYPE_INIT",
			type->struct_size);
	copy = fragi_arena_alloc(arena, sizeof(*copy));
	if (copy == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a resource type");
	memcpy(copy, type, type->struct_size < sizeof(*copy) ? type->struct_size : sizeof(*copy));
	copy->struct_size = sizeof(*copy);
	r = resource_type_check(copy, err);
	if (r < 0)
		return r;
	r = fragi_params_copy(
		arena,
		&(struct fragi_param_table){type->params, type->param_count, type->param_size},
		type->state_size, &copy->params, &cause);
	if (r < 0)
		return frag_err_set(err, r, "resource type \"%s\": %s", copy->name,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
	copy->param_size = sizeof(struct frag_param);
	*out_type = copy;
	return 0;
}
