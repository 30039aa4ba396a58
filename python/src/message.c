// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

/* A dict of arrays, and nothing else. */
static bool is_array_dict(PyObject *value)
{
	PyObject *key, *item;
	Py_ssize_t at = 0;

	if (!PyDict_Check(value) || PyDict_Size(value) == 0)
		return false;
	while (PyDict_Next(value, &at, &key, &item))
		if (!PyUnicode_Check(key) || !fpy_is_array(item))
			return false;
	return true;
}

static int add_tensor(struct frag_message *message, const char *name, PyObject *array)
{
	struct frag_tensor *tensor = name != NULL ? fpy_tensor_take(array) : NULL;
	int r;

	if (tensor == NULL)
		return -1;
	r = frag_message_add_tensor(message, name, tensor);
	return r < 0 ? fpy_raise(r, NULL, "a tensor") : 0;
}

static int add_tensors(struct frag_message *message, PyObject *dict)
{
	PyObject *key, *item;
	Py_ssize_t at = 0;
	int r = 0;

	while (r == 0 && PyDict_Next(dict, &at, &key, &item))
		r = add_tensor(message, fpy_text(key), item);
	return r;
}

static int set_value(struct frag_message *message, PyObject *value, const struct frag_type *type)
{
	struct fpy_bytes bytes;
	int r = fpy_bytes_init(&bytes, value, type);

	if (r < 0)
		return r;
	r = frag_message_set_value(message, bytes.type, bytes.data, bytes.size, NULL);
	if (r < 0 && bytes.type == &fpy_object_type)
		Py_DECREF(bytes.scalar.object);
	fpy_bytes_fini(&bytes);
	return r < 0 ? fpy_raise(r, NULL, "a value") : 0;
}

struct frag_message *fpy_message(PyObject *value, const struct frag_type *type)
{
	struct frag_message *message = frag_message_create();
	int r;

	if (message == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	if (type != NULL)
		r = set_value(message, value, type);
	else if (value == Py_None)
		r = 0;
	else if (is_array_dict(value))
		r = add_tensors(message, value);
	else if (fpy_is_array(value))
		r = add_tensor(message, "", value);
	else
		r = set_value(message, value, NULL);
	if (r < 0) {
		frag_message_unref(message);
		return NULL;
	}
	return message;
}

static PyObject *read_tensors(const struct frag_message *message, uint32_t count)
{
	const char *name;
	struct frag_tensor *tensor = frag_message_tensor_at(message, 0, &name);
	PyObject *dict, *item;

	if (count == 1 && name[0] == '\0')
		return fpy_tensor(tensor);
	dict = PyDict_New();
	for (uint32_t i = 0; dict != NULL && i < count; i++) {
		tensor = frag_message_tensor_at(message, i, &name);
		item = fpy_tensor(tensor);
		if (item == NULL || PyDict_SetItemString(dict, name, item) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(item);
	}
	return dict;
}

PyObject *fpy_message_read(const struct frag_message *message)
{
	uint32_t tensors = frag_message_tensor_count(message);
	const struct frag_type *type;
	const void *value;
	PyObject *dict, *item;
	size_t size;

	type = frag_message_value(message, &value, &size);
	if (tensors == 0)
		return type != NULL ? fpy_value(type, value, size) : Py_NewRef(Py_None);
	dict = read_tensors(message, tensors);
	if (dict == NULL || type == NULL)
		return dict;
	/* Both: the value is there under the name that no tensor of the dict has. */
	if (!PyDict_Check(dict)) {
		item = dict;
		dict = PyDict_New();
		if (dict != NULL && PyDict_SetItemString(dict, "tensor", item) < 0)
			Py_CLEAR(dict);
		Py_DECREF(item);
	}
	item = dict != NULL ? fpy_value(type, value, size) : NULL;
	if (item == NULL || PyDict_SetItemString(dict, "value", item) < 0)
		Py_CLEAR(dict);
	Py_XDECREF(item);
	return dict;
}
