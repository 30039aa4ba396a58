// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/adopt.h>
#include <driverd/core/applications/parameter.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>

/*
 * Decides about applications. Events only record; decide looks at it all at the end of the step and
 * acts. The table below has a row for each state: the goal of its hosts, and the time for that;
 * what is worked on; what the end of the time means; which state follows. Only work says WAITS.
 */
#define PREPARE_GRACE_NS ((int64_t)2000000000) /* for errors of the other hosts, shown together */

struct app_state {
	enum drv_goal goal; /* NONE: they keep the one that they have */
	size_t limits[2];   /* of struct drv_config; their sum: how long the state may last */
	void (*enter)(struct drv_app *app);         /* what it begins with */
	enum drv_work (*work)(struct drv_app *app); /* until it has to wait, or the step is full */
	void (*overdue)(struct drv_app *app);       /* the limit has come */
	bool (*held)(const struct drv_app *app);    /* whether other things come before its end */
	enum drv_app_state next;                    /* when its work says CHANGED */
	enum drv_app_state stop;                    /* when it is to end in order; 0: this one */
	enum drv_app_state fail;                    /* when it has failed */
	enum drv_app_state kill;                    /* when it is to end at once */
};
static const struct app_state states[DRV_APP_STATES];

/* The hosts get the goal of the state, and the time for it. */
static void set_goal(struct drv_app *app, const struct app_state *row)
{
	const char *config = (const char *)&app->core->config;
	int64_t within_ns = 0;

	if (row->goal >= DRV_GOAL_DRAINED)
		drv_replace_give_up(app);
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.goal < row->goal) /* one that is killed stays so */
			app->hosts[i].now.goal = row->goal;
	app->asked_count = 0;
	for (size_t i = 0; i < FRAG_COUNT_OF(row->limits); i++)
		if (row->limits[i] != 0)
			within_ns += *(const int64_t *)(const void *)(config + row->limits[i]);
	if (within_ns != 0) /* else it takes as long as it takes */
		drv_set(app->core, &app->timers.phase, app->core->now_ns + within_ns);
}

/* Hosts hear their goal, until the step has handled enough. */
static enum drv_work ask_hosts(struct drv_app *app)
{
	while (app->asked_count < app->host_count && app->core->items > 0 &&
	       drv_request(&app->hosts[app->asked_count]))
		app->asked_count++;
	return app->asked_count == app->host_count ? DRV_WAITS : DRV_AGAIN;
}

/* Whether it ran already and is adopted to stop in order. Holds until RUNNING. */
static bool runs_already(const struct drv_app *app)
{
	return app->adopting != NULL && app->end == DRV_END_IN_ORDER;
}

/* NEW: nobody hears of it before it is on the disk. */
static enum drv_work keep(struct drv_app *app)
{
	return app->kept.state >= DRV_KEPT_WRITTEN ? DRV_CHANGED : DRV_WAITS;
}

/* WAITING: for workers that run its fragments, or report that they do. */
static bool has_or_may_have_hosts(const struct drv_app *app)
{
	return app->host_count != 0 ||
	       (app->adopting != NULL && app->hosts != NULL && app->kept.state != DRV_KEPT_CUT);
}

static void begin_waiting(struct drv_app *app)
{
	drv_command_accepted(app);
	if (app->adopting != NULL)
		drv_adopt_wait(app);
}

static enum drv_work be_reported(struct drv_app *app)
{
	drv_adopt_work(app);
	if (app->host_count != 0)
		return DRV_CHANGED;
	return app->adopting->is_touched || app->end >= DRV_END_FAILED ? DRV_AGAIN : DRV_WAITS;
}

static enum drv_work find_workers(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int r = 0;

	if (app->adopting != NULL)
		return be_reported(app);
	if (drv_lease_holds(app))
		return DRV_WAITS;
	if (drv_start_is_due(app) && core->items <= 0)
		return DRV_AGAIN;
	if (drv_start_is_due(app))
		r = drv_start_place(app);
	if (r == -EINVAL)
		drv_app_fail_by_diag(app);
	else if (r < 0)
		drv_app_fail_for_memory(app);
	app->workers_changed = false;
	if (app->host_count != 0)
		return DRV_CHANGED;
	if (app->end < DRV_END_FAILED)
		drv_start_log_missing(app);
	return DRV_WAITS;
}

