// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fragctl/test.h>

/* How `fragctl test` compares what a port has emitted with what was expected. */

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "we");

	cr_assert_not_null(out);
	fputs(text, out);
	fclose(out);
}

/* "1 value: 5|6; 2 message: a|-" */
static void compare(const char *expected, const char *got, double tolerance, char out[512])
{
	char expected_path[64], got_path[64];
	struct frag_err err = FRAG_ERR_INIT;
	struct ctl_differences all;
	size_t used = 0;

	snprintf(expected_path, sizeof(expected_path), "/tmp/compare.%d.e", (int)getpid());
	snprintf(got_path, sizeof(got_path), "/tmp/compare.%d.g", (int)getpid());
	write_file(expected_path, expected);
	write_file(got_path, got);
	out[0] = '\0';
	cr_expect_eq(ctl_compare(expected_path, got_path, tolerance, &all, &err), 0, "%s",
		     err.text);
	for (size_t i = 0; i < all.count && used < 500; i++)
		used += (size_t)snprintf(out + used, 512 - used, "%s%zu %s: %s|%s",
					 i > 0 ? "; " : "", all.items[i].message,
					 all.items[i].field,
					 all.items[i].expected ? all.items[i].expected : "-",
					 all.items[i].got ? all.items[i].got : "-");
	ctl_differences_fini(&all);
	unlink(expected_path);
	unlink(got_path);
}

Test(compare, each_field_of_a_message)
{
	static const struct {
		const char *expected, *got, *differs;
	} rows[] = {
		{"5ms i64 3\n", "5ms i64 3\n", ""},
		{"- i64 3\n", "7ms i64 3\n", ""},
		{"5ms i64 3\n", "6ms i64 3\n", "1 time: 5ms|6ms"},
		/* units, each against the next smaller one */
		{"5s i64 3\n", "5000ms i64 3\n", ""},
		{"5ms i64 3\n", "5000us i64 3\n", ""},
		{"5us i64 3\n", "5000ns i64 3\n", ""},
		{"5us i64 3\n", "5001ns i64 3\n", "1 time: 5us|5001ns"},
		{"5s i64 3\n", "5001ms i64 3\n", "1 time: 5s|5001ms"},
		/* the first field that differs is named, and every message is compared */
		{"5ms i64 3\n", "6ms f64 4\n", "1 type: i64|f64"},
		{"5ms i64 3\n", "6ms i64 4\n", "1 value: 3|4"},
		{"- i64 3\n- i64 4\n- i64 5\n", "- i64 0\n- i64 4\n- i64 6\n",
		 "1 value: 3|0; 3 value: 5|6"},
		{"- i64 3\n# no message\n\n- i64 4\n", "- i64 3\n- i64 4\n", ""},
		{"- i64 3\n- i64 4\n", "- i64 3\n", "2 message: - i64 4|-"},
		{"- i64 3\n", "- i64 3\n- i64 4\n", "2 message: -|- i64 4"},
		/* of floating-point numbers alone */
		{"- f64 1\n", "- f64 1.5\n", ""},
		{"- f64 1\n", "- f64 0.5\n", ""},
		{"- f64 1\n", "- f64 1.625\n", "1 value: 1|1.625"},
		{"- f32 1\n", "- f32 1.5\n", ""},
		{"- i64 1\n", "- i64 1.5\n", "1 value: 1|1.5"},
		{"- string 1\n", "- string 1.5\n", "1 value: 1|1.5"},
	};
	char differs[512];

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		compare(rows[i].expected, rows[i].got, 0.5, differs);
		cr_expect_str_eq(differs, rows[i].differs, "%zu", i);
	}
}

Test(compare, each_leaf_of_an_object)
{
	static const struct {
		const char *expected, *got, *differs;
	} rows[] = {
		{"{\"a\": 1, \"b\": [2, 3]}", "{\"b\": [2, 3], \"a\": 1}", ""},
		{"{\"a\": 1}", "{\"a\": 1.5}", ""},
		{"{\"a\": 1}", "{\"a\": 1.625}", "1 value.a: 1|1.625"},
		{"{\"a\": \"1\"}", "{\"a\": \"1.5\"}", "1 value.a: 1|1.5"},
		{"{\"a\": 1, \"b\": 2}", "{\"a\": 1, \"b\": 5}", "1 value.b: 2|5"},
		{"{\"a\": {\"b\": 2}}", "{\"a\": {\"b\": 5}}", "1 value.a.b: 2|5"},
		/* of each message the first one alone */
		{"{\"a\": {\"b\": 2}, \"c\": 3}", "{\"a\": {\"b\": 5}, \"c\": 4}",
		 "1 value.a.b: 2|5"},
		{"{\"a\": 1}", "{\"b\": 1}", "1 value.a: a field|-"},
		/* a list or an object that is longer, or shorter, at any place */
		{"[1, 2]", "[1, 2, 3]", "1 value: a list of 2|a list of 3"},
		{"[1, 2, 3]", "[1, 2]", "1 value: a list of 3|a list of 2"},
		{"[]", "[1]", "1 value: a list of 0|a list of 1"},
		{"{\"a\": 1}", "{\"a\": 1, \"b\": 2}", "1 value: an object of 1|an object of 2"},
		{"{\"a\": [1], \"b\": [2]}", "{\"a\": [1], \"b\": [2, 3]}",
		 "1 value.b: a list of 1|a list of 2"},
		{"[[1], [2, 5]]", "[[1], [2, 7]]", "1 value[1][1]: 5|7"},
		{"[1, 5]", "[1, [5]]", "1 value[1]: 5|a list of 1"},
		{"[5]", "{\"a\": 5}", "1 value: [5]|{\"a\": 5}"},
	};
	char expected[128], got[128], differs[512];

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		snprintf(expected, sizeof(expected), "- thing %s\n", rows[i].expected);
		snprintf(got, sizeof(got), "- thing %s\n", rows[i].got);
		compare(expected, got, 0.5, differs);
		cr_expect_str_eq(differs, rows[i].differs, "%zu", i);
	}
}

/* All differences are counted, and so many are kept. */
Test(compare, some_differences_are_kept)
{
	for (size_t count = CTL_DIFFERENCES_MAX - 1; count <= CTL_DIFFERENCES_MAX + 2; count++) {
		char expected_path[64], got_path[64], text[2][1024];
		struct frag_err err = FRAG_ERR_INIT;
		struct ctl_differences all;
		size_t used = 0;

		for (size_t i = 0; i < count; i++) {
			snprintf(text[0] + used, sizeof(text[0]) - used, "- i64 %02zu\n", i);
			used += (size_t)snprintf(text[1] + used, sizeof(text[1]) - used,
						 "- i64 %02zu\n", i + 50);
		}
		snprintf(expected_path, sizeof(expected_path), "/tmp/compare.%d.e", (int)getpid());
		snprintf(got_path, sizeof(got_path), "/tmp/compare.%d.g", (int)getpid());
		write_file(expected_path, text[0]);
		write_file(got_path, text[1]);
		cr_expect_eq(ctl_compare(expected_path, got_path, 0, &all, &err), 0);
		cr_expect_eq(all.total, count);
		cr_expect_eq(all.messages, count);
		cr_expect_eq(all.count, count < CTL_DIFFERENCES_MAX ? count : CTL_DIFFERENCES_MAX,
			     "%zu of %zu", all.count, count);
		cr_expect_str_eq(all.items[all.count - 1].got,
				 all.count == CTL_DIFFERENCES_MAX ? "59" : "58");
		ctl_differences_fini(&all);
		unlink(expected_path);
		unlink(got_path);
	}
}
