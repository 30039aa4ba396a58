// SPDX-License-Identifier: Apache-2.0
#include <complex.h>
#include <criterion/criterion.h>
#include <string.h>

#include <base/json.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/npy.h>
#include <frag/value.h>

/* Values as JSON, and tensors as files of NumPy. */

struct point {
	double x;
	int8_t y;
};
static const struct frag_field point_fields[] = {FRAG_FIELD(struct point, x, "f64"),
						 FRAG_FIELD(struct point, y, "i8")};
static const struct frag_type point_type = {
	FRAG_TYPE_INIT, .name = "point", .size = sizeof(struct point), FRAG_FIELDS(point_fields)};
struct shape {
	struct point corners[2];
	bool is_closed;
	uint64_t id;
	float _Complex phase;
};
static const struct frag_field shape_fields[] = {
	FRAG_FIELD_ARRAY(struct shape, corners, "point", 2),
	FRAG_FIELD(struct shape, is_closed, "bool"),
	FRAG_FIELD(struct shape, id, "u64"),
	FRAG_FIELD(struct shape, phase, "complex64"),
};
static const struct frag_type shape_type = {
	FRAG_TYPE_INIT, .name = "shape", .size = sizeof(struct shape), FRAG_FIELDS(shape_fields)};

/* What a value becomes when it is read and written again; or the sentence about it. */
static const char *again(const char *type_name, const char *json)
{
	static char text[600];
	struct frag_message *message = frag_message_create();
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_type *type;
	FILE *out = fmemopen(text, sizeof(text), "w");
	const void *value;
	size_t size;
	int r;

	cr_assert_eq(frag_type_register(&point_type, NULL), 0);
	cr_assert_eq(frag_type_register(&shape_type, NULL), 0);
	type = frag_type_find(type_name);
	cr_assert_not_null(type);
	r = frag_message_read_value(message, type, json, &err);
	if (r < 0) {
		fprintf(out, "%d:%d: %s", err.line, err.column, err.text);
		cr_expect_null(frag_message_value(message, NULL, NULL));
	} else {
		cr_expect_eq(frag_message_value(message, &value, &size), type);
		cr_expect_eq(frag_value_print(type, value, size, out), 0);
	}
	fclose(out);
	frag_message_unref(message);
	return text;
}

Test(value_json, values_are_read_as_they_are_written)
{
	static const struct {
		const char *type, *json;
	} cases[] = {
		{"bool", "true"},
		{"i8", "-128"},
		{"u16", "65535"},
		{"i64", "-9223372036854775808"},
		{"u64", "18446744073709551615"},
		{"f32", "0.5"},
		{"f32", "0.100000001"}, /* digits that tell each of them from its neighbours */
		{"f32", "16777215"},
		{"f64", "0.10000000000000001"},
		{"complex128", "[1, -2.5]"},
		{"string", "\"a \\\"b\\\"\\u000a\""},
		{"i32[]", "[1, 2, 3]"},
		{"i32[]", "[]"},
		{"point[]", "[{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": 4}]"},
		{"shape", "{\"corners\": [{\"x\": 1.5, \"y\": 2}, {\"x\": -3, \"y\": -4}], "
			  "\"is_closed\": false, \"id\": 18446744073709551615, \"phase\": [0, 1]}"},
	};
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++)
		cr_expect_str_eq(again(cases[i].type, cases[i].json), cases[i].json, "got %s",
				 again(cases[i].type, cases[i].json));
	cr_expect_str_eq(again("f32", "null"), "null", "NaN");
	cr_expect_str_eq(again("point", "{y: 1, x: 2}"), "{\"x\": 2, \"y\": 1}", "any order");
}

Test(value_json, what_is_wrong_is_named_with_its_place)
{
	static const struct {
		const char *type, *json, *sentence;
	} cases[] = {
		{"bool", "yes", "1:1: yes is no bool"},
		{"i8", "128", "1:1: 128 is no i8"},
		{"u8", "-1", "1:1: -1 is no u8"},
		{"u64", "-1", "1:1: -1 is no u64"},
		{"u64", "18446744073709551616", "1:1: 18446744073709551616 is no u64"},
		{"f32", "1e39", "1:1: 1e39 is no f32"},
		{"i64", "\"1\"", "1:1: \"1\" is no i64"},
		{"i64", "1.5", "1:1: 1.5 is no i64"},
		{"i64", "null", "1:1: null is no i64"},
		{"complex64", "[1]", "1:1: a complex64 is a list of two numbers"},
		{"string", "[a]", "1:1: a list is no string"},
		{"i32[]", "5", "1:1: a i32[] is a list"},
		{"i32[]", "[1, x, y]", "1:5: x is no i32"},
		{"point", "[1, 2]", "1:1: a point is an object: {\"x\": ...}"},
		{"point", "{\"x\": 1}", "1:1: field \"y\" of point is missing"},
		{"point", "{\"x\": 1, \"y\": 2, \"yy\": 3}",
		 "1:18: point has no field \"yy\"; fields: x, y"},
		{"shape", "{corners: [{x: 1, y: 2}], is_closed: true, id: 1, phase: [0, 0]}",
		 "1:11: field \"corners\" of shape is a list of 2"},
		{"shape",
		 "{corners: [{x: 1, y: 2}, {x: 1, y: 200}], is_closed: true, id: 1, phase: [0, 0]}",
		 "1:36: 200 is no i8"},
		{"bytes", "[1]", "0:0: values of type bytes cannot be read from text"},
	};
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++)
		cr_expect_str_eq(again(cases[i].type, cases[i].json), cases[i].sentence, "got %s",
				 again(cases[i].type, cases[i].json));
	cr_expect_neq(strncmp(again("point", "{x: 1"), "0:", 2), 0, "where the text is broken");
}

