// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>
#include <driverd/core/state.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

/*
 * Decides when a host under a lease has surely ended, though its worker is out of reach. The worker
 * ends the host when the driver has not answered for the time of the lease (workerd/core/lease.c).
 * The worker counts from before it sent the beat that the driver answers, the driver from when the
 * beat came; so the driver's time is never the earlier one, however long messages take. Neither
 * clock is compared with the other: each measures the lease itself, and the driver waits longer by
 * as much as the rates of two clocks may differ. The driver's clock stands still while its process
 * is stopped, so it then waits longer, never less.
 *
 * This driver does not know which leases an earlier driver has renewed. That driver renewed them
 * before this one began, and may have announced that it leaves.
 */
#define RATES_DIFFER 100 /* at most by one part in so many */

/* A name of applications, until those of their hosts that are out of reach have surely ended. */
struct drv_outstanding {
	struct drv_outstanding *next;
	int64_t until_ns;
	/* of a run that an earlier driver has seen end: when all these are here it is over, too */
	const struct drv_placed *placed; /* NULL: until_ns alone counts */
	char name[];
};

static int64_t by_other_clock(int64_t lease_ns)
{
	return lease_ns + lease_ns / RATES_DIFFER;
}

int64_t drv_lease_of_earlier_driver(const struct drv_core *core, int64_t lease_ns)
{
	return core->born_ns + by_other_clock(lease_ns + FW_LEASE_AWAY_NS);
}

void drv_lease_heard(struct drv_session *session, int64_t sent_ns)
{
	session->lease_sent_ns = sent_ns;
	session->lease_heard_ns = session->core->now_ns;
}

void drv_lease_fill(const struct drv_session *session, struct fw_beat *beat)
{
	beat->heard_ns = session->lease_sent_ns;
	beat->leaves = session->core->leaves;
}

int64_t drv_lease_over_ns(const struct drv_host *host)
{
	const struct drv_core *core = host->app->core;
	int64_t lease_ns = host->on_failure->lease_ns, over_ns, earlier_ns;

	if (lease_ns == 0 || core->config.is_local)
		return core->now_ns;
	assert(host->now.session != NULL && "it is not detached yet");
	over_ns = host->now.session->lease_heard_ns +
		  by_other_clock(lease_ns + (core->leaves ? FW_LEASE_AWAY_NS : 0));
	earlier_ns = host->now.is_adopted ? drv_lease_of_earlier_driver(core, lease_ns) : 0;
	return over_ns > earlier_ns ? over_ns : earlier_ns;
}

int drv_lease_adopt(const struct drv_host *host, struct drv_session *session, uint64_t epoch)
{
	struct fw_message message = {.kind = FW_HOST_ADOPTED,
				     .run = host->app->run,
				     .host = host->number,
				     .epoch = epoch,
				     .adopted.is_inexact = host->past.is_inexact};

	return drv_migrates(host) && (host->on_failure->lease_ns > 0 || host->past.is_inexact)
		       ? drv_send(session, &message)
		       : 0;
}

static void remember(struct drv_app *app, int64_t until_ns, const struct drv_placed *placed)
{
	const char *name = drv_app_name(app);
	struct drv_outstanding *one;

	if (until_ns <= app->core->now_ns)
		return;
	one = fragi_calloc(1, sizeof(*one) + strlen(name) + 1);
	if (one == NULL) {
		drv_log(app->core, FRAGI_LOG_ERROR, name,
			"no memory is left to remember that a host of it may still run: do not start it again within %.0f s",
			(double)(until_ns - app->core->now_ns) * 1e-9);
		return;
	}
	one->until_ns = until_ns;
	one->placed = placed;
	strcpy(one->name, name);
	one->next = app->core->outstanding;
	app->core->outstanding = one;
}

/* Returns whether it has leases. */
static bool record_earlier(struct drv_app *app, const struct drv_placed *placed)
{
	int64_t longest_ns = 0;

	for (size_t f = 0; f < app->spec->fragment_count; f++)
		if (app->spec->fragments[f].on_failure.lease_ns > longest_ns)
			longest_ns = app->spec->fragments[f].on_failure.lease_ns;
	if (longest_ns > 0)
		remember(app, drv_lease_of_earlier_driver(app->core, longest_ns), placed);
	return longest_ns > 0;
}

