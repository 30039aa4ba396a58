// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "extension.h"

#include <dlfcn.h>
#include <stdlib.h>

/*
 * DLPack 1.3 (its dlpack.h and Python specification): tensors of ours for others and of others for
 * us, by __dlpack__ and, where the other side has it, by the table __dlpack_c_exchange_api__, which
 * needs no call of Python.
 *
 * A tensor of a GPU belongs to a stream: that of the operator that has received it, and an array
 * that an operator emits is asked for on its stream. Work on that stream comes after what writes
 * the tensor; on any other stream it would not, so that one alone is accepted.
 */
#define DLPACK_MAJOR 1
#define DLPACK_MINOR 3
#define DLPACK_READ_ONLY 1u
#define VERSIONED "dltensor_versioned"
#define UNVERSIONED "dltensor"

struct managed_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct managed_versioned *self);
	uint64_t flags;
	struct frag_dltensor tensor;
};
struct managed {
	struct frag_dltensor tensor;
	void *context;
	void (*deleter)(struct managed *self);
};

static PyObject *dlpack_name, *table_name;    /* interned: "__dlpack__", ..._c_exchange_api__ */
static PyObject *no_arguments;                /* of __dlpack__ */
static PyObject *plain_version, *plain_names; /* max_version=(1, 0) */
/*
 * PyObject_VectorcallMethod, which every CPython from 3.9 on has and the stable ABI only from 3.12
 * on; it makes no dict of the keywords. NULL: it is not there.
 */
static PyObject *(*call_method)(PyObject *name, PyObject *const *args, size_t count,
				PyObject *names);

/* The arguments of __dlpack__, which have names only. */
enum option { STREAM, MAX_VERSION, DL_DEVICE, COPY, OPTIONS };
static PyObject *option_names[OPTIONS]; /* interned */

/* What others hold of ours, in both kinds of descriptions. Any thread may give it back. */
struct given {
	union {
		struct managed_versioned versioned;
		struct managed managed;
	};
	struct frag_tensor *tensor;
	struct fpy_holder *holder;
};

static void give_back(struct given *given)
{
	frag_tensor_unref(given->tensor);
	fpy_holder_unref(given->holder);
	free(given);
}

static void give_back_versioned(struct managed_versioned *self)
{
	give_back(self->context);
}

static void give_back_managed(struct managed *self)
{
	give_back(self->context);
}

static void capsule_fini(PyObject *capsule)
{
	struct managed_versioned *versioned;
	struct managed *managed;

	if (PyCapsule_IsValid(capsule, VERSIONED)) {
		versioned = PyCapsule_GetPointer(capsule, VERSIONED);
		versioned->deleter(versioned);
	} else if (PyCapsule_IsValid(capsule, UNVERSIONED)) {
		managed = PyCapsule_GetPointer(capsule, UNVERSIONED);
		managed->deleter(managed);
	}
}

static struct given *give(const struct fpy_tensor *self, bool is_versioned)
{
	struct given *given = malloc(sizeof(*given));

