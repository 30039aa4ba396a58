// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/hosts/swap.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

/*
 * The failure of a host while its application runs: on_failure of its fragments decides what it
 * leads to. A host that restarts gets another process (replace.c), after a backoff that doubles.
 * More failures in a period than the intensity allows are the failure of the application, and so is
 * every failure once it stops: then nothing is started any more.
 */

static int64_t *begun_at(const struct drv_restarts *r, const struct drv_host *host, uint32_t back)
{
	return &r->begun_ns[(r->count - back) % host->on_failure->intensity];
}

/* How many restarts were begun within the last period. */
static uint32_t recent(const struct drv_host *host)
{
	const struct drv_restarts *r = &host->restarts;
	int64_t since_ns = host->app->core->now_ns - host->on_failure->period_ns;
	uint32_t n = 0;

	while (r->begun_ns != NULL && n < host->on_failure->intensity &&
	       n < r->count - r->earlier && since_ns < *begun_at(r, host, n + 1))
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

/*
 * Fails the application: the host has restarted as often as it may. The first failure is the cause.
 */
static void fail_for_good(struct drv_host *host, uint32_t before, const struct fw_failure *failure)
{
	const struct drv_restarts *r = &host->restarts;
	const char *first = r->first_is_asked ? failure->sentence : r->first;
	struct fw_failure cause = {.code = r->first_is_asked ? failure->code : r->first_code,
				   .op = r->first_is_asked ? failure->op : r->first_op};
	char period[32];

	cause.sentence = drv_text(
		host->app->core,
		"%s on worker %s failed again after %u restart%s within %s, as many as its on_failure allows; the first time: %s",
		host->name, host->worker, before, before == 1 ? "" : "s",
		fragi_format_duration(host->on_failure->period_ns, period, sizeof(period)),
		first != NULL ? first : "it gave no reason");
	drv_log(host->app->core, FRAGI_LOG_ERROR, drv_app_name(host->app), "%s", failure->sentence);
	host->failed = true;
	drv_app_fail_by_host(host, &cause);
}

bool drv_restart_is_due(const struct drv_host *host)
{
	const struct drv_app *app = host->app;

	return host->on_failure->policy != FRAGI_ON_FAILURE_STOP && !app->core->config.is_local &&
	       app->state == DRV_APP_RUNNING && app->end == DRV_END_NONE;
}

/*
 * Whether the host may restart where it is. If its worker refuses to run it, or is lost, it can go
 * on elsewhere only: nothing is wrong with the host.
 */
static bool may_restart(const struct drv_host *host, const struct fw_failure *failure)
{
	bool is_there = failure->code != FRAGI_FAILURE_WORKER_BUSY && host->now.session != NULL &&
			!host->now.is_lost;

	return drv_restart_is_due(host) && (is_there || drv_migrates(host));
}

bool drv_restart_may(const struct drv_host *host)
{
	return host->replacement.phase == DRV_PHASE_NONE && host->now.state == DRV_HOST_RUNNING &&
	       may_restart(host, &(struct fw_failure){.code = FRAGI_FAILURE_OTHER}) &&
	       recent(host) < host->on_failure->intensity;
}

static int keep(char **at, const char *text)
{
	fragi_free(*at);
	*at = text != NULL && text[0] != '\0' ? fragi_strdup(text) : NULL;
	return *at == NULL && text != NULL && text[0] != '\0' ? -ENOMEM : 0;
}

/* Keeps the failure. Of the first ones, a command is none. Returns 0 or -ENOMEM. */
static int note(struct drv_host *host, const struct fw_failure *failure, uint32_t before,
		bool is_asked)
{
	struct drv_restarts *r = &host->restarts;
	const uint32_t intensity = host->on_failure->intensity;
	int result;

	if (r->begun_ns == NULL) {
		r->begun_ns =
			fragi_arena_alloc(&host->app->arena, intensity * sizeof(*r->begun_ns));
		/* The restarts before brought a library back, and do not count. */
		for (uint32_t i = 0; r->begun_ns != NULL && i < intensity; i++)
			r->begun_ns[i] = INT64_MIN / 2;
	}
	result = keep(&r->last, failure->sentence);
	if (r->begun_ns == NULL || result < 0)
		return -ENOMEM;
	if (before > 0 && (is_asked || !r->first_is_asked))
		return 0;
	r->first_is_asked = is_asked;
	r->first_code = failure->code;
	result = keep(&r->first, failure->sentence);
	return result < 0 ? result : keep(&r->first_op, failure->op);
}

void drv_restarts_fini(struct drv_restarts *restarts)
{
	fragi_free(restarts->last);
	fragi_free(restarts->first);
	fragi_free(restarts->first_op);
	restarts->last = restarts->first = restarts->first_op = NULL;
}

/*
 * Whether the host took over from another process, or got its old library back, and could not be
 * wired to a neighbour that is between two processes itself: that is no failure of its own.
 */
static bool was_wired_too_early(const struct drv_host *host)
{
	const bool is_counted = host->replacement.cause == DRV_CAUSE_FAILURE &&
				host->on_failure->policy != FRAGI_ON_FAILURE_STOP;
	bool is_between = false;

	for (uint32_t i = 0; i < host->edge_count; i++)
		is_between = is_between ||
			     drv_host_neighbour(host, i)->replacement.phase >= DRV_PHASE_ENDING;
	return is_between && host->now.state == DRV_HOST_WIRING &&
	       host->app->end < DRV_END_FAILED && host->replacement.phase == DRV_PHASE_STARTING &&
	       !is_counted;
}

/* Whether it is to go on on another worker: not because of the first failure of the host itself. */
static void note_leaving(struct drv_host *host, const struct fw_failure *failure)
{
	struct drv_replacement *r = &host->replacement;

	if (!drv_migrates(host))
		return;
	r->is_refused = r->is_refused || failure->code == FRAGI_FAILURE_WORKER_BUSY;
	r->is_leaving = r->is_leaving || drv_host_is_restarting(host) || r->is_refused;
	if (r->is_leaving && host->now.session != NULL)
		r->left = host->now.session->number;
}

/* - is_asked: a person has it started again, which has an event of its own */
static void restart_or_fail(struct drv_host *host, const struct fw_failure *failure, bool is_asked)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;
	uint32_t before;

	assert(failure->sentence != NULL && "what has failed has a reason");
	if (host->now.state == DRV_HOST_KILLED && r->phase == DRV_PHASE_ENDING)
		return; /* it is on its way */
	if (was_wired_too_early(host)) {
		drv_replace_resume_start(host);
		return;
	}
	if (drv_swap_go_back(host, failure)) {
		drv_replace_failed(host, 0);
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
	if (note(host, failure, before, is_asked) < 0) {
		drv_app_fail_for_memory(app);
		return;
	}
	note_leaving(host, failure);
	drv_replace_failed(host, backoff_ns(host, before));
	drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app),
		"%s; %s is started again on %sworker%s%s (%u of %u)", failure->sentence, host->name,
		r->is_leaving ? "another " : "", r->is_leaving ? "" : " ",
		r->is_leaving ? "" : host->worker, before + 1, host->on_failure->intensity);
	if (!is_asked)
		drv_history_add(app->core, FW_NOTICE_RESTART, app, NULL, "%s (%u of %u): %s",
				host->name, before + 1, host->on_failure->intensity,
				failure->sentence);
}

