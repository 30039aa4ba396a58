// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/adopt.h>

#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * While the driver of a service is away, its applications run on. When it is back, each worker
 * reports the hosts that it was given, those too that have ended meanwhile, with all that they have
 * said that still matters. A run that the state folder knows without an end waits for that; a run
 * that it does not know was started after what is left of the state, and is taken from the reports
 * alone. When all hosts of a run are reported, and all were started, the application is adopted: it
 * passes quickly through the states of a start, as one whose hosts have done all that is asked for,
 * and then hears what they have said. One that is not reported in time, or had not been started,
 * has ended with its driver, and starts anew if it is wanted; what is reported of it is killed.
 * That a run is wanted is known from the state folder alone: workers cannot start applications.
 *
 * Numbers of runs and epochs go on above all that were reported. A worker obeys one driver at a
 * time, and reports to it alone: what it reports is nobody else's.
 */
#define NUMBER_MAX ((uint64_t)INT64_MAX / 2) /* of a run or epoch: others can follow */
#define REPORTS_MAX 1024 /* hosts of a worker: what it keeps of them (WRK_KEPT_MAX) */
#define QUEUE_MAX 64     /* messages of a host until its application is adopted */

/* What it requires, on the worker that runs it; sign -1: no more. */
static void reserve(const struct drv_reported *reported, int64_t sign)
{
	const struct fw_host_create *create = &reported->report->report.create;
	const struct drv_app *app = reported->app;

	for (uint32_t i = 0; i < create->fragment_count; i++) {
		const struct fragi_spec_fragment *fragment =
			fragi_strmap_get(&app->by_name, create->fragments[i]);

		if (fragment != NULL)
			drv_start_reserve(app, (size_t)(fragment - app->spec->fragments),
					  reported->session, sign);
	}
}

void drv_reported_free(struct drv_reported *reported)
{
	struct drv_core *core = reported->app->core;

	reserve(reported, -1);
	reported->session->reported--;
	core->work_left = core->has_room = true; /* others may have its place */
	fw_message_free(reported->report);
	fw_message_free(reported->prepared);
	fw_message_free(reported->past);
	for (uint32_t i = 0; i < reported->queued; i++)
		fw_message_free(reported->queue[i]);
	fragi_free(reported->queue);
	fragi_free(reported);
}

void drv_adopt_disown(struct drv_session *session, uint64_t run, uint32_t number, uint64_t epoch,
		      bool is_over)
{
	struct fw_message message = {
		.kind = FW_HOST_KILL, .run = run, .host = number, .epoch = epoch};

	message.stop.reason = "its driver has come back without it";
	(void)drv_send(session, &message); /* it ends with its session else */
	message = (struct fw_message){.kind = FW_APP_ENDED, .run = run};
	if (is_over)
		(void)drv_send(session, &message);
}

static struct drv_app *app_of(const struct drv_core *core, uint64_t run)
{
	struct drv_app *app = drv_app_find(core, run);

	return app != NULL && app->state != DRV_APP_ENDED ? app : NULL;
}

static struct drv_reported *find(const struct drv_app *app, const struct drv_session *session,
				 const struct fw_message *message)
{
	struct drv_reported *reported = app->adopting->first;

	while (reported != NULL &&
	       (reported->session != session || reported->number != message->host ||
		reported->epoch != message->epoch))
		reported = reported->next;
	return reported;
}

static void begin(struct drv_app *app)
{
	app->adopting = fragi_calloc(1, sizeof(*app->adopting));
	if (app->adopting == NULL) {
		drv_app_fail_for_memory(app);
		return;
	}
	app->adopting->is_touched = true;
	app->origin = DRV_ORIGIN_RESTORED;
	app->kept.state = DRV_KEPT_WRITTEN;
	if (app->core->numbers_change == 0)
		drv_persist_numbers(app->core);
	drv_app_begin(app);
}

static const char *placed_on(const struct drv_core *core, uint64_t run)
{
	for (const struct drv_placed *placed = core->placed; placed != NULL; placed = placed->next)
		if (placed->run == run)
			return placed->workers;
	return NULL;
}

void drv_adopt_placed(struct drv_core *core, uint64_t run, const char *workers)
{
	struct drv_placed *placed = fragi_calloc(1, sizeof(*placed) + strlen(workers) + 1);

	if (placed == NULL) /* it then waits as long as for workers that are not known */
		return;
	placed->run = run;
	strcpy(placed->workers, workers);
	placed->next = core->placed;
	core->placed = placed;
}