	if (given == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	given->tensor = frag_tensor_ref(self->tensor);
	given->holder = fpy_holder_ref(self->holder);
	if (is_versioned)
		given->versioned = (struct managed_versioned){
			.major = DLPACK_MAJOR,
			.minor = DLPACK_MINOR,
			.context = given,
			.deleter = give_back_versioned,
			.flags = self->is_writable ? 0 : DLPACK_READ_ONLY,
			.tensor = *frag_tensor_dl(self->tensor),
		};
	else
		given->managed = (struct managed){.tensor = *frag_tensor_dl(self->tensor),
						  .context = given,
						  .deleter = give_back_managed};
	return given;
}

static PyObject *hand_out(const struct fpy_tensor *self, bool is_versioned)
{
	struct given *given = give(self, is_versioned);
	PyObject *capsule;

	if (given == NULL)
		return NULL;
	capsule = PyCapsule_New(given, is_versioned ? VERSIONED : UNVERSIONED, capsule_fini);
	if (capsule == NULL)
		give_back(given);
	return capsule;
}

/*
 * Refuses a stream on which work would not come after what writes the tensor. None is the default
 * stream; -1: the other side takes care itself. Returns 0, or -1 with an exception.
 */
static int check_stream(const struct fpy_tensor *self, PyObject *stream)
{
	void *wanted = NULL;

	if (self->stream == NULL)
		return 0;
	if (stream != Py_None) {
		if (PyLong_Check(stream) && PyLong_AsLong(stream) == -1 && PyErr_Occurred() == NULL)
			return 0;
		PyErr_Clear();
		wanted = PyLong_AsVoidPtr(stream);
		if (PyErr_Occurred() != NULL)
			return -1;
	}
	if (wanted == self->stream)
		return 0;
	PyErr_SetString(PyExc_BufferError,
			"this tensor is written on the stream of the operator: make context.stream "
			"the current one of the other library, or leave out the attribute gpu, so "
			"that receive waits for the GPU");
	return -1;
}

/* Whether a tensor is wanted on another device than its own. */
static bool is_elsewhere(struct frag_device device, PyObject *wanted)
{
	int type, id;

	if (wanted == Py_None)
		return false;
	if (!PyArg_Parse(wanted, "(ii)", &type, &id)) {
		PyErr_Clear();
		return true;
	}
	return type != (int)device.type || id != device.id;
}

/* Returns 0, or -1 with an exception. The names are nearly always the same objects. */
static int read_options(PyObject *const *values, Py_ssize_t positional, PyObject *names,
			PyObject *out[OPTIONS])
{
	const Py_ssize_t count = names != NULL ? PyTuple_Size(names) : 0;

	if (positional > 0) {
		PyErr_SetString(PyExc_TypeError, "__dlpack__ takes arguments by name only");
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *name = PyTuple_GetItem(names, i);
		int option = 0;

		while (option < OPTIONS && name != option_names[option])
			option++;
		for (int k = 0; option == OPTIONS && k < OPTIONS; k++)
			if (PyUnicode_Compare(name, option_names[k]) == 0)
				option = k;
		if (option == OPTIONS) {
			PyErr_Format(PyExc_TypeError, "__dlpack__ has no argument %S", name);
			return -1;
		}
		out[option] = values[i];
	}
	return 0;
}

PyObject *fpy_tensor_dlpack(PyObject *object, PyObject *const *values, Py_ssize_t positional,
			    PyObject *names)
{
	PyObject *options[OPTIONS] = {Py_None, Py_None, Py_None, Py_None}, *version;
	const struct fpy_tensor *self = (struct fpy_tensor *)object;
	long major = 0;

	if (read_options(values, positional, names, options) < 0)
		return NULL;
	version = options[MAX_VERSION];
	if (PyTuple_Check(version) && PyTuple_Size(version) > 0)
		major = PyLong_AsLong(PyTuple_GetItem(version, 0));
	if ((major == -1 && PyErr_Occurred() != NULL) || check_stream(self, options[STREAM]) < 0)
		return NULL;
	if (options[COPY] == Py_True ||
	    is_elsewhere(frag_tensor_dl(self->tensor)->device, options[DL_DEVICE])) {
		PyErr_SetString(PyExc_BufferError, "frag makes no copies here");
		return NULL;
	}
	if (major < 1 && !self->is_writable) {
		PyErr_SetString(PyExc_BufferError,
				"this tensor is read-only, which only DLPack 1.0 can say; ask for "
				"max_version=(1, 0)");
		return NULL;
	}
	return hand_out(self, major >= 1);
}

PyObject *fpy_tensor_dlpack_device(PyObject *self, PyObject *unused)
{
	const struct frag_dltensor *dl = frag_tensor_dl(((struct fpy_tensor *)self)->tensor);

	(void)unused;
	return Py_BuildValue("(ii)", dl->device.type, dl->device.id);
}

/*
 * What we hold of others; the last reference may be dropped on any thread, also while an exception
 * is under way, which a deleter that runs Python must not see.
 */

#define RELEASE(name, description)                                                                 \
	static void name(void *context)                                                            \
	{                                                                                          \
		description *managed = context;                                                    \
		PyObject *type, *value, *traceback;                                                \
		PyGILState_STATE state;                                                            \
                                                                                                   \
		if (managed->deleter == NULL || !Py_IsInitialized())                               \
			return;                                                                    \
		state = fpy_enter();                                                               \
		PyErr_Fetch(&type, &value, &traceback);                                            \
		managed->deleter(managed);                                                         \
		PyErr_Restore(type, value, traceback);                                             \
		fpy_leave(state);                                                                  \
	}
RELEASE(release_versioned, struct managed_versioned)
RELEASE(release, struct managed)

/* Returns what a description of another library has become; NULL with an exception. */
static struct frag_tensor *wrap(const struct frag_dltensor *dl, void (*release_fn)(void *context),
				void *managed)
{
	struct frag_tensor *tensor;
	int r = frag_tensor_wrap(dl, release_fn, managed, &tensor);

	if (r == 0)
		return tensor;
	fpy_raise(r, NULL, "this array cannot be a tensor");
	return NULL;
}

/* The table for exchange in C. Functions return 0, or -1 with an exception. */
#define TABLE "dlpack_exchange_api"
struct table {
	uint32_t major, minor;
	struct table *previous;
	int (*allocate)(struct frag_dltensor *prototype, struct managed_versioned **out,
			void *error,
			void (*set_error)(void *error, const char *kind, const char *message));
	int (*from_object)(void *object, struct managed_versioned **out);
	int (*to_object)(struct managed_versioned *managed, void **out_object);
	int (*view)(void *object, struct frag_dltensor *out);
	int (*current_stream)(int device_type, int32_t device_id, void **out_stream);
};
/* The last class that had a table, which lasts as long as the class. */
static PyObject *table_class;
static const struct table *table_of_class;

/* The last class without a table, and whether it has __dlpack__ itself, to look once. */
static PyObject *plain_class;
static bool plain_is_array;

bool fpy_is_array(PyObject *value)
{
	PyObject *class = (PyObject *)Py_TYPE(value);

	if (class == table_class || (class == plain_class && plain_is_array))
		return true;
	if (PyUnicode_Check(value) || PyLong_Check(value) || PyList_Check(value) ||
	    PyBytes_Check(value) || PyDict_Check(value) || PyTuple_Check(value))
		return false;
	return fpy_is_tensor(value) || PyObject_HasAttr(value, dlpack_name);
}

/* What an array gives; NULL with an exception. */
static PyObject *ask(PyObject *array, PyObject *keywords)
{
	PyObject *method = PyObject_GetAttr(array, dlpack_name), *capsule, *fewer;

	if (method == NULL)
		return NULL;
	capsule = PyObject_Call(method, no_arguments, keywords);
	if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
		PyErr_Clear(); /* of before DLPack 1.0 */
		fewer = PyDict_Copy(keywords);
		if (fewer != NULL && PyDict_DelItemString(fewer, "max_version") == 0)
			capsule = PyObject_Call(method, no_arguments, fewer);
		Py_XDECREF(fewer);
	}
	Py_DECREF(method);
	return capsule;
}

