// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/adopt.h>
#include <driverd/core/apply.h>

#include <assert.h>
#include <errno.h>

/*
 * What becomes of an application. Events only record what happened to it, to its hosts and to the
 * sessions of its workers; decide looks at all of it at the end of the step and acts. The
 * application's state follows from how far its hosts have come and from what is wanted: every state
 * gives the hosts a goal, and when all have reached it the next state follows.
 */
#define PREPARE_GRACE_NS ((int64_t)2000000000) /* for errors of the other hosts, shown together */

/* The state that the application is to have. */
static enum drv_app_state next_state(const struct drv_app *app)
{
	bool ends = app->end == DRV_END_AT_ONCE;
	bool stops = app->end == DRV_END_IN_ORDER &&
		     app->adopting == NULL; /* those that ran stop in order */

	switch (app->state) {
	case DRV_APP_NEW:
		if (app->is_over)
			return app->is_reported ? DRV_APP_ENDED : DRV_APP_NEW;
		return app->kept.state >= DRV_KEPT_WRITTEN ? DRV_APP_WAITING : DRV_APP_NEW;
	case DRV_APP_WAITING:
		if (app->is_over)
			return app->is_reported ? DRV_APP_ENDED : DRV_APP_WAITING;
		return app->host_count != 0 ? DRV_APP_PREPARING : DRV_APP_WAITING;
	case DRV_APP_PREPARING:
		if (ends || stops) /* nothing ran yet */
			return DRV_APP_KILLING;
		return app->is_resolved ? DRV_APP_WIRING : DRV_APP_PREPARING;
	case DRV_APP_WIRING:
		if (ends || stops)
			return DRV_APP_KILLING;
		return drv_app_all_at(app, DRV_HOST_WIRED) ? DRV_APP_STARTING : DRV_APP_WIRING;
	case DRV_APP_STARTING: /* some hosts run already; when all do, they stop in order */
		if (ends)
			return DRV_APP_KILLING;
		return drv_app_all_at(app, DRV_HOST_RUNNING) ? DRV_APP_RUNNING : DRV_APP_STARTING;
	case DRV_APP_RUNNING:
		if (app->adopting != NULL) /* all that was said meanwhile is heard first */
			return DRV_APP_RUNNING;
		if (ends)
			return DRV_APP_KILLING;
		if (drv_replace_holds(app))
			return DRV_APP_RUNNING;
		if (stops)
			return DRV_APP_DRAINING;
		/* One that is killed to be started again is no end. */
		return app->is_at_rest || (app->replaced_count == 0 &&
					   drv_app_all_at(app, DRV_HOST_DONE))
			       ? DRV_APP_CLOSING
			       : DRV_APP_RUNNING;
	case DRV_APP_DRAINING:
		if (ends)
			return DRV_APP_KILLING;
		if (app->phase.is_due)
			return DRV_APP_CLOSING;
		/* The end of edges to a lost peer makes hosts done, too: that is judged first. */
		return app->suspicion.host == NULL &&
				       (app->is_at_rest || drv_app_all_at(app, DRV_HOST_DONE))
			       ? DRV_APP_CLOSING
			       : DRV_APP_DRAINING;
	case DRV_APP_CLOSING:
		if (ends)
			return DRV_APP_KILLING;
		return app->is_reported ? DRV_APP_ENDED : DRV_APP_CLOSING;
	case DRV_APP_KILLING:
		return app->is_reported ? DRV_APP_ENDED : DRV_APP_KILLING;
	default:
		return app->state;
	}
}

/* Gives all hosts a goal, and the time to reach it; 0: as long as it takes. */
static void set_goal(struct drv_app *app, enum drv_goal goal, int64_t within_ns)
{
	if (goal >= DRV_GOAL_DRAINED)
		drv_replace_give_up(app);
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.goal < goal) /* one that is killed stays so */
			app->hosts[i].now.goal = goal;
	app->asked_count = 0;
	if (within_ns != 0)
		drv_set(app->core, &app->phase, app->core->now_ns + within_ns);
}

static void tell_end(struct drv_session *session, const struct drv_app *app)
{
	struct fw_message message = {.kind = FW_APP_ENDED, .run = app->run};

	if (session == NULL || session->told_end == app->run)
		return;
	session->told_end = app->run;
	message.app_ended.exit_code = app->summary.exit_code;
	(void)drv_send(session, &message); /* else it ends by what it knows */
}

/* A worker for one application (--once) ends with its result, also one that ran no part of it. */
static void report_end(struct drv_app *app)
{
	struct drv_core *core = app->core;

	for (size_t i = 0; core->config.ends_with_app && i < core->session_count; i++)
		if (core->sessions[i]->role == FW_ROLE_WORKER)
			tell_end(core->sessions[i], app);
	for (uint32_t i = 0; i < app->host_count; i++)
		tell_end(app->hosts[i].now.session, app);
}

