// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/secret.h>

/*
 * When a workerd is killed, its crash reporter (workerd/reporter.h) connects, names the session and
 * its secret in HELLO, gets WELCOME, and sends the final HOST_STATS of that session's hosts. It may
 * send nothing else, and what it sends is no sign that its worker lives. When the reporter has
 * closed its connection it also closes the worker's, so the end of the session comes after the
 * counts. A reporter is a part of its session: it ends with the session, and there is one at a
 * time, so reporters need no limit of their own.
 *
 * A worker that lives says the same HELLO with a new key of its file (workerd/renewal.h), and what
 * its session's connection is bound by: the session goes on with that key. A thief of the key
 * before, who stands between the two, has one connection to each. They are bound differently, so
 * the session that he has here does not get a key that he only passes on.
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

static bool exchanges_key(const struct fw_hello *hello)
{
	static const uint8_t none[FW_BINDING_BYTES];

	return memcmp(hello->binding, none, sizeof(none)) != 0;
}

/* Returns why the peer's key is not taken for that of the session; NULL: it is, or need not be. */
static const char *why_not(const struct drv_session *session, const struct fw_identity *identity,
			   const struct fw_hello *hello)
{
	const struct fw_identity *own = &session->identity;

	if (exchanges_key(hello) && (identity == NULL || own->name[0] == '\0'))
		return "there is no key to exchange; give --key-file to both sides";
	if (exchanges_key(hello) &&
	    !fragi_secret_equal(own->binding, hello->binding, FW_BINDING_BYTES))
		return drv_text(
			session->core,
			"its session is over another connection than here, so somebody who has the %s stands between; remove that one from the driver's file",
			session->who);
	/* it wants to exchange it, or is a reporter whose file has another key by now */
	if (hello->minor < FW_BINDING_MINOR && identity != NULL && identity->serial != own->serial)
		return "its frag is too old to exchange a key safely; restart it with the new one";
	return NULL;
}

/* What was proven here is what the worker of the session has proven from now on. 0 or -ENOMEM */
static int renew(struct drv_session *session, const struct fw_identity *identity)
{
	struct fw_identity renewed = *identity;
	const char *who;

	if (identity->serial == session->identity.serial &&
	    strcmp(identity->name, session->identity.name) == 0)
		return 0;
	who = fragi_arena_printf(&session->arena, "%s %s",
				 identity->serial != 0 ? "key" : "certificate", identity->name);
	if (who == NULL)
		return -ENOMEM;
	drv_log(session->core, FRAGI_LOG_INFO, NULL, "worker %s goes on with the %s in place of %s",
		session->name, who, session->who);
	session->who = who;
	memcpy(renewed.binding, session->identity.binding, FW_BINDING_BYTES);
	session->identity = renewed;
	return 0;
}

void drv_reporter_hello(struct drv_core *core, const struct drv_event *event,
			const struct fw_message *message)
{
	uint64_t connection = event->connection;
	const char *peer = event->peer;
	struct drv_session *session = drv_session_named(core, &message->hello);
	struct fw_message answer = {.kind = FW_WELCOME, .seq = 1, .reply_to = message->seq};
	struct drv_action send = {.kind = DRV_DO_SEND, .connection = connection};
	const char *why;

	if (session == NULL || session->role != FW_ROLE_WORKER) {
		drv_session_refuse(core, connection, peer, message, FRAGI_FAILURE_SESSION_REFUSED,
				   "the session has ended, or this is not its secret");
		return;
	}
	why = why_not(session, event->identity, &message->hello);
	if (why != NULL) {
		drv_session_refuse(core, connection, peer, message, FRAGI_FAILURE_SESSION_REFUSED,
				   why);
		drv_refuse_key(core, peer, why);
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
	if (exchanges_key(&message->hello) && renew(session, event->identity) < 0) {
		fragi_free(send.frame);
		drv_close(core, connection);
		return;
	}
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