/* The same without a stream, as for every array in host memory. */
static PyObject *ask_plainly(PyObject *array)
{
	PyObject *const args[] = {array, plain_version};
	PyObject *capsule = call_method != NULL ? call_method(dlpack_name, args, 1, plain_names)
						: NULL,
		 *keywords;

	if (capsule != NULL || (call_method != NULL && !PyErr_ExceptionMatches(PyExc_TypeError)))
		return capsule;
	PyErr_Clear();
	keywords = Py_BuildValue("{OO}", option_names[MAX_VERSION], plain_version);
	capsule = keywords != NULL ? ask(array, keywords) : NULL;
	Py_XDECREF(keywords);
	return capsule;
}

/* The stream of the tick under way; NULL: there is none. */
static void *stream_of_tick(void)
{
	const struct fpy_op *op = fpy_op_current();

	return op != NULL ? frag_tick_stream(op->tick) : NULL;
}

/* Waits until a GPU's default stream is done. Returns 0, or -1 with an exception. */
static int wait_for_default_stream(int32_t gpu)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	Py_BEGIN_ALLOW_THREADS r = frag_stream_wait((struct frag_device){FRAG_DEVICE_CUDA, gpu},
						    FRAG_STREAM_DEFAULT, &err);
	Py_END_ALLOW_THREADS return r < 0 ? fpy_raise(r, &err, "this array lies on a GPU") : 0;
}

