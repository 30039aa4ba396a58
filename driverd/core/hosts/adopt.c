// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/adopt.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <base/alloc.h>

/*
 * Adoption. While the driver of a service is away, its applications run on. When it is back, each
 * worker reports the hosts that it was given, also those that have ended meanwhile, with all their
 * messages that still matter. A run that the state folder knows without an end waits for that; a
 * run that it does not know was started after what is left of the state, and is taken from the
 * reports alone. When all hosts of a run are reported, and all were started, the application is
 * adopted: it passes quickly through the states of a start, as an application whose hosts have done
 * all that is asked for, and then handles their messages. A run that is not reported in time, or
 * had not been started, has ended with its driver, and restarts if it is wanted; reported hosts of
 * it are killed. That a run is wanted is known from the state folder alone: workers cannot start
 * applications.
 *
 * A host may be reported more than once, because it has gone on in another process, or was about to
 * when the driver ended. Of these processes the newest one is the process of now that was not
 * merely prepared beside the host, nor is where the host was before it migrated to another worker.
 * HOST_PAST makes a prepared one the process of now, and is sent when the one before has ended; so
 * there are never two, and none whose counts are missed. A process that is still merely prepared is
 * the next one.
 *
 * Numbers of runs and epochs go on above all that were reported. A worker obeys one driver at a
 * time, and reports to it alone: what it reports belongs to no other driver.
 */
#define NUMBER_MAX ((uint64_t)INT64_MAX / 2) /* of a run or epoch: others can follow */
#define REPORTS_MAX 1024 /* hosts of a worker: what it keeps of them (WRK_KEPT_MAX) */

/* The one of that number that has not ended; NULL: none. */
static struct drv_app *app_of(const struct drv_core *core, uint64_t run)
{
	struct drv_app *app = drv_app_find(core, run);

	return app != NULL && app->state != DRV_APP_ENDED ? app : NULL;
}

struct drv_process *drv_adopt_each(const struct drv_app *app, uint32_t *at)
{
	const uint32_t end = app->hosts != NULL ? 2 * (uint32_t)app->spec->fragment_count : 0;

	while (*at < end) {
		struct drv_host *host = &app->hosts[*at / 2];
		struct drv_process *process = (*at)++ % 2 == 0 ? &host->now : &host->next;

		if (process->report != NULL)
			return process;
	}
	return NULL;
}

void drv_adopt_forget(struct drv_process *process)
{
	struct drv_report *report = process->report;
	struct drv_host *host = report->host;
	struct drv_core *core = host->app->core;

	process->report = NULL;
	for (uint32_t i = 0; i < report->count; i++)
		fw_message_free(report->events[i]);
	fw_message_free(report->message);
	fragi_free(report);
	if (host->app->host_count != 0)
		return;
	drv_start_reserve_host(host, process->session, -1);
	core->work_left = core->has_room = true; /* others may have its place */
	if (process == &host->now) {
		fw_message_free(host->tables);
		host->tables = NULL;
		drv_account_fini(host);
	}
	fragi_free(host->replacement.failed); /* of next */
	host->replacement.failed = NULL;
	drv_process_fini(process);
}

void drv_adopt_disown(struct drv_session *session, const struct fw_message *report)
{
	const struct drv_app *app = app_of(session->core, report->run);
	struct fw_message message = {.kind = FW_HOST_KILL};

	if (app != NULL && app->end >= DRV_END_FAILED) /* the next driver is to know why */
		message = drv_request_end(app, FW_HOST_KILL);
	else
		message.stop.reason = "its driver has come back without it";
	message.stop.restarts = app != NULL && app->end < DRV_END_FAILED;
	message.run = report->run;
	message.host = report->host;
	message.epoch = report->epoch;
	(void)drv_send(session, &message); /* it ends with its session else */
	message = (struct fw_message){.kind = FW_APP_ENDED, .run = report->run};
	if (app == NULL)
		(void)drv_send(session, &message);
}

