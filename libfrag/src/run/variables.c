// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <run/state.h>

/* The shared variables that the graph declares, as far as this process writes or reads them. */

/* Whether no other process has a part of the application. */
static bool is_whole(const struct fragi_run *run)
{
	const struct fragi_spec *spec = run->config.spec;

	for (size_t i = 0; i < spec->fragment_count; i++)
		if (!fragi_run_has_fragment(run, spec->fragments[i].name))
			return false;
	return true;
}

static bool is_here(const struct fragi_run *run, const struct fragi_spec_party *party)
{
	return party->fragment != NULL && fragi_run_has_fragment(run, party->fragment);
}

static bool is_read(const struct fragi_run *run, const struct fragi_spec_variable *variable,
		    bool here)
{
	for (size_t i = 0; i < variable->reader_count; i++)
		if (is_here(run, &variable->readers[i]) == here)
			return true;
	return false;
}

static int declare(struct fragi_run *run, const struct fragi_spec_variable *variable,
		   struct fragi_diag *diag)
{
	struct frag_err err = FRAG_ERR_INIT;
	bool written = is_here(run, &variable->writer);
	int r = 0;

	if (variable->path == NULL && (written || is_read(run, variable, true)))
		r = fragi_variables_declare(run->variables, variable, written,
					    is_read(run, variable, false), &err);
	return r < 0 ? fragi_diag_add_err(diag, &err) : 0;
}

int fragi_run_declare_variables(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	const struct fragi_variables_config config = {
		.spec = spec,
		.key = is_whole(run) ? NULL : run->config.variables_key,
		.stop_fd = run->stop_fd,
	};
	int r = fragi_variables_create(&config, &run->variables);

	for (size_t i = 0; r == 0 && i < run->fragment_count; i++)
		run->fragments[i].fragment->variables = run->variables;
	for (size_t i = 0; r == 0 && i < spec->variable_count; i++)
		r = declare(run, &spec->variables[i], diag);
	return r;
}

/* Whether one that is read here is made by another host. */
static bool is_fetched(const struct fragi_run *run, const struct fragi_spec_variable *variable)
{
	return variable->path == NULL && !is_here(run, &variable->writer) &&
	       is_read(run, variable, true);
}

bool fragi_run_wire_may_wait(const struct fragi_run *run)
{
	const struct fragi_spec *spec = run->config.spec;
	bool fetches = false;

	for (size_t i = 0; i < spec->variable_count; i++)
		fetches = fetches || is_fetched(run, &spec->variables[i]);
	return fetches || fragi_run_service_count(run) > 0;
}

int fragi_run_fetch_variables(struct fragi_run *run, struct frag_err *err)
{
	const struct fragi_spec *spec = run->config.spec;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->variable_count; i++)
		if (is_fetched(run, &spec->variables[i]))
			r = fragi_variables_fetch(run->variables, spec->variables[i].name, err);
	return r;
}
