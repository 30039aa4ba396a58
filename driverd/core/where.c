// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/identity.h>
#include <base/transports.h>
#include <base/units.h>

/*
 * Which other worker can take over a host while it runs: one that fits as at a start, and that the
 * hosts at the other ends of its flows reach over the transports that these flows have got; and why
 * some hosts have to stay where they are.
 */

static bool is_loopback(const char *host)
{
	struct fragi_address address = {0};

	snprintf(address.host, sizeof(address.host), "%s", host);
	return fragi_address_is_loopback(&address);
}

static bool reaches(const struct drv_session *session, const struct drv_host *peer,
		    const struct fragi_flow_info *flow)
{
	if (strcmp(flow->transport, FRAGI_TRANSPORT_SHM) == 0)
		return fragi_identity_apart(session->memory, peer->memory) == FRAGI_APART_NOT;
	return strcmp(session->node, peer->node) == 0 ||
	       (!is_loopback(session->worker_address) && peer->session != NULL &&
		!is_loopback(peer->session->worker_address));
}

static bool reaches_all(const struct drv_session *session, const struct drv_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *peer = drv_host_neighbour(host, i);

		if (peer != host && !reaches(session, peer, &host->app->flows[host->edges[i]]))
			return false;
	}
	return true;
}

/* The index of the worker that runs each fragment; those of the host are to be placed. */
static int *list_stays(const struct drv_host *host, const int *session_of, size_t count)
{
	const struct drv_app *app = host->app;
	const size_t fragments = app->spec->fragment_count;
	int *stays = fragi_arena_alloc(&app->core->actions->arena, fragments * sizeof(*stays));

	for (size_t f = 0; stays != NULL && f < fragments; f++) {
		const struct drv_host *other = app->fragments[f].host;
		size_t w = 0;

		while (w < count && app->core->sessions[session_of[w]] != other->session)
			w++;
		/* On a worker that is gone it has no place that could matter. */
		stays[f] = other == host || w == count ? -1 : (int)w;
	}
	return stays;
}

static bool is_of_host(const struct drv_host *host, const char *fragment)
{
	const struct fragi_spec_fragment *found =
		fragment != NULL ? fragi_strmap_get(&host->app->by_name, fragment) : NULL;

	return found != NULL &&
	       host->app->fragments[found - host->app->spec->fragments].host == host;
}

/* A fragment of another process that is to run where the host does; NULL: none. */
static const char *near_other(const struct drv_host *host)
{
	const struct drv_app *app = host->app;
	const struct fragi_spec *spec = app->spec;

	for (size_t f = 0; f < spec->fragment_count; f++) {
		const struct fragi_spec_requirements *own = &spec->fragments[f].requirements;

		for (size_t k = 0; k < own->near_count; k++) {
			const char *other = own->near[k]->text;

			if (is_of_host(host, spec->fragments[f].name) != is_of_host(host, other))
				return is_of_host(host, other) ? spec->fragments[f].name : other;
		}
	}
	return NULL;
}

const char *drv_where_keeps_process(const struct drv_host *host)
{
	const struct drv_app *app = host->app;
	const struct fragi_spec *spec = app->spec;

	if (spec->service_count != 0)
		return "the application has services, which live in one process";
	for (size_t i = 0; i < spec->variable_count; i++) {
		bool is_its = is_of_host(host, spec->variables[i].writer.fragment);

		for (size_t k = 0; k < spec->variables[i].reader_count; k++)
			is_its = is_its || is_of_host(host, spec->variables[i].readers[k].fragment);
		if (is_its)
			return drv_text(
				app->core,
				"it uses the variable %s, whose memory its process has made",
				spec->variables[i].name);
	}
	if (host->session->minor < DRV_MOVES_MINOR)
		return "that worker is of an older frag, which cannot do so";
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		if (other->session != NULL && other->session->minor < DRV_MOVES_MINOR)
			return drv_text(
				app->core,
				"worker %s, which runs %s, is of an older frag, which cannot do so",
				other->worker, other->name);
	}
	return NULL;
}

const char *drv_where_obstacle(const struct drv_host *host)
{
	const char *why = drv_where_keeps_process(host);

	return why != NULL || near_other(host) == NULL
		       ? why
		       : drv_text(host->app->core,
				  "it is to be near %s, which runs in another process",
				  near_other(host));
}

int drv_where(const struct drv_host *host, struct drv_session **out_session,
	      const char **out_reason)
{
	struct drv_app *app = host->app;
	struct drv_core *core = app->core;
	struct fragi_arena *arena = &core->actions->arena;
	struct drv_place *places =
		fragi_arena_alloc(arena, app->spec->fragment_count * sizeof(*places));
	struct drv_place_worker *workers;
	int *session_of, *stays, r;
	size_t count;

	*out_session = NULL;
	if (places == NULL ||
	    drv_start_workers(core, app->spec->fragment_count, &workers, &session_of, &count) < 0)
		return -ENOMEM;
	stays = list_stays(host, session_of, count);
	if (stays == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < count; w++) {
		const struct drv_session *session = core->sessions[session_of[w]];

		workers[w].is_out_of_reach =
			session->minor < DRV_MOVES_MINOR || !reaches_all(session, host);
		if (session == host->session) /* what it names is for others now */
			workers[w].fragment_count = 0;
	}
	r = drv_place_rest(app->spec, workers, count, stays, arena, places);
	if (r < 0)
		return r;
	*out_reason = places[host->fragments[0]].reason;
	if (places[host->fragments[0]].worker >= 0)
		*out_session = core->sessions[session_of[places[host->fragments[0]].worker]];
	return 0;
}