static void begin(struct drv_app *app)
{
	app->adopting = fragi_calloc(1, sizeof(*app->adopting));
	if (app->spec != NULL)
		app->hosts = fragi_arena_alloc(&app->arena,
					       app->spec->fragment_count * sizeof(*app->hosts));
	if (app->adopting == NULL || app->hosts == NULL) {
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

const struct drv_placed *drv_adopt_placed_of(const struct drv_core *core, uint64_t run)
{
	const struct drv_placed *placed = core->placed;

	while (placed != NULL && placed->run != run)
		placed = placed->next;
	return placed;
}

void drv_adopt_placed(struct drv_core *core, uint64_t run, const char *workers)
{
	struct drv_placed *placed;
	uint32_t lines = 0, host = 0;
	char *name;

	for (const char *at = workers; *at != '\0'; at++)
		lines += *at == '\n';
	placed = fragi_calloc(1, sizeof(*placed) + lines * sizeof(placed->at[0]) + strlen(workers) +
					 1);
	if (placed == NULL) /* it then waits as long as for workers that are not known */
		return;
	placed->run = run;
	name = strcpy((char *)&placed->at[lines], workers);
	while (placed->count < lines) {
		host += *name != '\t';
		placed->at[placed->count].host = host;
		placed->at[placed->count++].worker = name + (*name == '\t');
		name = strchr(name, '\n');
		*name++ = '\0';
	}
	placed->next = core->placed;
	core->placed = placed;
}

/* NULL: it is not there, or it, or another one that may have had its name, has more to say. */
static const struct drv_session *reported(const struct drv_core *core, const char *name)
{
	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i]->is_reporting &&
		    drv_session_is_alike(core->sessions[i]->name, name))
			return NULL;
	return drv_session_worker(core, name);
}

bool drv_adopt_have_reported(const struct drv_core *core, const struct drv_placed *placed)
{
	for (uint32_t i = 0; i < placed->count; i++)
		if (reported(core, placed->at[i].worker) == NULL)
			return false;
	return true;
}

bool drv_adopt_all_have_reported(const struct drv_app *app)
{
	struct drv_adopting *own = app->adopting;

	while (own->placed != NULL && own->seen < own->placed->count &&
	       reported(app->core, own->placed->at[own->seen].worker) != NULL)
		own->seen++;
	return own->placed != NULL && own->seen == own->placed->count;
}

enum drv_adopt_place drv_adopt_place(const struct drv_host *host, const struct drv_session *session)
{
	const struct drv_placed *placed = host->app->adopting->placed;
	bool is_known = false, is_there = false, is_alike = false, may_be_elsewhere = false;

	for (uint32_t i = 0; placed != NULL && i < placed->count; i++) {
		const struct drv_session *other;

		if (placed->at[i].host != host->number)
			continue;
		is_known = true;
		other = reported(host->app->core, placed->at[i].worker);
		if (strcmp(placed->at[i].worker, session->name) == 0)
			is_there = true;
		else if (other == NULL || other->is_new)
			may_be_elsewhere = true;
		/* Workers of one name: one that came first may have taken the other's "#2". */
		is_alike = is_alike || drv_session_is_alike(placed->at[i].worker, session->name);
	}
	if (is_known && !is_alike)
		return DRV_ADOPT_EARLIER;
	return is_there && !may_be_elsewhere ? DRV_ADOPT_LAST : DRV_ADOPT_UNKNOWN;
}

bool drv_adopt_restore(struct drv_core *core, struct drv_ended *ended)
{
	const struct drv_placed *placed = drv_adopt_placed_of(core, ended->run);
	struct drv_app *app =
		core->config.adopts ? drv_app_create_again(core, ended, ended->run) : NULL;

	if (app == NULL)
		return false;
	app->next.is_wanted = ended->is_wanted;
	begin(app);
	if (app->adopting != NULL) {
		app->adopting->is_kept = true;
		app->adopting->placed = placed != NULL && placed->count != 0 ? placed : NULL;
	}
	drv_history_take(&core->history, ended);
	if (core->stops > 0) /* as what was taken up by then */
		drv_app_stop(app, SIGTERM);
	return true;
}