/* PREPARING: hosts answer with tables, and with errors, of which all are shown together. */
static enum drv_work compare_tables(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int64_t grace_ns = core->now_ns + PREPARE_GRACE_NS;
	int r;

	if (!drv_app_all_at(app, DRV_HOST_PREPARED)) {
		if (app->diag.count != 0 &&
		    (!drv_timer_is_set(&app->timers.phase) || app->timers.phase.at_ns > grace_ns))
			drv_set(core, &app->timers.phase, grace_ns);
		return DRV_WAITS;
	}
	r = drv_flows_resolve(app);
	if (r == -ENOMEM)
		drv_app_fail_for_memory(app);
	else if (r < 0 && r != -EAGAIN)
		drv_app_fail_by_diag(app);
	return r == 0 ? DRV_CHANGED : r == -EAGAIN ? DRV_AGAIN : DRV_WAITS;
}

static void not_prepared(struct drv_app *app)
{
	if (app->diag.count != 0)
		drv_app_fail_by_diag(app);
	else
		drv_start_overdue(app);
}

/* WIRING */
static enum drv_work wait_for_edges(struct drv_app *app)
{
	return drv_app_all_at(app, DRV_HOST_WIRED) ? DRV_CHANGED : DRV_WAITS;
}

/* STARTING: some hosts run already. */
static void begin_starting(struct drv_app *app)
{
	app->times.started_ns = app->core->real_ns;
	drv_app_progress_defer(app);
}

static enum drv_work wait_for_start(struct drv_app *app)
{
	return drv_app_all_at(app, DRV_HOST_RUNNING) ? DRV_CHANGED : DRV_WAITS;
}

/* RUNNING */
static bool is_between_processes(const struct drv_app *app)
{
	return app->adopting != NULL || drv_move_holds(app);
}

static void begin_running(struct drv_app *app)
{
	struct drv_core *core = app->core;
	bool is_adopted = app->adopting != NULL;
	const char *plural = app->host_count == 1 ? "" : "s";

	drv_timer_cancel(&core->timers, &app->timers.start);
	app->times.running_ns = core->real_ns;
	drv_source_forget_before(app);
	drv_log(core, FRAGI_LOG_INFO, drv_app_name(app), "%s %u host%s",
		is_adopted ? "adopted: goes on in" : "runs in", app->host_count, plural);
	drv_history_add(core, is_adopted ? FW_NOTICE_ADOPTED : FW_NOTICE_RUNNING, app, NULL,
			"in %u host%s", app->host_count, plural);
}

static bool is_at_rest(struct drv_app *app)
{
	bool rests = drv_app_is_at_rest(app);

	if (rests)
		drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
			"at rest: no operator can run any more, and nothing is on the way");
	return rests;
}

static enum drv_work supervise(struct drv_app *app)
{
	enum drv_work result;

	if (app->adopting != NULL) /* what its hosts have sent meanwhile comes first */
		return DRV_AGAIN;
	result = drv_replace_work(app);
	/* A host that is killed to be restarted, or yields, does not end the application. */
	if (is_at_rest(app) || (app->replaced_count == 0 && drv_app_all_at(app, DRV_HOST_DONE)))
		return DRV_CHANGED;
	return result;
}

/* DRAINING: sources have stopped, and queues empty. */
static enum drv_work drain(struct drv_app *app)
{
	if (app->timers.phase.is_due)
		return DRV_CHANGED;
	/* The end of edges to a lost peer makes hosts done, too: that is judged first. */
	if (is_at_rest(app) || (app->suspicions == NULL && drv_app_all_at(app, DRV_HOST_DONE)))
		return DRV_CHANGED;
	return DRV_WAITS;
}

