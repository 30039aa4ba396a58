// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "deadline"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/log.h>
#include <base/sentence.h>
#include <base/units.h>
#include <run/state.h>
#include <sched/path_deadline.h>

#define CAUSES_MAX 3 /* that are named for a path */

/*
 * Deadlines of paths. Those of the graph come first, so that their numbers are the same in all
 * processes: trails that travel name them. The process of the last operator checks, and reports.
 */

static struct frag_fragment *fragment_of(const struct fragi_run *run, const char *name)
{
	for (size_t i = 0; i < run->fragment_count; i++)
		if (strcmp(run->fragments[i].fragment->name, name) == 0)
			return run->fragments[i].fragment;
	return NULL;
}

/* An end of a flow names an operator, or an instance of a subgraph in which one is. */
static struct frag_op *op_of(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (strcmp(fragment->ops[i]->name, name) == 0)
			return fragment->ops[i];
	return NULL;
}

static struct frag_op *from_of(const struct fragi_run *run, const struct fragi_flow_info *flow)
{
	return run->fragments[flow->from_fragment].fragment->ops[flow->from_op];
}

static struct frag_op *to_of(const struct fragi_run *run, const struct fragi_flow_info *flow)
{
	return run->fragments[flow->to_fragment].fragment->ops[flow->to_op];
}

static bool is_connected(const struct fragi_run *run, const struct frag_op *from,
			 const struct frag_op *to)
{
	for (size_t i = 0; i < run->flow_count; i++)
		if (from_of(run, &run->flows[i]) == from && to_of(run, &run->flows[i]) == to)
			return true;
	return false;
}

/* Whether the end of a flow may be that operator, which is `op` if it is in this process. */
static bool may_be(const struct fragi_run *run, const struct fragi_spec_end *end,
		   const struct fragi_spec_end *of, const struct frag_op *op)
{
	if (strcmp(end->fragment, of->fragment) != 0)
		return false;
	return op == NULL || strcmp(end->op, op->name) == 0 ||
	       op_of(fragment_of(run, end->fragment), end->op) == NULL;
}

/* The same where at least one of the two is in another process. */
static bool may_be_connected(const struct fragi_run *run, const struct fragi_spec_end *from,
			     const struct frag_op *from_op, const struct fragi_spec_end *to,
			     const struct frag_op *to_op)
{
	const struct fragi_spec *spec = run->config.spec;

	if (strcmp(from->fragment, to->fragment) == 0)
		return true; /* whoever has that fragment knows */
	for (size_t i = 0; i < spec->flow_count; i++) {
		const struct fragi_spec_flow *flow = &spec->flows[i];

		if (!may_be(run, &flow->from, from, from_op))
			continue;
		for (size_t k = 0; k < flow->to_count; k++)
			if (may_be(run, &flow->to[k], to, to_op))
				return true;
	}
	return false;
}

/*
 * Finds the operators that are in this process. Returns how many, or -EINVAL with an error.
 * - ops: filled in; NULL: elsewhere
 */
static int find_ops(const struct fragi_run *run, const struct fragi_spec_path *path,
		    struct frag_op **ops, struct fragi_diag *diag)
{
	int here = 0;

	for (size_t i = 0; i < path->op_count; i++) {
		const struct fragi_spec_end *end = &path->ops[i], *before = end - (i > 0);
		const struct frag_fragment *fragment = fragment_of(run, end->fragment);

		ops[i] = fragment != NULL ? op_of(fragment, end->op) : NULL;
		here += ops[i] != NULL;
		if (fragment != NULL && ops[i] == NULL)
			return fragi_node_error(
				diag, end->place, NULL,
				"a deadline has a path through %s.%s, and there is no such operator",
				end->fragment, end->op);
		if (i == 0)
			continue;
		if (ops[i] != NULL && ops[i - 1] != NULL
			    ? !is_connected(run, ops[i - 1], ops[i])
			    : !may_be_connected(run, before, ops[i - 1], end, ops[i]))
			return fragi_node_error(diag, end->place, NULL, FRAGI_DEADLINE_PATH_NO_FLOW,
						before->fragment, before->op, end->fragment,
						end->op);
	}
	return here;
}