static void end(struct drv_app *app)
{
	struct drv_core *core = app->core;

	core->over_count++;
	drv_timer_cancel(&core->timers, &app->start);
	drv_timer_cancel(&core->timers, &app->missing_line);
	drv_timer_cancel(&core->timers, &app->progress);
	drv_timer_cancel(&core->timers, &app->judge);
	drv_timer_cancel(&core->timers, &app->again);
	if (app->adopting != NULL)
		drv_adopt_end(app);
	core->work_left = core->work_left || app->next.run != 0;
	if (app->kept.state == DRV_KEPT_CUT)
		return;
	if (!core->config.adopts || !core->config.keeps_state ||
	    app->kept.state != DRV_KEPT_ACCEPTED)
		report_end(app);
	drv_lease_owe(app);
	drv_start_release(app);
	if (app->kept.state == DRV_KEPT_ACCEPTED)
		drv_history_end(app);
	else
		drv_command_refused(app);
	drv_emit(core, &(struct drv_action){
			       .kind = DRV_DO_ENDED, .app = app->id, .summary = &app->summary});
}

static void note_ending(struct drv_app *app)
{
	if (app->times.ending_ns == 0)
		app->times.ending_ns = app->core->real_ns;
}

void drv_app_progress_later(struct drv_app *app)
{
	const struct drv_core *core = app->core;

	if (core->config.progress_ns > 0)
		drv_set(app->core, &app->progress, core->now_ns + core->config.progress_ns);
}

/* What a state begins with. */
static void enter(struct drv_app *app)
{
	struct drv_core *core = app->core;
	const struct drv_config *config = &core->config;
	bool is_adopted;

	switch (app->state) {
	case DRV_APP_WAITING:
		drv_command_accepted(app);
		if (app->adopting != NULL)
			drv_adopt_wait(app);
		break;
	case DRV_APP_PREPARING:
		drv_timer_cancel(&core->timers, &app->missing_line);
		set_goal(app, DRV_GOAL_PREPARED, config->prepare_ns);
		break;
	case DRV_APP_WIRING:
		set_goal(app, DRV_GOAL_WIRED, config->wire_ns);
		break;
	case DRV_APP_STARTING:
		app->times.started_ns = core->real_ns;
		drv_app_progress_later(app);
		set_goal(app, DRV_GOAL_RUNNING, config->start_ns);
		break;
	case DRV_APP_RUNNING:
		drv_timer_cancel(&core->timers, &app->start);
		app->times.running_ns = core->real_ns;
		drv_apply_over(app);
		is_adopted = app->adopting != NULL;
		drv_log(core, FRAGI_LOG_INFO, drv_app_name(app), "%s %u host%s",
			is_adopted ? "adopted: goes on in" : "runs in", app->host_count,
			app->host_count == 1 ? "" : "s");
		drv_history_note(core, is_adopted ? FW_EVENT_ADOPTED : FW_EVENT_RUNNING, app, NULL,
				 "in %u host%s", app->host_count, app->host_count == 1 ? "" : "s");
		if (is_adopted)
			drv_adopt_hear(app);
		break;
	case DRV_APP_DRAINING:
		set_goal(app, DRV_GOAL_DRAINED, config->drain_ns + config->close_ns);
		break;
	case DRV_APP_CLOSING:
		note_ending(app);
		set_goal(app, DRV_GOAL_CLOSED, config->close_ns);
		break;
	case DRV_APP_KILLING:
		note_ending(app);
		app->end = DRV_END_AT_ONCE;
		set_goal(app, DRV_GOAL_KILLED, config->kill_ns);
		if (app->adopting != NULL)
			drv_adopt_hear(app);
		break;
	case DRV_APP_ENDED:
		end(app);
		break;
	default:
		break;
	}
}

/* Whether a deadline has come since the last time that this was asked. */
static bool take_due(struct drv_timer *timer)
{
	bool is_due = timer->is_due;

	timer->is_due = false;
	return is_due;
}

/* A host has not ended by itself, which an operator may be the cause of. */
static void not_closed(struct drv_host *host)
{
	struct drv_core *core = host->app->core;
	double seconds = (double)core->config.close_ns * 1e-9;
	struct fw_failure failure = {FRAGI_FAILURE_OPERATOR_HUNG, NULL, drv_host_busy(host)};

	if (failure.op == NULL) {
		drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app),
			"%s on worker %s did not end within %.1f s; it is killed", host->name,
			host->worker, seconds);
		return;
	}
	failure.sentence = drv_text(
		core,
		"%s has not returned from a callback within the %.1f s in which its host was to end; the host is killed",
		failure.op, seconds);
	drv_app_fail_by_host(host, &failure);
}

