// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Objects that no type of frag's can hold. */

static int object_encode(const void *value, struct frag_writer *writer)
{
	PyObject *object = *(PyObject *const *)value, *bytes;
	PyGILState_STATE state = fpy_enter();
	char *data;
	Py_ssize_t size;
	int r = -ENOTSUP;

	bytes = PyObject_CallFunctionObjArgs(fpy_hook(FPY_HOOK_ENCODE), object, NULL);
	if (bytes != NULL && PyBytes_AsStringAndSize(bytes, &data, &size) == 0)
		r = frag_writer_put(writer, data, (size_t)size);
	else
		PyErr_Print();
	Py_XDECREF(bytes);
	fpy_leave(state);
	return r;
}

static int object_decode(void *value, struct frag_reader *reader)
{
	size_t size = frag_reader_left(reader);
	PyGILState_STATE state = fpy_enter();
	PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
	PyObject *object = NULL;

	if (bytes != NULL && frag_reader_get(reader, PyBytes_AsString(bytes), size) == 0)
		object = PyObject_CallFunctionObjArgs(fpy_hook(FPY_HOOK_DECODE), bytes, NULL);
	PyErr_Clear();
	Py_XDECREF(bytes);
	*(PyObject **)value = object;
	fpy_leave(state);
	return object != NULL ? 0 : -EBADMSG;
}

static void object_fini(void *value)
{
	PyGILState_STATE state;

	if (*(PyObject **)value == NULL || !Py_IsInitialized())
		return;
	state = fpy_enter();
	Py_DECREF(*(PyObject **)value);
	fpy_leave(state);
}

const struct frag_type fpy_object_type = {
	FRAG_TYPE_INIT,
	.name = "python",
	.headline = "A Python object",
	.size = sizeof(PyObject *),
	.encode = object_encode,
	.decode = object_decode,
	.fini = object_fini,
};

/* Scalars. */

static int refuse(PyObject *value, const struct frag_type *type)
{
	PyObject *class = PyObject_Type(value);

	PyErr_Format(PyExc_TypeError, "a value of type %S cannot become %s", class, type->name);
	Py_XDECREF(class);
	return -1;
}

static int take_integer(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	const bool is_signed = type->name[0] == 'i';
	const int bits = (int)type->size * 8;

	if (!PyIndex_Check(value))
		return refuse(value, type);
	if (is_signed) {
		int64_t x = PyLong_AsLongLong(value);

		if (x == -1 && PyErr_Occurred() != NULL)
			return -1;
		if (bits < 64 && (x < -(INT64_C(1) << (bits - 1)) || x >= INT64_C(1) << (bits - 1)))
			goto too_large;
		bytes->scalar.i64 = x; /* little-endian: the low bytes come first */
	} else {
		PyObject *index = PyNumber_Index(value);
		uint64_t x = index != NULL ? PyLong_AsUnsignedLongLong(index) : (uint64_t)-1;

		Py_XDECREF(index);
		if (x == (uint64_t)-1 && PyErr_Occurred() != NULL)
			return -1;
		if (bits < 64 && x >= UINT64_C(1) << bits)
			goto too_large;
		bytes->scalar.u64 = x;
	}
	return 0;

too_large:
	PyErr_Format(PyExc_OverflowError, "%S does not fit into %s", value, type->name);
	return -1;
}

static int take_float(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	double x = PyFloat_AsDouble(value);

	if (x == -1.0 && PyErr_Occurred() != NULL)
		return -1;
	if (type == &frag_type_f64)
		bytes->scalar.f64 = x;
	else
		bytes->scalar.f32 = (float)x;
	return 0;
}

static int take_complex(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	double real, imaginary;

	if (!PyComplex_Check(value) && !PyFloat_Check(value) && !PyLong_Check(value))
		return refuse(value, type);
	real = PyComplex_RealAsDouble(value);
	imaginary = PyComplex_ImagAsDouble(value);
	if (PyErr_Occurred() != NULL)
		return -1;
	if (type == &frag_type_complex128) {
		bytes->scalar.complex128[0] = real;
		bytes->scalar.complex128[1] = imaginary;
	} else {
		bytes->scalar.complex64[0] = (float)real;
		bytes->scalar.complex64[1] = (float)imaginary;
	}
	return 0;
}

const char *fpy_text(PyObject *object)
{
	Py_ssize_t size;
	const char *text = PyUnicode_AsUTF8AndSize(object, &size);

	if (text != NULL && strlen(text) != (size_t)size) {
		PyErr_SetString(PyExc_ValueError,
				"a text of frag cannot hold a NUL; leave it out, or emit bytes");
		return NULL;
	}
	return text;
}

static int take_string(struct fpy_bytes *bytes, PyObject *value)
{
	const char *text;

	if (!PyUnicode_Check(value))
		return refuse(value, &frag_type_string);
	text = fpy_text(value);
	if (text == NULL)
		return -1;
	bytes->data = text; /* the caller holds value */
	bytes->size = strlen(text);
	return 0;
}

