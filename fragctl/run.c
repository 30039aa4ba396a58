/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <fragctl/run.h>
#include <track/summary.h>

#define WORKERS_MAX 64

/*
 * The flags that give one process the roles of several; a person who knows them elsewhere gets an
 * answer.
 */
struct roles {
	bool driver, worker;
	const char *address, *fragments, *worker_address;
};

static int refuse_roles(const struct roles *roles)
{
	const char *name = roles->driver                   ? "--driver"
			   : roles->worker                 ? "--worker"
			   : roles->address != NULL        ? "--address"
			   : roles->fragments != NULL      ? "--fragments"
			   : roles->worker_address != NULL ? "--worker-address"
							   : NULL;

	if (name == NULL)
		return CTL_OK;
	return ctl_fail(
		CTL_USAGE,
		"%s: the role flags are not built yet; start driverd and workerd, or give --workers N",
		name);
}

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

static int print_yaml(const struct ctl_graph *graph)
{
	const struct fragi_spec_text *text = &graph->source.source.graph;

	fwrite(text->text, 1, text->length, stdout);
	return fflush(stdout) == 0 ? CTL_OK
				   : ctl_fail(CTL_MISSING, "cannot write to stdout: %s; free space",
					      strerror(errno));
}

static int run(struct ctl_run_options *options)
{
	struct frag_err err = FRAG_ERR_INIT;
	bool help;
	int r = ctl_graph_read(&options->graph, &help);

	if (r != CTL_OK)
		return drv_result_fail(&options->output, NULL, &options->graph.failure);
	if (help)
		return CTL_OK;
	if (options->print_yaml)
		return print_yaml(&options->graph);
	if (options->output.file != NULL && fragi_summary_check(options->output.file, &err) < 0)
		return ctl_fail(CTL_MISSING, "%s", err.text);
	return options->workers > 0 ? ctl_run_daemons(options) : ctl_run_local(options);
}

int ctl_run(int argc, char **argv)
{
	struct ctl_run_options options = {0};
	struct ctl_common common = {0};
	struct roles roles = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *workers = NULL;
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(options.graph),
		{.name = "output",
		 .value = "table|json",
		 .help = "the summary on stdout; default table",
		 .text = &output},
		{.name = "summary",
		 .value = "FILE",
		 .help = "also writes the summary, as JSON, into a file",
		 .text = &options.output.file},
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
		{.name = "driver", .no_env = true, .on = &roles.driver},
		{.name = "worker", .no_env = true, .on = &roles.worker},
		{.name = "address", .no_env = true, .value = "A", .text = &roles.address},
		{.name = "fragments", .no_env = true, .value = "a,b", .text = &roles.fragments},
		{.name = "worker-address",
		 .no_env = true,
		 .value = "IP",
		 .text = &roles.worker_address},
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl run",
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline = "Runs an application to its end, in one host, a child of this process.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	options.verbosity = common.verbose - common.quiet;
	exit_code = refuse_roles(&roles);
	if (exit_code == CTL_OK && !ctl_output(output, &options.output.json))
		exit_code = CTL_USAGE;
	if (exit_code == CTL_OK)
		exit_code = read_workers(workers, &options.workers);
	if (exit_code == CTL_OK && options.in_process && options.workers > 0)
		exit_code = ctl_fail(CTL_USAGE, "--in-process and --workers exclude each other");
	if (exit_code == CTL_OK)
		exit_code = ctl_graph_take(&options.graph, flags.program, &operands, argv + rest,
					   argc - rest);
	if (exit_code == CTL_OK)
		exit_code = run(&options);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&options.graph);
	return exit_code;
}
