/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_LOG_H
#define FRAGI_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * Log lines have the form `TIME LEVEL topic subject: text` and go to stderr, each in one write.
 * FRAG_LOG_LEVEL sets the lowest level that is logged (trace, debug, info, warn, error, critical,
 * off; default info), and -v and -q change it. With FRAG_LOG_FORMAT=json the program whose stderr
 * it is writes each line as a JSON object (log_line.h); until then lines are text. Each file has
 * one topic, a short word: `#define LOG_TOPIC "sched"` before this header.
 */
enum fragi_log_level {
	FRAGI_LOG_TRACE,
	FRAGI_LOG_DEBUG,
	FRAGI_LOG_INFO,
	FRAGI_LOG_WARN,
	FRAGI_LOG_ERROR,
	FRAGI_LOG_CRITICAL,
	FRAGI_LOG_OFF,
};

/* Lines below this level are not formatted. Constant once fragi_log_init was called. */
FRAGI_API extern int fragi_log_threshold;
/* The same for what operators log, which is their output: -q does not take it away. */
FRAGI_API extern int fragi_log_operator_threshold;
#define FRAGI_OPERATOR_LOG_LEVEL "FRAG_OPERATOR_LOG_LEVEL" /* a worker tells its hosts */

/*
 * Sets the thresholds from FRAG_LOG_LEVEL.
 * - verbosity: levels to go down (each -v adds one, each -q subtracts one)
 */
FRAGI_API void fragi_log_init(int verbosity);
FRAGI_API const char *fragi_log_level_name(int level); /* "trace" ... "off" */
FRAGI_API void fragi_log_write(enum fragi_log_level level, const char *topic, const char *subject,
			       const char *format, ...) FRAG_PRINTF(4, 5);

/*
 * What begins a line on stderr. On a terminal a line of progress may stand there, with the cursor
 * at its begin; it is erased, whichever program wrote it. Not after the line: where that fills a
 * row, its last character would go.
 */
#define FRAGI_LOG_LINE_BEGIN_MAX 3 /* bytes */
FRAGI_API const char *fragi_log_line_begin(void);
/* Lines are written as JSON objects. Constant once fragi_log_init was called. */
FRAGI_API bool fragi_log_is_json(void);
/* The part of fragi_log_init that looks at FRAG_LOG_FORMAT, for errors before it can be called. */
FRAGI_API void fragi_log_choose_format(void);
/* Lines are text from now on, for a process whose lines another one writes. */
FRAGI_API void fragi_log_keep_text(void);
/* Prints a line about a failure: the text alone or, as JSON, with time and level too. */
FRAGI_API void fragi_log_print(const char *format, ...) FRAG_PRINTF(1, 2);
/* Whether stderr is a terminal that understands escape sequences. */
FRAGI_API bool fragi_log_is_terminal(void);

/*
 * Logging never blocks a program. Once stderr takes no more (a pager, Ctrl-S, a collector that is
 * stuck), lines are dropped and counted until it takes one again; the count is then
 * logged before it. A log line waits a little for a reader that is only behind: 100 ms at most, and
 * a tenth of the time.
 */
/* Writes a line that somebody else has made, begin and newline included, in the same way. */
FRAGI_API void fragi_log_put(const char *line, size_t size);
/* The same, but the line waits up to patience_ns; while lines are dropped it does not wait. */
FRAGI_API void fragi_log_put_within(const char *line, size_t size, int64_t patience_ns);
/* How long the lines of an operator wait. */
#define FRAGI_LOG_PATIENCE_NS INT64_C(1000000000)
/*
 * Writes of a line what can be written at once. Returns the number of bytes; 0 while lines are
 * dropped. For callers that try again, or give it to fragi_log_put in the end. A line that cannot
 * be written at all is dropped.
 */
FRAGI_API size_t fragi_log_try(const char *line, size_t size);
FRAGI_API bool fragi_log_is_dropping(void);
/* Counts a line that was lost elsewhere. */
FRAGI_API void fragi_log_drop(void);
/*
 * Logs how many lines were dropped, if any were and stderr takes it within patience_ns. Programs
 * call it now and then so that the count does not wait for the next line, and when they end.
 */
FRAGI_API void fragi_log_catch_up(int64_t patience_ns);

/* subject: "application/fragment.operator" or any part of it; NULL: none. */
#define fragi_log(level, subject, ...)                                                             \
	do {                                                                                       \
		if ((int)(level) >= fragi_log_threshold)                                           \
			fragi_log_write(level, LOG_TOPIC, subject, __VA_ARGS__);                   \
	} while (0)
#define log_critical(subject, ...) fragi_log(FRAGI_LOG_CRITICAL, subject, __VA_ARGS__)
#define log_error(subject, ...) fragi_log(FRAGI_LOG_ERROR, subject, __VA_ARGS__)
#define log_warn(subject, ...) fragi_log(FRAGI_LOG_WARN, subject, __VA_ARGS__)
#define log_info(subject, ...) fragi_log(FRAGI_LOG_INFO, subject, __VA_ARGS__)
#define log_debug(subject, ...) fragi_log(FRAGI_LOG_DEBUG, subject, __VA_ARGS__)
#define log_trace(subject, ...) fragi_log(FRAGI_LOG_TRACE, subject, __VA_ARGS__)

#endif