static int take_bytes(struct fpy_bytes *bytes, PyObject *value)
{
	Py_buffer view;

	if (PyBytes_Check(value)) {
		bytes->data = PyBytes_AsString(value);
		bytes->size = (size_t)PyBytes_Size(value);
		return 0;
	}
	if (PyObject_GetBuffer(value, &view, PyBUF_CONTIG_RO) < 0)
		return -1;
	bytes->heap = malloc((size_t)view.len + 1);
	if (bytes->heap != NULL)
		memcpy(bytes->heap, view.buf, (size_t)view.len);
	bytes->data = bytes->heap;
	bytes->size = (size_t)view.len;
	PyBuffer_Release(&view);
	if (bytes->heap == NULL)
		PyErr_NoMemory();
	return bytes->heap != NULL ? 0 : -1;
}

static int take_object(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	PyObject *class = fpy_class(type->name);
	int fits = class != NULL ? PyObject_IsInstance(value, class) : 1;

	if (fits <= 0)
		return fits < 0 ? -1 : refuse(value, type);
	bytes->scalar.object = Py_NewRef(value);
	return 0;
}

static int take(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	if (type == &frag_type_string)
		return take_string(bytes, value);
	if (type == &frag_type_bytes)
		return take_bytes(bytes, value);
	if (type == &frag_type_f64 || type == &frag_type_f32)
		return take_float(bytes, value, type);
	if (type == &frag_type_bool) {
		bytes->scalar.boolean = value == Py_True;
		return PyBool_Check(value) ? 0 : refuse(value, type);
	}
	if (type == &frag_type_complex128 || type == &frag_type_complex64)
		return take_complex(bytes, value, type);
	if (fpy_is_object(type))
		return take_object(bytes, value, type);
	if (strpbrk(type->name, "[{") != NULL || type->field_count > 0)
		return fpy_collection_init(bytes, value, type->name);
	if (type->encode != NULL || type->size > 8)
		return refuse(value, type);
	return take_integer(bytes, value, type);
}

int fpy_bytes_init(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type)
{
	char name[FPY_TYPE_NAME_SIZE];

	if (type == NULL && PyFloat_CheckExact(value))
		type = &frag_type_f64;
	if (type == NULL) {
		type = fpy_infer(value, name) ? frag_type_find(name) : &fpy_object_type;
		if (PyErr_Occurred() != NULL)
			return -1;
		if (type == NULL)
			type = &fpy_object_type;
	}
	bytes->type = type;
	bytes->data = &bytes->scalar;
	bytes->size = type->size;
	bytes->heap = NULL;
	bytes->collection = NULL;
	return take(bytes, value, type);
}

void fpy_bytes_fini(struct fpy_bytes *bytes)
{
	free(bytes->heap);
	frag_collection_destroy(bytes->collection);
}

static PyObject *integer(const struct frag_type *type, const void *value)
{
	int64_t i = 0;
	uint64_t u = 0;

	if (type->name[0] == 'u') {
		memcpy(&u, value, type->size);
		return PyLong_FromUnsignedLongLong(u);
	}
	memcpy(&i, value, type->size);
	if (type->size < 8) { /* sign */
		int shift = (int)(64 - 8 * type->size);

		i = (int64_t)((uint64_t)i << shift) >> shift;
	}
	return PyLong_FromLongLong(i);
}

PyObject *fpy_value(const struct frag_type *type, const void *value, size_t size)
{
	const float *narrow = value;
	const double *wide = value;

	if (type == &frag_type_i64)
		return PyLong_FromLongLong(*(const int64_t *)value);
	if (type == &frag_type_f64)
		return PyFloat_FromDouble(*wide);
	if (type == &frag_type_bool)
		return PyBool_FromLong(*(const bool *)value);
	if (type == &frag_type_string)
		return PyUnicode_DecodeUTF8(value, (Py_ssize_t)size, "replace");
	if (type == &frag_type_bytes)
		return PyBytes_FromStringAndSize(value, (Py_ssize_t)size);
	if (fpy_is_object(type))
		return Py_NewRef(*(PyObject *const *)value);
	if (type == &frag_type_f32)
		return PyFloat_FromDouble((double)*narrow);
	if (type == &frag_type_complex128)
		return PyComplex_FromDoubles(wide[0], wide[1]);
	if (type == &frag_type_complex64)
		return PyComplex_FromDoubles((double)narrow[0], (double)narrow[1]);
	if (strpbrk(type->name, "[{") != NULL || type->field_count > 0)
		return fpy_collection(type->name, value, size);
	if (type->encode == NULL && type->size <= 8)
		return integer(type, value);
	PyErr_Format(PyExc_TypeError, "a value of type %s cannot be read in Python", type->name);
	return NULL;
}
