// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/transports.h>

/*
 * How an application whose hosts were reported (adopt.c) gets them, or is given up.
 */
#define AGE_NS_MAX (INT64_MAX / 4) /* that a worker may say: times stay in their range */

static bool tables_fit(const struct drv_reported *reported)
{
	const struct fw_host_create *create = &reported->report->report.create;
	const struct fw_host_prepared *prepared;

	if (reported->prepared == NULL)
		return false;
	prepared = &reported->prepared->prepared;
	if (prepared->fragment_count != create->fragment_count)
		return false;
	for (uint32_t i = 0; i < create->fragment_count; i++)
		if (strcmp(prepared->fragments[i].name, create->fragments[i]) != 0)
			return false;
	return true;
}

enum completeness {
	INCOMPLETE,
	COMPLETE,
	IMPOSSIBLE,
};

/* Whether every fragment has a host, and the hosts are numbered as they were made. */
static enum completeness completeness_of(struct drv_app *app)
{
	const struct fragi_spec *spec = app->spec;
	bool *has = fragi_arena_alloc(&app->core->actions->arena, spec->fragment_count + 1);
	bool *numbers = fragi_arena_alloc(&app->core->actions->arena, spec->fragment_count + 2);
	size_t fragments = 0, hosts = 0, highest = 0;

	if (has == NULL || numbers == NULL)
		return INCOMPLETE;
	for (struct drv_reported *r = app->adopting->first; r != NULL; r = r->next) {
		const struct fw_host_report *report = &r->report->report;

		if (drv_reported_is_beside(r)) /* the host is another one */
			continue;
		if (!report->has_run || r->number == 0 || r->number > spec->fragment_count ||
		    numbers[r->number] || report->create.fragment_count == 0)
			return IMPOSSIBLE;
		if (!tables_fit(r)) /* they were too large to be kept */
			return IMPOSSIBLE;
		numbers[r->number] = true;
		hosts++;
		highest = r->number > highest ? r->number : highest;
		for (uint32_t i = 0; i < report->create.fragment_count; i++) {
			const struct fragi_spec_fragment *fragment =
				fragi_strmap_get(&app->by_name, report->create.fragments[i]);

			if (fragment == NULL || has[fragment - spec->fragments])
				return IMPOSSIBLE;
			has[fragment - spec->fragments] = true;
			fragments++;
		}
	}
	return fragments == spec->fragment_count && hosts == highest ? COMPLETE : INCOMPLETE;
}

/* What they have said, and how they ended, follows. */
static bool hosts_are_being_reported(const struct drv_app *app)
{
	for (const struct drv_reported *r = app->adopting->first; r != NULL; r = r->next)
		if (r->session->is_reporting)
			return true;
	return false;
}

/* Whether all workers that may run hosts of it are known, there, and have said what they run. */
static bool all_have_reported(const struct drv_app *app)
{
	const struct drv_core *core = app->core;
	const char *name = app->adopting->unseen;

	while (name != NULL && *name != '\0') {
		size_t length;
		bool found = false;

		name += *name == '\t'; /* to which a host was being moved */
		length = strcspn(name, "\n");

		for (size_t i = 0; i < core->session_count && !found; i++)
			found = core->sessions[i]->role == FW_ROLE_WORKER &&
				!core->sessions[i]->is_reporting &&
				strncmp(core->sessions[i]->name, name, length) == 0 &&
				core->sessions[i]->name[length] == '\0';
		if (!found)
			return false;
		name += length + (name[length] == '\n');
		app->adopting->unseen = name;
	}
	return app->adopting->workers != NULL && app->adopting->workers[0] != '\0';
}