bool drv_adopt_restore(struct drv_core *core, struct drv_ended *ended)
{
	const struct drv_event_app event = {
		.source = ended->source,
		.source_bytes = ended->source_bytes,
		.name = ended->name,
		.started_by = ended->started_by,
	};
	const char *workers = placed_on(core, ended->run);
	struct drv_app *app;

	if (!core->config.adopts || ended->source == NULL ||
	    drv_app_named(core, ended->name) != NULL ||
	    drv_history_named(&core->history, ended->name) != ended)
		return false;
	app = drv_app_create(core, &event, ended->run);
	if (app == NULL)
		return false;
	app->next.is_wanted = ended->is_wanted;
	begin(app);
	if (app->adopting != NULL) {
		app->adopting->is_kept = true;
		app->adopting->workers = workers != NULL ? fragi_strdup(workers) : NULL;
		app->adopting->unseen = app->adopting->workers;
	}
	drv_history_take(&core->history, ended);
	return true;
}

/* Neither this driver nor one whose state it has has given that number. */
static bool is_foreign(const struct drv_core *core, uint64_t run)
{
	for (size_t i = 0; i < core->foreign_count; i++)
		if (run >= core->foreign[i].first && run <= core->foreign[i].last)
			return true;
	return false;
}

/*
 * What has a name that another run has: the newer run is the right one, unless the state folder
 * knows that the other one is wanted.
 */
static bool may_have_name(struct drv_core *core, const char *name, uint64_t run)
{
	const struct drv_ended *ended = drv_history_named(&core->history, name);
	struct drv_app *other = drv_app_named(core, name);

	if (ended != NULL && (ended->run > run || ended->is_wanted))
		return false;
	if (other == NULL)
		return true;
	if (other->adopting == NULL || other->adopting->is_taken || other->next.is_wanted ||
	    other->run > run)
		return false;
	other->next.is_wanted = false;
	other->end = DRV_END_AT_ONCE;
	drv_app_wake(other);
	return true;
}

/* The application of a run of which a host is reported; NULL: it is over. */
static struct drv_app *app_for(struct drv_core *core, const struct fw_message *message)
{
	const struct fw_host_create *create = &message->report.create;
	struct drv_app *app = app_of(core, message->run);
	struct drv_ended *ended;

	if (app != NULL)
		return app->adopting != NULL && !app->adopting->is_taken &&
				       app->end < DRV_END_FAILED
			       ? app
			       : NULL;
	ended = drv_history_find(&core->history, message->run);
	if (ended != NULL) {
		if (ended->is_cut && drv_adopt_restore(core, ended))
			return app_of(core, message->run);
		return NULL;
	}
	if (!core->config.adopts || !is_foreign(core, message->run) || create->source_bytes == 0 ||
	    core->stops > 0 || core->app_count >= DRV_APPS_MAX ||
	    drv_source_bytes_of_all(core) + create->source_bytes > DRV_SOURCES_MAX ||
	    !may_have_name(core, create->application, message->run))
		return NULL;
	app = drv_app_create(core,
			     &(struct drv_event_app){.source = create->source,
						     .source_bytes = create->source_bytes,
						     .name = create->application},
			     message->run);
	if (app == NULL)
		return NULL;
	app->next.is_wanted = false; /* only a worker says so: nobody starts it anew */
	begin(app);
	if (app->adopting == NULL)
		return NULL;
	/* With its number: a driver that has only this one takes the run for one that is over. */
	drv_persist_adopted(app);
	return app;
}

/* What was given before is not given again, whoever gave it. */
static void raise_numbers(struct drv_core *core, const struct fw_message *message)
{
	struct drv_app *app = app_of(core, message->run);

	drv_persist_raise_runs(core, message->run);
	if (message->epoch <= core->last_epoch)
		return;
	drv_persist_epochs_above(core, message->epoch);
	/* Another run of that number, which has no host yet, must not be older than this one. */
	if (app != NULL && app->adopting == NULL && app->host_count == 0)
		app->epoch = drv_persist_next_epoch(core);
}

/* Bounds what a worker may have the driver keep of its report. */
static bool fits(struct drv_session *session, size_t bytes)
{
	session->report_bytes += bytes;
	return session->report_bytes <= DRV_SOURCES_MAX;
}

/* Why a worker that reports this is not believed; NULL: it is. */
static const char *why_impossible(struct drv_session *session, const struct fw_message *message)
{
	if (message->run == 0 || message->run > NUMBER_MAX || message->epoch > NUMBER_MAX)
		return "it reports a host with impossible numbers";
	if (session->to_report == 0)
		return "it reports more hosts than it has announced, or than a worker keeps";
	session->to_report--;
	if (!fits(session, message->report.create.source_bytes))
		return "the graphs that it reports are larger than driverd takes";
	return NULL;
}

