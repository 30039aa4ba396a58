// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * An application from when it is given to its summary. Forward, one state after the other; a
 * failure leads from anywhere to KILLING, and KILLING to ENDED when the last host is gone, or when
 * that takes too long.
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
	[DRV_APP_NEW] = "new",
	[DRV_APP_WAITING] = "waiting",
	[DRV_APP_PREPARING] = "preparing",
	[DRV_APP_WIRING] = "wiring",
	[DRV_APP_STARTING] = "starting",
	[DRV_APP_RUNNING] = "running",
	[DRV_APP_DRAINING] = "draining",
	[DRV_APP_CLOSING] = "closing",
	[DRV_APP_KILLING] = "killing",
	[DRV_APP_ENDED] = "ended",
};

/* for the end of a host that broke the link, to be told */
#define SUSPICION_GRACE_NS ((int64_t)500000000)
#define PREPARE_GRACE_NS ((int64_t)300000000) /* for errors of the other hosts, told together */

const char *drv_app_state_name(enum drv_app_state state)
{
	return (unsigned int)state < DRV_APP_STATES ? app_names[state] : "?";
}

static const char *app_name(const struct drv_app *app)
{
	return app->spec != NULL ? app->spec->application : "application";
}

void drv_app_move(struct drv_app *app, enum drv_app_state to)
{
	struct drv_core *core = app->core;
	bool legal = (app_moves[app->state] & BIT(to)) != 0;

	drv_log(core, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR, app_name(app),
		"run %llu: %s -> %s%s", (unsigned long long)app->run, app_names[app->state],
		app_names[to], legal ? "" : ": this move is not in the table; please report it");
	core->illegal_moves += legal ? 0 : 1;
	app->state = to;
	drv_timer_cancel(&core->timers, &app->phase);
}

void drv_app_finish(struct drv_app *app)
{
	struct drv_core *core = app->core;

	drv_app_move(app, DRV_APP_ENDED);
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
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_ENDED, .summary = &app->summary});
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
	if (app->host_count == 0) {
		drv_app_finish(app);
		return;
	}
	drv_app_move(app, DRV_APP_KILLING);
	for (uint32_t i = 0; i < app->host_count; i++)
		drv_host_kill(&app->hosts[i]);
	if (all_gone(app))
		drv_app_finish(app);
	else
		drv_set(app->core, &app->phase, app->core->now_ns + app->core->config.kill_ns);
}