/* A file in the folder of the test. */
static char *path_of(const char *name)
{
	static char path[4096];
	const char *folder = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/frag-npy-%d-%s", folder != NULL ? folder : "/tmp",
		 (int)getpid(), name);
	return path;
}

Test(npy, a_tensor_is_read_as_it_was_written)
{
	static const struct frag_dtype dtypes[] = {
		{FRAG_DTYPE_BOOL, 8, 1},   {FRAG_DTYPE_INT, 8, 1},      {FRAG_DTYPE_UINT, 16, 1},
		{FRAG_DTYPE_INT, 64, 1},   {FRAG_DTYPE_FLOAT, 16, 1},   {FRAG_DTYPE_FLOAT, 32, 1},
		{FRAG_DTYPE_FLOAT, 64, 1}, {FRAG_DTYPE_COMPLEX, 128, 1}};
	const int64_t shape[] = {2, 3, 0, 4};
	char *path = path_of("a.npy");

	for (size_t i = 0; i < FRAG_COUNT_OF(dtypes); i++) {
		for (int32_t ndim = 0; ndim <= 4; ndim++) {
			struct frag_err err = FRAG_ERR_INIT;
			struct frag_tensor *tensor, *read = NULL;
			size_t size;
			uint64_t bytes = 0;

			cr_assert_eq(frag_tensor_create(NULL, dtypes[i], ndim, shape, &tensor), 0);
			size = frag_tensor_size_bytes(tensor);
			for (size_t k = 0; k < size; k++)
				((uint8_t *)frag_tensor_writable(tensor))[k] = (uint8_t)(k % 2);
			cr_assert_eq(frag_npy_write(path, tensor, &bytes), 0);
			cr_expect_eq(bytes, size);
			cr_assert_eq(frag_npy_read(path, &read, &err), 0, "%s", err.text);
			cr_expect_eq(frag_tensor_dl(read)->ndim, ndim);
			cr_expect_eq(memcmp(frag_tensor_dl(read)->shape, shape,
					    (size_t)ndim * sizeof(shape[0])),
				     0);
			cr_expect_eq(
				memcmp(&frag_tensor_dl(read)->dtype, &dtypes[i], sizeof(dtypes[i])),
				0);
			cr_assert_eq(frag_tensor_size_bytes(read), size);
			cr_expect(size == 0 || memcmp(frag_tensor_data(read),
						      frag_tensor_data(tensor), size) == 0);
			frag_tensor_unref(read);
			frag_tensor_unref(tensor);
		}
	}
	remove(path);
}

/* The elements of a window into a larger tensor are written, without the gaps. */
Test(npy, a_strided_tensor_becomes_compact)
{
	static int16_t data[] = {1, 2, 3, 4, 5, 6};
	int64_t shape[] = {2, 2}, strides[] = {3, 1};
	const struct frag_dltensor description = {.data = data,
						  .device = {FRAG_DEVICE_CPU, 0},
						  .ndim = 2,
						  .dtype = {FRAG_DTYPE_INT, 16, 1},
						  .shape = shape,
						  .strides = strides};
	static const int16_t expected[] = {1, 2, 4, 5};
	struct frag_tensor *tensor, *read;
	char *path = path_of("b.npy");

	cr_assert_eq(frag_tensor_wrap(&description, NULL, NULL, &tensor), 0);
	cr_assert_eq(frag_npy_write(path, tensor, NULL), 0);
	cr_assert_eq(frag_npy_read(path, &read, NULL), 0);
	cr_assert_eq(frag_tensor_size_bytes(read), sizeof(expected));
	cr_expect_eq(memcmp(frag_tensor_data(read), expected, sizeof(expected)), 0);
	frag_tensor_unref(read);
	frag_tensor_unref(tensor);
	remove(path);
}

