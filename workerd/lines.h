/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_LINES_H
#define WRK_LINES_H

#include <stddef.h>

#include <wire/message.h>

/*
 * What a host writes: whole lines go to this process's stderr, the last ones are kept for the
 * report of the host's end. A line longer than WRK_LINE_MAX is cut into several.
 */
#define WRK_LINE_MAX 2048

/* zeroed: empty */
struct wrk_lines {
	char *last[FW_LINES_MAX];
	size_t next, count;
	size_t partial_bytes;
	bool cut; /* the line's beginning is out already */
	char partial[WRK_LINE_MAX];
};

/*
 * Blocks as long as fd does; a descriptor that does not block loses what it does not take within
 * 100 ms.
 */
void wrk_lines_feed(struct wrk_lines *lines, const char *bytes, size_t size, int fd);
/* The writer is gone: an unfinished line is one too. */
void wrk_lines_end(struct wrk_lines *lines, int fd);
/* Oldest first, valid until the next call; returns their number. */
size_t wrk_lines_last(const struct wrk_lines *lines, const char **out_lines);
void wrk_lines_fini(struct wrk_lines *lines);

#endif
