// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/swap.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

void drv_swap_free(struct drv_swap *swap)
{
	fragi_arena_fini(&swap->arena);
	fragi_free(swap->source);
	fragi_free(swap);
}

/* The swap of the host that is under way, or whose probation is; NULL: there is none. */
static struct drv_swap *swap_of(const struct drv_host *host)
{
	struct drv_swap *swap = host->app->swap;

	return swap != NULL && swap->host == host ? swap : NULL;
}

static void forget(struct drv_swap *swap)
{
	swap->host->app->swap = NULL;
	drv_swap_free(swap);
}

/* failure NULL: it is done; run 0: the application was stopped before. */
static void answer(struct drv_swap *swap, uint64_t run, const struct fw_failure *failure)
{
	struct drv_app *app = swap->host->app;
	struct drv_session *client =
		swap->connection != 0 ? drv_session_find(app->core, swap->connection) : NULL;

	swap->connection = 0;
	if (client != NULL && failure != NULL)
		drv_session_answer(client, swap->seq, run, drv_app_name(app), failure);
	else if (client != NULL)
		drv_session_answer_when_kept(
			client, swap->seq, run, drv_app_name(app),
			drv_text(app->core, "the next driverd does not know that %s of %s uses %s",
				 swap->fragment, drv_app_name(app), swap->library));
}

void drv_swap_work(struct drv_app *app)
{
	struct drv_swap *swap = app->swap;

	if (swap == NULL || swap->has_begun)
		return;
	swap->has_begun = true;
	drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
		"%s goes on in another process on worker %s: %s replaces %s by %s",
		swap->host->name, swap->host->worker, swap->who, swap->old, swap->library);
	drv_replace_prepare(swap->host, swap->host->now.session, DRV_CAUSE_SWAP);
}

const void *drv_swap_source(const struct drv_host *host, size_t *out_bytes)
{
	const struct drv_swap *swap = swap_of(host);

	if (swap == NULL || swap->source == NULL)
		return NULL;
	*out_bytes = swap->source_bytes;
	return swap->source;
}

void drv_swap_take_source(struct drv_host *host)
{
	struct drv_swap *swap = swap_of(host);

	if (swap == NULL || swap->source == NULL)
		return;
	assert(!swap->is_taken && "the application has one library or the other");
	drv_source_use(host->app, swap->source, swap->source_bytes);
	host->next.sources = host->app->settings.sources;
	swap->source = NULL;
	swap->is_taken = true;
}

/* The application's source has the old library again. */
static void return_source(struct drv_swap *swap)
{
	struct drv_app *app = swap->host->app;
	size_t bytes;
	void *source;

	if (!swap->is_taken)
		return;
	swap->is_taken = false;
	if (drv_source_pack(app, swap->back, swap->set_count, &source, &bytes) < 0)
		drv_app_fail_for_memory(app);
	else
		drv_source_use(app, source, bytes);
}

void drv_swap_refused(struct drv_host *host, enum fragi_failure code, const char *why)
{
	struct drv_swap *swap = swap_of(host);
	struct drv_core *core = host->app->core;
	struct fw_failure failure = {code != FRAGI_FAILURE_NONE ? code : FRAGI_FAILURE_HOST_FAILED,
				     NULL, NULL};

	if (swap == NULL)
		return;
	return_source(swap);
	failure.sentence = drv_text(core, "%s; nothing has changed, %s goes on with %s", why,
				    swap->fragment, swap->old);
	drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app), "%s does not replace %s: %s",
		swap->library, swap->old, why);
	drv_history_add(core, FW_NOTICE_REFUSED, host->app, swap->who, "swap of %s: %s",
			swap->fragment, failure.sentence);
	answer(swap, 0, &failure);
	forget(swap);
}

