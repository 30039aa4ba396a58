// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/strmap.h>

/* From a worker's coming to why it is not chosen: others may come, or find their GPUs. */
#define EXPLAIN_NS ((int64_t)1000000000)

/*
 * The start of an application: its fragments are placed on workers, as hosts; and what is reported
 * when that, or a host's answer, takes too long.
 */

/* The fragments of one worker with the same key share a host, as fragi_spec_share_host says. */
static char *host_key(struct drv_app *app, const struct drv_session *session,
		      const struct fragi_spec_fragment *fragment)
{
	const struct fragi_spec_on_failure *own = &fragment->on_failure;
	unsigned long long connection = session->connection;
	struct fragi_arena *arena = &app->core->actions->arena;

	if (app->core->config.is_local)
		return fragi_arena_printf(arena, "%llu", connection);
	if (fragment->host != NULL)
		return fragi_arena_printf(arena, "%llu/%s", connection, fragment->host);
	if (fragi_spec_python_module(fragment) != NULL || fragment->requirements.mig != NULL)
		return fragi_arena_printf(arena, "%llu.%s", connection, fragment->name);
	return fragi_arena_printf(arena, "%llu:%d:%u:%lld:%lld:%lld", connection, (int)own->policy,
				  own->intensity, (long long)own->period_ns,
				  (long long)own->backoff_ns, (long long)own->lease_ns);
}

static struct drv_host *host_for(struct drv_app *app, struct drv_session *session,
				 const struct fragi_spec_fragment *fragment,
				 struct fragi_strmap *hosts)
{
	char *name = host_key(app, session, fragment);
	struct drv_host *host = name != NULL ? fragi_strmap_get(hosts, name) : NULL;

	if (host != NULL || name == NULL)
		return host;
	host = &app->hosts[app->host_count];
	if (fragi_strmap_put(hosts, name, host) < 0)
		return NULL;
	app->host_count++;
	app->hosts_in[DRV_HOST_PLACED]++;
	*host = (struct drv_host){
		.app = app,
		.number = app->host_count,
		.now.state = DRV_HOST_PLACED,
		.now.epoch = app->epoch,
		.now.has_begun = true,
		.on_failure = &fragment->on_failure,
		.now.session = session,
		.first_memory = fragi_arena_strdup(&app->arena, session->memory),
	};
	return host->first_memory != NULL && drv_host_take_texts(host, session) == 0 ? host : NULL;
}

/* Decides which fragment runs in which host. Returns 0 or -ENOMEM. */
static int choose_hosts(struct drv_app *app, const struct drv_place *places)
{
	struct fragi_strmap hosts = {0};
	int r = 0;

	for (size_t f = 0; r == 0 && f < app->spec->fragment_count; f++) {
		struct drv_session *session = app->core->sessions[places[f].worker];
		const struct fragi_spec_fragment *fragment = &app->spec->fragments[f];
		struct drv_host *host = host_for(app, session, fragment, &hosts);

		app->fragments[f].host = host;
		if (host == NULL) {
			r = -ENOMEM;
			break;
		}
		app->fragments[f].in_host = host->fragment_count++;
	}
	fragi_strmap_fini(&hosts);
	return r;
}

void drv_start_take_share(const struct drv_app *app, size_t f, struct drv_session *session,
			  int64_t sign)
{
	session->placed += sign;
	assert(session->placed >= 0 && "what was taken is given back once");
	if (!app->core->config.is_local)
		drv_start_reserve(app, f, session, sign);
}

void drv_start_take_shares(const struct drv_host *host, struct drv_session *session, int64_t sign)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		drv_start_take_share(host->app, host->fragments[i], session, sign);
}

void drv_start_reserve(const struct drv_app *app, size_t f, struct drv_session *session,
		       int64_t sign)
{
	const struct fragi_spec_fragment *fragment = &app->spec->fragments[f];

	session->load += sign * drv_place_load(fragment);
	assert(session->load >= 0);
	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		session->used[i] += sign * fragment->requirements.wanted[i];
		assert(session->used[i] >= 0);
	}
	if (fragment->requirements.mig != NULL)
		drv_mig_take(&session->mig, fragment->requirements.mig->text, (int)sign);
}

void drv_start_reserve_host(const struct drv_host *host, struct drv_session *session, int64_t sign)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		drv_start_reserve(host->app, host->fragments[i], session, sign);
	/* Below 0 while hosts that run are thought away (lend_shares). */
	assert((int64_t)session->hosts + (int32_t)session->more_hosts + sign >= 0);
	session->more_hosts = (uint32_t)((int64_t)session->more_hosts + sign);
}