/* Workers keep what they know of a run until its end is on the disk, and hear of it then. */
static bool is_over_for_good(const struct drv_core *core, uint64_t run)
{
	const struct drv_ended *ended = drv_history_find(&core->history, run);

	return ended == NULL || !ended->is_untold;
}

/* Takes message. */
static void take_report(struct drv_session *session, struct fw_message *message)
{
	struct drv_core *core = session->core;
	struct drv_app *app;
	struct drv_reported *reported;
	const char *impossible = why_impossible(session, message);

	if (impossible != NULL) {
		drv_session_drop(session, impossible);
		fw_message_free(message);
		return;
	}
	raise_numbers(core, message);
	core->items -= (int64_t)message->report.create.source_bytes / 64;
	app = app_for(core, message);
	reported = app != NULL ? fragi_calloc(1, sizeof(*reported)) : NULL;
	if (reported == NULL) {
		drv_log(core, FRAGI_LOG_WARN, message->report.create.application,
			"worker %s still has host %u of run %llu, which is over: it is killed",
			session->name, message->host, (unsigned long long)message->run);
		drv_adopt_disown(session, message->run, message->host, message->epoch,
				 is_over_for_good(core, message->run));
		fw_message_free(message);
		return;
	}
	*reported = (struct drv_reported){.next = app->adopting->first,
					  .app = app,
					  .session = session,
					  .number = message->host,
					  .epoch = message->epoch,
					  .report = message,
					  .stop = message->report.stop};
	reported->is_partial = !message->report.started;
	session->reported++;
	reserve(reported, 1);
	app->adopting->first = reported;
	app->adopting->is_touched = true;
	drv_app_wake(app);
}

static bool says_whether_idle(const struct fw_message *message)
{
	return message->kind == FW_HOST_EVENT &&
	       (message->event.state == FW_STATE_RUNNING || message->event.state == FW_STATE_IDLE);
}

/* Whether one says nothing any more when next has come. */
static bool is_outdated(const struct fw_message *one, const struct fw_message *next)
{
	if (one->kind == FW_HOST_STATS && next->kind == FW_HOST_STATS)
		return next->stats.final || !one->stats.final;
	return says_whether_idle(one) && says_whether_idle(next);
}

/* Whether next says nothing that one has not said. */
static bool is_repeated(const struct fw_message *one, const struct fw_message *next)
{
	if (one->kind != next->kind)
		return false;
	if (one->kind == FW_HOST_STATS)
		return one->stats.final && !next->stats.final;
	return one->kind == FW_HOST_EVENT && !says_whether_idle(next) &&
	       one->event.state == next->event.state && one->event.peer == next->event.peer;
}

/* Makes place for one more. Returns false when there is none. */
static bool grow(struct drv_reported *reported)
{
	uint32_t capacity = reported->capacity == 0 ? 8 : reported->capacity * 2;
	struct fw_message **queue;

	if (reported->queued < reported->capacity)
		return true;
	if (capacity > QUEUE_MAX)
		return false;
	queue = fragi_realloc(reported->queue, capacity * sizeof(struct fw_message *));
	if (queue == NULL)
		return false;
	reported->queue = queue;
	reported->capacity = capacity;
	return true;
}

/* Takes message. */
static void enqueue(struct drv_reported *reported, struct fw_message *message)
{
	uint32_t kept = reported->heard;
	bool is_new = true;

	for (uint32_t i = reported->heard; i < reported->queued; i++) {
		struct fw_message *one = reported->queue[i];

		is_new = is_new && !is_repeated(one, message);
		if (is_outdated(one, message))
			fw_message_free(one);
		else
			reported->queue[kept++] = one;
	}
	reported->queued = kept;
	if (message->kind == FW_HOST_SAVED) /* too much of it: the operators begin anew */
		is_new = fits(reported->session, message->saved.size);
	if (is_new && grow(reported)) {
		reported->queue[reported->queued++] = message;
		return;
	}
	/* One lost peer of many is enough; else its application misses it, as of a broken link. */
	if (is_new && message->kind != FW_HOST_SAVED &&
	    (message->kind != FW_HOST_EVENT || message->event.state != FW_STATE_PEER_LOST))
		drv_session_drop(reported->session, "there is no room for what it reports");
	fw_message_free(message);
}

/* About a host that was reported. Takes message if it returns true. */
static bool take_about(struct drv_session *session, struct fw_message *message)
{
	struct drv_app *app = app_of(session->core, message->run);
	struct drv_reported *reported =
		app != NULL && app->adopting != NULL ? find(app, session, message) : NULL;
	struct fw_message **at = NULL;

	if (reported == NULL)
		return false;
	app->adopting->is_touched = true;
	drv_app_wake(app);
	if (message->kind == FW_HOST_LINES)
		return false;
	if (message->kind == FW_HOST_PREPARED && reported->prepared == NULL &&
	    message->prepared.ok && !app->adopting->is_taken)
		at = &reported->prepared;
	if (message->kind == FW_HOST_PAST && reported->past == NULL && !app->adopting->is_taken)
		at = &reported->past;
	if (at != NULL)
		*at = message;
	else
		enqueue(reported, message);
	return true;
}

