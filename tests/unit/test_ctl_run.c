// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ctl_shown.h"
#include "expected.h"
#include "scratch.h"

#include <base/environment.h>
#include <edge/ucx_env.h>
#include <fragctl/ctl.h>
#include <fragctl/run.h>
#include <fragctl/top_window.h>

/*
 * What command lines of `fragctl run` come to: which of its ways runs, with what, or which program
 * this one becomes, and why others are refused; and the flags of all verbs. Compared with recorded
 * texts. These functions take the place of fragctl/local.c and daemons.c, and of execv of libc.
 */
struct row {
	const char *words;
	const char *variable; /* NAME=VALUE, in the environment; NULL: none */
};

#define EACH                                                                                       \
	"--set small.tx.rate=1hz --set small.rx.budget=2ms --config c.yaml --library-path /l:/m -- --n 1"

static const struct row rows[] = {
	{"small.yaml"},
	{"-e LINE"},
	{"small.yaml " EACH},
	{"small.yaml -q -q"},
	{"small.yaml -v"},
	{"small.yaml -o json --summary s.json"},
	{"small.yaml --summary none/s.json"},
	{"small.yaml -o yaml"},
	{"small.yaml --track log.txt"},
	{"small.yaml --track /log.txt"},
	{"small.yaml --track= "},
	{"small.yaml --ucx /opt/ucx"},
	{"small.yaml --in-process"},
	{"small.yaml --workers 1"},
	{"small.yaml --workers 64"},
	{"small.yaml --workers 0"},
	{"small.yaml --workers 65"},
	{"small.yaml --workers -1"},
	{"small.yaml --workers x"},
	{"small.yaml --web"},
	{"small.yaml --web --workers 3"},
	{"small.yaml --top"},
	{"small.yaml --top --workers 3"},
	{"small.yaml --trace t"},
	{"small.yaml --trace t --on-failure --workers 3"},
	{"small.yaml --on-failure"},
	{"small.yaml --in-process --workers 2"},
	{"small.yaml --in-process --web"},
	{"small.yaml --in-process --trace t"},
	{"small.yaml --in-process --top"},
	{"small.yaml --in-process --driver"},
	{"small.yaml --in-process --worker"},
	{"small.yaml --workers 2 --driver"},
	{"small.yaml --workers 2 --worker"},
	{"small.yaml --web --driver"},
	{"small.yaml --web --worker"},
	{"small.yaml --trace t --driver"},
	{"small.yaml --trace t --worker"},
	{"small.yaml --top --driver"},
	{"small.yaml --top --worker"},
	{"small.yaml --top -o json"},
	{"-e LINE --worker"},
	{"-e LINE --driver"},
	{"-e LINE --driver --worker"},
	{"small.yaml --driver"},
	{"small.yaml --driver --address h:1 --start-timeout 5s --key-file k --insecure " EACH},
	{"small.yaml --driver --summary none/s.json"},
	{"small.yaml --worker"},
	{"small.yaml --worker --address h:1 --fragments a --worker-address 10.0.0.1 --allow-write /w "
	 "--allow-write /x --key-file k --insecure -q " EACH},
	{"none.yaml --worker --fragments a --summary none/s.json"},
	{"none.yaml --driver --worker"},
	{"small.yaml --driver --worker"},
	{"small.yaml --worker --driver --fragments a --address h:1"},
	{"small.yaml --address h:1"},
	{"small.yaml --driver --fragments a"},
	{"small.yaml --worker --start-timeout 5s"},
	{"small.yaml --worker 2"},
	{"small.yaml --print-yaml"},
	{"-e LINE --print-yaml --workers 2"},
	{"small.yaml -- --help"},
	{"small.yaml --driver -- --help"},
	{"small.yaml -- --other 1"},
	{"none.yaml"},
	{"none.yaml -o json"},
	{"wrong.yaml"},
	{"wrong.yaml -o json --summary s.json"},
	{"wrong.yaml --workers 2"},
	{"wrong.yaml --worker"},
	{"small.yaml none.yaml"},
	{""},
	{"-o json"},
	{"small.yaml -e LINE"},
	{"small.yaml --bogus"},
	{"small.yaml", "FRAG_TRACK=/t"},
	{"small.yaml", "FRAG_SUMMARY=s.json"},
	{"small.yaml", "FRAG_OUTPUT=json"},
	{"small.yaml", "FRAG_UCX=/opt/ucx"},
	{"small.yaml", "FRAG_IN_PROCESS=1"},
	{"small.yaml", "FRAG_WORKERS=2"},
	{"small.yaml", "FRAG_WEB=1"},
	{"small.yaml", "FRAG_TOP=1"},
	{"small.yaml", "FRAG_TRACE=t"},
	{"small.yaml --trace t", "FRAG_ON_FAILURE=1"},
	{"small.yaml", "FRAG_PRINT_YAML=1"},
	{"small.yaml", "FRAG_DRIVER=1"},
};