static struct fragi_path_deadline *create(struct fragi_arena *arena,
					  const struct fragi_spec_path *path, struct frag_op **ops)
{
	struct fragi_path_deadline *deadline = fragi_arena_alloc(arena, sizeof(*deadline));
	size_t count = path->op_count, causes = (count + 1) * FRAGI_BLAME_CAUSES;

	if (deadline == NULL)
		return NULL;
	*deadline = (struct fragi_path_deadline){
		.names = fragi_arena_alloc(arena, count * sizeof(*deadline->names)),
		.ops = fragi_arena_alloc(arena, count * sizeof(struct frag_op *)),
		.slowest = fragi_arena_alloc(arena, count * sizeof(uint64_t)),
		.blamed = fragi_arena_alloc(arena, 2 * causes * sizeof(uint64_t)),
		.rows = fragi_arena_alloc(arena, (count + 1) * sizeof(*deadline->rows)),
		.count = (uint32_t)count,
		.budget_ns = path->budget_ns,
		.short_ns = (uint64_t)path->budget_ns / (count > 16 ? 8 * count : 128),
		.on_miss = path->on_miss,
	};
	if (deadline->names == NULL || deadline->ops == NULL || deadline->slowest == NULL ||
	    deadline->blamed == NULL || deadline->rows == NULL)
		return NULL;
	memset(deadline->blamed, 0, 2 * causes * sizeof(uint64_t));
	memset(deadline->rows, 0, (count + 1) * sizeof(*deadline->rows));
	deadline->usual.ns = deadline->blamed + causes;
	deadline->usual.places = (uint32_t)count;
	memcpy(deadline->ops, ops, count * sizeof(struct frag_op *));
	memset(deadline->slowest, 0, count * sizeof(uint64_t));
	for (size_t i = 0; i < count; i++) {
		deadline->names[i] =
			fragi_arena_printf(arena, "%s.%s", path->ops[i].fragment, path->ops[i].op);
		if (deadline->names[i] == NULL)
			return NULL;
	}
	return deadline;
}

/* Adds one as the next number, which stays empty where no operator of it is here. */
static int add(struct fragi_run *run, const struct fragi_spec_path *path, struct fragi_diag *diag)
{
	struct frag_op *ops[FRAGI_SPEC_PATH_MAX] = {NULL};
	int r = find_ops(run, path, ops, diag);
	struct fragi_path_deadline *deadline;
	uint32_t number = run->deadline_count;
	struct frag_op *any = NULL;

	if (r < 0)
		return r;
	run->deadline_count++;
	for (size_t i = 0; i < path->op_count; i++)
		any = any != NULL ? any : ops[i];
	if (any == NULL)
		return 0;
	deadline = create(&any->fragment->arena, path, ops);
	if (deadline == NULL)
		return -ENOMEM;
	deadline->number = (uint16_t)number;
	deadline->is_local = (size_t)r == path->op_count;
	run->deadlines[number] = deadline;
	for (uint32_t i = 0; i < deadline->count && r >= 0; i++) {
		if (ops[i] == NULL)
			continue;
		r = fragi_path_watch(ops[i]);
		if (r == 0)
			r = fragi_path_add_step(ops[i], deadline, i);
		if (r == -E2BIG)
			return fragi_node_error(
				diag, path->ops[i].place, NULL,
				"%s is %u times on paths with deadlines that lead to other processes, and no more are possible; give these fragments to one host, or remove some",
				ops[i]->subject, FRAGI_TRAIL_MAX);
	}
	return r < 0 ? r : 0;
}

/* Whether a path of the graph goes on behind the end of a flow, in another process. */
static bool sends_trails(const struct fragi_run *run, const struct fragi_spec_end *end)
{
	const struct fragi_spec *spec = run->config.spec;

	for (size_t i = 0; i < spec->deadline_count; i++)
		for (size_t k = 0; k + 1 < spec->deadlines[i].op_count; k++)
			if (strcmp(spec->deadlines[i].ops[k].fragment, end->fragment) == 0)
				return true;
	return false;
}