static bool concerns(const struct drv_adopting *adopting, const struct drv_session *session)
{
	const char *name = adopting->unseen;
	size_t length = strlen(session->name);

	while (name != NULL && (name = strstr(name, session->name)) != NULL) {
		if (name[length] == '\n' && (name == adopting->unseen || name[-1] == '\n'))
			return true;
		name += length;
	}
	for (const struct drv_reported *r = adopting->first; r != NULL; r = r->next)
		if (r->session == session)
			return true;
	return false;
}

/* The worker has reported all that it runs. */
static void touch_concerned(const struct drv_session *session)
{
	const struct drv_core *core = session->core;

	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_adopting *adopting = core->apps[i]->adopting;

		if (adopting == NULL || !concerns(adopting, session))
			continue;
		adopting->is_touched = true;
		drv_app_wake(core->apps[i]);
	}
}

bool drv_adopt_takes(struct drv_session *session, struct fw_message *message)
{
	struct drv_core *core = session->core;

	switch (message->kind) {
	case FW_REPORTED:
		session->is_reporting = false;
		touch_concerned(session);
		drv_app_wake_all(core);
		fw_message_free(message);
		return true;
	case FW_HOST_REPORT:
		if (session->is_reporting)
			take_report(session, message);
		else
			fw_message_free(message);
		return true;
	case FW_HOST_PREPARED:
	case FW_HOST_WIRED:
	case FW_HOST_STARTED:
	case FW_HOST_EVENT:
	case FW_HOST_SET_DONE:
	case FW_HOST_STATS:
	case FW_HOST_EXIT:
	case FW_HOST_SAVED:
		return take_about(session, message);
	case FW_HOST_PAST:
		if (!take_about(session, message))
			fw_message_free(message);
		return true;
	default:
		return false;
	}
}

void drv_adopt_joined(struct drv_session *session, uint32_t reports)
{
	struct drv_core *core = session->core;

	drv_persist_joined(session);
	session->is_reporting = core->config.adopts && reports > 0;
	session->to_report = reports < REPORTS_MAX ? reports : REPORTS_MAX;
	session->joined_ns = core->now_ns;
	if (!session->is_reporting)
		touch_concerned(session);
}

const char *drv_adopt_why_late(const struct drv_session *session)
{
	const struct drv_core *core = session->core;

	return session->is_reporting && core->now_ns - session->joined_ns > core->config.adopt_ns
		       ? "it did not finish its report in time"
		       : NULL;
}

void drv_adopt_session_lost(struct drv_session *session)
{
	for (size_t i = 0; i < session->core->app_count; i++) {
		struct drv_adopting *adopting = session->core->apps[i]->adopting;
		struct drv_reported **at = adopting != NULL ? &adopting->first : NULL;

		if (adopting != NULL)
			adopting->unseen = adopting->workers;
		while (at != NULL && *at != NULL) {
			struct drv_reported *reported = *at;

			if (reported->session != session) {
				at = &reported->next;
				continue;
			}
			*at = reported->next;
			drv_reported_free(reported);
			adopting->is_touched = true;
			drv_app_wake(session->core->apps[i]);
		}
	}
}

void drv_adopt_wait(struct drv_app *app)
{
	struct drv_core *core = app->core;

	snprintf(app->placing.missing, sizeof(app->placing.missing), "the workers that run it");
	drv_set(core, &app->timers.phase, core->now_ns + core->config.adopt_ns);
	drv_log(core, FRAGI_LOG_INFO, drv_app_name(app),
		"run %llu ran when driverd ended last; waits for its workers to report it",
		(unsigned long long)app->run);
}

void drv_adopt_end(struct drv_app *app)
{
	struct drv_adopting *adopting = app->adopting;

	for (const struct drv_reported *r = adopting->first; r != NULL; r = r->next)
		drv_adopt_disown(r->session, app->run, r->number, r->epoch, true);
	drv_adopt_fini(app);
}

void drv_adopt_fini(struct drv_app *app)
{
	struct drv_adopting *adopting = app->adopting;

	if (adopting == NULL)
		return;
	while (adopting->first != NULL) {
		struct drv_reported *reported = adopting->first;

		adopting->first = reported->next;
		drv_reported_free(reported);
	}
	fragi_free(adopting->workers);
	fragi_free(adopting);
	app->adopting = NULL;
}
