// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * How an application whose hosts were reported (adopt.c) gets them, or is given up, and hears what
 * they have said.
 */
#define AGE_NS_MAX (INT64_MAX / 4) /* that a worker may say: times stay in their range */

static const struct fw_host_report *report_of(const struct drv_host *host)
{
	return &host->now.report->message->report;
}

/*
 * Hosts are moved one after the other, so an application has one next process at most. Drivers that
 * have lost their state may have given the same epoch to several.
 */
static void choose_next(struct drv_app *app)
{
	const struct drv_process *process, *chosen = NULL;

	for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;) {
		const struct drv_host *host = process->report->host;

		if (process == &host->next && host->replacement.failed == NULL &&
		    process->epoch >= host->now.epoch &&
		    (chosen == NULL || process->epoch > chosen->epoch))
			chosen = process;
	}
	for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;) {
		struct drv_host *host = process->report->host;

		if (process == &host->now || process == chosen)
			continue;
		drv_adopt_disown(process->session, process->report->message);
		drv_adopt_forget(&host->next);
	}
}

enum completeness {
	INCOMPLETE,
	COMPLETE,
	IMPOSSIBLE,
};

/* Whether every fragment has a host, and the hosts are numbered as they were made. */
static enum completeness completeness_of(struct drv_app *app, uint32_t *out_hosts)
{
	const size_t count = app->spec->fragment_count;
	bool *has = fragi_arena_alloc(&app->core->actions->arena, count + 1);
	const struct drv_process *process;
	uint32_t hosts = 0, highest = 0;
	size_t fragments = 0;

	for (uint32_t at = 0; has != NULL && (process = drv_adopt_each(app, &at)) != NULL;) {
		const struct drv_host *host = process->report->host;

		if (process == &host->next)
			continue;
		/* The tables were too large to be kept, else. */
		if (!report_of(host)->has_run || host->tables == NULL ||
		    !drv_host_tables_match(host, &host->tables->prepared))
			return IMPOSSIBLE;
		hosts++;
		highest = host->number;
		for (uint32_t k = 0; k < host->fragment_count; k++, fragments++) {
			if (has[host->fragments[k]])
				return IMPOSSIBLE;
			has[host->fragments[k]] = true;
		}
	}
	*out_hosts = hosts;
	return fragments == count && hosts == highest ? COMPLETE : INCOMPLETE;
}

/* Whether reports of the hosts' messages and ends are still to come. */
static bool hosts_are_being_reported(const struct drv_app *app)
{
	const struct drv_process *process;

	for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;)
		if (process->session->is_reporting)
			return true;
	return false;
}

/*
 * Whether the host may have run elsewhere after that process, with nobody left who knows it: then
 * what it counted there is missing.
 */
static bool may_have_left(const struct drv_host *host)
{
	const struct fw_host_report *report = report_of(host);
	const struct drv_report *own = host->now.report;
	const bool has_failed = own->has_failed || own->exit != NULL;

	/* It made way for another process, of which nobody knows whether it became the host. */
	if (report->yields && has_failed && host->next.report == NULL)
		return true;
	/* Under a lease nothing follows a process that lives, nor one that ended with its run. */
	return drv_migrates(host) && report->stop == FW_STOP_NOT &&
	       (host->on_failure->lease_ns == 0 || own->has_failed || own->had_ended) &&
	       drv_adopt_place(host, host->now.session) == DRV_ADOPT_UNKNOWN;
}

/*
 * How it ended was reported, and happened while no driver was there: if it is not known that this
 * worker was the last one that ran it, another one may still do so.
 */
static void lease_may_last(struct drv_host *host)
{
	const int64_t lease_ns = host->on_failure->lease_ns;

	if (lease_ns == 0 || !host->now.report->had_ended ||
	    drv_adopt_place(host, host->now.session) == DRV_ADOPT_LAST)
		return;
	host->now.may_have_left = true;
	host->lease_over_ns = drv_lease_of_earlier_driver(host->app->core, lease_ns);
}

