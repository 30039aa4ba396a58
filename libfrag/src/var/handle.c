// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <base/units.h>
#include <data/tensor.h>
#include <var/variable.h>

#define SLICE_NS 20000000 /* of a wait, between two looks whether the application stops */
#define BUSY_NS 500000    /* between two tries to write what readers have: nobody reports it */

/* Opening. */

static bool is_party(const struct fragi_spec_party *party, const struct frag_op *op)
{
	return party->fragment != NULL && strcmp(party->fragment, op->fragment->name) == 0 &&
	       (party->op == NULL || strcmp(party->op, op->name) == 0);
}

static bool may_write(const struct fragi_spec_variable *spec, const struct frag_op *op)
{
	return is_party(&spec->writer, op);
}

static bool may_read(const struct fragi_spec_variable *spec, const struct frag_op *op)
{
	for (size_t i = 0; i < spec->reader_count; i++)
		if (is_party(&spec->readers[i], op))
			return true;
	return may_write(spec, op);
}

static const struct fragi_spec_variable *find_spec(const struct frag_op *op, const char *name)
{
	const struct fragi_spec *spec = op->fragment->spec;

	for (size_t i = 0; spec != NULL && name != NULL && i < spec->variable_count; i++)
		if (strcmp(spec->variables[i].name, name) == 0)
			return &spec->variables[i];
	return NULL;
}

const char *frag_variable_path(struct frag_op *op, const char *name)
{
	const struct fragi_spec_variable *spec = find_spec(op, name);

	return spec != NULL && may_read(spec, op) ? spec->path : NULL;
}

/* With the lock. */
static int get_handle(struct fragi_variable *variable, struct frag_op *op,
		      struct frag_variable **out)
{
	struct fragi_variables *variables = variable->variables;
	struct frag_variable *handle = variables->handles;

	while (handle != NULL && (handle->op != op || handle->variable != variable))
		handle = handle->next;
	if (handle == NULL) {
		handle = fragi_calloc(1, sizeof(*handle));
		if (handle == NULL)
			return -ENOMEM;
		handle->op = op;
		handle->variable = variable;
		handle->may_write = variable->spec != NULL ? may_write(variable->spec, op)
							   : variable->creator == op;
		handle->may_read = variable->spec == NULL || may_read(variable->spec, op);
		handle->next = variables->handles;
		variables->handles = handle;
	}
	*out = handle;
	return 0;
}

/* One that an operator of another process has created. */
static int get_created(struct fragi_variables *variables, const char *name, struct frag_op *op,
		       struct frag_variable **out)
{
	struct fragi_variable_memory memory;
	struct fragi_variable *variable;
	int r;

	fragi_variable_memory_init(&memory);
	r = variables->config.key != NULL ? fragi_variable_request(variables, name, &memory)
					  : -ENOENT;
	if (r < 0)
		return r;
	pthread_mutex_lock(&variables->lock);
	variable = fragi_variables_find(variables, name);
	if (variable == NULL) {
		r = fragi_variables_add(variables, name, &variable);
		if (r == 0) {
			variable->memory = memory;
			variable->is_visible = true;
			fragi_variable_memory_init(&memory);
		}
	}
	if (r == 0)
		r = get_handle(variable, op, out);
	pthread_mutex_unlock(&variables->lock);
	fragi_variable_memory_fini(&memory); /* another operator was faster */
	return r;
}

static int refuse_early(struct frag_op *op)
{
	return frag_op_fail(op, -EINVAL,
			    "setup has no variables; open and create them in initialize");
}

