// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/secret.h>
#include <base/sentence.h>
#include <base/units.h>

/*
 * An application from when it is given to its summary. Forward, one state after the other; a
 * failure leads to FAILING where operators run, to KILLING where none does; KILLING to ENDED when
 * the last host is gone, or when that takes too long.
 */
static const uint32_t app_transitions[DRV_APP_STATES] = {
	[DRV_APP_NEW] = FRAGI_TO(DRV_APP_WAITING) | FRAGI_TO(DRV_APP_ENDED),
	[DRV_APP_WAITING] = FRAGI_TO(DRV_APP_PREPARING) | FRAGI_TO(DRV_APP_ENDED),
	[DRV_APP_PREPARING] = FRAGI_TO(DRV_APP_WIRING) | FRAGI_TO(DRV_APP_KILLING),
	[DRV_APP_WIRING] = FRAGI_TO(DRV_APP_STARTING) | FRAGI_TO(DRV_APP_KILLING),
	[DRV_APP_STARTING] =
		FRAGI_TO(DRV_APP_RUNNING) | FRAGI_TO(DRV_APP_CLOSING) | FRAGI_TO(DRV_APP_KILLING),
	[DRV_APP_RUNNING] = FRAGI_TO(DRV_APP_DRAINING) | FRAGI_TO(DRV_APP_FAILING) |
			    FRAGI_TO(DRV_APP_CLOSING) | FRAGI_TO(DRV_APP_KILLING),
	[DRV_APP_DRAINING] =
		FRAGI_TO(DRV_APP_FAILING) | FRAGI_TO(DRV_APP_CLOSING) | FRAGI_TO(DRV_APP_KILLING),
	[DRV_APP_FAILING] = FRAGI_TO(DRV_APP_CLOSING) | FRAGI_TO(DRV_APP_KILLING),
	[DRV_APP_CLOSING] = FRAGI_TO(DRV_APP_KILLING) | FRAGI_TO(DRV_APP_ENDED),
	[DRV_APP_KILLING] = FRAGI_TO(DRV_APP_ENDED),
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
	[DRV_APP_FAILING] = "failing",
	[DRV_APP_CLOSING] = "closing",
	[DRV_APP_KILLING] = "killing",
	[DRV_APP_ENDED] = "ended",
};

/* Operators may load for minutes, until somebody wants the application to stop. */
static bool may_take_long(const struct drv_app *app)
{
	if (app->state == DRV_APP_PREPARING)
		return app->core->config.prepare_ns == 0;
	return app->state == DRV_APP_STARTING && app->core->config.start_ns == 0 &&
	       app->end == DRV_END_NONE;
}

/* Asserts the invariants of an application at the end of every step. */
static void app_check(const void *object)
{
	const struct drv_app *app = object;
	bool has_hosts = app->state >= DRV_APP_PREPARING && app->state <= DRV_APP_KILLING;
	bool has_deadline = drv_timer_is_set(&app->timers.phase) || app->timers.phase.is_due ||
			    may_take_long(app);
	uint32_t count = 0;

	(void)has_hosts;
	(void)has_deadline;
	for (uint32_t s = 0; s < DRV_HOST_STATES; s++)
		count += app->hosts_in[s];
	assert(count == app->host_count && "each host is in one state");
	assert(app->state == DRV_APP_ENDED || has_hosts == (app->host_count != 0));
	assert((!has_hosts || app->state == DRV_APP_RUNNING || has_deadline) &&
	       "what is waited for has a deadline");
	assert((!has_hosts || app->adopting != NULL || app->end < DRV_END_FAILED ||
		app->state >= (app->end == DRV_END_FAILED ? DRV_APP_FAILING : DRV_APP_KILLING)) &&
	       "what is to end is being ended");
	assert((app->summary.result != FRAGI_SUMMARY_FAILED ||
		app->summary.failure.sentence != NULL) &&
	       "a failure has a cause");
	assert((app->suspicions == NULL || app->state >= DRV_APP_CLOSING ||
		app->end >= DRV_END_FAILED || drv_timer_is_set(&app->timers.judge)) &&
	       "what is suspected will be judged");
	assert((app->turn.is_awake || app->state == DRV_APP_ENDED ||
		(app->asked_count == app->host_count && !app->timers.phase.is_due &&
		 !app->timers.start.is_due && !app->timers.judge.is_due)) &&
	       "one that sleeps has told its hosts all, and no time has come");
	assert((app->turn.is_awake || app->state != DRV_APP_WAITING || app->adopting != NULL ||
		!app->workers_changed) &&
	       "one that sleeps has looked at all workers");
	assert(app->state != DRV_APP_ENDED || drv_app_all_at(app, DRV_HOST_GONE));
}

