// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define LOG_TOPIC "log"
#include <base/log.h>
#include <base/printable.h>

#define LINE_MAX_BYTES 2048

static const char *const level_names[] = {"trace", "debug", "info", "warn", "error", "off"};

int fragi_log_threshold = FRAGI_LOG_INFO;

void fragi_log_init(int verbosity)
{
	const char *text = getenv("FRAG_LOG_LEVEL");
	int threshold = FRAGI_LOG_INFO, level = FRAGI_LOG_TRACE;
	bool unknown = false;

	if (text != NULL && text[0] != '\0') {
		while (level <= FRAGI_LOG_OFF && strcasecmp(text, level_names[level]) != 0)
			level++;
		unknown = level > FRAGI_LOG_OFF;
		threshold = unknown ? FRAGI_LOG_INFO : level;
	}
	if (verbosity > FRAGI_LOG_OFF)
		verbosity = FRAGI_LOG_OFF;
	if (verbosity < -FRAGI_LOG_OFF)
		verbosity = -FRAGI_LOG_OFF;
	threshold -= verbosity;
	if (threshold < FRAGI_LOG_TRACE)
		threshold = FRAGI_LOG_TRACE;
	if (threshold > FRAGI_LOG_OFF)
		threshold = FRAGI_LOG_OFF;
	fragi_log_threshold = threshold;
	if (unknown)
		log_warn(
			NULL,
			"FRAG_LOG_LEVEL is \"%.32s\", which is not a level; info is used (give trace, debug, info, warn, error or off)",
			text);
}

const char *fragi_log_level_name(int level)
{
	return level_names[level < FRAGI_LOG_TRACE ? FRAGI_LOG_TRACE
			   : level > FRAGI_LOG_OFF ? FRAGI_LOG_OFF
						   : level];
}

static size_t line_begin(char *line, size_t size, enum fragi_log_level level, const char *topic,
			 const char *subject)
{
	struct timespec now;
	struct tm tm;
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = snprintf(line, size,
		     "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %-5s %s%s%.512s: ", tm.tm_year + 1900,
		     tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		     (int)(now.tv_nsec / 1000000), level_names[level], topic,
		     subject != NULL ? " " : "", subject != NULL ? subject : "");
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

void fragi_log_write(enum fragi_log_level level, const char *topic, const char *subject,
		     const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	const size_t room = sizeof(line) - 1; /* the last byte is for the newline */
	int saved_errno = errno, n;
	size_t length, at = 0;
	ssize_t written;
	va_list args;

	length = line_begin(line, room, level, topic, subject);
	va_start(args, format);
	n = vsnprintf(line + length, room - length, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < room - length) {
		length += (size_t)n;
	} else if (n > 0) {
		length = room - 1;
		memset(line + length - 3, '.', 3);
	}
	/* Names in a line may come from a peer: removes line breaks, escapes, what is not UTF-8. */
	line[length] = '\0';
	fragi_make_printable(line, ' ');
	line[length++] = '\n';
	while (at < length) {
		written = write(STDERR_FILENO, line + at, length - at);
		if (written < 0 && errno != EINTR)
			break;
		if (written > 0)
			at += (size_t)written;
	}
	errno = saved_errno;
}
