// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <string.h>

/*
 * Conditions and resources in Python. A ComponentType is the table of such a type, whose callbacks
 * are those below; its factory returns the object. Callbacks of conditions may run on any thread of
 * a scheduler, none of which holds a lock then.
 */
struct component_type {
	PyObject ob_base;
	struct fpy_component_tables tables;
	struct fpy_params params;
	bool updates, notes; /* it has update_state, on_execute */
	PyObject *factory;   /* (fragment, operator or None, name, parameters) -> object */
	PyObject *texts;     /* what the tables' texts are borrowed from */
};

/* The state of a component; its parameters follow. */
struct component {
	struct component_type *type;
	struct frag_condition *condition; /* one of the two, the other is NULL */
	struct frag_resource *resource;
	PyObject *self, *handle;
	PyObject *key;   /* in `objects`: made before, so that what is put there can be taken out */
	bool has_failed; /* on_execute has */
};

/* What a condition or resource has of its own in C. */
struct handle {
	PyObject ob_base;
	struct frag_condition *condition; /* NULL: its operator has ended, or it is a resource */
	struct frag_resource *resource;   /* NULL: its fragment has gone, or it is a condition */
};

static PyTypeObject *type_class, *handle_class;
static PyObject *objects; /* address of a condition or resource -> object */
static PyObject *check_name, *update_name, *execute_name;

PyObject *fpy_component_find(const void *address)
{
	PyObject *key = PyLong_FromVoidPtr((void *)(uintptr_t)address);
	PyObject *object = key != NULL ? PyDict_GetItemWithError(objects, key) : NULL;

	Py_XDECREF(key);
	return Py_XNewRef(object);
}

static void drop(struct component *self)
{
	if (self->handle != NULL) {
		((struct handle *)self->handle)->condition = NULL;
		((struct handle *)self->handle)->resource = NULL;
	}
	if (self->key != NULL && PyDict_DelItem(objects, self->key) < 0)
		PyErr_Clear();
	Py_CLEAR(self->key);
	Py_CLEAR(self->handle);
	Py_CLEAR(self->self);
	Py_XDECREF((PyObject *)self->type);
	self->type = NULL;
}

/* Makes the object of a condition or resource at `address`. */
static int make(struct component *self, const void *address, const char *fragment, const char *op,
		const char *name)
{
	PyObject *params = fpy_params_read(&self->type->params, self), *result;
	struct handle *handle = PyObject_New(struct handle, handle_class);

	self->handle = (PyObject *)handle;
	if (handle != NULL) {
		handle->condition = self->condition;
		handle->resource = self->resource;
	}
	if (params != NULL && handle != NULL)
		self->self = PyObject_CallFunction(self->type->factory, "szsO", fragment, op, name,
						   params);
	Py_XDECREF(params);
	if (self->self == NULL)
		return -1;
	self->key = PyLong_FromVoidPtr((void *)(uintptr_t)address);
	if (self->key == NULL || PyDict_SetItem(objects, self->key, self->self) < 0)
		return -1;
	result = PyObject_CallMethod(self->self, "_attach", "O", self->handle);
	Py_XDECREF(result);
	return result != NULL ? 0 : -1;
}

/* Words the exception that is set. Returns a negative errno. */
static int fail(struct frag_err *err, const char *what)
{
	char sentence[1024];

	fpy_describe(what, sentence, sizeof(sentence));
	return frag_err_set(err, -EIO, "%s", sentence);
}

static int call(struct component *self, const char *method, struct frag_err *err)
{
	struct fpy_lock lock = fpy_lock();
	PyObject *result = PyObject_CallMethod(self->self, method, NULL);
	int r = result != NULL ? 0 : fail(err, method);

	Py_XDECREF(result);
	fpy_unlock(lock);
	return r;
}

static void fini(void *state)
{
	struct fpy_lock lock;

	if (!Py_IsInitialized())
		return;
	lock = fpy_lock();
	drop(state);
	fpy_unlock(lock);
}

/* Conditions. */

static int condition_bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	struct component *self = state;
	struct frag_op *op = frag_condition_op(condition);
	struct fpy_lock lock = fpy_lock();
	int r;

	self->condition = condition;
	self->type = frag_condition_context(condition);
	Py_INCREF(&self->type->ob_base);
	r = make(self, condition, frag_op_fragment_name(op), frag_op_name(op),
		 frag_condition_name(condition));
	if (r < 0) {
		r = fail(err, "setup");
		drop(self);
	}
	fpy_unlock(lock);
	return r;
}

static int condition_initialize(void *state, struct frag_condition *condition, struct frag_err *err)
{
	(void)condition;
	return call(state, "initialize", err);
}

static int condition_start(void *state, struct frag_condition *condition, struct frag_err *err)
{
	(void)condition;
	return call(state, "start", err);
}

