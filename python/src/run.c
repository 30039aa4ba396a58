// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>

/* Run: an application in this process (frag/run.h). The lock is free while it waits. */
struct run {
	PyObject ob_base;
	struct frag_run *run;
	PyObject *lines; /* errors that frag has reported */
};

static void on_error(void *arg, const char *line)
{
	PyGILState_STATE state = fpy_enter();
	PyObject *text = PyUnicode_FromString(line);

	if (text == NULL || PyList_Append(arg, text) < 0)
		PyErr_Clear();
	Py_XDECREF(text);
	fpy_leave(state);
}

/* A tuple of texts as a NULL-ended array, to be freed; the texts are borrowed. */
static const char **texts_of(PyObject *tuple)
{
	Py_ssize_t count = PyTuple_Size(tuple);
	const char **texts = count >= 0 ? calloc((size_t)count + 1, sizeof(*texts)) : NULL;

	if (texts == NULL && count >= 0)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; texts != NULL && i < count; i++) {
		texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
		if (texts[i] == NULL) {
			free(texts);
			return NULL;
		}
	}
	return texts;
}

static int load(struct run *self, struct frag_run_config *config, PyObject *lists[3])
{
	struct frag_err err = FRAG_ERR_INIT;
	const char **texts[3] = {NULL};
	int r = 0;

	for (int i = 0; r == 0 && i < 3; i++) {
		texts[i] = texts_of(lists[i]);
		r = texts[i] == NULL ? -1 : 0;
	}
	config->arguments = texts[0];
	config->configs = texts[1];
	config->sets = texts[2];
	if (r == 0) {
		r = frag_run_load(config, &self->run, &err);
		if (r < 0)
			r = fpy_raise(r, &err, "the graph");
	}
	for (int i = 0; i < 3; i++)
		free(texts[i]);
	return r;
}

static PyObject *run_new(PyTypeObject *class, PyObject *args, PyObject *keywords)
{
	static const char *const names[] = {"path", "text",         "args", "configs",
					    "sets", "library_path", NULL};
	allocfunc alloc = (allocfunc)PyType_GetSlot(class, Py_tp_alloc);
	struct run *self = (struct run *)alloc(class, 0);
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	PyObject *lists[3];

	if (self == NULL)
		return NULL;
	self->lines = PyList_New(0);
	config.error = on_error;
	config.arg = self->lines;
	if (self->lines == NULL ||
	    !PyArg_ParseTupleAndKeywords(args, keywords, "zzO!O!O!z", (char **)(uintptr_t)names,
					 &config.path, &config.text, &PyTuple_Type, &lists[0],
					 &PyTuple_Type, &lists[1], &PyTuple_Type, &lists[2],
					 &config.library_path) ||
	    load(self, &config, lists) < 0) {
		Py_DECREF(&self->ob_base);
		return NULL;
	}
	return &self->ob_base;
}

static void run_dealloc(PyObject *object)
{
	struct run *self = (struct run *)object;
	PyTypeObject *class = Py_TYPE(object);

	Py_BEGIN_ALLOW_THREADS frag_run_destroy(self->run);
	Py_END_ALLOW_THREADS Py_CLEAR(self->lines);
	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

/* Returns the run; NULL with an exception once it has been closed. */
static struct frag_run *run_of(PyObject *object)
{
	struct frag_run *run = ((struct run *)object)->run;

	if (run == NULL)
		PyErr_SetString(PyExc_RuntimeError, "this run is closed");
	return run;
}

static PyObject *run_start(PyObject *self, PyObject *unused)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run = run_of(self);
	int r;

	(void)unused;
	if (run == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS r = frag_run_start(run, &err);
	Py_END_ALLOW_THREADS if (r == 0) Py_RETURN_NONE;
	fpy_raise(r, &err, "start");
	return NULL;
}

/* wait(timeout_ns) -> whether it has ended; raises when it has failed. */
static PyObject *run_wait(PyObject *self, PyObject *timeout)
{
	struct frag_err err = FRAG_ERR_INIT;
	int64_t timeout_ns = PyLong_AsLongLong(timeout);
	struct frag_run *run = run_of(self);
	int r;

	if (run == NULL || (timeout_ns == -1 && PyErr_Occurred() != NULL))
		return NULL;
	Py_BEGIN_ALLOW_THREADS r = frag_run_wait(run, timeout_ns, &err);
	Py_END_ALLOW_THREADS if (r == 0 || r == -ETIMEDOUT) return PyBool_FromLong(r == 0);
	fpy_raise(r, &err, "");
	return NULL;
}

static PyObject *run_stop(PyObject *self, PyObject *unused)
{
	struct frag_run *run = run_of(self);

	(void)unused;
	if (run == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS frag_run_stop(run);
	Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *run_set(PyObject *self, PyObject *setting)
{
	const char *text = PyUnicode_AsUTF8AndSize(setting, NULL);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run = run_of(self);
	int r;

	if (run == NULL || text == NULL)
		return NULL;
	Py_BEGIN_ALLOW_THREADS r = frag_run_set(run, text, &err);
	Py_END_ALLOW_THREADS if (r == 0) Py_RETURN_NONE;
	fpy_raise(r, &err, text);
	return NULL;
}

static PyObject *run_summary(PyObject *self, PyObject *unused)
{
	struct frag_run *run = run_of(self);
	const char *text = run != NULL ? frag_run_summary(run) : NULL;

	(void)unused;
	if (run == NULL)
		return NULL;
	return text != NULL ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

/* Ends what still runs, waits for it and frees it. */
static PyObject *run_close(PyObject *self, PyObject *unused)
{
	struct frag_run *run = ((struct run *)self)->run;

	(void)unused;
	((struct run *)self)->run = NULL;
	Py_BEGIN_ALLOW_THREADS frag_run_destroy(run);
	Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *run_lines(PyObject *self, void *closure)
{
	(void)closure;
	return PyList_GetSlice(((struct run *)self)->lines, 0, PY_SSIZE_T_MAX);
}

static PyMethodDef run_methods[] = {
	{"start", run_start, METH_NOARGS, NULL},
	{"wait", run_wait, METH_O, NULL},
	{"stop", run_stop, METH_NOARGS, NULL},
	{"set", run_set, METH_O, NULL},
	{"summary", run_summary, METH_NOARGS, NULL},
	{"close", run_close, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
static PyGetSetDef run_values[] = {
	{"lines", run_lines, NULL, "errors that were reported", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot run_slots[] = {
	{Py_tp_new, run_new},
	{Py_tp_dealloc, run_dealloc},
	{Py_tp_methods, run_methods},
	{Py_tp_getset, run_values},
	{0, NULL},
};
static PyType_Spec run_spec = {
	.name = "frag._frag.Run",
	.basicsize = sizeof(struct run),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = run_slots,
};

int fpy_run_ready(PyObject *module)
{
	return fpy_type_add(module, &run_spec) != NULL ? 0 : -1;
}
