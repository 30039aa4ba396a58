// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>

#include <base/alloc.h>

/*
 * Messages of the next process of a host, while it is prepared beside the one of now. They are only
 * recorded: replace.c decides.
 */

bool drv_next_is(const struct drv_host *host, const struct drv_session *session, uint64_t epoch)
{
	return host->next.session == session && host->next.epoch == epoch;
}

static void next_failed(struct drv_host *host, enum fragi_failure code, const char *why)
{
	struct drv_replacement *r = &host->replacement;

	assert(host->next.session != NULL);
	if (r->failed != NULL)
		return;
	r->failed = fragi_strdup(why);
	r->failed_code = code;
	if (r->failed == NULL)
		drv_app_fail_for_memory(host->app);
	drv_app_wake(host->app);
}

void drv_next_prepared(struct drv_host *host, struct fw_message *message)
{
	const struct fw_host_prepared *answer = &message->prepared;
	struct drv_core *core = host->app->core;

	if (host->next.report != NULL) { /* it is looked at when the host is known */
		fw_message_free(host->next.prepared);
		host->next.prepared = message;
		return;
	}
	core->items -= answer->flow_count;
	if (host->next.prepared == NULL && host->replacement.phase == DRV_PHASE_PREPARING &&
	    answer->ok && drv_host_tables_are_same(&host->tables->prepared, answer)) {
		host->next.prepared = message;
		return;
	}
	if (host->next.prepared == NULL && host->replacement.phase == DRV_PHASE_PREPARING)
		next_failed(
			host, answer->error_count > 0 ? answer->errors[0].code : FRAGI_FAILURE_NONE,
			drv_text(
				core, "worker %s could not prepare it: %s",
				host->next.session->name,
				answer->error_count > 0 ? answer->errors[0].sentence
				: host->replacement.cause == DRV_CAUSE_SWAP
					? "its operators, ports or types are others than before; `fragctl apply` takes a changed graph"
					: "its operators, ports or types are others there; is the library the same?"));
	fw_message_free(message);
}

void drv_next_message(struct drv_host *host, struct fw_message *message)
{
	switch (message->kind) {
	case FW_HOST_PREPARED:
		drv_next_prepared(host, message);
		return;
	case FW_HOST_EVENT:
		if (message->event.state == FW_STATE_FAILED)
			next_failed(host, message->event.failure.code,
				    message->event.failure.sentence);
		break;
	case FW_HOST_EXIT:
		host->next.state = DRV_HOST_GONE;
		next_failed(host, message->exit.failure.code, message->exit.failure.sentence);
		break;
	case FW_HOST_STATS: /* it counts nothing yet; if its worker has died, these are the last */
		if (!message->stats.final)
			break;
		fw_message_free(host->next.stats);
		host->next.stats = message;
		return;
	default:
		break;
	}
	fw_message_free(message);
}

void drv_next_session_lost(const struct drv_session *session)
{
	struct drv_core *core = session->core;

	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_host *host = core->apps[i]->moving;

		if (host != NULL && host->replacement.from == session)
			host->replacement.from = NULL;
		if (host == NULL || host->next.session != session)
			continue;
		next_failed(host, FRAGI_FAILURE_NONE,
			    drv_text(core, "worker %s was lost", session->name));
		host->next.state = DRV_HOST_GONE;
		drv_next_let_go(host);
	}
}

void drv_next_let_go(struct drv_host *host)
{
	struct drv_process *next = &host->next;

	if (next->session != NULL) {
		if (next->state != DRV_HOST_GONE)
			drv_request_no_next(host);
		drv_start_reserve_host(host, next->session, -1);
		host->app->core->work_left = host->app->core->has_room = true; /* for others */
	}
	drv_process_fini(next);
}
