// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "logger.h"

/* Logs messages as lines of the log, as Holoscan's BasicConsoleLogger does. */
static int console_log(void *state, const struct frag_log_entry *entry)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	(void)state;
	if (out == NULL)
		return -ENOMEM;
	r = frag_log_entry_print(entry, out);
	if (fclose(out) != 0)
		r = -ENOMEM;
	if (r == 0)
		frag_log_entry_log(entry, text);
	free(text);
	return r;
}

const struct frag_data_logger_type logger_basic_console_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "basic_console_logger",
	.headline = "Logs messages as lines of the log",
	.log = console_log,
};

const struct frag_data_logger_type logger_async_console_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_console_logger",
	.headline = "Logs messages as lines of the log, on threads of its own",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.log = console_log,
};
