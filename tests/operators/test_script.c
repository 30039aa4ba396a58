// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "testing/script.h"

/* What test_source reads from the files of its outputs. */
#define FILES_MAX 3

static char paths[FILES_MAX][240];

static void name_files(void)
{
	const char *folder = getenv("TMPDIR");

	for (int i = 0; i < FILES_MAX; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/frag-script-%d.%d",
			 folder != NULL ? folder : "/tmp", (int)getpid(), i);
}

static void remove_files(void)
{
	for (int i = 0; i < FILES_MAX; i++)
		unlink(paths[i]);
}

TestSuite(ops_script, .init = name_files, .fini = remove_files);

static int read_texts(const char *const texts[FILES_MAX], struct script *script,
		      struct frag_err *err)
{
	struct frag_string_entry items[FILES_MAX];
	struct frag_string_map files = {items, 0};

	*script = (struct script){0};
	for (; files.count < FILES_MAX && texts[files.count] != NULL; files.count++) {
		FILE *out = fopen(paths[files.count], "w");

		cr_assert_not_null(out);
		fputs(texts[files.count], out);
		fclose(out);
		items[files.count] = (struct frag_string_entry){"out", paths[files.count]};
	}
	return script_read(script, &files, false, err);
}

/* "[0:1 1:4] [0:2]": the messages of each tick, as PORT:VALUE. */
static const char *ticks_of(const struct script *script)
{
	static char text[400];
	size_t used = 0, end;

	text[0] = '\0';
	for (size_t i = 0; i < script->count; i = end) {
		end = script_after(script, i);
		for (size_t k = i; k < end; k++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u:%d%s",
						 k == i ? "[" : " ", script->messages[k].port,
						 (int)script->messages[k].value.i,
						 k + 1 == end ? "]" : "");
	}
	return text;
}

/* Lines with one time come one after the other, and those of several files beside each other. */
Test(ops_script, lines_of_one_time_keep_their_order)
{
	static const struct {
		const char *texts[FILES_MAX], *ticks;
	} rows[] = {
		{{"0ms i64 1\n0ms i64 2\n0ms i64 3\n0ms i64 4\n"}, "[0:1][0:2][0:3][0:4]"},
		{{"0ms i64 1\n0ms i64 2\n", "0ms i64 5\n0ms i64 6\n"}, "[0:1 1:5][0:2 1:6]"},
		{{"0ms i64 1\n0ms i64 2\n0ms i64 3\n", "0ms i64 5\n"}, "[0:1 1:5][0:2][0:3]"},
		{{"0ms i64 5\n", "0ms i64 1\n0ms i64 2\n0ms i64 3\n"}, "[0:5 1:1][1:2][1:3]"},
		{{"2ms i64 1\n1ms i64 2\n", "1ms i64 5\n"}, "[0:2 1:5][0:1]"},
		{{"1ms i64 1\n1ms i64 2\n", "1000us i64 5\n", "0.001s i64 7\n1000000ns i64 8\n"},
		 "[0:1 1:5 2:7][0:2 2:8]"},
		/* Another time between ends the turn. */
		{{"1ms i64 1\n2ms i64 2\n2ms i64 3\n3ms i64 4\n"}, "[0:1][0:2][0:3][0:4]"},
		{{"# none\n\n \t\n5ms i64 9\n"}, "[0:9]"},
		{{""}, ""},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct script script;

		cr_assert_eq(read_texts(rows[i].texts, &script, &err), 0, "row %zu: %s", i,
			     err.text);
		cr_expect_str_eq(ticks_of(&script), rows[i].ticks, "row %zu: %s", i,
				 ticks_of(&script));
		script_fini(&script);
	}
}

/* The bounds themselves are read, and what is beyond them is refused at its place. */
Test(ops_script, numbers_and_lines_have_bounds)
{
	static char longest[SCRIPT_LINE_MAX + 2], longer[SCRIPT_LINE_MAX + 3];
	const struct {
		const char *text, *says; /* says NULL: it is read */
	} rows[] = {
		{"1ms i64 9223372036854775807\n", NULL},
		{"1ms i64 -9223372036854775808\n", NULL},
		{"1ms i64 9223372036854775808\n", ":1:9: not a number of this type:"},
		{"1ms i64 -9223372036854775809\n", ":1:9: not a number of this type:"},
		{"1ms i64 5x\n", ":1:9: not a number of this type:"},
		{"1ms i64 \n", ":1:9: not a number of this type:"},
		{"1ms f64 1e400\n", ":1:9: not a number of this type:"},
		{"1ms f64 1e300\n", NULL},
		{"1ms bool true\n", NULL},
		{"1ms bool yes\n", ":1:10: neither true nor false:"},
		{"\n-1ms i64 5\n", ":2:1: no time;"},
		{"1 i64 5\n", ":1:1: no time;"},
		{"1ms i64\n", ":1:1: not of the form `TIME TYPE VALUE`:"},
		{longest, NULL},
		{longer, ":1:1: too long, too many, or with a byte 0: the line"},
	};

	memset(longest, 'x', sizeof(longest) - 2);
	memcpy(longest, "1ms string ", 11);
	longest[SCRIPT_LINE_MAX] = '\n';
	memset(longer, 'x', sizeof(longer) - 2);
	memcpy(longer, "1ms string ", 11);
	longer[SCRIPT_LINE_MAX + 1] = '\n';
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const char *const texts[FILES_MAX] = {rows[i].text};
		struct frag_err err = FRAG_ERR_INIT;
		struct script script;

		cr_expect_eq(read_texts(texts, &script, &err), rows[i].says == NULL ? 0 : -EINVAL,
			     "row %zu: %s", i, err.text);
		cr_expect(rows[i].says == NULL || strncmp(err.text + strlen(paths[0]), rows[i].says,
							  strlen(rows[i].says)) == 0,
			  "row %zu: %s", i, err.text);
		script_fini(&script);
	}
}
