// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

#include "basic/basic.h"
#include "logger/logger.h"

Test(ops_basic, ping_tx_counts_from_one)
{
	struct frag_harness *h = frag_harness_create(&basic_ping_tx_type, FRAG_NO_ARGS, NULL);

	cr_assert_not_null(h);
	for (int64_t i = 1; i <= 3; i++) {
		int64_t x = 0;

		cr_assert_eq(frag_harness_ready(h), 1);
		cr_assert_eq(frag_harness_tick(h), 0);
		cr_assert_eq(frag_harness_take_i64(h, "out", &x), 0);
		cr_assert_eq(x, i);
	}
	frag_harness_destroy(h);
}

Test(ops_basic, ping_rx_waits_for_a_number)
{
	struct frag_harness *h = frag_harness_create(&basic_ping_rx_type, FRAG_NO_ARGS, NULL);

	cr_assert_not_null(h);
	cr_assert_eq(frag_harness_ready(h), 0);
	cr_assert_eq(frag_harness_give_i64(h, "in", 7), 0);
	cr_assert_eq(frag_harness_ready(h), 1);
	cr_assert_eq(frag_harness_tick(h), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "without a message nothing happens");
	frag_harness_destroy(h);
}

Test(ops_basic, forward_passes_the_same_message)
{
	struct frag_harness *h = frag_harness_create(&basic_forward_type, FRAG_NO_ARGS, NULL);
	struct frag_message *in = frag_message_create(), *out = NULL;
	const void *value;
	size_t size;

	cr_assert(h != NULL && in != NULL);
	cr_assert_eq(
		frag_message_set_value(in, &frag_type_string, "as it is", strlen("as it is"), NULL),
		0);
	cr_assert_eq(frag_harness_give(h, "in", in), 0);
	cr_assert_eq(frag_harness_tick(h), 0);
	cr_assert_eq(frag_harness_take(h, "out", &out), 0);
	cr_expect_eq(out, in, "no copy");
	cr_assert_eq(frag_message_value(out, &value, &size), &frag_type_string);
	cr_assert_eq(size, strlen("as it is"));
	cr_assert_eq(memcmp(value, "as it is", size), 0);
	frag_message_unref(out);
	frag_harness_destroy(h);
}

static struct frag_message *one_tensor(const struct frag_arg *args)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(&basic_ping_tensor_tx_type, args, &err);
	struct frag_message *out = NULL;

	cr_assert_not_null(h, "%s", err.text);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "out", &out), 0);
	frag_harness_destroy(h);
	return out;
}

Test(ops_basic, ping_tensor_tx_default_is_holoscans)
{
	struct frag_message *m = one_tensor(FRAG_NO_ARGS);
	const struct frag_tensor *t = frag_message_tensor(m, "tensor");
	const struct frag_dltensor *dl;

	cr_assert_not_null(t);
	dl = frag_tensor_dl(t);
	cr_assert_eq(dl->ndim, 2);
	cr_assert_eq(dl->shape[0], 32);
	cr_assert_eq(dl->shape[1], 64);
	cr_assert_eq(dl->dtype.code, FRAG_DTYPE_UINT);
	cr_assert_eq(dl->dtype.bits, 8);
	cr_assert_eq(((const uint8_t *)frag_tensor_data(t))[2047], 1,
		     "bytes of the first tensor are 1");
	frag_message_unref(m);
}

Test(ops_basic, ping_tensor_tx_takes_its_shape)
{
	struct frag_message *m = one_tensor(
		FRAG_ARGS({"batch_size", "2"}, {"rows", "3"}, {"columns", "0"}, {"channels", "4"},
			  {"data_type", "complex<double>"}, {"tensor_name", "z"}));
	const struct frag_dltensor *dl = frag_tensor_dl(frag_message_tensor(m, "z"));

	cr_assert_eq(dl->ndim, 3);
	cr_assert(dl->shape[0] == 2 && dl->shape[1] == 3 && dl->shape[2] == 4);
	cr_assert_eq(dl->dtype.code, FRAG_DTYPE_COMPLEX);
	cr_assert_eq(dl->dtype.bits, 128);
	frag_message_unref(m);
}