int frag_variable_open(struct frag_op *op, const char *name, struct frag_variable **out)
{
	struct fragi_variables *variables = op->fragment->variables;
	const struct fragi_spec_variable *spec = find_spec(op, name);
	struct fragi_variable *variable;
	int r = -ENOENT;

	if (variables == NULL)
		return refuse_early(op);
	if (name == NULL || !fragi_name_is_valid(name))
		return frag_op_fail(op, -ENOENT, "there is no variable \"%.80s\"",
				    name != NULL ? name : "");
	if (spec != NULL && (spec->path != NULL || !may_read(spec, op)))
		return frag_op_fail(
			op, -EACCES,
			spec->path != NULL
				? "variable %s is a path: get it with frag_variable_path"
				: "the graph names this operator neither as the writer nor as a reader of variable %s; add it there",
			name);
	pthread_mutex_lock(&variables->lock);
	variable = fragi_variables_find(variables, name);
	if (variable != NULL && (variable->is_visible || variable->creator == op))
		r = get_handle(variable, op, out);
	pthread_mutex_unlock(&variables->lock);
	if (r == -ENOENT && variable == NULL)
		r = get_created(variables, name, op, out);
	if (r == 0)
		return 0;
	return frag_op_fail(op, r,
			    r == -ENOENT
				    ? "no variable %s is declared, nor published on this machine"
				    : "cannot open variable %s (%s)",
			    name, frag_strerror(r));
}

int frag_variable_create(struct frag_op *op, const char *name, struct frag_variable **out)
{
	struct fragi_variables *variables = op->fragment->variables;
	struct fragi_variable *variable;
	int r;

	if (variables == NULL)
		return refuse_early(op);
	if (name == NULL || !fragi_name_is_valid(name))
		return frag_op_fail(op, -EINVAL,
				    "cannot create a variable \"%.80s\": that is no name",
				    name != NULL ? name : "");
	pthread_mutex_lock(&variables->lock);
	r = find_spec(op, name) != NULL || fragi_variables_find(variables, name) != NULL ? -EEXIST
											 : 0;
	if (r == 0)
		r = fragi_variables_add(variables, name, &variable);
	if (r == 0) {
		variable->creator = op;
		r = get_handle(variable, op, out);
		if (r < 0)
			fragi_variables_remove_first(variables);
	}
	pthread_mutex_unlock(&variables->lock);
	if (r == 0)
		return 0;
	return frag_op_fail(op, r, "cannot create variable %s (%s)", name,
			    r == -ENOSPC   ? "this process has as many as it may have"
			    : r == -EEXIST ? "there is one of that name"
					   : frag_strerror(r));
}

/* What may be written. */

static int refuse_write(const struct frag_variable *handle)
{
	return frag_op_fail(
		handle->op, -EACCES,
		handle->variable->spec != NULL
			? "variable %s is not for this operator to write: its writer in the graph is another"
			: "variable %s is not for this operator to write: another one created it",
		handle->variable->name);
}

/* With the lock: alone, for the writer. */
static int try_write(struct fragi_variable *variable)
{
	if (variable->writer != NULL || variable->readers > 0)
		return -EBUSY;
	return fragi_variable_memory_lock(&variable->memory, true);
}

static bool fits_spec(const struct fragi_spec_variable *spec, struct frag_dtype dtype, int32_t ndim,
		      const int64_t *shape)
{
	if (memcmp(&dtype, &spec->dtype, sizeof(dtype)) != 0 || ndim != spec->ndim)
		return false;
	for (int32_t i = 0; i < ndim; i++)
		if (spec->shape[i] >= 0 && shape[i] != spec->shape[i])
			return false;
	return true;
}

/* With the lock. */
static int allocate(struct fragi_variable *variable, struct frag_dtype dtype, int32_t ndim,
		    const int64_t *shape, size_t bytes)
{
	struct fragi_variable_memory *memory = &variable->memory;
	int r;

	if (variable->spec == NULL && memory->fd >= 0)
		return -EBUSY;
	if (variable->spec == NULL) {
		r = fragi_variable_memory_create(memory, bytes > 0 ? bytes : 1);
		if (r < 0)
			return r;
	} else if (bytes > memory->size) {
		return -EMSGSIZE;
	}
	r = try_write(variable);
	if (r < 0)
		return r;
	fragi_variable_memory_publish(memory, 0);
	memory->own->dtype = dtype;
	memory->own->ndim = ndim;
	if (ndim > 0)
		memcpy(memory->own->shape, shape, (size_t)ndim * sizeof(*shape));
	fragi_variable_memory_unlock(memory);
	return 0;
}

