// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Lists, dicts and plain structs. A type's name ends with what it is outside: "i64[]{}" is a map of
 * arrays, so each step takes the last two letters away.
 */

#define DEPTH_MAX 4 /* frag/collection.h */

/* Removes the last "[]" or "{}". Returns it, or 0: there is none. */
static char peel(const char *name, char stem[FPY_TYPE_NAME_SIZE])
{
	size_t length = strlen(name);

	if (length < 3 || length >= FPY_TYPE_NAME_SIZE ||
	    (name[length - 1] != ']' && name[length - 1] != '}'))
		return 0;
	memcpy(stem, name, length - 2);
	stem[length - 2] = '\0';
	return name[length - 2];
}

/* Whether "NAME[]" is a C array of it. Returns the type of its elements. */
static const struct frag_type *fixed_element(char outside, const char *stem)
{
	const struct frag_type *type = frag_type_find(stem);

	if (outside != '[' || type == NULL || strpbrk(stem, "[{") != NULL ||
	    type == &frag_type_string || type == &frag_type_bytes)
		return NULL;
	return type;
}

/* What suits a value. */

static bool infer_scalar(PyObject *value, char name[FPY_TYPE_NAME_SIZE])
{
	const char *found = NULL;
	int overflow = 0;

	if (PyBool_Check(value)) {
		found = "bool";
	} else if (PyLong_CheckExact(value)) {
		(void)PyLong_AsLongLongAndOverflow(value, &overflow);
		found = overflow == 0 ? "i64" : NULL;
	} else if (PyFloat_Check(value)) {
		found = "f64";
	} else if (PyUnicode_CheckExact(value)) {
		found = "string";
	} else if (PyBytes_CheckExact(value)) {
		found = "bytes";
	} else if (PyComplex_CheckExact(value)) {
		found = "complex128";
	} else {
		found = fpy_struct_name(value);
	}
	if (found != NULL)
		snprintf(name, FPY_TYPE_NAME_SIZE, "%s", found);
	return found != NULL;
}

static bool infer(PyObject *value, char name[FPY_TYPE_NAME_SIZE], int depth);

/* Makes name what both are: numbers of both kinds are f64. */
static bool unify(char name[FPY_TYPE_NAME_SIZE], const char *next)
{
	if (name[0] == '\0')
		snprintf(name, FPY_TYPE_NAME_SIZE, "%s", next);
	else if ((strcmp(name, "i64") == 0 && strcmp(next, "f64") == 0) ||
		 (strcmp(name, "f64") == 0 && strcmp(next, "i64") == 0))
		strcpy(name, "f64");
	else
		return strcmp(name, next) == 0;
	return true;
}

static bool infer_list(PyObject *list, char name[FPY_TYPE_NAME_SIZE], int depth)
{
	char next[FPY_TYPE_NAME_SIZE];
	Py_ssize_t count = PyList_Size(list);

	name[0] = '\0';
	for (Py_ssize_t i = 0; i < count; i++)
		if (!infer(PyList_GetItem(list, i), next, depth) || !unify(name, next))
			return false;
	strcat(name, "[]");
	return count > 0;
}

static bool infer_dict(PyObject *dict, char name[FPY_TYPE_NAME_SIZE], int depth)
{
	char next[FPY_TYPE_NAME_SIZE];
	PyObject *key, *value;
	Py_ssize_t at = 0;

	name[0] = '\0';
	while (PyDict_Next(dict, &at, &key, &value))
		if (!PyUnicode_CheckExact(key) || !infer(value, next, depth) || !unify(name, next))
			return false;
	strcat(name, "{}");
	return PyDict_Size(dict) > 0;
}

static bool infer(PyObject *value, char name[FPY_TYPE_NAME_SIZE], int depth)
{
	if (PyList_CheckExact(value))
		return depth > 0 && infer_list(value, name, depth - 1);
	if (PyDict_CheckExact(value))
		return depth > 0 && infer_dict(value, name, depth - 1);
	return infer_scalar(value, name);
}

bool fpy_infer(PyObject *value, char name[FPY_TYPE_NAME_SIZE])
{
	return infer(value, name, DEPTH_MAX);
}

/* Python to frag. */

