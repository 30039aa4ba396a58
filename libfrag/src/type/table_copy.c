// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <frag/condition.h>
#include <frag/data_logger.h>
#include <type/params.h>
#include <type/registry.h>

/*
 * The tables of condition types, resource types and data loggers are checked and copied in the same
 * way. A table may be shorter than ours, as that of a plugin which was built with an older libfrag,
 * or longer.
 */
struct table_kind {
	const char *noun, *init;
	size_t size;
	size_t size_min; /* a table ends before this member at the earliest */
	size_t name, state_size, params, param_count, param_size; /* where they are */
	int (*check)(const void *type, struct frag_err *err);     /* what else must hold */
};
#define TABLE_KIND(TYPE, SECOND)                                                                   \
	.size = sizeof(struct TYPE), .size_min = offsetof(struct TYPE, SECOND),                    \
	.name = offsetof(struct TYPE, name), .state_size = offsetof(struct TYPE, state_size),      \
	.params = offsetof(struct TYPE, params),                                                   \
	.param_count = offsetof(struct TYPE, param_count),                                         \
	.param_size = offsetof(struct TYPE, param_size)

static void *at(void *table, size_t offset)
{
	return (char *)table + offset;
}

static int params_copy(struct fragi_arena *arena, const struct table_kind *kind, void *copy,
		       struct frag_err *err)
{
	const struct frag_param **params = at(copy, kind->params);
	uint32_t *param_size = at(copy, kind->param_size);
	const struct fragi_param_table table = {*params, *(uint32_t *)at(copy, kind->param_count),
						*param_size};
	struct frag_err cause = FRAG_ERR_INIT;
	int r = fragi_params_copy(arena, &table, *(size_t *)at(copy, kind->state_size), params,
				  &cause);

	if (r < 0)
		return frag_err_set(err, r, "%s \"%s\": %s", kind->noun,
				    *(const char **)at(copy, kind->name),
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
	*param_size = sizeof(struct frag_param);
	return 0;
}

static int table_copy(struct fragi_arena *arena, const struct table_kind *kind, const void *type,
		      const void **out_type, struct frag_err *err)
{
	size_t given = type != NULL ? *(const size_t *)type : 0; /* struct_size is first */
	const char *name;
	void *copy;
	int r;

	if (type == NULL)
		return frag_err_set(err, -EINVAL, "the table of a %s is NULL", kind->noun);
	if (given < kind->size_min)
		return frag_err_set(err, -EINVAL,
				    "a %s of %zu bytes is not valid; begin its table with %s",
				    kind->noun, given, kind->init);
	copy = fragi_arena_alloc(arena, kind->size);
	if (copy == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a %s", kind->noun);
	memcpy(copy, type, given < kind->size ? given : kind->size);
	*(size_t *)copy = kind->size;
	name = *(const char **)at(copy, kind->name);
	if (name == NULL || !fragi_type_name_is_valid(name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is not a valid name of a %s",
				    name != NULL ? name : "", kind->noun);
	r = kind->check(copy, err);
	if (r == 0)
		r = params_copy(arena, kind, copy, err);
	if (r == 0)
		*out_type = copy;
	return r;
}

#define CONDITION_FLAGS                                                                            \
	(FRAG_CONDITION_TIMED | FRAG_CONDITION_ENDS | FRAG_CONDITION_POLLED |                      \
	 FRAG_CONDITION_OUTSIDE)

/* A combination needs the parameter that names what it combines. */
static bool has_terms(const struct frag_condition_type *type)
{
	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, "terms") == 0)
			return type->params[i].kind == FRAG_PARAM_KIND_STRING_LIST;
	return false;
}

static int condition_check(const void *table, struct frag_err *err)
{
	const struct frag_condition_type *type = table;

	if (type->check == NULL && type->combine == NULL)
		return frag_err_set(err, -EINVAL, "condition type \"%s\" has no check", type->name);
	if (type->check != NULL && type->combine != NULL)
		return frag_err_set(
			err, -EINVAL,
			"condition type \"%s\" has both check and combine; leave one of them out",
			type->name);
	if ((type->flags & ~CONDITION_FLAGS) != 0)
		return frag_err_set(
			err, -EINVAL,
			"condition type \"%s\" has flags 0x%x, which this libfrag does not know",
			type->name, type->flags & ~CONDITION_FLAGS);
	return 0;
}

int fragi_condition_type_copy(struct fragi_arena *arena, const struct frag_condition_type *type,
			      const struct frag_condition_type **out_type, struct frag_err *err)
{
	static const struct table_kind kind = {.noun = "condition type",
					       .init = "FRAG_CONDITION_TYPE_INIT",
					       .check = condition_check,
					       TABLE_KIND(frag_condition_type, ticked)};
	const struct frag_condition_type *copy;
	const void *made;
	int r = table_copy(arena, &kind, type, &made, err);

	if (r < 0)
		return r;
	copy = made;
	if (copy->combine != NULL && !has_terms(copy))
		return frag_err_set(
			err, -EINVAL,
			"condition type \"%s\" combines conditions, and has no parameter for them; add FRAG_PARAM_STRING_LIST(T, terms, NULL)",
			copy->name);
	*out_type = copy;
	return 0;
}

static int resource_check(const void *table, struct frag_err *err)
{
	const struct frag_resource_type *type = table;

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
	static const struct table_kind kind = {.noun = "resource type",
					       .init = "FRAG_RESOURCE_TYPE_INIT",
					       .check = resource_check,
					       TABLE_KIND(frag_resource_type, setup)};
	const void *made;
	int r = table_copy(arena, &kind, type, &made, err);

	if (r == 0)
		*out_type = made;
	return r;
}

#define LOGGER_STATE_MAX ((size_t)1 << 30)

static int data_logger_check(const void *table, struct frag_err *err)
{
	const uint32_t known = FRAG_DATA_LOGGER_ASYNC | FRAG_DATA_LOGGER_CONTENT;
	const struct frag_data_logger_type *type = table;

	if (type->log == NULL)
		return frag_err_set(err, -EINVAL, "data logger \"%s\" has no log", type->name);
	if ((type->flags & ~known) != 0)
		return frag_err_set(
			err, -EINVAL,
			"data logger \"%s\" has flags 0x%x, which this libfrag does not know",
			type->name, type->flags & ~known);
	if (type->log_large != NULL && (type->flags & FRAG_DATA_LOGGER_ASYNC) == 0)
		return frag_err_set(
			err, -EINVAL,
			"data logger \"%s\" has log_large and is not asynchronous; add FRAG_DATA_LOGGER_ASYNC to its flags",
			type->name);
	if (type->state_size > LOGGER_STATE_MAX)
		return frag_err_set(
			err, -EINVAL,
			"data logger \"%s\" has a state of %zu bytes, which is too large",
			type->name, type->state_size);
	return 0;
}

int fragi_data_logger_type_copy(struct fragi_arena *arena, const struct frag_data_logger_type *type,
				const struct frag_data_logger_type **out_type, struct frag_err *err)
{
	static const struct table_kind kind = {.noun = "data logger",
					       .init = "FRAG_DATA_LOGGER_TYPE_INIT",
					       .check = data_logger_check,
					       TABLE_KIND(frag_data_logger_type, log_large)};
	const void *made;
	int r = table_copy(arena, &kind, type, &made, err);

	if (r == 0)
		*out_type = made;
	return r;
}
