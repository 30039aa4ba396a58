// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/parameter.h>
#include <driverd/core/state.h>
#include <driverd/core/swap.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * Hosts leave a worker that is drained, one of an application after the other, and nothing is
 * lost. Another worker prepares a process for the host under a higher epoch, while the old one runs
 * on; if that fails, nothing has changed. Then the peers suspend their edges to the old one, which
 * drains what it has got and gives back what its operators have saved. When it has ended, the host
 * is the new process, and goes on as after a failure: its edges are wired and it is started
 * (restart.c).
 *
 * A stop of the application waits for a host that is between two processes, because what waits for
 * it would be lost; but no longer than for a drain.
 */

#define AGAIN_NS 1000000000 /* between two tries to move a host */

static void wake(struct drv_app *app, int64_t at_ns)
{
	if (at_ns != INT64_MAX)
		drv_set(app->core, &app->move, at_ns);
}

void drv_move_set_phase(struct drv_host *host, enum drv_move_phase phase, int64_t within_ns)
{
	struct drv_app *app = host->app;

	host->move.phase = phase;
	host->move.until_ns = within_ns > 0 ? app->core->now_ns + within_ns : INT64_MAX;
	app->moving = phase != DRV_MOVE_NONE ? host : NULL;
	drv_timer_cancel(&app->core->timers, &app->move);
	wake(app, host->move.until_ns);
}

bool drv_move_holds(const struct drv_app *app)
{
	return app->moving != NULL && app->moving->move.phase >= DRV_MOVE_YIELDING &&
	       !app->end_wanted &&
	       (app->move_until_ns == 0 || app->core->now_ns < app->move_until_ns);
}

bool drv_move_is_wanted(const struct drv_app *app)
{
	return app->moving != NULL ||
	       (app->core->drained_count != 0 &&
		(app->workers_changed || app->looked_count < app->host_count));
}

bool drv_move_ends(const struct drv_host *host)
{
	return host->move.phase == DRV_MOVE_YIELDING || host->move.phase == DRV_MOVE_ENDING;
}

bool drv_move_is_of(const struct drv_host *host, const struct drv_session *session, uint64_t epoch)
{
	return host->move.phase != DRV_MOVE_NONE && host->move.phase != DRV_MOVE_STARTING &&
	       host->move.session == session && host->move.epoch == epoch;
}

void drv_move_let_go(struct drv_host *host, bool kill)
{
	struct drv_move *move = &host->move;

	if (move->session == NULL)
		return;
	if (kill)
		drv_request_no_other(host, move->session, move->epoch);
	drv_start_reserve_host(host, move->session, -1);
	host->app->core->work_left = host->app->core->has_room = true; /* for others */
	move->session = NULL;
	fw_message_free(move->prepared);
	move->prepared = NULL;
}

static void stay(struct drv_host *host, const char *why)
{
	struct drv_core *core = host->app->core;
	char *copy;

	if (host->move.stays != NULL && strcmp(host->move.stays, why) == 0)
		return;
	copy = fragi_strdup(why);
	fragi_free(host->move.stays);
	host->move.stays = copy;
	drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app),
		"%s stays on worker %s, which is drained: %s", host->name, host->worker, why);
	drv_history_note(core, FW_EVENT_MOVE, host->app, NULL, "%s stays on %s: %s", host->name,
			 host->worker, why);
}

static void yield(struct drv_host *host);

/*
 * Before the old process was asked to yield: nothing has changed. Only a driver before may have
 * told the peers: then the host is started anew where it is, if that does not happen anyway.
 */
static void abandon(struct drv_host *host, bool kill, const char *why)
{
	drv_move_let_go(host, kill);
	if (host->move.is_swap)
		drv_swap_refused(host, host->move.failure, why);
	else
		stay(host, why);
	host->move.again_ns = host->app->core->now_ns + AGAIN_NS;
	if (host->move.is_resumed && !host->restarting.is_wanted) {
		yield(host);
		return;
	}
	host->move.is_swap = false;
	drv_move_set_phase(host, DRV_MOVE_NONE, 0);
	drv_keep_placed(host->app);
}