/* Returns 0 or -ENOMEM. */
static int take_host(struct drv_host *host)
{
	const struct fw_host_create *create = &report_of(host)->create;
	struct drv_session *session = host->now.session;
	struct drv_app *app = host->app;

	drv_start_reserve_host(host, session, -1);
	drv_start_take_shares(host, session, 1);
	drv_host_attach(host, session);
	app->hosts_in[DRV_HOST_RUNNING]++;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		app->fragments[host->fragments[i]] = (struct drv_fragment){
			.host = host,
			.in_host = i,
			.place = {.worker = -1, .reason = "it ran there when driverd came back"}};
	memcpy(app->keys.data, create->data_key, FW_DATA_KEY_BYTES);
	memcpy(app->keys.variables, create->variables_key, FW_VARIABLES_KEY_BYTES);
	host->past.is_inexact = host->past.is_inexact || may_have_left(host);
	lease_may_last(host);
	return drv_lease_adopt(host, session, host->now.epoch);
}

/*
 * A driver before had begun to move the host to its next process, which was made from the present
 * source or from the one before.
 */
static int take_next(struct drv_host *host)
{
	const struct fw_host_create *create = &host->next.report->message->report.create;
	struct drv_app *app = host->app;
	struct fw_message *prepared = host->next.prepared;
	const bool is_swap = host->next.session == host->now.session;

	host->replacement.is_old_swap = is_swap;
	/* That driver may have wired the peers to it, with tokens that nobody knows any more. */
	if (host->now.report->had_ended) {
		drv_adopt_forget(&host->next);
		drv_next_let_go(host);
		return 0;
	}
	host->next.prepared = NULL;
	host->next.sources = app->settings.sources;
	if (create->source_bytes != app->source.size ||
	    memcmp(create->source, app->source.bytes, app->source.size) != 0)
		host->next.sources++;
	drv_adopt_forget(&host->next);
	drv_replace_begin(host, is_swap ? DRV_CAUSE_SWAP : DRV_CAUSE_DRAIN, true);
	drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
		is_swap ? "%s goes on in another process on worker %s"
			: "%s goes on moving from worker %s to worker %s",
		host->name, host->worker, host->next.session->name);
	if (prepared != NULL)
		drv_next_prepared(host, prepared);
	return drv_lease_adopt(host, host->next.session, host->next.epoch);
}

/* All hosts are known: they are the application's. */
static void take(struct drv_app *app, uint32_t hosts)
{
	bool is_short = false;

	app->host_count = hosts;
	app->epoch = 0;
	for (uint32_t i = 0; i < hosts; i++) {
		struct drv_host *host = &app->hosts[i];

		if (take_host(host) < 0) /* the others, too: none may be half there */
			is_short = true;
		app->epoch = host->now.epoch > app->epoch ? host->now.epoch : app->epoch;
		app->epoch = host->next.epoch > app->epoch ? host->next.epoch : app->epoch;
	}
	app->workers_changed = false;
	if (!app->adopting->is_kept)
		drv_persist_adopted(app);
	if (is_short)
		drv_app_fail_for_memory(app);
	else if (drv_flows_choose_transports(app) < 0)
		drv_app_fail_by_diag(app);
	for (uint32_t i = 0; i < hosts; i++)
		if (app->hosts[i].next.report != NULL && take_next(&app->hosts[i]) < 0)
			drv_app_fail_for_memory(app);
	drv_persist_placed(app);
	if (app->moving != NULL)
		app->moving->next.change = app->core->last_change;
}

/* Whether a worker that has not reported yet may have what is the host. */
static bool may_be_elsewhere(const struct drv_app *app)
{
	const struct drv_process *process;

	if (app->adopting->placed != NULL)
		return !drv_adopt_all_have_reported(app);
	/* One that was to go on in another process is the host if that is not known anywhere. */
	for (uint32_t at = 0; (process = drv_adopt_each(app, &at)) != NULL;)
		if (process->report->message->report.yields ||
		    (process == &process->report->host->now &&
		     may_have_left(process->report->host)))
			return true;
	return false;
}

/*
 * Gives up the adoption: the application has ended with its driver, and restarts if it is wanted.
 */
