// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <driverd/core/place.h>

/*
 * An application from when it is given to its summary. Forward, one state after the other; a failure leads
 * from anywhere to KILLING, and KILLING to ENDED when the last host is gone, or when that takes too long.
 */
#define BIT(state) (1u << (state))

static const uint32_t app_moves[DRV_APP_STATES] = {
	[DRV_APP_NEW] = BIT(DRV_APP_WAITING) | BIT(DRV_APP_ENDED),
	[DRV_APP_WAITING] = BIT(DRV_APP_PREPARING) | BIT(DRV_APP_ENDED),
	[DRV_APP_PREPARING] = BIT(DRV_APP_WIRING) | BIT(DRV_APP_KILLING),
	[DRV_APP_WIRING] = BIT(DRV_APP_STARTING) | BIT(DRV_APP_KILLING),
	[DRV_APP_STARTING] = BIT(DRV_APP_RUNNING) | BIT(DRV_APP_KILLING),
	[DRV_APP_RUNNING] = BIT(DRV_APP_DRAINING) | BIT(DRV_APP_CLOSING) | BIT(DRV_APP_KILLING),
	[DRV_APP_DRAINING] = BIT(DRV_APP_CLOSING) | BIT(DRV_APP_KILLING),
	[DRV_APP_CLOSING] = BIT(DRV_APP_KILLING) | BIT(DRV_APP_ENDED),
	[DRV_APP_KILLING] = BIT(DRV_APP_ENDED),
	[DRV_APP_ENDED] = 0,
};

static const char *const app_names[DRV_APP_STATES] = {
	[DRV_APP_NEW] = "new",           [DRV_APP_WAITING] = "waiting",   [DRV_APP_PREPARING] = "preparing",
	[DRV_APP_WIRING] = "wiring",     [DRV_APP_STARTING] = "starting", [DRV_APP_RUNNING] = "running",
	[DRV_APP_DRAINING] = "draining", [DRV_APP_CLOSING] = "closing",   [DRV_APP_KILLING] = "killing",
	[DRV_APP_ENDED] = "ended",
};

/* What a host has answered with when a state's request is answered, and what the request is called. */
static const struct {
	enum drv_host_state answered;
	const char *request;
} phases[DRV_APP_STATES] = {
	[DRV_APP_PREPARING] = {DRV_HOST_PREPARED, "PREPARE"},
	[DRV_APP_WIRING] = {DRV_HOST_WIRED, "WIRE"},
	[DRV_APP_STARTING] = {DRV_HOST_RUNNING, "START"},
};

#define PREPARE_GRACE_NS ((int64_t)300000000) /* for errors of the other hosts, told together */

const char *drv_app_state_name(enum drv_app_state state)
{
	return (unsigned int)state < DRV_APP_STATES ? app_names[state] : "?";
}

static const char *app_name(const struct drv_app *app)
{
	return app->spec != NULL ? app->spec->application : "application";
}

static void app_move(struct drv_app *app, enum drv_app_state to)
{
	struct drv_core *core = app->core;
	bool legal = (app_moves[app->state] & BIT(to)) != 0;

	drv_say(core, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR, app_name(app), "run %llu: %s -> %s%s",
		(unsigned long long)app->run, app_names[app->state], app_names[to],
		legal ? "" : ": this move is not in the table; please report it");
	core->illegal_moves += legal ? 0 : 1;
	app->state = to;
	drv_timer_cancel(&core->timers, &app->phase);
}

void drv_app_finish(struct drv_app *app)
{
	struct drv_core *core = app->core;

	app_move(app, DRV_APP_ENDED);
	app->ended_ns = core->now_ns;
	drv_timer_cancel(&core->timers, &app->start);
	drv_timer_cancel(&core->timers, &app->say);
	drv_timer_cancel(&core->timers, &app->progress);
	drv_timer_cancel(&core->timers, &app->judge);
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].session != NULL)
			app->hosts[i].session->placed -= app->hosts[i].fragment_count;
	if (drv_report(app) < 0) {
		drv_short_of_memory(core);
		return;
	}
	drv_do(core, &(struct drv_action){.kind = DRV_DO_ENDED, .summary = &app->summary});
}

