// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The fields of parameters lie in an operator's state behind struct fpy_op. */

static size_t size_of(enum frag_param_kind kind)
{
	switch (kind) {
	case FRAG_PARAM_KIND_BOOL:
		return sizeof(bool);
	case FRAG_PARAM_KIND_I64_LIST:
	case FRAG_PARAM_KIND_F64_LIST:
	case FRAG_PARAM_KIND_STRING_LIST:
	case FRAG_PARAM_KIND_STRING_MAP:
		return sizeof(struct frag_i64_list);
	default:
		return sizeof(int64_t);
	}
}

bool fpy_optional_text(PyObject *object, const char **out)
{
	*out = object == Py_None ? NULL : PyUnicode_AsUTF8AndSize(object, NULL);
	return object == Py_None || *out != NULL;
}

int fpy_unsigned(PyObject *number, void *out)
{
	unsigned long long value = PyLong_AsUnsignedLongLong(number);

	if (PyErr_Occurred() == NULL) {
		*(unsigned long long *)out = value;
		return 1;
	}
	if (PyErr_ExceptionMatches(PyExc_OverflowError))
		PyErr_Format(PyExc_ValueError, "%S is out of range; give 0 to %llu", number,
			     ULLONG_MAX);
	return 0;
}

static int read_choices(PyObject *choices, const char *const **out)
{
	Py_ssize_t count = choices == Py_None ? 0 : PyTuple_Size(choices);
	const char **texts;

	if (count <= 0)
		return count < 0 ? -1 : 0;
	texts = calloc((size_t)count + 1, sizeof(*texts));
	if (texts == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	*out = texts;
	for (Py_ssize_t i = 0; i < count; i++)
		if (!fpy_optional_text(PyTuple_GetItem(choices, i), &texts[i]))
			return -1;
	return 0;
}

static int read_row(PyObject *row, struct frag_param *param)
{
	PyObject *name, *text, *headline, *choices;
	long long number;
	int kind;

	*param = (struct frag_param){0};
	if (!PyArg_ParseTuple(row, "UiLdOOIddO", &name, &kind, &number, &param->def_float, &text,
			      &headline, &param->flags, &param->min, &param->max, &choices) ||
	    !fpy_optional_text(name, &param->name) || !fpy_optional_text(text, &param->def_text) ||
	    !fpy_optional_text(headline, &param->headline))
		return -1;
	param->kind = (enum frag_param_kind)kind;
	param->def_int = number;
	return read_choices(choices, &param->choices);
}

int fpy_params_parse(struct fpy_params *params, PyObject *rows)
{
	Py_ssize_t count = PyTuple_Size(rows);

	params->rows = calloc((size_t)count + 1, sizeof(*params->rows));
	if (params->rows == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	for (; params->count < (uint32_t)count; params->count++)
		if (read_row(PyTuple_GetItem(rows, (Py_ssize_t)params->count),
			     &params->rows[params->count]) < 0)
			return -1;
	return 0;
}

void fpy_params_fini(struct fpy_params *params)
{
	for (uint32_t i = 0; i < params->count; i++)
		free((void *)(uintptr_t)params->rows[i].choices);
	free(params->rows);
}

size_t fpy_params_layout(struct fpy_params *params, size_t offset)
{
	for (uint32_t i = 0; i < params->count; i++) {
		params->rows[i].offset = (uint32_t)offset;
		offset += (size_of(params->rows[i].kind) + 7) & ~(size_t)7;
	}
	return offset;
}

/* Appends to a list, taking item. Returns the list, or NULL. */
static PyObject *append(PyObject *list, PyObject *item)
{
	if (list == NULL || item == NULL || PyList_Append(list, item) < 0) {
		Py_XDECREF(list);
		list = NULL;
	}
	Py_XDECREF(item);
	return list;
}

static PyObject *text_of(const char *text)
{
	return text != NULL ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyObject *read_list(enum frag_param_kind kind, const void *field)
{
	const struct frag_i64_list *whole = field;
	const struct frag_f64_list *numbers = field;
	const struct frag_string_list *texts = field;
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list != NULL && i < whole->count; i++)
		list = append(list, kind == FRAG_PARAM_KIND_I64_LIST
					    ? PyLong_FromLongLong(whole->items[i])
				    : kind == FRAG_PARAM_KIND_F64_LIST
					    ? PyFloat_FromDouble(numbers->items[i])
					    : text_of(texts->items[i]));
	return list;
}

/* As YAML reads a scalar without quotes; what is none of these is a text. */
static PyObject *scalar(const char *text)
{
	PyObject *value;

	if (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)
		return Py_NewRef(Py_None);
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return PyBool_FromLong(text[0] == 't');
	value = PyLong_FromString(text, NULL, 0);
	if (value == NULL && strpbrk(text, "0123456789") != NULL) {
		char *end;
		double number = strtod(text, &end);

		PyErr_Clear();
		value = *end == '\0' ? PyFloat_FromDouble(number) : NULL;
	}
	if (value != NULL)
		return value;
	PyErr_Clear();
	return text_of(text);
}

static PyObject *read_tree(const struct frag_tree *tree)
{
	PyObject *result, *item;

	if (tree == NULL)
		return Py_NewRef(Py_None);
	if (tree->kind == FRAG_TREE_TEXT)
		return scalar(tree->text);
	result = tree->kind == FRAG_TREE_MAP ? PyDict_New() : PyList_New(0);
	for (size_t i = 0; result != NULL && i < tree->count; i++) {
		item = read_tree(&tree->items[i]);
		if (tree->kind == FRAG_TREE_LIST) {
			result = append(result, item);
			continue;
		}
		if (item == NULL || PyDict_SetItemString(result, tree->items[i].key, item) < 0)
			Py_CLEAR(result);
		Py_XDECREF(item);
	}
	return result;
}

/* A condition or resource in Python is itself, another one its name. */
static PyObject *read_component(enum frag_param_kind kind, const void *field)
{
	struct frag_resource *resource =
		kind == FRAG_PARAM_KIND_RESOURCE ? *(struct frag_resource *const *)field : NULL;
	struct frag_condition *condition =
		kind == FRAG_PARAM_KIND_CONDITION ? *(struct frag_condition *const *)field : NULL;
	PyObject *object = NULL;

	if (resource == NULL && condition == NULL)
		return Py_NewRef(Py_None);
	object = fpy_component_find(resource != NULL ? (const void *)resource : condition);
	if (object != NULL || PyErr_Occurred() != NULL)
		return object;
	return text_of(resource != NULL ? frag_resource_name(resource)
					: frag_condition_name(condition));
}

static PyObject *read_param(const struct frag_param *param, const void *field)
{
	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
		return PyBool_FromLong(*(const bool *)field);
	case FRAG_PARAM_KIND_I64:
	case FRAG_PARAM_KIND_DURATION:
		return PyLong_FromLongLong(*(const int64_t *)field);
	case FRAG_PARAM_KIND_SIZE:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)field);
	case FRAG_PARAM_KIND_F64:
		return PyFloat_FromDouble(*(const double *)field);
	case FRAG_PARAM_KIND_STRING:
	case FRAG_PARAM_KIND_PATH:
		return text_of(*(const char *const *)field);
	case FRAG_PARAM_KIND_I64_LIST:
	case FRAG_PARAM_KIND_F64_LIST:
	case FRAG_PARAM_KIND_STRING_LIST:
		return read_list(param->kind, field);
	case FRAG_PARAM_KIND_TREE:
		return read_tree(*(const struct frag_tree *const *)field);
	default:
		return read_component(param->kind, field);
	}
}

PyObject *fpy_params_read(const struct fpy_params *params, const void *state)
{
	PyObject *dict = PyDict_New(), *value;

	for (uint32_t i = 0; dict != NULL && i < params->count; i++) {
		const struct frag_param *param = &params->rows[i];

		value = read_param(param, (const char *)state + param->offset);
		if (value == NULL || PyDict_SetItemString(dict, param->name, value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	return dict;
}
