// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * frag.Tensor: a reference to a tensor of frag, whose memory others use without a copy: by DLPack
 * (dlpack.c), the buffer protocol and numpy's interface. What was received is read-only.
 */
static PyTypeObject *tensor_class;

/* Element types, as DLPack, the buffer protocol, numpy's interface and people call them. */
static const struct kind {
	struct frag_dtype dtype;
	const char *format, *typestr, *name;
} kinds[] = {
	{{FRAG_DTYPE_BOOL, 8, 1}, "?", "|b1", "bool"},
	{{FRAG_DTYPE_INT, 8, 1}, "b", "|i1", "int8"},
	{{FRAG_DTYPE_INT, 16, 1}, "h", "<i2", "int16"},
	{{FRAG_DTYPE_INT, 32, 1}, "i", "<i4", "int32"},
	{{FRAG_DTYPE_INT, 64, 1}, "q", "<i8", "int64"},
	{{FRAG_DTYPE_UINT, 8, 1}, "B", "|u1", "uint8"},
	{{FRAG_DTYPE_UINT, 16, 1}, "H", "<u2", "uint16"},
	{{FRAG_DTYPE_UINT, 32, 1}, "I", "<u4", "uint32"},
	{{FRAG_DTYPE_UINT, 64, 1}, "Q", "<u8", "uint64"},
	{{FRAG_DTYPE_FLOAT, 16, 1}, "e", "<f2", "float16"},
	{{FRAG_DTYPE_FLOAT, 32, 1}, "f", "<f4", "float32"},
	{{FRAG_DTYPE_FLOAT, 64, 1}, "d", "<f8", "float64"},
	{{FRAG_DTYPE_COMPLEX, 64, 1}, "Zf", "<c8", "complex64"},
	{{FRAG_DTYPE_COMPLEX, 128, 1}, "Zd", "<c16", "complex128"},
	{{FRAG_DTYPE_BFLOAT, 16, 1}, NULL, NULL, "bfloat16"},
};

static const struct kind *kind_of(struct frag_dtype dtype)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		if (kinds[i].dtype.code == dtype.code && kinds[i].dtype.bits == dtype.bits &&
		    dtype.lanes == 1)
			return &kinds[i];
	return NULL;
}

/* Bytes of an element, which is of several numbers where the type has lanes. */
static int64_t item_bytes(struct frag_dtype dtype)
{
	return dtype.bits / 8 * dtype.lanes;
}

static const struct frag_dltensor *dl_of(PyObject *self)
{
	return frag_tensor_dl(((struct fpy_tensor *)self)->tensor);
}

bool fpy_is_of_host(struct frag_device device)
{
	return device.type == FRAG_DEVICE_CPU || device.type == FRAG_DEVICE_CUDA_HOST;
}

PyObject *fpy_tensor_create(struct frag_tensor *tensor, bool is_writable)
{
	struct fpy_tensor *self =
		tensor != NULL ? PyObject_New(struct fpy_tensor, tensor_class) : NULL;
	const struct fpy_op *op = fpy_op_current();

	if (self == NULL) {
		frag_tensor_unref(tensor);
		return NULL;
	}
	self->tensor = tensor;
	self->holder = op != NULL ? fpy_holder_ref(op->holder) : NULL;
	self->stream = NULL;
	if (op != NULL && !is_writable && !fpy_is_of_host(frag_tensor_dl(tensor)->device))
		self->stream = frag_tick_stream(op->tick);
	self->is_writable = is_writable;
	return &self->ob_base;
}

bool fpy_is_tensor(PyObject *object)
{
	return PyObject_TypeCheck(object, tensor_class);
}

PyObject *fpy_tensor(struct frag_tensor *tensor)
{
	return fpy_tensor_create(frag_tensor_ref(tensor), false);
}

static void tensor_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	frag_tensor_unref(((struct fpy_tensor *)object)->tensor);
	fpy_holder_unref(((struct fpy_tensor *)object)->holder);
	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

PyObject *fpy_tensor_as(PyObject *module, PyObject *array)
{
	(void)module;
	if (fpy_is_tensor(array))
		return Py_NewRef(array);
	if (!fpy_is_array(array)) {
		PyErr_SetString(PyExc_TypeError, "an array has __dlpack__");
		return NULL;
	}
	return fpy_tensor_create(fpy_tensor_take(array), false);
}

static int shape_of(PyObject *dimensions, int64_t shape[FRAG_TENSOR_NDIM_MAX])
{
	const Py_ssize_t ndim = PyTuple_Size(dimensions);

	if (ndim > FRAG_TENSOR_NDIM_MAX) {
		PyErr_SetString(PyExc_ValueError, "a tensor has at most 8 dimensions");
		return -1;
	}
	for (Py_ssize_t i = 0; i < ndim; i++) {
		shape[i] = PyLong_AsLongLong(PyTuple_GetItem(dimensions, i));
		if (PyErr_Occurred() == NULL && shape[i] < 0)
			PyErr_Format(PyExc_ValueError, "dimension %zd is negative: %lld", i,
				     (long long)shape[i]);
		if (PyErr_Occurred() != NULL)
			return -1;
	}
	return 0;
}

