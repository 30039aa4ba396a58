// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>

/* Tracker: data flow tracking of a fragment (frag/track.h), which it may outlive. */
struct tracker {
	PyObject ob_base;
	struct frag_tracker *tracker;
};

static PyTypeObject *tracker_class;

static struct frag_tracker *of(PyObject *self)
{
	return ((struct tracker *)self)->tracker;
}

PyObject *fpy_tracker(struct frag_fragment *fragment)
{
	struct frag_tracker *tracker = fragment != NULL ? frag_fragment_tracker(fragment) : NULL;
	struct tracker *self;

	if (tracker == NULL)
		Py_RETURN_NONE;
	self = PyObject_New(struct tracker, tracker_class);
	if (self != NULL)
		self->tracker = frag_tracker_ref(tracker);
	return (PyObject *)self;
}

static void tracker_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	frag_tracker_unref(of(object));
	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

/* path(i) -> str; None beyond the last */
static PyObject *tracker_path(PyObject *self, PyObject *number)
{
	const unsigned long i = PyLong_AsUnsignedLong(number);
	const char *path = PyErr_Occurred() == NULL && i <= UINT32_MAX
				   ? frag_tracker_path(of(self), (uint32_t)i)
				   : NULL;

	if (PyErr_Occurred() != NULL)
		return NULL;
	return path != NULL ? PyUnicode_FromString(path) : Py_NewRef(Py_None);
}

/* metric(path, number) -> float; None: no message of the path is counted */
static PyObject *tracker_metric(PyObject *self, PyObject *args)
{
	const char *path;
	double value;
	int metric, r;

	if (!PyArg_ParseTuple(args, "si", &path, &metric))
		return NULL;
	r = frag_tracker_metric(of(self), path, (enum frag_track_metric)metric, &value);
	if (r == 0)
		return PyFloat_FromDouble(value);
	if (r == -ENODATA)
		Py_RETURN_NONE;
	if (r == -ENOENT)
		PyErr_Format(PyExc_KeyError, "there is no path \"%s\"", path);
	else
		PyErr_Format(PyExc_ValueError, "%d is no metric of a path", metric);
	return NULL;
}

/* source(i) -> ("operator->port", messages); None beyond the last */
static PyObject *tracker_source(PyObject *self, PyObject *number)
{
	const unsigned long i = PyLong_AsUnsignedLong(number);
	uint64_t messages = 0;
	const char *name = PyErr_Occurred() == NULL && i <= UINT32_MAX
				   ? frag_tracker_source(of(self), (uint32_t)i, &messages)
				   : NULL;

	if (PyErr_Occurred() != NULL)
		return NULL;
	return name != NULL ? Py_BuildValue("(sK)", name, (unsigned long long)messages)
			    : Py_NewRef(Py_None);
}

/* configure(what, number): 0: skip at the begin, 1: discard at the end, 2: threshold in ms */
static PyObject *tracker_configure(PyObject *self, PyObject *args)
{
	unsigned long long number = 0;
	PyObject *given;
	long long threshold_ms = 0;
	int what, r;

	if (!PyArg_ParseTuple(args, "iO", &what, &given) ||
	    (what != 2 && !fpy_unsigned(given, &number)))
		return NULL;
	if (what == 2)
		threshold_ms = PyLong_AsLongLong(given);
	if (PyErr_Occurred() != NULL)
		return NULL;
	r = what == 0   ? frag_tracker_set_skip_starting_messages(of(self), number)
	    : what == 1 ? frag_tracker_set_discard_last_messages(of(self), number)
			: frag_tracker_set_skip_latencies(of(self), threshold_ms);
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, NULL, "this number is too large");
	return NULL;
}

static PyObject *tracker_enable_logging(PyObject *self, PyObject *args)
{
	unsigned long long buffered;
	const char *path;
	int r;

	if (!PyArg_ParseTuple(args, "sO&", &path, fpy_unsigned, &buffered))
		return NULL;
	r = frag_tracker_enable_logging(of(self), path, buffered);
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, NULL, path);
	return NULL;
}

static PyObject *tracker_flush(PyObject *self, PyObject *unused)
{
	int r = frag_tracker_flush(of(self));

	(void)unused;
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, NULL, "the log of data flow tracking");
	return NULL;
}

static PyObject *tracker_describe(PyObject *self, PyObject *unused)
{
	char *text = frag_tracker_describe(of(self));
	PyObject *result = text != NULL ? PyUnicode_FromString(text) : PyErr_NoMemory();

	(void)unused;
	free(text);
	return result;
}

static PyMethodDef tracker_methods[] = {
	{"path", tracker_path, METH_O, NULL},
	{"metric", tracker_metric, METH_VARARGS, NULL},
	{"source", tracker_source, METH_O, NULL},
	{"configure", tracker_configure, METH_VARARGS, NULL},
	{"enable_logging", tracker_enable_logging, METH_VARARGS, NULL},
	{"flush", tracker_flush, METH_NOARGS, NULL},
	{"describe", tracker_describe, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
static PyType_Slot tracker_slots[] = {
	{Py_tp_dealloc, tracker_dealloc}, {Py_tp_methods, tracker_methods}, {0, NULL}};
static PyType_Spec tracker_spec = {
	.name = "frag._frag.Tracker",
	.basicsize = sizeof(struct tracker),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = tracker_slots,
};

int fpy_tracker_ready(PyObject *module)
{
	tracker_class = fpy_type_add(module, &tracker_spec);
	return tracker_class != NULL ? 0 : -1;
}
