// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/sentence.h>

struct wrk_action *wrk_emit(struct wrk_actions *actions, enum wrk_action_kind kind)
{
	struct wrk_action *action;

	if (actions->count == actions->capacity) {
		size_t capacity = actions->capacity == 0 ? 16 : actions->capacity * 2;
		struct wrk_action *items = fragi_realloc(actions->items, capacity * sizeof(*items));

		if (items == NULL) {
			actions->out_of_memory = true;
			return &actions->nowhere;
		}
		actions->items = items;
		actions->capacity = capacity;
	}
	action = &actions->items[actions->count++];
	*action = (struct wrk_action){.kind = kind};
	return action;
}

static FRAG_PRINTF(2, 0) const
	char *format_text(struct wrk_actions *actions, const char *format, va_list args)
{
	char line[1200];
	char *text;

	fragi_sentence_of(line, sizeof(line), format, args);
	text = fragi_arena_strdup(&actions->arena, line);
	if (text == NULL) {
		actions->out_of_memory = true;
		return "";
	}
	return text;
}

void wrk_log(struct wrk_actions *actions, enum fragi_log_level level, const char *format, ...)
{
	struct wrk_action *action = wrk_emit(actions, WRK_DO_LOG);
	va_list args;

	action->level = level;
	va_start(args, format);
	action->text = format_text(actions, format, args);
	va_end(args);
}

void wrk_log_of(struct wrk_actions *actions, enum fragi_log_level level,
		const struct wrk_host *host, const char *format, ...)
{
	struct wrk_action *action = wrk_emit(actions, WRK_DO_LOG);
	bool is_one = host->fragments[0] != '\0' && strchr(host->fragments, ',') == NULL;
	va_list args;

	action->level = level;
	action->subject = wrk_text(actions, "%s%s%s", host->application, is_one ? "/" : "",
				   is_one ? host->fragments : "");
	va_start(args, format);
	action->text = format_text(actions, format, args);
	va_end(args);
}

const char *wrk_text(struct wrk_actions *actions, const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = format_text(actions, format, args);
	va_end(args);
	return text;
}

struct fw_message *wrk_message(struct wrk_actions *actions, enum fw_kind kind,
			       const struct wrk_host *host)
{
	struct fw_message *message = fragi_arena_alloc(&actions->arena, sizeof(*message));

	if (message == NULL) {
		actions->out_of_memory = true;
		return NULL;
	}
	message->kind = kind;
	if (host != NULL) {
		message->run = host->run;
		message->host = host->number;
		message->epoch = host->epoch;
	}
	return message;
}

void wrk_actions_reset(struct wrk_actions *actions)
{
	actions->count = 0;
	explicit_bzero(&actions->completed, sizeof(actions->completed));
	fragi_arena_fini(&actions->arena);
}

void wrk_actions_fini(struct wrk_actions *actions)
{
	fragi_free(actions->items);
	fragi_arena_fini(&actions->arena);
	explicit_bzero(actions, sizeof(*actions));
}
