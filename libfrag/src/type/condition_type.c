// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <frag/condition.h>
#include <type/params.h>
#include <type/registry.h>

#define FLAGS                                                                                      \
	(FRAG_CONDITION_TIMED | FRAG_CONDITION_ENDS | FRAG_CONDITION_POLLED |                      \
	 FRAG_CONDITION_OUTSIDE)

/* A combination needs the parameter that names what it combines. */
static bool has_terms(const struct frag_condition_type *type)
{
	const struct fragi_param_table table = {type->params, type->param_count, type->param_size};

	for (uint32_t i = 0; i < table.count; i++) {
		struct frag_param param = fragi_param_at(&table, i);

		if (param.name != NULL && strcmp(param.name, "terms") == 0)
			return param.kind == FRAG_PARAM_KIND_STRING_LIST;
	}
	return false;
}

static int condition_type_check(const struct frag_condition_type *type, struct frag_err *err)
{
	if (type->name == NULL || !fragi_name_is_valid(type->name))
		return frag_err_set(err, -EINVAL,
				    "\"%.80s\" is not a valid name of a condition type",
				    type->name != NULL ? type->name : "");
	if (type->check == NULL && type->combine == NULL)
		return frag_err_set(err, -EINVAL, "condition type \"%s\" has no check", type->name);
	if (type->check != NULL && type->combine != NULL)
		return frag_err_set(
			err, -EINVAL,
			"condition type \"%s\" has both check and combine; leave one of them out",
			type->name);
	if ((type->flags & ~FLAGS) != 0)
		return frag_err_set(
			err, -EINVAL,
			"condition type \"%s\" has flags 0x%x, which this libfrag does not know",
			type->name, type->flags & ~FLAGS);
	return 0;
}

int fragi_condition_type_copy(struct fragi_arena *arena, const struct frag_condition_type *type,
			      const struct frag_condition_type **out_type, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	struct frag_condition_type *copy;
	int r;

	if (type == NULL)
		return frag_err_set(err, -EINVAL, "the table of a condition type is NULL");
	if (type->struct_size < offsetof(struct frag_condition_type, ticked))
		return frag_err_set(
			err, -EINVAL,
			"a condition type of %zu bytes is not valid; begin its table with FRAG_CONDITION_TYPE_INIT",
			type->struct_size);
	copy = fragi_arena_alloc(arena, sizeof(*copy));
	if (copy == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a condition type");
	memcpy(copy, type, type->struct_size < sizeof(*copy) ? type->struct_size : sizeof(*copy));
	copy->struct_size = sizeof(*copy);
	r = condition_type_check(copy, err);
	if (r < 0)
		return r;
	r = fragi_params_copy(
		arena,
		&(struct fragi_param_table){type->params, type->param_count, type->param_size},
		type->state_size, &copy->params, &cause);
	if (r < 0)
		return frag_err_set(err, r, "condition type \"%s\": %s", copy->name,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
	copy->param_size = sizeof(struct frag_param);
	if (copy->combine != NULL && !has_terms(copy))
		return frag_err_set(
			err, -EINVAL,
			"condition type \"%s\" combines conditions, and has no parameter for them; add FRAG_PARAM_STRING_LIST(T, terms, NULL)",
			copy->name);
	*out_type = copy;
	return 0;
}
