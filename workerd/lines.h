/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_LINES_H
#define WRK_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include <base/log.h>
#include <wire/message.h>

/*
 * What a host writes: whole lines go to this process's stderr, the last ones are kept for the
 * report of the host's end. A line longer than WRK_LINE_MAX is cut into several.
 */
#define WRK_LINE_MAX 2048

/* zeroed: empty; line may be set before the first feed */
struct wrk_lines {
	/* gets each whole line, without what a terminal gets before it; NULL: nobody does */
	void (*line)(void *arg, const char *line);
	void *arg;
	char *last[FW_LINES_MAX];
	size_t next, count;
	size_t partial_bytes;
	size_t written_bytes; /* of partial */
	bool is_whole;        /* partial, its begin and newline included, waits to be written */
	bool cut;             /* the line's beginning is out already */
	char partial[WRK_LINE_MAX + FRAGI_LOG_LINE_BEGIN_MAX];
};

/*
 * Returns how many bytes it took. With may_wait it stops at a line for which stderr has no room; it
 * is to be called again later with the rest, or with nothing. Otherwise such a line is dropped and
 * counted (base/log.h).
 */
size_t wrk_lines_feed(struct wrk_lines *lines, const char *bytes, size_t size, bool may_wait);
/* Whether a line waits for stderr. */
bool wrk_lines_wait(const struct wrk_lines *lines);
/* The writer is gone: an unfinished line is one too. */
void wrk_lines_end(struct wrk_lines *lines);
/* Oldest first, valid until the next call; returns their number. */
size_t wrk_lines_last(const struct wrk_lines *lines, const char **out_lines);
void wrk_lines_fini(struct wrk_lines *lines);

#endif