/* The sums of its epochs before the present one. Returns 0 or -ENOMEM. */
static int take_past(struct drv_host *host, struct drv_reported *reported)
{
	const struct fw_host_report *report = &reported->report->report;
	const struct fw_host_stats *stats = reported->past != NULL ? &reported->past->stats : NULL;
	struct drv_restarts *r = &host->restarts;
	const uint32_t intensity = host->on_failure->intensity;

	host->replacement.was_on = host->now.session->number;
	host->now.has_begun = report->restarts == 0 || report->started || report->is_wired;
	host->past.is_inexact = report->is_inexact || drv_adopt_may_have_left(host->app, reported);
	if (report->restarts == 0)
		return 0;
	r->begun_ns = fragi_arena_alloc(&host->app->arena, (intensity + 1) * sizeof(*r->begun_ns));
	for (uint32_t i = 0; r->begun_ns != NULL && i < intensity; i++)
		r->begun_ns[i] = INT64_MIN / 2; /* when that was has gone with the driver */
	if (r->begun_ns == NULL)
		return -ENOMEM;
	r->count = (uint32_t)report->restarts;
	return stats != NULL ? drv_account_add(host, stats) : 0;
}

/* "fragment1, fragment2" */
static char *name_of(struct drv_app *app, const struct fw_host_create *create)
{
	size_t bytes = 1, used = 0;
	char *name;

	for (uint32_t i = 0; i < create->fragment_count; i++)
		bytes += strlen(create->fragments[i]) + 2;
	name = fragi_arena_alloc(&app->arena, bytes);
	for (uint32_t i = 0; name != NULL && i < create->fragment_count; i++)
		used += (size_t)sprintf(name + used, "%s%s", i != 0 ? ", " : "",
					create->fragments[i]);
	return name;
}

/* What there was no memory for is empty: the application fails, but its hosts are looked at. */
static bool make_whole(struct drv_host *host)
{
	static char empty[] = "";
	const char **texts[] = {&host->worker, &host->node,      &host->clock,
				&host->memory, &host->no_memory, &host->first_memory};
	bool is_whole = host->name != NULL && host->fragments != NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		is_whole = is_whole && *texts[i] != NULL;
		*texts[i] = *texts[i] != NULL ? *texts[i] : empty;
	}
	host->name = host->name != NULL ? host->name : empty;
	host->fragment_count = host->fragments != NULL ? host->fragment_count : 0;
	return is_whole;
}

static const char *first_memory(const struct fw_host_create *create,
				const struct drv_session *session)
{
	if (create->memory[0] == '\0')
		return session->memory;
	return strcmp(create->memory, FW_MEMORY_NONE) == 0 ? "" : create->memory;
}

static int take_host(struct drv_app *app, struct drv_reported *reported)
{
	const struct fw_host_create *create = &reported->report->report.create;
	struct drv_session *session = reported->session;
	struct drv_host *host = &app->hosts[reported->number - 1];

	*host = (struct drv_host){
		.app = app,
		.number = reported->number,
		.now.epoch = reported->epoch,
		.now.state = DRV_HOST_RUNNING,
		.now.goal = DRV_GOAL_RUNNING,
		.now.asked = DRV_GOAL_RUNNING,
		.now.is_adopted = true,
		.now.session = session,
		.first_memory = fragi_arena_strdup(&app->arena, first_memory(create, session)),
		.name = name_of(app, create),
		.fragments = fragi_arena_alloc(&app->arena,
					       create->fragment_count * sizeof(*host->fragments)),
		.fragment_count = create->fragment_count,
		.tables = reported->prepared,
	};
	reported->prepared = NULL;
	drv_host_attach(host, session);
	app->hosts_in[DRV_HOST_RUNNING]++;
	for (uint32_t i = 0; i < create->fragment_count; i++) {
		const struct fragi_spec_fragment *fragment =
			fragi_strmap_get(&app->by_name, create->fragments[i]);
		const size_t f = (size_t)(fragment - app->spec->fragments);

		host->on_failure = i == 0 ? &fragment->on_failure : host->on_failure;
		if (host->fragments != NULL)
			host->fragments[i] = (uint32_t)f;
		app->fragments[f] = (struct drv_fragment){
			.host = host,
			.in_host = i,
			.place = {.worker = -1, .reason = "it ran there when driverd came back"}};
		drv_start_take_share(app, f, session, 1);
	}
	memcpy(app->keys.data, create->data_key, FW_DATA_KEY_BYTES);
	memcpy(app->keys.variables, create->variables_key, FW_VARIABLES_KEY_BYTES);
	(void)drv_host_take_texts(host, session); /* make_whole sees it */
	if (!make_whole(host) || take_past(host, reported) < 0)
		return -ENOMEM;
	return drv_lease_adopt(host, session, host->now.epoch);
}

