// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/hosts/swap.h>

#include <assert.h>
#include <string.h>

#include <base/alloc.h>

/*
 * A host has a process now and perhaps a next one. This is how next comes to be now:
 *
 *   phase      now                             next                         followed by
 *   PREPARING  runs                            loads and composes           YIELDING, or NONE
 *   YIELDING   drains, saves its operators     waits                        ENDING
 *   ENDING     was asked to end, or is killed  waits, or is made anew       STARTING
 *   STARTING   is the new process: it waits for its backoff, a worker, its  NONE; ENDING: it failed
 *              neighbours; is prepared, wired and started
 *
 * A restart begins with ENDING: next is made anew when now has ended. A migration is a restart on
 * another worker (migrate.c). A move (move.c) and a swap (swap.c) begin with PREPARING, so that
 * next is known to load before now is asked to yield; until then nothing has changed. If next fails
 * after that, it is made anew where now was.
 *
 * A stop of the application waits for a host that is moved or swapped while it is between two
 * processes, because what waits for it would be lost; but no longer than for a drain.
 */
#define RETRY_NS ((int64_t)1000000000) /* between two tries to move a host */
/* The time for a swap to prepare, and to start, if no start timeout was given. */
#define SWAP_START_NS ((int64_t)120 * 1000000000)

static void set_phase(struct drv_host *host, enum drv_phase phase, int64_t within_ns)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;

	assert(r->phase < DRV_PHASE_YIELDING || app->replaced_count > 0);
	app->replaced_count -= r->phase >= DRV_PHASE_YIELDING;
	app->replaced_count += phase >= DRV_PHASE_YIELDING;
	r->phase = phase;
	r->until_ns = within_ns > 0 ? app->core->now_ns + within_ns : INT64_MAX;
	if (phase == DRV_PHASE_NONE || r->cause == DRV_CAUSE_FAILURE)
		drv_move_ends(host);
	else if (app->moving == NULL)
		app->moving = host;
	drv_app_wake(app);
}

/* How long next may take to answer; 0: as long as it takes. */
static int64_t limit_ns(const struct drv_host *host, int64_t configured_ns)
{
	if (configured_ns > 0 || host->replacement.cause != DRV_CAUSE_SWAP)
		return configured_ns;
	return host->app->given.timeout_ns > 0 ? host->app->given.timeout_ns : SWAP_START_NS;
}

void drv_replacement_fini(struct drv_replacement *replacement)
{
	fragi_free(replacement->failed);
	fragi_free(replacement->stays);
	fragi_free(replacement->home);
	fragi_free(replacement->was_at);
	fragi_arena_fini(&replacement->places);
	*replacement = (struct drv_replacement){0};
}

/* Asks the neighbours that have come so far for something about the host. */
static void ask_neighbours(struct drv_host *host, enum drv_host_state from,
			   void (*ask)(struct drv_host *neighbour, const struct drv_host *host))
{
	struct drv_app *app = host->app;

	for (uint32_t i = 0; i < app->host_count && app->end < DRV_END_FAILED; i++) {
		struct drv_host *other = &app->hosts[i];

		if (other != host && other->now.state >= from &&
		    other->now.state <= DRV_HOST_DONE && drv_host_is_neighbour(host, other))
			ask(other, host);
	}
}

static void yield(struct drv_host *host)
{
	fragi_free(host->replacement.stays);
	host->replacement.stays = NULL;
	drv_swap_take_source(host);
	set_phase(host, DRV_PHASE_YIELDING, host->app->core->config.drain_ns);
	host->now.goal = DRV_GOAL_DRAINED;
	(void)drv_request(host);
	ask_neighbours(host, DRV_HOST_RUNNING, drv_request_suspend);
}

void drv_replace_resume_yield(struct drv_host *host)
{
	if (host->app->moving != NULL && host->app->moving != host)
		return;
	if (host->replacement.phase == DRV_PHASE_NONE) /* next was lost with its worker */
		host->replacement.cause = DRV_CAUSE_DRAIN;
	yield(host);
}

/*
 * Next is not to be, and now goes on, or is started again for another reason: nothing has changed.
 * Only a driver before may have suspended the peers: then now ends all the same, and next is made
 * anew.
 */
