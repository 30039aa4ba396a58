// SPDX-License-Identifier: Apache-2.0
/* Which words of `fragctl run` are its own and which are the application's, and flags of roles. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <fragctl/roles.h>

#define WORDS_MAX 12

static bool driver, worker, quiet;
static const char *fragments, *pipeline;

static const struct fragi_flag table[] = {
	{.name = "driver", .on = &driver},
	{.name = "worker", .on = &worker},
	{.name = "fragments", .value = "a,b", .text = &fragments},
	{.name = "pipeline", .letter = 'e', .value = "PIPELINE", .text = &pipeline},
	{.name = "quiet", .letter = 'q', .on = &quiet},
};
static const struct fragi_flags flags = {.flags = table, .count = FRAG_COUNT_OF(table)};

/* Divides "run" and the words, which are separated by a space. */
static int divide(const char *words, struct ctl_line *out)
{
	static char text[200];
	char *argv[WORDS_MAX + 1] = {0};
	int argc = 0;

	snprintf(text, sizeof(text), "run %s", words);
	for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
		cr_assert_lt(argc, WORDS_MAX);
		argv[argc++] = word;
	}
	return ctl_line_divide(&flags, argc, argv, out);
}

static void expect_words(char **words, int count, const char *wanted, const char *line)
{
	char text[200] = "";

	for (int i = 0; i < count; i++) {
		strcat(text, i > 0 ? " " : "");
		strcat(text, words[i]);
	}
	cr_expect_str_eq(text, wanted, "%s: got \"%s\", wanted \"%s\"", line, text, wanted);
	cr_expect_null(words[count], "%s", line);
}

Test(roles, words_of_the_application)
{
	static const struct {
		const char *words, *own, *args;
	} cases[] = {
		{"", "run", ""},
		/* No role is given: all in front of -- is fragctl's. */
		{"a.yaml --count 5", "run a.yaml --count 5", ""},
		{"a.yaml -- --count 5", "run a.yaml", "--count 5"},
		{"a.yaml 5 -- --driver", "run a.yaml 5", "--driver"},
		{"--driver a.yaml --count 5 -x", "run --driver a.yaml -x", "--count 5"},
		{"--worker a.yaml --count 5", "run --worker a.yaml", "--count 5"},
		{"--driver a.yaml --count=5 -q 7", "run --driver a.yaml -q", "--count=5 7"},
		{"--driver a.yaml --count -5 -6", "run --driver a.yaml -6", "--count -5"},
		{"--driver a.yaml --count --quiet -x", "run --driver a.yaml --quiet -x", "--count"},
		{"--driver a.yaml - -- --", "run --driver a.yaml", "- --"},
		{"a.yaml 3 --driver", "run a.yaml --driver", "3"},
		/* A flag with a value takes the next word, whatever it is. */
		{"--worker --fragments x a.yaml y", "run --worker --fragments x a.yaml", "y"},
		{"--worker --fragments=x a.yaml y", "run --worker --fragments=x a.yaml", "y"},
		{"--driver a.yaml --fragments --count 5", "run --driver a.yaml --fragments --count",
		 "5"},
		{"--driver a.yaml --fragments -- b", "run --driver a.yaml --fragments", "b"},
		{"--driver a.yaml --fragment x", "run --driver a.yaml", "--fragment x"},
		{"--driver a.yaml --fragmentss x", "run --driver a.yaml", "--fragmentss x"},
		/* -e is the graph. */
		{"--driver -e tx!rx --count 3", "run --driver -e tx!rx", "--count 3"},
		{"--driver -etx!rx --count 3", "run --driver -etx!rx", "--count 3"},
		{"--driver --pipeline tx!rx 3", "run --driver --pipeline tx!rx", "3"},
		{"--driver -q --count a.yaml 3", "run --driver -q --count a.yaml", "3"},
		{"--driver --worker 2x 3", "run --driver --worker 2x", "3"},
		{"a.yaml -- --worker 2", "run a.yaml", "--worker 2"},
	};
	struct ctl_line line;

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		cr_assert_eq(divide(cases[i].words, &line), CTL_OK, "%s", cases[i].words);
		expect_words(line.own, line.own_count, cases[i].own, cases[i].words);
		expect_words(line.args, line.arg_count, cases[i].args, cases[i].words);
		ctl_line_fini(&line);
	}
	cr_expect_eq(divide("a.yaml --worker 2", &line), CTL_USAGE);
	cr_expect_eq(divide("--worker 20 a.yaml -- x", &line), CTL_USAGE);
	for (unsigned int i = 0; i < 2; i++) {
		fragi_alloc_fail_after(i, 1);
		cr_expect_eq(divide("a.yaml", &line), CTL_FAILED);
		cr_expect_eq(fragi_alloc_fail_off(), 1);
		cr_expect(line.own == NULL && line.args == NULL);
	}
}

/* Each flag is refused without its role, and taken with each that has it. */
Test(roles, flags_without_their_role)
{
	static const char *const write[] = {"/tmp"};
	static const struct {
		struct ctl_roles roles;
		bool of_none, of_driver, of_worker;
	} cases[] = {
		{{0}, true, true, true},
		{{.fragments = "a"}, false, false, true},
		{{.worker_address = "a"}, false, false, true},
		{{.allow_write = {(const char **)(uintptr_t)write, 1}}, false, false, true},
		{{.start_timeout = "1s"}, false, true, false},
		{{.address = ":1"}, false, true, true},
		{{.key_file = "k"}, false, true, true},
		{{.insecure = true}, false, true, true},
		{{.start_timeout = "1s", .fragments = "a"}, false, false, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct ctl_roles roles = cases[i].roles;

		cr_expect_eq(ctl_roles_check(&roles), cases[i].of_none ? CTL_OK : CTL_USAGE, "%zu",
			     i);
		roles.driver = true;
		cr_expect_eq(ctl_roles_check(&roles), cases[i].of_driver ? CTL_OK : CTL_USAGE,
			     "%zu", i);
		roles.worker = true;
		cr_expect_eq(ctl_roles_check(&roles), CTL_OK, "%zu", i);
		roles.driver = false;
		cr_expect_eq(ctl_roles_check(&roles), cases[i].of_worker ? CTL_OK : CTL_USAGE,
			     "%zu", i);
	}
}