void drv_start_release(struct drv_app *app)
{
	bool is_freed = false;

	for (size_t f = 0; app->host_count != 0 && f < app->spec->fragment_count; f++)
		if (app->fragments[f].host->now.session != NULL) {
			drv_start_take_share(app, f, app->fragments[f].host->now.session, -1);
			is_freed = true;
		}
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.session != NULL)
			drv_host_detach(&app->hosts[i]);
	for (size_t i = 0; is_freed && i < app->core->app_count; i++)
		if (app->core->apps[i]->state == DRV_APP_WAITING) {
			app->core->apps[i]->workers_changed = true;
			drv_app_wake(app->core->apps[i]);
			app->core->work_left = true;
		}
}

const char *drv_start_no_limits(const struct drv_session *session,
				const struct fragi_spec_requirements *own)
{
	const char *why = "";

	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		const enum fragi_bound bound = fragi_amount_bound((enum fragi_amount)i);

		if (own->limit[i] == 0)
			continue;
		if (bound == FRAGI_BOUND_GROUP && session->no_limits[0] != '\0')
			return session->no_limits;
		if (bound == FRAGI_BOUND_HOST && session->minor < FW_GPU_LIMIT_MINOR)
			why = DRV_NO_GPU_LIMIT;
	}
	return why;
}

/* Limits that a worker cannot enforce are reported, once for each application. */
static void note_limits(struct drv_app *app)
{
	for (size_t f = 0; f < app->spec->fragment_count; f++) {
		const struct fragi_spec_fragment *fragment = &app->spec->fragments[f];
		const struct drv_session *session = app->fragments[f].host->now.session;
		const char *why = drv_start_no_limits(session, &fragment->requirements);

		if (why[0] == '\0')
			continue;
		drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
			"the limits of %s are not enforced on worker %s: %s", fragment->name,
			session->name, why);
		return;
	}
}

/* Warns of what does nothing where all is in one host, which has the GPUs as they are. */
static void note_local_gpus(struct drv_app *app)
{
	for (size_t f = 0; app->core->config.is_local && f < app->spec->fragment_count; f++) {
		const struct fragi_spec_requirements *own = &app->spec->fragments[f].requirements;

		if (own->mig == NULL && own->wanted[FRAGI_AMOUNT_GPU_THREADS] == 0)
			continue;
		drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
			"%s gets no part of a GPU (%s): all fragments run in one host; run the application with --workers 1, or give it to a driver",
			app->spec->fragments[f].name, own->mig != NULL ? "mig" : "gpuThreads");
		return;
	}
}

/* Warns of policies that do nothing: with all in one host there is nothing that could go on. */
static void note_local(struct drv_app *app)
{
	for (size_t f = 0; app->core->config.is_local && f < app->spec->fragment_count; f++) {
		if (app->spec->fragments[f].on_failure.policy == FRAGI_ON_FAILURE_STOP)
			continue;
		drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
			"%s is not started again when it fails (on_failure): all fragments run in one host; run the application with --workers 1, or give it to a driver",
			app->spec->fragments[f].name);
		return;
	}
}

static void forget_hosts(struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		fragi_free(app->hosts[i].texts);
	app->host_count = app->hosts_in[DRV_HOST_PLACED] = 0;
	for (size_t f = 0; f < app->spec->fragment_count; f++)
		app->fragments[f].host = NULL;
}

/*
 * Whether the workers have room for the hosts that were chosen. Fragments whose worker has none get
 * none (places).
 */
static bool have_room(struct drv_app *app, struct drv_place *places)
{
	struct drv_session *full = NULL;

	for (uint32_t i = 0; i < app->host_count; i++)
		app->hosts[i].now.session->more_hosts++;
	for (uint32_t i = 0; full == NULL && i < app->host_count; i++) {
		const struct drv_session *one = app->hosts[i].now.session;

		if (one->hosts + one->more_hosts > FW_WORKER_HOSTS_MAX)
			full = app->hosts[i].now.session;
	}
	for (uint32_t i = 0; i < app->host_count; i++)
		app->hosts[i].now.session->more_hosts--;
	if (full == NULL)
		return true;
	app->placing.nearest =
		fragi_arena_printf(&app->placing.arena, "worker %s takes %d hosts, and runs %u",
				   full->name, FW_WORKER_HOSTS_MAX, full->hosts);
	for (size_t f = 0; f < app->spec->fragment_count; f++) {
		if (app->fragments[f].host->now.session != full)
			continue;
		places[f].worker = -1;
		app->fragments[f].place =
			(struct drv_place){.worker = -1, .reason = app->placing.nearest};
	}
	return false;
}

