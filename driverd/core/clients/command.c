// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/clients/apply.h>
#include <driverd/core/clients/subscription.h>

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

/*
 * Commands of clients. A start is answered when the application is kept, if the driver keeps state:
 * from then on it survives the end of the driver. Until then it is no run that anybody remembers. A
 * stop is answered at once; AWAIT is answered when the run has ended. A restart is a stop that
 * leaves the number of the next run: when the run has ended, the next one begins with the same
 * source.
 */
/* Applications that run, and those that start again with the driver, but for that name. */
static size_t app_count_without(const struct drv_core *core, const char *name)
{
	size_t count = drv_core_app_count(core);

	for (const struct drv_ended *ended = core->history.ended; ended; ended = ended->next)
		count += ended->is_wanted && strcmp(ended->name, name) != 0;
	return count;
}

/* Whether one more application may start now; its client is refused with a sentence if not. */
static bool may_start(struct drv_session *client, const struct fw_message *command,
		      const char *name, size_t source_bytes)
{
	struct drv_core *core = client->core;
	const char *no_room = drv_source_no_room(core, 0, source_bytes);

	if (core->config.ends_with_app)
		drv_refuse_command(
			client, command, name, FRAGI_FAILURE_NO_SERVICE,
			"this driverd runs the one application of its --app; start driverd without --app to bring it others");
	else if (core->stops > 0)
		drv_refuse_command(client, command, name, FRAGI_FAILURE_NO_SERVICE,
				   "driverd is ending; try again when it is back");
	else if (app_count_without(core, name) >= DRV_APPS_MAX)
		drv_refuse_command(
			client, command, name, FRAGI_FAILURE_DRIVER_FULL,
			drv_text(
				core,
				"driverd keeps %d applications running, as many as it takes; stop one first",
				DRV_APPS_MAX));
	else if (no_room != NULL)
		drv_refuse_command(client, command, name, FRAGI_FAILURE_DRIVER_FULL, no_room);
	else
		return true;
	return false;
}

/* Refuses a name that belongs to an application that runs: nothing is begun. */
static void check_name(struct drv_app *app)
{
	const char *name = drv_app_name(app);
	const struct drv_app *other =
		app->end >= DRV_END_FAILED ? NULL : drv_app_named(app->core, name);

	if (other == NULL || other == app)
		return;
	drv_app_fail(
		app, FRAGI_FAILURE_NAME_TAKEN, NULL,
		"%s runs already (%s); end it with `fragctl stop %s`, start it anew with `fragctl restart %s`, or give this one another name with --name",
		name, drv_app_state_name(other->state), name, name);
}

static void begin(struct drv_session *client, const struct fw_message *command,
		  const struct drv_event_app *event)
{
	const char *name = event->name != NULL ? event->name : "";
	struct drv_app *app;

	if (!may_start(client, command, name, event->source_bytes))
		return;
	app = drv_app_create(client->core, event, 0);
	client->core->items -= (int64_t)event->source_bytes / 64;
	if (app == NULL) {
		drv_refuse_command(client, command, name, FRAGI_FAILURE_OUT_OF_MEMORY,
				   "driverd has no memory left for this application");
		return;
	}
	app->given.connection = client->connection;
	app->given.seq = command->seq;
	check_name(app);
	drv_app_begin(app);
}

void drv_command_start(struct drv_session *client, const struct fw_message *message)
{
	const struct fw_start_app *start = &message->start_app;

	begin(client, message,
	      &(struct drv_event_app){
		      .source = start->source,
		      .source_bytes = start->source_bytes,
		      .start_timeout_ns = start->start_timeout_ns,
		      .name = start->name[0] != '\0' ? start->name : NULL,
		      .started_by = client->who,
	      });
}

/* Starts an application anew that has ended. */
static void restart_ended(struct drv_session *client, const struct fw_message *command,
			  const struct drv_ended *ended)
{
	begin(client, command,
	      &(struct drv_event_app){
		      .source = ended->source,
		      .source_bytes = ended->source_bytes,
		      .start_timeout_ns = ended->start_timeout_ns,
		      .name = ended->name,
		      .started_by = client->who,
	      });
}

static void answer_stop(struct drv_session *client, const struct fw_message *message, uint64_t run)
{
	const char *name = message->stop_app.name;
	const char *forgotten = drv_text(
		client->core,
		message->stop_app.restart ? "the next driverd does not know this restart of %s"
					  : "the next driverd starts %s again",
		name);

	if (message->stop_app.restart || client->core->config.keeps_state)
		drv_session_answer_when_kept(client, message->seq, run, name, forgotten);
	else /* what nobody keeps nobody starts again */
		drv_session_answer(client, message->seq, run, name, NULL);
	if (message->stop_app.awaits)
		drv_subscription_run(client, message->seq, run, FW_ENDED);
}

const char *drv_command_no_next_run(struct drv_core *core, const char *name,
				    enum fragi_failure *out_code)
{
	*out_code = FRAGI_FAILURE_NO_SERVICE;
	if (core->stops > 0)
		return "driverd is ending; try again when it is back";
	*out_code = FRAGI_FAILURE_STATE_UNWRITABLE;
	if (core->is_behind)
		return drv_text(core,
				"%s would end and not start again: the state folder cannot be "
				"written; " DRV_STATE_ADVICE,
				name);
	return NULL;
}

/* Has the next run begin with the source of this one, when this one has ended in order. */
static void want_restart(struct drv_app *app, struct drv_session *client)
{
	app->next.run = drv_persist_next_run(app->core);
	app->next.by = fragi_arena_strdup(&app->arena, client->who);
	app->next.reserved_bytes += client->held_bytes; /* until that run is written */
	client->held_bytes = 0;
}