/* All hosts are known: they are the application's. */
static void take(struct drv_app *app)
{
	struct drv_core *core = app->core;
	uint32_t count = 0;
	int r = 0;

	for (const struct drv_reported *one = app->adopting->first; one != NULL; one = one->next)
		count += !drv_reported_is_beside(one);
	app->adopting->is_taken = true;
	app->hosts = fragi_arena_alloc(&app->arena, count * sizeof(*app->hosts));
	if (app->hosts == NULL) {
		drv_app_fail_for_memory(app);
		return;
	}
	app->host_count = count;
	app->epoch = 0;
	for (struct drv_reported *one = app->adopting->first; one != NULL; one = one->next) {
		int taken = 0; /* each of them: none may be half there */

		if (!drv_reported_is_beside(one))
			taken = take_host(app, one);
		r = taken < 0 ? taken : r;
		app->epoch = one->epoch > app->epoch ? one->epoch : app->epoch;
	}
	app->workers_changed = false;
	drv_timer_cancel(&core->timers, &app->timers.phase);
	if (!app->adopting->is_kept)
		drv_persist_adopted(app);
	if (r < 0) {
		drv_app_fail_for_memory(app);
		return;
	}
	if (drv_transports_choose(app) < 0)
		drv_app_fail_by_diag(app);
	drv_adopt_take_beside(app);
	drv_persist_placed(app);
	if (app->moving != NULL)
		app->moving->next.change = core->last_change;
}

/* Whether a worker that has not reported yet may have what is the host. */
static bool may_be_elsewhere(const struct drv_app *app)
{
	const char *workers = app->adopting->workers;

	if (workers != NULL && workers[0] != '\0')
		return !all_have_reported(app);
	return drv_adopt_may_be_elsewhere(app);
}

/* It has ended with its driver; it starts anew if it is wanted. */
static void give_up(struct drv_app *app, const char *why)
{
	struct drv_core *core = app->core;

	bool starts = app->next.is_wanted && app->end == DRV_END_NONE;

	drv_log(core, FRAGI_LOG_WARN, drv_app_name(app), "run %llu is not adopted: %s%s",
		(unsigned long long)app->run, why, starts ? "; it starts anew" : "");
	if (app->adopting->first != NULL || !all_have_reported(app))
		drv_lease_record_earlier(app);
	if (starts) {
		app->next.run = drv_persist_next_run(core);
		app->next.by = app->given.by;
	}
	drv_history_cut(app);
	app->kept.state = DRV_KEPT_CUT;
	app->end = DRV_END_AT_ONCE;
}

void drv_adopt_work(struct drv_app *app)
{
	enum completeness found = INCOMPLETE;
	bool is_whole;

	if (app->end >= DRV_END_FAILED) { /* a stop in order waits until it runs here */
		give_up(app, "it was stopped before its workers had reported it");
		return;
	}
	if (!app->adopting->is_touched && !app->timers.phase.is_due)
		return;
	app->adopting->is_touched = false;
	is_whole = !hosts_are_being_reported(app);
	if (is_whole) {
		drv_adopt_choose(app);
		found = completeness_of(app);
	}
	if (found == COMPLETE && app->core->numbers_change > app->core->settled_change)
		app->adopting->is_touched = true; /* its next epochs are to be on the disk first */
	else if (found == COMPLETE && !app->timers.phase.is_due && may_be_elsewhere(app))
		return;
	else if (found == COMPLETE)
		take(app);
	else if (found == IMPOSSIBLE)
		give_up(app, "it had not been started on all its workers when its driver ended");
	else if (app->timers.phase.is_due)
		give_up(app, "not all of its workers have come back in time");
	else if (is_whole && all_have_reported(app))
		give_up(app, "its workers do not run it any more");
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
		drv_host_move(host, DRV_HOST_STOPPING);
		break;
	case FW_STOP_KILLED:
		host->now.goal = host->now.asked = DRV_GOAL_KILLED;
		drv_host_move(host, DRV_HOST_KILLED);
		break;
	default:
		break;
	}
}