/* Writes a file of version 1 with this header and these elements, unless `begin` is given. */
static void write_file(const char *path, const char *begin, const char *header, size_t elements)
{
	FILE *out = fopen(path, "w");
	size_t length = strlen(header);

	cr_assert_not_null(out);
	if (begin != NULL) {
		fwrite(begin, 1, 12, out);
	} else {
		fwrite("\x93NUMPY\x01\x00", 1, 8, out);
		fputc((int)length, out);
		fputc(0, out);
		fputs(header, out);
	}
	for (size_t i = 0; i < elements; i++)
		fputc(0, out);
	fclose(out);
}

Test(npy, files_that_are_none_are_refused)
{
	static const struct {
		const char *begin, *header;
		size_t elements;
		const char *sentence;
	} cases[] = {
		{"PK\x03\x04 and more", "", 0, "is no .npy file; write it with numpy.save"},
		{"\x93NUMPY\x09\x01\x01\x01..", "", 0, "is of version 9 of .npy; 1 to 3 are known"},
		{"\x93NUMPY\x01\x01\x7f\x7f..", "", 0,
		 "has a header of 32639 bytes; 4096 are allowed"},
		{"\x93NUMPY\x01\x01\x7f\x00{'", "", 0, "ends within its header"},
		{NULL, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24,
		 "is big-endian; write it little-endian"},
		{NULL, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24,
		 "is in Fortran order; write it with numpy.ascontiguousarray"},
		{NULL, "{'descr': '<U4', 'fortran_order': False, 'shape': (2, 3), }", 24,
		 "has elements of type U4; use b1, i1 to i8, u1 to u8, f2 to f8, c8 or c16"},
		{NULL, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", 24,
		 "has no type of elements that can be read; structured arrays cannot"},
		{NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
		 4, "has more than 8 dimensions"},
		{NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }", 24,
		 "has no shape that can be read"},
		{NULL, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 3,
		 "has 3 bytes of elements; its header says 24"},
		{NULL,
		 "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0,
		 "has a type or shape that tensors do not have"},
		{NULL, "{'descr': '<i3', 'fortran_order': False, 'shape': (2,), }", 6,
		 "has a type or shape that tensors do not have"},
		{NULL, "{}", 6, "has no type of elements that can be read"},
	};
	char *path = path_of("c.npy");

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_tensor *tensor = NULL;

		write_file(path, cases[i].begin, cases[i].header, cases[i].elements);
		cr_expect_eq(frag_npy_read(path, &tensor, &err), -EINVAL, "%zu", i);
		cr_expect_null(tensor);
		cr_expect_not_null(strstr(err.text, cases[i].sentence), "%zu: %s", i, err.text);
	}
	remove(path);
	cr_expect_eq(frag_npy_read(path, &(struct frag_tensor *){NULL}, NULL), -ENOENT);
}

/* Of JSON that anybody may have sent. */
Test(value_json, a_text_is_one_value_or_none)
{
	static const char *const right[] = {
		"0",
		"-0",
		"12",
		"-1.5e+7",
		"1E9",
		"true",
		"null",
		"[]",
		" [1, 2] ",
		"{}",
		"\"\"",
		"{\"a\": [false, {\"b\": \"c\"}]}",
		"\"\\n\\u00e9\"",
		"\"\xc3\xa9\"",
		"[[[[]]]]",
		"{\"a\" : 1 , \"b\":2}",
	};
	static const char *const wrong[] = {
		"",     " ",     "01",         "1.",    ".5",        "-",        "1e",
		"tru",  "truex", "[",          "[1",    "[1,",       "[1,]",     "[1 2]",
		"[,1]", "]",     "{",          "{1:2}", "{\"a\"}",   "{\"a\":}", "{\"a\":1,}",
		"\"",   "\"a",   "\"\\x\"",    "\"\\",  "\"\\u12\"", "\"\n\"",   "\"\xff\"",
		"1 2",  "{} {}", "1,\"x\": 2", "nan",
	};
	char deep[2 * FRAGI_JSON_DEPTH_MAX + 3];

	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		cr_expect(fragi_json_is_value(right[i]), "%s", right[i]);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_not(fragi_json_is_value(wrong[i]), "%s", wrong[i]);
	for (int depth = FRAGI_JSON_DEPTH_MAX; depth <= FRAGI_JSON_DEPTH_MAX + 1; depth++) {
		memset(deep, '[', (size_t)depth);
		memset(deep + depth, ']', (size_t)depth);
		deep[2 * depth] = '\0';
		cr_expect_eq(fragi_json_is_value(deep), depth == FRAGI_JSON_DEPTH_MAX, "%d", depth);
	}
}