int frag_variable_allocate(struct frag_variable *handle, struct frag_dtype dtype, int32_t ndim,
			   const int64_t *shape)
{
	struct fragi_variable *variable = handle->variable;
	size_t bytes;
	int r;

	if (!handle->may_write)
		return refuse_write(handle);
	r = dtype.lanes == 1 ? fragi_tensor_measure(dtype, ndim, shape, &bytes) : -EINVAL;
	if (r == 0 && variable->spec != NULL && !fits_spec(variable->spec, dtype, ndim, shape))
		return frag_op_fail(
			handle->op, -EINVAL,
			"cannot allocate variable %s: the graph declares another type or shape",
			variable->name);
	if (r == 0) {
		pthread_mutex_lock(&variable->variables->lock);
		r = allocate(variable, dtype, ndim, shape, bytes);
		pthread_mutex_unlock(&variable->variables->lock);
	}
	if (r == 0)
		return 0;
	return frag_op_fail(handle->op, r, "cannot allocate variable %s (%s)", variable->name,
			    r == -EBUSY      ? "it is mapped, or was allocated before"
			    : r == -EMSGSIZE ? "it is larger than the memory of this machine"
					     : frag_strerror(r));
}

/* Mapping. */

/* With the lock: what its page says, as far as it can be believed. */
static int describe(struct frag_variable *handle, const void *data)
{
	const struct fragi_variable *variable = handle->variable;
	const struct fragi_variable_page *page = variable->memory.page;
	struct frag_dltensor *dl = &handle->dl;
	int64_t stride = 1;
	size_t bytes;

	*dl = (struct frag_dltensor){
		.data = (void *)(uintptr_t)data,
		.device = {FRAG_DEVICE_CPU, 0},
		.dtype = page->dtype,
		.ndim = page->ndim,
		.shape = handle->shape,
		.strides = handle->strides,
	};
	if (dl->ndim < 0)
		return variable->memory.own != NULL ? -EINVAL : -EBADMSG;
	if (dl->ndim > FRAG_TENSOR_NDIM_MAX)
		return -EBADMSG;
	memcpy(handle->shape, page->shape, sizeof(handle->shape));
	if (dl->dtype.lanes != 1 ||
	    fragi_tensor_measure(dl->dtype, dl->ndim, handle->shape, &bytes) < 0 ||
	    bytes > variable->memory.size ||
	    (variable->spec != NULL &&
	     !fits_spec(variable->spec, dl->dtype, dl->ndim, handle->shape)))
		return -EBADMSG;
	for (int32_t i = dl->ndim; i-- > 0;) {
		handle->strides[i] = stride;
		stride *= handle->shape[i] > 0 ? handle->shape[i] : 1;
	}
	return 0;
}

/* With the lock. */
static int map_to_write(struct frag_variable *handle)
{
	struct fragi_variable *variable = handle->variable;
	int r = try_write(variable);

	if (r < 0)
		return r;
	r = describe(handle, (uint8_t *)variable->memory.own + FRAGI_VARIABLE_DATA_AT);
	if (r < 0) {
		fragi_variable_memory_unlock(&variable->memory);
		return r;
	}
	atomic_store_explicit(&variable->memory.own->writing, 1, memory_order_relaxed);
	fragi_variable_memory_publish(&variable->memory, 0);
	variable->writer = handle;
	return 0;
}

/* Whether there is something to read. Who only waits for it must not lock the writer out. */
static int look(const struct fragi_variable_page *page)
{
	if (atomic_load_explicit(&page->version, memory_order_acquire) != 0)
		return 0;
	return atomic_load_explicit(&page->writing, memory_order_relaxed) != 0 ? -EBUSY : -EAGAIN;
}

