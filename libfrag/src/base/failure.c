// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include <base/failure.h>
#include <base/sentence.h>

#define SCOPE_NAME(NAME, name, meaning) #name,
static const char *const scope_names[FRAGI_SCOPES] = {FRAGI_SCOPE_LIST(SCOPE_NAME)};

#define INFO(NAME, name, SCOPE, EXIT, meaning, remedy)                                             \
	{#name, FRAGI_SCOPE_##SCOPE, FRAGI_EXIT_##EXIT},
static const struct {
	const char *name;
	enum fragi_scope scope;
	enum fragi_exit exit_code;
} infos[FRAGI_FAILURES - 1] = {FRAGI_FAILURE_LIST(INFO)};

static bool is_failure(enum fragi_failure failure)
{
	return failure > FRAGI_FAILURE_NONE && failure < FRAGI_FAILURES;
}

const char *fragi_failure_name(enum fragi_failure failure)
{
	return is_failure(failure) ? infos[failure - 1].name : "none";
}

const char *fragi_failure_scope(enum fragi_failure failure)
{
	return is_failure(failure) ? scope_names[infos[failure - 1].scope] : "";
}

int fragi_failure_exit(enum fragi_failure failure)
{
	return is_failure(failure) ? (int)infos[failure - 1].exit_code : FRAGI_EXIT_OK;
}

/* An older caller's struct ends before the class. */
static bool holds_class(const struct frag_err *err)
{
	return err->struct_size >= sizeof(*err);
}

int fragi_err_classify(struct frag_err *err, enum fragi_failure failure, const char *op)
{
	if (!holds_class(err) || err->failure != FRAGI_FAILURE_NONE)
		return err->code;
	err->failure = (int)failure;
	snprintf(err->op, sizeof(err->op), "%s", op != NULL ? op : "");
	return err->code;
}

int fragi_err_fail(struct frag_err *err, enum fragi_failure failure, const char *op, int code,
		   const char *format, ...)
{
	char text[sizeof(err->text)];
	va_list args;

	if (err == NULL || err->code != 0 || err->text[0] != '\0')
		return code;
	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	frag_err_set(err, code, "%s", text);
	fragi_err_classify(err, failure, op);
	return code;
}

enum fragi_failure fragi_err_failure(const struct frag_err *err)
{
	if (holds_class(err) && is_failure((enum fragi_failure)err->failure))
		return (enum fragi_failure)err->failure;
	switch (err->code) {
	case -EINVAL:
		return FRAGI_FAILURE_GRAPH_INVALID;
	case -ENOENT:
		return FRAGI_FAILURE_FILE_MISSING;
	case -ENOMEM:
		return FRAGI_FAILURE_OUT_OF_MEMORY;
	case -EMFILE:
	case -ENFILE:
		return FRAGI_FAILURE_SYSTEM_REFUSED;
	default:
		return FRAGI_FAILURE_OTHER;
	}
}

void fragi_diag_classify(struct fragi_diag *diag, size_t first, enum fragi_failure failure,
			 const char *op)
{
	for (size_t i = first; i < diag->count; i++)
		fragi_err_classify(&diag->items[i], failure, op);
}
