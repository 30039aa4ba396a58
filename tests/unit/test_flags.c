// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/flags.h>

static const char *address;
static struct fragi_texts configs;
static bool once;
static int verbose;

static const struct fragi_flag table[] = {
	{.name = "address", .value = "HOST[:PORT]", .help = "where", .text = &address},
	{.name = "config", .value = "FILE", .help = "more", .texts = &configs, .no_env = true},
	{.name = "once", .help = "one only", .on = &once},
	{.name = "verbose", .letter = 'v', .help = "more lines", .times = &verbose, .no_env = true},
};
static const struct fragi_flags flags = {"prog", "[flags]", "Does things.",
					 NULL,   table,     FRAG_COUNT_OF(table)};

static void reset(void)
{
	address = NULL;
	once = false;
	verbose = 0;
	fragi_texts_fini(&configs);
	unsetenv("FRAG_ADDRESS");
	unsetenv("FRAG_ONCE");
	unsetenv("FRAG_CONFIG");
}
TestSuite(flags, .init = reset, .fini = reset);

static int parse(struct fragi_texts *operands, int *rest, struct frag_err *err,
		 const char *const *words)
{
	char *argv[32] = {(char *)(uintptr_t) "prog"};
	int argc = 1;

	while (*words != NULL)
		argv[argc++] = (char *)(uintptr_t)*words++;
	return fragi_flags_parse(&flags, argc, argv, operands, rest, err);
}
#define PARSE(operands, rest, err, ...)                                                            \
	parse(operands, rest, err, (const char *const[]){__VA_ARGS__, NULL})

Test(flags, values_come_with_a_space_or_an_equals_sign_in_any_order)
{
	struct fragi_texts operands = {0};
	int rest = 0;

	cr_assert_eq(PARSE(&operands, &rest, NULL, "app.yaml", "--config=a", "--address", "h:1",
			   "-vv", "--config", "b", "--once", "--", "--address", "x"),
		     0);
	cr_assert_str_eq(address, "h:1");
	cr_assert_eq(configs.count, 2);
	cr_assert_str_eq(configs.items[0], "a");
	cr_assert_str_eq(configs.items[1], "b");
	cr_assert(once);
	cr_assert_eq(verbose, 2);
	cr_assert_eq(operands.count, 1);
	cr_assert_str_eq(operands.items[0], "app.yaml");
	cr_assert_eq(rest, 10);
	fragi_texts_fini(&operands);
}

Test(flags, the_environment_fills_what_is_not_given)
{
	setenv("FRAG_ADDRESS", "env", 1);
	setenv("FRAG_ONCE", "yes", 1);
	setenv("FRAG_CONFIG", "never", 1);
	cr_assert_eq(PARSE(NULL, NULL, NULL, "-v"), 0);
	cr_assert_str_eq(address, "env");
	cr_assert(once);
	cr_assert_eq(configs.count, 0, "no_env");
	cr_assert_eq(PARSE(NULL, NULL, NULL, "--address", "given"), 0);
	cr_assert_str_eq(address, "given");
}

Test(flags, a_switch_in_the_environment_must_be_a_boolean)
{
	struct frag_err err = FRAG_ERR_INIT;

	setenv("FRAG_ONCE", "perhaps", 1);
	cr_assert_eq(PARSE(NULL, NULL, &err, "-v"), -EINVAL);
	cr_assert(strstr(err.text, "FRAG_ONCE"), "%s", err.text);
}

Test(flags, refusals_say_what_to_do)
{
	static const struct {
		const char *word, *next, *text;
	} cases[] = {
		{"--adress", "x", "did you mean --address?"},
		{"--zzzzzzzz", "x", "prog --help"},
		{"--address", NULL, "--address HOST[:PORT]"},
		{"--once=1", NULL, "takes no value"},
		{"-x", NULL, "unknown flag -x"},
		{"word", NULL, "unexpected \"word\""},
		{"--", "word", "unexpected \"word\""},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(PARSE(NULL, NULL, &err, cases[i].word, cases[i].next), -EINVAL);
		cr_expect(strstr(err.text, cases[i].text), "%s: %s", cases[i].word, err.text);
	}
}

