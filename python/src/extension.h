/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FPY_EXTENSION_H
#define FPY_EXTENSION_H

/*
 * frag._frag: libfrag for Python, against the stable ABI of CPython 3.11. It stands on the public
 * headers only, as every user of libfrag does.
 *
 * Functions that return an int return 0, or -1 with a Python exception set, unless they say that
 * they return a negative errno. All of them need the interpreter's lock (thread.c), but the
 * callbacks that libfrag calls, which take it.
 */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include <stdbool.h>

#include <frag/frag.h>
#include <frag/harness.h>
#include <frag/run.h>

/* thread.c: the interpreter's lock on threads of frag, whose thread state is kept. */
PyGILState_STATE fpy_enter(void);
void fpy_leave(PyGILState_STATE state);
/* The same for callbacks of operators, where the thread does not have the lock yet. */
struct fpy_lock {
	bool is_kept;
	PyGILState_STATE state;
};
struct fpy_lock fpy_lock(void);
void fpy_unlock(struct fpy_lock lock);

/* What the package gives to the extension (module.c); borrowed, never NULL once imported. */
enum fpy_hook {
	FPY_HOOK_ERROR,    /* class of frag's errors: (sentence, code, operator) */
	FPY_HOOK_DESCRIBE, /* an exception and what raised it -> sentence; keeps the exception */
	FPY_HOOK_ENCODE,   /* an object -> bytes */
	FPY_HOOK_DECODE,   /* bytes -> an object */
	FPY_HOOK_LOAD,     /* path of a module -> (name, [OpType]) */
	FPY_HOOKS
};
PyObject *fpy_hook(enum fpy_hook hook);

/* failure.c */
/* Raises frag.Error. Returns -1. */
int fpy_raise(int code, const struct frag_err *err, const char *what);
/*
 * Words the exception that is set, and clears it. what: "compute". The text is written to `out`.
 */
void fpy_describe(const char *what, char *out, size_t size);
/* The same as the failure of an operator. Returns a negative errno. */
int fpy_fail(struct frag_op *op, const char *what);

/* value.c: values of messages. */
/*
 * Returns the UTF-8 of a text, borrowed as long as the text lives; NULL, raised: it is no text, or
 * holds a NUL, at which everything behind would be cut off.
 */
const char *fpy_text(PyObject *object);
/* Values that have no type of frag's travel as references to objects. */
extern const struct frag_type fpy_object_type;
struct fpy_bytes {
	const struct frag_type *type;
	const void *data;
	size_t size;
	union {
		bool boolean;
		int64_t i64;
		uint64_t u64;
		float f32;
		double f64;
		float complex64[2];
		double complex128[2];
		PyObject *object;
	} scalar;
	void *heap;
	struct frag_collection *collection;
};
/* Lays out a value as this type; NULL: as the type that suits it. Give it to fini when 0. */
int fpy_bytes_init(struct fpy_bytes *bytes, PyObject *value, const struct frag_type *type);
void fpy_bytes_fini(struct fpy_bytes *bytes);
/* Returns a new reference. */
PyObject *fpy_value(const struct frag_type *type, const void *value, size_t size);

/* class.c: classes that are types of frag's. */
/* Whether values of the type are references to objects. */
bool fpy_is_object(const struct frag_type *type);
/* The name of the struct that a value's class is; NULL: it is none, or with an exception. */
const char *fpy_struct_name(PyObject *value);
/* The class of a type, borrowed; NULL: it has none. */
PyObject *fpy_class(const char *name);
PyObject *fpy_class_register(PyObject *module, PyObject *args);
int fpy_class_ready(void);

/* collection.c: lists and dicts. name: of the type. */
#define FPY_TYPE_NAME_SIZE 80
/* Returns false when the value has no type of frag's, or with an exception. */
bool fpy_infer(PyObject *value, char name[FPY_TYPE_NAME_SIZE]);
int fpy_collection_init(struct fpy_bytes *bytes, PyObject *value, const char *name);
PyObject *fpy_collection(const char *name, const void *value, size_t size);

/* message.c */
/* Returns a new message; NULL with an exception. */
struct frag_message *fpy_message(PyObject *value, const struct frag_type *type);
/* What a message holds: its value, its tensors, or None. Returns a new reference. */
PyObject *fpy_message_read(const struct frag_message *message);

