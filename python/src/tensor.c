/* SPDX-License-Identifier: Apache-2.0 */
#include "extension.h"

#include <stdlib.h>
#include <string.h>

/*
 * frag.Tensor: a reference to a tensor of frag in memory of the host. It hands its memory out, and
 * takes that of other libraries, without a copy. What was received is read-only.
 */
struct tensor {
	PyObject ob_base;
	struct frag_tensor *tensor;
	bool is_writable; /* made here, and not emitted yet */
};

static PyTypeObject *tensor_class;
static PyObject *dlpack_name; /* "__dlpack__", interned */

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
		if (kinds[i].dtype.code == dtype.code && kinds[i].dtype.bits == dtype.bits)
			return &kinds[i];
	return NULL;
}

static const struct frag_dltensor *dl_of(PyObject *self)
{
	return frag_tensor_dl(((struct tensor *)self)->tensor);
}

static bool is_of_host(struct frag_device device)
{
	return device.type == FRAG_DEVICE_CPU || device.type == FRAG_DEVICE_CUDA_HOST;
}

static PyObject *create(struct frag_tensor *tensor, bool is_writable)
{
	struct tensor *self = tensor != NULL ? PyObject_New(struct tensor, tensor_class) : NULL;

	if (self == NULL) {
		frag_tensor_unref(tensor);
		return NULL;
	}
	self->tensor = tensor;
	self->is_writable = is_writable;
	return &self->ob_base;
}

PyObject *fpy_tensor(struct frag_tensor *tensor)
{
	return create(frag_tensor_ref(tensor), false);
}

static void tensor_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	frag_tensor_unref(((struct tensor *)object)->tensor);
	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

/* DLPack. */

#define DLPACK_READ_ONLY 1u
#define VERSIONED "dltensor_versioned"
#define UNVERSIONED "dltensor"

struct managed_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct managed_versioned *self);
	uint64_t flags;
	struct frag_dltensor tensor;
};
struct managed {
	struct frag_dltensor tensor;
	void *context;
	void (*deleter)(struct managed *self);
};

/* What others hold of ours: both kinds of descriptions. Any thread may give it back. */

static void give_back_versioned(struct managed_versioned *self)
{
	frag_tensor_unref(self->context);
	free(self);
}

static void give_back(struct managed *self)
{
	frag_tensor_unref(self->context);
	free(self);
}

static void capsule_fini(PyObject *capsule)
{
	struct managed_versioned *versioned;
	struct managed *managed;

	if (PyCapsule_IsValid(capsule, VERSIONED)) {
		versioned = PyCapsule_GetPointer(capsule, VERSIONED);
		versioned->deleter(versioned);
	} else if (PyCapsule_IsValid(capsule, UNVERSIONED)) {
		managed = PyCapsule_GetPointer(capsule, UNVERSIONED);
		managed->deleter(managed);
	}
}

static PyObject *hand_out(struct tensor *self, bool is_versioned)
{
	struct managed_versioned *versioned = calloc(1, sizeof(*versioned));
	struct managed *managed = calloc(1, sizeof(*managed));
	PyObject *capsule;

	if (versioned == NULL || managed == NULL) {
		free(versioned);
		free(managed);
		return PyErr_NoMemory();
	}
	*versioned = (struct managed_versioned){
		.major = 1,
		.context = frag_tensor_ref(self->tensor),
		.deleter = give_back_versioned,
		.flags = self->is_writable ? 0 : DLPACK_READ_ONLY,
		.tensor = *frag_tensor_dl(self->tensor),
	};
	*managed = (struct managed){
		.tensor = versioned->tensor, .context = versioned->context, .deleter = give_back};
	capsule = PyCapsule_New(is_versioned ? (void *)versioned : (void *)managed,
				is_versioned ? VERSIONED : UNVERSIONED, capsule_fini);
	if (capsule == NULL || !is_versioned)
		free(versioned);
	if (capsule == NULL || is_versioned)
		free(managed);
	if (capsule == NULL)
		frag_tensor_unref(self->tensor);
	return capsule;
}

static PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
	static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
	long major = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO", (char **)(uintptr_t)names,
					 &stream, &version, &device, &copy))
		return NULL;
	if (PyTuple_Check(version) && PyTuple_Size(version) > 0)
		major = PyLong_AsLong(PyTuple_GetItem(version, 0));
	if (PyErr_Occurred() != NULL)
		return NULL;
	if (!is_of_host(dl_of(self)->device) || copy == Py_True) {
		PyErr_SetString(PyExc_BufferError,
				copy == Py_True ? "frag makes no copies here"
						: "this tensor lies on a GPU, which frag's Python "
						  "does not hand out yet");
		return NULL;
	}
	if (major < 1 && !((struct tensor *)self)->is_writable) {
		PyErr_SetString(PyExc_BufferError,
				"this tensor is read-only, which only DLPack 1.0 can say; ask for "
				"max_version=(1, 0)");
		return NULL;
	}
	return hand_out((struct tensor *)self, major >= 1);
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_BuildValue("(ii)", dl_of(self)->device.type, dl_of(self)->device.id);
}

/* What we hold of others; the last reference may be dropped on any thread. */

static void release_versioned(void *context)
{
	struct managed_versioned *managed = context;
	PyGILState_STATE state;

	if (managed->deleter == NULL || !Py_IsInitialized())
		return;
	state = fpy_enter();
	managed->deleter(managed);
	fpy_leave(state);
}

static void release(void *context)
{
	struct managed *managed = context;
	PyGILState_STATE state;

	if (managed->deleter == NULL || !Py_IsInitialized())
		return;
	state = fpy_enter();
	managed->deleter(managed);
	fpy_leave(state);
}

static struct frag_tensor *take_capsule(PyObject *capsule)
{
	const bool is_versioned = PyCapsule_IsValid(capsule, VERSIONED);
	void *managed = PyCapsule_GetPointer(capsule, is_versioned ? VERSIONED : UNVERSIONED);
	const struct frag_dltensor *dl;
	struct frag_tensor *tensor;
	int r;

	if (managed == NULL)
		return NULL;
	dl = is_versioned ? &((struct managed_versioned *)managed)->tensor
			  : &((struct managed *)managed)->tensor;
	if (!is_of_host(dl->device)) {
		PyErr_SetString(PyExc_BufferError,
				"this array lies on a GPU, which frag's Python does not take yet");
		return NULL;
	}
	r = frag_tensor_wrap(dl, is_versioned ? release_versioned : release, managed, &tensor);
	if (r < 0) {
		fpy_raise(r, NULL, "this array cannot be a tensor");
		return NULL;
	}
	PyCapsule_SetName(capsule, is_versioned ? "used_" VERSIONED : "used_" UNVERSIONED);
	return tensor;
}

bool fpy_is_array(PyObject *value)
{
	if (PyUnicode_Check(value) || PyLong_Check(value) || PyList_Check(value) ||
	    PyBytes_Check(value) || PyDict_Check(value) || PyTuple_Check(value))
		return false;
	return PyObject_TypeCheck(value, tensor_class) || PyObject_HasAttr(value, dlpack_name);
}

static PyObject *ask(PyObject *array)
{
	PyObject *method = PyObject_GetAttr(array, dlpack_name), *capsule = NULL;
	PyObject *none = PyTuple_New(0), *keywords = Py_BuildValue("{s(ii)}", "max_version", 1, 0);

	if (method != NULL && none != NULL && keywords != NULL) {
		capsule = PyObject_Call(method, none, keywords);
		if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
			PyErr_Clear(); /* of before DLPack 1.0 */
			capsule = PyObject_Call(method, none, NULL);
		}
	}
	Py_XDECREF(method);
	Py_XDECREF(none);
	Py_XDECREF(keywords);
	return capsule;
}

struct frag_tensor *fpy_tensor_take(PyObject *array)
{
	struct frag_tensor *tensor = NULL;
	PyObject *capsule;

	if (PyObject_TypeCheck(array, tensor_class)) {
		((struct tensor *)array)->is_writable = false;
		return frag_tensor_ref(((struct tensor *)array)->tensor);
	}
	capsule = ask(array);
	if (capsule != NULL)
		tensor = take_capsule(capsule);
	Py_XDECREF(capsule);
	return tensor;
}