/* The host is started again with the library that it had before. */
static void go_back(struct drv_swap *swap, enum fragi_failure code, const char *why)
{
	struct drv_app *app = swap->host->app;
	struct fw_failure failure = {code != FRAGI_FAILURE_NONE ? code : FRAGI_FAILURE_HOST_FAILED,
				     NULL, NULL};

	return_source(swap);
	failure.sentence = drv_text(app->core, "%s: %s has failed, and %s returns: %s",
				    swap->fragment, swap->library, swap->old, why);
	drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app), "%s", failure.sentence);
	drv_history_add(app->core, FW_NOTICE_SWAP, app, NULL, "%s", failure.sentence);
	answer(swap, 0, &failure);
	forget(swap);
}

void drv_swap_lost(struct drv_host *host, const char *why)
{
	struct drv_swap *swap = swap_of(host);

	if (swap != NULL)
		go_back(swap, FRAGI_FAILURE_HOST_FAILED, why);
}

void drv_swap_runs(struct drv_host *host)
{
	struct drv_swap *swap = swap_of(host);

	if (swap == NULL && host->replacement.is_old_swap)
		drv_history_add(host->app->core, FW_NOTICE_SWAP, host->app, NULL,
				"%s runs in another process on %s now", host->name, host->worker);
	if (swap == NULL || swap->until_ns != 0)
		return;
	drv_history_add(host->app->core, FW_NOTICE_SWAP, host->app, NULL,
			"%s: %s runs in place of %s", swap->fragment, swap->library, swap->old);
	answer(swap, host->app->run, NULL);
	if (swap->probation_ns > 0)
		swap->until_ns = host->app->core->now_ns + swap->probation_ns;
	else
		forget(swap);
}

/*
 * What the new process has done meanwhile is heard only now, so a failure within its probation
 * would be taken for one after it.
 */
void drv_swap_heard_again(const struct drv_session *session, int64_t silent_ns)
{
	const struct drv_core *core = session->core;

	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_swap *swap = core->apps[i]->swap;

		if (swap != NULL && swap->until_ns != 0 && swap->host->now.session == session)
			swap->until_ns += silent_ns;
	}
}

/* Whether now is the process with the new library, which may be leaving a drained worker again. */
static bool has_new_library(const struct drv_host *host)
{
	const struct drv_replacement *r = &host->replacement;

	return r->phase == DRV_PHASE_NONE || r->phase == DRV_PHASE_STARTING ||
	       (r->cause == DRV_CAUSE_DRAIN && r->phase <= DRV_PHASE_YIELDING);
}

bool drv_swap_go_back(struct drv_host *host, const struct fw_failure *failure)
{
	struct drv_app *app = host->app;
	struct drv_swap *swap = swap_of(host);

	if (swap == NULL || !swap->is_taken || app->state != DRV_APP_RUNNING ||
	    app->end != DRV_END_NONE || host->now.session == NULL || host->now.is_lost ||
	    failure->code == FRAGI_FAILURE_WORKER_LOST || !has_new_library(host))
		return false;
	if (swap->until_ns != 0 && app->core->now_ns >= swap->until_ns) {
		forget(swap);
		return false;
	}
	go_back(swap, failure->code, failure->sentence);
	return app->end < DRV_END_FAILED;
}

void drv_swap_end(struct drv_app *app)
{
	const struct fragi_summary_failure *why = &app->summary.failure;

	if (app->swap == NULL)
		return;
	if (app->swap->until_ns == 0) /* nobody knows whether the new library can run */
		return_source(app->swap);
	if (why->code == FRAGI_FAILURE_NONE && app->next.run == 0)
		answer(app->swap, 0, NULL);
	else if (why->code == FRAGI_FAILURE_NONE) /* it starts anew, by itself or by a client */
		answer(app->swap, 0,
		       &(struct fw_failure){FRAGI_FAILURE_OTHER,
					    drv_text(app->core,
						     "%s was started anew before %s ran with "
						     "%s; swap again",
						     drv_app_name(app), app->swap->fragment,
						     app->swap->library),
					    NULL});
	else
		answer(app->swap, 0,
		       &(struct fw_failure){why->code,
					    drv_text(app->core,
						     "%s ended before the new library ran: %s",
						     drv_app_name(app), why->sentence),
					    why->op});
	forget(app->swap);
}

void drv_swap_fini(struct drv_app *app)
{
	if (app->swap != NULL)
		forget(app->swap);
}
