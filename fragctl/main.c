// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/log.h>
#include <base/standard_fds.h>
#include <base/units.h>
#include <fragctl/ctl.h>

#define BUILD "Build"
#define RUN "Run"
#define OPERATE "Operate"

static const struct ctl_verb verbs[] = {
	{"new", BUILD, "makes a project for an operator of your own", ctl_new,
	 "fragctl new blur && make -C blur test"},
	{"inspect", BUILD, "lists types, or describes one type or one library", ctl_inspect,
	 "fragctl inspect ping_tx"},
	{"validate", BUILD, "checks an application without running it", ctl_validate,
	 "fragctl validate app.yaml"},
	{"describe", BUILD, "composes an application and prints its plan", ctl_describe,
	 "fragctl describe app.yaml"},
	{"graph", BUILD, "draws an application", ctl_draw, "fragctl graph app.yaml > app.mmd"},
	{"test", BUILD, "runs an application with inputs and expected outputs from files", ctl_test,
	 "fragctl test app.yaml"},
	{"schema", BUILD, "prints the JSON schema of graphs, for editors", ctl_schema,
	 "fragctl schema > graph.schema.json"},
	{"run", RUN, "runs an application, here or by workers of this machine", ctl_run,
	 "fragctl run -e 'ping_tx count=10 ! ping_rx'"},
	{"start", RUN, "starts an application at a driver", ctl_start,
	 "fragctl start app.yaml --name cam1 -- --source aja"},
	{"stop", RUN, "stops an application of a driver", ctl_stop, "fragctl stop cam1"},
	{"restart", RUN, "stops an application of a driver and starts it anew", ctl_restart,
	 "fragctl restart cam1"},
	{"apply", RUN, "brings a changed graph to an application that runs", ctl_apply,
	 "fragctl apply cam1 app.yaml --dry-run"},
	{"set", RUN, "changes a parameter of an application that runs", ctl_set,
	 "fragctl set cam1 fragment1.scale.factor=3"},
	{"swap", RUN, "replaces a library of a fragment while its application runs", ctl_swap,
	 "fragctl swap cam1 fragment2 --library libview2.so"},
	{"list", OPERATE, "lists the applications of a driver", ctl_list, "fragctl list"},
	{"status", OPERATE, "shows where applications run, or how one has ended", ctl_status,
	 "fragctl status cam1 -o json"},
	{"logs", OPERATE, "prints what an application and its operators have written", ctl_logs,
	 "fragctl logs cam1/fragment2 --since 10min"},
	{"events", OPERATE, "prints what happened at a driver, and who asked for it", ctl_events,
	 "fragctl events --follow"},
	{"top", OPERATE, "shows where the time goes, and what makes applications slow", ctl_top,
	 "fragctl top cam1"},
	{"web", OPERATE, "shows all of this in a browser", ctl_web,
	 "fragctl web --listen 127.0.0.1:8080"},
	{"explain", OPERATE, "shows what makes an application slow, and why it runs where it does",
	 ctl_explain, "fragctl explain cam1 fragment2"},
	{"health", OPERATE, "says in one line whether what runs is well, for scripts and probes",
	 ctl_health, "fragctl health cam1 --for 1s"},
	{"snapshot", OPERATE, "writes what a driver knows into one file, for those who help",
	 ctl_snapshot, "fragctl snapshot --since 2h"},
	{"trace", OPERATE, "writes what all hosts do for a while into a file for Perfetto",
	 ctl_trace, "fragctl trace cam1 --for 5s -o cam1.pftrace"},
	{"echo", OPERATE, "prints messages of a flow while its application runs", ctl_echo,
	 "fragctl echo cam1 fragment1.scale -n 5"},
	{"workers", OPERATE, "lists the workers of a driver", ctl_workers, "fragctl workers"},
	{"drain", OPERATE, "moves what a worker runs to other workers", ctl_drain,
	 "fragctl drain node7 --timeout 5min"},
	{"key", OPERATE, "makes keys for driverd and workerd, and lists those of a file", ctl_key,
	 "fragctl key new --role worker frag.key"},
	{"doctor", OPERATE, "finds what is wrong with this node, and what mends it", ctl_doctor,
	 "fragctl doctor"},
	{"cameras", OPERATE, "lists the cameras of this machine with their formats", ctl_cameras,
	 "fragctl cameras /dev/video0 --controls"},
	{"complete", NULL, NULL, ctl_complete, NULL}, /* for the completion of shells */
	{"record", NULL, NULL, NULL, NULL},
};

