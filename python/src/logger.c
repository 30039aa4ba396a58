// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>

/*
 * python_logger, a type of data logger: what operators in C receive and emit goes to a function of
 * the program, which knows by the logger's key for whom it is.
 */
struct logger {
	int64_t key;
};

static PyObject *function; /* NULL: none */

static PyObject *metadata_of(const struct frag_log_entry *entry)
{
	uint32_t count = entry->metadata != NULL ? frag_metadata_count(entry->metadata) : 0;
	PyObject *dict = PyDict_New(), *value = dict;

	for (uint32_t i = 0; value != NULL && i < count; i++) {
		const char *key = frag_metadata_key(entry->metadata, i);

		value = fpy_metadata_read(entry->metadata, key);
		if (value != NULL && PyDict_SetItemString(dict, key, value) < 0)
			Py_CLEAR(value);
		Py_XDECREF(value);
	}
	if (value == NULL)
		Py_CLEAR(dict);
	return dict;
}

/* Calls the function with (key, id, whether it was emitted, value, metadata). */
static PyObject *call(const struct logger *logger, const struct frag_log_entry *entry)
{
	PyObject *value = fpy_message_read(entry->message);
	PyObject *metadata = value != NULL ? metadata_of(entry) : NULL, *result = NULL;

	if (metadata != NULL)
		result = PyObject_CallFunction(function, "LsiOO", (long long)logger->key, entry->id,
					       entry->dir == FRAG_OUT, value, metadata);
	Py_XDECREF(value);
	Py_XDECREF(metadata);
	return result;
}

/* The operator's thread may have the lock: it emits. */
static int log_message(void *state, const struct frag_log_entry *entry)
{
	PyGILState_STATE lock = fpy_enter();
	PyObject *result = call(state, entry);
	bool failed = result == NULL;

	if (failed)
		PyErr_WriteUnraisable(function);
	Py_XDECREF(result);
	fpy_leave(lock);
	return failed ? -EIO : 0;
}

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct logger, key, 0, .headline = "who gets the messages in the program"),
};

static const struct frag_data_logger_type type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "python_logger",
	.headline = "gives messages to a function in Python",
	.flags = FRAG_DATA_LOGGER_CONTENT,
	.state_size = sizeof(struct logger),
	FRAG_PARAMS(params),
	.log = log_message,
};

static const struct frag_data_logger_type *const types[] = {&type};
static const struct frag_plugin plugin = {
	.struct_size = sizeof(plugin),
	.abi_major = FRAG_ABI_MAJOR,
	.abi_minor = FRAG_ABI_MINOR,
	.name = "python_logger",
	FRAG_DATA_LOGGERS(types),
};

/* on_log(function): what each python_logger of the process calls */
PyObject *fpy_on_log(PyObject *module, PyObject *new_function)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = function == NULL ? frag_plugin_add(&plugin, &err) : 0;

	(void)module;
	if (r < 0) {
		fpy_raise(r, &err, "plugin");
		return NULL;
	}
	Py_XDECREF(function);
	function = Py_NewRef(new_function);
	Py_RETURN_NONE;
}
