// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <base/strmap.h>
#include <run/state.h>

/*
 * Marks the ends of flows here that are part of a cycle: those whose operators are in one strongly
 * connected component (Tarjan, "Depth-first search and linear graph algorithms", 1972, without
 * recursion). exec.c says what that changes. A cycle may lead through other hosts: their operators
 * and flows are those of the graph's text; what their composers make is not known here.
 */
#define NO_OP UINT32_MAX
#define UNKNOWN_CAPACITY 16 /* of a flow that the other host knows; more is no harm */

struct link {
	uint32_t from, to, capacity;
};

struct search {
	/* first the flows here, then those between fragments as the graph has them, then others */
	struct link *links;
	size_t link_count;
	uint32_t op_count;         /* first those here, by row */
	uint32_t *first, *targets; /* flows of operator i: targets[first[i]] to [first[i + 1]] */
	uint32_t *index, *low;     /* 0: not visited yet */
	uint32_t *next;            /* flow of the operator that is looked at next */
	uint32_t *path, path_count;
	uint32_t *stack, stack_count; /* visited, and in no component yet */
	uint32_t *component;          /* 0: none yet */
	uint32_t *capacity;           /* [component], at most UINT32_MAX / 2 */
	uint32_t visited, components;
};

/* Names of operators. */

struct places {
	struct fragi_strmap own;       /* struct fragi_run_fragment of those that run here */
	struct fragi_strmap fragments; /* index + 1, in the spec */
	struct fragi_strmap *ops;      /* of each: number + 1 */
};

static void places_fini(struct places *places, size_t count)
{
	for (size_t i = 0; places->ops != NULL && i < count; i++)
		fragi_strmap_fini(&places->ops[i]);
	fragi_free(places->ops);
	fragi_strmap_fini(&places->fragments);
	fragi_strmap_fini(&places->own);
}

static bool put(struct fragi_strmap *map, const char *name, size_t number)
{
	return name == NULL || fragi_strmap_put(map, name, (void *)(number + 1)) != -ENOMEM;
}

/* Numbers the operators. */
static int places_init(struct places *places, const struct fragi_run *run, uint32_t *out_count)
{
	const struct fragi_spec *spec = run->config.spec;
	uint32_t count = 0;
	bool good = true;

	places->ops = fragi_calloc(spec->fragment_count + 1, sizeof(*places->ops));
	if (places->ops == NULL)
		return -ENOMEM;
	for (size_t i = 0; good && i < run->fragment_count; i++) {
		count += run->fragments[i].fragment->op_count;
		good = fragi_strmap_put(&places->own, run->fragments[i].fragment->name,
					&run->fragments[i]) != -ENOMEM;
	}
	for (size_t i = 0; good && run->remote != NULL && i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *fragment = &spec->fragments[i];
		const struct fragi_run_fragment *own =
			fragi_strmap_get(&places->own, fragment->name);

		good = put(&places->fragments, fragment->name, i);
		for (uint32_t k = 0; good && own != NULL && k < own->fragment->op_count; k++)
			good = put(&places->ops[i], own->fragment->ops[k]->name, own->first_op + k);
		for (size_t k = 0; good && own == NULL && k < fragment->operator_count; k++)
			good = put(&places->ops[i], fragment->operators[k].name, count++);
	}
	*out_count = count;
	return good ? 0 : -ENOMEM;
}

/* fragment NULL: the end's own. */
static uint32_t number_of(const struct places *places, const char *fragment,
			  const struct fragi_spec_end *end)
{
	size_t i = (size_t)(uintptr_t)fragi_strmap_get(&places->fragments,
						       fragment != NULL ? fragment : end->fragment);
	size_t op = i > 0 && end->op != NULL
			    ? (size_t)(uintptr_t)fragi_strmap_get(&places->ops[i - 1], end->op)
			    : 0;

	return op > 0 ? (uint32_t)(op - 1) : NO_OP;
}

static uint32_t row_of(const struct fragi_run *run, uint32_t fragment, uint32_t op)
{
	return run->fragments[fragment].first_op + op;
}

/* One for each end in `to`, also where an operator is not known, so that they can be counted. */
static void add_links(struct search *s, const struct places *places, const char *fragment,
		      const struct fragi_spec_flow *flows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < flows[i].to_count; k++)
			s->links[s->link_count++] = (struct link){
				number_of(places, fragment, &flows[i].from),
				number_of(places, fragment, &flows[i].to[k]),
				flows[i].capacity > 0 ? flows[i].capacity : UNKNOWN_CAPACITY};
}

