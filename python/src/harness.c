// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>

/* Harness: one operator without an application (frag/harness.h), on the calling thread. */
struct harness {
	PyObject ob_base;
	struct frag_harness *harness;
	PyObject *type;
};

/* A list of pairs of texts. Returns an array to be freed; the texts are borrowed. */
static struct frag_arg *args_of(PyObject *pairs)
{
	Py_ssize_t count = PyList_Size(pairs);
	struct frag_arg *args = count >= 0 ? calloc((size_t)count + 1, sizeof(*args)) : NULL;

	if (args == NULL && count >= 0)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; args != NULL && i < count; i++)
		if (!PyArg_ParseTuple(PyList_GetItem(pairs, i), "ss", &args[i].name,
				      &args[i].text)) {
			free(args);
			return NULL;
		}
	return args;
}

static PyObject *harness_new(PyTypeObject *class, PyObject *args, PyObject *keywords)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(class, Py_tp_alloc);
	struct harness *self = (struct harness *)alloc(class, 0);
	struct frag_err err = FRAG_ERR_INIT;
	struct fpy_op_type *type = NULL;
	struct frag_arg *list = NULL;
	PyObject *object, *pairs;

	(void)keywords;
	if (self != NULL && PyArg_ParseTuple(args, "OO!", &object, &PyList_Type, &pairs)) {
		type = fpy_op_type(object);
		list = type != NULL ? args_of(pairs) : NULL;
	}
	if (list == NULL) {
		Py_XDECREF((PyObject *)self);
		return NULL;
	}
	self->type = Py_NewRef(object);
	Py_BEGIN_ALLOW_THREADS self->harness = frag_harness_create(&type->table, list, &err);
	Py_END_ALLOW_THREADS free(list);
	if (self->harness == NULL) {
		fpy_raise(err.code != 0 ? err.code : -ENOMEM, &err, "harness");
		Py_DECREF(&self->ob_base);
		return NULL;
	}
	return &self->ob_base;
}

static PyObject *harness_close(PyObject *self, PyObject *unused)
{
	struct frag_harness *harness = ((struct harness *)self)->harness;

	(void)unused;
	((struct harness *)self)->harness = NULL;
	Py_BEGIN_ALLOW_THREADS frag_harness_destroy(harness);
	Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static void harness_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	Py_XDECREF(harness_close(object, NULL));
	Py_CLEAR(((struct harness *)object)->type);
	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

static struct frag_harness *harness_of(PyObject *object)
{
	struct frag_harness *harness = ((struct harness *)object)->harness;

	if (harness == NULL)
		PyErr_SetString(PyExc_RuntimeError, "this harness is closed");
	return harness;
}

static PyObject *harness_feed(PyObject *self, PyObject *args)
{
	struct frag_harness *harness = harness_of(self);
	const struct frag_type *type;
	struct frag_message *message;
	const char *port, *name;
	PyObject *value;
	int r;

	if (harness == NULL || !PyArg_ParseTuple(args, "sOz", &port, &value, &name))
		return NULL;
	type = name != NULL ? frag_type_find(name) : NULL;
	message = fpy_message(value, type);
	if (message == NULL)
		return NULL;
	r = frag_harness_give(harness, port, message);
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, NULL, port);
	return NULL;
}

/* tick() -> what compute has returned; raises when it has failed. */
static PyObject *harness_tick(PyObject *self, PyObject *unused)
{
	struct frag_harness *harness = harness_of(self);
	int r;

	(void)unused;
	if (harness == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS r = frag_harness_tick(harness);
	Py_END_ALLOW_THREADS if (r >= 0) return PyLong_FromLong(r);
	fpy_raise(r, NULL, frag_harness_error(harness));
	return NULL;
}

static PyObject *harness_ready(PyObject *self, PyObject *unused)
{
	struct frag_harness *harness = harness_of(self);

	(void)unused;
	return harness != NULL ? PyBool_FromLong(frag_harness_ready(harness)) : NULL;
}

/* take(port) -> (there is one, its value) */
static PyObject *harness_take(PyObject *self, PyObject *name)
{
	const char *port = fpy_text(name);
	struct frag_harness *harness = harness_of(self);
	struct frag_message *message;
	PyObject *value;
	int r;

	if (harness == NULL || port == NULL)
		return NULL;
	r = frag_harness_take(harness, port, &message);
	if (r == -ENOMSG)
		return Py_BuildValue("(OO)", Py_False, Py_None);
	if (r < 0) {
		fpy_raise(r, NULL, port);
		return NULL;
	}
	value = fpy_message_read(message);
	frag_message_unref(message);
	return value != NULL ? Py_BuildValue("(ON)", Py_True, value) : NULL;
}

static PyObject *harness_advance(PyObject *self, PyObject *ns)
{
	struct frag_harness *harness = harness_of(self);
	int64_t by = PyLong_AsLongLong(ns);

	if (harness == NULL || (by == -1 && PyErr_Occurred() != NULL))
		return NULL;
	frag_clock_advance_by(frag_harness_clock(harness), by);
	Py_RETURN_NONE;
}

static PyMethodDef harness_methods[] = {
	{"feed", harness_feed, METH_VARARGS, NULL},
	{"tick", harness_tick, METH_NOARGS, NULL},
	{"ready", harness_ready, METH_NOARGS, NULL},
	{"take", harness_take, METH_O, NULL},
	{"advance", harness_advance, METH_O, NULL},
	{"close", harness_close, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
static PyType_Slot harness_slots[] = {
	{Py_tp_new, harness_new},
	{Py_tp_dealloc, harness_dealloc},
	{Py_tp_methods, harness_methods},
	{0, NULL},
};
static PyType_Spec harness_spec = {
	.name = "frag._frag.Harness",
	.basicsize = sizeof(struct harness),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = harness_slots,
};

int fpy_harness_ready(PyObject *module)
{
	return fpy_type_add(module, &harness_spec) != NULL ? 0 : -1;
}
