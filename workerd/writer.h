/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_WRITER_H
#define WRK_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include <base/arena.h>

/*
 * Who writes a host's lines, so that nobody takes them for those of a daemon or of another host:
 * operators may write anything to the descriptors of their host.
 */
struct wrk_writer {
	const char *application;
	const char *const *fragments;
	size_t count;
	bool names_plain; /* lines that have not the log's form are named too */
};

/* The longest line that wrk_writer_sign makes, its NUL included. */
#define WRK_SIGNED_MAX 3072

/* Copies into arena. Returns 0 or -ENOMEM. */
int wrk_writer_copy(const struct wrk_writer *from, struct fragi_arena *arena,
		    struct wrk_writer *out_writer);

/*
 * Writes to out how a line of a host is logged: bytes that are no text (escape sequences, control
 * characters, what is not UTF-8) are shown as \xNN, and in front stands who wrote it, unless the
 * line says so itself, or is a plain one and names_plain is not set, as where a person runs the
 * application in their terminal. A line in the log's form keeps its time, level and topic; a daemon's topic
 * becomes "host". What does not fit is cut, with a mark. Returns the length.
 * - writer: NULL: nobody is named
 */
size_t wrk_writer_sign(const struct wrk_writer *writer, const char *line, size_t size,
		       char out[WRK_SIGNED_MAX]);

#endif