Test(ops_basic, ping_tensor_tx_refuses_what_it_cannot)
{
	static const struct {
		const char *name, *text, *says;
	} cases[] = {
		{"storage_type", "gpu", "storage_type"},
		{"data_type", "uint9_t", "data_type"},
		{"rows", "0", "rows"},
		{"columns", "-1", "columns"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h =
			frag_harness_create(&basic_ping_tensor_tx_type,
					    FRAG_ARGS({cases[i].name, cases[i].text}), &err);

		cr_assert_null(h, "%s: %s", cases[i].name, cases[i].text);
		cr_assert(strstr(err.text, cases[i].says) != NULL, "said: %s", err.text);
	}
}

/* What ping_tensor_tx would send as the message of this number, and one byte that differs. */
Test(ops_basic, ping_tensor_rx_verifies_every_byte)
{
	struct frag_harness *h = frag_harness_create(&basic_ping_tensor_rx_type,
						     FRAG_ARGS({"verify", "true"}), NULL);
	const int64_t shape[] = {3, 4};

	cr_assert_not_null(h);
	for (int n = 1; n <= 3; n++) {
		struct frag_tensor *t;

		cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_INT, 16, 1}, 2,
						shape, &t),
			     0);
		memset(frag_tensor_writable(t), n, 24);
		if (n == 3)
			((char *)frag_tensor_writable(t))[23] = 7;
		cr_assert_eq(frag_harness_give_tensor(h, "in", "t", t), 0);
		cr_expect_eq(frag_harness_tick(h), n == 3 ? -EBADMSG : 0);
	}
	cr_expect(strstr(frag_harness_error(h),
			 "byte 23 of tensor 't' of message 3 is 7 instead of 3"),
		  "%s", frag_harness_error(h));
	frag_harness_destroy(h);
}

Test(ops_basic, ping_tensor_rx_takes_several_tensors)
{
	struct frag_harness *h =
		frag_harness_create(&basic_ping_tensor_rx_type, FRAG_NO_ARGS, NULL);
	struct frag_message *m = frag_message_create();
	int64_t shape[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	cr_assert(h != NULL && m != NULL);
	for (int32_t ndim = 0; ndim <= 8; ndim += 8) {
		struct frag_tensor *t;

		cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1},
						ndim, shape, &t),
			     0);
		cr_assert_eq(frag_message_add_tensor(m, ndim == 0 ? "" : "eight", t), 0);
	}
	cr_assert_eq(frag_harness_give(h, "in", m), 0);
	cr_assert_eq(frag_harness_tick(h), 0);
	frag_harness_destroy(h);
}

/* A logger of a file, called as a run calls it. */

struct point {
	int64_t x;
	double y[2];
};
static const struct frag_field point_fields[] = {FRAG_FIELD(struct point, x, "i64"),
						 FRAG_FIELD_ARRAY(struct point, y, "f64", 2)};
static const struct frag_type point_type = {FRAG_TYPE_INIT, .name = "logged_point",
					    .size = sizeof(struct point),
					    FRAG_FIELDS(point_fields)};
static char path[200];
static union {
	char bytes[256];
	max_align_t aligned;
} logger;

static void *param(const struct frag_data_logger_type *type, const char *name)
{
	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0)
			return logger.bytes + type->params[i].offset;
	cr_assert_fail("no parameter %s", name);
	return NULL;
}

static void start_logger(const struct frag_data_logger_type *type, uint64_t max_bytes)
{
	static const char *const columns[] = {
		"time_unix_ns", "id", "io", "number", "value", "x", "y", "a key", "none"};
	const char *tmp = getenv("TMPDIR");

	cr_assert_leq(type->state_size, sizeof(logger));
	memset(&logger, 0, sizeof(logger));
	snprintf(path, sizeof(path), "%s/frag-logger-XXXXXX", tmp != NULL ? tmp : "/tmp");
	close(mkstemp(path));
	*(const char **)param(type, "path") = path;
	*(uint64_t *)param(type, "max_bytes") = max_bytes;
	*(struct frag_string_list *)param(type, "columns") = (struct frag_string_list){columns, 9};
	cr_assert_eq(type->start(logger.bytes, NULL, NULL), 0);
}

static void end_logger(const struct frag_data_logger_type *type, const char *text)
{
	char all[1000] = "";
	FILE *file;

	cr_expect_eq(type->stop(logger.bytes), 0);
	file = fopen(path, "r");
	cr_assert_not_null(file);
	all[fread(all, 1, sizeof(all) - 1, file)] = '\0';
	fclose(file);
	unlink(path);
	cr_expect_str_eq(all, text);
}

#define HEADER "time_unix_ns,id,io,number,value,x,y,a key,none\n"
#define ROW1 "17,f.o.p,input,3,5,,,\"a, c\",\n"
#define ROW2 "18,\"f,o.p:1\",output,4,24 bytes,-7,,,\n"