static void abandon(struct drv_host *host, const char *why)
{
	struct drv_replacement *r = &host->replacement;

	drv_next_let_go(host);
	if (r->cause == DRV_CAUSE_SWAP)
		drv_swap_refused(host, r->failed_code, why);
	else
		drv_move_stays(host, why);
	r->retry_ns = host->app->core->now_ns + RETRY_NS;
	if (r->is_resumed && r->phase == DRV_PHASE_PREPARING) {
		r->cause = DRV_CAUSE_DRAIN;
		yield(host);
		return;
	}
	r->cause = DRV_CAUSE_FAILURE;
	drv_move_ends(host);
	if (r->phase == DRV_PHASE_PREPARING)
		set_phase(host, DRV_PHASE_NONE, 0);
	drv_persist_placed(host->app);
}

/* For sentences: "f2, which is moved". */
static const char *what_happens(const struct drv_host *host)
{
	return host->replacement.is_anew                   ? "started again"
	       : host->replacement.cause == DRV_CAUSE_SWAP ? "swapped"
							   : "moved";
}

/* Judges what was recorded of next: it is given up, or now yields already and next is made anew. */
static void judge_next(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	char *why = r->failed;

	r->failed = NULL;
	if (r->phase == DRV_PHASE_PREPARING || r->is_anew) {
		abandon(host, why);
	} else if (r->phase == DRV_PHASE_YIELDING || r->phase == DRV_PHASE_ENDING) {
		drv_log(host->app->core, FRAGI_LOG_WARN, drv_app_name(host->app),
			"%s, which is %s, lost its new process: %s", host->name, what_happens(host),
			why);
		drv_next_let_go(host);
		drv_swap_lost(host, why);
	}
	fragi_free(why);
}

void drv_replace_begin(struct drv_host *host, enum drv_cause cause, bool is_resumed)
{
	struct drv_replacement *r = &host->replacement;

	assert(host->app->moving == NULL && r->phase == DRV_PHASE_NONE);
	fragi_free(r->failed);
	r->failed = NULL;
	r->failed_code = FRAGI_FAILURE_NONE;
	r->is_anew = r->is_given_up = false;
	r->is_resumed = is_resumed;
	r->cause = cause;
	set_phase(host, DRV_PHASE_PREPARING, limit_ns(host, host->app->core->config.prepare_ns));
}

void drv_replace_prepare(struct drv_host *host, struct drv_session *session, enum drv_cause cause)
{
	struct drv_core *core = host->app->core;

	host->next = (struct drv_process){.epoch = drv_persist_next_epoch(core),
					  .session = session,
					  .sources = host->app->settings.sources};
	drv_start_reserve_host(host, session, 1);
	drv_replace_begin(host, cause, false);
	drv_persist_placed(host->app);
	host->next.change = core->last_change;
	if (drv_request_next(host) < 0)
		drv_app_fail_for_memory(host->app);
}

/* Prepares the next process anew: the host's parameters have changed since it was made. */
static void prepare_anew(struct drv_host *host)
{
	if (host->replacement.is_resumed || host->replacement.cause == DRV_CAUSE_SWAP) {
		abandon(host, "its parameters were changed meanwhile");
		return;
	}
	drv_next_let_go(host);
	set_phase(host, DRV_PHASE_NONE, 0);
	host->app->workers_changed = true;
}

static void work_preparing(struct drv_host *host)
{
	const struct drv_process *next = &host->next;
	struct drv_app *app = host->app;
	struct drv_core *core = app->core;
	bool may_yield = drv_move_may_yield(host);

	if (core->now_ns >= host->replacement.until_ns)
		abandon(host, drv_text(core, "worker %s did not answer PREPARE in time",
				       next->session->name));
	else if (core->is_behind && !host->replacement.is_resumed)
		abandon(host, "the state folder cannot be written any more");
	else if (next->sources != app->settings.sources)
		prepare_anew(host);
	else if (next->prepared != NULL && next->change <= core->written_change && may_yield)
		yield(host);
	else if (!may_yield && host->now.state != DRV_HOST_RUNNING)
		abandon(host, "it has ended, or is started again, meanwhile");
}

static void end_now(struct drv_host *host, enum drv_goal goal, int64_t within_ns)
{
	set_phase(host, DRV_PHASE_ENDING, within_ns);
	host->now.goal = goal;
}

static void work_yielding(struct drv_host *host)
{
	const struct drv_config *config = &host->app->core->config;
	bool timed_out = host->app->core->now_ns >= host->replacement.until_ns;

	/* A host that is at rest and not done is in a cycle that has run dry. */
	if (host->now.state == DRV_HOST_DONE || (timed_out && host->now.is_idle))
		end_now(host, DRV_GOAL_CLOSED, config->close_ns);
	else if (timed_out)
		set_phase(host, DRV_PHASE_YIELDING, config->beat_ns);
	if (!host->replacement.is_given_up && drv_replace_is_in_vain(host))
		drv_replace_not_awaited(host);
}