/* What people type who come from elsewhere. */
static const struct {
	const char *name, *verb;
} aliases[] = {{"ls", "list"}, {"ps", "list"}, {"delete", "stop"}};

const struct ctl_verb *ctl_verb_at(size_t i)
{
	return i < FRAG_COUNT_OF(verbs) ? &verbs[i] : NULL;
}

static void print_help(FILE *out)
{
	const char *group = NULL;

	fputs("usage: fragctl VERB [flags]\n\nRuns and inspects frag applications, and controls those of a driver.\n",
	      out);
	for (size_t i = 0; i < FRAG_COUNT_OF(verbs) && verbs[i].headline != NULL; i++) {
		if (verbs[i].group != group)
			fprintf(out, "\n%s:\n", verbs[i].group);
		group = verbs[i].group;
		fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].headline);
	}
	fputs("\n`fragctl VERB --help` describes a verb and its flags. `fragctl --version` prints the\n"
	      "version. ls and ps are list, delete is stop.\n",
	      out);
}

/* NULL: there is none of that name */
static const struct ctl_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(aliases); i++)
		if (strcmp(aliases[i].name, name) == 0)
			name = aliases[i].verb;
	for (size_t i = 0; i < FRAG_COUNT_OF(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static int refuse_verb(const char *name)
{
	const char *names[FRAG_COUNT_OF(verbs)];
	size_t count = 0;
	char advice[400];

	if (name[0] == '-')
		return ctl_fail(
			CTL_USAGE,
			"unknown flag %s; flags follow the verb, fragctl --help lists verbs", name);
	for (size_t i = 0; i < FRAG_COUNT_OF(verbs); i++)
		if (verbs[i].headline != NULL)
			names[count++] = verbs[i].name;
	return ctl_fail(CTL_USAGE, "unknown verb \"%.80s\"%s", name,
			fragi_advise(advice, sizeof(advice), name, "verbs", names, count));
}

/* argc and argv: of fragctl. NULL: it is refused, with *out_exit. */
static const struct ctl_verb *choose_verb(const char *name, int argc, char **argv, int *out_exit)
{
	const struct ctl_verb *verb = find_verb(name);

	if (verb != NULL && verb->run != NULL)
		return verb;
	fragi_log_choose_format();
	ctl_fail_as_documents(fragi_flags_want_json(NULL, argc, argv));
	*out_exit =
		verb == NULL ? refuse_verb(name) : ctl_fail(CTL_USAGE, "%s is not built yet", name);
	return NULL;
}

static int run_verb(const struct ctl_verb *verb, int argc, char **argv)
{
	ctl_begin_example(verb->example);
	return verb->run(argc, argv);
}

static bool is_any(const char *word, const char *a, const char *b, const char *c)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int run(int argc, char **argv)
{
	const struct ctl_verb *verb;
	int exit_code;

	if (argc < 2) {
		print_help(stderr);
		return CTL_USAGE;
	}
	if (is_any(argv[1], "version", "--version", "-V")) {
		printf("fragctl %s\n", FRAG_VERSION);
		return CTL_OK;
	}
	if (!is_any(argv[1], "help", "--help", "-h")) {
		verb = choose_verb(argv[1], argc, argv, &exit_code);
		return verb != NULL ? run_verb(verb, argc - 1, argv + 1) : exit_code;
	}
	if (argc > 2) {
		char *words[] = {argv[2], (char *)(uintptr_t) "--help", NULL};

		verb = choose_verb(argv[2], argc, argv, &exit_code);
		return verb != NULL ? run_verb(verb, 2, words) : exit_code;
	}
	print_help(stdout);
	return CTL_OK;
}

int main(int argc, char **argv)
{
	fragi_standard_fds_open();
	return ctl_end_stdout(run(argc, argv));
}
