// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/transports.h>
#include <graph/transport.h>
#include <text/node.h>

/*
 * How the flows between fragments travel, and whether their variables can be shared: decided as
 * soon as it is known where they run.
 */

static struct drv_host *host_of(const struct drv_app *app, const char *name)
{
	const struct fragi_spec_fragment *fragment = fragi_strmap_get(&app->by_name, name);

	return app->fragments[fragment - app->spec->fragments].host;
}

struct fragi_fragment_info drv_transports_info(const struct drv_host *host)
{
	return (struct fragi_fragment_info){.host = host->number, .memory = host->first_memory};
}

/* The names lie in the table of transports, or in the spec. */
static void open_in(struct drv_host *host, const struct drv_host *peer,
		    const struct fragi_choice *choice)
{
	const char *transport = choice->transport;

	for (uint32_t i = 0; i < host->transport_count; i++)
		if (strcmp(host->transports[i], transport) == 0)
			return;
	host->transports[host->transport_count++] = transport;
	drv_log(host->app->core, FRAGI_LOG_DEBUG, host->app->spec->application,
		"%s opens the transport %s for flows with %s: %s", host->name, transport,
		peer->name, choice->reason);
}

/* Why the hosts of a worker share no memory, as it says itself. */
static const char *reason_of(const struct drv_host *host)
{
	return host->no_memory[0] != '\0' ? host->no_memory : "its log says why";
}

/*
 * Logs why the host shares no memory: if the graph leaves the transport to the driver, flows go
 * another way, and people would not see why.
 */
static void note_no_memory(struct drv_host *host)
{
	if (host->no_memory[0] == '\0' || host->noted_no_memory)
		return;
	host->noted_no_memory = true;
	drv_log(host->app->core, FRAGI_LOG_INFO, host->app->spec->application,
		"%s on worker %s shares no memory with other hosts: %s", host->name, host->worker,
		host->no_memory);
}

/* Part of a sentence: why two hosts do not share memory, and what to do; instead: one of two. */
static const char *explain(struct drv_core *core, enum fragi_apart apart,
			   const struct drv_host *from, const struct drv_host *to,
			   const char *instead)
{
	const struct drv_host *unknown = from->memory[0] == '\0' ? from : to;

	switch (apart) {
	case FRAGI_APART_MACHINE:
		return drv_text(
			core,
			"worker %s and worker %s are on two machines; %s, or give both fragments to workers of one machine",
			from->worker, to->worker, instead);
	case FRAGI_APART_NETWORK:
		return drv_text(
			core,
			"worker %s and worker %s are in two network namespaces, as two containers are; %s, or start both workers in one",
			from->worker, to->worker, instead);
	case FRAGI_APART_USER:
		return drv_text(
			core,
			"worker %s and worker %s run their hosts as two users; %s, or start both with one --host-user",
			from->worker, to->worker, instead);
	default:
		return drv_text(core, "worker %s shares none: %s; %s, or remove that reason",
				unknown->worker, reason_of(unknown), instead);
	}
}

static void refuse(struct drv_app *app, const struct fragi_spec_flow *flow,
		   const struct fragi_spec_end *to, enum fragi_apart apart)
{
	const struct fragi_spec_end *from = &flow->from;
	const size_t first = app->diag.count;

	(void)fragi_node_error(
		&app->diag, to->place != NULL ? to->place : flow->place, NULL,
		"flow %s.%s%s%s -> %s.%s%s%s: edge %s needs hosts that share memory, but %s",
		from->fragment, from->op, from->port != NULL ? "." : "",
		from->port != NULL ? from->port : "", to->fragment, to->op,
		to->port != NULL ? "." : "", to->port != NULL ? to->port : "", flow->edge,
		explain(app->core, apart, host_of(app, from->fragment), host_of(app, to->fragment),
			"leave edge out"));
	fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_MEMORY_NOT_SHARED, NULL);
}

static void choose(struct drv_app *app, const struct fragi_spec_flow *flow,
		   const struct fragi_spec_end *to_end)
{
	struct drv_host *from = host_of(app, flow->from.fragment),
			*to = host_of(app, to_end->fragment);
	const struct fragi_fragment_info sender = drv_transports_info(from),
					 receiver = drv_transports_info(to);
	const struct fragi_choice choice = fragi_transport_choose(flow->edge, &sender, &receiver);

	if (choice.transport == NULL)
		return;
	if (choice.apart != FRAGI_APART_NOT) {
		refuse(app, flow, to_end, choice.apart);
		return;
	}
	if (flow->edge == NULL || !fragi_transport_exists(flow->edge)) {
		note_no_memory(from);
		note_no_memory(to);
	}
	open_in(from, to, &choice);
	open_in(to, from, &choice);
}

/* Hosts of a shared variable cannot do without. */
static void check_reader(struct drv_app *app, const struct fragi_spec_variable *variable,
			 const struct fragi_spec_party *reader)
{
	const struct drv_host *from = host_of(app, variable->writer.fragment);
	const struct drv_host *to = host_of(app, reader->fragment);
	const size_t first = app->diag.count;
	enum fragi_apart apart;

	if (from == to)
		return;
	apart = fragi_identity_apart(from->first_memory, to->first_memory);
	if (apart == FRAGI_APART_NOT)
		return;
	(void)fragi_node_error(&app->diag, reader->place, NULL,
			       "variable %s of fragment %s cannot be read by fragment %s: %s",
			       variable->name, variable->writer.fragment, reader->fragment,
			       explain(app->core, apart, from, to, "send it over a flow"));
	fragi_diag_classify(&app->diag, first, FRAGI_FAILURE_MEMORY_NOT_SHARED, NULL);
}

int drv_transports_choose(struct drv_app *app)
{
	const struct fragi_spec *spec = app->spec;

	for (size_t i = 0; i < spec->flow_count; i++)
		for (size_t k = 0; k < spec->flows[i].to_count; k++)
			choose(app, &spec->flows[i], &spec->flows[i].to[k]);
	for (size_t i = 0; i < spec->variable_count; i++)
		for (size_t k = 0; k < spec->variables[i].reader_count; k++)
			if (spec->variables[i].path == NULL)
				check_reader(app, &spec->variables[i],
					     &spec->variables[i].readers[k]);
	return app->diag.count != 0 ? -EINVAL : 0;
}
