// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

/* The first one is the scheduler that the others are compared with. */
static const struct {
	const char *name, *yaml;
} schedulers[] = {
	{"greedy", "{type: greedy}"},
	{"event_based with 1 thread", "{type: event_based, worker_thread_number: 1}"},
	{"event_based with 2 threads", "{type: event_based, worker_thread_number: 2}"},
	{"event_based with 8 threads", "{type: event_based, worker_thread_number: 8}"},
};

/* Compares what a flow delivered under two schedulers. Returns false with a text. */
static bool compare(const struct oracle_flow *flow, bool exact, const struct oracle_history *one,
		    const struct oracle_history *other, const char *name,
		    struct oracle_finding *finding)
{
	uint32_t both = one->count < other->count ? one->count : other->count, i = 0;
	const size_t size = sizeof(finding->text);
	int n = snprintf(finding->text, size, "n%u.out%u -> n%u.in%u: ", flow->from, flow->out,
			 flow->to, flow->in);

	while (i < both && one->values[i] == other->values[i])
		i++;
	if (i < both)
		snprintf(finding->text + n, size - (size_t)n,
			 "message %u under %s is another one than under greedy", i + 1, name);
	else if (exact && one->count != other->count)
		snprintf(finding->text + n, size - (size_t)n,
			 "%u messages were delivered under greedy, %u under %s", one->count,
			 other->count, name);
	else
		return true;
	return false;
}

static bool compare_all(const struct oracle_graph *graph, const struct oracle_sameness *same,
			const struct oracle_run *one, const struct oracle_run *other,
			const char *name, struct oracle_finding *finding)
{
	for (uint32_t i = 0; i < graph->flow_count; i++)
		if (oracle_flow_exists(graph, i) && (same->exact[i] || same->prefix[i]) &&
		    !compare(&graph->flows[i], same->exact[i], &one->flows[i], &other->flows[i],
			     name, finding))
			return false;
	return true;
}

static void add(struct oracle_totals *totals, const struct oracle_graph *graph,
		const struct oracle_sameness *same, const struct oracle_run *run)
{
	totals->graphs++;
	totals->rested += run->rested;
	for (uint32_t i = 0; i < graph->op_count; i++)
		totals->operators += !graph->ops[i].removed;
	for (uint32_t i = 0; i < graph->flow_count; i++) {
		if (!oracle_flow_exists(graph, i))
			continue;
		totals->flows++;
		totals->exact += same->exact[i];
		totals->prefix += !same->exact[i] && same->prefix[i];
		totals->messages += run->flows[i].count;
	}
}

bool oracle_check(const struct oracle_graph *graph, struct oracle_totals *totals,
		  struct oracle_finding *out_finding)
{
	static struct oracle_run runs[2]; /* greedy, and another one */
	struct oracle_sameness same;
	bool good = true;

	oracle_sameness(graph, &same);
	for (size_t i = 0; i < sizeof(schedulers) / sizeof(schedulers[0]) && good; i++) {
		struct oracle_run *run = &runs[i > 0];

		oracle_run(graph, schedulers[i].yaml, run);
		good = run->failure[0] == '\0';
		if (!good)
			snprintf(out_finding->text, sizeof(out_finding->text), "%s: %s",
				 schedulers[i].name, run->failure);
		else if (i > 0)
			good = compare_all(graph, &same, &runs[0], run, schedulers[i].name,
					   out_finding);
		if (!good)
			out_finding->scheduler = schedulers[i].yaml;
		if (i > 0)
			oracle_run_fini(run);
	}
	if (good && totals != NULL)
		add(totals, graph, &same, &runs[0]);
	oracle_run_fini(&runs[0]);
	return good;
}
