/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_LOG_H
#define FRAGI_BASE_LOG_H

#include <stdbool.h>

#include <base/diag.h>

/*
 * Log lines have the form `TIME LEVEL topic subject: text` and go to stderr, each in one write(2).
 * FRAG_LOG_LEVEL sets the lowest level that is logged (trace, debug, info, warn, error, off;
 * default info), and -v and -q change it. Each file has one topic, a short word: `#define LOG_TOPIC
 * "sched"` before this header.
 */
enum fragi_log_level {
	FRAGI_LOG_TRACE,
	FRAGI_LOG_DEBUG,
	FRAGI_LOG_INFO,
	FRAGI_LOG_WARN,
	FRAGI_LOG_ERROR,
	FRAGI_LOG_OFF,
};

/* Lines below this level are not formatted. Constant once fragi_log_init was called. */
FRAGI_API extern int fragi_log_threshold;

/*
 * Sets the threshold from FRAG_LOG_LEVEL.
 * - verbosity: levels to go down (each -v adds one, each -q subtracts one)
 */
FRAGI_API void fragi_log_init(int verbosity);
FRAGI_API const char *fragi_log_level_name(int level); /* "trace" ... "off" */
FRAGI_API void fragi_log_write(enum fragi_log_level level, const char *topic, const char *subject,
			       const char *format, ...) FRAG_PRINTF(4, 5);

/* subject: "application/fragment/operator" or any part of it; NULL: none. */
#define fragi_log(level, subject, ...)                                                             \
	do {                                                                                       \
		if ((int)(level) >= fragi_log_threshold)                                           \
			fragi_log_write(level, LOG_TOPIC, subject, __VA_ARGS__);                   \
	} while (0)
#define log_error(subject, ...) fragi_log(FRAGI_LOG_ERROR, subject, __VA_ARGS__)
#define log_warn(subject, ...) fragi_log(FRAGI_LOG_WARN, subject, __VA_ARGS__)
#define log_info(subject, ...) fragi_log(FRAGI_LOG_INFO, subject, __VA_ARGS__)
#define log_debug(subject, ...) fragi_log(FRAGI_LOG_DEBUG, subject, __VA_ARGS__)
#define log_trace(subject, ...) fragi_log(FRAGI_LOG_TRACE, subject, __VA_ARGS__)

#endif
