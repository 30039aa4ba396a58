// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <string.h>

#include <frag/status.h>

/*
 * Shared variables (frag/variable.h), as methods of the context. What is read and written is
 * copied, since an array that Python keeps would outlive the mapping. Others run while a thread
 * waits.
 */

/* Returns the operator whose callback this thread runs; NULL with an exception. */
static struct frag_op *called(PyObject *context)
{
	struct fpy_op *op = ((struct fpy_part *)context)->op;

	if (op != NULL && op->thread == PyThread_get_thread_ident())
		return op->op;
	PyErr_SetString(PyExc_RuntimeError,
			"variables are for the callbacks of their operator, on its thread, from "
			"initialize on");
	return NULL;
}

/* Raises what the function has worded. Returns NULL. */
static PyObject *raise_worded(struct frag_op *op, int code, const char *name)
{
	struct frag_err err = FRAG_ERR_INIT;

	frag_op_take_failure(op, &err);
	fpy_raise(code, &err, name);
	return NULL;
}

/* Whether a variable is not there yet: nothing to fail for. */
static bool is_not_yet(struct frag_op *op, int code)
{
	if (code != -EAGAIN && code != -EBUSY && code != -ETIMEDOUT && code != -ECANCELED)
		return false;
	frag_op_take_failure(op, NULL);
	return true;
}

/* A year is as good as any longer time. */
static int64_t ns_of(double seconds)
{
	return !(seconds > 0) ? 0 : seconds > 3e7 ? (int64_t)3e16 : (int64_t)(seconds * 1e9);
}

static int map(struct frag_variable *variable, enum frag_variable_access access, double timeout,
	       const struct frag_dltensor **out)
{
	int r;

	Py_BEGIN_ALLOW_THREADS r = frag_variable_map(variable, access, ns_of(timeout), out);
	Py_END_ALLOW_THREADS return r;
}

/* Copies what is published into a tensor of its own. */
static int read_out(struct frag_variable *variable, const struct frag_dltensor *dl,
		    struct frag_tensor **out_tensor)
{
	int r = frag_tensor_create(NULL, dl->dtype, dl->ndim, dl->shape, out_tensor);

	if (r == 0)
		memcpy(frag_tensor_writable(*out_tensor), dl->data,
		       frag_tensor_size_bytes(*out_tensor));
	frag_variable_unmap(variable);
	return r;
}

/* variable_get(name, seconds) -> Tensor, or None */
PyObject *fpy_variable_get(PyObject *context, PyObject *args)
{
	struct frag_op *op = called(context);
	const struct frag_dltensor *dl;
	struct frag_variable *variable;
	struct frag_tensor *tensor;
	const char *name;
	double timeout;
	int r;

	if (op == NULL || !PyArg_ParseTuple(args, "sd", &name, &timeout))
		return NULL;
	r = frag_variable_open(op, name, &variable);
	if (r < 0)
		return raise_worded(op, r, name);
	r = map(variable, FRAG_VARIABLE_READ, timeout, &dl);
	if (r < 0 && is_not_yet(op, r))
		Py_RETURN_NONE;
	if (r == 0) {
		Py_BEGIN_ALLOW_THREADS r = read_out(variable, dl, &tensor);
		Py_END_ALLOW_THREADS
	}
	return r == 0 ? fpy_tensor_create(tensor, true) : raise_worded(op, r, name);
}

static bool is_alike(const struct frag_dltensor *a, const struct frag_dltensor *b)
{
	return memcmp(&a->dtype, &b->dtype, sizeof(a->dtype)) == 0 && a->ndim == b->ndim &&
	       (a->ndim == 0 ||
		memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) == 0);
}

/* Maps a variable to write; one without memory, or with other dimensions, is allocated first. */
static int map_alike(struct frag_op *op, struct frag_variable *variable,
		     const struct frag_dltensor *like, double timeout,
		     const struct frag_dltensor **out)
{
	int r = map(variable, FRAG_VARIABLE_WRITE, timeout, out);

	if (r == 0 && is_alike(*out, like))
		return 0;
	if (r == 0)
		frag_variable_unmap(variable);
	else if (r != -EINVAL)
		return r;
	frag_op_take_failure(op, NULL);
	r = frag_variable_allocate(variable, like->dtype, like->ndim, like->shape);
	return r == 0 ? map(variable, FRAG_VARIABLE_WRITE, timeout, out) : r;
}