/* The new process has failed, and the old one drains already: it is started anew where it was. */
static void lose_new(struct drv_host *host, const char *why)
{
	drv_log(host->app->core, FRAGI_LOG_WARN, drv_app_name(host->app),
		"%s, which is moved, lost its new process: %s", host->name, why);
	drv_move_let_go(host, false);
	drv_swap_lost(host, why);
}

static void failed(struct drv_host *host, bool kill, const char *why)
{
	if (host->move.phase == DRV_MOVE_PREPARING)
		abandon(host, kill, why);
	else
		lose_new(host, why);
}

/* Which hosts are to leave their workers, and when. */

static bool is_to_leave(const struct drv_host *host)
{
	return host->now.session != NULL && (host->now.session->is_drained || host->move.is_swap) &&
	       host->now.state == DRV_HOST_RUNNING && !host->restarting.is_wanted;
}

static bool is_neighbour(const struct drv_host *host, const struct drv_host *other)
{
	for (uint32_t i = 0; i < host->edge_count; i++)
		if (drv_host_neighbour(host, i) == other)
			return true;
	return false;
}

/* They are told at the same time: each of them has its edges, and none is being replaced. */
static bool neighbours_run(const struct drv_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		if ((other->now.state != DRV_HOST_RUNNING && other->now.state != DRV_HOST_DONE) ||
		    other->restarting.is_wanted)
			return false;
	}
	return true;
}

void drv_move_begin(struct drv_host *host, struct drv_session *session, const char *reason)
{
	struct drv_app *app = host->app;
	struct drv_core *core = app->core;
	struct drv_move *move = &host->move;

	move->session = session;
	move->epoch = drv_keep_next_epoch(core);
	drv_start_reserve_host(host, session, 1);
	drv_move_set_phase(host, DRV_MOVE_PREPARING, core->config.prepare_ns);
	drv_keep_placed(app);
	move->change = core->last_change;
	move->sources = app->settings.sources;
	move->is_resumed = false;
	move->is_swap = session == host->now.session;
	move->failure = FRAGI_FAILURE_NONE;
	if (move->is_swap)
		drv_log(core, FRAGI_LOG_INFO, drv_app_name(app),
			"%s goes on in another process on worker %s: %s", host->name, session->name,
			reason);
	else
		drv_log(core, FRAGI_LOG_INFO, drv_app_name(app),
			"%s is moved from worker %s to worker %s: %s", host->name, host->worker,
			session->name, reason);
	if (drv_request_another(host, session, move->epoch) < 0)
		drv_app_fail_for_memory(app);
}

static void look(struct drv_app *app)
{
	if (app->core->drained_count == 0)
		return;
	if (app->workers_changed)
		app->looked_count = 0;
	app->workers_changed = false;
	while (app->looked_count < app->host_count && app->moving == NULL) {
		struct drv_host *host = &app->hosts[app->looked_count++];
		struct drv_place place = {.worker = -1};
		struct drv_session *session = NULL;

		if (host->now.session != NULL && host->now.session->is_drained &&
		    host->now.state == DRV_HOST_DONE)
			stay(host, "its operators are done, and it ends with its application");
		/* A neighbour that is started again looks at all when it runs. */
		if (!is_to_leave(host) || !neighbours_run(host) ||
		    app->core->now_ns < host->move.again_ns)
			continue;
		place.reason = drv_where_obstacle(host);
		if (place.reason == NULL && app->core->is_behind)
			place.reason =
				"the state folder cannot be written, and a driver that comes back must know where the host is";
		if (place.reason == NULL &&
		    drv_where(host, &app->core->actions->arena, &session, &place) < 0) {
			drv_app_fail_for_memory(app);
			return;
		}
		if (session != NULL)
			drv_move_begin(host, session, place.reason);
		else
			stay(host, place.reason);
	}
}

/* On the way. */

