// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What compute gets: its inputs, its outputs, and the context, which also has the metadata. The
 * three objects live as long as their operator and have a tick during compute only.
 */

static PyTypeObject *input_class, *output_class, *context_class;

/* Returns the operator of a tick that is under way on this thread; NULL with an exception. */
static inline struct fpy_op *ticked(PyObject *part)
{
	struct fpy_op *op = ((struct fpy_part *)part)->op;

	if (op != NULL && op->tick != NULL && op->thread == PyThread_get_thread_ident())
		return op;
	PyErr_SetString(PyExc_RuntimeError,
			op != NULL && op->tick != NULL
				? "this is another thread than the one that runs compute"
				: "this works in compute only");
	return NULL;
}

struct frag_tick *fpy_context_tick(PyObject *context)
{
	struct fpy_op *op = ticked(context);

	return op != NULL ? op->tick : NULL;
}

/* Names are interned mostly, and there are few. */
static int find_port(const struct fpy_op *op, PyObject *name, enum frag_dir dir)
{
	const struct fpy_op_type *type = op->type;
	int found = -1, matching = 0;

	for (uint32_t i = 0; i < type->table.port_count; i++) {
		if (type->known_ports[i].dir != dir)
			continue;
		if (type->known_ports[i].name == name)
			return (int)i;
		matching++;
		if (name == NULL || PyUnicode_Compare(type->known_ports[i].name, name) == 0)
			found = (int)i;
	}
	if (found >= 0 && (name != NULL || matching == 1))
		return found;
	if (PyErr_Occurred() == NULL)
		PyErr_Format(PyExc_ValueError,
			     name != NULL ? "%s has no %s \"%S\""
					  : "%s does not have exactly one %s; name it",
			     frag_op_name(op->op), dir == FRAG_IN ? "input" : "output", name);
	return -1;
}

static PyObject *receive_all(struct fpy_op *op, uint32_t port)
{
	const struct frag_message *const *messages;
	int count = frag_tick_receive_all(op->tick, port, &messages);
	PyObject *tuple, *item;

	if (count < 0) {
		fpy_raise(count, NULL, op->type->known_ports[port].text);
		return NULL;
	}
	tuple = PyTuple_New(count);
	for (int i = 0; tuple != NULL && i < count; i++) {
		item = messages[i] != NULL ? fpy_message_read(messages[i]) : Py_NewRef(Py_None);
		if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

static PyObject *input_receive(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	struct fpy_op *op = ticked(self);
	const struct frag_message *message;
	int port, r;

	if (op == NULL)
		return NULL;
	port = find_port(op, count > 0 ? args[0] : NULL, FRAG_IN);
	if (port < 0)
		return NULL;
	if ((op->type->known_ports[port].flags & FRAG_PORT_MULTI) != 0)
		return receive_all(op, (uint32_t)port);
	r = frag_tick_receive(op->tick, (uint32_t)port, &message);
	if (r == -ENOMSG)
		Py_RETURN_NONE;
	if (r == 0)
		return fpy_message_read(message);
	fpy_raise(r, NULL, op->type->known_ports[port].text);
	return NULL;
}

static int emit_scalar(struct fpy_op *op, uint32_t port, PyObject *value, bool *out_done)
{
	int overflow = 0;
	int64_t whole;

	*out_done = true;
	if (PyFloat_CheckExact(value))
		return frag_tick_emit_f64(op->tick, port, PyFloat_AsDouble(value));
	if (PyLong_CheckExact(value)) {
		whole = PyLong_AsLongLongAndOverflow(value, &overflow);
		if (overflow == 0)
			return frag_tick_emit_i64(op->tick, port, whole);
	}
	*out_done = false;
	return 0;
}

/* The type that the port declares; looked up once, when all types are registered. */
static const struct frag_type *port_type(struct fpy_port *port)
{
	if (port->type == NULL && port->type_name != NULL &&
	    strcmp(port->type_name, "message") != 0 && strcmp(port->type_name, "tensor") != 0)
		port->type = frag_type_find(port->type_name);
	return port->type;
}

static PyObject *emit(struct fpy_op *op, PyObject *value, PyObject *name)
{
	int port = find_port(op, name, FRAG_OUT), r;
	struct frag_message *message;
	struct fpy_port *known;
	bool is_done = false;

	if (port < 0)
		return NULL;
	known = &op->type->known_ports[port];
	r = known->type_name == NULL ? emit_scalar(op, (uint32_t)port, value, &is_done) : 0;
	if (!is_done) {
		message = fpy_message(value, port_type(known));
		if (message == NULL)
			return NULL;
		r = frag_tick_emit(op->tick, (uint32_t)port, message);
	}
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, NULL, known->text);
	return NULL;
}

static PyObject *output_emit(PyObject *self, PyObject *const *args, Py_ssize_t count,
			     PyObject *keywords)
{
	struct fpy_op *op = ticked(self);
	Py_ssize_t named = keywords != NULL ? PyTuple_Size(keywords) : 0;

	if (op == NULL)
		return NULL;
	if (count < 1 || count + named > 2 ||
	    (named == 1 &&
	     PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keywords, 0), "name") != 0)) {
		PyErr_SetString(PyExc_TypeError, "emit takes a value and the name of an output");
		return NULL;
	}
	return emit(op, args[0], count + named == 2 ? args[1] : NULL);
}

