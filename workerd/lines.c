// SPDX-License-Identifier: Apache-2.0
#include <workerd/lines.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>

static void keep(struct wrk_lines *lines, const char *line, size_t size)
{
	char *copy = fragi_malloc(size + 1);

	if (copy == NULL) /* one line of the report less */
		return;
	memcpy(copy, line, size);
	copy[size] = '\0';
	if (lines->line != NULL)
		lines->line(lines->arg, copy);
	fragi_free(lines->last[lines->next]);
	lines->last[lines->next] = copy;
	lines->next = (lines->next + 1) % FW_LINES_MAX;
	if (lines->count < FW_LINES_MAX)
		lines->count++;
}

/*
 * Whether another line is within the rate. Once it was not, lines are left out until there is room
 * for those of a second: their number is logged once a second, and not before every line.
 */
static bool has_room(struct wrk_lines *lines)
{
	uint32_t most = lines->rate * WRK_LINES_BURST_S;
	int64_t line_ns, now_ns, back;

	if (lines->rate == 0)
		return true;
	line_ns = INT64_C(1000000000) / lines->rate;
	now_ns = fragi_now_ns();
	back = (now_ns - lines->used_at_ns) / line_ns;
	if (back >= lines->used) {
		lines->used = 0;
		lines->used_at_ns = now_ns;
	} else {
		lines->used -= (uint32_t)back;
		lines->used_at_ns += back * line_ns;
	}
	return lines->left_out == 0 ? lines->used < most : lines->used + lines->rate <= most;
}

static void log_left_out(struct wrk_lines *lines)
{
	const struct wrk_writer *writer = lines->writer;
	char subject[2 * FRAG_NAME_MAX + 2] = "";

	if (lines->left_out == 0)
		return;
	if (writer != NULL)
		snprintf(subject, sizeof(subject), "%s/%s", writer->application,
			 writer->count > 0 ? writer->fragments[0] : "");
	log_warn(writer != NULL ? subject : NULL,
		 "%" PRIu64 " lines of its host are left out: it writes more than %" PRIu32
		 " a second",
		 lines->left_out, lines->rate);
	lines->left_out = 0;
}

void wrk_lines_catch_up(struct wrk_lines *lines)
{
	if (lines->left_out > 0 && !lines->is_whole && has_room(lines))
		log_left_out(lines);
}

/* Partial is a line: it is kept, and has to be written. */
static void finish_line(struct wrk_lines *lines)
{
	const char *begin = fragi_log_line_begin();
	size_t bytes = strlen(begin);

	memcpy(lines->signed_line, begin, bytes);
	lines->signed_bytes =
		bytes + wrk_writer_sign(lines->writer, lines->partial, lines->partial_bytes,
					lines->signed_line + bytes);
	lines->partial_bytes = 0;
	keep(lines, lines->signed_line + bytes, lines->signed_bytes - bytes);
	if (!has_room(lines)) {
		lines->left_out++;
		return;
	}
	log_left_out(lines);
	lines->used++;
	lines->signed_line[lines->signed_bytes++] = '\n';
	lines->written_bytes = 0;
	lines->is_whole = true;
}

/* Returns false when stderr has no room for the line and it may wait. */
static bool flush(struct wrk_lines *lines, bool may_wait)
{
	const char *rest = lines->signed_line + lines->written_bytes;
	size_t size = lines->signed_bytes - lines->written_bytes;

	if (!lines->is_whole)
		return true;
	if (may_wait && !fragi_log_is_dropping()) {
		lines->written_bytes += fragi_log_try(rest, size);
		if (lines->written_bytes < lines->signed_bytes)
			return false;
	} else {
		fragi_log_put(rest, size);
	}
	lines->is_whole = false;
	return true;
}

size_t wrk_lines_feed(struct wrk_lines *lines, const char *bytes, size_t size, bool may_wait)
{
	const char *at = bytes, *end = bytes + size;

	while (flush(lines, may_wait) && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t room = WRK_LINE_MAX - 1 - lines->partial_bytes;
		size_t take = (size_t)((newline != NULL ? newline : end) - at);
		bool whole = newline != NULL && take <= room;

		if (take > room)
			take = room;
		memcpy(lines->partial + lines->partial_bytes, at, take);
		lines->partial_bytes += take;
		at += take + (whole ? 1 : 0);
		if ((whole && !(lines->cut && lines->partial_bytes == 0)) ||
		    lines->partial_bytes == WRK_LINE_MAX - 1)
			finish_line(lines);
		lines->cut = !whole && lines->partial_bytes == 0;
	}
	return (size_t)(at - bytes);
}

bool wrk_lines_wait(const struct wrk_lines *lines)
{
	return lines->is_whole;
}

void wrk_lines_end(struct wrk_lines *lines)
{
	(void)flush(lines, false);
	if (lines->partial_bytes > 0)
		finish_line(lines);
	(void)flush(lines, false);
	log_left_out(lines);
}

size_t wrk_lines_last(const struct wrk_lines *lines, const char **out_lines)
{
	size_t first = (lines->next + FW_LINES_MAX - lines->count) % FW_LINES_MAX;

	for (size_t i = 0; i < lines->count; i++)
		out_lines[i] = lines->last[(first + i) % FW_LINES_MAX];
	return lines->count;
}

void wrk_lines_fini(struct wrk_lines *lines)
{
	for (size_t i = 0; i < FW_LINES_MAX; i++)
		fragi_free(lines->last[i]);
	memset(lines, 0, sizeof(*lines));
}
