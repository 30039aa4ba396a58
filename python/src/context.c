// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <errno.h>
#include <stdlib.h>

/* The context of an operator: its tick, its surroundings, and the metadata of the tick. */

static PyTypeObject *context_class;

static PyObject *context_count(PyObject *self, void *closure)
{
	struct frag_tick *tick = fpy_context_tick(self);

	(void)closure;
	return tick != NULL ? PyLong_FromUnsignedLongLong(frag_tick_count(tick)) : NULL;
}

static PyObject *context_time_ns(PyObject *self, void *closure)
{
	struct frag_tick *tick = fpy_context_tick(self);

	(void)closure;
	return tick != NULL ? PyLong_FromLongLong(frag_tick_time_ns(tick)) : NULL;
}

static PyObject *context_stream(PyObject *self, void *closure)
{
	struct frag_tick *tick = fpy_context_tick(self);
	void *stream = tick != NULL ? frag_tick_stream(tick) : NULL;

	(void)closure;
	if (tick == NULL)
		return NULL;
	return stream != NULL ? PyLong_FromVoidPtr(stream) : Py_NewRef(Py_None);
}

/* Returns the operator, also outside of a tick; NULL with an exception. */
static struct frag_op *living(PyObject *self)
{
	struct fpy_op *op = ((struct fpy_part *)self)->op;

	if (op == NULL)
		PyErr_SetString(PyExc_RuntimeError, "the operator has ended");
	return op != NULL ? op->op : NULL;
}

/* Returns another operator of the fragment; NULL: the operator itself. NULL with an exception. */
static struct frag_op *find(PyObject *self, const char *name)
{
	struct frag_op *op = living(self), *other;

	if (op == NULL || name == NULL)
		return op;
	other = frag_op_find(op, name);
	if (other == NULL)
		PyErr_Format(PyExc_LookupError, "fragment %s has no operator \"%s\"",
			     frag_op_fragment_name(op), name);
	return other;
}

static PyObject *context_stop_operator(PyObject *self, PyObject *args)
{
	const char *name = NULL;
	struct frag_op *op = PyArg_ParseTuple(args, "|z", &name) ? find(self, name) : NULL;

	if (op == NULL)
		return NULL;
	frag_op_stop_execution(op);
	Py_RETURN_NONE;
}

static PyObject *context_operator_status(PyObject *self, PyObject *args)
{
	static const char *const texts[] = {"not_started", "idle", "ticking", "done", "failed"};
	const char *name = NULL;
	struct frag_op *op = PyArg_ParseTuple(args, "|z", &name) ? find(self, name) : NULL;

	return op != NULL ? PyUnicode_FromString(texts[frag_op_status_get(op)]) : NULL;
}

