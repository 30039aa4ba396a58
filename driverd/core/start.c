// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <driverd/core/place.h>

/*
 * The start of an application: it waits for workers, then asks all hosts to PREPARE, to WIRE and to
 * START, one after the other; each request is answered by all before the next one is sent.
 */

/*
 * What a host has answered with when a state's request is answered, and what the request is called.
 */
static const struct {
	enum drv_host_state answered;
	const char *request;
} phases[DRV_APP_STATES] = {
	[DRV_APP_PREPARING] = {DRV_HOST_PREPARED, "PREPARE"},
	[DRV_APP_WIRING] = {DRV_HOST_WIRED, "WIRE"},
	[DRV_APP_STARTING] = {DRV_HOST_RUNNING, "START"},
};

/* Sends the next request to all hosts and waits for their answers. */
static void app_phase(struct drv_app *app, enum drv_app_state state, enum drv_host_state during,
		      int64_t within_ns, int (*send)(struct drv_host *host))
{
	drv_app_move(app, state);
	drv_set(app->core, &app->phase, app->core->now_ns + within_ns);
	for (uint32_t i = 0; i < app->host_count && app->state == state; i++) {
		struct drv_host *host = &app->hosts[i];
		int r;

		drv_host_move(host, during);
		r = send(host);
		if (r == -ENOMEM)
			drv_short_of_memory(app->core);
		else if (r < 0)
			drv_app_fail(
				app, 1,
				"what %s on worker %s needs to %s does not fit into a frame: %s",
				host->name, host->worker, phases[state].request, frag_strerror(r));
	}
}

static int send_create(struct drv_host *host)
{
	struct drv_app *app = host->app;
	struct fw_message message = {.kind = FW_HOST_CREATE};
	const char **names = fragi_arena_alloc(&app->core->actions->arena,
					       host->fragment_count * sizeof(*names));

	if (names == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		names[i] = app->spec->fragments[host->fragments[i]].name;
	message.create = (struct fw_host_create){
		.application = app->spec->application,
		.source = app->source,
		.source_bytes = (uint32_t)app->source_bytes,
		.fragments = names,
		.fragment_count = host->fragment_count,
		.beat_ns = app->core->config.beat_ns,
		.dead_ns = app->core->config.dead_ns,
	};
	return drv_host_send(host, &message);
}

static int send_start(struct drv_host *host)
{
	struct fw_message message = {.kind = FW_HOST_START};

	return drv_host_send(host, &message);
}

/* Fragments on one worker with the same `host:` (or none) share a host. */
static struct drv_host *host_for(struct drv_app *app, struct drv_session *session, const char *key,
				 const char **keys)
{
	struct drv_host *host;

	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].session == session &&
		    (key == NULL || keys[i] == NULL ? key == keys[i] : strcmp(key, keys[i]) == 0))
			return &app->hosts[i];
	host = &app->hosts[app->host_count];
	keys[app->host_count++] = key;
	*host = (struct drv_host){
		.app = app,
		.number = app->host_count,
		.epoch = app->epoch,
		.session = session,
		.worker = fragi_arena_strdup(&app->arena, session->name),
		.node = fragi_arena_strdup(&app->arena, session->node),
		.fragments = fragi_arena_alloc(&app->arena, app->spec->fragment_count *
								    sizeof(*host->fragments)),
	};
	return host;
}

static int make_hosts(struct drv_app *app, const struct drv_place *places)
{
	size_t count = app->spec->fragment_count;
	const char **keys = fragi_arena_alloc(&app->core->actions->arena, count * sizeof(*keys));

	app->hosts = fragi_arena_alloc(&app->arena, count * sizeof(*app->hosts));
	if (app->hosts == NULL || keys == NULL)
		return -ENOMEM;
	for (size_t f = 0; f < count; f++) {
		struct drv_session *session = app->core->sessions[places[f].worker];
		struct drv_host *host = host_for(app, session, app->spec->fragments[f].host, keys);

		if (host->worker == NULL || host->node == NULL || host->fragments == NULL)
			return -ENOMEM;
		host->fragments[host->fragment_count++] = (uint32_t)f;
		host->name = host->name == NULL
				     ? app->spec->fragments[f].name
				     : fragi_arena_printf(&app->arena, "%s, %s", host->name,
							  app->spec->fragments[f].name);
		app->fragments[f] = (struct drv_fragment){
			host, fragi_arena_strdup(&app->arena, places[f].reason)};
		session->placed++;
		if (host->name == NULL || app->fragments[f].reason == NULL)
			return -ENOMEM;
		drv_log(app->core, FRAGI_LOG_INFO, app->spec->application,
			"%s runs on worker %s: %s", app->spec->fragments[f].name, host->worker,
			app->fragments[f].reason);
	}
	return 0;
}

