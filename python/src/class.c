// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <stdlib.h>
#include <string.h>

/*
 * Classes of Python that are types of frag's: dataclasses as plain structs, and any others as
 * references to objects, which leave their process only with a codec. The tables stay until the
 * process ends.
 */
static PyObject *names;   /* class of a struct -> name of its type */
static PyObject *classes; /* name of a type -> class */

bool fpy_is_object(const struct frag_type *type)
{
	return type->fini == fpy_object_type.fini;
}

const char *fpy_struct_name(PyObject *value)
{
	PyObject *name = PyDict_GetItemWithError(names, (PyObject *)Py_TYPE(value));

	return name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
}

PyObject *fpy_class(const char *name)
{
	return PyDict_GetItemString(classes, name);
}

/* As C aligns it. */
static size_t alignment(const struct frag_type *type)
{
	size_t most = 1, one;

	if (type->field_count == 0)
		return type == &frag_type_complex64 || type == &frag_type_complex128
			       ? type->size / 2
			       : type->size;
	for (uint32_t i = 0; i < type->field_count; i++) {
		const struct frag_field *field =
			(const void *)((const char *)type->fields + (size_t)i * type->field_size);
		const struct frag_type *of = frag_type_find(field->type);

		one = of != NULL ? alignment(of) : 1;
		most = one > most ? one : most;
	}
	return most;
}

static size_t round_up(size_t size, size_t align)
{
	return (size + align - 1) / align * align;
}

/* rows: ((name, type, count), ...). Lays the fields out as a C compiler does. */
static int lay_out(struct frag_type *type, PyObject *rows)
{
	const Py_ssize_t count = PyTuple_Size(rows);
	struct frag_field *fields = calloc((size_t)count + 1, sizeof(*fields));
	size_t most = 1, end = 0, align;

	if (fields == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	type->fields = fields;
	type->field_count = (uint32_t)count;
	type->field_size = sizeof(*fields);
	for (Py_ssize_t i = 0; i < count; i++) {
		struct frag_field *field = &fields[i];
		const struct frag_type *of;

		if (!PyArg_ParseTuple(PyTuple_GetItem(rows, i), "ssI", &field->name, &field->type,
				      &field->count))
			return -1;
		of = frag_type_find(field->type);
		if (of == NULL) {
			PyErr_Format(PyExc_TypeError, "%s.%s: there is no type %s", type->name,
				     field->name, field->type);
			return -1;
		}
		align = alignment(of);
		field->offset = (uint32_t)round_up(end, align);
		field->size = (uint32_t)of->size;
		end = field->offset + of->size * field->count;
		most = align > most ? align : most;
	}
	type->size = round_up(end, most);
	return 0;
}

static int remember(PyObject *class, PyObject *name, bool is_struct)
{
	if (is_struct && PyDict_SetItem(names, class, name) < 0)
		return -1;
	return PyDict_SetItem(classes, name, class);
}

/*
 * class_register(class, name, rows, has_codec): rows are the fields of a struct; None: an object.
 * The same class may be registered again.
 */
PyObject *fpy_class_register(PyObject *module, PyObject *args)
{
	PyObject *class, *name, *rows, *known;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_type *type;
	int has_codec, r;

	(void)module;
	if (!PyArg_ParseTuple(args, "OUOp", &class, &name, &rows, &has_codec))
		return NULL;
	known = PyDict_GetItemWithError(classes, name);
	if (known == class)
		Py_RETURN_NONE;
	if (PyErr_Occurred() != NULL)
		return NULL;
	type = calloc(1, sizeof(*type));
	if (type == NULL)
		return PyErr_NoMemory();
	*type = rows != Py_None ? (struct frag_type){FRAG_TYPE_INIT} : fpy_object_type;
	type->name = PyUnicode_AsUTF8AndSize(name, NULL);
	if (!has_codec) {
		type->encode = NULL;
		type->decode = NULL;
	}
	if (type->name == NULL || (rows != Py_None && lay_out(type, rows) < 0))
		goto err_type;
	r = frag_type_register(type, &err);
	if (r < 0) {
		fpy_raise(r, &err, type->name);
		goto err_type;
	}
	Py_INCREF(args); /* for its texts: the table stays */
	if (remember(class, name, rows != Py_None) < 0)
		return NULL;
	Py_RETURN_NONE;

err_type:
	free((void *)(uintptr_t)type->fields);
	free(type);
	return NULL;
}

int fpy_class_ready(void)
{
	names = PyDict_New();
	classes = PyDict_New();
	return names != NULL && classes != NULL ? 0 : -1;
}
