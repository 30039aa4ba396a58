// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"

#include <sys/stat.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/service.h>
#include <base/standard_fds.h>
#include <driverd/shell.h>

int driverd_main(int argc, char **argv);
static void own_fds_open(void);
static void own_service_open(void);
static void own_environment_check(void);
#define fragi_standard_fds_open own_fds_open
#define fragi_service_open own_service_open
#define fragi_environment_check own_environment_check
#define main driverd_main
#include <driverd/main.c> /* over a shell that this file plays */
#undef main

#include "logged.h"

/* driverd before it serves anybody: what it starts with, and what it refuses. */
static FILE *out;
static char steps[64]; /* before anything else */

static void own_fds_open(void)
{
	strcat(steps, " descriptors");
}

static void own_service_open(void)
{
	strcat(steps, " service");
}

static void own_environment_check(void)
{
	strcat(steps, " environment");
}

int drv_shell_run(const struct drv_options *options, const void *source, size_t size)
{
	struct fragi_source unpacked;

	fprintf(out, "  runs at %s, verbosity %d", options->address.host, options->verbosity);
	if (source != NULL) {
		cr_assert_eq(fragi_source_unpack(source, size, &unpacked), 0);
		fprintf(out, ": %zu bytes of graph, %zu configs, %zu sets, %zu args",
			unpacked.source.graph.length, unpacked.source.config_count,
			unpacked.source.set_count, unpacked.source.arg_count);
		fragi_source_fini(&unpacked);
	}
	fprintf(out, "\n");
	return 42;
}

int drv_result_show(const struct drv_output *output, const struct fragi_summary *summary)
{
	(void)output, (void)summary;
	return 0;
}

/* Without the name of the folder. */
static void show(const char *text)
{
	for (const char *found; (found = strstr(text, scratch)) != NULL;
	     text = found + strlen(scratch))
		fprintf(out, "%.*sFOLDER", (int)(found - text), text);
	fputs(text, out);
}

int drv_result_fail(const struct drv_output *output, const char *application,
		    const struct frag_err *err)
{
	cr_expect_null(application);
	fprintf(out, "  fails, json %d, summary %s, %s, %s: ", output->json,
		output->file != NULL ? "in a file" : "none",
		strerrorname_np(err->code < 0 ? -err->code : 0),
		fragi_failure_name(fragi_err_failure(err)));
	show(err->text);
	fprintf(out, "\n");
	return 7;
}

static void run_with(const char *what, const char *const *arguments)
{
	char *argv[16] = {(char *)(uintptr_t) "driverd"}, *logged;
	FILE *shown = out;
	int argc = 1, exit_code;
	size_t size;

	for (; *arguments != NULL; arguments++)
		argv[argc++] = (char *)(uintptr_t)*arguments;
	fprintf(out, "%s\n", what);
	steps[0] = '\0';
	logged_begin();
	exit_code = driverd_main(argc, argv);
	out = open_memstream(&logged, &size);
	logged_end(out);
	fclose(out);
	out = shown;
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		logged[strcspn(logged, "\n") + 1] = '\0';
	show(logged);
	free(logged);
	fprintf(out, "  exits with %d after%s\n", exit_code, steps);
}

#define RUN(what, ...) run_with(what, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

Test(driver_main, starts_or_says_why_not)
{
	static const char graph[] = "frag: 1\napplication: app\n"
				    "arguments: {count: {default: 3, help: how many}}\n"
				    "config: {more: {from_file: more.yaml}}\n"
				    "operators: {tx: {type: t}}\n";
	static const char *const variables[] = {"FRAG_ADDRESS", "FRAG_KEY_FILE", "FRAG_STATE_DIR",
						FRAGI_ENVIRONMENT_CHECKED};
	static char app[300], config[300], key[300];
	size_t size;
	char *text;

	scratch_make();
	for (size_t i = 0; i < FRAG_COUNT_OF(variables); i++)
		unsetenv(variables[i]);
	put("app.yaml", graph);
	put("more.yaml", "a: 1\n");
	put("config.yaml", "{}\n");
	put("key", "frag-key-1 a any 0000000000000000000000000000000000000000000=\n");
	snprintf(app, sizeof(app), "%s", at("app.yaml"));
	snprintf(config, sizeof(config), "%s", at("config.yaml"));
	snprintf(key, sizeof(key), "%s", at("key"));
	out = open_memstream(&text, &size);
	RUN("a service");
	RUN("help", "--help");
	RUN("its version", "--version");
	RUN("a wrong flag", "--nonsense");
	RUN("a wrong flag, as JSON", "-o", "json", "--start-timeout", "x");
	RUN("an application", "--app", app, "-v", "--config", config, "--set", "app.tx.a=2", "--",
	    "--count=4");
	RUN("its help", "--app", app, "--", "--help");
	RUN("one that is not there", "--app", at("none.yaml"));
	RUN("encrypted, in the clear", "--app", app, "--encrypt-data", "--insecure", "--address",
	    "192.0.2.1");
	RUN("encrypted, here", "--app", app, "--encrypt-data");
	RUN("encrypted, with a key", "--app", app, "--encrypt-data", "--key-file", key, "--address",
	    "192.0.2.1");
	RUN("not encrypted", "--app", app, "--insecure", "--address", "192.0.2.1");
	RUN("a summary without a folder", "--app", app, "--summary", at("none/summary.json"));
	RUN("a summary", "--summary", at("summary.json"), "--app", at("none.yaml"));
	chmod(at("more.yaml"), 0666);
	RUN("an included file that others may change", "--app", app);
	chmod(at("more.yaml"), 0600);
	chmod(config, 0666);
	RUN("a file that others may change", "--app", app, "--config", config);
	RUN("a config that is not there", "--app", app, "--config", at("none.yaml"));
	chmod(app, 0666);
	RUN("a graph that others may change", "--app", app);
	chmod(app, 0600);
	put("app.yaml", "frag: 1\napplication: app\nodd: 1\nodder: 2\n");
	RUN("a wrong graph", "--app", app);
	put("app.yaml", "frag: 1\napplication: app\nfragments:\n"
			"  f: {operators: {a: {type: t}}}\n  g: {operators: {b: {type: t}}}\n"
			"flows: [{from: f.a, to: g.b}, {from: f.a, to: g.b, encrypt: on}]\n");
	RUN("an encrypted flow", "--app", app, "--insecure", "--address", "192.0.2.1");
	fclose(out);
	expected_compare("driver/main", text);
	free(text);
	scratch_remove();
}