/* The last one holds, as of every flag; what follows `--` is the application's. */
Test(flags, a_command_line_asks_for_documents)
{
	const char *out = NULL;
	const struct fragi_flag own = {.name = "output", .value = "table|json", .text = &out},
				file = {.name = "output", .value = "FILE", .text = &out};
	const struct fragi_flags with = {.flags = &own, .count = 1},
				 with_file = {.flags = &file, .count = 1};
	static const struct {
		const char *words[4];
		bool wants;
	} cases[] = {
		{{"-o", "json"}, true},
		{{"-ojson"}, true},
		{{"--output=json", "--bogus"}, true},
		{{"--bogus", "--output", "json"}, true},
		{{"-o", "table", "-o", "json"}, true},
		{{"-o", "json", "-o", "table"}, false},
		{{"-o"}, false},
		{{"json"}, false},
		{{"--outputs=json"}, false},
		{{"--", "-o", "json"}, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		char *argv[6] = {(char *)(uintptr_t) "prog"};
		int argc = 1;

		for (; argc <= 4 && cases[i].words[argc - 1] != NULL; argc++)
			argv[argc] = (char *)(uintptr_t)cases[i].words[argc - 1];
		cr_expect_eq(fragi_flags_want_json(&with, argc, argv), cases[i].wants, "%zu", i);
		cr_expect_eq(fragi_flags_want_json(NULL, argc, argv), cases[i].wants, "%zu", i);
		cr_expect_eq(fragi_flags_want_json(&flags, argc, argv), cases[i].wants, "%zu", i);
		cr_expect_not(fragi_flags_want_json(&with_file, argc, argv), "%zu", i);
	}
	setenv("FRAG_OUTPUT", "json", 1);
	cr_expect(fragi_flags_want_json(&with, 0, NULL));
	cr_expect(fragi_flags_want_json(NULL, 0, NULL));
	cr_expect_not(fragi_flags_want_json(&flags, 0, NULL), "it has no such flag");
	setenv("FRAG_OUTPUT", "table", 1);
	cr_expect_not(fragi_flags_want_json(&with, 0, NULL));
}

Test(flags, no_memory_is_reported)
{
	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(PARSE(NULL, NULL, NULL, "--config", "a"), -ENOMEM);
	cr_expect_eq(fragi_alloc_fail_off(), 1);
}

Test(flags, help_lists_every_flag_with_its_value)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	fragi_flags_help(&flags, out);
	fclose(out);
	cr_expect(strstr(text, "usage: prog [flags]"));
	for (size_t i = 0; i < flags.count; i++)
		cr_expect(strstr(text, table[i].name), "%s", table[i].name);
	cr_expect(strstr(text, "-v, --verbose"));
	cr_expect(strstr(text, "FRAG_SOME_FLAG"));
	free(text);
}

/* 100 columns hold; one more does not. */
Test(flags, help_wraps_at_100_columns)
{
	static const char fits[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbb";
	static const char wraps[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbb";
	const struct fragi_flag own[] = {{.name = "fits", .help = fits, .on = &once},
					 {.name = "wraps", .help = wraps, .on = &once}};
	const struct fragi_flags some = {.program = "prog",
					 .usage = "",
					 .headline = "Does things.",
					 .flags = own,
					 .count = FRAG_COUNT_OF(own),
					 .example = "prog --fits"};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(45 + strlen(fits), 100);
	fragi_flags_help(&some, out);
	fclose(out);
	cr_expect(strstr(text, fits), "%s", text);
	cr_expect_not(strstr(text, wraps));
	cr_expect(strstr(text, "aaa\n                                             bbb"));
	cr_expect(strstr(text, "\nExample:\n  prog --fits\n"));
	free(text);
}

Test(flags, help_leaves_out_what_does_not_work_yet)
{
	char *text = NULL, prog[] = "prog", word[] = "--later", *argv[] = {prog, word};
	bool later = false;
	const struct fragi_flag own[] = {{.name = "now", .help = "works", .on = &once},
					 {.name = "later", .on = &later}};
	const struct fragi_flags some = {"prog", "", "Does things.", NULL, own, FRAG_COUNT_OF(own)};
	struct frag_err err = FRAG_ERR_INIT;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	fragi_flags_help(&some, out);
	fclose(out);
	cr_expect(strstr(text, "--now"));
	cr_expect_not(strstr(text, "--later"));
	free(text);
	cr_expect_eq(fragi_flags_parse(&some, 2, argv, NULL, NULL, &err), 0);
	cr_expect(later, "it is known all the same: who gives it gets an answer");
}
