// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define LOG_TOPIC "log"
#include <base/journal.h>
#include <base/log.h>
#include <base/log_line.h>
#include <base/nowait.h>
#include <base/printable.h>
#include <base/sentence.h>
#include <base/stamp.h>

#define LINE_MAX_BYTES 2048
/* Log lines wait for the reader so long in a row, and for one part of the time. */
#define WAIT_MAX_NS INT64_C(100000000)
#define WAIT_PART 10

static bool is_dumb, is_json; /* constant after fragi_log_init */

static const char *const level_names[] = {"trace", "debug",    "info", "warn",
					  "error", "critical", "off"};

int fragi_log_threshold = FRAGI_LOG_INFO;
int fragi_log_operator_threshold = FRAGI_LOG_INFO;

/* Each stands alone: relaxed. */
static _Atomic uint64_t dropped;          /* lines, since the last one that was written */
static _Atomic bool is_cut;               /* only the first part of a line was written */
static _Atomic int64_t may_wait_again_ns; /* when the time that was waited counts no more */

/* Returns the level of that name; FRAGI_LOG_OFF + 1: there is none. */
static int level_of(const char *name)
{
	int level = FRAGI_LOG_TRACE;

	while (level <= FRAGI_LOG_OFF && strcasecmp(name, level_names[level]) != 0)
		level++;
	return level;
}

static int limited(int level)
{
	return level < FRAGI_LOG_TRACE ? FRAGI_LOG_TRACE
	       : level > FRAGI_LOG_OFF ? FRAGI_LOG_OFF
				       : level;
}

void fragi_log_init(int verbosity)
{
	const char *text = getenv("FRAG_LOG_LEVEL"), *term = getenv("TERM");
	const char *of_operators = getenv(FRAGI_OPERATOR_LOG_LEVEL);
	const char *format = getenv("FRAG_LOG_FORMAT");
	int level = text != NULL && text[0] != '\0' ? level_of(text) : FRAGI_LOG_INFO;
	bool unknown = level > FRAGI_LOG_OFF;

	fragi_log_choose_format();
	is_dumb = term == NULL || strcmp(term, "dumb") == 0;
	if (unknown)
		level = FRAGI_LOG_INFO;
	fragi_log_threshold = limited(level - verbosity);
	fragi_log_operator_threshold = of_operators != NULL
					       ? limited(level_of(of_operators))
					       : limited(verbosity > 0 ? level - verbosity : level);
	if (unknown)
		log_warn(
			NULL,
			"FRAG_LOG_LEVEL is \"%.32s\", which is not a level; info is used (give trace, debug, info, warn, error, critical or off)",
			text);
	if (format != NULL && format[0] != '\0' && !is_json && strcasecmp(format, "text") != 0)
		log_warn(
			NULL,
			"FRAG_LOG_FORMAT is \"%.32s\", which is not a format; text is used (give text or json)",
			format);
}

void fragi_log_choose_format(void)
{
	const char *format = getenv("FRAG_LOG_FORMAT");

	is_json = format != NULL && strcasecmp(format, "json") == 0;
}

void fragi_log_keep_text(void)
{
	is_json = false;
}

bool fragi_log_is_json(void)
{
	return is_json;
}

const char *fragi_log_level_name(int level)
{
	return level_names[limited(level)];
}

/* Asked each time: a child of a fork may have another stderr. */
bool fragi_log_is_terminal(void)
{
	int saved_errno = errno;
	bool is_terminal = !is_dumb && !is_json && isatty(STDERR_FILENO) != 0;

	errno = saved_errno;
	return is_terminal;
}

const char *fragi_log_line_begin(void)
{
	return fragi_log_is_terminal() ? "\033[K" : "";
}

static size_t line_head(char *line, size_t size, enum fragi_log_level level, const char *topic,
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

/*
 * An object is written whole, or not at all, or it is cut: then the next one begins a line. Returns
 * `size`, or 0.
 */
static size_t put_json(const char *line, size_t size, int64_t patience_ns)
{
	char object[1 + FRAGI_LOG_JSON_MAX];
	const size_t begin = atomic_load_explicit(&is_cut, memory_order_relaxed);
	size_t length =
		begin + fragi_log_line_to_json(line, size, object + begin, FRAGI_LOG_JSON_MAX);
	size_t written;

	if (begin > 0)
		object[0] = '\n';
	written = fragi_write_within(STDERR_FILENO, object, length, patience_ns);
	if (written > 0 && written < length)
		written += fragi_write_within(STDERR_FILENO, object + written, length - written,
					      WAIT_MAX_NS);
	if (written > 0)
		atomic_store_explicit(&is_cut, written < length, memory_order_relaxed);
	return written > 0 ? size : 0;
}

static size_t put(const char *line, size_t size, int64_t patience_ns)
{
	size_t written;

	if (fragi_journal_send(line, size))
		written = size;
	else if (is_json)
		return put_json(line, size, patience_ns);
	else
		written = fragi_write_within(STDERR_FILENO, line, size, patience_ns);
	if (written > 0)
		atomic_store_explicit(&is_cut, written < size, memory_order_relaxed);
	return written;
}

bool fragi_log_is_dropping(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed) != 0;
}