/* Returns 0, -ENOMEM, or positive: fragments have no place after all. */
static int make_hosts(struct drv_app *app, struct drv_place *places)
{
	size_t count = app->spec->fragment_count;

	if (app->hosts == NULL) /* else it has waited for room */
		app->hosts = fragi_arena_alloc(&app->arena, count * sizeof(*app->hosts));
	if (app->hosts == NULL || choose_hosts(app, places) < 0)
		return -ENOMEM;
	if (!have_room(app, places)) {
		forget_hosts(app);
		return 1;
	}
	for (uint32_t i = 0; i < app->host_count; i++) {
		struct drv_host *host = &app->hosts[i];

		host->fragments = fragi_arena_alloc(&app->arena, host->fragment_count *
									 sizeof(*host->fragments));
		if (host->fragments == NULL)
			return -ENOMEM;
	}
	for (size_t f = 0; f < count; f++)
		app->fragments[f].host->fragments[app->fragments[f].in_host] = (uint32_t)f;
	for (uint32_t i = 0; i < app->host_count; i++)
		if (drv_host_name(&app->hosts[i]) < 0)
			return -ENOMEM;
	for (size_t f = 0; f < count; f++) {
		struct drv_host *host = app->fragments[f].host;

		drv_start_take_share(app, f, host->now.session, 1);
		if (app->fragments[f].in_host == 0)
			drv_host_attach(host, host->now.session);
		drv_log(app->core, FRAGI_LOG_INFO, app->spec->application,
			"%s runs on worker %s: %s", app->spec->fragments[f].name, host->worker,
			places[f].reason);
	}
	return 0;
}

/* Names the fragments without a worker. */
static void name_missing(struct drv_app *app, const struct drv_place *places)
{
	struct fragi_names names = {.text = app->placing.missing,
				    .size = sizeof(app->placing.missing)};

	for (size_t f = 0; f < app->spec->fragment_count; f++)
		if (places[f].worker < 0)
			fragi_names_add(&names, "%s", app->spec->fragments[f].name);
	app->placing.is_cut = names.count > FRAGI_NAMES_MAX;
}

/* The first one in a step may take longer than a step should: it cannot be divided. */
static void charge(struct drv_core *core, int64_t fragments, int64_t workers)
{
	int64_t items = 1 + fragments * workers / DRV_PLACE_PAIRS;

	core->items = items < core->items ? core->items - items : 0;
}

int drv_start_workers(struct drv_core *core, size_t fragments,
		      struct drv_place_worker **out_workers, int **out_session_of,
		      size_t *out_count)
{
	struct fragi_arena *arena = &core->actions->arena;
	struct drv_place_worker *workers =
		fragi_arena_alloc(arena, core->session_count * sizeof(*workers));
	int *session_of = fragi_arena_alloc(arena, core->session_count * sizeof(*session_of));
	size_t count = 0;

	if (workers == NULL || session_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < core->session_count; i++) {
		const struct drv_session *session = core->sessions[i];

		if (session->role != FW_ROLE_WORKER)
			continue;
		session_of[count] = (int)i;
		workers[count++] = (struct drv_place_worker){
			.name = session->name,
			.fragments = session->fragments,
			.fragment_count = session->fragment_count,
			.labels = session->labels,
			.label_count = session->label_count,
			.waits = session->waits_for[0] != '\0' || session->is_reporting,
			.is_drained = session->is_drained,
			.is_full = session->hosts + session->more_hosts >= FW_WORKER_HOSTS_MAX,
			.is_all = core->config.is_local,
			.has_leases = session->minor >= DRV_LEASES_MINOR,
			.load = session->load,
			.mig = &session->mig,
		};
		memcpy(workers[count - 1].has, session->has, sizeof(session->has));
		memcpy(workers[count - 1].used, session->used, sizeof(session->used));
	}
	charge(core, (int64_t)(fragments + 1), (int64_t)count);
	*out_workers = workers;
	*out_session_of = session_of;
	*out_count = count;
	return 0;
}