/* The types. */

static PyMethodDef input_methods[] = {
	FPY_METHOD("receive", input_receive, METH_FASTCALL, "receive(name=None) -> value"),
	{NULL, NULL, 0, NULL},
};
static PyMethodDef output_methods[] = {
	FPY_METHOD("emit", output_emit, METH_FASTCALL | METH_KEYWORDS, "emit(value, name=None)"),
	{NULL, NULL, 0, NULL},
};
static PyType_Slot input_slots[] = {
	{Py_tp_dealloc, fpy_part_dealloc}, {Py_tp_methods, input_methods}, {0, NULL}};
static PyType_Slot output_slots[] = {
	{Py_tp_dealloc, fpy_part_dealloc}, {Py_tp_methods, output_methods}, {0, NULL}};
static PyType_Spec input_spec = {.name = "frag._frag.InputContext",
				 .basicsize = sizeof(struct fpy_part),
				 .flags = FPY_PART_FLAGS,
				 .slots = input_slots};
static PyType_Spec output_spec = {.name = "frag._frag.OutputContext",
				  .basicsize = sizeof(struct fpy_part),
				  .flags = FPY_PART_FLAGS,
				  .slots = output_slots};
int fpy_tick_ready(PyObject *module)
{
	input_class = fpy_type_add(module, &input_spec);
	output_class = fpy_type_add(module, &output_spec);
	context_class = fpy_context_ready(module);
	return input_class != NULL && output_class != NULL && context_class != NULL ? 0 : -1;
}

static PyObject *part_create(PyTypeObject *class, struct fpy_op *op)
{
	struct fpy_part *part = PyObject_New(struct fpy_part, class);

	if (part != NULL)
		part->op = op;
	return (PyObject *)part;
}

/* A method's function is called with the operator itself, which is quicker than the method. */
static int find_compute(struct fpy_op *op)
{
	PyObject *method = PyObject_GetAttrString(op->self, "compute"), *self;

	if (method == NULL)
		return -1;
	op->compute = PyObject_GetAttrString(method, "__func__");
	self = op->compute != NULL ? PyObject_GetAttrString(method, "__self__") : NULL;
	if (self != op->self) { /* any other callable */
		PyErr_Clear();
		Py_XDECREF(op->compute);
		op->compute = Py_NewRef(method);
		op->is_method = false;
	} else {
		op->is_method = true;
	}
	Py_XDECREF(self);
	Py_DECREF(method);
	return 0;
}

int fpy_tick_attach(struct fpy_op *op)
{
	PyObject *input = part_create(input_class, op), *output = part_create(output_class, op);
	int r = find_compute(op);

	op->context = part_create(context_class, op);
	if (r == 0 && input != NULL && output != NULL && op->context != NULL)
		op->args = op->is_method ? PyTuple_Pack(4, op->self, input, output, op->context)
					 : PyTuple_Pack(3, input, output, op->context);
	Py_XDECREF(input);
	Py_XDECREF(output);
	return op->args != NULL ? 0 : -1;
}

void fpy_tick_detach(struct fpy_op *op)
{
	for (Py_ssize_t i = 0; op->args != NULL && i < 3; i++)
		((struct fpy_part *)PyTuple_GetItem(op->args, i + op->is_method))->op = NULL;
	Py_CLEAR(op->args);
	Py_CLEAR(op->compute);
	Py_CLEAR(op->context);
}
