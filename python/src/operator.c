// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * An OpType is the table of an operator type whose callbacks are those below. Its factory returns
 * the operator in Python; who calls which of its methods is the same as in C.
 */

static PyTypeObject *op_type_class;
static __thread struct fpy_op *current;

struct fpy_op *fpy_op_current(void)
{
	return current;
}

/* Calls a method without arguments. Returns as a callback. */
static int call(struct fpy_op *op, const char *method, const char *callback)
{
	struct fpy_lock lock = fpy_lock();
	PyObject *result;
	int r;

	op->thread = PyThread_get_thread_ident();
	result = PyObject_CallMethod(op->self, method, NULL);
	op->thread = 0;
	r = result == NULL ? fpy_fail(op->op, callback) : 0;
	Py_XDECREF(result);
	fpy_unlock(lock);
	return r;
}

static void drop(struct fpy_op *op)
{
	fpy_tick_detach(op);
	if (op->holder != NULL)
		fpy_holder_end(op->holder);
	op->holder = NULL;
	Py_CLEAR(op->self);
	Py_XDECREF((PyObject *)op->type);
	op->type = NULL;
}

static int make(struct fpy_op *self)
{
	PyObject *params = fpy_params_read(&self->type->params, self), *result;

	if (params == NULL)
		return -1;
	self->self =
		PyObject_CallFunction(self->type->factory, "ssO", frag_op_fragment_name(self->op),
				      frag_op_name(self->op), params);
	Py_DECREF(params);
	if (self->self == NULL)
		return -1;
	self->holder = fpy_holder_create(frag_op_fragment_name(self->op), frag_op_name(self->op));
	if (self->holder == NULL || fpy_tick_attach(self) < 0)
		return -1;
	result = PyObject_CallMethod(self->self, "_attach", "O", self->context);
	Py_XDECREF(result);
	return result != NULL ? fpy_flows_attach(self) : -1;
}

static int op_setup(void *state, struct frag_op *op)
{
	struct fpy_op *self = state;
	struct fpy_lock lock = fpy_lock();
	int r;

	self->op = op;
	self->type = frag_op_context(op);
	Py_INCREF(&self->type->ob_base);
	r = make(self);
	if (r < 0) {
		r = fpy_fail(op, "setup");
		drop(self);
	}
	fpy_unlock(lock);
	return r;
}

static void op_fini(void *state, struct frag_op *op)
{
	struct fpy_lock lock;

	(void)op;
	if (!Py_IsInitialized())
		return;
	lock = fpy_lock();
	drop(state);
	fpy_unlock(lock);
}

/* Takes a stream of the GPU that the attribute `gpu` names. Returns as a callback. */
static int use_gpu(struct fpy_op *self)
{
	struct fpy_lock lock = fpy_lock();
	PyObject *number = PyObject_GetAttrString(self->self, "gpu");
	long gpu = number != NULL && number != Py_None ? PyLong_AsLong(number) : -1;
	const bool is_wanted = number != Py_None;
	int r = PyErr_Occurred() != NULL ? fpy_fail(self->op, "initialize") : 0;

	Py_XDECREF(number);
	fpy_unlock(lock);
	if (r < 0 || !is_wanted)
		return r;
	return frag_op_use_stream(self->op, NULL,
				  (struct frag_device){FRAG_DEVICE_CUDA, (int32_t)gpu});
}

static int op_initialize(void *state, struct frag_op *op)
{
	int r = use_gpu(state);

	(void)op;
	if (r < 0)
		return r;
	return call(state, "_initialize", "initialize");
}

static int op_start(void *state, struct frag_op *op)
{
	(void)op;
	return call(state, "start", "start");
}

static int op_stop(void *state, struct frag_op *op)
{
	(void)op;
	return call(state, "stop", "stop");
}