/* holder.c: who keeps tensors. */
struct fpy_holder;
/* Returns one with a reference, which end drops; NULL with an exception. */
struct fpy_holder *fpy_holder_create(const char *fragment, const char *op);
void fpy_holder_end(struct fpy_holder *holder);
/* One for each tensor. NULL is accepted. unref: any thread, also without the lock. */
struct fpy_holder *fpy_holder_ref(struct fpy_holder *holder);
void fpy_holder_unref(struct fpy_holder *holder);
/* Writes "app.rx keeps 3, ..."; nothing if no operator keeps tensors. */
void fpy_holders_list(char *out, size_t size);

/* tensor.c */
struct fpy_tensor {
	PyObject ob_base;
	struct frag_tensor *tensor;
	struct fpy_holder *holder; /* NULL: no operator's */
	void *stream;              /* of a GPU, on which it is written; NULL: it is complete */
	bool is_writable;          /* made here, and not emitted yet */
};
int fpy_tensor_ready(PyObject *module);
bool fpy_is_tensor(PyObject *object);
bool fpy_is_of_host(struct frag_device device);
/* Returns a Tensor of the operator that is ticked. Takes the reference, also on failure. */
PyObject *fpy_tensor_create(struct frag_tensor *tensor, bool is_writable);
/* Returns a Tensor that is read-only. Takes a reference of its own. */
PyObject *fpy_tensor(struct frag_tensor *tensor);
PyObject *fpy_tensor_empty(PyObject *module, PyObject *args);
PyObject *fpy_tensor_as(PyObject *module, PyObject *array);

/* dlpack.c */
int fpy_dlpack_ready(PyTypeObject *class);
bool fpy_is_array(PyObject *value);
/* Returns a new reference to the tensor of an array; NULL with an exception. */
struct frag_tensor *fpy_tensor_take(PyObject *array);
PyObject *fpy_tensor_dlpack(PyObject *object, PyObject *const *values, Py_ssize_t positional,
			    PyObject *names);
PyObject *fpy_tensor_dlpack_device(PyObject *self, PyObject *unused);

/* param.c: the parameters that a type declares, and their fields in a state. */
struct fpy_params {
	struct frag_param *rows;
	uint32_t count;
};
/* None is NULL. Returns false with an exception. */
bool fpy_optional_text(PyObject *object, const char **out);
/* For O& of PyArg_Parse: an unsigned long long. K takes the lower bits of any int. */
int fpy_unsigned(PyObject *number, void *out);
/* rows: a tuple of Param.row(), to which the texts belong. fini is due also on failure. */
int fpy_params_parse(struct fpy_params *params, PyObject *rows);
void fpy_params_fini(struct fpy_params *params);
/* Lays the fields out behind `offset` bytes. Returns the size of the state. */
size_t fpy_params_layout(struct fpy_params *params, size_t offset);
/* Returns a new dict of the parameters' values. */
PyObject *fpy_params_read(const struct fpy_params *params, const void *state);

/* operator.c */
struct fpy_port {
	PyObject *name; /* interned; borrowed from the type */
	const char *text;
	enum frag_dir dir;
	uint32_t flags;
	const char *type_name;
	const struct frag_type *type; /* NULL: any */
};
struct fpy_op_type {
	PyObject ob_base;
	struct frag_op_type table;
	struct frag_port *ports;
	struct fpy_port *known_ports;
	struct fpy_params params;
	bool has_dynamic;
	PyObject *factory; /* (fragment, operator, parameters) -> operator */
	PyObject *texts;   /* what the tables' texts are borrowed from */
};
/* The state of an operator; its parameters follow. */
struct fpy_op {
	struct frag_op *op;
	struct fpy_op_type *type;
	PyObject *self;
	/* args: (self, input, output, context), without self if compute is no method */
	PyObject *compute, *args, *context;
	bool is_method;
	struct fpy_holder *holder;
	struct frag_tick *tick; /* during compute */
	bool is_choosing;       /* in choose_flows */
	unsigned long thread;   /* that runs a callback; 0: none does */
};
/* The operator whose compute is under way on this thread; NULL: none. */
struct fpy_op *fpy_op_current(void);
int fpy_op_type_ready(PyObject *module);
/* Returns the table of an OpType; NULL with an exception. */
struct fpy_op_type *fpy_op_type(PyObject *object);