static void give_up(struct drv_app *app, const char *why)
{
	struct drv_core *core = app->core;
	uint32_t first = 0;
	bool starts = app->next.is_wanted && app->end == DRV_END_NONE;

	drv_log(core, FRAGI_LOG_WARN, drv_app_name(app), "run %llu is not adopted: %s%s",
		(unsigned long long)app->run, why, starts ? "; it starts anew" : "");
	if (starts) {
		app->next.run = drv_persist_next_run(core);
		app->next.by = app->given.by;
	}
	drv_history_cut(app);
	if (drv_adopt_each(app, &first) != NULL || !drv_adopt_all_have_reported(app))
		drv_lease_record_earlier(app);
	app->kept.state = DRV_KEPT_CUT;
	app->end = DRV_END_AT_ONCE;
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

void drv_adopt_work(struct drv_app *app)
{
	enum completeness found = INCOMPLETE;
	uint32_t hosts = 0;
	bool is_whole;

	if (app->end >= DRV_END_FAILED) { /* a stop in order waits until it runs here */
		give_up(app, "it was told to end at once before it was adopted");
		return;
	}
	if (!app->adopting->is_touched && !app->timers.phase.is_due)
		return;
	app->adopting->is_touched = false;
	is_whole = !hosts_are_being_reported(app);
	if (is_whole) {
		choose_next(app);
		found = completeness_of(app, &hosts);
	}
	if (found == COMPLETE && app->core->numbers_change > app->core->settled_change)
		app->adopting->is_touched = true; /* its next epochs are to be on the disk first */
	else if (found == COMPLETE && !app->timers.phase.is_due && may_be_elsewhere(app))
		return;
	else if (found == COMPLETE)
		take(app, hosts);
	else if (found == IMPOSSIBLE)
		give_up(app, "it had not been started on all its workers when its driver ended");
	else if (app->timers.phase.is_due)
		give_up(app, "not all of its workers have come back in time");
	else if (is_whole && drv_adopt_all_have_reported(app))
		give_up(app, "its workers do not run it any more");
}

/* Whether next repeats what one reports. */
static bool is_repeated(const struct fw_message *one, const struct fw_message *next)
{
	return one->kind == FW_HOST_EVENT && next->kind == FW_HOST_EVENT &&
	       one->event.state == next->event.state && one->event.peer == next->event.peer;
}

static bool is_failure(const struct fw_message *message)
{
	return (message->kind == FW_HOST_EVENT && message->event.state == FW_STATE_FAILED) ||
	       (message->kind == FW_HOST_STARTED &&
		message->result.failure.code != FRAGI_FAILURE_NONE);
}

/* Takes message. */
static void enqueue(struct drv_process *process, struct fw_message *message)
{
	struct drv_report *report = process->report;
	const bool is_event = message->kind == FW_HOST_EVENT,
		   is_saved = message->kind == FW_HOST_SAVED;
	bool is_new = true;

	for (uint32_t i = 0; i < report->count; i++)
		is_new = is_new && !is_repeated(report->events[i], message);
	if (is_saved) { /* too much of it: the operators begin anew */
		process->session->report_bytes += message->saved.size;
		is_new = process->session->report_bytes <= DRV_SOURCES_MAX;
	}
	if (is_new && report->count < DRV_REPORT_EVENTS_MAX) {
		report->events[report->count++] = message;
		report->has_failed = report->has_failed || is_failure(message);
		report->has_stopped = report->has_stopped ||
				      (is_event && message->event.state == FW_STATE_STOPPED);
		report->is_done =
			report->is_done || (is_event && message->event.state == FW_STATE_DONE);
		report->exit = message->kind == FW_HOST_EXIT ? &message->exit : report->exit;
		report->had_ended = report->had_ended || (message->kind == FW_HOST_EXIT &&
							  process->session->is_reporting);
		return;
	}
	/* One lost peer of many is enough; else its application misses it, as of a broken link. */
	if (is_new && !is_saved && !(is_event && message->event.state == FW_STATE_PEER_LOST))
		drv_session_drop(process->session, "there is no room for what it reports");
	fw_message_free(message);
}

bool drv_adopt_keep(struct drv_host *host, struct fw_message *message)
{
	struct drv_app *app = host->app;
	bool is_taken = app->host_count != 0;

	app->adopting->is_touched = true;
	switch (message->kind) {
	case FW_HOST_STATS: /* how it is now is recorded at once */
	case FW_HOST_LINES:
		return false;
	case FW_HOST_EVENT:
		if (message->event.state == FW_STATE_RUNNING ||
		    message->event.state == FW_STATE_IDLE)
			return false;
		break;
	case FW_HOST_PREPARED:
		if (host->tables != NULL || !message->prepared.ok || is_taken)
			break;
		host->tables = message;
		return true;
	case FW_HOST_PAST: /* the sums of the epochs before */
		if (!is_taken && host->past.sums.flows == NULL && host->restarts.count != 0 &&
		    drv_account_add(host, &message->stats) < 0)
			drv_app_fail_for_memory(app);
		fw_message_free(message);
		return true;
	default:
		break;
	}
	enqueue(&host->now, message);
	return true;
}

/* What was asked of a host before its driver ended is not asked again. */
static void recall(struct drv_host *host, enum fw_stop_state stop)
{
	switch (stop) {
	case FW_STOP_DRAINS:
		host->now.goal = host->now.asked = DRV_GOAL_DRAINED;
		break;
	case FW_STOP_ENDS:
	case FW_STOP_DRAINED_ENDS:
		host->now.goal = host->now.asked = DRV_GOAL_CLOSED;
		drv_host_transition(host, DRV_HOST_STOPPING);
		break;
	case FW_STOP_KILLED:
		host->now.goal = host->now.asked = DRV_GOAL_KILLED;
		drv_host_transition(host, DRV_HOST_KILLED);
		break;
	default:
		break;
	}
}

/* An application that was being ended when its driver ended is ended now. */
static void go_on_ending(struct drv_app *app)
{
	const struct fw_host_report *furthest = NULL, *failed = NULL;
	/* Its other hosts may have been killed because they took too long. */
	bool is_closing = false, has_stopped = false;
	/* A user who cannot wait has all killed before they are done; else each ends first. */
	bool all_were_killed = true, all_are_done = true;

	for (uint32_t i = 0; i < app->host_count; i++) {
		const struct drv_host *host = &app->hosts[i];
		const struct fw_host_report *report =
			host->now.report != NULL ? report_of(host) : NULL;

		if (report == NULL)
			continue;
		if (report->reason[0] != '\0')
			failed = report;
		is_closing = is_closing || report->is_closing;
		has_stopped = has_stopped || host->now.report->has_stopped;
		all_were_killed = all_were_killed && report->stop == FW_STOP_KILLED;
		all_are_done = all_are_done && host->now.report->is_done;
		if (report->stop != FW_STOP_NOT &&
		    (furthest == NULL || report->stop > furthest->stop))
			furthest = report;
	}
	if (furthest == NULL || app->end >= DRV_END_FAILED)
		return;
	if (failed != NULL) {
		drv_app_fail(app,
			     failed->failure != FRAGI_FAILURE_NONE ? failed->failure
								   : FRAGI_FAILURE_OTHER,
			     NULL, "%s", failed->reason);
	} else if (is_closing || (has_stopped && (all_are_done || !all_were_killed))) {
		drv_app_stop(app, 0); /* it came to its end */
	} else if (furthest->stop != FW_STOP_KILLED) {
		if (app->next.is_wanted && app->adopting->is_kept &&
		    app->end == DRV_END_NONE) { /* a restart was asked for, and no stop since */
			app->next.run = drv_persist_next_run(app->core);
			app->next.by = app->given.by;
		}
		drv_app_stop(app, SIGTERM);
	} else {
		drv_app_stop_at_once(app, 0);
	}
}

/* Whether a driver before has noted that worker alone for the host: it was not moving anywhere. */
static bool was_there_alone(const struct drv_host *host)
{
	const struct drv_placed *placed = host->app->adopting->placed;
	bool is_known = false;

	for (uint32_t i = 0; placed != NULL && i < placed->count; i++) {
		if (placed->at[i].host != host->number)
			continue;
		is_known = true;
		if (strcmp(placed->at[i].worker, host->now.session->name) != 0)
			return false;
	}
	return is_known;
}

/* What is to be known of a host before the first of its messages is replayed. */
static void recall_one(struct drv_host *host)
{
	static const struct fw_failure was_restarting = {
		.code = FRAGI_FAILURE_HOST_EXITED,
		.sentence = "it was being started again when its driver ended"};
	const struct drv_report *own = host->now.report;
	const struct fw_host_report *report = &own->message->report;
	const struct drv_app *app = host->app;
	const bool has_died = own->exit != NULL;
	/* Its driver had killed it, to start it again. */
	const bool was_asked = has_died && own->exit->signal == SIGKILL &&
			       own->exit->failure.code == FRAGI_FAILURE_NONE;

	host->failed = host->failed || (report->reason[0] != '\0' && own->has_failed);
	if (app->state == DRV_APP_RUNNING)
		recall(host, report->stop);
	if (app->state != DRV_APP_RUNNING || host->now.state != DRV_HOST_RUNNING || report->started)
		return;
	/* Its policy starts nothing again: it was moved to, or was to follow such a process. */
	if ((!has_died || was_asked) &&
	    (report->create.is_beside || host->on_failure->policy == FRAGI_ON_FAILURE_STOP)) {
		host->replacement.is_old_swap = was_there_alone(host);
		drv_replace_resume_start(host);
	} else if (!has_died && app->end == DRV_END_NONE)
		drv_host_failed(host, &was_restarting);
	else if (!has_died) /* a stop starts nothing again */
		host->now.goal = DRV_GOAL_KILLED;
	else
		return;
	(void)drv_request(host);
}

static void begin_replay(struct drv_app *app)
{
	int64_t age_ns = 0;

	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.report != NULL && report_of(&app->hosts[i])->age_ns > age_ns)
			age_ns = report_of(&app->hosts[i])->age_ns;
	age_ns = age_ns < AGE_NS_MAX ? age_ns : AGE_NS_MAX;
	app->times.given_ns = app->times.started_ns = app->core->real_ns - age_ns;
	if (app->times.started_ns == 0)
		app->times.started_ns = 1; /* 0: not yet */
	app->origin = DRV_ORIGIN_ADOPTED;
	if (app->state == DRV_APP_RUNNING)
		go_on_ending(app);
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].now.report != NULL)
			recall_one(&app->hosts[i]);
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->state == DRV_APP_RUNNING && app->hosts[i].now.report != NULL &&
		    report_of(&app->hosts[i])->yields &&
		    app->hosts[i].now.state == DRV_HOST_RUNNING)
			drv_replace_resume_yield(&app->hosts[i]);
}

/* Returns whether all that was reported of it is replayed. */
static bool replay_one(struct drv_host *host)
{
	struct drv_report *report = host->now.report;
	uint32_t replayed = 0;

	host->now.report = NULL; /* what it sends from now on is for the host */
	while (report != NULL && replayed < report->count && host->app->core->items > 0) {
		struct fw_message *message = report->events[replayed++];

		host->app->core->items--;
		drv_host_message(host, message);
	}
	if (report == NULL)
		return true;
	report->count -= replayed;
	memmove(report->events, report->events + replayed, report->count * sizeof(*report->events));
	host->now.report = report;
	if (report->count != 0)
		return false;
	drv_adopt_forget(&host->now);
	return true;
}

void drv_adopt_replay(struct drv_app *app)
{
	bool is_replayed = true;

	if (app->origin != DRV_ORIGIN_ADOPTED)
		begin_replay(app);
	for (uint32_t i = 0; is_replayed && i < app->host_count; i++)
		is_replayed = replay_one(&app->hosts[i]);
	drv_app_wake(app);
	if (is_replayed)
		drv_adopt_fini(app);
	else
		app->core->work_left = true;
}
