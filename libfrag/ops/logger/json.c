// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

/* Makes the folder of the file, if it is missing; what else is wrong shows when it is opened. */
static void make_folder(const char *path)
{
	char folder[PATH_MAX];
	char *end;

	snprintf(folder, sizeof(folder), "%s", path);
	end = strrchr(folder, '/');
	if (end == NULL || end == folder)
		return;
	*end = '\0';
	(void)mkdir(folder, 0777);
}

int logger_open(const char *given, const char *folder, const struct frag_resource *logger,
		FILE **out, struct frag_err *err)
{
	const char *name = strrchr(given, '/');
	char path[PATH_MAX];
	int r;

	name = name != NULL ? name + 1 : given;
	if (snprintf(path, sizeof(path), "%.*s%s%s%s", (int)(name - given), given, folder, name,
		     frag_data_logger_suffix(logger)) >= (int)sizeof(path))
		return frag_err_set(err, -ENAMETOOLONG, "path is longer than a file's can be");
	make_folder(given);
	make_folder(path);
	r = frag_output_open(path, out);
	if (r < 0)
		return frag_err_set(err, r, "cannot write %s: %s; name another file", path,
				    frag_strerror(r));
	setvbuf(*out, NULL, _IOLBF, 0); /* whole lines, also if the process is killed */
	return 0;
}

static int json_start(void *state, const struct frag_resource *logger, struct frag_err *err)
{
	struct json *json = state;

	return logger_open(json->path, "", logger, &json->file, err);
}

static int json_log(void *state, const struct frag_log_entry *entry)
{
	struct json *json = state;
	long at = json->max_bytes > 0 ? ftell(json->file) : 0;
	int r;

	if (at > 0 && (uint64_t)at >= json->max_bytes)
		return -EFBIG;
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
