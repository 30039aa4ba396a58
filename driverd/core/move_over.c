// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/parameter.h>
#include <driverd/core/state.h>
#include <driverd/core/swap.h>

#include <string.h>

#include <base/alloc.h>

/*
 * The old process of a host that is moved has ended, and the host is the new one from then on: it
 * belongs to that worker, and is started there as after a failure (restart.c). Without a new
 * process it is started anew where it was.
 */

/* Why the fragments run where they do is not what it was when the application was placed. */
static void take_place(struct drv_host *host)
{
	static const char reason[] = "it was moved there from a worker that was drained";

	for (uint32_t i = 0; i < host->fragment_count; i++) {
		struct drv_place *place = &host->app->fragments[host->fragments[i]].place;

		*place = (struct drv_place){.worker = place->worker, .reason = reason};
	}
}

/* The host belongs to the worker of the new process from now on, which is prepared. */
static void change_worker(struct drv_host *host)
{
	struct drv_move *move = &host->move;

	drv_start_reserve_host(host, move->session, -1);
	move->from = move->is_swap ? NULL : host->now.session;
	if (host->now.session != NULL) {
		drv_start_take_shares(host, host->now.session, -1);
		drv_host_detach(host);
	}
	drv_host_attach(host, move->session);
	drv_start_take_shares(host, host->now.session, 1);
	host->restarting.was_on = host->now.session->number;
	move->session = NULL;
	host->now.epoch = move->epoch;
	drv_host_move(host, DRV_HOST_PLACED);
	drv_host_move(host, DRV_HOST_PREPARING);
	drv_host_move(host, DRV_HOST_PREPARED);
	fw_message_free(host->now.prepared);
	host->now.prepared = move->prepared;
	move->prepared = NULL;
	host->now.goal = host->now.asked = DRV_GOAL_PREPARED;
}

bool drv_move_takes_over(struct drv_host *host)
{
	struct drv_move *move = &host->move;
	struct drv_restarting *r = &host->restarting;
	struct drv_app *app = host->app;

	if (!drv_move_ends(host) || host->now.is_lost)
		return false;
	if (r->lease_over_ns > app->core->now_ns) /* a process of which nothing is known may run */
		drv_move_let_go(host, true);
	app->restarting_count += !r->is_wanted;
	r->is_wanted = true;
	r->has_begun = host->now.is_orderly = host->now.is_idle = false;
	r->moves++;
	r->is_moved = false;
	r->at_ns = r->lease_over_ns > app->core->now_ns ? r->lease_over_ns : app->core->now_ns;
	r->until_ns = INT64_MAX;
	app->core->work_left = true;
	if (move->sources != app->settings.sources) /* it was made from a graph that is no more */
		drv_move_let_go(host, true);
	drv_move_set_phase(host, DRV_MOVE_STARTING, 0);
	if (move->session == NULL) { /* anew, where it was */
		host->now.goal = host->now.asked = DRV_GOAL_NONE;
		host->now.epoch = drv_keep_next_epoch(app->core);
		drv_host_move(host, DRV_HOST_PLACED);
		return true;
	}
	if (drv_host_take_texts(host, move->session) < 0) {
		drv_app_fail_for_memory(app);
		return true;
	}
	if (!move->is_swap)
		take_place(host);
	change_worker(host);
	drv_request_past(host);
	drv_wiring_draw_tokens(host);
	return true;
}

void drv_move_end(struct drv_host *host)
{
	if (host->move.phase == DRV_MOVE_NONE)
		return;
	drv_move_let_go(host, true);
	if (host->move.from != NULL)
		drv_request_past_of(host, host->move.from);
	host->move.from = NULL;
	host->move.is_swap = false;
	drv_move_set_phase(host, DRV_MOVE_NONE, 0);
}

void drv_move_over(struct drv_host *host)
{
	struct drv_app *app = host->app;
	const bool is_swap = host->move.is_swap;

	app->workers_changed = true; /* others may have waited for it */
	if (host->move.phase != DRV_MOVE_STARTING)
		return;
	drv_move_end(host);
	drv_keep_placed(app);
	if (is_swap)
		drv_swap_runs(host);
	else
		drv_history_note(app->core, FW_EVENT_MOVE, app, NULL, "%s runs on %s now",
				 host->name, host->worker);
}

bool drv_move_starts_again(struct drv_host *host)
{
	const struct drv_app *app = host->app;
	bool is_restarting = false;

	for (uint32_t i = 0; i < host->edge_count; i++)
		is_restarting = is_restarting || drv_host_neighbour(host, i)->restarting.is_wanted;
	if (host->move.phase != DRV_MOVE_STARTING || host->now.state != DRV_HOST_WIRING ||
	    app->end_wanted || !is_restarting)
		return false;
	host->restarting.until_ns = INT64_MAX;
	drv_move_resume_start(host);
	return true;
}

void drv_move_resume_start(struct drv_host *host)
{
	drv_move_set_phase(host, DRV_MOVE_ENDING, host->app->core->config.kill_ns);
	host->now.goal = DRV_GOAL_KILLED;
	(void)drv_request(host);
}
