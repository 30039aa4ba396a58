// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/base/lines.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/printable.h>
#include <base/sentence.h>

struct drv_log *drv_lines_find(const struct drv_lines *lines, const char *application)
{
	struct drv_log *log = lines->logs;

	while (log != NULL && strcmp(log->application, application) != 0)
		log = log->next;
	return log;
}

static int64_t unix_now(const struct drv_core *core)
{
	int64_t now_ns = core->real_ns + core->config.realtime_offset_ns;

	return now_ns > 0 ? now_ns : 0;
}

static void drop_first(struct drv_log *log)
{
	struct drv_line *line = log->first;

	log->first = line->next;
	if (log->first == NULL)
		log->last = &log->first;
	log->count--;
	log->bytes -= line->bytes;
	fragi_free(line);
}

/* Forgets the oldest lines until there is room for so many bytes more, and none is too old. */
static void make_room(struct drv_core *core, struct drv_log *log, size_t bytes)
{
	const size_t shares = core->lines.count > 64 ? core->lines.count : 64;
	const size_t bytes_max = 64 * DRV_LINES_BYTES / shares;
	const int64_t oldest_ns = unix_now(core) - DRV_LINES_KEPT_NS;

	while (log->first != NULL &&
	       (log->count >= DRV_LINES_MAX || log->bytes + bytes > bytes_max ||
		log->first->unix_ns < oldest_ns))
		drop_first(log);
}

void drv_log_free(struct drv_log *log)
{
	while (log->first != NULL)
		drop_first(log);
	fragi_free(log);
}

void drv_lines_fini(struct drv_lines *lines)
{
	while (lines->logs != NULL) {
		struct drv_log *log = lines->logs;

		lines->logs = log->next;
		drv_log_free(log);
	}
}

static const char *put(char **at, const char *text, size_t length)
{
	char *copy = *at;

	memcpy(copy, text, length);
	copy[length] = '\0';
	*at += length + 1;
	return copy;
}

/*
 * Without gaps in a log, so that a reader sees what it has missed. A new log goes on behind all
 * others: one of that name may have been there, and a reader that has followed it.
 */
static uint64_t next_number(struct drv_lines *lines, const struct drv_log *log)
{
	uint64_t number = (log->newest != 0 ? log->newest : lines->last) + 1;

	if (lines->last < number)
		lines->last = number;
	return number;
}

static void append(struct drv_core *core, struct drv_log *log, const struct fw_line *from,
		   const char *worker)
{
	size_t length = strnlen(from->text, FW_LOG_LINE_MAX);
	size_t bytes = sizeof(struct drv_line) + length + 1 + strlen(worker) + 1 +
		       strlen(from->fragment) + 1 + strlen(from->op) + 1;
	struct drv_line *line = fragi_malloc(bytes);
	char *at;

	if (line == NULL)
		return;
	make_room(core, log, bytes);
	*line = (struct drv_line){.number = next_number(&core->lines, log),
				  .unix_ns = unix_now(core),
				  .level = (enum fragi_log_level)from->level,
				  .bytes = bytes};
	at = line->text;
	put(&at, from->text, length);
	if (from->text[length] != '\0')
		fragi_sentence_mark(at - length - 1, length + 1);
	fragi_make_printable(line->text, '?');
	line->worker = put(&at, worker, strlen(worker));
	line->fragment = put(&at, from->fragment, strlen(from->fragment));
	line->op = put(&at, from->op, strlen(from->op));
	*log->last = line;
	log->last = &line->next;
	log->count++;
	log->bytes += bytes;
	log->newest = line->number;
}

void drv_lines_own(struct drv_core *core, enum fragi_log_level level, const char *application,
		   const char *text)
{
	struct drv_log *log = drv_lines_find(&core->lines, application);

	if (log != NULL && level >= FRAGI_LOG_INFO)
		append(core, log,
		       &(struct fw_line){
			       .level = (uint32_t)level, .fragment = "", .op = "", .text = text},
		       "");
}

void drv_lines_take(struct drv_host *host, const struct fw_host_lines *lines)
{
	struct drv_core *core = host->app->core;
	struct drv_log *log = drv_lines_find(&core->lines, drv_app_name(host->app));
	char text[128];

	if (log == NULL)
		return;
	core->items -= lines->count;
	if (lines->left_out > 0) {
		snprintf(text, sizeof(text),
			 "%llu lines of %.40s are left out here: they came too fast",
			 (unsigned long long)lines->left_out, host->name);
		append(core, log,
		       &(struct fw_line){
			       .level = FRAGI_LOG_WARN, .fragment = "", .op = "", .text = text},
		       host->worker);
	}
	for (uint32_t i = 0; i < lines->count; i++)
		append(core, log, &lines->rows[i], host->worker);
}