void fragi_log_drop(void)
{
	atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

/* Returns whether the count of dropped lines is out. */
static bool log_dropped(int64_t patience_ns)
{
	char line[256];
	uint64_t count;
	size_t length = 0;

	if (!fragi_log_is_dropping())
		return true;
	count = atomic_exchange_explicit(&dropped, 0, memory_order_relaxed);
	if (count == 0) /* another thread logs it */
		return true;
	if (atomic_load_explicit(&is_cut, memory_order_relaxed))
		line[length++] = '\n';
	length += (size_t)snprintf(line + length, sizeof(line) - length, "%s",
				   fragi_log_line_begin());
	length += line_head(line + length, sizeof(line) - length, FRAGI_LOG_WARN, LOG_TOPIC, NULL);
	length += (size_t)snprintf(line + length, sizeof(line) - length,
				   "%" PRIu64 " line%s dropped: nothing read what was logged\n",
				   count, count == 1 ? " was" : "s were");
	if (put(line, length, patience_ns) == length)
		return true;
	atomic_fetch_add_explicit(&dropped, count, memory_order_relaxed);
	return false;
}

void fragi_log_put_within(const char *line, size_t size, int64_t patience_ns)
{
	if (!log_dropped(0) || put(line, size, patience_ns) != size)
		fragi_log_drop();
}

size_t fragi_log_try(const char *line, size_t size)
{
	size_t written;

	if (fragi_log_is_dropping())
		return 0;
	written = put(line, size, 0);
	if (written > 0 || errno == EAGAIN)
		return written;
	fragi_log_drop(); /* no reader will come */
	return size;
}

void fragi_log_catch_up(int64_t patience_ns)
{
	int saved_errno = errno;

	(void)log_dropped(patience_ns);
	errno = saved_errno;
}

void fragi_log_put(const char *line, size_t size)
{
	int64_t start_ns = fragi_now_ns(), waited_ns,
		owed_ns = atomic_load_explicit(&may_wait_again_ns, memory_order_relaxed) - start_ns;

	if (owed_ns < 0)
		owed_ns = 0;
	fragi_log_put_within(line, size, WAIT_MAX_NS - owed_ns / WAIT_PART);
	waited_ns = fragi_now_ns() - start_ns;
	if (waited_ns > WAIT_MAX_NS / 100)
		atomic_store_explicit(&may_wait_again_ns,
				      start_ns + owed_ns + waited_ns * WAIT_PART,
				      memory_order_relaxed);
}

void fragi_log_write(enum fragi_log_level level, const char *topic, const char *subject,
		     const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	const size_t room = sizeof(line) - 1; /* the last byte is for the newline */
	int saved_errno = errno;
	size_t length, erase_bytes, head;
	va_list args;

	erase_bytes = (size_t)snprintf(line, room, "%s", fragi_log_line_begin());
	length = erase_bytes +
		 line_head(line + erase_bytes, room - erase_bytes, level, topic, subject);
	head = length;
	va_start(args, format);
	fragi_sentence_of(line + length, room - length, format, args);
	va_end(args);
	frag_hide_credentials(line + head, room - head);
	length = head + strlen(line + head);
	/* Names in a line may come from a peer: removes line breaks, escapes, what is not UTF-8. */
	fragi_make_printable(line + erase_bytes, ' ');
	line[length++] = '\n';
	fragi_log_put(line, length);
	errno = saved_errno;
}

void fragi_log_print(const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	size_t used = 0;
	va_list args;

	if (is_json)
		used = line_head(line, sizeof(line), FRAGI_LOG_ERROR, program_invocation_short_name,
				 NULL);
	else
		used = (size_t)snprintf(line, sizeof(line), "%s", fragi_log_line_begin());
	va_start(args, format);
	fragi_sentence_of(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	frag_hide_credentials(line + used, sizeof(line) - used - 1);
	used += strlen(line + used);
	if (used > 0 && line[used - 1] != '\n') /* it was cut */
		line[used++] = '\n';
	fragi_log_put(line, used);
}
