/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_LOG_ENTRY_H
#define FRAGI_BASE_LOG_ENTRY_H

#include <base/log.h>

/*
 * What a line on stderr says of itself: a log line (base/log.h), a line that an operator has
 * printed (run/console.h), or any other, which is taken for a message of level info.
 */
struct fragi_log_span {
	const char *text;
	size_t length; /* 0: there is none */
};
struct fragi_log_entry {
	int level;
	struct fragi_log_span message; /* from the topic on */
	struct fragi_log_span text;    /* behind the topic and the subject */
	struct fragi_log_span topic, application, fragment, op;
};
/* line: without its newline, borrowed by the entry */
FRAGI_API void fragi_log_entry_read(const char *line, size_t size,
				    struct fragi_log_entry *out_entry);

#endif