/* With the lock. The first reader of a process takes the lock of the file for all of them. */
static int map_to_read(struct frag_variable *handle)
{
	struct fragi_variable *variable = handle->variable;
	const struct fragi_variable_page *page = variable->memory.page;
	int r = look(page);

	if (r == 0 && variable->readers == 0)
		r = fragi_variable_memory_lock(&variable->memory, false);
	if (r < 0)
		return r;
	r = look(page);
	if (r == 0)
		r = describe(handle, (const uint8_t *)page + FRAGI_VARIABLE_DATA_AT);
	if (r == 0)
		variable->readers++;
	else if (variable->readers == 0)
		fragi_variable_memory_unlock(&variable->memory);
	return r;
}

static bool is_stopping(const struct fragi_variables *variables)
{
	struct pollfd stop = {.fd = variables->config.stop_fd, .events = POLLIN};

	return stop.fd >= 0 && poll(&stop, 1, 0) > 0;
}

/*
 * Sleeps after a try that has failed. Returns 0: to be tried again; or why not. try: -EAGAIN or
 * -EBUSY; a change that was not seen before ends the sleep, but for a writer.
 */
static int wait_a_little(const struct frag_variable *handle, enum frag_variable_access access,
			 uint32_t changes, int64_t end_ns)
{
	int64_t left_ns = end_ns - fragi_now_ns();
	const struct timespec busy = {0, BUSY_NS};

	if (is_stopping(handle->variable->variables))
		return -ECANCELED;
	if (left_ns <= 0)
		return -ETIMEDOUT;
	if (access == FRAG_VARIABLE_WRITE)
		nanosleep(&busy, NULL);
	else
		fragi_variable_memory_wait(&handle->variable->memory, changes,
					   left_ns < SLICE_NS ? left_ns : SLICE_NS);
	return 0;
}

static int64_t end_of(int64_t timeout_ns)
{
	int64_t now_ns = fragi_now_ns();

	return timeout_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + timeout_ns;
}

static int fail_to_map(const struct frag_variable *handle, enum frag_variable_access access, int r)
{
	const char *name = handle->variable->name;
	bool writes = access == FRAG_VARIABLE_WRITE;

	switch (r) {
	case -EAGAIN:
		return frag_op_fail(handle->op, r,
				    "variable %s cannot be read: nothing is published", name);
	case -EBUSY:
		return frag_op_fail(
			handle->op, r,
			writes ? "variable %s cannot be written: another operator has it mapped"
			       : "variable %s cannot be read: it is being written",
			name);
	case -ETIMEDOUT:
		return frag_op_fail(handle->op, r,
				    writes ? "variable %s was not free to be written in time"
					   : "variable %s was not published in time",
				    name);
	case -EBADMSG:
		return frag_op_fail(
			handle->op, r,
			"variable %s is not what the graph declares: its writer's host has written beside it",
			name);
	default:
		return frag_op_fail(handle->op, r, "cannot map variable %s (%s)", name,
				    frag_strerror(r));
	}
}

int frag_variable_map(struct frag_variable *handle, enum frag_variable_access access,
		      int64_t timeout_ns, const struct frag_dltensor **out)
{
	struct fragi_variable *variable = handle->variable;
	int64_t end_ns = end_of(timeout_ns);
	uint32_t changes;
	int r;

	if (access != FRAG_VARIABLE_READ && access != FRAG_VARIABLE_WRITE)
		return frag_op_fail(handle->op, -EINVAL,
				    "cannot map variable %s: access %d is unknown", variable->name,
				    (int)access);
	if (access == FRAG_VARIABLE_WRITE && !handle->may_write)
		return refuse_write(handle);
	if (handle->mapped != 0)
		return frag_op_fail(
			handle->op, -EINVAL,
			"cannot map variable %s: this operator has mapped it; unmap it first",
			variable->name);
	if (variable->memory.fd < 0)
		return frag_op_fail(handle->op, variable->creator != NULL ? -EINVAL : -EAGAIN,
				    variable->creator != NULL
					    ? "cannot map variable %s: it was not allocated"
					    : "variable %s can be read from start on",
				    variable->name);
	do {
		changes =
			atomic_load_explicit(&variable->memory.page->changes, memory_order_acquire);
		pthread_mutex_lock(&variable->variables->lock);
		r = access == FRAG_VARIABLE_WRITE ? map_to_write(handle) : map_to_read(handle);
		if (r == 0) {
			handle->mapped = access;
			*out = &handle->dl;
		}
		pthread_mutex_unlock(&variable->variables->lock);
		if (r == 0)
			return 0;
		if ((r == -EAGAIN || r == -EBUSY) && timeout_ns > 0)
			r = wait_a_little(handle, access, changes, end_ns);
	} while (r == 0);
	return fail_to_map(handle, access, r);
}