/* "fragment1, fragment2" of those without a worker, about a line of them. */
static void name_missing(struct drv_app *app, const struct drv_place *places)
{
	const size_t size = sizeof(app->missing);
	size_t used = 0, left = 0;

	for (size_t f = 0; f < app->spec->fragment_count; f++) {
		if (places[f].worker >= 0)
			continue;
		if (used < size / 2)
			used += (size_t)snprintf(app->missing + used, size - used, "%s%s",
						 used != 0 ? ", " : "",
						 app->spec->fragments[f].name);
		else
			left++;
	}
	app->missing_more = left != 0;
	if (left != 0)
		snprintf(app->missing + used, size - used, " and %zu more", left);
}

static int place_all(struct drv_app *app, struct drv_place *places)
{
	struct drv_core *core = app->core;
	struct fragi_arena *arena = &core->actions->arena;
	struct drv_place_worker *workers =
		fragi_arena_alloc(arena, core->session_count * sizeof(*workers));

	if (places == NULL || workers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < core->session_count; i++)
		workers[i] = (struct drv_place_worker){
			.name = core->sessions[i]->name,
			.fragments = core->sessions[i]->fragments,
			.fragment_count = core->sessions[i]->fragment_count,
			.cores = core->sessions[i]->cores,
			.placed = core->sessions[i]->placed,
		};
	return drv_place(app->spec, workers, core->session_count, arena, places);
}

void drv_app_place(struct drv_app *app)
{
	struct drv_place *places;
	int r;

	if (app->state != DRV_APP_WAITING)
		return;
	places = fragi_arena_alloc(&app->core->actions->arena,
				   app->spec->fragment_count * sizeof(*places));
	r = place_all(app, places);
	if (r > 0) {
		name_missing(app, places);
		return;
	}
	if (r == 0)
		r = make_hosts(app, places);
	if (r < 0) {
		drv_short_of_memory(app->core);
		return;
	}
	drv_timer_cancel(&app->core->timers, &app->say);
	app_phase(app, DRV_APP_PREPARING, DRV_HOST_PREPARING, app->core->config.prepare_ns,
		  send_create);
}

void drv_start_wire(struct drv_app *app)
{
	int r = drv_wiring_resolve(app);

	if (r == -ENOMEM)
		drv_short_of_memory(app->core);
	else if (r < 0)
		drv_app_fail_by_diag(app, app->prepare_exit_code);
	else
		app_phase(app, DRV_APP_WIRING, DRV_HOST_WIRING, app->core->config.wire_ns,
			  drv_wiring_send);
}

void drv_start_launch(struct drv_app *app)
{
	app->started_ns = app->core->now_ns;
	drv_set(app->core, &app->progress, app->started_ns + app->core->config.progress_ns);
	app_phase(app, DRV_APP_STARTING, DRV_HOST_STARTING, app->core->config.start_ns, send_start);
}

/* The first host that has not answered. */
static const struct drv_host *laggard(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].state < phases[app->state].answered)
			return &app->hosts[i];
	return NULL;
}

void drv_start_overdue(struct drv_app *app)
{
	const struct drv_host *host = laggard(app);

	if (host != NULL)
		drv_app_fail(app, 1, "%s on worker %s did not answer %s in time", host->name,
			     host->worker, phases[app->state].request);
}

/* "fragment1,fragment2", as --fragments takes it. */
static const char *as_flag(const struct drv_app *app, char out[static sizeof(app->missing)])
{
	size_t used = 0;

	for (const char *from = app->missing; *from != '\0'; from++)
		if (*from != ' ')
			out[used++] = *from;
	out[used] = '\0';
	return app->missing_more ? "all" : out;
}

void drv_start_timeout(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	double seconds = (double)(now_ns - app->given_ns) * 1e-9;
	char flag[sizeof(app->missing)];
	const struct drv_host *host;

	if (app->state == DRV_APP_WAITING) {
		drv_app_fail(
			app, 4,
			"not started within %.1f s: there is no worker for %s: %s; start workerd --address %s --fragments %s",
			seconds, app->missing,
			core->session_count == 0
				? "none has come"
				: drv_text(core,
					   "%zu came, and none names it or takes whatever fits",
					   core->session_count),
			core->config.address != NULL ? core->config.address : "HOST:PORT",
			as_flag(app, flag));
		return;
	}
	if (app->state == DRV_APP_NEW)
		drv_app_fail(app, 4,
			     "not started within %.1f s: the state folder has not taken its epoch",
			     seconds);
	host = app->state <= DRV_APP_STARTING ? laggard(app) : NULL;
	if (host != NULL)
		drv_app_fail(app, 4,
			     "not started within %.1f s: %s on worker %s has not answered %s",
			     seconds, host->name, host->worker, phases[app->state].request);
}

void drv_start_say_missing(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;

	drv_log(core, FRAGI_LOG_INFO, app->spec->application,
		"waiting for a worker for %s (%zu worker%s here)", app->missing,
		core->session_count, core->session_count == 1 ? "" : "s");
	drv_set(core, timer, now_ns + core->config.say_missing_ns);
}