static bool all_gone(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].state != DRV_HOST_GONE)
			return false;
	return true;
}

/* Everything ends now. */
static void app_kill(struct drv_app *app)
{
	if (app->ending_ns == 0)
		app->ending_ns = app->core->now_ns;
	if (app->state == DRV_APP_KILLING || app->state == DRV_APP_ENDED)
		return;
	if (app->host_count == 0) {
		drv_app_finish(app);
		return;
	}
	app_move(app, DRV_APP_KILLING);
	for (uint32_t i = 0; i < app->host_count; i++)
		drv_host_kill(&app->hosts[i]);
	if (all_gone(app))
		drv_app_finish(app);
	else
		drv_set(app->core, &app->phase, app->core->now_ns + app->core->config.kill_ns);
}

static void app_fail_text(struct drv_app *app, int exit_code, const char *sentence)
{
	if (app->state == DRV_APP_ENDED)
		return;
	if (app->has_cause) {
		drv_say(app->core, FRAGI_LOG_DEBUG, app_name(app), "also: %s", sentence);
		return;
	}
	app->has_cause = true;
	app->result = FRAGI_SUMMARY_FAILED;
	app->exit_code = exit_code;
	app->sentence = fragi_arena_strdup(&app->arena, sentence);
	if (app->sentence == NULL)
		drv_short_of_memory(app->core);
	drv_say(app->core, FRAGI_LOG_ERROR, app_name(app), "%s", sentence);
	app_kill(app);
}

void drv_app_fail(struct drv_app *app, int exit_code, const char *format, ...)
{
	char sentence[FW_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	app_fail_text(app, exit_code, sentence);
}

/* The first error of diag is the sentence; all are told. */
static void fail_by_diag(struct drv_app *app, int exit_code)
{
	char line[FW_TEXT_MAX], *first;

	if (app->diag.count == 0) {
		drv_short_of_memory(app->core);
		return;
	}
	for (size_t i = 1; i < app->diag.count && !app->has_cause; i++)
		drv_say(app->core, FRAGI_LOG_ERROR, app_name(app), "%s",
			fragi_err_line(&app->diag.items[i], line, sizeof(line)));
	first = fragi_arena_strdup(&app->core->actions->arena,
				   fragi_err_line(&app->diag.items[0], line, sizeof(line)));
	app_fail_text(app, exit_code, first != NULL ? first : "");
}

/* Sends the next request to all hosts and waits for their answers. */
static void app_phase(struct drv_app *app, enum drv_app_state state, enum drv_host_state during,
		      int64_t within_ns, int (*send)(struct drv_host *host))
{
	app_move(app, state);
	drv_set(app->core, &app->phase, app->core->now_ns + within_ns);
	for (uint32_t i = 0; i < app->host_count && app->state == state; i++) {
		struct drv_host *host = &app->hosts[i];
		int r;

		drv_host_move(host, during);
		r = send(host);
		if (r == -ENOMEM)
			drv_short_of_memory(app->core);
		else if (r < 0)
			drv_app_fail(app, 1, "what %s on worker %s needs to %s does not fit into a frame: %s",
				     host->name, host->worker, phases[state].request, frag_strerror(r));
	}
}

static int send_create(struct drv_host *host)
{
	struct drv_app *app = host->app;
	struct fw_message message = {.kind = FW_HOST_CREATE};
	const char **names =
		fragi_arena_alloc(&app->core->actions->arena, host->fragment_count * sizeof(*names));

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
		.epoch = 1,
		.session = session,
		.worker = fragi_arena_strdup(&app->arena, session->name),
		.node = fragi_arena_strdup(&app->arena, session->node),
		.fragments =
			fragi_arena_alloc(&app->arena, app->spec->fragment_count * sizeof(*host->fragments)),
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
		host->name = host->name == NULL ? app->spec->fragments[f].name
						: fragi_arena_printf(&app->arena, "%s, %s", host->name,
								     app->spec->fragments[f].name);
		app->fragments[f] =
			(struct drv_fragment){host, fragi_arena_strdup(&app->arena, places[f].reason)};
		session->placed++;
		if (host->name == NULL || app->fragments[f].reason == NULL)
			return -ENOMEM;
		drv_say(app->core, FRAGI_LOG_INFO, app->spec->application, "%s runs on worker %s: %s",
			app->spec->fragments[f].name, host->worker, app->fragments[f].reason);
	}
	return 0;
}