static int condition_stop(void *state, struct frag_condition *condition)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (call(state, "stop", &err) < 0)
		frag_op_log(frag_condition_op(condition), "condition %s: %s",
			    frag_condition_name(condition), err.text);
	return 0;
}

/* An exception fails the application. */
static enum frag_ready refuse(struct component *self, const char *what)
{
	char sentence[1024];

	fpy_describe(what, sentence, sizeof(sentence));
	return frag_condition_fail(self->condition, -EIO, "%s", sentence);
}

/* Reads READY, or (WAIT_TIME, ns). Returns -1 with an exception. */
static int read_answer(PyObject *result, int64_t *out_until_ns)
{
	PyObject *ready = result, *time = Py_None, *class;
	long answer;

	if (PyTuple_Check(result) && PyTuple_Size(result) == 2) {
		ready = PyTuple_GetItem(result, 0);
		time = PyTuple_GetItem(result, 1);
	}
	answer = PyIndex_Check(ready) && !PyBool_Check(ready) ? PyLong_AsLong(ready) : -1;
	if (answer < FRAG_READY || answer > FRAG_NEVER) {
		class = PyObject_Type(result);
		if (PyErr_Occurred() == NULL)
			PyErr_Format(PyExc_TypeError,
				     "it has returned %R, a value of %S; return one of "
				     "frag.Ready, or (frag.Ready.WAIT_TIME, nanoseconds)",
				     result, class);
		Py_XDECREF(class);
		return -1;
	}
	if (answer == FRAG_WAIT_TIME) {
		*out_until_ns = PyLong_AsLongLong(time);
		if (PyErr_Occurred() != NULL)
			return -1;
	}
	return (int)answer;
}

static enum frag_ready check(struct component *self, int64_t now_ns, int64_t *out_until_ns)
{
	PyObject *now = PyLong_FromLongLong(now_ns), *result = NULL;
	int answer = -1;

	if (now != NULL && self->type->updates) {
		result = PyObject_CallMethodObjArgs(self->self, update_name, now, NULL);
		if (result == NULL) {
			Py_DECREF(now);
			return refuse(self, "update_state");
		}
		Py_DECREF(result);
	}
	if (now != NULL)
		result = PyObject_CallMethodObjArgs(self->self, check_name, now, NULL);
	Py_XDECREF(now);
	if (result != NULL)
		answer = read_answer(result, out_until_ns);
	Py_XDECREF(result);
	return answer >= 0 ? (enum frag_ready)answer : refuse(self, "check");
}

static enum frag_ready condition_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	struct component *self = state;
	struct fpy_lock lock;
	enum frag_ready answer;

	if (self->has_failed)
		return (enum frag_ready) - EIO;
	lock = fpy_lock();
	answer = check(self, now_ns, out_until_ns);
	fpy_unlock(lock);
	return answer;
}

/* What it raises fails the application at the next check. */
static void condition_ticked(void *state, int64_t now_ns)
{
	struct component *self = state;
	struct fpy_lock lock = fpy_lock();
	PyObject *now = PyLong_FromLongLong(now_ns), *result = NULL;

	if (now != NULL)
		result = PyObject_CallMethodObjArgs(self->self, execute_name, now, NULL);
	if (result == NULL) {
		refuse(self, "on_execute");
		self->has_failed = true;
	}
	Py_XDECREF(now);
	Py_XDECREF(result);
	fpy_unlock(lock);
}

static PyObject *handle_changed(PyObject *self, PyObject *unused)
{
	struct frag_condition *condition = ((struct handle *)self)->condition;

	(void)unused;
	if (condition != NULL)
		frag_condition_changed(condition);
	Py_RETURN_NONE;
}

/* tracker() -> the Tracker of a resource's fragment, from initialize on; None: there is none. */
static PyObject *handle_tracker(PyObject *self, PyObject *unused)
{
	struct frag_resource *resource = ((struct handle *)self)->resource;

	(void)unused;
	return fpy_tracker(resource != NULL ? frag_resource_fragment(resource) : NULL);
}

/* Resources. */

static int resource_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct component *self = state;
	struct fpy_lock lock = fpy_lock();
	int r;

	self->resource = resource;
	self->type = frag_resource_context(resource);
	Py_INCREF(&self->type->ob_base);
	r = make(self, resource, frag_fragment_name(frag_resource_fragment(resource)), NULL,
		 frag_resource_name(resource));
	if (r < 0) {
		r = fail(err, "setup");
		drop(self);
	}
	fpy_unlock(lock);
	return r;
}

static int resource_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	(void)resource;
	return call(state, "initialize", err);
}

/* The types. */

