// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * `fragctl doctor --workers`: a client asks about a worker, the worker looks at its node, and its
 * answer goes to all clients that wait for one of it. A client asks about one worker at a time. A
 * worker that goes answers by that.
 */

void drv_examine(struct drv_session *client, const struct fw_message *message)
{
	struct drv_core *core = client->core;
	const char *name = message->examine.worker;
	struct drv_session *worker = drv_session_worker(core, name);
	struct fw_message question = {.kind = FW_EXAMINE, .examine = message->examine};

	if (worker == NULL)
		drv_session_answer_failure(client, message->seq, "", FRAGI_FAILURE_USAGE,
					   drv_drain_unknown(core, name));
	else if (client->examine.worker != NULL)
		drv_session_answer_failure(client, message->seq, "", FRAGI_FAILURE_USAGE,
					   "a client asks about one worker at a time");
	else if (worker->minor < FW_EXAMINE_MINOR)
		drv_session_answer_failure(
			client, message->seq, "", FRAGI_FAILURE_OTHER,
			drv_text(
				core,
				"worker %s speaks protocol 1.%u, and looks at its node from 1.%d on; install a newer frag there",
				worker->name, worker->minor, FW_EXAMINE_MINOR));
	else {
		client->examine.worker = worker;
		client->examine.seq = message->seq;
		if (drv_send(worker, &question) < 0)
			drv_session_drop(client, "no memory is left for a question");
	}
}

/* The next client that waits for the worker, and no longer does; NULL: none. */
static struct drv_session *next_waiting(const struct drv_session *worker)
{
	const struct drv_core *core = worker->core;

	for (size_t i = 0; i < core->session_count; i++) {
		struct drv_session *client = core->sessions[i];

		if (client->examine.worker != worker)
			continue;
		client->examine.worker = NULL;
		return client;
	}
	return NULL;
}

void drv_examine_take(struct drv_session *worker, const struct fw_message *message)
{
	struct fw_message out = {.kind = FW_EXAMINED, .examined = message->examined};
	struct drv_session *client;

	while ((client = next_waiting(worker)) != NULL) {
		out.reply_to = client->examine.seq;
		if (drv_send(client, &out) < 0)
			drv_session_drop(client, "no memory is left for an answer");
	}
}

void drv_examine_lost(const struct drv_session *worker)
{
	struct drv_session *client;

	while ((client = next_waiting(worker)) != NULL)
		drv_session_answer_failure(
			client, client->examine.seq, "", FRAGI_FAILURE_WORKER_LOST,
			drv_text(worker->core, "worker %s went before it had looked at its node",
				 worker->name));
}
