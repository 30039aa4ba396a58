/* SPDX-License-Identifier: Apache-2.0 */
#include "extension.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What compute gets: its inputs, its outputs, and the context, which also has the metadata. The
 * three objects live as long as their operator and have a tick during compute only.
 */
struct part {
	PyObject ob_base;
	struct fpy_op *op; /* NULL: the operator has ended */
};

static PyTypeObject *input_class, *output_class, *context_class;

/* Returns the operator of a tick that is under way on this thread; NULL with an exception. */
static inline struct fpy_op *ticked(PyObject *part)
{
	struct fpy_op *op = ((struct part *)part)->op;

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

static PyObject *context_count(PyObject *self, void *closure)
{
	struct fpy_op *op = ticked(self);

	(void)closure;
	return op != NULL ? PyLong_FromUnsignedLongLong(frag_tick_count(op->tick)) : NULL;
}

static PyObject *context_time_ns(PyObject *self, void *closure)
{
	struct fpy_op *op = ticked(self);

	(void)closure;
	return op != NULL ? PyLong_FromLongLong(frag_tick_time_ns(op->tick)) : NULL;
}

/* Returns the operator, also outside of a tick; NULL with an exception. */
static struct frag_op *living(PyObject *self)
{
	struct fpy_op *op = ((struct part *)self)->op;

	if (op == NULL)
		PyErr_SetString(PyExc_RuntimeError, "the operator has ended");
	return op != NULL ? op->op : NULL;
}

static PyObject *context_stop_operator(PyObject *self, PyObject *unused)
{
	struct frag_op *op = living(self);

	(void)unused;
	if (op == NULL)
		return NULL;
	frag_op_stop_execution(op);
	Py_RETURN_NONE;
}

static PyObject *context_stop(PyObject *self, PyObject *unused)
{
	struct frag_op *op = living(self);

	(void)unused;
	if (op == NULL)
		return NULL;
	frag_fragment_stop_execution(frag_op_fragment(op));
	Py_RETURN_NONE;
}

static PyObject *context_argument(PyObject *self, PyObject *name)
{
	struct frag_op *op = living(self);
	const char *key = op != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	const char *text = key != NULL ? frag_op_argument(op, key) : NULL;

	if (key == NULL)
		return NULL;
	return text != NULL ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyObject *context_log(PyObject *self, PyObject *text)
{
	struct frag_op *op = living(self);
	const char *line = op != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;

	if (line == NULL)
		return NULL;
	frag_op_log(op, "%s", line);
	Py_RETURN_NONE;
}

static PyObject *context_describe(PyObject *self, PyObject *unused)
{
	struct frag_op *op = living(self);
	char *text = op != NULL ? frag_op_describe(op) : NULL;
	PyObject *result = text != NULL ? PyUnicode_FromString(text) : NULL;

	(void)unused;
	free(text);
	return op != NULL && text == NULL ? PyErr_NoMemory() : result;
}

/* Switches a boolean condition, or sets an asynchronous one. */
static PyObject *context_condition(PyObject *self, PyObject *args)
{
	struct frag_op *op = living(self);
	struct frag_condition *condition;
	const char *name;
	int event, r;

	if (op == NULL || !PyArg_ParseTuple(args, "si", &name, &event))
		return NULL;
	condition = frag_op_condition(op, name);
	r = event == -1   ? frag_condition_enable_tick(condition)
	    : event == -2 ? frag_condition_disable_tick(condition)
	    : event == -3 ? frag_condition_event_state(condition)
			  : frag_condition_set_event_state(condition, (enum frag_event_state)event);
	if (r >= 0)
		return PyLong_FromLong(r);
	fpy_raise(r, NULL, name);
	return NULL;
}

/* The types. */

static void part_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}

/* PyMethodDef stores every kind of function as a PyCFunction; the flags say which it is. */
#define METHOD(name, function, flags, doc)                                                         \
	{                                                                                          \
		name, (PyCFunction)(void (*)(void))(function), flags, doc                          \
	}

static PyMethodDef input_methods[] = {
	METHOD("receive", input_receive, METH_FASTCALL, "receive(name=None) -> value"),
	{NULL, NULL, 0, NULL},
};
static PyMethodDef output_methods[] = {
	METHOD("emit", output_emit, METH_FASTCALL | METH_KEYWORDS, "emit(value, name=None)"),
	{NULL, NULL, 0, NULL},
};
static PyMethodDef context_methods[] = {
	METHOD("stop_operator", context_stop_operator, METH_NOARGS, "Ends this operator."),
	METHOD("stop", context_stop, METH_NOARGS, "Ends the application in order."),
	METHOD("argument", context_argument, METH_O, "argument(name) -> str or None"),
	METHOD("log", context_log, METH_O, "Logs one line about the operator."),
	METHOD("describe", context_describe, METH_NOARGS, "What the operator is now, as YAML."),
	METHOD("_condition", context_condition, METH_VARARGS, NULL),
	METHOD("_metadata_get", fpy_metadata_get, METH_O, NULL),
	METHOD("_metadata_set", fpy_metadata_set, METH_VARARGS, NULL),
	METHOD("_metadata_erase", fpy_metadata_erase, METH_O, NULL),
	METHOD("_metadata_keys", fpy_metadata_keys, METH_NOARGS, NULL),
	{NULL, NULL, 0, NULL},
};
static PyGetSetDef context_values[] = {
	{"count", context_count, NULL, "how many times compute was called before", NULL},
	{"time_ns", context_time_ns, NULL, "when the tick began, on the fragment's clock", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

#define PART_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION)
static PyType_Slot input_slots[] = {
	{Py_tp_dealloc, part_dealloc}, {Py_tp_methods, input_methods}, {0, NULL}};
static PyType_Slot output_slots[] = {
	{Py_tp_dealloc, part_dealloc}, {Py_tp_methods, output_methods}, {0, NULL}};
static PyType_Slot context_slots[] = {{Py_tp_dealloc, part_dealloc},
				      {Py_tp_methods, context_methods},
				      {Py_tp_getset, context_values},
				      {0, NULL}};
static PyType_Spec input_spec = {.name = "frag._frag.InputContext",
				 .basicsize = sizeof(struct part),
				 .flags = PART_FLAGS,
				 .slots = input_slots};
static PyType_Spec output_spec = {.name = "frag._frag.OutputContext",
				  .basicsize = sizeof(struct part),
				  .flags = PART_FLAGS,
				  .slots = output_slots};
static PyType_Spec context_spec = {.name = "frag._frag.ExecutionContext",
				   .basicsize = sizeof(struct part),
				   .flags = PART_FLAGS,
				   .slots = context_slots};

int fpy_tick_ready(PyObject *module)
{
	input_class = fpy_type_add(module, &input_spec);
	output_class = fpy_type_add(module, &output_spec);
	context_class = fpy_type_add(module, &context_spec);
	return input_class != NULL && output_class != NULL && context_class != NULL ? 0 : -1;
}

static PyObject *part_create(PyTypeObject *class, struct fpy_op *op)
{
	struct part *part = PyObject_New(struct part, class);

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
		((struct part *)PyTuple_GetItem(op->args, i + op->is_method))->op = NULL;
	Py_CLEAR(op->args);
	Py_CLEAR(op->compute);
	Py_CLEAR(op->context);
}