static size_t count_ends(const struct fragi_spec_flow *flows, size_t count)
{
	size_t ends = 0;

	for (size_t i = 0; i < count; i++)
		ends += flows[i].to_count;
	return ends;
}

static int links_init(struct search *s, const struct fragi_run *run, const struct places *places)
{
	const struct fragi_spec *spec = run->config.spec;
	size_t most = run->flow_count + count_ends(spec->flows, spec->flow_count) + 1;

	for (size_t i = 0; i < spec->fragment_count; i++)
		most += count_ends(spec->fragments[i].flows, spec->fragments[i].flow_count);
	s->links = fragi_calloc(most, sizeof(*s->links));
	if (s->links == NULL)
		return -ENOMEM;
	for (; s->link_count < run->flow_count; s->link_count++) {
		const struct fragi_flow_info *flow = &run->flows[s->link_count];

		s->links[s->link_count] =
			(struct link){row_of(run, flow->from_fragment, flow->from_op),
				      row_of(run, flow->to_fragment, flow->to_op), flow->capacity};
	}
	if (run->remote == NULL)
		return 0;
	add_links(s, places, NULL, spec->flows, spec->flow_count);
	for (size_t i = 0; i < spec->fragment_count; i++)
		if (fragi_strmap_get(&places->own, spec->fragments[i].name) == NULL)
			add_links(s, places, spec->fragments[i].name, spec->fragments[i].flows,
				  spec->fragments[i].flow_count);
	return 0;
}

static bool is_known(const struct link *link)
{
	return link->from != NO_OP && link->to != NO_OP;
}

static int search_init(struct search *s)
{
	size_t n = s->op_count;

	s->first = fragi_calloc(8 * n + 3 + s->link_count, sizeof(*s->first));
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
	for (size_t i = 0; i < s->link_count; i++)
		if (is_known(&s->links[i]))
			s->first[s->links[i].from + 2]++;
	for (size_t i = 2; i <= n; i++)
		s->first[i] += s->first[i - 1];
	for (size_t i = 0; i < s->link_count; i++)
		if (is_known(&s->links[i]))
			s->targets[s->first[s->links[i].from + 1]++] = s->links[i].to;
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

/* Returns what the flows of the cycle can hold together; 0: it is in none. */
static uint32_t capacity_of(const struct search *s, const struct link *link)
{
	bool is_in_cycle = is_known(link) && link->from != link->to &&
			   s->component[link->from] == s->component[link->to];

	return is_in_cycle ? s->capacity[s->component[link->from]] : 0;
}

static void add_capacities(struct search *s)
{
	for (size_t i = 0; i < s->link_count; i++) {
		const struct link *link = &s->links[i];

		if (is_known(link) && s->component[link->from] == s->component[link->to] &&
		    s->capacity[s->component[link->from]] < UINT32_MAX / 2)
			s->capacity[s->component[link->from]] += link->capacity;
	}
}

/* An edge to another host: the text's order of flows between fragments says which one it is. */
static void mark_edge(const struct search *s, const struct fragi_run *run,
		      const struct fragi_run_end *end)
{
	size_t i = run->flow_count + (size_t)(end->order - FRAGI_RUN_BETWEEN);
	uint32_t row = row_of(run, end->fragment, end->op);

	if (i >= s->link_count || (end->tx != NULL ? s->links[i].from : s->links[i].to) != row)
		return;
	if (end->tx != NULL)
		end->tx->cycle_capacity = capacity_of(s, &s->links[i]);
	else
		end->rx->cycle_capacity = capacity_of(s, &s->links[i]);
}

int fragi_run_mark_cycles(struct fragi_run *run)
{
	struct places places = {0};
	struct search s = {0};
	int r = places_init(&places, run, &s.op_count);

	if (r == 0)
		r = links_init(&s, run, &places);
	if (r == 0)
		r = search_init(&s);
	for (uint32_t op = 0; r == 0 && op < s.op_count; op++)
		if (s.index[op] == 0)
			search_from(&s, op);
	if (r == 0)
		add_capacities(&s);
	for (size_t i = 0; r == 0 && i < run->flow_count; i++)
		run->inproc[i]->cycle_capacity = run->inproc[i]->rx->cycle_capacity =
			capacity_of(&s, &s.links[i]);
	for (size_t i = 0; r == 0 && i < run->end_count; i++)
		if (run->ends[i].between_hosts)
			mark_edge(&s, run, &run->ends[i]);
	places_fini(&places, run->config.spec->fragment_count);
	fragi_free(s.links);
	fragi_free(s.first);
	return r;
}
