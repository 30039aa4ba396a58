// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <base/units.h>
#include <type/params.h>

#define PARAM_FLAGS (FRAG_PARAM_REQUIRED | FRAG_PARAM_OPTIONAL | FRAG_PARAM_DYNAMIC)

static const struct fragi_param_kind kinds[] = {
	[FRAG_PARAM_KIND_BOOL] = {"bool", sizeof(bool), _Alignof(bool),
				  "bool; write true or false"},
	[FRAG_PARAM_KIND_I64] = {"i64", sizeof(int64_t), _Alignof(int64_t),
				 "integer; write a whole number such as 3"},
	[FRAG_PARAM_KIND_F64] = {"f64", sizeof(double), _Alignof(double),
				 "number; write one such as 0.5"},
	[FRAG_PARAM_KIND_STRING] = {"string", sizeof(char *), _Alignof(char *), "string"},
	[FRAG_PARAM_KIND_SIZE] =
		{"size", sizeof(uint64_t), _Alignof(uint64_t),
		 "size; write bytes, or a number with a unit such as 512Mi or 2MB"},
	[FRAG_PARAM_KIND_DURATION] =
		{"duration", sizeof(int64_t), _Alignof(int64_t),
		 "duration; write nanoseconds, or a number with a unit such as 10ms, 2s or 30hz"},
	[FRAG_PARAM_KIND_PATH] = {"path", sizeof(char *), _Alignof(char *), "path"},
	[FRAG_PARAM_KIND_RESOURCE] = {"resource", sizeof(void *), _Alignof(void *),
				      "reference to a resource; write $NAME"},
	[FRAG_PARAM_KIND_I64_LIST] = {"i64[]", sizeof(struct frag_i64_list),
				      _Alignof(struct frag_i64_list),
				      "list of integers; write [1, 2]"},
	[FRAG_PARAM_KIND_F64_LIST] = {"f64[]", sizeof(struct frag_f64_list),
				      _Alignof(struct frag_f64_list),
				      "list of numbers; write [0.5, 2]"},
	[FRAG_PARAM_KIND_STRING_LIST] = {"string[]", sizeof(struct frag_string_list),
					 _Alignof(struct frag_string_list),
					 "list of strings; write [a, b]"},
	[FRAG_PARAM_KIND_STRING_MAP] = {"string map", sizeof(struct frag_string_map),
					_Alignof(struct frag_string_map),
					"map of strings; write {key: text}"},
	[FRAG_PARAM_KIND_TREE] = {"tree", sizeof(void *), _Alignof(void *),
				  "list or map; write [a, b] or {key: value}"},
	[FRAG_PARAM_KIND_CONDITION] = {"condition", sizeof(void *), _Alignof(void *),
				       "reference to a condition; write $NAME"},
};

const struct fragi_param_kind *fragi_param_kind(enum frag_param_kind kind)
{
	return (size_t)kind < FRAG_COUNT_OF(kinds) && kinds[kind].name != NULL ? &kinds[kind]
									       : NULL;
}

const char *fragi_param_kind_name(enum frag_param_kind kind)
{
	const struct fragi_param_kind *k = fragi_param_kind(kind);

	return k != NULL ? k->name : "unknown";
}

struct frag_param fragi_param_at(const struct fragi_param_table *table, uint32_t i)
{
	struct frag_param param = {0};
	size_t size = table->item_size < sizeof(param) ? table->item_size : sizeof(param);

	memcpy(&param, (const char *)table->items + (size_t)i * table->item_size, size);
	return param;
}

static int param_check(const struct frag_param *param, size_t state_size, struct frag_err *err)
{
	const struct fragi_param_kind *kind = fragi_param_kind(param->kind);

	if (param->name == NULL || !fragi_name_is_valid(param->name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is not a valid name of a parameter",
				    param->name != NULL ? param->name : "");
	if (kind == NULL)
		return frag_err_set(
			err, -EINVAL,
			"parameter \"%s\" is of kind %d, which this libfrag does not know",
			param->name, (int)param->kind);
	if ((param->flags & ~PARAM_FLAGS) != 0)
		return frag_err_set(
			err, -EINVAL,
			"parameter \"%s\" has flags 0x%x, which this libfrag does not know",
			param->name, param->flags & ~PARAM_FLAGS);
	if ((param->flags & FRAG_PARAM_REQUIRED) != 0 && (param->flags & FRAG_PARAM_OPTIONAL) != 0)
		return frag_err_set(err, -EINVAL, "parameter \"%s\" is both required and optional",
				    param->name);
	if (param->offset > state_size || kind->size > state_size - param->offset ||
	    param->offset % kind->align != 0)
		return frag_err_set(
			err, -EINVAL,
			"parameter \"%s\" (%s at offset %u) does not lie in the state of %zu bytes",
			param->name, kind->name, param->offset, state_size);
	return 0;
}

int fragi_params_check(const struct fragi_param_table *table, size_t state_size,
		       struct frag_err *err)
{
	struct frag_param param, other;
	int r;

	if (table->count == 0)
		return 0;
	if (table->items == NULL || table->count > FRAGI_PARAMS_MAX)
		return frag_err_set(err, -EINVAL, "%u parameters in an invalid table",
				    table->count);
	if (table->item_size < offsetof(struct frag_param, def_int) || table->item_size % 8 != 0)
		return frag_err_set(
			err, -EINVAL,
			"parameters of %u bytes each are not valid; set the table with FRAG_PARAMS",
			table->item_size);
	for (uint32_t i = 0; i < table->count; i++) {
		param = fragi_param_at(table, i);
		r = param_check(&param, state_size, err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++) {
			other = fragi_param_at(table, j);
			if (strcmp(other.name, param.name) == 0)
				return frag_err_set(err, -EINVAL,
						    "two parameters are called \"%s\"", param.name);
		}
	}
	return 0;
}

int fragi_params_copy(struct fragi_arena *arena, const struct fragi_param_table *table,
		      size_t state_size, const struct frag_param **out_params, struct frag_err *err)
{
	struct frag_param *params = NULL;
	int r = fragi_params_check(table, state_size, err);

	if (r < 0)
		return r;
	if (table->count > 0) {
		params = fragi_arena_alloc(arena, table->count * sizeof(*params));
		if (params == NULL)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < table->count; i++)
		params[i] = fragi_param_at(table, i);
	*out_params = params;
	return 0;
}
