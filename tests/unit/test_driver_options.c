// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <driverd/options.h>

/* driverd's command line and its two variables of time. */

#define ARGV_MAX 8

/* argv: up to NULL, without the program's name. */
static int parse(const char *const *argv, struct drv_options *options, struct frag_err *err)
{
	char *all[ARGV_MAX + 1] = {(char *)(uintptr_t) "driverd"};
	int argc = 1;

	for (; argc < ARGV_MAX && argv[argc - 1] != NULL; argc++)
		all[argc] = (char *)(uintptr_t)argv[argc - 1];
	return drv_options_parse(options, argc, all, err);
}

static void refused(const char *const *argv, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_options options;

	cr_expect_eq(parse(argv, &options, &err), -EINVAL, "%s", sentence);
	cr_expect_str_eq(err.text, sentence);
	drv_options_fini(&options);
}

static struct drv_options taken(const char *const *argv)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_options options;

	cr_expect_eq(parse(argv, &options, &err), 0, "%s", err.text);
	drv_options_fini(&options);
	return options;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(driver_options, what_is_not_given_has_its_default)
{
	struct drv_options options = taken(ARGS("--app", "app.yaml"));

	cr_expect_str_eq(options.app, "app.yaml");
	cr_expect_str_eq(options.address.host, "127.0.0.1");
	cr_expect_eq(options.address.port, 57777);
	cr_expect_eq(options.start_timeout_ns, 0);
	cr_expect(options.beat_ns == 0 && options.dead_ns == 0);
	cr_expect_not(options.output.json);
	cr_expect_eq(options.verbosity, 0);
}

Test(driver_options, output_and_verbosity)
{
	cr_expect(taken(ARGS("--app", "a", "--output", "json")).output.json);
	cr_expect_not(taken(ARGS("--app", "a", "--output", "table")).output.json);
	cr_expect_eq(taken(ARGS("--app", "a", "-v", "-v", "-q")).verbosity, 1);
	refused(ARGS("--app", "a", "--output", "xml"),
		"--output \"xml\" is not known; give table or json");
}

Test(driver_options, without_an_application_it_is_a_service)
{
	cr_expect_null(taken(ARGS("-v")).app);
	refused(ARGS("--set", "f.op.p=1"),
		"--set is for --app APP.yaml; without --app driverd is a service, to which `fragctl start` brings applications");
	refused(ARGS("--summary", "file"),
		"--summary is for --app APP.yaml; without --app driverd is a service, to which `fragctl start` brings applications");
	refused(ARGS("--", "--count", "5"),
		"an argument after -- is for --app APP.yaml; without --app driverd is a service, to which `fragctl start` brings applications");
}

Test(driver_options, expected_workers)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_options options;

	cr_expect_eq(parse(ARGS("--expect-workers", "a,node-2"), &options, &err), 0);
	cr_assert_eq(options.expected.count, 2);
	cr_expect_str_eq(options.expected.items[0], "a");
	cr_expect_str_eq(options.expected.items[1], "node-2");
	drv_options_fini(&options);
	refused(ARGS("--expect-workers", "a,,b"),
		"--expect-workers \"a,,b\" is not a list of names of workers; give them with commas between them");
}

Test(driver_options, keys)
{
	refused(ARGS("--app", "a", "--key-file", "k", "--insecure"),
		"--insecure and --key-file contradict each other; leave one of them out");
	cr_expect_str_eq(taken(ARGS("--app", "a", "--address", "10.0.0.1:5", "--key-file", "k"))
				 .tls.key_file,
			 "k");
}

Test(driver_options, addresses)
{
	refused(ARGS("--app", "a", "--address", ":1-9"),
		"--address needs one port, as 127.0.0.1:57777");
	refused(ARGS("--app", "a", "--address", "10.0.0.1"),
		"does not listen on 10.0.0.1 without a key, since whoever reaches it could take part in its applications; `fragctl key new > frag.key` makes a key and `scp -p frag.key NODE:` brings it to a node, then give --key-file frag.key to driverd and workerd (or --insecure on a network that you trust)");
	cr_expect_eq(
		taken(ARGS("--app", "a", "--address", "10.0.0.1:5", "--insecure")).address.port, 5);
	cr_expect_eq(taken(ARGS("--app", "a", "--address", "[::1]:0")).address.port, 0);
}

Test(driver_options, start_timeout)
{
	cr_expect_eq(taken(ARGS("--app", "a", "--start-timeout", "1500ms")).start_timeout_ns,
		     1500000000);
	refused(ARGS("--app", "a", "--start-timeout", "soon"),
		"--start-timeout \"soon\" is not a valid time; give it as 30s or 500ms");
	refused(ARGS("--app", "a", "--start-timeout", "0s"),
		"--start-timeout \"0s\" is not a valid time; give it as 30s or 500ms");
	refused(ARGS("--app", "a", "--start-timeout", "10hz"),
		"--start-timeout \"10hz\" is not a valid time; give it as 30s or 500ms");
}

Test(driver_options, beats)
{
	static const struct {
		const char *beat, *dead;  /* NULL: not set */
		int64_t beat_ms, dead_ms; /* 0: refused */
	} cases[] = {
		{"100", "1000", 100, 1000}, {"10", "20", 10, 20},      {"100", NULL, 100, 3000},
		{NULL, "600", 250, 600},    {"9", "1000", 0, 0},       {"100", "199", 0, 0},
		{NULL, "499", 0, 0},        {"often", NULL, 0, 0},     {NULL, "late", 0, 0},
		{"100", "600001", 0, 0},    {"60001", "200000", 0, 0},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct drv_options options;

		unsetenv("FRAG_BEAT_MS");
		unsetenv("FRAG_DEAD_MS");
		if (cases[i].beat != NULL)
			setenv("FRAG_BEAT_MS", cases[i].beat, 1);
		if (cases[i].dead != NULL)
			setenv("FRAG_DEAD_MS", cases[i].dead, 1);
		if (cases[i].beat_ms == 0) {
			refused(ARGS("--app", "a"),
				"FRAG_BEAT_MS and FRAG_DEAD_MS do not fit: give milliseconds, a beat of 10 to 60000 and a time of death of at least two beats and at most 600000");
			continue;
		}
		options = taken(ARGS("--app", "a"));
		cr_expect_eq(options.beat_ns, cases[i].beat_ms * 1000000, "case %zu", i);
		cr_expect_eq(options.dead_ns, cases[i].dead_ms * 1000000, "case %zu", i);
	}
}