static void work_ending(struct drv_host *host)
{
	struct drv_core *core = host->app->core;

	if (host->replacement.is_anew && host->next.session != NULL)
		abandon(host, "it has ended, or is started again, meanwhile");
	if (core->now_ns >= host->replacement.until_ns && host->now.state == DRV_HOST_KILLED)
		drv_app_fail(host->app, FRAGI_FAILURE_HOST_LATE, host,
			     "worker %s did not confirm the end of %s, which is to be %s",
			     host->now.session->name, host->name, what_happens(host));
	else if (core->now_ns >= host->replacement.until_ns)
		end_now(host, DRV_GOAL_KILLED, core->config.kill_ns);
	(void)drv_request(host);
}

void drv_replace_failed(struct drv_host *host, int64_t wait_ns)
{
	struct drv_replacement *r = &host->replacement;
	const int64_t kill_ns = host->app->core->config.kill_ns;

	drv_suspicion_clear(host);
	r->is_anew = !drv_host_hands_over(host);
	if (r->phase == DRV_PHASE_NONE)
		r->cause = DRV_CAUSE_FAILURE;
	r->at_ns = host->app->core->now_ns + wait_ns;
	host->now.is_idle = false;
	if (host->now.state == DRV_HOST_GONE) /* its exit is being recorded */
		set_phase(host, DRV_PHASE_ENDING, 0);
	else
		end_now(host, DRV_GOAL_KILLED, kill_ns);
}

void drv_replace_resume_start(struct drv_host *host)
{
	drv_suspicion_clear(host); /* it is killed, and its links with it */
	host->replacement.is_anew = false;
	if (host->replacement.phase == DRV_PHASE_NONE) /* its driver had moved it */
		host->replacement.cause = DRV_CAUSE_DRAIN;
	end_now(host, DRV_GOAL_KILLED, host->app->core->config.kill_ns);
}

/* Why the fragments run where they do is not what it was when the application was placed. */
static void take_place(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	const struct drv_place place = {
		.worker = -1,
		.reason = r->returns ? "it went back there when the drain had ended"
				     : "it was moved there from a worker that was drained"};

	drv_host_set_place(host, &place);
	r->is_old_swap = false;
	fragi_free(r->home);
	r->home = r->returns || r->from == NULL ? NULL : fragi_strdup(r->from->name);
	r->returns = false;
}

/* Next, which is prepared on its worker, is now. */
static void take_over(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_session *session = host->next.session;
	struct fw_message *prepared = host->next.prepared, *stats = host->next.stats;
	const uint64_t epoch = host->next.epoch;

	assert(prepared != NULL && epoch > host->now.epoch);
	if (drv_host_take_texts(host, session) < 0) {
		drv_app_fail_for_memory(host->app);
		return;
	}
	drv_start_reserve_host(host, session, -1);
	host->next = (struct drv_process){0};
	r->from = r->cause == DRV_CAUSE_SWAP ? NULL : host->now.session;
	if (host->now.session != NULL) {
		drv_start_take_shares(host, host->now.session, -1);
		drv_host_detach(host);
	}
	drv_host_attach(host, session);
	drv_start_take_shares(host, session, 1);
	drv_host_asked(host, session);
	drv_host_renew(host, epoch, DRV_HOST_PREPARED);
	host->now.goal = host->now.asked = DRV_GOAL_PREPARED;
	fw_message_free(host->now.prepared);
	host->now.prepared = prepared;
	if (stats != NULL)
		drv_account_take(host, stats);
	if (r->cause != DRV_CAUSE_SWAP)
		take_place(host);
	drv_request_past(host);
	drv_flows_draw_tokens(host);
}

/* Now has ended: next, as it was prepared, or made anew, is now. */
static void succeed(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;
	struct drv_core *core = app->core;
	const bool takes_over = !r->is_anew && !host->now.is_lost;

	if (drv_account_end_epoch(host) < 0) {
		drv_app_fail_for_memory(app);
		return;
	}
	host->now.has_begun = false; /* what it counted is in the past */
	set_phase(host, DRV_PHASE_STARTING, 0);
	if (takes_over) {
		host->restarts.moves++;
		r->at_ns = core->now_ns;
		if (host->lease_over_ns > core->now_ns) /* an unknown process may run until then */
			r->at_ns = host->lease_over_ns;
		if (host->next.session != NULL && (host->lease_over_ns > core->now_ns ||
						   host->next.sources != app->settings.sources))
			drv_next_let_go(host);
		if (host->next.session != NULL)
			take_over(host);
		else
			drv_host_renew(host, drv_persist_next_epoch(core), DRV_HOST_PLACED);
		return;
	}
	drv_restart_count(host);
	if (!drv_migrate_leave(host))
		drv_host_renew(host, drv_persist_next_epoch(core), DRV_HOST_PLACED);
}

