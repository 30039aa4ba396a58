// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <base/alloc.h>
#include <fragctl/child.h>
#include <fragctl/composed.h>
#include <graph/clocks.h>
#include <graph/pools.h>

static int compose_all(const struct fragi_spec *spec, struct fragi_diag *diag,
		       struct ctl_composed *composed)
{
	composed->fragments =
		fragi_calloc(spec->fragment_count + 1, sizeof(struct frag_fragment *));
	composed->infos = fragi_calloc(spec->fragment_count + 1, sizeof(*composed->infos));
	if (composed->fragments == NULL || composed->infos == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory");
	fragi_services_compose(spec, composed->registry, diag, &composed->shared);
	for (size_t i = 0; i < spec->fragment_count; i++) {
		struct frag_fragment **fragment = &composed->fragments[i];

		composed->fragment_count++;
		fragi_fragment_compose_partial(spec, &spec->fragments[i], composed->shared,
					       composed->registry, diag, fragment);
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
	fragi_clock_shared(spec, composed->fragments, composed->fragment_count, diag,
			   &composed->clock);
	return fragi_flows_resolve(spec->flows, spec->flow_count, -1, composed->infos,
				   spec->fragment_count, diag, &composed->flows,
				   &composed->flow_count);
}

static struct frag_op *op_of(const struct ctl_composed *composed, const struct fragi_spec_end *end,
			     uint32_t *out_fragment)
{
	for (uint32_t i = 0; i < composed->fragment_count; i++) {
		const struct frag_fragment *fragment = composed->fragments[i];

		*out_fragment = i;
		for (uint32_t k = 0; k < fragment->op_count; k++)
			if (strcmp(fragment->name, end->fragment) == 0 &&
			    strcmp(fragment->ops[k]->name, end->op) == 0)
				return fragment->ops[k];
	}
	return NULL;
}

static bool is_connected(const struct ctl_composed *composed, const struct fragi_spec_end *before,
			 const struct fragi_spec_end *end)
{
	uint32_t from_fragment, to_fragment;
	const struct frag_op *from = op_of(composed, before, &from_fragment);
	const struct frag_op *to = op_of(composed, end, &to_fragment);
	const struct frag_fragment *fragment;

	if (from == NULL || to == NULL)
		return false;
	fragment = composed->fragments[from_fragment];
	for (size_t i = 0; from_fragment == to_fragment && i < fragment->flow_count; i++)
		if (fragment->ops[fragment->flows[i].from_op] == from &&
		    fragment->ops[fragment->flows[i].to_op] == to)
			return true;
	for (size_t i = 0; i < composed->flow_count; i++) {
		const struct fragi_flow_info *flow = &composed->flows[i];

		if (flow->from_fragment == from_fragment && flow->to_fragment == to_fragment &&
		    fragment->ops[flow->from_op] == from &&
		    composed->fragments[to_fragment]->ops[flow->to_op] == to)
			return true;
	}
	return false;
}

static int check_paths(const struct ctl_composed *composed, const struct fragi_spec_path *paths,
		       size_t count, struct fragi_diag *diag)
{
	int r = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 1; k < paths[i].op_count; k++) {
			const struct fragi_spec_end *end = &paths[i].ops[k], *before = end - 1;

			if (!is_connected(composed, before, end))
				r = fragi_node_error(diag, end->place, NULL,
						     FRAGI_DEADLINE_PATH_NO_FLOW, before->fragment,
						     before->op, end->fragment, end->op);
		}
	return r;
}

/* Of a graph without errors: deadlines of paths, as a run checks them. */
static int check_deadlines(const struct fragi_spec *spec, const struct ctl_composed *composed,
			   struct fragi_diag *diag)
{
	int r = check_paths(composed, spec->deadlines, spec->deadline_count, diag);

	for (size_t i = 0; i < composed->fragment_count; i++) {
		const struct frag_fragment *fragment = composed->fragments[i];
		int own = check_paths(composed, fragment->own->deadlines,
				      fragment->own->deadline_count, diag);
		int in_c = check_paths(composed, fragment->paths, fragment->path_count, diag);

		r = r == 0 ? own : r;
		r = r == 0 ? in_c : r;
	}
	return r;
}

/* Of a graph without errors. */
static int check_pools(const struct ctl_composed *composed, struct fragi_diag *warnings)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < composed->fragment_count; i++)
		r = fragi_pools_check(composed->fragments[i], (uint32_t)i, composed->flows,
				      composed->flow_count, warnings);
	return r;
}

int ctl_composed_make(struct ctl_graph *graph, struct ctl_composed *out_composed)
{
	struct fragi_diag *diag = &graph->diag;
	int exit_code, r;

	*out_composed = (struct ctl_composed){0};
	exit_code = ctl_graph_registry(graph, &out_composed->registry);
	if (exit_code != CTL_OK)
		return exit_code;
	out_composed->spec = graph->spec;
	r = fragi_spec_group(graph->spec, &out_composed->near);
	if (r == 0)
		r = compose_all(graph->spec, diag, out_composed);
	if (r == 0 && diag->count == 0)
		r = check_deadlines(graph->spec, out_composed, diag);
	if (r == 0 && diag->count == 0)
		r = check_pools(out_composed, &graph->warnings);
	if (r == -ENOMEM && diag->count == 0)
		fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory");
	fragi_diag_sort(diag, 0);
	return ctl_diag_exit(diag);
}

void ctl_composed_fini(struct ctl_composed *composed)
{
	for (size_t i = 0; i < composed->fragment_count; i++)
		fragi_fragment_destroy(composed->fragments[i]);
	fragi_fragment_destroy(composed->shared);
	fragi_free(composed->fragments);
	fragi_free(composed->infos);
	fragi_free(composed->flows);
	fragi_spec_group_fini(&composed->near);
	if (composed->registry != NULL)
		fragi_registry_destroy(composed->registry);
}

bool ctl_may_share_host(const struct ctl_composed *composed, uint32_t a, uint32_t b)
{
	const struct fragi_spec_fragment *fragments = composed->spec->fragments;

	return fragi_spec_share_host(&fragments[a], &fragments[b]) &&
	       fragi_spec_may_meet(composed->spec, &composed->near, a, b);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

const char *ctl_composed_sum(const struct ctl_composed *composed, char *out, size_t size)
{
	size_t flows = composed->inner_flow_count + composed->flow_count;

	snprintf(out, size, "%zu fragment%s, %zu operator%s, %zu flow%s", composed->fragment_count,
		 plural(composed->fragment_count), composed->op_count, plural(composed->op_count),
		 flows, plural(flows));
	return out;
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
	if (ctl_child_run(ctl_graph_name(graph), compose_in_child, &composing, &exit_code, &err) ==
	    0) {
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
