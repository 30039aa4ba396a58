/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <fragctl/child.h>
#include <fragctl/composed.h>
#include <fragctl/report.h>
#include <graph/pools.h>

static const char *name_of(const struct ctl_graph *graph)
{
	return graph->line != NULL ? "-e" : graph->path;
}

/* Prints what is wrong, with what the text alone has shown, or that all is right. */
static int check(struct ctl_graph *graph)
{
	struct ctl_composed composed;
	int exit_code = ctl_composed_make(graph, &composed);
	char sum[200];

	ctl_diag_print(&graph->diag);
	fragi_pools_warn(&graph->warnings);
	if (exit_code == CTL_OK && !graph->is_json)
		printf("%s: ok: %s\n", name_of(graph),
		       ctl_composed_sum(&composed, sum, sizeof(sum)));
	ctl_report(graph, &composed);
	ctl_composed_fini(&composed);
	return exit_code;
}

struct composing_result {
	struct frag_err failure;
	bool is_reported;
};

struct composing {
	struct ctl_graph *graph;
	int (*work)(struct ctl_graph *graph);
	struct composing_result *result; /* in memory that both processes share */
};

static int compose_in_child(void *arg)
{
	const struct composing *composing = arg;
	struct ctl_graph *graph = composing->graph;
	int exit_code = composing->work(graph);

	if (graph->failure.code == 0 && graph->diag.count > 0)
		graph->failure = graph->diag.items[0];
	*composing->result = (struct composing_result){graph->failure, graph->is_reported};
	return exit_code;
}

int ctl_in_child(struct ctl_graph *graph, int (*work)(struct ctl_graph *graph))
{
	struct composing_result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct composing composing = {graph, work, shared};
	struct frag_err err = FRAG_ERR_INIT;
	int exit_code;

	if (shared == MAP_FAILED) {
		frag_err_set(&graph->failure, -errno, "cannot start a process: %s",
			     strerror(errno));
		return ctl_fail(CTL_FAILED, "%s", graph->failure.text);
	}
	if (ctl_child_run(name_of(graph), compose_in_child, &composing, &exit_code, &err) == 0) {
		graph->failure = shared->failure;
		graph->is_reported = shared->is_reported;
	} else {
		ctl_diag_print(&graph->diag);
		ctl_fail(CTL_FAILED, "%s", err.text);
		graph->failure = graph->diag.count > 0 ? graph->diag.items[0] : err;
		exit_code = fragi_failure_exit(fragi_err_failure(&graph->failure));
	}
	munmap(shared, sizeof(*shared));
	return exit_code;
}

int ctl_graph_check(struct ctl_graph *graph)
{
	return ctl_in_child(graph, check);
}

int ctl_validate(int argc, char **argv)
{
	struct ctl_graph graph = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {CTL_GRAPH_FLAGS(graph), CTL_OUTPUT_FLAG(output),
					   CTL_COMMON_FLAGS(common)};
	const struct fragi_flags flags = {
		.program = "fragctl validate",
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline = "Checks an application as a run would, without running it.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	bool help = false;
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	exit_code =
		ctl_output(output, &graph.is_json)
			? ctl_graph_take(&graph, flags.program, &operands, argv + rest, argc - rest)
			: CTL_USAGE;
	if (exit_code != CTL_OK)
		goto out;
	exit_code = ctl_graph_read(&graph, &help);
	if (exit_code == CTL_OK && !help)
		exit_code = ctl_graph_check(&graph);
	if (!help)
		ctl_report(&graph, NULL);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&graph);
	return exit_code;
}