static int fill_array(struct fpy_bytes *bytes, PyObject *list, const struct frag_type *type)
{
	Py_ssize_t count = PySequence_Size(list);
	struct fpy_bytes element;
	PyObject *item;
	int r = count < 0 ? -1 : 0;

	if (r < 0)
		return r;
	bytes->heap = malloc((size_t)count * type->size + 1);
	if (bytes->heap == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; r == 0 && i < count; i++) {
		item = PySequence_GetItem(list, i);
		r = item != NULL ? fpy_bytes_init(&element, item, type) : -1;
		if (r == 0) {
			memcpy((char *)bytes->heap + (size_t)i * type->size, element.data,
			       type->size);
			fpy_bytes_fini(&element);
		}
		Py_XDECREF(item);
	}
	bytes->data = bytes->heap;
	bytes->size = (size_t)count * type->size;
	return r;
}

static int add_element(struct frag_collection *collection, PyObject *key, PyObject *value,
		       const struct frag_type *type)
{
	struct fpy_bytes element;
	const char *text = key != NULL ? fpy_text(key) : NULL;
	int r = key != NULL && text == NULL ? -1 : fpy_bytes_init(&element, value, type);

	if (r < 0)
		return r;
	r = key != NULL ? frag_collection_put(collection, text, element.data, element.size)
			: frag_collection_add(collection, element.data, element.size);
	fpy_bytes_fini(&element);
	return r < 0 ? fpy_raise(r, NULL, "an element") : 0;
}

static int fill_list(struct frag_collection *collection, PyObject *list,
		     const struct frag_type *type)
{
	Py_ssize_t count = PySequence_Size(list);
	PyObject *item;
	int r = count < 0 ? -1 : 0;

	for (Py_ssize_t i = 0; r == 0 && i < count; i++) {
		item = PySequence_GetItem(list, i);
		r = item != NULL ? add_element(collection, NULL, item, type) : -1;
		Py_XDECREF(item);
	}
	return r;
}

static int fill_map(struct frag_collection *collection, PyObject *dict,
		    const struct frag_type *type)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	int r = 0;

	if (!PyDict_Check(dict)) {
		PyErr_SetString(PyExc_TypeError, "a map of frag is made of a dict");
		return -1;
	}
	while (r == 0 && PyDict_Next(dict, &at, &key, &value))
		r = add_element(collection, key, value, type);
	return r;
}

/* The fields of a dict, or the attributes of any other object. */
static int fill_struct(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	struct fpy_bytes part;
	char name[FPY_TYPE_NAME_SIZE];
	PyObject *item;
	int r = 0;

	bytes->heap = calloc(1, type->size);
	if (bytes->heap == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	for (uint32_t i = 0; r == 0 && i < type->field_count; i++) {
		const struct frag_field *field =
			(const void *)((const char *)type->fields + (size_t)i * type->field_size);

		snprintf(name, sizeof(name), "%.64s%s", field->type, field->count > 1 ? "[]" : "");
		item = PyDict_Check(value) ? Py_XNewRef(PyDict_GetItemString(value, field->name))
					   : PyObject_GetAttrString(value, field->name);
		if (item == NULL && PyErr_Occurred() == NULL)
			PyErr_Format(PyExc_KeyError, "%s: the field of %s is missing", field->name,
				     type->name);
		r = item != NULL ? fpy_bytes_init(&part, item, frag_type_find(name)) : -1;
		Py_XDECREF(item);
		if (r < 0)
			break;
		if (part.size != (size_t)field->count * part.type->size && field->count > 1 &&
		    part.size != field->count * (size_t)field->size) {
			PyErr_Format(PyExc_ValueError, "%s of %s has %u elements", field->name,
				     type->name, field->count);
			r = -1;
		} else {
			memcpy((char *)bytes->heap + field->offset, part.data, part.size);
		}
		fpy_bytes_fini(&part);
	}
	bytes->data = bytes->heap;
	bytes->size = type->size;
	return r;
}

static int build(struct fpy_bytes *bytes, PyObject *value, const char *name, char outside,
		 const char *stem)
{
	const struct frag_type *type = frag_type_find(stem);
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_collection_create(name, &bytes->collection, &err);

	if (r < 0 || type == NULL)
		return fpy_raise(r, &err, name);
	r = outside == '{' ? fill_map(bytes->collection, value, type)
			   : fill_list(bytes->collection, value, type);
	if (r < 0)
		return r;
	r = frag_collection_value(bytes->collection, &bytes->data, &bytes->size);
	return r < 0 ? fpy_raise(r, NULL, name) : 0;
}

int fpy_collection_init(struct fpy_bytes *bytes, PyObject *value, const char *name)
{
	char stem[FPY_TYPE_NAME_SIZE];
	char outside = peel(name, stem);
	const struct frag_type *element = fixed_element(outside, stem);
	int r;

	if (outside == 0)
		r = fill_struct(bytes, value, bytes->type);
	else if (element != NULL)
		r = fill_array(bytes, value, element);
	else
		r = build(bytes, value, name, outside, stem);
	if (r < 0)
		fpy_bytes_fini(bytes);
	return r;
}

/* frag to Python. */

static PyObject *read_array(const struct frag_type *type, const void *value, size_t size)
{
	Py_ssize_t count = (Py_ssize_t)(size / type->size);
	PyObject *list = PyList_New(count), *item;

	for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
		item = fpy_value(type, (const char *)value + (size_t)i * type->size, type->size);
		if (item == NULL || PyList_SetItem(list, i, item) < 0)
			Py_CLEAR(list);
	}
	return list;
}

