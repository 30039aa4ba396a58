// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <graph/pools.h>
#include <run/state.h>

/*
 * Pools of blocks in a run. At the start: which have fewer blocks than their flows can hold. When
 * one has run out: which flows hold its blocks. Nothing is recorded for that while messages flow;
 * it is read from the queues when the failure is reported. Other threads go on meanwhile, so
 * messages are counted and not looked into: the flows are those that a tensor of the pool can have
 * reached, and their numbers of messages are those of that moment.
 */
#define HOLDERS_MAX 4

int fragi_run_check_pools(struct fragi_run *run, const struct fragi_run_edge *edges,
			  size_t edge_count)
{
	size_t count = run->flow_count - run->inner_flow_count;
	struct fragi_flow_info *between = fragi_calloc(count + edge_count + 1, sizeof(*between));
	struct fragi_diag warnings = {0};
	int r = 0;

	if (between == NULL)
		return -ENOMEM;
	if (count > 0)
		memcpy(between, run->flows + run->inner_flow_count, count * sizeof(*between));
	for (size_t i = 0; i < edge_count; i++)
		if (edges[i].sends)
			between[count++] = (struct fragi_flow_info){
				.from_fragment = edges[i].fragment,
				.from_op = edges[i].op,
				.from_port = edges[i].port,
				.capacity = edges[i].config.window_messages,
				.policy = edges[i].config.policy,
			};
	for (size_t i = 0; r == 0 && i < run->fragment_count; i++)
		r = fragi_pools_check(run->fragments[i].fragment, (uint32_t)i, between, count,
				      &warnings);
	fragi_pools_warn(&warnings);
	fragi_diag_fini(&warnings);
	fragi_free(between);
	return r;
}

/* The next pool behind those before; NULL: there is none. */
struct pool_at {
	size_t fragment;
	uint32_t resource;
};
static const struct frag_resource *next_pool(const struct fragi_run *run, struct pool_at *at)
{
	for (; at->fragment < run->fragment_count; at->fragment++, at->resource = 0) {
		const struct frag_fragment *fragment = run->fragments[at->fragment].fragment;

		while (at->resource < fragment->resource_count) {
			const struct frag_resource *resource = fragment->resources[at->resource++];

			if (resource->allocator.level != NULL)
				return resource;
		}
	}
	return NULL;
}

const char *fragi_run_pool(const struct fragi_run *run, uint32_t number, char *out, size_t size)
{
	struct pool_at at = {0};
	const struct frag_resource *pool = next_pool(run, &at);

	for (uint32_t i = 0; i < number && pool != NULL; i++)
		pool = next_pool(run, &at);
	if (pool == NULL || number >= FRAGI_POOLS_MAX)
		return NULL;
	snprintf(out, size, "%s.%s", run->fragments[at.fragment].fragment->name,
		 frag_resource_name(pool));
	return out;
}

