// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucs/debug/log_def.h>

#define LOG_TOPIC "ucx"
#include <base/log.h>
#include <base/sentence.h>

#include "module.h"

/*
 * What UCX prints has a form of its own, with names of its source files, and the failures behind it
 * are reported by frag anyway. So its lines are logged at level debug, and the last error becomes
 * the reason in the sentence of a failure. If the user sets UCX_LOG_LEVEL, UCX prints as it always
 * does.
 */
static _Thread_local char last_error[400];

static ucs_log_func_rc_t take_line(const char *file, unsigned int line, const char *function,
				   ucs_log_level_t level,
				   const ucs_log_component_config_t *component, const char *message,
				   va_list args) FRAG_PRINTF(6, 0);

static ucs_log_func_rc_t take_line(const char *file, unsigned int line, const char *function,
				   ucs_log_level_t level,
				   const ucs_log_component_config_t *component, const char *message,
				   va_list args)
{
	char text[sizeof(last_error)];

	(void)function;
	(void)component;
	fragi_sentence_of(text, sizeof(text), message, args);
	if (level == UCS_LOG_LEVEL_FATAL) /* UCX aborts the process next */
		log_error(NULL, "UCX cannot go on: %s (%s:%u)", text, file, line);
	else
		log_debug(NULL, "UCX: %s (%s:%u)", text, file, line);
	if (level <= UCS_LOG_LEVEL_ERROR)
		memcpy(last_error, text, sizeof(text));
	return UCS_LOG_FUNC_RC_STOP;
}

void ucx_log_begin(struct ucx_transport *transport)
{
	const char *level = getenv("UCX_LOG_LEVEL");

	last_error[0] = '\0';
	transport->takes_log = level == NULL || strcmp(level, UCX_LOG_LEVEL_OF_FRAG) == 0;
	if (transport->takes_log)
		ucs_log_push_handler(take_line);
}

void ucx_log_end(const struct ucx_transport *transport)
{
	if (transport->takes_log)
		ucs_log_pop_handler();
}

const char *ucx_reason(ucs_status_t status)
{
	return last_error[0] != '\0' ? last_error : ucs_status_string(status);
}