void drv_lease_record_earlier(struct drv_app *app)
{
	if (record_earlier(app, NULL))
		drv_persist_placed(app); /* where: nobody knows */
}

void drv_lease_record_ended(struct drv_app *app)
{
	const struct drv_core *core = app->core;
	const struct drv_ended *last = drv_history_named(&core->history, drv_app_name(app));
	const struct drv_placed *placed =
		last != NULL && last->is_earlier ? drv_adopt_placed_of(core, last->run) : NULL;

	if (placed != NULL)
		(void)record_earlier(app,
				     placed->count != 0 && !placed->is_reported ? placed : NULL);
}

void drv_lease_reported(struct drv_core *core, uint64_t run)
{
	/* for applications of its name that are given later */
	for (struct drv_placed *placed = core->placed; placed != NULL; placed = placed->next)
		if (placed->run == run)
			placed->is_reported = true;
	for (struct drv_outstanding *one = core->outstanding; one != NULL; one = one->next)
		if (one->placed != NULL && one->placed->run == run)
			one->placed = NULL;
}

static bool is_over(const struct drv_core *core, const struct drv_outstanding *one)
{
	return one->until_ns <= core->now_ns ||
	       (one->placed != NULL && drv_adopt_have_reported(core, one->placed));
}

/* It was accepted, and hosts of earlier runs of its name may still run. */
static bool leaves_earlier_ones(const struct drv_app *app)
{
	const struct drv_outstanding *one = app->core->outstanding;

	if (app->kept.state != DRV_KEPT_ACCEPTED)
		return false;
	while (one != NULL &&
	       (is_over(app->core, one) || strcmp(one->name, drv_app_name(app)) != 0))
		one = one->next;
	return one != NULL;
}

void drv_lease_record_outstanding(struct drv_app *app)
{
	int64_t until_ns = 0;

	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].lease_over_ns > until_ns)
			until_ns = app->hosts[i].lease_over_ns;
	remember(app, until_ns, NULL);
	/* The next driver asks only for what was noted of the last run of its name. */
	if (until_ns > app->core->now_ns || leaves_earlier_ones(app))
		drv_persist_placed(app);
}

/* Returns until when a host of that name may run, and forgets the leases that are over. */
static int64_t outstanding_until(struct drv_core *core, const char *name)
{
	struct drv_outstanding **at = &core->outstanding;
	int64_t until_ns = 0;

	while (*at != NULL) {
		struct drv_outstanding *one = *at;

		if (is_over(core, one)) {
			*at = one->next;
			fragi_free(one);
			continue;
		}
		if (one->until_ns > until_ns && strcmp(one->name, name) == 0)
			until_ns = one->until_ns;
		at = &one->next;
	}
	return until_ns;
}

bool drv_lease_holds(struct drv_app *app)
{
	struct drv_core *core = app->core;
	int64_t until_ns =
		core->outstanding != NULL ? outstanding_until(core, drv_app_name(app)) : 0;

	if (until_ns == 0) {
		app->workers_changed = app->workers_changed || app->timers.retry.is_due;
		app->timers.retry.is_due = false;
		return false;
	}
	app->workers_changed = false; /* looked at when it is over */
	snprintf(app->placing.missing, sizeof(app->placing.missing),
		 "the leases of its last run to end");
	drv_set(core, &app->timers.retry, until_ns);
	if (drv_timer_is_set(&app->timers.phase))
		return true;
	drv_log(core, FRAGI_LOG_INFO, drv_app_name(app),
		"a host of its last run may still run on a worker that is out of reach; starts when its lease is over, in %.1f s",
		(double)(until_ns - core->now_ns) * 1e-9);
	drv_set(core, &app->timers.phase, core->now_ns + core->config.report_missing_ns);
	return true;
}

void drv_lease_beat_all(struct drv_core *core)
{
	for (size_t i = 0; i < core->session_count; i++) {
		struct fw_message beat = {.kind = FW_BEAT};

		drv_lease_fill(core->sessions[i], &beat.beat);
		(void)drv_send(core->sessions[i], &beat); /* else its leases are as they were */
	}
}

void drv_lease_leave(struct drv_core *core)
{
	core->leaves = true;
	drv_lease_beat_all(core);
}

void drv_lease_fini(struct drv_core *core)
{
	while (core->outstanding != NULL) {
		struct drv_outstanding *one = core->outstanding;

		core->outstanding = one->next;
		fragi_free(one);
	}
}