/* "fragment1, fragment2" of those without a worker, at most a line of them. */
static const char *name_missing(struct drv_app *app, const struct drv_place *places)
{
	char text[512] = "";
	size_t used = 0, left = 0;

	for (size_t f = 0; f < app->spec->fragment_count; f++) {
		if (places[f].worker >= 0)
			continue;
		if (used < 256)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used != 0 ? ", " : "", app->spec->fragments[f].name);
		else
			left++;
	}
	if (left != 0)
		snprintf(text + used, sizeof(text) - used, " and %zu more", left);
	return fragi_arena_strdup(&app->arena, text);
}

static int place_all(struct drv_app *app, struct drv_place *places)
{
	struct drv_core *core = app->core;
	struct fragi_arena *arena = &core->actions->arena;
	struct drv_place_worker *workers = fragi_arena_alloc(arena, core->session_count * sizeof(*workers));

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
	places = fragi_arena_alloc(&app->core->actions->arena, app->spec->fragment_count * sizeof(*places));
	r = place_all(app, places);
	if (r > 0) {
		app->missing = name_missing(app, places);
		if (app->missing == NULL)
			drv_short_of_memory(app->core);
		return;
	}
	if (r == 0)
		r = make_hosts(app, places);
	if (r < 0) {
		drv_short_of_memory(app->core);
		return;
	}
	drv_timer_cancel(&app->core->timers, &app->say);
	app_phase(app, DRV_APP_PREPARING, DRV_HOST_PREPARING, app->core->config.prepare_ns, send_create);
}

static void app_wire(struct drv_app *app)
{
	int r = drv_wiring_resolve(app);

	if (r == -ENOMEM)
		drv_short_of_memory(app->core);
	else if (r < 0)
		fail_by_diag(app, app->prepare_exit_code);
	else
		app_phase(app, DRV_APP_WIRING, DRV_HOST_WIRING, app->core->config.wire_ns, drv_wiring_send);
}

static void app_drain(struct drv_app *app)
{
	struct drv_core *core = app->core;

	app_move(app, DRV_APP_DRAINING);
	drv_set(core, &app->phase, core->now_ns + core->config.drain_ns + core->config.close_ns);
	for (uint32_t i = 0; i < app->host_count; i++)
		drv_host_stop(&app->hosts[i], core->config.drain_ns);
	drv_app_host_changed(app);
}

static void app_run(struct drv_app *app)
{
	app_move(app, DRV_APP_RUNNING);
	drv_timer_cancel(&app->core->timers, &app->start);
	drv_say(app->core, FRAGI_LOG_INFO, app_name(app), "runs in %u host%s", app->host_count,
		app->host_count == 1 ? "" : "s");
	if (app->stop_wanted)
		app_drain(app);
	else
		drv_app_host_changed(app);
}

static void app_close(struct drv_app *app)
{
	if (app->ending_ns == 0)
		app->ending_ns = app->core->now_ns;
	app_move(app, DRV_APP_CLOSING);
	drv_set(app->core, &app->phase, app->core->now_ns + app->core->config.close_ns);
	for (uint32_t i = 0; i < app->host_count; i++)
		drv_host_stop(&app->hosts[i], 0);
	if (all_gone(app))
		drv_app_finish(app);
}

void drv_app_rest(struct drv_app *app)
{
	app_close(app);
}

/* Whether every host has come at least as far; hosts that are gone count when that is the end. */
static bool all_at(const struct drv_app *app, enum drv_host_state state)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].state < state)
			return false;
	return true;
}