const struct fragi_machine drv_app_machine = {
	.name = "application",
	.state_names = app_names,
	.transitions = app_transitions,
	.count = DRV_APP_STATES,
	.check = app_check,
};

const char *drv_app_state_name(enum drv_app_state state)
{
	return fragi_machine_state_name(&drv_app_machine, state);
}

struct drv_app *drv_app_named(const struct drv_core *core, const char *name)
{
	for (size_t i = 0; i < core->app_count; i++)
		if (core->apps[i]->state != DRV_APP_ENDED && core->apps[i]->spec != NULL &&
		    strcmp(core->apps[i]->spec->application, name) == 0)
			return core->apps[i];
	return NULL;
}

const char *drv_app_advise(const struct drv_app *app, const char *name)
{
	const size_t count = app->spec->fragment_count;
	const char **names =
		fragi_arena_alloc(&app->core->actions->arena, (count + 1) * sizeof(*names));
	char advice[512];

	for (size_t i = 0; names != NULL && i < count; i++)
		names[i] = app->spec->fragments[i].name;
	return drv_text(app->core, "%s",
			fragi_advise(advice, sizeof(advice), name, "fragments", names,
				     names != NULL ? count : 0));
}

static void list_timers(struct drv_app *app, struct drv_timer *out[static DRV_APP_TIMERS])
{
	struct drv_timer *const all[DRV_APP_TIMERS] = {
		&app->timers.start, &app->timers.phase, &app->timers.progress,
		&app->timers.judge, &app->timers.retry, &app->settings.timeout};

	memcpy(out, all, sizeof(all));
}

static void timer_fires(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	(void)now_ns;
	(void)arg;
	drv_app_wake(timer->owner);
}

/* decide.c looks at them when they are due. */
static void init_timers(struct drv_app *app)
{
	struct drv_timer *timers[DRV_APP_TIMERS];

	list_timers(app, timers);
	for (size_t i = 0; i < DRV_APP_TIMERS; i++)
		*timers[i] = (struct drv_timer){.fire = timer_fires, .owner = app};
}

static void cancel_timers(struct drv_app *app)
{
	struct drv_timer *timers[DRV_APP_TIMERS];

	list_timers(app, timers);
	for (size_t i = 0; i < DRV_APP_TIMERS; i++)
		drv_timer_cancel(&app->core->timers, timers[i]);
}

void drv_app_transition(struct drv_app *app, enum drv_app_state to)
{
	struct drv_core *core = app->core;
	bool legal = fragi_machine_transition(&drv_app_machine, app->state, to);

	drv_log(core, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR, drv_app_name(app),
		"run %llu: %s -> %s%s", (unsigned long long)app->run, app_names[app->state],
		app_names[to], fragi_machine_remark(legal));
	if (!legal) {
		core->illegal_transitions++;
		return;
	}
	app->state = to;
	if (to == DRV_APP_ENDED)
		cancel_timers(app);
	else
		drv_timer_cancel(&core->timers, &app->timers.phase);
}

bool drv_app_all_at(const struct drv_app *app, enum drv_host_state state)
{
	uint32_t behind = 0;

	for (uint32_t s = 0; s < state; s++)
		behind += app->hosts_in[s];
	return behind == 0;
}

static const char no_memory[] = "driverd has no memory left for this application";

/* The sentence; and, if the application goes back to the graph before, that it does. */
static const char *and_undo(struct drv_app *app, const char *sentence)
{
	char tail[FW_TEXT_MAX / 2];
	int bytes;

	if (!drv_source_undo(app))
		return sentence;
	bytes = snprintf(tail, sizeof(tail), "; %s starts again with the graph before, as run %llu",
			 drv_app_name(app), (unsigned long long)app->next.run);
	return drv_text(app->core, "%.*s%s", FW_TEXT_MAX - 1 - bytes, sentence, tail);
}

