// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/failure.h>
#include <data/tensor.h>
#include <var/variable.h>

int fragi_variables_create(const struct fragi_variables_config *config,
			   struct fragi_variables **out_variables)
{
	struct fragi_variables *variables = fragi_calloc(1, sizeof(*variables));

	if (variables == NULL)
		return -ENOMEM;
	variables->config = *config;
	variables->server.epoll = variables->server.stop = -1;
	pthread_mutex_init(&variables->lock, NULL);
	*out_variables = variables;
	return 0;
}

void fragi_variables_remove_first(struct fragi_variables *variables)
{
	struct fragi_variable *variable = variables->first;

	assert(variable != NULL && variables->count > 0);
	variables->first = variable->next;
	variables->count--;
	fragi_variable_memory_fini(&variable->memory);
	if (variable->listener >= 0)
		close(variable->listener);
	fragi_free(variable->name);
	fragi_free(variable);
}

void fragi_variables_destroy(struct fragi_variables *variables)
{
	struct frag_variable *next;

	if (variables == NULL)
		return;
	fragi_variable_server_close(variables);
	while (variables->first != NULL)
		fragi_variables_remove_first(variables);
	for (struct frag_variable *handle = variables->handles; handle != NULL; handle = next) {
		next = handle->next;
		fragi_free(handle);
	}
	pthread_mutex_destroy(&variables->lock);
	fragi_free(variables);
}

struct fragi_variable *fragi_variables_find(const struct fragi_variables *variables,
					    const char *name)
{
	struct fragi_variable *variable = variables->first;

	while (variable != NULL && strcmp(variable->name, name) != 0)
		variable = variable->next;
	return variable;
}

int fragi_variables_add(struct fragi_variables *variables, const char *name,
			struct fragi_variable **out_variable)
{
	struct fragi_variable *variable;

	if (variables->count == FRAG_VARIABLES_MAX)
		return -ENOSPC;
	variable = fragi_calloc(1, sizeof(*variable));
	if (variable == NULL)
		return -ENOMEM;
	variable->name = fragi_strdup(name);
	if (variable->name == NULL) {
		fragi_free(variable);
		return -ENOMEM;
	}
	variable->variables = variables;
	variable->listener = -1;
	fragi_variable_memory_init(&variable->memory);
	variable->next = variables->first;
	variables->first = variable;
	variables->count++;
	*out_variable = variable;
	return 0;
}

/* Its memory, and what is known of what it will hold. */
static int make_memory(struct fragi_variable *variable)
{
	const struct fragi_spec_variable *spec = variable->spec;
	struct fragi_variable_page *page;
	size_t bytes = 0;
	int r = 0;

	if (!spec->is_dynamic)
		r = fragi_tensor_measure(spec->dtype, spec->ndim, spec->shape, &bytes);
	if (r == 0)
		r = fragi_variable_memory_create(&variable->memory, bytes);
	if (r < 0)
		return r;
	page = variable->memory.own;
	page->dtype = spec->dtype;
	page->ndim = spec->is_dynamic ? -1 : spec->ndim;
	memcpy(page->shape, spec->shape, sizeof(page->shape));
	return 0;
}

int fragi_variables_declare(struct fragi_variables *variables,
			    const struct fragi_spec_variable *spec, bool written_here,
			    bool read_elsewhere, struct frag_err *err)
{
	struct fragi_variable *variable;
	int r;

	pthread_mutex_lock(&variables->lock);
	r = fragi_variables_add(variables, spec->name, &variable);
	if (r == 0) {
		variable->spec = spec;
		variable->is_visible = true;
		if (written_here)
			r = make_memory(variable);
		if (r == 0 && written_here && read_elsewhere && variables->config.key != NULL)
			r = fragi_variable_server_add(variables, variable);
	}
	pthread_mutex_unlock(&variables->lock);
	if (r == 0)
		return 0;
	return fragi_err_fail(
		err, r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY : FRAGI_FAILURE_SYSTEM_REFUSED,
		NULL, r, "cannot make the shared memory of variable %s (%s)%s", spec->name,
		frag_strerror(r),
		r == -EMSGSIZE ? "; this machine, or ulimit, has less memory" : "");
}

int fragi_variables_fetch(struct fragi_variables *variables, const char *name, struct frag_err *err)
{
	struct fragi_variable *variable = fragi_variables_find(variables, name);
	const char *writer = variable->spec->writer.fragment;
	int r = variables->config.key != NULL
			? fragi_variable_request(variables, name, &variable->memory)
			: -ENOENT;

	if (r == 0)
		return 0;
	return fragi_err_fail(
		err, FRAGI_FAILURE_MEMORY_NOT_SHARED, NULL, r,
		"cannot map variable %s of fragment %s (%s); %s", name, writer,
		r == -ENOENT       ? "its host is not on this machine"
		: r == -EACCES     ? "its host runs as another user"
		: r == -ECONNRESET ? "its host did not hand it over"
				   : frag_strerror(r),
		r == -ECONNRESET
			? "the log of that host says why"
			: "run both fragments on one machine, as one user and in one network namespace, or use a flow");
}