static void set(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

void fragi_run_look_at_pools(struct fragi_run *run, uint64_t ns)
{
	struct pool_at at = {0};
	const struct frag_resource *pool;
	struct fragi_blocks blocks;

	for (uint32_t i = 0; i < FRAGI_POOLS_MAX && (pool = next_pool(run, &at)) != NULL; i++) {
		struct fragi_pool_row *row = &run->ledger.head->pools[i];

		pool->allocator.level(pool->allocator.state, &blocks);
		set(&row->blocks, blocks.all);
		set(&row->block_bytes, blocks.block_bytes);
		set(&row->free, blocks.free);
		set(&row->refused, blocks.refused);
		if (blocks.free == 0)
			set(&row->empty_ns,
			    atomic_load_explicit(&row->empty_ns, memory_order_relaxed) + ns);
	}
}

/* The operators that a tensor of the pool can have reached, by their numbers in the ledger. */
struct reach {
	struct fragi_run *run;
	uint32_t op_count;
	uint32_t *first; /* of each operator in `flows`, which are sorted by sender */
	uint32_t *flows;
	uint32_t *waiting; /* operators that were reached, and whose flows were not looked at */
	uint32_t waiting_count;
	bool *reached;
};

static uint32_t row_of(const struct fragi_run *run, uint32_t fragment, uint32_t op)
{
	return run->fragments[fragment].first_op + op;
}

static bool carries(const struct fragi_run *run, uint32_t fragment, uint32_t op, uint32_t port)
{
	return fragi_port_may_carry_tensors(
		&run->fragments[fragment].fragment->ops[op]->ports[port]);
}

static void reach_fini(struct reach *reach)
{
	fragi_free(reach->first);
	fragi_free(reach->flows);
	fragi_free(reach->waiting);
	fragi_free(reach->reached);
}

static int reach_init(struct reach *reach, struct fragi_run *run)
{
	const struct fragi_flow_info *flow;

	*reach = (struct reach){.run = run};
	for (size_t i = 0; i < run->fragment_count; i++)
		reach->op_count += run->fragments[i].fragment->op_count;
	reach->first = fragi_calloc(reach->op_count + 2, sizeof(*reach->first));
	reach->flows = fragi_calloc(run->flow_count + 1, sizeof(*reach->flows));
	reach->waiting = fragi_calloc(reach->op_count + 1, sizeof(*reach->waiting));
	reach->reached = fragi_calloc(reach->op_count + 1, sizeof(*reach->reached));
	if (reach->first == NULL || reach->flows == NULL || reach->waiting == NULL ||
	    reach->reached == NULL) {
		reach_fini(reach);
		return -ENOMEM;
	}
	/* first[op + 1] becomes the first of op, then, when its flows are filled in, of op + 1. */
	for (size_t i = 0; i < run->flow_count; i++) {
		flow = &run->flows[i];
		reach->first[row_of(run, flow->from_fragment, flow->from_op) + 2]++;
	}
	for (uint32_t i = 2; i < reach->op_count + 2; i++)
		reach->first[i] += reach->first[i - 1];
	for (size_t i = 0; i < run->flow_count; i++) {
		flow = &run->flows[i];
		reach->flows[reach->first[row_of(run, flow->from_fragment, flow->from_op) + 1]++] =
			(uint32_t)i;
	}
	return 0;
}

static void reach_add(struct reach *reach, uint32_t row)
{
	if (reach->reached[row])
		return;
	reach->reached[row] = true;
	reach->waiting[reach->waiting_count++] = row;
}

/* A flow with messages. end: of one to another host; else flow. */
struct holder {
	const struct fragi_flow_info *flow;
	const struct fragi_run_end *end;
	uint32_t messages;
};

/* The flows with the most messages, in order. */
struct holders {
	struct holder items[HOLDERS_MAX];
	uint32_t count;
	uint32_t all; /* also those that are not kept */
};

static void holders_add(struct holders *holders, const struct holder *holder)
{
	uint32_t i = holders->count < HOLDERS_MAX ? holders->count++ : HOLDERS_MAX;

	holders->all++;
	for (; i > 0 && holders->items[i - 1].messages < holder->messages; i--)
		if (i < HOLDERS_MAX)
			holders->items[i] = holders->items[i - 1];
	if (i < HOLDERS_MAX)
		holders->items[i] = *holder;
}

static void follow(struct reach *reach, struct holders *holders)
{
	const struct fragi_run *run = reach->run;
	uint32_t row;

	while (reach->waiting_count > 0) {
		row = reach->waiting[--reach->waiting_count];
		for (uint32_t i = reach->first[row]; i < reach->first[row + 1]; i++) {
			const struct fragi_flow_info *flow = &run->flows[reach->flows[i]];
			const struct fragi_tx *tx = run->inproc[reach->flows[i]];
			struct holder holder = {.flow = flow,
						.messages = fragi_rx_available(tx->rx)};

			if (!carries(run, flow->from_fragment, flow->from_op, flow->from_port))
				continue;
			if (holder.messages > 0)
				holders_add(holders, &holder);
			reach_add(reach, row_of(run, flow->to_fragment, flow->to_op));
		}
	}
	fragi_pump_lock(run->pump);
	for (size_t i = 0; i < run->end_count; i++) {
		const struct fragi_run_end *end = &run->ends[i];
		struct holder holder = {.end = end};

		if (!end->between_hosts || end->tx == NULL ||
		    !reach->reached[row_of(run, end->fragment, end->op)] ||
		    !carries(run, end->fragment, end->op, end->port))
			continue;
		holder.messages = fragi_remote_tx_kept(end->tx);
		if (holder.messages > 0)
			holders_add(holders, &holder);
	}
	fragi_pump_unlock(run->pump);
}

static size_t append(char *out, size_t size, size_t at, const struct fragi_run *run,
		     const struct holder *holder)
{
	const struct fragi_run_end *end = holder->end;
	char from[2 * FRAG_NAME_MAX + 70], to[2 * FRAG_NAME_MAX + 70];
	struct fragi_flow_info sent;
	int n;

	if (holder->flow != NULL) {
		fragi_flow_from(run->infos, holder->flow, from, sizeof(from));
		fragi_flow_to(run->infos, holder->flow, to, sizeof(to));
	} else {
		sent = (struct fragi_flow_info){
			.from_fragment = end->fragment, .from_op = end->op, .from_port = end->port};
		fragi_flow_from(run->infos, &sent, from, sizeof(from));
		snprintf(to, sizeof(to), "%s",
			 end->other_end != NULL ? end->other_end : "another host");
	}
	n = at < size ? snprintf(out + at, size - at, "%s%u in %s -> %s", at > 0 ? ", " : "",
				 holder->messages, from, to)
		      : 0;
	return at + (size_t)n;
}

/* Why the pool was empty, by what is known now: other threads and hosts go on meanwhile. */
static const char *reason_of(const struct holders *holders, const struct fragi_blocks *blocks)
{
	if (holders->count > 0)
		return "messages wait: ";
	if (blocks->free > 0)
		return "some have come back since";
	return "no message waits: operators keep them";
}

void fragi_run_name_holders(struct fragi_run *run, const struct frag_op *op, char *sentence,
			    size_t size)
{
	struct frag_resource *pool = fragi_op_starved_pool(op);
	const struct frag_fragment *fragment = op->fragment;
	size_t at = 0;
	struct holders holders = {0};
	struct fragi_blocks blocks;
	uint64_t enough;
	struct reach reach;
	char names[600] = "";
	uint32_t index = 0;

	if (pool == NULL || reach_init(&reach, run) < 0)
		return;
	while (run->fragments[index].fragment != fragment)
		index++;
	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (fragi_op_uses(fragment->ops[i], pool))
			reach_add(&reach, row_of(run, index, i));
	follow(&reach, &holders);
	reach_fini(&reach);
	for (uint32_t i = 0; i < holders.count; i++)
		at = append(names, sizeof(names), at, run, &holders.items[i]);
	pool->allocator.blocks(pool->allocator.state, &blocks);
	enough = pool->blocks_needed > blocks.all ? pool->blocks_needed : blocks.all + 1;
	snprintf(
		sentence, size,
		"%s: pool \"%s\" ran out of its %zu block%s, and %s%s%s; set num_blocks to %llu or more",
		op->subject, frag_resource_name(pool), blocks.all, blocks.all == 1 ? "" : "s",
		reason_of(&holders, &blocks), names,
		holders.all > holders.count ? " and in other flows" : "",
		(unsigned long long)enough);
}
