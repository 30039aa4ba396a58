// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/lines.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/printable.h>

struct drv_line {
	struct drv_line *next; /* that came after it */
	uint64_t number;
	int64_t unix_ns;
	enum fragi_log_level level;
	size_t bytes;                       /* of all of it */
	const char *worker, *fragment, *op; /* behind the text */
	char text[];
};

struct drv_log {
	struct drv_log *next;
	char application[FRAG_NAME_MAX + 1];
	struct drv_line *first, **last;
	size_t count, bytes;
	uint64_t newest; /* number of its last line */
};

/* What a client is shown. */
struct drv_log_watch {
	uint64_t seq;  /* of its WATCH_LOGS */
	uint64_t last; /* the line that it was shown last, or that was not for it */
	char application[FRAG_NAME_MAX + 1], fragment[FRAG_NAME_MAX + 1], op[FRAG_NAME_MAX + 1];
};

static struct drv_log *find(const struct drv_lines *lines, const char *application)
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

static void log_free(struct drv_log *log)
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
		log_free(log);
	}
}

static bool is_known(const struct drv_core *core, const char *application)
{
	return drv_app_named(core, application) != NULL ||
	       drv_history_named(&core->history, application) != NULL;
}

/* Of applications that are forgotten. */
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
		log_free(log);
	}
}

void drv_lines_begin(struct drv_core *core, const char *application)
{
	struct drv_log *log;

	if (core->config.is_local || find(&core->lines, application) != NULL)
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

/* The text is cut where a character of UTF-8 begins. */
static size_t length_of(const char *text)
{
	size_t length = strnlen(text, FW_LOG_LINE_MAX + 1);

	if (length <= FW_LOG_LINE_MAX)
		return length;
	length = FW_LOG_LINE_MAX;
	while (length > FW_LOG_LINE_MAX - 4 && ((unsigned char)text[length] & 0xC0) == 0x80)
		length--;
	return length;
}

static const char *put(char **at, const char *text, size_t length)
{
	char *copy = *at;

	memcpy(copy, text, length);
	copy[length] = '\0';
	*at += length + 1;
	return copy;
}

static void append(struct drv_core *core, struct drv_log *log, const struct fw_line *from,
		   const char *worker)
{
	size_t length = length_of(from->text);
	size_t bytes = sizeof(struct drv_line) + length + 1 + strlen(worker) + 1 +
		       strlen(from->fragment) + 1 + strlen(from->op) + 1;
	struct drv_line *line = fragi_malloc(bytes);
	char *at;

	if (line == NULL)
		return;
	make_room(core, log, bytes);
	*line = (struct drv_line){.number = ++core->lines.last,
				  .unix_ns = unix_now(core),
				  .level = (enum fragi_log_level)from->level,
				  .bytes = bytes};
	at = line->text;
	put(&at, from->text, length);
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
	struct drv_log *log = find(&core->lines, application);

	if (log != NULL && level >= FRAGI_LOG_INFO)
		append(core, log,
		       &(struct fw_line){
			       .level = (uint32_t)level, .fragment = "", .op = "", .text = text},
		       "");
}

void drv_lines_take(struct drv_host *host, const struct fw_host_lines *lines)
{
	struct drv_core *core = host->app->core;
	struct drv_log *log = find(&core->lines, drv_app_name(host->app));
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
	const struct drv_log *log = find(&core->lines, watch->application);
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
	const struct drv_log *log = find(&client->core->lines, watch->application);

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
		drv_command_refuse_unknown(client, message, wanted->name);
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