void drv_app_host_changed(struct drv_app *app)
{
	switch (app->state) {
	case DRV_APP_PREPARING:
		if (!all_at(app, DRV_HOST_PREPARED)) {
			if (app->diag.count != 0 && app->judge.place == 0)
				drv_set(app->core, &app->judge, app->core->now_ns + PREPARE_GRACE_NS);
			break;
		}
		if (app->diag.count != 0)
			fail_by_diag(app, app->prepare_exit_code);
		else
			app_wire(app);
		break;
	case DRV_APP_WIRING:
		if (all_at(app, DRV_HOST_WIRED)) {
			app->started_ns = app->core->now_ns;
			app_phase(app, DRV_APP_STARTING, DRV_HOST_STARTING, app->core->config.start_ns,
				  send_start);
		}
		break;
	case DRV_APP_STARTING:
		if (all_at(app, DRV_HOST_RUNNING))
			app_run(app);
		break;
	case DRV_APP_RUNNING:
	case DRV_APP_DRAINING:
		if (all_at(app, DRV_HOST_DONE))
			app_close(app);
		break;
	case DRV_APP_CLOSING:
	case DRV_APP_KILLING:
		if (all_gone(app))
			drv_app_finish(app);
		break;
	default:
		break;
	}
}

void drv_app_stop(struct drv_app *app, int signal)
{
	if (app->state == DRV_APP_ENDED || app->state >= DRV_APP_DRAINING)
		return;
	if (signal != 0)
		app->result = FRAGI_SUMMARY_STOPPED;
	app->ending_ns = app->core->now_ns;
	if (app->state == DRV_APP_STARTING) { /* some hosts run already; when all do, they stop in order */
		app->stop_wanted = true;
		return;
	}
	if (app->state != DRV_APP_RUNNING) { /* nothing ran yet */
		app->has_cause = true;
		app_kill(app);
		return;
	}
	app_drain(app);
}

void drv_app_stop_at_once(struct drv_app *app, int signal)
{
	if (app->state == DRV_APP_ENDED || app->state == DRV_APP_KILLING)
		return;
	if (!app->has_cause) {
		app->has_cause = true;
		app->result = FRAGI_SUMMARY_STOPPED;
		app->exit_code = 128 + signal;
	}
	app_kill(app);
}

void drv_app_suspect(struct drv_app *app, struct drv_host *host, uint32_t peer, const char *sentence)
{
	struct drv_core *core = app->core;
	int64_t grace_ns = core->config.dead_ns / 6;

	if (app->suspicion.host != NULL || peer == 0 || peer > app->host_count ||
	    app->state >= DRV_APP_CLOSING)
		return;
	if (app->hosts[peer - 1].state == DRV_HOST_GONE && app->hosts[peer - 1].orderly)
		return;
	grace_ns = grace_ns < 100000000 ? 100000000 : grace_ns > 500000000 ? 500000000 : grace_ns;
	app->suspicion = (struct drv_suspicion){host, &app->hosts[peer - 1],
						fragi_arena_strdup(&app->arena, sentence)};
	if (app->suspicion.sentence == NULL)
		drv_short_of_memory(core);
	drv_say(core, FRAGI_LOG_DEBUG, app_name(app), "%s reports that it lost %s: %s", host->name,
		app->suspicion.peer->name, sentence);
	drv_set(core, &app->judge, core->now_ns + grace_ns);
}

/*
 * The time for better news is over: errors of PREPARE are told, and a data link that was reported lost is the
 * cause if its far end did not turn out to be.
 */