static void not_drained(struct drv_app *app)
{
	drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
		"did not drain within %.1f s; what is queued is dropped",
		(double)app->core->config.drain_ns * 1e-9);
}

static void note_ending(struct drv_app *app)
{
	if (app->times.ending_ns == 0)
		app->times.ending_ns = app->core->real_ns;
}

/* FAILING: the hosts that live drain too; one that has failed ends. */
static void begin_failing(struct drv_app *app)
{
	note_ending(app);
	for (uint32_t i = 0; i < app->host_count; i++) {
		struct drv_process *now = &app->hosts[i].now;

		now->is_idle = false; /* before it drained */
		if (app->hosts[i].failed && now->goal < DRV_GOAL_CLOSED)
			now->goal = DRV_GOAL_CLOSED;
	}
}

/* What went to, or came from, a host that is gone is in no sum, so each host rests by itself. */
static enum drv_work drain_rest(struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count && !app->timers.phase.is_due; i++) {
		const struct drv_process *now = &app->hosts[i].now;

		if (now->state != DRV_HOST_DONE && now->state != DRV_HOST_GONE && !now->is_idle)
			return DRV_WAITS;
	}
	return DRV_CHANGED;
}

/* CLOSING: hosts end by themselves. KILLING: they are killed. */
static enum drv_work wait_for_ends(struct drv_app *app)
{
	return app->adopting == NULL && drv_app_all_at(app, DRV_HOST_GONE) ? DRV_CHANGED
									   : DRV_WAITS;
}

/* A host has not ended by itself, which an operator may be the cause of. */
static void not_closed(struct drv_host *host)
{
	struct drv_core *core = host->app->core;
	double seconds = (double)core->config.close_ns * 1e-9;
	struct fw_failure failure = {FRAGI_FAILURE_OPERATOR_HUNG, NULL, drv_view_busy(host)};

	failure.sentence =
		failure.op == NULL
			? drv_text(core, "%s on worker %s did not end within %.1f s; it is killed",
				   host->name, host->worker, seconds)
			: drv_text(
				  core,
				  "%s has not returned from a callback within the %.1f s in which its host was to end; the host is killed",
				  failure.op, seconds);
	if (failure.op == NULL || host->app->end == DRV_END_FAILED)
		drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app), "%s", failure.sentence);
	else
		drv_app_fail_by_host(host, &failure);
}

static void none_closed(struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.state < DRV_HOST_KILLED) /* others are ending already */
			not_closed(&app->hosts[i]);
	app->end = DRV_END_AT_ONCE;
}

static void begin_killing(struct drv_app *app)
{
	note_ending(app);
	app->end = DRV_END_AT_ONCE;
}

static void not_killed(struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++) {
		if (app->hosts[i].now.state == DRV_HOST_GONE)
			continue;
		drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
			"worker %s did not confirm the end of %s; what it counted last is used",
			app->hosts[i].worker, app->hosts[i].name);
		drv_host_lost(&app->hosts[i]);
	}
}

/* ENDED */
static void send_end(struct drv_session *session, const struct drv_app *app)
{
	struct fw_message message = {.kind = FW_APP_ENDED, .run = app->run};

	if (session == NULL || session->told_end == app->run)
		return;
	session->told_end = app->run;
	message.app_ended.exit_code = app->summary.exit_code;
	(void)drv_send(session, &message); /* else it ends by what it knows */
}

/* Workers end with it (--once), or forget what they ran: also a process that it went on without. */
static void report_end(struct drv_app *app)
{
	struct drv_core *core = app->core;

	for (size_t i = 0; i < core->session_count; i++)
		if ((core->config.ends_with_app || core->config.adopts) &&
		    core->sessions[i]->role == FW_ROLE_WORKER)
			send_end(core->sessions[i], app);
	for (uint32_t i = 0; i < app->host_count; i++)
		send_end(app->hosts[i].now.session, app);
}

