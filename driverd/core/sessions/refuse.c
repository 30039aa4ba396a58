// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <stdio.h>
#include <string.h>

#include <base/units.h>

/* Commands that are refused: the client, the log and the events get the sentence. */

/* The verb of fragctl that sends the command. */
static const char *verb_of(const struct fw_message *command)
{
	switch (command->kind) {
	case FW_START_APP:
		return "start";
	case FW_STOP_APP:
		return command->stop_app.restart ? "restart" : "stop";
	case FW_APPLY:
		return "apply";
	case FW_SET:
		return "set";
	case FW_SWAP:
		return "swap";
	case FW_WATCH_LOGS:
		return "logs";
	case FW_TAP:
		return "echo";
	case FW_DRAIN:
		return "drain";
	case FW_EXAMINE:
		return "doctor";
	default:
		return fw_kind_name(command->kind);
	}
}

#define KEY_AGAIN_NS ((int64_t)600 * 1000000000) /* for the same machine */

void drv_refuse_key(struct drv_core *core, const char *peer, const char *sentence)
{
	const char *port = strrchr(peer, ':');
	char host[sizeof(core->refused_peer)];

	snprintf(host, sizeof(host), "%.*s", port != NULL ? (int)(port - peer) : (int)strlen(peer),
		 peer);
	if (strcmp(host, core->refused_peer) == 0 && core->now_ns - core->refused_ns < KEY_AGAIN_NS)
		return;
	memcpy(core->refused_peer, host, sizeof(host));
	core->refused_ns = core->now_ns;
	drv_history_add(core, FW_NOTICE_REFUSED, NULL, "", "a connection of %s: %s", host,
			sentence);
}

void drv_refuse_command(struct drv_session *client, const struct fw_message *command,
			const char *name, enum fragi_failure code, const char *sentence)
{
	drv_log(client->core, FRAGI_LOG_WARN, name[0] != '\0' ? name : NULL,
		"refused `fragctl %s` of %s: %s", verb_of(command), client->who, sentence);
	drv_history_add(client->core, FW_NOTICE_REFUSED, NULL, client->who, "%s%s%s: %s",
			verb_of(command), name[0] != '\0' ? " " : "", name, sentence);
	drv_session_answer_failure(client, command->seq, name, code, sentence);
}

void drv_refuse_ended(struct drv_session *client, const struct fw_message *command,
		      const char *name, const struct drv_ended *ended, bool again)
{
	struct drv_core *core = client->core;
	const char *sentence;

	if (ended == NULL)
		sentence = drv_text(
			core,
			"there is no application %s; `fragctl list` shows those that there are",
			name);
	else if (again)
		sentence = drv_text(
			core,
			"%s has ended and its graph is forgotten; give it again with `fragctl start`",
			name);
	else
		sentence = drv_text(core, "%s has ended already; `fragctl status %s` shows how",
				    name, name);
	drv_refuse_command(client, command, name, FRAGI_FAILURE_APPLICATION_UNKNOWN, sentence);
}

void drv_refuse_unknown(struct drv_session *client, const struct fw_message *command,
			const char *name)
{
	drv_refuse_ended(client, command, name, drv_history_named(&client->core->history, name),
			 false);
}