/* A host that was killed for no failure took too long to end. */
static bool an_operator_stops(const struct drv_app *app)
{
	for (const struct drv_reported *r = app->adopting->first; r != NULL; r = r->next)
		for (uint32_t i = 0; i < r->queued; i++)
			if (r->queue[i]->kind == FW_HOST_EVENT &&
			    r->queue[i]->event.state == FW_STATE_STOPPED &&
			    r->report->report.reason[0] == '\0')
				return true;
	return false;
}

/* An application that was being ended when its driver ended is ended now. */
static void go_on_ending(struct drv_app *app)
{
	const struct drv_reported *furthest = NULL;
	const struct fw_host_report *report;
	bool is_closing =
		false; /* its other hosts may have been killed because they took too long */

	for (struct drv_reported *r = app->adopting->first; r != NULL; r = r->next) {
		is_closing = is_closing ||
			     (r->report->report.is_closing && r->report->report.reason[0] == '\0');
		if (r->stop != FW_STOP_NOT && (furthest == NULL || r->stop > furthest->stop))
			furthest = r;
	}
	if (furthest == NULL || app->end >= DRV_END_FAILED)
		return;
	report = &furthest->report->report;
	if (is_closing || an_operator_stops(app)) {
		drv_app_stop(app, 0); /* it came to its end */
	} else if (report->reason[0] != '\0') {
		drv_app_fail(app,
			     report->failure != FRAGI_FAILURE_NONE ? report->failure
								   : FRAGI_FAILURE_OTHER,
			     NULL, "%s", report->reason);
	} else if (report->stop != FW_STOP_KILLED) {
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

static bool is_failure(const struct fw_message *message)
{
	return (message->kind == FW_HOST_EVENT && message->event.state == FW_STATE_FAILED) ||
	       (message->kind == FW_HOST_STARTED &&
		message->result.failure.code != FRAGI_FAILURE_NONE);
}

/* NULL: it was not taken, or has been started again since. */
static struct drv_host *host_of(struct drv_app *app, const struct drv_reported *reported)
{
	struct drv_host *host;

	if (reported->number == 0 || reported->number > app->host_count)
		return NULL;
	host = &app->hosts[reported->number - 1];
	return host->now.epoch == reported->epoch ? host : NULL;
}

/* Its end was reported. out_asked: its driver had killed it, to start it again */
static bool has_ended(const struct drv_reported *reported, bool *out_asked)
{
	for (uint32_t i = 0; i < reported->queued; i++) {
		const struct fw_host_exit *exit = &reported->queue[i]->exit;

		if (reported->queue[i]->kind != FW_HOST_EXIT)
			continue;
		*out_asked = exit->signal == SIGKILL && exit->failure.code == FRAGI_FAILURE_NONE;
		return true;
	}
	*out_asked = false;
	return false;
}

/* What is to be known of a host before the first of its words is heard. */
static void recall_one(struct drv_app *app, const struct drv_reported *reported)
{
	static const struct fw_failure again = {
		.code = FRAGI_FAILURE_HOST_EXITED,
		.sentence = "it was being started again when its driver ended"};
	struct drv_host *host = host_of(app, reported);
	const struct fw_host_report *report = &reported->report->report;
	bool has_died, was_asked;

	if (host == NULL)
		return;
	for (uint32_t i = 0; report->reason[0] != '\0' && i < reported->queued; i++)
		host->failed = host->failed || is_failure(reported->queue[i]);
	if (app->state == DRV_APP_RUNNING)
		recall(host, reported->stop);
	has_died = has_ended(reported, &was_asked);
	if (app->state != DRV_APP_RUNNING || host->now.state != DRV_HOST_RUNNING)
		return;
	/* Where nothing is started again it was, or was to follow, a process that was moved to. */
	if (reported->is_partial && (!has_died || was_asked) &&
	    (report->create.is_beside || host->on_failure->policy == FRAGI_ON_FAILURE_STOP)) {
		drv_replace_resume_start(host);
		(void)drv_request(host);
	} else if (reported->is_partial && !has_died && app->end == DRV_END_NONE) {
		drv_host_failed(host, &again);
		(void)drv_request(host);
	} else if (reported->is_partial && !has_died) { /* a stop starts nothing again */
		host->now.goal = DRV_GOAL_KILLED;
		(void)drv_request(host);
	}
}

static void begin_to_hear(struct drv_app *app)
{
	struct drv_adopting *adopting = app->adopting;
	int64_t age_ns = 0;

	for (const struct drv_reported *r = adopting->first; r != NULL; r = r->next)
		if (r->report->report.age_ns > age_ns)
			age_ns = r->report->report.age_ns;
	age_ns = age_ns < AGE_NS_MAX ? age_ns : AGE_NS_MAX;
	app->times.given_ns = app->times.started_ns = app->core->real_ns - age_ns;
	if (app->times.started_ns == 0)
		app->times.started_ns = 1; /* 0: not yet */
	app->origin = DRV_ORIGIN_ADOPTED;
	adopting->is_heard = true;
	if (app->state == DRV_APP_RUNNING)
		go_on_ending(app);
	for (const struct drv_reported *r = adopting->first; r != NULL; r = r->next)
		recall_one(app, r);
	for (const struct drv_reported *r = adopting->first; r != NULL; r = r->next)
		if (app->state == DRV_APP_RUNNING && r->report->report.yields &&
		    host_of(app, r) != NULL && host_of(app, r)->now.state == DRV_HOST_RUNNING)
			drv_replace_resume_yield(host_of(app, r));
}

/*
 * How it ended was reported, and happened while no driver was there: if it is not known that this
 * worker was the last one that ran it, another one may still do so.
 */
static void lease_may_last(struct drv_host *host)
{
	const int64_t lease_ns = host->on_failure->lease_ns;

	if (lease_ns > 0 && host->now.session != NULL &&
	    drv_adopt_place(host->app, host->number, host->now.session) != DRV_ADOPT_LAST)
		host->lease_over_ns = drv_lease_of_earlier_driver(host->app->core, lease_ns);
}

/* Returns whether it has said no more. */
static bool hear_one(struct drv_app *app, struct drv_reported *reported)
{
	while (reported->heard < reported->queued && app->core->items > 0) {
		struct fw_message *message = reported->queue[reported->heard];
		struct drv_host *host = host_of(app, reported);

		reported->queue[reported->heard++] = NULL;
		app->core->items--;
		if (host != NULL && message->kind == FW_HOST_EXIT)
			lease_may_last(host);
		if (host != NULL)
			drv_host_message(host, message);
		else
			drv_adopt_hear_other(app, reported, message);
	}
	return reported->heard == reported->queued;
}

void drv_adopt_hear(struct drv_app *app)
{
	struct drv_adopting *adopting = app->adopting;

	if (!adopting->is_heard)
		begin_to_hear(app);
	while (adopting->first != NULL && hear_one(app, adopting->first)) {
		struct drv_reported *reported = adopting->first;

		adopting->first = reported->next; /* what it sends from now on is for the host */
		drv_reported_free(reported);
	}
	drv_app_wake(app);
	if (adopting->first != NULL)
		app->core->work_left = true;
	else
		drv_adopt_fini(app);
}