static int watch_fragment(const struct frag_fragment *fragment, const char *name)
{
	struct frag_op *op = op_of(fragment, name);

	if (op != NULL)
		return fragi_path_watch(op);
	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (fragi_path_watch(fragment->ops[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* Operators that get trails and may be on no path themselves: what they pass on has none. */
static int watch_next(struct fragi_run *run)
{
	const struct fragi_spec *spec = run->config.spec;

	for (size_t i = 0; i < run->flow_count; i++)
		if (fragi_path_goes_on(from_of(run, &run->flows[i])) &&
		    fragi_path_watch(to_of(run, &run->flows[i])) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < spec->flow_count; i++) {
		const struct fragi_spec_flow *flow = &spec->flows[i];

		if (fragment_of(run, flow->from.fragment) != NULL ||
		    !sends_trails(run, &flow->from))
			continue;
		for (size_t k = 0; k < flow->to_count; k++) {
			const struct frag_fragment *to = fragment_of(run, flow->to[k].fragment);

			if (to != NULL && watch_fragment(to, flow->to[k].op) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int add_all(struct fragi_run *run, const struct fragi_spec_path *paths, size_t count,
		   struct fragi_diag *diag)
{
	int r = 0, one;

	for (size_t i = 0; i < count; i++) {
		one = add(run, &paths[i], diag);
		r = one < 0 ? one : r;
	}
	return r;
}

static size_t count_all(const struct fragi_run *run)
{
	size_t count = run->config.spec->deadline_count;

	for (size_t i = 0; i < run->fragment_count; i++)
		count += run->fragments[i].fragment->own->deadline_count +
			 run->fragments[i].fragment->path_count;
	return count;
}

int fragi_run_add_deadlines(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct fragi_spec *spec = run->config.spec;
	size_t count = count_all(run);
	int r, one;

	if (count == 0 || run->fragment_count == 0)
		return 0;
	if (count > UINT16_MAX)
		return fragi_diag_add(diag, -EINVAL, NULL, 0, 0,
				      "%s has %zu deadlines of paths; %d are possible",
				      spec->application, count, UINT16_MAX);
	run->deadlines = fragi_arena_alloc(&run->fragments[0].fragment->arena,
					   count * sizeof(struct fragi_path_deadline *));
	if (run->deadlines == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory for deadlines");
	memset(run->deadlines, 0, count * sizeof(struct fragi_path_deadline *));
	r = add_all(run, spec->deadlines, spec->deadline_count, diag);
	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;

		one = add_all(run, fragment->own->deadlines, fragment->own->deadline_count, diag);
		r = one < 0 ? one : r;
		one = add_all(run, fragment->paths, fragment->path_count, diag);
		r = one < 0 ? one : r;
	}
	r = r == 0 ? watch_next(run) : r;
	return r == -ENOMEM ? fragi_diag_add(diag, r, NULL, 0, 0, "out of memory for deadlines")
			    : r;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The row of a place, which other paths to the same operator may have; NULL: there are too many. */
static struct fragi_late_row *row_of(struct fragi_run *run, const struct frag_op *end,
				     const char *from, const char *at)
{
	uint32_t i = 0;

	for (; i < run->late_place_count; i++)
		if (run->late_places[i].end == end && is_same(run->late_places[i].from, from) &&
		    is_same(run->late_places[i].at, at))
			return &run->ledger.head->lates[i];
	if (i == FRAGI_LATE_PLACES_MAX)
		return NULL;
	run->late_places[run->late_place_count++] = (struct fragi_run_late_at){end, from, at};
	return &run->ledger.head->lates[i];
}

int fragi_run_place_late(struct fragi_run *run, struct fragi_diag *diag)
{
	if (run->deadline_count == 0)
		return 0;
	run->late_places = fragi_arena_alloc(&run->fragments[0].fragment->arena,
					     FRAGI_LATE_PLACES_MAX * sizeof(*run->late_places));
	if (run->late_places == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "out of memory for deadlines");
	for (uint32_t i = 0; i < run->deadline_count; i++) {
		struct fragi_path_deadline *d = run->deadlines[i];
		const struct frag_op *end = d != NULL ? d->ops[d->count - 1] : NULL;

		if (end == NULL)
			continue;
		for (uint32_t at = 0; at < d->count; at++)
			d->rows[at] =
				row_of(run, end, at > 0 ? d->names[at - 1] : NULL, d->names[at]);
		d->rows[d->count] = row_of(run, end, NULL, d->names[d->count - 1]);
	}
	atomic_store(&run->ledger.head->late_count, run->late_place_count);
	return 0;
}

bool fragi_run_late_place(const struct fragi_run *run, uint32_t number,
			  struct fragi_run_late_place *out)
{
	const struct fragi_run_late_at *at;
	uint32_t fragment = 0;

	if (number >= run->late_place_count)
		return false;
	at = &run->late_places[number];
	while (run->fragments[fragment].fragment != at->end->fragment)
		fragment++;
	*out = (struct fragi_run_late_place){fragment, at->end->index, at->from, at->at};
	return true;
}

/* What was to blame most often: "b computed long, in 9 of them; a -> b network, in 2". */
static const char *name_causes(const struct fragi_path_deadline *d, char *out, size_t size)
{
	uint64_t below = UINT64_MAX;
	size_t most, after = 0;
	char text[300];

	out[0] = '\0';

	for (int n = 0; n < CAUSES_MAX; n++, below = d->blamed[most], after = most + 1) {
		most = SIZE_MAX;
		for (size_t i = 0; i < ((size_t)d->count + 1) * FRAGI_BLAME_CAUSES; i++)
			if ((d->blamed[i] < below || (d->blamed[i] == below && i >= after)) &&
			    (most == SIZE_MAX || d->blamed[i] > d->blamed[most]))
				most = i;
		if (most == SIZE_MAX || d->blamed[most] == 0)
			break;
		const struct fragi_blame_part part = {(uint16_t)(most / FRAGI_BLAME_CAUSES),
						      (uint16_t)(most % FRAGI_BLAME_CAUSES), 0};

		fragi_sentence_add(out, size, "%s%s, in %llu of them", n > 0 ? "; " : "",
				   fragi_path_part(d, NULL, &part, text, sizeof(text)),
				   (unsigned long long)d->blamed[most]);
	}
	return out;
}

static void report(const struct fragi_path_deadline *d)
{
	char path[600], budget[32], longest[32];
	uint64_t compared = d->checked - d->incomparable;
	char causes[700];
	uint32_t slowest = 0;

	for (uint32_t i = 1; i < d->count; i++)
		slowest = d->slowest[i] > d->slowest[slowest] ? i : slowest;
	fragi_path_name(d, path, sizeof(path));
	fragi_format_duration(d->budget_ns, budget, sizeof(budget));
	fragi_format_duration((int64_t)d->longest_ns, longest, sizeof(longest));
	if (d->incomparable > 0)
		log_warn(
			NULL,
			"%s: the deadline of %s was not checked for %llu of %llu messages: clocks not comparable, because the path leads from one machine to another",
			path, budget, (unsigned long long)d->incomparable,
			(unsigned long long)d->checked);
	if (d->misses > 0)
		log_warn(
			NULL,
			"%s: %llu of %llu messages took longer than %s, at most %s; slowest: %s, in %llu of them; to blame: %s",
			path, (unsigned long long)d->misses, (unsigned long long)compared, budget,
			longest, d->names[slowest], (unsigned long long)d->slowest[slowest],
			name_causes(d, causes, sizeof(causes)));
	else if (d->incomparable == 0 || compared > 0)
		log_info(NULL, "%s: none of %llu messages took longer than %s", path,
			 (unsigned long long)compared, budget);
}

void fragi_run_report_deadlines(const struct fragi_run *run)
{
	for (uint32_t i = 0; i < run->deadline_count; i++) {
		const struct fragi_path_deadline *d = run->deadlines[i];

		if (d != NULL && d->ops[d->count - 1] != NULL)
			report(d);
	}
}