Test(ops_loggers, a_row_has_its_columns_and_the_file_its_limit)
{
	const struct frag_data_logger_type *const types[] = {&logger_basic_csv_type,
							     &logger_async_csv_type};
	const uint64_t first = sizeof(HEADER) - 1 + sizeof(ROW1) - 1;
	const uint64_t limits[] = {0, first + 1, first, 1};
	struct frag_message *number = frag_message_create(), *point = frag_message_create();
	struct frag_metadata *metadata;
	struct frag_log_entry one = {.id = "f.o.p",
				     .dir = FRAG_IN,
				     .message = number,
				     .time_unix_ns = 17,
				     .number = 3},
			      two = {.id = "f,o.p:1",
				     .dir = FRAG_OUT,
				     .message = point,
				     .time_unix_ns = 18,
				     .number = 4};

	cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &metadata), 0);
	cr_assert_eq(frag_metadata_set_string(metadata, "a key", "a, c"), 0);
	one.metadata = metadata;
	cr_assert_eq(frag_message_set_value(number, &frag_type_i64, &(int64_t){5}, 8, NULL), 0);
	cr_assert_eq(frag_message_set_value(point, &point_type, &(struct point){-7, {0.5, 2}},
					    sizeof(struct point), NULL),
		     0);
	for (size_t i = 0; i < FRAG_COUNT_OF(limits); i++) {
		const struct frag_data_logger_type *type = types[i % 2];

		start_logger(type, limits[i]);
		cr_expect_eq(type->log(logger.bytes, &one), i < 3 ? 0 : -EFBIG);
		cr_expect_eq(type->log(logger.bytes, &two), i < 2 ? 0 : -EFBIG);
		if (i == 1)
			cr_expect_eq(type->log(logger.bytes, &two), -EFBIG);
		end_logger(type, i < 2 ? HEADER ROW1 ROW2 : i < 3 ? HEADER ROW1 : HEADER);
	}
	frag_metadata_destroy(metadata);
	frag_message_unref(number);
	frag_message_unref(point);
}

/* Names that hold what separates cells, or ends rows, are quoted. */
Test(ops_loggers, each_name_that_needs_quotes_has_them)
{
	static const char *const columns[] = {"plain", "a,b", "a\"b", "a\nb", "a\rb", ""};

	start_logger(&logger_basic_csv_type, 0);
	cr_assert_eq(logger_basic_csv_type.stop(logger.bytes), 0);
	*(struct frag_string_list *)param(&logger_basic_csv_type, "columns") =
		(struct frag_string_list){columns, FRAG_COUNT_OF(columns)};
	cr_assert_eq(logger_basic_csv_type.start(logger.bytes, NULL, NULL), 0);
	end_logger(&logger_basic_csv_type, "plain,\"a,b\",\"a\"\"b\",\"a\nb\",\"a\rb\",\n");
}

/* A tensor that cannot be written fails the message, and those beside it are written. */
Test(ops_loggers, each_tensor_is_written_and_the_first_failure_reported)
{
	static const char *const names[] = {"a", "b", "c"};
	const struct frag_data_logger_type *type = &logger_basic_npy_type;
	const char *tmp = getenv("TMPDIR");
	char folder[200], file[260];

	snprintf(folder, sizeof(folder), "%s/frag-npy-XXXXXX", tmp != NULL ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
	memset(&logger, 0, sizeof(logger));
	*(const char **)param(type, "folder") = folder;
	cr_assert_eq(type->start(logger.bytes, NULL, NULL), 0);
	for (size_t bad = 0; bad <= FRAG_COUNT_OF(names); bad++) { /* the last time none is */
		struct frag_message *message = frag_message_create();
		struct frag_log_entry entry = {
			.id = "f.o.p", .message = message, .number = bad, .has_content = 1};

		for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
			cr_assert_eq(frag_message_add_tensor(message, names[i],
							     numbers(1, 1, (float[]){1})),
				     0);
			snprintf(file, sizeof(file), "%s/f.o.p.%s.%08zu.npy", folder, names[i],
				 bad);
			if (i == bad)
				cr_assert_eq(mkdir(file, 0700), 0);
		}
		cr_expect_eq(type->log(logger.bytes, &entry) < 0, bad < FRAG_COUNT_OF(names),
			     "tensor %zu", bad);
		for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
			snprintf(file, sizeof(file), "%s/f.o.p.%s.%08zu.npy", folder, names[i],
				 bad);
			cr_expect_eq(i == bad ? rmdir(file) : unlink(file), 0, "%s", file);
		}
		frag_message_unref(message);
	}
	cr_expect_eq(rmdir(folder), 0, "nothing else is left in it");
}