static const char small[] = "frag: 1\napplication: small\narguments: {n: {default: \"2\"}}\n"
			    "operators:\n"
			    "  tx: {type: ping_tx, conditions: [{type: count, count: \"${n}\"}]}\n"
			    "  rx: {type: ping_rx}\nflows: [tx -> rx]\n";
static const char wrong[] = "frag: 1\napplication: wrong\noperators: {tx: {typ: ping_tx}}\n";

static void show_texts(const char *name, const struct fragi_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		printf(" %s %s", name, texts->items[i]);
}

static void show_text(const char *name, const char *text)
{
	if (text != NULL)
		printf(" %s %s", name, text);
}

static void show_options(const char *way, const struct ctl_run_options *o)
{
	const struct ctl_graph *graph = &o->graph;

	printf("%s:", way);
	show_text("path", graph->path);
	show_text("line", graph->line);
	show_text("application", graph->application);
	show_text("folder", graph->app_folder);
	show_text("of", graph->spec != NULL ? graph->spec->application : NULL);
	show_text("libraries", graph->library_path);
	show_texts("config", &graph->configs);
	show_texts("set", &graph->sets);
	for (int i = 0; i < graph->arg_count; i++)
		printf(" argument %s", graph->args[i]);
	printf(" verbosity %d workers %u%s%s%s%s%s%s", o->verbosity, o->workers,
	       o->output.json ? " json" : "", o->output.no_table ? " no table" : "",
	       o->print_yaml ? " prints" : "", o->in_process ? " in this process" : "",
	       o->web ? " web" : "", o->top ? " top" : "");
	show_text("summary", o->output.file);
	show_text("track", o->track);
	show_text("ucx", o->ucx_folder);
	show_text("in the environment", getenv(FRAGI_UCX_FOLDER));
	show_text("trace", o->trace);
	printf("%s%s%s%s", o->trace_on_failure ? " on failure" : "",
	       o->roles.driver ? " driver" : "", o->roles.worker ? " worker" : "",
	       o->roles.insecure ? " insecure" : "");
	show_text("address", o->roles.address);
	show_text("fragments", o->roles.fragments);
	putchar('\n');
}

int ctl_run_local(const struct ctl_run_options *options)
{
	show_options("here", options);
	return 11;
}

int ctl_run_daemons(const struct ctl_run_options *options)
{
	show_options("by daemons", options);
	return 12;
}

int execv(const char *path, char *const argv[])
{
	printf("becomes %s", strrchr(path, '/') + 1);
	for (int i = 1; argv[i] != NULL; i++)
		printf(" %s", argv[i]);
	putchar('\n');
	fflush(stdout);
	_exit(13);
}

uid_t geteuid(void)
{
	return 0;
}

int ctl_top_on_screen(struct ctl_driver *driver, const struct ctl_driver *again, const char *name,
		      int64_t every_ns)
{
	(void)driver, (void)again, (void)name, (void)every_ns;
	return CTL_OK;
}

static int run_words(const struct row *row)
{
	static char line[] = "ping_tx count=3 ! ping_rx", variable[64];
	char copy[256], verb[] = "run", *argv[32] = {verb}, *rest = copy;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", row->words);
	while (copy[0] != '\0' && (argv[argc] = strsep(&rest, " ")) != NULL) {
		if (strcmp(argv[argc], "LINE") == 0)
			argv[argc] = line;
		argc += argv[argc][0] != '\0';
		cr_assert_lt(argc, 31);
	}
	argv[argc] = NULL;
	if (row->variable != NULL) {
		snprintf(variable, sizeof(variable), "%s", row->variable);
		putenv(variable);
	}
	return ctl_run(argc, argv);
}

/* Without what differs between machines and runs: paths, and the times of log lines. */
static void put_text(const char *text, FILE *out)
{
	const char *dot;

	for (size_t length = 0; *text != '\0'; text += length) {
		length = 1;
		dot = strchr(text, '.');
		if (strncmp(text, scratch, strlen(scratch)) == 0) {
			fputs("HERE", out);
			length = strlen(scratch);
		} else if (strncmp(text, "/proc/", 6) == 0) {
			fputs("MADE", out);
			length = strcspn(text, " \n");
		} else if (strncmp(text, "20", 2) == 0 && dot != NULL && dot - text == 19) {
			fputs("TIME", out);
			length = strcspn(text, " ");
		} else {
			fputc(*text, out);
		}
	}
}

