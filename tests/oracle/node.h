/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_NODE_H
#define ORACLE_NODE_H

#include <frag/frag.h>

/*
 * The operator of all oracle graphs. It computes a hash of everything that it has received, in
 * order, and emits values made from it. A value holds who emitted it, its number, and the hash, so
 * the receiver knows the flow and sees when messages overtake each other. It fails when it is
 * ticked by two threads, before start or after stop, without a message or without room.
 */
#define NODE_FLOWS_MAX 64

/* What one flow delivered to this operator. */
struct node_flow {
	uint32_t in, origin; /* origin: of the values, node_origin */
	uint32_t count, capacity, next;
	bool has_gaps;
	uint32_t *values;
};

/* A dynamic flow, and how many messages were to go there. */
struct node_route {
	bool execution;
	uint32_t out, to, in, messages;
};

struct node {
	/* parameters */
	int64_t index, inputs, outputs, multi, free_in, free_out, take, emit, count, disable_at,
		enable_at, enables, work_ns, work_every, pend_every, turns;
	bool routes, chooses;
	struct frag_resource *pool;
	/* state */
	_Atomic int busy, running;
	bool pending, ended;
	uint32_t pends; /* calls of compute in this tick that still return FRAG_PENDING */
	uint32_t hash, next[8];
	int64_t ticks;
	struct frag_condition *boolean;
	uint32_t emitted[8]; /* in this tick, on each output */
	struct node_route routes_taken[NODE_FLOWS_MAX];
	uint32_t route_count;
	struct node_flow flows[NODE_FLOWS_MAX];
	uint32_t flow_count;
};

#define NODE_PORTS 4u
static inline uint32_t node_origin(uint32_t op, uint32_t out)
{
	return op * NODE_PORTS + out;
}

extern const struct frag_op_type oracle_node_type;
/* Called at the begin of each tick; NULL: nobody wants to know. */
extern void (*oracle_tick_begins)(struct frag_op *op);

#endif
