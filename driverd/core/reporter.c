// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * When a workerd is killed, its crash reporter (workerd/reporter.h) connects, names the session and
 * its secret in HELLO, gets WELCOME, and sends the final HOST_STATS of that session's hosts. It may
 * send nothing else, and what it sends is no sign that its worker lives. When the reporter has
 * closed its connection it also closes the worker's, so the end of the session comes after the
 * counts. A reporter is a part of its session: it ends with the session, and there is one at a
 * time, so reporters need no limit of their own. A worker that lives says the same HELLO with a new
 * key of its file (workerd/renewal.h): its session goes on with that key.
 */

struct drv_session *drv_reporter_session(const struct drv_core *core, uint64_t connection)
{
	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i]->reporter == connection)
			return core->sessions[i];
	return NULL;
}

static void close_reporter(struct drv_session *session)
{
	if (session->reporter != 0)
		drv_close(session->core, session->reporter);
	session->reporter = 0;
}

/* What was proven here is what the worker of the session has proven from now on. */
static void renew(struct drv_session *session, const struct fw_identity *identity)
{
	const char *who;

	if (identity == NULL || identity->serial == session->identity.serial)
		return;
	who = fragi_arena_printf(&session->arena, "key %s", identity->name);
	if (who == NULL)
		return;
	drv_log(session->core, FRAGI_LOG_INFO, NULL, "worker %s goes on with the %s in place of %s",
		session->name, who, session->who);
	session->who = who;
	session->identity = *identity;
	session->roles = identity->roles;
}

void drv_reporter_hello(struct drv_core *core, const struct drv_event *event,
			const struct fw_message *message)
{
	uint64_t connection = event->connection;
	const char *peer = event->peer;
	struct drv_session *session = drv_session_named(core, &message->hello);
	struct fw_message answer = {.kind = FW_WELCOME, .seq = 1, .reply_to = message->seq};
	struct drv_action send = {.kind = DRV_DO_SEND, .connection = connection};

	if (session == NULL || session->role != FW_ROLE_WORKER) {
		drv_session_refuse(core, connection, peer, message, FRAGI_FAILURE_SESSION_REFUSED,
				   "the session has ended, or this is not its secret");
		return;
	}
	answer.welcome = (struct fw_welcome){.session = session->id,
					     .name = session->name,
					     .beat_ns = core->config.beat_ns,
					     .dead_ns = core->config.dead_ns,
					     .version = core->config.version};
	if (fw_encode(&answer, &send.frame, &send.frame_bytes) < 0) {
		drv_close(core, connection); /* it may try again */
		return;
	}
	renew(session, event->identity);
	close_reporter(session);
	session->reporter = connection;
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_ADMIT, .connection = connection});
	drv_emit(core, &send);
	drv_log(core, FRAGI_LOG_DEBUG, NULL, "the reporter of worker %s is there, from %s",
		session->name, peer);
}

bool drv_reporter_may_send(struct drv_session *session, const struct fw_message *message)
{
	if (message->kind == FW_HOST_STATS && message->stats.final)
		return true;
	drv_log(session->core, FRAGI_LOG_WARN, NULL,
		"closed the connection of the reporter of worker %s: it sent %s, which is not for a reporter",
		session->name, fw_kind_name(message->kind));
	close_reporter(session);
	return false;
}