static void app_judge(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	const struct drv_suspicion *s = &app->suspicion;

	if (app->state == DRV_APP_PREPARING && app->diag.count != 0) {
		fail_by_diag(app, app->prepare_exit_code);
		return;
	}
	if (s->host == NULL || app->state >= DRV_APP_CLOSING)
		return;
	for (int end = 0; end < 2; end++) {
		const struct drv_host *host = end == 0 ? s->peer : s->host;

		if (host->session != NULL && host->session->state == DRV_SESSION_SUSPECT) {
			drv_set(core, timer, now_ns + core->config.beat_ns);
			return;
		}
	}
	drv_app_fail(app, 1,
		     "the data link between %s on worker %s and %s on worker %s was lost, while their "
		     "control links "
		     "are up: %s",
		     s->host->name, s->host->worker, s->peer->name, s->peer->worker, s->sentence);
}

/* The first host that has not answered. */
static const struct drv_host *laggard(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].state < phases[app->state].answered)
			return &app->hosts[i];
	return NULL;
}

static void app_phase_over(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	const struct drv_host *host;

	switch (app->state) {
	case DRV_APP_PREPARING:
	case DRV_APP_WIRING:
	case DRV_APP_STARTING:
		host = laggard(app);
		if (host != NULL)
			drv_app_fail(app, 1, "%s on worker %s did not answer %s in time", host->name,
				     host->worker, phases[app->state].request);
		break;
	case DRV_APP_DRAINING:
		drv_say(core, FRAGI_LOG_WARN, app_name(app),
			"did not drain within %.1f s; what is queued is dropped",
			(double)core->config.drain_ns * 1e-9);
		app_close(app);
		break;
	case DRV_APP_CLOSING:
		for (uint32_t i = 0; i < app->host_count; i++)
			if (app->hosts[i].state != DRV_HOST_GONE)
				drv_say(core, FRAGI_LOG_WARN, app_name(app),
					"%s on worker %s did not end within %.1f s; it is killed",
					app->hosts[i].name, app->hosts[i].worker,
					(double)core->config.close_ns * 1e-9);
		app_kill(app);
		break;
	case DRV_APP_KILLING:
		for (uint32_t i = 0; i < app->host_count; i++) {
			if (app->hosts[i].state == DRV_HOST_GONE)
				continue;
			drv_say(core, FRAGI_LOG_WARN, app_name(app),
				"worker %s did not confirm the end of %s; what it counted last is used",
				app->hosts[i].worker, app->hosts[i].name);
			app->hosts[i].lost = true;
			drv_host_move(&app->hosts[i], DRV_HOST_GONE);
		}
		drv_app_finish(app);
		break;
	default:
		break;
	}
	(void)now_ns;
}

/* "fragment1,fragment2", as --fragments takes it. */
static const char *as_flag(struct drv_core *core, const char *names)
{
	char *copy = fragi_arena_strdup(&core->actions->arena, names), *to = copy;

	if (copy == NULL) {
		drv_short_of_memory(core);
		return "";
	}
	for (const char *from = copy; *from != '\0'; from++)
		if (*from != ' ')
			*to++ = *from;
	*to = '\0';
	return copy;
}

static void app_start_timeout(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	double seconds = (double)(now_ns - app->given_ns) * 1e-9;
	const struct drv_host *host;

	if (app->state == DRV_APP_WAITING) {
		drv_app_fail(app, 4,
			     "not started within %.1f s: there is no worker for %s: %s; start workerd "
			     "--address %s "
			     "--fragments %s",
			     seconds, app->missing,
			     core->session_count == 0
				     ? "none has come"
				     : drv_text(core,
						"of the %zu that came, none names it or takes whatever fits",
						core->session_count),
			     core->config.address != NULL ? core->config.address : "HOST:PORT",
			     as_flag(core, app->missing));
		return;
	}
	host = app->state <= DRV_APP_STARTING ? laggard(app) : NULL;
	if (host != NULL)
		drv_app_fail(app, 4, "not started within %.1f s: %s on worker %s has not answered %s",
			     seconds, host->name, host->worker, phases[app->state].request);
}

static void app_say_missing(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;

	if (app->state != DRV_APP_WAITING)
		return;
	drv_say(core, FRAGI_LOG_INFO, app_name(app), "waiting for a worker for %s (%zu worker%s here)",
		app->missing, core->session_count, core->session_count == 1 ? "" : "s");
	drv_set(core, timer, now_ns + core->config.say_missing_ns);
}