static int write_in(struct frag_variable *variable, const struct frag_dltensor *dl,
		    const struct frag_tensor *tensor)
{
	memcpy(dl->data, frag_tensor_data(tensor), frag_tensor_size_bytes(tensor));
	frag_variable_unmap(variable);
	return frag_variable_publish(variable);
}

/* variable_set(name, array, seconds): writes and publishes */
PyObject *fpy_variable_set(PyObject *context, PyObject *args)
{
	struct frag_op *op = called(context);
	struct frag_tensor *tensor;
	struct frag_variable *variable;
	const struct frag_dltensor *dl;
	PyObject *array;
	const char *name;
	double timeout;
	int r;

	if (op == NULL || !PyArg_ParseTuple(args, "sOd", &name, &array, &timeout))
		return NULL;
	tensor = fpy_is_tensor(array) ? frag_tensor_ref(((struct fpy_tensor *)array)->tensor)
				      : fpy_tensor_take(array);
	if (tensor == NULL)
		return NULL;
	if (!fpy_is_of_host(frag_tensor_dl(tensor)->device) || !frag_tensor_is_compact(tensor)) {
		PyErr_SetString(PyExc_ValueError,
				"a variable is written from a contiguous array in host memory");
		frag_tensor_unref(tensor);
		return NULL;
	}
	r = frag_variable_open(op, name, &variable);
	if (r == 0)
		r = map_alike(op, variable, frag_tensor_dl(tensor), timeout, &dl);
	if (r == 0) {
		Py_BEGIN_ALLOW_THREADS r = write_in(variable, dl, tensor);
		Py_END_ALLOW_THREADS
	}
	frag_tensor_unref(tensor);
	if (r < 0)
		return raise_worded(op, r, name);
	Py_RETURN_NONE;
}

/* variable_wait(name, after, seconds) -> version, or None */
PyObject *fpy_variable_wait(PyObject *context, PyObject *args)
{
	struct frag_op *op = called(context);
	struct frag_variable *variable;
	unsigned long long after;
	uint64_t version = 0;
	const char *name;
	double timeout;
	int r;

	if (op == NULL || !PyArg_ParseTuple(args, "sO&d", &name, fpy_unsigned, &after, &timeout))
		return NULL;
	r = frag_variable_open(op, name, &variable);
	if (r == 0) {
		Py_BEGIN_ALLOW_THREADS r =
			frag_variable_wait(variable, after, ns_of(timeout), &version);
		Py_END_ALLOW_THREADS
	}
	if (r == 0)
		return PyLong_FromUnsignedLongLong(version);
	if (is_not_yet(op, r))
		Py_RETURN_NONE;
	return raise_worded(op, r, name);
}

/* variable_open(name, is_new): opens or creates it */
PyObject *fpy_variable_open(PyObject *context, PyObject *args)
{
	struct frag_op *op = called(context);
	struct frag_variable *variable;
	const char *name;
	int is_new, r;

	if (op == NULL || !PyArg_ParseTuple(args, "sp", &name, &is_new))
		return NULL;
	r = is_new ? frag_variable_create(op, name, &variable)
		   : frag_variable_open(op, name, &variable);
	if (r < 0)
		return raise_worded(op, r, name);
	Py_RETURN_NONE;
}

/* variable_path(name) -> str, or None */
PyObject *fpy_variable_path(PyObject *context, PyObject *name)
{
	struct frag_op *op = called(context);
	const char *key = op != NULL ? fpy_text(name) : NULL;
	const char *path = key != NULL ? frag_variable_path(op, key) : NULL;

	if (key == NULL)
		return NULL;
	return path != NULL ? PyUnicode_FromString(path) : Py_NewRef(Py_None);
}
