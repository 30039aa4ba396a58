// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/identity.h>
#include <base/transports.h>
#include <base/units.h>

/*
 * The candidates: workers that can take over a host, while it runs (move.c) or when it has ended
 * (migrate.c). A candidate fits as at a start, the hosts at the other ends of its flows reach it
 * over the transports that these flows have got, and what the host shares with others can be
 * reached from it. Some hosts have to stay on their worker as long as they run: they have an
 * obstacle.
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
	if (fragi_transport_shares_memory(flow->transport))
		return fragi_identity_apart(session->memory, peer->memory) == FRAGI_APART_NOT;
	return strcmp(session->node, peer->node) == 0 ||
	       (!is_loopback(session->worker_address) &&
		!is_loopback(peer->now.session->worker_address));
}

static bool reaches_all(const struct drv_session *session, const struct drv_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *peer = drv_host_neighbour(host, i);

		/* A peer that waits for a worker itself goes where this host is (find_sharer). */
		if (peer != host && peer->now.session != NULL &&
		    !reaches(session, peer, &host->app->flows.items[host->edges[i]]))
			return false;
	}
	return true;
}

/*
 * A host whose memory this one is to share: over a flow between them, or over those of hosts in
 * between that wait for a worker themselves. NULL: there is none. Returns 0 or -ENOMEM.
 */
static int find_sharer(const struct drv_host *host, const struct drv_host **out_sharer)
{
	const struct drv_app *app = host->app;
	struct fragi_arena *arena = &app->core->actions->arena;
	const struct drv_host **found = fragi_arena_alloc(arena, app->host_count * sizeof(*found));
	bool *is_found = fragi_arena_alloc(arena, app->host_count + 1);
	uint32_t count = 0;

	if (found == NULL || is_found == NULL)
		return -ENOMEM;
	*out_sharer = NULL;
	is_found[host->number] = true;
	found[count++] = host;
	for (uint32_t k = 0; k < count; k++) {
		for (uint32_t i = 0; i < found[k]->edge_count; i++) {
			const struct drv_host *peer = drv_host_neighbour(found[k], i);

			if (is_found[peer->number] ||
			    !fragi_transport_shares_memory(
				    app->flows.items[found[k]->edges[i]].transport))
				continue;
			if (peer->now.session != NULL) {
				*out_sharer = peer;
				return 0;
			}
			is_found[peer->number] = true;
			found[count++] = peer;
		}
	}
	return 0;
}

static bool shares(const struct drv_session *session, const struct drv_host *sharer)
{
	return sharer == NULL ||
	       fragi_identity_apart(session->memory, sharer->memory) == FRAGI_APART_NOT;
}

bool drv_candidate_may_stay(const struct drv_host *host)
{
	const struct drv_host *sharer;

	return find_sharer(host, &sharer) < 0 || shares(host->now.session, sharer);
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

		while (w < count && app->core->sessions[session_of[w]] != other->now.session)
			w++;
		/* On a worker that is gone it has no place that could matter. */
		stays[f] = other == host || w == count ? -1 : (int)w;
	}
	return stays;
}

static bool is_of_host(const struct drv_host *host, const char *fragment)
{
	return fragment != NULL && drv_host_running(host->app, fragment) == host;
}

/*
 * The next fragment of another host that one of the host is to be near, or apart from; NULL: none
 * is left. *f and *k begin with 0.
 */
static const char *next_other(const struct drv_host *host, bool apart, size_t *f, size_t *k)
{
	const struct fragi_spec *spec = host->app->spec;

	for (; *f < spec->fragment_count; ++*f, *k = 0) {
		const struct fragi_spec_requirements *own = &spec->fragments[*f].requirements;

		while (*k < (apart ? own->apart_count : own->near_count)) {
			const char *one = spec->fragments[*f].name,
				   *two = (apart ? own->apart : own->near)[(*k)++]->text;

			if (is_of_host(host, one) != is_of_host(host, two))
				return is_of_host(host, one) ? two : one;
		}
	}
	return NULL;
}

/* Whether a fragment from which the host is to be apart is being moved to that worker. */
static bool is_too_near(const struct drv_session *session, const struct drv_host *host)
{
	const struct drv_host *moving = host->app->moving;
	const char *other;

	if (moving == NULL || moving->next.session != session)
		return false;
	for (size_t f = 0, k = 0; (other = next_other(host, true, &f, &k)) != NULL;)
		if (drv_host_running(host->app, other) == moving)
			return true;
	return false;
}

/* Whether another fragment, which the host is to be near, runs on another worker than that. */
static bool is_far(const struct drv_session *session, const struct drv_host *host)
{
	const char *other;

	for (size_t f = 0, k = 0; (other = next_other(host, false, &f, &k)) != NULL;) {
		const struct drv_session *there = drv_host_running(host->app, other)->now.session;

		if (there != NULL && there != session)
			return true;
	}
	return false;
}

