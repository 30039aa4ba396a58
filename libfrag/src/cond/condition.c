// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/sentence.h>
#include <cond/condition.h>

static const struct fragi_built_in_condition *const types[] = {
	&fragi_condition_message_available,
	&fragi_condition_expiring_message_available,
	&fragi_condition_multi_message_available,
	&fragi_condition_multi_message_available_timeout,
	&fragi_condition_downstream_affordable,
	&fragi_condition_memory_available,
	&fragi_condition_count,
	&fragi_condition_boolean,
	&fragi_condition_asynchronous,
	&fragi_condition_periodic,
	&fragi_condition_cuda_stream,
	&fragi_condition_cuda_event,
	&fragi_condition_cuda_buffer,
	&fragi_condition_or,
	&fragi_condition_none,
};

const struct fragi_built_in_condition *fragi_built_in_condition_at(size_t i)
{
	return i < FRAG_COUNT_OF(types) ? types[i] : NULL;
}

const struct fragi_built_in_condition *fragi_built_in_condition(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(types); i++)
		if (strcmp(types[i]->type.name, name) == 0)
			return types[i];
	return NULL;
}

const char *frag_condition_name(const struct frag_condition *condition)
{
	return condition->name;
}

struct frag_op *frag_condition_op(const struct frag_condition *condition)
{
	return condition->op;
}

void *frag_condition_context(const struct frag_condition *condition)
{
	return condition->type->context;
}

enum frag_ready frag_condition_fail(struct frag_condition *condition, int code, const char *format,
				    ...)
{
	char text[900];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	frag_op_fail(condition->op, code, "condition %s: %s", condition->name, text);
	return (enum frag_ready)code;
}

void *frag_condition_state(struct frag_condition *condition, const char *type)
{
	return condition != NULL && strcmp(condition->type->name, type) == 0 ? condition->state
									     : NULL;
}

void frag_condition_changed(struct frag_condition *condition)
{
	fragi_notify_call(&condition->changed);
}
