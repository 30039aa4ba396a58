// SPDX-License-Identifier: Apache-2.0
#include <fragctl/composed.h>
#include <fragctl/report.h>

int ctl_report_verb(int argc, char **argv, const char *program, const char *headline,
		    int (*work)(struct ctl_graph *graph))
{
	struct ctl_graph graph = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(graph),
		CTL_OUTPUT_FLAG(output),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = program,
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline = headline,
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	bool help = false;
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	exit_code = ctl_output(output, &graph.is_json)
			    ? ctl_graph_take(&graph, program, &operands, argv + rest, argc - rest)
			    : CTL_USAGE;
	if (exit_code != CTL_OK)
		goto out;
	ctl_fail_as_documents(false); /* ctl_report prints the one document */
	exit_code = ctl_graph_read(&graph, &help);
	if (exit_code == CTL_OK && !help)
		exit_code = ctl_in_child(&graph, work);
	if (!help)
		ctl_report(&graph, NULL);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&graph);
	return exit_code;
}

int ctl_validate(int argc, char **argv)
{
	return ctl_report_verb(argc, argv, "fragctl validate",
			       "Checks an application as a run would, without running it.",
			       ctl_graph_check);
}
