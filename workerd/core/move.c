// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

/*
 * A host goes on in another process, of this worker or another one. What its operators have saved
 * goes to the driver when it has ended, and from there to the worker of the other process. That one
 * is the host when HOST_PAST comes with what was counted before; its worker alone keeps these sums
 * from then on, and the worker of the process before forgets it.
 */

void wrk_move_send_saved(const struct wrk_core *core, uint64_t run, uint32_t number, uint64_t epoch,
			 struct wrk_actions *actions)
{
	struct wrk_action *action;

	if (core->session != WRK_SESSION_ATTACHED) /* it is sent when the host is reported */
		return;
	action = wrk_emit(actions, WRK_DO_SEND_SAVED);
	action->connection = core->connection;
	action->run = run;
	action->number = number;
	action->epoch = epoch;
}

/* Forgets what an earlier process of the host has saved here. */
static void forget_saved(uint64_t run, uint32_t number, struct wrk_actions *actions)
{
	struct wrk_action *action = wrk_emit(actions, WRK_DO_FORGET_SAVED);

	action->run = run;
	action->number = number;
}

void wrk_move_create(const struct fw_message *message, bool is_known, struct wrk_actions *actions)
{
	if (message->create.is_moved || (!is_known && message->create.is_beside))
		forget_saved(message->run, message->host, actions);
}

void wrk_move_beside_gone(const struct wrk_host *host, struct wrk_actions *actions)
{
	struct wrk_action *action;

	if (!host->is_beside)
		return;
	action = wrk_emit(actions, WRK_DO_FORGET_SAVED);
	action->run = host->run;
	action->number = host->number;
	action->epoch = host->epoch;
}

static void promote(struct wrk_host *host, struct wrk_actions *actions)
{
	struct wrk_action *action = wrk_emit(actions, WRK_DO_PROMOTE_SAVED);

	host->is_beside = false;
	action->run = host->run;
	action->number = host->number;
	action->epoch = host->epoch;
}

/* NULL: it is not here. */
static struct wrk_host *find(struct wrk_core *core, const struct fw_message *message)
{
	struct wrk_host *host = wrk_host_of(core, message);

	return host != NULL && (host->state == WRK_HOST_UP || host->state == WRK_HOST_STOPPING)
		       ? host
		       : NULL;
}

void wrk_move_frame(struct wrk_core *core, const struct fw_message *message,
		    struct wrk_actions *actions)
{
	struct wrk_host *host = find(core, message);

	if (message->kind == FW_HOST_PAST) {
		if (!wrk_keep_past(core, message, actions) && host == NULL)
			forget_saved(message->run, message->host, actions);
		else if (host != NULL)
			promote(host, actions);
	} else if (host != NULL) {
		wrk_emit(actions, WRK_DO_TAKE_SAVED)->message = message;
	}
}