/* Forgets the variables of the tests, which no verb knows. */
static void forget_variables(void)
{
	unsetenv("FRAG_BUILD");
	unsetenv("FRAG_PYTHON");
	unsetenv("FRAG_LOG_LEVEL");
}

static void begin(void)
{
	forget_variables();
	scratch_make();
	put("small.yaml", small);
	put("wrong.yaml", wrong);
	put("c.yaml", "other: 1\n");
}

/* Each in a process of its own. */
static void show_row(const struct row *row, FILE *all)
{
	pid_t child;
	char *text, line[512];
	size_t size;
	FILE *out, *file;
	int status;

	fprintf(all, "fragctl run %s%s%s\n", row->words, row->variable != NULL ? " with " : "",
		row->variable != NULL ? row->variable : "");
	out = open_memstream(&text, &size);
	shown_begin();
	child = fork();
	if (child == 0) {
		int code;

		cr_assert_eq(chdir(scratch), 0);
		code = run_words(row);
		fflush(NULL);
		exit(code);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	shown_end(out);
	fclose(out);
	put_text(text, all);
	free(text);
	fprintf(all, "  exit code %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	file = fopen(at("s.json"), "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		fprintf(all, "  s.json: %s", line);
	if (file != NULL)
		fclose(file);
	unlink(at("s.json"));
}

Test(ctl_run, comes_to_what_is_recorded, .init = begin, .fini = scratch_remove)
{
	size_t size;
	char *text;
	FILE *all = open_memstream(&text, &size);

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		show_row(&rows[i], all);
	fclose(all);
	expected_compare("fragctl/run", text);
	free(text);
}

/* As it is set; it is in the environment from now on. */
static void set_variable(const char *flag)
{
	char name[64];

	snprintf(name, sizeof(name), "FRAG_%s", flag);
	for (char *at = name; *at != '\0'; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
	setenv(name, "1", 1);
}

static void show_flags(const struct fragi_flags *flags, void *context)
{
	FILE *out = context;

	fprintf(out, "%s%s%s%s%s\n", flags->program, flags->operand != NULL ? ", operand " : "",
		flags->operand != NULL ? flags->operand : "", flags->rest != NULL ? ", then " : "",
		flags->rest != NULL ? flags->rest : "");
	for (size_t i = 0; i < flags->count; i++) {
		const struct fragi_flag *flag = &flags->flags[i];

		fprintf(out, "  %s%s%.1s %s%s%s\n", flag->name, flag->letter != 0 ? " -" : "",
			flag->letter != 0 ? &flag->letter : "",
			flag->value != NULL ? flag->value : "switch",
			flag->texts != NULL   ? ", repeatable"
			: flag->times != NULL ? ", counts"
					      : "",
			flag->no_env || flag->times != NULL ? "" : ", from the environment, too");
		if (!flag->no_env && flag->times == NULL)
			set_variable(flag->name);
	}
}

Test(ctl_run, flags_of_all_verbs, .init = forget_variables)
{
	static const struct ctl_verb verbs[] = {
		{.run = ctl_apply},    {.run = ctl_cameras},  {.run = ctl_describe},
		{.run = ctl_doctor},   {.run = ctl_drain},    {.run = ctl_draw},
		{.run = ctl_echo},     {.run = ctl_events},   {.run = ctl_explain},
		{.run = ctl_health},   {.run = ctl_inspect},  {.run = ctl_key},
		{.run = ctl_list},     {.run = ctl_logs},     {.run = ctl_new},
		{.run = ctl_restart},  {.run = ctl_run},      {.run = ctl_schema},
		{.run = ctl_set},      {.run = ctl_snapshot}, {.run = ctl_start},
		{.run = ctl_status},   {.run = ctl_stop},     {.run = ctl_swap},
		{.run = ctl_test},     {.run = ctl_top},      {.run = ctl_trace},
		{.run = ctl_validate}, {.run = ctl_web},      {.run = ctl_workers},
	};
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < FRAG_COUNT_OF(verbs); i++)
		ctl_verb_flags(&verbs[i], show_flags, out);
	shown_begin();
	fragi_environment_check(); /* which says what nothing reads */
	shown_end(out);
	fclose(out);
	expected_compare("fragctl/flags", text);
	free(text);
}
