// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>

#include <base/alloc.h>
#include <base/sentence.h>
#include <frag/status.h>
#include <graph/op.h>

const char *fragi_op_own_error(const struct frag_op *op)
{
	return op->failed.text != NULL ? op->failed.text->text : "";
}

FRAG_PRINTF(4, 0)
static int fail(struct frag_op *op, enum fragi_failure failure, int code, const char *format,
		va_list args)
{
	char text[sizeof(op->failed.text->text)];

	if (op->failed.code != 0 || fragi_op_own_error(op)[0] != '\0')
		return code;
	op->failed.code = code;
	if (op->failed.text == NULL)
		op->failed.text = fragi_calloc(1, sizeof(*op->failed.text));
	if (op->failed.text == NULL)
		return code;
	*op->failed.text = (struct frag_err)FRAG_ERR_INIT;
	fragi_sentence_of(text, sizeof(text), format, args);
	frag_err_set(op->failed.text, code, "%s", text);
	if (failure != FRAGI_FAILURE_NONE)
		fragi_err_classify(op->failed.text, failure, op->subject);
	return code;
}

int frag_op_fail(struct frag_op *op, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(op, FRAGI_FAILURE_NONE, code, format, args);
	va_end(args);
	return code;
}

int fragi_op_fail_as(struct frag_op *op, enum fragi_failure failure, int code, const char *format,
		     ...)
{
	va_list args;

	va_start(args, format);
	fail(op, failure, code, format, args);
	va_end(args);
	return code;
}

void fragi_op_forget_failure(struct frag_op *op)
{
	op->failed.code = 0;
	if (op->failed.text != NULL)
		op->failed.text->text[0] = '\0';
}

int frag_op_take_failure(struct frag_op *op, struct frag_err *out_err)
{
	const int code = op->failed.code;

	if (out_err != NULL && code != 0)
		frag_err_set(out_err, code, "%s", fragi_op_own_error(op));
	fragi_op_forget_failure(op);
	return code;
}

void frag_op_suspend_watchdog(struct frag_op *op)
{
	const struct fragi_current *current = fragi_current();

	if (current->op != op)
		return;
	if (current->callback == FRAGI_CALL_INITIALIZE || current->callback == FRAGI_CALL_FINI)
		fragi_call_remove_limit();
	if (current->callback == FRAGI_CALL_FINI)
		fragi_op_show_running(op, false);
}
