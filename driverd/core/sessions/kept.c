// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>

#include <base/alloc.h>

/*
 * What a command has changed is acknowledged when the disk has it. Until then the answer is held,
 * in two forms: that it is kept, and that it is not, because the folder cannot be written. A driver
 * without a state folder says with each answer what it will not know.
 */
#define UNSAID_MAX 1024

struct drv_unsaid {
	struct drv_unsaid *next;
	uint64_t connection, change, number;
	uint8_t *kept, *not_kept; /* frames; owned */
	size_t kept_bytes, not_kept_bytes;
};

static void unsaid_free(struct drv_unsaid *unsaid)
{
	fragi_free(unsaid->kept);
	fragi_free(unsaid->not_kept);
	fragi_free(unsaid);
}

static int hold(struct drv_session *client, struct fw_message *message, const char **remark,
		const char *unkept)
{
	struct drv_core *core = client->core;
	struct drv_unsaid *unsaid = fragi_calloc(1, sizeof(*unsaid)), **at = &core->unsaid;
	int r = unsaid != NULL ? 0 : -ENOMEM;

	message->seq = ++client->seq;
	if (r == 0)
		r = fw_encode(message, &unsaid->kept, &unsaid->kept_bytes);
	*remark = unkept;
	if (r == 0)
		r = fw_encode(message, &unsaid->not_kept, &unsaid->not_kept_bytes);
	if (r < 0) {
		if (unsaid != NULL)
			unsaid_free(unsaid);
		return r;
	}
	unsaid->connection = client->connection;
	unsaid->change = core->last_change;
	while (*at != NULL)
		at = &(*at)->next;
	*at = unsaid;
	unsaid->number = ++core->unsaid_number;
	core->unsaid_count++;
	return 0;
}

int drv_session_send_kept(struct drv_session *client, struct fw_message *message,
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
	if (core->unsaid_count < UNSAID_MAX)
		return hold(client, message, remark, unkept);
	*remark = unkept; /* nobody waits for so many answers */
	return drv_send(client, message);
}

void drv_session_answer_kept(struct drv_session *client, uint64_t seq, uint64_t run,
			     const char *name, const char *forgotten)
{
	struct fw_message message = {
		.kind = FW_ANSWER, .reply_to = seq, .run = run, .answer.name = name};

	if (drv_session_send_kept(client, &message, &message.answer.remark, forgotten) < 0)
		drv_session_drop(client, "no memory is left for an answer");
}

static void say(struct drv_core *core, struct drv_unsaid *unsaid, bool is_kept)
{
	uint8_t **frame = is_kept ? &unsaid->kept : &unsaid->not_kept;

	if (drv_session_find(core, unsaid->connection) == NULL)
		return;
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_SEND,
					    .connection = unsaid->connection,
					    .frame = *frame,
					    .frame_bytes = is_kept ? unsaid->kept_bytes
								   : unsaid->not_kept_bytes});
	*frame = NULL; /* the action's */
}

void drv_unsaid_serve(struct drv_core *core, uint64_t change, bool is_kept)
{
	struct drv_unsaid *unsaid;

	while ((unsaid = core->unsaid) != NULL && unsaid->change <= change) {
		core->unsaid = unsaid->next;
		core->unsaid_count--;
		say(core, unsaid, is_kept);
		unsaid_free(unsaid);
	}
}

void drv_unsaid_fini(struct drv_core *core)
{
	struct drv_unsaid *unsaid;

	while ((unsaid = core->unsaid) != NULL) {
		core->unsaid = unsaid->next;
		unsaid_free(unsaid);
	}
}

const uint8_t *drv_core_unsaid(const struct drv_core *core, uint64_t *number,
			       uint64_t *out_connection, size_t *out_bytes)
{
	const struct drv_unsaid *unsaid = core->unsaid;

	while (unsaid != NULL && unsaid->number <= *number)
		unsaid = unsaid->next;
	if (unsaid == NULL)
		return NULL;
	*number = unsaid->number;
	*out_connection = unsaid->connection;
	*out_bytes = unsaid->kept_bytes;
	return unsaid->kept;
}
