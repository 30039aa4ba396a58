// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/swap.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

/*
 * A host that has failed while the application runs, and whose fragments say so (on_failure), is
 * started again on its worker: it is killed if it has not ended, waits in PLACED for its backoff,
 * gets a higher epoch, and goes through PREPARE, WIRE and START alone. When it is prepared, and its
 * neighbours are, these are wired to it anew; until then their edges are suspended. A failure on
 * the way is one more. More of them in a period than the intensity allows are the failure of the
 * application, and so is every failure once it stops: then nothing is started any more.
 */

static int64_t *begun_at(const struct drv_restarting *r, const struct drv_host *host, uint32_t back)
{
	return &r->begun_ns[(r->count - back) % host->on_failure->intensity];
}

/* How many restarts were begun within the last period. */
static uint32_t recent(const struct drv_host *host)
{
	const struct drv_restarting *r = &host->restarting;
	int64_t since_ns = host->app->core->now_ns - host->on_failure->period_ns;
	uint32_t n = 0;

	while (n < host->on_failure->intensity &&
	       n<r->count && * begun_at(r, host, n + 1)> since_ns)
		n++;
	return n;
}

static int64_t backoff_ns(const struct drv_host *host, uint32_t before)
{
	const struct fragi_spec_on_failure *own = host->on_failure;
	int64_t wait_ns = before > 0 ? own->backoff_ns : 0;

	for (uint32_t i = 1; i < before && wait_ns < own->period_ns; i++)
		wait_ns *= 2;
	return wait_ns < own->period_ns ? wait_ns : own->period_ns;
}

/* It has been started as often as it may; the first failure is the cause. */
static void fail_for_good(struct drv_host *host, uint32_t before, const struct fw_failure *failure)
{
	const struct drv_restarting *r = &host->restarting;
	struct fw_failure cause = {.code = r->first_code, .op = r->first_op};
	char period[32];

	cause.sentence = drv_text(
		host->app->core,
		"%s on worker %s failed again after %u restart%s within %s, as many as its on_failure allows; the first time: %s",
		host->name, host->worker, before, before == 1 ? "" : "s",
		fragi_format_duration(host->on_failure->period_ns, period, sizeof(period)),
		r->first != NULL ? r->first : "it gave no reason");
	drv_log(host->app->core, FRAGI_LOG_ERROR, drv_app_name(host->app), "%s", failure->sentence);
	host->failed = true;
	drv_app_fail_by_host(host, &cause);
}

bool drv_restart_is_due(const struct drv_host *host)
{
	const struct drv_app *app = host->app;

	return host->on_failure->policy != FRAGI_ON_FAILURE_STOP && !app->core->config.is_local &&
	       app->state == DRV_APP_RUNNING && !app->end_wanted && !app->stop_wanted;
}

/*
 * Where its worker refuses to run it, or is lost, it can go on elsewhere only: nothing is wrong
 * with the host.
 */
static bool may_restart(const struct drv_host *host, const struct fw_failure *failure)
{
	bool is_there = failure->code != FRAGI_FAILURE_WORKER_BUSY && host->now.session != NULL &&
			!host->now.is_lost;

	return drv_restart_is_due(host) && (is_there || drv_migrates(host));
}

bool drv_restart_may(const struct drv_host *host)
{
	return !host->restarting.is_wanted && host->now.state == DRV_HOST_RUNNING &&
	       may_restart(host, &(struct fw_failure){.code = FRAGI_FAILURE_OTHER}) &&
	       recent(host) < host->on_failure->intensity;
}

static int keep(char **at, const char *text)
{
	fragi_free(*at);
	*at = text != NULL && text[0] != '\0' ? fragi_strdup(text) : NULL;
	return *at == NULL && text != NULL && text[0] != '\0' ? -ENOMEM : 0;
}

/* Keeps the failure. Returns 0 or -ENOMEM. */
static int note(struct drv_host *host, const struct fw_failure *failure, uint32_t before)
{
	struct drv_restarting *r = &host->restarting;
	const uint32_t intensity = host->on_failure->intensity;
	int result;

	if (r->begun_ns == NULL)
		r->begun_ns =
			fragi_arena_alloc(&host->app->arena, intensity * sizeof(*r->begun_ns));
	result = keep(&r->last, failure->sentence);
	if (r->begun_ns == NULL || result < 0)
		return -ENOMEM;
	if (before > 0)
		return 0;
	r->first_code = failure->code;
	result = keep(&r->first, failure->sentence);
	return result < 0 ? result : keep(&r->first_op, failure->op);
}

