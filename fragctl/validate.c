/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <base/alloc.h>
#include <fragctl/child.h>
#include <fragctl/graph.h>
#include <graph/pools.h>

/* The graph as composed in a child (fragctl/child.h). */
struct composed {
	struct frag_fragment **fragments;
	struct fragi_fragment_info *infos;
	size_t op_count, inner_flow_count;
	struct fragi_flow_info *flows; /* between fragments */
	size_t flow_count;
};

static int compose_all(const struct fragi_spec *spec, struct fragi_registry *registry,
		       struct fragi_diag *diag, struct composed *composed)
{
	composed->fragments =
		fragi_calloc(spec->fragment_count + 1, sizeof(struct frag_fragment *));
	composed->infos = fragi_calloc(spec->fragment_count + 1, sizeof(*composed->infos));
	if (composed->fragments == NULL || composed->infos == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory");
	for (size_t i = 0; i < spec->fragment_count; i++) {
		struct frag_fragment **fragment = &composed->fragments[i];

		fragi_fragment_compose_flawed(spec, &spec->fragments[i], registry, diag, fragment);
		composed->infos[i] = (struct fragi_fragment_info){
			.name = spec->fragments[i].name,
			.has_gaps = true,
		};
		if (*fragment == NULL)
			continue;
		composed->infos[i] = (*fragment)->info;
		composed->op_count += (*fragment)->info.op_count;
		composed->inner_flow_count += (*fragment)->flow_count;
	}
	return fragi_flows_resolve(spec->flows, spec->flow_count, -1, composed->infos,
				   spec->fragment_count, diag, &composed->flows,
				   &composed->flow_count);
}

/* Of a graph without errors. */
static int check_pools(const struct composed *composed, size_t fragment_count,
		       struct fragi_diag *warnings)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < fragment_count; i++)
		r = fragi_pools_check(composed->fragments[i], (uint32_t)i, composed->flows,
				      composed->flow_count, warnings);
	return r;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

int ctl_graph_compose(struct ctl_graph *graph, char *out_summary, size_t size)
{
	const struct fragi_spec *spec = graph->spec;
	struct composed composed = {0};
	struct fragi_diag *diag = &graph->diag;
	struct fragi_registry *registry;
	int exit_code = ctl_graph_registry(graph, &registry), r;

	if (exit_code != CTL_OK)
		return exit_code;
	r = compose_all(spec, registry, diag, &composed);
	if (r == 0 && diag->count == 0)
		r = check_pools(&composed, spec->fragment_count, &graph->warnings);
	if (r == -ENOMEM && diag->count == 0)
		fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory");
	fragi_diag_sort(diag, 0);
	if (out_summary != NULL)
		snprintf(out_summary, size, "%zu fragment%s, %zu operator%s, %zu flow%s",
			 spec->fragment_count, plural(spec->fragment_count), composed.op_count,
			 plural(composed.op_count), composed.inner_flow_count + composed.flow_count,
			 plural(composed.inner_flow_count + composed.flow_count));
	for (size_t i = 0; composed.fragments != NULL && i < spec->fragment_count; i++)
		fragi_fragment_destroy(composed.fragments[i]);
	fragi_free(composed.fragments);
	fragi_free(composed.infos);
	fragi_free(composed.flows);
	fragi_registry_destroy(registry);
	return ctl_diag_exit(diag);
}

static const char *name_of(const struct ctl_graph *graph)
{
	return graph->line != NULL ? "-e" : graph->path;
}

/* Prints what is wrong, with what the text alone has shown, or that all is right. */
static int check(struct ctl_graph *graph)
{
	char summary[200];
	int exit_code = ctl_graph_compose(graph, summary, sizeof(summary));

	ctl_diag_print(&graph->diag);
	fragi_pools_warn(&graph->warnings);
	if (exit_code == CTL_OK)
		printf("%s: ok: %s\n", name_of(graph), summary);
	return exit_code;
}

struct composing {
	struct ctl_graph *graph;
	int (*work)(struct ctl_graph *graph);
	struct frag_err *failure; /* in memory that both processes share */
};

static int compose_in_child(void *arg)
{
	const struct composing *composing = arg;
	struct ctl_graph *graph = composing->graph;
	int exit_code = composing->work(graph);

	if (graph->failure.code == 0 && graph->diag.count > 0)
		graph->failure = graph->diag.items[0];
	*composing->failure = graph->failure;
	return exit_code;
}

int ctl_in_child(struct ctl_graph *graph, int (*work)(struct ctl_graph *graph))
{
	struct frag_err *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
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
		graph->failure = *shared;
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
	const struct fragi_flag table[] = {CTL_GRAPH_FLAGS(graph), CTL_COMMON_FLAGS(common)};
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
	exit_code = ctl_graph_take(&graph, flags.program, &operands, argv + rest, argc - rest);
	if (exit_code == CTL_OK)
		exit_code = ctl_graph_read(&graph, &help);
	if (exit_code == CTL_OK && !help)
		exit_code = ctl_graph_check(&graph);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&graph);
	return exit_code;
}
