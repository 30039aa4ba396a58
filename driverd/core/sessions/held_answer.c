// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>

#include <base/alloc.h>

/*
 * What a command has changed is acknowledged when the disk has it. Until then the answer is held,
 * in two forms: that it is kept, and that it is not, because the folder cannot be written. A driver
 * without a state folder says with each answer what it will not know.
 */
#define HELD_MAX 1024

struct drv_held_answer {
	struct drv_held_answer *next;
	uint64_t connection, change, number;
	uint8_t *kept, *not_kept; /* frames; owned */
	size_t kept_bytes, not_kept_bytes;
};

static void answer_free(struct drv_held_answer *answer)
{
	fragi_free(answer->kept);
	fragi_free(answer->not_kept);
	fragi_free(answer);
}

static int hold(struct drv_session *client, struct fw_message *message, const char **remark,
		const char *unkept)
{
	struct drv_core *core = client->core;
	struct drv_held_answer *answer = fragi_calloc(1, sizeof(*answer)),
			       **at = &core->held_answers;
	int r = answer != NULL ? 0 : -ENOMEM;

	message->seq = ++client->seq;
	if (r == 0)
		r = fw_encode(message, &answer->kept, &answer->kept_bytes);
	*remark = unkept;
	if (r == 0)
		r = fw_encode(message, &answer->not_kept, &answer->not_kept_bytes);
	if (r < 0) {
		if (answer != NULL)
			answer_free(answer);
		return r;
	}
	answer->connection = client->connection;
	answer->change = core->last_change;
	while (*at != NULL)
		at = &(*at)->next;
	*at = answer;
	answer->number = ++core->held_answer_number;
	core->held_answer_count++;
	return 0;
}

int drv_session_send_when_kept(struct drv_session *client, struct fw_message *message,
			       const char **remark, const char *forgotten)
{
	struct drv_core *core = client->core;
	const char *unkept = drv_text(
		core,
		"the state folder cannot be written: if driverd ends before that is mended, %s",
		forgotten);

	if (core->config.ends_with_app)
		return drv_send(client, message);
	if (!core->config.keeps_state) {
		*remark = drv_text(core, "driverd keeps no state (it has no --state-dir): %s",
				   forgotten);
		return drv_send(client, message);
	}
	if (core->last_change == core->settled_change)
		return drv_send(client, message);
	if (core->held_answer_count < HELD_MAX)
		return hold(client, message, remark, unkept);
	*remark = unkept; /* nobody waits for so many answers */
	return drv_send(client, message);
}

void drv_session_answer_when_kept(struct drv_session *client, uint64_t seq, uint64_t run,
				  const char *name, const char *forgotten)
{
	struct fw_message message = {
		.kind = FW_ANSWER, .reply_to = seq, .run = run, .answer.name = name};

	if (drv_session_send_when_kept(client, &message, &message.answer.remark, forgotten) < 0)
		drv_session_drop(client, "no memory is left for an answer");
}

static void send_held(struct drv_core *core, struct drv_held_answer *answer, bool is_kept)
{
	uint8_t **frame = is_kept ? &answer->kept : &answer->not_kept;

	if (drv_session_find(core, answer->connection) == NULL)
		return;
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_SEND,
					    .connection = answer->connection,
					    .frame = *frame,
					    .frame_bytes = is_kept ? answer->kept_bytes
								   : answer->not_kept_bytes});
	*frame = NULL; /* the action's */
}

void drv_held_answers_send(struct drv_core *core, uint64_t change, bool is_kept)
{
	struct drv_held_answer *answer;

	while ((answer = core->held_answers) != NULL && answer->change <= change) {
		core->held_answers = answer->next;
		core->held_answer_count--;
		send_held(core, answer, is_kept);
		answer_free(answer);
	}
}

void drv_held_answers_fini(struct drv_core *core)
{
	struct drv_held_answer *answer;

	while ((answer = core->held_answers) != NULL) {
		core->held_answers = answer->next;
		answer_free(answer);
	}
}

bool drv_core_holds_answers(const struct drv_core *core)
{
	return core->held_answers != NULL;
}

const uint8_t *drv_core_held_answer(const struct drv_core *core, uint64_t *number,
				    uint64_t *out_connection, size_t *out_bytes)
{
	const struct drv_held_answer *answer = core->held_answers;

	while (answer != NULL && answer->number <= *number)
		answer = answer->next;
	if (answer == NULL)
		return NULL;
	*number = answer->number;
	*out_connection = answer->connection;
	*out_bytes = answer->kept_bytes;
	return answer->kept;
}
