// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <frag/data_logger.h>
#include <type/params.h>
#include <type/registry.h>

#define STATE_SIZE_MAX ((size_t)1 << 30)

static int data_logger_type_check(const struct frag_data_logger_type *type, struct frag_err *err)
{
	if (type->name == NULL || !fragi_name_is_valid(type->name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is not a valid name of a data logger",
				    type->name != NULL ? type->name : "");
	if (type->log == NULL)
		return frag_err_set(err, -EINVAL, "data logger \"%s\" has no log", type->name);
	if ((type->flags & ~FRAG_DATA_LOGGER_ASYNC) != 0)
		return frag_err_set(
			err, -EINVAL,
			"data logger \"%s\" has flags 0x%x, which this libfrag does not know",
			type->name, type->flags & ~FRAG_DATA_LOGGER_ASYNC);
	if (type->log_large != NULL && (type->flags & FRAG_DATA_LOGGER_ASYNC) == 0)
		return frag_err_set(
			err, -EINVAL,
			"data logger \"%s\" has log_large and is not asynchronous; add FRAG_DATA_LOGGER_ASYNC to its flags",
			type->name);
	if (type->state_size > STATE_SIZE_MAX)
		return frag_err_set(
			err, -EINVAL,
			"data logger \"%s\" has a state of %zu bytes, which is too large",
			type->name, type->state_size);
	return 0;
}

int fragi_data_logger_type_copy(struct fragi_arena *arena, const struct frag_data_logger_type *type,
				const struct frag_data_logger_type **out_type, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	struct frag_data_logger_type *copy;
	int r;

	if (type == NULL)
		return frag_err_set(err, -EINVAL, "the table of a data logger is NULL");
	if (type->struct_size < offsetof(struct frag_data_logger_type, log_large))
		return frag_err_set(
			err, -EINVAL,
			"a data logger of %zu bytes is not valid; begin its table with FRAG_DATA_LOGGER_TYPE_INIT",
			type->struct_size);
	copy = fragi_arena_alloc(arena, sizeof(*copy));
	if (copy == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for a data logger");
	memcpy(copy, type, type->struct_size < sizeof(*copy) ? type->struct_size : sizeof(*copy));
	copy->struct_size = sizeof(*copy);
	r = data_logger_type_check(copy, err);
	if (r < 0)
		return r;
	r = fragi_params_copy(
		arena,
		&(struct fragi_param_table){type->params, type->param_count, type->param_size},
		type->state_size, &copy->params, &cause);
	if (r < 0)
		return frag_err_set(err, r, "data logger \"%s\": %s", copy->name,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
	copy->param_size = sizeof(struct frag_param);
	*out_type = copy;
	return 0;
}
