// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/base/lines.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/* The logs of applications: which have one, and what clients are shown of it. */

/* The lines that a client is shown. */
struct drv_log_watch {
	uint64_t seq;  /* of its WATCH_LOGS */
	uint64_t last; /* the line that it was shown last, or that was not for it */
	char application[FRAG_NAME_MAX + 1], fragment[FRAG_NAME_MAX + 1], op[FRAG_NAME_MAX + 1];
};

static bool is_known(const struct drv_core *core, const char *application)
{
	return drv_app_named(core, application) != NULL ||
	       drv_history_named(&core->history, application) != NULL;
}

/* Removes the logs of applications that are forgotten. */
static void forget_logs(struct drv_core *core)
{
	struct drv_log **at = &core->lines.logs, *log;

	while ((log = *at) != NULL) {
		if (is_known(core, log->application)) {
			at = &log->next;
			continue;
		}
		*at = log->next;
		core->lines.count--;
		drv_log_free(log);
	}
}

void drv_lines_begin(struct drv_core *core, const char *application)
{
	struct drv_log *log;

	if (core->config.is_local || drv_lines_find(&core->lines, application) != NULL)
		return;
	forget_logs(core);
	log = fragi_calloc(1, sizeof(*log));
	if (log == NULL) /* its lines are on the nodes */
		return;
	snprintf(log->application, sizeof(log->application), "%s", application);
	log->last = &log->first;
	log->next = core->lines.logs;
	core->lines.logs = log;
	core->lines.count++;
}

static bool is_wanted(const struct drv_log_watch *watch, const struct drv_line *line)
{
	return (watch->fragment[0] == '\0' || strcmp(watch->fragment, line->fragment) == 0) &&
	       (watch->op[0] == '\0' || strcmp(watch->op, line->op) == 0);
}

/* Sends what follows the last line, as far as a message and the step have room for it. */
static int send_lines(struct drv_session *client, struct drv_log_watch *watch)
{
	struct drv_core *core = client->core;
	struct fw_message message = {.kind = FW_LOGS, .reply_to = watch->seq};
	struct fw_logs *logs = &message.logs;
	const struct drv_log *log = drv_lines_find(&core->lines, watch->application);
	const struct drv_line *line = log != NULL ? log->first : NULL;

	logs->rows =
		fragi_arena_alloc(&core->actions->arena, FW_LOG_ROWS_MAX * sizeof(*logs->rows));
	if (logs->rows == NULL)
		return -ENOMEM;
	while (line != NULL && line->number <= watch->last)
		line = line->next;
	for (; line != NULL && logs->count < FW_LOG_ROWS_MAX; line = line->next) {
		if (is_wanted(watch, line)) {
			if (!drv_session_take_row(core, line->text))
				break;
			logs->rows[logs->count++] = (struct fw_line){
				.number = line->number,
				.unix_ns = line->unix_ns,
				.level = (uint32_t)line->level,
				.worker = line->worker,
				.fragment = line->fragment,
				.op = line->op,
				.text = line->text,
			};
		}
		watch->last = line->number;
	}
	if (line != NULL)
		core->work_left = true;
	logs->last = watch->last;
	return drv_send(client, &message);
}

int drv_lines_serve(struct drv_session *client)
{
	struct drv_log_watch *watch = client->log_watch;
	const struct drv_log *log = drv_lines_find(&client->core->lines, watch->application);

	return log != NULL && log->newest > watch->last ? send_lines(client, watch) : 0;
}

static void copy(char *out, const char *name)
{
	snprintf(out, FRAG_NAME_MAX + 1, "%s", name);
}

void drv_lines_watch_end(struct drv_session *client)
{
	fragi_free(client->log_watch);
	client->log_watch = NULL;
}

int drv_lines_watch(struct drv_session *client, const struct fw_message *message)
{
	const struct fw_watch_logs *wanted = &message->watch_logs;
	struct drv_log_watch *watch;
	int r;

	if (!is_known(client->core, wanted->name)) {
		drv_refuse_unknown(client, message, wanted->name);
		return 0;
	}
	watch = fragi_calloc(1, sizeof(*watch));
	if (watch == NULL)
		return -ENOMEM;
	watch->seq = message->seq;
	watch->last = wanted->after;
	copy(watch->application, wanted->name);
	copy(watch->fragment, wanted->fragment);
	copy(watch->op, wanted->op);
	r = send_lines(client, watch);
	if (r == 0 && wanted->follow)
		client->log_watch = watch;
	else
		fragi_free(watch);
	return r;
}