static void pause_placing(struct drv_app *app, int64_t pairs)
{
	if (pairs > DRV_PLACE_AT_ONCE)
		app->placing.again_ns = app->core->now_ns + pairs * DRV_PLACE_PAUSE_NS;
}

/* Fills places; a place's worker is the index of its session. */
static int place_all(struct drv_app *app, struct drv_place *places)
{
	struct drv_place_worker *workers;
	int *session_of, r;
	size_t count;

	if (places == NULL || drv_start_workers(app->core, app->spec->fragment_count, &workers,
						&session_of, &count) < 0)
		return -ENOMEM;
	fragi_arena_fini(&app->placing.arena);
	app->placing.nearest = NULL;
	r = drv_place(app->spec, workers, count, &app->placing.arena, places);
	if (r > 0)
		pause_placing(app, (int64_t)(app->spec->fragment_count * count));
	for (size_t f = 0; f < app->spec->fragment_count; f++) {
		app->fragments[f].place = r < 0 ? (struct drv_place){.worker = -1} : places[f];
		if (r >= 0 && places[f].worker >= 0)
			places[f].worker = session_of[places[f].worker];
		else if (r > 0 && app->placing.nearest == NULL && places[f].is_unfit)
			app->placing.nearest = places[f].reason;
	}
	return r;
}

bool drv_start_is_due(struct drv_app *app)
{
	if (app->workers_changed && app->core->now_ns < app->placing.again_ns) {
		drv_set(app->core, &app->timers.retry, app->placing.again_ns);
		app->workers_changed = false; /* looked at when the time has come */
	}
	return app->workers_changed;
}

int drv_start_place(struct drv_app *app)
{
	struct drv_place *places = fragi_arena_alloc(&app->core->actions->arena,
						     app->spec->fragment_count * sizeof(*places));
	int r = place_all(app, places);

	if (r == 0)
		r = make_hosts(app, places);
	if (r > 0)
		name_missing(app, places);
	if (r == 0) {
		note_local(app);
		note_local_gpus(app);
		note_limits(app);
		drv_persist_placed(app);
	}
	if (r < 0) /* nobody was asked to start them */
		forget_hosts(app);
	return r == 0 ? drv_flows_choose_transports(app) : r;
}

/* Gives the workers back what the hosts take, or takes it again; of one process that is nothing. */
static void lend_shares(const struct drv_app *app, int64_t sign)
{
	for (uint32_t i = 0; i < app->host_count && !app->core->config.is_local; i++) {
		const struct drv_host *host = &app->hosts[i];

		if (host->now.session != NULL)
			drv_start_reserve_host(host, host->now.session, sign);
		if (host->next.session != NULL)
			drv_start_reserve_host(host, host->next.session, sign);
	}
}

static bool is_on_drained(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.session != NULL && app->hosts[i].now.session->is_drained)
			return true;
	return false;
}

const char *drv_start_no_place(struct drv_app *app)
{
	struct drv_core *core = app->core;
	struct fragi_arena *arena = &core->actions->arena;
	const size_t fragments = app->spec->fragment_count;
	struct drv_place *places = NULL;
	struct drv_place_worker *workers;
	int *session_of, r;
	size_t count;

	if (is_on_drained(app))
		places = fragi_arena_alloc(arena, fragments * sizeof(*places));
	if (places == NULL)
		return NULL;
	lend_shares(app, -1);
	r = drv_start_workers(core, fragments, &workers, &session_of, &count);
	if (r == 0)
		r = drv_place(app->spec, workers, count, arena, places);
	lend_shares(app, 1);
	for (size_t f = 0; r > 0 && f < fragments; f++)
		if (places[f].worker < 0)
			return drv_text(
				core,
				"%s would end and wait for a worker: %s; `fragctl stop %s` ends it",
				drv_app_name(app), places[f].reason, drv_app_name(app));
	return NULL;
}

/* The first host that has not reached its goal; NULL: all have. */
static const struct drv_host *laggard(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.state < drv_goal_reached(app->hosts[i].now.goal))
			return &app->hosts[i];
	return NULL;
}

static const char *busy_operator(const struct drv_host *host)
{
	const char *op = drv_view_busy(host);

	return op != NULL ? drv_text(host->app->core, ": %s has not returned", op) : "";
}

void drv_start_overdue(struct drv_app *app)
{
	const struct drv_host *host = laggard(app);

	if (host != NULL)
		drv_app_fail(app, FRAGI_FAILURE_HOST_LATE, host,
			     "%s on worker %s did not answer %s in time%s", host->name,
			     host->worker, drv_goal_request(host->now.goal), busy_operator(host));
}