static void app_progress(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	const char *text = app_names[app->state];

	if (app->state == DRV_APP_WAITING)
		text = drv_text(core, "waiting for %s", app->missing);
	else if (app->started_ns != 0)
		text = drv_text(core, "%s %.1f s, %llu messages",
				app->state == DRV_APP_STARTING ? "running" : app_names[app->state],
				(double)(now_ns - app->started_ns) * 1e-9,
				(unsigned long long)drv_report_delivered(app));
	drv_do(core, &(struct drv_action){.kind = DRV_DO_PROGRESS, .text = text});
	drv_set(core, timer, now_ns + core->config.progress_ns);
}

static int app_read(struct drv_app *app, const struct drv_event_app *event)
{
	struct fragi_source source;
	void *copy = fragi_arena_alloc(&app->arena, event->source_bytes);
	int r;

	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, event->source, event->source_bytes);
	app->source = copy;
	app->source_bytes = event->source_bytes;
	r = fragi_source_unpack(copy, event->source_bytes, &source);
	if (r < 0)
		return r == -ENOMEM ? r
				    : fragi_diag_add(&app->diag, r, NULL, 0, 0,
						     "the application is no packed source");
	r = fragi_spec_parse(&source.source, &app->diag, &app->spec);
	fragi_source_fini(&source);
	if (r < 0)
		return r;
	app->fragments = fragi_arena_alloc(&app->arena, app->spec->fragment_count * sizeof(*app->fragments));
	return app->fragments != NULL ? 0 : -ENOMEM;
}

static int app_insert(struct drv_core *core, struct drv_app *app)
{
	if (core->app_count == core->app_capacity) {
		size_t capacity = core->app_capacity == 0 ? 4 : core->app_capacity * 2;
		struct drv_app **apps = fragi_realloc(core->apps, capacity * sizeof(*apps));

		if (apps == NULL)
			return -ENOMEM;
		core->apps = apps;
		core->app_capacity = capacity;
	}
	core->apps[core->app_count++] = app;
	return 0;
}

void drv_app_create(struct drv_core *core, const struct drv_event_app *event)
{
	struct drv_app *app = fragi_calloc(1, sizeof(*app));
	int r;

	if (app == NULL || app_insert(core, app) < 0) {
		drv_short_of_memory(core);
		fragi_free(app);
		return;
	}
	app->core = core;
	app->run = ++core->last_run;
	app->given_ns = core->now_ns;
	app->phase = (struct drv_timer){.fire = app_phase_over, .owner = app};
	app->start = (struct drv_timer){.fire = app_start_timeout, .owner = app};
	app->say = (struct drv_timer){.fire = app_say_missing, .owner = app};
	app->progress = (struct drv_timer){.fire = app_progress, .owner = app};
	app->judge = (struct drv_timer){.fire = app_judge, .owner = app};
	r = app_read(app, event);
	if (r == -ENOMEM) {
		drv_short_of_memory(core);
		return;
	}
	if (r < 0) {
		fail_by_diag(app, 2);
		return;
	}
	app_move(app, DRV_APP_WAITING);
	if (event->start_timeout_ns > 0)
		drv_set(core, &app->start, core->now_ns + event->start_timeout_ns);
	drv_set(core, &app->progress, core->now_ns + core->config.progress_ns);
	drv_app_place(app);
	if (app->state == DRV_APP_WAITING)
		app_say_missing(&app->say, core->now_ns, core);
}

void drv_app_destroy(struct drv_app *app)
{
	struct drv_timer *timers[] = {&app->phase, &app->start, &app->say, &app->progress, &app->judge};

	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
		drv_timer_cancel(&app->core->timers, timers[i]);
	for (uint32_t i = 0; i < app->host_count; i++)
		drv_host_fini(&app->hosts[i]);
	fragi_free(app->flows);
	fragi_spec_destroy(app->spec);
	fragi_diag_fini(&app->diag);
	fragi_arena_fini(&app->arena);
	fragi_free(app);
}
