// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <fragctl/composed.h>
#include <fragctl/pipeline.h>
#include <fragctl/predict.h>
#include <fragctl/report.h>
#include <graph/pools.h>

int ctl_graph_check(struct ctl_graph *graph)
{
	struct ctl_composed composed;
	int exit_code = ctl_composed_make(graph, &composed);
	char sum[200], *prediction = NULL;

	if (exit_code == CTL_OK)
		exit_code = ctl_predict(graph, &composed, &prediction);
	ctl_diag_print(&graph->diag);
	fragi_pools_warn(&graph->warnings);
	if (exit_code == CTL_OK && !graph->is_json) {
		printf("%s: ok: %s\n", ctl_graph_name(graph),
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

/* Prints the errors. Returns CTL_OK, or the exit code of graph->failure. */
static int read_graph(struct ctl_graph *graph)
{
	struct frag_err *err = &graph->failure;
	int r = graph->line != NULL ? ctl_pipeline_compile(graph) : CTL_OK;

	if (r != CTL_OK)
		return r;
	r = fragi_source_read(&graph->source, graph->path, graph->configs.items,
			      graph->configs.count, graph->sets.items, graph->sets.count,
			      (const char *const *)graph->args, (size_t)graph->arg_count, err);
	if (r < 0) {
		frag_err_set(err, r, "%s", frag_strerror(r));
		return ctl_fail_with(fragi_err_failure(err), "%s", err->text);
	}
	if (graph->line != NULL)
		graph->source.source.graph.file = "graph of -e"; /* as --print-yaml prints it */
	r = fragi_spec_parse_partial(&graph->source.source, &graph->diag, &graph->spec);
	if (graph->spec != NULL)
		fragi_spec_log_remarks(graph->spec);
	if (r < 0 && graph->spec != NULL)
		return ctl_in_child(graph, ctl_graph_check);
	if (r == 0)
		return CTL_OK;
	ctl_diag_print(&graph->diag);
	if (graph->diag.count != 0)
		*err = graph->diag.items[0];
	frag_err_set(err, r, "%s", frag_strerror(r));
	return fragi_failure_exit(fragi_err_failure(err));
}

int ctl_graph_read(struct ctl_graph *graph, bool *out_help)
{
	/* All errors are printed; the document has the first. */
	bool as_documents = ctl_fail_as_documents(false);
	char line[CTL_ERR_LINE_SIZE];
	int code;

	graph->failure = (struct frag_err)FRAG_ERR_INIT;
	*out_help = false;
	code = read_graph(graph);
	ctl_fail_as_documents(as_documents);
	if (code != CTL_OK) {
		ctl_fail_document(code, fragi_err_failure(&graph->failure),
				  fragi_err_line(&graph->failure, line, sizeof(line)));
		return code;
	}
	assert(graph->spec != NULL && "a graph without an error has been read");
	if (graph->spec->help_wanted) {
		*out_help = true;
		fputs(fragi_spec_arguments_help(graph->spec), stdout);
	}
	return CTL_OK;
}
