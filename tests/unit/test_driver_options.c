// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <driverd/core/core.h>
#include <driverd/options.h>
#include <wire/message.h>

#include "../expected.h"
#include "logged.h"

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

static const char *const command_lines[] = {
	"",
	"--app a.yaml",
	"a.yaml",
	"a.yaml b.yaml",
	"--app a.yaml b.yaml",
	"--app a.yaml --config c.yaml --config d.yaml --set x.y=1 --set z=2",
	"--app a.yaml --start-timeout 30s --output json --summary s.json",
	"--app a.yaml --output table --state-dir /s --expect-workers a,b",
	"--app a.yaml --output xml",
	"--app a.yaml -- one --two",
	"-- one",
	"--config c.yaml",
	"--set x=1",
	"--start-timeout 1s",
	"--output json",
	"--output table",
	"--summary s.json",
	"--app a.yaml --start-timeout 30",
	"--app a.yaml --start-timeout 0s",
	"--app a.yaml --start-timeout 1ms",
	"--app a.yaml --start-timeout x",
	"--state-dir /s",
	"--app a.yaml --state-dir /s",
	"--expect-workers a",
	"--app a.yaml --expect-workers a,,b",
	"--address :0",
	"--address 10.0.0.1",
	"--address 10.0.0.1:1 --insecure",
	"--address 0.0.0.0:1 --key-file k",
	"--address :1-2",
	"--address [::1]:5",
	"--address :x",
	"--encrypt-data",
	"--app a.yaml --encrypt-data",
	"--app a.yaml --encrypt-data --key-file k",
	"--cert c --cert-key k --ca a",
	"--cert c --ca a",
	"--key-file k --insecure",
	"--allow-user 1234 --allow-user root=observer",
	"--allow-user root=none",
	"--allow-user no.such.user",
	"-vvq",
	"-qq",
	"--nothing",
	"--expect-workers x",
	"--insecure",
	"--help",
	"-h --address 10.0.0.1",
	"--version --output xml",
};

static FILE *ignored;

static void show_line(FILE *out, const char *line)
{
	char words[256], *rest = words, *argv[16] = {(char *)(uintptr_t) "driverd"};
	struct frag_err err = FRAG_ERR_INIT;
	struct drv_options o;
	int argc = 1, r;

	snprintf(words, sizeof(words), "%s", line);
	while (line[0] != '\0' && (argv[argc] = strsep(&rest, " ")) != NULL)
		argc++;
	fprintf(out, "driverd %s\n", line);
	logged_begin();
	r = drv_options_parse(&o, argc, argv, &err);
	logged_end(ignored);
	if (r > 0)
		fprintf(out, "  has printed what it was asked for\n");
	if (r < 0)
		fprintf(out, "  %s: %s\n", strerrorname_np(-r), err.text);
	if (r == 0)
		fprintf(out, "  %s:%u-%u%s%s%s\n", o.address.host, o.address.port,
			o.address.port_last, o.insecure ? " insecure" : "",
			o.users.insecure ? ", takes anybody" : "",
			o.encrypt_data ? " encrypts" : "");
	cr_expect(r != 0 || o.tls.is_server);
	if (r == 0 && o.app != NULL)
		fprintf(out, "  app %s, start timeout %lld\n", o.app,
			(long long)o.start_timeout_ns);
	for (size_t i = 0; i < o.configs.count; i++)
		fprintf(out, "  config %s\n", o.configs.items[i]);
	for (size_t i = 0; i < o.sets.count; i++)
		fprintf(out, "  set %s\n", o.sets.items[i]);
	for (size_t i = 0; r == 0 && i < o.arg_count; i++)
		fprintf(out, "  argument %s\n", o.args[i]);
	for (size_t i = 0; i < o.expected.count; i++)
		fprintf(out, "  expects %s\n", o.expected.items[i]);
	for (size_t i = 0; i < o.users.count; i++)
		fprintf(out, "  user %u, roles %u\n", o.users.items[i].user,
			o.users.items[i].roles);
	if (o.output.json || o.output.no_table || o.output.file != NULL)
		fprintf(out, "  output:%s%s %s\n", o.output.json ? " json" : "",
			o.output.no_table ? " no table" : "",
			o.output.file != NULL ? o.output.file : "none");
	if (o.tls.key_file != NULL || o.tls.certificate != NULL)
		fprintf(out, "  %s, %s, %s, %s\n", o.tls.key_file != NULL ? o.tls.key_file : "none",
			o.tls.certificate != NULL ? o.tls.certificate : "none",
			o.tls.certificate_key != NULL ? o.tls.certificate_key : "none",
			o.tls.ca != NULL ? o.tls.ca : "none");
	if (o.state_dir != NULL)
		fprintf(out, "  state in %s\n", o.state_dir);
	if (o.beat_ns != 0 || o.dead_ns != 0 || o.verbosity != 0)
		fprintf(out, "  beat %lld, dead %lld, verbosity %d\n", (long long)o.beat_ns,
			(long long)o.dead_ns, o.verbosity);
	drv_options_fini(&o);
}

