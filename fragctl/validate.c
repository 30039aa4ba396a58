// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <fragctl/predict.h>
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
	char sum[200], *prediction = NULL;

	if (exit_code == CTL_OK)
		exit_code = ctl_predict(graph, &composed, &prediction);
	ctl_diag_print(&graph->diag);
	fragi_pools_warn(&graph->warnings);
	if (exit_code == CTL_OK && !graph->is_json) {
		printf("%s: ok: %s\n", name_of(graph),
		       ctl_composed_sum(&composed, sum, sizeof(sum)));
		if (prediction != NULL)
			printf("predicted from rates and budgets:\n%s", prediction);
	}
	graph->prediction = prediction;
	ctl_report(graph, &composed);
	graph->prediction = NULL;
	free(prediction);
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
		ctl_complain("%s", err.text);
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
	return ctl_report_verb(argc, argv, "fragctl validate",
			       "Checks an application as a run would, without running it.", check);
}