/* The state has lasted as long as it may. */
static void phase_over(struct drv_app *app)
{
	struct drv_core *core = app->core;

	switch (app->state) {
	case DRV_APP_PREPARING:
	case DRV_APP_WIRING:
	case DRV_APP_STARTING:
		drv_start_overdue(app);
		break;
	case DRV_APP_DRAINING:
		drv_log(core, FRAGI_LOG_WARN, drv_app_name(app),
			"did not drain within %.1f s; what is queued is dropped",
			(double)core->config.drain_ns * 1e-9);
		break;
	case DRV_APP_CLOSING:
		for (uint32_t i = 0; i < app->host_count; i++)
			if (app->hosts[i].now.state != DRV_HOST_GONE)
				not_closed(&app->hosts[i]);
		app->end = DRV_END_AT_ONCE;
		break;
	case DRV_APP_KILLING:
		for (uint32_t i = 0; i < app->host_count; i++) {
			if (app->hosts[i].now.state == DRV_HOST_GONE)
				continue;
			drv_log(core, FRAGI_LOG_WARN, drv_app_name(app),
				"worker %s did not confirm the end of %s; what it counted last is used",
				app->hosts[i].worker, app->hosts[i].name);
			drv_host_lost(&app->hosts[i]);
		}
		break;
	default:
		break;
	}
}

/* Deadlines that have come become causes. */
static void judge_deadlines(struct drv_app *app)
{
	if (take_due(&app->start))
		drv_start_timed_out(app);
	if (app->phase.is_due)
		phase_over(app);
	if (take_due(&app->judge)) {
		if (app->state == DRV_APP_PREPARING && app->diag.count != 0)
			drv_app_fail_by_diag(app);
		else
			drv_suspicion_judge(app);
	}
}

static void look_for_workers(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int r = 0;

	if (drv_lease_holds(app))
		return;
	if (app->workers_changed && core->items <= 0) {
		core->work_left = true;
		return;
	}
	if (app->workers_changed)
		r = drv_start_place(app);
	if (r == -EINVAL)
		drv_app_fail_by_diag(app);
	else if (r < 0)
		drv_app_fail_for_memory(app);
	app->workers_changed = false;
	if (app->end == DRV_END_AT_ONCE || app->host_count != 0 ||
	    drv_timer_is_set(&app->missing_line))
		return;
	drv_start_log_missing(app);
	drv_set(core, &app->missing_line, core->now_ns + core->config.report_missing_ns);
}

/* Hosts have answered PREPARE: with tables, and with errors, of which all are shown together. */
static void compare_tables(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int r;

	if (!drv_app_all_at(app, DRV_HOST_PREPARED)) {
		if (app->diag.count != 0 && !drv_timer_is_set(&app->judge))
			drv_set(core, &app->judge, core->now_ns + PREPARE_GRACE_NS);
		return;
	}
	r = drv_wiring_resolve(app);
	app->is_resolved = r == 0;
	if (r == -EAGAIN)
		core->work_left = true;
	else if (r == -ENOMEM)
		drv_app_fail_for_memory(app);
	else if (r < 0)
		drv_app_fail_by_diag(app);
}

static void look_for_rest(struct drv_app *app)
{
	app->is_at_rest = drv_app_rests(app);
	if (app->is_at_rest)
		drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
			"at rest: no operator can run any more, and nothing is on the way");
}

/* Nothing of it is left, or nothing has begun. */
static bool is_over(const struct drv_app *app)
{
	if (app->state <= DRV_APP_WAITING)
		return app->host_count == 0 && app->end != DRV_END_NONE;
	return app->state >= DRV_APP_CLOSING && app->adopting == NULL &&
	       drv_app_all_at(app, DRV_HOST_GONE);
}

static void report(struct drv_app *app)
{
	struct drv_core *core = app->core;

	if (!app->is_over) {
		note_ending(app);
		app->times.ended_ns = core->real_ns;
		app->is_over = true;
	}
	app->is_reported = drv_report(app) == 0;
	if (!app->is_reported)
		core->work_left = true;
}