/* Words what an allocator refuses, and who keeps its memory. */
static void raise_empty(int code, const char *pool)
{
	struct frag_err err = FRAG_ERR_INIT;
	char keepers[400];

	fpy_holders_list(keepers, sizeof(keepers));
	if (code == -ENOMEM && pool != NULL)
		frag_err_set(&err, code, "%s has nothing left; tensors in Python: %s", pool,
			     keepers[0] != '\0' ? keepers : "none");
	else if (code == -EOVERFLOW)
		frag_err_set(&err, code, "a tensor of this shape would have 2^63 bytes or more");
	fpy_raise(code, &err, pool != NULL ? pool : "empty");
}

/* empty(shape, dtype, context of an operator or None, name of its allocator or None, gpu or -1) */
PyObject *fpy_tensor_empty(PyObject *module, PyObject *args)
{
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	struct frag_resource *allocator = NULL;
	struct frag_tensor *tensor = NULL;
	const struct kind *kind = NULL;
	PyObject *dimensions, *context;
	const char *dtype, *pool;
	int gpu, ndim, r;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!sOzi", &PyTuple_Type, &dimensions, &dtype, &context, &pool,
			      &gpu))
		return NULL;
	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		if (strcmp(kinds[i].name, dtype) == 0)
			kind = &kinds[i];
	if (kind == NULL) {
		PyErr_Format(PyExc_ValueError, "%s is no element type of frag", dtype);
		return NULL;
	}
	if (shape_of(dimensions, shape) < 0)
		return NULL;
	if (pool != NULL) {
		allocator = fpy_context_resource(context, pool);
		if (allocator == NULL)
			return NULL;
	}
	ndim = (int)PyTuple_Size(dimensions);
	if (gpu < 0)
		r = frag_tensor_create(allocator, kind->dtype, ndim, shape, &tensor);
	else
		r = frag_tensor_create_on(allocator, (struct frag_device){FRAG_DEVICE_CUDA, gpu},
					  kind->dtype, ndim, shape, &tensor);
	if (r == 0)
		return fpy_tensor_create(tensor, true);
	raise_empty(r, pool);
	return NULL;
}

/* The buffer protocol and the attributes. */

