// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <run/state.h>

/*
 * Marks the flows inside this process that are part of a cycle: those whose ends are in one
 * strongly connected component (Tarjan, "Depth-first search and linear graph algorithms", 1972,
 * without recursion). exec.c says what that changes.
 */
struct search {
	uint32_t op_count;
	uint32_t *first, *targets; /* flows of operator i: targets[first[i]] to [first[i + 1]] */
	uint32_t *index, *low;     /* 0: not visited yet */
	uint32_t *next;            /* flow of the operator that is looked at next */
	uint32_t *path, path_count;
	uint32_t *stack, stack_count; /* visited, and in no component yet */
	uint32_t *component;          /* 0: none yet */
	uint32_t *capacity;           /* [component], at most UINT32_MAX / 2 */
	uint32_t visited, components;
};

static uint32_t row_of(const struct fragi_run *run, uint32_t fragment, uint32_t op)
{
	return run->fragments[fragment].first_op + op;
}

static uint32_t from_of(const struct fragi_run *run, size_t flow)
{
	return row_of(run, run->flows[flow].from_fragment, run->flows[flow].from_op);
}

static uint32_t to_of(const struct fragi_run *run, size_t flow)
{
	return row_of(run, run->flows[flow].to_fragment, run->flows[flow].to_op);
}

static int search_init(struct search *s, const struct fragi_run *run)
{
	size_t n;

	for (size_t i = 0; i < run->fragment_count; i++)
		s->op_count += run->fragments[i].fragment->op_count;
	n = s->op_count;
	s->first = fragi_calloc(8 * n + 3 + run->flow_count, sizeof(*s->first));
	if (s->first == NULL)
		return -ENOMEM;
	s->index = s->first + n + 2;
	s->low = s->index + n;
	s->next = s->low + n;
	s->path = s->next + n;
	s->stack = s->path + n;
	s->component = s->stack + n;
	s->capacity = s->component + n;
	s->targets = s->capacity + n + 1;
	/* Counts two places further and sums up; filling in moves each index back by one place. */
	for (size_t i = 0; i < run->flow_count; i++)
		s->first[from_of(run, i) + 2]++;
	for (size_t i = 2; i <= n; i++)
		s->first[i] += s->first[i - 1];
	for (size_t i = 0; i < run->flow_count; i++)
		s->targets[s->first[from_of(run, i) + 1]++] = to_of(run, i);
	return 0;
}

static void enter(struct search *s, uint32_t op)
{
	s->index[op] = s->low[op] = ++s->visited;
	s->next[op] = s->first[op];
	s->path[s->path_count++] = op;
	s->stack[s->stack_count++] = op;
}

static void lower(struct search *s, uint32_t op, uint32_t low)
{
	if (low < s->low[op])
		s->low[op] = low;
}

static void leave(struct search *s, uint32_t op)
{
	uint32_t member;

	s->path_count--;
	if (s->path_count > 0)
		lower(s, s->path[s->path_count - 1], s->low[op]);
	if (s->low[op] != s->index[op])
		return;
	s->components++;
	do {
		member = s->stack[--s->stack_count];
		s->component[member] = s->components;
	} while (member != op);
}

static void search_from(struct search *s, uint32_t start)
{
	enter(s, start);
	while (s->path_count > 0) {
		uint32_t op = s->path[s->path_count - 1], target;

		if (s->next[op] == s->first[op + 1]) {
			leave(s, op);
			continue;
		}
		target = s->targets[s->next[op]++];
		if (s->index[target] == 0)
			enter(s, target);
		else if (s->component[target] == 0)
			lower(s, op, s->index[target]);
	}
}

static bool is_in_cycle(const struct search *s, const struct fragi_run *run, size_t flow)
{
	uint32_t from = from_of(run, flow), to = to_of(run, flow);

	return from != to && s->component[from] == s->component[to] && run->inproc[flow] != NULL;
}

/* Of the flows of each component together. */
static void add_capacities(struct search *s, const struct fragi_run *run)
{
	for (size_t i = 0; i < run->flow_count; i++) {
		uint32_t *sum = &s->capacity[s->component[from_of(run, i)]];

		if (is_in_cycle(s, run, i) && *sum < UINT32_MAX / 2)
			*sum += run->inproc[i]->rx->queue.capacity;
	}
}

int fragi_run_mark_cycles(struct fragi_run *run)
{
	struct search s = {0};

	if (search_init(&s, run) < 0)
		return -ENOMEM;
	for (uint32_t op = 0; op < s.op_count; op++)
		if (s.index[op] == 0)
			search_from(&s, op);
	add_capacities(&s, run);
	for (size_t i = 0; i < run->flow_count; i++) {
		if (!is_in_cycle(&s, run, i))
			continue;
		run->inproc[i]->cycle_capacity = run->inproc[i]->rx->cycle_capacity =
			s.capacity[s.component[from_of(run, i)]];
	}
	fragi_free(s.first);
	return 0;
}
