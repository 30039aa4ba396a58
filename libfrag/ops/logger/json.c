// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include "logger.h"

/* Writes messages as JSON, one object a line. */
struct json {
	/* parameters */
	const char *path;
	uint64_t max_bytes;

	FILE *file;
};

static const struct frag_param json_params[] = {
	FRAG_PARAM_PATH(struct json, path, NULL, .headline = "File; what it held is lost",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_SIZE(struct json, max_bytes, 0,
			.headline = "Bytes after which no more is written; 0: no limit"),
};

static int json_start(void *state, const struct frag_resource *logger, struct frag_err *err)
{
	struct json *json = state;

	return logger_open(json->path, "", logger, &json->file, err);
}

static int json_log(void *state, const struct frag_log_entry *entry)
{
	struct json *json = state;
	int r = logger_check_room(json->file, json->max_bytes);

	if (r == 0)
		r = frag_log_entry_print_json(entry, json->file);
	if (r == 0 && fputc('\n', json->file) == EOF)
		r = -EIO;
	return r;
}

static int json_stop(void *state)
{
	struct json *json = state;

	return fclose(json->file) != 0 ? -errno : 0;
}

const struct frag_data_logger_type logger_basic_json_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "basic_json_logger",
	.headline = "Writes messages to a file, a JSON object a line",
	.state_size = sizeof(struct json),
	FRAG_PARAMS(json_params),
	.start = json_start,
	.log = json_log,
	.stop = json_stop,
};

const struct frag_data_logger_type logger_async_json_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_json_logger",
	.headline = "Writes messages to a file, a JSON object a line, on threads of its own",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.state_size = sizeof(struct json),
	FRAG_PARAMS(json_params),
	.start = json_start,
	.log = json_log,
	.stop = json_stop,
};
