// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <string.h>

#include <base/log_line.h>
#include <base/sentence.h>
#include <base/units.h>

/*
 * Lines of hosts. They go to this worker's stderr in any case. A driver that wants them gets them
 * too, as fast as a person could read: WRK_LINES_BURST lines at once and WRK_LINES_RATE a second.
 * Lines beyond that are counted, and the count is reported with the next line, or beat.
 */
bool wrk_core_takes_lines(const struct wrk_core *core)
{
	return core->session == WRK_SESSION_ATTACHED && core->takes_lines;
}

static bool is_for_driver(const struct wrk_core *core, const struct wrk_host *host)
{
	return wrk_core_takes_lines(core) && host->connection == core->connection;
}

/* How many lines may follow now. */
static uint32_t allowance(struct wrk_host *host, int64_t now_ns)
{
	const int64_t line_ns = INT64_C(1000000000) / WRK_LINES_RATE;
	int64_t back = (now_ns - host->lines_at_ns) / line_ns;

	if (back >= host->lines_used) {
		host->lines_used = 0;
		host->lines_at_ns = now_ns;
	} else {
		host->lines_used -= (uint32_t)back;
		host->lines_at_ns += back * line_ns;
	}
	return WRK_LINES_BURST - host->lines_used;
}

static const char *copy(struct wrk_actions *actions, struct fragi_span span)
{
	char *text = fragi_arena_strndup(&actions->arena, span.text != NULL ? span.text : "",
					 span.length);

	if (text == NULL)
		actions->out_of_memory = true;
	return text != NULL ? text : "";
}

/* A name that it cannot have is none. */
static const char *name_of(struct wrk_actions *actions, struct fragi_span span)
{
	const char *name = copy(actions, span);

	return fragi_name_is_valid(name) ? name : "";
}

static void read_line(const char *line, struct fw_line *row, struct wrk_actions *actions)
{
	char text[FW_LOG_LINE_MAX + 1];
	struct fragi_log_line entry;

	fragi_log_line_parse(line, strlen(line), &entry);
	fragi_sentence(text, sizeof(text), "%.*s", (int)entry.text.length,
		       entry.text.length != 0 ? entry.text.text : "");
	*row = (struct fw_line){
		.level = (uint32_t)entry.level,
		.fragment = name_of(actions, entry.fragment),
		.op = name_of(actions, entry.op),
		.text = copy(actions, (struct fragi_span){text, strlen(text)}),
	};
}

static struct fw_message *lines_message(struct wrk_host *host, struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_HOST_LINES, host);

	if (message == NULL)
		return NULL;
	message->host_lines.left_out = host->lines_left_out;
	host->lines_left_out = 0;
	return message;
}

void wrk_host_lines(struct wrk_core *core, struct wrk_host *host, const struct wrk_event *event,
		    int64_t now_ns, struct wrk_actions *actions)
{
	uint32_t allowed = allowance(host, now_ns), count = event->line_count;
	struct fw_message *message;
	struct fw_line *rows;

	if (!is_for_driver(core, host))
		return;
	if (count > allowed)
		count = allowed;
	if (count == 0) {
		host->lines_left_out += event->line_count + event->left_out;
		return;
	}
	rows = fragi_arena_alloc(&actions->arena, count * sizeof(*rows));
	message = rows != NULL ? lines_message(host, actions) : NULL;
	if (message == NULL) {
		actions->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		read_line(event->lines[i], &rows[i], actions);
	message->host_lines.rows = rows;
	message->host_lines.count = count;
	host->lines_used += count;
	host->lines_left_out += event->line_count - count + event->left_out;
	wrk_session_send(core, message, actions);
}

void wrk_host_lines_left_out(struct wrk_core *core, struct wrk_host *host,
			     struct wrk_actions *actions)
{
	if (host->lines_left_out > 0 && is_for_driver(core, host))
		wrk_session_send(core, lines_message(host, actions), actions);
}
