// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/kernel.h>
#include <base/units.h>
#include <edge/ucx_env.h>
#include <fragctl/command.h>
#include <track/summary.h>

#define WORKERS_MAX 64

static int read_workers(const char *text, uint32_t *out_workers)
{
	int64_t n;

	if (text == NULL)
		return CTL_OK;
	if (fragi_parse_i64(text, &n) < 0 || n < 1 || n > WORKERS_MAX)
		return ctl_fail(CTL_USAGE, "--workers \"%.80s\" is not a number from 1 to %d", text,
				WORKERS_MAX);
	*out_workers = (uint32_t)n;
	return CTL_OK;
}

/*
 * --track FILE reaches the host as `--set tracking=FILE`, which starts in the graph's folder; what
 * is typed here starts in the current one.
 */
static int add_track(struct ctl_run_options *options, char **out_set)
{
	const char *track = options->track;
	bool is_relative = track != NULL && track[0] != '/' && track[0] != '\0';
	char *cwd = is_relative ? get_current_dir_name() : NULL;
	int r = 0;

	if (track != NULL && ((is_relative && cwd == NULL) ||
			      asprintf(out_set, "tracking=%s%s%s", cwd != NULL ? cwd : "",
				       cwd != NULL ? "/" : "", track) < 0 ||
			      fragi_texts_add(&options->graph.sets, *out_set) < 0))
		r = ctl_fail(CTL_FAILED, "out of memory");
	free(cwd);
	return r;
}

static void print_yaml(const struct ctl_graph *graph)
{
	const struct fragi_spec_text *text = &graph->source.source.graph;

	fwrite(text->text, 1, text->length, stdout);
}

/* There are four ways to run it: here, in a thread, by daemons, in a role. */
static int check_ways(const struct ctl_run_options *options)
{
	const char *role = options->roles.driver   ? "--driver"
			   : options->roles.worker ? "--worker"
						   : NULL;

	if (options->in_process && options->workers > 0)
		return ctl_fail(CTL_USAGE, "--in-process and --workers exclude each other");
	if (role != NULL && (options->in_process || options->workers > 0))
		return ctl_fail(CTL_USAGE, "%s and %s exclude each other",
				options->in_process ? "--in-process" : "--workers", role);
	if (options->web && (options->in_process || role != NULL))
		return ctl_fail(CTL_USAGE, "--web and %s exclude each other%s",
				options->in_process ? "--in-process" : role,
				options->in_process ? "" : "; start fragctl web beside it");
	if (options->trace != NULL && (options->in_process || role != NULL))
		return ctl_fail(CTL_USAGE, "--trace and %s exclude each other%s",
				options->in_process ? "--in-process" : role,
				options->in_process ? "" : "; start fragctl trace beside it");
	if (options->trace_on_failure && options->trace == NULL)
		return ctl_fail(CTL_USAGE,
				"--on-failure is about the file of --trace; give --trace FILE too");
	if (options->top && (options->in_process || role != NULL || options->output.json))
		return ctl_fail(CTL_USAGE, "--top and %s exclude each other",
				options->in_process ? "--in-process"
				: role != NULL      ? role
						    : "--output json");
	if (role != NULL && options->graph.line != NULL && !options->roles.driver)
		return ctl_fail(
			CTL_USAGE,
			"-e is for the driver, from which a worker has its graph; give APP.yaml, or --driver too");
	return CTL_OK;
}

/*
 * This process becomes the daemon of its role. A worker has the graph from its driver; where it is
 * here too, its folder is that of the application.
 */
static int become_role(const struct ctl_run_options *options)
{
	const struct fragi_spec *spec = options->graph.spec;
	const struct ctl_command_worker worker = {
		.address = options->roles.address,
		.fragments = options->roles.fragments,
		.app_root = spec != NULL ? spec->app_folder : NULL,
		.verbosity = options->verbosity,
		.is_once = true,
	};
	struct fragi_arena arena = {0};
	struct ctl_command command = {.arena = &arena};
	int r;

	if (options->roles.driver)
		ctl_command_driver(&command, options);
	else
		ctl_command_worker(&command, options, &worker);
	r = ctl_command_execute(&command);
	fragi_arena_fini(&arena);
	return r;
}

