// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/base/lines.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/sentence.h>

void drv_actions_reset(struct drv_actions *actions)
{
	for (size_t i = 0; i < actions->count; i++)
		fragi_free(actions->items[i].frame);
	actions->count = 0;
	actions->out_of_memory = false;
	fragi_arena_fini(&actions->arena);
}

void drv_actions_fini(struct drv_actions *actions)
{
	drv_actions_reset(actions);
	fragi_free(actions->items);
	*actions = (struct drv_actions){0};
}

/* Bounds of joined frames, and of how far they are looked for. */
#define JOINED_BYTES 65536
#define JOINED_REACH 64

static bool is_plain_frame(const struct drv_action *action)
{
	return action->kind == DRV_DO_SEND && !action->may_drop && action->frame != NULL;
}

static void join_from(struct drv_actions *actions, size_t i)
{
	struct drv_action *first = &actions->items[i], *next;
	size_t end = i + JOINED_REACH < actions->count ? i + JOINED_REACH : actions->count,
	       bytes = first->frame_bytes;
	uint8_t *joined;

	for (size_t k = i + 1; k < end; k++)
		if (is_plain_frame(&actions->items[k]) &&
		    actions->items[k].connection == first->connection)
			bytes += actions->items[k].frame_bytes;
	if (!is_plain_frame(first) || bytes == first->frame_bytes || bytes > JOINED_BYTES)
		return;
	joined = fragi_malloc(bytes);
	if (joined == NULL)
		return;
	bytes = 0;
	for (size_t k = i; k < end; k++) {
		next = &actions->items[k];
		if (next->connection != first->connection)
			continue;
		if (!is_plain_frame(next)) /* it is admitted or closed: what follows stays behind */
			break;
		memcpy(joined + bytes, next->frame, next->frame_bytes);
		bytes += next->frame_bytes;
		explicit_bzero(next->frame, next->frame_bytes); /* it may carry a key */
		fragi_free(next->frame);
		next->frame = NULL;
	}
	first->frame = joined;
	first->frame_bytes = bytes;
}

void drv_actions_join(struct drv_actions *actions)
{
	for (size_t i = 0; i < actions->count; i++)
		join_from(actions, i);
}

void drv_emit(struct drv_core *core, const struct drv_action *action)
{
	struct drv_actions *actions = core->actions;

	if (actions->count == actions->capacity) {
		size_t capacity = actions->capacity == 0 ? 32 : actions->capacity * 2;
		struct drv_action *items = fragi_realloc(actions->items, capacity * sizeof(*items));

		if (items == NULL) {
			actions->out_of_memory = true;
			fragi_free(action->frame);
			return;
		}
		actions->items = items;
		actions->capacity = capacity;
	}
	actions->items[actions->count++] = *action;
}

FRAG_PRINTF(2, 0)
static const char *format_text(struct drv_core *core, const char *format, va_list args)
{
	char line[FW_TEXT_MAX];

	fragi_sentence_of(line, sizeof(line), format, args);
	frag_hide_credentials(line, sizeof(line));
	return fragi_arena_strdup(&core->actions->arena, line);
}

const char *drv_text(struct drv_core *core, const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = format_text(core, format, args);
	va_end(args);
	return text != NULL ? text : "(no memory is left for this text)";
}

/* Returns the text; NULL: it is not logged. */
FRAG_PRINTF(4, 0)
static const char *log_text(struct drv_core *core, enum fragi_log_level level, const char *subject,
			    const char *format, va_list args)
{
	const char *text;

	if ((int)level < fragi_log_threshold)
		return NULL;
	text = format_text(core, format, args);
	if (subject != NULL)
		subject = fragi_arena_strdup(&core->actions->arena, subject);
	if (text == NULL) /* a line less in the log is no reason to fail */
		return NULL;
	drv_emit(core,
		 &(struct drv_action){
			 .kind = DRV_DO_LOG, .level = level, .subject = subject, .text = text});
	return text;
}

void drv_log(struct drv_core *core, enum fragi_log_level level, const char *subject,
	     const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = log_text(core, level, subject, format, args);
	va_end(args);
	if (text != NULL && subject != NULL)
		drv_lines_own(core, level, subject, text);
}

void drv_log_local(struct drv_core *core, enum fragi_log_level level, const char *subject,
		   const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)log_text(core, level, subject, format, args);
	va_end(args);
}

static int send(struct drv_session *session, struct fw_message *message, bool may_drop,
		uint32_t room_bytes)
{
	struct drv_action action = {
		.kind = DRV_DO_SEND,
		.connection = session->connection,
		.may_drop = may_drop,
		.room_bytes = room_bytes,
	};
	int r;

	message->seq = ++session->seq;
	r = fw_encode(message, &action.frame, &action.frame_bytes);
	if (r == 0)
		drv_emit(session->core, &action);
	return r;
}

int drv_send(struct drv_session *session, struct fw_message *message)
{
	return send(session, message, false, 0);
}

int drv_send_frame(struct drv_session *session, const uint8_t *frame, size_t size,
		   uint64_t reply_to)
{
	struct drv_action action = {.kind = DRV_DO_SEND, .connection = session->connection};
	int r = fw_frame_address(frame, size, ++session->seq, reply_to, &action.frame,
				 &action.frame_bytes);

	if (r == 0)
		drv_emit(session->core, &action);
	return r;
}

int drv_send_if_idle(struct drv_session *session, struct fw_message *message)
{
	return send(session, message, true, 0);
}

int drv_send_if_room(struct drv_session *session, struct fw_message *message, uint32_t bytes)
{
	return send(session, message, true, bytes);
}

void drv_set(struct drv_core *core, struct drv_timer *timer, int64_t at_ns)
{
	int r = drv_timer_set(&core->timers, timer, at_ns);

	assert(r == 0 && "there is room for all timers of each application and session");
	(void)r;
}

void drv_close(struct drv_core *core, uint64_t connection)
{
	drv_emit(core, &(struct drv_action){.kind = DRV_DO_CLOSE, .connection = connection});
}
