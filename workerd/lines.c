/* SPDX-License-Identifier: Apache-2.0 */
#include <workerd/lines.h>

#include <string.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/log.h>

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

/* Partial is a line: it is kept, and has to be written. */
static void finish_line(struct wrk_lines *lines)
{
	const char *begin = fragi_log_line_begin();
	size_t bytes = strlen(begin);

	keep(lines, lines->partial, lines->partial_bytes);
	memmove(lines->partial + bytes, lines->partial, lines->partial_bytes);
	memcpy(lines->partial, begin, bytes);
	lines->partial_bytes += bytes;
	lines->partial[lines->partial_bytes++] = '\n';
	lines->is_whole = true;
}

/* Returns false when stderr has no room for the line and it may wait. */
static bool flush(struct wrk_lines *lines, bool may_wait)
{
	const char *rest = lines->partial + lines->written_bytes;
	size_t size = lines->partial_bytes - lines->written_bytes;

	if (!lines->is_whole)
		return true;
	if (may_wait && !fragi_log_is_dropping()) {
		lines->written_bytes += fragi_log_try(rest, size);
		if (lines->written_bytes < lines->partial_bytes)
			return false;
	} else {
		fragi_log_put(rest, size);
	}
	lines->is_whole = false;
	lines->partial_bytes = lines->written_bytes = 0;
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
		lines->cut = !whole && (lines->is_whole || lines->partial_bytes == 0);
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