static void record_failure(struct drv_app *app, const struct fw_failure *failure,
			   const struct drv_host *host)
{
	const char *sentence;

	assert(failure->code != FRAGI_FAILURE_NONE);
	if (app->end >= DRV_END_FAILED) { /* why it ends is decided */
		drv_log(app->core, FRAGI_LOG_DEBUG, drv_app_name(app), "also: %s",
			failure->sentence);
		return;
	}
	sentence = and_undo(app, failure->sentence);
	app->end = DRV_END_FAILED;
	drv_app_wake(app);
	app->summary.result = FRAGI_SUMMARY_FAILED;
	app->summary.exit_code = fragi_failure_exit(failure->code);
	app->summary.failure = (struct fragi_summary_failure){
		.code = failure->code,
		.sentence = fragi_arena_strdup(&app->arena, sentence),
		.worker = host != NULL && !app->core->config.is_local ? host->worker : NULL,
	};
	if (failure->op != NULL && failure->op[0] != '\0')
		app->summary.failure.op = fragi_arena_strdup(&app->arena, failure->op);
	if (app->summary.failure.sentence == NULL)
		app->summary.failure.sentence = no_memory;
	drv_log(app->core, FRAGI_LOG_ERROR, drv_app_name(app), "%s", app->summary.failure.sentence);
}

void drv_app_fail(struct drv_app *app, enum fragi_failure code, const struct drv_host *host,
		  const char *format, ...)
{
	char sentence[FW_TEXT_MAX];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(sentence, sizeof(sentence), format, args);
	va_end(args);
	record_failure(app, &(struct fw_failure){.code = code, .sentence = sentence}, host);
}

void drv_app_fail_for_memory(struct drv_app *app)
{
	drv_app_fail(app, FRAGI_FAILURE_OUT_OF_MEMORY, NULL, "%s", no_memory);
}

void drv_app_fail_by_host(const struct drv_host *host, const struct fw_failure *failure)
{
	struct fw_failure own = *failure;

	if (own.code == FRAGI_FAILURE_NONE)
		own.code = FRAGI_FAILURE_HOST_FAILED;
	if (own.sentence[0] == '\0')
		own.sentence = drv_text(host->app->core, "%s on worker %s failed", host->name,
					host->worker);
	record_failure(host->app, &own, host);
}

/* Returns the host whose answer to PREPARE holds that error; NULL: none. */
static const struct drv_host *host_reporting(const struct drv_app *app, const struct frag_err *err)
{
	for (uint32_t h = 0; h < app->host_count; h++) {
		const struct fw_message *message = app->hosts[h].tables;

		for (uint32_t i = 0; message != NULL && i < message->prepared.error_count; i++) {
			const struct fw_failure *error = &message->prepared.errors[i];

			if ((int)error->line == err->line && (int)error->column == err->column &&
			    strcmp(error->file, err->file) == 0 &&
			    strcmp(error->sentence, err->text) == 0)
				return &app->hosts[h];
		}
	}
	return NULL;
}

void drv_app_fail_by_diag(struct drv_app *app)
{
	const struct frag_err *first = app->diag.items;
	const struct drv_host *host;
	char line[FW_TEXT_MAX], where[FW_WORKER_NAME_MAX + 16] = "";

	if (app->diag.count == 0) {
		drv_app_fail_for_memory(app);
		return;
	}
	fragi_diag_sort(&app->diag, 0);
	host = app->diag_host != NULL ? app->diag_host : host_reporting(app, first);
	if (host != NULL && fragi_err_failure(first) == FRAGI_FAILURE_LIBRARY_MISSING &&
	    !app->core->config.is_local)
		snprintf(where, sizeof(where), " (worker %s)", host->worker);
	fragi_err_line(first, line, sizeof(line));
	record_failure(app,
		       &(struct fw_failure){
			       .code = fragi_err_failure(first),
			       .sentence = drv_text(app->core, "%s%s", line, where),
			       .op = first->op,
		       },
		       host);
	for (size_t i = 1; i < app->diag.count; i++)
		drv_log(app->core, FRAGI_LOG_ERROR, drv_app_name(app), "%s",
			fragi_err_line(&app->diag.items[i], line, sizeof(line)));
	if (app->diag.beyond > 0)
		drv_log(app->core, FRAGI_LOG_ERROR, drv_app_name(app), "and %zu more errors",
			app->diag.beyond);
}

void drv_app_stop(struct drv_app *app, int signal)
{
	if (app->state >= DRV_APP_DRAINING || app->end >= DRV_END_FAILED)
		return;
	if (signal != 0)
		app->summary.result = FRAGI_SUMMARY_STOPPED;
	if (app->state == DRV_APP_STARTING && !drv_timer_is_set(&app->timers.phase))
		drv_set(app->core, &app->timers.phase,
			app->core->now_ns + app->core->config.drain_ns);
	app->times.ending_ns = app->core->real_ns;
	if (app->end == DRV_END_NONE)
		app->end = DRV_END_IN_ORDER;
	drv_app_wake(app);
}

