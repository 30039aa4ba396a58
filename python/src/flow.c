// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <frag/flow.h>

/* Dynamic flows: an operator with a method choose_flows chooses its flows after each tick. */

static int choose(void *state, struct frag_tick *tick, void *arg)
{
	struct fpy_op *self = state;
	struct fpy_lock lock = fpy_lock();
	PyObject *result;
	int r;

	(void)arg;
	self->thread = PyThread_get_thread_ident();
	self->tick = tick;
	self->is_choosing = true;
	result = PyObject_CallMethod(self->self, "choose_flows", "O", self->context);
	self->is_choosing = false;
	self->tick = NULL;
	self->thread = 0;
	r = result != NULL ? 0 : fpy_fail(self->op, "choose_flows");
	Py_XDECREF(result);
	fpy_unlock(lock);
	return r;
}

int fpy_flows_attach(struct fpy_op *self)
{
	int r;

	if (!PyObject_HasAttrString(self->self, "choose_flows"))
		return 0;
	r = frag_set_dynamic_flows(self->op, choose, NULL);
	return r < 0 ? fpy_raise(r, NULL, "choose_flows") : 0;
}

/* flows() -> [(output, "fragment.operator", input)] */
PyObject *fpy_context_flows(PyObject *context, PyObject *unused)
{
	struct frag_tick *tick = fpy_context_tick(context);
	const struct frag_flow_info *const *flows;
	uint32_t count = tick != NULL ? frag_op_next_flows(frag_tick_op(tick), &flows) : 0;
	PyObject *list = tick != NULL ? PyList_New(0) : NULL, *item;

	(void)unused;
	for (uint32_t i = 0; list != NULL && i < count; i++) {
		item = Py_BuildValue(
			"(sNs)", flows[i]->out_port,
			PyUnicode_FromFormat("%s.%s", flows[i]->next_fragment, flows[i]->next_op),
			flows[i]->in_port);
		if (item == NULL || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* take_flow(number): of those that flows() lists */
PyObject *fpy_context_take_flow(PyObject *context, PyObject *number)
{
	struct frag_tick *tick = fpy_context_tick(context);
	const struct frag_flow_info *const *flows;
	long at = PyLong_AsLong(number);
	uint32_t count;
	int r;

	if (tick == NULL || (at == -1 && PyErr_Occurred() != NULL))
		return NULL;
	if (!((struct fpy_part *)context)->op->is_choosing) {
		PyErr_SetString(PyExc_RuntimeError, "flows are chosen in choose_flows only");
		return NULL;
	}
	count = frag_op_next_flows(frag_tick_op(tick), &flows);
	if (at < 0 || at >= (long)count) {
		PyErr_Format(PyExc_IndexError, "the operator has %u flows that it can choose",
			     count);
		return NULL;
	}
	r = frag_tick_add_dynamic_flow_info(tick, flows[at]);
	if (r == 0)
		Py_RETURN_NONE;
	fpy_raise(r, NULL, "take_flow");
	return NULL;
}