uint64_t drv_command_start_anew(struct drv_session *client, struct drv_app *app)
{
	if (!app->next.is_wanted)
		drv_persist_wanted(app->core, app->run, true);
	app->next.is_wanted = true;
	want_restart(app, client);
	drv_app_stop(app, SIGTERM);
	return app->next.run;
}

void drv_command_stop(struct drv_session *client, const struct fw_message *message)
{
	const struct fw_stop_app *stop = &message->stop_app;
	struct drv_core *core = client->core;
	struct drv_app *app = drv_app_named(core, stop->name);
	struct drv_ended *ended =
		app == NULL ? drv_history_named(&core->history, stop->name) : NULL;
	enum fragi_failure code;
	const char *why;

	if (ended != NULL && ended->is_wanted && !stop->restart) {
		drv_history_add(core, FW_NOTICE_STOP, NULL, client->who,
				"%s, so it does not start again with driverd", ended->name);
		drv_history_unwant(core, ended);
		answer_stop(client, message, ended->run);
		return;
	}
	if (app == NULL && stop->restart && ended != NULL && ended->source != NULL) {
		restart_ended(client, message, ended);
		return;
	}
	if (app == NULL) {
		drv_refuse_ended(client, message, stop->name, ended, stop->restart);
		return;
	}
	why = stop->restart ? drv_command_no_next_run(core, stop->name, &code) : NULL;
	if (why != NULL) {
		drv_refuse_command(client, message, stop->name, code, why);
		return;
	}
	why = stop->restart ? drv_start_no_place(app) : NULL;
	if (why != NULL) {
		drv_refuse_command(client, message, stop->name, FRAGI_FAILURE_WORKER_BUSY, why);
		return;
	}
	drv_log(core, FRAGI_LOG_INFO, stop->name, "%s asks to %s it%s", client->who,
		stop->restart ? "restart" : "stop", stop->at_once ? " at once" : "");
	drv_history_add(core, stop->restart ? FW_NOTICE_RESTART : FW_NOTICE_STOP, app, client->who,
			"%s", stop->at_once ? "at once" : "in order");
	app->next.run = 0;
	if (app->next.is_wanted != stop->restart)
		drv_persist_wanted(core, app->run, stop->restart);
	app->next.is_wanted = stop->restart;
	if (stop->restart)
		want_restart(app, client);
	if (stop->at_once)
		drv_app_stop_at_once(app, 0);
	else
		drv_app_stop(app, SIGTERM);
	answer_stop(client, message, app->next.run != 0 ? app->next.run : app->run);
}

/* The client that asked for the application; NULL: it is gone, or nobody did. */
static struct drv_session *asker(struct drv_app *app)
{
	struct drv_session *client = drv_session_find(app->core, app->given.connection);

	app->given.connection = 0;
	return client;
}

void drv_command_accepted(struct drv_app *app)
{
	struct drv_session *client = asker(app);

	app->kept.state = DRV_KEPT_ACCEPTED;
	drv_lines_begin(app->core, drv_app_name(app));
	if (app->adopting == NULL)
		drv_lease_record_ended(app);
	drv_history_supersede(&app->core->history, drv_app_name(app));
	if (app->adopting != NULL)
		return;
	if (app->origin == DRV_ORIGIN_RESTORED)
		drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
			"starts again, since it ran when driverd ended last");
	drv_history_add(app->core, FW_NOTICE_START, app, app->given.by, "%zu fragment%s%s",
			app->spec->fragment_count, app->spec->fragment_count == 1 ? "" : "s",
			app->origin == DRV_ORIGIN_RESTORED ? ", again with driverd" : "");
	if (client != NULL && app->core->config.keeps_state) /* it is on the disk */
		drv_session_answer(client, app->given.seq, app->run, drv_app_name(app), NULL);
	else if (client != NULL)
		drv_session_answer_when_kept(
			client, app->given.seq, app->run, drv_app_name(app),
			drv_text(app->core,
				 "the next driverd knows %s only if workers still run it then",
				 drv_app_name(app)));
}

void drv_command_refused(struct drv_app *app)
{
	const struct fragi_summary_failure *failure = &app->summary.failure;
	struct fw_failure why = {failure->code, failure->sentence, failure->op};
	struct drv_session *client = asker(app);

	if (why.code == FRAGI_FAILURE_NONE)
		why = (struct fw_failure){.code = FRAGI_FAILURE_OTHER,
					  .sentence = "it was stopped before driverd had kept it"};
	drv_history_add(app->core, FW_NOTICE_REFUSED, app, app->given.by, "%s", why.sentence);
	drv_persist_no_start(app);
	if (client != NULL)
		drv_session_answer(client, app->given.seq, 0, drv_app_name(app), &why);
}

void drv_command_restart(struct drv_core *core)
{
	for (size_t i = 0; core->over_count != 0 && i < core->app_count; i++) {
		struct drv_app *old = core->apps[i], *app;

		if (old->state != DRV_APP_ENDED)
			continue;
		drv_persist_release(core, old->next.reserved_bytes);
		if (old->next.run == 0)
			continue;
		app = drv_app_create(core,
				     &(struct drv_event_app){
					     .source = old->source.bytes,
					     .source_bytes = old->source.size,
					     .start_timeout_ns = old->kept.state == DRV_KEPT_CUT
									 ? 0
									 : old->given.timeout_ns,
					     .id = old->id,
					     .name = drv_app_name(old),
					     .started_by = old->next.by,
				     },
				     old->next.run);
		old->next.run = 0;
		if (app == NULL)
			continue;
		if (old->kept.state == DRV_KEPT_CUT)
			app->origin = DRV_ORIGIN_RESTORED;
		drv_source_follows(app, old);
		drv_app_begin(app);
	}
}