static void yield(struct drv_host *host)
{
	struct drv_app *app = host->app;

	fragi_free(host->move.stays);
	host->move.stays = NULL;
	drv_swap_takes_source(host);
	drv_move_set_phase(host, DRV_MOVE_YIELDING, app->core->config.drain_ns);
	drv_request_yield(host);
	for (uint32_t i = 0; i < app->host_count && !app->end_wanted; i++)
		if (&app->hosts[i] != host && is_neighbour(host, &app->hosts[i]) &&
		    (app->hosts[i].now.state == DRV_HOST_RUNNING ||
		     app->hosts[i].now.state == DRV_HOST_DONE))
			drv_request_suspend(&app->hosts[i], host);
}

static void end_old(struct drv_host *host)
{
	const struct drv_config *config = &host->app->core->config;

	drv_move_set_phase(host, DRV_MOVE_ENDING, config->close_ns);
	host->now.goal = DRV_GOAL_CLOSED;
	(void)drv_request(host);
}

/* It was to end, and has not. */
static void old_hangs(struct drv_host *host)
{
	struct drv_core *core = host->app->core;

	if (host->now.state == DRV_HOST_KILLED) {
		drv_app_fail(host->app, FRAGI_FAILURE_HOST_LATE, host,
			     "worker %s did not confirm the end of %s, which is to be moved",
			     host->worker, host->name);
		return;
	}
	drv_move_set_phase(host, DRV_MOVE_ENDING, core->config.kill_ns);
	host->now.goal = DRV_GOAL_KILLED;
	(void)drv_request(host);
}

/* Its parameters are others than those that the new process was made with. */
static void prepare_again(struct drv_host *host)
{
	if (host->move.is_resumed || host->move.is_swap) {
		abandon(host, true, "its parameters were changed meanwhile");
		return;
	}
	drv_move_let_go(host, true);
	drv_move_set_phase(host, DRV_MOVE_NONE, 0);
	host->app->workers_changed = true;
}

static bool may_yield(const struct drv_host *host)
{
	if (drv_parameter_is_being_set(host))
		return false;
	if (host->move.is_resumed)
		return host->now.state == DRV_HOST_RUNNING || host->now.state == DRV_HOST_DONE;
	return is_to_leave(host) && neighbours_run(host);
}

static void advance(struct drv_host *host)
{
	struct drv_app *app = host->app;
	struct drv_move *move = &host->move;
	bool is_late = app->core->now_ns >= move->until_ns;

	switch (move->phase) {
	case DRV_MOVE_PREPARING:
		if (is_late)
			abandon(host, true,
				drv_text(app->core, "worker %s did not answer PREPARE in time",
					 move->session->name));
		else if (app->core->is_behind && !move->is_resumed)
			abandon(host, true, "the state folder cannot be written any more");
		else if (move->sources != app->settings.sources)
			prepare_again(host);
		else if (move->prepared != NULL && move->change <= app->core->settled_change &&
			 may_yield(host))
			yield(host);
		else if (!may_yield(host) && host->now.state != DRV_HOST_RUNNING)
			abandon(host, true, "it has ended, or is started again, meanwhile");
		break;
	case DRV_MOVE_YIELDING:
		/* Only a cycle that has run dry is at rest and not done. */
		if (host->now.state == DRV_HOST_DONE || (is_late && host->now.is_idle))
			end_old(host);
		else if (is_late)
			drv_move_set_phase(host, DRV_MOVE_YIELDING, app->core->config.beat_ns);
		break;
	case DRV_MOVE_ENDING:
		if (is_late)
			old_hangs(host);
		break;
	default:
		break;
	}
}

void drv_move_work(struct drv_app *app)
{
	if (app->moving == NULL && !app->stop_wanted)
		look(app);
	if (app->stop_wanted && app->move_until_ns == 0 && drv_move_holds(app)) {
		app->move_until_ns = app->core->now_ns + app->core->config.drain_ns;
		wake(app, app->move_until_ns);
	}
	if (app->moving != NULL)
		advance(app->moving);
}

/* What comes of the new process. */

