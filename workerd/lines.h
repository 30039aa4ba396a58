/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_LINES_H
#define WRK_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include <base/log.h>
#include <wire/message.h>
#include <workerd/writer.h>

/*
 * What a host writes: whole lines, signed (workerd/writer.h), go to this process's stderr, the last
 * ones are kept for the report of the host's end. A line longer than WRK_LINE_MAX is cut into
 * several. Where a rate is set, no more than that many a second are written, after thirty times as
 * many at once; the others are counted, and the count is logged.
 */
#define WRK_LINE_MAX 2048
#define WRK_LINES_BURST_S 30

/* zeroed: empty; line, writer and rate may be set before the first feed */
struct wrk_lines {
	const struct wrk_writer *writer; /* NULL: lines are not signed */
	uint32_t rate;                   /* lines a second; 0: no limit */
	/* gets each whole line, without what a terminal gets before it; NULL: nobody does */
	void (*line)(void *arg, const char *line);
	void *arg;
	char *last[FW_LINES_MAX];
	size_t next, count;
	size_t partial_bytes;
	size_t signed_bytes, written_bytes; /* of signed_line */
	bool is_whole; /* signed_line, its begin and newline included, waits to be written */
	bool cut;      /* the line's beginning is out already */
	uint32_t used; /* lines of the burst */
	int64_t used_at_ns;
	uint64_t left_out;
	char partial[WRK_LINE_MAX];
	char signed_line[FRAGI_LOG_LINE_BEGIN_MAX + WRK_SIGNED_MAX + 1];
};

/*
 * Returns how many bytes it took. With may_wait it stops at a line for which stderr has no room; it
 * is to be called again later with the rest, or with nothing. Otherwise such a line is dropped and
 * counted (base/log.h).
 */
size_t wrk_lines_feed(struct wrk_lines *lines, const char *bytes, size_t size, bool may_wait);
/* Whether a line waits for stderr. */
bool wrk_lines_wait(const struct wrk_lines *lines);
/* Logs how many lines were left out, if there were any and the rate allows a line again. */
void wrk_lines_catch_up(struct wrk_lines *lines);
/* The writer is gone: an unfinished line is one too. */
void wrk_lines_end(struct wrk_lines *lines);
/* Oldest first, valid until the next call; returns their number. */
size_t wrk_lines_last(const struct wrk_lines *lines, const char **out_lines);
void wrk_lines_fini(struct wrk_lines *lines);

#endif
