/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_LOG_LINE_H
#define FRAGI_BASE_LOG_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * What a line of the log says of itself: `TIME LEVEL topic subject: text`, or a line of an
 * operator's output, `fragment.operator: text`, or any other text. The parts point into the line.
 */
struct fragi_span {
	const char *text;
	size_t length; /* 0: there is none */
};

struct fragi_log_line {
	int level;                 /* FRAGI_LOG_INFO where the line has none */
	struct fragi_span time;    /* "2026-11-22T20:24:04.159Z" */
	struct fragi_span message; /* behind time and level */
	struct fragi_span topic, subject, application, fragment, op;
	struct fragi_span text; /* behind topic and subject */
};

/* size: without a newline at the end */
FRAGI_API void fragi_log_line_parse(const char *line, size_t size, struct fragi_log_line *out);

/*
 * Writes a line as a JSON object, with a newline; what a line begins with that is no text (an
 * escape sequence, the newline after a cut line) is left out. A line without a time gets the
 * present one. Cuts the text where it does not fit. Returns the number of bytes.
 */
FRAGI_API size_t fragi_log_line_to_json(const char *line, size_t size, char *out, size_t out_size);
#define FRAGI_LOG_JSON_MAX 8192u

#endif