static void end(struct drv_app *app)
{
	struct drv_core *core = app->core;

	core->over_count++;
	if (app->adopting != NULL)
		drv_adopt_end(app);
	core->work_left = core->work_left || app->next.run != 0;
	if (app->kept.state == DRV_KEPT_CUT)
		return;
	if (!core->config.adopts || !core->config.keeps_state ||
	    app->kept.state != DRV_KEPT_ACCEPTED)
		report_end(app);
	drv_start_release(app);
	if (app->kept.state == DRV_KEPT_ACCEPTED)
		drv_history_end(app);
	else
		drv_command_refused(app);
	drv_lease_record_outstanding(app);
	drv_emit(core, &(struct drv_action){
			       .kind = DRV_DO_ENDED, .app = app->id, .summary = &app->summary});
}

#define LIMIT(member) offsetof(struct drv_config, member)
static const struct app_state states[DRV_APP_STATES] = {
	[DRV_APP_NEW] =
		{
			.work = keep,
			.held = runs_already,
			.next = DRV_APP_WAITING,
			.stop = DRV_APP_ENDED,
			.fail = DRV_APP_ENDED,
			.kill = DRV_APP_ENDED,
		},
	[DRV_APP_WAITING] =
		{
			.enter = begin_waiting,
			.work = find_workers,
			.held = has_or_may_have_hosts,
			.next = DRV_APP_PREPARING,
			.stop = DRV_APP_ENDED,
			.fail = DRV_APP_ENDED,
			.kill = DRV_APP_ENDED,
		},
	[DRV_APP_PREPARING] =
		{
			.goal = DRV_GOAL_PREPARED,
			.limits = {LIMIT(prepare_ns)},
			.work = compare_tables,
			.overdue = not_prepared,
			.held = runs_already,
			.next = DRV_APP_WIRING,
			.stop = DRV_APP_KILLING,
			.fail = DRV_APP_KILLING,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_WIRING] =
		{
			.goal = DRV_GOAL_WIRED,
			.limits = {LIMIT(wire_ns)},
			.work = wait_for_edges,
			.overdue = drv_start_overdue,
			.held = runs_already,
			.next = DRV_APP_STARTING,
			.stop = DRV_APP_KILLING,
			.fail = DRV_APP_KILLING,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_STARTING] =
		{
			.goal = DRV_GOAL_RUNNING,
			.limits = {LIMIT(start_ns)},
			.enter = begin_starting,
			.work = wait_for_start,
			.overdue = drv_start_overdue,
			.next = DRV_APP_RUNNING,
			.fail = DRV_APP_CLOSING,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_RUNNING] =
		{
			.enter = begin_running,
			.work = supervise,
			.held = is_between_processes,
			.next = DRV_APP_CLOSING,
			.stop = DRV_APP_DRAINING,
			.fail = DRV_APP_FAILING,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_DRAINING] =
		{
			.goal = DRV_GOAL_DRAINED,
			.limits = {LIMIT(drain_ns), LIMIT(close_ns)},
			.work = drain,
			.overdue = not_drained,
			.next = DRV_APP_CLOSING,
			.fail = DRV_APP_FAILING,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_FAILING] =
		{
			.goal = DRV_GOAL_DRAINED,
			.limits = {LIMIT(drain_ns), LIMIT(close_ns)},
			.enter = begin_failing,
			.work = drain_rest,
			.overdue = not_drained,
			.next = DRV_APP_CLOSING,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_CLOSING] =
		{
			.goal = DRV_GOAL_CLOSED,
			.limits = {LIMIT(close_ns)},
			.enter = note_ending,
			.work = wait_for_ends,
			.overdue = none_closed,
			.next = DRV_APP_ENDED,
			.kill = DRV_APP_KILLING,
		},
	[DRV_APP_KILLING] =
		{
			.goal = DRV_GOAL_KILLED,
			.limits = {LIMIT(kill_ns)},
			.enter = begin_killing,
			.work = wait_for_ends,
			.overdue = not_killed,
			.next = DRV_APP_ENDED,
		},
	[DRV_APP_ENDED] = {.enter = end},
};