void drv_restart_fini(struct drv_restarting *restarting)
{
	fragi_free(restarting->last);
	fragi_free(restarting->first);
	fragi_free(restarting->first_op);
	fragi_arena_fini(&restarting->places);
	restarting->last = restarting->first = restarting->first_op = NULL;
}

/* Once its old process has ended it is started again, after so long. */
static void start_again(struct drv_host *host, int64_t wait_ns)
{
	struct drv_restarting *r = &host->restarting;
	struct drv_app *app = host->app;

	drv_suspicion_clear(host);
	app->restarting_count += !r->is_wanted;
	drv_app_wake(app);
	r->is_wanted = true;
	r->at_ns = app->core->now_ns + wait_ns;
	r->until_ns = INT64_MAX;
	host->now.is_idle = false;
}

/* One that has not ended yet is killed. */
static void end_failed(struct drv_host *host)
{
	struct drv_core *core = host->app->core;

	if (host->now.state == DRV_HOST_GONE || host->now.state == DRV_HOST_PLACED)
		return; /* its exit is being recorded, or nothing runs yet */
	host->now.goal = DRV_GOAL_KILLED;
	(void)drv_request(host);
	host->restarting.until_ns = core->now_ns + core->config.kill_ns;
	core->work_left = true;
}

void drv_host_failed(struct drv_host *host, const struct fw_failure *failure)
{
	struct drv_restarting *r = &host->restarting;
	struct drv_app *app = host->app;
	uint32_t before;

	if (host->now.state == DRV_HOST_KILLED && r->is_wanted) /* it is on its way */
		return;
	if (drv_move_starts_again(host))
		return;
	if (drv_swap_returns(host, failure)) {
		start_again(host, 0);
		end_failed(host);
		return;
	}
	if (!may_restart(host, failure)) {
		host->failed = true;
		drv_app_fail_by_host(host, failure);
		return;
	}
	before = recent(host);
	if (before >= host->on_failure->intensity) {
		fail_for_good(host, before, failure);
		return;
	}
	if (note(host, failure, before) < 0) {
		drv_app_fail_for_memory(app);
		return;
	}
	drv_migrate_failed(host, failure);
	start_again(host, backoff_ns(host, before));
	drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
		"%s; %s is started again on %sworker%s%s (%u of %u)", failure->sentence, host->name,
		r->is_leaving ? "another " : "", r->is_leaving ? "" : " ",
		r->is_leaving ? "" : host->worker, before + 1, host->on_failure->intensity);
	end_failed(host);
}

void drv_restart_gone(struct drv_host *host)
{
	struct drv_restarting *r = &host->restarting;

	assert(host->now.state == DRV_HOST_GONE);
	if (host->app->end_wanted || host->app->state != DRV_APP_RUNNING)
		return;
	if (drv_past_add(host) < 0) {
		drv_app_fail_for_memory(host->app);
		return;
	}
	if (drv_move_takes_over(host))
		return;
	if (r->begun_ns != NULL) /* else its library returns, and nothing else is started again */
		*begun_at(r, host, 0) = host->app->core->now_ns;
	r->count++;
	r->has_begun = false;
	r->until_ns = INT64_MAX;
	host->now.goal = host->now.asked = DRV_GOAL_NONE;
	host->now.is_orderly = false;
	if (drv_migrate_leaves(host))
		return;
	host->now.epoch = drv_keep_next_epoch(host->app->core);
	drv_host_move(host, DRV_HOST_PLACED);
}

static bool neighbours_are_prepared(const struct drv_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct drv_host *other = drv_host_neighbour(host, i);

		if (other->now.state < DRV_HOST_PREPARED || other->now.state > DRV_HOST_DONE ||
		    drv_move_ends(other))
			return false;
	}
	return true;
}

/* Those that were wired to another epoch of the host, or to none. */
static void rewire_neighbours(struct drv_host *host)
{
	struct drv_app *app = host->app;

	for (uint32_t n = 0; n < app->host_count && !app->end_wanted; n++) {
		struct drv_host *other = &app->hosts[n];
		uint32_t i = 0;

		while (i < host->edge_count && drv_host_neighbour(host, i) != other)
			i++;
		if (i < host->edge_count && other != host && other->now.state >= DRV_HOST_WIRING &&
		    other->now.state <= DRV_HOST_DONE)
			drv_request_rewire(other, host);
	}
}