/*
 * The same for an array on a GPU, which its library may still write: what it gives comes after that
 * on the stream of the tick. Without one, the default stream is waited for here.
 */
static PyObject *ask_for_stream(PyObject *array, int32_t gpu)
{
	void *stream = stream_of_tick();
	PyObject *keywords = Py_BuildValue(
		"{O(ii)ON}", option_names[MAX_VERSION], DLPACK_MAJOR, 0, option_names[STREAM],
		PyLong_FromVoidPtr(stream != NULL ? stream : FRAG_STREAM_DEFAULT));
	PyObject *capsule = keywords != NULL ? ask(array, keywords) : NULL;

	Py_XDECREF(keywords);
	if (capsule != NULL && stream == NULL && wait_for_default_stream(gpu) < 0)
		Py_CLEAR(capsule);
	return capsule;
}

/* What a capsule holds. */
struct held {
	void *managed;
	bool is_versioned;
	const struct frag_dltensor *dl;
};

/* Returns 0, or -1 with an exception. */
static int look_into(PyObject *capsule, struct held *out)
{
	out->is_versioned = PyCapsule_IsValid(capsule, VERSIONED);
	out->managed = PyCapsule_GetPointer(capsule, out->is_versioned ? VERSIONED : UNVERSIONED);
	if (out->managed == NULL)
		return -1;
	out->dl = out->is_versioned ? &((struct managed_versioned *)out->managed)->tensor
				    : &((struct managed *)out->managed)->tensor;
	return 0;
}

static struct frag_tensor *take_held(PyObject *capsule, const struct held *held)
{
	struct frag_tensor *tensor =
		wrap(held->dl, held->is_versioned ? release_versioned : release, held->managed);

	if (tensor != NULL)
		PyCapsule_SetName(capsule,
				  held->is_versioned ? "used_" VERSIONED : "used_" UNVERSIONED);
	return tensor;
}

/* One on a GPU has to be asked for again, with a stream. */
static struct frag_tensor *take_by_call(PyObject *array)
{
	PyObject *capsule = ask_plainly(array);
	struct frag_tensor *tensor = NULL;
	struct held held;
	int r = capsule != NULL ? look_into(capsule, &held) : -1;

	if (r == 0 && !fpy_is_of_host(held.dl->device)) {
		const int32_t gpu = held.dl->device.id;

		Py_DECREF(capsule);
		capsule = ask_for_stream(array, gpu);
		r = capsule != NULL ? look_into(capsule, &held) : -1;
	}
	if (r == 0)
		tensor = take_held(capsule, &held);
	Py_XDECREF(capsule);
	return tensor;
}

/* Memory of the process for a tensor like the prototype. */
static int table_allocate(struct frag_dltensor *prototype, struct managed_versioned **out,
			  void *error,
			  void (*set_error)(void *error, const char *kind, const char *message))
{
	struct fpy_tensor tensor = {.is_writable = true};
	struct given *given;
	int r = frag_tensor_create_on(NULL, prototype->device, prototype->dtype, prototype->ndim,
				      prototype->shape, &tensor.tensor);

	if (r < 0) {
		set_error(error, "MemoryError", frag_strerror(r));
		return -1;
	}
	given = give(&tensor, true);
	frag_tensor_unref(tensor.tensor);
	if (given == NULL) {
		PyErr_Clear();
		set_error(error, "MemoryError", "out of memory");
		return -1;
	}
	*out = &given->versioned;
	return 0;
}

static int table_from_object(void *object, struct managed_versioned **out)
{
	struct given *given = give(object, true);

	if (given == NULL)
		return -1;
	*out = &given->versioned;
	return 0;
}

static int table_to_object(struct managed_versioned *managed, void **out_object)
{
	struct frag_tensor *tensor = wrap(&managed->tensor, release_versioned, managed);

	*out_object = tensor != NULL ? fpy_tensor_create(tensor, false) : NULL;
	return *out_object != NULL ? 0 : -1;
}

static int table_view(void *object, struct frag_dltensor *out)
{
	*out = *frag_tensor_dl(((struct fpy_tensor *)object)->tensor);
	return 0;
}

