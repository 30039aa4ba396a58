/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_COMPOSED_H
#define CTL_COMPOSED_H

#include <fragctl/graph.h>
#include <graph/op.h>

/* A graph as its hosts would compose it, in this process: all fragments, and their flows. */
struct ctl_composed {
	struct fragi_registry *registry;
	struct frag_fragment **fragments; /* as in the spec; NULL: it could not be composed */
	struct frag_fragment *shared;     /* services of the application; NULL: none */
	struct fragi_fragment_info *infos;
	size_t fragment_count;
	struct fragi_clock_config clock; /* of the application */
	size_t op_count, inner_flow_count;
	struct fragi_flow_info *flows; /* between fragments */
	size_t flow_count;
	const struct fragi_spec *spec;
	struct fragi_spec_group near; /* its fragments that run on one worker */
};

/*
 * Composes what could be read of a graph, and adds what is wrong to graph->diag, sorted, and to
 * graph->warnings; what kept it from doing so is in graph->failure. Returns an exit code; in every
 * case call ctl_composed_fini.
 */
int ctl_composed_make(struct ctl_graph *graph, struct ctl_composed *out_composed);
void ctl_composed_fini(struct ctl_composed *composed);
/*
 * Whether one host may run both fragments: they share one where they meet, and labels, near and
 * apart let them meet.
 */
bool ctl_may_share_host(const struct ctl_composed *composed, uint32_t a, uint32_t b);
/* "2 fragments, 4 operators, 3 flows" into out. Returns out. */
const char *ctl_composed_sum(const struct ctl_composed *composed, char *out, size_t size);
/*
 * Does work on a graph in a child: what the graph loads is somebody's code, and a library that
 * crashes or hangs is a finding, not the end of the tool. It must be called before this process has
 * any thread or library. The child runs for 60 s at most, and prints everything itself; work
 * returns an exit code, and leaves the first error in graph->failure or graph->diag: code and error
 * are handed back. When the child crashed or hung, prints what graph->diag held before; the first
 * of that, or else the crash, is then the failure.
 */
int ctl_in_child(struct ctl_graph *graph, int (*work)(struct ctl_graph *graph));

#endif