/* Whether neither this driver nor one whose state it has gave that number. */
static bool is_foreign(const struct drv_core *core, uint64_t run)
{
	for (size_t i = 0; i < core->foreign_count; i++)
		if (run >= core->foreign[i].first && run <= core->foreign[i].last)
			return true;
	return false;
}

/*
 * Whether the reported run may have a name that another run has: the newer run may, unless the
 * state folder knows that the other one is wanted.
 */
static bool may_have_name(struct drv_core *core, const char *name, uint64_t run)
{
	const struct drv_ended *ended = drv_history_named(&core->history, name);
	struct drv_app *other = drv_app_named(core, name);

	if (ended != NULL && (ended->run > run || ended->is_wanted))
		return false;
	if (other == NULL)
		return true;
	if (other->adopting == NULL || other->host_count != 0 || other->next.is_wanted ||
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
		return app->adopting != NULL && app->host_count == 0 && app->end < DRV_END_FAILED
			       ? app
			       : NULL;
	ended = drv_history_find(&core->history, message->run);
	if (ended != NULL) {
		if (ended->is_cut && drv_adopt_restore(core, ended))
			return app_of(core, message->run);
		return NULL;
	}
	if (!core->config.adopts || core->stops > 0 || !is_foreign(core, message->run) ||
	    create->source_bytes == 0 || core->app_count >= DRV_APPS_MAX ||
	    drv_source_no_room(core, 0, create->source_bytes) != NULL ||
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
	/*
	 * The number is written too: a driver that has only the number takes the run for one that
	 * is over.
	 */
	drv_persist_adopted(app);
	return app;
}

/*
 * Raises the numbers of runs and epochs, so that a number that any driver has given is not given
 * again.
 */
static void raise_numbers(struct drv_core *core, const struct fw_message *message)
{
	struct drv_app *app = app_of(core, message->run);

	drv_persist_raise_runs(core, message->run);
	if (message->epoch <= core->last_epoch)
		return;
	drv_persist_epochs_above(core, message->epoch);
	/* A run of that number which has no host yet must not have an older epoch than this one. */
	if (app != NULL && app->adopting == NULL && app->host_count == 0)
		app->epoch = drv_persist_next_epoch(core);
}

/* Workers keep what they run of a run until its end is on the disk, and hear of it then. */
static bool is_told_later(const struct drv_core *core, uint64_t run)
{
	const struct drv_ended *ended = drv_history_find(&core->history, run);

	return ended != NULL && ended->is_untold;
}

/* Why a worker that reports this is not believed; NULL: it is. */
static const char *why_impossible(struct drv_session *session, const struct fw_message *message)
{
	if (message->run == 0 || message->run > NUMBER_MAX || message->epoch > NUMBER_MAX)
		return "it reports a host with impossible numbers";
	if (session->to_report == 0)
		return "it reports more hosts than it has announced, or than a worker keeps";
	session->to_report--;
	session->report_bytes += message->report.create.source_bytes;
	if (session->report_bytes > DRV_SOURCES_MAX)
		return "the graphs that it reports are larger than driverd takes";
	return NULL;
}

/* The fragments of a host that is reported for the first time. Returns 0, -EINVAL, -ENOMEM. */
static int describe(struct drv_host *host, const struct fw_host_create *create)
{
	struct drv_app *app = host->app;

	if (host->fragment_count != 0)
		return 0;
	host->fragments =
		fragi_arena_alloc(&app->arena, create->fragment_count * sizeof(*host->fragments));
	if (host->fragments == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < create->fragment_count; i++) {
		const struct fragi_spec_fragment *fragment =
			fragi_strmap_get(&app->by_name, create->fragments[i]);

		if (fragment == NULL)
			return -EINVAL;
		host->fragments[i] = (uint32_t)(fragment - app->spec->fragments);
	}
	host->fragment_count = create->fragment_count;
	if (host->fragment_count == 0)
		return -EINVAL;
	host->on_failure = &app->spec->fragments[host->fragments[0]].on_failure;
	return drv_host_name(host);
}

static const char *first_memory(const struct fw_host_create *create,
				const struct drv_session *session)
{
	if (create->memory[0] == '\0')
		return session->memory;
	return strcmp(create->memory, FW_MEMORY_NONE) == 0 ? "" : create->memory;
}

/* The process takes its place. Takes message, if it returns 0; else -ENOMEM. */
static int take_place(struct drv_host *host, struct drv_process *process,
		      struct drv_session *session, struct fw_message *message)
{
	const struct fw_host_report *reported = &message->report;
	const char *memory =
		fragi_arena_strdup(&host->app->arena, first_memory(&reported->create, session));
	struct drv_report *report = fragi_calloc(1, sizeof(*report));

	if (memory == NULL || report == NULL ||
	    (process == &host->now && drv_host_take_texts(host, session) < 0)) {
		fragi_free(report);
		return -ENOMEM;
	}
	report->host = host;
	report->message = message;
	*process = (struct drv_process){.epoch = message->epoch,
					.session = session,
					.state = DRV_HOST_RUNNING,
					.goal = DRV_GOAL_RUNNING,
					.asked = DRV_GOAL_RUNNING,
					.is_adopted = true,
					.has_begun = reported->restarts == 0 || reported->started ||
						     reported->is_wired,
					.report = report};
	drv_start_reserve_host(host, session, 1);
	if (process == &host->next)
		return 0;
	host->first_memory = memory;
	drv_host_asked(host, session);
	host->past.is_inexact = reported->is_inexact;
	host->restarts.count = host->restarts.earlier = (uint32_t)reported->restarts;
	return 0;
}

/*
 * Ends a reported process that is not one of the host, because the one of that epoch is. What it
 * counted is within what the worker of that one has.
 */
static void end_other(struct drv_session *session, const struct fw_message *report,
		      const struct drv_session *owner, uint64_t epoch)
{
	struct fw_message past = {
		.kind = FW_HOST_PAST, .run = report->run, .host = report->host, .epoch = epoch};

	drv_adopt_disown(session, report);
	if (owner != NULL && owner != session && !report->report.is_beside &&
	    session->minor >= DRV_MOVES_MINOR)
		(void)drv_send(session, &past); /* else it stays until the end */
}

/* Returns whether the process is, or has been, one of the host. Takes message if so. */
static bool take_report(struct drv_host *host, struct drv_session *session,
			struct fw_message *message)
{
	const bool is_beside = message->report.is_beside;
	struct drv_process *process = is_beside ? &host->next : &host->now;
	const bool has_other = process->report != NULL;
	int r = describe(host, &message->report.create);

	/* It may have migrated to another worker, which still has to come. */
	if (r == 0 && ((has_other && process->epoch > message->epoch) ||
		       (!is_beside && drv_migrates(host) &&
			drv_adopt_place(host, session) == DRV_ADOPT_EARLIER))) {
		end_other(session, message, process->session, process->epoch);
		fw_message_free(message);
	} else if (r == 0) {
		if (has_other) {
			end_other(process->session, process->report->message, session,
				  message->epoch);
			drv_adopt_forget(process);
		}
		r = take_place(host, process, session, message);
	}
	if (r == 0 && has_other && !is_beside && host->restarts.count == 0)
		host->past.is_inexact = true;
	if (r == -ENOMEM)
		drv_app_fail_for_memory(host->app);
	return r == 0;
}

/* The process is none of its host. */
static void refuse(struct drv_session *session, const struct fw_message *message)
{
	drv_lease_reported(session->core, message->run);
	if (is_told_later(session->core, message->run))
		return;
	drv_log(session->core, FRAGI_LOG_WARN, message->report.create.application,
		"worker %s still has host %u of run %llu, which %s: it is killed", session->name,
		message->host, (unsigned long long)message->run,
		app_of(session->core, message->run) != NULL ? "goes on without it" : "is over");
	drv_adopt_disown(session, message);
}

void drv_adopt_report(struct drv_session *session, struct fw_message *message)
{
	struct drv_core *core = session->core;
	const char *impossible = session->is_reporting ? why_impossible(session, message) : NULL;
	struct drv_app *app;
	struct drv_host *host;

	if (impossible != NULL)
		drv_session_drop(session, impossible);
	if (impossible != NULL || !session->is_reporting) {
		fw_message_free(message);
		return;
	}
	raise_numbers(core, message);
	core->items -= (int64_t)message->report.create.source_bytes / 64;
	app = app_for(core, message);
	host = app != NULL ? drv_host_find(core, message->run, message->host) : NULL;
	if (host != NULL) {
		host->app = app;
		host->number = message->host;
		app->adopting->is_touched = true;
		drv_app_wake(app);
	}
	if (host != NULL && take_report(host, session, message))
		return;
	refuse(session, message);
	fw_message_free(message);
}

static bool concerns(const struct drv_app *app, const struct drv_session *session)
{
	const struct drv_placed *placed = app->adopting->placed;
	const struct drv_process *process;

	for (uint32_t i = app->adopting->seen; placed != NULL && i < placed->count; i++)
		if (strcmp(placed->at[i].worker, session->name) == 0)
			return true;
	for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;)
		if (process->session == session)
			return true;
	return false;
}

/* The worker has reported all that it runs. */
static void touch_concerned(const struct drv_session *session)
{
	const struct drv_core *core = session->core;

	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_app *app = core->apps[i];

		if (app->adopting == NULL || !concerns(app, session))
			continue;
		app->adopting->is_touched = true;
		drv_app_wake(app);
	}
}