static bool neighbours_are_prepared(const struct drv_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		if (other->now.state < DRV_HOST_PREPARED || other->now.state > DRV_HOST_DONE ||
		    other->replacement.phase == DRV_PHASE_YIELDING ||
		    other->replacement.phase == DRV_PHASE_ENDING)
			return false;
	}
	return true;
}

bool drv_replace_is_in_vain(const struct drv_host *host)
{
	bool is_gone = false;

	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		is_gone = is_gone || (other->now.state == DRV_HOST_GONE &&
				      other->replacement.phase == DRV_PHASE_NONE);
	}
	return is_gone && host->app->moving == host && host->app->end == DRV_END_IN_ORDER;
}

/* Asks now for the next goal, which may take so long; 0: as long as it takes. */
static void ask(struct drv_host *host, enum drv_goal goal, int64_t within_ns)
{
	host->now.goal = goal;
	set_phase(host, DRV_PHASE_STARTING, within_ns);
	(void)drv_request(host);
}

/* The host runs again. */
static void finish(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;
	const enum drv_cause cause = r->cause;

	app->workers_changed = true; /* others may have waited for it */
	drv_replace_no_move(host);
	set_phase(host, DRV_PHASE_NONE, 0);
	if (cause != DRV_CAUSE_FAILURE || r->is_leaving)
		drv_persist_placed(app);
	if (cause == DRV_CAUSE_SWAP || (cause == DRV_CAUSE_DRAIN && r->is_old_swap))
		drv_swap_runs(host);
	else if (cause == DRV_CAUSE_DRAIN)
		drv_history_add(app->core, FW_NOTICE_MOVE, app, NULL, "%s runs on %s now",
				host->name, host->worker);
	r->is_leaving = r->is_refused = r->is_old_swap = false;
	r->left = 0;
	drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
		"%s runs again on worker %s, epoch %llu", host->name, host->worker,
		(unsigned long long)host->now.epoch);
}

/* Before it runs, the next driver must know where, and not give its epoch again. */
static bool is_known_to_next_driver(const struct drv_host *host)
{
	const struct drv_core *core = host->app->core;

	return core->written_change >= host->now.change &&
	       core->written_change >= core->numbers_change;
}

static void work_starting(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_core *core = host->app->core;

	/* Its worker, which ends, has ended it: a stop in order waits for another host. */
	if (host->now.state == DRV_HOST_GONE && host->now.session != NULL) {
		set_phase(host, DRV_PHASE_NONE, 0);
		return;
	}
	if (host->now.state <= DRV_HOST_PREPARED && drv_replace_is_in_vain(host)) {
		drv_replace_not_awaited(host);
		return;
	}
	if (core->now_ns >= r->until_ns) {
		const struct fw_failure failure = {
			.code = FRAGI_FAILURE_HOST_LATE,
			.sentence = drv_text(core, "%s on worker %s did not answer %s in time",
					     host->name, host->worker,
					     drv_goal_request(host->now.goal))};

		drv_host_failed(host, &failure);
		return;
	}
	if (host->now.state == DRV_HOST_GONE)
		drv_migrate_place(host);
	switch (host->now.state) {
	case DRV_HOST_PLACED:
		if (core->now_ns < r->at_ns || !is_known_to_next_driver(host))
			return;
		if (drv_migrate_leave_drained(host))
			return;
		drv_flows_draw_tokens(host);
		ask(host, DRV_GOAL_PREPARED, limit_ns(host, core->config.prepare_ns));
		if (host->now.is_moved) /* its new worker keeps what was counted elsewhere */
			drv_request_past(host);
		return;
	case DRV_HOST_PREPARED:
		r->until_ns = INT64_MAX; /* it has answered; what its neighbours do has deadlines */
		if (!neighbours_are_prepared(host))
			return;
		host->now.has_begun = true;
		ask(host, DRV_GOAL_WIRED, core->config.wire_ns);
		/* The neighbours were wired to another process of the host, or to none. */
		ask_neighbours(host, DRV_HOST_WIRING, drv_request_rewire);
		return;
	case DRV_HOST_WIRED:
		ask(host, DRV_GOAL_RUNNING, limit_ns(host, core->config.start_ns));
		return;
	case DRV_HOST_RUNNING:
	case DRV_HOST_DONE:
		finish(host);
		return;
	default:
		return;
	}
}

