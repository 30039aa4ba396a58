// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "logger.h"

/*
 * Writes messages as rows of comma-separated values (RFC 4180), under a row with the names of
 * columns.
 * Source: Holoscan SDK, CsvDataExporter.
 */
struct csv {
	/* parameters */
	const char *path;
	struct frag_string_list columns;
	bool new_folder;
	uint64_t max_bytes;

	FILE *file;
};

static const struct frag_param csv_params[] = {
	FRAG_PARAM_PATH(struct csv, path, NULL, .headline = "File; what it held is lost",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_STRING_LIST(
		struct csv, columns, "[time_unix_ns, id, number, value]",
		.headline =
			"time_unix_ns, id, io, number, value, or a field of the value, or a key of the metadata"),
	FRAG_PARAM_BOOL(
		struct csv, new_folder, false,
		.headline =
			"Put the file into a folder of its own, named by the time of the start"),
	FRAG_PARAM_SIZE(struct csv, max_bytes, 0,
			.headline = "Bytes after which no more is written; 0: no limit"),
};

static void put_cell(FILE *file, const char *text)
{
	bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;

	if (is_quoted)
		fputc('"', file);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	if (is_quoted)
		fputc('"', file);
}

static int csv_start(void *state, const struct frag_resource *logger, struct frag_err *err)
{
	struct csv *csv = state;
	char folder[32] = "";
	time_t now = time(NULL);
	struct tm local;
	int r;

	if (csv->new_folder && localtime_r(&now, &local) != NULL)
		strftime(folder, sizeof(folder), "%Y%m%d%H%M%S/", &local);
	r = logger_open(csv->path, folder, logger, &csv->file, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < csv->columns.count; i++) {
		fputs(i > 0 ? "," : "", csv->file);
		put_cell(csv->file, csv->columns.items[i]);
	}
	fputc('\n', csv->file);
	return 0;
}

/* A value in one cell: a text without its quotes, all else as JSON. */
static int put_value(FILE *file, const struct frag_type *type, const void *value, size_t size)
{
	char *text = NULL, *end;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int r = out != NULL ? frag_value_print(type, value, size, out) : -ENOMEM;

	if (out != NULL && fclose(out) != 0)
		r = -ENOMEM;
	if (r == 0 && text[0] == '"' && strchr(text, '\\') == NULL) {
		end = text + length - 1;
		*end = '\0';
		put_cell(file, text + 1);
	} else if (r == 0) {
		put_cell(file, text);
	}
	free(text);
	return r;
}

static int put_field(FILE *file, const struct frag_log_entry *entry, const char *name)
{
	const void *value;
	size_t size;
	const struct frag_type *type = frag_message_value(entry->message, &value, &size), *of_field;

	for (uint32_t i = 0; type != NULL && i < type->field_count; i++) {
		const struct frag_field *field = &type->fields[i];

		if (strcmp(field->name, name) != 0 || field->count != 1)
			continue;
		of_field = frag_type_find(field->type);
		return of_field != NULL
			       ? put_value(file, of_field, (const char *)value + field->offset,
					   field->size)
			       : 0;
	}
	if (entry->metadata != NULL &&
	    frag_metadata_get(entry->metadata, name, &type, &value, &size) == 0)
		return put_value(file, type, value, size);
	return 0;
}

static int put_column(FILE *file, const struct frag_log_entry *entry, const char *name)
{
	const struct frag_type *type;
	const void *value;
	size_t size;

	if (strcmp(name, "time_unix_ns") == 0)
		fprintf(file, "%" PRId64, entry->time_unix_ns);
	else if (strcmp(name, "id") == 0)
		put_cell(file, entry->id);
	else if (strcmp(name, "io") == 0)
		fputs(entry->dir == FRAG_IN ? "input" : "output", file);
	else if (strcmp(name, "number") == 0)
		fprintf(file, "%" PRIu64, entry->number);
	else if (strcmp(name, "value") != 0)
		return put_field(file, entry, name);
	else if ((type = frag_message_value(entry->message, &value, &size)) != NULL)
		return put_value(file, type, value, size);
	return 0;
}

static int csv_log(void *state, const struct frag_log_entry *entry)
{
	struct csv *csv = state;
	int r = logger_check_room(csv->file, csv->max_bytes);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < csv->columns.count; i++) {
		fputs(i > 0 ? "," : "", csv->file);
		r = put_column(csv->file, entry, csv->columns.items[i]);
	}
	if (fputc('\n', csv->file) == EOF || ferror(csv->file) != 0)
		r = -EIO;
	return r;
}

static int csv_stop(void *state)
{
	struct csv *csv = state;

	return fclose(csv->file) != 0 ? -errno : 0;
}

const struct frag_data_logger_type logger_basic_csv_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "basic_csv_logger",
	.headline = "Writes messages to a file, a row of comma-separated values each",
	.state_size = sizeof(struct csv),
	FRAG_PARAMS(csv_params),
	.start = csv_start,
	.log = csv_log,
	.stop = csv_stop,
};

const struct frag_data_logger_type logger_async_csv_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_csv_logger",
	.headline =
		"Writes messages to a file, a row of comma-separated values each, on threads of its own",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.state_size = sizeof(struct csv),
	FRAG_PARAMS(csv_params),
	.start = csv_start,
	.log = csv_log,
	.stop = csv_stop,
};