void drv_adopt_reported(struct drv_session *session)
{
	session->is_reporting = false;
	touch_concerned(session);
	drv_app_wake_all(session->core);
}

void drv_adopt_joined(struct drv_session *session, const struct fw_hello *hello)
{
	struct drv_core *core = session->core;

	drv_persist_joined(session);
	session->is_reporting = core->config.adopts && hello->reports > 0;
	session->to_report = hello->reports < REPORTS_MAX ? hello->reports : REPORTS_MAX;
	session->is_new = hello->session == 0;
	session->joined_ns = core->now_ns;
	if (core->config.adopts && hello->last_epoch > core->last_epoch &&
	    hello->last_epoch <= NUMBER_MAX)
		drv_persist_epochs_above(core, hello->last_epoch);
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

void drv_adopt_session_lost(const struct drv_session *session)
{
	for (size_t i = 0; i < session->core->app_count; i++) {
		struct drv_app *app = session->core->apps[i];
		struct drv_process *process;

		if (app->adopting == NULL)
			continue;
		app->adopting->seen = 0;
		for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;) {
			if (process->session != session)
				continue;
			app->adopting->is_touched = true;
			drv_app_wake(app);
			drv_adopt_forget(process);
		}
	}
}

void drv_adopt_end(struct drv_app *app)
{
	struct drv_process *process;

	for (uint32_t at = 0;
	     !is_told_later(app->core, app->run) && (process = drv_adopt_each(app, &at)) != NULL;)
		drv_adopt_disown(process->session, process->report->message);
	drv_adopt_fini(app);
}

void drv_adopt_fini(struct drv_app *app)
{
	struct drv_process *process;

	if (app->adopting == NULL)
		return;
	for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;)
		drv_adopt_forget(process);
	for (size_t i = 0;
	     app->hosts != NULL && app->host_count == 0 && i < app->spec->fragment_count; i++) {
		fragi_free(app->hosts[i].texts);
		drv_replacement_fini(&app->hosts[i].replacement);
	}
	fragi_free(app->adopting);
	app->adopting = NULL;
}
