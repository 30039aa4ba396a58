// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "deadline"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/log.h>
#include <base/units.h>
#include <run/state.h>
#include <sched/tracking.h>

/*
 * Deadlines of paths. They are checked by the labels of data flow tracking, which a graph with such
 * deadlines uses without asking for its results.
 */

/* The operator, if it is in this process. is_here: the fragment is. */
static struct frag_op *op_of(const struct fragi_run *run, const struct fragi_spec_end *end,
			     bool *is_here)
{
	*is_here = false;
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;

		if (strcmp(fragment->name, end->fragment) != 0)
			continue;
		*is_here = true;
		for (uint32_t k = 0; k < fragment->op_count; k++)
			if (strcmp(fragment->ops[k]->name, end->op) == 0)
				return fragment->ops[k];
	}
	return NULL;
}

static bool is_connected(const struct fragi_run *run, const struct frag_op *from,
			 const struct frag_op *to)
{
	for (size_t i = 0; i < run->flow_count; i++) {
		const struct fragi_flow_info *flow = &run->flows[i];

		if (run->fragments[flow->from_fragment].fragment->ops[flow->from_op] == from &&
		    run->fragments[flow->to_fragment].fragment->ops[flow->to_op] == to)
			return true;
	}
	return false;
}

/* Finds the operators. Returns 1; 0: some are in other processes; -EINVAL with an error. */
static int find_ops(const struct fragi_run *run, const struct fragi_spec_path *path,
		    struct frag_op **ops, struct fragi_diag *diag)
{
	uint32_t here = 0;
	bool is_here;

	for (size_t i = 0; i < path->op_count; i++) {
		const struct fragi_spec_end *end = &path->ops[i];

		ops[i] = op_of(run, end, &is_here);
		here += is_here;
		if (is_here && ops[i] == NULL)
			return fragi_node_error(
				diag, end->place, NULL,
				"a deadline has a path through %s.%s, and there is no such operator",
				end->fragment, end->op);
		if (i > 0 && ops[i] != NULL && ops[i - 1] != NULL &&
		    !is_connected(run, ops[i - 1], ops[i]))
			return fragi_node_error(
				diag, end->place, NULL,
				"a deadline has a path from %s to %s, and no flow leads there",
				ops[i - 1]->subject, ops[i]->subject);
	}
	if (here == path->op_count)
		return 1;
	if (here > 0)
		log_warn(
			NULL,
			"the path from %s.%s to %s.%s runs through several processes, so its deadline is not checked; give these fragments to one host",
			path->ops[0].fragment, path->ops[0].op,
			path->ops[path->op_count - 1].fragment, path->ops[path->op_count - 1].op);
	return 0;
}

static int add(struct fragi_run *run, const struct fragi_spec_path *path, struct fragi_diag *diag)
{
	struct frag_op *ops[FRAGI_SPEC_PATH_MAX];
	int r = find_ops(run, path, ops, diag);
	struct fragi_path_deadline *deadline;
	struct fragi_arena *arena;
	size_t count = path->op_count;

	if (r <= 0)
		return r;
	if (fragi_tracker_is_limited(ops[0]->fragment->tracker))
		return fragi_node_error(
			diag, path->place, NULL,
			"a deadline of a path needs all its operators, and is_limited_tracking keeps only the first and the last; remove that");
	arena = &ops[0]->fragment->arena;
	deadline = fragi_arena_alloc(arena, sizeof(*deadline));
	if (deadline == NULL)
		return -ENOMEM;
	*deadline = (struct fragi_path_deadline){
		.ops = fragi_arena_alloc(arena, count * sizeof(struct frag_op *)),
		.ids = fragi_arena_alloc(arena, count * sizeof(uint32_t)),
		.slowest = fragi_arena_alloc(arena, count * sizeof(uint64_t)),
		.count = (uint32_t)count,
		.budget_ns = path->budget_ns,
		.stops = path->on_miss == FRAGI_ON_MISS_STOP,
		.of_run = run->deadlines,
	};
	if (deadline->ops == NULL || deadline->ids == NULL || deadline->slowest == NULL)
		return -ENOMEM;
	memcpy(deadline->ops, ops, count * sizeof(struct frag_op *));
	memset(deadline->slowest, 0, count * sizeof(uint64_t));
	fragi_tracking_add_deadline(deadline);
	run->deadlines = deadline;
	return 0;
}

int fragi_run_add_deadlines(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	int r = 0, one;

	for (size_t i = 0; i < spec->deadline_count; i++) {
		one = add(run, &spec->deadlines[i], diag);
		r = one < 0 ? one : r;
	}
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct fragi_spec_fragment *own = run->fragments[i].fragment->own;

		for (size_t k = 0; own != NULL && k < own->deadline_count; k++) {
			one = add(run, &own->deadlines[k], diag);
			r = one < 0 ? one : r;
		}
	}
	return r;
}

/* "a -> b -> c", cut where it is too long. */
static void name_path(const struct fragi_path_deadline *deadline, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < deadline->count && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " -> " : "",
					 deadline->ops[i]->subject);
}

void fragi_run_report_deadlines(const struct fragi_run *run)
{
	for (const struct fragi_path_deadline *d = run->deadlines; d != NULL; d = d->of_run) {
		char path[600], budget[32], longest[32];
		uint32_t slowest = 0;

		for (uint32_t i = 1; i < d->count; i++)
			slowest = d->slowest[i] > d->slowest[slowest] ? i : slowest;
		name_path(d, path, sizeof(path));
		fragi_format_duration(d->budget_ns, budget, sizeof(budget));
		fragi_format_duration((int64_t)d->longest_ns, longest, sizeof(longest));
		if (d->misses > 0)
			log_warn(
				NULL,
				"%s: %llu of %llu messages took longer than %s, at most %s; slowest: %s, in %llu of them",
				path, (unsigned long long)d->misses, (unsigned long long)d->checked,
				budget, longest, d->ops[slowest]->subject,
				(unsigned long long)d->slowest[slowest]);
		else
			log_info(NULL, "%s: none of %llu messages took longer than %s", path,
				 (unsigned long long)d->checked, budget);
	}
}
