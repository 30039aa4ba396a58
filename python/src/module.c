// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <string.h>

static PyObject *hooks[FPY_HOOKS];

PyObject *fpy_hook(enum fpy_hook hook)
{
	return hooks[hook];
}

PyTypeObject *fpy_type_add(PyObject *module, PyType_Spec *spec)
{
	PyObject *class = PyType_FromSpec(spec);

	if (class == NULL || PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, class) < 0)
		return NULL;
	return (PyTypeObject *)class; /* which stays with the process */
}

/* set_hooks(error, describe, encode, decode, load) */
static PyObject *set_hooks(PyObject *module, PyObject *args)
{
	(void)module;
	if (PyTuple_Size(args) != FPY_HOOKS) {
		PyErr_SetString(PyExc_TypeError, "this is for the package frag itself");
		return NULL;
	}
	for (Py_ssize_t i = 0; i < FPY_HOOKS; i++) {
		Py_XDECREF(hooks[i]);
		hooks[i] = Py_NewRef(PyTuple_GetItem(args, i));
	}
	Py_RETURN_NONE;
}

/* host() -> exit status */
static PyObject *host(PyObject *module, PyObject *unused)
{
	struct frag_err err = FRAG_ERR_INIT;
	int status = 0, r;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS r = frag_host_run(&status, &err);
	Py_END_ALLOW_THREADS if (r == 0) return PyLong_FromLong(status);
	fpy_raise(r, &err, "host");
	return NULL;
}

/* library_folder(variable, folder) -> the folder of the libraries of another project, or None */
static PyObject *library_folder(PyObject *module, PyObject *args)
{
	const char *variable, *folder;
	char path[4096];

	(void)module;
	if (!PyArg_ParseTuple(args, "ss", &variable, &folder))
		return NULL;
	if (frag_library_folder(variable, folder, path, sizeof(path)) < 0)
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(path);
}

static unsigned int forks;

unsigned int fpy_forks(void)
{
	return forks;
}

/* The child of a fork calls it. */
static PyObject *forked(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	forks++;
	Py_RETURN_NONE;
}

static PyObject *thread_hook; /* NULL: none */

/* on_thread(function or None): what each further thread of frag calls first */
static PyObject *on_thread(PyObject *module, PyObject *function)
{
	PyObject *before = thread_hook;

	(void)module;
	thread_hook = function != Py_None ? Py_NewRef(function) : NULL;
	Py_XDECREF(before);
	Py_RETURN_NONE;
}

void fpy_thread_begins(void)
{
	PyObject *hook = thread_hook, *result;

	if (hook == NULL)
		return;
	Py_INCREF(hook);
	result = PyObject_CallNoArgs(hook);
	if (result == NULL)
		PyErr_WriteUnraisable(hook);
	Py_XDECREF(result);
	Py_DECREF(hook);
}

static PyMethodDef functions[] = {
	{"set_hooks", set_hooks, METH_VARARGS, NULL},
	{"plugin_add", fpy_plugin_add, METH_VARARGS, NULL},
	{"plugin_remove", fpy_plugin_remove, METH_O, NULL},
	{"host", host, METH_NOARGS, NULL},
	{"forked", forked, METH_NOARGS, NULL},
	{"on_thread", on_thread, METH_O, NULL},
	{"on_log", fpy_on_log, METH_O, NULL},
	{"library_folder", library_folder, METH_VARARGS, NULL},
	{"loader_register", fpy_loader_register, METH_NOARGS, NULL},
	{"empty", fpy_tensor_empty, METH_VARARGS, NULL},
	{"class_register", fpy_class_register, METH_VARARGS, NULL},
	{"as_tensor", fpy_tensor_as, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (frag_type_register(&fpy_object_type, &err) < 0) {
		PyErr_SetString(PyExc_ImportError, err.text);
		return -1;
	}
	if (fpy_class_ready() < 0 || fpy_tracker_ready(module) < 0 ||
	    fpy_op_type_ready(module) < 0 || fpy_component_ready(module) < 0 ||
	    fpy_tick_ready(module) < 0 || fpy_tensor_ready(module) < 0 ||
	    fpy_run_ready(module) < 0 || fpy_harness_ready(module) < 0)
		return -1;
	return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)module_exec}, {0, NULL}};
static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,  .m_name = "frag._frag", .m_size = 0,
	.m_methods = functions, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__frag(void);
PyMODINIT_FUNC PyInit__frag(void)
{
	return PyModuleDef_Init(&definition);
}