void drv_host_failed(struct drv_host *host, const struct fw_failure *failure)
{
	restart_or_fail(host, failure, false);
}

void drv_host_restart(struct drv_host *host, const struct fw_failure *why)
{
	restart_or_fail(host, why, true);
}

/* Sets the reason that `explain` shows until the host is placed. */
static void set_reason(struct drv_host *host, const char *reason)
{
	struct fragi_arena *arena = &host->replacement.places;
	struct drv_place place = {.worker = -1};

	fragi_arena_fini(arena);
	place.reason = fragi_arena_strdup(arena, reason);
	drv_host_set_place(host, &place);
}

bool drv_host_may_survive_loss(const struct drv_host *host)
{
	return drv_migrates(host) && drv_restart_is_due(host);
}

bool drv_host_survives_loss(struct drv_host *host, bool was_killed, const char *sentence)
{
	struct drv_replacement *r = &host->replacement;
	const struct fw_failure failure = {.code = FRAGI_FAILURE_WORKER_LOST, .sentence = sentence};

	if (!drv_host_may_survive_loss(host))
		return false;
	r->is_leaving = true;
	if (!was_killed ||
	    !drv_host_is_restarting(host)) /* else it was on its way to another epoch */
		drv_host_failed(host, &failure);
	host->failed = false;
	if (host->app->end >= DRV_END_FAILED) /* it has failed too often */
		return true;
	set_reason(host, drv_text(host->app->core, "%s%s", sentence,
				  host->lease_over_ns > host->app->core->now_ns
					  ? "; it may still run there, until its lease is over"
					  : ""));
	return true;
}

bool drv_host_survives_leave(struct drv_host *host, const char *sentence)
{
	struct drv_replacement *r = &host->replacement;

	if (!drv_host_may_survive_loss(host))
		return false;
	r->is_leaving = r->is_refused = true;
	drv_host_failed(host, &(struct fw_failure){.code = FRAGI_FAILURE_WORKER_LOST,
						   .sentence = sentence});
	return true;
}

void drv_restart_count(struct drv_host *host)
{
	struct drv_restarts *r = &host->restarts;

	if (r->begun_ns != NULL) /* else its library returns, and nothing else is started again */
		*begun_at(r, host, 0) = host->app->core->now_ns;
	r->count++;
}