static void fill_condition(struct component_type *self, const char *name, const char *headline,
			   const char *description, size_t state_size)
{
	self->tables.condition = (struct frag_condition_type){
		FRAG_CONDITION_TYPE_INIT,
		.name = name,
		.headline = headline,
		.description = description,
		.state_size = state_size,
		.params = self->params.rows,
		.param_count = self->params.count,
		.param_size = sizeof(*self->params.rows),
		.flags = FRAG_CONDITION_TIMED | FRAG_CONDITION_POLLED | FRAG_CONDITION_OUTSIDE,
		.bind = condition_bind,
		.check = condition_check,
		.ticked = self->notes ? condition_ticked : NULL,
		.fini = fini,
		.initialize = condition_initialize,
		.start = condition_start,
		.stop = condition_stop,
		.context = self,
	};
}

static void fill_resource(struct component_type *self, const char *name, const char *headline,
			  const char *description, size_t state_size)
{
	self->tables.resource = (struct frag_resource_type){
		FRAG_RESOURCE_TYPE_INIT,
		.name = name,
		.headline = headline,
		.description = description,
		.state_size = state_size,
		.params = self->params.rows,
		.param_count = self->params.count,
		.param_size = sizeof(*self->params.rows),
		.setup = resource_setup,
		.initialize = resource_initialize,
		.fini = fini,
		.context = self,
	};
}

/*
 * ComponentType(name, headline, description, rows of parameters, factory, callbacks), where
 * callbacks is None for a resource, and for a condition (it has update_state, it has on_execute).
 */
static PyObject *type_new(PyTypeObject *class, PyObject *args, PyObject *keywords)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(class, Py_tp_alloc);
	struct component_type *self = (struct component_type *)alloc(class, 0);
	PyObject *name, *headline, *description, *params, *factory, *callbacks;
	const char *texts[3];
	int updates = 0, notes = 0;
	size_t size;

	(void)keywords;
	if (self == NULL)
		return NULL;
	if (!PyArg_ParseTuple(args, "UOOO!OO", &name, &headline, &description, &PyTuple_Type,
			      &params, &factory, &callbacks) ||
	    (callbacks != Py_None && !PyArg_ParseTuple(callbacks, "pp", &updates, &notes)))
		goto err_self;
	self->factory = Py_NewRef(factory);
	self->texts = Py_NewRef(args);
	self->updates = updates;
	self->notes = notes;
	self->tables.is_condition = callbacks != Py_None;
	if (!fpy_optional_text(name, &texts[0]) || !fpy_optional_text(headline, &texts[1]) ||
	    !fpy_optional_text(description, &texts[2]) ||
	    fpy_params_parse(&self->params, params) < 0)
		goto err_self;
	size = fpy_params_layout(&self->params, sizeof(struct component));
	if (self->tables.is_condition)
		fill_condition(self, texts[0], texts[1], texts[2], size);
	else
		fill_resource(self, texts[0], texts[1], texts[2], size);
	return &self->ob_base;

err_self:
	Py_DECREF(&self->ob_base);
	return NULL;
}

static void type_dealloc(PyObject *object)
{
	struct component_type *self = (struct component_type *)object;
	PyTypeObject *class = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(class, Py_tp_free);

	fpy_params_fini(&self->params);
	Py_CLEAR(self->factory);
	Py_CLEAR(self->texts);
	release(object);
	Py_DECREF(class);
}

static void handle_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

static PyType_Slot type_slots[] = {{Py_tp_new, type_new}, {Py_tp_dealloc, type_dealloc}, {0, NULL}};
static PyType_Spec type_spec = {
	.name = "frag._frag.ComponentType",
	.basicsize = sizeof(struct component_type),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = type_slots,
};
static PyMethodDef handle_methods[] = {
	{"changed", handle_changed, METH_NOARGS, NULL},
	{"tracker", handle_tracker, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};
static PyType_Slot handle_slots[] = {
	{Py_tp_dealloc, handle_dealloc}, {Py_tp_methods, handle_methods}, {0, NULL}};
static PyType_Spec handle_spec = {
	.name = "frag._frag.ComponentHandle",
	.basicsize = sizeof(struct handle),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = handle_slots,
};

int fpy_component_ready(PyObject *module)
{
	type_class = fpy_type_add(module, &type_spec);
	handle_class = fpy_type_add(module, &handle_spec);
	objects = PyDict_New();
	check_name = PyUnicode_InternFromString("check");
	update_name = PyUnicode_InternFromString("update_state");
	execute_name = PyUnicode_InternFromString("on_execute");
	return type_class != NULL && handle_class != NULL && objects != NULL &&
			       check_name != NULL && update_name != NULL && execute_name != NULL
		       ? 0
		       : -1;
}

const struct fpy_component_tables *fpy_component_type(PyObject *object)
{
	return PyObject_TypeCheck(object, type_class) ? &((struct component_type *)object)->tables
						      : NULL;
}