/* Asks for the next phase, which may take so long; 0: as long as it takes. */
static void ask(struct drv_host *host, enum drv_goal goal, int64_t within_ns)
{
	struct drv_core *core = host->app->core;

	host->now.goal = goal;
	host->restarting.until_ns = within_ns > 0 ? core->now_ns + within_ns : INT64_MAX;
	(void)drv_request(host);
}

static void too_late(struct drv_host *host)
{
	struct drv_core *core = host->app->core;
	const struct fw_failure failure = {
		.code = FRAGI_FAILURE_HOST_LATE,
		.sentence = drv_text(core, "%s on worker %s did not answer %s in time", host->name,
				     host->worker, drv_goal_request(host->now.goal))};

	if (host->now.state == DRV_HOST_KILLED)
		drv_app_fail(
			host->app, FRAGI_FAILURE_HOST_LATE, host,
			"worker %s did not confirm the end of %s, which is to be started again",
			host->worker, host->name);
	else
		drv_host_failed(host, &failure);
}

/* One step nearer to running. */
static void advance(struct drv_host *host)
{
	struct drv_restarting *r = &host->restarting;
	struct drv_app *app = host->app;
	const struct drv_config *config = &app->core->config;

	if (host->now.state == DRV_HOST_GONE && !drv_migrate_place(host))
		return;
	switch (host->now.state) {
	case DRV_HOST_PLACED:
		/* The next driver must know where it runs before it does. */
		if (app->core->now_ns < r->at_ns || app->core->settled_change < r->change)
			return;
		if (drv_migrate_goes_on(host))
			return;
		drv_wiring_draw_tokens(host);
		ask(host, DRV_GOAL_PREPARED, config->prepare_ns);
		if (r->is_moved) /* its new worker keeps what was counted elsewhere */
			drv_request_past(host);
		return;
	case DRV_HOST_PREPARED:
		r->until_ns = INT64_MAX; /* it has answered; what its neighbours do has deadlines */
		if (!neighbours_are_prepared(host))
			return;
		r->has_begun = true;
		ask(host, DRV_GOAL_WIRED, config->wire_ns);
		rewire_neighbours(host);
		return;
	case DRV_HOST_WIRED:
		ask(host, DRV_GOAL_RUNNING, config->start_ns);
		return;
	case DRV_HOST_RUNNING:
	case DRV_HOST_DONE:
		r->is_wanted = false;
		app->restarting_count--;
		drv_move_over(host);
		drv_migrate_over(host);
		drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
			"%s runs again on worker %s, epoch %llu", host->name, host->worker,
			(unsigned long long)host->now.epoch);
		return;
	default:
		return;
	}
}

void drv_restart_work(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int64_t next_ns = INT64_MAX;

	app->homeless_count = 0;
	for (uint32_t i = 0; i < app->host_count && !app->end_wanted; i++) {
		struct drv_host *host = &app->hosts[i];
		const struct drv_restarting *r = &host->restarting;

		if (!r->is_wanted)
			continue;
		if (core->items <= 0) {
			core->work_left = true;
			break;
		}
		if (core->now_ns >= r->until_ns)
			too_late(host);
		advance(host);
		if (!r->is_wanted)
			continue;
		app->homeless_count += host->now.state == DRV_HOST_GONE;
		if (r->at_ns > core->now_ns && r->at_ns < next_ns &&
		    (host->now.state == DRV_HOST_PLACED || host->now.state == DRV_HOST_GONE))
			next_ns = r->at_ns;
		if (r->until_ns < next_ns)
			next_ns = r->until_ns;
	}
	if (next_ns != INT64_MAX)
		drv_set(core, &app->again, next_ns);
	else
		drv_timer_cancel(&core->timers, &app->again);
}

void drv_restart_give_up(struct drv_app *app)
{
	for (uint32_t i = 0; app->restarting_count != 0 && i < app->host_count; i++) {
		struct drv_host *host = &app->hosts[i];

		if (!host->restarting.is_wanted)
			continue;
		drv_suspicion_clear(host); /* it is killed, and its links with it */
		host->restarting.is_wanted = false;
		app->restarting_count--;
		if (host->now.state == DRV_HOST_PLACED)
			drv_host_move(host, DRV_HOST_GONE);
		else if (host->now.state != DRV_HOST_GONE)
			host->now.goal = DRV_GOAL_KILLED;
	}
	drv_timer_cancel(&app->core->timers, &app->again);
}
