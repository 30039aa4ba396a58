// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logger/logger.h"

/* In place of the library's: no graph has made the logger. */
const char *frag_data_logger_suffix(const struct frag_resource *logger)
{
	(void)logger;
	return ".one";
}

static const struct frag_data_logger_type *const type = &logger_basic_csv_type;

/* Where a parameter lies in the logger's state. */
static void *parameter(void *state, const char *name)
{
	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0)
			return (char *)state + type->params[i].offset;
	cr_assert_fail("no parameter %s", name);
	return NULL;
}

struct row {
	int64_t a;
	double two[2];
	int32_t three[3];
	float one;
};
static const struct frag_field fields[] = {
	FRAG_FIELD(struct row, a, "i64"),
	FRAG_FIELD_ARRAY(struct row, two, "f64", 2),
	FRAG_FIELD_ARRAY(struct row, three, "i32", 3),
	FRAG_FIELD(struct row, one, "f32"),
};
static const struct frag_type row_type = {
	FRAG_TYPE_INIT,
	.name = "csv_row",
	.size = sizeof(struct row),
	FRAG_FIELDS(fields),
};

/* RFC 4180: what separates cells or rows, and quotes, stands between quotes. */
Test(ops_logger, cells_are_quoted_where_they_must_be)
{
	const char *columns[] = {"a",     "b,c",          "d\ne", "f\rg",  "\"h\"",
				 "",      "time_unix_ns", "id",   "io",    "number",
				 "value", "of",           "two",  "three", "one"};
	static const char expected[] = "a,\"b,c\",\"d\ne\",\"f\rg\",\"\"\"h\"\"\",,"
				       "time_unix_ns,id,io,number,value,of,two,three,one\n"
				       ",,,,,,17,\"x.rx.in:1,2\",input,3,\"say, you\",23,,,\n"
				       ",,,,,,18,x.tx.out,output,4,,,,,\n"
				       "7,,,,,,19,x.tx.out,output,5,\"{\"\"a\"\": 7, "
				       "\"\"two\"\": [1, 2], \"\"three\"\": [3, 4, 5], "
				       "\"\"one\"\": 2.5}\",,,,2.5\n";
	void *state = calloc(1, type->state_size);
	char path[] = "/tmp/frag-csv-XXXXXX", file[sizeof(path) + 4], text[512] = "";
	struct frag_message *m = frag_message_create(), *none = frag_message_create();
	struct frag_message *row = frag_message_create();
	const struct row value = {7, {1, 2}, {3, 4, 5}, 2.5f};
	struct frag_metadata *metadata = NULL;
	struct frag_log_entry entry = {.struct_size = sizeof(entry),
				       .id = "x.rx.in:1,2",
				       .dir = FRAG_IN,
				       .message = m,
				       .time_unix_ns = 17,
				       .number = 3};
	struct frag_err err = FRAG_ERR_INIT;
	FILE *written;

	close(mkstemp(path));
	snprintf(file, sizeof(file), "%s.one", path);
	*(const char **)parameter(state, "path") = path;
	*(struct frag_string_list *)parameter(state, "columns") =
		(struct frag_string_list){columns, FRAG_COUNT_OF(columns)};
	cr_assert_eq(frag_message_set_value(m, &frag_type_string, "say, you", 8, NULL), 0);
	cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &metadata), 0);
	cr_assert_eq(frag_metadata_set_i64(metadata, "of", 23), 0);
	entry.metadata = metadata;
	cr_assert_eq(type->start(state, NULL, &err), 0, "%s", err.text);
	cr_expect_eq(type->log(state, &entry), 0);
	entry = (struct frag_log_entry){.struct_size = sizeof(entry),
					.id = "x.tx.out",
					.dir = FRAG_OUT,
					.message = none,
					.time_unix_ns = 18,
					.number = 4};
	cr_expect_eq(type->log(state, &entry), 0);
	/* Of a value with fields those that are one number. */
	cr_assert_eq(frag_type_register(&row_type, &err), 0, "%s", err.text);
	cr_assert_eq(frag_message_set_value(row, &row_type, &value, sizeof(value), NULL), 0);
	entry.message = row;
	entry.time_unix_ns = 19;
	entry.number = 5;
	cr_expect_eq(type->log(state, &entry), 0);
	cr_expect_eq(type->stop(state), 0);
	written = fopen(file, "r");
	cr_assert_not_null(written, "%s", file);
	cr_expect_eq(fread(text, 1, sizeof(text) - 1, written), sizeof(expected) - 1);
	fclose(written);
	cr_expect_str_eq(text, expected, "%s", text);
	unlink(file);
	unlink(path);
	frag_metadata_destroy(metadata);
	frag_message_unref(row);
	frag_message_unref(none);
	frag_message_unref(m);
	free(state);
}