static int run(struct ctl_run_options *options)
{
	struct frag_err err = FRAG_ERR_INIT;
	bool help, is_worker = options->roles.worker && !options->roles.driver;
	int r;

	/* In this process nothing watches a host, so that valgrind can run it. */
	if (fragi_kernel_check(!options->in_process &&
				       (!options->roles.driver || options->roles.worker),
			       &err) < 0)
		return ctl_fail(CTL_MISSING, "%s", err.text);
	if (is_worker && access(options->graph.path, F_OK) < 0)
		return become_role(options);
	if (!is_worker && options->output.file != NULL &&
	    fragi_summary_check(options->output.file, &err) < 0)
		return ctl_fail(CTL_MISSING, "%s", err.text);
	ctl_fail_as_documents(false); /* from here on the summary is the document */
	r = ctl_graph_read(&options->graph, &help);
	if (r != CTL_OK)
		return drv_result_fail(&options->output, NULL, &options->graph.failure);
	if (help)
		return CTL_OK;
	if (options->print_yaml) {
		print_yaml(&options->graph);
		return CTL_OK;
	}
	if (is_worker)
		return become_role(options);
	if (options->roles.driver && !options->roles.worker)
		return become_role(options);
	if (options->workers > 0 || options->roles.driver)
		return ctl_run_daemons(options);
	return ctl_graph_forget(&options->graph) < 0 ? ctl_fail(CTL_FAILED, "out of memory")
						     : ctl_run_local(options);
}

int ctl_run(int argc, char **argv)
{
	struct ctl_run_options options = {0};
	struct ctl_common common = {0};
	struct ctl_line line;
	struct fragi_texts operands = {0};
	const char *output = NULL, *workers = NULL;
	char *track = NULL; /* of --track, as one of --set */
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(options.graph),
		{.name = "output",
		 .letter = 'o',
		 .value = "table|json",
		 .help = "the summary on stdout; default table",
		 .text = &output},
		{.name = "summary",
		 .value = "FILE",
		 .help = "also writes the summary, as JSON, into a file",
		 .text = &options.output.file},
		{.name = "track",
		 .value = "FILE",
		 .help = "tracks the data flow of all fragments, with a log in a file",
		 .text = &options.track},
		{.name = "print-yaml",
		 .no_env = true,
		 .help = "prints the graph, that of -e too, and does not run it",
		 .on = &options.print_yaml},
		{.name = "in-process",
		 .no_env = true,
		 .help = "runs it in a thread of this process, for debuggers and profilers",
		 .on = &options.in_process},
		{.name = "workers",
		 .no_env = true,
		 .value = "N",
		 .help = "runs it by a driver and N workers, processes of this machine",
		 .text = &workers},
		{.name = "web",
		 .no_env = true,
		 .help = "runs it likewise, by one worker if --workers is not given, and shows it in a browser",
		 .on = &options.web},
		{.name = "top",
		 .no_env = true,
		 .help = "shows top meanwhile; runs it by a driver and a worker, or --workers",
		 .on = &options.top},
		{.name = "trace",
		 .value = "FILE",
		 .no_env = true,
		 .help = "writes all that it does into a file for Perfetto; runs it by a driver and a worker, or --workers",
		 .text = &options.trace},
		{.name = "on-failure",
		 .no_env = true,
		 .help = "writes the trace only if the application fails or a host ends by itself, up to there",
		 .on = &options.trace_on_failure},
		{.name = "ucx",
		 .value = "DIR",
		 .help = "the folder with libucp.so.0 and the rest of the UCX that hosts use; default: the system's",
		 .text = &options.ucx_folder},
		CTL_ROLE_FLAGS(options.roles),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl run",
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline =
			"Runs an application to its end, in one host, a child of this process; or, with --driver and --worker, plays its part of a run on several nodes.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	int rest, exit_code;

	ctl_fail_as_documents(fragi_flags_want_json(&flags, argc, argv));
	exit_code = ctl_line_divide(&flags, argc, argv, &line);
	if (exit_code != CTL_OK)
		return exit_code;
	if (!ctl_begin(&flags, &common, line.own_count, line.own, &operands, &rest, &exit_code))
		goto out;
	options.verbosity = common.verbose - common.quiet;
	exit_code = ctl_roles_check(&options.roles);
	if (exit_code == CTL_OK && !ctl_output(output, &options.output.json))
		exit_code = CTL_USAGE;
	if (exit_code == CTL_OK)
		exit_code = read_workers(workers, &options.workers);
	if (exit_code == CTL_OK)
		exit_code = check_ways(&options);
	if ((options.web || options.top || options.trace != NULL) && options.workers == 0)
		options.workers = 1;
	if (exit_code == CTL_OK)
		exit_code = add_track(&options, &track);
	if (exit_code == CTL_OK)
		exit_code = ctl_graph_take(&options.graph, flags.program, &operands, line.args,
					   line.arg_count);
	/* Hosts and workers inherit it. */
	if (exit_code == CTL_OK && options.ucx_folder != NULL &&
	    setenv(FRAGI_UCX_FOLDER, options.ucx_folder, 1) < 0)
		exit_code = ctl_fail(CTL_FAILED, "out of memory");
	if (exit_code == CTL_OK)
		exit_code = run(&options);
out:
	fragi_texts_fini(&operands);
	ctl_line_fini(&line);
	ctl_roles_fini(&options.roles);
	free(track);
	ctl_graph_fini(&options.graph);
	return exit_code;
}