/* "fragment1,fragment2", as --fragments takes it. */
static const char *as_flag(const struct drv_app *app, char out[static sizeof(app->placing.missing)])
{
	size_t used = 0;

	for (const char *from = app->placing.missing; *from != '\0'; from++)
		if (*from != ' ')
			out[used++] = *from;
	out[used] = '\0';
	return app->placing.is_cut ? "all" : out;
}

/* "worker b can run nothing yet: ..." of the first one that waits; NULL: none does. */
static const char *about_waiting(const struct drv_app *app)
{
	for (size_t i = 0; i < app->core->session_count; i++) {
		const struct drv_session *session = app->core->sessions[i];

		if (session->waits_for[0] != '\0')
			return drv_text(app->core, "worker %s can run nothing yet: %s",
					session->name, session->waits_for);
	}
	return NULL;
}

void drv_start_timed_out(struct drv_app *app)
{
	struct drv_core *core = app->core;
	double seconds = (double)(core->real_ns - app->times.given_ns) * 1e-9;
	size_t worker_count = core->session_count - core->client_count;
	char flag[sizeof(app->placing.missing)];
	const struct drv_host *host;

	if (app->state == DRV_APP_WAITING && about_waiting(app) != NULL) {
		drv_app_fail(app, FRAGI_FAILURE_START_TIMEOUT, NULL,
			     "not started within %.1f s: there is no worker for %s: %s", seconds,
			     app->placing.missing, about_waiting(app));
		return;
	}
	if (app->state == DRV_APP_WAITING && app->placing.nearest != NULL) {
		drv_app_fail(app, FRAGI_FAILURE_START_TIMEOUT, NULL,
			     "not started within %.1f s: there is no worker for %s: %s", seconds,
			     app->placing.missing, app->placing.nearest);
		return;
	}
	if (app->state == DRV_APP_WAITING) {
		drv_app_fail(
			app, FRAGI_FAILURE_START_TIMEOUT, NULL,
			"not started within %.1f s: there is no worker for %s: %s; start workerd --address %s --fragments %s",
			seconds, app->placing.missing,
			worker_count == 0
				? "none has come"
				: drv_text(core,
					   "%zu came, and none names it or takes whatever fits",
					   worker_count),
			core->config.address != NULL ? core->config.address : "HOST:PORT",
			as_flag(app, flag));
		return;
	}
	if (app->state == DRV_APP_NEW) {
		drv_app_fail(app, FRAGI_FAILURE_START_TIMEOUT, NULL,
			     "not started within %.1f s: the state folder has not taken its epoch",
			     seconds);
		return;
	}
	host = app->state <= DRV_APP_STARTING ? laggard(app) : NULL;
	if (host != NULL)
		drv_app_fail(app, FRAGI_FAILURE_START_TIMEOUT, host,
			     "not started within %.1f s: %s on worker %s has not answered %s%s",
			     seconds, host->name, host->worker, drv_goal_request(host->now.goal),
			     busy_operator(host));
	else if (app->state <= DRV_APP_STARTING) /* the driver is still busy with their tables */
		drv_set(core, &app->timers.start, core->now_ns + core->config.beat_ns);
}

const char *drv_start_why_missing(const struct drv_app *app)
{
	const char *waiting = about_waiting(app);

	return waiting != NULL ? waiting : app->placing.nearest;
}

void drv_start_log_missing(struct drv_app *app)
{
	struct drv_core *core = app->core;
	struct drv_timer *timer = &app->timers.phase;
	const int64_t soon_ns = core->now_ns + EXPLAIN_NS;
	const char *why = drv_start_why_missing(app);
	const bool is_new = why != NULL && !app->placing.is_explained;
	size_t count = core->session_count - core->client_count;

	app->placing.is_explained |= is_new;
	if (drv_timer_is_set(timer)) {
		if (is_new && timer->at_ns > soon_ns)
			drv_set(core, timer, soon_ns);
		return;
	}
	drv_log(core, FRAGI_LOG_INFO, app->spec->application,
		"waiting for a worker for %s (%zu worker%s here)%s%s", app->placing.missing, count,
		count == 1 ? "" : "s", why != NULL ? "; " : "", why != NULL ? why : "");
	drv_set(core, timer, core->now_ns + core->config.report_missing_ns);
}