/* component.c: conditions and resources in Python. */
struct fpy_component_tables {
	bool is_condition;
	struct frag_condition_type condition;
	struct frag_resource_type resource;
};
int fpy_component_ready(PyObject *module);
/* Returns the tables of a ComponentType; NULL without an exception: it is something else. */
const struct fpy_component_tables *fpy_component_type(PyObject *object);
/*
 * Returns a new reference to the object of a struct frag_condition or frag_resource; NULL without
 * an exception: it is none of Python's.
 */
PyObject *fpy_component_find(const void *address);

/* tracker.c */
int fpy_tracker_ready(PyObject *module);
/* Returns the Tracker of a fragment, or None; NULL is accepted. */
PyObject *fpy_tracker(struct frag_fragment *fragment);

/* context.c: what an operator has beside its ports. */
/* An object that lives as long as its operator, and has a tick during compute only. */
struct fpy_part {
	PyObject ob_base;
	struct fpy_op *op; /* NULL: the operator has ended */
};
#define FPY_PART_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION)
void fpy_part_dealloc(PyObject *object);
/* PyMethodDef stores every kind of function as a PyCFunction; the flags say which it is. */
#define FPY_METHOD(name, function, flags, doc)                                                     \
	{                                                                                          \
		name, (PyCFunction)(void (*)(void))(function), flags, doc                          \
	}
/* Returns the class. */
PyTypeObject *fpy_context_ready(PyObject *module);
/* Returns a resource of the context's fragment; NULL with an exception. */
struct frag_resource *fpy_context_resource(PyObject *context, const char *name);

/* tick.c: what compute gets. */
int fpy_tick_ready(PyObject *module);
/* Fills in compute, args and context of an operator. */
int fpy_tick_attach(struct fpy_op *op);
/* The operator ends: who keeps one of them gets errors. */
void fpy_tick_detach(struct fpy_op *op);

/* metadata.c: methods of the context. tick: NULL with an exception when none is under way. */
struct frag_tick *fpy_context_tick(PyObject *context);

/* flow.c: dynamic flows. attach: in the operator's setup. */
int fpy_flows_attach(struct fpy_op *op);
PyObject *fpy_context_flows(PyObject *context, PyObject *unused);
PyObject *fpy_context_take_flow(PyObject *context, PyObject *number);
/* Returns the value of a key, a new reference; NULL with a KeyError: there is none. */
PyObject *fpy_metadata_read(const struct frag_metadata *metadata, const char *key);
PyObject *fpy_metadata_get(PyObject *context, PyObject *key);
PyObject *fpy_metadata_set(PyObject *context, PyObject *args);
PyObject *fpy_metadata_erase(PyObject *context, PyObject *key);
PyObject *fpy_metadata_keys(PyObject *context, PyObject *unused);

/* variable.c: shared variables; methods of the context. */
PyObject *fpy_variable_open(PyObject *context, PyObject *args);
PyObject *fpy_variable_get(PyObject *context, PyObject *args);
PyObject *fpy_variable_set(PyObject *context, PyObject *args);
PyObject *fpy_variable_wait(PyObject *context, PyObject *args);
PyObject *fpy_variable_path(PyObject *context, PyObject *name);

/* run.c, plugin.c, logger.c, harness.c */
int fpy_run_ready(PyObject *module);
int fpy_harness_ready(PyObject *module);
PyObject *fpy_plugin_add(PyObject *module, PyObject *args);
PyObject *fpy_plugin_remove(PyObject *module, PyObject *capsule);
PyObject *fpy_loader_register(PyObject *module, PyObject *unused);
PyObject *fpy_on_log(PyObject *module, PyObject *new_function);

/* module.c */
/* How many forks lie between this process and the one that has imported the module. */
unsigned int fpy_forks(void);
/* On a thread of frag that calls into Python for the first time, with the lock. */
void fpy_thread_begins(void);
/* Makes a heap type and adds it to the module under its last name. Returns it; NULL: failed. */
PyTypeObject *fpy_type_add(PyObject *module, PyType_Spec *spec);

#endif