static void take_answer(struct drv_host *host, struct fw_message *message)
{
	const struct fw_host_prepared *answer = &message->prepared;

	host->app->core->items -= answer->flow_count;
	if (host->move.prepared != NULL || host->move.phase != DRV_MOVE_PREPARING) {
		fw_message_free(message);
		return;
	}
	if (answer->ok && drv_host_tables_are_same(&host->tables->prepared, answer)) {
		host->move.prepared = message;
		return;
	}
	if (answer->error_count > 0)
		host->move.failure = answer->errors[0].code;
	abandon(host, true,
		drv_text(
			host->app->core, "worker %s could not prepare it: %s",
			host->move.session->name,
			answer->error_count > 0 ? answer->errors[0].sentence
			: host->move.is_swap
				? "its operators, ports or types are others than before; `fragctl apply` takes a changed graph"
				: "its operators, ports or types are others there; is the library the same?"));
	fw_message_free(message);
}

void drv_move_message(struct drv_host *host, struct fw_message *message)
{
	switch (message->kind) {
	case FW_HOST_PREPARED:
		take_answer(host, message);
		return;
	case FW_HOST_EVENT:
		if (message->event.state != FW_STATE_FAILED)
			break;
		host->move.failure = message->event.failure.code;
		failed(host, true,
		       drv_text(host->app->core, "%s", message->event.failure.sentence));
		break;
	case FW_HOST_EXIT:
		host->move.failure = message->exit.failure.code;
		failed(host, false,
		       drv_text(host->app->core, "%s", message->exit.failure.sentence));
		break;
	default: /* it counts nothing yet */
		break;
	}
	fw_message_free(message);
}

void drv_move_session_lost(const struct drv_session *session)
{
	struct drv_core *core = session->core;

	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_host *host = core->apps[i]->moving;

		if (host != NULL && host->move.from == session)
			host->move.from = NULL;
		if (host == NULL || host->move.session != session)
			continue;
		drv_app_wake(core->apps[i]);
		failed(host, false, drv_text(core, "worker %s was lost", session->name));
	}
}

void drv_move_saved(struct drv_host *host, const struct fw_message *message)
{
	struct drv_move *move = &host->move;
	struct fw_message part = *message;

	if (move->session == NULL)
		return;
	part.epoch = move->epoch;
	part.reply_to = 0;
	host->app->core->items -= message->saved.size / 64;
	if (drv_send(move->session, &part) < 0)
		drv_app_fail_for_memory(host->app);
}

/* A driver that comes back. */

void drv_move_resume(struct drv_host *host, struct drv_session *session, uint64_t epoch,
		     struct fw_message *prepared, bool is_current)
{
	struct drv_core *core = host->app->core;
	struct drv_move *move = &host->move;

	move->session = session;
	move->epoch = epoch;
	move->change = 0;
	move->sources = host->app->settings.sources + !is_current;
	move->is_resumed = true;
	move->is_swap = session == host->now.session;
	drv_start_reserve_host(host, session, 1);
	drv_move_set_phase(host, DRV_MOVE_PREPARING, core->config.prepare_ns);
	drv_log(core, FRAGI_LOG_INFO, drv_app_name(host->app),
		"%s goes on moving from worker %s to worker %s", host->name, host->worker,
		session->name);
	if (drv_lease_adopt(host, session, epoch) < 0)
		drv_app_fail_for_memory(host->app);
	if (prepared != NULL)
		take_answer(host, prepared);
}

void drv_move_resume_yield(struct drv_host *host)
{
	if (host->app->moving == NULL || host->app->moving == host)
		yield(host);
}

bool drv_core_moves(const struct drv_core *core, const char *application)
{
	const struct drv_app *app = drv_app_named(core, application);

	return app != NULL && drv_move_holds(app);
}

/* The end. */

void drv_move_give_up(struct drv_app *app)
{
	drv_swap_end(app);
	if (app->moving == NULL)
		return;
	drv_move_let_go(app->moving, true);
	app->moving->move.from = NULL;
	drv_move_set_phase(app->moving, DRV_MOVE_NONE, 0);
}

void drv_move_fini(struct drv_move *move)
{
	fw_message_free(move->prepared);
	fragi_free(move->stays);
	*move = (struct drv_move){0};
}