static PyObject *tuple_of(const int64_t *numbers, int32_t count, int64_t factor)
{
	PyObject *tuple = PyTuple_New(count), *number;

	for (int32_t i = 0; tuple != NULL && i < count; i++) {
		number = PyLong_FromLongLong(numbers[i] * factor);
		if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	const struct frag_dltensor *dl = dl_of(self);
	const struct kind *kind = kind_of(dl->dtype);
	const int64_t item = item_bytes(dl->dtype);
	const bool is_compact = frag_tensor_is_compact(((struct fpy_tensor *)self)->tensor);
	Py_ssize_t *strides;
	int64_t count = 1;

	view->obj = NULL;
	if (kind == NULL || kind->format == NULL || !fpy_is_of_host(dl->device) ||
	    ((flags & PyBUF_WRITABLE) != 0 && !((struct fpy_tensor *)self)->is_writable) ||
	    ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_compact)) {
		PyErr_SetString(PyExc_BufferError, (flags & PyBUF_WRITABLE) != 0
							   ? "this tensor is read-only"
							   : "this tensor has no such buffer");
		return -1;
	}
	strides = calloc((size_t)dl->ndim + 1, sizeof(*strides));
	if (strides == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	for (int32_t i = 0; i < dl->ndim; i++) {
		strides[i] = (Py_ssize_t)(dl->strides[i] * item);
		count *= dl->shape[i];
	}
	*view = (Py_buffer){
		.buf = (char *)dl->data + dl->byte_offset,
		.obj = Py_NewRef(self),
		.len = (Py_ssize_t)(count * item),
		.itemsize = (Py_ssize_t)item,
		.readonly = !((struct fpy_tensor *)self)->is_writable,
		.ndim = dl->ndim,
		.format = (flags & PyBUF_FORMAT) != 0 ? (char *)(uintptr_t)kind->format : NULL,
		.shape = (flags & PyBUF_ND) != 0 ? (Py_ssize_t *)dl->shape : NULL,
		.strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides : NULL,
		.internal = strides,
	};
	return 0;
}

static void tensor_releasebuffer(PyObject *self, Py_buffer *view)
{
	(void)self;
	free(view->internal);
}

/* __array_interface__, and __cuda_array_interface__ for memory of GPUs: closure is not NULL. */
static PyObject *tensor_array_interface(PyObject *self, void *closure)
{
	const struct fpy_tensor *tensor = (struct fpy_tensor *)self;
	const struct frag_dltensor *dl = dl_of(self);
	const struct kind *kind = kind_of(dl->dtype);
	PyObject *interface, *stream;

	if (kind == NULL || kind->typestr == NULL ||
	    fpy_is_of_host(dl->device) == (closure != NULL)) {
		PyErr_SetString(PyExc_AttributeError,
				closure != NULL ? "no library has such an array on a GPU"
						: "numpy has no such array");
		return NULL;
	}
	interface = Py_BuildValue("{sisssNsNs(NO)}", "version", 3, "typestr", kind->typestr,
				  "shape", tuple_of(dl->shape, dl->ndim, 1), "strides",
				  tuple_of(dl->strides, dl->ndim, item_bytes(dl->dtype)), "data",
				  PyLong_FromVoidPtr((char *)dl->data + dl->byte_offset),
				  tensor->is_writable ? Py_False : Py_True);
	if (interface == NULL || closure == NULL || tensor->stream == NULL)
		return interface;
	/* on which it is written: the other side waits for it, or works on it */
	stream = PyLong_FromVoidPtr(tensor->stream);
	if (stream == NULL || PyDict_SetItemString(interface, "stream", stream) < 0)
		Py_CLEAR(interface);
	Py_XDECREF(stream);
	return interface;
}

static PyObject *tensor_shape(PyObject *self, void *closure)
{
	(void)closure;
	return tuple_of(dl_of(self)->shape, dl_of(self)->ndim, 1);
}

static PyObject *tensor_strides(PyObject *self, void *closure)
{
	(void)closure;
	return tuple_of(dl_of(self)->strides, dl_of(self)->ndim, item_bytes(dl_of(self)->dtype));
}

static PyObject *tensor_dtype(PyObject *self, void *closure)
{
	const struct kind *kind = kind_of(dl_of(self)->dtype);

	(void)closure;
	return PyUnicode_FromString(kind != NULL ? kind->name : "unknown");
}

static PyObject *tensor_number(PyObject *self, void *closure)
{
	const struct frag_dltensor *dl = dl_of(self);
	int64_t count = 1;

	for (int32_t i = 0; i < dl->ndim; i++)
		count *= dl->shape[i];
	switch ((intptr_t)closure) {
	case 0:
		return PyLong_FromLong(dl->ndim);
	case 1:
		return PyLong_FromLongLong(count);
	case 2:
		return PyLong_FromLongLong(count * item_bytes(dl->dtype));
	case 3:
		return PyLong_FromLongLong(item_bytes(dl->dtype));
	default:
		return PyLong_FromVoidPtr((char *)dl->data + dl->byte_offset);
	}
}

static PyMethodDef tensor_methods[] = {
	FPY_METHOD("__dlpack__", fpy_tensor_dlpack, METH_FASTCALL | METH_KEYWORDS, NULL),
	{"__dlpack_device__", fpy_tensor_dlpack_device, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
static PyGetSetDef tensor_values[] = {
	{"__array_interface__", tensor_array_interface, NULL, NULL, NULL},
	{"__cuda_array_interface__", tensor_array_interface, NULL, NULL, (void *)1},
	{"shape", tensor_shape, NULL, "number of elements in each dimension", NULL},
	{"strides", tensor_strides, NULL, "bytes between neighbours of each dimension", NULL},
	{"dtype", tensor_dtype, NULL, "name of the element type", NULL},
	{"ndim", tensor_number, NULL, "number of dimensions", (void *)0},
	{"size", tensor_number, NULL, "number of elements", (void *)1},
	{"nbytes", tensor_number, NULL, "bytes of all elements", (void *)2},
	{"itemsize", tensor_number, NULL, "bytes of an element", (void *)3},
	{"data", tensor_number, NULL, "address of the first element", (void *)4},
	{NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot tensor_slots[] = {
	{Py_tp_dealloc, tensor_dealloc},
	{Py_tp_methods, tensor_methods},
	{Py_tp_getset, tensor_values},
	{Py_bf_getbuffer, tensor_getbuffer},
	{Py_bf_releasebuffer, tensor_releasebuffer},
	{0, NULL},
};
static PyType_Spec tensor_spec = {
	.name = "frag.Tensor",
	.basicsize = sizeof(struct fpy_tensor),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = tensor_slots,
};

int fpy_tensor_ready(PyObject *module)
{
	tensor_class = fpy_type_add(module, &tensor_spec);
	return tensor_class != NULL ? fpy_dlpack_ready(tensor_class) : -1;
}