void drv_app_stop_at_once(struct drv_app *app, int signal)
{
	if (app->state >= DRV_APP_KILLING || app->times.ended_ns != 0)
		return;
	if (app->end < DRV_END_FAILED) {
		app->summary.result = FRAGI_SUMMARY_STOPPED;
		app->summary.exit_code = signal != 0 ? FRAGI_EXIT_SIGNAL + signal : FRAGI_EXIT_OK;
	}
	app->end = DRV_END_AT_ONCE;
	drv_app_wake(app);
}

static int app_read(struct drv_app *app, const struct drv_event_app *event)
{
	struct fragi_source source;
	void *copy = fragi_arena_alloc(&app->arena, event->source_bytes);
	int r;

	if (copy == NULL)
		return -ENOMEM;
	if (event->source_bytes > 0) /* a client may send none */
		memcpy(copy, event->source, event->source_bytes);
	app->source.bytes = copy;
	app->source.size = event->source_bytes;
	r = fragi_source_unpack(copy, event->source_bytes, &source);
	if (r < 0)
		return fragi_diag_add(&app->diag, r, NULL, 0, 0,
				      "the application is not a packed source");
	r = fragi_spec_parse(&source.source, &app->diag, &app->spec);
	fragi_source_fini(&source);
	if (r < 0)
		return r;
	if (event->name != NULL) {
		app->spec->application = fragi_arena_strdup(&app->arena, event->name);
		if (app->spec->application == NULL)
			return -ENOMEM;
	}
	app->fragments =
		fragi_arena_alloc(&app->arena, app->spec->fragment_count * sizeof(*app->fragments));
	if (app->fragments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < app->spec->fragment_count; i++)
		if (fragi_strmap_put(&app->by_name, app->spec->fragments[i].name,
				     (void *)(uintptr_t)&app->spec->fragments[i]) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

static int draw_keys(struct drv_app *app)
{
	const struct drv_config *config = &app->core->config;

	app->keys.data = fragi_secret_alloc(FW_DATA_KEY_BYTES);
	app->keys.variables = fragi_secret_alloc(FW_VARIABLES_KEY_BYTES);
	if (app->keys.data == NULL || app->keys.variables == NULL)
		return -ENOMEM;
	config->random(config->random_arg, app->keys.data, FW_DATA_KEY_BYTES);
	config->random(config->random_arg, app->keys.variables, FW_VARIABLES_KEY_BYTES);
	return 0;
}

/* Returns where the application of that number is, or would be. */
static size_t app_index(const struct drv_core *core, uint64_t run)
{
	size_t low = 0, high = core->app_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->apps[middle]->run < run)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct drv_app *drv_app_find(const struct drv_core *core, uint64_t run)
{
	size_t i = app_index(core, run);

	return i < core->app_count && core->apps[i]->run == run ? core->apps[i] : NULL;
}

void drv_app_wake(struct drv_app *app)
{
	struct drv_core *core = app->core;

	if (app->turn.is_awake)
		return;
	app->turn.is_awake = true;
	app->turn.next = NULL;
	*core->last_awake = app;
	core->last_awake = &app->turn.next;
}

void drv_app_wake_all(struct drv_core *core)
{
	core->workers_version++;
	for (size_t i = 0; i < core->app_count; i++) {
		core->apps[i]->workers_changed = true;
		drv_app_wake(core->apps[i]);
	}
}

static int app_insert(struct drv_core *core, struct drv_app *app)
{
	size_t i = app_index(core, app->run);

	if (core->app_count == core->app_capacity) {
		size_t capacity = core->app_capacity == 0 ? 4 : core->app_capacity * 2;
		struct drv_app **apps = fragi_realloc(core->apps, capacity * sizeof(*apps));

		if (apps == NULL)
			return -ENOMEM;
		core->apps = apps;
		core->app_capacity = capacity;
	}
	memmove(core->apps + i + 1, core->apps + i, (core->app_count - i) * sizeof(*core->apps));
	core->apps[i] = app;
	core->app_count++;
	return 0;
}

/* There is not even memory for an application that fails. */
static void refuse(struct drv_core *core, uint64_t id)
{
	core->refused = (struct fragi_summary){
		.application = "application",
		.result = FRAGI_SUMMARY_FAILED,
		.failure = {.code = FRAGI_FAILURE_OUT_OF_MEMORY, .sentence = no_memory},
		.exit_code = fragi_failure_exit(FRAGI_FAILURE_OUT_OF_MEMORY),
	};
	drv_log(core, FRAGI_LOG_ERROR, NULL, "%s", no_memory);
	drv_emit(core,
		 &(struct drv_action){.kind = DRV_DO_ENDED, .app = id, .summary = &core->refused});
}

struct drv_app *drv_app_create(struct drv_core *core, const struct drv_event_app *event,
			       uint64_t run)
{
	struct drv_app *app = fragi_calloc(1, sizeof(*app));
	int r;

	if (app == NULL || drv_timers_reserve(&core->timers, DRV_APP_TIMERS) < 0) {
		fragi_free(app);
		refuse(core, event->id);
		return NULL;
	}
	app->run = run != 0 ? run : core->last_run + 1;
	if (app_insert(core, app) < 0) {
		drv_timers_release(&core->timers, DRV_APP_TIMERS);
		fragi_free(app);
		refuse(core, event->id);
		return NULL;
	}
	app->core = core;
	app->id = event->id;
	if (run == 0)
		(void)drv_persist_next_run(core);
	init_timers(app);
	drv_app_wake(app);
	app->epoch = drv_persist_next_epoch(core);
	app->next.is_wanted = true;
	app->times.given_ns = core->real_ns;
	app->workers_changed = true;
	app->given.timeout_ns = event->start_timeout_ns;
	app->given.by =
		fragi_arena_strdup(&app->arena, event->started_by != NULL ? event->started_by : "");
	r = app->given.by != NULL ? app_read(app, event) : -ENOMEM;
	if (r == 0)
		r = draw_keys(app);
	if (r == -ENOMEM) {
		drv_app_fail_for_memory(app);
	} else if (r < 0) {
		fragi_diag_classify(&app->diag, 0, FRAGI_FAILURE_GRAPH_INVALID, NULL);
		drv_app_fail_by_diag(app);
	}
	return app;
}

struct drv_app *drv_app_create_again(struct drv_core *core, const struct drv_ended *ended,
				     uint64_t run)
{
	const struct drv_event_app event = {.source = ended->source,
					    .source_bytes = ended->source_bytes,
					    .name = ended->name,
					    .started_by = ended->started_by};

	if (ended->source == NULL || drv_app_named(core, ended->name) != NULL ||
	    drv_history_named(&core->history, ended->name) != ended)
		return NULL;
	return drv_app_create(core, &event, run);
}

void drv_app_progress_defer(struct drv_app *app)
{
	const struct drv_core *core = app->core;

	if (core->config.progress_ns > 0)
		drv_set(app->core, &app->timers.progress, core->now_ns + core->config.progress_ns);
}

void drv_app_begin(struct drv_app *app)
{
	struct drv_core *core = app->core;

	if (app->end >= DRV_END_FAILED)
		return;
	if (app->given.timeout_ns > 0)
		drv_set(core, &app->timers.start, core->now_ns + app->given.timeout_ns);
	drv_app_progress_defer(app);
	if (app->adopting == NULL)
		drv_persist_start(app);
}

void drv_app_persisted(struct drv_app *app, const char *why_not)
{
	drv_app_wake(app);
	if (why_not == NULL)
		app->kept.state = DRV_KEPT_WRITTEN;
	else if (app->origin == DRV_ORIGIN_GIVEN) /* else it is tried again: nobody is here */
		drv_app_fail(app, FRAGI_FAILURE_STATE_UNWRITABLE, NULL, "%s", why_not);
}

void drv_app_free(struct drv_app *app)
{
	struct drv_app **at = &app->core->awake;

	cancel_timers(app);
	drv_timers_release(&app->core->timers, DRV_APP_TIMERS);
	while (app->turn.is_awake && *at != app)
		at = &(*at)->turn.next;
	if (app->turn.is_awake) {
		*at = app->turn.next;
		if (*at == NULL)
			app->core->last_awake = at;
	}
	drv_source_forget_before(app);
	fragi_prediction_fini(&app->reporting.prediction);
	fragi_free(app->losses);
	fragi_free(app->flows.items);
	fragi_secret_free(app->keys.data, FW_DATA_KEY_BYTES);
	fragi_secret_free(app->keys.variables, FW_VARIABLES_KEY_BYTES);
	fragi_strmap_fini(&app->by_name);
	fragi_spec_destroy(app->spec);
	fragi_diag_fini(&app->diag);
	fragi_arena_fini(&app->placing.arena);
	fragi_arena_fini(&app->arena);
	fragi_free(app);
}

size_t drv_core_app_count(const struct drv_core *core)
{
	size_t count = core->is_restoring && core->stops > 0; /* not looked at yet */

	for (size_t i = 0; i < core->app_count; i++)
		count += core->apps[i]->state != DRV_APP_ENDED;
	return count;
}
