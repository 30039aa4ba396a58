/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PYTHON_FAILING_CALLS_H
#define TESTS_PYTHON_FAILING_CALLS_H

/*
 * Included before the sources of the extension when they are compiled for failing.py: calls of
 * CPython, of allocators and of libfrag, of which one fails. A place is such a function and the
 * function of the extension that calls it. Where the real call takes something over also on
 * failure, so does one that fails here.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <frag/frag.h>
#include <frag/flow.h>
#include <frag/harness.h>
#include <frag/run.h>

/* Whether this call is the one that fails; then with a MemoryError where it is one of CPython. */
bool failing_here(const char *what, const char *function);
/* Memory that the extension has and has not given back. */
void *failing_live(void *made);
void failing_forget(const void *made);

#undef _GNU_SOURCE /* sources define it themselves */

#define FAILS(what) failing_here(what, __func__)

/* What may be a macro of Python.h is called by what stands for it there. */
static PyObject *(*const failing_build)(const char *, ...) __attribute__((unused)) = Py_BuildValue;
static PyObject *(*const failing_function)(PyObject *, const char *, ...)
	__attribute__((unused)) = PyObject_CallFunction;
static PyObject *(*const failing_method)(PyObject *, const char *, const char *, ...)
	__attribute__((unused)) = PyObject_CallMethod;