static PyObject *context_operator_ticks(PyObject *self, PyObject *args)
{
	const char *name = NULL;
	struct frag_op *op = PyArg_ParseTuple(args, "|z", &name) ? find(self, name) : NULL;

	return op != NULL ? PyLong_FromUnsignedLongLong(frag_op_ticks(op)) : NULL;
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
	const char *key = op != NULL ? fpy_text(name) : NULL;
	const char *text = key != NULL ? frag_op_argument(op, key) : NULL;

	if (key == NULL)
		return NULL;
	return text != NULL ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyObject *context_log(PyObject *self, PyObject *text)
{
	struct frag_op *op = living(self);
	const char *line = op != NULL ? fpy_text(text) : NULL;

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

/*
 * _condition(name, event, operator=None): switches a boolean condition (-1: on, -2: off), reads an
 * asynchronous one (-3), or sets it.
 */
static PyObject *context_condition(PyObject *self, PyObject *args)
{
	struct frag_condition *condition;
	const char *name, *other = NULL;
	struct frag_op *op;
	int event, r;

	if (!PyArg_ParseTuple(args, "si|z", &name, &event, &other))
		return NULL;
	op = find(self, other);
	if (op == NULL)
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

/*
 * _component(name, is_condition) -> the object of a condition or resource; True: it is one of C's;
 * None: there is none.
 */
static PyObject *context_component(PyObject *self, PyObject *args)
{
	struct frag_op *op = living(self);
	const char *name;
	int is_condition;
	const void *component;
	PyObject *object;

	if (op == NULL || !PyArg_ParseTuple(args, "sp", &name, &is_condition))
		return NULL;
	component = is_condition ? (const void *)frag_op_condition(op, name)
				 : (const void *)frag_op_resource(op, name);
	if (component == NULL)
		Py_RETURN_NONE;
	object = fpy_component_find(component);
	return object != NULL || PyErr_Occurred() != NULL ? object : Py_NewRef(Py_True);
}

struct frag_resource *fpy_context_resource(PyObject *context, const char *name)
{
	struct frag_resource *resource = NULL;
	struct frag_op *op;

	if (!PyObject_TypeCheck(context, context_class)) {
		PyErr_SetString(PyExc_RuntimeError, "the fragment of this resource does not run");
		return NULL;
	}
	op = living(context);
	if (op != NULL)
		resource = frag_op_resource(op, name);
	if (op != NULL && resource == NULL)
		PyErr_Format(PyExc_LookupError, "fragment %s has no resource \"%s\"",
			     frag_op_fragment_name(op), name);
	return resource;
}

/* _clock(what, number): reads the clock of the fragment (0: ns), sleeps by it, or sets it. */
static PyObject *context_clock(PyObject *self, PyObject *args)
{
	struct frag_op *op = living(self);
	struct frag_clock *clock;
	int what, r = 0;
	double number = 0;
	long long ns = 0;

	if (op == NULL || !PyArg_ParseTuple(args, "iLd", &what, &ns, &number))
		return NULL;
	clock = frag_op_clock(op);
	if (clock == NULL) {
		PyErr_SetString(PyExc_RuntimeError, "there is no clock before initialize");
		return NULL;
	}
	if (what == 0)
		return PyLong_FromLongLong(frag_clock_timestamp(clock));
	Py_BEGIN_ALLOW_THREADS r = what == 1   ? frag_clock_sleep_for(clock, ns)
				   : what == 2 ? frag_clock_sleep_until(clock, ns)
				   : what == 3 ? frag_clock_advance_to(clock, ns)
				   : what == 4 ? frag_clock_advance_by(clock, ns)
					       : frag_clock_set_time_scale(clock, number);
	Py_END_ALLOW_THREADS if (r >= 0) Py_RETURN_NONE;
	fpy_raise(r, NULL, "this clock cannot do that");
	return NULL;
}

static PyMethodDef context_methods[] = {
	FPY_METHOD("stop_operator", context_stop_operator, METH_VARARGS,
		   "Ends this operator, or the one of that name in the fragment."),
	FPY_METHOD("operator_status", context_operator_status, METH_VARARGS,
		   "\"not_started\", \"idle\", \"ticking\", \"done\" or \"failed\""),
	FPY_METHOD("operator_ticks", context_operator_ticks, METH_VARARGS,
		   "how many ticks an operator of the fragment has begun"),
	FPY_METHOD("stop", context_stop, METH_NOARGS, "Ends the application in order."),
	FPY_METHOD("argument", context_argument, METH_O, "argument(name) -> str or None"),
	FPY_METHOD("log", context_log, METH_O, "Logs one line about the operator."),
	FPY_METHOD("describe", context_describe, METH_NOARGS, "What the operator is now, as YAML."),
	FPY_METHOD("flows", fpy_context_flows, METH_NOARGS,
		   "in choose_flows: [(output, \"fragment.operator\", input)]"),
	FPY_METHOD("take_flow", fpy_context_take_flow, METH_O,
		   "in choose_flows: takes the flow of this number of flows()"),
	FPY_METHOD("_variable_open", fpy_variable_open, METH_VARARGS, NULL),
	FPY_METHOD("_variable_get", fpy_variable_get, METH_VARARGS, NULL),
	FPY_METHOD("_variable_set", fpy_variable_set, METH_VARARGS, NULL),
	FPY_METHOD("_variable_wait", fpy_variable_wait, METH_VARARGS, NULL),
	FPY_METHOD("_variable_path", fpy_variable_path, METH_O, NULL),
	FPY_METHOD("_component", context_component, METH_VARARGS, NULL),
	FPY_METHOD("_clock", context_clock, METH_VARARGS, NULL),
	FPY_METHOD("_condition", context_condition, METH_VARARGS, NULL),
	FPY_METHOD("_metadata_get", fpy_metadata_get, METH_O, NULL),
	FPY_METHOD("_metadata_set", fpy_metadata_set, METH_VARARGS, NULL),
	FPY_METHOD("_metadata_erase", fpy_metadata_erase, METH_O, NULL),
	FPY_METHOD("_metadata_keys", fpy_metadata_keys, METH_NOARGS, NULL),
	{NULL, NULL, 0, NULL},
};
static PyGetSetDef context_values[] = {
	{"count", context_count, NULL, "how many times compute was called before", NULL},
	{"time_ns", context_time_ns, NULL, "when the tick began, on the fragment's clock", NULL},
	{"stream", context_stream, NULL, "the CUDA stream of an operator with a gpu; None", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot context_slots[] = {{Py_tp_dealloc, fpy_part_dealloc},
				      {Py_tp_methods, context_methods},
				      {Py_tp_getset, context_values},
				      {0, NULL}};
static PyType_Spec context_spec = {.name = "frag._frag.ExecutionContext",
				   .basicsize = sizeof(struct fpy_part),
				   .flags = FPY_PART_FLAGS,
				   .slots = context_slots};

PyTypeObject *fpy_context_ready(PyObject *module)
{
	context_class = fpy_type_add(module, &context_spec);
	return context_class;
}

void fpy_part_dealloc(PyObject *object)
{
	PyTypeObject *class = Py_TYPE(object);

	((freefunc)PyType_GetSlot(class, Py_tp_free))(object);
	Py_DECREF(class);
}