/* With an environment that is the same everywhere. */
Test(driver_options, command_lines)
{
	static const char *const times[][2] = {
		{"100", NULL},     {NULL, "1000"},      {"9", "1000"},       {"10", "20"},
		{"10", "19"},      {"60000", "120000"}, {"60001", "200000"}, {"100", "600000"},
		{"100", "600001"}, {"x", NULL},         {NULL, "y"}};
	const char *writes = getenv("FRAG_TEST_WRITE_EXPECTED");
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ignored = fopen("/dev/null", "w");
	cr_assert_not_null(ignored);
	clearenv();
	for (size_t i = 0; i < sizeof(command_lines) / sizeof(command_lines[0]); i++)
		show_line(out, command_lines[i]);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		clearenv();
		if (times[i][0] != NULL)
			setenv("FRAG_BEAT_MS", times[i][0], 1);
		if (times[i][1] != NULL)
			setenv("FRAG_DEAD_MS", times[i][1], 1);
		fprintf(out, "beat %s, dead %s\n", times[i][0] != NULL ? times[i][0] : "none",
			times[i][1] != NULL ? times[i][1] : "none");
		show_line(out, "");
	}
	if (writes != NULL)
		setenv("FRAG_TEST_WRITE_EXPECTED", "1", 1);
	fclose(ignored);
	fclose(out);
	expected_compare("driver/command_lines", text);
	free(text);
}

/* So many names, each of so many letters. */
static int parse_names(size_t count, size_t length, struct drv_options *options,
		       struct frag_err *err)
{
	char *list = malloc(count * (length + 1)),
	     *argv[] = {(char *)(uintptr_t) "driverd", (char *)(uintptr_t) "--expect-workers", list,
			NULL};
	int r;

	memset(list, 'n', count * (length + 1));
	for (size_t i = 1; i <= count; i++)
		list[i * (length + 1) - 1] = i < count ? ',' : '\0';
	*err = (struct frag_err)FRAG_ERR_INIT;
	r = drv_options_parse(options, 3, argv, err);
	free(list);
	return r;
}

Test(driver_options, expected_workers_are_so_many_and_their_names_so_long)
{
	static const struct {
		size_t count, length;
		bool are_taken;
	} rows[] = {{1, FW_WORKER_NAME_MAX, true},
		    {1, FW_WORKER_NAME_MAX + 1, false},
		    {DRV_WORKERS_MAX, 1, true},
		    {DRV_WORKERS_MAX + 1, 1, false}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct drv_options options;
		struct frag_err err;
		int r = parse_names(rows[i].count, rows[i].length, &options, &err);

		cr_expect_eq(r, rows[i].are_taken ? 0 : -EINVAL, "%zu: %s", i, err.text);
		cr_expect(r < 0 || options.expected.count == rows[i].count);
		drv_options_fini(&options);
	}
}

Test(driver_options, short_memory_is_reported)
{
	for (int64_t skip = 0, failed = 1; failed > 0; skip++) {
		struct drv_options options;
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		fragi_alloc_fail_after(skip, 1);
		r = parse(ARGS("--expect-workers", "a,b", "--allow-user", "54321"), &options, &err);
		failed = fragi_alloc_fail_off();
		cr_expect(r == (failed > 0 ? -ENOMEM : 0) || (failed > 0 && r == 0), "%d", r);
		cr_expect(r < 0 || options.expected.count == 2);
		drv_options_fini(&options);
	}
}
