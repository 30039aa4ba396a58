// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/parameter.h>
#include <driverd/core/state.h>

#include <string.h>

#include <base/alloc.h>

/*
 * Hosts leave a worker that is drained, one of an application after the other, and nothing is
 * lost: another worker prepares the next process, while the one of now runs on; if that fails,
 * nothing has changed. What the operators of now save when they are drained goes to next
 * (replace.c).
 */

void drv_move_stays(struct drv_host *host, const char *why)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_core *core = host->app->core;

	if (r->returns) {
		r->returns = false;
		drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app),
			"%s stays on worker %s and does not go back to %s: %s", host->name,
			host->worker, r->home, why);
		drv_history_add(core, FW_NOTICE_MOVE, host->app, NULL,
				"%s stays on %s and does not go back to %s: %s", host->name,
				host->worker, r->home, why);
		return;
	}
	if (r->stays != NULL && strcmp(r->stays, why) == 0)
		return;
	fragi_free(r->stays);
	r->stays = fragi_strdup(why);
	drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app),
		"%s stays on worker %s, which is drained: %s", host->name, host->worker, why);
	drv_history_add(core, FW_NOTICE_MOVE, host->app, NULL, "%s stays on %s: %s", host->name,
			host->worker, why);
}

void drv_move_back(struct drv_core *core, const char *worker)
{
	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_app *app = core->apps[i];

		for (uint32_t k = 0; k < app->host_count; k++) {
			struct drv_replacement *r = &app->hosts[k].replacement;

			if (r->home == NULL || strcmp(r->home, worker) != 0)
				continue;
			r->returns = app->moves.is_back = app->workers_changed = true;
			drv_app_wake(app);
		}
	}
}

/* A swapped host leaves its process, a drained one its worker, and one that goes back too. */
static bool is_to_leave(const struct drv_host *host)
{
	return host->now.session != NULL &&
	       (host->now.session->is_drained || host->replacement.returns ||
		host->replacement.cause == DRV_CAUSE_SWAP) &&
	       host->now.state == DRV_HOST_RUNNING &&
	       host->replacement.phase <= DRV_PHASE_PREPARING;
}

/*
 * Whether all neighbours run. They are informed at the same time: each has its edges, and none is
 * being replaced.
 */
static bool neighbours_run(const struct drv_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		if ((other->now.state != DRV_HOST_RUNNING && other->now.state != DRV_HOST_DONE) ||
		    drv_host_is_restarting(other))
			return false;
	}
	return true;
}

bool drv_move_may_yield(const struct drv_host *host)
{
	if (drv_parameter_is_being_set(host))
		return false;
	if (host->replacement.is_resumed)
		return host->now.state == DRV_HOST_RUNNING || host->now.state == DRV_HOST_DONE;
	return is_to_leave(host) && neighbours_run(host);
}

static void begin(struct drv_host *host, struct drv_session *session, const char *reason)
{
	struct drv_core *core = host->app->core;

	drv_log(core, FRAGI_LOG_INFO, drv_app_name(host->app),
		"%s is moved from worker %s to worker %s: %s", host->name, host->worker,
		session->name, reason);
	drv_replace_prepare(host, session, DRV_CAUSE_DRAIN);
}

/* Finds where the host goes, or why it stays. Returns 0 or -ENOMEM. */
static int find_place(const struct drv_host *host, struct drv_session **out_session,
		      struct drv_place *out_place)
{
	struct drv_core *core = host->app->core;

	*out_session = NULL;
	*out_place = (struct drv_place){.reason = drv_candidate_worker_obstacle(host)};
	return out_place->reason != NULL
		       ? 0
		       : drv_candidate_find(host, &core->actions->arena, out_session, out_place);
}

bool drv_move_has_more(const struct drv_app *app)
{
	return (app->core->drained_count != 0 || app->moves.is_back) && app->moving == NULL &&
	       (app->workers_changed || app->moves.looked < app->host_count);
}

void drv_move_look(struct drv_app *app)
{
	if (app->core->drained_count == 0 && !app->moves.is_back)
		return;
	if (app->workers_changed) {
		app->moves.looked = 0;
		app->moves.is_back = false;
	}
	app->workers_changed = false;
	for (uint32_t i = 0; i < app->host_count && !app->moves.is_back; i++)
		app->moves.is_back = app->hosts[i].replacement.returns;
	while (app->moves.looked < app->host_count && app->moving == NULL) {
		struct drv_host *host = &app->hosts[app->moves.looked++];
		struct drv_session *session;
		struct drv_place place;

		if (host->now.session != NULL && host->now.session->is_drained &&
		    host->now.state == DRV_HOST_DONE)
			drv_move_stays(host,
				       "its operators are done, and it ends with its application");
		/* A neighbour that is started again looks at all when it runs. */
		if (!is_to_leave(host) || !neighbours_run(host) ||
		    app->core->now_ns < host->replacement.retry_ns)
			continue;
		if (find_place(host, &session, &place) < 0) {
			drv_app_fail_for_memory(app);
			return;
		}
		if (session != NULL)
			begin(host, session, place.reason);
		else
			drv_move_stays(host, place.reason);
	}
}

void drv_move_saved(struct drv_host *host, const struct fw_message *message)
{
	struct fw_message part = *message;

	if (host->next.session == NULL)
		return;
	part.epoch = host->next.epoch;
	part.reply_to = 0;
	host->app->core->items -= message->saved.size / 64;
	if (drv_send(host->next.session, &part) < 0)
		drv_app_fail_for_memory(host->app);
}

void drv_move_ends(struct drv_host *host)
{
	struct drv_app *app = host->app;
	const uint32_t others =
		app->replaced_count - (host->replacement.phase >= DRV_PHASE_YIELDING);

	if (app->moving != host)
		return;
	app->moving = NULL;
	for (uint32_t i = 0; others > 0 && i < app->host_count && app->moving == NULL; i++)
		if (&app->hosts[i] != host && app->hosts[i].replacement.phase != DRV_PHASE_NONE &&
		    app->hosts[i].replacement.cause != DRV_CAUSE_FAILURE)
			app->moving = &app->hosts[i];
}

bool drv_move_holds(const struct drv_app *app)
{
	return app->moving != NULL && app->moving->replacement.phase >= DRV_PHASE_YIELDING &&
	       !app->moving->replacement.is_given_up && app->end < DRV_END_FAILED &&
	       (app->moves.until_ns == 0 || app->core->now_ns < app->moves.until_ns);
}

void drv_move_wait(struct drv_app *app)
{
	if (app->end == DRV_END_IN_ORDER && app->moves.until_ns == 0 && drv_move_holds(app))
		app->moves.until_ns = app->core->now_ns + app->core->config.drain_ns;
}

bool drv_core_moves(const struct drv_core *core, const char *application)
{
	const struct drv_app *app = drv_app_named(core, application);

	return app != NULL && drv_move_holds(app);
}