/* Or else it is the path of a file, which need not have a writer. */
static bool has_memory(const struct fragi_spec_variable *variable)
{
	return variable->path == NULL;
}

/* Whether the host shares a variable with one in memory that this worker does not share. */
static bool misses_variable(const struct drv_session *session, const struct drv_host *host)
{
	const struct drv_app *app = host->app;

	for (size_t i = 0; i < app->spec->variable_count; i++) {
		const struct fragi_spec_variable *variable = &app->spec->variables[i];
		const struct drv_host *writer;
		bool reads = false;

		if (!has_memory(variable))
			continue;
		writer = drv_host_running(app, variable->writer.fragment);
		for (size_t k = 0; k < variable->reader_count; k++)
			reads = reads ||
				drv_host_running(app, variable->readers[k].fragment) == host;
		if (reads && writer != host &&
		    fragi_identity_apart(session->memory, writer->memory) != FRAGI_APART_NOT)
			return true;
	}
	return false;
}

const char *drv_candidate_process_obstacle(const struct drv_host *host)
{
	const struct drv_app *app = host->app;
	const struct fragi_spec *spec = app->spec;

	if (spec->service_count != 0)
		return "the application has services, which live in one process";
	for (size_t i = 0; i < spec->variable_count; i++) {
		const struct fragi_spec_variable *variable = &spec->variables[i];
		bool is_its = is_of_host(host, variable->writer.fragment);

		for (size_t k = 0; k < variable->reader_count; k++)
			is_its = is_its || is_of_host(host, variable->readers[k].fragment);
		if (is_its && has_memory(variable))
			return drv_text(
				app->core,
				"it uses the variable %s, whose memory its process has made",
				variable->name);
	}
	if (host->now.session->minor < DRV_MOVES_MINOR)
		return "that worker is of an older frag, which cannot do so";
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		if (other->now.session != NULL && other->now.session->minor < DRV_MOVES_MINOR)
			return drv_text(
				app->core,
				"worker %s, which runs %s, is of an older frag, which cannot do so",
				other->worker, other->name);
	}
	return NULL;
}

const char *drv_candidate_worker_obstacle(const struct drv_host *host)
{
	const char *why = drv_candidate_process_obstacle(host);
	size_t f = 0, k = 0;
	const char *other = next_other(host, false, &f, &k);

	return why != NULL || other == NULL
		       ? why
		       : drv_text(host->app->core,
				  "it is to be near %s, which runs in another process", other);
}

static int look(const struct drv_host *host, bool goes_back, struct fragi_arena *arena,
		struct drv_session **out_session, struct drv_place *out_place)
{
	const struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;
	struct drv_core *core = app->core;
	struct drv_place *places = fragi_arena_alloc(&core->actions->arena,
						     app->spec->fragment_count * sizeof(*places));
	struct drv_place_worker *workers;
	const struct drv_host *sharer;
	int *session_of, *stays, result;
	size_t count;

	*out_session = NULL;
	if (places == NULL || find_sharer(host, &sharer) < 0 ||
	    drv_start_workers(core, app->spec->fragment_count, &workers, &session_of, &count) < 0)
		return -ENOMEM;
	stays = list_stays(host, session_of, count);
	if (stays == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < count; w++) {
		const struct drv_session *session = core->sessions[session_of[w]];

		workers[w].is_out_of_reach =
			session->minor < DRV_MOVES_MINOR || !reaches_all(session, host) ||
			!shares(session, sharer) || is_far(session, host) ||
			is_too_near(session, host) || misses_variable(session, host) ||
			(r->returns && host->now.state == DRV_HOST_RUNNING &&
			 strcmp(session->name, r->home) != 0);
		if (session == host->now.session) /* what it names is for others now */
			workers[w].fragment_count = 0;
		workers[w].is_left = session->number == r->left && (!goes_back || r->is_refused);
	}
	result = drv_place_rest(app->spec, workers, count, stays, arena, places);
	if (result < 0)
		return result;
	*out_place = places[host->fragments[0]];
	if (out_place->worker >= 0)
		*out_session = core->sessions[session_of[out_place->worker]];
	return 0;
}

int drv_candidate_find(const struct drv_host *host, struct fragi_arena *arena,
		       struct drv_session **out_session, struct drv_place *out_place)
{
	int result;

	if (host->app->core->is_behind) {
		*out_session = NULL;
		*out_place = (struct drv_place){
			.worker = -1,
			.reason =
				"the state folder cannot be written, and a driver that comes back must know where the host is"};
		return 0;
	}
	result = look(host, false, arena, out_session, out_place);
	if (result < 0 || *out_session != NULL || host->replacement.left == 0)
		return result;
	fragi_arena_fini(arena);
	return look(host, true, arena, out_session, out_place);
}
