// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/alloc.h>
#include <graph/op.h>

/*
 * Kahn's algorithm. Among the operators whose predecessors are all done, the one composed first
 * comes next. When only cycles are left, the next one is the first that has a predecessor which is
 * done (the entry of a cycle), else the first of all: the first operator of the first add_flow or
 * add_operator. Both sets of candidates are heaps, so a graph of 100,000 operators is fast too.
 */
/* smallest index on top; each operator is inserted once */
struct heap {
	uint32_t *items;
	uint32_t count;
};

struct ordering {
	uint32_t *waits_for; /* per operator: flows from operators that are not done */
	/* per operator: its flows are targets[first[i]] to targets[first[i + 1]] */
	uint32_t *first;
	uint32_t *targets;
	struct heap ready, reached;
	bool *is_done, *is_reached;
	uint32_t cursor; /* all before it are done */
};

static void heap_put(struct heap *heap, uint32_t item)
{
	uint32_t i = heap->count++, parent;

	for (; i > 0 && heap->items[parent = (i - 1) / 2] > item; i = parent)
		heap->items[i] = heap->items[parent];
	heap->items[i] = item;
}

static uint32_t heap_take(struct heap *heap)
{
	uint32_t top = heap->items[0], last = heap->items[--heap->count], i = 0, child;

	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count && heap->items[child + 1] < heap->items[child])
			child++;
		if (heap->items[child] >= last)
			break;
		heap->items[i] = heap->items[child];
		i = child;
	}
	heap->items[i] = last;
	return top;
}

static void ordering_fini(struct ordering *o)
{
	fragi_free(o->waits_for);
	fragi_free(o->is_done);
}

static int ordering_init(struct ordering *o, const struct frag_fragment *fragment)
{
	size_t count = fragment->op_count, flows = fragment->flow_count;
	const struct fragi_flow_info *flow = fragment->flows;

	memset(o, 0, sizeof(*o));
	o->waits_for = fragi_calloc(4 * count + 2 + flows, sizeof(*o->waits_for));
	o->is_done = fragi_calloc(count + 1, 2 * sizeof(*o->is_done));
	if (o->waits_for == NULL || o->is_done == NULL) {
		ordering_fini(o);
		return -1;
	}
	o->is_reached = o->is_done + count + 1;
	o->ready.items = o->waits_for + count;
	o->reached.items = o->ready.items + count;
	o->first = o->reached.items + count;
	o->targets = o->first + count + 2;
	/* Count two places further, sum up; filling in then moves each index back by one place. */
	for (size_t i = 0; i < flows; i++) {
		o->first[flow[i].from_op + 2]++;
		if (flow[i].from_op != flow[i].to_op)
			o->waits_for[flow[i].to_op]++;
	}
	for (size_t i = 2; i <= count; i++)
		o->first[i] += o->first[i - 1];
	for (size_t i = 0; i < flows; i++)
		o->targets[o->first[flow[i].from_op + 1]++] = flow[i].to_op;
	for (uint32_t i = 0; i < count; i++)
		if (o->waits_for[i] == 0)
			heap_put(&o->ready, i);
	return 0;
}

static uint32_t next_op(struct ordering *o)
{
	uint32_t op;

	while (o->ready.count > 0)
		if (op = heap_take(&o->ready), !o->is_done[op])
			return op;
	while (o->reached.count > 0)
		if (op = heap_take(&o->reached), !o->is_done[op])
			return op;
	while (o->is_done[o->cursor])
		o->cursor++;
	return o->cursor;
}

static void op_done(struct ordering *o, uint32_t op)
{
	o->is_done[op] = true;
	for (uint32_t i = o->first[op]; i < o->first[op + 1]; i++) {
		uint32_t target = o->targets[i];

		if (target == op || o->is_done[target])
			continue;
		if (--o->waits_for[target] == 0)
			heap_put(&o->ready, target);
		if (!o->is_reached[target])
			heap_put(&o->reached, target);
		o->is_reached[target] = true;
	}
}

const uint32_t *fragi_fragment_order(struct frag_fragment *fragment)
{
	struct ordering o;
	uint32_t *order;

	if (fragment->order != NULL)
		return fragment->order;
	order = fragi_arena_alloc(&fragment->arena, (fragment->op_count + 1) * sizeof(*order));
	if (order == NULL || ordering_init(&o, fragment) < 0)
		return NULL;
	for (uint32_t i = 0; i < fragment->op_count; i++) {
		order[i] = next_op(&o);
		op_done(&o, order[i]);
	}
	ordering_fini(&o);
	fragment->order = order;
	return order;
}
