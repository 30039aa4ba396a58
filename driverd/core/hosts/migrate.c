// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>
#include <driverd/core/hosts/swap.h>

#include <assert.h>
#include <string.h>

#include <base/alloc.h>

/*
 * A host with policy migrate is one that is started again (replace.c) on a worker that is chosen
 * anew. It stays where it was while that works, because what its operators have saved is there. It
 * leaves when its worker is lost, drained, or refuses it, and when it has failed before it ran
 * again, which failure.c records. Then it is GONE without a worker, until its backoff is over,
 * nobody can run its earlier epoch any more (lease.c), and some worker fits.
 */

bool drv_migrate_leave(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_session *session = host->now.session;

	if (!drv_migrates(host))
		return false;
	/* A driver before may have sent a neighbour elsewhere, and died before this followed. */
	if (session != NULL && !session->is_drained && !r->is_leaving &&
	    host->lease_over_ns <= host->app->core->now_ns && drv_candidate_may_stay(host)) {
		return false;
	}
	if (r->cause == DRV_CAUSE_SWAP)
		drv_swap_lost(host, "its worker cannot run it any more");
	drv_replace_no_move(host);
	r->is_leaving = true;
	r->seen_version = 0;
	if (host->lease_over_ns > r->at_ns)
		r->at_ns = host->lease_over_ns;
	if (session == NULL)
		return true;
	drv_start_take_shares(host, session, -1);
	drv_host_detach(host);
	host->app->core->has_room = true;
	return true;
}

bool drv_migrate_leave_drained(struct drv_host *host)
{
	const struct drv_replacement *r = &host->replacement;

	/* The state that it saved before the move is here, so it is tried again from here. */
	if (!drv_migrates(host) || !host->now.session->is_drained || r->cause != DRV_CAUSE_FAILURE)
		return false;
	drv_host_transition(host, DRV_HOST_GONE);
	return drv_migrate_leave(host);
}

static void go_to(struct drv_host *host, struct drv_session *session, const char *reason)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;

	if (drv_host_take_texts(host, session) < 0) {
		drv_app_fail_for_memory(app);
		return;
	}
	drv_start_take_shares(host, session, 1);
	drv_host_attach(host, session);
	host->lease_over_ns = 0;
	drv_host_renew(host, drv_persist_next_epoch(app->core), DRV_HOST_PLACED);
	host->now.is_moved = session->number != r->was_on;
	drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app), "%s goes on on worker %s: %s",
		host->name, host->worker, reason);
	drv_history_add(app->core, FW_NOTICE_MIGRATED, app, NULL, "%s goes on on worker %s",
			host->name, host->worker);
	drv_persist_placed(app);
	host->now.change = app->core->last_change;
}

void drv_migrate_place(struct drv_host *host)
{
	struct drv_replacement *r = &host->replacement;
	struct drv_app *app = host->app;
	struct drv_core *core = app->core;
	struct fragi_arena arena = {0};
	struct drv_session *session;
	struct drv_place place;

	assert(host->now.state == DRV_HOST_GONE && host->now.session == NULL);
	if (core->now_ns < r->at_ns || r->seen_version == core->workers_version + 1)
		return;
	core->items--;
	if (drv_candidate_find(host, &arena, &session, &place) < 0) {
		fragi_arena_fini(&arena);
		drv_app_fail_for_memory(app);
		return;
	}
	fragi_arena_fini(&r->places);
	r->places = arena;
	drv_host_set_place(host, &place);
	if (session != NULL) {
		go_to(host, session, place.reason);
		return;
	}
	if (r->seen_version == 0)
		drv_log(core, FRAGI_LOG_WARN, drv_app_name(app), "%s waits for a worker: %s",
			host->name, place.reason);
	r->seen_version = core->workers_version + 1; /* 0: nobody has looked */
}
