// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdio.h>

int fpy_raise(int code, const struct frag_err *err, const char *what)
{
	const char *text = err != NULL && err->text[0] != '\0' ? err->text : frag_strerror(code);
	char sentence[1700];
	PyObject *error;

	if (PyErr_Occurred() != NULL)
		return -1;
	if (err != NULL && err->line == 0 && err->file[0] != '\0')
		snprintf(sentence, sizeof(sentence), "%s: %s", err->file, text);
	else if (err != NULL && err->line > 0 && err->file[0] != '\0')
		snprintf(sentence, sizeof(sentence), "%s:%d:%d: %s", err->file, err->line,
			 err->column, text);
	else if (text != frag_strerror(code) || what[0] == '\0')
		snprintf(sentence, sizeof(sentence), "%s", text);
	else
		snprintf(sentence, sizeof(sentence), "%s: %s", what, text);
	error = PyObject_CallFunction(fpy_hook(FPY_HOOK_ERROR), "sis", sentence, code,
				      err != NULL ? err->op : "");
	if (error != NULL)
		PyErr_SetObject(fpy_hook(FPY_HOOK_ERROR), error);
	Py_XDECREF(error);
	return -1;
}

void fpy_describe(const char *what, char *out, size_t size)
{
	PyObject *type, *value, *traceback, *sentence = NULL;
	const char *text = NULL;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (value != NULL && traceback != NULL)
		PyException_SetTraceback(value, traceback);
	if (value != NULL)
		sentence = PyObject_CallFunction(fpy_hook(FPY_HOOK_DESCRIBE), "Os", value, what);
	if (sentence != NULL)
		text = PyUnicode_AsUTF8AndSize(sentence, NULL);
	PyErr_Clear();
	snprintf(out, size, "%s", text != NULL ? text : "an exception that cannot be described");
	Py_XDECREF(sentence);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}

/* Whether the exception that is set is frag's own about memory. */
static bool is_about_memory(void)
{
	PyObject *type, *value, *traceback, *code = NULL;
	bool is_it = false;

	if (!PyErr_ExceptionMatches(fpy_hook(FPY_HOOK_ERROR)))
		return false;
	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	if (value != NULL)
		code = PyObject_GetAttrString(value, "code");
	if (code != NULL && PyLong_Check(code))
		is_it = PyLong_AsLong(code) == -ENOMEM;
	Py_XDECREF(code);
	PyErr_Clear();
	PyErr_Restore(type, value, traceback);
	return is_it;
}

int fpy_fail(struct frag_op *op, const char *what)
{
	const int code = is_about_memory() ? -ENOMEM : -EIO;
	char sentence[1024];

	fpy_describe(what, sentence, sizeof(sentence));
	return frag_op_fail(op, code, "%s", sentence);
}