/* What the application does in the state that it is in, until the step has handled enough. */
static void work_in_state(struct drv_app *app)
{
	if (app->adopting != NULL && app->state >= DRV_APP_RUNNING)
		drv_adopt_hear(app);
	while (app->asked_count < app->host_count && app->core->items > 0 &&
	       drv_request(&app->hosts[app->asked_count]))
		app->asked_count++;
	if (app->asked_count < app->host_count && app->core->items <= 0)
		app->core->work_left = true;
	if (app->state == DRV_APP_WAITING && app->adopting != NULL && !app->is_over) {
		drv_adopt_work(app);
		return;
	}
	if (is_over(app)) {
		if (!app->is_reported)
			report(app);
		return;
	}
	if (app->end == DRV_END_AT_ONCE ||
	    (app->end == DRV_END_IN_ORDER && app->adopting == NULL &&
	     app->state != DRV_APP_DRAINING && !drv_replace_holds(app)))
		return;
	if (app->state == DRV_APP_WAITING)
		look_for_workers(app);
	else if (app->state == DRV_APP_PREPARING)
		compare_tables(app);
	else if (app->state == DRV_APP_RUNNING || app->state == DRV_APP_DRAINING)
		look_for_rest(app);
	if (app->state == DRV_APP_RUNNING &&
	    (app->replaced_count != 0 || drv_replace_is_wanted(app)))
		drv_replace_work(app);
}

static void show_progress(struct drv_app *app)
{
	struct drv_core *core = app->core;
	const char *text = drv_app_state_name(app->state);
	uint64_t delivered = drv_report_delivered(app);

	if (app->state == DRV_APP_NEW)
		text = "writing to the state folder";
	else if (app->state == DRV_APP_WAITING)
		text = drv_text(core, "waiting for %s", app->placing.missing);
	else if (app->times.started_ns != 0)
		text = drv_text(core, "%s %.1f s, %llu message%s",
				app->state == DRV_APP_STARTING ? "running" : text,
				(double)(core->real_ns - app->times.started_ns) * 1e-9,
				(unsigned long long)delivered, delivered == 1 ? "" : "s");
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_PROGRESS, .text = text});
	drv_app_progress_later(app);
}

/*
 * Whether deciding could change nothing before something wakes the application, which is so of most
 * applications most of the time: it has done all that its state asks for, and waits.
 */
static bool sleeps(const struct drv_app *app)
{
	if (app->asked_count != app->host_count || app->phase.is_due || app->start.is_due ||
	    app->judge.is_due || app->progress.is_due || next_state(app) != app->state)
		return false;
	if (app->adopting != NULL && app->state >= DRV_APP_RUNNING) /* it is still to be heard */
		return false;
	switch (app->state) {
	case DRV_APP_NEW:
		return app->end == DRV_END_NONE;
	case DRV_APP_WAITING:
		if (app->end == DRV_END_AT_ONCE ||
		    (app->end == DRV_END_IN_ORDER && app->adopting == NULL))
			return false;
		if (app->adopting != NULL)
			return !app->adopting->is_touched;
		return !app->workers_changed && drv_timer_is_set(&app->missing_line);
	case DRV_APP_PREPARING:
		return !drv_app_all_at(app, DRV_HOST_PREPARED) &&
		       (app->diag.count == 0 || drv_timer_is_set(&app->judge));
	case DRV_APP_RUNNING:
		return !drv_replace_is_wanted(app);
	case DRV_APP_CLOSING:
	case DRV_APP_KILLING:
		return !drv_app_all_at(app, DRV_HOST_GONE);
	default:
		return true;
	}
}

static void decide(struct drv_app *app)
{
	enum drv_app_state next;

	if (app->state == DRV_APP_ENDED)
		return;
	judge_deadlines(app);
	for (int moves = 0;; moves++) {
		assert(moves < DRV_APP_STATES);
		work_in_state(app);
		next = next_state(app);
		if (next == app->state)
			break;
		drv_app_move(app, next);
		if (app->state != next) /* refused and logged */
			break;
		enter(app);
	}
	if (app->progress.is_due)
		show_progress(app);
}

/* Safety net: bounds the delay if an application is not woken, which is a mistake. */
static void look_at_one(struct drv_core *core)
{
	struct drv_app *app = core->apps[core->turn % core->app_count];

	if (app->state == DRV_APP_ENDED || app->turn.is_awake || sleeps(app))
		return;
	drv_log(core, FRAGI_LOG_ERROR, drv_app_name(app),
		"run %llu was not woken by what has happened to it, which is a bug of driverd",
		(unsigned long long)app->run);
	core->illegal_moves++;
	drv_app_wake(app);
}

void drv_decide(struct drv_core *core)
{
	struct drv_app *list, *app;

	if (core->app_count != 0)
		look_at_one(core);
	core->decides = true;
	list = core->awake;
	core->awake = NULL;
	core->last_awake = &core->awake;
	while ((app = list) != NULL) {
		list = app->turn.next;
		app->turn.is_awake = false; /* it may wake itself */
		app->turn.decided = core->turn;
		decide(app);
		if (app->state != DRV_APP_ENDED && !sleeps(app))
			drv_app_wake(app);
	}
	core->decides = false;
	app = core->awake;
	if (app == NULL || app->turn.next == NULL)
		return;
	core->awake = app->turn.next; /* another one is the first each time */
	app->turn.is_awake = false;
	drv_app_wake(app);
}