static void app_fail_text(struct drv_app *app, int exit_code, const char *sentence)
{
	if (app->state == DRV_APP_KILLING) { /* why it ends is decided */
		drv_log(app->core, FRAGI_LOG_DEBUG, app_name(app), "also: %s", sentence);
		return;
	}
	app->result = FRAGI_SUMMARY_FAILED;
	app->exit_code = exit_code;
	app->sentence = fragi_arena_strdup(&app->arena, sentence);
	if (app->sentence == NULL)
		drv_short_of_memory(app->core);
	drv_log(app->core, FRAGI_LOG_ERROR, app_name(app), "%s", sentence);
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
void drv_app_fail_by_diag(struct drv_app *app, int exit_code)
{
	char line[FW_TEXT_MAX], *first;

	if (app->diag.count == 0) {
		drv_short_of_memory(app->core);
		return;
	}
	for (size_t i = 1; i < app->diag.count; i++)
		drv_log(app->core, FRAGI_LOG_ERROR, app_name(app), "%s",
			fragi_err_line(&app->diag.items[i], line, sizeof(line)));
	first = fragi_arena_strdup(&app->core->actions->arena,
				   fragi_err_line(&app->diag.items[0], line, sizeof(line)));
	app_fail_text(app, exit_code, first != NULL ? first : "");
}

static void app_drain(struct drv_app *app)
{
	struct drv_core *core = app->core;

	drv_app_move(app, DRV_APP_DRAINING);
	drv_set(core, &app->phase, core->now_ns + core->config.drain_ns + core->config.close_ns);
	for (uint32_t i = 0; i < app->host_count; i++)
		drv_host_stop(&app->hosts[i], core->config.drain_ns);
	drv_app_host_changed(app);
}

static void app_run(struct drv_app *app)
{
	drv_app_move(app, DRV_APP_RUNNING);
	drv_timer_cancel(&app->core->timers, &app->start);
	drv_log(app->core, FRAGI_LOG_INFO, app_name(app), "runs in %u host%s", app->host_count,
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
	drv_app_move(app, DRV_APP_CLOSING);
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
				drv_set(app->core, &app->judge,
					app->core->now_ns + PREPARE_GRACE_NS);
			break;
		}
		if (app->diag.count != 0)
			drv_app_fail_by_diag(app, app->prepare_exit_code);
		else
			drv_start_wire(app);
		break;
	case DRV_APP_WIRING:
		if (all_at(app, DRV_HOST_WIRED))
			drv_start_launch(app);
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
	if (app->state >= DRV_APP_DRAINING)
		return;
	if (signal != 0)
		app->result = FRAGI_SUMMARY_STOPPED;
	app->ending_ns = app->core->now_ns;
	if (app->state ==
	    DRV_APP_STARTING) { /* some hosts run already; when all do, they stop in order */
		app->stop_wanted = true;
		return;
	}
	if (app->state != DRV_APP_RUNNING) { /* nothing ran yet */
		app_kill(app);
		return;
	}
	app_drain(app);
}

void drv_app_stop_at_once(struct drv_app *app, int signal)
{
	if (app->state == DRV_APP_KILLING)
		return;
	app->result = FRAGI_SUMMARY_STOPPED;
	app->exit_code = 128 + signal;
	app_kill(app);
}

static void suspect(struct drv_app *app, const struct drv_suspicion *suspicion)
{
	app->suspicion = *suspicion;
	app->suspicion.since_ns = app->core->now_ns;
	app->suspicion.sentence = fragi_arena_strdup(&app->arena, suspicion->sentence);
	if (app->suspicion.sentence == NULL)
		drv_short_of_memory(app->core);
	drv_set(app->core, &app->judge, app->core->now_ns + SUSPICION_GRACE_NS);
}

/*
 * While the application stops a host may end, or be ended by its worker, before its peers, which
 * then see the link break. Any other end has ended the application.
 */
static bool ended_before_its_peers(const struct drv_host *host)
{
	return host->state == DRV_HOST_GONE;
}

void drv_app_suspect(struct drv_app *app, struct drv_host *host, uint32_t peer,
		     const char *sentence)
{
	if (app->suspicion.host != NULL || peer == 0 || peer > app->host_count)
		return;
	if (ended_before_its_peers(&app->hosts[peer - 1]))
		return;
	drv_log(app->core, FRAGI_LOG_DEBUG, app_name(app), "%s reports that it lost %s: %s",
		host->name, app->hosts[peer - 1].name, sentence);
	suspect(app, &(struct drv_suspicion){host, &app->hosts[peer - 1], sentence, 1});
}

void drv_app_suspect_wiring(struct drv_app *app, struct drv_host *host, int exit_code,
			    const char *sentence)
{
	if (app->suspicion.host != NULL)
		return;
	drv_log(app->core, FRAGI_LOG_DEBUG, app_name(app), "%s could not be wired: %s", host->name,
		sentence);
	suspect(app, &(struct drv_suspicion){host, NULL, sentence, exit_code});
}

/*
 * A worker that has not been heard since the report, or for longer than between two beats, may have
 * more to say about its host.
 */
static bool is_suspect(const struct drv_host *host, const struct drv_suspicion *s)
{
	const struct drv_session *session = host->session;
	int64_t silent_ns;

	if (session == NULL || session->state == DRV_SESSION_SUSPECT)
		return session != NULL;
	silent_ns = session->core->now_ns - session->heard_ns;
	return host != s->host && (session->heard_ns <= s->since_ns ||
				   silent_ns * 2 > session->core->config.beat_ns * 3);
}

/* Whether one of the ends may yet turn out to be dead. */
static bool ends_are_suspect(const struct drv_app *app, const struct drv_suspicion *s)
{
	bool found = is_suspect(s->host, s) || (s->peer != NULL && is_suspect(s->peer, s));

	for (uint32_t i = 0; s->peer == NULL && i < app->host_count; i++)
		found = found || is_suspect(&app->hosts[i], s);
	return found;
}

/*
 * The time for better news is over: errors of PREPARE are told, and a data link that was reported
 * lost is the cause if its far end did not turn out to be.
 */
static void app_judge(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	struct drv_suspicion *s = &app->suspicion;

	if (app->state == DRV_APP_PREPARING && app->diag.count != 0) {
		drv_app_fail_by_diag(app, app->prepare_exit_code);
		return;
	}
	if (s->host == NULL || app->state >= DRV_APP_CLOSING)
		return;
	if (s->peer != NULL && ended_before_its_peers(s->peer)) {
		s->host = NULL;
		return;
	}
	if (ends_are_suspect(app, s)) {
		s->waits = true;
		drv_set(core, timer, now_ns + core->config.beat_ns);
		return;
	}
	if (s->waits) { /* it is heard again, and has the usual time to say why */
		s->waits = false;
		drv_set(core, timer, now_ns + SUSPICION_GRACE_NS);
		return;
	}
	if (s->peer == NULL) {
		drv_app_fail(app, s->exit_code, "%s", s->sentence);
		return;
	}
	drv_app_fail(
		app, 1,
		"the data link between %s on worker %s and %s on worker %s was lost, while their control links are up: %s",
		s->host->name, s->host->worker, s->peer->name, s->peer->worker, s->sentence);
}

static void app_phase_over(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;

	switch (app->state) {
	case DRV_APP_PREPARING:
	case DRV_APP_WIRING:
	case DRV_APP_STARTING:
		drv_start_overdue(app);
		break;
	case DRV_APP_DRAINING:
		drv_log(core, FRAGI_LOG_WARN, app_name(app),
			"did not drain within %.1f s; what is queued is dropped",
			(double)core->config.drain_ns * 1e-9);
		app_close(app);
		break;
	case DRV_APP_CLOSING:
		for (uint32_t i = 0; i < app->host_count; i++)
			if (app->hosts[i].state != DRV_HOST_GONE)
				drv_log(core, FRAGI_LOG_WARN, app_name(app),
					"%s on worker %s did not end within %.1f s; it is killed",
					app->hosts[i].name, app->hosts[i].worker,
					(double)core->config.close_ns * 1e-9);
		app_kill(app);
		break;
	case DRV_APP_KILLING:
		for (uint32_t i = 0; i < app->host_count; i++) {
			if (app->hosts[i].state == DRV_HOST_GONE)
				continue;
			drv_log(core, FRAGI_LOG_WARN, app_name(app),
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

static void app_progress(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_core *core = arg;
	const char *text = app_names[app->state];

	if (app->state == DRV_APP_NEW)
		text = "writing to the state folder";
	else if (app->state == DRV_APP_WAITING)
		text = drv_text(core, "waiting for %s", app->missing);
	else if (app->started_ns != 0)
		text = drv_text(core, "%s %.1f s, %llu messages",
				app->state == DRV_APP_STARTING ? "running" : app_names[app->state],
				(double)(now_ns - app->started_ns) * 1e-9,
				(unsigned long long)drv_report_delivered(app));
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_PROGRESS, .text = text});
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
	app->fragments =
		fragi_arena_alloc(&app->arena, app->spec->fragment_count * sizeof(*app->fragments));
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

/* Its epoch is safe: from now on workers may hear of it. */
static void app_wait(struct drv_app *app)
{
	struct drv_core *core = app->core;

	drv_app_move(app, DRV_APP_WAITING);
	drv_app_place(app);
	if (app->state == DRV_APP_WAITING)
		drv_start_say_missing(&app->say, core->now_ns, core);
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
	app->epoch = ++core->last_epoch;
	app->given_ns = core->now_ns;
	app->phase = (struct drv_timer){.fire = app_phase_over, .owner = app};
	app->start = (struct drv_timer){.fire = drv_start_timeout, .owner = app};
	app->say = (struct drv_timer){.fire = drv_start_say_missing, .owner = app};
	app->progress = (struct drv_timer){.fire = app_progress, .owner = app};
	app->judge = (struct drv_timer){.fire = app_judge, .owner = app};
	r = app_read(app, event);
	if (r == -ENOMEM) {
		drv_short_of_memory(core);
		return;
	}
	if (r < 0) {
		drv_app_fail_by_diag(app, 2);
		return;
	}
	if (event->start_timeout_ns > 0)
		drv_set(core, &app->start, core->now_ns + event->start_timeout_ns);
	drv_set(core, &app->progress, core->now_ns + core->config.progress_ns);
	if (core->config.keeps_state)
		drv_emit(core, &(struct drv_action){.kind = DRV_DO_PERSIST, .epoch = app->epoch});
	else
		app_wait(app);
}

void drv_app_persisted(struct drv_app *app, const char *why_not)
{
	if (why_not != NULL)
		drv_app_fail(app, 3, "%s", why_not);
	else
		app_wait(app);
}

void drv_app_destroy(struct drv_app *app)
{
	struct drv_timer *timers[] = {&app->phase, &app->start, &app->say, &app->progress,
				      &app->judge};

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