static void advance(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;

	if (r->failed != NULL)
		judge_next(host);
	if (r->phase == DRV_PHASE_PREPARING)
		work_preparing(host);
	if (r->phase == DRV_PHASE_YIELDING && host->now.state != DRV_HOST_GONE)
		work_yielding(host);
	if (r->phase == DRV_PHASE_ENDING)
		work_ending(host);
	if ((r->phase == DRV_PHASE_YIELDING || r->phase == DRV_PHASE_ENDING) &&
	    host->now.state == DRV_HOST_GONE)
		succeed(host);
	if (r->phase != DRV_PHASE_STARTING)
		return;
	work_starting(host);
	if (r->phase == DRV_PHASE_ENDING) /* it failed just now */
		work_ending(host);
}

/* Returns when the host is to be looked at next. */
static int64_t next_look(const struct drv_host *host)
{
	const struct drv_replacement *r = &host->replacement;
	bool waits = r->phase == DRV_PHASE_STARTING && r->at_ns > host->app->core->now_ns &&
		     (host->now.state == DRV_HOST_PLACED || host->now.state == DRV_HOST_GONE);

	return waits ? r->at_ns : r->until_ns; /* it was asked for nothing yet */
}

enum drv_work drv_replace_work(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int64_t next_ns = INT64_MAX;
	bool is_cut = false, has_any;

	if (app->end == DRV_END_NONE)
		drv_swap_work(app);
	if (app->moving == NULL && app->end == DRV_END_NONE)
		drv_move_look(app);
	drv_move_wait(app);
	has_any = app->moving != NULL || app->replaced_count != 0;
	for (uint32_t i = 0; has_any && i < app->host_count && app->end < DRV_END_FAILED; i++) {
		struct drv_host *host = &app->hosts[i];

		if (host->replacement.phase == DRV_PHASE_NONE)
			continue;
		if (core->items <= 0) {
			is_cut = true;
			break;
		}
		advance(host);
		if (host->replacement.phase == DRV_PHASE_NONE)
			continue;
		if (next_look(host) < next_ns)
			next_ns = next_look(host);
	}
	if (app->moves.until_ns > core->now_ns && app->moves.until_ns < next_ns)
		next_ns = app->moves.until_ns;
	if (next_ns != INT64_MAX)
		drv_set(core, &app->timers.retry, next_ns);
	else
		drv_timer_cancel(&core->timers, &app->timers.retry);
	return is_cut || drv_move_has_more(app) ? DRV_AGAIN : DRV_WAITS;
}

void drv_replace_no_move(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;

	if (r->cause == DRV_CAUSE_FAILURE)
		return;
	drv_next_let_go(host);
	if (r->from != NULL)
		drv_request_past_of(host, r->from);
	r->from = NULL;
	r->cause = DRV_CAUSE_FAILURE;
	drv_move_ends(host);
}

void drv_replace_not_awaited(struct drv_host *host)
{
	struct drv_app *app = host->app;

	drv_suspicion_clear(host);
	if (app->summary.result == FRAGI_SUMMARY_DONE)
		app->summary.result = FRAGI_SUMMARY_STOPPED;
	host->replacement.is_given_up = true;
	drv_app_wake(app);
}

void drv_replace_give_up(struct drv_app *app)
{
	drv_swap_end(app);
	for (uint32_t i = 0; i < app->host_count; i++) {
		struct drv_host *host = &app->hosts[i];

		if (host->replacement.phase == DRV_PHASE_NONE)
			continue;
		if (drv_host_is_restarting(host)) {
			drv_suspicion_clear(host); /* it is killed, and its links with it */
			if (host->now.state == DRV_HOST_PLACED)
				drv_host_transition(host, DRV_HOST_GONE);
			else if (host->now.state != DRV_HOST_GONE)
				host->now.goal = DRV_GOAL_KILLED;
		}
		drv_next_let_go(host);
		host->replacement.from = NULL;
		set_phase(host, DRV_PHASE_NONE, 0);
	}
	drv_timer_cancel(&app->core->timers, &app->timers.retry);
}
