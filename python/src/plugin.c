// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Operators of a program, and modules that graphs list under extensions, are plugins for libfrag. A
 * capsule holds the plugin and the OpTypes that its table points into.
 */
#define CAPSULE "frag._frag.plugin"

struct plugin {
	struct frag_plugin table;
	const struct frag_op_type **ops;
	const struct frag_condition_type **conditions;
	const struct frag_resource_type **resources;
	PyObject *types, *name;
};

static void destroy(struct plugin *plugin)
{
	free(plugin->ops);
	free(plugin->conditions);
	free(plugin->resources);
	Py_XDECREF(plugin->types);
	Py_XDECREF(plugin->name);
	free(plugin);
}

static void capsule_fini(PyObject *capsule)
{
	struct plugin *plugin = PyCapsule_GetPointer(capsule, CAPSULE);

	frag_plugin_remove(&plugin->table);
	destroy(plugin);
}

static void add(struct plugin *plugin, PyObject *type)
{
	const struct fpy_component_tables *component = fpy_component_type(type);
	struct fpy_op_type *op = component == NULL ? fpy_op_type(type) : NULL;

	if (op != NULL)
		plugin->ops[plugin->table.op_count++] = &op->table;
	else if (component != NULL && component->is_condition)
		plugin->conditions[plugin->table.condition_count++] = &component->condition;
	else if (component != NULL)
		plugin->resources[plugin->table.resource_count++] = &component->resource;
}

/* types: a list of OpType and ComponentType */
static struct plugin *create(PyObject *name, PyObject *types)
{
	struct plugin *plugin = calloc(1, sizeof(*plugin));
	Py_ssize_t count = PyList_Size(types);

	if (plugin == NULL || count < 0) {
		free(plugin);
		return (void *)PyErr_NoMemory();
	}
	plugin->name = Py_NewRef(name);
	plugin->types = PyList_GetSlice(types, 0, count);
	plugin->ops = calloc((size_t)count + 1, sizeof(*plugin->ops));
	plugin->conditions = calloc((size_t)count + 1, sizeof(*plugin->conditions));
	plugin->resources = calloc((size_t)count + 1, sizeof(*plugin->resources));
	plugin->table = (struct frag_plugin){
		.struct_size = sizeof(plugin->table),
		.abi_major = FRAG_ABI_MAJOR,
		.abi_minor = FRAG_ABI_MINOR,
		.name = PyUnicode_AsUTF8AndSize(name, NULL),
		.ops = plugin->ops,
		.conditions = plugin->conditions,
		.resources = plugin->resources,
	};
	if (plugin->ops == NULL || plugin->conditions == NULL || plugin->resources == NULL) {
		PyErr_NoMemory();
		destroy(plugin);
		return NULL;
	}
	for (Py_ssize_t i = 0; PyErr_Occurred() == NULL && i < count; i++)
		add(plugin, PyList_GetItem(plugin->types, i));
	if (PyErr_Occurred() != NULL) {
		destroy(plugin);
		return NULL;
	}
	return plugin;
}

PyObject *fpy_plugin_add(PyObject *module, PyObject *args)
{
	struct frag_err err = FRAG_ERR_INIT;
	PyObject *name, *types, *capsule;
	struct plugin *plugin;
	int r;

	(void)module;
	if (!PyArg_ParseTuple(args, "UO!", &name, &PyList_Type, &types))
		return NULL;
	plugin = create(name, types);
	if (plugin == NULL)
		return NULL;
	capsule = PyCapsule_New(plugin, CAPSULE, capsule_fini);
	if (capsule == NULL) {
		destroy(plugin);
		return NULL;
	}
	r = frag_plugin_add(&plugin->table, &err);
	if (r < 0) {
		fpy_raise(r, &err, "plugin");
		Py_CLEAR(capsule);
	}
	return capsule;
}

PyObject *fpy_plugin_remove(PyObject *module, PyObject *capsule)
{
	struct plugin *plugin = PyCapsule_GetPointer(capsule, CAPSULE);

	(void)module;
	if (plugin == NULL)
		return NULL;
	frag_plugin_remove(&plugin->table);
	Py_RETURN_NONE;
}

/* Runs the module; what it defines stays until the process ends. */
static int load(const char *path, const struct frag_plugin **out_plugin, struct frag_err *err)
{
	PyGILState_STATE state = fpy_enter();
	PyObject *result = PyObject_CallFunction(fpy_hook(FPY_HOOK_LOAD), "s", path);
	PyObject *name, *types;
	struct plugin *plugin = NULL;
	char sentence[900];

	if (result != NULL && PyArg_ParseTuple(result, "UO!", &name, &PyList_Type, &types))
		plugin = create(name, types);
	if (plugin != NULL)
		*out_plugin = &plugin->table;
	else
		fpy_describe("import", sentence, sizeof(sentence));
	Py_XDECREF(result);
	fpy_leave(state);
	return plugin != NULL ? 0 : frag_err_set(err, -EINVAL, "%s", sentence);
}

PyObject *fpy_loader_register(PyObject *module, PyObject *unused)
{
	const struct frag_loader loader = {FRAG_LOADER_INIT, .suffix = ".py", .load = load};
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_loader_register(&loader, &err);

	(void)module;
	(void)unused;
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, &err, "loader");
	return NULL;
}