#undef Py_BuildValue
#undef PyObject_CallFunction
#undef PyObject_CallMethod
#undef PyObject_New
/* One with N takes objects over. */
#define Py_BuildValue(format, ...)                                                                 \
	(strchr(format, 'N') == NULL && FAILS("Py_BuildValue")                                     \
		 ? NULL                                                                            \
		 : failing_build(format, ##__VA_ARGS__))
#define PyObject_CallFunction(...)                                                                 \
	(FAILS("PyObject_CallFunction") ? NULL : failing_function(__VA_ARGS__))
#define PyObject_CallMethod(...) (FAILS("PyObject_CallMethod") ? NULL : failing_method(__VA_ARGS__))
#define PyObject_New(type, class) (FAILS("PyObject_New") ? NULL : (type *)_PyObject_New(class))

/* They return an object, or NULL. */
#define PyBytes_FromStringAndSize(...)                                                             \
	(FAILS("PyBytes_FromStringAndSize") ? NULL : PyBytes_FromStringAndSize(__VA_ARGS__))
#define PyCapsule_New(...) (FAILS("PyCapsule_New") ? NULL : PyCapsule_New(__VA_ARGS__))
#define PyComplex_FromDoubles(...)                                                                 \
	(FAILS("PyComplex_FromDoubles") ? NULL : PyComplex_FromDoubles(__VA_ARGS__))
#define PyDict_Copy(...) (FAILS("PyDict_Copy") ? NULL : PyDict_Copy(__VA_ARGS__))
#define PyDict_GetItemWithError(...)                                                               \
	(FAILS("PyDict_GetItemWithError") ? NULL : PyDict_GetItemWithError(__VA_ARGS__))
#define PyDict_New() (FAILS("PyDict_New") ? NULL : PyDict_New())
#define PyFloat_FromDouble(...)                                                                    \
	(FAILS("PyFloat_FromDouble") ? NULL : PyFloat_FromDouble(__VA_ARGS__))
#define PyList_GetSlice(...) (FAILS("PyList_GetSlice") ? NULL : PyList_GetSlice(__VA_ARGS__))
#define PyList_New(...) (FAILS("PyList_New") ? NULL : PyList_New(__VA_ARGS__))
#define PyLong_FromLong(...) (FAILS("PyLong_FromLong") ? NULL : PyLong_FromLong(__VA_ARGS__))
#define PyLong_FromLongLong(...)                                                                   \
	(FAILS("PyLong_FromLongLong") ? NULL : PyLong_FromLongLong(__VA_ARGS__))
#define PyLong_FromUnsignedLongLong(...)                                                           \
	(FAILS("PyLong_FromUnsignedLongLong") ? NULL : PyLong_FromUnsignedLongLong(__VA_ARGS__))
#define PyLong_FromVoidPtr(...)                                                                    \
	(FAILS("PyLong_FromVoidPtr") ? NULL : PyLong_FromVoidPtr(__VA_ARGS__))
#define PyNumber_Index(...) (FAILS("PyNumber_Index") ? NULL : PyNumber_Index(__VA_ARGS__))
#define PyObject_Call(...) (FAILS("PyObject_Call") ? NULL : PyObject_Call(__VA_ARGS__))
#define PyObject_CallFunctionObjArgs(...)                                                          \
	(FAILS("PyObject_CallFunctionObjArgs") ? NULL : PyObject_CallFunctionObjArgs(__VA_ARGS__))
#define PyObject_CallMethodObjArgs(...)                                                            \
	(FAILS("PyObject_CallMethodObjArgs") ? NULL : PyObject_CallMethodObjArgs(__VA_ARGS__))
#define PyObject_CallNoArgs(...)                                                                   \
	(FAILS("PyObject_CallNoArgs") ? NULL : PyObject_CallNoArgs(__VA_ARGS__))
#define PyObject_GetAttr(...) (FAILS("PyObject_GetAttr") ? NULL : PyObject_GetAttr(__VA_ARGS__))
#define PyObject_GetAttrString(...)                                                                \
	(FAILS("PyObject_GetAttrString") ? NULL : PyObject_GetAttrString(__VA_ARGS__))
#define PyObject_Type(...) (FAILS("PyObject_Type") ? NULL : PyObject_Type(__VA_ARGS__))
#define PySequence_GetItem(...)                                                                    \
	(FAILS("PySequence_GetItem") ? NULL : PySequence_GetItem(__VA_ARGS__))
#define PyTuple_New(...) (FAILS("PyTuple_New") ? NULL : PyTuple_New(__VA_ARGS__))
#define PyTuple_Pack(...) (FAILS("PyTuple_Pack") ? NULL : PyTuple_Pack(__VA_ARGS__))
#define PyUnicode_AsUTF8AndSize(...)                                                               \
	(FAILS("PyUnicode_AsUTF8AndSize") ? NULL : PyUnicode_AsUTF8AndSize(__VA_ARGS__))
#define PyUnicode_DecodeUTF8(...)                                                                  \
	(FAILS("PyUnicode_DecodeUTF8") ? NULL : PyUnicode_DecodeUTF8(__VA_ARGS__))
#define PyUnicode_FromFormat(...)                                                                  \
	(FAILS("PyUnicode_FromFormat") ? NULL : PyUnicode_FromFormat(__VA_ARGS__))
#define PyUnicode_FromString(...)                                                                  \
	(FAILS("PyUnicode_FromString") ? NULL : PyUnicode_FromString(__VA_ARGS__))

/* They return -1. */
#define PyBytes_AsStringAndSize(...)                                                               \
	(FAILS("PyBytes_AsStringAndSize") ? -1 : PyBytes_AsStringAndSize(__VA_ARGS__))
#define PyDict_SetItem(...) (FAILS("PyDict_SetItem") ? -1 : PyDict_SetItem(__VA_ARGS__))
#define PyDict_SetItemString(...)                                                                  \
	(FAILS("PyDict_SetItemString") ? -1 : PyDict_SetItemString(__VA_ARGS__))
#define PyList_Append(...) (FAILS("PyList_Append") ? -1 : PyList_Append(__VA_ARGS__))
#define PyList_SetItem(list, i, item)                                                              \
	(FAILS("PyList_SetItem") ? (Py_XDECREF(item), -1) : PyList_SetItem(list, i, item))
#define PyObject_GetBuffer(...) (FAILS("PyObject_GetBuffer") ? -1 : PyObject_GetBuffer(__VA_ARGS__))
#define PyObject_IsInstance(...)                                                                   \
	(FAILS("PyObject_IsInstance") ? -1 : PyObject_IsInstance(__VA_ARGS__))
#define PySequence_Size(...) (FAILS("PySequence_Size") ? -1 : PySequence_Size(__VA_ARGS__))
#define PyTuple_SetItem(tuple, i, item)                                                            \
	(FAILS("PyTuple_SetItem") ? (Py_XDECREF(item), -1) : PyTuple_SetItem(tuple, i, item))

#define malloc(...) (FAILS("malloc") ? NULL : failing_live(malloc(__VA_ARGS__)))
#define calloc(...) (FAILS("calloc") ? NULL : failing_live(calloc(__VA_ARGS__)))
#define free(made) (failing_forget(made), free(made))

/* They return a negative errno. */
#define frag_collection_add(...)                                                                   \
	(FAILS("frag_collection_add") ? -ENOMEM : frag_collection_add(__VA_ARGS__))
#define frag_collection_create(...)                                                                \
	(FAILS("frag_collection_create") ? -ENOMEM : frag_collection_create(__VA_ARGS__))
#define frag_collection_put(...)                                                                   \
	(FAILS("frag_collection_put") ? -ENOMEM : frag_collection_put(__VA_ARGS__))
#define frag_collection_value(...)                                                                 \
	(FAILS("frag_collection_value") ? -ENOMEM : frag_collection_value(__VA_ARGS__))
#define frag_harness_give(harness, port, message)                                                  \
	(FAILS("frag_harness_give") ? (frag_message_unref(message), -ENOMEM)                       \
				    : frag_harness_give(harness, port, message))
#define frag_message_add_tensor(message, name, tensor)                                             \
	(FAILS("frag_message_add_tensor") ? (frag_tensor_unref(tensor), -ENOMEM)                   \
					  : frag_message_add_tensor(message, name, tensor))
#define frag_message_set_value(...)                                                                \
	(FAILS("frag_message_set_value") ? -ENOMEM : frag_message_set_value(__VA_ARGS__))
#define frag_metadata_set(...)                                                                     \
	(FAILS("frag_metadata_set") ? -ENOMEM : frag_metadata_set(__VA_ARGS__))
#define frag_metadata_set_tensor(metadata, key, tensor)                                            \
	(FAILS("frag_metadata_set_tensor") ? (frag_tensor_unref(tensor), -ENOMEM)                  \
					   : frag_metadata_set_tensor(metadata, key, tensor))
#define frag_plugin_add(...) (FAILS("frag_plugin_add") ? -ENOMEM : frag_plugin_add(__VA_ARGS__))
#define frag_set_dynamic_flows(...)                                                                \
	(FAILS("frag_set_dynamic_flows") ? -ENOMEM : frag_set_dynamic_flows(__VA_ARGS__))
#define frag_tensor_create(...)                                                                    \
	(FAILS("frag_tensor_create") ? -ENOMEM : frag_tensor_create(__VA_ARGS__))
#define frag_tensor_wrap(...) (FAILS("frag_tensor_wrap") ? -ENOMEM : frag_tensor_wrap(__VA_ARGS__))
#define frag_tick_add_dynamic_flow_info(...)                                                       \
	(FAILS("frag_tick_add_dynamic_flow_info") ? -ENOMEM                                        \
						  : frag_tick_add_dynamic_flow_info(__VA_ARGS__))
#define frag_tick_emit(tick, port, message)                                                        \
	(FAILS("frag_tick_emit") ? (frag_message_unref(message), -ENOMEM)                          \
				 : frag_tick_emit(tick, port, message))
#define frag_tick_emit_f64(...)                                                                    \
	(FAILS("frag_tick_emit_f64") ? -ENOMEM : frag_tick_emit_f64(__VA_ARGS__))
#define frag_tick_emit_i64(...)                                                                    \
	(FAILS("frag_tick_emit_i64") ? -ENOMEM : frag_tick_emit_i64(__VA_ARGS__))
#define frag_type_register(...)                                                                    \
	(FAILS("frag_type_register") ? -ENOMEM : frag_type_register(__VA_ARGS__))
#define frag_variable_open(...)                                                                    \
	(FAILS("frag_variable_open") ? -ENOMEM : frag_variable_open(__VA_ARGS__))
#define frag_clock_advance_by(...)                                                                 \
	(FAILS("frag_clock_advance_by") ? -ENOMEM : frag_clock_advance_by(__VA_ARGS__))
#define frag_clock_advance_to(...)                                                                 \
	(FAILS("frag_clock_advance_to") ? -ENOMEM : frag_clock_advance_to(__VA_ARGS__))
#define frag_clock_set_time_scale(...)                                                             \
	(FAILS("frag_clock_set_time_scale") ? -ENOMEM : frag_clock_set_time_scale(__VA_ARGS__))
#define frag_clock_sleep_for(...)                                                                  \
	(FAILS("frag_clock_sleep_for") ? -ENOMEM : frag_clock_sleep_for(__VA_ARGS__))
#define frag_clock_sleep_until(...)                                                                \
	(FAILS("frag_clock_sleep_until") ? -ENOMEM : frag_clock_sleep_until(__VA_ARGS__))
#define frag_condition_set_event_state(...)                                                        \
	(FAILS("frag_condition_set_event_state") ? -ENOMEM                                         \
						 : frag_condition_set_event_state(__VA_ARGS__))
#define frag_harness_take(...)                                                                     \
	(FAILS("frag_harness_take") ? -ENOMEM : frag_harness_take(__VA_ARGS__))
#define frag_library_folder(...)                                                                   \
	(FAILS("frag_library_folder") ? -ENOMEM : frag_library_folder(__VA_ARGS__))
#define frag_loader_register(...)                                                                  \
	(FAILS("frag_loader_register") ? -ENOMEM : frag_loader_register(__VA_ARGS__))
#define frag_reader_get(...) (FAILS("frag_reader_get") ? -ENOMEM : frag_reader_get(__VA_ARGS__))
#define frag_run_load(...) (FAILS("frag_run_load") ? -ENOMEM : frag_run_load(__VA_ARGS__))
#define frag_run_set(...) (FAILS("frag_run_set") ? -ENOMEM : frag_run_set(__VA_ARGS__))
#define frag_run_start(...) (FAILS("frag_run_start") ? -ENOMEM : frag_run_start(__VA_ARGS__))
#define frag_tensor_create_on(...)                                                                 \
	(FAILS("frag_tensor_create_on") ? -ENOMEM : frag_tensor_create_on(__VA_ARGS__))
#define frag_tick_receive(...)                                                                     \
	(FAILS("frag_tick_receive") ? -ENOMEM : frag_tick_receive(__VA_ARGS__))
#define frag_tick_receive_all(...)                                                                 \
	(FAILS("frag_tick_receive_all") ? -ENOMEM : frag_tick_receive_all(__VA_ARGS__))
#define frag_tracker_enable_logging(...)                                                           \
	(FAILS("frag_tracker_enable_logging") ? -ENOMEM : frag_tracker_enable_logging(__VA_ARGS__))
#define frag_tracker_flush(...)                                                                    \
	(FAILS("frag_tracker_flush") ? -ENOMEM : frag_tracker_flush(__VA_ARGS__))
#define frag_tracker_metric(...)                                                                   \
	(FAILS("frag_tracker_metric") ? -ENOMEM : frag_tracker_metric(__VA_ARGS__))
#define frag_variable_allocate(...)                                                                \
	(FAILS("frag_variable_allocate") ? -ENOMEM : frag_variable_allocate(__VA_ARGS__))
#define frag_variable_create(...)                                                                  \
	(FAILS("frag_variable_create") ? -ENOMEM : frag_variable_create(__VA_ARGS__))
#define frag_variable_map(...)                                                                     \
	(FAILS("frag_variable_map") ? -ENOMEM : frag_variable_map(__VA_ARGS__))
#define frag_variable_publish(...)                                                                 \
	(FAILS("frag_variable_publish") ? -ENOMEM : frag_variable_publish(__VA_ARGS__))
#define frag_variable_wait(...)                                                                    \
	(FAILS("frag_variable_wait") ? -ENOMEM : frag_variable_wait(__VA_ARGS__))
#define frag_writer_put(...) (FAILS("frag_writer_put") ? -ENOMEM : frag_writer_put(__VA_ARGS__))
/* They return NULL. */
#define frag_fragment_tracker(...)                                                                 \
	(FAILS("frag_fragment_tracker") ? NULL : frag_fragment_tracker(__VA_ARGS__))
#define frag_op_find(...) (FAILS("frag_op_find") ? NULL : frag_op_find(__VA_ARGS__))
#define frag_run_summary(...) (FAILS("frag_run_summary") ? NULL : frag_run_summary(__VA_ARGS__))
#define frag_tracker_describe(...)                                                                 \
	(FAILS("frag_tracker_describe") ? NULL : frag_tracker_describe(__VA_ARGS__))
#define frag_tracker_path(...) (FAILS("frag_tracker_path") ? NULL : frag_tracker_path(__VA_ARGS__))
#define frag_tracker_source(...)                                                                   \
	(FAILS("frag_tracker_source") ? NULL : frag_tracker_source(__VA_ARGS__))
#define frag_harness_create(...)                                                                   \
	(FAILS("frag_harness_create") ? NULL : frag_harness_create(__VA_ARGS__))
#define frag_message_create() (FAILS("frag_message_create") ? NULL : frag_message_create())
#define frag_op_describe(...) (FAILS("frag_op_describe") ? NULL : frag_op_describe(__VA_ARGS__))

#endif