PyObject *fpy_tensor_as(PyObject *module, PyObject *array)
{
	(void)module;
	if (PyObject_TypeCheck(array, tensor_class))
		return Py_NewRef(array);
	if (!fpy_is_array(array)) {
		PyErr_SetString(PyExc_TypeError, "an array has __dlpack__");
		return NULL;
	}
	return create(fpy_tensor_take(array), false);
}

PyObject *fpy_tensor_empty(PyObject *module, PyObject *args)
{
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	struct frag_tensor *tensor = NULL;
	const struct kind *kind = NULL;
	PyObject *dimensions;
	const char *dtype;
	Py_ssize_t ndim;
	int r;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!s", &PyTuple_Type, &dimensions, &dtype))
		return NULL;
	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		if (strcmp(kinds[i].name, dtype) == 0)
			kind = &kinds[i];
	ndim = PyTuple_Size(dimensions);
	if (kind == NULL || ndim > FRAG_TENSOR_NDIM_MAX) {
		PyErr_Format(PyExc_ValueError,
			     kind == NULL ? "%s is no element type of frag"
					  : "%s: more than 8 dimensions",
			     dtype);
		return NULL;
	}
	for (Py_ssize_t i = 0; i < ndim; i++)
		shape[i] = PyLong_AsLongLong(PyTuple_GetItem(dimensions, i));
	if (PyErr_Occurred() != NULL)
		return NULL;
	r = frag_tensor_create(NULL, kind->dtype, (int32_t)ndim, shape, &tensor);
	if (r < 0) {
		fpy_raise(r, NULL, "empty");
		return NULL;
	}
	return create(tensor, true);
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
	const int64_t item = dl->dtype.bits / 8;
	const bool is_compact = frag_tensor_is_compact(((struct tensor *)self)->tensor);
	Py_ssize_t *strides;
	int64_t count = 1;

	view->obj = NULL;
	if (kind == NULL || kind->format == NULL || !is_of_host(dl->device) ||
	    ((flags & PyBUF_WRITABLE) != 0 && !((struct tensor *)self)->is_writable) ||
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
		.readonly = !((struct tensor *)self)->is_writable,
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

static PyObject *tensor_array_interface(PyObject *self, void *closure)
{
	const struct frag_dltensor *dl = dl_of(self);
	const struct kind *kind = kind_of(dl->dtype);

	(void)closure;
	if (kind == NULL || kind->typestr == NULL || !is_of_host(dl->device)) {
		PyErr_SetString(PyExc_AttributeError, "numpy has no such array");
		return NULL;
	}
	return Py_BuildValue("{sisssNsNs(NO)}", "version", 3, "typestr", kind->typestr, "shape",
			     tuple_of(dl->shape, dl->ndim, 1), "strides",
			     tuple_of(dl->strides, dl->ndim, dl->dtype.bits / 8), "data",
			     PyLong_FromVoidPtr((char *)dl->data + dl->byte_offset),
			     ((struct tensor *)self)->is_writable ? Py_False : Py_True);
}

static PyObject *tensor_shape(PyObject *self, void *closure)
{
	(void)closure;
	return tuple_of(dl_of(self)->shape, dl_of(self)->ndim, 1);
}

static PyObject *tensor_strides(PyObject *self, void *closure)
{
	(void)closure;
	return tuple_of(dl_of(self)->strides, dl_of(self)->ndim, dl_of(self)->dtype.bits / 8);
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
		return PyLong_FromLongLong(count * dl->dtype.bits / 8);
	case 3:
		return PyLong_FromLong(dl->dtype.bits / 8);
	default:
		return PyLong_FromVoidPtr((char *)dl->data + dl->byte_offset);
	}
}

static PyMethodDef tensor_methods[] = {
	{"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
	 NULL},
	{"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
static PyGetSetDef tensor_values[] = {
	{"__array_interface__", tensor_array_interface, NULL, NULL, NULL},
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
	.basicsize = sizeof(struct tensor),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = tensor_slots,
};

int fpy_tensor_ready(PyObject *module)
{
	tensor_class = fpy_type_add(module, &tensor_spec);
	dlpack_name = PyUnicode_InternFromString("__dlpack__");
	return tensor_class != NULL && dlpack_name != NULL ? 0 : -1;
}