/* That of the operator whose tick is under way; none: the default stream. */
static int table_current_stream(int device_type, int32_t device_id, void **out_stream)
{
	(void)device_type;
	(void)device_id;
	*out_stream = stream_of_tick();
	return 0;
}

static struct table table = {
	.major = DLPACK_MAJOR,
	.minor = DLPACK_MINOR,
	.allocate = table_allocate,
	.from_object = table_from_object,
	.to_object = table_to_object,
	.view = table_view,
	.current_stream = table_current_stream,
};

/* The table of a class; NULL without an exception: it has none of our version. */
static const struct table *table_of(PyObject *class)
{
	PyObject *capsule = PyObject_GetAttr(class, table_name);
	const struct table *found = NULL;

	if (capsule != NULL)
		found = PyCapsule_GetPointer(capsule, TABLE);
	PyErr_Clear();
	Py_XDECREF(capsule);
	while (found != NULL && found->major != DLPACK_MAJOR)
		found = found->previous;
	return found;
}

/*
 * Takes an array by the table of its class. Without a stream in common the array may still be
 * written, so those of GPUs are asked for by __dlpack__. Returns whether it has one.
 */
static bool take_by_table(PyObject *array, struct frag_tensor **out_tensor)
{
	PyObject *class = (PyObject *)Py_TYPE(array);
	struct managed_versioned *managed = NULL;
	const struct table *found;

	if (class == plain_class)
		return false;
	found = class == table_class ? table_of_class : table_of(class);
	if (found == NULL) {
		Py_XDECREF(plain_class);
		plain_class = Py_NewRef(class);
		plain_is_array = PyObject_HasAttr(class, dlpack_name) != 0;
		return false;
	}
	if (class != table_class) {
		Py_XDECREF(table_class);
		table_class = Py_NewRef(class);
		table_of_class = found;
	}
	*out_tensor = NULL;
	if (found->from_object(array, &managed) < 0)
		return true;
	if (!fpy_is_of_host(managed->tensor.device)) {
		release_versioned(managed);
		return false;
	}
	*out_tensor = wrap(&managed->tensor, release_versioned, managed);
	if (*out_tensor == NULL)
		release_versioned(managed);
	return true;
}

/* Libraries may have written it on a GPU. Work on the stream of the tick is followed by emit. */
static struct frag_tensor *take_ours(struct fpy_tensor *self)
{
	const struct frag_device device = frag_tensor_dl(self->tensor)->device;

	if (!fpy_is_of_host(device) && stream_of_tick() == NULL &&
	    wait_for_default_stream(device.id) < 0)
		return NULL;
	self->is_writable = false;
	return frag_tensor_ref(self->tensor);
}

struct frag_tensor *fpy_tensor_take(PyObject *array)
{
	struct frag_tensor *tensor = NULL;

	if (fpy_is_tensor(array))
		return take_ours((struct fpy_tensor *)array);
	return take_by_table(array, &tensor) ? tensor : take_by_call(array);
}

int fpy_dlpack_ready(PyTypeObject *class)
{
	static const char *const names[OPTIONS] = {"stream", "max_version", "dl_device", "copy"};
	PyObject *capsule = PyCapsule_New(&table, TABLE, NULL);
	int r = -1;

	for (int i = 0; i < OPTIONS; i++) {
		option_names[i] = PyUnicode_InternFromString(names[i]);
		if (option_names[i] == NULL)
			Py_CLEAR(capsule);
	}
	dlpack_name = PyUnicode_InternFromString("__dlpack__");
	no_arguments = PyTuple_New(0);
	plain_version = Py_BuildValue("(ii)", DLPACK_MAJOR, 0);
	plain_names = Py_BuildValue("(O)", option_names[MAX_VERSION]);
	*(void **)&call_method = dlsym(RTLD_DEFAULT, "PyObject_VectorcallMethod");
	table_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
	if (capsule != NULL && dlpack_name != NULL && table_name != NULL && no_arguments != NULL &&
	    plain_version != NULL && plain_names != NULL)
		r = PyObject_SetAttr((PyObject *)class, table_name, capsule);
	Py_XDECREF(capsule);
	return r;
}