/* The dataclass of a struct, of its fields; takes dict, and returns it where there is no class. */
static PyObject *make(const char *name, PyObject *dict)
{
	PyObject *class = fpy_class(name), *none, *result;

	if (class == NULL)
		return dict;
	none = PyTuple_New(0);
	result = none != NULL ? PyObject_Call(class, none, dict) : NULL;
	Py_XDECREF(none);
	Py_DECREF(dict);
	return result;
}

static PyObject *read_struct(const struct frag_type *type, const void *value)
{
	PyObject *dict = PyDict_New(), *item;
	char name[FPY_TYPE_NAME_SIZE];

	for (uint32_t i = 0; dict != NULL && i < type->field_count; i++) {
		const struct frag_field *field =
			(const void *)((const char *)type->fields + (size_t)i * type->field_size);
		const struct frag_type *of = frag_type_find(field->type);
		const void *at = (const char *)value + field->offset;

		snprintf(name, sizeof(name), "%.64s%s", field->type, field->count > 1 ? "[]" : "");
		item = of == NULL         ? Py_NewRef(Py_None)
		       : field->count > 1 ? read_array(of, at, field->count * of->size)
					  : fpy_value(of, at, of->size);
		if (item == NULL || PyDict_SetItemString(dict, field->name, item) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(item);
	}
	return dict != NULL ? make(type->name, dict) : NULL;
}

static PyObject *read_collection(const struct frag_type *type, const void *value, bool is_map)
{
	uint32_t count = frag_collection_count(value);
	PyObject *result = is_map ? PyDict_New() : PyList_New((Py_ssize_t)count), *item;
	const void *element;
	size_t size;
	int r;

	for (uint32_t i = 0; result != NULL && i < count; i++) {
		element = frag_collection_at(value, i, &size);
		item = fpy_value(type, element, size);
		if (item == NULL) {
			r = -1;
		} else if (is_map) {
			r = PyDict_SetItemString(result, frag_collection_key(value, i), item);
			Py_DECREF(item);
		} else {
			r = PyList_SetItem(result, (Py_ssize_t)i, item); /* takes it */
		}
		if (r < 0)
			Py_CLEAR(result);
	}
	return result;
}

PyObject *fpy_collection(const char *name, const void *value, size_t size)
{
	char stem[FPY_TYPE_NAME_SIZE];
	char outside = peel(name, stem);
	const struct frag_type *element = fixed_element(outside, stem);

	if (outside == 0)
		return read_struct(frag_type_find(name), value);
	if (element != NULL)
		return read_array(element, value, size);
	element = frag_type_find(stem);
	if (element == NULL) {
		PyErr_Format(PyExc_TypeError, "nobody has registered the type %s", stem);
		return NULL;
	}
	return read_collection(element, value, outside == '{');
}