/* The state that its end leads to; the present one: none, or none yet. */
static enum drv_app_state end_state(const struct drv_app *app)
{
	const struct app_state *row = &states[app->state];
	const enum drv_app_state ends[] = {[DRV_END_IN_ORDER] = row->stop,
					   [DRV_END_FAILED] = row->fail,
					   [DRV_END_AT_ONCE] = row->kill};

	if (row->held != NULL && row->held(app))
		return app->state;
	return ends[app->end] != DRV_APP_NEW ? ends[app->end] : app->state;
}

/* Whether a deadline has come since the last time that this was asked. */
static bool take_due(struct drv_timer *timer)
{
	bool is_due = timer->is_due;

	timer->is_due = false;
	return is_due;
}

/* Deadlines that have come become causes. */
static void judge_deadlines(struct drv_app *app)
{
	if (take_due(&app->timers.start))
		drv_start_timed_out(app);
	if (app->timers.phase.is_due && states[app->state].overdue != NULL)
		states[app->state].overdue(app);
	if (take_due(&app->timers.judge))
		drv_suspicion_judge(app);
}

/* The summary, in as many steps as it takes. Returns whether it is made. */
static bool report(struct drv_app *app)
{
	if (app->kept.state == DRV_KEPT_CUT) /* the history has it as what it is */
		return true;
	note_ending(app);
	if (app->times.ended_ns == 0)
		app->times.ended_ns = app->core->real_ns;
	return drv_report(app) == 0;
}

/* Works in its state. Returns CHANGED when it has another one from then on. */
static enum drv_work work(struct drv_app *app)
{
	enum drv_app_state next = app->state;
	enum drv_work asked, result = DRV_WAITS;

	if (app->adopting != NULL && app->state >= DRV_APP_RUNNING)
		drv_adopt_replay(app);
	asked = ask_hosts(app);
	if (end_state(app) == app->state)
		result = states[app->state].work(app);
	next = end_state(app); /* it may have failed */
	if (next == app->state && result == DRV_CHANGED)
		next = states[app->state].next;
	if (next == app->state)
		return asked == DRV_AGAIN ? asked : result;
	if (next == DRV_APP_ENDED && !report(app))
		return DRV_AGAIN;
	drv_app_transition(app, next);
	if (app->state != next) /* refused and logged */
		return DRV_WAITS;
	if (states[next].enter != NULL)
		states[next].enter(app);
	if (states[next].goal != DRV_GOAL_NONE)
		set_goal(app, &states[next]);
	return DRV_CHANGED;
}

static void show_progress(struct drv_app *app)
{
	struct drv_core *core = app->core;
	const char *text = drv_app_state_name(app->state);
	uint64_t delivered = drv_view_delivered(app);

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
	drv_app_progress_defer(app);
}

static enum drv_work decide(struct drv_app *app)
{
	enum drv_work result = DRV_CHANGED;

	judge_deadlines(app);
	for (int moves = 0; app->state != DRV_APP_ENDED && result == DRV_CHANGED; moves++) {
		assert(moves < DRV_APP_STATES);
		result = work(app);
	}
	drv_parameter_work(app);
	if (app->timers.progress.is_due)
		show_progress(app);
	return result;
}

void drv_decide(struct drv_core *core)
{
	struct drv_app *list = core->awake, *app;

	core->decides = true;
	core->awake = NULL;
	core->last_awake = &core->awake;
	while ((app = list) != NULL) {
		list = app->turn.next;
		app->turn.is_awake = false; /* it may wake itself */
		app->turn.decided = core->turn;
		if (app->state == DRV_APP_ENDED || decide(app) != DRV_AGAIN)
			continue;
		drv_app_wake(app);
		core->work_left = core->work_left || core->items <= 0;
	}
	core->decides = false;
	app = core->awake;
	if (app == NULL || app->turn.next == NULL)
		return;
	core->awake = app->turn.next; /* another one is the first each time */
	app->turn.is_awake = false;
	drv_app_wake(app);
}
