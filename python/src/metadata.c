// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>

/* The dictionary of the tick, for the mapping that the package makes of it. */

static struct frag_metadata *metadata_of(PyObject *context)
{
	struct frag_tick *tick = fpy_context_tick(context);

	return tick != NULL ? frag_tick_metadata(tick) : NULL;
}

PyObject *fpy_metadata_read(const struct frag_metadata *metadata, const char *key)
{
	const struct frag_type *type;
	const void *value;
	size_t size;

	if (frag_metadata_get(metadata, key, &type, &value, &size) < 0) {
		PyErr_SetString(PyExc_KeyError, key);
		return NULL;
	}
	if (frag_type_equal(type, &frag_type_tensor))
		return fpy_tensor(*(struct frag_tensor *const *)value);
	return fpy_value(type, value, size);
}

PyObject *fpy_metadata_get(PyObject *context, PyObject *key)
{
	struct frag_metadata *metadata = metadata_of(context);
	const char *name = metadata != NULL ? fpy_text(key) : NULL;

	return name != NULL ? fpy_metadata_read(metadata, name) : NULL;
}

PyObject *fpy_metadata_set(PyObject *context, PyObject *args)
{
	struct frag_metadata *metadata = metadata_of(context);
	struct frag_tensor *tensor;
	struct fpy_bytes bytes;
	PyObject *value;
	const char *name;
	int r;

	if (metadata == NULL || !PyArg_ParseTuple(args, "sO", &name, &value))
		return NULL;
	if (fpy_is_array(value)) {
		tensor = fpy_tensor_take(value);
		if (tensor == NULL)
			return NULL;
		r = frag_metadata_set_tensor(metadata, name, tensor);
	} else {
		if (fpy_bytes_init(&bytes, value, NULL) < 0)
			return NULL;
		r = frag_metadata_set(metadata, name, bytes.type, bytes.data, bytes.size);
		if (r < 0 && bytes.type == &fpy_object_type)
			Py_DECREF(bytes.scalar.object);
		fpy_bytes_fini(&bytes);
	}
	if (r == 0)
		Py_RETURN_NONE;
	if (r == -EEXIST)
		PyErr_Format(PyExc_KeyError,
			     "the key %s is there already and the metadata policy is raise", name);
	else
		fpy_raise(r, NULL, name);
	return NULL;
}

PyObject *fpy_metadata_erase(PyObject *context, PyObject *key)
{
	struct frag_metadata *metadata = metadata_of(context);
	const char *name = metadata != NULL ? fpy_text(key) : NULL;
	int r = name != NULL ? frag_metadata_erase(metadata, name) : -EINVAL;

	if (name == NULL)
		return NULL;
	if (r == 0)
		Py_RETURN_NONE;
	if (r == -ENOENT)
		PyErr_SetObject(PyExc_KeyError, key);
	else
		fpy_raise(r, NULL, name);
	return NULL;
}

PyObject *fpy_metadata_keys(PyObject *context, PyObject *unused)
{
	struct frag_metadata *metadata = metadata_of(context);
	uint32_t count = metadata != NULL ? frag_metadata_count(metadata) : 0;
	PyObject *list = metadata != NULL ? PyList_New((Py_ssize_t)count) : NULL, *key;

	(void)unused;
	for (uint32_t i = 0; list != NULL && i < count; i++) {
		key = PyUnicode_FromString(frag_metadata_key(metadata, i));
		if (key == NULL || PyList_SetItem(list, (Py_ssize_t)i, key) < 0)
			Py_CLEAR(list);
	}
	return list;
}