int frag_variable_unmap(struct frag_variable *handle)
{
	struct fragi_variable *variable = handle->variable;

	if (handle->mapped == 0)
		return frag_op_fail(handle->op, -EINVAL, "variable %s is not mapped",
				    variable->name);
	pthread_mutex_lock(&variable->variables->lock);
	if (handle->mapped == FRAG_VARIABLE_WRITE) {
		atomic_store_explicit(&variable->memory.own->writing, 0, memory_order_relaxed);
		variable->writer = NULL;
	} else {
		variable->readers--;
	}
	if (variable->readers == 0)
		fragi_variable_memory_unlock(&variable->memory);
	handle->mapped = 0;
	pthread_mutex_unlock(&variable->variables->lock);
	return 0;
}

/* Publishing. */

/* With the lock. */
static int publish(struct fragi_variable *variable)
{
	int r;

	if (variable->memory.own == NULL || variable->memory.own->ndim < 0)
		return -EINVAL;
	if (variable->writer != NULL)
		return -EBUSY;
	if (variable->creator != NULL && variable->listener < 0 &&
	    variable->variables->config.key != NULL) {
		r = fragi_variable_server_add(variable->variables, variable);
		if (r < 0)
			return r == -EADDRINUSE ? -EEXIST : r;
	}
	variable->is_visible = true;
	fragi_variable_memory_publish(&variable->memory, ++variable->version);
	return 0;
}

int frag_variable_publish(struct frag_variable *handle)
{
	struct fragi_variable *variable = handle->variable;
	int r;

	if (!handle->may_write)
		return refuse_write(handle);
	pthread_mutex_lock(&variable->variables->lock);
	r = publish(variable);
	pthread_mutex_unlock(&variable->variables->lock);
	if (r == 0)
		return 0;
	return frag_op_fail(handle->op, r, "cannot publish variable %s (%s)", variable->name,
			    r == -EINVAL   ? "it was not allocated"
			    : r == -EBUSY  ? "it is being written; unmap it first"
			    : r == -EEXIST ? "an operator elsewhere has published one of that name"
					   : frag_strerror(r));
}

int frag_variable_wait(struct frag_variable *handle, uint64_t after, int64_t timeout_ns,
		       uint64_t *out_version)
{
	struct fragi_variable *variable = handle->variable;
	int64_t end_ns = end_of(timeout_ns);
	uint32_t changes;
	uint64_t version;
	int r = 0;

	if (variable->memory.fd < 0)
		return frag_op_fail(handle->op, -EAGAIN,
				    "variable %s can be waited for from start on", variable->name);
	while (r == 0) {
		changes =
			atomic_load_explicit(&variable->memory.page->changes, memory_order_acquire);
		version =
			atomic_load_explicit(&variable->memory.page->version, memory_order_acquire);
		if (version > after) {
			if (out_version != NULL)
				*out_version = version;
			return 0;
		}
		r = timeout_ns > 0 ? wait_a_little(handle, FRAG_VARIABLE_READ, changes, end_ns)
				   : -EAGAIN;
	}
	return frag_op_fail(handle->op, r, "variable %s has no publication after %" PRIu64 " (%s)",
			    variable->name, after, frag_strerror(r));
}