/* Calls save(), whose bytes are the state. Returns their number, or a negative errno. */
static int op_save(void *state, struct frag_op *op, void *out_bytes, size_t size)
{
	struct fpy_op *self = state;
	struct fpy_lock lock = fpy_lock();
	PyObject *result = PyObject_CallMethod(self->self, "save", NULL);
	char sentence[1024], *bytes;
	Py_ssize_t length;
	int r = -EIO;

	if (result != NULL && PyBytes_AsStringAndSize(result, &bytes, &length) == 0) {
		if ((size_t)length <= size) {
			memcpy(out_bytes, bytes, (size_t)length);
			r = (int)length;
		} else {
			PyErr_Format(PyExc_ValueError, "%zd bytes are more than save_size, %zu",
				     length, size);
		}
	}
	if (r < 0) {
		fpy_describe("save", sentence, sizeof(sentence));
		frag_op_log(op, "%s", sentence);
	}
	Py_XDECREF(result);
	fpy_unlock(lock);
	return r;
}

static int op_restore(void *state, struct frag_op *op, const void *bytes, size_t size)
{
	struct fpy_op *self = state;
	struct fpy_lock lock = fpy_lock();
	PyObject *result = PyObject_CallMethod(self->self, "restore", "y#", (const char *)bytes,
					       (Py_ssize_t)size);
	int r = result != NULL ? 0 : fpy_fail(op, "restore");

	Py_XDECREF(result);
	fpy_unlock(lock);
	return r;
}

/* Parameters that are changed while the application runs become attributes again. */
static int refresh(struct fpy_op *self)
{
	PyObject *params = fpy_params_read(&self->type->params, self);
	PyObject *result =
		params != NULL ? PyObject_CallMethod(self->self, "_set_params", "O", params) : NULL;

	Py_XDECREF(params);
	Py_XDECREF(result);
	return result != NULL ? 0 : -1;
}

/* Returns what compute has to return for this result, or -1. */
static int outcome(PyObject *result)
{
	PyObject *class;

	if (result == Py_None)
		return 0;
	if (PyLong_CheckExact(result) && PyLong_AsLong(result) == FRAG_DONE)
		return FRAG_DONE;
	class = PyObject_Type(result);
	PyErr_Format(PyExc_TypeError, "it has returned a value of %S; return None or frag.DONE",
		     class);
	Py_XDECREF(class);
	return -1;
}

/* A child of os.fork() that has returned from compute would go on as a second host. */
static void end_child(const struct fpy_op *self)
{
	fprintf(stderr,
		"frag: %s.%s: a child of os.fork() has returned from compute; end it with "
		"os._exit()\n",
		frag_op_fragment_name(self->op), frag_op_name(self->op));
	_exit(1);
}

static int op_compute(void *state, struct frag_tick *tick)
{
	struct fpy_op *self = state;
	struct fpy_lock lock = fpy_lock();
	const unsigned int forks = fpy_forks();
	PyObject *result = NULL;
	int r = self->type->has_dynamic ? refresh(self) : 0;

	if (r == 0) {
		self->thread = PyThread_get_thread_ident();
		self->tick = tick;
		current = self;
		result = PyObject_Call(self->compute, self->args, NULL);
		current = NULL;
		if (fpy_forks() != forks)
			end_child(self);
		self->tick = NULL;
		self->thread = 0;
		r = result != NULL ? outcome(result) : -1;
		Py_XDECREF(result);
	}
	if (r < 0)
		r = fpy_fail(self->op, "compute");
	fpy_unlock(lock);
	return r;
}

/* The tables. */

static int read_port(PyObject *row, struct frag_port *port, struct fpy_port *known)
{
	PyObject *name, *type;
	int dir, policy;

	*port = (struct frag_port){0};
	if (!PyArg_ParseTuple(row, "UiOIIiI", &name, &dir, &type, &port->flags, &port->capacity,
			      &policy, &port->min_size) ||
	    !fpy_optional_text(name, &port->name) || !fpy_optional_text(type, &port->type))
		return -1;
	port->dir = (enum frag_dir)dir;
	port->policy = (enum frag_policy)policy;
	*known = (struct fpy_port){.name = name,
				   .text = port->name,
				   .dir = port->dir,
				   .flags = port->flags,
				   .type_name = port->type};
	return 0;
}

static int read_tables(struct fpy_op_type *type, PyObject *ports, PyObject *params)
{
	size_t port_count = (size_t)PyTuple_Size(ports);

	type->ports = calloc(port_count + 1, sizeof(*type->ports));
	type->known_ports = calloc(port_count + 1, sizeof(*type->known_ports));
	if (type->ports == NULL || type->known_ports == NULL) {
		PyErr_NoMemory();
		return -1;
	}
	for (; type->table.port_count < port_count; type->table.port_count++) {
		uint32_t i = type->table.port_count;

		if (read_port(PyTuple_GetItem(ports, (Py_ssize_t)i), &type->ports[i],
			      &type->known_ports[i]) < 0)
			return -1;
	}
	if (fpy_params_parse(&type->params, params) < 0)
		return -1;
	for (uint32_t i = 0; i < type->params.count; i++)
		type->has_dynamic |= (type->params.rows[i].flags & FRAG_PARAM_DYNAMIC) != 0;
	return 0;
}

static PyObject *op_type_new(PyTypeObject *class, PyObject *args, PyObject *keywords)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(class, Py_tp_alloc);
	struct fpy_op_type *self = (struct fpy_op_type *)alloc(class, 0);
	PyObject *name, *headline, *description, *ports, *params;
	unsigned long long save_size;
	long long save_period_ns;

	(void)keywords;
	if (self == NULL)
		return NULL;
	self->table = (struct frag_op_type){
		FRAG_OP_TYPE_INIT, .setup = op_setup,     .initialize = op_initialize,
		.start = op_start, .compute = op_compute, .stop = op_stop,
		.fini = op_fini,   .context = self,
	};
	if (!PyArg_ParseTuple(args, "UOOO!O!OO&L", &name, &headline, &description, &PyTuple_Type,
			      &ports, &PyTuple_Type, &params, &self->factory, fpy_unsigned,
			      &save_size, &save_period_ns)) {
		self->factory = NULL;
		goto err_self;
	}
	Py_INCREF(self->factory);
	self->texts = Py_NewRef(args);
	if (!fpy_optional_text(name, &self->table.name) ||
	    !fpy_optional_text(headline, &self->table.headline) ||
	    !fpy_optional_text(description, &self->table.description) ||
	    read_tables(self, ports, params) < 0)
		goto err_self;
	if (save_size > 0) {
		self->table.save = op_save;
		self->table.restore = op_restore;
		self->table.save_size = save_size;
		self->table.save_period_ns = save_period_ns;
	}
	self->table.ports = self->ports;
	self->table.port_size = sizeof(*self->ports);
	self->table.params = self->params.rows;
	self->table.param_count = self->params.count;
	self->table.param_size = sizeof(*self->params.rows);
	self->table.state_size = fpy_params_layout(&self->params, sizeof(struct fpy_op));
	return &self->ob_base;

err_self:
	Py_DECREF(&self->ob_base);
	return NULL;
}

static void op_type_dealloc(PyObject *object)
{
	struct fpy_op_type *self = (struct fpy_op_type *)object;
	PyTypeObject *class = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(class, Py_tp_free);

	fpy_params_fini(&self->params);
	free(self->ports);
	free(self->known_ports);
	Py_CLEAR(self->factory);
	Py_CLEAR(self->texts);
	release(object);
	Py_DECREF(class);
}

static PyType_Slot op_type_slots[] = {
	{Py_tp_new, op_type_new},
	{Py_tp_dealloc, op_type_dealloc},
	{0, NULL},
};
static PyType_Spec op_type_spec = {
	.name = "frag._frag.OpType",
	.basicsize = sizeof(struct fpy_op_type),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = op_type_slots,
};

int fpy_op_type_ready(PyObject *module)
{
	op_type_class = fpy_type_add(module, &op_type_spec);
	return op_type_class != NULL ? 0 : -1;
}

struct fpy_op_type *fpy_op_type(PyObject *object)
{
	if (PyObject_TypeCheck(object, op_type_class))
		return (struct fpy_op_type *)object;
	PyErr_SetString(PyExc_TypeError, "an OpType is wanted");
	return NULL;
}
